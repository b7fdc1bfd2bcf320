//! Turns that MCP clients request, within the same limits as those of other routes.

use std::sync::{Arc, OnceLock};

use adjutant_mcp::server::BeginTurn;

use crate::state::{Shared, WeakShared};
use crate::titles;

/// Cell for the service's state, filled once it exists. A weak reference, because the state owns
/// the MCP server.
pub(crate) type StateCell = Arc<OnceLock<WeakShared>>;

/// Returns the function that starts a turn for a user.
pub(crate) fn begin(app: StateCell) -> BeginTurn {
    Box::new(move |user| {
        let app: Option<Shared> = app.get().and_then(WeakShared::upgrade);
        let app = app.ok_or_else(|| "the service is not there (any more)".to_owned())?;
        let running = app
            .begin_turn(user)
            .map_err(|problem| problem.detail().to_owned())?;
        Ok(Box::new(move |key, response| {
            running.record_end(response);
            titles::generate(&app, key, response);
        }))
    })
}
