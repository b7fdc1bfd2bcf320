//! `adjutant tasks`: the task tools in a person's own hand, through the same gate as a model's calls.

use adjutant_core::{Arguments, PendingCall, TaskFilter, ToolInvocation, UserId};
use adjutant_runtime::{Agent, HumanCall};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::Tasks;
use crate::config::Settings;
use crate::confirm::{approved, preview};
use crate::display::{clean, clean_line, json_line};
use crate::error::{CliError, Exit};
use crate::lines::says_yes;
use crate::report::Problem;
use crate::screen::Screen;
use crate::{store, wiring};

/// What `--json` prints.
#[derive(Serialize)]
struct Outcome {
    tool: String,
    arguments: Arguments,
    result: Option<adjutant_core::ToolResult>,
    error: Option<Problem>,
}

/// Carries out one task command.
///
/// # Errors
/// The tool failed, what was meant is not clear, it may not run, or nobody could confirm it.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Tasks,
    yes: &[String],
    json: bool,
) -> Result<Exit, CliError> {
    let (tool, arguments) = call(command);
    let store = store::open(settings).await?;
    let agent = wiring::agent_without_model(settings, store)?;
    let done = carry_out(&agent, screen, tool, arguments.clone(), yes).await;
    let error = match &done {
        Ok((invocation, _)) => invocation.outcome().err().map(|error| CliError::failed(error.to_owned())),
        Err(error) => Some(error.clone()),
    };
    if json {
        let invocation = done.as_ref().ok().map(|(invocation, _)| invocation.clone());
        let outcome = Outcome {
            tool: tool.to_owned(),
            arguments: invocation.as_ref().map_or(arguments, |invocation| invocation.arguments.clone()),
            result: invocation.map(|invocation| invocation.result),
            error: error.as_ref().map(Problem::of),
        };
        screen.answer_line(&json_line(&outcome));
    }
    if let Some(error) = error {
        screen.error(&error);
        return Ok(error.exit);
    }
    if let (false, Ok((invocation, summary))) = (json, done) {
        let data = || json_line(invocation.result.data.as_ref().unwrap_or(&Value::Null));
        screen.answer_line(&clean(&summary.unwrap_or_else(data)));
    }
    Ok(Exit::Ok)
}

/// The tool a command stands for.
fn call(command: Tasks) -> (&'static str, Arguments) {
    let words = |words: Vec<String>| words.join(" ");
    let (tool, arguments) = match command {
        Tasks::List { status } => ("list_tasks", json!({ "status": TaskFilter::from(status) })),
        Tasks::Add { description } => ("add_task", json!({ "description": words(description) })),
        Tasks::Update { task, description } => {
            ("update_task", json!({ "task_id": task, "description": words(description) }))
        }
        Tasks::Done { task } => ("complete_task", json!({ "task_id": words(task) })),
        Tasks::Rm { task } => ("delete_task", json!({ "task_id": words(task) })),
    };
    (tool, arguments.as_object().cloned().unwrap_or_default())
}

async fn carry_out(
    agent: &Agent,
    screen: &Screen,
    tool: &str,
    arguments: Arguments,
    yes: &[String],
) -> Result<(ToolInvocation, Option<String>), CliError> {
    let user = UserId::local();
    let mut confirmed: Option<PendingCall> = None;
    loop {
        match agent.call_tool(&user, tool, arguments.clone(), confirmed.as_ref()).await? {
            HumanCall::Done { invocation, summary } => return Ok((invocation, summary)),
            // The task changed between the question and the answer: what was confirmed is not what would run now.
            HumanCall::Confirm(_) if confirmed.is_some() => {
                return Err(
                    CliError::failed("it changed while it was confirmed; nothing was done").or_try("again")
                );
            }
            HumanCall::Confirm(pending) => {
                agrees(screen, &pending, yes).await?;
                confirmed = Some(pending);
            }
            HumanCall::Ask(question) => {
                return Err(
                    CliError::unknown(clean_line(&question)).or_try("adjutant tasks list, then the number")
                );
            }
            HumanCall::Refused(message) => return Err(CliError::failed(message)),
        }
    }
}

/// Whether the person says yes: by option, or asked.
async fn agrees(screen: &Screen, pending: &PendingCall, yes: &[String]) -> Result<(), CliError> {
    if approved(yes, &pending.tool) {
        return Ok(());
    }
    let preview = preview(pending);
    if !screen.asks() {
        return Err(CliError::confirmation_needed(format!("{preview} needs a yes, and nobody can be asked"))
            .or_try("the same with -y"));
    }
    if says_yes(screen, &format!("? {preview}  [y] yes  [N] no: "), false).await {
        Ok(())
    } else {
        Err(CliError::failed("kept; nothing was done"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Status;

    #[test]
    fn every_command_is_a_tool_call() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let calls = [
            (Tasks::List { status: Status::Pending }, "list_tasks", r#"{"status":"pending"}"#),
            (Tasks::Add { description: words("buy milk") }, "add_task", r#"{"description":"buy milk"}"#),
            (
                Tasks::Update { task: "1".to_owned(), description: words("buy oat milk") },
                "update_task",
                r#"{"task_id":"1","description":"buy oat milk"}"#,
            ),
            (Tasks::Done { task: words("the milk") }, "complete_task", r#"{"task_id":"the milk"}"#),
            (Tasks::Rm { task: words("1") }, "delete_task", r#"{"task_id":"1"}"#),
        ];
        for (command, tool, arguments) in calls {
            let (name, given) = call(command);
            assert_eq!((name, json_line(&given).as_str()), (tool, arguments));
        }
    }
}
