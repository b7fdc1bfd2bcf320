//! The events of a running turn.

use std::time::Duration;

use adjutant_core::{
    AgentResponse, CallId, InputId, Message, ModelId, Notice, PendingCall, PromptProgress,
    RecalledText, ToolCall, ToolProgress, ToolResult, TurnId, Usage,
};
use serde::{Deserialize, Serialize};

/// An event of a running turn, as [`RunStream`](crate::RunStream) yields it. The terminal, AG-UI,
/// OpenAI chunks and NDJSON are encodings of it. As JSON it goes from one process to another of the
/// same version; it is not stored.
///
/// # Examples
///
/// ```
/// use adjutant_runtime::RunEvent;
///
/// fn print(event: &RunEvent) {
///     match event {
///         RunEvent::Text(piece) => print!("{piece}"),
///         RunEvent::ToolStarted { call } => println!("[{} ...]", call.name),
///         RunEvent::Finished(response) => println!("\n{}", response.outcome),
///         // New kinds of events may be added.
///         _ => {}
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum RunEvent {
    /// The input is in the journal: it will be answered even if this process is lost. The first
    /// event of a run that has an input.
    Accepted,
    /// A turn started, or continues after an answer or a crash.
    TurnStarted {
        /// Id of the turn in the journal and the decision log.
        turn: TurnId,
        /// The input that the turn answers. A run may first have to finish turns of earlier inputs.
        input: InputId,
        /// The model that the turn asks.
        model: ModelId,
        /// Facts of automatic recall, which stand in front of the message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        memory: Vec<RecalledText>,
    },
    /// Compaction started: a model call summarises the older part of a long conversation.
    SummaryStarted {
        /// Number of messages to summarise, beside those of an earlier summary.
        messages: usize,
        /// Tokens that these messages take of a request.
        tokens: u32,
    },
    /// The model wrote or thought more of the summary. Its text is not part of the answer and is
    /// not shown.
    SummaryProgress {
        /// Size of the new piece in bytes.
        bytes: usize,
    },
    /// A summary replaces the older part of the conversation in requests from now on.
    SummaryFinished {
        /// Number of messages it replaces, counted from the beginning of the conversation.
        messages: usize,
        /// Tokens that these messages took of a request.
        before: u32,
        /// Tokens that the summary takes of a request.
        after: u32,
        /// Tokens of the model call that wrote it.
        usage: Usage,
    },
    /// The older part could not be summarised. If the conversation does not fit, its oldest
    /// messages are left out of requests.
    SummaryFailed {
        /// Cause of the failure, for the log.
        reason: String,
    },
    /// A model call started. Text that was streamed for an earlier, interrupted attempt of this
    /// call is void.
    ModelStarted {
        /// Number of the model call within the turn, from 1.
        number: u32,
    },
    /// Progress of reading the prompt, for an answer or a summary. Sent about once a second by
    /// models that run inside this process.
    Reading(PromptProgress),
    /// The next piece of the answer. Provisional until the turn has finished.
    Text(String),
    /// The next piece of the model's thinking.
    Thinking(String),
    /// A request to the provider failed and is sent again after a pause.
    Retrying {
        /// Number of the attempt that failed, from 1.
        attempt: u32,
        /// Pause before the next attempt.
        wait: Duration,
        /// Cause of the failure.
        reason: String,
    },
    /// A model call ended with an answer.
    ModelFinished {
        /// Number of the model call within the turn, from 1.
        number: u32,
        /// Tokens of the call, as far as the provider reported them.
        usage: Usage,
    },
    /// A tool call is about to be executed.
    ToolStarted {
        /// The tool call, with references resolved to ids.
        call: ToolCall,
    },
    /// A running tool reported its progress. Sent at most four times a second per call; reports in
    /// between are dropped.
    ToolProgress {
        /// Id of the tool call.
        call: CallId,
        /// Name of the tool that reports.
        tool: String,
        /// The progress as the tool reported it.
        progress: ToolProgress,
    },
    /// A tool call was executed or found to be done, and its result is known.
    ToolFinished {
        /// Id of the tool call.
        call: CallId,
        /// Name of the tool that was executed.
        tool: String,
        /// The result that the model reads.
        result: ToolResult,
        /// A sentence for the user: the tool's own, or one that replaces the error of a call that
        /// broke off. `None`: the tool gives none.
        summary: Option<String>,
        /// Duration of the call in milliseconds.
        ms: u64,
    },
    /// The gate refused a tool call; the model gets the reason as the call's result.
    ToolRefused {
        /// The tool's name as the model wrote it.
        tool: String,
        /// The reason, as the model reads it.
        message: String,
    },
    /// A round of tool calls ended and the model is asked again. Results of calls that were
    /// refused, denied, too late or in doubt appear in no other event.
    RoundEnded {
        /// The assistant's message with its calls, then the results, in order.
        messages: Vec<Message>,
    },
    /// The turn waits for confirmations or for results of client-side tools.
    ConfirmationRequested {
        /// The calls that wait.
        pending: Vec<PendingCall>,
    },
    /// A notice for the user, such as a message that was cut.
    Noticed(Notice),
    /// The turn ended, or waits for a person. The last event of a run.
    Finished(Box<AgentResponse>),
}
