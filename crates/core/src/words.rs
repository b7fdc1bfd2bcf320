//! Messages to the user, in one table. They name no internals; the typed cause is beside them in
//! the response.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::budget::Exceeded;
use crate::confirmation::{PendingCall, PendingKind};
use crate::error::{ModelError, TimeBound};
use crate::tool::ToolError;

/// The model's answer could not be parsed.
pub const TROUBLE_PROCESSING: &str =
    "I had trouble processing that. Please try again, perhaps in other words.";
/// The provider timed out, or the network failed.
pub const TEMPORARILY_UNAVAILABLE: &str =
    "The assistant is temporarily unavailable. Please try again in a moment.";
/// The connection to the provider broke in the middle of an answer.
pub const CONNECTION_BROKE: &str = "The assistant is temporarily unavailable: the connection to its model broke in the middle of the answer. \
     Please try again.";
/// The provider's rate limit was reached.
pub const TOO_MANY_REQUESTS: &str =
    "There are too many requests right now. Please try again in a little while.";
/// The provider's quota or credit is used up; waiting does not help.
pub const USED_UP: &str = "The assistant has had too many requests: its allowance at the provider is used up. Waiting does not \
     bring it back; whoever runs the assistant finds the reason in its log.";
/// Too many rounds, or too many identical calls.
pub const TOO_COMPLEX: &str =
    "That is too complex for me to finish in one go. Please ask for it in smaller steps.";
/// The API key is wrong, the model is unknown, or the provider rejected the request or does not
/// permit it.
pub const NOT_SET_UP: &str =
    "The assistant is not set up correctly, so it cannot answer right now.";
/// The request does not fit the context window.
pub const TOO_LONG: &str = "This is too long for the assistant to read at once. Please shorten it or start a new conversation.";
/// The provider's filter blocked the answer.
pub const FILTERED: &str = "I can't help with that request.";
/// The user denied a call, and no model writes the answer.
pub const NOTHING_CHANGED: &str = "Okay, I left it as it is.";
/// The model's answer says that something was changed, and nothing was.
pub const CLAIMED_CHANGE: &str = "Nothing was changed in this turn, although the answer says so.";
/// The policy forbids a call, and no model writes the answer.
pub const NOT_ALLOWED: &str = "That is not allowed here, so I did not do it.";
/// A confirmation expired without an answer.
pub const EXPIRED: &str = "Nobody confirmed this in time, so I did not do it. Please ask again.";
/// The caller brought no result of its tool in time.
pub const NO_RESULT: &str = "The program that was to go on with this did not come back in time, so I stopped. Please ask again.";
/// The user stopped the turn.
pub const STOPPED: &str = "Stopped.";
/// The turn's deadline has passed.
pub const DEADLINE: &str =
    "This took too long, so I stopped. Please try again, perhaps with a smaller request.";
/// The budget of a turn is used up.
pub const REQUEST_TOO_EXPENSIVE: &str = "That would take more than one request may use here, so I stopped. Please ask for it in smaller steps.";
/// The budget of a day is used up.
pub const DAY_USED_UP: &str = "What I may use in a day is used up, so I stopped. Please ask again tomorrow (days end at midnight UTC).";
/// A turn without failure ends without a text.
pub const DONE: &str = "Done.";
/// The model asks without a question.
pub const SAY_MORE: &str = "Could you tell me a little more about what you want?";

/// Returns the message for a call whose arguments could not be used. `step`: the call in words.
#[must_use]
pub fn unusable_call(step: &str) -> String {
    format!("{step}: this was not carried out, because the details for it were missing or wrong.")
}

/// Returns the message for a call of a tool that does not exist. `step`: its name in words.
#[must_use]
pub fn unknown_call(step: &str) -> String {
    format!("{step}: this is nothing that I can do here, so it was not carried out.")
}

/// Returns the message for a call that was carried out before its turn ended early, of a tool that
/// describes no results. `step`: its name in words.
#[must_use]
pub fn carried_out(step: &str) -> String {
    format!("{step}: this was carried out.")
}

/// Returns the message for a failed model call.
#[must_use]
pub fn for_model_error(error: &ModelError) -> Cow<'static, str> {
    let words = match error {
        // "In a moment" is no advice where the model is slow, so the message says what happened.
        ModelError::Timeout {
            waited,
            bound: TimeBound::Silence | TimeBound::Pause,
            ..
        } => {
            return format!(
                "The assistant is temporarily unavailable: nothing came from the model for {} s.",
                waited.as_secs_f64()
            )
            .into();
        }
        ModelError::RateLimited { .. } => TOO_MANY_REQUESTS,
        ModelError::Quota { .. } => USED_UP,
        ModelError::Timeout { .. } | ModelError::Network { .. } | ModelError::Server { .. } => {
            TEMPORARILY_UNAVAILABLE
        }
        ModelError::Authentication { .. }
        | ModelError::NotPermitted { .. }
        | ModelError::BadRequest { .. }
        | ModelError::NotFound { .. } => NOT_SET_UP,
        ModelError::InvalidResponse { .. } => TROUBLE_PROCESSING,
        ModelError::Truncated { .. } => CONNECTION_BROKE,
        ModelError::ContextTooLong { .. } => TOO_LONG,
        ModelError::Refused { .. } => FILTERED,
    };
    words.into()
}

/// Returns the message for a model that called no tool although the caller required a call, of
/// `tool` if that is named.
#[must_use]
pub fn no_call(tool: Option<&str>) -> String {
    let required = tool.map_or("a tool".to_owned(), |tool| format!("the tool {tool}"));
    format!(
        "The request required a call of {required}, and the model answered twice without one. Please try again, or use a model that can be made to call tools."
    )
}

/// Returns the notice that old turns were summarised.
#[must_use]
pub fn summarized(messages: usize, before: u32, after: u32) -> String {
    format!(
        "The conversation is long: its {messages} oldest messages are summarised from now on (about {before} tokens are now {after}). All of it is still in the log."
    )
}

/// Returns the notice that a history was sent without its oldest messages.
#[must_use]
pub fn history_trimmed(messages: usize) -> String {
    format!(
        "The conversation is long: its {messages} oldest messages were not sent to the model. All of it is still in the log."
    )
}

/// The notice that old turns could not be summarised.
pub const NOT_SUMMARIZED: &str = "The conversation is long, and its older part could not be summarised. If it does not fit, its oldest messages are left out.";

/// Returns the response to the person who stopped a turn, about the calls that go on.
#[must_use]
pub fn stopped_while_running(previews: &[String]) -> String {
    let calls = previews.join("; ");
    let (begun, result) = match previews.len() {
        1 => ("It had begun and is still running", "Its result is"),
        _ => ("They had begun and are still running", "Their results are"),
    };
    format!("{STOPPED} {begun}: {calls}. {result} kept in this conversation.")
}

/// The notice that a text was no answer to the question that its sender had been asked.
pub const ANSWER_UNCLEAR: &str =
    "That is no answer to this question, so nothing was done. It is not kept.";

/// The response to a message that was no answer to a question, once the question is gone.
pub const MESSAGE_DROPPED: &str = "This was no answer to the question that waited, so nothing was done. Send it again as a new message if it is to be done.";

/// The notice that a message is no answer to the question that waits, or came before it.
pub const MESSAGE_QUEUED: &str =
    "Your message is kept, and is the next one when this question is answered.";

/// The notice that a message came while the caller has to bring a result first.
pub const MESSAGE_QUEUED_BEHIND_RESULT: &str = "Your message is kept, and is the next one when the program that asked has brought what this waits for.";

/// Returns the questions for pending calls, one a line. A call that waits for its result is no
/// question: it is named if nothing else waits.
#[must_use]
pub fn questions(pending: &[PendingCall]) -> String {
    let question = |call: &PendingCall| match (&call.doubt, call.awaits) {
        (Some(doubt), _) => Some(doubtful(&call.preview, doubt.since)),
        (None, None) => Some(confirm(&call.preview)),
        (None, Some(_)) => None,
    };
    let lines: Vec<String> = pending.iter().filter_map(question).collect();
    if !lines.is_empty() {
        return lines.join("\n");
    }
    // Only if nothing else waits: a person has nothing to do about it.
    let awaited: Vec<String> = pending.iter().map(awaits_result).collect();
    awaited.join("\n")
}

/// Returns the sentence for a call whose result the caller brings.
#[must_use]
pub fn awaits_result(call: &PendingCall) -> String {
    format!(
        "{}: this waits for the program that asked, which brings the result.",
        call.preview
    )
}

/// Returns the sentence for a call whose result the caller brought.
#[must_use]
pub fn provided(tool: &str) -> String {
    format!("The program that asked has carried out {tool}.")
}

/// Returns the question for one call in doubt.
#[must_use]
pub fn doubtful(preview: &str, since: Timestamp) -> String {
    let preview = preview.trim_end_matches(['?', '.']);
    format!(
        "{preview}: I was interrupted while I did this (begun {}). It may or may not have been done; I have not \
         repeated it. Please answer: “it was done”, “not done, try again” or “leave it”.",
        since.strftime("%Y-%m-%d %H:%M UTC")
    )
}

/// Returns the message for a budget that does not have what the next step may take.
#[must_use]
pub fn budget(exceeded: &Exceeded) -> &'static str {
    if exceeded.ends_with_the_day() {
        DAY_USED_UP
    } else {
        REQUEST_TOO_EXPENSIVE
    }
}

/// Returns the question for one call that waits for confirmation.
#[must_use]
pub fn confirm(preview: &str) -> String {
    let preview = preview.trim_end_matches(['?', '.']);
    // A tool's description may end like a sentence of its own, and here it goes on.
    format!("{preview}? Please answer yes or no.")
}

/// Returns the message for a call that stays in doubt: the user left it so, the question expired,
/// or the turn was stopped. `preview`: the effect that the call would have.
#[must_use]
pub fn in_doubt(preview: Option<&str>) -> String {
    let interrupted = match preview {
        Some(preview) => {
            format!(
                "{}: I was interrupted while I did this",
                preview.trim_end_matches(['?', '.'])
            )
        }
        None => "I was interrupted while I did one step".to_owned(),
    };
    format!("{interrupted}. {UNKNOWN}")
}

/// Returns the message for a call that broke off: its tool panicked, or did not end in time.
/// `None`: the error has a message of the tool. `preview`: the effect that the call would have.
/// `unknown`: it may have been carried out.
#[must_use]
pub fn broke_off(error: &ToolError, preview: Option<&str>, unknown: bool) -> Option<String> {
    let what = match error {
        ToolError::TimedOut { limit, .. } => {
            format!(
                "took longer than {} s, so I stopped waiting for it",
                limit.as_secs_f64()
            )
        }
        ToolError::BrokeDown => "broke off because of a fault in this assistant".to_owned(),
        // Messages of the tool itself, which are safe to show.
        ToolError::NotFound { .. }
        | ToolError::Invalid { .. }
        | ToolError::Failed { .. }
        | ToolError::Unknown { .. } => return None,
    };
    let step = match preview {
        Some(preview) => format!("{}: this", preview.trim_end_matches(['?', '.'])),
        None => "One step".to_owned(),
    };
    let then = if unknown {
        UNKNOWN
    } else {
        "Nothing was changed. Please try again; if it stays so, whoever runs this assistant can see why in its log."
    };
    Some(format!("{step} {what}. {then}"))
}

/// The advice for a call whose effect is not known.
const UNKNOWN: &str = "It may or may not have been carried out; I have not repeated it. Please check before you ask for it again.";

/// The workers that ran the turn were lost again and again.
pub const POISONED: &str = "I had to give this up: each time I worked on it, I was interrupted. I am not trying it again. \
     Whoever runs this assistant can see why in its log; please ask for it in another way.";
/// An operator ended the turn.
pub const DROPPED: &str =
    "This was ended by whoever runs this assistant; what had not begun was not done.";

/// The tool of an approved call is not there.
pub const TOOL_AWAY: &str = "What one step needs is not available at the moment, so it was not done: the program behind it may \
     not be running. Ask for it again when it is back.";

/// Returns the message for an approval whose tool is not there: the call still waits.
#[must_use]
pub fn tool_away_waits(preview: &str) -> String {
    format!(
        "{}: what this needs is not available at the moment, so nothing was done: the program behind it may not be running. \
         It still waits for your answer.",
        preview.trim_end_matches(['?', '.'])
    )
}

/// Returns the message for an approval whose tool has changed since the question.
#[must_use]
pub fn tool_changed(preview: &str) -> String {
    format!(
        "{}: the tool for this is another one than when you were asked, so nothing was done. Ask for it again to see what it does now.",
        preview.trim_end_matches(['?', '.'])
    )
}

/// The user says that an interrupted call was carried out, and no model writes the answer.
pub const CONFIRMED_DONE: &str = "Okay, I take it as done.";
/// The answer to a confirmation came after it expired.
pub const ANSWERED_LATE: &str =
    "Your answer came too late: nobody had confirmed this in time, so it was not done.";
/// A result came after its time had run out.
pub const RESULT_LATE: &str = "This result came too late: the turn that waited for it has ended.";
/// The answer to a call in doubt came after its time had run out.
pub const DOUBT_ANSWERED_LATE: &str = "Your answer came too late: this was left as it is, and nothing was done because of your answer.";
/// The answer is to a question that was answered before.
pub const ANSWERED_BEFORE: &str =
    "This was answered before; nothing was done because of your answer.";
/// The conversation has events of a newer version.
pub const NEWER_VERSION: &str = "This conversation holds something that this version of the assistant cannot read, so it \
     cannot go on with it. Nothing is lost: your message is kept and will be answered by a version that can.";
/// The answer announces a result and brings none.
pub const RESULT_MISSING: &str = "This waits for a result, and the answer had none.";
/// The tool choice names a tool that the turn does not have.
pub const CHOICE_UNKNOWN: &str = "A tool is to be called next that did not come with the message.";
/// Edited arguments came with something else than an approval.
pub const EDITED_WITHOUT_YES: &str =
    "Other arguments can only go with a yes to something that has not begun.";
/// Edited arguments came with an approval, and the user had not been shown their effect.
pub const ASKED_WITH_EDITED: &str = "Nothing was done yet: with these arguments it is another question, which waits for your answer.";
/// Returns the message for edited arguments that the gate refused.
#[must_use]
pub fn edited_unusable(reason: &str) -> String {
    format!("That cannot be done with these arguments, so nothing was done: {reason}")
}

/// Returns the message for a verdict that does not fit the pending call.
#[must_use]
pub fn wrong_verdict(call: &PendingCall) -> String {
    let preview = call.preview.trim_end_matches(['?', '.']);
    match call.kind() {
        PendingKind::Confirmation => format!("{preview}: this waits for a yes or a no."),
        PendingKind::Result => format!(
            "{preview}: nobody has to agree to this. It waits for its result, which the program that asked brings."
        ),
        PendingKind::Doubt => format!(
            "{preview}: this was interrupted. The answers are that it was done, that it was not done and is to be tried \
             again, or that it is to be left as it is."
        ),
    }
}

/// Returns the notice that the message was cut before the model read it.
#[must_use]
pub fn message_cut(kept: usize, chars: usize) -> String {
    format!("Your message was cut: I read the first {kept} of its {chars} characters.")
}

/// Returns the notice that the answer was cut at its bound.
#[must_use]
pub fn answer_cut(max_tokens: u32) -> String {
    format!("The answer was cut at the limit of {max_tokens} tokens.")
}
