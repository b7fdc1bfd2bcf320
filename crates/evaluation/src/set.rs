//! The files of a set.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The category of questions that nothing in the set answers.
const UNANSWERABLE: u8 = 5;

/// Facts, notes, and questions with the evidence that they need.
pub(crate) struct Set {
    pub(crate) facts: Vec<Fact>,
    /// The names of notes with their text.
    pub(crate) notes: Vec<(String, Vec<u8>)>,
    pub(crate) questions: Vec<Question>,
}

/// A fact, as it was told.
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
    /// One list of facts for each piece of evidence: any of each list is needed. `None`: facts do not hold all of it.
    pub(crate) facts: Option<Vec<Vec<u64>>>,
}

/// A line of `questions.jsonl`.
#[derive(Deserialize)]
struct Line {
    question: String,
    #[serde(default)]
    category: Option<u8>,
    #[serde(default)]
    notes: Option<Vec<String>>,
    #[serde(default)]
    facts_any_of_each: Option<Vec<Option<Vec<u64>>>>,
}

impl Set {
    /// Reads a set. Questions that nothing in it answers are left out.
    pub(crate) fn read(folder: &Path) -> Result<Self, String> {
        let lines: Vec<Line> = lines(&folder.join("questions.jsonl"))?;
        let answerable = lines.into_iter().filter(|line| line.category != Some(UNANSWERABLE));
        Ok(Self {
            facts: lines_of_facts(folder)?,
            notes: notes(&folder.join("notes"))?,
            questions: answerable.map(Question::of).collect(),
        })
    }
}

impl Question {
    fn of(line: Line) -> Self {
        let pieces: Option<Vec<Vec<u64>>> = line.facts_any_of_each.and_then(|all| all.into_iter().collect());
        let facts = pieces.filter(|pieces| !pieces.is_empty() && pieces.iter().all(|any| !any.is_empty()));
        Self { words: line.question, notes: line.notes.unwrap_or_default(), facts }
    }
}

/// Returns the sets of a folder, by name; the folder itself if it is one.
pub(crate) fn folders(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let is_set = |path: &Path| path.join("questions.jsonl").is_file();
    if is_set(folder) {
        return Ok(vec![folder.to_owned()]);
    }
    let mut sets: Vec<PathBuf> = entries(folder)?.into_iter().filter(|path| is_set(path)).collect();
    sets.sort();
    match sets.is_empty() {
        true => Err(format!("{}: no folder with a questions.jsonl is in it", folder.display())),
        false => Ok(sets),
    }
}

fn lines_of_facts(folder: &Path) -> Result<Vec<Fact>, String> {
    let path = folder.join("facts.jsonl");
    if path.exists() { lines(&path) } else { Ok(Vec::new()) }
}

fn notes(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut notes = Vec::new();
    for path in entries(folder)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = name.filter(|name| name.ends_with(".md")) {
            notes.push((name, fs::read(&path).map_err(|error| said(&path, &error))?));
        }
    }
    notes.sort();
    Ok(notes)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| said(folder, &error))?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(|error| said(folder, &error))).collect()
}

fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, String> {
    let text = fs::read_to_string(path).map_err(|error| said(path, &error))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| format!("{}:{}: {error}", path.display(), at + 1))
        })
        .collect()
}

fn said(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
