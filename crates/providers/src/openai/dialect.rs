//! [`Dialect`]: the differences between servers with the Chat Completions API.

use super::family::Family;
use crate::encode::Forcing;

/// The differences between servers with the Chat Completions API.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect {
    /// The form of the server's addresses.
    pub(super) address: Address,
    /// Returns the limits and settings of a model by its name.
    pub(super) family: fn(&str) -> Family,
    /// True if it may be any server, among them self-hosted ones.
    pub(super) may_be_self_hosted: bool,
    /// The name of the field that bounds the output.
    pub(super) output_bound: OutputBound,
    /// The form of call ids that it accepts.
    pub(super) call_ids: CallIds,
    /// True if a stream counts tokens only if `stream_options` asks for it; other servers always
    /// count, or refuse the option.
    pub(super) counts_streams_on_request: bool,
    /// True if the server accepts its own thinking back.
    pub(super) takes_thinking: bool,
    /// True if a thinking model refuses answers without thinking, even those of other models.
    pub(super) insists_on_thinking: bool,
    /// True if the server may run a template that refuses neighbours of one role.
    pub(super) wants_alternation: bool,
    /// The required calls that models there can be held to. Models that insist on thinking refuse
    /// any of them.
    pub(super) forcing: Forcing,
    /// True if a refusal is sent in a separate field, `refusal`.
    pub(super) takes_refusals: bool,
    /// The content that the server may pass on as text, because it does not know its model's
    /// syntax for it.
    pub(super) in_text: InText,
    /// True if `usage.cost` is in US dollars.
    pub(super) costs_in_dollars: bool,
    /// A sentence on how to find models, for errors about an unknown one; may be empty.
    pub(super) model_advice: &'static str,
}

/// Content besides the answer's text that a server may leave in the text.
#[derive(Debug, Clone, Copy)]
pub(super) enum InText {
    Nothing,
    /// Thinking in tags, such as `<think>`.
    Thinking,
    /// Thinking, and calls of the request's tools.
    ThinkingAndCalls,
}

/// The form of a server's addresses.
#[derive(Debug, Clone, Copy)]
pub(super) enum Address {
    /// Base URL, this version, and the path; the key is sent as a bearer token.
    Version(&'static str),
    /// Azure's two forms; the key is sent in a separate header.
    Azure,
}

/// The name of the field that bounds the output.
#[derive(Debug, Clone, Copy)]
pub(super) enum OutputBound {
    /// OpenAI's current name, which its thinking models require.
    MaxCompletionTokens,
    /// OpenAI's deprecated name, which most servers know.
    MaxTokens,
}

/// The form of call ids that a server accepts.
#[derive(Debug, Clone, Copy)]
pub(super) enum CallIds {
    /// Any id of up to 40 bytes.
    UpTo40,
    /// Exactly nine letters and digits.
    Nine,
}
