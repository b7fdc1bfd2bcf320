//! Suggestions for a command line that could not be parsed: words meant as a prompt, and options of
//! similar programs.

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::Cli;
use crate::terminal::display::clip;

/// Characters of a repeated prompt at most.
const PROMPT_MAX: usize = 200;

/// Options of llm, aichat and mods that have another name here, or do not exist for a reason.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (
        &["-s"],
        "a system prompt is --system TEXT, a conversation -r ID, and the last one -c",
    ),
    (
        &["--session", "--cid", "--conversation"],
        "a conversation is -r ID (adjutant sessions list), and the last one -c",
    ),
    (&["--continue-last"], "the last conversation is -c"),
    (
        &["-S", "--no-stream"],
        "a pipe or a file gets plain text, and --json prints the whole answer at its end",
    ),
    (
        &["-t", "--template", "-R"],
        "a prepared prompt is --role NAME, a text in roles/NAME.md of the configuration folder",
    ),
    (
        &["--prompt", "--sf", "--system-fragment", "-P"],
        "a system prompt is --system TEXT or --system @FILE",
    ),
    (
        &["-a", "--attachment", "--fragment"],
        "a text goes along with -f FILE; pictures are not read yet",
    ),
    (
        &["-x", "--extract", "--code"],
        "--system \"Answer with the code only.\" returns only code",
    ),
    (
        &["-e", "--execute"],
        "shell commands are not run: ask for one, and run it yourself",
    ),
    (
        &["--topp"],
        "there is no setting for it; the temperature is LLM_TEMPERATURE or `adjutant config set llm.temperature 0.7`",
    ),
    (
        &["-o", "--option", "--temperature"],
        "the temperature is LLM_TEMPERATURE or `adjutant config set llm.temperature 0.7`",
    ),
    (
        &["--max-tokens"],
        "the bound is LLM_MAX_TOKENS or `adjutant config set llm.max_tokens 2048`",
    ),
    (
        &["-n", "--no-log", "--no-cache"],
        "nothing is kept with --temp",
    ),
    (&["-u", "--usage"], "-v and --json show the tokens"),
    (
        &["-T", "--tool", "--functions"],
        "tools of other programs are MCP servers: `adjutant config edit`, section [mcp.servers.NAME]",
    ),
    (&["--api"], "provider and model are -m PROVIDER/MODEL"),
    (
        &["--key"],
        "a key is kept with `adjutant keys set PROVIDER`, or is in a variable",
    ),
    (
        &["--list-models"],
        "`adjutant models list` shows who can answer",
    ),
    (
        &["-l", "--list", "--list-sessions"],
        "`adjutant sessions list` shows the conversations",
    ),
    (
        &["--show", "--show-last"],
        "`adjutant sessions show ID` shows a conversation, `adjutant log show` the last turn",
    ),
    (&["--serve"], "`adjutant serve` answers over HTTP"),
    (
        &["--info"],
        "`adjutant config show` and `adjutant doctor` say how things are",
    ),
];

/// Commands that take a prompt and its options.
const TALKING: [&str; 2] = ["ask", "chat"];

/// Returns suggestions for these arguments, which lack the program's name. They contain no control
/// characters.
pub(super) fn tips(error: &clap::Error, args: &[String]) -> Vec<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let names: Vec<String> = Cli::command()
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned())
        .collect();
    let command = args.iter().position(|arg| names.contains(arg));
    match error.kind() {
        ErrorKind::UnknownArgument
            if text(ContextKind::InvalidArg).is_some_and(|arg| arg.starts_with('-')) =>
        {
            let talks = command
                .and_then(|at| args.get(at))
                .is_none_or(|name| TALKING.contains(&name.as_str()));
            let flag = text(ContextKind::InvalidArg).unwrap_or_default();
            let known = ELSEWHERE
                .iter()
                .find(|(flags, _)| talks && flags.contains(&flag));
            known
                .map(|(_, tip)| (*tip).to_owned())
                .into_iter()
                .collect()
        }
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => {
            let words = args
                .get(command.unwrap_or(args.len())..)
                .unwrap_or_default();
            let words: Vec<&str> = words
                .iter()
                .map(String::as_str)
                .take_while(|word| !word.starts_with('-'))
                .collect();
            // Two words, of which the second is nearly a command, are a misspelt command.
            let misspelt = words.len() < 3 && error.get(ContextKind::SuggestedSubcommand).is_some();
            let prompt = words.join(" ");
            if words.len() < 2 || misspelt || prompt.chars().count() > PROMPT_MAX {
                return Vec::new();
            }
            vec![format!(
                "adjutant ask {}    if you mean it as a prompt",
                quoted(&clip(&prompt, PROMPT_MAX))
            )]
        }
        _ => Vec::new(),
    }
}

/// Quotes a word for a shell.
fn quoted(text: &str) -> String {
    match text.contains(['"', '$', '`', '\\', '!']) {
        true => format!("'{}'", text.replace('\'', r"'\''")),
        false => format!("\"{text}\""),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn tips_for(args: &[&str]) -> Vec<String> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let line = std::iter::once("adjutant".to_owned()).chain(args.iter().cloned());
        tips(&Cli::try_parse_from(line).unwrap_err(), &args)
    }

    #[test]
    fn words_that_begin_like_a_command_may_be_a_prompt() {
        assert_eq!(
            tips_for(&["log", "my", "run"]),
            ["adjutant ask \"log my run\"    if you mean it as a prompt"]
        );
        let of_tasks = tips_for(&["-m", "demo", "tasks", "due", "today", "--json"]);
        assert_eq!(
            of_tasks,
            ["adjutant ask \"tasks due today\"    if you mean it as a prompt"]
        );
        assert!(
            tips_for(&["chat", "about", "cats"])
                .first()
                .unwrap()
                .contains("\"chat about cats\"")
        );
        assert_eq!(
            tips_for(&["log", "it's", "$5"])
                .first()
                .unwrap()
                .split("    ")
                .next(),
            Some(r"adjutant ask 'log it'\''s $5'")
        );
        assert!(
            tips_for(&["tasks", "lsit"]).is_empty(),
            "that is a misspelt command"
        );
        assert!(
            tips_for(&["log", "\u{1b}]0;owned\u{7}", "x"])
                .iter()
                .all(|tip| !tip.contains('\u{1b}'))
        );
    }

    #[test]
    fn options_of_other_programs_are_named_as_they_are_called_here() {
        for (args, words) in [
            (&["-s", "Be brief", "hello"][..], "--system"),
            (&["-m", "demo", "-t", "summarize"], "--role"),
            (&["ask", "--no-stream", "hello"], "--json"),
            (&["-S", "hello"], "--json"),
            (&["-e", "list files"], "run it yourself"),
            (&["-o", "temperature", "0", "hello"], "llm.temperature"),
            (&["--cid", "01h"], "-r ID"),
            (&["--list-models"], "models list"),
        ] {
            assert!(
                tips_for(args).first().unwrap().contains(words),
                "{args:?}: {:?}",
                tips_for(args)
            );
        }
        assert!(
            tips_for(&["tasks", "list", "-s"]).is_empty(),
            "nothing to do with a prompt"
        );
        assert!(tips_for(&["--jsno", "hello"]).is_empty());
    }

    #[test]
    fn no_listed_option_of_other_programs_exists_here() {
        for flag in ELSEWHERE.iter().flat_map(|(flags, _)| *flags) {
            let error = Cli::try_parse_from(["adjutant", flag, "x"]).unwrap_err();
            assert_eq!(
                error.kind(),
                ErrorKind::UnknownArgument,
                "{flag} is an option here"
            );
        }
    }
}
