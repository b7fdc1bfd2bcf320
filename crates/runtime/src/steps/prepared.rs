//! A request before it is sent.

use adjutant_core::turn::{DoesNotFit, Fitted, Room};
use adjutant_core::{GenerateRequest, Reference};

/// A request on its way to the model.
pub(super) struct Prepared {
    /// As the turn made it.
    pub(super) native: GenerateRequest,
    /// What a weak model may refer to.
    pub(super) references: Vec<Reference>,
    pub(super) room: Room,
    pub(super) fitted: Result<Fitted, DoesNotFit>,
}
