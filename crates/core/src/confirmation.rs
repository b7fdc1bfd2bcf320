//! Pending calls as data: calls to be confirmed, calls in doubt and calls that somebody else
//! executes, what an answer must match, and how plain words are read.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fingerprint::{sha256, sorted};
use crate::id::{CallId, TurnId};
use crate::tool::{Arguments, ToolResult};
use crate::tool_choice::ToolChoice;

/// A call that waits: for a human, or for its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingCall {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// Exactly what would run, references resolved to ids.
    pub arguments: Arguments,
    /// What it would touch, in the person's words.
    pub preview: String,
    /// Hash over turn, call, tool and arguments. Only an answer that carries it counts.
    pub digest: String,
    /// [`ToolDefinition::fingerprint`](crate::ToolDefinition::fingerprint) of the tool as it was
    /// when it was asked: a yes is to that tool. `None` in journals of versions that did not keep
    /// it, and for a tool that was not there: any definition counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// When it was asked.
    pub requested_at: Timestamp,
    /// From when on an answer is too late.
    pub expires_at: Timestamp,
    /// Set if it does not wait for a yes: it was begun, and nobody knows whether it was done. It
    /// takes [`Verdict::Done`], [`Verdict::Retry`] or [`Verdict::Leave`]; nobody's answer is a
    /// `Leave`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
    /// Set if it waits for its result, which the agent does not make itself: from whom. It takes
    /// [`Verdict::Provided`], and no words of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<Awaits>,
}

/// From whom the result of a call comes that the agent does not execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Awaits {
    /// From the program that sent the message and brought the tool with it.
    Client,
}

/// The kind of answer that a pending call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingKind {
    /// A yes or no.
    Confirmation,
    /// Somebody who knows whether it was done.
    Doubt,
    /// Its result.
    Result,
}

/// A call that was begun and whose end nobody saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// Which start of the call it is about, from 1. A call that was tried again may come into doubt
    /// again.
    pub attempt: u32,
    /// When it was begun.
    pub since: Timestamp,
}

impl PendingCall {
    /// Returns whether the time for an answer is over.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }

    /// Returns a short id for people: the end of the call's id, the same at every look.
    #[must_use]
    pub fn short_id(&self) -> &str {
        let id = self.call_id.as_str();
        // `call_<random hex>_<number>`: six digits tell apart what one person has waiting.
        let number_at = id.rfind('_').unwrap_or(id.len());
        id.get(number_at.saturating_sub(6)..).unwrap_or(id)
    }

    /// Returns what it waits for.
    #[must_use]
    pub fn kind(&self) -> PendingKind {
        match (&self.doubt, self.awaits) {
            (Some(_), _) => PendingKind::Doubt,
            (None, Some(_)) => PendingKind::Result,
            (None, None) => PendingKind::Confirmation,
        }
    }

    /// Returns whether it waits for its result, and not for a human.
    #[must_use]
    pub fn awaits_result(&self) -> bool {
        self.kind() == PendingKind::Result
    }

    /// An answer to it as it was shown.
    #[must_use]
    pub fn answer(&self, verdict: Verdict) -> Answer {
        Answer {
            call_id: self.call_id.clone(),
            digest: self.digest.clone(),
            verdict,
            edited: None,
            shown: None,
            result: None,
            choice: ToolChoice::Auto,
        }
    }

    /// Returns the answer that brings the result of a call that awaits one.
    #[must_use]
    pub fn provided(&self, result: ToolResult) -> Answer {
        Answer {
            result: Some(result),
            ..self.answer(Verdict::Provided)
        }
    }

    /// Whether a verdict is one it can have.
    #[must_use]
    pub fn takes(&self, verdict: Verdict) -> bool {
        match verdict {
            Verdict::Approved | Verdict::Denied => self.kind() == PendingKind::Confirmation,
            Verdict::Done | Verdict::Retry | Verdict::Leave => self.kind() == PendingKind::Doubt,
            Verdict::Provided => self.kind() == PendingKind::Result,
        }
    }
}

/// SHA-256, in hex, over the turn, the call, the tool and its arguments with sorted keys.
#[must_use]
pub fn digest(turn: TurnId, call: &CallId, tool: &str, arguments: &Arguments) -> String {
    let canonical =
        serde_json::json!([turn, call, tool, sorted(&Value::Object(arguments.clone()))]);
    sha256(&canonical.to_string())
}

/// [`digest`] for a call in doubt: an answer to the confirmation of the call, or to an earlier
/// doubt, is none to this one.
#[must_use]
pub fn doubt_digest(
    turn: TurnId,
    call: &CallId,
    tool: &str,
    arguments: &Arguments,
    attempt: u32,
) -> String {
    let arguments = sorted(&Value::Object(arguments.clone()));
    let canonical = serde_json::json!([turn, call, tool, arguments, "doubt", attempt]);
    sha256(&canonical.to_string())
}

/// The answer to one pending call, of a human or of whoever brings its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The call it answers.
    pub call_id: CallId,
    /// The digest the human was shown.
    pub digest: String,
    /// What they said.
    pub verdict: Verdict,
    /// Other arguments to approve it with. They pass the gate again; if they do not fit, the answer
    /// is refused with the reason and the call keeps waiting. If they fit, and are not what `shown`
    /// is about, the call waits with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Arguments>,
    /// The digest of the question that the call is with `edited`, if the human was shown it: then
    /// it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// With [`Verdict::Provided`]: the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
    /// With [`Verdict::Provided`]: what the model may call next. Of several answers the last one's
    /// counts.
    #[serde(default, skip_serializing_if = "ToolChoice::is_auto")]
    pub choice: ToolChoice,
}

impl Answer {
    /// The same with other arguments, for [`Verdict::Approved`]. Nothing is done before the human
    /// was shown what they mean.
    #[must_use]
    pub fn with_arguments(mut self, arguments: Arguments) -> Self {
        self.edited = Some(arguments);
        self
    }

    /// The same after the human was shown the question with the other arguments, which has this
    /// digest.
    #[must_use]
    pub fn as_shown(mut self, digest: impl Into<String>) -> Self {
        self.shown = Some(digest.into());
        self
    }

    /// The same with a choice of what the model may call next, for [`Verdict::Provided`].
    #[must_use]
    pub fn choosing(mut self, choice: ToolChoice) -> Self {
        self.choice = choice;
        self
    }
}

/// The answer to a pending call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Run exactly what was shown.
    Approved,
    /// Do not run it.
    Denied,
    /// Of a call in doubt: it was done.
    Done,
    /// Of a call in doubt: it was not done; try again, with the same key.
    Retry,
    /// Of a call in doubt: leave it open, and do not try again.
    Leave,
    /// Of a call that awaits its result: here it is.
    Provided,
}

/// How a message is read while something waits. Never by the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// A bare yes.
    Yes,
    /// A bare no, or cancel.
    No,
    /// Anything else: ask again, execute nothing.
    Unclear,
}

/// How a message is read while a call in doubt waits. Never by the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoubtReading {
    /// One of the three answers: [`Verdict::Done`], [`Verdict::Retry`] or [`Verdict::Leave`].
    Verdict(Verdict),
    /// Anything else, a bare yes or no among them: ask again, execute nothing.
    Unclear,
}

/// Reads plain words while a call in doubt waits. Only the three answers count, and close relatives
/// of them that can mean nothing else.
#[must_use]
pub fn read_doubt_words(text: &str) -> DoubtReading {
    const DONE: &[&str] = &[
        "it was done",
        "was done",
        "done",
        "it is done",
        "its done",
        "it has been done",
        "it was carried out",
        "it happened",
        "yes it was done",
        "yes it was",
        "already done",
        "it was already done",
    ];
    const RETRY: &[&str] = &[
        "not done try again",
        "it was not done try again",
        "it wasnt done try again",
        "not done please try again",
        "no try again",
        "no it was not try again",
        "try again",
        "try it again",
        "please try again",
        "retry",
        "do it again",
        "repeat it",
    ];
    const LEAVE: &[&str] = &[
        "leave it",
        "leave it as it is",
        "leave it alone",
        "leave it be",
        "leave it open",
        "please leave it",
        "just leave it",
        "leave",
        "never mind",
        "nevermind",
    ];
    let words = bare_words(text);
    if text.contains('?') {
        DoubtReading::Unclear
    } else if DONE.contains(&words.as_str()) {
        DoubtReading::Verdict(Verdict::Done)
    } else if RETRY.contains(&words.as_str()) {
        DoubtReading::Verdict(Verdict::Retry)
    } else if LEAVE.contains(&words.as_str()) {
        DoubtReading::Verdict(Verdict::Leave)
    } else {
        DoubtReading::Unclear
    }
}

/// What a message says to the calls that wait. Empty: it is unclear, and nothing is executed.
///
/// A yes or no is for every call that waits for one. The answer to a doubt is for the one call that
/// is in doubt: where several are, or something else waits for a human beside it, plain words are
/// not enough. They are never the result of a call.
#[must_use]
pub fn read_message<'a>(waiting: &'a [PendingCall], text: &str) -> Vec<(&'a PendingCall, Verdict)> {
    let waiting: Vec<&PendingCall> = waiting
        .iter()
        .filter(|call| !call.awaits_result())
        .collect();
    if let [call] = waiting.as_slice()
        && call.doubt.is_some()
    {
        return match read_doubt_words(text) {
            DoubtReading::Verdict(verdict) => vec![(call, verdict)],
            DoubtReading::Unclear => Vec::new(),
        };
    }
    if waiting.iter().any(|call| call.doubt.is_some()) {
        return Vec::new();
    }
    let verdict = match read_words(text) {
        Reading::Yes => Verdict::Approved,
        Reading::No => Verdict::Denied,
        Reading::Unclear => return Vec::new(),
    };
    waiting.into_iter().map(|call| (call, verdict)).collect()
}

/// Reads plain words while something waits. Only a bare yes or no counts; "yes, but ..." is
/// unclear.
#[must_use]
pub fn read_words(text: &str) -> Reading {
    const YES: &[&str] = &[
        "yes",
        "y",
        "yes please",
        "yep",
        "yeah",
        "ok",
        "okay",
        "sure",
        "confirm",
        "confirmed",
        "approve",
        "approved",
        "do it",
        "go ahead",
        "yes do it",
        "yes go ahead",
        "yes delete it",
        "delete it",
        "please do",
        "ja",
    ];
    const NO: &[&str] = &[
        "no",
        "n",
        "nope",
        "no thanks",
        "no thank you",
        "cancel",
        "stop",
        "dont",
        "do not",
        "deny",
        "denied",
        "abort",
        "never mind",
        "nevermind",
        "keep it",
        "no keep it",
        "no dont",
        "dont do it",
        "nein",
    ];
    let words = bare_words(text);
    // A question mark makes any word a question.
    if text.contains('?') {
        Reading::Unclear
    } else if YES.contains(&words.as_str()) {
        Reading::Yes
    } else if NO.contains(&words.as_str()) {
        Reading::No
    } else {
        Reading::Unclear
    }
}

/// The words alone: no marks, no capitals, one space between two.
fn bare_words(text: &str) -> String {
    let words: String = text
        .chars()
        .filter(|c| !matches!(c, '\'' | '’'))
        .map(|c| {
            if c.is_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                ' '
            }
        })
        .collect();
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_id_is_the_end_of_the_long_one() {
        let call: PendingCall = serde_json::from_value(serde_json::json!({
            "call_id": "call_0123456789abcdef_12", "tool": "delete_task", "arguments": {}, "preview": "x",
            "digest": "d", "requested_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-02T00:00:00Z",
        }))
        .unwrap();
        assert_eq!(call.short_id(), "abcdef_12");
    }
}
