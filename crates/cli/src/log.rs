//! `adjutant log`: the decision log and the tool-invocation log.

mod filter; // which decisions
mod stats; // what they add up to
pub(crate) mod totals; // what everybody's add up to

use std::collections::HashMap;
use std::time::Duration;

use adjutant_core::{
    Cost, DecisionFilter, DecisionRecord, Feedback, LogContent, OutcomeCategory, Rating, Step,
    ToolInvocationRecord, TurnId, UserId,
};
use adjutant_runtime::read_trace;
use comfy_table::{ContentArrangement, Table, presets};
use jiff::Timestamp;
use serde::Serialize;

use crate::args::{Log, LogFilter};
use crate::config::Settings;
use crate::display::{clean, clip, json_line, local, millis, tokens};
use crate::error::{CliError, Exit};
use crate::lines::Stops;
use crate::meant::{Kind, is_meant, the_one};
use crate::screen::Screen;
use crate::store::{self, Store};
use filter::Whose;

const DECISIONS: Kind = Kind {
    one: "decision",
    many: "decisions",
    list: "adjutant log list",
};
/// How many decisions are read at once where all are wanted.
const AT_ONCE: u32 = 200;
/// Lines of sums over turns, unless said otherwise.
const LINES: u32 = 50;
/// Number of decisions that are named where an id fits more than one.
const SHOWN: u32 = 10;
/// How often `tail` looks for more.
const LOOK: Duration = Duration::from_millis(500);
/// How many decisions `tail` remembers to have told: older ones that go on are told again.
const REMEMBERED: usize = 1_000;

/// Lists, shows, follows, adds up or exports decisions.
///
/// # Errors
/// The store cannot be read, there is no such outcome or time, or no (or more than one) such
/// decision.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Log,
    json: bool,
) -> Result<Exit, CliError> {
    let store = store::open(settings).await?;
    match command {
        Log::List { limit, filter } => {
            let (whose, filter) = filter::read(filter, Some(limit), now())?;
            let decisions = read(&*store, &whose, &filter).await?;
            if json {
                screen.answer_line(&json_line(&decisions));
            } else if decisions.is_empty() {
                screen.answer_line("Nothing has been decided yet.");
            } else {
                screen.answer_line(&table(&decisions, &whose));
            }
        }
        Log::Show { id, user, request } => {
            let user = user.map(UserId::new).transpose();
            let user = user.map_err(|error| CliError::usage(format!("--user: {error}")))?;
            let decision = match (user, id.as_deref(), request) {
                (_, _, Some(request)) => of_request(&*store, &request).await?,
                (None, Some(id), None) => of_anybody(&*store, id).await?,
                (user, id, None) => find(&*store, &user.unwrap_or_else(UserId::local), id).await?,
            };
            let whole = Whole::read(&*store, decision, settings.log_content).await?;
            if json {
                screen.answer_line(&json_line(&whole));
            } else {
                show(screen, &whole);
            }
        }
        Log::Tail { limit, filter } => {
            let (whose, filter) = filter::read(filter, Some(limit), now())?;
            tail(&*store, screen, &whose, filter, json).await?;
        }
        Log::Stats { by, limit, filter } if by.is_some() || filter.all_users => {
            let LogFilter {
                outcome,
                thread,
                tool,
                agent,
                feedback,
                failed,
                ..
            } = &filter;
            if [outcome, thread, tool, agent, feedback]
                .into_iter()
                .any(Option::is_some)
                || *failed
            {
                return Err(CliError::usage(
                    "what is added up by something is all turns of a time: --since, --until and --user fit it",
                )
                .or_try("adjutant log stats --all-users --by outcome"));
            }
            let (whose, filter) = filter::read(filter, None, now())?;
            totals::tell(
                &*store,
                screen,
                &whose,
                &filter,
                (by, limit.unwrap_or(LINES)),
                json,
            )
            .await?;
        }
        Log::Stats { limit, filter, .. } => {
            let (whose, filter) = filter::read(filter, Some(AT_ONCE), now())?;
            let mut all = Vec::new();
            each_page(&*store, &whose, filter, async |page| {
                all.extend(page);
                Ok(())
            })
            .await?;
            let stats = stats::stats(&all, limit);
            screen.answer_line(&if json {
                json_line(&stats)
            } else {
                stats::table(&stats)
            });
        }
        Log::Export { filter } => {
            let (whose, filter) = filter::read(filter, Some(AT_ONCE), now())?;
            each_page(&*store, &whose, filter, async |page| {
                for decision in page {
                    let tool_invocations =
                        store.tool_invocations(&decision.user, decision.id).await?;
                    screen.answer_line(&json_line(&Exported {
                        decision,
                        tool_invocations,
                    }));
                }
                Ok(())
            })
            .await?;
        }
    }
    Ok(Exit::Ok)
}

/// Reads a moment as the options of `log` take it.
///
/// # Errors
/// It is none.
pub(crate) fn moment(text: &str) -> Result<Timestamp, CliError> {
    filter::moment(text, now())
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
    show(
        screen,
        &Whole::read(store, decision, settings.log_content).await?,
    );
    Ok(())
}

/// A decision with everything that led to it.
#[derive(Debug, Serialize)]
pub(crate) struct Whole {
    decision: DecisionRecord,
    /// In the order they ended.
    tool_invocations: Vec<ToolInvocationRecord>,
    /// In the order they began.
    steps: Vec<Step>,
}

impl Whole {
    /// Reads it. `content`: how much of what was said is in the steps.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn read(
        store: &dyn Store,
        decision: DecisionRecord,
        content: LogContent,
    ) -> Result<Self, CliError> {
        let tool_invocations = store.tool_invocations(&decision.user, decision.id).await?;
        let steps = read_trace(store, &decision.key(), decision.id, content).await?;
        Ok(Self {
            decision,
            tool_invocations,
            steps,
        })
    }
}

/// A line of an export.
#[derive(Serialize)]
struct Exported {
    #[serde(flatten)]
    decision: DecisionRecord,
    tool_invocations: Vec<ToolInvocationRecord>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long ago something is has to be told by somebody"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

/// Reads a page of decisions, newest first.
async fn read(
    store: &dyn Store,
    whose: &Whose,
    filter: &DecisionFilter,
) -> Result<Vec<DecisionRecord>, CliError> {
    Ok(match whose {
        Whose::One(user) => store.decisions(user, filter).await?,
        Whose::All(which) => store.decisions_of_all(filter, *which).await?,
    })
}

/// Reads all decisions of a filter, newest first.
async fn each_page(
    store: &dyn Store,
    whose: &Whose,
    mut filter: DecisionFilter,
    mut take: impl AsyncFnMut(Vec<DecisionRecord>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    loop {
        let page = read(store, whose, &filter).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        filter.after = Some(last.cursor());
        take(page).await?;
    }
}

/// Tells the newest decisions, oldest first, then each that ends or begins to wait, until it is
/// told to stop.
async fn tail(
    store: &dyn Store,
    screen: &Screen,
    whose: &Whose,
    mut filter: DecisionFilter,
    json: bool,
) -> Result<(), CliError> {
    let mut stops = Stops::new()?;
    let mut told: HashMap<TurnId, Option<OutcomeCategory>> = HashMap::new();
    let mut first = true;
    loop {
        let newest = read(store, whose, &filter).await?;
        for decision in newest.iter().rev() {
            // What has no outcome yet is told when it has one, except at first: it is there.
            let news = told.get(&decision.id) != Some(&decision.outcome);
            if news && (first || decision.outcome.is_some()) {
                told.insert(decision.id, decision.outcome);
                if json {
                    screen.answer_line(&json_line(decision));
                } else {
                    screen.answer_line(&table(std::slice::from_ref(decision), whose));
                }
            }
        }
        first = false;
        filter.limit = Some(AT_ONCE);
        // What was there before the first look and was not asked for stays untold.
        filter.since = filter
            .since
            .or_else(|| newest.last().map(|oldest| oldest.started_at))
            .or_else(|| Some(now()));
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
async fn find(
    store: &dyn Store,
    user: &UserId,
    id: Option<&str>,
) -> Result<DecisionRecord, CliError> {
    let Some(id) = id.map(str::trim) else {
        let newest = DecisionFilter {
            limit: Some(1),
            ..DecisionFilter::default()
        };
        let newest = store.decisions(user, &newest).await?.into_iter().next();
        return newest.ok_or_else(|| CliError::unknown("nothing has been decided yet"));
    };
    if let Ok(id) = id.parse()
        && let Some(decision) = store.decision(user, id).await?
    {
        return Ok(decision);
    }
    let mut meant: Vec<DecisionRecord> = Vec::new();
    let all = DecisionFilter {
        limit: Some(AT_ONCE),
        ..DecisionFilter::default()
    };
    each_page(store, &Whose::One(user.clone()), all, async |page| {
        meant.extend(
            page.into_iter()
                .filter(|decision| is_meant(&decision.id.to_string(), id)),
        );
        Ok(())
    })
    .await?;
    the_one(meant, id, |decision| decision.id.to_string(), &DECISIONS)
}

/// Finds the decision of any user whose id is `id` or begins or ends with it.
///
/// # Errors
/// There is none, or more than one; or the store cannot be read.
pub(crate) async fn of_anybody(store: &dyn Store, id: &str) -> Result<DecisionRecord, CliError> {
    // Two tell that there is more than one; the others are for the words.
    let mut found = store.decisions_named(id, SHOWN).await?;
    match (found.pop(), found.as_slice()) {
        (Some(one), []) => Ok(one),
        (Some(last), others) => {
            let mut error =
                CliError::unknown(format!("{:?} fits more than one decision", id.trim()));
            for decision in others.iter().chain([&last]) {
                error = error.or_try(format!(
                    "adjutant log show {} --user {}",
                    decision.id,
                    quoted(decision.user.as_str())
                ));
            }
            Err(error)
        }
        (None, _) => Err(
            CliError::unknown(format!("no decision of any user has the id {id:?}"))
                .or_try("adjutant log list --all-users"),
        ),
    }
}

/// Finds the newest decision that a request started.
async fn of_request(store: &dyn Store, request: &str) -> Result<DecisionRecord, CliError> {
    let found = store.decisions_of_request(request.trim(), 1).await?;
    found.into_iter().next().ok_or_else(|| {
        CliError::unknown(format!("no turn was started by the request {request:?}")).or_try(
            "a request that was refused before its turn began stands in the service's log alone",
        )
    })
}

/// A name as a shell reads it.
pub(crate) fn quoted(name: &str) -> String {
    let name = clean(name);
    match name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte))
    {
        true => name,
        false => format!("'{}'", name.replace('\'', "'\\''")),
    }
}

/// Returns the sign that stands for a rating.
fn mark(rating: Rating) -> &'static str {
    match rating {
        Rating::Up => "👍",
        Rating::Down => "👎",
    }
}

fn table(decisions: &[DecisionRecord], whose: &Whose) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    for decision in decisions {
        let id = decision.id.to_string();
        let outcome = decision.outcome.map_or("open", OutcomeCategory::as_str);
        // The end of the id: the beginning is the time, and alike for neighbours.
        let mut row = vec![
            id.get(id.len().saturating_sub(8)..)
                .unwrap_or(&id)
                .to_owned(),
        ];
        row.extend([local(decision.started_at), outcome.to_owned()]);
        if let Whose::All(_) = whose {
            row.push(clip(decision.user.as_str(), 32));
        }
        row.push(
            decision
                .feedback
                .as_ref()
                .map_or("", |feedback| mark(feedback.rating))
                .to_owned(),
        );
        row.push(clip(&decision.message, 48));
        table.add_row(row);
    }
    table.trim_fmt()
}

fn show(screen: &Screen, whole: &Whole) {
    let Whole {
        decision,
        tool_invocations,
        steps,
    } = whole;
    let field =
        |name: &str, value: &str| screen.answer_line(&format!("{name:14} {}", clip(value, 2_000)));
    field("turn", &decision.id.to_string());
    if decision.user != UserId::local() {
        field("user", decision.user.as_str());
    }
    field("conversation", &decision.conversation.to_string());
    let version = decision
        .version
        .as_ref()
        .map(|version| format!(" {version}"))
        .unwrap_or_default();
    field("agent", &format!("{}{version}", decision.agent));
    if let Some(request) = &decision.request_id {
        field("request", request);
    }
    field("started", &local(decision.started_at));
    field("message", &decision.message);
    if decision.message_chars != decision.message.chars().count() {
        field(
            "",
            &format!("(cut: it had {} characters)", decision.message_chars),
        );
    }
    field(
        "intent",
        decision
            .intent
            .as_ref()
            .map_or("", |intent| intent.as_str()),
    );
    field("decision", decision.kind.map_or("", |kind| kind.as_str()));
    field(
        "outcome",
        decision.outcome.map_or("open", OutcomeCategory::as_str),
    );
    field("model", &decision.model.to_string());
    field(
        "model calls",
        &format!("{} in {}", decision.model_calls, millis(decision.model_ms)),
    );
    field(
        "tool rounds",
        &format!("{} in {}", decision.iterations, millis(decision.tool_ms)),
    );
    let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), tokens);
    let usage = &decision.usage;
    field(
        "tokens",
        &format!(
            "{} in, {} out",
            count(usage.input_tokens),
            count(usage.output_tokens)
        ),
    );
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
    if let Some(Feedback {
        rating,
        comment,
        at,
    }) = &decision.feedback
    {
        let comment = comment
            .as_ref()
            .map(|comment| format!("  {comment}"))
            .unwrap_or_default();
        field(
            "feedback",
            &format!("{} {rating}, {}{comment}", mark(*rating), local(*at)),
        );
    }
    for notice in &decision.notices {
        field("note", &notice.text);
    }
    for call in tool_invocations {
        let outcome = match (&call.result.error, &call.result.data) {
            (Some(error), _) => format!("✗ {error}"),
            (None, Some(data)) => format!("✓ {}", json_line(data)),
            (None, None) => "✓".to_owned(),
        };
        let line = format!(
            "{} {}  {outcome}  {}",
            call.tool,
            json_line(&call.arguments),
            millis(call.ms)
        );
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
    line += &step
        .ms
        .map_or_else(|| "  goes on".to_owned(), |ms| format!("  {}", millis(ms)));
    if let Some(attempt) = step.attempt.filter(|attempt| *attempt > 1) {
        line += &format!("  attempt {attempt}");
    }
    if let Some(usage) = &step.usage {
        let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), tokens);
        line += &format!(
            "  {}/{} tok",
            count(usage.input_tokens),
            count(usage.output_tokens)
        );
    }
    if let Some(error) = &step.error {
        line += &format!("  ✗ {}", error["message"].as_str().unwrap_or_default());
    }
    line
}
