//! Detects prompts that the server cut: it drops the beginning of a prompt that is over the window,
//! and does not report it.
//!
//! Since 0.12 it can be asked not to (`truncate`), and then answers with an error. For older
//! servers, and for imitations of Ollama, the only sign is `prompt_eval_count`, which counts the
//! tokens that were left (`ollama#3839`, `#17427`, `#17889`).

use adjutant_core::{Content, Message};

use crate::decode::PromptLength;

/// Returns lower bounds on the length of a prompt. Counts only what every model's template shows:
/// text and tool results, not tools or thinking.
pub(super) fn prompt_length(messages: &[Message]) -> PromptLength {
    let mut length = PromptLength::default();
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

/// Returns a lower bound on the tokens of a text: no tokenizer joins two words in one token, or
/// more than the letters counted here.
///
/// A word counts one for each 16 letters or digits or part thereof. Scripts without spaces count
/// one for four characters, because a token may hold a short phrase. Signs and spaces count
/// nothing.
fn tokens_min(text: &str) -> u64 {
    let words = text.split(|c: char| !c.is_alphanumeric() || is_ideographic(c));
    let in_words: usize = words.map(|word| word.chars().count().div_ceil(16)).sum();
    let ideographic = text.chars().filter(|c| is_ideographic(*c)).count();
    (in_words + ideographic / 4) as u64
}

/// Returns true for characters of Chinese, Japanese, Korean and similar scripts.
fn is_ideographic(c: char) -> bool {
    c >= '\u{2e80}' && c.is_alphanumeric()
}

/// The context window of a model on a server, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// Tokens of prompt and answer together.
    pub(super) tokens: u64,
    /// True if `prompt_eval_count` includes tokens that the server had cached.
    pub(super) counts_all: bool,
}

/// Returns true if a server of this version counts cached tokens too. 0.30 did not
/// (`ollama#16428`), nor did the first ones (`ollama#2068`).
pub(super) fn counts_all(version: &str) -> bool {
    !version.starts_with("0.30.") && !version.starts_with("0.1.")
}

/// Returns true if a prompt of this length was cut, given that the server counted `read` tokens.
pub(super) fn was_cut(prompt: PromptLength, read: u64, window: Window) -> bool {
    let Window {
        tokens: window,
        counts_all,
    } = window;
    // Fewer tokens than words: something was not read, whatever the window is. A tenth and some
    // tokens are allowed for templates that leave a message out.
    let impossible = counts_all && prompt.tokens_min > read.saturating_add(read / 9 + 256);
    // The present engine drops half of the window and continues: the count is half the window and
    // two (`ollama#17427`).
    let halved = read.abs_diff(window / 2 + 2) <= 2 && prompt.chars * 10 > window * 27;
    // An older one fills the window completely, which leaves no space for an answer. A server that
    // reads more than `num_ctx` uses a window of its own choice.
    let full = read.abs_diff(window) <= 1 && prompt.chars > window * 3;
    impossible || halved || full || was_cut_to_a_default_window(prompt, read, window)
}

/// Returns true if a server that ignores `num_ctx` filled its own window. Those are powers of two,
/// and a whole prompt has exactly such a size once in a thousand times; one that also has many
/// characters for its token count was cut.
fn was_cut_to_a_default_window(prompt: PromptLength, read: u64, window: u64) -> bool {
    let usual = |window: u64| window >= 2048 && window.is_power_of_two();
    let fills_one = [read, read.saturating_add(1), read.saturating_sub(1)]
        .into_iter()
        .any(usual);
    fills_one && read < window && prompt.chars * 10 > read * 41
}

/// Returns true if an answer went beyond the window: the server then drops the beginning of the
/// prompt while it generates.
pub(super) fn was_outgrown(read: u64, written: u64, window: Window) -> bool {
    // A server that reads more than `num_ctx` uses a window of its own choice.
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
        assert_eq!(prompt_length(&messages).tokens_min, 2 + 5);
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
        let prose = |tokens: u64| PromptLength {
            chars: tokens * 9 / 2,
            tokens_min: tokens * 3 / 4,
        };
        let code = |tokens: u64| PromptLength {
            chars: tokens * 3,
            tokens_min: tokens * 2 / 5,
        };
        // As reported: 50,000 tokens of code and 160,689 of prose in a window of 32,768; 7,900 in
        // one of 4,096.
        assert!(cut(code(50_000), 16_386, 32_768));
        assert!(cut(prose(160_689), 16_387, 32_768));
        assert!(cut(prose(7_900), 2_050, 4_096));
        // A server that does not keep to the requested window.
        assert!(cut(prose(20_000), 4_096, 32_768) && cut(prose(4_600), 4_096, 32_768));
        assert!(cut(prose(4_600), 4_095, 32_768) && !cut(code(4_096), 4_096, 32_768));
        assert!(cut(code(5_000), 4_096, 4_096));
        for whole in [1, 10, 100, 1_000, 10_000, 16_386, 30_000] {
            assert!(!cut(prose(whole), whole, 32_768), "{whole}");
            assert!(!cut(code(whole), whole, 32_768), "{whole}");
            // One word again and again is one token each time.
            assert!(
                !cut(
                    PromptLength {
                        chars: whole * 8,
                        tokens_min: whole
                    },
                    whole + 20,
                    65_536
                ),
                "{whole}"
            );
        }
        // The vendor's own servers use a larger window than requested.
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
