//! Tools: definitions, calls, results, and the [`Tool`] trait that implementors provide.

mod call;
mod definition;
mod error;
mod name;
mod result;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use call::{Arguments, MalformedArguments, ToolCall};
pub use definition::{Annotations, Effect, InvalidTool, ReferenceArgument, ToolDefinition};
pub use error::ToolError;
pub use name::{InvalidToolName, ToolName};
pub use result::{ToolInvocation, ToolResult};

use crate::BoxFuture;
use crate::id::{
    AgentName, CallId, ConversationId, ConversationKey, IdempotencyKey, StoreId, TurnId, UserId,
};
use crate::store_change::StoreChange;
use crate::tool_progress::ProgressListener;
use crate::trace_context::TraceContext;

/// The context of a running call. The user comes from authentication; no argument can change it.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The agent that makes the call.
    pub agent: AgentName,
    /// The user the call is made for.
    pub user: UserId,
    /// The conversation that the call belongs to.
    pub conversation: ConversationId,
    /// The turn that the call belongs to.
    pub turn: TurnId,
    /// The id of the call itself.
    pub call: CallId,
    /// The user's message that the turn answers. Empty: there is none.
    pub message: Arc<str>,
    /// True if a program asked for the call that may not answer in the user's place, and the user has
    /// not approved it: what the call writes is text of others.
    pub from_others: bool,
    /// The idempotency key, the same for every repeat of this call: pass it to the service that
    /// absorbs repeats.
    pub key: IdempotencyKey,
    /// Fires when the result is no longer needed.
    pub cancelled: CancellationToken,
    /// The trace that the call belongs to, to be passed on with requests. `None`: no trace.
    pub trace: Option<TraceContext>,
    /// Receiver of the call's progress while it runs.
    pub progress: ProgressListener,
}

impl ToolContext {
    /// Returns the key of the conversation the call belongs to.
    #[must_use]
    pub fn conversation_key(&self) -> ConversationKey {
        ConversationKey {
            agent: self.agent.clone(),
            user: self.user.clone(),
            conversation: self.conversation,
        }
    }
}

/// One of the user's entities, to which an argument may refer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The kind of entity, as in [`ReferenceArgument::kind`].
    pub kind: String,
    /// The id, which arguments hold after [`Tool::prepare`].
    pub id: String,
    /// The name that the user gave it.
    pub label: String,
    /// True for finished entities, which can be read and removed, not finished again.
    pub done: bool,
}

/// The outcome of [`Tool::prepare`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Prepared {
    /// The call can go on, with these arguments.
    Ready {
        /// The arguments with references replaced by ids.
        arguments: Arguments,
        /// A description of the effect, in the user's terms: shown when the call has to be
        /// confirmed.
        preview: Option<String>,
    },
    /// It is not clear which entity is meant: the user is asked.
    Ask {
        /// The question to the user.
        question: String,
    },
}

/// The outcome of [`Tool::probe`] for a call that was interrupted.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// The call was carried out, with this result.
    Done(Value),
    /// The call was certainly not carried out, and cannot be any more: it may run.
    NotDone,
    /// It cannot be known: the user is asked.
    Unknown,
}

/// A tool that an agent can call. Tools are the only way in which an agent has effects.
///
/// An implementor provides a definition and [`Tool::call`]; everything else has a default.
///
/// # Examples
///
/// ```
/// use adjutant_core::{Arguments, BoxFuture, Tool, ToolContext, ToolDefinition, ToolError};
/// use serde_json::{Value, json};
///
/// struct Dice(ToolDefinition);
///
/// impl Tool for Dice {
///     fn definition(&self) -> &ToolDefinition {
///         &self.0
///     }
///
///     fn call<'a>(
///         &'a self,
///         _context: &'a ToolContext,
///         _arguments: Arguments,
///     ) -> BoxFuture<'a, Result<Value, ToolError>> {
///         Box::pin(async { Ok(json!({ "rolled": 4 })) })
///     }
/// }
///
/// let parameters = json!({ "type": "object", "additionalProperties": false });
/// let dice = Dice(ToolDefinition::new("roll_dice", "Rolls a die.", parameters)?);
/// assert_eq!(dice.definition().intent(), "roll_dice");
/// # Ok::<(), adjutant_core::InvalidTool>(())
/// ```
pub trait Tool: Send + Sync + 'static {
    /// Returns the definition that models see.
    fn definition(&self) -> &ToolDefinition;

    /// Returns a short name for people, such as “Read a file”. Default: none, and the tool's name
    /// is shown.
    fn title(&self) -> Option<&str> {
        None
    }

    /// Runs the call. `arguments` fit the schema and came through [`Tool::prepare`].
    ///
    /// The future is dropped if the call takes longer than its bound; [`ToolContext::cancelled`]
    /// fires when its result is no longer needed.
    ///
    /// # Errors
    /// [`ToolError`]; its message goes to the model and may be shown to the user.
    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>>;

    /// Resolves references and describes what a call would touch, without touching it.
    ///
    /// # Errors
    /// [`ToolError`] if it cannot be found out.
    fn prepare<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Prepared, ToolError>> {
        let _ = context;
        Box::pin(std::future::ready(Ok(Prepared::Ready {
            arguments,
            preview: None,
        })))
    }

    /// Returns the user's entities that this tool's reference arguments may refer to.
    ///
    /// # Errors
    /// [`ToolError`] if they cannot be read.
    fn references<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<Vec<Reference>, ToolError>> {
        let _ = user;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Describes a successful call for the user, in one sentence or a list. Used where a model's
    /// text about results cannot be trusted. Default: none, and the data is told by
    /// [`result_in_words`](crate::result_in_words).
    fn describe(&self, arguments: &Arguments, data: &Value) -> Option<String> {
        let _ = (arguments, data);
        None
    }

    /// Finds out whether an interrupted call was carried out, after a crash or a time-out;
    /// `context` holds the same key as the call did. Only asked of tools that must not run twice.
    /// Default: it cannot be known.
    ///
    /// Bounded in time like the call itself; a probe that fails counts as [`Probe::Unknown`].
    fn probe<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: &'a Arguments,
    ) -> BoxFuture<'a, Probe> {
        let _ = (context, arguments);
        Box::pin(std::future::ready(Probe::Unknown))
    }

    /// Returns true if its results and errors are text of others: a web page, a mail, another
    /// server's answer. Such text may try to act through the model, so what is proposed after it in
    /// the conversation is confirmed by the user unless it is in their own words (see
    /// [`Provenance`](crate::Provenance)). Default: `false`.
    fn reads_from_others(&self) -> bool {
        false
    }

    /// Returns true if this result of a successful call holds text of others, for a tool whose
    /// results mostly do not: a list in which some rows were written by another program. Default:
    /// `false`.
    fn holds_text_of_others(&self, data: &Value) -> bool {
        let _ = data;
        false
    }

    /// Returns the name of the argument whose text a model reads in later conversations, as it reads
    /// facts about the user. Such a call is confirmed by the user unless that text is in their own
    /// words, and always after text of others. Default: none.
    fn recalled_argument(&self) -> Option<&str> {
        None
    }

    /// Returns the bound of one execution. Default: the turn's `tool_timeout`.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Returns the bound of an execution that reports progress: each report begins the `timeout` in
    /// force anew, up to this in all. Default: `timeout`, so that progress extends nothing.
    fn timeout_with_progress(&self, timeout: Duration) -> Duration {
        timeout
    }

    /// Returns the error for an execution that ended at a bound. `extended`: the bound is that of
    /// [`Tool::timeout_with_progress`], not the one that was in force without progress.
    fn timed_out(&self, limit: Duration, extended: bool) -> ToolError {
        let _ = extended;
        ToolError::timed_out(limit)
    }

    /// Returns the tool as one whose calls a store carries out in the journal's transaction.
    /// Default: `None`.
    fn as_transactional(&self) -> Option<&dyn TransactionalTool> {
        None
    }
}

/// A tool each call of which is one change in a store, such as a change of the user's tasks.
///
/// Where that store is the journal's, [`Tool::call`] is not used: the change is written in one
/// transaction with the intent and the result of the call, which costs one commit instead of three
/// and leaves nothing in doubt after a crash.
pub trait TransactionalTool: Tool {
    /// Returns the id of the store that the tool changes. `None`: it shares no store with a
    /// journal.
    fn store_id(&self) -> Option<StoreId>;

    /// Returns the change that a call makes. `arguments` fit the schema and came through
    /// [`Tool::prepare`].
    ///
    /// # Errors
    /// [`ToolError`], as [`Tool::call`] returns it.
    fn change(
        &self,
        context: &ToolContext,
        arguments: &Arguments,
    ) -> Result<Arc<dyn StoreChange>, ToolError>;

    /// Returns the result of a call from the outcome of its change. The outcome has the type that
    /// the tool and the store share.
    ///
    /// # Errors
    /// [`ToolError`], as [`Tool::call`] returns it.
    fn result(&self, outcome: &dyn Any) -> Result<Value, ToolError>;
}
