//! What is known of a call before it runs.

use adjutant_core::{Arguments, CallId};

/// A call that may run.
#[derive(Clone, Copy)]
pub(super) struct Call<'c> {
    pub(super) id: &'c CallId,
    pub(super) tool: &'c str,
    pub(super) arguments: &'c Arguments,
}
