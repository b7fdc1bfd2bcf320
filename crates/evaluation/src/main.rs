//! `memory-eval FOLDER [--json]`: the quality of retrieval from a memory, over sets of questions
//! with known evidence.
//!
//! Each folder in FOLDER is a set: `facts.jsonl`, `notes/*.md` and `questions.jsonl`. Facts are
//! remembered and notes read by the stores that a turn uses, the conversations of the notes are
//! replayed over a database, and all are asked by the functions that a turn calls; no model is
//! used.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for a terminal"
)]

mod conversations; // retrieval of past conversations
mod facts; // automatic recall of facts
mod notes; // retrieval of notes
mod set; // the files of a set
mod share; // the share of questions whose evidence is found
mod vault_of_set; // a vault with the facts and notes of a set
mod year; // the cost of a turn after a year

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;

use self::conversations::ConversationIndex;
use self::set::Set;
use self::share::Share;
use self::vault_of_set::SetVault;

const HELP: &str = "\
memory-eval FOLDER [--json]
memory-eval --year [--json]

    FOLDER   a folder of sets, or one of them; each set has
             facts.jsonl      {\"id\": 1, \"created\": \"2026-03-01\", \"fact\": \"Ana moved to Graz.\"}
             notes/*.md       conversations; what was said in them is quoted; needed if a question names one
             questions.jsonl  {\"question\": \"Where does Ana live?\", \"category\": 1, \"notes\": [\"One.md\"], \"facts_any_of_each\": [[1]]}
                              notes: all of them are needed; facts_any_of_each: one fact of each list, null where no fact says it;
                              category 5, which nothing answers, is left out
    --year   what a turn costs with the memory of a year, beside that of the first day
    --json   one object on standard output; shares are of 1

It ends with 0, with 1 if something cannot be read or measured, and with 2 if it is called in another way.
";

/// The figures of all sets.
#[derive(Debug, Serialize)]
struct Figures {
    facts_at_10: Option<f64>,
    facts_at_20: Option<f64>,
    /// With the limits of a turn.
    facts_told: Option<f64>,
    notes_at_5: Option<f64>,
    notes_at_10: Option<f64>,
    past_at_5: Option<f64>,
    /// Mean tokens of the facts that are recalled for a question, at most 10 facts.
    told_tokens_mean: Option<f64>,
    /// Questions with evidence in facts, in notes, or in both.
    questions: u32,
    /// Questions with evidence in facts.
    #[serde(skip)]
    fact_questions: u32,
    /// Questions with evidence in notes.
    #[serde(skip)]
    note_questions: u32,
    /// Facts that were to be remembered, and those that a later one replaced.
    #[serde(skip)]
    facts: usize,
    #[serde(skip)]
    facts_replaced: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (options, folders): (Vec<String>, Vec<String>) = arguments
        .into_iter()
        .partition(|argument| argument.starts_with('-'));
    let has = |name: &str| options.iter().any(|option| option == name);
    if has("--help") || has("-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let known = ["--json", "--year"];
    let unknown = options
        .iter()
        .find(|option| !known.contains(&option.as_str()));
    let shown = match (unknown, folders.as_slice()) {
        (None, [folder]) if !has("--year") => measure(Path::new(folder))
            .await
            .map(|figures| figures.to_text(has("--json"))),
        (None, []) if has("--year") => year::measure()
            .await
            .map(|figures| figures.to_text(has("--json"))),
        (unknown, folders) => {
            match unknown {
                Some(option) => eprintln!("there is no option {option}\n"),
                None => eprintln!("one folder is measured, {} are named\n", folders.len()),
            }
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match shown {
        Ok(shown) => {
            println!("{shown}");
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
/// The file that cannot be read or written, as a message.
async fn measure(folder: &Path) -> Result<Figures, String> {
    let sets = set::folders(folder)?;
    let (mut recalled, mut notes) = (facts::Figures::default(), notes::Figures::default());
    let mut past_at_5 = Share::default();
    let (mut questions, mut facts, mut replaced) = (0, 0, 0);
    for (at, path) in sets.iter().enumerate() {
        eprintln!("{} of {}: {}", at + 1, sets.len(), name(path));
        let set = Set::load(path)?;
        for missing in set.missing() {
            eprintln!("  a question needs {missing}, which is not in the set");
        }
        let vault = SetVault::fill(&set).await?;
        let past = ConversationIndex::replay(&set).await?;
        facts += set.facts.len();
        replaced += set.facts.len() - vault.facts_kept().await?;
        for question in &set.questions {
            let (of_facts, of_notes) = (question.facts.as_deref(), question.notes.as_slice());
            if of_facts.is_some() || !of_notes.is_empty() {
                questions += 1;
            }
            if let Some(evidence) = of_facts {
                recalled.ask(&vault, &question.words, evidence).await?;
            }
            if !of_notes.is_empty() {
                notes.ask(&vault, &question.words, of_notes).await?;
                past.ask(&mut past_at_5, &question.words, of_notes).await?;
            }
        }
    }
    if questions == 0 {
        return Err(format!(
            "{}: no question has evidence in facts or notes, so there is nothing to measure\n\
             try: name evidence in questions.jsonl, as `memory-eval --help` says",
            folder.display()
        ));
    }
    Ok(Figures {
        facts_at_10: recalled.at_10.value(),
        facts_at_20: recalled.at_20.value(),
        facts_told: recalled.told.value(),
        notes_at_5: notes.at_5.value(),
        notes_at_10: notes.at_10.value(),
        past_at_5: past_at_5.value(),
        told_tokens_mean: (recalled.at_10.asked > 0)
            .then(|| f64::from(recalled.tokens) / f64::from(recalled.at_10.asked)),
        questions,
        fact_questions: recalled.at_10.asked,
        note_questions: notes.at_5.asked,
        facts,
        facts_replaced: replaced,
    })
}

fn name(path: &Path) -> String {
    let name: Option<PathBuf> = path.file_name().map(PathBuf::from);
    name.as_deref().unwrap_or(path).display().to_string()
}

impl Figures {
    /// Returns the figures as JSON, or as text for a terminal.
    fn to_text(&self, json: bool) -> String {
        if json {
            return serde_json::to_string(self).unwrap_or_default();
        }
        let percent = |share: Option<f64>| {
            share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0))
        };
        [
            format!(
                "facts attached for {} questions: {} of 10, {} of 20, {} in a turn; {:.0} tokens of 10",
                self.fact_questions,
                percent(self.facts_at_10),
                percent(self.facts_at_20),
                percent(self.facts_told),
                self.told_tokens_mean.unwrap_or_default()
            ),
            format!(
                "notes found for {} questions: {} of 5, {} of 10",
                self.note_questions,
                percent(self.notes_at_5),
                percent(self.notes_at_10)
            ),
            format!(
                "past conversations found for the same: {} of 5",
                percent(self.past_at_5)
            ),
            format!(
                "{} facts remembered, {} replaced by a later one",
                self.facts, self.facts_replaced
            ),
        ]
        .join("\n")
    }
}
