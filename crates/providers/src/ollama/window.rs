//! What the server did not read: it cuts a prompt that is over the window at its beginning, and
//! says so nowhere.
//!
//! Since 0.12 it can be told not to (`truncate`), and answers with an error then. Of older ones,
//! and of what is not Ollama's own server, the only sign is `prompt_eval_count`, which counts what
//! was left (`ollama#3839`, `#17427`, `#17889`).

use adjutant_core::{Content, Message};

use crate::decode::Length;

/// How long a transcript is at least. Only what every model's template shows: words, not tools or
/// thinking.
pub(super) fn length(messages: &[Message]) -> Length {
    let mut length = Length::default();
    let mut add = |text: &str| {
        length.chars += text.chars().count() as u64;
        length.tokens_min += tokens_min(text);
    };
    for content in messages
        .iter()
        .flat_map(Message::parts)
        .map(|part| &part.content)
    {
        match content {
            Content::Text { text } | Content::Refusal { text } => add(text),
            Content::ToolResult { result, .. } => add(&result.to_text()),
            _ => {}
        }
    }
    length
}

/// Fewer tokens than this no tokenizer makes of a text: none puts two words into one, or more than
/// so many letters.
///
/// A word counts one for each 16 letters or digits begun. Scripts without spaces count one for four
/// characters, because a token may hold a short phrase. Signs and spaces count nothing.
fn tokens_min(text: &str) -> u64 {
    let words = text.split(|c: char| !c.is_alphanumeric() || is_ideographic(c));
    let in_words: usize = words.map(|word| word.chars().count().div_ceil(16)).sum();
    let ideographic = text.chars().filter(|c| is_ideographic(*c)).count();
    (in_words + ideographic / 4) as u64
}

/// Chinese, Japanese, Korean and what is written like them.
fn is_ideographic(c: char) -> bool {
    c >= '\u{2e80}' && c.is_alphanumeric()
}

/// What is known of a server's window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// Tokens, prompt and answer together.
    pub(super) tokens: u64,
    /// The server counts what it had in its cache.
    pub(super) counts_all: bool,
}

/// Whether a server of this version counts what it had in its cache too. 0.30 did not
/// (`ollama#16428`), nor did the first ones (`ollama#2068`).
pub(super) fn counts_all(version: &str) -> bool {
    !version.starts_with("0.30.") && !version.starts_with("0.1.")
}

/// Whether a prompt of this length was cut, if the server counted `read` tokens of it.
pub(super) fn was_cut(prompt: Length, read: u64, window: Window) -> bool {
    let Window {
        tokens: window,
        counts_all,
    } = window;
    // Fewer tokens than there are words: whatever the window is, not everything was read. A tenth
    // and some tokens off, for templates that leave a message out.
    let impossible = counts_all && prompt.tokens_min > read.saturating_add(read / 9 + 256);
    // The present engine drops half of the window and reads on: the count is half the window and
    // two (`ollama#17427`).
    let halved = read.abs_diff(window / 2 + 2) <= 2 && prompt.chars * 10 > window * 27;
    // An older one fills the window to the brim, which leaves no room for an answer. A server that
    // reads more than it was told has a window of its own.
    let full = read.abs_diff(window) <= 1 && prompt.chars > window * 3;
    impossible || halved || full || was_cut_to_a_usual_window(prompt, read, window)
}

/// Whether a server that does not listen to `num_ctx` filled a window of its own. Those are powers
/// of two, and a whole prompt has one of just that size once in a thousand times; one that is also
/// long for its count is not whole.
fn was_cut_to_a_usual_window(prompt: Length, read: u64, window: u64) -> bool {
    let usual = |window: u64| window >= 2048 && window.is_power_of_two();
    let fills_one = [read, read.saturating_add(1), read.saturating_sub(1)]
        .into_iter()
        .any(usual);
    fills_one && read < window && prompt.chars * 10 > read * 41
}

/// Whether an answer went on beyond the window: the server then drops the beginning of the prompt
/// and writes on.
pub(super) fn was_outgrown(read: u64, written: u64, window: Window) -> bool {
    // A server that reads more than it was told has a window of its own.
    window.counts_all
        && read <= window.tokens
        && read.saturating_add(written) > window.tokens.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use adjutant_core::{ToolCall, ToolResult};
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_tokens_at_least() {
        for (text, expected) in [
            ("", 0),
            ("Hello, world!", 2),
            ("a_b(c)", 3),
            ("internationalization", 2),
            ("12345", 1),
            ("Über die Straße", 3),
            ("日本語、日本語日本", 2),
            ("   \n --- ", 0),
        ] {
            assert_eq!(tokens_min(text), expected, "{text:?}");
        }
        let result = ToolResult::ok(json!({"seen": true}));
        let id = ToolCall::from_json_text(0, None, "t".into(), "").id;
        let messages = [
            Message::user("One two.").unwrap(),
            Message::tool(id, "t", result).unwrap(),
        ];
        assert_eq!(length(&messages).tokens_min, 2 + 5);
    }

    #[test]
    fn an_answer_may_outgrow_the_window() {
        let outgrown = |read, written| {
            was_outgrown(
                read,
                written,
                Window {
                    tokens: 4096,
                    counts_all: true,
                },
            )
        };
        assert!(
            outgrown(4000, 200) && !outgrown(4000, 96) && !outgrown(5000, 96) && !outgrown(10, 0)
        );
        assert!(!was_outgrown(
            4000,
            200,
            Window {
                tokens: 4096,
                counts_all: false
            }
        ));
    }

    #[test]
    fn a_cut_prompt_is_told_from_a_whole_one() {
        let cut = |prompt, read, tokens| {
            was_cut(
                prompt,
                read,
                Window {
                    tokens,
                    counts_all: true,
                },
            )
        };
        // English prose: four and a half characters a token, three words in four tokens.
        let prose = |tokens: u64| Length {
            chars: tokens * 9 / 2,
            tokens_min: tokens * 3 / 4,
        };
        let code = |tokens: u64| Length {
            chars: tokens * 3,
            tokens_min: tokens * 2 / 5,
        };
        // As reported: 50,000 tokens of code and 160,689 of prose in a window of 32,768; 7,900 in
        // one of 4,096.
        assert!(cut(code(50_000), 16_386, 32_768));
        assert!(cut(prose(160_689), 16_387, 32_768));
        assert!(cut(prose(7_900), 2_050, 4_096));
        // A server that does not keep to the window it was told.
        assert!(cut(prose(20_000), 4_096, 32_768) && cut(prose(4_600), 4_096, 32_768));
        assert!(cut(prose(4_600), 4_095, 32_768) && !cut(code(4_096), 4_096, 32_768));
        assert!(cut(code(5_000), 4_096, 4_096));
        for whole in [1, 10, 100, 1_000, 10_000, 16_386, 30_000] {
            assert!(!cut(prose(whole), whole, 32_768), "{whole}");
            assert!(!cut(code(whole), whole, 32_768), "{whole}");
            // One word again and again is one token each time.
            assert!(
                !cut(
                    Length {
                        chars: whole * 8,
                        tokens_min: whole
                    },
                    whole + 20,
                    65_536
                ),
                "{whole}"
            );
        }
        // The vendor's own servers take more than they are told.
        assert!(!cut(prose(50_000), 50_000, 32_768));
        // A short prompt that was in the cache.
        assert!(!cut(prose(300), 4, 32_768));
        // So was a long one, with a server that does not count that.
        assert!(!was_cut(
            prose(8_000),
            100,
            Window {
                tokens: 32_768,
                counts_all: counts_all("0.30.2")
            }
        ));
        assert!(counts_all("0.33.3") && counts_all("0.3.0") && !counts_all("0.1.34"));
    }
}
