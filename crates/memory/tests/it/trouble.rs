//! Errors: clear messages, their causes, and nothing lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use adjutant_core::port::{MemoryLedger, StoreError};
use adjutant_core::{BoxFuture, IdempotencyKey, MemoryChange, MemoryScope, UserId};
use adjutant_memory::{
    Cause, InMemoryLedger, Memory, MemoryError, MemoryOptions, NOTE_BYTES_MAX, RecallLimits, Vault,
    VaultError,
};

use crate::harness::{Home, files, tokens};

type Hook = Box<dyn Fn(usize) + Send + Sync>;

/// A history that does something whenever a change is put: it stands between reading the file and
/// writing it.
struct Between {
    inner: InMemoryLedger,
    puts: AtomicUsize,
    fails: AtomicBool,
    hook: Hook,
}

impl MemoryLedger for Between {
    fn put<'a>(
        &'a self,
        scope: &'a MemoryScope,
        change: &'a MemoryChange,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        (self.hook)(self.puts.fetch_add(1, Ordering::SeqCst));
        if self.fails.load(Ordering::SeqCst) {
            return Box::pin(std::future::ready(Err(StoreError::unavailable(
                "db.internal:5432".to_owned(),
            ))));
        }
        self.inner.put(scope, change)
    }

    fn by_key<'a>(
        &'a self,
        scope: &'a MemoryScope,
        key: &'a IdempotencyKey,
    ) -> BoxFuture<'a, Result<Option<MemoryChange>, StoreError>> {
        self.inner.by_key(scope, key)
    }

    fn about<'a>(
        &'a self,
        scope: &'a MemoryScope,
        text: &'a str,
    ) -> BoxFuture<'a, Result<Vec<MemoryChange>, StoreError>> {
        self.inner.about(scope, text)
    }

    fn newest<'a>(
        &'a self,
        scope: &'a MemoryScope,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<MemoryChange>, StoreError>> {
        self.inner.newest(scope, limit)
    }
}

fn with_hook(home: &Home, hook: Hook) -> (Memory, Arc<Between>) {
    let ledger = Arc::new(Between {
        inner: InMemoryLedger::new(),
        puts: AtomicUsize::new(0),
        fails: AtomicBool::new(false),
        hook,
    });
    let vault = Vault::open(home.vault())
        .unwrap()
        .with_work_folder(home.folder.path().join("work"));
    let time = home.time.clone();
    let clock = Arc::new(move || time.lock().unwrap().clone());
    let memory = Memory::new(
        vault,
        UserId::local(),
        MemoryOptions::default(),
        ledger.clone(),
        clock,
    )
    .unwrap();
    (memory, ledger)
}

fn failure<T: std::fmt::Debug>(result: Result<T, MemoryError>) -> String {
    result.unwrap_err().to_string()
}

#[tokio::test]
async fn a_vault_that_cannot_be_opened_says_why() {
    let home = Home::new();
    home.write("file.md", "x");
    let at = |name: &str| home.vault().join(name);
    assert!(matches!(
        Vault::open(at("gone")),
        Err(VaultError::Missing { .. })
    ));
    assert!(matches!(
        Vault::open(at("file.md")),
        Err(VaultError::NotAFolder { .. })
    ));
    assert!(matches!(
        Vault::open(at("file.md/below")),
        Err(VaultError::NotAFolder { .. })
    ));
    assert!(Vault::open(home.vault()).unwrap().name() == "vault");
}

#[tokio::test]
async fn a_change_by_an_editor_between_reading_and_writing_is_kept() {
    let home = Home::new();
    home.remember("Josh has a cat").await;
    let file = home.vault().join("memory/facts.md");
    let (memory, _) = with_hook(
        &home,
        Box::new(move |put| {
            if put < 3 {
                let text = std::fs::read_to_string(&file).unwrap();
                std::fs::write(&file, format!("{text}- [2025-12-10] by hand {put}\n")).unwrap();
            }
        }),
    );
    memory
        .facts()
        .add("The office is in Oslo", false, &Cause::person())
        .await
        .unwrap();
    assert_eq!(
        home.contents().await,
        [
            "Josh has a cat",
            "by hand 0",
            "by hand 1",
            "by hand 2",
            "The office is in Oslo"
        ]
    );
    assert_eq!(
        memory.undo().await.unwrap().message,
        "Undone: “The office is in Oslo” is forgotten.",
        "one change, however often it was tried"
    );
    assert!(memory.undo().await.is_err());
}

#[tokio::test]
async fn a_file_that_never_rests_is_left_alone() {
    let home = Home::new();
    home.write("memory/facts.md", "# Key Facts\n\n## Recent\n\n- a\n");
    let file = home.vault().join("memory/facts.md");
    let (memory, _) = with_hook(
        &home,
        Box::new(move |put| {
            let text = std::fs::read_to_string(&file).unwrap();
            std::fs::write(&file, format!("{text}- hand {put}\n")).unwrap();
        }),
    );
    let error = memory
        .facts()
        .add("b", false, &Cause::person())
        .await
        .unwrap_err();
    assert!(
        matches!(error, MemoryError::Vault(VaultError::Busy { .. })),
        "{error}"
    );
    assert!(!home.facts().contains("] b\n"));
}

#[tokio::test]
async fn a_note_that_another_program_creates_meanwhile_is_not_overwritten() {
    let home = Home::new();
    let file = home.vault().join("New.md");
    let (memory, _) = with_hook(
        &home,
        Box::new(move |put| {
            if put == 0 {
                std::fs::write(&file, "theirs\n").unwrap();
            }
        }),
    );
    let error = memory
        .notes()
        .unwrap()
        .write("New", "ours", false, &Cause::person())
        .await
        .unwrap_err();
    assert!(
        matches!(error, MemoryError::Vault(VaultError::Exists { .. })),
        "{error}"
    );
    assert_eq!(home.read("New.md"), "theirs\n");
}

#[tokio::test]
async fn a_history_that_does_not_answer_changes_nothing_and_names_no_host() {
    let home = Home::new();
    home.remember("Josh has a cat").await;
    let before = home.facts();
    let (memory, ledger) = with_hook(&home, Box::new(|_| {}));
    ledger.fails.store(true, Ordering::SeqCst);
    let words = failure(memory.facts().add("x", false, &Cause::person()).await);
    assert_eq!(
        words,
        "the history of the memory cannot be used at the moment; nothing was changed"
    );
    let recalled = memory
        .recall_for_message("cat?", &[], RecallLimits::default(), &tokens)
        .await
        .unwrap();
    assert!(recalled[0].text.contains("cat"), "reading needs no history");
    assert_eq!(home.facts(), before);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_refused_and_kept() {
    let home = Home::new();
    let bytes = b"# Key Facts\n\n## Recent\n\n- caf\xe9\n";
    home.write("memory/facts.md", bytes);
    home.write("2025-12-10.md", b"\xff\xfe#\0");
    let before = files(&home.vault());
    assert_eq!(
        failure(home.memory.facts().add("x", false, &Cause::person()).await),
        "\"memory/facts.md\" is not UTF-8 text (byte 29); it was left as it is"
    );
    assert!(home.memory.facts().list().await.is_err());
    assert!(
        failure(
            home.memory
                .notes()
                .unwrap()
                .write_daily("x", None, &Cause::person())
                .await
        )
        .contains("is not UTF-8")
    );
    assert!(
        home.memory
            .notes()
            .unwrap()
            .search(
                "caf",
                &adjutant_memory::NoteFilter {
                    limit: 5,
                    ..Default::default()
                }
            )
            .await
            .unwrap()
            .total
            > 0
    );
    assert_eq!(files(&home.vault()), before);
}

#[tokio::test]
async fn a_file_that_is_too_large_is_left_alone() {
    let home = Home::new();
    let size = usize::try_from(NOTE_BYTES_MAX).unwrap();
    home.write("memory/facts.md", vec![b'a'; size + 1]);
    let error = home
        .memory
        .facts()
        .add("x", false, &Cause::person())
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains(&format!("has {} bytes; at most {NOTE_BYTES_MAX}", size + 1)),
        "{error}"
    );
    // One that would become too large is not written.
    home.write("Big.md", vec![b'a'; size - 2]);
    let error = home
        .memory
        .notes()
        .unwrap()
        .write("Big", "more words", true, &Cause::person())
        .await
        .unwrap_err();
    assert!(
        matches!(error, MemoryError::Vault(VaultError::TooLarge { .. })),
        "{error}"
    );
    assert_eq!(home.read("Big.md").len(), size - 2);
}

#[cfg(unix)]
#[tokio::test]
async fn facts_are_for_their_owner_alone_and_nobody_else_may_write_a_note() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    home.remember("Josh has a cat").await;
    let notes = home.memory.notes().unwrap();
    notes
        .write(
            "Garden/Roses",
            "Cut them in March.",
            false,
            &Cause::person(),
        )
        .await
        .unwrap();
    let mode = |name: &str| {
        let about = std::fs::metadata(home.vault().join(name)).unwrap();
        about.permissions().mode() & 0o777
    };
    assert_eq!(mode("memory/facts.md"), 0o600);
    for name in ["memory", "Garden", "Garden/Roses.md"] {
        assert_eq!(mode(name) & 0o022, 0, "{name}: {:o}", mode(name));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn modes_are_kept_and_a_read_only_file_is_not_replaced() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    home.remember("Josh has a cat").await;
    let path = home.vault().join("memory/facts.md");
    let mode =
        |mode: u32| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o640);
    home.remember("The office is in Oslo").await;
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o640
    );
    mode(0o444);
    let before = home.facts();
    assert_eq!(
        failure(
            home.memory
                .facts()
                .add("x y z", false, &Cause::person())
                .await
        ),
        "\"memory/facts.md\" is read-only; nothing was changed"
    );
    assert_eq!(
        failure(home.memory.undo().await),
        "\"memory/facts.md\" is read-only; nothing was changed"
    );
    assert_eq!(home.facts(), before);
    mode(0o644);
    assert_eq!(
        home.memory.undo().await.unwrap().message,
        "Undone: “The office is in Oslo” is forgotten.",
        "a failed undo can be made again"
    );
}

#[tokio::test]
async fn a_vault_that_goes_away_says_so_and_comes_back() {
    let home = Home::new();
    home.remember("Josh has a cat").await;
    let away = home.folder.path().join("away");
    std::fs::rename(home.vault(), &away).unwrap();
    for error in [
        failure(home.memory.facts().add("x", false, &Cause::person()).await),
        failure(home.memory.facts().list().await),
        failure(
            home.memory
                .notes()
                .unwrap()
                .write_daily("x", None, &Cause::person())
                .await,
        ),
        failure(home.memory.notes().unwrap().read("x", None).await),
        failure(
            home.memory
                .notes()
                .unwrap()
                .search("x", &adjutant_memory::NoteFilter::default())
                .await,
        ),
        failure(home.memory.undo().await),
    ] {
        assert!(
            error.starts_with("the vault ") && error.contains("is not there"),
            "{error}"
        );
    }
    assert!(!home.vault().exists(), "it is not made anew");
    std::fs::rename(&away, home.vault()).unwrap();
    assert_eq!(home.contents().await, ["Josh has a cat"]);
}

#[tokio::test]
async fn without_a_work_folder_files_are_prepared_under_a_hidden_name() {
    let home = Home::new();
    let vault = Vault::open(home.vault()).unwrap();
    let time = home.time.clone();
    let clock = Arc::new(move || time.lock().unwrap().clone());
    let memory = Memory::new(
        vault,
        UserId::local(),
        MemoryOptions::default(),
        Arc::new(InMemoryLedger::new()),
        clock,
    )
    .unwrap();
    // What a killed process left is cleared away; what is not ours stays.
    home.write("memory/.adjutant-0123.tmp", "half");
    home.write("memory/.other.tmp", "theirs");
    memory
        .facts()
        .add("Josh has a cat", false, &Cause::person())
        .await
        .unwrap();
    memory
        .facts()
        .add("The office is in Oslo", false, &Cause::person())
        .await
        .unwrap();
    let names: Vec<_> = files(&home.vault()).into_keys().collect();
    assert_eq!(
        names,
        [
            std::path::Path::new("memory/.other.tmp"),
            std::path::Path::new("memory/facts.md")
        ]
    );
    assert_eq!(home.contents().await.len(), 2);
}

#[tokio::test]
async fn a_work_folder_that_cannot_be_used_is_no_obstacle() {
    let home = Home::new();
    std::fs::write(home.folder.path().join("occupied"), "a file").unwrap();
    let vault = Vault::open(home.vault())
        .unwrap()
        .with_work_folder(home.folder.path().join("occupied/work"));
    let time = home.time.clone();
    let clock = Arc::new(move || time.lock().unwrap().clone());
    let memory = Memory::new(
        vault,
        UserId::local(),
        MemoryOptions::default(),
        Arc::new(InMemoryLedger::new()),
        clock,
    )
    .unwrap();
    memory
        .facts()
        .add("Josh has a cat", false, &Cause::person())
        .await
        .unwrap();
    assert_eq!(home.contents().await, ["Josh has a cat"]);
}

#[tokio::test]
async fn an_unclosed_block_in_the_facts_file_is_refused() {
    let home = Home::new();
    for text in [
        "# Notes\n\n```\nnever closed\n",
        "# Key Facts\n\n%% open\n\n## Recent\n\n- a\n",
        "text\n\n%% open\n",
    ] {
        home.write("memory/facts.md", text);
        let error = home
            .memory
            .facts()
            .add("words", false, &Cause::person())
            .await
            .unwrap_err();
        assert!(
            matches!(error, MemoryError::Vault(VaultError::Shape { .. })),
            "{text:?}: {error}"
        );
        assert_eq!(home.facts(), text);
    }
}
