//! Calls after the database has lost its last commits.
//!
//! The work in those commits is not in the journal any more, and clients repeat the requests
//! that they know of. For a while, a person is asked before anything is done that must not be done
//! twice.

use adjutant_core::{Effect, Event, GateCheck, GateVerdict, PendingCall, ToolCall};
use jiff::{SignedDuration, Timestamp};

use super::Steps;
use super::calls::Call;

/// Suffix of the question about a call that a lost commit may have had before.
const AFTER_LOSS: &str =
    " (the database has lost its last moments: this may have been done already)";

/// The reason for which an approval is not taken that a lost commit may have had before.
const APPROVED_BEFORE_LOSS: &str = "The database has lost its last moments, and this may have been approved and done in them. Look whether it \
     was done, then answer again.";

impl Steps<'_> {
    /// Turns the permission to run a call into a question if a lost commit may have had the call.
    pub(super) async fn ask_after_loss(
        &self,
        verdict: GateVerdict,
        call: &ToolCall,
        check: &GateCheck<'_>,
    ) -> GateVerdict {
        if !matches!(verdict, GateVerdict::Run { .. }) || self.lost_at(&call.name).is_none() {
            return verdict;
        }
        let context = self.tool_context(&call.id);
        match self.tools.gate().question(&context, call, check).await {
            Ok(mut pending) => {
                pending.preview.push_str(AFTER_LOSS);
                GateVerdict::Confirm { pending }
            }
            Err(_) => verdict,
        }
    }

    /// Returns the reason for which an answer that has a call run is not taken yet: the question was
    /// shown before commits were lost, and nobody was told since.
    pub(super) async fn refusal_after_loss(&self, call: &PendingCall) -> Option<String> {
        let lost_at = self
            .lost_at(&call.tool)
            .filter(|lost_at| call.requested_at < *lost_at)?;
        let log = self.log.lock().await;
        let events = log.conversation().current()?.events();
        let was_told = events.iter().any(|recorded| {
            matches!(&*recorded.event, Event::AnswerRefused { call: refused, .. }
                if *refused == call.call_id && recorded.at >= lost_at)
        });
        (!was_told).then(|| APPROVED_BEFORE_LOSS.to_owned())
    }

    /// Returns true if a call was permitted before commits were lost: its start may have been in one
    /// of them.
    pub(super) async fn may_have_lost_start(&self, call: Call<'_>) -> bool {
        let Some(lost_at) = self.lost_at(call.tool) else {
            return false;
        };
        let is_permission = |event: &Event| {
            matches!(event, Event::CallChecked { call: of, .. } | Event::CallAnswered { call: of, .. } | Event::DoubtResolved { call: of, .. }
                if of == call.id)
        };
        let log = self.log.lock().await;
        let current = log.conversation().current();
        current.is_some_and(|turn| {
            let events = turn.events().iter().rev();
            let mut permissions = events.filter(|recorded| is_permission(&recorded.event));
            permissions.next().is_some_and(|last| last.at < lost_at)
        })
    }

    /// Returns the time at which commits were lost, if that is not long ago and a call of this tool
    /// must not be repeated. A call that changes the journal's own store was lost with its commit.
    fn lost_at(&self, tool: &str) -> Option<Timestamp> {
        let since = self.inner.journal.since_lost_commits()?;
        if since >= self.inner.ask_after_lost_commits || self.is_in_store(tool) {
            return None;
        }
        let registered = self.tools.gate().registry.get(tool)?;
        if registered.definition().annotations.effect() != Effect::Once {
            return None;
        }
        let since = SignedDuration::try_from(since).ok()?;
        self.inner.now().checked_sub(since).ok()
    }
}
