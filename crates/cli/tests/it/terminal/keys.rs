//! Keys, pastes and typed-ahead input of the line editor.

use super::*;

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
fn keys_pressed_ahead_answer_no_question() {
    let home = Home::new();
    let script = deleting(&home, r#", "delay_ms": 3000"#);
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    let mut terminal = talking(&home, &script);
    // The model takes its time; the person does not.
    terminal.line("delete milk").sees("waiting");
    terminal.keys("y\ryes\r");
    terminal.sees("[y]");
    assert_eq!(home.tasks(), ["buy milk"]);
    terminal.line("n").prompts_after("I kept it.");
    terminal.quits();
    assert_eq!(home.tasks(), ["buy milk"]);
}

#[test]
fn a_burst_of_lines_is_one_message_whatever_ends_its_lines() {
    for end in ["\r", "\n", "\r\n"] {
        let home = Home::new();
        let mut terminal = talking(&home, &[r#"{"text": "Read."}"#]);
        let words = ["one", "two", "", "three", "four", "five"];
        terminal.keys(&words.join(end)).sees("five");
        terminal.line("").prompts_after("Read.");
        terminal.quits();
        assert_eq!(messages(&home), [words.join("\n")], "{end:?}");
    }
}

#[test]
fn a_line_of_a_program_is_a_message_of_its_own() {
    let home = Home::new();
    let mut terminal = talking(&home, &[ECHO]);
    for words in ["one", "two"] {
        terminal
            .keys(&format!("{words}\r"))
            .prompts_after(&format!("You said: {words}"));
    }
    terminal.quits();
    assert_eq!(messages(&home), ["one", "two"]);
}

#[test]
fn ctrl_c_gives_up_all_of_a_burst_that_arrives_while_an_answer_does() {
    let home = Home::new();
    let mut terminal = talking(
        &home,
        &[
            r#"{"text": "The first half.\n\nAnd", "fault": "stall"}"#,
            ECHO,
        ],
    );
    terminal.line("tell me").sees("The first half.");
    // Less than the terminal keeps of what nobody reads.
    let lines: String = (1..=100).map(|number| format!("line {number}\r")).collect();
    terminal.keys(&lines).keys(CTRL_C);
    terminal.prompts_after("The first half.");
    terminal.line("go on").prompts_after("You said: go on");
    terminal.quits();
    assert_eq!(messages(&home), ["tell me", "go on"]);
}

#[test]
fn a_pasted_block_is_deleted_and_brought_back_as_one() {
    let home = Home::new();
    let mut terminal = talking(&home, &[ECHO, ECHO, ECHO]);
    let lines: Vec<String> = (1..=500).map(|number| format!("line {number}")).collect();
    let block = "[pasted text 1: 500 lines]";
    // Backspace removes it, and nothing of it is left.
    terminal
        .keys("say ")
        .paste(&lines.join("\r"))
        .sees(&format!("you> say {block}"))
        .keys("\x7f")
        .waits("no block", |screen| !screen.contents().contains("[pasted"));
    terminal.line("now").prompts_after("You said: say now");
    // So does Delete in front of it; keys move over it as over a letter.
    terminal
        .paste(&lines.join("\r"))
        .sees(&format!("you> {block}"))
        .keys("\x1b[D\x1b[3~")
        .waits("no block", |screen| {
            screen.contents().trim_end().ends_with("you>")
        });
    // Undo brings it back, and it is sent whole.
    terminal.keys("\x1f").sees(&format!("you> {block}"));
    terminal
        .keys("\x05")
        .line(" end")
        .prompts_after("line 500 end");
    terminal.quits();
    assert_eq!(
        messages(&home),
        ["say now".to_owned(), format!("{} end", lines.join("\n"))]
    );
}

#[test]
fn keys_are_those_of_vi_if_they_are_set() {
    let home = Home::new();
    home.config("[terminal]\nkeys = \"vi\"\n");
    let mut terminal = talking(&home, &[ECHO]);
    // The first word is deleted, from the beginning.
    terminal
        .keys("one two three")
        .sees("one two three")
        .keys("\x1b")
        .keys("0dw")
        .sees("you> two three");
    terminal
        .keys("A four\r")
        .prompts_after("You said: two three four");
    terminal.quits();
    assert_eq!(messages(&home), ["two three four"]);
}

#[test]
fn ctrl_z_suspends_at_the_prompt_and_while_an_answer_arrives() {
    let home = Home::new();
    let model = home.script(&[r#"{"text": "The first half.\n\nAnd", "fault": "stall"}"#]);
    let mut terminal = shell(&home);
    terminal.sees("shell>");
    terminal
        .line(&format!("\"$PROGRAM\" -m '{model}'"))
        .prompts_after("/help");
    terminal.keys("half a").sees("you> half a");
    terminal.keys("\x1a").sees("Stopped").line("fg");
    // Below, not the one of before: what is typed ahead is the shell's.
    terminal.waits("the prompt again", |screen| {
        let contents = screen.contents();
        let below = contents.rsplit("Stopped").next();
        below.is_some_and(|below| below.contains("you> half a"))
    });
    terminal.line(" line").sees("The first half.");
    terminal.keys("\x1a");
    terminal.waits("a shell below the answer", |screen| {
        let contents = screen.contents();
        let below = contents
            .rsplit("The first half.")
            .next()
            .unwrap_or_default();
        // Nothing of the live line is left in front of the shell.
        below.contains("Stopped")
            && below
                .lines()
                .rfind(|line| !line.trim().is_empty())
                .is_some_and(|line| line.trim_end() == "shell>")
    });
    // Before it goes on, a Ctrl-C would be the shell's.
    terminal.line("fg").waits("the live line again", |screen| {
        let contents = screen.contents();
        let below = contents.rsplit("Stopped").next();
        below.is_some_and(|below| below.contains("And"))
    });
    terminal.keys(CTRL_C);
    terminal.prompts_after("The first half.");
    // Keys that are typed before the shell reads them would be lost.
    terminal.keys(CTRL_D).waits("the shell", |screen| {
        screen.contents().trim_end().ends_with("shell>")
    });
    terminal.line("exit");
    terminal.ends_with(0);
    assert_eq!(messages(&home), ["half a line"]);
}

#[test]
fn ctrl_z_without_a_shell_says_so_and_goes_on() {
    let home = Home::new();
    let mut terminal = talking(&home, &[ECHO]);
    terminal.keys("\x1a").prompts_after("there is no shell");
    terminal.line("hello").prompts_after("You said: hello");
    terminal.quits();
}

#[test]
fn ctrl_z_in_a_container_without_a_shell_says_so_and_goes_on() {
    // The first process of the container is in a group and a session from outside of it.
    let container = ["-r", "-p", "-f", "--kill-child"];
    let can = std::process::Command::new("unshare")
        .args(container)
        .arg("true")
        .output();
    if !can.is_ok_and(|done| done.status.success()) {
        crate::not_run::not_run("adjutant-cli", "a container for a terminal");
        return;
    }
    let home = Home::new();
    let model = home.script(&[ECHO]);
    let mut command = home.command_of(std::path::Path::new("unshare"), &container);
    command
        .args(["sh", "-c", "\"$0\" \"$@\"; exit $?"])
        .args([env!("CARGO_BIN_EXE_adjutant"), "-m", &model])
        .env("PATH", "/usr/bin:/bin");
    let mut terminal = Terminal::of(command, Kind::Usual);
    terminal
        .prompts_after("/help")
        .keys("\x1a")
        .prompts_after("there is no shell");
    terminal.line("hello").prompts_after("You said: hello");
    terminal.quits();
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
    terminal.quits();
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
    terminal.quits();
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
    terminal.quits();
    assert_eq!(messages(&home), ["a\nb\nc\nd"]);
}

#[test]
fn typed_lines_are_in_the_history_of_the_next_session() {
    let home = Home::new();
    let mut terminal = talking(&home, &[ECHO]);
    terminal
        .line("remember the milk")
        .prompts_after("You said: remember the milk");
    terminal.quits();
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
    terminal.quits();
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
    terminal.quits();
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
    terminal.quits();
}

#[test]
fn an_editor_of_ones_own_writes_the_message() {
    let home = Home::new();
    let editor = "printf ' and\\nmore' >> \"$1\"\n";
    let mut terminal = talking_with_editor(&home, r#"{"text": "Read."}"#, editor);
    terminal
        .keys("begun")
        .sees("begun")
        .keys("\x0f")
        .sees("...> more");
    terminal.line("").prompts_after("Read.");
    terminal.quits();
    assert_eq!(messages(&home), ["begun and\nmore"]);
}

#[test]
fn sigterm_ends_the_process_while_the_external_editor_is_open() {
    let home = Home::new();
    let mut terminal = talking_with_editor(&home, ECHO, "echo open\nexec sleep 1000\n");
    terminal.line("/edit").sees("open").signal(Signal::SIGTERM);
    terminal.ends_with(143);
}

#[test]
fn what_is_typed_while_servers_start_is_the_first_message() {
    let home = Home::new();
    let server = home.file("server.sh", include_str!("../mcp_servers/server.sh"));
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
    // The server has begun, and does not answer before the test writes to its pipe.
    std::fs::read(&began).unwrap();
    terminal.keys("typed early\r");
    std::fs::write(&go, "go\n").unwrap();
    terminal.prompts_after("You said: typed early");
    terminal.quits();
    assert!(terminal.echoes(), "the terminal is as it was");
}
