//! Calls that change the tasks of the agent's own store: intent, change and result are one
//! transaction.

use std::sync::Arc;

use adjutant_core::turn::CallEnd;
use adjutant_core::{Event, TaskChanged, TaskTool, Tool, ToolCall, ToolResult};
use tokio::time::Instant;

use super::Steps;
use super::call::Call;
use crate::RunError;
use crate::clock::millis;
use crate::event::RunEvent;
use crate::faults::boundary;

impl Steps<'_> {
    /// Returns whether a call of the tool of this name is one transaction: its intent is written
    /// together with its change.
    pub(super) fn is_in_store(&self, tool: &str) -> bool {
        self.tools
            .gate()
            .registry
            .get(tool)
            .is_some_and(|tool| self.in_store(&**tool).is_some())
    }

    fn in_store<'t>(&self, tool: &'t dyn Tool) -> Option<&'t dyn TaskTool> {
        let journal = self.inner.journal.store_id()?;
        tool.as_task_tool()
            .filter(|tool| tool.store_id() == Some(journal))
    }

    /// Executes a call that was never begun, if it is one transaction. `None`: it is to be executed
    /// as any other.
    pub(super) async fn run_in_store(
        &self,
        tool: &Arc<dyn Tool>,
        call: Call<'_>,
    ) -> Result<Option<CallEnd>, RunError> {
        let Some(Ok(change)) = self
            .in_store(&**tool)
            .map(|tool| tool.change(call.arguments))
        else {
            return Ok(None);
        };
        let began = Instant::now();
        let started = || ToolCall {
            id: call.id.clone(),
            provider_id: None,
            name: call.tool.to_owned(),
            arguments: call.arguments.clone(),
            malformed: None,
        };
        self.emitter
            .emit(|| RunEvent::ToolStarted { call: started() })
            .await;
        let intent = self
            .intent(call.id, call.tool, call.arguments)
            .into_iter()
            .collect();
        let ended = self.ended_in_store(tool.clone(), call, began);
        let key = self.tool_context(call.id).key;
        boundary("before an append");
        let ended = self
            .log
            .lock()
            .await
            .append_with_change(self.inner, self.key, intent, change, key, ended)
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

    /// Returns what makes the event of the call's end of what its change led to.
    fn ended_in_store(
        &self,
        tool: Arc<dyn Tool>,
        call: Call<'_>,
        began: Instant,
    ) -> impl Fn(&TaskChanged) -> Event + Send + Sync + 'static {
        let (turn, id, arguments) = (self.turn, call.id.clone(), call.arguments.clone());
        let name = call.tool.to_owned();
        move |changed| {
            let result = tool.as_task_tool().map(|tool| tool.result(changed));
            let (result, summary) = match result {
                Some(Ok(data)) => {
                    let summary = tool.describe(&arguments, &data);
                    (ToolResult::ok(data), summary)
                }
                Some(Err(error)) => (ToolResult::failed(error.to_string()), None),
                None => (ToolResult::failed("the tool is another by now"), None),
            };
            Event::CallFinished {
                turn,
                call: id.clone(),
                tool: name.clone(),
                arguments: arguments.clone(),
                result,
                summary,
                ms: millis(began),
                attempt: 1,
            }
        }
    }
}
