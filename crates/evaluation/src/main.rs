//! `memory-eval FOLDER [--json]`: what retrieval finds of a memory, over sets of questions with known evidence.
//!
//! Each folder in FOLDER is a set: `facts.jsonl`, `notes/*.md` and `questions.jsonl`. Facts are remembered and notes read by the stores
//! that a turn uses, the conversations of the notes are held again over a database, and all are asked by the functions that a turn calls; no
//! model helps.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

mod facts; // the facts that are told with a question
mod home; // a vault of its own for each set
mod notes; // the notes that are found for it
mod past; // the past conversations that are found for it
mod set; // the files of a set

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;

use self::home::Home;
use self::past::Past;
use self::set::Set;

const HELP: &str = "\
memory-eval FOLDER [--json]
    FOLDER   a folder of sets; each has facts.jsonl, notes/*.md and questions.jsonl
    --json   one object on standard output, with shares of 1
";

/// Evidence that was found, of questions that were asked.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Share {
    found: u32,
    asked: u32,
}

impl Share {
    pub(crate) fn count(&mut self, is_found: bool) {
        self.found += u32::from(is_found);
        self.asked += 1;
    }

    fn of_one(self) -> f64 {
        f64::from(self.found) / f64::from(self.asked.max(1))
    }
}

/// The figures of all sets.
#[derive(Debug, Serialize)]
struct Figures {
    facts_at_10: f64,
    facts_at_20: f64,
    notes_at_5: f64,
    notes_at_10: f64,
    past_at_5: f64,
    /// Mean of the tokens that are told with a question, 10 facts at most.
    told_tokens_mean: f64,
    /// Questions that were asked of facts, of notes, or of both.
    questions: u32,
    /// Those of them with evidence in facts.
    fact_questions: u32,
    /// Those of them with evidence in notes.
    note_questions: u32,
    /// Facts that were to be remembered, and those that a later one took the place of.
    facts: usize,
    facts_replaced: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (options, folders): (Vec<String>, Vec<String>) =
        arguments.into_iter().partition(|argument| argument.starts_with('-'));
    let (json, folder) = match (options.as_slice(), folders.as_slice()) {
        ([], [folder]) => (false, folder),
        ([option], [folder]) if option == "--json" => (true, folder),
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match measure(Path::new(folder)).await {
        Ok(figures) => {
            show(&figures, json);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures all sets of a folder.
///
/// # Errors
/// What cannot be read or written, in words.
async fn measure(folder: &Path) -> Result<Figures, String> {
    let sets = set::folders(folder)?;
    let (mut told, mut notes) = (facts::Figures::default(), notes::Figures::default());
    let mut past_at_5 = Share::default();
    let (mut questions, mut facts, mut replaced) = (0, 0, 0);
    for (at, path) in sets.iter().enumerate() {
        eprintln!("{} of {}: {}", at + 1, sets.len(), name(path));
        let set = Set::read(path)?;
        let home = Home::with(&set).await?;
        let past = Past::with(&set).await?;
        facts += set.facts.len();
        replaced += set.facts.len() - home.facts_kept().await?;
        for question in &set.questions {
            let (of_facts, of_notes) = (question.facts.as_deref(), question.notes.as_slice());
            if of_facts.is_some() || !of_notes.is_empty() {
                questions += 1;
            }
            if let Some(evidence) = of_facts {
                told.ask(&home, &question.words, evidence).await?;
            }
            if !of_notes.is_empty() {
                notes.ask(&home, &question.words, of_notes).await?;
                past.ask(&mut past_at_5, &question.words, of_notes).await?;
            }
        }
    }
    Ok(Figures {
        facts_at_10: told.at_10.of_one(),
        facts_at_20: told.at_20.of_one(),
        notes_at_5: notes.at_5.of_one(),
        notes_at_10: notes.at_10.of_one(),
        past_at_5: past_at_5.of_one(),
        told_tokens_mean: f64::from(told.tokens) / f64::from(told.at_10.asked.max(1)),
        questions,
        fact_questions: told.at_10.asked,
        note_questions: notes.at_5.asked,
        facts,
        facts_replaced: replaced,
    })
}

fn name(path: &Path) -> String {
    let name: Option<PathBuf> = path.file_name().map(PathBuf::from);
    name.as_deref().unwrap_or(path).display().to_string()
}

fn show(figures: &Figures, json: bool) {
    if json {
        println!("{}", serde_json::to_string(figures).unwrap_or_default());
        return;
    }
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    println!(
        "facts told with {} questions: {} of 10, {} of 20; {:.0} tokens on average",
        figures.fact_questions,
        percent(figures.facts_at_10),
        percent(figures.facts_at_20),
        figures.told_tokens_mean
    );
    println!(
        "notes found for {} questions: {} of 5, {} of 10",
        figures.note_questions,
        percent(figures.notes_at_5),
        percent(figures.notes_at_10)
    );
    println!("past conversations found for the same: {} of 5", percent(figures.past_at_5));
    println!("{} facts remembered, {} replaced by a later one", figures.facts, figures.facts_replaced);
}
