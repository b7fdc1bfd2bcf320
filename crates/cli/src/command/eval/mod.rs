//! `adjutant eval FILE...`: runs evaluation cases against a model.
//!
//! Each case has a store of its own, so its tasks and conversations are seen by no other. The agent
//! is the task assistant, or with memory that of the terminal over an empty vault. Confirmations
//! are never given.

mod bench; // the environment of a case
mod case; // parsing cases
mod judge; // comparing result and expectation
mod report; // printed results

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Instant;

use adjutant_core::{
    AgentResponse, Event, GateVerdict, LanguageModel, ModelId, Recorded, Refusal, ToolRegistry,
    TurnError, UserId, Verdict,
};
use adjutant_runtime::RunContext;
use adjutant_tools::{TaskFilter, TaskStore};

use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::terminal::display::clean_line;
use crate::terminal::screen::{Screen, dim};
use bench::Bench;
use case::Case;
use judge::{Observed, judge};
use report::{CaseReport, Summary, rounded};

/// Fields of a case, for `--help`.
pub(crate) const CASE_FIELDS: &str = "\
A case is one JSON object on one line:
  id                  its name
  tasks               the tasks before the turn, in order of creation, so that their ids are 1, 2, ...:
                      [{\"description\": \"...\", \"completed\": false}]
  history             optional, what was said before: [{\"role\": \"user\" | \"assistant\", \"text\": \"...\"}]
  facts               optional, what is known before, in words: [\"...\"]
  said                optional, what the user says before, each in a conversation of its own: [\"...\"]
  input               what the user says
  expect              what it must lead to; what is not given is not judged
    .decision         one of these: [\"RESPOND_ONLY\", \"INVOKE_TOOL\", ...]
    .tools            exactly these were executed; [] is none
    .pending          exactly this waits for a yes: {\"tool\": \"delete_task\", \"task_id\": \"1\"}, or with words of
                      the question: {\"tool\": \"forget\", \"has\": [words]}
    .reply_has        words the reply contains, in any case
    .reply_lacks      words it does not
    .tasks_after      all tasks after the turn, in any order: [{\"has\": [words], \"completed\": false}]
    .facts_after      all facts after the turn, in any order: [[words]]
    .note_today       words of today's note; [] is that there is none

Each case has a fresh store and user, and confirmations stay unanswered. With --memory, and where a case has one of facts,
said, facts_after and note_today, the agent is the one of the terminal, over an empty vault; else it is the task assistant. With --json: one object for each case, then the
summary. Exit code 0 if enough cases passed, no call was invalid and nothing was deleted without a yes; else 1.
";

/// Cases of all files, in order, each with the name of its file.
#[derive(Debug)]
pub(crate) struct Cases(Vec<(String, Case)>);

/// Loads the cases of all files (`-` is standard input). Nothing runs before all of them are valid.
///
/// # Errors
/// A file cannot be read, a line is no case, there are no cases, or `min_pass` exceeds their
/// number.
pub(crate) fn load_cases(files: &[String], min_pass: Option<usize>) -> Result<Cases, CliError> {
    // The second reader would find it empty, and the run would pass without its cases.
    if files.iter().filter(|file| *file == "-").count() > 1 {
        return Err(CliError::usage("standard input can be read once only"));
    }
    let mut cases = Vec::new();
    for file in files {
        let text = read_file(file).map_err(|error| {
            CliError::usage(format!("{file} cannot be read")).because(error.to_string())
        })?;
        let read = case::parse(file, &text).map_err(|bad| {
            CliError::usage(bad.to_string())
                .or_try("adjutant eval --help    has the fields of a case")
        })?;
        cases.extend(read.into_iter().map(|case| (file.clone(), case)));
    }
    if cases.is_empty() {
        return Err(CliError::usage(format!(
            "there is no case in {}",
            files.join(", ")
        )));
    }
    match min_pass {
        Some(min) if min > cases.len() => Err(CliError::usage(format!(
            "--min-pass is {min}, and there are only {} cases",
            cases.len()
        ))),
        Some(_) | None => Ok(Cases(cases)),
    }
}

fn read_file(file: &str) -> std::io::Result<String> {
    if file == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        Ok(text)
    } else {
        fs::read_to_string(file)
    }
}

/// Runs the cases one by one and prints each result. `memory` runs all of them with memory.
///
/// # Errors
/// The model cannot be called at all: a wrong key or name would fail every case in the same way.
pub(crate) async fn run(
    cases: &Cases,
    min_pass: Option<usize>,
    memory: bool,
    screen: &Screen,
    settings: &Settings,
    model: Arc<dyn LanguageModel>,
) -> Result<Exit, CliError> {
    let id_width = cases
        .0
        .iter()
        .map(|(_, case)| case.id.chars().count())
        .max()
        .unwrap_or(0);
    // At a terminal the printed rows show the progress.
    let progress = screen.shows_progress() && !screen.shows_answers_live();
    let mut reports = Vec::new();
    let mut answered = None;
    for (index, (file, case)) in cases.0.iter().enumerate() {
        if progress {
            screen.side(&format!(
                "\r{}",
                dim(&format!("{}/{}", index + 1, cases.0.len()))
            ));
        }
        // A new one for each case: no case may depend on what another one left.
        let bench = Bench::prepare(case, memory, settings, &model).await?;
        let ran = run_case(file, case, &bench).await?;
        answered = Some(ran.model);
        screen.result(&ran.report, || clean_line(&ran.report.to_row(id_width)));
        reports.push(ran.report);
    }
    if progress {
        screen.side("\r");
    }
    let model = answered.map(|model| model.to_string()).unwrap_or_default();
    let summary = Summary::sum(model, &reports, min_pass);
    if screen.json() {
        screen.answer_json(&summary);
    } else {
        screen.answer(&format!("\n{}", summary.to_text()));
    }
    Ok(if summary.ok { Exit::Ok } else { Exit::Failed })
}

struct CaseRun {
    report: CaseReport,
    model: ModelId,
}

async fn run_case(file: &str, case: &Case, bench: &Bench) -> Result<CaseRun, CliError> {
    let user = UserId::local();
    let Bench { store, agent, .. } = bench;
    let mut context = RunContext::new(user.clone()).with_history(case.history());
    let start = Instant::now();
    let response = agent.run_in(&mut context, case.input.as_str()).await?;
    let seconds = start.elapsed().as_secs_f64();

    let events = store.load(&agent.key(&context)).await?.events;
    let observed = Observed {
        decision: response.decision.kind,
        executed: executed(&events),
        pending: response.decision.pending.clone(),
        reply: response.content.clone(),
        tasks: TaskStore::list(&**store, &user, TaskFilter::All).await?,
        facts: bench.facts().await?,
        note_today: bench.note_today()?,
    };
    let mut reasons = judge(&case.expect, &observed);
    reasons.extend(model_failure(&response)?);
    let report = CaseReport {
        id: case.id.clone(),
        file: file.to_owned(),
        passed: reasons.is_empty(),
        decision: response.decision.kind.as_str(),
        outcome: response.outcome.as_str(),
        tools: observed.executed.into_iter().collect(),
        reply: response.content,
        reasons,
        seconds: rounded(seconds, 3),
        invalid_calls: invalid_calls(&events),
        unconfirmed_deletes: unconfirmed_deletes(&events, agent.tools()),
    };
    Ok(CaseRun {
        report,
        model: agent.model().id().clone(),
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
                verdict: Some(Verdict::Approved),
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
