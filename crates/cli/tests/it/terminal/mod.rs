//! `adjutant` at a terminal: keys, Ctrl-C in every phase, pastes, signals, and what must never
//! reach the screen.

mod interrupts;
mod keys;
mod narrow;
pub(crate) mod pty;
mod slash_commands;
mod speed;
mod tmux;
mod together;
mod yes_no;

use expectrl::process::unix::Signal;

use crate::harness::{Home, arg};
use pty::{Kind, Terminal};

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";

/// A model that repeats each message, for ever.
const ECHO: &str = r#"{"text": "You said: {{input}}", "repeat": true}"#;

fn talking(home: &Home, script: &[&str]) -> Terminal {
    let model = home.script(script);
    let mut terminal = Terminal::start(home, &["-m", &model]);
    terminal.prompts_after("/help");
    terminal
}

/// Starts a chat whose external editor is this shell script.
fn talking_with_editor(home: &Home, answer: &str, editor: &str) -> Terminal {
    let model = home.script(&[answer]);
    let editor = home.file("editor.sh", editor);
    let mut command = home.command(&["-m", &model]);
    command
        .env("EDITOR", format!("sh {}", arg(&editor)))
        .env("PATH", "/usr/bin:/bin");
    let mut terminal = Terminal::of(command, Kind::Usual);
    terminal.prompts_after("/help");
    terminal
}

/// Starts an interactive shell, which can suspend its jobs.
fn shell(home: &Home) -> Terminal {
    let mut command = home.command_of(std::path::Path::new("/bin/bash"), &["--norc", "-i"]);
    command
        .env("PATH", "/usr/bin:/bin")
        .env("PS1", "shell> ")
        .env("PROGRAM", env!("CARGO_BIN_EXE_adjutant"));
    Terminal::of(command, Kind::Usual)
}

impl Terminal {
    /// Ends the chat with Ctrl-D, which is a success.
    #[track_caller]
    fn quits(&mut self) {
        self.keys(CTRL_D);
        self.ends_with(0);
    }
}

/// The messages that reached the log, oldest first.
fn messages(home: &Home) -> Vec<String> {
    let (_, decisions) = home.json(&["log", "list"]);
    let messages = decisions
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["message"].as_str().unwrap().to_owned());
    messages.rev().collect()
}

#[test]
fn the_first_five_minutes() {
    let home = Home::new();
    let mut terminal = Terminal::start(&home, &["-m", "demo"]);
    terminal
        .sees(concat!(
            "adjutant ",
            env!("CARGO_PKG_VERSION"),
            " · scripted/demo · ctx "
        ))
        .prompts_after("/help");
    terminal
        .line("add buy milk")
        .sees("⚙ add_task")
        .prompts_after("buy milk");
    terminal
        .line("/hlep")
        .sees("there is no command /hlep")
        .sees("try: /help")
        .prompts_after("try: /help");
    terminal
        .line("/usage")
        .sees("1 turn ·")
        .prompts_after("1 turn ·");
    terminal
        .line("/trace")
        .sees("add_task")
        .prompts_after("add_task");
    terminal
        .line("/tools")
        .sees("delete_task")
        .prompts_after("delete_task");
    terminal.quits();
    assert!(terminal.echoes(), "the terminal is as it was");
    assert_eq!(home.tasks(), ["buy milk"]);
}

#[test]
fn the_next_attempt_is_shown_when_it_begins() {
    let home = Home::new();
    let again = r#"{"fault": "rate_limit", "retry_after_s": 1}"#;
    let mut terminal = talking(&home, &[again, r#"{"fault": "stall"}"#]);
    terminal
        .line("hello")
        .sees("attempt 1 failed")
        .sees("trying again in 1 s");
    terminal
        .sees("waiting, attempt 2 · 1 s")
        .keys(CTRL_C)
        .prompts_after("attempt 1 failed");
}

#[test]
fn a_terminal_that_gets_smaller_and_larger_is_followed() {
    let home = Home::new();
    let mut terminal = talking(&home, &[ECHO]);
    terminal
        .keys("some words that are long enough to need two lines")
        .sees("two lines");
    terminal
        .resize(40, 20)
        .keys(" of a narrow terminal")
        .sees("narrow terminal");
    terminal
        .resize(120, 40)
        .line(" or not")
        .prompts_after("or not");
    terminal.quits();
    assert_eq!(
        messages(&home),
        ["some words that are long enough to need two lines of a narrow terminal or not"]
    );
}

#[test]
fn nothing_a_model_or_a_paste_says_moves_the_terminal() {
    let hostile = [
        "\u{1b}[2J\u{1b}[H",
        "\u{1b}]52;c;cm0gLXJmIC8=\u{7}",
        "\u{1b}]8;;http://evil.example\u{1b}\\click\u{1b}]8;;\u{1b}\\",
        "\u{1b}[?1049h",
        "\u{1b}]0;title\u{7}",
        "\u{9b}31mred",
        "\u{202e}txt.exe\u{2066}",
        "fine\rover",
    ];
    let home = Home::new();
    let said = serde_json::json!({"text": format!("Begin {} End.", hostile.join(" "))}).to_string();
    let called = serde_json::json!({"calls": [{"name": "add_task", "args": {"description": hostile.join("")}}]});
    let mut terminal = talking(&home, &[&said, &called.to_string(), &said, ECHO]);
    terminal.line("say it").prompts_after("End.");
    terminal
        .line("call it")
        .sees("add_task")
        .prompts_after("add_task");
    terminal
        .paste(&format!("x{}y", hostile.join("")))
        .sees("txt.exe");
    terminal.line("").prompts_after("You said:");
    let raw = terminal.raw();
    for obeyed in [
        "\x1b[2J\x1b[H",
        "\x1b]52",
        "\x1b]8",
        "\x1b]0;",
        "\u{9b}",
        "\u{202e}",
        "\u{2066}",
        "\u{7}",
    ] {
        assert!(!raw.contains(obeyed), "{obeyed:?} in {raw:?}");
    }
    terminal.quits();
}

#[test]
fn a_dumb_terminal_gets_lines_and_no_escape() {
    let home = Home::new();
    let model = home.script(&[ECHO]);
    let mut command = home.command(&["-m", &model]);
    command.env("TERM", "dumb");
    let mut terminal = Terminal::of(command, Kind::Usual);
    terminal
        .sees("you>")
        .keys("hello\n")
        .sees("You said: hello");
    terminal.waits("a prompt", |screen| {
        screen.contents().matches("you>").count() == 2
    });
    terminal.keys(CTRL_C).sees("Ctrl-C again");
    terminal.quits();
    assert!(!terminal.raw().contains('\x1b'), "{:?}", terminal.raw());
}

#[test]
fn a_terminal_that_answers_nothing_gets_lines_and_loses_none() {
    let home = Home::new();
    let model = home.script(&[ECHO]);
    let mut terminal = Terminal::of(home.command(&["-m", &model]), Kind::Silent);
    terminal.keys("hello\n").sees("You said: hello");
    terminal.keys("again\n").sees("You said: again");
    terminal.quits();
}

#[test]
fn a_pipe_gets_answers_and_nothing_else() {
    let home = Home::new();
    let model = home.script(&[ECHO]);
    let run = home
        .pipe(&["chat", "-q", "-m", &model], b"one\n/nothing\ntwo\n")
        .succeeds();
    assert_eq!(run.stdout, "You said: one\nYou said: two\n");
    assert!(
        !run.stderr.contains("you>") && !run.stderr.contains('\x1b'),
        "{run:?}"
    );
}

fn deleting(home: &Home, delay: &str) -> Vec<String> {
    home.add_task("buy milk");
    vec![
        r#"{"match": "\"success\":true", "text": "It is gone."}"#.to_owned(),
        r#"{"match": "\"success\":false", "text": "I kept it."}"#.to_owned(),
        format!(
            r#"{{"match": "delete", "calls": [{{"name": "delete_task", "args": {{"task_id": "milk"}}}}]{delay}}}"#
        ),
        ECHO.to_owned(),
    ]
}
