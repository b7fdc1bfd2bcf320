//! The syntaxes in which models write thinking and calls as text.

/// The tags around thinking at the beginning of an answer, from the chat templates of DeepSeek, Qwen
/// and most others, of Magistral, Seed-OSS and EXAONE, and from what fine-tuned models write.
pub(super) const THINKING_TAGS: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
];

/// A syntax in which models write calls.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Syntax {
    pub(super) open: &'static str,
    /// The tags that end it, as does the end of the answer.
    pub(super) close: &'static [&'static str],
}

pub(super) const SYNTAXES: &[Syntax] = &[
    tags("<tool_call>", &["</tool_call>"]),
    tags("<function=", &["</function>"]),
    tags("<function_call>", &["</function_call>"]),
    tags("<tools>", &["</tools>"]),
    tags("<|tool_call|>", &["<|/tool_call|>"]),
    tags("<|python_tag|>", &["<|eom_id|>", "<|eot_id|>"]),
    tags("[TOOL_CALLS]", &[]),
];

const fn tags(open: &'static str, close: &'static [&'static str]) -> Syntax {
    Syntax { open, close }
}
