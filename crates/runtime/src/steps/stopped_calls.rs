//! Stopping a turn while a call with an effect is under way: the call cannot be taken back, so it goes
//! on, and whoever waits for the turn is answered without waiting for the call.

use std::convert::Infallible;
use std::time::Duration;

use adjutant_core::conversation::CurrentTurn;
use adjutant_core::turn::Turn;
use adjutant_core::{CallId, Event, words};
use tokio::time::timeout;

use super::Steps;
use super::calls::Call;
use crate::RunError;

/// Time that tools have to describe their calls to the person who stopped the turn.
const DESCRIBED_WITHIN: Duration = Duration::from_secs(1);

impl Steps<'_> {
    /// Executes calls. If the turn is stopped meanwhile, records that those with an effect go on,
    /// answers the caller, and still waits for their ends.
    pub(crate) async fn answering_when_stopped<T>(
        &self,
        turn: &Turn,
        calls: impl Future<Output = T>,
    ) -> T {
        tokio::select! {
            // In this order: a call that ends because it is told of the stop is not one that goes
            // on. Recording the stop holds the log, without which `calls` cannot end, so it is
            // never cut short.
            biased;
            ended = calls => ended,
            never = self.answer_when_stopped(turn) => match never {},
        }
    }

    async fn answer_when_stopped(&self, turn: &Turn) -> Infallible {
        self.early_end.cancelled().cancelled().await;
        if let Err(error) = self.record_stop(turn).await {
            // The end of the call cannot be written either, and reports the same.
            tracing::warn!(%error, "the stop of a turn was not written");
        }
        std::future::pending().await
    }

    async fn record_stop(&self, turn: &Turn) -> Result<(), RunError> {
        let mut described = Vec::new();
        for event in self.under_way().await {
            let Event::CallStarted {
                call,
                tool,
                arguments,
                ..
            } = &event
            else {
                continue;
            };
            let begun = Call {
                id: call,
                tool,
                arguments,
                is_followed: false,
            };
            let registered = self.tools.gate().registry.get(tool);
            let context = self.tool_context(call);
            let preview = self.preview(turn, registered, &context, begun);
            let preview = timeout(DESCRIBED_WITHIN, preview)
                .await
                .unwrap_or_else(|_| begun.line());
            described.push((call.clone(), preview));
        }
        let mut log = self.log.lock().await;
        let still: Vec<CallId> = log
            .conversation()
            .current()
            .map(CurrentTurn::under_way)
            .unwrap_or_default()
            .into_iter()
            .filter_map(started_call)
            .collect();
        described.retain(|(call, _)| still.contains(call));
        if described.is_empty() {
            return Ok(());
        }
        let (calls, previews): (Vec<CallId>, Vec<String>) = described.into_iter().unzip();
        let stopped = Event::TurnStopped {
            turn: self.turn,
            input: self.early_end.stopped_by().cloned(),
            calls,
            content: words::stopped_while_running(&previews),
        };
        log.append(self.inner, self.key, vec![stopped]).await?;
        drop(log);
        self.outliving
            .get_or_init(|| self.inner.outliving_calls.enter());
        if let Some(stopped) = self.stopped {
            stopped.notify_one();
        }
        Ok(())
    }

    async fn under_way(&self) -> Vec<Event> {
        let read = |turn: &CurrentTurn| turn.under_way().into_iter().cloned().collect();
        self.with_turn(read).await.unwrap_or_default()
    }
}

fn started_call(event: &Event) -> Option<CallId> {
    match event {
        Event::CallStarted { call, .. } => Some(call.clone()),
        _ => None,
    }
}
