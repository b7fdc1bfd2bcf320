//! Search and lists of notes: by name, by words, by tag, by link.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::Range;

use jiff::Timestamp;
use serde::Serialize;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::exclusion::{VisibleNotes, read_visible, visible};
use super::note::{aliases, is_below, links, tags};
use super::passage::Passage;
use super::path::{case_folded, folder, is_path_suffix, link_target, without_md};
use super::ranking::{self, BY_PASSAGE_MAX, Candidate, NoteCounts, NoteScore, Signals, Totals};
use super::walk::{NoteFile, read_all};
use super::{Note, NotePath, Vault};
use crate::VaultError;
use crate::rank::Query;

/// Number of lines that are shown of one note.
const LINES_MAX: usize = 3;
/// Characters that are shown of one line.
const LINE_CHARS_MAX: usize = 200;
/// Number of notes that a list or a search returns.
const LIMIT_MAX: usize = 100;
/// Number of names in an error, if a note is not found or may be any of several.
const CANDIDATES_MAX: usize = 5;

/// The notes that a list or a search is restricted to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoteFilter {
    /// Only notes below this folder; empty is the whole vault.
    pub folder: String,
    /// Only notes with this tag, or one below it; with or without `#`.
    pub tag: Option<String>,
    /// Number of notes that are returned, 1 to 100; a number beyond is taken as the nearest of
    /// these.
    pub limit: usize,
    /// The paths of notes that rank a little higher: those that are attached in the conversation.
    pub attached: Vec<String>,
}

/// Notes of a folder or with a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoteList {
    /// In the order of their paths.
    pub notes: Vec<Note>,
    /// Number of notes that pass the filter, those beyond the limit too.
    pub total: usize,
    /// A remark on the notes beyond the limit, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// Number of notes there that their owner keeps from the assistant.
    #[serde(rename = "notes_excluded", skip_serializing_if = "is_zero")]
    pub excluded: usize,
}

/// Notes that match a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoteSearchResults {
    /// The best notes, best first.
    pub notes: Vec<NoteHit>,
    /// Number of notes that match, those beyond the limit too.
    pub total: usize,
    /// A remark on the notes beyond the limit, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// Number of notes there that their owner keeps from the assistant.
    #[serde(rename = "notes_excluded", skip_serializing_if = "is_zero")]
    pub excluded: usize,
}

/// A note that matches a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoteHit {
    /// The path relative to the vault, with `/` and `.md`.
    pub path: String,
    /// The heading above the best passage, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    /// The first lines of the best passage that match, with their numbers from 1: at most 3, of at
    /// most 200 characters.
    pub lines: Vec<(usize, String)>,
}

/// A passage of a note that matches a query.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PassageHit {
    pub(crate) path: String,
    pub(crate) heading: Option<String>,
    pub(crate) text: String,
    pub(crate) score: f64,
}

/// A condition of a query. A note has to meet all of them.
#[derive(Debug)]
pub(crate) enum Condition {
    /// The note holds quoted words as they are, in any case.
    Text(String),
    /// The note has a tag or one below it.
    Tag(String),
    /// The note links to a note, case-folded.
    Link(String),
}

/// The notes that match a query, best first.
struct RankedNotes {
    notes: Vec<(NoteFile, NoteScore)>,
    query: Query,
    conditions: Vec<Condition>,
    /// True if the vault has more notes than are read.
    is_truncated: bool,
    /// Number of notes that are kept from the assistant.
    excluded: usize,
}

impl Vault {
    /// Finds the note that a name means: its path, the end of its path, its file name, or an alias;
    /// with or without `.md`; as a wiki link or not. Case and the encoding of accents do not count
    /// if no note has the exact name.
    ///
    /// # Errors
    /// [`VaultError::NoSuchNote`] with similar names, [`VaultError::Ambiguous`] with the
    /// candidates, and as [`NotePath::parse`].
    ///
    /// # Examples
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # std::fs::create_dir(folder.path().join("Plans"))?;
    /// # std::fs::write(folder.path().join("Plans/House.md"), "")?;
    /// let vault = adjutant_memory::Vault::open(folder.path())?;
    /// assert_eq!(vault.resolve("[[house]]")?.as_str(), "Plans/House.md");
    /// # Ok(()) }
    /// ```
    pub fn resolve(&self, name: &str) -> Result<NotePath, VaultError> {
        let path = NotePath::from_owner(name)?;
        // The whole path first, which needs no walk through the vault.
        match self.locate(&path) {
            Ok(located) if located.exists => {
                self.check_visible(&path)?;
                return Ok(path);
            }
            Ok(_) | Err(VaultError::NoSuchNote { .. }) => {}
            Err(error) => return Err(error),
        }
        let notes = self.walk_visible(None)?.notes;
        let paths = || notes.iter().map(|note| note.path.as_str());
        let wanted = path.as_str();
        // An exact name wins, so that `Note` and `note` can be distinguished where both exist.
        let mut found: Vec<&str> = paths()
            .filter(|path| is_path_suffix(path, wanted))
            .collect();
        if found.is_empty() {
            let folded = case_folded(wanted);
            found = paths()
                .filter(|path| is_path_suffix(&case_folded(path), &folded))
                .collect();
        }
        let by_alias: Vec<String>;
        if found.is_empty() {
            let alias = case_folded(link_target(name));
            by_alias = read_visible(&notes, |_, note, text| {
                aliases(text)
                    .iter()
                    .any(|known| case_folded(known) == alias)
                    .then(|| note.path.clone())
            })
            .results;
            found = by_alias.iter().map(String::as_str).collect();
        }
        match found.as_slice() {
            [one] => {
                let path = NotePath::from_owner(one)?;
                self.check_visible(&path)?;
                Ok(path)
            }
            [] => Err(VaultError::NoSuchNote {
                name: name.trim().to_owned(),
                nearest: similar(&path, &visible(notes)),
            }),
            many => Err(VaultError::Ambiguous {
                name: name.trim().to_owned(),
                candidates: many
                    .iter()
                    .take(CANDIDATES_MAX)
                    .map(|path| (*path).to_owned())
                    .collect(),
            }),
        }
    }

    /// Finds the note that a name means, or returns the path of a new note of that name.
    ///
    /// # Errors
    /// As [`Vault::resolve`] and [`NotePath::for_new`].
    pub(crate) fn resolve_or_new(&self, name: &str) -> Result<NotePath, VaultError> {
        match self.resolve(name) {
            Ok(path) => self.settle(&path),
            Err(VaultError::NoSuchNote { .. }) => self.settle(&NotePath::for_new(name)?),
            Err(error) => Err(error),
        }
    }

    /// Lists the notes of a folder, or with a tag, in the order of their paths.
    ///
    /// # Errors
    /// [`VaultError::NoSuchNote`] if there is no such folder, [`VaultError::Name`] if no folder can
    /// have the name.
    pub fn list(&self, filter: &NoteFilter) -> Result<NoteList, VaultError> {
        let walk = self.walk_visible(folder(&filter.folder)?.as_deref())?;
        let found = match &filter.tag {
            None => {
                let all = walk.notes.len();
                let results = visible(walk.notes);
                VisibleNotes {
                    excluded: all - results.len(),
                    results,
                }
            }
            Some(tag) => {
                let tag = tag.trim().trim_start_matches('#').to_owned();
                read_visible(&walk.notes, |_, note, text| {
                    has_tag(text, &tag).then(|| note.clone())
                })
            }
        };
        let notes = found.results;
        let total = notes.len();
        let shown: Vec<Note> = notes.iter().take(limit(filter)).map(note_info).collect();
        Ok(NoteList {
            cut: truncation(shown.len(), total, walk.is_truncated),
            notes: shown,
            total,
            excluded: walk.excluded + found.excluded,
        })
    }

    /// Returns the notes that match a query best, best first. Words match in any of their forms;
    /// `"several words"` have to stand in the note as they are, and it has to have each `#tag` and a
    /// link to each `[[Note]]`. A note that has the query for its name or an alias comes first; else names
    /// and aliases count more than text. Of notes that match nearly
    /// as well those come first that are attached, that link to a better one or are linked from it,
    /// and that were modified last. Every file is read again.
    ///
    /// # Errors
    /// [`VaultError::Name`] for a query without words, and as [`Vault::list`].
    pub fn search(
        &self,
        query: &str,
        filter: &NoteFilter,
    ) -> Result<NoteSearchResults, VaultError> {
        let mut ranked = self.rank_notes(query, filter)?;
        let total = ranked.notes.len();
        ranked.notes.truncate(limit(filter));
        // Reading the few notes that are shown again is cheaper than extracting lines of all.
        let notes = read_again(&ranked.notes, |note, score, text| {
            hit(
                note,
                text,
                score.passage.as_ref(),
                &ranked.query,
                &ranked.conditions,
            )
        });
        Ok(NoteSearchResults {
            cut: truncation(notes.len(), total, ranked.is_truncated),
            notes,
            total,
            excluded: ranked.excluded,
        })
    }

    /// Returns the best passage of each of the notes that match a query best, best first.
    ///
    /// # Errors
    /// As [`Vault::search`].
    pub(crate) fn passages(
        &self,
        query: &str,
        filter: &NoteFilter,
    ) -> Result<Vec<PassageHit>, VaultError> {
        let mut ranked = self.rank_notes(query, filter)?;
        ranked.notes.truncate(limit(filter));
        Ok(read_again(&ranked.notes, |note, score, text| {
            let passage = score.passage.as_ref();
            let content = passage.and_then(|passage| text.get(passage.range.clone()));
            PassageHit {
                path: note.path.clone(),
                heading: heading(passage, text),
                text: content.unwrap_or_default().trim().to_owned(),
                score: score.score,
            }
        }))
    }

    fn rank_notes(&self, query: &str, filter: &NoteFilter) -> Result<RankedNotes, VaultError> {
        let (words, mut conditions) = parse_query(query);
        let tag = filter.tag.as_deref().unwrap_or_default().trim();
        let tag = tag.trim_start_matches('#');
        if !tag.is_empty() {
            conditions.push(Condition::Tag(tag.to_owned()));
        }
        let ranked = Query::new(&[(&words, 1.0)]);
        if conditions.is_empty() && ranked.is_empty() {
            return Err(VaultError::Name {
                name: query.to_owned(),
                reason: "a search needs a word",
            });
        }
        let walk = self.walk_visible(folder(&filter.folder)?.as_deref())?;
        let totals = Totals::default();
        let (mut notes, mut all_counts, mut named) = (Vec::new(), Vec::new(), HashSet::new());
        let wanted = case_folded(query.trim().trim_matches('"'));
        // Every note is read for each query: an index would be a second copy of the owner's text,
        // and out of date after each edit.
        let read = read_visible(&walk.notes, |_, note, text| {
            let counts = ranking::count_note(title(&note.path), text, &ranked, &totals);
            let matches = (ranked.is_empty() || counts.is_some())
                && conditions.iter().all(|condition| condition.is_met(text));
            let is_named = || {
                case_folded(title(&note.path)) == wanted
                    || aliases(text)
                        .iter()
                        .any(|alias| case_folded(alias) == wanted)
            };
            matches.then(|| (note.clone(), counts, is_named()))
        });
        for (note, counts, is_named) in read.results {
            if is_named {
                named.insert(note.path.clone());
            }
            notes.push(note);
            all_counts.extend(counts);
        }
        let mut found = score_notes(notes, &all_counts, &filter.attached, &ranked, &totals);
        // Whoever asks for a note by its name wants that note, however often others have the word.
        let is_named = |note: &NoteFile| named.contains(&note.path);
        found.sort_by(|(note, score), (other_note, other)| {
            is_named(other_note)
                .cmp(&is_named(note))
                .then(other.score.total_cmp(&score.score))
        });
        // Only notes with the same score are ordered by time: asking the system for the time of
        // every note would be slow.
        let is_equal = |(note, score): &(NoteFile, NoteScore),
                        (other_note, other): &(NoteFile, NoteScore)| {
            score.score == other.score && is_named(note) == is_named(other_note)
        };
        for notes in found.chunk_by_mut(is_equal).filter(|notes| notes.len() > 1) {
            notes.sort_by_cached_key(|(note, _)| (Reverse(modified(note)), note.path.clone()));
        }
        Ok(RankedNotes {
            notes: found,
            query: ranked,
            conditions,
            is_truncated: walk.is_truncated,
            excluded: walk.excluded + read.excluded,
        })
    }
}

/// Scores the notes that match. All are scored as a whole, which makes up half of a score; the best
/// of them also by passage.
fn score_notes(
    notes: Vec<NoteFile>,
    counts: &[NoteCounts],
    attached: &[String],
    query: &Query,
    totals: &Totals,
) -> Vec<(NoteFile, NoteScore)> {
    // Empty for a query of conditions alone, which ranks by time.
    let wholes = ranking::score_notes(counts, query, totals);
    let mut order: Vec<usize> = (0..wholes.len()).collect();
    let score = |at: usize| wholes.get(at).copied().unwrap_or_default();
    order.sort_by(|one, other| score(*other).total_cmp(&score(*one)));
    order.truncate(BY_PASSAGE_MAX);
    let best: Vec<NoteFile> = order
        .iter()
        .filter_map(|at| notes.get(*at).cloned())
        .collect();
    // A note that vanished since it was counted is missing here, and keeps its score as a whole.
    let candidates = read_all(&best, |rank, note, text| {
        let at = *order.get(rank)?;
        let signals = Signals {
            path: note.path.clone(),
            modified: modified(note),
            is_attached: attached.contains(&note.path),
        };
        Some(Candidate {
            at,
            score: score(at),
            passages: ranking::count_passages(text, query, signals),
        })
    });
    let scored = ranking::score_candidates(counts, &candidates, query, totals);
    let indexes = candidates.iter().map(|candidate| candidate.at);
    let mut scored: HashMap<usize, NoteScore> = indexes.zip(scored).collect();
    let as_whole = |at: usize| NoteScore {
        // Half of a score is that of the best passage, which was not searched for here.
        score: f64::midpoint(score(at), 0.0),
        passage: None,
    };
    let notes = notes.into_iter().enumerate();
    notes
        // The notes beyond the best are not read by passage.
        .map(|(at, note)| (note, scored.remove(&at).unwrap_or_else(|| as_whole(at))))
        .collect()
}

/// Reads notes that were found once more, in their order.
fn read_again<T: Send>(
    found: &[(NoteFile, NoteScore)],
    visit: impl Fn(&NoteFile, &NoteScore, &str) -> T + Sync,
) -> Vec<T> {
    let notes: Vec<NoteFile> = found.iter().map(|(note, _)| note.clone()).collect();
    read_all(&notes, |at, note, text| {
        let (_, score) = found.get(at)?;
        Some(visit(note, score, text))
    })
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn limit(filter: &NoteFilter) -> usize {
    filter.limit.clamp(1, LIMIT_MAX)
}

/// Returns a remark for the model on the notes that are not shown.
fn truncation(shown: usize, total: usize, is_truncated: bool) -> Option<String> {
    let more = if is_truncated { "more than " } else { "" };
    (is_truncated || shown < total).then(|| {
        format!("{shown} of {more}{total} notes are shown; narrow it by folder, tag or words")
    })
}

fn note_info(note: &NoteFile) -> Note {
    let bytes = fs::metadata(&note.real).map_or(0, |metadata| metadata.len());
    let modified = modified(note).map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    Note {
        path: note.path.clone(),
        bytes,
        modified,
    }
}

fn modified(note: &NoteFile) -> Option<Timestamp> {
    let metadata = fs::metadata(&note.real).ok()?;
    metadata.modified().ok()?.try_into().ok()
}

/// Divides a query into the words to rank by and the conditions that a note has to meet: quoted
/// words, tags and links. Quoted words are both.
pub(crate) fn parse_query(query: &str) -> (String, Vec<Condition>) {
    let (mut words, mut conditions) = (Vec::new(), Vec::new());
    let mut rest = query.trim();
    while !rest.is_empty() {
        let quoted = rest
            .strip_prefix('"')
            .and_then(|inner| inner.find('"').map(|end| inner.split_at(end)));
        let link = rest
            .strip_prefix("[[")
            .and_then(|inner| inner.find("]]").map(|end| inner.split_at(end)));
        if let Some((quoted, after)) = quoted {
            let text = lowercase(quoted.trim());
            if !text.is_empty() {
                words.push(quoted);
                conditions.push(Condition::Text(text));
            }
            rest = after.get(1..).unwrap_or_default();
        } else if let Some((target, after)) = link {
            let target = target.split(['|', '#']).next().unwrap_or(target);
            let target = case_folded(target.trim());
            conditions.push(Condition::Link(without_md(&target).to_owned()));
            rest = after.get(2..).unwrap_or_default();
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            match super::note::tag_at_start(word) {
                Some(tag) => conditions.push(Condition::Tag(tag.to_owned())),
                None => words.push(word),
            }
            rest = after;
        }
        rest = rest.trim_start();
    }
    (words.join(" "), conditions)
}

impl Condition {
    /// Returns true if a text meets the condition.
    pub(crate) fn is_met(&self, text: &str) -> bool {
        match self {
            Self::Text(words) => lowercase(text).contains(words.as_str()),
            Self::Tag(tag) => has_tag(text, tag),
            Self::Link(target) => {
                links(text).any(|link| is_path_suffix(without_md(&case_folded(link)), target))
            }
        }
    }

    /// Returns the offset in a line of the text, the tag or the link.
    fn position_in(&self, line: &str) -> Option<usize> {
        match self {
            Self::Text(words) => lowercase(line).find(words.as_str()),
            Self::Tag(tag) => {
                let mut known = line
                    .split_whitespace()
                    .filter_map(super::note::tag_at_start);
                known.any(|known| is_below(known, tag)).then_some(0)
            }
            Self::Link(target) => links(line)
                .any(|link| without_md(&case_folded(link)).ends_with(target.as_str()))
                .then_some(0),
        }
    }
}

/// Returns true if a note has a tag or one below it. Searches the text for it first, because
/// parsing the note for tags is slower.
fn has_tag(text: &str, tag: &str) -> bool {
    // Without the text there is nothing to parse, which is slow.
    let holds = lowercase(text).contains(&lowercase(tag));
    holds && tags(text).iter().any(|known| is_below(known, tag))
}

/// Returns a note with the heading of its best passage, and the first lines of the passage that
/// match; if there are none, the first such lines of the note.
fn hit(
    note: &NoteFile,
    text: &str,
    passage: Option<&Passage>,
    query: &Query,
    conditions: &[Condition],
) -> NoteHit {
    let mut lines = passage.map_or(Vec::new(), |passage| {
        matching_lines(text, &passage.range, query, conditions)
    });
    if lines.is_empty() {
        lines = matching_lines(text, &(0..text.len()), query, conditions);
    }
    NoteHit {
        path: note.path.clone(),
        heading: heading(passage, text),
        lines,
    }
}

fn heading(passage: Option<&Passage>, text: &str) -> Option<String> {
    let heading = text.get(passage?.heading.clone()?)?;
    (!heading.is_empty()).then(|| heading.to_owned())
}

/// Returns the first lines of a part of a text that match, with their numbers.
fn matching_lines(
    text: &str,
    part: &Range<usize>,
    query: &Query,
    conditions: &[Condition],
) -> Vec<(usize, String)> {
    let first = text
        .get(..part.start)
        .map_or(0, |before| before.lines().count());
    let position = |line: &str| {
        let mut position = None;
        query.each_match(line, |at, _| position = position.or(Some(at)));
        let mut conditions = conditions.iter();
        position.or_else(|| conditions.find_map(|condition| condition.position_in(line)))
    };
    let lines = text.get(part.clone()).unwrap_or_default().lines();
    lines
        .enumerate()
        .filter_map(|(number, line)| {
            position(line).map(|at| (first + number + 1, shortened(line, at)))
        })
        .take(LINES_MAX)
        .collect()
}

/// Returns a line, or the part of a long one around an offset.
fn shortened(line: &str, at: usize) -> String {
    if line.trim().chars().count() <= LINE_CHARS_MAX {
        return line.trim().to_owned();
    }
    let before = line
        .get(..line.floor_char_boundary(at))
        .unwrap_or_default()
        .chars()
        .count();
    let before = before.saturating_sub(LINE_CHARS_MAX / 4);
    let middle: String = line.chars().skip(before).take(LINE_CHARS_MAX).collect();
    let begin = if before > 0 { "…" } else { "" };
    format!("{begin}{middle}…")
}

/// Returns a note's name without its folder and `.md`.
fn title(path: &str) -> &str {
    without_md(path.rsplit('/').next().unwrap_or(path))
}

/// Returns a text in lower case and composed form (NFC).
fn lowercase(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let lower = text.to_lowercase();
    // Characters below U+0300, whose first byte is 0xCC, cannot be decomposed: most European text
    // needs no further check.
    let is_composed = lower.bytes().all(|byte| byte < 0xCC) || is_nfc(&lower);
    if is_composed {
        lower
    } else {
        lower.nfc().collect()
    }
}

/// Returns notes whose names are similar to one that does not exist.
fn similar(path: &NotePath, notes: &[NoteFile]) -> Vec<String> {
    let wanted = case_folded(path.title());
    let folded_title = |note: &NoteFile| case_folded(title(&note.path));
    let mut found: Vec<String> = notes
        .iter()
        .filter(|note| {
            let title = folded_title(note);
            title.contains(&wanted) || (title.chars().count() > 2 && wanted.contains(&title))
        })
        .take(CANDIDATES_MAX)
        .map(|note| note.path.clone())
        .collect();
    if found.is_empty() {
        let titles: Vec<String> = notes.iter().map(folded_title).collect();
        let nearest = adjutant_core::nearest(&wanted, titles.iter().map(String::as_str));
        let at = nearest.and_then(|nearest| titles.iter().position(|title| title == nearest));
        found.extend(
            at.and_then(|at| notes.get(at))
                .map(|note| note.path.clone()),
        );
    }
    found
}
