//! The syntaxes in which models write calls as text.

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
