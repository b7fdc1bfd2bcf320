//! Failures of a server that are waited for.

/// A failure of a server that ends by itself, after more than a few seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "_http"),
    expect(dead_code, reason = "scripts have none")
)]
pub(crate) enum Delay {
    /// The server has more to do than it can.
    Overload,
    /// The server loads the model.
    Loading,
}
