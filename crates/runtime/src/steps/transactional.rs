//! Calls of transactional tools on the journal's own store: intent, change and result are one
//! transaction, so they are never in doubt.

use std::any::Any;
use std::sync::Arc;

use adjutant_core::turn::CallEnd;
use adjutant_core::{Event, Tool, ToolResult, TransactionalTool};
use tokio::time::Instant;

use super::Steps;
use super::calls::{Call, is_from_others};
use crate::RunError;
use crate::clock::millis;
use crate::event::RunEvent;
use crate::faults::boundary;

impl Steps<'_> {
    /// Returns true if calls of a tool are one transaction, so that no intent is written before.
    pub(super) fn is_in_store(&self, tool: &str) -> bool {
        self.tools
            .gate()
            .registry
            .get(tool)
            .is_some_and(|tool| self.in_store(&**tool).is_some())
    }

    /// Returns the tool as a transactional one, if it works on the store of the journal.
    fn in_store<'t>(&self, tool: &'t dyn Tool) -> Option<&'t dyn TransactionalTool> {
        let journal = self.inner.journal.store_id()?;
        tool.as_transactional()
            .filter(|tool| tool.store_id() == Some(journal))
    }

    /// Executes a call that was never started, if it is one transaction. `None`: it is executed as
    /// any other.
    pub(super) async fn run_in_store(
        &self,
        tool: &Arc<dyn Tool>,
        call: Call<'_>,
    ) -> Result<Option<CallEnd>, RunError> {
        let Some(in_store) = self.in_store(&**tool) else {
            return Ok(None);
        };
        let context = self.context_to_run(call.id).await;
        let Ok(change) = in_store.change(&context, call.arguments) else {
            return Ok(None);
        };
        let began = Instant::now();
        let started = || RunEvent::ToolStarted {
            call: call.to_tool_call(),
        };
        self.emitter.emit(started).await;
        let intent = self
            .intent(call.id, call.tool, call.arguments)
            .into_iter()
            .collect();
        let corrections = self
            .find(|turn| turn.corrections(call.id).map(str::to_owned))
            .await;
        let ended = self.end_in_store(tool.clone(), call, began, corrections);
        boundary("before an append");
        let ended = self
            .log
            .lock()
            .await
            .append_with_change(self.inner, self.key, intent, change, context.key, ended)
            .await?;
        boundary("after an append");
        let Event::CallFinished {
            arguments,
            result,
            summary,
            ms,
            ..
        } = &*ended
        else {
            return Ok(None);
        };
        self.emit_finished(call, result, summary.as_deref(), *ms)
            .await;
        let (arguments, result, summary) = (arguments.clone(), result.clone(), summary.clone());
        Ok(Some(CallEnd::Executed {
            arguments,
            result,
            summary,
        }))
    }

    /// Returns a function that makes the call's end from the result of its change, inside the
    /// transaction.
    fn end_in_store(
        &self,
        tool: Arc<dyn Tool>,
        call: Call<'_>,
        began: Instant,
        corrections: Option<String>,
    ) -> impl Fn(&dyn Any) -> Event + Send + Sync + 'static {
        let (turn, id, arguments) = (self.turn, call.id.clone(), call.arguments.clone());
        let name = call.tool.to_owned();
        move |outcome| {
            let result = tool.as_transactional().map(|tool| tool.result(outcome));
            let (result, summary) = match result {
                Some(Ok(data)) => {
                    let summary = tool.describe(&arguments, &data);
                    (ToolResult::ok(data), summary)
                }
                Some(Err(error)) => (ToolResult::failed(error.to_string()), None),
                None => (ToolResult::failed("the tool is another by now"), None),
            };
            let from_others = is_from_others(&*tool, &result);
            Event::CallFinished {
                turn,
                call: id.clone(),
                tool: name.clone(),
                arguments: arguments.clone(),
                result: result.marked(from_others).with_note(corrections.clone()),
                summary,
                ms: millis(began),
                attempt: 1,
            }
        }
    }
}
