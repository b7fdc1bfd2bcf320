use std::path::Path;

use adjutant_core::port::{Journal as _, StoreError};
use adjutant_core::{AgentName, UserId};
use adjutant_store::sqlite::Store;
use adjutant_tools::{TaskChange, TaskDescription, TaskFilter, TaskStore as _};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use crate::place;

/// The error of opening must be of the kind `is`, name the file and say `words`; and the file must
/// stay as it is.
async fn check_refused(path: &Path, is: fn(&StoreError) -> bool, words: &[&str]) {
    let before = std::fs::read(path).ok();
    let error = Store::open(path).await.map(drop).unwrap_err();
    assert!(is(&error), "{error:?}");
    let text = error.to_string();
    for word in words.iter().copied().chain([path.to_str().unwrap()]) {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
    assert!(std::fs::read(path).ok() == before, "the file was changed");
}

fn unusable(error: &StoreError) -> bool {
    matches!(error, StoreError::Unusable { .. })
}

fn unreadable(error: &StoreError) -> bool {
    matches!(error, StoreError::Unreadable { .. })
}

/// A database with some hundred tasks, closed.
async fn filled(path: &Path) {
    let store = Store::open(path).await.unwrap();
    for number in 0..200 {
        let description = TaskDescription::new(&format!("{number} {}", "x".repeat(900))).unwrap();
        store
            .apply(
                &UserId::local(),
                &TaskChange::Add {
                    description,
                    from_others: false,
                },
                None,
            )
            .await
            .unwrap();
    }
    store.close().await;
}

async fn connect(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true);
    // A table that others refer to can be dropped.
    options.foreign_keys(false).connect().await.unwrap()
}

async fn execute(path: &Path, sql: &str) {
    let mut connection = connect(path).await;
    sqlx::query(AssertSqlSafe(sql))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn an_impossible_path_is_an_error_that_names_it() {
    let (folder, path) = place();
    std::fs::write(&path, "a file").unwrap();
    check_refused(
        &path.join("below/adjutant.db"),
        unusable,
        &["its folder cannot be made", "choose another place"],
    )
    .await;
    check_refused(&path.join("adjutant.db"), unusable, &["cannot be made"]).await;
    check_refused(folder.path(), unusable, &["cannot be opened"]).await;
    assert!(unusable(&Store::open("").await.map(drop).unwrap_err()));
    assert_eq!(std::fs::read(&path).unwrap(), b"a file");
}

#[cfg(unix)]
#[tokio::test]
async fn a_name_that_is_no_unicode_is_refused_before_a_file_is_created() {
    use std::os::unix::ffi::OsStrExt as _;

    let (folder, _) = place();
    let path = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff.db"));
    assert!(unusable(&Store::open(&path).await.map(drop).unwrap_err()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// As root, to whom permissions do not apply, the file opens; for other users the error says so.
#[cfg(unix)]
#[tokio::test]
async fn a_read_only_file_is_an_error_that_names_it() {
    use std::os::unix::fs::PermissionsExt;

    let (folder, path) = place();
    filled(&path).await;
    let read_only = |yes: bool| {
        let (file, dir) = if yes { (0o400, 0o500) } else { (0o600, 0o700) };
        std::fs::set_permissions(&path, PermissionsExt::from_mode(file)).unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(dir)).unwrap();
    };
    let before = std::fs::read(&path).unwrap();
    read_only(true);
    let bound = std::fs::File::create(folder.path().join("probe")).is_err();
    let refused = async {
        let description = TaskDescription::new("x").unwrap();
        Store::open(&path)
            .await?
            .apply(
                &UserId::local(),
                &TaskChange::Add {
                    description,
                    from_others: false,
                },
                None,
            )
            .await
            .map(drop)
    };
    let refused = refused.await;
    read_only(false);
    assert_eq!(refused.is_err(), bound, "{refused:?}");
    if let Err(error) = refused {
        let is_refused = matches!(error, StoreError::ReadOnly { .. });
        assert!(
            is_refused && error.to_string().contains(path.to_str().unwrap()),
            "{error:?}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_left_alone() {
    for content in [
        "# Key Facts\n".to_owned(),
        "not a database ".repeat(1000),
        "\0".repeat(8192),
    ] {
        let (_folder, path) = place();
        std::fs::write(&path, content).unwrap();
        check_refused(
            &path,
            unusable,
            &["not a database", "left as it is", "backup"],
        )
        .await;
    }
}

#[tokio::test]
async fn a_database_of_another_program_is_left_alone() {
    let (_folder, path) = place();
    execute(&path, "CREATE TABLE bookmarks (url TEXT)").await;
    check_refused(&path, unusable, &["another program", "left as it is"]).await;
}

#[tokio::test]
async fn a_file_that_is_no_database_is_an_error_and_stays_as_it_is() {
    let (_folder, path) = place();
    filled(&path).await;
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[0] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    check_refused(&path, unusable, &["not a database"]).await;
}

#[tokio::test]
async fn a_truncated_file_is_an_error_and_stays_as_it_is() {
    let (_folder, path) = place();
    filled(&path).await;
    let bytes = std::fs::read(&path).unwrap();
    for length in [
        bytes.len() - 4097,
        bytes.len() - 4096,
        bytes.len() / 2,
        4096,
        1000,
        100,
    ] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        check_refused(
            &path,
            |error| unusable(error) || unreadable(error),
            &["left as it is"],
        )
        .await;
    }
}

#[tokio::test]
async fn damage_inside_is_told_when_it_is_met() {
    let (_folder, path) = place();
    filled(&path).await;
    let mut bytes = std::fs::read(&path).unwrap();
    // The tasks are behind the schema.
    let tail = bytes.len() / 4 * 3;
    bytes[tail..].fill(0xa5);
    std::fs::write(&path, &bytes).unwrap();
    let store = Store::open(&path).await.unwrap();
    let error = store
        .list(&UserId::local(), TaskFilter::All)
        .await
        .unwrap_err();
    assert!(
        unreadable(&error) && error.to_string().contains("damaged and left as it is"),
        "{error:?}"
    );
    assert!(error.to_string().contains(path.to_str().unwrap()));
    store.close().await;
    assert!(std::fs::read(&path).unwrap() == bytes);
}

#[tokio::test]
async fn a_schema_of_a_newer_program_is_left_alone() {
    let (_folder, path) = place();
    filled(&path).await;
    execute(
        &path,
        "INSERT INTO adjutant_migration (version, description, checksum) VALUES (99, 'from the future', x'00')",
    )
    .await;
    check_refused(
        &path,
        unreadable,
        &["schema version 99", "knows up to", "use the newer program"],
    )
    .await;
}

#[tokio::test]
async fn each_missing_table_is_named_when_the_database_is_opened() {
    let (folder, path) = place();
    filled(&path).await;
    let mut connection = connect(&path).await;
    // Without those that the full-text search has for itself.
    let tables = sqlx::query_scalar(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')
         AND name LIKE 'adjutant!_%' ESCAPE '!' AND name <> 'adjutant_migration'",
    );
    let tables: Vec<String> = tables.fetch_all(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    assert!(tables.len() > 20, "{tables:?}");
    for table in tables {
        let damaged = folder.path().join(format!("without {table}"));
        std::fs::copy(&path, &damaged).unwrap();
        execute(&damaged, &format!("DROP TABLE {table}")).await;
        let words = format!("the table {table} is missing");
        check_refused(&damaged, unreadable, &[&words, "backup"]).await;
    }
}

#[tokio::test]
async fn a_gap_in_the_table_of_migrations_is_named_when_the_database_is_opened() {
    for (struck, words) in [
        (
            "DELETE FROM adjutant_migration WHERE version = 9",
            "version 9 of its schema is not recorded",
        ),
        (
            "DELETE FROM adjutant_migration WHERE version = 12",
            "version 12 of its schema is not recorded",
        ),
        (
            "DELETE FROM adjutant_migration WHERE version = (SELECT max(version) FROM adjutant_migration)",
            "is there and not recorded",
        ),
        (
            "DELETE FROM adjutant_migration",
            "no version of its schema is recorded",
        ),
        ("DROP TABLE adjutant_migration", "is there and not recorded"),
    ] {
        let (_folder, path) = place();
        filled(&path).await;
        execute(&path, struck).await;
        check_refused(&path, unreadable, &[words, "table of migrations", "backup"]).await;
    }
}

#[tokio::test]
async fn a_file_that_vanishes_is_made_again_only_on_the_next_start() {
    let (_folder, path) = place();
    Store::open(&path).await.unwrap().close().await;
    std::fs::remove_file(&path).unwrap();
    let store = Store::open(&path).await.unwrap();
    assert_eq!(
        store.unsettled(&AgentName::adjutant(), None).await.unwrap(),
        []
    );
}
