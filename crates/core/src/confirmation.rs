//! Pending calls and their answers: confirmations, calls in doubt, and results from the caller; and
//! how plain messages are read as answers.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fingerprint::{sha256, sorted};
use crate::id::{CallId, TurnId};
use crate::tool::{Arguments, ToolResult};
use crate::tool_choice::ToolChoice;

/// A call that waits for a person's answer or for its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingCall {
    /// Id of the call that waits.
    pub call_id: CallId,
    /// Name of the called tool.
    pub tool: String,
    /// Arguments with which it would run, references resolved to ids.
    pub arguments: Arguments,
    /// Description of the effect, for the person.
    pub preview: String,
    /// Hash over turn, call, tool, arguments and description. Only an answer with this digest
    /// counts.
    pub digest: String,
    /// [`ToolDefinition::fingerprint`](crate::ToolDefinition::fingerprint) of the tool when the
    /// question was asked, because an approval is for that definition. `None` in older journals and
    /// for a tool that was missing: any definition counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// The user's intent, if the tool's definition names one; otherwise it is the tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Time at which the question was asked.
    pub requested_at: Timestamp,
    /// Time from which an answer is too late.
    pub expires_at: Timestamp,
    /// Set for a call in doubt: it was started and its result is unknown. It takes
    /// [`Verdict::Done`], [`Verdict::Retry`] or [`Verdict::Leave`]; expiry counts as `Leave`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
    /// Set for a call whose result comes from outside, with the source of that. It takes
    /// [`Verdict::Provided`] and no answer of a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<Awaits>,
    /// True if the call is confirmed only because it is not in the person's own words, so that an
    /// approval may count for the rest of the conversation ([`Answer::for_conversation`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_conversation: bool,
    /// True if an approval may count for all later calls of the tool ([`Answer::always`]): it is one
    /// of an MCP server, no rule of the policy has it confirmed, and no text of others was read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub always: bool,
}

/// The source of a call's result, if the agent does not execute it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Awaits {
    /// The program that sent the message and defined the tool.
    Client,
}

/// The kind of answer that a pending call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingKind {
    /// Approval or denial by a person.
    Confirmation,
    /// A person's knowledge of whether the call had its effect.
    Doubt,
    /// The result, computed by the caller.
    Result,
}

/// A started call whose result is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// Number of the start that is in doubt, from 1. A call that is retried can be in doubt again.
    pub attempt: u32,
    /// Time at which the call was started.
    pub since: Timestamp,
}

impl PendingCall {
    /// Returns true if it is too late for an answer.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }

    /// Returns a short id for people: the end of the call's id.
    #[must_use]
    pub fn short_id(&self) -> &str {
        let id = self.call_id.as_str();
        // `call_<random hex>_<number>`: six digits distinguish what waits for one person.
        let number_at = id.rfind('_').unwrap_or(id.len());
        id.get(number_at.saturating_sub(6)..).unwrap_or(id)
    }

    /// Returns the kind of answer that the call needs.
    #[must_use]
    pub fn kind(&self) -> PendingKind {
        match (&self.doubt, self.awaits) {
            (Some(_), _) => PendingKind::Doubt,
            (None, Some(_)) => PendingKind::Result,
            (None, None) => PendingKind::Confirmation,
        }
    }

    /// Returns true if the call waits for its result and not for a person.
    #[must_use]
    pub fn awaits_result(&self) -> bool {
        self.kind() == PendingKind::Result
    }

    /// Creates an answer to the call as it was shown.
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
            for_conversation: false,
            always: false,
        }
    }

    /// Creates the answer with the result of a call that awaits one.
    #[must_use]
    pub fn provided(&self, result: ToolResult) -> Answer {
        Answer {
            result: Some(result),
            ..self.answer(Verdict::Provided)
        }
    }

    /// Returns true if the call accepts this kind of verdict.
    #[must_use]
    pub fn takes(&self, verdict: Verdict) -> bool {
        match verdict {
            Verdict::Approved | Verdict::Denied => self.kind() == PendingKind::Confirmation,
            Verdict::Done | Verdict::Retry | Verdict::Leave => self.kind() == PendingKind::Doubt,
            Verdict::Provided => self.kind() == PendingKind::Result,
        }
    }
}

/// Returns the SHA-256, in hexadecimal digits, over turn, call, tool, arguments with sorted keys,
/// and the description that the person is shown.
#[must_use]
pub fn digest(
    turn: TurnId,
    call: &CallId,
    tool: &str,
    arguments: &Arguments,
    preview: &str,
) -> String {
    // Keys are sorted: their order is the model's, and equal calls have to have equal digests. The
    // description is part of it because an id may stand for something else by the time of the
    // answer.
    let arguments = sorted(&Value::Object(arguments.clone()));
    let canonical = serde_json::json!([turn, call, tool, arguments, preview]);
    sha256(&canonical.to_string())
}

/// Returns the [`digest`] of a call in doubt. It differs from that of the confirmation and of
/// earlier doubts, so that their answers do not count.
#[must_use]
pub fn doubt_digest(
    turn: TurnId,
    call: &CallId,
    tool: &str,
    arguments: &Arguments,
    attempt: u32,
) -> String {
    // The attempt is part of it: an answer is about one start of the call.
    let arguments = sorted(&Value::Object(arguments.clone()));
    let canonical = serde_json::json!([turn, call, tool, arguments, "doubt", attempt]);
    sha256(&canonical.to_string())
}

/// The answer to a pending call, by a person or the caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Id of the call that is answered.
    pub call_id: CallId,
    /// Digest of the question that was shown.
    pub digest: String,
    /// Decision about the call.
    pub verdict: Verdict,
    /// Other arguments to approve. They pass the gate again: if they are invalid, the answer is
    /// refused with the reason and the call keeps waiting; if they are valid and not what `shown`
    /// names, the call waits with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Arguments>,
    /// Digest of the question with the `edited` arguments, if the person saw it: then the call
    /// runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// Result of the call, with [`Verdict::Provided`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
    /// Tool choice for the next model call, with [`Verdict::Provided`]. The last of several answers
    /// counts.
    #[serde(default, skip_serializing_if = "ToolChoice::is_auto")]
    pub choice: ToolChoice,
    /// Approves, with [`Verdict::Approved`], also later calls of this tool in the conversation that
    /// would be confirmed only because they are not in the person's own words. Amounts and addresses
    /// that are not are still confirmed. Ignored unless [`PendingCall::for_conversation`] offers it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_conversation: bool,
    /// Approves, with [`Verdict::Approved`], also later calls of this tool in all conversations of the
    /// person, as long as no text of others was read. The tool is stored in their settings
    /// ([`UserSettings::allowed_tools`](crate::port::UserSettings::allowed_tools)). Ignored unless
    /// [`PendingCall::always`] offers it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub always: bool,
}

impl Answer {
    /// Replaces the arguments of an approval. The call runs only after the person saw its
    /// description with them.
    #[must_use]
    pub fn with_arguments(mut self, arguments: Arguments) -> Self {
        self.edited = Some(arguments);
        self
    }

    /// Marks edited arguments as seen by the person, by the digest of that question.
    #[must_use]
    pub fn as_shown(mut self, digest: impl Into<String>) -> Self {
        self.shown = Some(digest.into());
        self
    }

    /// Makes an approval count for the rest of the conversation.
    #[must_use]
    pub fn for_conversation(mut self) -> Self {
        self.for_conversation = true;
        self
    }

    /// Makes an approval count for all later calls of the tool.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.always = true;
        self
    }

    /// Sets the tool choice for the next model call, for [`Verdict::Provided`].
    #[must_use]
    pub fn choosing(mut self, choice: ToolChoice) -> Self {
        self.choice = choice;
        self
    }
}

/// The decision about a pending call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Run exactly what was shown.
    Approved,
    /// Do not run the call.
    Denied,
    /// The call in doubt had its effect.
    Done,
    /// The call in doubt had no effect: run it again with the same idempotency key.
    Retry,
    /// Leave the call in doubt open, and do not run it again.
    Leave,
    /// The caller computed the result.
    Provided,
}

/// The interpretation of a message while calls wait for confirmation. Never made by the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The message is an approval and nothing else.
    Yes,
    /// The message is a denial or cancellation and nothing else.
    No,
    /// Any other message: the question is repeated, and nothing is executed.
    Unclear,
}

/// The interpretation of a message while a call in doubt waits. Never made by the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoubtReading {
    /// One of the three answers: [`Verdict::Done`], [`Verdict::Retry`] or [`Verdict::Leave`].
    Verdict(Verdict),
    /// Any other message, also a plain yes or no: the question is repeated, and nothing is
    /// executed.
    Unclear,
}

/// Interprets a message while a call in doubt waits. Only the three answers count, and variants
/// that can mean nothing else.
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

/// Returns the verdicts of a message on the calls that wait; none if it is unclear.
///
/// A yes or no applies to every call that waits for confirmation. The answer to a doubt applies to
/// the only call in doubt: if there are several, or other calls wait too, a plain message is not
/// enough. A message is never the result of a call.
#[must_use]
pub fn read_message<'a>(waiting: &'a [PendingCall], text: &str) -> Vec<(&'a PendingCall, Verdict)> {
    let waiting: Vec<&PendingCall> = waiting
        .iter()
        .filter(|call| !call.awaits_result())
        .collect();
    if let [call] = waiting.as_slice()
        && call.doubt.is_some()
    {
        // One call in doubt and nothing else: the message can only be about it.
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

/// Returns true if a message consists of nothing but an answer to some question, a confirmation or a
/// doubt.
#[must_use]
pub fn is_bare_answer(text: &str) -> bool {
    read_words(text) != Reading::Unclear || read_doubt_words(text) != DoubtReading::Unclear
}

/// Interprets a message while calls wait for confirmation. Only a plain yes or no counts; "yes, but
/// ..." is unclear.
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
    // A question mark turns any word into a question.
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

/// Normalises a message: no punctuation, lower case, single spaces.
fn bare_words(text: &str) -> String {
    let words: String = text
        .chars()
        // Apostrophes are left out and not turned into spaces: "don't" is one word.
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
