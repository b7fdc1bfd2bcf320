//! What is known of a call before it runs.

use adjutant_core::{Arguments, CallId};

/// A call that may run.
#[derive(Clone, Copy)]
pub(super) struct Call<'c> {
    pub(super) id: &'c CallId,
    pub(super) tool: &'c str,
    pub(super) arguments: &'c Arguments,
    /// Another call of the same answer comes next, and nothing else: an end that may be lost is
    /// written with its intent.
    pub(super) is_followed: bool,
}
