//! AG-UI 1.0, as far as an agent speaks it: the types of its wire, and what a turn is in them.
//!
//! Source: the JSON Schema of <https://ag-ui.com/spec/1.0>, and the official client that reads what
//! is written here (`tests/clients/agui`). Nothing here waits.

mod begun; // what has not ended
mod encode; // what happens in a turn, as events
mod event; // what is sent
mod input; // what is asked
mod state; // the tasks, and how they changed
mod told; // what a client has of a turn, and lacks
mod transcript; // a conversation, as messages

pub(crate) use begun::Begun;
pub(crate) use encode::Encoder;
pub(crate) use event::{Event, Message, Outcome};
pub(crate) use input::{InputMessage, ResumeEntry, ResumeStatus, RunAgentInput};
pub(crate) use state::State;
pub(crate) use transcript::{Transcript, result_message};
