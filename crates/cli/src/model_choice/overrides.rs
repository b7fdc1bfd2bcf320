//! Connection options of a command.

/// Connection options of a command, which override all settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Override {
    /// Base URL of another host.
    pub(crate) base_url: Option<String>,
    /// Number of retries.
    pub(crate) retries: Option<u32>,
    /// True if a local server may be queried about its model first, which a raw call of one request
    /// must not do.
    #[cfg_attr(
        not(feature = "ollama"),
        expect(dead_code, reason = "only a server of Ollama is queried beforehand")
    )]
    pub(crate) asks: bool,
}

impl Override {
    /// Creates the options of a conversation: those of the settings, and a local server may be
    /// queried.
    pub(super) fn for_conversation() -> Self {
        Self {
            asks: true,
            ..Self::default()
        }
    }
}
