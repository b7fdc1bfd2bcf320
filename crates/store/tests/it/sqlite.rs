use adjutant_store::{contract, sqlite::Store};
use tempfile::TempDir;

async fn in_memory() -> Store {
    Store::in_memory().await.unwrap()
}

#[tokio::test]
async fn memory_keeps_the_task_contract() {
    contract::task_store(in_memory).await;
}

#[tokio::test]
async fn memory_keeps_the_journal_contract() {
    contract::journal(in_memory).await;
}

/// A folder that is removed after the test, and the place of a database in it.
fn place() -> (TempDir, std::path::PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("adjutant.db");
    (folder, path)
}

#[tokio::test]
async fn a_file_keeps_the_task_contract() {
    let (folder, _) = place();
    let number = std::cell::Cell::new(0);
    contract::task_store(async || {
        number.set(number.get() + 1);
        Store::open(folder.path().join(format!("{}.db", number.get()))).await.unwrap()
    })
    .await;
}

#[tokio::test]
async fn a_file_keeps_the_journal_contract() {
    let (folder, path) = place();
    let number = std::cell::Cell::new(0);
    contract::journal(async || {
        number.set(number.get() + 1);
        Store::open(folder.path().join(format!("{}.db", number.get()))).await.unwrap()
    })
    .await;
    contract::everything_is_there_after_reopening(Store::open(&path).await.unwrap(), async |store| {
        store.close().await;
        Store::open(&path).await.unwrap()
    })
    .await;
}
