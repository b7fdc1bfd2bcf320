//! What a listener sees of a running turn.

use std::time::Duration;

use adjutant_core::{
    AgentResponse, CallId, InputId, Message, ModelId, Notice, PendingCall, PromptProgress, Told,
    ToolCall, ToolProgress, ToolResult, TurnId, Usage,
};
use serde::{Deserialize, Serialize};

/// Something that happened in a running turn. The terminal, AG-UI, OpenAI chunks and NDJSON are
/// encoders of this. As JSON it goes from one process to another of the same version, and is kept
/// nowhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum RunEvent {
    /// The input is in the journal: whatever becomes of this process, it has an end. The first
    /// event, if there is one of an input.
    Accepted,
    /// A turn started, or goes on after an answer or a crash.
    TurnStarted {
        /// The turn.
        turn: TurnId,
        /// The input it took. A run that was asked for something may have to see to what was asked
        /// before first.
        input: InputId,
        /// The model it asks.
        model: ModelId,
        /// The parts of a memory that stand in front of the words of its message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        memory: Vec<Told>,
    },
    /// The conversation is long: its older part is being put into few words, by a model call of its
    /// own.
    SummaryStarted {
        /// How many messages, beside what an earlier summary stands for.
        messages: usize,
        /// What they take of a request, in tokens.
        tokens: u32,
    },
    /// The model is at the summary: it wrote or thought so many more bytes. They are no part of the
    /// answer, and are not shown.
    SummaryProgress {
        /// The bytes.
        bytes: usize,
    },
    /// A summary stands for the older part of the conversation from now on.
    SummaryFinished {
        /// How many messages it stands for, from the beginning of the conversation.
        messages: usize,
        /// What they took of a request, in tokens.
        before: u32,
        /// What the summary takes.
        after: u32,
        /// Tokens of the model call that wrote it.
        usage: Usage,
    },
    /// The older part could not be put into few words. If the conversation does not fit, its oldest
    /// messages are left out.
    SummaryFailed {
        /// Why, for the log.
        reason: String,
    },
    /// The model is asked. Text that was streamed for an earlier, interrupted try of this call is
    /// void.
    ModelStarted {
        /// Which model call of the turn, from 1.
        number: u32,
    },
    /// The model reads the prompt, of its answer or of a summary, and is this far. Only models that
    /// compute in this process say so, about once a second.
    Reading(PromptProgress),
    /// More of the answer. Provisional until the turn has finished.
    Text(String),
    /// More of the model's thinking.
    Thinking(String),
    /// The adapter waits and asks again.
    Retrying {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// How long it waits.
        wait: Duration,
        /// Why.
        reason: String,
    },
    /// The model answered.
    ModelFinished {
        /// Which model call of the turn.
        number: u32,
        /// Its tokens.
        usage: Usage,
    },
    /// A tool is about to run.
    ToolStarted {
        /// The call, references resolved.
        call: ToolCall,
    },
    /// A running tool says how far it is. At most four times a second for each call; what lies
    /// between is left out.
    ToolProgress {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// The progress.
        progress: ToolProgress,
    },
    /// A tool ended.
    ToolFinished {
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// What came out.
        result: ToolResult,
        /// Words for the person, if there are some: the tool's own, or those in the place of the
        /// error of a call that broke off.
        summary: Option<String>,
        /// How long it took, in milliseconds.
        ms: u64,
    },
    /// The gate refused a call; the model is told.
    ToolRefused {
        /// The tool's name as the model wrote it.
        tool: String,
        /// The words for the model.
        message: String,
    },
    /// A round of tools ended, and the model is asked again: its answer with its calls, and the
    /// result of each as the model reads it. Of those that were refused, denied, too late or in
    /// doubt there is no other event with a result.
    RoundEnded {
        /// The assistant's message, and those of its tools, in order.
        messages: Vec<Message>,
    },
    /// The turn waits for a human.
    ConfirmationRequested {
        /// What waits.
        pending: Vec<PendingCall>,
    },
    /// Something the person should know.
    Noticed(Notice),
    /// The turn ended or waits. The last event.
    Finished(Box<AgentResponse>),
}
