//! Facts: the format of their file, edits, limits, provenance, undo.

use adjutant_core::port::MemoryLedger;
use adjutant_core::{MemoryChange, MemoryScope, MemoryState, UserId};
use adjutant_memory::{Cause, FactChange, MemoryError, MemoryOptions};
use jiff::ToSpan;

use crate::harness::{Home, context};

const FACTS_FILE: &str = "---
type: memory
created: 2025-12-10T10:00:00
modified: 2025-12-10T14:30:00
---

# Key Facts

## Important

- Josh prefers dark mode in all apps #important
- Josh's main project is DIANA #important

## Recent

- [2025-12-10] Josh mentioned working on CLI features
- [2025-12-10] Discussed Ollama integration approach
";

#[tokio::test]
async fn a_new_file_has_front_matter_and_two_sections() {
    let home = Home::new();
    assert_eq!(
        home.remember("Josh mentioned working on CLI features")
            .await,
        "✎ remembered: Josh mentioned working on CLI features  (undo: /undo)"
    );
    home.later(25.minutes());
    home.memory
        .facts()
        .add("Josh prefers dark mode in all apps", true, &Cause::person())
        .await
        .unwrap();
    assert_eq!(
        home.facts(),
        "---\ntype: memory\ncreated: 2025-12-10T14:05:00\nmodified: 2025-12-10T14:30:00\n---\n\n# Key Facts\n\n\
         ## Important\n\n- Josh prefers dark mode in all apps #important\n\n\
         ## Recent\n\n- [2025-12-10] Josh mentioned working on CLI features\n"
    );
}

#[tokio::test]
async fn an_existing_file_is_read_and_kept() {
    let home = Home::new();
    home.write("memory/facts.md", FACTS_FILE);
    let facts = home.memory.facts().list().await.unwrap();
    assert_eq!(facts.len(), 4);
    assert_eq!(facts[0].tags, ["#important"]);
    assert_eq!(facts[0].content, "Josh prefers dark mode in all apps");
    assert_eq!(facts[2].created.unwrap().to_string(), "2025-12-10");
    assert_eq!(home.facts(), FACTS_FILE, "reading writes nothing");
    home.remember("Josh has a cat").await;
    let expected = FACTS_FILE
        .replace(
            "modified: 2025-12-10T14:30:00",
            "modified: 2025-12-10T14:05:00",
        )
        .replace("approach\n", "approach\n- [2025-12-10] Josh has a cat\n");
    assert_eq!(home.facts(), expected);
}

#[tokio::test]
async fn the_path_of_the_facts_is_a_setting_and_stays_inside() {
    let path = |path: String| MemoryOptions {
        path,
        ..MemoryOptions::default()
    };
    let home = Home::with(path("About me.md".to_owned()));
    home.remember("Josh has a cat").await;
    assert!(home.read("About me.md").contains("Josh has a cat"));
    let whole = home.vault().canonicalize().unwrap().join("About me.md");
    let again = home
        .open(path(whole.to_string_lossy().into_owned()))
        .unwrap();
    assert_eq!(again.facts().list().await.unwrap().len(), 1);
    for outside in ["../facts.md", "/etc/facts.md", ".obsidian/facts.md", ""] {
        assert!(home.open(path(outside.to_owned())).is_err(), "{outside}");
    }
}

#[tokio::test]
async fn a_correction_keeps_its_date_and_changes_text_and_source() {
    let home = Home::new();
    let call = Cause::call(&context("local", 1));
    home.memory
        .facts()
        .add(
            "Josh's dentist appointment is on Monday morning",
            false,
            &call,
        )
        .await
        .unwrap();
    home.later(30.days());
    let other = Cause::call(&context("local", 2));
    let change = home
        .correct_because("Josh's dentist appointments are on Tuesday morning", &other)
        .await;
    // josh, dentist, appoint, monday|tuesday, morn: 4 of 5.
    assert!(
        matches!(&change, FactChange::Updated { before, .. } if before.contains("Monday")),
        "{change:?}"
    );
    assert!(
        change
            .message()
            .contains("(was: Josh's dentist appointment is on Monday morning; undo: /undo)")
    );
    assert!(
        home.facts()
            .contains("- [2025-12-10] Josh's dentist appointments are on Tuesday morning\n")
    );
    let why = home.memory.facts().provenance("dentist").await.unwrap();
    assert_eq!(why.history.len(), 2);
    assert_eq!(why.fact.source, other.source);
    assert_eq!(
        why.fact.created_at.unwrap().to_string(),
        "2025-12-10T13:05:00Z",
        "the first time"
    );
    assert_eq!(why.history[0].source, call.source);
}

#[tokio::test]
async fn the_best_match_wins_and_of_equals_the_newest() {
    let home = Home::new();
    home.write(
        "memory/facts.md",
        "# Key Facts\n\n## Recent\n\n- [2025-01-02] alpha bravo charlie delta one\n- [2025-01-01] alpha bravo charlie delta two\n",
    );
    home.correct("alpha bravo charlie delta three").await;
    assert_eq!(
        home.contents().await,
        [
            "alpha bravo charlie delta three",
            "alpha bravo charlie delta two"
        ]
    );
    home.correct("alpha bravo charlie delta two more").await;
    assert_eq!(
        home.contents().await,
        [
            "alpha bravo charlie delta three",
            "alpha bravo charlie delta two more"
        ]
    );
}

#[tokio::test]
async fn what_is_known_is_not_written_again_and_importance_only_grows() {
    let home = Home::new();
    home.remember("Josh has a cat").await;
    let before = home.facts();
    assert_eq!(
        home.remember("  Josh has\na cat ").await,
        "Already known: Josh has a cat"
    );
    assert_eq!(home.facts(), before);
    home.memory
        .facts()
        .add("Josh has a cat #important", false, &Cause::person())
        .await
        .unwrap();
    assert!(
        home.facts()
            .contains("## Important\n\n- Josh has a cat #important\n\n## Recent\n"),
        "{}",
        home.facts()
    );
    assert_eq!(
        home.remember("Josh has a cat").await,
        "Already known: Josh has a cat"
    );
    assert_eq!(home.memory.facts().important().await.unwrap().len(), 1);
}

#[tokio::test]
async fn at_the_limit_remember_refuses_but_corrects() {
    let home = Home::with(MemoryOptions {
        max_facts: 2,
        ..MemoryOptions::default()
    });
    home.remember("alpha bravo charlie delta").await;
    home.remember("Josh has a cat").await;
    let error = home
        .memory
        .facts()
        .add("Something quite new", false, &Cause::person())
        .await
        .unwrap_err();
    assert!(matches!(error, MemoryError::Limit { count: 2, max: 2 }));
    assert!(
        error.to_string().contains("memory.max_facts is 2"),
        "{error}"
    );
    home.correct("alpha bravo charlie delta echo").await;
    assert_eq!(
        home.contents().await,
        ["alpha bravo charlie delta echo", "Josh has a cat"]
    );
}

#[tokio::test]
async fn words_that_are_no_fact_are_refused() {
    let home = Home::new();
    for words in ["", " \n ", "#important", "\u{0}\u{7}"] {
        let error = home
            .memory
            .facts()
            .add(words, false, &Cause::person())
            .await
            .unwrap_err();
        assert!(
            matches!(error, MemoryError::Fact { .. }),
            "{words:?}: {error}"
        );
    }
    let error = home
        .memory
        .facts()
        .add(&"long ".repeat(201), false, &Cause::person())
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("at most 1000 characters, this one has 1004"),
        "{error}"
    );
    assert!(!home.vault().join("memory").exists(), "nothing was written");
}

#[tokio::test]
async fn text_that_reads_as_markdown_stays_one_line_and_comes_back() {
    let home = Home::new();
    let hostile = [
        "# Key Facts",
        "## Recent",
        "- nested",
        "* star",
        "1. first",
        "> quote",
        "```rust",
        "~~~",
        "<!-- hidden",
        "| table |",
        "[ ] a task",
        "[x] done",
        "---",
        "%% open comment",
        "[2020-01-01] an old date",
        "**bold** [[Link]] `code`",
        "$x$ \\back",
        "=== x",
        "+ plus",
    ];
    for (number, words) in hostile.iter().enumerate() {
        home.remember(&format!(
            "{words} unique{number}a unique{number}b unique{number}c unique{number}d unique{number}e"
        ))
        .await;
    }
    let contents = home.contents().await;
    assert_eq!(contents.len(), hostile.len(), "{contents:#?}");
    // The file is still read the same by a memory without history, and each fact can be found and
    // forgotten.
    let fresh = home.forgetful();
    for number in 0..hostile.len() {
        fresh
            .facts()
            .forget(&format!("unique{number}a"), &Cause::person())
            .await
            .unwrap();
    }
    assert!(
        fresh.facts().list().await.unwrap().is_empty(),
        "{}",
        home.facts()
    );
}

#[tokio::test]
async fn facts_are_edited_forgotten_and_found() {
    let home = Home::new();
    home.write("memory/facts.md", FACTS_FILE);
    let facts = home.memory.facts();
    let error = facts.forget("Josh", &Cause::person()).await.unwrap_err();
    assert!(
        matches!(&error, MemoryError::Ambiguous { candidates, .. } if candidates.len() == 3),
        "{error}"
    );
    assert!(matches!(
        facts.forget("zebra", &Cause::person()).await,
        Err(MemoryError::NoSuchFact { .. })
    ));
    let id = facts.find("ollama").await.unwrap().id;
    facts
        .edit(id.as_str(), Some("Ollama it is"), None, &Cause::person())
        .await
        .unwrap();
    assert!(home.facts().contains("- [2025-12-10] Ollama it is\n"));
    facts
        .edit("dark mode", None, Some(false), &Cause::person())
        .await
        .unwrap();
    assert!(
        home.facts()
            .contains("- [2025-12-10] Josh prefers dark mode in all apps\n"),
        "{}",
        home.facts()
    );
    let same = facts
        .edit(
            "Ollama",
            Some("Josh's main project is DIANA"),
            None,
            &Cause::person(),
        )
        .await
        .unwrap_err();
    assert!(same.to_string().contains("already reads"), "{same}");
    facts.forget("DIANA", &Cause::person()).await.unwrap();
    assert!(
        home.facts().contains("## Important\n\n## Recent"),
        "{}",
        home.facts()
    );
    assert_eq!(
        facts.search("CLI feature").await.unwrap()[0].content,
        "Josh mentioned working on CLI features"
    );
    assert!(facts.search("zebra").await.unwrap().is_empty());
}

#[tokio::test]
async fn undo_goes_back_step_by_step_to_the_same_bytes() {
    let home = Home::new();
    home.write("memory/facts.md", FACTS_FILE);
    let facts = home.memory.facts();
    let mut states = vec![home.facts()];
    home.remember("Josh has a cat").await;
    states.push(home.facts());
    home.correct("Josh mentioned working on the CLI feature")
        .await;
    states.push(home.facts());
    facts
        .edit("Ollama", None, Some(true), &Cause::person())
        .await
        .unwrap();
    states.push(home.facts());
    facts
        .edit(
            "dark mode",
            Some("Josh prefers light mode"),
            None,
            &Cause::person(),
        )
        .await
        .unwrap();
    states.push(home.facts());
    facts.forget("CLI", &Cause::person()).await.unwrap();
    let without_stamp = |text: &str| {
        text.lines()
            .filter(|line| !line.starts_with("modified:"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    while let Some(state) = states.pop() {
        home.memory.undo().await.unwrap();
        if states.is_empty() && without_stamp(&home.facts()) == without_stamp(FACTS_FILE) {
            break;
        }
        assert_eq!(without_stamp(&home.facts()), without_stamp(&state));
    }
    assert!(matches!(
        home.memory.undo().await,
        Err(MemoryError::NothingToUndo)
    ));
}

#[tokio::test]
async fn undo_leaves_what_the_person_changed_by_hand() {
    let home = Home::new();
    home.remember("Josh has a cat").await;
    home.remember("The office is in Oslo").await;
    home.write(
        "memory/facts.md",
        home.facts().replace("in Oslo", "in Bergen"),
    );
    let error = home.memory.undo().await.unwrap_err();
    assert!(
        matches!(&error, MemoryError::ChangedSince { what } if what == "“The office is in Oslo”"),
        "{error:?}"
    );
    assert!(home.facts().contains("Bergen"));
    assert_eq!(
        home.memory.undo().await.unwrap().message,
        "Undone: “Josh has a cat” is forgotten."
    );
    assert_eq!(home.contents().await, ["The office is in Bergen"]);
}

#[tokio::test]
async fn losing_the_history_loses_only_why_and_undo() {
    let home = Home::new();
    home.remember("Josh has a cat").await;
    let fresh = home.forgetful();
    assert_eq!(
        fresh.facts().list().await.unwrap()[0]
            .created
            .unwrap()
            .to_string(),
        "2025-12-10"
    );
    assert!(
        fresh
            .facts()
            .provenance("cat")
            .await
            .unwrap()
            .history
            .is_empty()
    );
    assert!(matches!(
        fresh.undo().await,
        Err(MemoryError::NothingToUndo)
    ));
    fresh.facts().forget("cat", &Cause::person()).await.unwrap();
    assert!(home.contents().await.is_empty());
}

#[tokio::test]
async fn a_repeated_call_has_one_effect_and_one_answer() {
    let home = Home::new();
    let cause = Cause::call(&context("local", 7));
    let first = home
        .memory
        .facts()
        .add("Josh has a cat", false, &cause)
        .await
        .unwrap();
    home.memory
        .facts()
        .forget("cat", &Cause::person())
        .await
        .unwrap();
    let again = home
        .memory
        .facts()
        .add("Josh has a cat", false, &cause)
        .await
        .unwrap();
    assert_eq!(
        (first.message(), home.contents().await.len()),
        (again.message(), 0),
        "what was forgotten stays forgotten"
    );
}

#[tokio::test]
async fn a_call_repeated_after_a_crash_has_one_effect() {
    let home = Home::new();
    home.remember("alpha bravo charlie delta").await;
    let cause = Cause::call(&context("local", 7));
    let vault = home
        .vault()
        .canonicalize()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let scope = MemoryScope {
        user: UserId::local(),
        vault,
    };
    let first = home
        .correct_because("alpha bravo charlie delta echo", &cause)
        .await;
    let change = home
        .ledger
        .by_key(&scope, cause.key.as_ref().unwrap())
        .await
        .unwrap()
        .unwrap();
    let begun = MemoryChange {
        state: MemoryState::Begun,
        ..change
    };
    // The process died after the file was written.
    home.ledger.put(&scope, &begun).await.unwrap();
    let before = home.facts();
    let again = home
        .correct_because("alpha bravo charlie delta echo", &cause)
        .await;
    assert_eq!((first.message(), before), (again.message(), home.facts()));
    // It died before: undone by hand is the same as never written.
    home.ledger.put(&scope, &begun).await.unwrap();
    home.write("memory/facts.md", home.facts().replace(" echo", ""));
    home.correct_because("alpha bravo charlie delta echo", &cause)
        .await;
    assert_eq!(home.contents().await, ["alpha bravo charlie delta echo"]);
    assert_eq!(
        home.memory.undo().await.unwrap().message,
        "Undone: it reads “alpha bravo charlie delta” again."
    );
}

#[tokio::test]
async fn only_our_lists_are_facts() {
    let home = Home::new();
    let text = "intro\n\n```\n# Key Facts\n## Recent\n- in code\n```\n\n> # Key Facts\n> - quoted\n\n%%\n# Key Facts\n- hidden\n%%\n\n\
        # Key Facts\n\n- above the sections\n\n## Family\n\n- not ours\n\n## Recent\n\n* star\n  goes on\n\n- [ ] a task\n1. numbered\n\n+ plus\n  - below\n\ntext\n\n## Other\n\n- no\n\n# Next\n\n## Recent\n\n- neither\n";
    home.write("memory/facts.md", text);
    assert_eq!(home.contents().await, ["star goes on", "plus"]);
    home.remember("new").await;
    let expected = text.replace("  - below\n", "  - below\n- [2025-12-10] new\n");
    assert_eq!(home.facts(), expected);
    home.memory
        .facts()
        .forget("plus", &Cause::person())
        .await
        .unwrap();
    assert_eq!(home.facts(), expected.replace("+ plus\n  - below\n", ""));
    home.memory
        .facts()
        .add("vital", true, &Cause::person())
        .await
        .unwrap();
    assert!(
        home.facts()
            .contains("- not ours\n\n## Important\n\n- vital #important\n\n## Recent\n"),
        "{}",
        home.facts()
    );
}

/// Facts written by hand count as they stand, in any mark, language and order, and a correction
/// keeps the owner's Markdown.
#[tokio::test]
async fn facts_by_hand_are_respected() {
    let home = Home::new();
    home.write(
        "memory/facts.md",
        "# Key Facts\n\n## Important\n\n* Анна любит чёрный чай\n  + зелёный тоже\n\n## Recent\n\n+ [2025-11-01] Josh plays the cello in an orchestra\n\n  and a paragraph\n- [ ] no fact\n* 私は猫が大好きです\n",
    );
    assert_eq!(
        home.contents().await,
        [
            "Анна любит чёрный чай",
            "Josh plays the cello in an orchestra",
            "私は猫が大好きです"
        ]
    );
    home.correct("Josh played the cello in orchestras").await;
    home.correct("Анна любит черный чай!").await;
    home.memory
        .facts()
        .forget("猫", &Cause::person())
        .await
        .unwrap();
    assert_eq!(
        home.facts(),
        "# Key Facts\n\n## Important\n\n* Анна любит черный чай!\n  + зелёный тоже\n\n## Recent\n\n+ [2025-11-01] Josh played the cello in orchestras\n\n  and a paragraph\n- [ ] no fact\n"
    );
    // Moved, reordered and deleted by hand between two operations.
    home.write(
        "memory/facts.md",
        "# Key Facts\n\n## Recent\n\n- [2025-12-09] Josh played the cello in orchestras\n- new by hand\n\n## Important\n\n- the office is in Oslo\n",
    );
    home.remember("The office is in Oslo").await;
    home.correct("Josh plays a cello in the orchestra").await;
    assert_eq!(
        home.contents().await,
        [
            "Josh plays a cello in the orchestra",
            "new by hand",
            "The office is in Oslo"
        ]
    );
    assert!(
        home.facts().contains("- [2025-12-09] Josh plays a cello"),
        "{}",
        home.facts()
    );
    assert!(home.memory.facts().important().await.unwrap()[0].content == "The office is in Oslo");
}
