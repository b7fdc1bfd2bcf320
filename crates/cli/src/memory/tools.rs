//! Memory tools of a model.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{
    Arguments, BoxFuture, Prepared, Probe, Reference, Tool, ToolContext, ToolDefinition, ToolError,
    UserId,
};
use adjutant_memory::{brief_tools, memory_tools};
use serde_json::Value;

use super::UserMemory;
use super::undo::with_undo;

/// Names of the memory tools, which settings may contain even without a vault.
pub(crate) const NAMES: [&str; 8] = [
    "remember",
    "recall",
    "forget",
    "write_daily_note",
    "write_note",
    "read_note",
    "search_notes",
    "list_notes",
];

/// Returns all memory tools: without a vault those of facts alone.
pub(crate) fn tools(user_memory: &UserMemory) -> Vec<Arc<dyn Tool>> {
    let tools = user_memory.memory().map(memory_tools);
    all_named(tools.unwrap_or_default(), user_memory)
}

/// Returns the tools for weak models and small context windows. `owner` is the user's name.
pub(crate) fn brief(user_memory: &UserMemory, owner: Option<&str>) -> Vec<Arc<dyn Tool>> {
    let tools = user_memory
        .memory()
        .map(|memory| brief_tools(memory, owner));
    all_named(tools.unwrap_or_default(), user_memory)
}

fn all_named(tools: Vec<Arc<dyn Tool>>, user_memory: &UserMemory) -> Vec<Arc<dyn Tool>> {
    let undo = user_memory.undo_command();
    tools.into_iter().map(|tool| named(tool, undo)).collect()
}

/// Wraps a tool, so that its summaries name this undo command.
pub(super) fn named(tool: Arc<dyn Tool>, undo: &'static str) -> Arc<dyn Tool> {
    Arc::new(Named { tool, undo })
}

/// A tool whose summaries name the undo command of the place where it runs: one of the
/// conversation, or one of the shell.
struct Named {
    tool: Arc<dyn Tool>,
    undo: &'static str,
}

impl Tool for Named {
    fn definition(&self) -> &ToolDefinition {
        self.tool.definition()
    }

    fn title(&self) -> Option<&str> {
        self.tool.title()
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let mut data = self.tool.call(context, arguments).await?;
            if let Some(Value::String(message)) = data.get_mut("message") {
                *message = with_undo(message, self.undo);
            }
            Ok(data)
        })
    }

    fn prepare<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Prepared, ToolError>> {
        self.tool.prepare(context, arguments)
    }

    fn references<'a>(
        &'a self,
        user: &'a UserId,
    ) -> BoxFuture<'a, Result<Vec<Reference>, ToolError>> {
        self.tool.references(user)
    }

    fn describe(&self, arguments: &Arguments, data: &Value) -> Option<String> {
        self.tool.describe(arguments, data)
    }

    fn probe<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: &'a Arguments,
    ) -> BoxFuture<'a, Probe> {
        self.tool.probe(context, arguments)
    }

    fn timeout(&self) -> Option<Duration> {
        self.tool.timeout()
    }

    fn timeout_with_progress(&self, timeout: Duration) -> Duration {
        self.tool.timeout_with_progress(timeout)
    }

    fn timed_out(&self, limit: Duration, extended: bool) -> ToolError {
        self.tool.timed_out(limit, extended)
    }
}

#[cfg(test)]
mod tests {
    use adjutant_memory::{InMemoryLedger, Memory, MemoryOptions, Vault};

    use super::*;

    #[test]
    fn the_names_are_those_of_the_tools() {
        let folder = tempfile::tempdir().unwrap();
        let vault = Vault::open(folder.path()).unwrap();
        let (ledger, clock) = (
            Arc::new(InMemoryLedger::new()),
            Arc::new(|| unreachable!("nothing is done")),
        );
        let memory = Memory::new(
            vault,
            UserId::local(),
            MemoryOptions::default(),
            ledger,
            clock,
        )
        .unwrap();
        let tools = memory_tools(&memory);
        let mut names: Vec<&str> = tools
            .iter()
            .map(|tool| tool.definition().name.as_str())
            .collect();
        let mut known = NAMES.to_vec();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known);
    }
}
