//! `adjutant pending`: lists calls that wait for confirmation, and answers them.

use std::collections::HashSet;
use std::time::Duration;

use adjutant_core::{
    ConversationKey, ModelId, PendingCall, PendingKind, UserId, Verdict, conversation,
};
use jiff::Timestamp;
use serde::Serialize;

use crate::args::Pending;
use crate::clock;
use crate::command::output::{kind, lines, parse_arguments, print_list};
use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::id_prefix::{Kind, the_one};
use crate::store::{self, Store};
use crate::terminal::confirm::{preview, whole};
use crate::terminal::display::{clean, rough};
use crate::terminal::json_answer::{self, JsonAnswer};
use crate::terminal::screen::Screen;
use crate::terminal::session::Session;
use crate::terminal::signals::StopSignals;
use crate::wiring;

const WAITING: Kind = kind("waiting call", "waiting calls", "adjutant pending list");

/// Interval at which `--watch` queries the store.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A pending call with its conversation.
struct Waiting {
    key: ConversationKey,
    call: PendingCall,
}

#[derive(Serialize)]
struct Listed {
    conversation: String,
    requested_at: Timestamp,
    #[serde(flatten)]
    call: json_answer::Pending,
}

/// Lists pending calls, or answers one and prints the rest of its turn.
///
/// # Errors
/// No pending call or several have that id, or the turn could not be continued.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Pending,
    yes: Vec<String>,
) -> Result<Exit, CliError> {
    let (id, verdict, edited) = match command {
        Pending::List { watch: false } => return list(settings, screen).await,
        Pending::List { watch: true } => return watch(settings, screen).await,
        Pending::Approve { id, args } => (
            id,
            Verdict::Approved,
            args.as_deref().map(parse_arguments).transpose()?,
        ),
        Pending::Deny { id } => (id, Verdict::Denied, None),
        Pending::Resolve { id, how } => (id, how.into(), None),
    };
    // The id is checked first: a wrong one should not load a model.
    let store = store::open(settings).await?;
    let Waiting { key, call } = find(waiting(&*store).await?, &id)?;
    // A call in doubt takes no yes: it may have been executed, and approving would execute it
    // again.
    if !call.takes(verdict) {
        return Err(other_answer(&call));
    }
    let mut answer = call.answer(verdict);
    answer.edited = edited;
    // A call made by a command needs no model to continue, if its tool is built in.
    let own = wiring::agent_without_model(settings, store).await?;
    if own.tools().get(&call.tool).is_some() && own.requested_call(&key).await?.is_some() {
        let response = own
            .answer(&mut own.context(&key).await?, vec![answer])
            .await?;
        let answer = JsonAnswer::from_response(&response, ModelId::none().to_string());
        screen.result(&answer, || clean(&response.content));
        return Ok(Exit::for_response(&response));
    }
    let mut session = Session::open(screen, settings, yes, !screen.json(), true).await?;
    let mut context = session.agent.context(&key).await?;
    session.note_open_turns(&key).await?;
    let response = session.submit_answers(&mut context, vec![answer]).await?;
    if screen.json() {
        screen.answer_json(&JsonAnswer::from_response(
            &response,
            session.agent.model().id().to_string(),
        ));
    }
    let exit = session.exit(&response);
    session.leave().await;
    Ok(exit)
}

async fn list(settings: &Settings, screen: &Screen) -> Result<Exit, CliError> {
    let store = store::open(settings).await?;
    let waiting = waiting(&*store).await?;
    let rows: Vec<Listed> = waiting.iter().map(Listed::from_waiting).collect();
    print_list(screen, &rows, "Nothing waits for an answer.", || {
        lines(&waiting, Waiting::describe)
    });
    Ok(Exit::Ok)
}

/// Prints the pending calls, and each new one when it appears, until a stop signal.
async fn watch(settings: &Settings, screen: &Screen) -> Result<Exit, CliError> {
    let store = store::open(settings).await?;
    let mut stops = StopSignals::new()?;
    // Compared by their digests: a call that is in doubt again after a retry is a new question.
    let mut printed: HashSet<String> = HashSet::new();
    loop {
        let waiting = waiting(&*store).await?;
        for one in waiting
            .iter()
            .filter(|one| !printed.contains(&one.call.digest))
        {
            screen.result(&Listed::from_waiting(one), || one.describe());
        }
        // Only those that still wait, so the set does not grow, and a call that waits again is
        // printed again.
        printed = waiting.into_iter().map(|one| one.call.digest).collect();
        tokio::select! {
            _ = stops.next() => return Ok(Exit::Ok),
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}

impl Listed {
    fn from_waiting(waiting: &Waiting) -> Self {
        Self {
            conversation: waiting.key.conversation.to_string(),
            requested_at: waiting.call.requested_at,
            call: json_answer::Pending::new(&waiting.call),
        }
    }
}

impl Waiting {
    /// Describes the call on two lines, or three if its question is long.
    fn describe(&self) -> String {
        let Self { key, call } = self;
        let now = clock::now();
        let since = |at: Timestamp| rough(now.as_second() - at.as_second());
        let expiry = match call.has_expired(now) {
            true => "expired".to_owned(),
            false => {
                let left = call.expires_at.as_second() - now.as_second();
                format!("expires in {}", rough(left))
            }
        };
        let age = since(call.requested_at);
        let state = match &call.doubt {
            None if call.awaits_result() => {
                format!("called {age} ago, waits for the program that asked, {expiry}")
            }
            None => format!("asked {age} ago, {expiry}"),
            Some(doubt) => {
                let age = since(doubt.since);
                format!("begun {age} ago and interrupted: was it done? {expiry}")
            }
        };
        let (id, tool, preview) = (call.short_id(), &call.tool, preview(call));
        let whole = whole(call).map(|whole| format!("\n          all of it: {whole}"));
        format!(
            "{id}  {preview}  ({tool}, {state}){}\n          conversation {}",
            whole.unwrap_or_default(),
            key.conversation
        )
    }
}

/// Returns the error of a call that waits for another kind of answer.
fn other_answer(call: &PendingCall) -> CliError {
    let id = call.short_id();
    match call.kind() {
        PendingKind::Doubt => {
            CliError::usage("it was interrupted: the question is whether it was done")
                .or_try(format!("adjutant pending resolve {id} done|retry|leave"))
        }
        PendingKind::Result => CliError::usage(
            "it needs no yes: the program that asked carries it out and brings the result",
        ),
        PendingKind::Confirmation => CliError::usage("it was not begun: it waits for a yes or no")
            .or_try(format!("adjutant pending approve {id}"))
            .or_try(format!("adjutant pending deny {id}")),
    }
}

/// Returns all pending calls of the local user, oldest first.
async fn waiting(store: &dyn Store) -> Result<Vec<Waiting>, CliError> {
    let user = UserId::local();
    let mut all = Vec::new();
    for (key, _) in store.parked(&store::agent_name(), Some(&user)).await? {
        let loaded = store.load(&key).await?;
        let calls = conversation::pending(&loaded.events);
        all.extend(calls.into_iter().map(|call| Waiting {
            key: key.clone(),
            call,
        }));
    }
    Ok(all)
}

/// Finds the call whose id begins or ends with `id`, with or without the prefix of call ids.
fn find(waiting: Vec<Waiting>, id: &str) -> Result<Waiting, CliError> {
    let bare = |id: &str| id.trim().trim_start_matches("call_").to_owned();
    the_one(
        waiting,
        &bare(id),
        |waiting| bare(waiting.call.call_id.as_str()),
        &WAITING,
    )
}
