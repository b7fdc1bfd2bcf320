//! Two processes at once, one that is killed, and one that may not write another byte. The other
//! process is the example `vault`, which is built with the tests.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::harness::{Home, files};

/// Beside this binary's folder, where cargo puts examples.
fn example() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let path = here
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples")
        .join(format!("vault{}", std::env::consts::EXE_SUFFIX));
    assert!(
        path.exists(),
        "build it first: cargo build -p adjutant-memory --example vault"
    );
    path
}

fn start(home: &Home, command: &str) -> Child {
    Command::new(example())
        .args([
            home.vault(),
            home.folder.path().join("work"),
            PathBuf::from(command),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Feeds lines and waits for the end; gives what it said.
fn feed(mut child: Child, lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut input = child.stdin.take().unwrap();
    for line in lines {
        writeln!(input, "{line}").unwrap();
    }
    drop(input);
    let said = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap)
        .collect();
    assert!(child.wait().unwrap().success());
    said
}

fn fact(writer: &str, number: usize) -> String {
    format!("{writer}{number}x {writer}{number}y {writer}{number}z")
}

/// Lists the vault again and again until it is stopped, and returns every name it saw.
fn watch(
    vault: &Path,
    stop: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<std::collections::BTreeSet<PathBuf>> {
    let (vault, stop) = (vault.to_owned(), stop.clone());
    std::thread::spawn(move || {
        let mut seen = std::collections::BTreeSet::new();
        while !stop.load(Ordering::Relaxed) {
            let mut folders = vec![vault.clone()];
            while let Some(folder) = folders.pop() {
                for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                    if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                        folders.push(entry.path());
                    } else {
                        seen.insert(entry.path().strip_prefix(&vault).unwrap().to_owned());
                    }
                }
            }
        }
        seen
    })
}

#[tokio::test]
async fn two_processes_lose_nothing_and_no_watcher_sees_a_temporary_file() {
    let home = Home::new();
    let stop = Arc::new(AtomicBool::new(false));
    let watcher = watch(&home.vault(), &stop);
    let writers: Vec<_> = ["remember", "remember", "log", "log"]
        .into_iter()
        .enumerate()
        .map(|(number, command)| {
            let child = start(&home, command);
            std::thread::spawn(move || {
                feed(child, (0..25).map(|line| fact(&format!("w{number}"), line)))
            })
        })
        .collect();
    for writer in writers {
        assert_eq!(writer.join().unwrap().len(), 25);
    }
    stop.store(true, Ordering::Relaxed);
    let seen = watcher.join().unwrap();
    assert_eq!(home.contents().await.len(), 50, "{}", home.facts());
    let entries: usize = files(&home.vault())
        .iter()
        .filter(|(path, _)| !path.starts_with("memory"))
        .map(|(_, bytes)| {
            String::from_utf8_lossy(bytes)
                .lines()
                .filter(|line| line.starts_with("- "))
                .count()
        })
        .sum();
    assert_eq!(entries, 50);
    assert!(
        seen.iter()
            .all(|path| path.extension().is_some_and(|end| end == "md")),
        "{seen:?}"
    );
    assert_eq!(
        fs::read_dir(home.folder.path().join("work"))
            .unwrap()
            .count(),
        0,
        "nothing is left behind"
    );
}

#[tokio::test]
async fn a_killed_process_leaves_the_old_file_or_the_new_one() {
    let home = Home::new();
    let before = "# Key Facts\n\nkeep\n\n## Recent\n\n- [2025-12-01] keep\n";
    home.write("memory/facts.md", before);
    let mut reported = Vec::new();
    for round in 0..25usize {
        let name = format!("r{round}n");
        let mut child = start(&home, "remember");
        let mut input = child.stdin.take().unwrap();
        for line in 0..40 {
            writeln!(input, "{}", fact(&name, line)).unwrap();
        }
        // Killed while it is busy with a line that was not answered yet.
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in 0..round % 7 {
            said.next().unwrap().unwrap();
            reported.push(fact(&name, line));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let text = home.facts();
        assert!(text.starts_with(before) && text.ends_with('\n'), "{text:?}");
        let facts = home.contents().await;
        assert!(
            reported.iter().all(|fact| facts.contains(fact)),
            "what was reported is there"
        );
        // Each line is whole, and they are in order without a gap.
        for (number, line) in facts
            .iter()
            .filter(|fact| fact.starts_with(&name))
            .enumerate()
        {
            assert_eq!(*line, fact(&name, number));
        }
        assert_eq!(
            files(&home.vault()).len(),
            1,
            "no temporary file in the vault"
        );
    }
    home.remember("and it goes on").await;
    assert!(
        fs::read_dir(home.folder.path().join("work"))
            .unwrap()
            .count()
            == 0,
        "what was left is cleared away"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn two_processes_and_an_editor_lose_no_line_of_a_note() {
    const EACH: usize = 25;
    let home = Home::new();
    let task = |writer: usize, number: usize| format!("w{writer} task {number}");
    let all = (0..2).flat_map(|writer| (0..EACH).map(move |number| (writer, number)));
    let text: String = all
        .clone()
        .map(|(writer, number)| format!("- [ ] {}\n", task(writer, number)))
        .collect();
    home.write("tasks.md", &text);
    let stop = Arc::new(AtomicBool::new(false));
    // Appends, as a program does that has a line to add: whatever the note is by then.
    let editor = {
        use std::os::unix::fs::MetadataExt;
        let (path, stop) = (home.vault().join("tasks.md"), stop.clone());
        std::thread::spawn(move || {
            let mut written = 0;
            // The note stays one that is read at once.
            while !stop.load(Ordering::Relaxed) && written < 500 {
                let mut note = fs::OpenOptions::new().append(true).open(&path).unwrap();
                note.write_all(format!("- [ ] edited {written} ü\n").as_bytes())
                    .unwrap();
                // Stopped by the system between opening and writing for so long that the file was
                // given up meanwhile: that cannot be noticed by who replaces it.
                if note.metadata().unwrap().nlink() > 0 {
                    written += 1;
                }
                std::thread::yield_now();
            }
            written
        })
    };
    let writers = ["complete", "delete"]
        .into_iter()
        .enumerate()
        .map(|(writer, command)| {
            let child = start(&home, command);
            std::thread::spawn(move || feed(child, (0..EACH).map(|number| task(writer, number))))
        });
    for writer in writers.collect::<Vec<_>>() {
        assert_eq!(writer.join().unwrap().len(), EACH);
    }
    stop.store(true, Ordering::Relaxed);
    let written = editor.join().unwrap();
    let now = home.read("tasks.md");
    let day = now
        .lines()
        .find_map(|line| line.split_once("✅ "))
        .unwrap()
        .1
        .to_owned();
    let mut expected: Vec<String> = (0..EACH)
        .map(|number| format!("- [x] {} ✅ {day}", task(0, number)))
        .collect();
    expected.extend((0..written).map(|number| format!("- [ ] edited {number} ü")));
    assert_eq!(now.lines().collect::<Vec<_>>(), expected);
}

#[cfg(unix)]
#[tokio::test]
async fn a_full_disk_loses_nothing() {
    let home = Home::new();
    let facts = format!(
        "# Key Facts\n\n{}\n\n## Recent\n\n- [2025-12-01] keep\n",
        "keep these words. ".repeat(1_000)
    );
    home.write("memory/facts.md", &facts);
    // No file may become larger than 8 KiB, which the system reports in the middle of the write, as
    // it does a full disk.
    let mut child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""])
        .arg(example())
        .args([
            home.vault(),
            home.folder.path().join("work"),
            PathBuf::from("remember"),
        ])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "one more").unwrap();
    let out = child.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && words.contains("Full"), "{words}");
    assert_eq!(home.facts(), facts);
    assert_eq!(files(&home.vault()).len(), 1);
    assert_eq!(
        fs::read_dir(home.folder.path().join("work"))
            .unwrap()
            .count(),
        0,
        "nothing is left behind"
    );
}
