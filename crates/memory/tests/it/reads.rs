//! The bytes of files that are read: none of those over the bound, and of the facts only what is new.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use adjutant_memory::{Cause, MemoryOptions, NoteFilter, VaultError};

use crate::harness::{Home, tokens};

/// Bytes of a file over the bound.
const LARGE: u64 = 3 * 1024 * 1024 * 1024;
/// Bytes that this process may read meanwhile: less than the bound of a single note.
const READ_MAX: u64 = 1024 * 1024;

fn large(home: &Home, path: &str) {
    let path = home.vault().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    File::create(path).unwrap().set_len(LARGE).unwrap();
}

/// Bytes that this process has read so far, from files and whatever else.
fn bytes_read() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap();
    io.lines()
        .find_map(|line| line.strip_prefix("rchar: "))
        .unwrap()
        .parse()
        .unwrap()
}

#[tokio::test]
async fn a_file_over_the_bound_is_not_read() {
    let home = Home::new();
    home.write("Small.md", "A boat.\n");
    for number in 0..8 {
        large(&home, &format!("Large {number}.md"));
    }
    for settings in [
        "daily-notes.json",
        "templates.json",
        "community-plugins.json",
    ] {
        large(&home, &format!(".obsidian/{settings}"));
    }
    for plugin in ["periodic-notes", "obsidian-tasks-plugin"] {
        large(&home, &format!(".obsidian/plugins/{plugin}/data.json"));
    }
    let before = bytes_read();
    let (memory, all) = (
        &home.memory,
        NoteFilter {
            limit: 20,
            ..NoteFilter::default()
        },
    );
    let found = memory.notes().unwrap().search("boat", &all).await.unwrap();
    assert_eq!((found.total, found.notes[0].path.as_str()), (1, "Small.md"));
    let tagged = NoteFilter {
        tag: Some("boat".to_owned()),
        ..all.clone()
    };
    assert_eq!(
        memory.notes().unwrap().list(&tagged).await.unwrap().total,
        0
    );
    assert_eq!(memory.notes().unwrap().list(&all).await.unwrap().total, 9);
    assert_eq!(memory.recall("boat", None, None).await.unwrap().len(), 1);
    assert!(
        memory
            .notes()
            .unwrap()
            .read("No such alias", None)
            .await
            .is_err()
    );
    let links = vec!["Large 1".to_owned(), "No such alias".to_owned()];
    let addresses = memory.notes().unwrap().addresses(links).await.unwrap();
    assert!(addresses[0].is_some() && addresses[1].is_none());
    let error = memory
        .notes()
        .unwrap()
        .read("Large 1", None)
        .await
        .unwrap_err();
    assert!(error.to_string().contains(&LARGE.to_string()), "{error}");
    assert!(
        memory
            .notes()
            .unwrap()
            .write("Large 1", "more", true, &Cause::person())
            .await
            .is_err()
    );
    memory
        .notes()
        .unwrap()
        .write_daily("slept well", None, &Cause::person())
        .await
        .unwrap();
    assert!(
        memory
            .tasks()
            .unwrap()
            .list()
            .await
            .unwrap()
            .tasks
            .is_empty()
    );

    // The facts, and a template.
    large(&home, "memory/facts.md");
    let recalled = memory
        .recall_for_message(
            "boat",
            &[],
            adjutant_memory::RecallLimits::default(),
            &tokens,
        )
        .await;
    let large_facts = |error: &adjutant_memory::MemoryError| {
        matches!(
            error,
            adjutant_memory::MemoryError::Vault(VaultError::TooLarge { bytes: LARGE, .. })
        )
    };
    assert!(large_facts(&recalled.unwrap_err()));
    assert!(large_facts(
        &memory
            .facts()
            .add("I have a boat", false, &Cause::person())
            .await
            .unwrap_err()
    ));
    home.write(
        ".obsidian/daily-notes.json",
        "{\"template\": \"Large 2\", \"folder\": \"days\"}",
    );
    let other = home.open(MemoryOptions::default()).unwrap();
    let written = other
        .notes()
        .unwrap()
        .write_daily("slept well", None, &Cause::person())
        .await
        .unwrap();
    assert!(
        written
            .notices
            .iter()
            .any(|notice| notice.contains("Large 2")),
        "{written:?}"
    );
    let read = bytes_read() - before;
    assert!(read < READ_MAX, "{read} bytes were read");
}

#[tokio::test]
async fn the_facts_are_read_again_only_where_the_file_is_another() {
    let home = Home::new();
    let lines: String = (0..1_000)
        .map(|number| format!("- [2025-11-01] Number {number} is a boat\n"))
        .collect();
    let text = format!("# Key Facts\n\n## Recent\n\n{lines}");
    // As if it had been written long ago, so that nothing is in doubt.
    let write = |text: &str| {
        home.write("memory/facts.md", text);
        let file = File::options()
            .write(true)
            .open(home.vault().join("memory/facts.md"))
            .unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_764_000_000))
            .unwrap();
    };
    write(&text);
    let before = bytes_read();
    for number in 0..10 {
        let recalled = home.recalled(&format!("number {number}")).await;
        assert!(
            recalled[0].contains(&format!("Number {number} is a boat")),
            "{recalled:?}"
        );
        home.instruction().await;
    }
    let read = bytes_read() - before;
    assert!(
        read < 2 * text.len() as u64,
        "{read} bytes of a file of {} were read",
        text.len()
    );
    // As many bytes, and the same time.
    write(&text.replace("boat", "goat"));
    assert!(home.recalled("number 7").await[0].contains("Number 7 is a goat"));
    home.remember("Number 7000 is a raft").await;
    assert!(home.recalled("number 7000").await[0].contains("raft"));
    fs::remove_file(home.vault().join("memory/facts.md")).unwrap();
    assert!(home.recalled("number 7").await.is_empty());
}
