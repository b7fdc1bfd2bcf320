//! The program at its boundary: folders in, figures and errors out.
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_memory-eval"))
        .args(arguments)
        .output()
        .unwrap()
}

/// Runs it over a folder, which it must measure.
fn figures(folder: &Path) -> Value {
    let output = run(&[folder.to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs it over a folder that it cannot measure. Returns its words.
fn fails(folder: &Path) -> String {
    let output = run(&[folder.to_str().unwrap(), "--json"]);
    let words = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    assert!(words.contains("\ntry: "), "{words}");
    words
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn sets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sets")
}

/// A copy of the sets, to be changed.
fn copied() -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut left = vec![PathBuf::new()];
    while let Some(at) = left.pop() {
        fs::create_dir_all(folder.path().join(&at)).unwrap();
        for entry in fs::read_dir(sets().join(&at)).unwrap() {
            let at = at.join(entry.as_ref().unwrap().file_name());
            match entry.unwrap().file_type().unwrap().is_dir() {
                true => left.push(at),
                false => drop(fs::copy(sets().join(&at), folder.path().join(&at)).unwrap()),
            }
        }
    }
    folder
}

#[test]
fn the_figures_are_shares_of_one_under_their_names() {
    let output = run(&[sets().to_str().unwrap(), "--json"]);
    let message = text(&output.stderr);
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut names: Vec<&String> = figures.as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(
        names,
        [
            "facts_at_10",
            "facts_at_20",
            "facts_told",
            "notes_at_10",
            "notes_at_5",
            "past_at_5",
            "questions",
            "told_tokens_mean"
        ]
    );
    // Six questions have evidence. Of the four about facts one needs a fact that is not there, of
    // the six about notes one a note that is not there, and one has no word.
    assert_eq!(figures["questions"], 6);
    assert_eq!(
        (&figures["facts_at_10"], &figures["facts_at_20"]),
        (&0.75.into(), &0.75.into())
    );
    for name in ["notes_at_5", "notes_at_10", "past_at_5"] {
        assert!(
            (figures[name].as_f64().unwrap() - 4.0 / 6.0).abs() < 1e-9,
            "{name}: {figures}"
        );
    }
    let tokens = figures["told_tokens_mean"].as_f64().unwrap();
    assert!(tokens > 0.0 && tokens < 350.0, "{tokens}");
    assert!(
        message.contains("needs the note \"gone.md\"") && message.contains("any of the facts [99]"),
        "{message}"
    );
}

#[test]
fn one_set_may_be_named_and_is_reported_as_text() {
    let output = run(&[sets().join("anna").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let words = text(&output.stdout);
    assert!(
        words.starts_with(
            "facts attached for 3 questions: 66.7 % of 10, 66.7 % of 20, 66.7 % in a turn; "
        ),
        "{words}"
    );
    assert!(
        words.contains("\nnotes found for 4 questions: 75.0 % of 5, 75.0 % of 10\n"),
        "{words}"
    );
    assert!(
        words.ends_with("\n5 facts remembered, 0 replaced by a later one\n"),
        "{words}"
    );
}

#[test]
fn the_plain_facts_of_the_repository_are_all_told() {
    let set = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../evals/plain-facts");
    let output = run(&[set.to_str().unwrap()]);
    let words = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        words.starts_with("facts attached for 34 questions:")
            && words.contains("100.0 % in a turn")
            && words.contains("\n30 facts remembered"),
        "{words}"
    );
}

#[test]
fn line_endings_other_files_and_refused_facts_change_no_figure() {
    let folder = copied();
    let at = |path: &str| folder.path().join(path);
    let expected = figures(folder.path());
    for file in [
        "anna/facts.jsonl",
        "anna/questions.jsonl",
        "anna/notes/2026-02-10 session 2.md",
    ] {
        let lines = fs::read_to_string(at(file)).unwrap().replace('\n', "\r\n");
        let mark = if file.ends_with(".jsonl") {
            "\u{feff}"
        } else {
            ""
        };
        fs::write(at(file), format!("{mark}{lines}\r\n")).unwrap();
    }
    fs::create_dir(at("pictures")).unwrap();
    fs::write(at("README.md"), "Two sets.").unwrap();
    fs::write(at("anna/notes/.hidden"), "x").unwrap();
    fs::write(at("anna/notes/list.txt"), "x").unwrap();
    fs::write(at("anna/more.jsonl"), "no JSON").unwrap();
    assert_eq!(figures(folder.path()), expected);

    // A fact that no memory keeps is reported, and the others are measured.
    let long = format!(
        "{{\"id\": 50, \"created\": \"2026-05-01\", \"fact\": \"{}\"}}\n",
        "long ".repeat(400)
    );
    let facts = fs::read_to_string(at("bert/facts.jsonl")).unwrap() + &long;
    fs::write(at("bert/facts.jsonl"), facts).unwrap();
    let output = run(&[folder.path().to_str().unwrap(), "--json"]);
    assert_eq!(
        serde_json::from_slice::<Value>(&output.stdout).unwrap(),
        expected
    );
    assert!(
        text(&output.stderr).contains("fact 50 is not remembered: "),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_missing_or_broken_file_is_named_with_its_place_and_a_next_step() {
    for lacks in ["facts.jsonl", "questions.jsonl", "notes"] {
        let folder = copied();
        let path = folder.path().join("bert").join(lacks);
        match path.is_dir() {
            true => fs::remove_dir_all(&path).unwrap(),
            false => fs::remove_file(&path).unwrap(),
        }
        let words = fails(folder.path());
        assert!(
            words.contains(&format!("{}: it cannot be read: ", path.display())),
            "{words}"
        );
    }
    for (file, line) in [
        (
            "facts.jsonl",
            "{\"id\": 8, \"created\": \"2026-04-01\", \"fact\": \"cut o",
        ),
        (
            "facts.jsonl",
            "{\"id\": 8, \"created\": \"in spring\", \"fact\": \"Bert\"}",
        ),
        ("questions.jsonl", "{\"query\": \"What?\"}"),
        ("questions.jsonl", "[]"),
    ] {
        let folder = copied();
        let path = folder.path().join("bert").join(file);
        let lines = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{lines}\n{line}\n")).unwrap();
        let words = fails(folder.path());
        let place = format!(
            "{}:{}: the line cannot be read: ",
            path.display(),
            lines.lines().count() + 2
        );
        assert!(words.contains(&place), "{words}");
    }
    let folder = TempDir::new().unwrap();
    assert!(fails(folder.path()).contains("there is no set in it"));
    assert!(fails(&folder.path().join("gone")).contains("it cannot be read: "));
    assert!(fails(&sets().join("bert/facts.jsonl")).contains("it cannot be read: "));
    let unasked = copied();
    fs::write(unasked.path().join("anna/questions.jsonl"), "").unwrap();
    assert!(fails(&unasked.path().join("anna")).contains("nothing to measure"));
}

#[test]
fn it_says_how_it_is_called() {
    for asks in ["--help", "-h"] {
        let output = run(&[asks]);
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
        let help = text(&output.stdout);
        for part in [
            "memory-eval FOLDER [--json]",
            "facts_any_of_each",
            "It ends with 0",
        ] {
            assert!(help.contains(part), "{help}");
        }
    }
    for (wrong, message) in [
        (&[][..], "one folder is measured, 0 are named"),
        (&["one", "two"], "one folder is measured, 2 are named"),
        (&["one", "--jsonl"], "there is no option --jsonl"),
    ] {
        let output = run(wrong);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        assert!(
            text(&output.stderr).starts_with(message),
            "{}",
            text(&output.stderr)
        );
    }
}
