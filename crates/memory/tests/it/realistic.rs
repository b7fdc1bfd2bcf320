//! A vault as people have them, and a thousand operations in it: each does what it says and not a
//! byte more, and what it did can be taken back to the byte.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use adjutant_memory::{Cause, MemoryOptions, NoteFilter};
use jiff::ToSpan;

use crate::harness::{Dice, Home, tokens};
use crate::size;

/// Text as it stands in people's notes, daily notes among them. `\n` may become `\r\n`.
const TEXTS: &[&str] = &[
    "",
    "\n",
    "no final line ending",
    "\u{FEFF}# With a byte order mark\n\ntext\n",
    "---\ntags: [a, \"b c\"]\naliases:\n  - x\n---\n# Title\n\n---\n\ntext\n---\n",
    "---\n? complex key\n: &anchor [1, 2]\nother: *anchor\nmulti: |\n  type: memory\n  ---\nempty:\n---\n\nbody\n",
    "---\nbroken: [yaml\n\"unclosed: x\n---\nbody\n",
    "---\ntype: memory\n",
    "---\n---\n",
    "+++\ntitle = \"Hugo\"\n+++\n\ntext\n",
    "# Log\n\n> [!note]- Callout\n> # Key Facts\n> ## Log\n> - inside\n\n## Log\n\n- 09:00 early\n\t- tab\n\n      deep\n",
    "# Day\n\n```md\n# Key Facts\n## Important\n## Log\n- in code\n```\n\n~~~~\n## Log\n```\n~~~~\ntext\n",
    "## LOG ##\n* star\n* [ ] task\n  - [x] done\n\n1. one\n2. two\n\n## Log\n\ntwice\n",
    "Log\n===\n\nsetext\n\nEvening\n-------\n\n- x\n",
    "<!-- a comment\n## Log\n-->\n\n<details>\n<summary>s</summary>\n\n## Log\n\n- in html\n\n</details>\n",
    "%%\n## Log\n- hidden\n%%\n\ntext %%inline%% more\n",
    "| a | b |\n|---|---|\n| ## Log | x |\n\n[^1]: foot\n    ## Log\n\n$$\n## Log\n$$\n",
    "- a\n- b\n\n  ## Log\n\n- c\n   1. d\n      ```\n      ## Log\n      ```\n",
    "text with trailing spaces   \t \n\n\n\n\nmany blank lines\n\n\n\n",
    "#tag #nested/tag\n[[Link|shown]] ![[embed.png]] ^block\n\n***\n___\n* * *\n",
    "عربى ‏נִקּוּד‎ हिन्दी 日本語 e\u{301} 🎉👩‍👩‍👧\u{200D}\n\n## Log\n\n- ١٢:٠٠ x\n",
    "mixed\r\nline\nends\r\n\r\n## Log\n- a\r\n- b\n",
    "old mac\rline ends\r## Log\r- x\r",
    "## Log\n- last line open",
    "## Log\n\n```sh\nclosed\n```",
    "```\nnever closed\n## Log\n",
    "text\n<!-- never closed\n## Log\n",
    "text %% never closed\n",
    "\t## Log\n    ## Log\n   ## Log\n\n- three spaces are a heading\n",
    "## [[Log]]\n## **Log**\n## Log 📓\n## Log:\n\ntext\n",
    "form\u{c}feed and \u{b} tab and nul \0 and del \u{7f}\n\n## Log\n\n- \0\n",
    "<% tp.date.now() %>\n\n## Log\n\n{{date}}\n",
];

/// Facts as people write and rearrange them; `keep` marks what is no fact.
const FACTS: &[&str] = &[
    "# Key Facts\n\n## Important\n\n- Anna hat eine Katze\n* Борис любит чай #important\n+ 我住在上海\n\n## Recent\n\n- [2025-12-01] one two three\n- no date\n- [[2025-12-02]] linked date\n",
    "---\ntype: memory\ncreated: 2025-12-10T10:00:00\nmodified: 2025-12-10T14:30:00\ntags: [keep]\n---\nkeep intro\n\n# Key Facts\n\n## Recent\n- a fact\n    - keep below\n\n      keep paragraph below\n- [ ] keep task\n- [x] keep done\n\n1. keep numbered\n\n## Important\n\nkeep text\n\n- Last section first\n",
    "---\ntype: 'memory' # keep\nmodified:\n---\n# key facts #\n## IMPORTANT ##\n-   spaced mark\n-\ttab mark\n\n> keep quote\n> - keep\n\n## Recent\n```\n# Key Facts\n## Important\n- keep code\n```\n<!--\n- keep comment\n-->\n- after the comment",
    "Key Facts\n=========\n\nImportant\n---------\n\n- setext\n\nRecent\n------\n- x y z\n\n***\n\n## keep Family\n\n- keep fact-like\n\n# keep Other\n\n- keep\n",
    "\u{FEFF}# Key Facts\r\n\r\n## Important\r\n\r\n- windows fact #important\r\n\r\n## Recent\r\n\r\n- [2025-11-30] mixed\n- ends\r\n  lazily keep\r\n",
    "# keep Notes\n\n```\n# Key Facts\n```\n\n# Key Facts\n\n# Key Facts\n\n## Recent\n\n- keep in the second\n",
    "%%\n# Key Facts\n## Recent\n- keep hidden\n%%\n\nkeep\n",
    "# Key Facts\n## Recent\n- same\n- same\n- Same\n- [2025-12-03] same\n",
    "",
    "keep only text, no final end",
];

fn with_returns(text: &str, dice: &mut Dice) -> String {
    if dice.roll(3) == 0 {
        text.replace("\r\n", "\n").replace('\n', "\r\n")
    } else {
        text.to_owned()
    }
}

/// A vault of so many notes.
fn build(home: &Home, notes: usize, dice: &mut Dice) {
    let folders = [
        "",
        "Projekte/Über uns/",
        "日記/",
        "Cafe\u{301} NFD/",
        "📁 Emoji/",
        "a.b/c-d_e/",
        "Sehr/tief/unten/hier/",
    ];
    for folder in folders {
        fs::create_dir_all(home.vault().join(folder)).unwrap();
    }
    for number in 0..notes {
        let folder = folders[number % folders.len()];
        let text = with_returns(TEXTS[dice.roll(TEXTS.len() as u64) as usize], dice);
        let odd = [
            "Notiz",
            "note e\u{301}",
            "NOTE",
            "n.o.t.e",
            "🎉",
            "「メモ」",
            "it's (1) & more",
        ];
        let name = format!("{} {number}.md", odd[dice.roll(odd.len() as u64) as usize]);
        fs::write(home.vault().join(folder).join(name), text).unwrap();
    }
    for (path, bytes) in [
        (".obsidian/app.json", "{\"x\":1}"),
        (".obsidian/workspace.json", "{"),
        (".obsidian/plugins/dataview/main.js", "code"),
        (
            ".obsidian/daily-notes.json",
            "{\"folder\":\"Tage\",\"format\":\"YYYY/MM/YYYY-MM-DD\",\"template\":\"Vorlagen/Tag\"}",
        ),
        (".trash/old.md", "# Key Facts\n"),
        (".git/HEAD", "ref"),
        (".stfolder/x", ""),
        (
            "Vorlagen/Tag.md",
            "---\r\ndate: {{date}}\r\n---\r\n# {{title}}\r\n\r\n## Log\r\n\r\n## Abend\r\n",
        ),
        ("attachments/picture.PNG", "\u{89}PNG\r\n\u{1a}"),
        (
            "drawing.excalidraw.md",
            "---\nexcalidraw-plugin: parsed\n---\n%%\n# Drawing\n```json\n{}\n```\n%%",
        ),
        ("board.canvas", "{}"),
        ("conflict.sync-conflict-20251210-1.md", "x"),
    ] {
        home.write(path, bytes);
    }
    home.write("latin1.md", b"caf\xe9\n");
    for (number, text) in TEXTS.iter().enumerate() {
        // The days of December that will be logged to, in each of the shapes.
        home.write(&format!("Tage/2025/12/2025-12-{:02}.md", number + 1), text);
    }
}

/// The identity of a file: its bytes, when it was written, its mode and its place.
#[derive(PartialEq, Eq, Debug, Clone)]
struct State {
    bytes: Vec<u8>,
    modified: SystemTime,
    mode: u32,
}

fn states(folder: &Path) -> BTreeMap<PathBuf, State> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap().flatten() {
            let about = entry.metadata().unwrap();
            if about.is_dir() {
                folders.push(entry.path());
                continue;
            }
            #[cfg(unix)]
            let mode = std::os::unix::fs::PermissionsExt::mode(&about.permissions());
            #[cfg(not(unix))]
            let mode = u32::from(about.permissions().readonly());
            let bytes = fs::read(entry.path()).unwrap();
            let state = State {
                bytes,
                modified: about.modified().unwrap(),
                mode,
            };
            found.insert(entry.path().strip_prefix(folder).unwrap().to_owned(), state);
        }
    }
    found
}

/// Returns true if `after` is `before` with text inserted at one position.
fn is_insertion(before: &str, after: &str) -> bool {
    let same = |one: &mut dyn Iterator<Item = u8>, other: &mut dyn Iterator<Item = u8>| {
        one.zip(other)
            .take_while(|(one, other)| one == other)
            .count()
    };
    let head = same(&mut before.bytes(), &mut after.bytes());
    let tail = same(&mut before.bytes().rev(), &mut after.bytes().rev());
    after.len() >= before.len() && head + tail >= before.len()
}

/// Without the value that is ours to change.
fn untouched(text: &str) -> String {
    let value = |line: &str| {
        let end = if line.ends_with("\r\n") { "\r\n" } else { "\n" };
        if line.starts_with("modified:") {
            format!("modified:{end}")
        } else {
            line.to_owned()
        }
    };
    text.split_inclusive('\n').map(value).collect()
}

fn read(home: &Home, path: &str) -> Option<String> {
    let bytes = fs::read(home.vault().join(path)).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Folders where something is written: nothing but notes may ever be in them.
fn no_temporary_file(home: &Home) {
    for folder in ["", "memory", "Tage", "Tage/2025/12", "Neu", "📁 Emoji"] {
        for entry in fs::read_dir(home.vault().join(folder))
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            assert!(
                !name.starts_with(".adjutant") && !name.ends_with(".tmp"),
                "{folder}/{name}"
            );
        }
    }
}

#[tokio::test]
async fn many_operations_among_many_notes() {
    let home = Home::with(MemoryOptions {
        max_facts: 40,
        ..MemoryOptions::default()
    });
    let mut dice = Dice(0xD1A4A);
    build(&home, size::cases(10_000, 2_000), &mut dice);
    home.write("memory/facts.md", FACTS[0]);
    let before = states(&home.vault());
    let mut addressed: BTreeSet<PathBuf> = BTreeSet::from([PathBuf::from("memory/facts.md")]);
    let names: Vec<String> = before
        .keys()
        .map(|path| path.to_string_lossy().into_owned())
        .filter(|path| path.ends_with(".md") && !path.starts_with(['.', 'm', 'T', 'V']))
        .collect();
    let (facts, notes, me) = (
        home.memory.facts(),
        home.memory.notes().unwrap(),
        Cause::person(),
    );
    let mut done = BTreeMap::<&str, usize>::new();
    for number in 0..size::cases(1_000, 300) {
        let kind = dice.roll(16);
        match kind {
            0..=5 => {
                let old = read(&home, "memory/facts.md").unwrap();
                let words = format!(
                    "w{number}a w{number}b w{number}c {}",
                    ["ü", "漢字", "#tag", "# x", "- y"][number % 5]
                );
                let some = facts.list().await.unwrap();
                let which = some
                    .get(dice.roll(some.len().max(1) as u64) as usize)
                    .map(|fact| fact.content.clone());
                let change = match (kind, which) {
                    (0..=2, _) | (_, None) => facts
                        .add(&words, dice.roll(3) == 0, &me)
                        .await
                        .map(|_| "remember"),
                    (3, Some(known)) => facts
                        .add(&format!("{known} {known}!"), false, &me)
                        .await
                        .map(|_| "correct"),
                    (4, Some(known)) => facts
                        .edit(&known, Some(&words), Some(dice.roll(2) == 0), &me)
                        .await
                        .map(|_| "edit"),
                    (_, Some(known)) => facts.forget(&known, &me).await.map(|_| "forget"),
                };
                let new = read(&home, "memory/facts.md").unwrap();
                let hint = || format!("{number}: {change:?}\n--- before\n{old}\n--- after\n{new}");
                let Ok(change) = change else {
                    assert_eq!(old, new, "{}", hint());
                    continue;
                };
                *done.entry(change).or_default() += 1;
                if change == "remember" {
                    assert!(
                        is_insertion(&untouched(&old), &untouched(&new)),
                        "{}",
                        hint()
                    );
                }
                let keeps = |text: &str| -> Vec<String> {
                    text.lines()
                        .filter(|line| line.contains("keep"))
                        .map(|line| line.trim_end().to_owned())
                        .collect()
                };
                // What hangs below a fact goes with it; everything else that is the owner's stays.
                // A line that was moved by hand out of its comment is a fact as good as any.
                let is_fact = |line: &String| some.iter().any(|fact| line.contains(&fact.content));
                let below = |line: &String| {
                    !line.contains("below") && !line.contains("lazily") && !is_fact(line)
                };
                assert_eq!(
                    keeps(&old).into_iter().filter(below).collect::<Vec<_>>(),
                    keeps(&new).into_iter().filter(below).collect::<Vec<_>>(),
                    "{}",
                    hint()
                );
                if old != new && dice.roll(2) == 0 {
                    home.memory
                        .undo()
                        .await
                        .unwrap_or_else(|error| panic!("{error}: {}", hint()));
                    let undone = read(&home, "memory/facts.md").unwrap();
                    assert_eq!(undone, old, "{}", hint());
                    *done.entry("undo").or_default() += 1;
                }
            }
            6 => {
                // The owner puts another file there, or moves the lines of this one about.
                let text = read(&home, "memory/facts.md").unwrap();
                let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
                if dice.roll(2) == 0 && lines.len() > 3 {
                    let (one, other) = (
                        dice.roll(lines.len() as u64 - 1),
                        dice.roll(lines.len() as u64 - 1),
                    );
                    lines.swap(one as usize, other as usize);
                    home.write("memory/facts.md", lines.concat());
                } else {
                    home.write(
                        "memory/facts.md",
                        with_returns(FACTS[dice.roll(FACTS.len() as u64) as usize], &mut dice),
                    );
                }
                // It counts at once, and reading changes nothing.
                let text = read(&home, "memory/facts.md").unwrap();
                facts.list().await.unwrap();
                facts.instruction(&tokens).await.unwrap();
                assert_eq!(read(&home, "memory/facts.md").unwrap(), text);
            }
            7..=10 => {
                let day = dice.roll(TEXTS.len() as u64 + 3) as i64 + 1;
                let today = home.time.lock().unwrap().clone();
                let start: jiff::Zoned = "2025-12-01T08:00:00[Europe/Berlin]".parse().unwrap();
                *home.time.lock().unwrap() = start
                    .checked_add((day - 1).days().minutes(number as i64 % 600))
                    .unwrap();
                let path = format!(
                    "Tage/{}.md",
                    home.time.lock().unwrap().strftime("%Y/%m/%Y-%m-%d")
                );
                let old = read(&home, &path);
                let words = format!("op{number}\n- more\n\n```\ncode");
                let written = notes
                    .write_daily(&words, (number % 2 == 0).then_some("Titel"), &me)
                    .await;
                *home.time.lock().unwrap() = today;
                let new = read(&home, &path);
                let hint =
                    || format!("{number}: {written:?}\n--- before\n{old:?}\n--- after\n{new:?}");
                match (&written, &old, &new) {
                    (Ok(written), Some(old), Some(new)) => {
                        assert_eq!(written.file_path, path);
                        assert!(
                            is_insertion(old, new) && new.contains(&format!("op{number}")),
                            "{}",
                            hint()
                        );
                    }
                    (Ok(_), None, Some(new)) => {
                        assert!(
                            new.contains("# 20") && new.contains("\r\n## Abend\r\n"),
                            "{}",
                            hint()
                        );
                    }
                    (Err(_), old, new) => assert_eq!(old, new, "{}", hint()),
                    _ => panic!("{}", hint()),
                }
                if written.is_ok() {
                    *done.entry("daily").or_default() += 1;
                    addressed.insert(PathBuf::from(&path));
                    if dice.roll(3) == 0 {
                        home.memory
                            .undo()
                            .await
                            .unwrap_or_else(|error| panic!("{error}: {}", hint()));
                        assert_eq!(read(&home, &path), old, "{}", hint());
                        *done.entry("undo").or_default() += 1;
                    }
                }
            }
            11 => {
                let name = format!("Neu/op {}", dice.roll(60));
                let path = format!("{name}.md");
                let old = read(&home, &path);
                let written = notes.write(&name, "# New\n\n```\nopen", false, &me).await;
                assert_eq!(written.is_ok(), old.is_none(), "{written:?}");
                assert_eq!(
                    read(&home, &path),
                    Some(old.unwrap_or_else(|| "# New\n\n```\nopen\n".to_owned()))
                );
                addressed.insert(PathBuf::from(path));
                *done.entry("write").or_default() += 1;
            }
            12 | 13 => {
                let name = &names[dice.roll(names.len() as u64) as usize];
                let old = read(&home, name).unwrap();
                let written = notes
                    .write(name, &format!("op{number}\n\n- x"), true, &me)
                    .await;
                let new = read(&home, name).unwrap();
                let hint = || {
                    format!("{number} {name}: {written:?}\n--- before\n{old:?}\n--- after\n{new:?}")
                };
                if written.is_err() {
                    assert_eq!(old, new, "{}", hint());
                    continue;
                }
                assert!(
                    new.starts_with(&old) && new.contains(&format!("op{number}")),
                    "{}",
                    hint()
                );
                *done.entry("append").or_default() += 1;
                addressed.insert(PathBuf::from(name));
                if dice.roll(2) == 0 {
                    home.memory
                        .undo()
                        .await
                        .unwrap_or_else(|error| panic!("{error}: {}", hint()));
                    assert_eq!(read(&home, name).unwrap(), old, "{}", hint());
                    *done.entry("undo").or_default() += 1;
                }
            }
            14 => {
                // Whatever comes next in the history: it says what it did, or that the owner was
                // there.
                let _ = home.memory.undo().await;
            }
            _ => {
                let filter = NoteFilter {
                    folder: "日記".to_owned(),
                    limit: 5,
                    ..NoteFilter::default()
                };
                assert!(notes.search("text", &filter).await.unwrap().total > 0);
                assert!(notes.list(&filter).await.unwrap().total > size::cases(1_000, 200));
                *done.entry("search").or_default() += 1;
            }
        }
        no_temporary_file(&home);
    }
    let after = states(&home.vault());
    for (path, state) in &before {
        let now = after
            .get(path)
            .unwrap_or_else(|| panic!("{} is gone", path.display()));
        let is_addressed = addressed.contains(path);
        assert!(
            is_addressed || now == state,
            "{} was not addressed and has changed",
            path.display()
        );
        assert_eq!(now.mode, state.mode, "{}", path.display());
    }
    let new: Vec<_> = after
        .keys()
        .filter(|path| !before.contains_key(*path) && !addressed.contains(*path))
        .collect();
    assert!(new.is_empty(), "{new:?}");
    assert_eq!(
        fs::read_dir(home.folder.path().join("work"))
            .unwrap()
            .count(),
        0,
        "nothing is left behind"
    );
    for what in [
        "remember", "correct", "edit", "forget", "undo", "daily", "write", "append", "search",
    ] {
        assert!(
            done.get(what).copied().unwrap_or_default() >= size::cases(10, 2),
            "{done:?}"
        );
    }
}
