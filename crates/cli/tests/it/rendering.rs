//! A running turn as it is seen: at a terminal, in a pipe, and by a program.

use std::num::NonZero;
use std::process::Stdio;
use std::time::Duration;

use expectrl::process::unix::WaitStatus;
use expectrl::session::OsSession;
use expectrl::{Eof, Expect as _, Session};
use serde_json::{Value, json};

use crate::harness::{Home, arg};
use crate::terminal::pty::in_terminal;

/// Formats an answer of a model as a line of a script.
fn says(text: &str) -> String {
    json!({ "text": text, "stream": 3, "repeat": true }).to_string()
}

const ANSWER: &str = "\
# Plan

You have **two** tasks; see `adjutant tasks list`. This paragraph is as long as models like to write them, so that it has to be wrapped.

1. Buy milk
2. Write the report
   - first part

```sh
adjutant tasks done milk   # and no word of this line is moved, however long it may be, since it is to be copied
```

| task | due |
|------|----:|
| milk | now |

Done.";

/// Returns everything that a terminal of this size has shown, including its scrollback.
struct Seen {
    raw: String,
    text: String,
}

impl Seen {
    /// Runs at a terminal, with variables of its own.
    fn run(
        home: &Home,
        columns: u16,
        rows: u16,
        variables: &[(&str, &str)],
        args: &[&str],
    ) -> Self {
        let mut command = home.command(args);
        command
            .env("PATH", "/usr/bin:/bin")
            .env("TERM", "xterm-256color")
            .envs(variables.iter().copied());
        let mut session = Session::spawn(in_terminal(&command, columns, rows)).unwrap();
        session.send("\n").unwrap();
        session.set_expect_timeout(Some(Duration::from_secs(300)));
        let raw = session.expect(Eof).unwrap().as_bytes().to_vec();
        assert!(
            matches!(
                session.get_process().wait().unwrap(),
                WaitStatus::Exited(_, 0)
            ),
            "{}",
            String::from_utf8_lossy(&raw)
        );
        Self::of(&raw, columns, rows)
    }

    fn of(raw: &[u8], columns: u16, rows: u16) -> Self {
        let size = |cells| NonZero::new(cells).unwrap();
        let mut terminal = vt100::Parser::new(size(rows), size(columns), 1_000);
        terminal.process(raw);
        terminal.screen_mut().set_scrollback(usize::MAX);
        let above = terminal.screen().scrollback();
        let mut lines = Vec::new();
        for offset in (1..=above).rev() {
            terminal.screen_mut().set_scrollback(offset);
            lines.extend(terminal.screen().rows(0, columns).take(1));
        }
        terminal.screen_mut().set_scrollback(0);
        lines.extend(terminal.screen().rows(0, columns));
        let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        Self {
            raw: String::from_utf8_lossy(raw).into_owned(),
            text: lines.join("\n").trim_end().to_owned(),
        }
    }

    #[track_caller]
    fn has_line(&self, line: &str) -> &Self {
        assert!(
            self.text.lines().any(|seen| seen == line),
            "no line {line:?} in\n{}",
            self.text
        );
        self
    }

    /// Nothing of a live line is left.
    #[track_caller]
    fn is_clean(&self) -> &Self {
        let spinner = |c: char| ('\u{2800}'..='\u{28ff}').contains(&c);
        assert!(
            !self.text.contains(spinner) && !self.text.contains("waiting"),
            "{}",
            self.text
        );
        self
    }
}

#[test]
fn an_answer_is_laid_out_for_the_terminal_it_is_shown_in() {
    let home = Home::new();
    let model = home.script(&[&says(ANSWER)]);
    for (columns, rows) in [(80, 60), (80, 6), (200, 60)] {
        let seen = Seen::run(&home, columns, rows, &[], &["-m", &model, "hello"]);
        seen.is_clean()
            .has_line("Plan")
            .has_line("1. Buy milk")
            .has_line("   • first part")
            .has_line("Done.");
        seen.has_line("┌────┬───┐")
            .has_line("│task│due│")
            .has_line("│milk│now│");
        let wrapped =
            "You have two tasks; see adjutant tasks list. This paragraph is as long as models";
        if columns == 80 {
            seen.has_line(wrapped)
                .has_line("like to write them, so that it has to be wrapped.");
        } else {
            seen.has_line(&format!(
                "{wrapped} like to write them, so that it has to be wrapped."
            ));
        }
        let code = "adjutant tasks done milk   # and no word of this line is moved";
        assert!(
            seen.text.lines().any(|line| line.starts_with(code)),
            "{}",
            seen.text
        );
        // A line filled up to the edge would become two when the terminal gets narrower.
        assert!(!seen.raw.contains(&" ".repeat(60)), "{:?}", seen.raw);
        // Bold, and the colour of code; neither black nor white nor a background.
        assert!(
            seen.raw.contains("\u{1b}[1m") && seen.raw.contains("\u{1b}[38;5;6m"),
            "{:?}",
            seen.raw
        );
        for vanishes in [
            "\u{1b}[30m",
            "\u{1b}[37m",
            "\u{1b}[48;",
            "\u{1b}[97m",
            "\u{1b}[?1049h",
            "\u{1b}[?1000h",
        ] {
            assert!(
                !seen.raw.contains(vanishes),
                "{vanishes:?} in {:?}",
                seen.raw
            );
        }
    }
}

#[test]
fn without_colours_nothing_but_text_is_written() {
    let home = Home::new();
    let model = home.script(&[&says(ANSWER)]);
    for (variables, args) in [
        (&[("NO_COLOR", "1")][..], &["-m", &model, "hello"][..]),
        (&[("TERM", "dumb")], &["-m", &model, "hello"]),
        (&[], &["--color", "never", "-m", &model, "hello"]),
    ] {
        let seen = Seen::run(&home, 80, 60, variables, args);
        assert!(
            !seen.raw.contains('\u{1b}'),
            "{variables:?} {args:?}: {:?}",
            seen.raw
        );
        seen.is_clean()
            .has_line("# Plan")
            .has_line("   - first part")
            .has_line("```sh")
            .has_line("|milk|now|");
        assert!(
            seen.text
                .contains("**two** tasks; see `adjutant tasks list`"),
            "{}",
            seen.text
        );
    }
}

#[test]
fn in_a_pipe_an_answer_is_what_the_model_sent() {
    let home = Home::new();
    let model = home.script(&[&says(ANSWER)]);
    for args in [
        &["-m", &model, "hello"][..],
        &["--color", "always", "-m", &model, "hello"],
    ] {
        assert_eq!(home.run(args).succeeds().stdout, format!("{ANSWER}\n"));
    }
}

#[test]
fn calls_and_figures_stand_beside_the_answer() {
    let home = Home::new();
    let model = home.script(&[
        r#"{"calls": [{"name": "add_task", "args": {"description": "buy milk"}}, {"name": "list_tasks", "args": {}}], "usage": {"input": 1200, "output": 30}}"#,
        r#"{"text": "Added.", "usage": {"input": 1300, "output": 50}}"#,
    ]);
    let seen = Seen::run(&home, 80, 24, &[], &["-m", &model, "add"]);
    seen.is_clean().has_line("Added.");
    let line = |begin: &str| {
        let lines: Vec<&str> = seen
            .text
            .lines()
            .filter(|line| line.starts_with(begin))
            .collect();
        assert_eq!(lines.len(), 1, "{begin} in\n{}", seen.text);
        lines[0].to_owned()
    };
    assert!(line("  ⚙ add_task {\"description\":\"buy milk\"}  ✓ ").ends_with(" ms"));
    assert!(line("  ⚙ list_tasks {}  ✓ ").ends_with(" ms"));
    let footer = line("  2.5k in · 80 out · ");
    // A script costs nothing, and says so by saying nothing.
    assert!(!footer.contains('$'), "{footer}");
}

#[test]
fn what_a_model_says_does_not_steer_the_terminal() {
    let home = Home::new();
    let hostile = "\u{1b}[2J\u{1b}]52;c;cm0=\u{7}a\u{202e}b &#27;]0;title&#7; `\u{9b}31m` [x](<&#27;[8m>)\n\n\
                   ```\n\u{1b}]8;;http://evil.example\u{1b}\\c\n```\n\n| \u{1b}[?1049h |\n|---|\n| &#x9b;2J |\n";
    let model = home.script(&[
        &json!({ "calls": [{ "name": "add_task", "args": { "description": hostile } }] })
            .to_string(),
        &says(hostile),
    ]);
    for variables in [&[][..], &[("NO_COLOR", "1")]] {
        let seen = Seen::run(&home, 80, 40, variables, &["-m", &model, "hello"]);
        for order in [
            "\u{1b}[2J",
            "\u{1b}]",
            "\u{1b}[?1049h",
            "\u{1b}[8m",
            "\u{9b}",
            "\u{9d}",
            "\u{202e}",
        ] {
            assert!(!seen.raw.contains(order), "{order:?} in {:?}", seen.raw);
        }
        seen.is_clean();
    }
}

#[test]
fn notes_that_an_answer_links_to_are_opened_in_obsidian() {
    let home = Home::new();
    let vault = home.path("My Notes");
    std::fs::create_dir_all(vault.join("Plans")).unwrap();
    std::fs::write(
        vault.join("Plans/The house.md"),
        "---\naliases: [Home]\n---\n",
    )
    .unwrap();
    let model = home.script(&[&says(
        "See [[the house#Roof|the **new** roof]], ![[Home]], [[Gone|away]] and `[[Home]]`.\n\n\
         | note |\n|---|\n| [[Home\\|at home]] |\n\n\
         [x](obsidian://advanced-uri?commandid=a) [[Home\u{1b}]0;title\u{7}]]\n\n```\n[[Home]]\n```\n",
    )]);
    let args = ["--vault", arg(&vault), "-m", &model, "hello"];
    let seen = Seen::run(&home, 120, 60, &[], &args);
    seen.is_clean()
        .has_line("See the new roof, Home, [[Gone|away]] and [[Home]].")
        .has_line("│at home│");
    let opens: Vec<&str> = seen
        .raw
        .split("\u{1b}]8;;")
        .skip(1)
        .filter_map(|rest| rest.split_once("\u{1b}\\"))
        .map(|it| it.0)
        .collect();
    let house = "obsidian://open?vault=My%20Notes&file=Plans%2FThe%20house";
    let roof = format!("{house}%23Roof");
    assert_eq!(
        opens,
        [roof.as_str(), "", house, "", house, ""],
        "{:?}",
        seen.raw
    );
    assert!(
        seen.text
            .contains("x (obsidian://advanced-uri?commandid=a)"),
        "{}",
        seen.text
    );
    for (variables, args) in [
        (&[("NO_COLOR", "1")][..], &args[..]),
        (&[], &["-m", &model, "hello"]),
    ] {
        let plain = Seen::run(&home, 120, 60, variables, args);
        assert!(!plain.raw.contains("\u{1b}]"), "{:?}", plain.raw);
        assert!(
            plain.text.contains("[[the house#Roof|the"),
            "{}",
            plain.text
        );
    }
}

/// A home with a task, and a model that deletes it and says so.
fn home_with_milk() -> (Home, String) {
    let home = Home::new();
    home.add_task("buy milk");
    let model = home.script(&[
        r#"{"match": "\"success\":true", "text": "It is gone."}"#,
        r#"{"match": "\"success\":false", "text": "I kept it."}"#,
        r#"{"match": "delete", "calls": [{"name": "delete_task", "args": {"task_id": "milk"}}]}"#,
    ]);
    (home, model)
}

/// A terminal in which the model is told to delete.
fn asked(home: &Home, model: &str, variables: &[(&str, &str)]) -> OsSession {
    let mut command = home.command(&["-m", model, "delete milk"]);
    command
        .stdin(Stdio::inherit())
        .env("TERM", "xterm-256color")
        .envs(variables.iter().copied());
    let mut session = Session::spawn(command).unwrap();
    session.set_expect_timeout(Some(Duration::from_secs(300)));
    session
}

#[test]
fn a_question_takes_one_key_or_a_line() {
    for (keys, left, end) in [
        ("y", 0, "It is gone."),
        ("n", 1, "I kept it."),
        ("\r", 1, "I kept it."),
        ("yes\n", 0, "It is gone."),
        ("no\r", 1, "I kept it."),
        // Asked again.
        ("perhaps\ry", 0, "It is gone."),
        // No editor is named: a line.
        ("e\r{\"task_id\":\"1\"}\n", 0, "It is gone."),
    ] {
        let (home, model) = home_with_milk();
        let mut session = asked(&home, &model, &[]);
        let mut keys = keys;
        session
            .expect("? delete_task “buy milk”  [y] delete  [n] keep  [e] edit ")
            .unwrap();
        // What follows a line is typed when it is asked for.
        while let Some((line, rest)) = keys
            .split_once(['\r', '\n'])
            .filter(|(_, rest)| !rest.is_empty())
        {
            session.send(format!("{line}\r")).unwrap();
            let next = if line == "e" {
                "as JSON: "
            } else {
                "[e] edit "
            };
            session.expect(next).unwrap();
            keys = rest;
        }
        session.send(keys).unwrap();
        session
            .expect(end)
            .unwrap_or_else(|error| panic!("{keys:?}: {error}"));
        session.expect(Eof).unwrap();
        assert_eq!(home.tasks().len(), left, "{keys:?}");
    }
}

#[test]
fn arguments_are_edited_in_the_persons_editor() {
    let (home, model) = home_with_milk();
    home.add_task("buy bread");
    let editor = home.file(
        "editor.sh",
        "grep -q task_id \"$1\" && echo '{\"task_id\": \"bread\"}' > \"$1\"\n",
    );
    let editor = format!("sh {}", arg(&editor));
    let mut session = asked(
        &home,
        &model,
        &[("PATH", "/usr/bin:/bin"), ("EDITOR", &editor)],
    );
    session.expect("[e] edit ").unwrap();
    session.send("e").unwrap();
    // What the other arguments mean is shown before there is a yes to them.
    session
        .expect("? delete_task “buy bread”  [y] delete  [n] keep  [e] edit ")
        .unwrap();
    assert_eq!(home.tasks(), ["buy milk", "buy bread"]);
    session.send("y").unwrap();
    session.expect("It is gone.").unwrap();
    session.expect(Eof).unwrap();
    assert_eq!(home.tasks(), ["buy milk"]);
}

#[test]
fn control_c_cancels_the_question_and_keeps_the_thing() {
    for key in ["\u{3}", "\u{1b}", "\u{4}"] {
        let (home, model) = home_with_milk();
        let mut session = asked(&home, &model, &[]);
        session.expect("[e] edit ").unwrap();
        session.send(key).unwrap();
        session.expect("adjutant pending approve ").unwrap();
        session.expect(Eof).unwrap();
        assert_eq!(home.tasks(), ["buy milk"], "{key:?}");
    }
}

fn stream(home: &Home, args: &[&str]) -> (i32, Vec<Value>) {
    let run = home.run(&[&["ask", "--stream-json"], args].concat());
    let lines = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    (run.code, lines)
}

#[test]
fn a_program_reads_what_happens_line_by_line() {
    let home = Home::new();
    let model = home.script(&[
        r#"{"calls": [{"name": "add_task", "args": {"description": "buy \u001b[2Jmilk"}}], "thinking": "Hm."}"#,
        r#"{"text": "Added it.", "stream": 4}"#,
    ]);
    let (code, lines) = stream(&home, &["-m", &model, "add"]);
    assert_eq!(code, 0);
    let types: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["type"].as_str())
        .collect();
    assert_eq!(
        types,
        [
            "turn_started",
            "model_started",
            "thinking",
            "model_finished",
            "tool_started",
            "tool_finished",
            "model_started",
            "text",
            "text",
            "text",
            "model_finished",
        ]
    );
    let text: String = lines
        .iter()
        .filter(|line| line["type"] == "text")
        .filter_map(|line| line["text"].as_str())
        .collect();
    let last = lines.last().unwrap();
    assert_eq!(
        (last["content"].as_str(), text.as_str()),
        (Some("Added it."), "Added it.")
    );
    assert_eq!(lines[4]["call_id"], lines[5]["call_id"]);
    assert_eq!(
        (&lines[5]["tool"], &lines[5]["result"]["success"]),
        (&json!("add_task"), &json!(true))
    );
    // The last line is the object of --json.
    let (_, object) = home.ask(&home.script(&[r#"{"text": "Added it."}"#]), "x");
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(last), keys(&object));
}

#[test]
fn the_stream_ends_with_an_object_whatever_happens() {
    let home = Home::new();
    home.add_task("buy milk");
    let asks = home.script(&[r#"{"calls": [{"name": "delete_task", "args": {"task_id": "1"}}]}"#]);
    let (code, lines) = stream(&home, &["-m", &asks, "delete milk"]);
    let (last, asked) = (lines.last().unwrap(), &lines[lines.len() - 2]);
    assert_eq!(
        (code, asked["type"].as_str()),
        (4, Some("confirmation_requested")),
        "{lines:?}"
    );
    assert_eq!(asked["pending"], last["pending"]);
    assert_eq!(home.tasks(), ["buy milk"]);

    let (code, lines) = stream(&home, &["-m", &home.script(&[r#"{"fault": "auth"}"#]), "x"]);
    assert_eq!(
        (code, lines.last().unwrap()["error"]["code"].as_str()),
        (3, Some("auth")),
        "{lines:?}"
    );
    let (code, lines) = stream(&home, &["-m", "nobody", "x"]);
    assert_eq!(
        (code, lines.len(), lines[0]["error"]["code"].as_str()),
        (3, 1, Some("not_found"))
    );
    let (code, lines) = stream(&home, &["--no-such-option", "x"]);
    assert_eq!(
        (code, lines.len(), lines[0]["error"]["code"].as_str()),
        (2, 1, Some("usage"))
    );
    home.run(&["tasks", "list", "--stream-json"])
        .ends_with(2)
        .says("belongs to ask");
}

#[test]
fn tool_rounds_are_bounded_by_an_option() {
    let home = Home::new();
    let model =
        home.script(&[r#"{"calls": [{"name": "list_tasks", "args": {}}], "repeat": true}"#]);
    let (code, lines) = stream(&home, &["--max-iterations", "1", "-m", &model, "x"]);
    assert_eq!(
        (code, lines.last().unwrap()["outcome"].as_str()),
        (6, Some("LIMIT:ITERATIONS")),
        "{lines:?}"
    );
    assert_eq!(
        lines
            .iter()
            .filter(|line| line["type"] == "tool_started")
            .count(),
        1
    );
}

#[test]
fn a_pipe_gets_what_came_before_an_answer_broke() {
    let home = Home::new();
    let model = home.script(&[r#"{"text": "The first half", "fault": "truncated"}"#]);
    let run = home.run(&["-m", &model, "tell me"]);
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (5, "The first half\n"),
        "{}",
        run.stderr
    );
    let run = run.says("Error: ");
    for sentence in ["trouble processing", "temporarily unavailable"] {
        assert!(!run.stderr.contains(sentence), "{}", run.stderr);
    }
}
