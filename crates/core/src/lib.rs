//! The words and rules of an agent: messages, tools, models, and the turn machine.
//!
//! Nothing here waits, reads a clock or opens a file. Whoever drives a [`turn::Turn`] does.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod budget; // what may be spent
mod calibration; // how our counts of tokens relate to a provider's
mod call_end; // how a tool call ended
mod call_words; // a call in words
mod client_side; // what the program that asks brings along
mod confirmation; // what waits for a human
pub mod conversation; // what events add up to
mod cost; // what it cost in money
mod cursor; // a place in a list
mod decision; // what a turn amounted to
mod error; // why a model call failed
mod event; // what happened
mod feedback; // what a person thinks of an answer
mod fingerprint; // digests of JSON
mod gate; // what stands in front of every tool
mod id; // names of things
pub mod limits; // every bound
mod log; // what the logs say
mod memory; // what a memory remembers of itself
mod message; // what is said
mod model; // who answers
mod output; // what the final answer must look like
mod past; // what a turn was given of its conversation
pub mod port; // what others implement
mod redact; // how much of it the logs hold
mod registry; // which tools there are
mod schema; // what JSON must look like
mod schema_of; // what a Rust type looks like as JSON
mod session; // where a conversation stands
mod summary; // what stands for old turns
mod task; // what the task assistant keeps
mod title; // what a conversation is called
pub mod told; // what memory puts in front of a message
mod tool; // what can be called
mod tool_choice; // which of them may be called
mod tool_progress; // how far a running call is
mod tool_set; // the tools of a request
mod trace; // where the time of a turn went
mod trace_context; // the trace that a request belongs to
mod transcript; // what was said, to be read again
mod trim; // the part of a history that a turn is given
pub mod turn; // what happens next
mod visible; // what nobody sees
pub mod weak; // tool calling for models that cannot be trusted with it
pub mod words; // what the person reads

pub use budget::*;
pub use call_words::{call_in_words, name_in_words};
pub use client_side::*;
pub use confirmation::*;
pub use conversation::{last_summary, recalled};
pub use cost::Cost;
pub use decision::*;
pub use error::{ModelError, TimeBound};
pub use event::*;
pub use feedback::*;
pub use fingerprint::{fingerprint, sorted};
pub use gate::{Gate, GateCheck, Permission, Policy};
pub use id::*;
pub use limits::{LongMessage, TurnLimits};
pub use log::*;
pub use memory::*;
pub use message::*;
pub use model::*;
pub use output::{OutputSchema, Structured};
pub use past::{Loading, Past};
pub use port::LanguageModel;
pub use redact::{LogContent, UnknownLogContent};
pub use registry::{RESERVED, ToolRegistry, nearest};
pub use schema::{Schema, UnusableSchema};
pub use schema_of::schema_of;
pub use session::{SESSION_IDLE_MAX, Session, SessionState, session};
pub use summary::{Recalled, Summary};
pub use task::*;
pub use title::{TITLE_CHARS_MAX, given_title, title};
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
pub use visible::{clean, clean_line, clip, is_control, is_hidden, json_line, visible};

/// A future that can be sent between threads, as the ports return it.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
