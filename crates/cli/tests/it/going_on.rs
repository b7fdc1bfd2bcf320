//! The conversation that `-c` goes on with, and programs that are told of a question.

use std::io::BufRead as _;
use std::process::Stdio;

use crate::harness::{Home, Run};

const ECHO: &str = r#"{"text": "Noted.", "repeat": true}"#;

/// Runs in a folder of the home.
fn run_in(home: &Home, folder: &str, args: &[&str]) -> Run {
    let folder = home.path(folder);
    std::fs::create_dir_all(&folder).unwrap();
    Run::of(home.command(args).current_dir(folder))
}

fn conversation(home: &Home, folder: &str, args: &[&str]) -> String {
    let run = run_in(home, folder, &[args, &["--json"]].concat()).succeeds();
    run.json()["conversation"].as_str().unwrap().to_owned()
}

#[test]
fn the_newest_is_that_of_all_folders_unless_a_setting_says_otherwise() {
    let home = Home::new();
    let model = home.script(&[ECHO]);
    let here = conversation(&home, "a", &["ask", "-m", &model, "in a"]);
    let there = conversation(&home, "b", &["ask", "-m", &model, "in b"]);
    assert_eq!(
        conversation(&home, "a", &["ask", "-c", "-m", &model, "and?"]),
        there
    );

    home.config("[sessions]\ncontinue = \"folder\"\n");
    assert_eq!(
        conversation(&home, "a", &["ask", "-c", "-m", &model, "and here?"]),
        here
    );
    // What began in another folder and goes on here stays that folder's.
    assert_eq!(
        conversation(&home, "b", &["ask", "-c", "-m", &model, "and there?"]),
        there
    );
    let first = run_in(&home, "c", &["ask", "-c", "-m", &model, "the first here"]).succeeds();
    first.says("no conversation has begun in this folder yet");
    let listed = run_in(&home, "a", &["sessions", "list", "--here", "--json"])
        .succeeds()
        .json();
    let ids: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [here.as_str()]);
    let none = run_in(&home, "d", &["sessions", "list", "--here"]).succeeds();
    assert_eq!(
        none.stdout,
        "No conversation has begun in this folder yet.\n"
    );
}

#[test]
fn a_temporary_conversation_leaves_no_folder_behind() {
    let home = Home::new();
    let model = home.script(&[ECHO]);
    home.run(&["ask", "--temp", "-m", &model, "hello"])
        .succeeds();
    assert!(!home.path("state/adjutant/folders.jsonl").exists());
    home.config("[sessions]\ncontinue = \"here\"\n");
    home.run(&["ask", "-c", "-m", &model, "hello"])
        .ends_with(3)
        .says("global or folder");
}

fn deleting(home: &Home) -> String {
    home.add_task("buy milk");
    home.script(&[
        r#"{"calls": [{"name": "delete_task", "args": {"task_id": "1"}}], "repeat": true}"#,
    ])
}

#[cfg(unix)]
#[test]
fn a_program_is_run_for_a_question_without_a_terminal() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = Home::new();
    let model = deleting(&home);
    let told = home.path("told");
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > '{0}.args'\ncat > '{0}.json'\necho \"$GEMINI_API_KEY\" > '{0}.key'\n",
        told.display()
    );
    let program = home.file("tell.sh", script);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    home.config(&format!(
        "[notify]\ncommand = [{program:?}, \"-t\", \"Adjutant: {{text}}; $(id)\"]\n"
    ));
    Run::of(
        home.command(&["ask", "-m", &model, "delete it"])
            .env("GEMINI_API_KEY", "secret-1"),
    )
    .ends_with(4);
    let read = |end: &str| std::fs::read_to_string(format!("{}.{end}", told.display())).unwrap();
    // No shell reads any of it, and a provider's key is none of its business.
    assert_eq!(
        read("args"),
        "-t\nAdjutant: delete_task: Delete “buy milk” (waits for a yes); $(id)\n"
    );
    assert_eq!(read("key"), "\n");
    let told: serde_json::Value = serde_json::from_str(&read("json")).unwrap();
    assert_eq!(
        (told["event"].as_str(), told["tool"].as_str()),
        (Some("question"), Some("delete_task")),
        "{told}"
    );
    assert_eq!(told["arguments"]["task_id"], "1");
}

#[test]
fn a_program_that_fails_is_a_note_and_no_more() {
    let home = Home::new();
    let model = deleting(&home);
    home.config("[notify]\ncommand = [\"/nowhere/tell\"]\n");
    let run = home.run(&["ask", "-m", &model, "delete it"]).ends_with(4);
    run.says("notify.command (/nowhere/tell)");
}

#[test]
fn a_question_is_watched_for() {
    let home = Home::new();
    let model = deleting(&home);
    let mut watching = home
        .command(&["pending", "list", "--watch", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(watching.stdout.take().unwrap()).lines();
    home.run(&["ask", "-m", &model, "delete it"]).ends_with(4);
    let first: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(first["tool"], "delete_task");
    home.run(&["ask", "-m", &model, "delete it, again"])
        .ends_with(4);
    let second: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_ne!(first["conversation"], second["conversation"]);
    watching.kill().unwrap();
    watching.wait().unwrap();
}

/// The sequence by which `/copy` hands an answer to the terminal (OSC 52).
#[cfg(unix)]
fn copied(answer: &str) -> String {
    use base64::Engine as _;
    format!(
        "\x1b]52;c;{}",
        base64::engine::general_purpose::STANDARD.encode(answer)
    )
}

#[cfg(unix)]
#[test]
fn a_resumed_answer_is_laid_out_and_is_the_one_that_is_copied() {
    use crate::terminal::pty::Terminal;

    let home = Home::new();
    let earlier = home.script(&[r#"{"text": "Take the **night train**:\n\n- book it\n- pack"}"#]);
    let id = conversation(
        &home,
        "project",
        &["ask", "-m", &earlier, "how do I get there?"],
    );
    let later = home.script(&[r#"{"text": "Something else.", "repeat": true}"#]);
    let mut terminal = Terminal::start(&home, &["-m", &later]);
    terminal.prompts_after("Ctrl-D quits");
    terminal.line("hello").prompts_after("Something else.");
    terminal
        .line(&format!("/resume {id}"))
        .prompts_after("pack");
    let screen = terminal.screen();
    assert!(
        screen.contains("Take the night train:") && screen.contains("• book it"),
        "{screen}"
    );
    terminal.line("/copy").prompts_after("clipboard");
    assert!(
        terminal
            .raw()
            .contains(&copied("Take the **night train**:\n\n- book it\n- pack"))
    );
    terminal.line("/trace").prompts_after("how do I get there?");
    terminal.line("/new").prompts_after("a new conversation");
    terminal.line("/copy").sees("there is no answer yet");
    terminal.keys("\x04");
    terminal.ends_with(0);
}

#[cfg(unix)]
#[test]
fn help_names_the_keys_and_tab_completes_what_stands_behind_a_command() {
    use crate::terminal::pty::Terminal;

    let home = Home::new();
    let model = home.script(&[ECHO]);
    let id = conversation(&home, "project", &["ask", "-m", &model, "plan the trip"]);
    let mut terminal = Terminal::start(&home, &["-m", &model]);
    terminal.prompts_after("Ctrl-D quits");
    terminal
        .line("/help")
        .sees("Alt-Enter")
        .sees("Ctrl-R")
        .sees("@NOTE")
        .prompts_after("Ctrl-D");
    // The only one there is stands there at once.
    terminal
        .keys("/resume \t")
        .sees(&format!("/resume {}", &id[id.len() - 8..]));
    terminal
        .keys("\r")
        .prompts_after("going on with “plan the trip”");
    terminal.keys("\x04");
    terminal.ends_with(0);
}

#[cfg(unix)]
#[test]
fn an_answer_to_another_terminal_is_told_apart_and_ones_own_is_shown_once() {
    use crate::terminal::pty::Terminal;

    let home = Home::new();
    let model = home.script(&[
        r#"{"match": "from the first", "text": "Answer to the first.", "delay_ms": 3000, "repeat": true}"#,
        r#"{"match": "from the second", "text": "Answer to the second.", "repeat": true}"#,
        ECHO,
    ]);
    let id = conversation(&home, "project", &["ask", "-m", &model, "begin"]);
    let open = || {
        let mut terminal = Terminal::start(&home, &["-r", &id, "-m", &model]);
        terminal.prompts_after("Noted.");
        terminal
    };
    let (mut first, mut second) = (open(), open());
    first.line("a message from the first").sees("waiting");
    second
        .line("a message from the second")
        .prompts_after("Answer to the second.");
    first.prompts_after("Answer to the first.");
    let screen = first.screen();
    assert_eq!(
        screen.matches("Answer to the first.").count(),
        1,
        "{screen}"
    );
    assert!(
        !screen.contains("Answer to the second.")
            || screen.contains("the answer to a message from elsewhere"),
        "{screen}"
    );
    for terminal in [&mut first, &mut second] {
        terminal.keys("\x04");
        terminal.ends_with(0);
    }
}
