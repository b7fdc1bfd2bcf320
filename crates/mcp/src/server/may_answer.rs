//! The right of a request to answer the agent's questions.

use http::request::Parts;
use rmcp::RoleServer;
use rmcp::service::RequestContext;

/// Marks an HTTP request, in its extensions, whose client may not answer pending calls in place of
/// the person. It is not asked, and the call stays pending until it is answered elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct MayNotAnswer;

/// Returns false if the client's request says that it may not answer pending calls.
pub(super) fn may_answer(context: &RequestContext<RoleServer>) -> bool {
    let request = context.extensions.get::<Parts>();
    request.is_none_or(|request| request.extensions.get::<MayNotAnswer>().is_none())
}
