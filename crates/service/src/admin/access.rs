//! Extractor for the operator routes.

use adjutant_core::UserId;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::administration::Administration;
use crate::problem::Problem;
use crate::state::Shared;
use crate::user::Operator;

/// An operator with the data sources of `/v1/admin`. Other callers are refused.
pub(crate) struct Administrator {
    pub(crate) user: UserId,
    pub(crate) administration: Administration,
}

impl FromRequestParts<Shared> for Administrator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Problem> {
        let Operator(user) = Operator::from_request_parts(parts, state).await?;
        let administration = state
            .administration
            .get()
            .ok_or_else(|| Problem::unknown("address"))?;
        Ok(Self {
            user,
            administration: administration.clone(),
        })
    }
}
