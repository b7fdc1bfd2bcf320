//! Everything that was not addressed stays byte for byte, over a thousand operations in a large
//! vault.

use std::collections::BTreeMap;
use std::path::PathBuf;

use adjutant_memory::{Cause, MemoryOptions};
use jiff::ToSpan;

use crate::harness::{Dice, Home, files};

/// Text that may surround the facts in their file. Lines with "keep" are the owner's.
const AROUND: &str = "---\ntype: memory\ncreated: 2025-12-10T10:00:00\nmodified: 2025-12-10T14:30:00 \ntags: [keep, \"ü\"]\n---\n\
keep text\twith tab  \n\n```md\n# Key Facts\n- keep in code\n```\n\n> [!note] keep callout\n> # Key Facts\n> - keep\n\n\
# Key Facts\n\nkeep intro\n\n## Important\n\n*   keep spaced mark #important\n- keep with below\n    - keep below\n\n## Recent\n\n\
- [2025-12-01]   keep dated  \n- keep last\n\n---\n\n- [ ] keep task\n\n1. keep numbered\n\n## keep Family\n\n- keep fact-like\n\n# keep Other\n\n---\nkeep end\n";

fn variants() -> Vec<(&'static str, String)> {
    vec![
        ("lf", AROUND.to_owned()),
        ("crlf", AROUND.replace('\n', "\r\n")),
        ("bom", format!("\u{FEFF}{}", AROUND.replace('\n', "\r\n"))),
        ("no final line ending", AROUND.trim_end().to_owned()),
    ]
}

/// The owner's lines, byte for byte: those without our words and without `modified`. Blank lines
/// may be ours.
fn owners(text: &str) -> Vec<&str> {
    text.split_inclusive('\n')
        .filter(|line| {
            !line.contains("op") && !line.starts_with("modified:") && !line.trim().is_empty()
        })
        .collect()
}

#[tokio::test]
async fn a_thousand_random_operations_change_nothing_else() {
    for (seed, (name, facts)) in variants().into_iter().enumerate() {
        let home = Home::with(MemoryOptions {
            max_facts: 60,
            ..MemoryOptions::default()
        });
        home.write("memory/facts.md", &facts);
        home.write(
            ".obsidian/daily-notes.json",
            r#"{"folder":"Tage","template":"keep/Vorlage"}"#,
        );
        home.write("keep/Vorlage.md", "# {{title}}\r\nkeep {{date}}\r\n");
        let daily = "keep morning\n\n## log\n\n- keep entry\n\n%% keep\n## Log\n%%\n\n## keep Evening\n---\nkeep\n";
        let daily = if seed % 2 == 1 {
            daily.replace('\n', "\r\n")
        } else {
            daily.to_owned()
        };
        home.write("Tage/2025-12-10.md", &daily);
        home.write("Tage/2025-12-11.md", &daily);
        for number in 0..100 {
            home.write(
                &format!("Notizen ü/Seite {number}.md"),
                format!("\u{FEFF}---\r\nx: 1\r\n---\r\n- keep {number}\t \r\n---"),
            );
        }
        home.write("bytes.md", b"\xff\xfe\0keep");
        let before = files(&home.vault());
        let touched = |path: &PathBuf| {
            let path = path.to_string_lossy();
            path.starts_with("memory/") || path.starts_with("Tage/") || path.starts_with("op")
        };

        operate(&home, &mut Dice(0x9E37_79B9 + seed as u64), 250).await;

        let after = files(&home.vault());
        let rest = |all: &BTreeMap<PathBuf, Vec<u8>>| -> BTreeMap<PathBuf, Vec<u8>> {
            all.iter()
                .filter(|(path, _)| !touched(path))
                .map(|(path, bytes)| (path.clone(), bytes.clone()))
                .collect()
        };
        assert!(
            rest(&before) == rest(&after),
            "{name}: a file that was not addressed has changed"
        );
        let now = home.facts();
        let (mut kept, mut original) = (owners(&now), owners(&facts));
        if name == "no final line ending" {
            assert_eq!(
                kept.pop().map(str::trim_end),
                original.pop().map(str::trim_end)
            );
        }
        assert_eq!(kept, original, "{name}");
        for day in ["Tage/2025-12-10.md", "Tage/2025-12-11.md"] {
            assert_eq!(owners(&home.read(day)), owners(&daily), "{name}: {day}");
        }
        assert!(now.matches("op").count() > 0, "something was written");
    }
}

/// The errors here (a limit, an ambiguous word, nothing to undo) is part of the game; what was
/// asked is checked by the tests of each operation.
async fn operate(home: &Home, dice: &mut Dice, count: usize) {
    let facts = home.memory.facts();
    let notes = home.memory.notes().unwrap();
    let me = Cause::person();
    for number in 0..count {
        let old = dice.roll(number as u64 + 1);
        match dice.roll(12) {
            0..=3 => {
                let important = dice.roll(4) == 0;
                let _ = facts
                    .add(
                        &format!("op{number}a op{number}b op{number}c {{ü}} # op"),
                        important,
                        &me,
                    )
                    .await;
            }
            4 => drop(
                facts
                    .add(&format!("op{old}a op{old}b op{old}c op{old}d"), false, &me)
                    .await,
            ),
            5 => drop(
                facts
                    .edit(
                        &format!("op{old}a"),
                        Some(&format!("op{old}a again op")),
                        Some(dice.roll(2) == 0),
                        &me,
                    )
                    .await,
            ),
            6 => drop(facts.forget(&format!("op{old}a"), &me).await),
            7 => drop(home.memory.undo().await),
            8 => drop(
                notes
                    .write_daily(&format!("op{number}\nop more"), None, &me)
                    .await,
            ),
            9 => {
                let day = if dice.roll(2) == 0 {
                    1.days()
                } else {
                    -1.days()
                };
                // To and fro between two days.
                let today = home.time.lock().unwrap().day();
                let day = match today {
                    10 => 1.days(),
                    11 => -1.days(),
                    _ => day,
                };
                home.later(day);
            }
            10 => drop(
                notes
                    .write(&format!("op{old}"), "op words", dice.roll(2) == 0, &me)
                    .await,
            ),
            _ => {
                // By hand: one of our facts gets other words, and they count.
                let text = home.facts();
                if let Some(line) = text
                    .lines()
                    .find(|line| line.contains("op") && line.starts_with("- ["))
                {
                    let changed = format!("{} ophand{number}", line.trim_end());
                    home.write("memory/facts.md", text.replacen(line, &changed, 1));
                    assert!(
                        home.contents()
                            .await
                            .iter()
                            .any(|fact| fact.contains(&format!("ophand{number}")))
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn ten_thousand_notes_are_searched_and_left_alone() {
    let home = Home::new();
    for folder in 0..100 {
        std::fs::create_dir_all(home.vault().join(format!("Ordner {folder}"))).unwrap();
        for number in 0..100 {
            let needle = if (folder, number) == (42, 7) {
                "needle"
            } else {
                "hay"
            };
            let text = format!(
                "---\ntags: [t{number}]\n---\n# Note {number}\n\n{}\n{needle} über [[Note {number}]]\n",
                "Lorem ipsum dolor sit amet. ".repeat(20)
            );
            std::fs::write(
                home.vault()
                    .join(format!("Ordner {folder}/Notiz {folder}-{number}.md")),
                text,
            )
            .unwrap();
        }
    }
    let filter = adjutant_memory::NoteFilter {
        limit: 20,
        ..Default::default()
    };
    let found = home
        .memory
        .notes()
        .unwrap()
        .search("NEEDLE über", &filter)
        .await
        .unwrap();
    assert_eq!(
        (found.total, found.notes[0].path.as_str()),
        (1, "Ordner 42/Notiz 42-7.md")
    );
    let found = home
        .memory
        .notes()
        .unwrap()
        .search("#t7", &filter)
        .await
        .unwrap();
    assert_eq!((found.total, found.cut.is_some()), (100, true));
    let before = files(&home.vault());
    home.remember("Josh has a cat").await;
    home.memory
        .notes()
        .unwrap()
        .write_daily("words", None, &Cause::person())
        .await
        .unwrap();
    assert_eq!(
        home.memory
            .notes()
            .unwrap()
            .read("Notiz 99-99", None)
            .await
            .unwrap()
            .path,
        "Ordner 99/Notiz 99-99.md"
    );
    let after = files(&home.vault());
    assert_eq!(after.len(), before.len() + 2);
    assert!(
        before
            .iter()
            .all(|(path, bytes)| after.get(path) == Some(bytes))
    );
}
