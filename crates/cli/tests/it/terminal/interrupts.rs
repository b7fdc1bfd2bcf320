//! Ctrl-C and termination signals in every phase of a session.

use super::*;

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
    terminal.quits();
    assert_eq!(messages(&home), ["tell me", "go on"]);
}

#[test]
fn ctrl_c_stops_a_tool_and_the_session_goes_on() {
    let home = Home::new();
    let server = home.file("server.sh", include_str!("../mcp_servers/server.sh"));
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
    terminal.quits();
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
    terminal.quits();
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
    terminal.quits();
    assert!(home.tasks().is_empty());
}

#[test]
fn a_message_that_answers_no_question_is_kept_in_the_line() {
    let home = Home::new();
    let script = deleting(&home, "");
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    let mut terminal = talking(&home, &script);
    terminal
        .line("delete milk")
        .sees("[y]")
        .keys(CTRL_C)
        .prompts_after("pending approve");
    terminal
        .line("what is up?")
        .waits("the question again", |screen| {
            screen.contents().matches("[y]").count() == 2
        });
    terminal.line("n").sees("I kept it.").sees("Enter sends it");
    terminal.sees("you> what is up?");
    terminal.line("").prompts_after("You said: what is up?");
    terminal.quits();
    assert_eq!(home.tasks(), ["buy milk"]);
}

/// All of what a yes is to is shown before it can be given.
#[test]
fn a_long_preview_is_viewed_before_it_is_approved() {
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
    terminal.quits();
    assert!(home.tasks().is_empty());
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
    terminal.quits();
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
