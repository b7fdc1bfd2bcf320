//! APIs compatible with OpenAI's clients: `/v1/chat/completions`, `/v1/responses` and `/v1/models`.
//!
//! Each request is a turn in a conversation of its own, which starts with the history that the
//! client sends, or with that of the earlier response that the request names. The agent's tools are
//! executed here; clients see their activity as `reasoning_content`, or as items of the type
//! `reasoning`. The client executes its own tools, and the request with the results continues the
//! waiting turn.
//!
//! Source: OpenAI's API reference, "Chat Completions" (2026-11), and the types of its JavaScript
//! package, `responses.d.ts` (7.57.0). `reasoning_content` is a field of DeepSeek's API that chat
//! interfaces have adopted.

mod answer; // events of a turn, as parts of an answer
mod background; // detection of an interface's own requests
mod chat; // POST /v1/chat/completions
mod error; // the error format
mod history; // the client's messages, as history
mod message; // messages of a request
mod models; // GET /v1/models
mod options; // options of a request besides its messages
mod request; // the request of chat completions
mod responses; // the Responses API
mod results; // results of the client's tools
mod stateless; // finding the conversation of a request without an id
mod stream; // server-sent events and error responses
mod turn; // starting or continuing a turn
mod wire; // completions and chunks

use utoipa_axum::router::OpenApiRouter;

pub(crate) use error::{response as error_response, speaks_at, unknown_address};

use crate::state::Shared;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    chat::routes()
        .merge(responses::routes())
        .merge(models::routes())
}
