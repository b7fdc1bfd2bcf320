//! `adjutant pending`: what waits for a yes or no, and answering it later.

use std::collections::HashSet;
use std::time::Duration;

use adjutant_core::{
    Arguments, ConversationKey, ModelId, PendingCall, PendingKind, UserId, Verdict, conversation,
};
use jiff::Timestamp;
use serde::Serialize;

use crate::args::Pending;
use crate::config::Settings;
use crate::confirm::{preview, whole};
use crate::display::{clean, json_line, rough};
use crate::error::{CliError, Exit};
use crate::lines::Stops;
use crate::meant::{Kind, the_one};
use crate::report::{self, Report};
use crate::screen::Screen;
use crate::store::{self, Store};
use crate::talk::Talk;
use crate::wiring;

const WAITING: Kind = Kind {
    one: "waiting call",
    many: "waiting calls",
    list: "adjutant pending list",
};

/// Time between two looks of `--watch`.
const LOOK: Duration = Duration::from_millis(500);

/// A call that waits, and where.
struct Waiting {
    key: ConversationKey,
    call: PendingCall,
}

#[derive(Serialize)]
struct Listed {
    conversation: String,
    requested_at: Timestamp,
    #[serde(flatten)]
    call: report::Pending,
}

/// Lists what waits, or answers one of it and prints the rest of its turn.
///
/// # Errors
/// Nothing of that id waits, several do, or the turn could not go on.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Pending,
    yes: Vec<String>,
    json: bool,
) -> Result<Exit, CliError> {
    let (id, verdict, edited) = match command {
        Pending::List { watch: false } => return list(settings, screen, json).await,
        Pending::List { watch: true } => return watch(settings, screen, json).await,
        Pending::Approve { id, args } => (
            id,
            Verdict::Approved,
            args.as_deref().map(arguments).transpose()?,
        ),
        Pending::Deny { id } => (id, Verdict::Denied, None),
        Pending::Resolve { id, how } => (id, how.into(), None),
    };
    // Before a model is looked for: a wrong id needs none.
    let store = store::open(settings).await?;
    let Waiting { key, call } = find(waiting(&*store).await?, &id)?;
    if !call.takes(verdict) {
        return Err(other_answer(&call));
    }
    let mut answer = call.answer(verdict);
    answer.edited = edited;
    // A call that no model asked for needs none to go on, if its tool is one of our own.
    let own = wiring::agent_without_model(settings, store).await?;
    if own.tools().get(&call.tool).is_some() && own.requested_call(&key).await?.is_some() {
        let response = own
            .answer(&mut own.context(&key).await?, vec![answer])
            .await?;
        let text = match json {
            true => json_line(&Report::of(&response, ModelId::none().to_string())),
            false => clean(&response.content),
        };
        screen.answer_line(&text);
        return Ok(Exit::of(&response));
    }
    let mut talk = Talk::open(screen, settings, yes, !json, true).await?;
    let mut context = talk.agent.context(&key).await?;
    talk.tell_left(&key).await?;
    let response = talk.answer(&mut context, vec![answer]).await?;
    if json {
        screen.answer_line(&json_line(&Report::of(
            &response,
            talk.agent.model().id().to_string(),
        )));
    }
    let exit = talk.exit(&response);
    talk.leave().await;
    Ok(exit)
}

async fn list(settings: &Settings, screen: &Screen, json: bool) -> Result<Exit, CliError> {
    let store = store::open(settings).await?;
    let waiting = waiting(&*store).await?;
    if json {
        let all: Vec<Listed> = waiting.iter().map(Listed::of).collect();
        screen.answer_line(&json_line(&all));
        return Ok(Exit::Ok);
    }
    if waiting.is_empty() {
        screen.answer_line("Nothing waits for an answer.");
        return Ok(Exit::Ok);
    }
    for waiting in &waiting {
        waiting.tell(screen);
    }
    Ok(Exit::Ok)
}

/// Prints what waits, and each question when it begins to wait, until it is told to stop.
async fn watch(settings: &Settings, screen: &Screen, json: bool) -> Result<Exit, CliError> {
    let store = store::open(settings).await?;
    let mut stops = Stops::new()?;
    // By their digests: a call that was tried again and is in doubt anew is another question.
    let mut told: HashSet<String> = HashSet::new();
    loop {
        let waiting = waiting(&*store).await?;
        for one in waiting
            .iter()
            .filter(|one| !told.contains(&one.call.digest))
        {
            match json {
                true => screen.answer_line(&json_line(&Listed::of(one))),
                false => one.tell(screen),
            }
        }
        told = waiting.into_iter().map(|one| one.call.digest).collect();
        tokio::select! {
            _ = stops.next() => return Ok(Exit::Ok),
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

impl Listed {
    fn of(waiting: &Waiting) -> Self {
        Self {
            conversation: waiting.key.conversation.to_string(),
            requested_at: waiting.call.requested_at,
            call: report::Pending::of(&waiting.call),
        }
    }
}

impl Waiting {
    fn tell(&self, screen: &Screen) {
        let Self { key, call } = self;
        #[expect(
            clippy::disallowed_methods,
            reason = "a list that says how long ago is the clock's own edge"
        )]
        let now = Timestamp::now();
        let age = rough(now.as_second() - call.requested_at.as_second());
        let expiry = if call.has_expired(now) {
            "expired".to_owned()
        } else {
            format!(
                "expires in {}",
                rough(call.expires_at.as_second() - now.as_second())
            )
        };
        let state = match &call.doubt {
            None if call.awaits_result() => {
                format!("called {age} ago, waits for the program that asked, {expiry}")
            }
            None => format!("asked {age} ago, {expiry}"),
            Some(doubt) => {
                let age = rough(now.as_second() - doubt.since.as_second());
                format!("begun {age} ago and interrupted: was it done? {expiry}")
            }
        };
        screen.answer_line(&format!(
            "{}  {}  ({}, {state})",
            call.short_id(),
            preview(call),
            call.tool
        ));
        if let Some(whole) = whole(call) {
            screen.answer_line(&format!("          all of it: {whole}"));
        }
        screen.answer_line(&format!("          conversation {}", key.conversation));
    }
}

/// The arguments of `--args`.
fn arguments(text: &str) -> Result<Arguments, CliError> {
    serde_json::from_str(text).map_err(|error| {
        CliError::usage("--args has to be a JSON object").because(error.to_string())
    })
}

/// A call that waits for another kind of answer.
fn other_answer(call: &PendingCall) -> CliError {
    let id = call.short_id();
    match call.kind() {
        PendingKind::Doubt => {
            CliError::usage("it was interrupted: the question is whether it was done")
                .or_try(format!("adjutant pending resolve {id} done|retry|leave"))
        }
        PendingKind::Result => CliError::usage(
            "nobody has to agree to it: the program that asked carries it out and brings the result",
        ),
        PendingKind::Confirmation => CliError::usage("it was not begun: it waits for a yes or no")
            .or_try(format!("adjutant pending approve {id}"))
            .or_try(format!("adjutant pending deny {id}")),
    }
}

/// Everything of the local user that waits now, oldest first.
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

/// The one call whose id is meant, with or without the mark all of them begin with.
fn find(waiting: Vec<Waiting>, id: &str) -> Result<Waiting, CliError> {
    let bare = |id: &str| id.trim().trim_start_matches("call_").to_owned();
    the_one(
        waiting,
        &bare(id),
        |waiting| bare(waiting.call.call_id.as_str()),
        &WAITING,
    )
}
