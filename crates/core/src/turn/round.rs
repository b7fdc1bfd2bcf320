//! A round: the calls of one answer with their results so far.

use super::decide::{Ending, is_control};
use crate::call_end::CallEnd;
use crate::confirmation::PendingCall;
use crate::id::CallId;
use crate::tool::ToolCall;
use crate::words;

/// A round: the calls of one answer with their results so far.
#[derive(Debug, Clone)]
pub(super) struct Round {
    pub(super) calls: Vec<(ToolCall, Option<CallEnd>)>,
    /// Calls whose arguments the person edited before they ran.
    pub(super) edited: Vec<CallId>,
    /// Calls in doubt, with the description of their effect for the person.
    pub(super) doubted: Vec<(CallId, String)>,
    pub(super) ending: Option<Ending>,
    /// True if the caller executes one of the calls.
    handed_over: bool,
}

impl Round {
    /// Creates a round of calls without results.
    pub(super) fn new(calls: Vec<ToolCall>, ending: Option<Ending>) -> Self {
        let calls = calls.into_iter().map(|call| (call, None)).collect();
        Self {
            calls,
            edited: Vec::new(),
            doubted: Vec::new(),
            ending,
            handed_over: false,
        }
    }

    /// Records the ends of calls. Returns true if one of them had waited for a person and ran.
    pub(super) fn take(&mut self, ends: Vec<(CallId, CallEnd)>) -> bool {
        let mut approved = false;
        for (id, end) in ends {
            // `on_call_ends` refuses the ends of other calls. Those of a stopped turn are not
            // checked.
            let Some((_, slot)) = self.calls.iter_mut().find(|(call, _)| call.id == id) else {
                continue;
            };
            if let (Some(CallEnd::Waiting(shown)), Some(arguments)) = (&*slot, end.began_with())
                && !shown.awaits_result()
            {
                approved |= matches!(end, CallEnd::Executed { .. });
                if shown.arguments != *arguments && !self.edited.contains(&id) {
                    self.edited.push(id.clone());
                }
            }
            // The end of the call replaces this one, so it is remembered beside.
            self.handed_over |= matches!(&end, CallEnd::Waiting(shown) if shown.awaits_result());
            if let CallEnd::Waiting(PendingCall {
                preview,
                doubt: Some(_),
                ..
            }) = &end
            {
                self.doubted.push((id.clone(), preview.clone()));
            }
            *slot = Some(end);
        }
        approved
    }

    /// Returns true if the call belongs to the round.
    pub(super) fn has(&self, id: &CallId) -> bool {
        self.calls.iter().any(|(call, _)| call.id == *id)
    }

    /// Returns true if every call has an end.
    pub(super) fn is_complete(&self) -> bool {
        self.calls
            .iter()
            // Control functions are not executed, so no end of them arrives.
            .all(|(call, end)| end.is_some() || is_control(call))
    }

    /// Returns true if the caller executes one of the calls.
    pub(super) fn was_handed_over(&self) -> bool {
        self.handed_over
    }

    /// Returns true if the caller did not submit a result in time.
    pub(super) fn has_no_result(&self) -> bool {
        self.calls
            .iter()
            .any(|(_, end)| matches!(end, Some(CallEnd::NoResult { .. })))
    }

    /// Returns the calls that wait, in order.
    pub(super) fn pending(&self) -> Vec<PendingCall> {
        let waiting = self.calls.iter().filter_map(|(_, end)| match end {
            Some(CallEnd::Waiting(pending)) => Some(pending.clone()),
            _ => None,
        });
        waiting.collect()
    }

    /// Returns the question for the person, if a call led to one.
    pub(super) fn question(&self) -> Option<String> {
        self.calls.iter().find_map(|(_, end)| match end {
            Some(CallEnd::Asked { question }) => Some(question.clone()),
            _ => None,
        })
    }

    /// Returns the text for the person while calls wait: what is done, what is unclear, and the
    /// questions.
    pub(super) fn words_while_waiting(&self, pending: &[PendingCall]) -> String {
        let mut lines: Vec<String> = Vec::new();
        for (_, end) in &self.calls {
            match end {
                Some(CallEnd::Executed {
                    result, summary, ..
                }) => {
                    lines.extend(summary.clone().or_else(|| result.error.clone()));
                }
                Some(CallEnd::Asked { question }) => lines.push(question.clone()),
                _ => {}
            }
        }
        lines.push(words::questions(pending));
        lines.join("\n")
    }
}

impl CallEnd {
    /// Returns the arguments that the call was started with, if it was started.
    fn began_with(&self) -> Option<&crate::tool::Arguments> {
        match self {
            Self::Executed { arguments, .. }
            | Self::InDoubt { arguments }
            | Self::TakenAsDone { arguments }
            | Self::Waiting(PendingCall {
                arguments,
                doubt: Some(_),
                ..
            }) => Some(arguments),
            _ => None,
        }
    }
}
