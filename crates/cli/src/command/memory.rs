//! `adjutant memory`: shows and changes the user's facts.

use adjutant_memory::{FactChange, KeyFact, NewFact, RecalledFact};
use clap::Subcommand;
use serde_json::json;

use crate::command::output::{lines, print_list};
use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::memory::{UserMemory, line, no_vault, why_lines};
use crate::store;
use crate::terminal::confirm::approved;
use crate::terminal::display::{clean_line, clip};
use crate::terminal::screen::Screen;
use crate::terminal::yes_no::{ask_yes_no, require_yes};

/// The name that `--yes=…` uses for forgetting several facts.
const FORGET: &str = "forget";

#[derive(Debug, Subcommand)]
pub(crate) enum Memory {
    /// All facts, in the order of their file
    List,
    /// The facts that fit some words, best first
    Search {
        /// Words, or a tag with #
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Remember a fact; you are asked if a known one cannot be true beside it
    Add {
        /// One sentence
        #[arg(required = true)]
        words: Vec<String>,
        /// Always attach it to messages: the model then knows it in every turn
        #[arg(long)]
        important: bool,
    },
    /// Change the text of a fact, or its importance
    Edit {
        /// Its id or a part of it, or some of its words in quotes
        fact: String,
        /// The new text
        words: Vec<String>,
        /// Always attach it to messages: the model then knows it in every turn
        #[arg(long, conflicts_with = "not_important")]
        important: bool,
        /// Attach it only where it fits
        #[arg(long)]
        not_important: bool,
    },
    /// Forget a fact; several are asked about first, or need -y
    Forget {
        /// Ids or parts of them, or some words of one
        #[arg(required = true)]
        facts: Vec<String>,
    },
    /// Show where a fact comes from
    Why {
        /// Its id or a part of it, or some of its words
        #[arg(required = true)]
        fact: Vec<String>,
    },
    /// Show which facts would be attached to a message at the beginning of a conversation
    /// (automatic recall), with how well they fit
    Told {
        /// The message
        #[arg(required = true)]
        message: Vec<String>,
    },
    /// Take back the newest change of a fact or a note that was made here
    Undo,
}

/// Runs one subcommand.
///
/// # Errors
/// Nothing is remembered here, the vault cannot be read or written, there is no such fact or several, or a
/// confirmation was needed and not given.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Memory,
    yes: &[String],
) -> Result<Exit, CliError> {
    // Checked first, so that no database is created for nothing.
    if settings.memory.vault.is_none() && !settings.memory.in_database {
        return Err(no_vault());
    }
    // The history of changes is in the database, also that of facts in the vault.
    let user_memory = UserMemory::open(settings, store::open(settings).await?).await?;
    let print_change = |change: FactChange| {
        screen.result(&change, || {
            clean_line(&user_memory.describe_change(&change))
        });
    };
    match command {
        Memory::List => facts(screen, &user_memory.list().await?),
        Memory::Search { words } => facts(screen, &user_memory.search(&words.join(" ")).await?),
        Memory::Add { words, important } => {
            let words = words.join(" ");
            // Asked before it is written: with a yes, the new fact replaces the known one in a
            // single change, which one undo takes back.
            let known = user_memory.contradicted(&words).await?;
            let replaced = match &known {
                Some(known) if ask_to_replace(screen, known).await => Some(known.id.as_str()),
                _ => None,
            };
            let new = NewFact {
                words: &words,
                important,
                corrects: replaced,
                said: "",
            };
            print_change(user_memory.remember(&new).await?);
        }
        Memory::Edit {
            fact,
            words,
            important,
            not_important,
        } => {
            let words = words.join(" ");
            let words = (!words.trim().is_empty()).then_some(words);
            let important = (important || not_important).then_some(important);
            if words.is_none() && important.is_none() {
                return Err(CliError::usage("there is nothing to change").or_try(
                    "adjutant memory edit ID NEW WORDS, or --important, or --not-important",
                ));
            }
            print_change(user_memory.edit(&fact, words.as_deref(), important).await?);
        }
        Memory::Forget { facts } => {
            let meant = find_facts(&user_memory, &facts).await?;
            if meant.len() > 1 && !approved(yes, FORGET) {
                confirm(screen, &meant).await?;
            }
            let mut forgotten = Vec::new();
            for fact in meant {
                let change = user_memory.forget(fact.id.as_str()).await?;
                // Printed at once: if the next one fails, the user sees what is gone already.
                if !screen.json() {
                    screen.answer_line(&clean_line(&user_memory.describe_change(&change)));
                }
                forgotten.push(change);
            }
            if screen.json() {
                screen.answer_json(&forgotten);
            }
        }
        Memory::Why { fact } => {
            let why = user_memory.why(&fact.join(" ")).await?;
            screen.result(&why, || lines(&why_lines(&why), |line| clean_line(line)));
        }
        Memory::Told { message } => {
            let recalled = user_memory.recalled_for(&message.join(" ")).await?;
            print_list(screen, &recalled, "No fact would be attached.", || {
                lines(&recalled, |fact| clean_line(&recalled_line(fact)))
            });
        }
        Memory::Undo => {
            let undone = user_memory.undo().await?;
            screen.result(
                &json!({ "message": undone.message, "change": undone.change }),
                || clean_line(&undone.message),
            );
        }
    }
    Ok(Exit::Ok)
}

/// Asks if a new fact replaces a known one that contradicts it. Where the user cannot be asked,
/// both are kept and a note says so.
async fn ask_to_replace(screen: &Screen, known: &KeyFact) -> bool {
    let known_words = clip(&known.content, 200);
    if !screen.asks() {
        screen.note(&format!(
            "kept beside “{known_words}”; if that is wrong now: adjutant memory forget {}",
            known.id
        ));
        return false;
    }
    screen.side_line(&format!("  known: {known_words}"));
    ask_yes_no(
        screen,
        "? Does the new fact take its place (no: both are true)",
        false,
    )
    .await
}

/// Formats a fact with its relevance, or the reason why it is attached without any.
fn recalled_line(recalled: &RecalledFact) -> String {
    let why = match recalled.score {
        score if score > 0.0 => format!("{score:.2}"),
        _ => "one of the newest".to_owned(),
    };
    format!("{}  · {why}", recalled.line.trim_start_matches("- "))
}

fn facts(screen: &Screen, facts: &[KeyFact]) {
    match facts {
        // A note on standard error: a script that counts lines counts no fact.
        [] if !screen.json() => screen.note("no facts"),
        facts => screen.result(&facts, || lines(facts, line)),
    }
}

/// Resolves the arguments to facts: each is an id, or all of them together are words of one fact.
async fn find_facts(user_memory: &UserMemory, given: &[String]) -> Result<Vec<KeyFact>, CliError> {
    let all = user_memory.list().await?;
    let of_id = |given: &String| {
        let part = given.trim().to_lowercase();
        let mut fits = all.iter().filter(|fact| {
            let id = fact.id.as_str();
            part.len() >= 3 && (id.starts_with(&part) || id.ends_with(&part))
        });
        fits.next().filter(|_| fits.next().is_none())
    };
    let mut meant: Vec<KeyFact> = Vec::new();
    for fact in given.iter().map(of_id) {
        // One argument that is no id makes all of them the words of one fact: `forget rides to
        // work`.
        let Some(fact) = fact else {
            return user_memory.find_all(&given.join(" ")).await;
        };
        if !meant.contains(fact) {
            meant.push(fact.clone());
        }
    }
    Ok(meant)
}

/// Asks for confirmation before several facts are forgotten.
async fn confirm(screen: &Screen, meant: &[KeyFact]) -> Result<(), CliError> {
    let count = meant.len();
    let listed = meant
        .iter()
        .map(|fact| format!("{} {}", fact.id, clip(&fact.content, 60)));
    let needed = CliError::confirmation_needed(format!(
        "{count} facts would be forgotten; that needs your confirmation, and this is not a terminal"
    ))
    .because(listed.collect::<Vec<_>>().join(" · "))
    .or_try("run it again with -y, or give the id of one");
    if screen.asks() {
        screen.side_line(&lines(meant, |fact| format!("  {}", line(fact))));
    }
    let question = format!("? Forget these {count} facts");
    require_yes(screen, &question, needed, "nothing was changed").await
}
