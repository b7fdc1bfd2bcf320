use clap::{CommandFactory as _, Parser as _};

use super::*;

fn parse(line: &[&str]) -> Cli {
    Cli::try_parse_from(std::iter::once("adjutant").chain(line.iter().copied())).unwrap()
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn words_that_are_no_command_are_a_prompt_even_if_a_command_follows() {
    assert_eq!(
        parse(&["add", "buy", "milk"]).prompt,
        ["add", "buy", "milk"]
    );
    assert_eq!(
        parse(&["what", "tasks", "list"]).prompt,
        ["what", "tasks", "list"]
    );
    assert!(parse(&["what", "tasks"]).command.is_none());
    assert_eq!(parse(&["-m", "demo", "hello", "--json"]).prompt, ["hello"]);
}

#[test]
fn what_follows_two_dashes_is_never_an_option() {
    let cli = parse(&["--", "-m", "tasks"]);
    assert_eq!(cli.prompt, ["-m", "tasks"]);
    assert!(cli.command.is_none() && cli.global.model.is_none());
}

#[test]
fn yes_takes_no_word_of_the_prompt() {
    let cli = parse(&["-y", "delete", "milk"]);
    assert_eq!(
        (cli.global.yes.as_slice(), cli.prompt.len()),
        (&["*".to_owned()][..], 2)
    );
    assert_eq!(
        parse(&["ask", "--yes=delete_task,add_task", "x"])
            .global
            .yes,
        ["delete_task", "add_task"]
    );
    assert!(parse(&["x"]).global.yes.is_empty());
}

#[test]
fn options_stand_before_or_behind_the_command() {
    assert!(parse(&["-c", "ask", "x"]).global.continues);
    assert!(parse(&["ask", "-c", "x"]).global.continues);
    assert!(parse(&["tasks", "list", "--json"]).global.json);
}

#[test]
fn a_lone_misspelt_command_is_no_prompt() {
    for word in ["taks", "task", "caht", "pendin", "logs"] {
        let error = parse(&[word]).check().unwrap_err();
        assert_eq!(error.exit as u8, 2, "{word}");
        assert!(error.message.contains("did you mean"), "{}", error.message);
    }
    for word in [
        "hello",
        "groceries",
        "basket",
        "logistics",
        "what",
        "yes",
        "no",
    ] {
        parse(&[word]).check().unwrap();
    }
    parse(&["taks", "are", "many"]).check().unwrap();
    parse(&["-c", "taks"]).check().unwrap();
}

#[test]
fn options_that_mean_nothing_are_refused() {
    assert!(parse(&["tasks", "list", "-c"]).check().is_err());
    assert!(parse(&["chat", "--json"]).check().is_err());
    assert!(parse(&["chat", "--stream-json"]).check().is_err());
    assert!(
        parse(&["tasks", "list", "--max-iterations", "3"])
            .check()
            .is_err()
    );
    assert!(
        parse(&["x", "--stream-json", "--max-iterations=3"])
            .check()
            .is_ok()
    );
    for line in [
        ["x", "--json", "--stream-json"],
        ["x", "--max-iterations", "0"],
    ] {
        assert!(Cli::try_parse_from(std::iter::once("adjutant").chain(line)).is_err());
    }
}
