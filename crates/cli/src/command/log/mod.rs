//! `adjutant log`: the decision log and the tool-invocation log.

mod filter; // the filter of decisions
mod stats; // figures by day
pub(crate) mod totals; // figures by user, model, outcome or error

use std::collections::HashMap;
use std::time::Duration;

use adjutant_core::{
    Cost, DecisionFilter, DecisionRecord, Feedback, LogContent, OutcomeCategory, Rating, Step,
    ToolInvocationRecord, TurnId, UserId,
};
use adjutant_runtime::read_trace;
use jiff::Timestamp;
use serde::Serialize;

use crate::args::{Log, LogFilter};
use crate::clock::now;
use crate::command::output::{counted, kind, print_list, table, user_option};
use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::id_prefix::{Kind, is_meant, the_one};
use crate::store::{self, Store};
use crate::terminal::display::{clean, clip, json_line, local, millis, shell_quoted};
use crate::terminal::screen::Screen;
use crate::terminal::signals::StopSignals;
use filter::UserSelection;

const DECISIONS: Kind = kind("decision", "decisions", "adjutant log list");
/// Decisions loaded at once where all are wanted.
const AT_ONCE: u32 = 200;
/// Default number of lines of figures.
const LINES: u32 = 50;
/// Decisions listed where an id is ambiguous.
const SHOWN: u32 = 10;
/// Interval at which `tail` queries the store.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Number of printed decisions that `tail` remembers; older ones that are continued are printed
/// again.
const REMEMBERED: usize = 1_000;

/// Lists, shows, follows, sums up or exports decisions.
///
/// # Errors
/// The store cannot be read, an option is invalid, or there is no such decision or several.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Log,
) -> Result<Exit, CliError> {
    let store = store::open(settings).await?;
    match command {
        Log::List { limit, filter } => {
            let (users, filter) = filter::parse(filter, Some(limit), now())?;
            let decisions = load_page(&*store, &users, &filter).await?;
            print_list(screen, &decisions, "Nothing has been decided yet.", || {
                format_table(&decisions, &users)
            });
        }
        Log::Show { id, user, request } => {
            let user = user.as_deref().map(user_option).transpose()?;
            let decision = match (user, id.as_deref(), request) {
                (_, _, Some(request)) => find_by_request(&*store, &request).await?,
                (None, Some(id), None) => find_for_any_user(&*store, id).await?,
                (user, id, None) => find(&*store, &user.unwrap_or_else(UserId::local), id).await?,
            };
            let whole = DecisionDetails::load(&*store, decision, settings.log_content).await?;
            if screen.json() {
                screen.answer_json(&whole);
            } else {
                show(screen, &whole);
            }
        }
        Log::Tail { limit, filter } => {
            let (users, filter) = filter::parse(filter, Some(limit), now())?;
            tail(&*store, screen, &users, filter).await?;
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
            // The database sums these up, and filters by user and time only. Leaving the others out
            // silently would print wrong figures.
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
            let (users, filter) = filter::parse(filter, None, now())?;
            totals::print(&*store, screen, &users, &filter, by, limit.unwrap_or(LINES)).await?;
        }
        Log::Stats { limit, filter, .. } => {
            let (users, filter) = filter::parse(filter, Some(AT_ONCE), now())?;
            let mut all = Vec::new();
            each_page(&*store, &users, filter, async |page| {
                all.extend(page);
                Ok(())
            })
            .await?;
            let stats = stats::stats(&all, limit);
            screen.result(&stats, || stats::format_table(&stats));
        }
        Log::Export { filter } => {
            let (users, filter) = filter::parse(filter, Some(AT_ONCE), now())?;
            each_page(&*store, &users, filter, async |page| {
                // Printed page by page, so that memory does not grow with the log.
                for decision in page {
                    let tool_invocations =
                        store.tool_invocations(&decision.user, decision.id).await?;
                    screen.answer_json(&Exported {
                        decision,
                        tool_invocations,
                    });
                }
                Ok(())
            })
            .await?;
        }
    }
    Ok(Exit::Ok)
}

/// Parses a time as the options of `log` take it.
///
/// # Errors
/// It is invalid.
pub(crate) fn moment(text: &str) -> Result<Timestamp, CliError> {
    filter::moment(text, now())
}

/// Prints one turn, as `log show` does.
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
        &DecisionDetails::load(store, decision, settings.log_content).await?,
    );
    Ok(())
}

/// A decision with everything that led to it.
#[derive(Debug, Serialize)]
pub(crate) struct DecisionDetails {
    decision: DecisionRecord,
    /// Tool invocations, in the order of their end.
    tool_invocations: Vec<ToolInvocationRecord>,
    /// Steps, in the order of their start.
    steps: Vec<Step>,
}

impl DecisionDetails {
    /// Loads the details of a decision. `content` selects how much of the messages is included.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn load(
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

/// Loads a page of decisions, newest first.
async fn load_page(
    store: &dyn Store,
    users: &UserSelection,
    filter: &DecisionFilter,
) -> Result<Vec<DecisionRecord>, CliError> {
    Ok(match users {
        UserSelection::One(user) => store.decisions(user, filter).await?,
        UserSelection::All(which) => store.decisions_of_all(filter, *which).await?,
    })
}

/// Loads all decisions that match, newest first, page by page.
async fn each_page(
    store: &dyn Store,
    users: &UserSelection,
    mut filter: DecisionFilter,
    mut take: impl AsyncFnMut(Vec<DecisionRecord>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    loop {
        let page = load_page(store, users, &filter).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        filter.after = Some(last.cursor());
        take(page).await?;
    }
}

/// Prints the newest decisions, oldest first, then each one that ends or begins to wait, until a
/// stop signal.
async fn tail(
    store: &dyn Store,
    screen: &Screen,
    users: &UserSelection,
    mut filter: DecisionFilter,
) -> Result<(), CliError> {
    let mut stops = StopSignals::new()?;
    let mut printed: HashMap<TurnId, Option<OutcomeCategory>> = HashMap::new();
    let mut first = true;
    loop {
        let newest = load_page(store, users, &filter).await?;
        for decision in newest.iter().rev() {
            // An open decision is printed when it has an outcome, except for those listed at the
            // start.
            let news = printed.get(&decision.id) != Some(&decision.outcome);
            if news && (first || decision.outcome.is_some()) {
                printed.insert(decision.id, decision.outcome);
                screen.result(decision, || {
                    format_table(std::slice::from_ref(decision), users)
                });
            }
        }
        first = false;
        // The first page is as long as the user wants; a later one has to hold all that is new.
        filter.limit = Some(AT_ONCE);
        // Decisions older than the first page are not printed later.
        filter.since = filter
            .since
            .or_else(|| newest.last().map(|oldest| oldest.started_at))
            .or_else(|| Some(now()));
        if printed.len() > REMEMBERED {
            let recent: Vec<TurnId> = newest.iter().map(|decision| decision.id).collect();
            printed.retain(|id, _| recent.contains(id));
        }
        tokio::select! {
            // A stop signal is the ordinary end of this command, so the exit code is 0.
            _ = stops.next() => return Ok(()),
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}

/// Finds the newest decision, or the one whose id begins or ends with `id`.
async fn find(
    store: &dyn Store,
    user: &UserId,
    id: Option<&str>,
) -> Result<DecisionRecord, CliError> {
    let Some(id) = id.map(str::trim) else {
        // Without an id, the turn that the user has just seen is meant.
        let newest = DecisionFilter {
            limit: Some(1),
            ..DecisionFilter::default()
        };
        let newest = store.decisions(user, &newest).await?.into_iter().next();
        return newest.ok_or_else(|| CliError::unknown("nothing has been decided yet"));
    };
    // A complete id is one look-up; a part of it has to be compared with all decisions.
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
    each_page(
        store,
        &UserSelection::One(user.clone()),
        all,
        async |page| {
            meant.extend(
                page.into_iter()
                    .filter(|decision| is_meant(&decision.id.to_string(), id)),
            );
            Ok(())
        },
    )
    .await?;
    the_one(meant, id, |decision| decision.id.to_string(), &DECISIONS)
}

/// Finds the decision of any user whose id begins or ends with `id`.
///
/// # Errors
/// There is none or more than one, or the store cannot be read.
pub(crate) async fn find_for_any_user(
    store: &dyn Store,
    id: &str,
) -> Result<DecisionRecord, CliError> {
    // Two would show that the id is ambiguous; the others are for the error message.
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
                    shell_quoted(decision.user.as_str())
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
async fn find_by_request(store: &dyn Store, request: &str) -> Result<DecisionRecord, CliError> {
    let found = store.decisions_of_request(request.trim(), 1).await?;
    found.into_iter().next().ok_or_else(|| {
        CliError::unknown(format!("no turn was started by the request {request:?}")).or_try(
            "a request that was refused before its turn began stands in the service's log alone",
        )
    })
}

/// Returns the symbol of a rating.
fn mark(rating: Rating) -> &'static str {
    match rating {
        Rating::Up => "👍",
        Rating::Down => "👎",
    }
}

fn format_table(decisions: &[DecisionRecord], users: &UserSelection) -> String {
    let rows = decisions.iter().map(|decision| {
        let id = decision.id.to_string();
        // The end of the id: its beginning is the time, which neighbours share.
        let end = id.get(id.len().saturating_sub(8)..).unwrap_or(&id);
        let outcome = decision.outcome.map_or("open", OutcomeCategory::as_str);
        let user = match users {
            UserSelection::One(_) => None,
            UserSelection::All(_) => Some(clip(decision.user.as_str(), 32)),
        };
        let rating = decision
            .feedback
            .as_ref()
            .map(|feedback| mark(feedback.rating));
        let mut row = vec![
            end.to_owned(),
            local(decision.started_at),
            outcome.to_owned(),
        ];
        row.extend(user);
        row.extend([
            rating.unwrap_or_default().to_owned(),
            clip(&decision.message, 48),
        ]);
        row
    });
    table(&[], rows)
}

fn show(screen: &Screen, whole: &DecisionDetails) {
    let DecisionDetails {
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
    let (input, output) = (decision.usage.input_tokens, decision.usage.output_tokens);
    field(
        "tokens",
        &format!("{} in, {} out", counted(input), counted(output)),
    );
    match decision.cost {
        // No cost: a local model, or no model call.
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

/// Formats a step: time, kind, duration and usage.
fn line_of(step: &Step) -> String {
    let mut line = format!("+{}  {}", millis(step.offset_ms), step.name);
    line += &step
        .ms
        .map_or_else(|| "  goes on".to_owned(), |ms| format!("  {}", millis(ms)));
    if let Some(attempt) = step.attempt.filter(|attempt| *attempt > 1) {
        line += &format!("  attempt {attempt}");
    }
    if let Some(usage) = &step.usage {
        let (input, output) = (counted(usage.input_tokens), counted(usage.output_tokens));
        line += &format!("  {input}/{output} tok");
    }
    if let Some(error) = &step.error {
        line += &format!("  ✗ {}", error["message"].as_str().unwrap_or_default());
    }
    line
}
