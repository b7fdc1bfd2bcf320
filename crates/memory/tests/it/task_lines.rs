//! The tasks in the notes: found, changed one line at a time, and brought back.

use std::collections::BTreeMap;
use std::path::PathBuf;

use adjutant_core::port::MemoryLedger;
use adjutant_core::{MemoryScope, MemoryState, UserId};
use adjutant_memory::{
    Cause, MemoryError, TaskAddress, TaskEdit, TaskStatus, VaultError, VaultTask,
};
use jiff::ToSpan;
use jiff::civil::date;

use crate::harness::{Dice, Home, context, files};
use crate::size::cases;

async fn tasks(home: &Home) -> Vec<VaultTask> {
    home.memory.tasks().unwrap().list().await.unwrap().tasks
}

/// The task of these words.
async fn task(home: &Home, words: &str) -> TaskAddress {
    let found: Vec<VaultTask> = tasks(home)
        .await
        .into_iter()
        .filter(|task| task.words == words)
        .collect();
    let [one] = found.as_slice() else {
        panic!("{words}: {found:?}")
    };
    one.address.clone()
}

async fn complete(home: &Home, words: &str) -> Result<(), MemoryError> {
    let task = task(home, words).await;
    home.memory
        .tasks()
        .unwrap()
        .complete(&task, &Cause::person())
        .await
        .map(drop)
}

const PLUGIN: &str = ".obsidian/plugins/obsidian-tasks-plugin/data.json";

#[tokio::test]
async fn lines_are_tasks_where_obsidian_shows_them() {
    let home = Home::new();
    home.write(
        "note.md",
        "---\nx: |\n  - [ ] front matter\n---\n- [ ] first\n\n```\n- [ ] fenced\n```\n\n~~~tasks\n- [ ] query\n~~~\n\n    - [ ] indented code\n\n\
         %% - [ ] comment %%\n%%\n- [ ] long comment\n%%\n\n<!--\n- [ ] html comment\n-->\n\n<div>\n- [ ] html\n</div>\n\n\
         > [!todo] Callout\n> - [ ] in a callout\n>   - [/] below it\n\n1. [ ] numbered\n2) [x] other list\n\n- parent\n\t- [ ] child\n\t\t- [-] grandchild\n\n\
         | a |\n|---|\n| - [ ] cell |\n\ntext\n- [ ] after text\ntext - [ ] inside\n`- [ ] code`\n\n- [ ]\n- [ ] \n- [ ]close\n- []\n\n+ [ ] plus\n* [?] star\n",
    );
    home.write("open.md", "- [ ] before\n\n```\n- [ ] never closed\n");
    home.write("memory/facts.md", "# Key Facts\n\n- [ ] no fact\n");
    home.write(".hidden/note.md", "- [ ] hidden\n");
    home.write(
        "big.md",
        format!("- [ ] big\n{}", "x".repeat(4 * 1024 * 1024)),
    );
    home.write("bytes.md", b"- [ ] bytes \xff\n");
    let found: Vec<String> = tasks(&home)
        .await
        .into_iter()
        .map(|task| task.words)
        .collect();
    let expected = [
        "bytes \u{FFFD}",
        "first",
        "in a callout",
        "below it",
        "numbered",
        "other list",
        "child",
        "grandchild",
        "after text",
        "plus",
        "star",
        "before",
    ];
    assert_eq!(found, expected);
    let all = tasks(&home).await;
    let status = |words: &str| all.iter().find(|task| task.words == words).unwrap().status;
    assert_eq!(status("below it"), TaskStatus::InProgress);
    assert_eq!(status("other list"), TaskStatus::Done);
    assert_eq!(status("grandchild"), TaskStatus::Cancelled);
    assert_eq!(status("star"), TaskStatus::Todo);
    // What cannot be read as text is not written.
    assert!(matches!(
        complete(&home, "bytes \u{FFFD}").await,
        Err(MemoryError::Vault(VaultError::NotText { .. }))
    ));
}

#[tokio::test]
async fn the_plugins_own_settings_count() {
    let home = Home::new();
    home.write(
        PLUGIN,
        r##"{"globalFilter":"#task","taskFormat":"dataview","setCreatedDate":true,"recurrenceOnNextLine":true,
            "statusSettings":{"customStatuses":[{"symbol":"!","type":"DONE"},{"symbol":"Q","type":"NON_TASK"},{"symbol":"ab","type":"DONE"}]}}"##,
    );
    home.write(
        "a.md",
        "- [ ] not one\n- [ ] one #task\n- [!] done #task\n- [Q] none #task\n- [ ] more #task 🔁 every day\n",
    );
    let found = tasks(&home).await;
    let statuses: Vec<TaskStatus> = found.iter().map(|task| task.status).collect();
    use TaskStatus::{Done, NonTask, Todo};
    assert_eq!(statuses, [Todo, Done, NonTask, Todo]);
    complete(&home, "one #task").await.unwrap();
    complete(&home, "more #task").await.unwrap();
    assert!(complete(&home, "none #task").await.is_err());
    let added = home
        .memory
        .tasks()
        .unwrap()
        .add("new one", "a", &Cause::person())
        .await
        .unwrap();
    assert_eq!(added.task.words, "#task new one");
    assert_eq!(
        home.read("a.md"),
        "- [ ] not one\n- [x] one #task  [completion:: 2025-12-10]\n- [!] done #task\n- [Q] none #task\n\
         - [x] more #task 🔁 every day ✅ 2025-12-10\n- [ ] more #task 🔁 every day ➕ 2025-12-10\n- [ ] #task new one  [created:: 2025-12-10]\n"
    );
    for broken in [
        "",
        "{",
        "[]",
        "null",
        r#"{"globalFilter":7,"statusSettings":[]}"#,
    ] {
        home.write(PLUGIN, broken);
        assert_eq!(tasks(&home).await.len(), 7, "{broken}");
    }
}

#[tokio::test]
async fn an_editor_that_writes_above_makes_no_other_line_change() {
    let home = Home::new();
    home.write("a.md", "# A\n- [ ] twin\n- [ ] one\n- [ ] twin\n");
    let before = tasks(&home).await;
    let [first, one, second] = before.as_slice() else {
        panic!("{before:?}")
    };
    let tasks = home.memory.tasks().unwrap();
    // Lines above: the one line is still the one line, and a twin is known by its neighbours.
    home.write("a.md", "new\n\n# A\n- [ ] twin\n- [ ] one\n- [ ] twin\n");
    tasks
        .complete(&one.address, &Cause::person())
        .await
        .unwrap();
    assert_eq!(
        home.read("a.md"),
        "new\n\n# A\n- [ ] twin\n- [x] one ✅ 2025-12-10\n- [ ] twin\n"
    );
    // The neighbours of both have changed, and there are two: it is not clear which is meant.
    let refused = tasks
        .complete(&first.address, &Cause::person())
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("not clear"), "{refused}");
    home.write("a.md", "# A\n- [ ] twin\n- [ ] one\n- [ ] twin\n");
    tasks
        .complete(&second.address, &Cause::person())
        .await
        .unwrap();
    assert_eq!(
        home.read("a.md"),
        "# A\n- [ ] twin\n- [ ] one\n- [x] twin ✅ 2025-12-10\n"
    );
    // One of two is gone: it may be the other.
    home.write("a.md", "- [ ] twin\n- [ ] x\n");
    let refused = tasks
        .delete(&first.address, &Cause::person())
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("not clear"), "{refused}");
    // Changed, in a comment now, gone, and without its note.
    for text in [
        "- [ ] one!\n",
        "%%\n- [ ] one\n%%\n",
        "- [ ]  one\n",
        "",
        "```\n- [ ] one\n",
    ] {
        home.write("a.md", text);
        for refused in [
            tasks.complete(&one.address, &Cause::person()).await,
            tasks.delete(&one.address, &Cause::person()).await,
            tasks.move_to(&one.address, "b", &Cause::person()).await,
        ] {
            assert!(
                refused
                    .unwrap_err()
                    .to_string()
                    .contains("nothing was changed")
            );
        }
        assert_eq!(home.read("a.md"), text);
    }
    std::fs::remove_file(home.vault().join("a.md")).unwrap();
    assert!(
        tasks
            .complete(&one.address, &Cause::person())
            .await
            .is_err()
    );
    assert_eq!(files(&home.vault()).len(), 0);
}

#[tokio::test]
async fn a_task_is_added_where_it_is_read_as_one() {
    let home = Home::new();
    for (before, after) in [
        ("", "- [ ] new\n"),
        ("\u{FEFF}", "\u{FEFF}- [ ] new\n"),
        ("text", "text\n\n- [ ] new"),
        ("text\n", "text\n\n- [ ] new\n"),
        ("- [ ] old\n", "- [ ] old\n- [ ] new\n"),
        ("- [ ] old", "- [ ] old\n- [ ] new"),
        ("- [ ] old\r\n", "- [ ] old\r\n- [ ] new\r\n"),
        ("a\r\n\r\n", "a\r\n\r\n- [ ] new\r\n"),
        ("1. [ ] old\n", "1. [ ] old\n\n- [ ] new\n"),
        ("- a\n    - [ ] old\n", "- a\n    - [ ] old\n- [ ] new\n"),
        ("> - [ ] old\n", "> - [ ] old\n\n- [ ] new\n"),
    ] {
        home.write("a.md", before);
        let written = home
            .memory
            .tasks()
            .unwrap()
            .add("new", "a", &Cause::person())
            .await
            .unwrap();
        assert_eq!(home.read("a.md"), after, "{before:?}");
        assert_eq!(
            (
                written.task.words.as_str(),
                written.task.address.path.as_str()
            ),
            ("new", "a.md")
        );
        home.memory.undo().await.unwrap();
        assert_eq!(home.read("a.md"), before);
    }
    for open in ["```\n", "%% \n", "<!--\n"] {
        home.write("a.md", open);
        let refused = home
            .memory
            .tasks()
            .unwrap()
            .add("new", "a", &Cause::person())
            .await
            .unwrap_err();
        assert!(
            matches!(refused, MemoryError::Vault(VaultError::Shape { .. })),
            "{refused}"
        );
        assert_eq!(home.read("a.md"), open);
    }
    for words in ["%% new", "", "📅 2026-01-01"] {
        home.write("a.md", "x\n");
        assert!(
            home.memory
                .tasks()
                .unwrap()
                .add(words, "a", &Cause::person())
                .await
                .is_err(),
            "{words}"
        );
        assert_eq!(home.read("a.md"), "x\n");
    }
    // A new note, and away with it again.
    home.memory
        .tasks()
        .unwrap()
        .add("new", "Lists/To do", &Cause::person())
        .await
        .unwrap();
    assert_eq!(home.read("Lists/To do.md"), "- [ ] new\n");
    home.memory.undo().await.unwrap();
    assert!(!home.vault().join("Lists/To do.md").exists());
    for name in ["../out", "memory/facts", ".hidden/x", "/etc/x"] {
        assert!(
            home.memory
                .tasks()
                .unwrap()
                .add("new", name, &Cause::person())
                .await
                .is_err(),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_deleted_task_comes_back_for_30_days() {
    let home = Home::new();
    let text = "# A\n\n- [ ] one\n- [ ] two\r\n  below\n- [ ] three";
    home.write("a.md", text);
    let tasks = home.memory.tasks().unwrap();
    let two = task(&home, "two").await;
    tasks.delete(&two, &Cause::person()).await.unwrap();
    assert_eq!(home.read("a.md"), "# A\n\n- [ ] one\n  below\n- [ ] three");
    let kept = tasks.deleted().await.unwrap();
    assert_eq!(kept.len(), 1);
    home.later(29.days());
    // In a note that was changed meanwhile it comes back to its neighbours.
    home.write("a.md", "# A\n\nnew\n\n- [ ] one\n  below\n- [x] three\n");
    tasks.restore(kept[0].change).await.unwrap();
    assert_eq!(
        home.read("a.md"),
        "# A\n\nnew\n\n- [ ] one\n- [ ] two\n  below\n- [x] three\n"
    );
    assert!(tasks.restore(kept[0].change).await.is_err(), "only once");
    assert_eq!(tasks.deleted().await.unwrap(), []);
    for (now, after) in [
        ("other\n", "other\n\n- [ ] one\n"),
        ("- [ ] two\n", "- [ ] one\n- [ ] two\n"),
        ("x", "x\n\n- [ ] one"),
        ("", "- [ ] one\n"),
    ] {
        home.write("b.md", "- [ ] one\n- [ ] two\n");
        let one = tasks
            .list()
            .await
            .unwrap()
            .tasks
            .into_iter()
            .find(|task| task.address.path == "b.md")
            .unwrap();
        tasks.delete(&one.address, &Cause::person()).await.unwrap();
        home.write("b.md", now);
        tasks
            .restore(tasks.deleted().await.unwrap()[0].change)
            .await
            .unwrap();
        assert_eq!(home.read("b.md"), after, "{now:?}");
    }
    let one = tasks
        .list()
        .await
        .unwrap()
        .tasks
        .into_iter()
        .find(|task| task.address.path == "b.md")
        .unwrap();
    tasks.delete(&one.address, &Cause::person()).await.unwrap();
    std::fs::remove_file(home.vault().join("b.md")).unwrap();
    home.memory.undo().await.unwrap();
    assert_eq!(home.read("b.md"), "- [ ] one\n");
    let three = task(&home, "three").await;
    tasks.delete(&three, &Cause::person()).await.unwrap();
    home.later(31.days());
    assert_eq!(tasks.deleted().await.unwrap(), []);
}

#[tokio::test]
async fn a_change_is_taken_back_in_a_note_that_was_changed_since_or_refused() {
    let home = Home::new();
    home.write(
        "a.md",
        "- [ ] one 🔁 every day 📅 2025-12-10\r\n- [ ] two\n",
    );
    home.write("b.md", "text\n");
    complete(&home, "one").await.unwrap();
    assert_eq!(
        home.read("a.md"),
        "- [ ] one 🔁 every day 📅 2025-12-11\r\n- [x] one 🔁 every day 📅 2025-12-10 ✅ 2025-12-10\r\n- [ ] two\n"
    );
    home.write("a.md", format!("new\n{}", home.read("a.md")));
    home.memory.undo().await.unwrap();
    assert_eq!(
        home.read("a.md"),
        "new\n- [ ] one 🔁 every day 📅 2025-12-10\r\n- [ ] two\n"
    );
    let one = task(&home, "one").await;
    home.memory
        .tasks()
        .unwrap()
        .move_to(&one, "b", &Cause::person())
        .await
        .unwrap();
    assert_eq!(home.read("a.md"), "new\n- [ ] two\n");
    assert_eq!(
        home.read("b.md"),
        "text\n\n- [ ] one 🔁 every day 📅 2025-12-10\n"
    );
    home.memory.undo().await.unwrap();
    assert_eq!(
        home.read("a.md"),
        "new\n- [ ] one 🔁 every day 📅 2025-12-10\n- [ ] two\n"
    );
    complete(&home, "two").await.unwrap();
    home.write(
        "a.md",
        home.read("a.md").replace("[x] two", "[x] two and a half"),
    );
    let now = home.read("a.md");
    assert!(matches!(
        home.memory.undo().await,
        Err(MemoryError::ChangedSince { .. })
    ));
    assert_eq!(home.read("a.md"), now);
}

#[tokio::test]
async fn a_repeated_call_has_one_effect_also_after_a_crash_between_note_and_history() {
    let home = Home::new();
    home.write("a.md", "- [ ] one\n- [ ] two\n- [ ] three\n- [ ] last\n");
    let scope = MemoryScope {
        user: UserId::local(),
        vault: home.vault().canonicalize().unwrap().display().to_string(),
    };
    let tasks = home.memory.tasks().unwrap();
    let all = tasks.list().await.unwrap().tasks;
    let causes: Vec<Cause> = (0..5)
        .map(|call| Cause::call(&context("local", call)))
        .collect();
    for round in 0..2 {
        for (call, cause) in causes.iter().enumerate() {
            let two = &all[1].address;
            let written = match call {
                0 => tasks.complete(&all[0].address, cause).await,
                1 => tasks.delete(two, cause).await,
                2 => tasks.move_to(&all[2].address, "b", cause).await,
                3 => tasks.add("four", "b", cause).await,
                _ => {
                    tasks
                        .edit(
                            &all[3].address,
                            &TaskEdit {
                                words: Some("five".to_owned()),
                                due: None,
                            },
                            cause,
                        )
                        .await
                }
            };
            assert!(!written.unwrap().already, "{round} {call}");
            let expected = (
                home.read("a.md"),
                home.vault()
                    .join("b.md")
                    .exists()
                    .then(|| home.read("b.md")),
            );
            // As a crash leaves it: the note is written, the history knows only that it was begun.
            let change = home.ledger.newest(&scope, 1).await.unwrap().remove(0);
            let begun = adjutant_core::MemoryChange {
                state: MemoryState::Begun,
                ..change
            };
            home.ledger.put(&scope, &begun).await.unwrap();
            let again = match call {
                0 => tasks.complete(&all[0].address, cause).await,
                1 => tasks.delete(two, cause).await,
                2 => tasks.move_to(&all[2].address, "b", cause).await,
                3 => tasks.add("four", "b", cause).await,
                _ => {
                    tasks
                        .edit(
                            &all[3].address,
                            &TaskEdit {
                                words: Some("five".to_owned()),
                                due: None,
                            },
                            cause,
                        )
                        .await
                }
            };
            again.unwrap();
            let now = (
                home.read("a.md"),
                home.vault()
                    .join("b.md")
                    .exists()
                    .then(|| home.read("b.md")),
            );
            assert_eq!(now, expected, "{round} {call}");
        }
    }
    assert_eq!(home.read("a.md"), "- [x] one ✅ 2025-12-10\n- [ ] five\n");
    assert_eq!(home.read("b.md"), "- [ ] three\n- [ ] four\n");
}

/// A note of tasks with odd neighbours; `T` becomes a task's words.
const ODD: &str = "---\ntags: [a]\n- [ ] keep front\n---\n# Keep ü\n\n- [ ] T\n- [ ] T 📅 2025-12-24\n* [/] T #tag ⏫ ^block-T\n+ [ ] T [due:: 2025-12-24] \n\
1. [ ] T 🔁 every 2 weeks 📅 2025-12-24 🆔 idT\n2. [x] T ✅ 2025-01-01\n\n```js\n- [ ] keep code\n```\n\n> [!note] keep\n> - [ ] T (scheduled:: 2025-12-24)\n> keep quote\n\n\
- keep list\n    - [ ] T\n      keep below\n\t- [-] T ❌ 2025-01-01\n\n%% - [ ] keep comment %%\n\n| keep | table |\n|---|---|\n\n- [ ]  T  two  spaces \t \n- [ ] same line\n- [ ] T 🔁 every weekday\n\
- [ ] keep half 📅 2025-1\n- [ ] same line\n- [ ]keep\n- [ ] \n\n- [?] T 🔁 every day when done 🛫 2025-12-01 ⏳ 2025-12-20\n\nkeep end";

fn odd_notes() -> Vec<(String, String)> {
    let mut number = 0;
    let mut fill = |text: &str| {
        text.split('T')
            .map(str::to_owned)
            .reduce(|text, rest| {
                number += 1;
                format!("{text}t{number}{rest}")
            })
            .unwrap()
    };
    let mut notes = Vec::new();
    for (name, text) in [
        ("lf", ODD.to_owned()),
        ("crlf", ODD.replace('\n', "\r\n")),
        (
            "Ordner ü/bom",
            format!("\u{FEFF}{}", ODD.replace('\n', "\r\n")),
        ),
        ("mixed", ODD.replace("\n- ", "\r\n- ")),
        ("newline", format!("{ODD}\n")),
        ("last", format!("{ODD}\n\n- [ ] T")),
    ] {
        notes.push((format!("{name}.md"), fill(&text)));
    }
    notes.push(("only.md".to_owned(), fill("- [ ] T")));
    notes.push(("bom only.md".to_owned(), fill("\u{FEFF}- [ ] T\r\n- [ ] T")));
    notes.push(("empty.md".to_owned(), String::new()));
    notes
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn lines(files: &Files, path: &str) -> Vec<String> {
    let text = files
        .get(&PathBuf::from(path))
        .map(|bytes| String::from_utf8(bytes.clone()).unwrap());
    // A byte order mark belongs to the note, not to its first line.
    let text = text.unwrap_or_default();
    text.trim_start_matches('\u{FEFF}')
        .split_inclusive('\n')
        .map(str::to_owned)
        .collect()
}

/// Asserts that all files are the same but for the lines of one, of which `removed` became `added`
/// from `at` on.
fn assert_only(
    before: &Files,
    after: &Files,
    path: &str,
    at: usize,
    removed: usize,
    added: usize,
    what: &str,
) {
    for name in before.keys().chain(after.keys()) {
        if name.to_string_lossy() != path {
            assert_eq!(
                before.get(name),
                after.get(name),
                "{what}: another note changed"
            );
        }
    }
    let (old, new) = (lines(before, path), lines(after, path));
    let mark = |files: &Files| {
        files
            .get(&PathBuf::from(path))
            .is_some_and(|bytes| bytes.starts_with(b"\xEF\xBB\xBF"))
    };
    assert_eq!(mark(before), mark(after), "{what}");
    assert_eq!(old.len() - removed + added, new.len(), "{what}");
    assert_eq!(old[..at], new[..at], "{what}: lines above");
    assert_eq!(
        old[at + removed..],
        new[at + added..],
        "{what}: lines below"
    );
    let body = |line: &String| line.trim_end_matches(['\r', '\n']).len();
    if let (1, Some(old), Some(new)) = (removed, old.get(at), new.get(at + added.max(1) - 1)) {
        assert!(
            added == 0 || old[body(old)..] == new[body(new)..],
            "{what}: its line ending"
        );
        let mark = old.find('[').unwrap();
        assert!(
            added == 0 || old[..mark] == new[..mark],
            "{what}: what stands before its status"
        );
    }
}

/// Writes a line into a note where another program would: above, below, or at the end. Gives the
/// place.
fn scribble(home: &Home, path: &str, dice: &mut Dice) -> usize {
    let text = home.read(path);
    let mut all: Vec<&str> = text.split_inclusive('\n').collect();
    // Not into the front matter and not below a line without an end.
    let last = all.len().saturating_sub(usize::from(!text.ends_with('\n')));
    let first = if text.contains("---\n") || text.contains("---\r\n") {
        4
    } else {
        1.min(last)
    };
    let at = first + usize::try_from(dice.roll(1 + last.saturating_sub(first) as u64)).unwrap();
    let at = at.min(last);
    all.insert(at, "\n");
    home.write(path, all.concat());
    at
}

#[tokio::test]
async fn ten_thousand_random_operations_change_nothing_but_the_addressed_line() {
    let home = Home::new();
    let refill = || {
        for (name, text) in odd_notes() {
            home.write(&name, text);
        }
        home.write("keep.md", "keep\r\n\r\n- [ ] keep me\r\n");
    };
    refill();
    let mut dice = Dice(0x5EED_1234);
    let (mut done, mut refused) = (0, 0);
    for number in 0..cases(10_000, 400) {
        if number % 250 == 249 {
            refill();
        }
        let all = tasks(&home).await;
        let candidates: Vec<&VaultTask> = all
            .iter()
            .filter(|task| task.address.path != "keep.md")
            .collect();
        if candidates.len() < 10 {
            refill();
            continue;
        }
        let chosen = candidates[usize::try_from(dice.roll(candidates.len() as u64)).unwrap()];
        let path = chosen.address.path.as_str();
        let mut at = chosen.line_number - 1;
        if dice.roll(4) == 0 {
            let written = scribble(&home, path, &mut dice);
            at += usize::from(written <= at);
        }
        let before = files(&home.vault());
        let tasks = home.memory.tasks().unwrap();
        let cause = Cause::person();
        let what = format!("{number} {} {:?}", path, chosen.address.line);
        let (result, removed, other) = match dice.roll(8) {
            0 | 1 => (tasks.complete(&chosen.address, &cause).await, 1, None),
            2 | 3 => {
                let words = [
                    "new t0 words",
                    "new t0 #other",
                    "new t0 📅 2026-02-01",
                    "📅 2026-03-01",
                    "ü t0 [[link]] `code`",
                ];
                let words = words[usize::try_from(dice.roll(5)).unwrap()]
                    .replace("t0", &format!("n{number}"));
                (
                    tasks
                        .edit(
                            &chosen.address,
                            &TaskEdit {
                                words: Some(words),
                                due: None,
                            },
                            &cause,
                        )
                        .await,
                    1,
                    None,
                )
            }
            4 => {
                let due = if dice.roll(2) == 0 {
                    None
                } else {
                    Some(date(2026, 1, 15))
                };
                (
                    tasks
                        .edit(
                            &chosen.address,
                            &TaskEdit {
                                words: None,
                                due: Some(due),
                            },
                            &cause,
                        )
                        .await,
                    1,
                    None,
                )
            }
            5 => (tasks.delete(&chosen.address, &cause).await, 1, None),
            6 => {
                let to = ["lf", "crlf", "bom", "mixed", "newline", "empty", "new"]
                    [usize::try_from(dice.roll(7)).unwrap()];
                (
                    tasks.move_to(&chosen.address, to, &cause).await,
                    1,
                    Some(()),
                )
            }
            _ => {
                let to =
                    ["lf", "crlf", "last", "only", "empty"][usize::try_from(dice.roll(5)).unwrap()];
                (
                    tasks.add(&format!("added n{number}"), to, &cause).await,
                    0,
                    Some(()),
                )
            }
        };
        let after = files(&home.vault());
        let Ok(written) = result else {
            assert_eq!(before, after, "{what}: {result:?}");
            refused += 1;
            continue;
        };
        done += 1;
        if written.already {
            assert_eq!(before, after, "{what}");
            continue;
        }
        match other {
            None => {
                let added = usize::from(!written.gone) + usize::from(written.next.is_some());
                assert_only(&before, &after, path, at, removed, added, &what);
            }
            Some(()) => {
                let to = written.task.address.path.as_str();
                // Appended: what stood there is how the note begins.
                let stood = before.get(&PathBuf::from(to)).cloned().unwrap_or_default();
                assert!(
                    after[&PathBuf::from(to)].starts_with(&stood),
                    "{what} to {to}"
                );
                let mut rest = after.clone();
                match before.get(&PathBuf::from(to)) {
                    Some(stood) => rest.insert(PathBuf::from(to), stood.clone()),
                    None => rest.remove(&PathBuf::from(to)),
                };
                if removed == 1 {
                    assert_only(&before, &rest, path, at, 1, 0, &what);
                } else {
                    assert_eq!(before, rest, "{what}");
                }
            }
        }
        if dice.roll(3) == 0 {
            home.memory.undo().await.unwrap();
            let mut back = files(&home.vault());
            if !before.contains_key(&PathBuf::from("new.md")) {
                back.remove(&PathBuf::from("new.md"));
            }
            if other.is_none() || removed == 0 {
                assert_eq!(before, back, "{what}: undone");
            }
        }
    }
    assert!(done > refused * 2, "{done} done, {refused} refused");
    assert_eq!(home.read("keep.md"), "keep\r\n\r\n- [ ] keep me\r\n");
}
