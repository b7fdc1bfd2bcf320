//! Tasks in the person's own hand.

use crate::harness::Home;

#[test]
fn tasks_live_and_die_without_a_model() {
    let home = Home::new();
    assert_eq!(
        home.run(&["tasks", "list"]).succeeds().stdout,
        "You have no tasks.\n"
    );
    assert_eq!(
        home.run(&["tasks", "add", "buy", "milk"]).succeeds().stdout,
        "Added “buy milk”.\n"
    );
    home.add_task("call mum");
    home.run(&["tasks", "update", "1", "buy", "oat", "milk"])
        .succeeds();
    assert_eq!(
        home.run(&["tasks", "done", "call", "mum"])
            .succeeds()
            .stdout,
        "Completed “call mum”.\n"
    );
    assert_eq!(
        home.run(&["tasks", "done", "2"]).succeeds().stdout,
        "“call mum” was already done.\n"
    );
    let list = home.run(&["tasks", "list"]).succeeds();
    assert_eq!(
        list.stdout,
        "Your tasks:\n  1. buy oat milk\n  2. call mum (done)\n"
    );
    assert_eq!(
        home.run(&["tasks", "list", "--status", "pending"]).stdout,
        "Open tasks:\n  1. buy oat milk\n"
    );
    assert_eq!(list.stderr, "");
}

#[test]
fn a_description_that_is_invalid_is_refused_with_its_reason() {
    let home = Home::new();
    let long = "x".repeat(1001);
    for args in [
        &["tasks", "add", &long][..],
        &["tasks", "update", "1", &long],
    ] {
        let run = home
            .run(args)
            .ends_with(1)
            .says("a task description has at most 1000 characters, this one has 1001");
        assert!(
            !run.stderr.contains("xxx") && !run.stderr.contains("_task"),
            "{run:?}"
        );
    }
    let (code, outcome) = home.json(&["tasks", "add", &long]);
    assert_eq!(
        (code, &outcome["error"]["code"]),
        (1, &serde_json::json!("failed"))
    );
}

#[test]
fn the_demo_says_what_was_done_and_no_json() {
    let home = Home::new();
    let ask = |words: &str| home.run(&["-m", "demo", words]).succeeds().stdout;
    assert_eq!(
        ask("Add task to buy groceries"),
        "[demo] Added “buy groceries”.\n"
    );
    assert_eq!(ask("show my tasks"), "[demo] Your tasks: buy groceries.\n");
    assert_eq!(
        ask("complete buy groceries"),
        "[demo] Completed “buy groceries”.\n"
    );
}

#[test]
fn deleting_needs_a_yes() {
    let home = Home::new();
    home.add_task("buy milk");
    home.run(&["tasks", "rm", "milk"])
        .ends_with(4)
        .says("Delete “buy milk”")
        .says("-y");
    assert_eq!(home.tasks(), ["buy milk"]);
    let (code, refused) = home.json(&["tasks", "rm", "1"]);
    assert_eq!(
        (code, refused["error"]["code"].as_str()),
        (4, Some("confirmation_needed"))
    );
    assert_eq!(
        home.run(&["tasks", "rm", "-y", "milk"]).succeeds().stdout,
        "Deleted “buy milk”.\n"
    );
    assert!(home.tasks().is_empty());
}

#[test]
fn what_is_not_clear_is_not_guessed() {
    let home = Home::new();
    home.add_task("buy milk");
    home.add_task("buy bread");
    home.run(&["tasks", "done", "buy"])
        .ends_with(1)
        .says("buy milk")
        .says("buy bread");
    home.run(&["tasks", "done", "99"]).ends_with(1);
    home.run(&["tasks", "add", " "])
        .ends_with(1)
        .says("a task needs a description");
    home.run(&["tasks", "add"]).ends_with(2);
    let (_, list) = home.json(&["tasks", "list", "--status", "completed"]);
    assert_eq!(list["result"]["data"]["count"], 0);
}

#[test]
fn json_is_the_call_and_its_result() {
    let home = Home::new();
    let (code, added) = home.json(&["tasks", "add", "buy milk"]);
    assert_eq!(code, 0);
    assert_eq!(added["tool"], "add_task");
    assert_eq!(added["arguments"]["description"], "buy milk");
    assert_eq!(added["result"]["success"], true);
    assert_eq!(added["result"]["data"]["id"], "1");
    assert_eq!(added["error"], serde_json::Value::Null);
}

#[test]
fn options_without_a_meaning_are_refused() {
    let home = Home::new();
    home.run(&["tasks", "list", "-c"]).ends_with(2);
    home.run(&["chat", "--json"]).ends_with(2);
}

#[test]
fn a_deleted_task_is_brought_back_by_its_number() {
    let home = Home::new();
    home.add_task("buy milk");
    home.add_task("call mum");
    let rm = home
        .run(&["tasks", "rm", "-y", "1"])
        .succeeds()
        .says("adjutant tasks restore 1");
    assert_eq!(rm.stdout, "Deleted “buy milk”.\n");
    assert_eq!(
        home.run(&["tasks", "restore", "#1"]).succeeds().stdout,
        "Brought “buy milk” back.\n"
    );
    assert_eq!(
        home.run(&["tasks", "restore", "1"]).succeeds().stdout,
        "“buy milk” was not deleted.\n"
    );
    assert_eq!(home.tasks(), ["buy milk", "call mum"]);
    home.run(&["tasks", "restore", "9"])
        .ends_with(1)
        .says("there is no deleted task 9");
    home.run(&["tasks", "restore", "milk"]).ends_with(2);
    let (code, back) = home.json(&["tasks", "restore", "2"]);
    assert_eq!((code, back["already"].as_bool()), (0, Some(true)));
}

const NOTE: &str = "# House\r\n\r\n- [ ] call mum 📅 2026-11-30 ^mum\r\n- [ ] water plants 🔁 every week 📅 2026-11-27\r\n\
                    - [ ] pay rent 🔁 every month on the 1st 📅 2026-12-01\r\n\r\n```\r\n- [ ] code\r\n```\r\nno end";

/// A home whose tasks are in the notes of a vault.
fn with_notes() -> (Home, std::path::PathBuf) {
    let home = Home::new();
    std::fs::create_dir_all(home.path("Notes/.obsidian")).unwrap();
    home.file("Notes/House.md", NOTE);
    let vault = home.path("Notes");
    home.config(&format!(
        "[vault]\npath = {:?}\ntasks = \"notes\"\n",
        crate::harness::arg(&vault)
    ));
    (home, vault)
}

#[test]
fn tasks_in_notes_are_seen_and_changed_by_the_same_commands() {
    let (home, vault) = with_notes();
    let note = || std::fs::read_to_string(vault.join("House.md")).unwrap();
    let list = home.run(&["tasks", "list"]).succeeds().stdout;
    assert_eq!(
        list,
        "Your tasks:\n  1. call mum 📅 2026-11-30\n  2. water plants 🔁 every week 📅 2026-11-27\n  \
         3. pay rent 🔁 every month on the 1st 📅 2026-12-01\n"
    );
    assert_eq!(note(), NOTE);
    home.run(&["tasks", "done", "mum"]).succeeds();
    let changed = note();
    assert!(
        changed.contains("- [x] call mum 📅 2026-11-30 ✅ 20") && changed.contains(" ^mum\r\n"),
        "{changed}"
    );
    home.run(&["tasks", "done", "2"]).succeeds();
    assert!(
        note().contains("- [ ] water plants 🔁 every week 📅 2026-12-04\r\n- [x] water plants"),
        "{}",
        note()
    );
    let before = note();
    home.run(&["tasks", "done", "3"])
        .ends_with(1)
        .says("every month on the 1st");
    home.run(&["tasks", "update", "3", "pay", "the", "rent"])
        .succeeds();
    assert_eq!(note(), before.replace("pay rent", "pay the rent"));
    assert_eq!(
        home.run(&["tasks", "add", "buy", "milk"]).succeeds().stdout,
        "Added “buy milk”.\n"
    );
    assert_eq!(
        std::fs::read_to_string(vault.join("Tasks.md")).unwrap(),
        "- [ ] buy milk\n"
    );
    let before = note();
    home.run(&["tasks", "rm", "-y", "3"])
        .succeeds()
        .says("restore 3");
    assert!(!note().contains("rent"));
    home.run(&["tasks", "restore", "3"]).succeeds();
    assert_eq!(note(), before);
    // The way back of what was done last, by the memory's undo.
    home.run(&["tasks", "done", "milk"]).succeeds();
    home.run(&["memory", "undo"]).succeeds();
    assert_eq!(
        std::fs::read_to_string(vault.join("Tasks.md")).unwrap(),
        "- [ ] buy milk\n"
    );
    // A model, a key, and the database, which has none of them.
    assert!(
        home.run(&["-m", "demo", "complete buy milk"])
            .succeeds()
            .stdout
            .contains("buy milk")
    );
    assert!(
        std::fs::read_to_string(vault.join("Tasks.md"))
            .unwrap()
            .starts_with("- [x] buy milk ✅ ")
    );
    for _ in 0..2 {
        home.run(&["tasks", "add", "--idempotency-key", "k", "once"])
            .succeeds();
    }
    assert_eq!(
        std::fs::read_to_string(vault.join("Tasks.md"))
            .unwrap()
            .matches("once")
            .count(),
        1
    );
    home.config(&format!(
        "[vault]\npath = {:?}\n",
        crate::harness::arg(&vault)
    ));
    assert_eq!(
        home.run(&["tasks", "list"]).succeeds().stdout,
        "You have no tasks.\n"
    );
}

#[test]
fn tasks_in_notes_without_a_vault_are_an_error() {
    let home = Home::new();
    home.config("[vault]\ntasks = \"notes\"\n");
    home.run(&["tasks", "list"])
        .ends_with(3)
        .says("vault.tasks")
        .says("vault.path");
    home.run(&["-m", "demo", "hi"])
        .ends_with(3)
        .says("vault.tasks");
    home.config("[vault]\ntasks = \"paper\"\n");
    home.run(&["tasks", "list"]).ends_with(3).says("database");
}

#[test]
fn two_processes_give_every_task_one_number_and_lose_none() {
    let (home, vault) = with_notes();
    let each = 8;
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let home = &home;
            scope.spawn(move || {
                for number in 0..each {
                    home.run(&["tasks", "add", &format!("w{writer} number {number}")])
                        .succeeds();
                }
            });
        }
    });
    let note = std::fs::read_to_string(vault.join("Tasks.md")).unwrap();
    assert_eq!(note.lines().count(), 2 * each, "{note}");
    let list = home.json(&["tasks", "list"]).1;
    let tasks = list["result"]["data"]["tasks"].as_array().unwrap();
    let ids: std::collections::BTreeSet<&str> = tasks
        .iter()
        .filter_map(|task| task["id"].as_str())
        .collect();
    assert_eq!((tasks.len(), ids.len()), (2 * each + 3, 2 * each + 3));
}

#[test]
fn a_task_that_was_added_is_no_failure_however_soon_its_line_is_changed() {
    let (home, vault) = with_notes();
    let (note, saved) = (vault.join("Tasks.md"), vault.join("Tasks.md.tmp"));
    let (changed, seen) = std::sync::mpsc::channel();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // An editor that changes each line as soon as it is there.
        let note = &note;
        scope.spawn(move || {
            while stopped.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
                let text = std::fs::read_to_string(note).unwrap_or_default();
                if text.lines().all(|line| line.ends_with(" (seen)")) {
                    std::thread::yield_now();
                    continue;
                }
                let lines = text.lines().map(|line| match line.ends_with(" (seen)") {
                    true => format!("{line}\n"),
                    false => format!("{line} (seen)\n"),
                });
                std::fs::write(&saved, lines.collect::<String>()).unwrap();
                std::fs::rename(&saved, note).unwrap();
                changed.send(()).unwrap();
            }
        });
        for number in 0..20 {
            let run = home.run(&["tasks", "add", &format!("number {number}")]);
            assert_eq!(run.succeeds().stdout, format!("Added “number {number}”.\n"));
            // The editor saves nothing that it has read before the next line was added.
            seen.recv().unwrap();
        }
        drop(stop);
    });
    let text = std::fs::read_to_string(&note).unwrap();
    assert_eq!(text.matches("number ").count(), 20, "{text}");
}
