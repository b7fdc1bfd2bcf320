//! Finding notes: by name, by words, by tag, by link.

use std::fs;

use jiff::Timestamp;
use serde::Serialize;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::markdown::front_matter;
use super::note::{aliases, is_below, links, tags};
use super::path::{folded, folder, link_target};
use super::walk::{Walked, read_all};
use super::{Note, NotePath, Vault};
use crate::VaultError;

/// Lines shown of one note.
const LINES_MAX: usize = 3;
/// Characters shown of one line.
const LINE_CHARS_MAX: usize = 200;
/// Notes told at most.
const LIMIT_MAX: usize = 100;
/// Names told when a note is not found, or may be any of several.
const CANDIDATES_MAX: usize = 5;

/// Which notes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only below this folder; empty is the whole vault.
    pub folder: String,
    /// Only with this tag, or one below it; with or without `#`.
    pub tag: Option<String>,
    /// How many at most, 1 to 100. What is beyond is counted.
    pub limit: usize,
}

/// Notes, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// In the order of their paths.
    pub notes: Vec<Note>,
    /// How many there are in all.
    pub total: usize,
    /// What was left out, if something was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

/// Notes that were searched for, best first, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The best.
    pub notes: Vec<Hit>,
    /// How many there are in all.
    pub total: usize,
    /// What was left out, if something was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

/// One note that holds what was searched for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// Relative to the vault, with `/` and `.md`.
    pub path: String,
    /// The first lines that hold a word of the query, with their numbers from 1: at most 3 of at most 200 characters.
    pub lines: Vec<(usize, String)>,
}

/// One condition of a query; a note has to meet all.
#[derive(Debug)]
enum Term {
    /// Words as they stand, folded.
    Text(String),
    /// A tag or one below it.
    Tag(String),
    /// A link to a note, folded.
    Link(String),
}

impl Vault {
    /// The note that a name means: its path, the end of its path, its file name, or an alias; with or without `.md`; as a
    /// wiki link or not. Capitals and the encoding of accents do not count if no note has the exact name.
    ///
    /// # Errors
    /// [`VaultError::NoSuchNote`] with similar names, [`VaultError::Ambiguous`] with the candidates, and as
    /// [`NotePath::parse`].
    pub fn resolve(&self, name: &str) -> Result<NotePath, VaultError> {
        let path = NotePath::of_owner(name)?;
        match self.locate(&path) {
            Ok(located) if located.exists => return Ok(path),
            Ok(_) | Err(VaultError::NoSuchNote { .. }) => {}
            Err(error) => return Err(error),
        }
        let notes = self.walk(None)?.notes;
        let below = |path: &str, wanted: &str| {
            path == wanted || path.strip_suffix(wanted).is_some_and(|rest| rest.ends_with('/'))
        };
        let wanted = path.as_str();
        let mut found: Vec<&str> =
            notes.iter().map(|note| note.path.as_str()).filter(|path| below(path, wanted)).collect();
        let folded_name = folded(wanted);
        if found.is_empty() {
            found = notes
                .iter()
                .map(|note| note.path.as_str())
                .filter(|path| below(&folded(path), &folded_name))
                .collect();
        }
        let by_alias: Vec<String>;
        if found.is_empty() {
            let alias = folded(link_target(name));
            by_alias = read_all(&notes, |note, text| {
                aliases(text).iter().any(|known| folded(known) == alias).then(|| note.path.clone())
            });
            found = by_alias.iter().map(String::as_str).collect();
        }
        match found.as_slice() {
            [one] => NotePath::of_owner(one),
            [] => {
                Err(VaultError::NoSuchNote { name: name.trim().to_owned(), nearest: similar(&path, &notes) })
            }
            many => Err(VaultError::Ambiguous {
                name: name.trim().to_owned(),
                candidates: many.iter().take(CANDIDATES_MAX).map(|path| (*path).to_owned()).collect(),
            }),
        }
    }

    /// The notes of a folder, or with a tag, in the order of their paths.
    ///
    /// # Errors
    /// [`VaultError::NoSuchNote`] if there is no such folder, [`VaultError::Name`] if it cannot be one.
    pub fn list(&self, filter: &Filter) -> Result<Listed, VaultError> {
        let walk = self.walk(folder(&filter.folder)?.as_deref())?;
        let notes = match &filter.tag {
            None => walk.notes,
            Some(tag) => {
                let tag = tag.trim().trim_start_matches('#').to_owned();
                read_all(&walk.notes, |note, text| has_tag(text, &tag).then(|| note.clone()))
            }
        };
        let total = notes.len();
        let shown: Vec<Note> = notes.iter().take(bounded(filter.limit)).map(about).collect();
        Ok(Listed { cut: cut(shown.len(), total, walk.more), notes: shown, total })
    }

    /// The notes that hold every word of the query. `"several words"` count as they stand, `#tag` is a tag, `[[Note]]` a
    /// link to that note. Names and aliases count more than text, then how often the words stand there, then which was
    /// changed last. Capitals do not count. Every file is read afresh.
    ///
    /// # Errors
    /// [`VaultError::Name`] for a query without words, and as [`Vault::list`].
    pub fn search(&self, query: &str, filter: &Filter) -> Result<Found, VaultError> {
        let mut terms = terms_of(query);
        if let Some(tag) = &filter.tag {
            terms.push(Term::Tag(tag.trim().trim_start_matches('#').to_owned()));
        }
        if terms.is_empty() {
            return Err(VaultError::Name { name: query.to_owned(), reason: "a search needs a word" });
        }
        let walk = self.walk(folder(&filter.folder)?.as_deref())?;
        let mut found = read_all(&walk.notes, |note, text| {
            Some((score(note, text, &terms)?, modified(note), note.clone()))
        });
        found.sort_by(|one, other| {
            other.0.cmp(&one.0).then(other.1.cmp(&one.1)).then_with(|| one.2.path.cmp(&other.2.path))
        });
        let total = found.len();
        found.truncate(bounded(filter.limit));
        let best: Vec<Walked> = found.into_iter().map(|(_, _, note)| note).collect();
        // Only of what is shown: reading these few files again is cheaper than taking lines out of all.
        let notes =
            read_all(&best, |note, text| Some(Hit { path: note.path.clone(), lines: lines(text, &terms) }));
        Ok(Found { cut: cut(notes.len(), total, walk.more), notes, total })
    }
}

fn bounded(limit: usize) -> usize {
    limit.clamp(1, LIMIT_MAX)
}

fn cut(shown: usize, total: usize, more: bool) -> Option<String> {
    if more {
        return Some(format!(
            "{shown} of more than {total} notes are shown; narrow it by folder, tag or words"
        ));
    }
    (shown < total).then(|| format!("{shown} of {total} notes are shown; narrow it by folder, tag or words"))
}

fn about(note: &Walked) -> Note {
    let bytes = fs::metadata(&note.real).map_or(0, |about| about.len());
    let modified = modified(note).map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    Note { path: note.path.clone(), bytes, modified }
}

fn modified(note: &Walked) -> Option<Timestamp> {
    fs::metadata(&note.real).ok()?.modified().ok()?.try_into().ok()
}

/// Words, quoted words, tags and links of a query.
fn terms_of(query: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    let mut rest = query.trim();
    while !rest.is_empty() {
        let quoted = rest.strip_prefix('"').and_then(|inner| inner.find('"').map(|end| inner.split_at(end)));
        let link = rest.strip_prefix("[[").and_then(|inner| inner.find("]]").map(|end| inner.split_at(end)));
        if let Some((words, after)) = quoted {
            let words = lowered(words.trim());
            if !words.is_empty() {
                terms.push(Term::Text(words));
            }
            rest = after.get(1..).unwrap_or_default();
        } else if let Some((target, after)) = link {
            let target = target.split(['|', '#']).next().unwrap_or(target);
            terms.push(Term::Link(without_md(&folded(target.trim())).to_owned()));
            rest = after.get(2..).unwrap_or_default();
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            match super::note::tag_at_start(word) {
                Some(tag) => terms.push(Term::Tag(tag.to_owned())),
                None => {
                    let word = lowered(word.trim_matches('"'));
                    if !word.is_empty() {
                        terms.push(Term::Text(word));
                    }
                }
            }
            rest = after;
        }
        rest = rest.trim_start();
    }
    terms
}

/// How well a note fits, or nothing if it does not meet every term.
fn score(note: &Walked, text: &str, terms: &[Term]) -> Option<u64> {
    let mut lower: Option<String> = None;
    let path = lowered(without_md(&note.path));
    let title = path.rsplit('/').next().unwrap_or(&path).to_owned();
    let mut score = 0;
    for term in terms {
        score += match term {
            Term::Text(words) => {
                let text = lower.get_or_insert_with(|| lowered(text));
                let in_text = text.matches(words.as_str()).take(20).count() as u64;
                let in_name = if title == *words {
                    1_000
                } else if title.contains(words.as_str()) {
                    200
                } else if path.contains(words.as_str()) {
                    100
                } else {
                    0
                };
                if in_text + in_name == 0 {
                    return None;
                }
                // An alias stands in the text too; only then is it worth looking.
                let in_alias = in_text > 0 && aliases_hold(text, words);
                in_text + in_name + if in_alias { 500 } else { 0 }
            }
            Term::Tag(tag) => {
                if !has_tag(text, tag) {
                    return None;
                }
                1
            }
            Term::Link(target) => {
                let is_there = links(text).any(|link| {
                    let link = folded(link);
                    let link = without_md(&link);
                    link == target
                        || link.strip_suffix(target.as_str()).is_some_and(|rest| rest.ends_with('/'))
                });
                if !is_there {
                    return None;
                }
                1
            }
        };
    }
    Some(score)
}

fn aliases_hold(lowered_text: &str, words: &str) -> bool {
    // Reading YAML is the dearest thing here, so only where the words stand in it.
    let front = front_matter(lowered_text).0.and_then(|front| lowered_text.get(front));
    if !front.is_some_and(|front| front.contains(words)) {
        return false;
    }
    aliases(lowered_text).iter().any(|alias| lowered(alias) == words)
}

/// The tag is looked for as text first: reading where tags count is dearer.
fn has_tag(text: &str, tag: &str) -> bool {
    let holds = lowered(text).contains(&lowered(tag));
    holds && tags(text).iter().any(|known| is_below(known, tag))
}

/// The first lines that hold a term.
fn lines(text: &str, terms: &[Term]) -> Vec<(usize, String)> {
    let holds = |line: &str| {
        terms.iter().any(|term| match term {
            Term::Text(words) => lowered(line).contains(words.as_str()),
            Term::Tag(tag) => line
                .split_whitespace()
                .filter_map(super::note::tag_at_start)
                .any(|known| is_below(known, tag)),
            Term::Link(target) => {
                links(line).any(|link| without_md(&folded(link)).ends_with(target.as_str()))
            }
        })
    };
    text.lines()
        .enumerate()
        .filter(|(_, line)| holds(line))
        .take(LINES_MAX)
        .map(|(number, line)| (number + 1, shortened(line.trim(), terms)))
        .collect()
}

/// A long line around the first word that was searched for.
fn shortened(line: &str, terms: &[Term]) -> String {
    if line.chars().count() <= LINE_CHARS_MAX {
        return line.to_owned();
    }
    let lower = lowered(line);
    let at = terms
        .iter()
        .filter_map(|term| match term {
            Term::Text(words) => lower.find(words.as_str()),
            Term::Tag(_) | Term::Link(_) => None,
        })
        .min()
        .unwrap_or(0);
    let before =
        lower.get(..at).map_or(0, |before| before.chars().count()).saturating_sub(LINE_CHARS_MAX / 4);
    let middle: String = line.chars().skip(before).take(LINE_CHARS_MAX).collect();
    let begin = if before > 0 { "…" } else { "" };
    format!("{begin}{middle}…")
}

/// One form of letters, without capitals.
fn lowered(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let lower = text.to_lowercase();
    // Below U+0300, whose first byte is 0xCC, nothing can be decomposed: most European text is done here.
    let is_composed = lower.bytes().all(|byte| byte < 0xCC) || is_nfc(&lower);
    if is_composed { lower } else { lower.nfc().collect() }
}

fn without_md(path: &str) -> &str {
    let stem = path.len().checked_sub(3).and_then(|end| path.split_at_checked(end));
    match stem {
        Some((stem, end)) if end.eq_ignore_ascii_case(".md") => stem,
        _ => path,
    }
}

/// Notes whose names are near to what was asked for.
fn similar(path: &NotePath, notes: &[Walked]) -> Vec<String> {
    let wanted = folded(path.title());
    let title = |note: &Walked| {
        let path = folded(&note.path);
        without_md(path.rsplit('/').next().unwrap_or(&path)).to_owned()
    };
    let mut found: Vec<String> = notes
        .iter()
        .filter(|note| {
            let title = title(note);
            title.contains(&wanted) || (title.chars().count() > 2 && wanted.contains(&title))
        })
        .take(CANDIDATES_MAX)
        .map(|note| note.path.clone())
        .collect();
    if found.is_empty() {
        let titles: Vec<String> = notes.iter().map(title).collect();
        let nearest = adjutant_core::nearest(&wanted, titles.iter().map(String::as_str));
        let at = nearest.and_then(|nearest| titles.iter().position(|title| title == nearest));
        found.extend(at.and_then(|at| notes.get(at)).map(|note| note.path.clone()));
    }
    found
}
