//! The process under test of the fault-injection suite (`tests/it`): an agent whose model and tools
//! are in another process, which logs every call it gets. Not part of what users get.
//!
//! Its only argument is a [`Setup`] as JSON. Then it answers one [`Request`] per line of standard
//! input with one [`Reply`] per line, in any order, until its input ends or it is killed.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod tool; // tools, executed by another process
mod worker; // the worker

use std::net::SocketAddr;
use std::time::Duration;

use adjutant_core::{
    AgentName, ConversationId, Effect, InputBody, InputId, OutcomeCategory, PendingCall, UserId,
};
use serde::{Deserialize, Serialize};

pub use tool::{Called, Remote, Style, tool_name};
pub use worker::{history, work};

/// The setup of a worker process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Setup {
    /// `postgres://…`, or the path of an SQLite file.
    pub database: String,
    /// Name of the agent that the worker runs.
    pub agent: AgentName,
    /// True if the worker recovers all conversations of its agent before it reads requests.
    pub resumes: bool,
    /// The worker's name as the holder of leases. `None`: a name made of its process id.
    pub name: Option<String>,
    /// Address of the model: an HTTP server that speaks Chat Completions.
    pub model: SocketAddr,
    /// Address of the process that executes the tools.
    pub tools: SocketAddr,
    /// True if the tool with effect class `Once` can be probed.
    pub probe: bool,
    /// Time that a tool waits for its process; after that its outcome is unknown.
    pub patience: Duration,
    /// Time after which pending calls expire.
    pub confirmation_expiry: Duration,
}

/// An input to a conversation, as one line on the worker's standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// The number that the reply repeats.
    pub number: u64,
    /// Owner of the conversation.
    pub user: UserId,
    /// Id of the conversation that gets the input.
    pub conversation: ConversationId,
    /// True if the conversation starts with a long history.
    pub long: bool,
    /// Id of the input: a request with the same id is the same input.
    pub input: InputId,
    /// The message, answer or cancellation to submit.
    pub body: InputBody,
}

/// The worker's answer to a [`Request`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reply {
    /// The number of the request.
    pub number: u64,
    /// The response, or the error message.
    pub result: Result<Response, String>,
}

/// The part of a response that scenes check.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Response {
    /// The outcome of the turn, or the state that it waits in.
    pub outcome: OutcomeCategory,
    /// The text for the user.
    pub content: String,
    /// The calls that wait for an answer.
    pub pending: Vec<PendingCall>,
}

/// All effect classes of tools.
pub const EFFECTS: [Effect; 3] = [Effect::None, Effect::Keyed, Effect::Once];
