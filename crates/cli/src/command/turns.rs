//! `adjutant turns`: open turns of all users, and ending one.

use adjutant_core::port::{Loaded, StoreError};
use adjutant_core::{ConversationKey, Event, ModelId, Recorded, TurnId, UserId, conversation};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;

use crate::args::Turns;
use crate::clock;
use crate::command::output::kind;
use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::id_prefix::{Kind, the_one};
use crate::store::{self, Store};
use crate::terminal::display::{clean_line, rough};
use crate::terminal::screen::Screen;
use crate::terminal::yes_no::require_yes;
use crate::wiring;

const TURN: Kind = kind("open turn", "open turns", "adjutant turns list");

/// A conversation that cannot be read and so cannot be continued.
#[derive(Serialize)]
struct UnreadableConversation {
    turn: Option<TurnId>,
    conversation: String,
    user: UserId,
    /// Always `unreadable`.
    state: &'static str,
    /// The error that reading it gives.
    problem: String,
}

/// An open turn, as a row of `--json`.
#[derive(Serialize)]
struct OpenTurn {
    turn: TurnId,
    conversation: String,
    user: UserId,
    /// `waiting` for a confirmation, or `left`: no worker runs it, and a service or chat will
    /// recover it.
    state: &'static str,
    started_at: Timestamp,
    /// The model it began with; `none/none` for a command, which calls no model.
    model: ModelId,
    /// Number of recoveries since the last recorded step.
    taken_up: u32,
    #[serde(skip)]
    key: ConversationKey,
    #[serde(skip)]
    events: Vec<Recorded>,
}

/// Lists open turns, shows the steps of one, or ends one.
///
/// # Errors
/// The database cannot be opened, no open turn has that id, or a worker runs it.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Turns,
    yes: &[String],
) -> Result<Exit, CliError> {
    let store = store::open(settings).await?;
    match command {
        Turns::List => {
            let (open, stuck) = load_open(&*store).await?;
            list(screen, &open, &stuck);
        }
        Turns::Show { id } => show(screen, &find(load_open(&*store).await?.0, &id)?),
        Turns::Drop { id } => {
            let turn = find(load_open(&*store).await?.0, &id)?;
            if yes.is_empty() {
                let question = format!(
                    "End turn {} of {}",
                    turn.turn,
                    clean_line(turn.user.as_str())
                );
                let needed = CliError::confirmation_needed(format!(
                    "{question}: it needs your confirmation"
                ))
                .or_try("run it again with -y");
                let question = format!("? {question}");
                require_yes(screen, &question, needed, "kept; nothing was ended").await?;
            }
            // Ending a turn calls no model, so none is loaded.
            let agent = wiring::agent_without_model(settings, store).await?;
            match agent.drop_turn(&turn.key).await? {
                Some(ended) if screen.json() => screen.answer_json(&json!({ "dropped": ended })),
                Some(_) => {
                    screen.answer_line("Ended. Its conversation goes on with the next message.")
                }
                None => screen.answer_line("It had ended meanwhile."),
            }
        }
    }
    Ok(Exit::Ok)
}

fn find(all: Vec<OpenTurn>, id: &str) -> Result<OpenTurn, CliError> {
    the_one(all, id, |open| open.turn.to_string(), &TURN)
}

/// Returns the turns that wait for a confirmation or that no worker runs, and the conversations
/// that cannot be read.
async fn load_open(
    store: &dyn Store,
) -> Result<(Vec<OpenTurn>, Vec<UnreadableConversation>), CliError> {
    let agent = store::agent_name();
    let mut keys = store.unsettled(&agent, None).await?;
    for (key, _) in store.parked(&agent, None).await? {
        // A conversation is in both lists if it waits and has an input that no turn has taken.
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let (mut all, mut stuck) = (Vec::new(), Vec::new());
    for key in keys {
        let Loaded { events, .. } = match store.load(&key).await {
            Ok(loaded) => loaded,
            Err(StoreError::Unreadable { message, .. }) => {
                // One damaged conversation must not hide the others.
                stuck.push(UnreadableConversation {
                    turn: None,
                    conversation: key.conversation.to_string(),
                    user: key.user,
                    state: "unreadable",
                    problem: message,
                });
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let Some(turn) = conversation::open_turn(&events) else {
            continue;
        };
        let started = events.iter().find_map(|recorded| match &*recorded.event {
            Event::TurnStarted {
                turn: started,
                model,
                ..
            } if *started == turn => Some((recorded.at, model.clone())),
            _ => None,
        });
        let Some((started_at, model)) = started else {
            continue;
        };
        all.push(OpenTurn {
            turn,
            conversation: key.conversation.to_string(),
            user: key.user.clone(),
            state: if conversation::pending(&events).is_empty() {
                "left"
            } else {
                "waiting"
            },
            started_at,
            model,
            taken_up: conversation::times_taken_up(&events),
            key,
            events,
        });
    }
    // The two lists follow each other; the oldest turn of both comes first.
    all.sort_by_key(|open| open.started_at);
    Ok((all, stuck))
}

fn list(screen: &Screen, all: &[OpenTurn], stuck: &[UnreadableConversation]) {
    if screen.json() {
        let all = all
            .iter()
            .map(|open| json!(open))
            .chain(stuck.iter().map(|stuck| json!(stuck)));
        return screen.answer_json(&all.collect::<Vec<_>>());
    }
    if all.is_empty() && stuck.is_empty() {
        return screen.answer_line("There are no unfinished turns.");
    }
    let now = clock::now();
    for open in all {
        let age = rough(now.as_second() - open.started_at.as_second());
        let taken_up = match open.taken_up {
            0 => String::new(),
            times => format!(", taken up {times} times since its last step"),
        };
        let user = clean_line(open.user.as_str());
        let model = match open.model == ModelId::none() {
            true => String::new(),
            false => clean_line(&format!(" with {}", open.model)),
        };
        screen.answer_line(&format!(
            "{}  {user}  {}, begun {age} ago{model}{taken_up}",
            open.turn, open.state
        ));
    }
    for UnreadableConversation {
        conversation,
        user,
        state,
        problem,
        ..
    } in stuck
    {
        let (user, problem) = (clean_line(user.as_str()), clean_line(problem));
        screen.answer_line(&format!(
            "conversation {conversation}  {user}  {state}: {problem}"
        ));
    }
}

/// Prints the steps of a turn without message contents.
fn show(screen: &Screen, open: &OpenTurn) {
    let of_turn = open
        .events
        .iter()
        .filter(|recorded| recorded.event.turn() == Some(open.turn));
    let steps = of_turn.map(|recorded| {
        let tool = match &*recorded.event {
            Event::CallStarted { tool, .. }
            | Event::CallFinished { tool, .. }
            | Event::CallInDoubt { tool, .. } => Some(tool.as_str()),
            _ => None,
        };
        (recorded, tool)
    });
    if screen.json() {
        let steps: Vec<_> = steps
            .map(|(recorded, tool)| json!({ "at": recorded.at, "step": recorded.event.kind(), "tool": tool }))
            .collect();
        return screen.answer_json(&json!({ "turn": open, "steps": steps }));
    }
    screen.answer_line(&format!(
        "{} of {}, {}",
        open.turn,
        clean_line(open.user.as_str()),
        open.state
    ));
    screen.answer_line(&format!("conversation {}", open.conversation));
    for (recorded, tool) in steps {
        let tool = tool
            .map(|tool| format!("  {}", clean_line(tool)))
            .unwrap_or_default();
        screen.answer_line(&format!(
            "  {}  {}{tool}",
            recorded.at,
            recorded.event.kind()
        ));
    }
}
