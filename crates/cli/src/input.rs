//! The prompt: from the command line or from standard input.

use std::io::Read;

use adjutant_core::limits::MESSAGE_BYTES_MAX;

use crate::error::CliError;

/// What the person asks, fit to be sent.
#[derive(Debug, PartialEq)]
pub(crate) struct Prompt {
    pub(crate) text: String,
    /// What was changed about it, for the person.
    pub(crate) notice: Option<String>,
}

/// Takes the words of the command line, or reads standard input: for `-`, or if there are no words and nobody types.
///
/// With words, standard input is never touched: an open pipe must not make the command wait.
///
/// # Errors
/// Nothing to ask, too much of it, or not text.
pub(crate) fn prompt(
    words: &[String],
    stdin: impl Read,
    stdin_is_terminal: bool,
) -> Result<Prompt, CliError> {
    match words {
        [dash] if dash == "-" => read(stdin),
        [] if stdin_is_terminal => Err(empty("there is no prompt")),
        [] => read(stdin),
        words => checked(words.join(" ").into_bytes(), "the prompt"),
    }
}

fn read(stdin: impl Read) -> Result<Prompt, CliError> {
    let mut bytes = Vec::new();
    // One byte more than may be, so that too much is noticed and never held.
    stdin
        .take(MESSAGE_BYTES_MAX as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CliError::failed("standard input cannot be read").because(error.to_string()))?;
    checked(bytes, "standard input")
}

/// The bounds and the cleaning of every prompt, whatever it came from.
pub(crate) fn checked(bytes: Vec<u8>, what: &str) -> Result<Prompt, CliError> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(CliError::usage(format!(
            "{what} is longer than {MESSAGE_BYTES_MAX} bytes (1 MiB), the most that is taken"
        ))
        .or_try("send the part that matters"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        not_text(what, &format!("byte {} is not UTF-8", at + 1))
    })?;
    if let Some(at) = text.find('\0') {
        return Err(not_text(what, &format!("byte {} is zero", at + 1)));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n");
    let kept: String = text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect();
    let removed = text.chars().count() - kept.chars().count();
    if kept.trim().is_empty() {
        return Err(empty(&format!("{what} is empty")));
    }
    let notice = (removed > 0).then(|| match removed {
        1 => format!("1 control character was removed from {what}"),
        many => format!("{many} control characters were removed from {what}"),
    });
    Ok(Prompt { text: kept.trim_end().to_owned(), notice })
}

fn empty(message: &str) -> CliError {
    CliError::usage(message)
        .or_try("adjutant \"add buy milk\"")
        .or_try("echo \"what is still open?\" | adjutant")
}

fn not_text(what: &str, reason: &str) -> CliError {
    CliError::usage(format!("{what} is not text")).because(reason).or_try("send UTF-8 text")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Fails the test if it is read.
    struct Untouchable;

    impl Read for Untouchable {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            panic!("standard input was read");
        }
    }

    #[test]
    fn words_are_joined_and_standard_input_is_left_alone() {
        let prompt = prompt(&words(&["add", "buy", "milk"]), Untouchable, false).unwrap();
        assert_eq!(prompt, Prompt { text: "add buy milk".to_owned(), notice: None });
    }

    #[test]
    fn a_dash_or_nothing_reads_standard_input() {
        for given in [&["-"][..], &[]] {
            let prompt = prompt(&words(given), "hello\r\nthere\r\n".as_bytes(), false).unwrap();
            assert_eq!(prompt.text, "hello\nthere");
            assert_eq!(prompt.notice, None);
        }
    }

    #[test]
    fn nobody_is_waited_for_at_a_terminal() {
        assert_eq!(prompt(&[], Untouchable, true).unwrap_err().exit as u8, 2);
    }

    #[test]
    fn nothing_to_ask_is_an_error_with_an_example() {
        for text in ["", " \n\t ", "\u{1b}\u{7}"] {
            let error = prompt(&words(&["-"]), text.as_bytes(), false).unwrap_err();
            assert_eq!(error.exit as u8, 2);
            assert!(error.tries.iter().any(|way| way.contains("buy milk")));
        }
    }

    #[test]
    fn a_mebibyte_is_taken_and_no_byte_more() {
        let most = "x".repeat(MESSAGE_BYTES_MAX);
        assert_eq!(prompt(&[], most.as_bytes(), false).unwrap().text.len(), MESSAGE_BYTES_MAX);
        let error = prompt(&[], std::io::repeat(b'x'), false).unwrap_err();
        assert!(error.message.contains("1048576"), "{}", error.message);
    }

    #[test]
    fn binary_is_refused_with_its_place() {
        let cases: [(&[u8], &str); 2] = [(b"ab\xff", "byte 3"), (b"a\0b", "byte 2")];
        for (bytes, place) in cases {
            let error = prompt(&[], bytes, false).unwrap_err();
            assert_eq!(error.exit as u8, 2);
            assert!(error.cause.unwrap().contains(place));
        }
    }

    #[test]
    fn control_characters_are_removed_and_counted() {
        let prompt = prompt(&words(&["a\u{1b}[31mb\u{7}\tc"]), Untouchable, false).unwrap();
        assert_eq!(prompt.text, "a[31mb\tc");
        assert_eq!(prompt.notice.unwrap(), "2 control characters were removed from the prompt");
    }
}
