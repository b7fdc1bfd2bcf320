//! Notes: written, added to, read, found.

use std::path::Path;

use adjutant_memory::{
    Cause, MemoryError, NoteFilter, System, UserFolders, VaultError, find_vaults,
};

use crate::harness::{Home, context};

fn all() -> NoteFilter {
    NoteFilter {
        limit: 20,
        ..NoteFilter::default()
    }
}

async fn found(home: &Home, query: &str) -> Vec<String> {
    let found = home
        .memory
        .notes()
        .unwrap()
        .search(query, &all())
        .await
        .unwrap();
    found.notes.into_iter().map(|hit| hit.path).collect()
}

#[tokio::test]
async fn a_note_is_written_once_and_then_only_added_to() {
    let home = Home::new();
    let notes = home.memory.notes().unwrap();
    let written = notes
        .write(
            "Projects/Boat: plans?",
            "# Plan\r\n\nBuy wood",
            false,
            &Cause::person(),
        )
        .await
        .unwrap();
    assert_eq!(
        written.message(),
        "✎ wrote the note Projects/Boat plans.md  (undo: /undo)"
    );
    assert_eq!(home.read("Projects/Boat plans.md"), "# Plan\n\nBuy wood\n");
    let error = notes
        .write("Projects/Boat plans", "other", false, &Cause::person())
        .await
        .unwrap_err();
    assert!(
        matches!(error, MemoryError::Vault(VaultError::Exists { .. })),
        "{error}"
    );
    let error = notes
        .write("projects/BOAT PLANS", "other", false, &Cause::person())
        .await
        .unwrap_err();
    assert!(
        matches!(error, MemoryError::Vault(VaultError::Exists { .. })),
        "capitals make no other note: {error}"
    );
    notes
        .write("boat plans", "And nails", true, &Cause::person())
        .await
        .unwrap();
    assert_eq!(
        home.read("Projects/Boat plans.md"),
        "# Plan\n\nBuy wood\n\nAnd nails\n"
    );
    home.memory.undo().await.unwrap();
    assert_eq!(home.read("Projects/Boat plans.md"), "# Plan\n\nBuy wood\n");
    assert_eq!(
        home.memory.undo().await.unwrap().message,
        "Removed the note Projects/Boat plans.md."
    );
    assert!(!home.vault().join("Projects/Boat plans.md").exists());
}

#[tokio::test]
async fn undo_does_not_remove_a_note_the_person_went_on_with() {
    let home = Home::new();
    home.memory
        .notes()
        .unwrap()
        .write("Idea", "words", false, &Cause::person())
        .await
        .unwrap();
    home.write("Idea.md", "words\nand mine\n");
    let error = home.memory.undo().await.unwrap_err();
    assert!(
        matches!(&error, MemoryError::ChangedSince { what } if what == "Idea.md"),
        "{error:?}"
    );
    assert_eq!(home.read("Idea.md"), "words\nand mine\n");
}

#[tokio::test]
async fn a_repeated_call_writes_once() {
    let home = Home::new();
    home.write("Log.md", "old\r\n");
    let cause = Cause::call(&context("local", 3));
    let first = home
        .memory
        .notes()
        .unwrap()
        .write("Log", "one\ntwo", true, &cause)
        .await
        .unwrap();
    let again = home
        .memory
        .notes()
        .unwrap()
        .write("Log", "one\ntwo", true, &cause)
        .await
        .unwrap();
    assert_eq!(first, again);
    assert_eq!(home.read("Log.md"), "old\r\n\r\none\r\ntwo\r\n");
}

#[tokio::test]
async fn the_facts_are_not_a_note_to_write_into() {
    let home = Home::new();
    home.remember("Josh has a cat").await;
    let before = home.facts();
    for name in ["memory/facts", "facts", "Memory/FACTS.md", "[[facts]]"] {
        let error = home
            .memory
            .notes()
            .unwrap()
            .write(name, "- x", true, &Cause::person())
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("use remember"),
            "{name}: {error}"
        );
    }
    assert_eq!(home.facts(), before);
}

#[tokio::test]
async fn a_note_is_found_by_its_names() {
    let home = Home::new();
    home.write(
        "A/Garden.md",
        "---\naliases: [Yard, \"Back yard\"]\n---\n# Garden\n\n## Trees\n\napple\n\n## Bed\n\nrose\n",
    );
    home.write("B/Garden.md", "other");
    home.write("Café.md", "composed");
    home.write("Zu\u{308}rich.md", "decomposed on the disk");
    let notes = home.memory.notes().unwrap();
    for (name, path) in [
        ("A/Garden", "A/Garden.md"),
        ("a/garden.md", "A/Garden.md"),
        ("Back Yard", "A/Garden.md"),
        ("[[yard|the yard]]", "A/Garden.md"),
        ("![[A/Garden#Trees]]", "A/Garden.md"),
        ("Cafe\u{301}", "Café.md"),
        ("CAFÉ", "Café.md"),
        ("Zürich", "Zürich.md"),
    ] {
        assert_eq!(notes.read(name, None).await.unwrap().path, path, "{name}");
    }
    let part = notes.read("[[A/Garden#Trees]]", None).await.unwrap();
    assert_eq!(
        (part.text.as_str(), part.first_line, part.lines),
        ("## Trees\n\napple\n", 6, 12)
    );
    let error = notes.read("Garden", None).await.unwrap_err();
    assert!(
        matches!(&error, MemoryError::Vault(VaultError::Ambiguous { candidates, .. }) if candidates.len() == 2),
        "{error}"
    );
    let error = notes.read("Gardn", None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no note \"Gardn\"; did you mean \"A/Garden.md\"?"
    );
    assert!(notes.read("[[A/Garden#Roof]]", None).await.is_err());
}

#[tokio::test]
async fn a_long_note_is_cut_where_it_says() {
    let home = Home::new();
    let line = format!("{}\n", "ü".repeat(999));
    home.write("Long.md", line.repeat(30));
    let first = home
        .memory
        .notes()
        .unwrap()
        .read("Long", None)
        .await
        .unwrap();
    assert_eq!(
        (first.last_line, first.lines, first.text.chars().count()),
        (20, 30, 20_000)
    );
    assert_eq!(
        first.cut.unwrap(),
        "10 more lines follow; read on with from_line 21"
    );
    let rest = home
        .memory
        .notes()
        .unwrap()
        .read("Long", Some(21))
        .await
        .unwrap();
    assert_eq!((rest.first_line, rest.last_line, rest.cut), (21, 30, None));
    home.write("Line.md", "x".repeat(50_000));
    let one = home
        .memory
        .notes()
        .unwrap()
        .read("Line", None)
        .await
        .unwrap();
    assert_eq!(one.text.len(), 20_000);
    assert!(
        one.cut
            .unwrap()
            .starts_with("line 1 is cut at 20000 characters")
    );
}

#[tokio::test]
async fn search_ranks_words_puts_names_first_and_wants_what_is_quoted() {
    let home = Home::new();
    home.write("Boat.md", "wood #project/boat");
    home.write(
        "Shop.md",
        "buy wood for the BOAT, boat varnish and more\nline\nboat again",
    );
    home.write(
        "Other.md",
        "---\naliases: [Boat]\n---\nwood, links to [[Boat|it]] and `#project`",
    );
    home.write(".trash/Boat gone.md", "boat wood");
    home.write("image.png", "boat wood");
    assert_eq!(
        found(&home, "boat wood").await,
        ["Boat.md", "Other.md", "Shop.md"]
    );
    assert_eq!(found(&home, "\"boat varnish\"").await, ["Shop.md"]);
    assert_eq!(found(&home, "#project").await, ["Boat.md"]);
    assert_eq!(found(&home, "[[Boat]]").await, ["Other.md"]);
    assert_eq!(
        found(&home, "Which boats were varnished?").await[0],
        "Shop.md"
    );
    assert_eq!(found(&home, "zebra \"boat\"").await.len(), 3);
    assert_eq!(found(&home, "boat \"zebra\"").await, Vec::<String>::new());
    let hits = home
        .memory
        .notes()
        .unwrap()
        .search("boat", &all())
        .await
        .unwrap();
    let shop = hits.notes.iter().find(|hit| hit.path == "Shop.md").unwrap();
    assert_eq!(
        shop.lines,
        [
            (1, "buy wood for the BOAT, boat varnish and more".to_owned()),
            (3, "boat again".to_owned())
        ]
    );
    assert!(
        home.memory
            .notes()
            .unwrap()
            .search(" \"\" ", &all())
            .await
            .is_err()
    );
}

#[tokio::test]
async fn search_reads_what_was_written_a_moment_ago_by_hand() {
    let home = Home::new();
    home.write("A.md", "nothing");
    assert!(found(&home, "zebra").await.is_empty());
    home.write("A.md", "a zebra");
    assert_eq!(found(&home, "zebra").await, ["A.md"]);
}

#[tokio::test]
async fn long_lines_are_shown_around_the_word() {
    let home = Home::new();
    home.write(
        "A.md",
        format!("{} zebra {}", "a ".repeat(500), "b ".repeat(500)),
    );
    let hits = home
        .memory
        .notes()
        .unwrap()
        .search("zebra", &all())
        .await
        .unwrap();
    let (_, line) = &hits.notes[0].lines[0];
    assert!(
        line.starts_with('…')
            && line.ends_with('…')
            && line.contains("zebra")
            && line.chars().count() <= 202,
        "{line}"
    );
}

#[tokio::test]
async fn lists_keep_to_folder_tag_and_limit_and_say_what_is_left_out() {
    let home = Home::new();
    for number in 0..30 {
        home.write(
            &format!("Many/{number:02}.md"),
            if number % 2 == 0 {
                "#even/more"
            } else {
                "#odd"
            },
        );
    }
    home.write("Top.md", "x");
    let notes = home.memory.notes().unwrap();
    let listed = notes.list(&all()).await.unwrap();
    assert_eq!((listed.notes.len(), listed.total), (20, 31));
    assert_eq!(
        listed.cut.unwrap(),
        "20 of 31 notes are shown; narrow it by folder, tag or words"
    );
    let filter = NoteFilter {
        folder: "Many/".to_owned(),
        tag: Some("#Even".to_owned()),
        limit: 100,
        ..NoteFilter::default()
    };
    let listed = notes.list(&filter).await.unwrap();
    assert_eq!(
        (listed.total, listed.cut, listed.notes[0].path.as_str()),
        (15, None, "Many/00.md")
    );
    for folder in ["Gone", "../x", "/etc", ".obsidian", "Top.md"] {
        let filter = NoteFilter {
            folder: folder.to_owned(),
            ..all()
        };
        assert!(notes.list(&filter).await.is_err(), "{folder}");
    }
}

#[test]
fn vaults_are_found_below_a_home() {
    let home = tempfile::tempdir().unwrap();
    let made = |path: &str| std::fs::create_dir_all(home.path().join(path)).unwrap();
    for path in [
        "Notes/.obsidian",
        "Notes/Inner/.obsidian",
        "a/b/c/Deep/.obsidian",
        "a/b/c/d/TooDeep/.obsidian",
        "node_modules/x/.obsidian",
        ".hidden/v/.obsidian",
    ] {
        made(path);
    }
    assert_eq!(
        vaults(home.path(), System::Linux, None),
        ["Notes", "a/b/c/Deep"]
    );
    assert!(vaults(&home.path().join("gone"), System::Linux, None).is_empty());
}

/// The vaults that are found, relative to the home folder.
fn vaults(home: &Path, system: System, config: Option<&str>) -> Vec<String> {
    let config = config.map(|config| home.join(config));
    let found = find_vaults(&UserFolders {
        system,
        home: home.to_owned(),
        config,
    });
    found
        .iter()
        .map(|path| {
            path.strip_prefix(home)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        })
        .collect()
}

#[test]
fn obsidians_own_list_comes_first_on_every_system() {
    for (system, config, list) in [
        (System::Linux, None, ".config/obsidian/obsidian.json"),
        (System::Linux, Some("xdg"), "xdg/obsidian/obsidian.json"),
        (
            System::Linux,
            None,
            ".var/app/md.obsidian.Obsidian/config/obsidian/obsidian.json",
        ),
        (
            System::Linux,
            None,
            "snap/obsidian/current/.config/obsidian/obsidian.json",
        ),
        (
            System::MacOs,
            None,
            "Library/Application Support/obsidian/obsidian.json",
        ),
        (
            System::Windows,
            Some("Roaming"),
            "Roaming/obsidian/obsidian.json",
        ),
        (
            System::Windows,
            None,
            "AppData/Roaming/obsidian/obsidian.json",
        ),
    ] {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path);
        for folder in [
            "Near/.obsidian",
            "far/a/b/c/d/e/Old",
            "Library/Opened",
            ".hidden/New",
        ] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        let vault = |path: &str, opened: u64, open: bool| serde_json::json!({ "path": at(path), "ts": opened, "open": open });
        let known = serde_json::json!({ "vaults": {
            "1": vault("far/a/b/c/d/e/Old", 1_600_000_000_000, false),
            "2": vault("Gone", 1_900_000_000_000, false),
            "3": vault(".hidden/New", 1_700_000_000_000, false),
            "4": vault("Library/Opened", 1_500_000_000_000, true),
            "5": { "path": "relative", "ts": 1 },
            "6": { "ts": "odd" },
            "7": vault("Near", 1, false),
        }, "updateDisabled": true });
        let list = at(list);
        std::fs::create_dir_all(list.parent().unwrap()).unwrap();
        std::fs::write(&list, known.to_string()).unwrap();
        let expected = ["Library/Opened", ".hidden/New", "far/a/b/c/d/e/Old", "Near"];
        assert_eq!(
            vaults(home.path(), system, config),
            expected,
            "{}",
            list.display()
        );
        for damaged in ["", "{", "[]", "{\"vaults\":[]}", "{\"vaults\":{\"a\":7}}"] {
            std::fs::write(&list, damaged).unwrap();
            assert_eq!(vaults(home.path(), system, config), ["Near"], "{damaged}");
        }
    }
}

#[test]
fn vaults_of_icloud_are_found() {
    for (system, place) in [
        (
            System::MacOs,
            "Library/Mobile Documents/iCloud~md~obsidian/Documents",
        ),
        (System::Windows, "iCloudDrive/iCloud~md~obsidian"),
    ] {
        let home = tempfile::tempdir().unwrap();
        for folder in ["Phone/.obsidian", "No vault"] {
            std::fs::create_dir_all(home.path().join(place).join(folder)).unwrap();
        }
        std::fs::create_dir_all(home.path().join("Desk/.obsidian")).unwrap();
        assert_eq!(
            vaults(home.path(), system, None),
            [format!("{place}/Phone"), "Desk".to_owned()]
        );
    }
}

/// Sets when a note was changed last: so many days before now.
fn aged(home: &Home, path: &str, days: u64) {
    let file = std::fs::File::options()
        .write(true)
        .open(home.vault().join(path))
        .unwrap();
    let now = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_765_000_000);
    file.set_modified(now - std::time::Duration::from_secs(days * 86_400))
        .unwrap();
}

#[tokio::test]
async fn of_notes_that_fit_as_well_links_age_and_what_is_attached_decide() {
    let home = Home::new();
    let same = "The roof of the house needs new tiles before winter. [[Gone]]\n";
    for name in ["A", "B", "C", "D", "E"] {
        home.write(&format!("Work/{name}.md"), same);
        aged(&home, &format!("Work/{name}.md"), 400);
    }
    assert_eq!(found(&home, "roof tiles").await[0], "Work/A.md");
    aged(&home, "Work/B.md", 390);
    assert_eq!(
        found(&home, "roof tiles").await[..2],
        ["Work/B.md", "Work/A.md"]
    );
    // A note that says more of it links to one of them, by the end of its path and another
    // spelling.
    home.write(
        "Plan.md",
        "# Roof tiles\n\nThe roof: tiles, tiles, tiles. See [[work/c|there]] and [[Gone]].\n",
    );
    aged(&home, "Plan.md", 400);
    assert_eq!(
        found(&home, "roof tiles").await[..3],
        ["Plan.md", "Work/C.md", "Work/B.md"]
    );
    // And one that links to it.
    home.write("Work/D.md", same.replace("Gone", "Plan"));
    aged(&home, "Work/D.md", 400);
    let linked = found(&home, "roof tiles").await;
    assert_eq!(linked[0], "Plan.md");
    let mut next = linked[1..3].to_vec();
    next.sort();
    assert_eq!(next, ["Work/C.md", "Work/D.md"], "{linked:?}");
    let filter = NoteFilter {
        attached: vec!["Work/E.md".to_owned()],
        ..all()
    };
    let hits = home
        .memory
        .notes()
        .unwrap()
        .search("roof tiles", &filter)
        .await
        .unwrap()
        .notes;
    assert_eq!(
        [hits[0].path.as_str(), hits[1].path.as_str()],
        ["Plan.md", "Work/E.md"]
    );
    // None of that lifts a note that fits clearly less, or not at all.
    home.write(
        "Other.md",
        "A roof, among many other words about gardens, boats, trains and what else there is.\n",
    );
    home.write("None.md", "[[Plan]]\n");
    let filter = NoteFilter {
        attached: vec!["Other.md".to_owned(), "None.md".to_owned()],
        ..all()
    };
    let hits = home
        .memory
        .notes()
        .unwrap()
        .search("roof tiles", &filter)
        .await
        .unwrap()
        .notes;
    assert_eq!(hits.last().unwrap().path, "Other.md");
    assert!(hits.iter().all(|hit| hit.path != "None.md"));
}

#[tokio::test]
async fn notes_attached_in_a_conversation_rank_higher_there() {
    let home = Home::new();
    for name in ["A", "B", "C"] {
        home.write(&format!("{name}.md"), "The roof needs tiles.\n");
        aged(&home, &format!("{name}.md"), 400);
    }
    let here = context("local", 1);
    home.memory
        .attach(here.conversation, vec!["C.md".to_owned()]);
    let sources =
        |found: Vec<adjutant_memory::RecallHit>| found.into_iter().map(|found| found.source);
    let recalled = home
        .memory
        .recall("roof", None, Some(here.conversation))
        .await
        .unwrap();
    assert_eq!(sources(recalled).next().unwrap(), "C.md");
    let tool = adjutant_memory::reading_tools(&home.memory);
    let search = tool
        .iter()
        .find(|tool| tool.definition().name.as_str() == "search_notes")
        .unwrap();
    let arguments = serde_json::from_value(serde_json::json!({"query": "roof"})).unwrap();
    let answer = search.call(&here, arguments).await.unwrap();
    assert_eq!(answer["notes"][0]["path"], "C.md");
    home.memory.attach(here.conversation, Vec::new());
    let recalled = home
        .memory
        .recall("roof", None, Some(here.conversation))
        .await
        .unwrap();
    assert_eq!(sources(recalled).next().unwrap(), "A.md");
}

/// Of more notes than are looked at by passage the best come first, and all are counted.
#[tokio::test]
async fn many_notes_that_fit_are_ranked_as_a_whole_before_their_passages_are_read() {
    let home = Home::new();
    for number in 0..300 {
        home.write(
            &format!("Many/{number}.md"),
            format!("The boat and {number} other words.\n\n# More\n\nA boat.\n"),
        );
    }
    home.write("Best.md", "# The harbour\n\nThe boat is in the harbour.\n");
    let hits = home
        .memory
        .notes()
        .unwrap()
        .search("boat harbour", &all())
        .await
        .unwrap();
    assert_eq!((hits.total, hits.notes[0].path.as_str()), (301, "Best.md"));
    assert_eq!(hits.notes[0].heading.as_deref(), Some("The harbour"));
}
