//! Answers in each vendor's own form, made from what they say. Two test binaries use them: the
//! recorded set of this crate, and the fault table of `adjutant`, which includes this module by its
//! path.

pub(crate) mod said; // an answer, before it has a form

#[cfg(feature = "anthropic")]
pub(crate) mod anthropic;
#[cfg(feature = "gemini")]
pub(crate) mod gemini;
#[cfg(feature = "ollama")]
pub(crate) mod ollama;
#[cfg(feature = "openai")]
pub(crate) mod openai_chat;
#[cfg(feature = "openai")]
pub(crate) mod openai_responses;

use said::{Counts, Said, Trouble};

/// A vendor's form of answers.
pub(crate) trait Form: Sync {
    /// A model of the vendor.
    fn model(&self) -> &'static str;

    /// A whole answer.
    fn whole(&self, said: &Said) -> String;

    /// The same answer, streamed.
    fn events(&self, said: &Said) -> Events;

    /// The body of an error answer.
    fn error(&self, status: u16, trouble: Trouble) -> String;

    /// The vendor's word for the reason to stop.
    fn finish(&self, said: &Said) -> &'static str;

    /// The vendor's own counter of what was read, and of what was written.
    fn counters(&self, counts: Counts) -> (u64, u64) {
        (counts.input, counts.output)
    }

    /// An event as bytes of the stream.
    fn frame(&self, event: &str) -> String {
        format!("data: {event}\n\n")
    }
}

/// The events of a streamed answer.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Events of the content.
    pub(crate) said: Vec<String>,
    /// Events of the end.
    pub(crate) end: Vec<String>,
}

/// Words in pieces, as a stream has them.
fn pieces(words: &str) -> Vec<String> {
    const LENGTH: usize = 16;
    let chars: Vec<char> = words.chars().collect();
    chars
        .chunks(LENGTH)
        .map(|piece| piece.iter().collect())
        .collect()
}
