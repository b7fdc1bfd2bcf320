//! The tool of a server as a tool of the agent.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{
    Arguments, BoxFuture, Effect, Prepared, Tool, ToolContext, ToolDefinition, ToolError,
    call_in_words, name_in_words,
};
use serde_json::Value;

use super::definition::{AcceptedTool, one_line};
use super::server::Server;

/// Times that progress extends the timeout of a call at most, unless it is configured.
const PROGRESS_FACTOR: u32 = 10;

/// A tool that is called at its server.
pub(super) struct ForeignTool {
    pub(super) server: Arc<Server>,
    pub(super) joined: AcceptedTool,
}

impl ForeignTool {
    /// Returns the text of a confirmation, such as `Create an issue (github: create_issue) with
    /// title “…”`: the server, its own name for the tool unless the title says the same, and all
    /// arguments, because a person approves the whole call.
    fn preview(&self, arguments: &Arguments) -> String {
        let server = &self.server.config.name;
        let name = one_line(&self.joined.original);
        let own = name_in_words(&name);
        let whose = match &self.joined.title {
            Some(title) if name_in_words(title).to_lowercase() != own.to_lowercase() => {
                format!("{title} ({server}: {name})")
            }
            Some(title) => format!("{title} ({server})"),
            None => format!("{own} ({server})"),
        };
        call_in_words(&whose, &self.joined.definition.in_order(arguments.clone()))
    }
}

impl Tool for ForeignTool {
    fn definition(&self) -> &ToolDefinition {
        &self.joined.definition
    }

    fn title(&self) -> Option<&str> {
        self.joined.title.as_deref()
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        mut arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        for (what, argument) in &self.joined.inject {
            // Overwrites an argument that the model sent although it is hidden.
            arguments.insert(argument.clone(), Value::String(what.value(context)));
        }
        // By our annotations, which the operator's rules have corrected.
        let harmless = self.joined.definition.annotations.effect() == Effect::None;
        Box::pin(
            self.server
                .call(&self.joined.original, arguments, harmless, context),
        )
    }

    fn reads_from_others(&self) -> bool {
        true
    }

    fn prepare<'a>(
        &'a self,
        _: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Prepared, ToolError>> {
        let preview = Some(self.preview(&arguments));
        Box::pin(std::future::ready(Ok(Prepared::Ready {
            arguments,
            preview,
        })))
    }

    fn timeout(&self) -> Option<Duration> {
        self.server.config.timeout
    }

    fn timeout_with_progress(&self, timeout: Duration) -> Duration {
        let most = self.server.config.timeout_max;
        most.unwrap_or_else(|| timeout.saturating_mul(PROGRESS_FACTOR))
            .max(timeout)
    }

    fn timed_out(&self, limit: Duration, extended: bool) -> ToolError {
        let config = &self.server.config;
        let setting = match (extended, config.timeout) {
            (true, _) => "max_timeout",
            (false, Some(_)) => "timeout",
            (false, None) => return ToolError::timed_out(limit),
        };
        ToolError::TimedOut {
            limit,
            setting: format!("{setting} of the MCP server {}", config.name),
        }
    }
}
