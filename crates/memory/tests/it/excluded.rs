//! Notes that their owner keeps from the assistant, and notes that are asked for by their name.

use std::sync::Arc;

use adjutant_core::UserId;
use adjutant_memory::{Cause, Memory, MemoryError, MemoryOptions, NoteFilter, Vault, VaultError};

use crate::harness::Home;

/// A vault in which notes are kept out in each way, and a memory that knows these patterns.
fn with_excluded(patterns: &[&str]) -> (Home, Memory) {
    let home = Home::new();
    home.write("Open.md", "A word about roses.\n- [ ] cut the roses\n");
    home.write(
        "Diary/Monday.md",
        "A word about roses, secretly.\n- [ ] cry\n",
    );
    home.write(
        "Archive/Old.md",
        "---\naliases: [Ancient]\n---\nroses\n- [ ] old\n",
    );
    home.write(
        "Private.md",
        "---\nadjutant: false\naliases: [Hidden]\n---\nroses #secret\n- [ ] hide\n",
    );
    home.write(
        ".obsidian/app.json",
        r#"{"userIgnoreFilters": ["Archive/"], "alwaysUpdateLinks": true}"#,
    );
    let memory = opened(&home, patterns);
    (home, memory)
}

fn opened(home: &Home, patterns: &[&str]) -> Memory {
    let patterns = patterns
        .iter()
        .map(|pattern| (*pattern).to_owned())
        .collect();
    let vault = Vault::open(home.vault()).unwrap().with_excluded(patterns);
    let time = home.time.clone();
    let clock = Arc::new(move || time.lock().unwrap().clone());
    Memory::new(
        vault,
        UserId::local(),
        MemoryOptions::default(),
        home.ledger.clone(),
        clock,
    )
    .unwrap()
}

fn all() -> NoteFilter {
    NoteFilter {
        limit: 20,
        ..NoteFilter::default()
    }
}

fn is_excluded<T: std::fmt::Debug>(result: Result<T, MemoryError>) -> bool {
    matches!(
        result.unwrap_err(),
        MemoryError::Vault(VaultError::Excluded { .. })
    )
}

#[tokio::test]
async fn excluded_notes_are_neither_found_nor_listed_nor_read_and_are_counted() {
    let (_home, memory) = with_excluded(&["Diary"]);
    let notes = memory.notes().unwrap();
    let found = notes.search("roses", &all()).await.unwrap();
    let paths: Vec<&str> = found.notes.iter().map(|hit| hit.path.as_str()).collect();
    assert_eq!(
        (paths, found.total, found.excluded),
        (vec!["Open.md"], 1, 3)
    );
    assert!(
        serde_json::to_string(&found)
            .unwrap()
            .contains("\"notes_excluded\":3")
    );
    let listed = notes.list(&all()).await.unwrap();
    assert_eq!((listed.total, listed.excluded), (1, 3));
    let tagged = NoteFilter {
        tag: Some("secret".to_owned()),
        ..all()
    };
    assert_eq!(notes.list(&tagged).await.unwrap().total, 0);
    for name in [
        "Diary/Monday",
        "[[Archive/Old]]",
        "archive/OLD.md",
        "Private",
        "private.md",
    ] {
        let read = notes.read(name, None).await;
        assert!(
            matches!(
                read,
                Err(MemoryError::Vault(
                    VaultError::Excluded { .. } | VaultError::NoSuchNote { .. }
                ))
            ),
            "{name}: {read:?}"
        );
    }
    for name in ["Diary/Monday", "Archive/Old", "Private"] {
        assert!(is_excluded(notes.read(name, None).await), "{name}");
        assert!(
            is_excluded(notes.write(name, "more", true, &Cause::person()).await),
            "{name}"
        );
    }
    // Other names of such notes lead nowhere, and are not offered.
    for name in ["Monday", "Ancient", "Hidden", "Mondai"] {
        let VaultError::NoSuchNote { nearest, .. } =
            memory.vault().unwrap().resolve(name).unwrap_err()
        else {
            panic!("{name} is there");
        };
        assert_eq!(nearest, [] as [&str; 0], "{name}");
    }
    assert!(is_excluded(
        notes.write("Diary/New", "x", false, &Cause::person()).await
    ));
    let tasks = memory.tasks().unwrap().list().await.unwrap().tasks;
    let words: Vec<&str> = tasks.iter().map(|task| task.words.as_str()).collect();
    assert_eq!(words, ["cut the roses"]);
}

#[tokio::test]
async fn names_and_paths_of_files_are_kept_out_as_well() {
    let (home, memory) = with_excluded(&["Diary"]);
    let vault = memory.vault().unwrap();
    assert_eq!(vault.note_names("", 10), ["Open"]);
    assert_eq!(vault.excluded_notes().unwrap(), 3);
    for path in ["Diary/Monday.md", "Archive/Old.md", "Private.md"] {
        assert!(vault.excludes_file(&home.vault().join(path)), "{path}");
    }
    assert!(!vault.excludes_file(&home.vault().join("Open.md")));
    assert!(!vault.excludes_file(home.folder.path()));
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_with_another_name_leads_to_no_excluded_note() {
    let (home, memory) = with_excluded(&["Diary"]);
    std::os::unix::fs::symlink(
        home.vault().join("Diary/Monday.md"),
        home.vault().join("Harmless.md"),
    )
    .unwrap();
    let notes = memory.notes().unwrap();
    assert!(is_excluded(notes.read("Harmless", None).await));
}

#[tokio::test]
async fn a_pattern_that_cannot_be_read_shows_nothing() {
    let (home, memory) = with_excluded(&[]);
    home.write(".obsidian/app.json", r#"{"userIgnoreFilters": ["/(/"]}"#);
    let notes = memory.notes().unwrap();
    let error = notes.search("roses", &all()).await.unwrap_err();
    assert!(error.to_string().contains("/(/"), "{error}");
    home.write(".obsidian/app.json", "{");
    let error = notes.read("Open", None).await.unwrap_err();
    assert!(error.to_string().contains("app.json"), "{error}");
    // The daily note is still written: nothing of it is shown.
    notes
        .write_daily("words", None, &Cause::person())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_note_that_is_asked_for_by_its_name_or_alias_comes_first() {
    let home = Home::new();
    home.write("Meeting.md", "Nothing else.\n");
    home.write(
        "Boss.md",
        "---\naliases: [Quarterly review]\n---\nOn Monday.\n",
    );
    home.write(
        "Other.md",
        "A meeting, [[Meeting]], meeting. The quarterly review, a review each quarter.\n".repeat(5),
    );
    let notes = home.memory.notes().unwrap();
    for (query, first) in [
        ("Meeting", "Meeting.md"),
        ("meeting", "Meeting.md"),
        ("\"meeting\"", "Other.md"),
        ("quarterly review", "Boss.md"),
    ] {
        let found = notes.search(query, &all()).await.unwrap();
        assert_eq!(found.notes[0].path, first, "{query}");
    }
}

#[tokio::test]
async fn a_word_of_one_character_is_found_in_notes_and_facts() {
    let home = Home::new();
    home.write("Cats.md", "猫が好き\n");
    home.remember("黒猫がいる").await;
    let found = home
        .memory
        .notes()
        .unwrap()
        .search("猫", &all())
        .await
        .unwrap();
    assert_eq!(found.notes[0].path, "Cats.md");
    assert_eq!(found.notes[0].lines, [(1, "猫が好き".to_owned())]);
    assert!(home.recalled("猫").await[0].contains("黒猫がいる"));
}
