//! `adjutant log`: the decision log and the tool-invocation log.

use adjutant_core::{
    Cost, DecisionFilter, DecisionRecord, OutcomeCategory, ToolInvocationRecord, UserId, nearest,
};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::json;

use crate::args::Log;
use crate::config::Settings;
use crate::display::{clean, clip, json_line, millis, tokens};
use crate::error::{CliError, Exit};
use crate::screen::Screen;
use crate::store::{self, Store};

/// Lists decisions, or shows one.
///
/// # Errors
/// The store cannot be read, there is no such outcome, or no (or more than one) such decision.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Log,
    json: bool,
) -> Result<Exit, CliError> {
    let store = store::open(settings).await?;
    let user = UserId::local();
    match command {
        Log::List { limit, outcome } => {
            let outcome = outcome.as_deref().map(parse_outcome).transpose()?;
            let filter = DecisionFilter { outcome, limit: Some(limit), ..DecisionFilter::default() };
            let decisions = store.decisions(&user, &filter).await?;
            if json {
                screen.answer_line(&json_line(&decisions));
            } else if decisions.is_empty() {
                screen.answer_line("Nothing has been decided yet.");
            } else {
                screen.answer_line(&table(&decisions));
            }
        }
        Log::Show { id } => {
            let decision = find(&*store, &user, id.as_deref()).await?;
            let calls = store.tool_invocations(&user, decision.id).await?;
            if json {
                screen.answer_line(&json_line(&json!({ "decision": decision, "tool_invocations": calls })));
            } else {
                show(screen, &decision, &calls);
            }
        }
    }
    Ok(Exit::Ok)
}

fn parse_outcome(word: &str) -> Result<OutcomeCategory, CliError> {
    word.to_uppercase().parse().map_err(|_| {
        let words: Vec<&str> = OutcomeCategory::ALL.iter().map(|outcome| outcome.as_str()).collect();
        let error = CliError::usage(format!("there is no outcome {word:?}"));
        match nearest(word, words.iter().copied()) {
            Some(near) => error.or_try(near),
            None => error.or_try(words.join(", ")),
        }
    })
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
    let all = store.decisions(user, &DecisionFilter::default()).await?;
    let is_meant = |decision: &DecisionRecord| {
        let full = decision.id.to_string();
        !id.is_empty() && (full.starts_with(id) || full.ends_with(id))
    };
    let mut meant: Vec<DecisionRecord> = all.into_iter().filter(is_meant).collect();
    match (meant.pop(), meant.len()) {
        (Some(one), 0) => Ok(one),
        (Some(_), more) => Err(CliError::unknown(format!("{id:?} fits {} decisions", more + 1))
            .or_try("more of the id; adjutant log list shows its end")),
        (None, _) => {
            Err(CliError::unknown(format!("no decision has the id {id:?}")).or_try("adjutant log list"))
        }
    }
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
            decision.started_at.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
            outcome.to_owned(),
            clip(&decision.message, 48),
        ]);
    }
    table.trim_fmt()
}

fn show(screen: &Screen, decision: &DecisionRecord, calls: &[ToolInvocationRecord]) {
    let field = |name: &str, value: &str| screen.answer_line(&format!("{name:14} {}", clip(value, 2_000)));
    field("turn", &decision.id.to_string());
    field("conversation", &decision.conversation.to_string());
    field("started", &decision.started_at.to_string());
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
    if let Some(content) = &decision.content {
        screen.answer_line(&format!("\n{}", clean(content)));
    }
}
