//! The files of a set of questions with known evidence.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The category of questions that nothing in the set answers.
const UNANSWERABLE: u64 = 5;
/// The files of a set, and its folder of notes.
const FACTS: &str = "facts.jsonl";
const QUESTIONS: &str = "questions.jsonl";
const NOTES: &str = "notes";

/// Facts, notes, and questions with the evidence that they need.
pub(crate) struct Set {
    pub(crate) facts: Vec<Fact>,
    /// The names of notes with their text.
    pub(crate) notes: Vec<(String, Vec<u8>)>,
    pub(crate) questions: Vec<Question>,
}

/// A fact with the day on which it is remembered.
#[derive(Deserialize)]
pub(crate) struct Fact {
    pub(crate) id: u64,
    pub(crate) created: Date,
    #[serde(rename = "fact")]
    pub(crate) words: String,
}

/// A question with its evidence.
pub(crate) struct Question {
    pub(crate) words: String,
    /// The notes that are needed, all of them.
    pub(crate) notes: Vec<String>,
    /// One list of facts for each piece of evidence: any of each list is needed. `None`: facts do
    /// not hold all of it.
    pub(crate) facts: Option<Vec<Vec<u64>>>,
}

/// A line of `questions.jsonl`.
#[derive(Deserialize)]
struct Line {
    question: String,
    #[serde(default)]
    category: Option<Value>,
    #[serde(default)]
    notes: Option<Vec<String>>,
    #[serde(default)]
    facts_any_of_each: Option<Vec<Option<Vec<u64>>>>,
}

impl Set {
    /// Loads a set, without the questions that nothing in it answers.
    ///
    /// # Errors
    /// The first file that is missing or cannot be read, and a line that is not as it has to be.
    pub(crate) fn load(folder: &Path) -> Result<Self, String> {
        let lines: Vec<Line> = lines(&folder.join(QUESTIONS))?;
        let answerable = lines.into_iter().filter(|line| !line.is_unanswerable());
        let questions: Vec<Question> = answerable.map(Question::from_line).collect();
        // A set may be of facts alone.
        let needs_notes = questions.iter().any(|question| !question.notes.is_empty());
        let of_notes = folder.join(NOTES);
        Ok(Self {
            facts: self::lines(&folder.join(FACTS))?,
            notes: match needs_notes || of_notes.exists() {
                true => notes(&of_notes)?,
                false => Vec::new(),
            },
            questions,
        })
    }

    /// Returns the evidence that questions need and the set does not hold: it can never be found.
    pub(crate) fn missing(&self) -> Vec<String> {
        let facts: BTreeSet<u64> = self.facts.iter().map(|fact| fact.id).collect();
        let notes: BTreeSet<&str> = self.notes.iter().map(|(name, _)| name.as_str()).collect();
        let mut missing = BTreeSet::new();
        for question in &self.questions {
            let needed = question
                .notes
                .iter()
                .filter(|note| !notes.contains(note.as_str()));
            missing.extend(needed.map(|note| format!("the note {note:?}")));
            for any in question
                .facts
                .iter()
                .flatten()
                .filter(|any| !any.iter().any(|id| facts.contains(id)))
            {
                missing.insert(format!("any of the facts {any:?}"));
            }
        }
        missing.into_iter().collect()
    }
}

impl Line {
    fn is_unanswerable(&self) -> bool {
        self.category.as_ref().and_then(Value::as_u64) == Some(UNANSWERABLE)
    }
}

impl Question {
    fn from_line(line: Line) -> Self {
        let pieces: Option<Vec<Vec<u64>>> = line
            .facts_any_of_each
            .and_then(|all| all.into_iter().collect());
        let facts =
            pieces.filter(|pieces| !pieces.is_empty() && pieces.iter().all(|any| !any.is_empty()));
        Self {
            words: line.question,
            notes: line.notes.unwrap_or_default(),
            facts,
        }
    }
}

/// Returns the sets in a folder, by name; the folder itself if it is a set.
pub(crate) fn folders(folder: &Path) -> Result<Vec<PathBuf>, String> {
    // A folder with a part of a set is one too, so that its missing parts are reported.
    let is_set = |path: &Path| {
        [FACTS, QUESTIONS, NOTES]
            .iter()
            .any(|part| path.join(part).exists())
    };
    if is_set(folder) {
        return Ok(vec![folder.to_owned()]);
    }
    let mut sets: Vec<PathBuf> = entries(folder)?
        .into_iter()
        .filter(|path| is_set(path))
        .collect();
    sets.sort();
    match sets.is_empty() {
        true => Err(format!(
            "{}: there is no set in it\ntry: name a folder of folders, each with {FACTS}, {QUESTIONS} and {NOTES}/*.md",
            folder.display()
        )),
        false => Ok(sets),
    }
}

fn notes(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut notes = Vec::new();
    for path in entries(folder)? {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = name.filter(|name| name.ends_with(".md")) {
            notes.push((
                name,
                fs::read(&path).map_err(|error| read_error(&path, &error))?,
            ));
        }
    }
    notes.sort();
    Ok(notes)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| read_error(folder, &error))?;
    entries
        .map(|entry| {
            entry
                .map(|entry| entry.path())
                .map_err(|error| read_error(folder, &error))
        })
        .collect()
}

fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, String> {
    let text = fs::read_to_string(path).map_err(|error| read_error(path, &error))?;
    let lines = text
        .trim_start_matches('\u{FEFF}')
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| {
                let place = format!("{}:{}", path.display(), at + 1);
                format!("{place}: the line cannot be read: {error}\ntry: mend it; each line is one JSON object, as `memory-eval --help` says")
            })
        })
        .collect()
}

fn read_error(path: &Path, error: &std::io::Error) -> String {
    let next = match error.kind() {
        ErrorKind::NotFound => {
            "try: check the name; a set has facts.jsonl, questions.jsonl and notes/*.md"
        }
        _ => "try: check what it is, and whether you may read it",
    };
    format!("{}: it cannot be read: {error}\n{next}", path.display())
}
