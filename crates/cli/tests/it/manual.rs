//! Completions and manual: made for every command, and right.

use std::process::{Command, Stdio};

use crate::harness::{Home, arg};

/// Returns the candidates that bash has for a line with the cursor at its end, after one Tab (9) or
/// two (63).
#[expect(
    clippy::disallowed_methods,
    reason = "bash is where whoever runs the tests has it"
)]
fn offered(home: &Home, words: &[&str], kind: &str) -> Vec<String> {
    let script = home.file("complete.bash", home.run(&["completions", "bash"]).stdout);
    let asked = "source \"$1\"; COMP_TYPE=$2; shift 2; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                 COMP_LINE=\"$*\"; COMP_POINT=${#COMP_LINE}; \
                 _adjutant adjutant; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_adjutant"))
        .parent()
        .unwrap();
    let mut bash = home.command_of(
        std::path::Path::new("bash"),
        &["--norc", "-c", asked, "bash"],
    );
    let usual = std::env::var("PATH").unwrap_or_default();
    bash.arg(&script)
        .arg(kind)
        .arg("adjutant")
        .args(words)
        .stderr(Stdio::inherit());
    bash.env("PATH", format!("{}:{usual}", program.display()));
    let output = bash.output().unwrap();
    let offered = String::from_utf8(output.stdout).unwrap();
    offered
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_shell_gets_a_script_and_bash_can_read_its_own() {
    let home = Home::new();
    for shell in ["elvish", "powershell"] {
        let run = home.run(&["completions", shell]).succeeds();
        for word in ["doctor", "no-input", "trust"] {
            assert!(run.stdout.contains(word), "{shell}: no {word}");
        }
    }
    for shell in ["bash", "zsh", "fish"] {
        let run = home.run(&["completions", shell]).succeeds();
        assert!(
            run.stdout.contains("adjutant") && run.stdout.len() < 10_000,
            "{shell}: {}",
            run.stdout.len()
        );
    }
    let script = home.file("complete.bash", home.run(&["completions", "bash"]).stdout);
    let status = Command::new("bash")
        .arg("-n")
        .arg(&script)
        .status()
        .unwrap();
    assert!(status.success());
    home.run(&["completions", "tcsh"]).ends_with(2);
}

#[test]
fn commands_and_options_are_completed() {
    let home = Home::new();
    assert_eq!(offered(&home, &["doc"], "9"), ["doctor"]);
    assert_eq!(offered(&home, &["--no-inp"], "9"), ["--no-input"]);
    assert!(offered(&home, &["config", ""], "9").contains(&"trust".to_owned()));
    assert_eq!(
        offered(&home, &["config", "get", "llm.temp"], "9"),
        ["llm.temperature"]
    );
    assert_eq!(offered(&home, &["keys", "set", "anth"], "9"), ["anthropic"]);
    assert_eq!(offered(&home, &["completions", "po"], "9"), ["powershell"]);
    // A prompt is anything.
    assert!(offered(&home, &["ask", "doc"], "9").is_empty());
}

#[test]
fn models_conversations_calls_and_tasks_are_completed() {
    let home = Home::new();
    home.add_task("buy milk");
    home.add_task("buy bread");
    let model = home.script(&[r#"{"calls": [{"name": "delete_task", "args": {"task_id": "1"}}]}"#]);
    let (_, asked) = home.ask(&model, "delete the milk");
    let conversation = asked["conversation"].as_str().unwrap();
    let short = &conversation[conversation.len() - 8..];
    assert_eq!(offered(&home, &["sessions", "show", ""], "9"), [short]);
    assert_eq!(offered(&home, &["-r", &short[..4]], "9"), [short]);
    let pending = offered(&home, &["pending", "approve", ""], "9");
    assert!(
        pending.len() == 1
            && asked["pending"][0]["call_id"]
                .as_str()
                .unwrap()
                .ends_with(&pending[0])
    );
    assert_eq!(offered(&home, &["tasks", "done", ""], "9"), ["2", "1"]);
    // The list that the second Tab shows says what each is.
    assert_eq!(
        offered(&home, &["tasks", "done", ""], "63"),
        ["2  (buy bread)", "1  (buy milk)"]
    );
    home.run(&["tasks", "done", "2"]).succeeds();
    assert_eq!(offered(&home, &["tasks", "done", ""], "9"), ["1"]);
    assert_eq!(offered(&home, &["tasks", "rm", ""], "9"), ["2", "1"]);

    home.file("config/adjutant/.env", "GEMINI_API_KEY=x\n");
    home.config("[gemini]\nmodel = \"gemini-a:b\"\n");
    let models = offered(&home, &["-m", ""], "9");
    assert!(
        models.contains(&"gemini/gemini-a:b".to_owned()) && models.contains(&"demo".to_owned()),
        "{models:?}"
    );
    assert!(
        !models.iter().any(|model| model.starts_with("anthropic")),
        "{models:?}"
    );
    // Bash takes what stands in front of a colon for a word of its own, and replaces only what
    // stands behind it.
    assert_eq!(offered(&home, &["-m", "gemini/gemini-a:"], "9"), ["b"]);
    assert_eq!(offered(&home, &["--model=gem"], "9"), ["gemini/gemini-a:b"]);
}

#[test]
fn files_are_completed_where_files_are_meant() {
    let home = Home::new();
    std::fs::write(home.path("project/reply.json"), "{}").unwrap();
    std::fs::create_dir(home.path("project/notes")).unwrap();
    assert_eq!(
        offered(&home, &["ask", "--schema", "re"], "9"),
        ["reply.json"]
    );
    assert_eq!(offered(&home, &["--vault", "no"], "9"), ["notes/"]);
    assert_eq!(offered(&home, &["eval", "re"], "9"), ["reply.json"]);
}

#[test]
fn completing_makes_nothing_and_what_is_broken_is_silence() {
    let home = Home::new();
    assert!(offered(&home, &["tasks", "done", ""], "9").is_empty());
    assert!(offered(&home, &["-r", ""], "9").is_empty());
    assert!(offered(&home, &["sessions", "show", ""], "9").is_empty());
    assert!(!home.path("data").exists() && !home.path("state").exists());
    home.config("not toml");
    assert!(offered(&home, &["-m", ""], "9").is_empty());
    std::fs::create_dir_all(home.path("data/adjutant")).unwrap();
    home.config("");
    let database = home.file("data/adjutant/adjutant.db", "");
    assert!(offered(&home, &["tasks", "done", ""], "9").is_empty());
    // An empty file is a database of no version: it is left as it is.
    assert_eq!(std::fs::metadata(database).unwrap().len(), 0);
}

#[test]
fn every_command_has_a_page() {
    let home = Home::new();
    let folder = home.path("man");
    home.run(&["man", arg(&folder)]).succeeds();
    for page in [
        "adjutant.1",
        "adjutant-doctor.1",
        "adjutant-config-trust.1",
        "adjutant-keys-set.1",
    ] {
        let text = std::fs::read_to_string(folder.join(page)).unwrap();
        assert!(text.contains(".TH adjutant"), "{page}");
    }
    assert!(home.run(&["man"]).succeeds().stdout.contains(".SH NAME"));
    home.file("taken", "");
    home.run(&["man", arg(&home.path("taken/x"))])
        .ends_with(1)
        .says("cannot be written");
}
