//! `adjutant pending`: what waits for a yes or no, and answering it later.

use adjutant_core::port::Journal as _;
use adjutant_core::{Answer, ConversationKey, PendingCall, UserId, Verdict, conversation};
use adjutant_store::sqlite::Store;
use jiff::Timestamp;
use serde::Serialize;

use crate::args::Pending;
use crate::config::Settings;
use crate::confirm::{preview, short_id};
use crate::display::{json_line, rough};
use crate::error::{CliError, Exit};
use crate::report::{self, Report};
use crate::screen::Screen;
use crate::talk::Talk;
use crate::wiring;

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
    let (id, verdict) = match command {
        Pending::List => return list(settings, screen, json).await,
        Pending::Approve { id } => (id, Verdict::Approved),
        Pending::Deny { id } => (id, Verdict::Denied),
    };
    // Before a model is looked for: a wrong id needs none.
    let store = wiring::open_store(settings).await?;
    let Waiting { key, call } = find(waiting(&store).await?, &id)?;
    let mut talk = Talk::start(screen, settings, yes, !json).await?;
    let mut context = talk.agent.context(&key).await?;
    let answer = Answer { call_id: call.call_id, digest: call.digest, verdict };
    let response = talk.answer(&mut context, vec![answer]).await?;
    if json {
        screen.answer_line(&json_line(&Report::of(&response, talk.agent.model().id().to_string())));
    }
    Ok(talk.exit(&response))
}

async fn list(settings: &Settings, screen: &Screen, json: bool) -> Result<Exit, CliError> {
    let store = wiring::open_store(settings).await?;
    let waiting = waiting(&store).await?;
    if json {
        let all: Vec<Listed> = waiting
            .iter()
            .map(|waiting| Listed {
                conversation: waiting.key.conversation.to_string(),
                requested_at: waiting.call.requested_at,
                call: report::Pending::of(&waiting.call),
            })
            .collect();
        screen.answer_line(&json_line(&all));
        return Ok(Exit::Ok);
    }
    if waiting.is_empty() {
        screen.answer_line("Nothing waits for an answer.");
        return Ok(Exit::Ok);
    }
    #[expect(clippy::disallowed_methods, reason = "a list that says how long ago is the clock's own edge")]
    let now = Timestamp::now();
    for Waiting { key, call } in &waiting {
        let age = rough(now.as_second() - call.requested_at.as_second());
        let expiry = if call.expires_at > now {
            format!("expires in {}", rough(call.expires_at.as_second() - now.as_second()))
        } else {
            "expired".to_owned()
        };
        screen.answer_line(&format!(
            "{}  {}  ({}, asked {age} ago, {expiry})",
            short_id(call),
            preview(call),
            call.tool
        ));
        screen.answer_line(&format!("          conversation {}", key.conversation));
    }
    Ok(Exit::Ok)
}

/// Everything of the local user that waits now, oldest first.
async fn waiting(store: &Store) -> Result<Vec<Waiting>, CliError> {
    let user = UserId::local();
    let mut all = Vec::new();
    for (key, _) in store.parked(&user).await? {
        let loaded = store.load(&key).await?;
        let calls = conversation::pending(&loaded.events);
        all.extend(calls.into_iter().map(|call| Waiting { key: key.clone(), call }));
    }
    Ok(all)
}

/// The one call whose id begins or ends with `id`.
fn find(waiting: Vec<Waiting>, id: &str) -> Result<Waiting, CliError> {
    let id = id.trim();
    let is_meant = |call: &PendingCall| {
        let full = call.call_id.as_str();
        let bare = full.strip_prefix("call_").unwrap_or(full);
        full == id || (!id.is_empty() && (bare.starts_with(id) || bare.ends_with(id)))
    };
    let mut meant: Vec<Waiting> = waiting.into_iter().filter(|waiting| is_meant(&waiting.call)).collect();
    match (meant.pop(), meant.len()) {
        (Some(one), 0) => Ok(one),
        (Some(_), more) => Err(CliError::unknown(format!("{id:?} fits {} waiting calls", more + 1))
            .or_try("adjutant pending list, then the whole id")),
        (None, _) => Err(CliError::unknown(format!("nothing that waits has the id {id:?}"))
            .or_try("adjutant pending list")),
    }
}
