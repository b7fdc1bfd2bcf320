//! Turns that MCP clients ask for: bounded and counted as those of every other route.

use std::sync::{Arc, OnceLock};

use adjutant_mcp::server::Begin;

use crate::state::{Shared, WeakShared};
use crate::titles;

/// The service, once it is there. It holds the sessions that ask for turns, so they do not hold it.
pub(crate) type Later = Arc<OnceLock<WeakShared>>;

/// Returns what lets a turn of a user begin.
pub(crate) fn begin(app: Later) -> Begin {
    Box::new(move |user| {
        let app: Option<Shared> = app.get().and_then(WeakShared::upgrade);
        let app = app.ok_or_else(|| "the service is not there (any more)".to_owned())?;
        let running = app
            .begin_turn(user)
            .map_err(|problem| problem.detail().to_owned())?;
        Ok(Box::new(move |key, response| {
            running.ended(response);
            titles::find(&app, key, response);
        }))
    })
}
