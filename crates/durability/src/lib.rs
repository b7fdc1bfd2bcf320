//! The process under test of the fault-injection suite (`tests/it`): an agent whose model and tools
//! are in another process, which logs every call it gets. Not part of what users get.
//!
//! It is told what to be by one JSON argument, a [`Setup`], then answers one [`Request`] a line
//! with one [`Reply`] a line, in any order, until its input ends or it is killed.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod tool; // its hands, in another process
mod worker; // what it does

use std::net::SocketAddr;
use std::time::Duration;

use adjutant_core::{
    AgentName, ConversationId, Effect, InputBody, InputId, OutcomeCategory, PendingCall, UserId,
};
use serde::{Deserialize, Serialize};

pub use tool::{Called, Remote, Style, tool_name};
pub use worker::{history, work};

/// What a worker is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Setup {
    /// `postgres://…`, or the path of an SQLite file.
    pub database: String,
    /// Its agent's name.
    pub agent: AgentName,
    /// Whether it goes on with all that its agent left open, before it is asked anything.
    pub resumes: bool,
    /// Its name as the holder of claims. `None`: that of its process.
    pub name: Option<String>,
    /// Where the model is: an HTTP server that speaks Chat Completions.
    pub model: SocketAddr,
    /// Where the tools are.
    pub tools: SocketAddr,
    /// Whether the tool that must not be called twice can be asked what became of a call.
    pub probe: bool,
    /// How long a tool waits for the answer of whoever does the work; then it does not know.
    pub patience: Duration,
    /// How long a confirmation can be given.
    pub confirmation_expiry: Duration,
}

/// What somebody says in a conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// Comes back with the reply.
    pub number: u64,
    /// Who.
    pub user: UserId,
    /// Where.
    pub conversation: ConversationId,
    /// Whether the conversation has a long history when it begins.
    pub long: bool,
    /// The name of the input: the same again is the same input.
    pub input: InputId,
    /// What.
    pub body: InputBody,
}

/// What became of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reply {
    /// That of the request.
    pub number: u64,
    /// The answer, or why there is none.
    pub result: Result<Heard, String>,
}

/// What somebody hears.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Heard {
    /// How it ended or what it waits for.
    pub outcome: OutcomeCategory,
    /// The words.
    pub content: String,
    /// What waits.
    pub pending: Vec<PendingCall>,
}

/// Every class of effect a tool can have.
pub const EFFECTS: [Effect; 3] = [Effect::None, Effect::Keyed, Effect::Once];
