//! `adjutant memory`: what is remembered, in the person's own hand.

use adjutant_memory::{FactChange, KeyFact, NewFact, ToldFact};
use clap::Subcommand;
use serde_json::json;

use super::{Desk, line, why_lines};
use crate::config::Settings;
use crate::confirm::approved;
use crate::display::{clean_line, clip, json_line};
use crate::error::{CliError, Exit};
use crate::lines::says_yes;
use crate::screen::Screen;
use crate::store;

/// What `--yes=…` calls this.
const FORGET: &str = "forget";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
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
        /// The model is always told
        #[arg(long)]
        important: bool,
    },
    /// Give a fact other words, or another importance
    Edit {
        /// Its id or a part of it, or some of its words in quotes
        fact: String,
        /// The new text
        words: Vec<String>,
        /// The model is always told
        #[arg(long, conflicts_with = "not_important")]
        important: bool,
        /// Only where it fits
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
    /// Show which facts would be told with a message at the beginning of a conversation, with how
    /// well they fit
    Told {
        /// The message
        #[arg(required = true)]
        message: Vec<String>,
    },
    /// Take back the newest change of a fact or a note that was made here
    Undo,
}

/// Carries out one command.
///
/// # Errors
/// No vault, it cannot be read or written, no such fact or several, or nobody could say yes.
pub(crate) async fn run(
    settings: &Settings,
    screen: &Screen,
    command: Command,
    yes: &[String],
    json: bool,
) -> Result<Exit, CliError> {
    // Before a database is made for nothing.
    if settings.memory.vault.is_none() {
        return Err(super::desk::no_vault());
    }
    let desk = Desk::open(settings, store::open(settings).await?).await?;
    let told = |change: FactChange| {
        screen.answer_line(&if json {
            json_line(&change)
        } else {
            clean_line(&desk.words(&change))
        });
    };
    match command {
        Command::List => facts(screen, &desk.list().await?, json),
        Command::Search { words } => facts(screen, &desk.search(&words.join(" ")).await?, json),
        Command::Add { words, important } => {
            let words = words.join(" ");
            let known = desk.contradicted(&words).await?;
            let corrects = match &known {
                Some(known) => takes_place(screen, known)
                    .await
                    .then_some(known.id.as_str()),
                None => None,
            };
            told(
                desk.remember(&NewFact {
                    words: &words,
                    important,
                    corrects,
                    said: "",
                })
                .await?,
            );
        }
        Command::Edit {
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
            told(desk.edit(&fact, words.as_deref(), important).await?);
        }
        Command::Forget { facts } => {
            let meant = meant(&desk, &facts).await?;
            if meant.len() > 1 {
                agrees(screen, &meant, yes).await?;
            }
            let mut forgotten = Vec::new();
            for fact in meant {
                let change = desk.forget(fact.id.as_str()).await?;
                if !json {
                    screen.answer_line(&clean_line(&desk.words(&change)));
                }
                forgotten.push(change);
            }
            if json {
                screen.answer_line(&json_line(&forgotten));
            }
        }
        Command::Why { fact } => {
            let why = desk.why(&fact.join(" ")).await?;
            if json {
                screen.answer_line(&json_line(&why));
            } else {
                why_lines(&why)
                    .iter()
                    .for_each(|line| screen.answer_line(&clean_line(line)));
            }
        }
        Command::Told { message } => {
            let told = desk.told(&message.join(" ")).await?;
            if json {
                screen.answer_line(&json_line(&told));
            } else if told.is_empty() {
                screen.answer_line("No fact would be told.");
            } else {
                told.iter()
                    .for_each(|told| screen.answer_line(&clean_line(&told_line(told))));
            }
        }
        Command::Undo => {
            let undone = desk.undo().await?;
            if json {
                screen.answer_line(&json_line(
                    &json!({ "message": undone.words, "change": undone.change }),
                ));
            } else {
                screen.answer_line(&clean_line(&undone.words));
            }
        }
    }
    Ok(Exit::Ok)
}

/// Asks whether a new fact takes the place of a known one that can hardly be true beside it. Where
/// no one can be asked both are kept, and it is said.
async fn takes_place(screen: &Screen, known: &KeyFact) -> bool {
    let known_words = clip(&known.content, 200);
    if !screen.asks() {
        screen.note(&format!(
            "kept beside “{known_words}”; if that is wrong now: adjutant memory forget {}",
            known.id
        ));
        return false;
    }
    screen.side_line(&format!("  known: {known_words}"));
    says_yes(
        screen,
        "? Does the new fact take its place  [y] yes  [N] no, both are true: ",
        false,
    )
    .await
}

/// A fact with how well it fits, or why it is told although it does not.
fn told_line(told: &ToldFact) -> String {
    let why = match told.score {
        score if score > 0.0 => format!("{score:.2}"),
        _ => "one of the newest".to_owned(),
    };
    format!("{}  · {why}", told.line.trim_start_matches("- "))
}

fn facts(screen: &Screen, facts: &[KeyFact], json: bool) {
    if json {
        screen.answer_line(&json_line(&facts));
    } else if facts.is_empty() {
        screen.note("no facts");
    } else {
        facts
            .iter()
            .for_each(|fact| screen.answer_line(&line(fact)));
    }
}

/// Every argument an id, or all of them together the words of some.
async fn meant(desk: &Desk, given: &[String]) -> Result<Vec<KeyFact>, CliError> {
    let all = desk.list().await?;
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
        let Some(fact) = fact else {
            return desk.all_meant(&given.join(" ")).await;
        };
        if !meant.contains(fact) {
            meant.push(fact.clone());
        }
    }
    Ok(meant)
}

/// Whether the person wants several facts forgotten: by option, or asked.
async fn agrees(screen: &Screen, meant: &[KeyFact], yes: &[String]) -> Result<(), CliError> {
    if approved(yes, FORGET) {
        return Ok(());
    }
    if !screen.asks() {
        let words: Vec<String> = meant
            .iter()
            .map(|fact| format!("{} {}", fact.id, clip(&fact.content, 60)))
            .collect();
        return Err(CliError::confirmation_needed(format!(
            "{} facts would be forgotten, and no one can be asked",
            meant.len()
        ))
        .because(words.join(" · "))
        .or_try("run it again with -y, or give the id of one"));
    }
    meant
        .iter()
        .for_each(|fact| screen.side_line(&format!("  {}", line(fact))));
    if says_yes(
        screen,
        &format!("? Forget these {} facts  [y] yes  [N] no: ", meant.len()),
        false,
    )
    .await
    {
        Ok(())
    } else {
        Err(CliError::failed("nothing was changed"))
    }
}
