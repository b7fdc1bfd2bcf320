//! The AG-UI protocol 1.0: its types, and the conversion of turns and conversations.
//!
//! Source: the JSON Schema of <https://ag-ui.com/spec/1.0>. The official client is tested against
//! this implementation in `tests/clients/agui`. Nothing here does I/O.

mod client_view; // the messages that a client has received
mod encode; // events of a turn, as AG-UI events
mod event; // types of the events
mod input; // the request
mod open_parts; // parts of a stream that are not closed
mod state; // shared state: the open tasks, as JSON Patch
mod transcript; // a conversation, as AG-UI messages

pub(crate) use encode::{AgentInfo, Encoder};
pub(crate) use event::{Event, Message, Outcome};
pub(crate) use input::{Fingerprints, InputMessage, ResumeEntry, ResumeStatus, RunAgentInput};
pub(crate) use open_parts::OpenParts;
pub(crate) use state::State;
pub(crate) use transcript::{Transcript, result_message};
