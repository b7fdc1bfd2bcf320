//! Errors of a command line that could not be parsed. Typed text in them is made safe for a
//! terminal.

mod suggestions; // suggestions for unknown commands and options

use std::error::Error as _;
use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};

use crate::terminal::display::{clean, clean_line};

/// Returns the error as it is printed, and suggestions. `args` are the arguments without the
/// program's name.
pub(crate) fn for_display(
    error: clap::Error,
    args: impl Iterator<Item = OsString>,
) -> (clap::Error, Vec<String>) {
    let args: Vec<String> = args.map(|arg| arg.to_string_lossy().into_owned()).collect();
    let tips = suggestions::tips(&error, &args);
    let mut error = harmless(error);
    if !tips.is_empty() {
        let tips = tips.iter().map(StyledStr::from).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    (error, tips)
}

/// Returns the error without control characters that were typed.
fn harmless(mut error: clap::Error) -> clap::Error {
    // The message of a value parser has no parts that could be cleaned one by one, so the rendered
    // text is cleaned and loses its colours.
    if error
        .source()
        .is_some_and(|source| is_obeyed(&source.to_string()))
    {
        let text = clean(&error.to_string());
        let text = text.strip_prefix("error: ").unwrap_or(&text).to_owned();
        return clap::Error::raw(error.kind(), text);
    }
    let typed: Vec<(ContextKind, ContextValue)> = error
        .context()
        .filter_map(|(kind, value)| {
            let cleaned = match value {
                ContextValue::String(text) => ContextValue::String(clean_line(text)),
                ContextValue::Strings(texts) => {
                    ContextValue::Strings(texts.iter().map(|text| clean_line(text)).collect())
                }
                _ => return None,
            };
            Some((kind, cleaned))
        })
        .collect();
    let mut obeyed = false;
    for (kind, value) in typed {
        obeyed |= error.get(kind) != Some(&value);
        error.insert(kind, value);
    }
    if obeyed {
        // clap's suggestion repeats what was typed, between its own colour sequences.
        error.remove(ContextKind::Suggested);
    }
    error
}

fn is_obeyed(text: &str) -> bool {
    clean(text) != text
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn what_was_typed_is_not_obeyed() {
        let hostile = "\u{1b}]0;owned\u{7}\u{1b}]52;c;aGk=\u{7}\u{202e}x\u{9b}2J";
        for args in [
            &["tasks", hostile][..],
            &["tasks", "list", "--status", hostile],
            &[&format!("--{hostile}")],
            &["serve", "--bind", hostile],
            &["serve", "--auth", hostile],
            &["eval", "x", "--min-pass", hostile],
            &["tasks", "list", hostile],
        ] {
            let args = [&["adjutant"], args].concat();
            // A word may be a prompt.
            let Err(error) = Cli::try_parse_from(&args) else {
                continue;
            };
            let kind = error.kind();
            let error = harmless(error);
            assert_eq!(error.kind(), kind);
            let text = error.render().to_string();
            assert!(
                !is_obeyed(&text) && text.contains("owned"),
                "{args:?}: {text:?}"
            );
            let coloured = error.render().ansi().to_string();
            for typed in ["\u{1b}]", "\u{7}", "\u{202e}", "\u{9b}"] {
                assert!(!coloured.contains(typed), "{args:?}: {coloured:?}");
            }
        }
    }
}
