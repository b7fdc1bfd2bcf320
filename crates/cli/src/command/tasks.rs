//! `adjutant tasks`: calls of the task tools by the user, through the same gate and journal as a
//! model's calls.

use adjutant_core::{
    Arguments, InputId, PendingCall, RequestedCall, ToolInvocation, UserId, Verdict,
};
use adjutant_runtime::{Agent, CallOutcome, RunContext};
use adjutant_tools::{
    DELETED_TASK_DAYS, TaskChange, TaskChanged, TaskDescription, TaskFilter, TaskId,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::Tasks;
use crate::config::Settings;
use crate::error::{CliError, Exit, READ_ONLY};
use crate::memory;
use crate::store;
use crate::store::Stores;
use crate::terminal::confirm::{approved, preview, whole};
use crate::terminal::display::{clean, clean_line, json_line};
use crate::terminal::json_answer::Problem;
use crate::terminal::screen::Screen;
use crate::terminal::yes_no::require_yes;
use crate::wiring;

/// The object that `--json` prints.
#[derive(Serialize)]
struct Outcome {
    tool: String,
    arguments: Arguments,
    result: Option<adjutant_core::ToolResult>,
    error: Option<Problem>,
}

/// Runs one task command.
///
/// # Errors
/// The tool failed, the task is ambiguous, policy denies the call, or a confirmation was needed and
/// not given.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Tasks,
    key: Option<String>,
    yes: &[String],
) -> Result<Exit, CliError> {
    let id = key.map(InputId::new).transpose();
    // The only way for an id to be invalid is to be empty, so the cause says nothing more.
    let id = id.map_err(|_| CliError::usage("--idempotency-key must not be empty"))?;
    let mut stores = Stores::shared(store::open(settings).await?);
    // Kept for the note about restoring; the command itself is consumed below.
    let deletes = matches!(command, Tasks::Rm { .. });
    let (tool, arguments) = match call(command) {
        Called::Tool(tool, arguments) => (tool, arguments),
        Called::Restore(task) => return restore(settings, screen, &stores, task).await,
    };
    let agent = wiring::agent_without_model_in(settings, &stores).await?;
    let mut done = match fits(&arguments) {
        Ok(()) => carry_out(&agent, screen, tool, arguments.clone(), yes, id.clone()).await,
        Err(error) => Err(error),
    };
    let reads = agent
        .tools()
        .get(tool)
        .is_some_and(|tool| tool.definition().annotations.read_only);
    if reads && matches!(&done, Err(error) if error.code == READ_ONLY) {
        // In a read-only database a query cannot be recorded, so it runs against a store in memory.
        stores = stores.with_temporary_conversations().await?;
        let agent = wiring::agent_without_model_in(settings, &stores).await?;
        done = carry_out(&agent, screen, tool, arguments.clone(), yes, id).await;
    }
    let error = match &done {
        // The tool's summary says in the user's terms what the result says to a model.
        Ok((invocation, summary)) => invocation
            .outcome()
            .err()
            .map(|error| CliError::failed(summary.as_deref().unwrap_or(error).to_owned())),
        Err(error) => Some(error.clone()),
    };
    if screen.json() {
        let invocation = done.as_ref().ok().map(|(invocation, _)| invocation.clone());
        let (arguments, result) = match invocation {
            // As the gate checked them: a number of a task is an id there.
            Some(invocation) => (invocation.arguments, Some(invocation.result)),
            None => (arguments, None),
        };
        screen.answer_json(&Outcome {
            tool: tool.to_owned(),
            arguments,
            result,
            error: error.as_ref().map(Problem::from_error),
        });
    }
    if let Some(error) = error {
        screen.error(&error);
        return Ok(error.exit);
    }
    if let (false, Ok((invocation, summary))) = (screen.json(), done) {
        let data = || json_line(invocation.result.data.as_deref().unwrap_or(&Value::Null));
        screen.answer_line(&clean(&summary.unwrap_or_else(data)));
        let task_id = invocation.arguments.get("task_id").and_then(Value::as_str);
        if let Some(id) = task_id.filter(|_| deletes) {
            screen.note(&format!(
                "to restore it within {DELETED_TASK_DAYS} days: adjutant tasks restore {}",
                clean_line(id)
            ));
        }
    }
    Ok(Exit::Ok)
}

/// The call that a command stands for.
enum Called {
    Tool(&'static str, Arguments),
    /// Restoring has no tool, because a model must not bring back a task that the user deleted.
    Restore(String),
}

/// Translates a command to its call.
fn call(command: Tasks) -> Called {
    let words = |words: Vec<String>| words.join(" ");
    let (tool, arguments) = match command {
        Tasks::List { status } => ("list_tasks", json!({ "status": TaskFilter::from(status) })),
        Tasks::Add { description } => ("add_task", json!({ "description": words(description) })),
        Tasks::Update { task, description } => (
            "update_task",
            json!({ "task_id": task, "description": words(description) }),
        ),
        Tasks::Done { task } => ("complete_task", json!({ "task_id": words(task) })),
        Tasks::Rm { task } => ("delete_task", json!({ "task_id": words(task) })),
        Tasks::Restore { task } => return Called::Restore(task),
    };
    Called::Tool(tool, arguments.as_object().cloned().unwrap_or_default())
}

/// Restores a deleted task.
async fn restore(
    settings: &Settings,
    screen: &Screen,
    stores: &Stores,
    task: String,
) -> Result<Exit, CliError> {
    let id = TaskId::try_from(task.trim().trim_start_matches('#').to_owned());
    let id = id.map_err(|error| CliError::usage(clean_line(&error)))?;
    let tasks = memory::own_task_store(settings, stores).await?;
    match tasks
        .apply(&UserId::local(), &TaskChange::Restore { id }, None)
        .await?
    {
        TaskChanged::Restored { task, already } => {
            screen.result(&json!({ "task": task, "already": already }), || {
                clean_line(&match already {
                    true => format!("“{}” was not deleted.", task.description),
                    false => format!("Brought “{}” back.", task.description),
                })
            });
            Ok(Exit::Ok)
        }
        _ => Err(CliError::unknown(format!("there is no deleted task {id}"))
            .because(format!(
                "a deleted task is kept for {DELETED_TASK_DAYS} days"
            ))
            .or_try("adjutant tasks list")),
    }
}

/// Checks that a description can be a task's, because the schema's error message is written for
/// programs.
fn fits(arguments: &Arguments) -> Result<(), CliError> {
    let words = arguments.get("description").and_then(Value::as_str);
    let checked = words.map(TaskDescription::new).transpose();
    checked
        .map(drop)
        .map_err(|error| CliError::failed(error.to_string()))
}

async fn carry_out(
    agent: &Agent,
    screen: &Screen,
    tool: &str,
    arguments: Arguments,
    yes: &[String],
    id: Option<InputId>,
) -> Result<(ToolInvocation, Option<String>), CliError> {
    let mut context = RunContext::for_call(UserId::local(), id.as_ref());
    let call = RequestedCall::new(tool, arguments);
    // The same key with another call is refused as a mistake; with the same call it is a
    // repetition, which changes nothing.
    context.fingerprint = id.as_ref().map(|_| call.fingerprint());
    let mut outcome = agent.call_tool(&mut context, id, call).await?;
    if let CallOutcome::Confirm(pending) = &outcome {
        if let Err(error) = confirm(screen, pending, yes).await {
            // The call does not stay pending: the user repeats the command to confirm it later.
            agent.cancel(&mut context).await?;
            return Err(error);
        }
        outcome = agent
            .answer_call(&mut context, None, pending.answer(Verdict::Approved))
            .await?;
    }
    match outcome {
        CallOutcome::Done {
            invocation,
            summary,
        } => Ok((invocation, summary)),
        CallOutcome::Confirm(pending) => Err(CliError::confirmation_needed(format!(
            "{} still waits for a yes",
            preview(&pending)
        ))
        .or_try(format!("adjutant pending approve {}", pending.short_id()))),
        CallOutcome::InDoubt(pending) => Err(CliError::failed(format!(
            "{}: it was started, and it is not known how it ended",
            preview(&pending)
        ))
        .or_try(format!(
            "adjutant pending resolve {} done|retry|leave",
            pending.short_id()
        ))),
        CallOutcome::Ask(question) => {
            Err(CliError::unknown(clean_line(&question))
                .or_try("adjutant tasks list, then the number"))
        }
        CallOutcome::Refused(message) | CallOutcome::Declined(message) => {
            Err(CliError::failed(message))
        }
    }
}

/// Asks for confirmation, unless `--yes` gives it.
async fn confirm(screen: &Screen, pending: &PendingCall, yes: &[String]) -> Result<(), CliError> {
    if approved(yes, &pending.tool) {
        return Ok(());
    }
    let preview = whole(pending).unwrap_or_else(|| preview(pending));
    let needed = CliError::confirmation_needed(format!(
        "{preview} needs your confirmation, and this is not a terminal"
    ))
    .or_try("run it again with -y");
    let question = format!("? {preview}");
    require_yes(screen, &question, needed, "nothing was changed").await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Status;

    #[test]
    fn every_command_is_a_tool_call() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let calls = [
            (
                Tasks::List {
                    status: Status::Pending,
                },
                "list_tasks",
                r#"{"status":"pending"}"#,
            ),
            (
                Tasks::Add {
                    description: words("buy milk"),
                },
                "add_task",
                r#"{"description":"buy milk"}"#,
            ),
            (
                Tasks::Update {
                    task: "1".to_owned(),
                    description: words("buy oat milk"),
                },
                "update_task",
                r#"{"task_id":"1","description":"buy oat milk"}"#,
            ),
            (
                Tasks::Done {
                    task: words("the milk"),
                },
                "complete_task",
                r#"{"task_id":"the milk"}"#,
            ),
            (
                Tasks::Rm { task: words("1") },
                "delete_task",
                r#"{"task_id":"1"}"#,
            ),
        ];
        for (command, tool, arguments) in calls {
            let Called::Tool(name, given) = call(command) else {
                panic!("{tool}: not a call")
            };
            assert_eq!((name, json_line(&given).as_str()), (tool, arguments));
        }
    }
}
