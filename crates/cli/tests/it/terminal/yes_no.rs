//! Questions that y or n answers.

use super::*;

/// Asks at a terminal if a task is to be deleted.
fn deleting_a_task(home: &Home, kind: &str) -> Terminal {
    home.add_task("buy milk");
    let mut command = home.command(&["tasks", "rm", "milk"]);
    command.env("TERM", kind);
    let mut terminal = Terminal::of(command, Kind::Usual);
    terminal.sees("buy milk").sees("[y/N]");
    terminal
}

#[test]
fn one_key_answers() {
    for kind in ["xterm-256color", "dumb"] {
        for (key, code, left) in [
            ("y", 0, &[][..]),
            ("Y", 0, &[]),
            ("n", 1, &["buy milk"]),
            // The default is in capitals.
            ("\r", 1, &["buy milk"]),
            ("\x1b", 1, &["buy milk"]),
            (CTRL_D, 1, &["buy milk"]),
            (CTRL_C, 130, &["buy milk"]),
        ] {
            let home = Home::new();
            let mut terminal = deleting_a_task(&home, kind);
            terminal.keys(key);
            terminal.ends_with(code);
            assert_eq!(home.tasks(), left, "{key:?} at {kind}");
            assert!(terminal.echoes(), "{key:?} at {kind}");
        }
    }
}

#[test]
fn words_answer_and_unclear_ones_are_asked_about_again() {
    let home = Home::new();
    let mut terminal = deleting_a_task(&home, "xterm-256color");
    terminal.keys("perhaps\r").sees("Please answer y or n.");
    terminal.waits("the question again", |screen| {
        screen.contents().matches("[y/N]").count() == 2
    });
    terminal.keys("yes\r");
    terminal.ends_with(0);
    assert!(home.tasks().is_empty());
}

#[test]
fn a_paste_answers_nothing() {
    let home = Home::new();
    let mut terminal = deleting_a_task(&home, "xterm-256color");
    terminal.waits("pastes that are marked", |screen| screen.bracketed_paste());
    terminal.paste("y").paste("yes\r").keys("n");
    terminal.ends_with(1);
    assert_eq!(home.tasks(), ["buy milk"]);

    // Nor does it answer a confirmation of a call.
    let home = Home::new();
    let script = deleting(&home, "");
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    let model = home.script(&script);
    let mut terminal = Terminal::start(&home, &["-m", &model, "delete milk"]);
    terminal.sees("[y] delete").paste("y").keys("n");
    assert!(terminal.ends_with(0).contains("I kept it."));
    assert_eq!(home.tasks(), ["buy milk"]);
}

#[test]
fn the_default_is_in_capitals() {
    for (key, written) in [("\r", true), ("y", true), ("n", false), (CTRL_C, false)] {
        let home = Home::new();
        let options = ["init", "--model", "demo", "--vault", "none"];
        let mut terminal = Terminal::start(&home, &options);
        terminal.sees("Write it? [Y/n]").keys(key);
        terminal.ends_with(if written { 0 } else { 130 });
        let file = home.path("config/adjutant/config.toml");
        assert_eq!(file.exists(), written, "{key:?}");
    }
}

#[test]
fn ctrl_z_at_a_question_suspends_it() {
    let home = Home::new();
    home.add_task("buy milk");
    let mut terminal = shell(&home);
    terminal
        .sees("shell>")
        .line("\"$PROGRAM\" tasks rm milk")
        .sees("[y/N]");
    terminal.keys("\x1a").sees("Stopped");
    terminal.line("fg").waits("the question again", |screen| {
        screen.contents().matches("[y/N]").count() == 2
    });
    terminal.keys("y").waits("the shell", |screen| {
        screen.contents().trim_end().ends_with("shell>")
    });
    terminal.line("exit");
    terminal.ends_with(0);
    assert!(home.tasks().is_empty());
}
