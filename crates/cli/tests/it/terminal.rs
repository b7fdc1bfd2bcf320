//! `adjutant` at a terminal: keys, Ctrl-C in every phase, pastes, signals, and what must never
//! reach the screen.

pub(crate) mod pty;
mod speed;
mod tmux;

use expectrl::process::unix::Signal;

use crate::harness::{Home, arg};
use pty::{Kind, Terminal};

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";

/// A model that repeats what it is told, for ever.
const ECHO: &str = r#"{"text": "You said: {{input}}", "repeat": true}"#;

fn talking(home: &Home, script: &[&str]) -> Terminal {
    let model = home.script(script);
    let mut terminal = Terminal::start(home, &["-m", &model]);
    terminal.prompts_after("/help");
    terminal
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
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    assert!(terminal.echoes(), "the terminal is as it was");
    assert_eq!(home.tasks(), ["buy milk"]);
}

#[test]
fn ctrl_c_clears_a_line_and_quits_on_the_second_where_there_is_none() {
    let home = Home::new();
    let mut terminal = talking(&home, &[ECHO]);
    terminal
        .keys("never sent")
        .sees("never sent")
        .keys(CTRL_C)
        .prompts_after("never sent");
    terminal.keys(CTRL_C).prompts_after("Ctrl-C again");
    terminal.keys(CTRL_C);
    terminal.ends_with(130);
    assert!(terminal.echoes());
}

#[test]
fn ctrl_c_stops_an_answer_and_keeps_what_came() {
    let home = Home::new();
    let mut terminal = talking(
        &home,
        &[
            r#"{"text": "The first half.\n\nAnd the", "fault": "stall"}"#,
            ECHO,
        ],
    );
    terminal
        .line("tell me")
        .sees("The first half.")
        .keys(CTRL_C)
        .prompts_after("The first half.");
    assert!(!terminal.screen().contains("^C"), "{}", terminal.screen());
    terminal.line("go on").prompts_after("You said: go on");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    assert_eq!(messages(&home), ["tell me", "go on"]);
}

#[test]
fn ctrl_c_stops_a_tool_and_the_session_goes_on() {
    let home = Home::new();
    let server = home.file("server.sh", include_str!("mcp_servers/server.sh"));
    home.config(&format!(
        "[mcp.servers.shell]\ncommand = [\"sh\", \"{}\"]\n",
        arg(&server)
    ));
    home.file("config/adjutant/.env", "SHELL_TOKEN=x\n");
    let mut terminal = talking(
        &home,
        &[r#"{"calls": [{"name": "shell__hang", "args": {}}]}"#, ECHO],
    );
    terminal
        .line("hang")
        .sees("shell__hang")
        .keys(CTRL_C)
        .prompts_after("shell__hang");
    terminal
        .line("still there?")
        .prompts_after("You said: still there?");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
}

#[test]
fn a_summary_shows_that_it_is_at_work_and_ctrl_c_gives_it_up() {
    let home = Home::new();
    let mut terminal = talking(
        &home,
        &[r#"{"text": "Hello there."}"#, r#"{"fault": "stall"}"#, ECHO],
    );
    terminal.line("hello").prompts_after("Hello there.");
    terminal
        .line("/compact")
        .sees("Ctrl-C stops")
        .sees("older messages · 1 s");
    terminal
        .keys(CTRL_C)
        .prompts_after("stopped; nothing has changed");
    terminal
        .line("still here?")
        .prompts_after("You said: still here?");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
}

#[test]
fn a_summary_that_takes_too_long_names_its_cause_and_the_setting_with_a_number() {
    let home = Home::new();
    let model = home.script(&[
        r#"{"text": "Hello there."}"#,
        r#"{"fault": "timeout", "repeat": true}"#,
    ]);
    let run = home
        .pipe(&["chat", "-m", &model], b"hello\n/compact\n")
        .succeeds();
    run.says("no summary was made; the conversation is unchanged")
        .says("cause: scripted said nothing for")
        .says("try: LLM_TIMEOUT=");
    home.config("[agent]\nturn_deadline = \"1s\"\n");
    let slow = home.script(&[
        r#"{"text": "Hello."}"#,
        r#"{"text": "never", "delay_ms": 600000}"#,
    ]);
    let run = home
        .pipe(&["chat", "-m", &slow], b"hello\n/compact\n")
        .succeeds();
    run.says("cause: scripted did not answer within 1 s")
        .says("agent.turn_deadline 10s    (now 1s)");
}

#[test]
fn the_next_attempt_is_told_when_it_begins() {
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

#[test]
fn ctrl_c_in_a_question_leaves_the_question_and_nothing_else() {
    let home = Home::new();
    let script = deleting(&home, "");
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    let mut terminal = talking(&home, &script);
    terminal
        .line("delete milk")
        .sees("[y]")
        .keys(CTRL_C)
        .prompts_after("pending approve");
    assert_eq!(home.tasks(), ["buy milk"]);
    // What waits is asked again by the next message, and a no is a no.
    terminal.line("no").prompts_after("I kept it.");
    terminal
        .line("delete milk, please")
        .sees("milk, please")
        .waits("the question", |screen| {
            screen.contents().matches("[y]").count() == 2
        });
    terminal.line("y").prompts_after("It is gone.");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    assert!(home.tasks().is_empty());
}

/// All of what a yes is to is shown before it can be given.
#[test]
fn what_is_folded_is_looked_at_before_it_is_agreed_to() {
    let home = Home::new();
    home.add_task(&format!(
        "{} and drop the database",
        "remove the temporary files ".repeat(10)
    ));
    let mut terminal = talking(
        &home,
        &[
            r#"{"match": "success", "text": "It is gone."}"#,
            r#"{"match": "delete", "calls": [{"name": "delete_task", "args": {"task_id": "1"}}]}"#,
        ],
    );
    terminal.line("delete it").sees("[v] view all");
    terminal.line("y").sees("Please look at all of it first");
    assert_eq!(home.tasks().len(), 1);
    terminal.line("v").sees("database").sees("[y] delete");
    terminal.line("y").prompts_after("It is gone.");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    assert!(home.tasks().is_empty());
}

#[test]
fn keys_pressed_ahead_answer_no_question() {
    let home = Home::new();
    let script = deleting(&home, r#", "delay_ms": 3000"#);
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    let mut terminal = talking(&home, &script);
    // The model takes its time; the person does not.
    terminal.line("delete milk").line("y").line("yes");
    terminal.sees("[y]");
    assert_eq!(home.tasks(), ["buy milk"]);
    terminal.line("n").prompts_after("I kept it.");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    assert_eq!(home.tasks(), ["buy milk"]);
}

#[test]
fn lines_typed_ahead_are_messages_one_by_one() {
    let home = Home::new();
    let mut terminal = talking(&home, &[ECHO]);
    let words = ["one", "two", "three", "four", "five"];
    terminal
        .keys(&words.map(|word| format!("{word}\r")).concat())
        .prompts_after("You said: five");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    assert_eq!(messages(&home), words);
}

#[test]
fn five_hundred_pasted_lines_are_one_message() {
    let home = Home::new();
    let mut terminal = talking(
        &home,
        &[r#"{"text": "Read."}"#, r#"{"text": "Read again."}"#],
    );
    let lines: Vec<String> = (1..=500).map(|number| format!("line {number}")).collect();
    terminal
        .paste(&lines.join("\r"))
        .sees("[pasted text 1: 500 lines]");
    terminal.line("").prompts_after("Read.");
    // A short one is shown as it is, and its line breaks send nothing.
    terminal.paste("one\ntwo\r\nthree").sees("three");
    terminal.line("").prompts_after("Read again.");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    assert_eq!(
        messages(&home),
        [lines.join("\n"), "one\ntwo\nthree".to_owned()]
    );
}

#[test]
fn a_paste_that_is_too_long_is_refused_and_what_was_there_stays() {
    let home = Home::new();
    let mut terminal = talking(&home, &[ECHO]);
    terminal.keys("hello").sees("hello");
    terminal
        .paste(&"x".repeat(10_000_000))
        .sees("1 MiB")
        .prompts_or_keeps("hello");
    terminal
        .line(" there")
        .prompts_after("You said: hello there");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
}

impl Terminal {
    /// Waits until the last line is the prompt with these words.
    #[track_caller]
    fn prompts_or_keeps(&mut self, words: &str) -> &mut Self {
        self.waits(words, |screen| {
            screen
                .contents()
                .trim_end()
                .ends_with(&format!("you> {words}"))
        })
    }
}

#[test]
fn a_newline_has_three_keys() {
    let home = Home::new();
    let model = home.script(&[r#"{"text": "Read."}"#]);
    let mut terminal = Terminal::of(home.command(&["-m", &model]), Kind::Kitty);
    terminal.prompts_after("/help");
    terminal.keys("a\x1b\rb\nc\x1b[13;2ud").sees("...> d");
    terminal.line("").prompts_after("Read.");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    assert_eq!(messages(&home), ["a\nb\nc\nd"]);
}

#[test]
fn what_was_typed_comes_back_the_next_time() {
    let home = Home::new();
    let mut terminal = talking(&home, &[ECHO]);
    terminal
        .line("remember the milk")
        .prompts_after("You said: remember the milk");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    let history = home.path("state/adjutant/history.txt");
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(
        std::fs::metadata(&history).unwrap().permissions().mode() & 0o777,
        0o600
    );

    let mut terminal = talking(&home, &[ECHO]);
    terminal.keys("\x1b[A").sees("you> remember the milk");
    terminal
        .line("!")
        .prompts_after("You said: remember the milk!");
    // Ctrl-R searches.
    terminal
        .keys("\x12")
        .keys("the milk")
        .sees("the milk) remember the milk!")
        .keys(CTRL_C);
    terminal.prompts_after("the milk) remember");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
}

#[test]
fn a_temporary_chat_leaves_no_history() {
    let home = Home::new();
    let model = home.script(&[ECHO]);
    let mut terminal = Terminal::start(&home, &["--temp", "-m", &model]);
    terminal.prompts_after("/help");
    terminal
        .line("a secret")
        .prompts_after("You said: a secret");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    assert!(!home.path("state/adjutant/history.txt").exists());
}

#[test]
fn tab_completes_a_command() {
    let home = Home::new();
    let mut terminal = talking(&home, &[ECHO]);
    terminal
        .keys("/usa\t")
        .sees("you> /usage")
        .line("")
        .prompts_after("0 turns");
    // More than one that fits is a choice, below the line.
    terminal
        .keys("/re\t")
        .sees("you> /re")
        .sees("/retry")
        .sees("/resume")
        .keys(CTRL_C);
    terminal.prompts_after("0 turns");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
}

#[test]
fn an_editor_of_ones_own_writes_the_message() {
    let home = Home::new();
    let model = home.script(&[r#"{"text": "Read."}"#]);
    let editor = home.file("editor.sh", "printf ' and\\nmore' >> \"$1\"\n");
    let mut command = home.command(&["-m", &model]);
    command
        .env("EDITOR", format!("sh {}", arg(&editor)))
        .env("PATH", "/usr/bin:/bin");
    let mut terminal = Terminal::of(command, Kind::Usual);
    terminal.prompts_after("/help");
    terminal
        .keys("begun")
        .sees("begun")
        .keys("\x0f")
        .sees("...> more");
    terminal.line("").prompts_after("Read.");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    assert_eq!(messages(&home), ["begun and\nmore"]);
}

#[test]
fn the_process_ends_when_it_is_told_to_while_the_editor_is_open() {
    let home = Home::new();
    let model = home.script(&[ECHO]);
    let editor = home.file("editor.sh", "echo open\nexec sleep 1000\n");
    let mut command = home.command(&["-m", &model]);
    command
        .env("EDITOR", format!("sh {}", arg(&editor)))
        .env("PATH", "/usr/bin:/bin");
    let mut terminal = Terminal::of(command, Kind::Usual);
    terminal.prompts_after("/help");
    terminal.line("/edit").sees("open").signal(Signal::SIGTERM);
    terminal.ends_with(143);
}

#[test]
fn the_last_answer_is_rated() {
    let home = Home::new();
    let mut terminal = talking(&home, &[r#"{"text": "Grüße."}"#]);
    terminal
        .line("/good")
        .prompts_after("there is no answer yet");
    terminal.line("hello").prompts_after("Grüße.");
    terminal.line("/good").prompts_after("noted");
    terminal
        .line("/bad not in Swiss German")
        .prompts_after("noted");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    let listed = home
        .run(&["log", "list", "--feedback", "down", "--json"])
        .succeeds()
        .json();
    assert_eq!(
        listed[0]["feedback"]["comment"], "not in Swiss German",
        "{listed}"
    );
}

#[test]
fn the_clipboard_gets_the_answer() {
    use base64::Engine as _;
    let home = Home::new();
    let mut terminal = talking(&home, &[r#"{"text": "Grüße."}"#]);
    terminal
        .line("/copy")
        .prompts_after("there is no answer yet");
    terminal.line("hello").prompts_after("Grüße.");
    terminal.line("/copy").prompts_after("clipboard");
    let copied = base64::engine::general_purpose::STANDARD.encode("Grüße.");
    assert!(terminal.raw().contains(&format!("\x1b]52;c;{copied}\x07")));
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
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
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    assert_eq!(
        messages(&home),
        ["some words that are long enough to need two lines of a narrow terminal or not"]
    );
}

#[test]
fn another_model_answers_in_the_middle_of_a_conversation() {
    let home = Home::new();
    let other = home.script(&[r#"{"text": "I am another."}"#]);
    let mut terminal = talking(&home, &[ECHO]);
    terminal.line("hello").prompts_after("You said: hello");
    terminal
        .line("/model nosuch/model")
        .sees("Error:")
        .prompts_after("Error:");
    terminal.line(&format!("/model {other}")).waits(
        "the greeting of the other model, and a prompt",
        |screen| {
            let contents = screen.contents();
            contents.matches("scripted/script").count() == 2
                && contents.trim_end().ends_with("you>")
                && screen.bracketed_paste()
        },
    );
    terminal.line("and you?").prompts_after("I am another.");
    terminal
        .line("/retry")
        .waits("the failure of a script that is used up", |screen| {
            screen.contents().contains("Error:")
                && screen.contents().matches("and you?").count() >= 2
        });
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    let (_, decisions) = home.json(&["log", "list"]);
    let conversations: std::collections::HashSet<_> = decisions
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["conversation"].to_string())
        .collect();
    assert_eq!(
        conversations.len(),
        2,
        "what is answered anew is answered in a branch"
    );
}

#[test]
fn other_answers_and_other_words_are_kept_beside_the_first() {
    let home = Home::new();
    let replies = ["Tea.", "Coffee.", "Cocoa."].map(|words| format!(r#"{{"text": "{words}"}}"#));
    let mut terminal = talking(&home, &replies.each_ref().map(String::as_str));
    terminal
        .line("/retry")
        .prompts_after("nothing has been said yet");
    terminal.line("something hot").prompts_after("Tea.");
    terminal.line("/branches").prompts_after("in one way only");
    terminal.line("/retry").prompts_after("Coffee.");
    terminal
        .line("/rewind 2")
        .prompts_after("that many messages");
    terminal
        .line("/rewind")
        .sees("in the place of")
        .waits("the words at the prompt", |screen| {
            screen.contents().trim_end().ends_with("you> something hot")
        });
    terminal.line(" and sweet").prompts_after("Cocoa.");
    terminal
        .line("/branches")
        .prompts_after("* 3  something hot and sweet → Cocoa.");
    let screen = terminal.screen();
    assert!(
        screen.contains("1  something hot → Tea.") && screen.contains("2  something hot → Coffee."),
        "{screen}"
    );
    terminal
        .line("/branches 4")
        .prompts_after("there are 3 of them");
    terminal
        .line("/branches 1")
        .waits("the first answer again", |screen| {
            screen.contents().matches("Tea.").count() == 3
        });
    terminal
        .line("/branches")
        .prompts_after("* 1  something hot → Tea.");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    let (_, listed) = home.json(&["sessions", "list"]);
    let branches: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["branched_from"]["seq"] == 0)
        .collect();
    assert_eq!(
        (listed.as_array().unwrap().len(), branches.len()),
        (3, 2),
        "{listed}"
    );
    let first = branches[0]["branched_from"]["conversation_id"]
        .as_str()
        .unwrap();
    let table = home.run(&["sessions", "list"]).succeeds().stdout;
    assert_eq!(
        table
            .matches(&format!("branch of {}", &first[first.len() - 8..]))
            .count(),
        2,
        "{table}"
    );
    home.run(&["sessions", "rm", "-y", first]).succeeds();
    assert_eq!(home.json(&["db", "check"]).0, 0);
    assert_eq!(
        home.json(&["sessions", "list"]).1.as_array().unwrap().len(),
        2
    );
}

#[test]
fn a_process_that_is_killed_loses_nothing_but_the_running_turn() {
    let home = Home::new();
    let mut terminal = talking(
        &home,
        &[
            r#"{"match": "second", "text": "Never", "fault": "stall"}"#,
            ECHO,
        ],
    );
    terminal
        .line("the first")
        .prompts_after("You said: the first");
    terminal
        .line("the second")
        .sees("Never")
        .signal(Signal::SIGKILL);
    assert_eq!(terminal.ends(), 137);

    let model = home.script(&[r#"{"text": "Here I am again."}"#, ECHO]);
    let mut terminal = Terminal::start(&home, &["-c", "-m", &model]);
    terminal
        .sees("Here I am again.")
        .sees("the first")
        .prompts_after("the second");
    terminal
        .line("the third")
        .prompts_after("You said: the third");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    assert_eq!(messages(&home), ["the first", "the second", "the third"]);
}

#[test]
fn a_process_that_is_asked_to_end_ends_in_order_wherever_it_is() {
    for signal in [Signal::SIGTERM, Signal::SIGHUP] {
        let home = Home::new();
        let mut terminal = talking(
            &home,
            &[ECHO, r#"{"text": "Half.\n\nOf", "fault": "stall"}"#],
        );
        terminal.line("hello").prompts_after("You said: hello");
        terminal
            .keys("half a line")
            .sees("half a line")
            .signal(signal);
        terminal.ends_with(143);
        assert!(terminal.echoes(), "the terminal is as it was");

        let mut terminal = talking(&home, &[r#"{"text": "Half.\n\nOf", "fault": "stall"}"#]);
        terminal.line("go on").sees("Half.").signal(signal);
        terminal.ends_with(143);
        assert!(terminal.echoes(), "the terminal is as it was");
        assert_eq!(messages(&home), ["hello", "go on"]);
        let (_, decisions) = home.json(&["log", "list"]);
        assert_eq!(decisions[0]["outcome"], "CANCELLED:BY_USER");
    }
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
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
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
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    assert!(!terminal.raw().contains('\x1b'), "{:?}", terminal.raw());
}

#[test]
fn a_terminal_that_answers_nothing_gets_lines_and_loses_none() {
    let home = Home::new();
    let model = home.script(&[ECHO]);
    let mut terminal = Terminal::of(home.command(&["-m", &model]), Kind::Silent);
    terminal.keys("hello\n").sees("You said: hello");
    terminal.keys("again\n").sees("You said: again");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
}

#[test]
fn a_vault_is_named_completed_attached_and_written_to() {
    let home = Home::new();
    std::fs::create_dir_all(home.path("Notes/Projects")).unwrap();
    home.file(
        "Notes/Projects/Diana.md",
        "She \u{1b}[31mlikes\u{1b}[0m tea.\n",
    );
    let vault = home.path("Notes");
    let model = home.script(&[ECHO]);
    let mut terminal = Terminal::start(&home, &["--vault", arg(&vault), "-m", &model]);
    terminal.sees("vault Notes").prompts_after("/help");
    terminal.line("#Ana rides to work").prompts_after("/undo");
    let facts = std::fs::read_to_string(vault.join("memory/facts.md")).unwrap();
    assert!(facts.contains("Ana rides to work"), "{facts}");
    terminal
        .line("/memory")
        .prompts_after("  Ana rides to work")
        .line("/undo")
        .prompts_after("again.");
    terminal.keys("what of @dia\t").sees("@Projects/Diana");
    terminal
        .line("and @nobody?")
        .sees("attached: Projects/Diana.md, 1 line")
        .sees("@nobody is not attached");
    terminal.prompts_after("tea.");
    assert!(!terminal.raw().contains("\x1b[31mlikes"));
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    assert!(
        !std::fs::read_to_string(vault.join("memory/facts.md"))
            .unwrap()
            .contains("Ana rides")
    );
}

#[test]
fn what_the_memory_told_for_an_answer_is_shown_and_mended_there() {
    let home = Home::new();
    let vault = home.path("Notes");
    std::fs::create_dir_all(&vault).unwrap();
    let model = home.script(&[ECHO]);
    let mut terminal = Terminal::start(&home, &["--vault", arg(&vault), "-m", &model]);
    terminal
        .prompts_after("/help")
        .line("/memory told")
        .prompts_after("no turn yet");
    terminal
        .line("#Ana rides her bike to work")
        .prompts_after("/undo");
    terminal
        .line("how does Ana get to work?")
        .sees("1 line from your memory")
        .prompts_after("You said");
    terminal
        .line("/memory told")
        .sees("Ana rides her bike to work")
        .sees("by you")
        .prompts_after("/forget ID");
    terminal
        .line("/memory edit bike: Ana takes the train to work")
        .prompts_after("/undo");
    terminal
        .line("/memory told")
        .prompts_after("changed or forgotten since");
    // What stands there already is not told again; that it is wrong is.
    terminal
        .line("and to work on Monday?")
        .sees("2 lines from your memory")
        .prompts_after("You said");
    terminal
        .line("/memory told")
        .sees("Ana takes the train to work")
        .prompts_after("/forget ID");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
}

#[test]
fn conversations_are_found_named_taken_up_and_written_out() {
    let home = Home::new();
    let mut terminal = talking(&home, &[ECHO]);
    terminal
        .line("/export")
        .prompts_after("nothing has been said");
    terminal
        .line("about cheese")
        .prompts_after("You said: about cheese");
    terminal
        .line("/rename Cheese")
        .prompts_after("is now called");
    terminal
        .line("/context")
        .sees("instruction")
        .prompts_after("kept free");
    terminal
        .line("/export cheese.md")
        .prompts_after("written to");
    let written = std::fs::read_to_string(home.path("project/cheese.md")).unwrap();
    assert!(
        written.starts_with("# Cheese") && written.contains("You said: about cheese"),
        "{written}"
    );
    terminal
        .line("/export cheese.md")
        .prompts_after("there already");
    terminal
        .line("/new")
        .prompts_after("a new conversation")
        .line("about wine")
        .prompts_after("You said: about wine");
    terminal
        .line("/sessions chee")
        .sees("Cheese")
        .prompts_after("Cheese");
    let (_, sessions) = home.json(&["sessions", "list"]);
    let named = |row: &&serde_json::Value| row["title"] == "Cheese";
    let id = sessions.as_array().unwrap().iter().find(named).unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    terminal
        .line(&format!("/resume {id}"))
        .sees("going on with")
        .prompts_after("going on with");
    terminal
        .line("more of it")
        .prompts_after("You said: more of it");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    let (_, decisions) = home.json(&["log", "list"]);
    assert_eq!(decisions[0]["conversation"], decisions[2]["conversation"]);
    assert_ne!(decisions[0]["conversation"], decisions[1]["conversation"]);
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

#[test]
fn what_is_typed_while_servers_start_is_the_first_message() {
    let home = Home::new();
    let server = home.file("server.sh", include_str!("mcp_servers/server.sh"));
    let (began, go) = (home.path("began"), home.path("go"));
    for pipe in [&began, &go] {
        assert!(
            std::process::Command::new("mkfifo")
                .arg(pipe)
                .status()
                .unwrap()
                .success()
        );
    }
    let slow = format!(
        "echo > '{}'; read -r go < '{}'; exec sh '{}'",
        arg(&began),
        arg(&go),
        arg(&server)
    );
    home.config(&format!(
        "[mcp.servers.shell]\ncommand = [\"sh\", \"-c\", \"{slow}\"]\n"
    ));
    let model = home.script(&[ECHO]);
    let mut terminal = Terminal::start(&home, &["-m", &model]);
    // The server has begun, and does not answer before it is told to.
    std::fs::read(&began).unwrap();
    terminal.keys("typed early\r");
    std::fs::write(&go, "go\n").unwrap();
    terminal.prompts_after("You said: typed early");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    assert!(terminal.echoes(), "the terminal is as it was");
}

#[test]
fn ctrl_c_while_servers_start_leaves_the_terminal_as_it_was() {
    let home = Home::new();
    let began = home.path("began");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&began)
            .status()
            .unwrap()
            .success()
    );
    // The shell keeps its output open: a server that closes it has not started, and is not waited
    // for.
    let never = format!("echo > '{}'; cat > /dev/null", arg(&began));
    home.config(&format!(
        "[mcp.servers.shell]\ncommand = [\"sh\", \"-c\", \"{never}\"]\n"
    ));
    let model = home.script(&[ECHO]);
    let mut terminal = Terminal::start(&home, &["-m", &model]);
    std::fs::read(&began).unwrap();
    terminal.keys(CTRL_C);
    terminal.ends_with(130);
    assert!(terminal.echoes());
}

#[test]
fn a_file_behind_an_at_sign_is_completed_asked_for_once_and_attached() {
    let home = Home::new();
    std::fs::create_dir(home.path("project/src")).unwrap();
    home.file("project/src/main.rs", "fn main() {}\n");
    home.file("project/README.md", "Read me.\n");
    let mut terminal = talking(&home, &[ECHO]);
    terminal
        .keys("see @src/ma\t")
        .sees("@src/main.rs")
        .keys("\r")
        .sees("Allow @ to attach files from")
        .sees("[y] yes");
    terminal
        .line("n")
        .sees("is not attached, and nothing was sent");
    let twice = |words: &'static str| {
        move |screen: &vt100::Screen| screen.contents().matches(words).count() == 2
    };
    terminal.waits("the line that came back", twice("you> see @src/main.rs"));
    terminal.keys("\r").waits("the question", twice("[y] yes"));
    terminal
        .line("y")
        .sees("attached: file \"src/main.rs\", 1 line")
        .prompts_after("fn main() {}");
    terminal
        .line("and @README.md")
        .sees("attached: file \"README.md\"")
        .prompts_after("Read me.");
    terminal
        .line("and @src/mian.rs")
        .sees("@src/mian.rs cannot be read");
    terminal.waits("the line that came back", twice("you> and @src/mian.rs"));
    terminal.keys(CTRL_C).prompts_after("mian.rs");
    terminal.keys(CTRL_D);
    terminal.ends_with(0);
    assert_eq!(messages(&home).len(), 2);
    let list = home.run(&["config", "trust", "--list"]).succeeds();
    assert!(
        list.stdout.contains("may go along with a message"),
        "{list:?}"
    );
    home.run(&["-m", &home.script(&[ECHO]), "sum @README.md"])
        .succeeds();
    home.run(&["config", "trust", "--revoke"]).succeeds();
    home.run(&["-m", &home.script(&[ECHO]), "sum @README.md"])
        .ends_with(2)
        .says("is not trusted");
}
