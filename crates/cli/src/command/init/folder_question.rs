//! The question for a folder: Tab completes, Ctrl-U clears.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use reedline::{
    ColumnarMenu, Completer, CompletionResult, EditCommand, Emacs, KeyCode, KeyModifiers,
    MenuBuilder as _, Prompt, PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent,
    ReedlineMenu, Signal, Span, Suggestion, default_emacs_keybindings,
};

use crate::terminal::display::clean_line;

const MENU: &str = "folders";
/// Folders offered at once.
const OFFERED_MAX: usize = 100;

/// Result of the question.
pub(super) enum Answer {
    Typed(String),
    /// Ctrl-C, Ctrl-D, or Esc.
    Cancelled,
    /// The terminal cannot be read key by key.
    NoTerminal,
}

/// A question for a folder. If it is repeated, the line keeps what was typed.
pub(super) struct Question(Reedline);

impl Question {
    /// Creates the question. A relative path starts at `here`.
    pub(super) fn new(here: &Path, colors: bool) -> Self {
        let mut keys = default_emacs_keybindings();
        let next = ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu(MENU.to_owned()),
            ReedlineEvent::MenuNext,
        ]);
        keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, next);
        keys.add_binding(
            KeyModifiers::SHIFT,
            KeyCode::BackTab,
            ReedlineEvent::MenuPrevious,
        );
        // Esc cancels, as at the other questions.
        keys.add_binding(KeyModifiers::NONE, KeyCode::Esc, ReedlineEvent::CtrlC);
        let menu = ColumnarMenu::default().with_name(MENU).with_columns(1);
        let reedline = Reedline::create()
            .use_bracketed_paste(true)
            .with_ansi_colors(colors)
            .with_completer(Box::new(Folders {
                here: here.to_owned(),
            }))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_edit_mode(Box::new(Emacs::new(keys)));
        Self(reedline)
    }

    pub(super) fn ask(&mut self) -> Answer {
        match self.0.read_line(&FolderPrompt) {
            Ok(Signal::Success(text)) => {
                // If the folder cannot be the vault, the user corrects the line instead of typing
                // it again.
                self.0.run_edit_commands(&[
                    EditCommand::Clear,
                    EditCommand::InsertString(text.clone()),
                ]);
                Answer::Typed(text)
            }
            Ok(_) => Answer::Cancelled,
            Err(_) => Answer::NoTerminal,
        }
    }
}

/// Completes the last part of a path with existing folders.
struct Folders {
    here: PathBuf,
}

impl Completer for Folders {
    fn complete(&mut self, line: &str, cursor: usize) -> CompletionResult {
        let before = line.get(..cursor).unwrap_or_default();
        let suggestions = self.fitting(before).into_iter().map(|value| Suggestion {
            value,
            span: Span {
                start: 0,
                end: cursor,
            },
            ..Suggestion::default()
        });
        CompletionResult::fresh(suggestions.collect::<Vec<_>>())
    }
}

impl Folders {
    /// Returns the folders that complete the path, as they would be typed.
    fn fitting(&self, typed: &str) -> Vec<String> {
        if typed == "~" {
            return vec!["~/".to_owned()];
        }
        let separator = |char: char| char == '/' || (cfg!(windows) && char == '\\');
        let (above, beginning) = typed.split_at(typed.rfind(separator).map_or(0, |at| at + 1));
        let folder = self
            .here
            .join(crate::config::expand_home(PathBuf::from(above)));
        let wanted = beginning.to_lowercase();
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.path().is_dir())
            // A name that is not UTF-8 cannot be written to the settings, which are text.
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.to_lowercase().starts_with(&wanted))
            .filter(|name| beginning.starts_with('.') || !name.starts_with('.'))
            // Names with control characters are not offered, because the terminal would obey them.
            .filter(|name| clean_line(name) == *name)
            .collect();
        // The system lists a folder in any order.
        names.sort();
        names.truncate(OFFERED_MAX);
        names
            .into_iter()
            .map(|name| format!("{above}{name}/"))
            .collect()
    }
}

struct FolderPrompt;

impl Prompt for FolderPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("? Which folder (Tab completes)? ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_history_search_indicator(&self, _: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Borrowed("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_offered_and_files_are_not() {
        let home = tempfile::tempdir().unwrap();
        for folder in [
            "Notes/Work",
            "notes old",
            "Music",
            ".hidden",
            "Notes/\u{1b}[31mred",
        ] {
            std::fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        std::fs::write(home.path().join("Note.md"), "").unwrap();
        let folders = Folders {
            here: home.path().to_owned(),
        };
        assert_eq!(folders.fitting("no"), ["Notes/", "notes old/"]);
        assert_eq!(folders.fitting("Notes/"), ["Notes/Work/"]);
        assert_eq!(folders.fitting("./Notes/w"), ["./Notes/Work/"]);
        assert_eq!(folders.fitting("."), [".hidden/"]);
        assert_eq!(folders.fitting("~"), ["~/"]);
        let above = home.path().to_string_lossy().into_owned();
        assert_eq!(
            folders.fitting(&format!("{above}/Mu")),
            [format!("{above}/Music/")]
        );
        assert!(folders.fitting("nowhere/").is_empty());
    }
}
