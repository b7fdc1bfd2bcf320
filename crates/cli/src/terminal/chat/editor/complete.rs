use std::sync::Arc;

use reedline::{
    ColumnarMenu, Completer, CompletionResult, MenuBuilder as _, ReedlineMenu, Span, Suggestion,
};

use super::prompt::PROMPT;
use crate::command::completions::Candidate;
use crate::terminal::chat::commands::COMMANDS;
use crate::terminal::display::clean_line;
use crate::terminal::input::mention;

/// Name of the completion menu in the key bindings.
pub(super) const MENU: &str = "completion";

/// Names of notes and files offered at once.
pub(crate) const NAMES_MAX: usize = 50;

/// Finds names of notes and files that complete what is typed after `@`.
pub(crate) type Names = Arc<dyn Fn(&str) -> Vec<String> + Send + Sync>;

/// Finds arguments of a command such as `/model`.
pub(crate) type Arguments = Arc<dyn Fn(&str) -> Vec<Candidate> + Send + Sync>;

/// Completes slash commands, their arguments, and names of notes and files after `@`.
pub(super) struct ChatCompleter {
    pub(super) names: Names,
    pub(super) arguments: Arguments,
}

pub(super) fn menu() -> ReedlineMenu {
    let menu = ColumnarMenu::default()
        .with_name(MENU)
        .with_columns(1)
        // An open menu shows its marker in the place of the prompt.
        .with_marker(PROMPT);
    ReedlineMenu::EngineCompleter(Box::new(menu))
}

impl Completer for ChatCompleter {
    fn complete(&mut self, line: &str, cursor: usize) -> CompletionResult {
        let before = line.get(..cursor).unwrap_or_default();
        let suggestions: Vec<Suggestion> =
            if before.starts_with('/') && !before.contains(char::is_whitespace) {
                commands(before, cursor)
            } else if let Some((command, word)) =
                before.split_once(' ').filter(|_| before.starts_with('/'))
            {
                self.complete_argument(command, word.trim_start(), cursor)
            } else {
                self.names_at(before, cursor)
            };
        CompletionResult::fresh(suggestions)
    }
}

fn commands(word: &str, cursor: usize) -> Vec<Suggestion> {
    let fitting = COMMANDS
        .iter()
        .filter(|command| command.name.starts_with(word));
    fitting
        .map(|command| Suggestion {
            value: command.name.to_owned(),
            description: Some(command.meaning.to_owned()),
            span: Span {
                start: 0,
                end: cursor,
            },
            append_whitespace: !command.argument.is_empty(),
            ..Suggestion::default()
        })
        .collect()
}

impl ChatCompleter {
    /// Completes the argument of a command. `word` may be any part of it.
    fn complete_argument(&self, command: &str, word: &str, cursor: usize) -> Vec<Suggestion> {
        let typed = word.to_lowercase();
        let fits = |found: &Candidate| {
            found.value.to_lowercase().contains(&typed)
                || found.help.to_lowercase().contains(&typed)
        };
        let suggestion = |Candidate { value, help }: Candidate| Suggestion {
            value,
            description: Some(help).filter(|help| !help.is_empty()),
            span: Span {
                start: cursor.saturating_sub(word.len()),
                end: cursor,
            },
            ..Suggestion::default()
        };
        (self.arguments)(command)
            .into_iter()
            .filter(fits)
            .map(suggestion)
            .collect()
    }

    fn names_at(&self, before: &str, cursor: usize) -> Vec<Suggestion> {
        let Some((start, word)) = mention::open_mention(before) else {
            return Vec::new();
        };
        (self.names)(word)
            .into_iter()
            .take(NAMES_MAX)
            .map(|name| Suggestion {
                value: mention::mention(&clean_line(&name)),
                span: Span { start, end: cursor },
                // A folder is followed by a name in it, not by a blank.
                append_whitespace: !name.ends_with('/'),
                ..Suggestion::default()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(line: &str) -> Vec<String> {
        let all = ["Projects/Diana", "Two words"];
        let names: Names = Arc::new(move |start: &str| {
            let fits = |name: &&&str| name.to_lowercase().contains(&start.to_lowercase());
            all.iter()
                .filter(fits)
                .map(|name| (*name).to_owned())
                .collect()
        });
        let arguments: Arguments = Arc::new(|command: &str| {
            let found = |value: &str, help: &str| Candidate {
                value: value.to_owned(),
                help: help.to_owned(),
            };
            match command {
                "/resume" => vec![
                    found("5aaa5c0d", "Shopping"),
                    found("77aa0001", "Trip to Oslo"),
                ],
                _ => Vec::new(),
            }
        });
        let mut words = ChatCompleter { names, arguments };
        words
            .complete(line, line.len())
            .suggestions()
            .iter()
            .map(|found| found.value.clone())
            .collect()
    }

    #[test]
    fn commands_are_offered_at_the_beginning_only() {
        assert!(offered("/he").contains(&"/help".to_owned()));
        assert!(offered("say /he").is_empty());
        assert!(offered("/help now").is_empty());
    }

    #[test]
    fn what_stands_behind_a_command_is_found_by_id_or_name() {
        assert_eq!(offered("/resume "), ["5aaa5c0d", "77aa0001"]);
        assert_eq!(offered("/resume 77"), ["77aa0001"]);
        assert_eq!(offered("/resume  oslo"), ["77aa0001"]);
        assert!(offered("/resume nothing").is_empty() && offered("/new ").is_empty());
    }

    #[test]
    fn notes_are_offered_behind_an_at_sign() {
        assert_eq!(offered("look at @pro"), ["@Projects/Diana"]);
        assert_eq!(offered("@two"), ["@\"Two words\""]);
        assert_eq!(offered("@\"two w"), ["@\"Two words\""]);
        assert!(offered("ana@pro").is_empty());
    }
}
