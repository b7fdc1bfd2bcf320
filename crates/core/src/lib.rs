//! The vocabulary and the rules of an agent: messages, tools, models, events, and the state machine
//! of a turn.
//!
//! Nothing here performs I/O, waits, or reads a clock. The driver of a [`turn::Turn`] does
//! (`adjutant-runtime`), through the traits in [`port`].
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod action_scores; // probabilities of actions
pub mod attachment; // frames around attached text
mod budget; // budgets: limits, reservations, spending
mod calibration; // calibration of token estimates
mod call_end; // ends of tool calls
mod call_words; // descriptions of calls for confirmations
mod cause; // causes of errors that are cloned
mod client_side; // tools and context of the caller
mod confirmation; // pending calls and their answers
pub mod conversation; // the state of a conversation, a fold over its events
mod cost; // costs in money
mod cursor; // positions in lists
mod decision; // decisions, intents and outcomes
mod error; // errors of model calls
mod event; // events of the journal
mod feedback; // ratings of answers
mod fingerprint; // digests of JSON
mod gate; // the checks in front of every tool
mod given_history; // a record of the history that a turn started from
mod id; // identifiers
mod limit_name; // names of limits
pub mod limits; // limits with their defaults
mod log; // rows of the decision and tool invocation logs
mod memory; // changes of a memory
mod message; // messages and their parts
mod model; // requests, responses, capabilities
mod names; // names of enum values
mod output; // structured output
mod own_words; // the person's own words in arguments
pub mod port; // traits that adapters and stores implement
pub mod recall_block; // the block of recalled facts in a message
mod redact; // redaction of logs
mod registry; // the tools of an agent
mod repair; // repair of arguments that miss their schema by a slip
mod result_words; // results of tools as text for people
mod schema; // JSON Schema validation
mod schema_of; // JSON Schema of a Rust type
pub mod sent_at; // the line about when a message was sent
mod session; // sessions
mod store_change; // changes in the journal's transaction
mod summary; // summaries of old turns
mod title; // titles of conversations
mod tool; // tools, their calls and results
mod tool_choice; // constraints on tool calls
mod tool_progress; // progress of running calls
mod tool_set; // the tools of a request
mod trace; // the steps of a turn
mod trace_context; // W3C Trace Context
mod transcript; // messages for people to read
mod trim; // trimming of history
pub mod turn; // the state machine of a turn
mod unanswered; // notes about turns without an answer
mod visible; // invisible and control characters
pub mod words; // messages for the person

pub use action_scores::{ActionKind, ActionScores, Language, Utterance};
pub use budget::*;
pub use call_words::{call_in_words, capitalized, name_in_words};
pub use cause::Cause;
pub use client_side::*;
pub use confirmation::*;
pub use conversation::{last_summary, turn_history};
pub use cost::Cost;
pub use decision::*;
pub use error::{ModelError, TimeBound};
pub use event::*;
pub use feedback::*;
pub use fingerprint::{fingerprint, sorted};
pub use gate::{CheckedCall, Gate, GateCheck, Permission, Policy, Provenance};
pub use given_history::{GivenHistory, Loading};
pub use id::*;
pub use limit_name::LimitName;
pub use limits::{LongMessage, TurnLimits};
pub use log::*;
pub use memory::*;
pub use message::*;
pub use model::*;
pub use output::{OutputSchema, Structured};
pub use own_words::{Foreign, KnownItems, OwnWords};
pub use port::LanguageModel;
pub use redact::{LogContent, UnknownLogContent};
pub use registry::{RESERVED, ToolRegistry, edit_distance, nearest};
pub use repair::with_integers;
pub use result_words::result_in_words;
pub use schema::{Schema, UnusableSchema};
pub use schema_of::schema_of;
pub use session::{SESSION_IDLE_MAX, Session, SessionState, session};
pub use store_change::{InMemoryTables, StoreChange, UserTable, UserTables};
pub use summary::{Summary, TurnHistory};
pub use title::{TITLE_CHARS_MAX, first_words, given_title, is_greeting, title};
pub use tokio_util::sync::CancellationToken;
pub use tool::*;
pub use tool_choice::ToolChoice;
pub use tool_progress::{ProgressListener, ToolProgress};
pub use tool_set::ToolSet;
pub use trace::{Step, StepKind, trace};
pub use trace_context::TraceContext;
pub use transcript::{
    TranscriptCall, TranscriptMessage, TranscriptPage, transcript, transcript_page,
};
pub use unanswered::is_note;
pub use visible::{clean, clean_line, clip, is_control, is_hidden, json_line, visible};

/// A future that can be sent between threads, as the ports return it.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
