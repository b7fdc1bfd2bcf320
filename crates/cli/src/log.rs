//! `adjutant log`: the decision log and the tool-invocation log.

mod filter; // which decisions
mod stats; // what they add up to

use std::collections::HashMap;
use std::time::Duration;

use adjutant_core::{
    Cost, DecisionFilter, DecisionRecord, OutcomeCategory, Step, ToolInvocationRecord, TurnId, UserId,
};
use adjutant_runtime::read_trace;
use comfy_table::{ContentArrangement, Table, presets};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use crate::args::Log;
use crate::config::Settings;
use crate::display::{clean, clip, json_line, local, millis, tokens};
use crate::error::{CliError, Exit};
use crate::lines::Stops;
use crate::meant::{Kind, is_meant, the_one};
use crate::screen::Screen;
use crate::store::{self, Store};

const DECISIONS: Kind = Kind { one: "decision", many: "decisions", list: "adjutant log list" };
/// How many decisions are read at once where all are wanted.
const AT_ONCE: u32 = 200;
/// How often `tail` looks for more.
const LOOK: Duration = Duration::from_millis(500);
/// How many decisions `tail` remembers to have told: older ones that go on are told again.
const REMEMBERED: usize = 1_000;

/// Lists, shows, follows, adds up or exports decisions.
///
/// # Errors
/// The store cannot be read, there is no such outcome or time, or no (or more than one) such decision.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Log,
    json: bool,
) -> Result<Exit, CliError> {
    let store = store::open(settings).await?;
    match command {
        Log::List { limit, filter } => {
            let (user, filter) = filter::read(filter, Some(limit), now())?;
            let decisions = store.decisions(&user, &filter).await?;
            if json {
                screen.answer_line(&json_line(&decisions));
            } else if decisions.is_empty() {
                screen.answer_line("Nothing has been decided yet.");
            } else {
                screen.answer_line(&table(&decisions));
            }
        }
        Log::Show { id, user } => {
            let user = user.map_or_else(|| Ok(UserId::local()), UserId::new);
            let user = user.map_err(|error| CliError::usage(format!("--user: {error}")))?;
            let decision = find(&*store, &user, id.as_deref()).await?;
            let calls = store.tool_invocations(&user, decision.id).await?;
            let steps = read_trace(&*store, &decision.key(), decision.id, settings.log_content).await?;
            if json {
                let shown = json!({ "decision": decision, "tool_invocations": calls, "steps": steps });
                screen.answer_line(&json_line(&shown));
            } else {
                show(screen, &decision, &calls, &steps);
            }
        }
        Log::Tail { limit, filter } => {
            let (user, filter) = filter::read(filter, Some(limit), now())?;
            tail(&*store, screen, &user, filter, json).await?;
        }
        Log::Stats { filter } => {
            let (user, filter) = filter::read(filter, Some(AT_ONCE), now())?;
            let mut all = Vec::new();
            each_page(&*store, &user, filter, async |page| {
                all.extend(page);
                Ok(())
            })
            .await?;
            let stats = stats::stats(&all);
            screen.answer_line(&if json { json_line(&stats) } else { stats::table(&stats) });
        }
        Log::Export { filter } => {
            let (user, filter) = filter::read(filter, Some(AT_ONCE), now())?;
            each_page(&*store, &user, filter, async |page| {
                for decision in page {
                    let tool_invocations = store.tool_invocations(&user, decision.id).await?;
                    screen.answer_line(&json_line(&Exported { decision, tool_invocations }));
                }
                Ok(())
            })
            .await?;
        }
    }
    Ok(Exit::Ok)
}

/// One turn, as `log show` shows it, of a store that is open already.
///
/// # Errors
/// The store cannot be read, or there is no such turn.
pub(crate) async fn show_turn(
    store: &dyn Store,
    user: &UserId,
    turn: TurnId,
    settings: &Settings,
    screen: &Screen,
) -> Result<(), CliError> {
    let decision = find(store, user, Some(&turn.to_string())).await?;
    let calls = store.tool_invocations(user, decision.id).await?;
    let steps = read_trace(store, &decision.key(), decision.id, settings.log_content).await?;
    show(screen, &decision, &calls, &steps);
    Ok(())
}

/// A line of an export.
#[derive(Serialize)]
struct Exported {
    #[serde(flatten)]
    decision: DecisionRecord,
    tool_invocations: Vec<ToolInvocationRecord>,
}

#[expect(clippy::disallowed_methods, reason = "how long ago something is has to be told by somebody")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// Reads all decisions of a filter, newest first.
async fn each_page(
    store: &dyn Store,
    user: &UserId,
    mut filter: DecisionFilter,
    mut take: impl AsyncFnMut(Vec<DecisionRecord>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    loop {
        let page = store.decisions(user, &filter).await?;
        let Some(last) = page.last() else { return Ok(()) };
        filter.after = Some(last.cursor());
        take(page).await?;
    }
}

/// Tells the newest decisions, oldest first, then each that ends or begins to wait, until it is told to stop.
async fn tail(
    store: &dyn Store,
    screen: &Screen,
    user: &UserId,
    mut filter: DecisionFilter,
    json: bool,
) -> Result<(), CliError> {
    let mut stops = Stops::new()?;
    let mut told: HashMap<TurnId, Option<OutcomeCategory>> = HashMap::new();
    let mut first = true;
    loop {
        let newest = store.decisions(user, &filter).await?;
        for decision in newest.iter().rev() {
            // What has no outcome yet is told when it has one, except at first: it is there.
            let news = told.get(&decision.id) != Some(&decision.outcome);
            if news && (first || decision.outcome.is_some()) {
                told.insert(decision.id, decision.outcome);
                if json {
                    screen.answer_line(&json_line(decision));
                } else {
                    screen.answer_line(&table(std::slice::from_ref(decision)));
                }
            }
        }
        first = false;
        filter.limit = Some(AT_ONCE);
        // What was there before the first look and was not asked for stays untold.
        filter.since =
            filter.since.or_else(|| newest.last().map(|oldest| oldest.started_at)).or_else(|| Some(now()));
        if told.len() > REMEMBERED {
            let recent: Vec<TurnId> = newest.iter().map(|decision| decision.id).collect();
            told.retain(|id, _| recent.contains(id));
        }
        tokio::select! {
            _ = stops.next() => return Ok(()),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// The newest decision, or the one whose id begins or ends with `id`.
async fn find(store: &dyn Store, user: &UserId, id: Option<&str>) -> Result<DecisionRecord, CliError> {
    let Some(id) = id.map(str::trim) else {
        let newest = DecisionFilter { limit: Some(1), ..DecisionFilter::default() };
        let newest = store.decisions(user, &newest).await?.into_iter().next();
        return newest.ok_or_else(|| CliError::unknown("nothing has been decided yet"));
    };
    if let Ok(id) = id.parse()
        && let Some(decision) = store.decision(user, id).await?
    {
        return Ok(decision);
    }
    let mut meant: Vec<DecisionRecord> = Vec::new();
    let all = DecisionFilter { limit: Some(AT_ONCE), ..DecisionFilter::default() };
    each_page(store, user, all, async |page| {
        meant.extend(page.into_iter().filter(|decision| is_meant(&decision.id.to_string(), id)));
        Ok(())
    })
    .await?;
    the_one(meant, id, |decision| decision.id.to_string(), &DECISIONS)
}

fn table(decisions: &[DecisionRecord]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    for decision in decisions {
        let id = decision.id.to_string();
        let outcome = decision.outcome.map_or("open", OutcomeCategory::as_str);
        table.add_row([
            // The end of the id: the beginning is the time, and alike for neighbours.
            id.get(id.len().saturating_sub(8)..).unwrap_or(&id).to_owned(),
            local(decision.started_at),
            outcome.to_owned(),
            clip(&decision.message, 48),
        ]);
    }
    table.trim_fmt()
}

fn show(screen: &Screen, decision: &DecisionRecord, calls: &[ToolInvocationRecord], steps: &[Step]) {
    let field = |name: &str, value: &str| screen.answer_line(&format!("{name:14} {}", clip(value, 2_000)));
    field("turn", &decision.id.to_string());
    field("conversation", &decision.conversation.to_string());
    let version = decision.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    field("agent", &format!("{}{version}", decision.agent));
    if let Some(request) = &decision.request_id {
        field("request", request);
    }
    field("started", &local(decision.started_at));
    field("message", &decision.message);
    if decision.message_chars != decision.message.chars().count() {
        field("", &format!("(cut: it had {} characters)", decision.message_chars));
    }
    field("intent", decision.intent.as_ref().map_or("", |intent| intent.as_str()));
    field("decision", decision.kind.map_or("", |kind| kind.as_str()));
    field("outcome", decision.outcome.map_or("open", OutcomeCategory::as_str));
    field("model", &decision.model.to_string());
    field("model calls", &format!("{} in {}", decision.model_calls, millis(decision.model_ms)));
    field("tool rounds", &format!("{} in {}", decision.iterations, millis(decision.tool_ms)));
    let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), tokens);
    let usage = &decision.usage;
    field("tokens", &format!("{} in, {} out", count(usage.input_tokens), count(usage.output_tokens)));
    match decision.cost {
        // Nothing was paid: a model on this machine, or no model call.
        Some(cost) if cost == Cost::default() => {}
        Some(cost) => field("cost", &cost.to_string()),
        None => field("cost", "$?"),
    }
    if let Some(total) = decision.total_ms {
        field("took", &millis(total));
    }
    if let Some(code) = &decision.error_code {
        field("error", code);
    }
    if let Some(raw) = &decision.raw_response {
        field("raw answer", raw);
    }
    for notice in &decision.notices {
        field("note", &notice.text);
    }
    for call in calls {
        let outcome = match (&call.result.error, &call.result.data) {
            (Some(error), _) => format!("✗ {error}"),
            (None, Some(data)) => format!("✓ {}", json_line(data)),
            (None, None) => "✓".to_owned(),
        };
        let line = format!("{} {}  {outcome}  {}", call.tool, json_line(&call.arguments), millis(call.ms));
        field("tool", &line);
    }
    for step in steps {
        field("step", &line_of(step));
    }
    if let Some(content) = &decision.content {
        screen.answer_line(&format!("\n{}", clean(content)));
    }
}

/// When, what, how long, and what it took.
fn line_of(step: &Step) -> String {
    let mut line = format!("+{}  {}", millis(step.offset_ms), step.name);
    line += &step.ms.map_or_else(|| "  goes on".to_owned(), |ms| format!("  {}", millis(ms)));
    if let Some(attempt) = step.attempt.filter(|attempt| *attempt > 1) {
        line += &format!("  attempt {attempt}");
    }
    if let Some(usage) = &step.usage {
        let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), tokens);
        line += &format!("  {}/{} tok", count(usage.input_tokens), count(usage.output_tokens));
    }
    if let Some(error) = &step.error {
        line += &format!("  ✗ {}", error["message"].as_str().unwrap_or_default());
    }
    line
}
