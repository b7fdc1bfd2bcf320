//! `/v1/chat/completions` and `/v1/models`, as clients of OpenAI's Chat Completions API know them.
//!
//! The client keeps the history and sends it with every request, so each request is a conversation of its own, begun with
//! that history. The agent's tools run here: the client sees what they do as `reasoning_content`. Tools that it brings itself it is
//! asked to call, and the request with the results goes on with the turn that waits for them.
//!
//! Source: OpenAI's API reference, "Chat Completions" (2026-11); `reasoning_content` is the field chat interfaces took over
//! from DeepSeek's API.

mod answer; // what a turn says, piece by piece
mod background; // requests about a conversation, not part of it
mod chat; // a request in, a completion out
mod error; // problems, as this API writes them
mod history; // what the client says was said before
mod models; // the agent as a list of models
mod request; // what a client may send
mod results; // what its tools answered, and the turn that waits for that
mod stateless; // which conversation a request without an id belongs to
mod wire; // completions and chunks

pub(crate) use chat::routes;
pub(crate) use error::{response as error_response, speaks_at};
