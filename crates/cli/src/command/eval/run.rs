//! One run of a case: the turn, what it led to, and the verdict.

use std::collections::BTreeSet;
use std::time::Instant;

use adjutant_core::{
    AgentResponse, Event, GateVerdict, Recorded, Refusal, ToolRegistry, TurnError, UserId,
    Verdict as Answer,
};
use adjutant_runtime::RunContext;
use adjutant_tools::{TaskFilter, TaskStore};

use super::bench::Bench;
use super::case::Case;
use super::judge::{Observed, judge};
use super::report::CaseReport;
use super::statistics::rounded;
use super::verdict::verdict;
use crate::error::{CliError, Exit};

/// The place of a run among all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// The file that contains the case.
    pub(super) file: &'a str,
    /// The model as reports name it.
    pub(super) model: &'a str,
    /// The position of the case among those of all files.
    pub(super) index: usize,
    /// Number of the run, from 1.
    pub(super) run: u32,
}

/// Runs a case once in its environment and judges it.
///
/// # Errors
/// The store or the vault fails, or the model cannot be called at all: a wrong key or name would
/// fail every case in the same way.
pub(super) async fn run_case(
    place: Place<'_>,
    case: &Case,
    bench: &Bench,
) -> Result<CaseReport, CliError> {
    let user = UserId::local();
    let Bench { store, agent, .. } = bench;
    // Not those of the case: what was said before may have changed them.
    let tasks_before = TaskStore::list(&**store, &user, TaskFilter::All).await?;
    let facts_before = bench.facts().await?;
    let mut context = RunContext::new(user.clone()).with_history(case.history());
    let start = Instant::now();
    let response = agent.run_in(&mut context, case.input.as_str()).await?;
    let seconds = start.elapsed().as_secs_f64();

    let events = store.load(&agent.key(&context)).await?.events;
    let unconfirmed_deletes = unconfirmed_deletes(&events, agent.tools());
    let executed = executed(&events);
    let observed = Observed {
        decision: response.decision.kind,
        changed: executed
            .iter()
            .any(|name| changes_something(name, agent.tools())),
        executed,
        pending: response.decision.pending.clone(),
        reply: response.content.clone(),
        tasks_before,
        tasks: TaskStore::list(&**store, &user, TaskFilter::All).await?,
        facts_before,
        facts: bench.facts().await?,
        note_today: bench.note_today()?,
        destroyed: unconfirmed_deletes > 0,
    };
    let mut reasons = judge(&case.expect, &observed);
    reasons.extend(model_failure(&response)?);
    Ok(CaseReport {
        id: case.id.clone(),
        file: place.file.to_owned(),
        index: place.index,
        model: place.model.to_owned(),
        run: place.run,
        lang: case.lang.clone(),
        class: case.class.clone(),
        passed: reasons.is_empty(),
        verdict: verdict(&case.expect, &observed, reasons.is_empty()),
        decision: response.decision.kind.as_str(),
        outcome: response.outcome.as_str(),
        tools: observed.executed.into_iter().collect(),
        reply: response.content,
        reasons,
        seconds: rounded(seconds, 3),
        invalid_calls: invalid_calls(&events),
        unconfirmed_deletes,
    })
}

/// Returns the executed tools, successful or not.
fn executed(events: &[Recorded]) -> BTreeSet<String> {
    let started = |recorded: &Recorded| match &*recorded.event {
        Event::CallStarted { tool, .. } => Some(tool.clone()),
        _ => None,
    };
    events.iter().filter_map(started).collect()
}

/// Returns true for a tool that may change something; one that is not known may.
fn changes_something(name: &str, tools: &ToolRegistry) -> bool {
    tools
        .get(name)
        .is_none_or(|tool| !tool.definition().annotations.read_only)
}

/// Counts calls of tools that do not exist, or with arguments that do not match the schema.
fn invalid_calls(events: &[Recorded]) -> usize {
    let invalid = |recorded: &&Recorded| {
        matches!(
            &*recorded.event,
            Event::CallChecked {
                verdict: GateVerdict::Refuse {
                    refusal: Refusal::UnknownTool | Refusal::InvalidArguments,
                    ..
                },
                ..
            }
        )
    };
    events.iter().filter(invalid).count()
}

/// Counts destructive calls that started without a confirmation.
fn unconfirmed_deletes(events: &[Recorded], tools: &ToolRegistry) -> usize {
    let destructive = |name: &str| {
        tools
            .get(name)
            .is_some_and(|tool| tool.definition().annotations.destructive)
    };
    let mut approved = BTreeSet::new();
    let mut unconfirmed = 0;
    for recorded in events {
        match &*recorded.event {
            Event::CallAnswered {
                call,
                verdict: Some(Answer::Approved),
                ..
            } => {
                approved.insert(call);
            }
            Event::CallStarted { call, tool, .. }
                if destructive(tool) && !approved.contains(call) =>
            {
                unconfirmed += 1
            }
            _ => {}
        }
    }
    unconfirmed
}

/// Returns the reason if the model call failed: its error message is no answer, even if the case
/// would accept it.
fn model_failure(response: &AgentResponse) -> Result<Option<String>, CliError> {
    let Some(TurnError::Model { error }) = &response.error else {
        return Ok(None);
    };
    match CliError::from_response(response) {
        // A wrong key or name would fail every further case too, and cost the time of all of them.
        Some(error) if error.exit == Exit::Configuration => Err(error),
        _ => Ok(Some(format!("the model failed: {error}"))),
    }
}
