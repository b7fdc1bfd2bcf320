//! The syntaxes in which models write calls as text.

/// A syntax in which models write calls.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Syntax {
    pub(super) open: &'static str,
    /// The tags that end it, as does the end of the answer.
    pub(super) close: &'static [&'static str],
}

pub(super) const SYNTAXES: &[Syntax] = &[
    Syntax {
        open: "<tool_call>",
        close: &["</tool_call>"],
    },
    Syntax {
        open: "<function=",
        close: &["</function>"],
    },
    Syntax {
        open: "<function_call>",
        close: &["</function_call>"],
    },
    Syntax {
        open: "<tools>",
        close: &["</tools>"],
    },
    Syntax {
        open: "<|tool_call|>",
        close: &["<|/tool_call|>"],
    },
    Syntax {
        open: "<|python_tag|>",
        close: &["<|eom_id|>", "<|eot_id|>"],
    },
    Syntax {
        open: "[TOOL_CALLS]",
        close: &[],
    },
];
