//! Who may look.

use adjutant_core::UserId;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::administration::Administration;
use crate::problem::Problem;
use crate::state::Shared;
use crate::user::User;

/// Whoever runs the service, and what they look at. Extracting it refuses everybody else.
pub(crate) struct Operator {
    pub(crate) user: UserId,
    pub(crate) administration: Administration,
}

/// Returns whether a user runs the service: the user of the machine.
pub(crate) fn is_operator(user: &UserId) -> bool {
    *user == UserId::local()
}

impl FromRequestParts<Shared> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        let User(user) = User::from_request_parts(parts, state).await?;
        if !is_operator(&user) {
            return Err(Problem::forbidden("this is for whoever runs the service"));
        }
        let administration = state.administration.get().ok_or_else(|| Problem::unknown("address"))?;
        Ok(Self { user, administration: administration.clone() })
    }
}
