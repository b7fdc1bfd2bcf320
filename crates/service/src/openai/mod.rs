//! `/v1/chat/completions`, `/v1/responses` and `/v1/models`, as clients of OpenAI's APIs know them.
//!
//! A request is a turn of its own, in a conversation that is begun with the history that the client
//! sends, or with what an earlier answer was given and said, if the request names one. The agent's
//! tools run here: the client sees what they do as `reasoning_content`, or as items of the type
//! `reasoning`. Tools that it brings itself it is asked to call, and the request with the results
//! goes on with the turn that waits for them.
//!
//! Source: OpenAI's API reference, "Chat Completions" (2026-11), and the types of its package for
//! JavaScript, `responses.d.ts` (7.57.0); `reasoning_content` is the field chat interfaces took
//! over from DeepSeek's API.

mod answer; // what a turn says, piece by piece
mod background; // requests about a conversation, not part of it
mod chat; // a request in, a completion out
mod error; // problems, as this API writes them
mod history; // what the client says was said before
mod message; // the messages of a request
mod models; // the agent as a list of models
mod request; // what a client of chat completions may send
mod responses; // the same agent in the words of the Responses API
mod results; // what the client's tools answered, and the turn that waits for that
mod stateless; // which conversation a request without an id belongs to
mod stream; // how pieces and failures are sent
mod turn; // a request that becomes a turn
mod wire; // completions and chunks
mod wishes; // what a request asks beside its messages

use utoipa_axum::router::OpenApiRouter;

pub(crate) use error::{response as error_response, speaks_at, unknown_address};

use crate::state::Shared;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    chat::routes()
        .merge(responses::routes())
        .merge(models::routes())
}
