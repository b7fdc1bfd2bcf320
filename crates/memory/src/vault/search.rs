//! Finding notes: by name, by words, by tag, by link.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs;
use std::ops::Range;

use jiff::Timestamp;
use serde::Serialize;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::note::{aliases, is_below, links, tags};
use super::passage::Passage;
use super::path::{folded, folder, link_target};
use super::ranking::{self, About, BY_PASSAGE_MAX, Closer, Fit, Sizes, Whole};
use super::walk::{Walked, read_all};
use super::{Note, NotePath, Vault};
use crate::VaultError;
use crate::rank::Query;

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
    /// The paths of notes that are searched for a little more: those that are attached in the
    /// conversation.
    pub attached: Vec<String>,
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

/// One note that fits what was searched for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// Relative to the vault, with `/` and `.md`.
    pub path: String,
    /// The heading above the passage that fits best, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    /// The first lines of that passage that hold a word of the query, with their numbers from 1: at
    /// most 3 of at most 200 characters.
    pub lines: Vec<(usize, String)>,
}

/// One condition of a query; a note has to meet all.
#[derive(Debug)]
pub(crate) enum Term {
    /// Words that were quoted, as they stand, folded.
    Text(String),
    /// A tag or one below it.
    Tag(String),
    /// A link to a note, folded.
    Link(String),
}

impl Vault {
    /// The note that a name means: its path, the end of its path, its file name, or an alias; with
    /// or without `.md`; as a wiki link or not. Capitals and the encoding of accents do not count
    /// if no note has the exact name.
    ///
    /// # Errors
    /// [`VaultError::NoSuchNote`] with similar names, [`VaultError::Ambiguous`] with the
    /// candidates, and as [`NotePath::parse`].
    pub fn resolve(&self, name: &str) -> Result<NotePath, VaultError> {
        let path = NotePath::of_owner(name)?;
        match self.locate(&path) {
            Ok(located) if located.exists => return Ok(path),
            Ok(_) | Err(VaultError::NoSuchNote { .. }) => {}
            Err(error) => return Err(error),
        }
        let notes = self.walk(None)?.notes;
        let below = |path: &str, wanted: &str| {
            path == wanted
                || path
                    .strip_suffix(wanted)
                    .is_some_and(|rest| rest.ends_with('/'))
        };
        let wanted = path.as_str();
        let mut found: Vec<&str> = notes
            .iter()
            .map(|note| note.path.as_str())
            .filter(|path| below(path, wanted))
            .collect();
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
                aliases(text)
                    .iter()
                    .any(|known| folded(known) == alias)
                    .then(|| note.path.clone())
            });
            found = by_alias.iter().map(String::as_str).collect();
        }
        match found.as_slice() {
            [one] => NotePath::of_owner(one),
            [] => Err(VaultError::NoSuchNote {
                name: name.trim().to_owned(),
                nearest: similar(&path, &notes),
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

    /// The notes of a folder, or with a tag, in the order of their paths.
    ///
    /// # Errors
    /// [`VaultError::NoSuchNote`] if there is no such folder, [`VaultError::Name`] if it cannot be
    /// one.
    pub fn list(&self, filter: &Filter) -> Result<Listed, VaultError> {
        let walk = self.walk(folder(&filter.folder)?.as_deref())?;
        let notes = match &filter.tag {
            None => walk.notes,
            Some(tag) => {
                let tag = tag.trim().trim_start_matches('#').to_owned();
                read_all(&walk.notes, |note, text| {
                    has_tag(text, &tag).then(|| note.clone())
                })
            }
        };
        let total = notes.len();
        let shown: Vec<Note> = notes
            .iter()
            .take(bounded(filter.limit))
            .map(about)
            .collect();
        Ok(Listed {
            cut: cut(shown.len(), total, walk.more),
            notes: shown,
            total,
        })
    }

    /// The notes that fit a query best, best first. Words are ranked by, in any of their forms;
    /// `"several words"` have to stand there as they are, `#tag` is a tag and `[[Note]]` a link to
    /// that note that a note has to have. Names and other names count more than text. Of notes that
    /// fit nearly as well those come first that are attached, that link to a better one or are
    /// linked from it, and that were changed last. Every file is read afresh.
    ///
    /// # Errors
    /// [`VaultError::Name`] for a query without words, and as [`Vault::list`].
    pub fn search(&self, query: &str, filter: &Filter) -> Result<Found, VaultError> {
        let Search {
            mut found,
            query,
            terms,
            more,
        } = self.fitting(query, filter)?;
        let total = found.len();
        found.truncate(bounded(filter.limit));
        // Only of what is shown: reading these few files again is cheaper than taking lines out of
        // all.
        let notes = read_again(&found, |note, fit, text| {
            hit(note, text, fit.passage.as_ref(), &query, &terms)
        });
        Ok(Found {
            cut: cut(notes.len(), total, more),
            notes,
            total,
        })
    }

    /// Returns the best passages of the notes that fit a query best, each whole, best first.
    ///
    /// # Errors
    /// As [`Vault::search`].
    pub(crate) fn passages(
        &self,
        query: &str,
        filter: &Filter,
    ) -> Result<Vec<FoundPassage>, VaultError> {
        let Search { mut found, .. } = self.fitting(query, filter)?;
        found.truncate(bounded(filter.limit));
        let passages = read_again(&found, |note, fit, text| {
            let heading = fit
                .passage
                .as_ref()
                .and_then(|passage| text.get(passage.heading.clone()?));
            let piece = fit
                .passage
                .as_ref()
                .and_then(|passage| text.get(passage.range.clone()));
            FoundPassage {
                path: note.path.clone(),
                heading: heading.filter(|words| !words.is_empty()).map(str::to_owned),
                text: piece.unwrap_or_default().trim().to_owned(),
                score: fit.score,
            }
        });
        Ok(passages)
    }

    /// Returns the notes that fit a query, best first.
    fn fitting(&self, query: &str, filter: &Filter) -> Result<Search, VaultError> {
        let (words, mut terms) = terms_of(query);
        if let Some(tag) = filter
            .tag
            .as_deref()
            .map(|tag| tag.trim().trim_start_matches('#'))
            && !tag.is_empty()
        {
            terms.push(Term::Tag(tag.to_owned()));
        }
        let ranked = Query::of(&[(&words, 1.0)]);
        if terms.is_empty() && ranked.is_empty() {
            return Err(VaultError::Name {
                name: query.to_owned(),
                reason: "a search needs a word",
            });
        }
        let walk = self.walk(folder(&filter.folder)?.as_deref())?;
        let sizes = Sizes::default();
        let (mut notes, mut fitting) = (Vec::new(), Vec::new());
        for (note, fits) in read_all(&walk.notes, |note, text| {
            let fits = ranking::whole(title(&note.path), text, &ranked, &sizes);
            let wanted =
                (ranked.is_empty() || fits.is_some()) && terms.iter().all(|term| meets(text, term));
            wanted.then(|| (note.clone(), fits))
        }) {
            notes.push(note);
            fitting.extend(fits);
        }
        let mut found = by_fit(notes, &fitting, &filter.attached, (&ranked, &sizes));
        found.sort_by(|(_, fit), (_, other)| other.score.total_cmp(&fit.score));
        // The system is asked for the times of those alone that fit equally well.
        let equal = |(_, fit): &(Walked, Fit), (_, other): &(Walked, Fit)| fit.score == other.score;
        for notes in found.chunk_by_mut(equal).filter(|notes| notes.len() > 1) {
            notes.sort_by_cached_key(|(note, _)| (Reverse(modified(note)), note.path.clone()));
        }
        Ok(Search {
            found,
            query: ranked,
            terms,
            more: walk.more,
        })
    }
}

/// Returns notes with how well they fit. All are scored as a whole, which leaves half of a score;
/// the best of them also by passage.
fn by_fit(
    notes: Vec<Walked>,
    fitting: &[Whole],
    attached: &[String],
    (query, sizes): (&Query, &Sizes),
) -> Vec<(Walked, Fit)> {
    // Without words there is nothing to rank by.
    let wholes = ranking::by_whole(fitting, query, sizes);
    let mut order: Vec<usize> = (0..wholes.len()).collect();
    let score = |at: usize| wholes.get(at).copied().unwrap_or_default();
    order.sort_by(|one, other| score(*other).total_cmp(&score(*one)));
    order.truncate(BY_PASSAGE_MAX);
    let looked_at: Vec<Walked> = order
        .iter()
        .filter_map(|at| notes.get(*at).cloned())
        .collect();
    let closer = read_all(&looked_at, |note, text| {
        let is_attached = attached.contains(&note.path);
        let about = About {
            path: note.path.clone(),
            modified: modified(note),
            is_attached,
        };
        Some(ranking::closer(text, query, about))
    });
    // A note that vanished in between is told as it was found.
    let places: HashMap<&str, usize> = looked_at
        .iter()
        .zip(&order)
        .map(|(note, at)| (note.path.as_str(), *at))
        .collect();
    let best: Vec<(usize, f64, Closer)> = closer
        .into_iter()
        .filter_map(|closer| {
            let at = *places.get(closer.about.path.as_str())?;
            Some((at, score(at), closer))
        })
        .collect();
    let fits = ranking::rank(fitting, &best, query, sizes);
    let mut fits: HashMap<usize, Fit> = best.iter().map(|(at, ..)| *at).zip(fits).collect();
    let fit = |at: usize| Fit {
        score: f64::midpoint(score(at), 0.0),
        passage: None,
    };
    let notes = notes.into_iter().enumerate();
    notes
        .map(|(at, note)| (note, fits.remove(&at).unwrap_or_else(|| fit(at))))
        .collect()
}

/// The results of a search, best first, and the words it looked for.
struct Search {
    found: Vec<(Walked, Fit)>,
    query: Query,
    terms: Vec<Term>,
    more: bool,
}

/// A passage of a note that fits what was searched for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundPassage {
    pub(crate) path: String,
    pub(crate) heading: Option<String>,
    pub(crate) text: String,
    pub(crate) score: f64,
}

/// Reads notes that were found once more, in their order.
fn read_again<T: Send>(
    found: &[(Walked, Fit)],
    look: impl Fn(&Walked, &Fit, &str) -> T + Sync,
) -> Vec<T> {
    let notes: Vec<Walked> = found.iter().map(|(note, _)| note.clone()).collect();
    let fits: HashMap<&str, &Fit> = found
        .iter()
        .map(|(note, fit)| (note.path.as_str(), fit))
        .collect();
    read_all(&notes, |note, text| {
        fits.get(note.path.as_str())
            .map(|fit| look(note, fit, text))
    })
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
    (shown < total)
        .then(|| format!("{shown} of {total} notes are shown; narrow it by folder, tag or words"))
}

fn about(note: &Walked) -> Note {
    let bytes = fs::metadata(&note.real).map_or(0, |about| about.len());
    let modified = modified(note).map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    Note {
        path: note.path.clone(),
        bytes,
        modified,
    }
}

fn modified(note: &Walked) -> Option<Timestamp> {
    fs::metadata(&note.real)
        .ok()?
        .modified()
        .ok()?
        .try_into()
        .ok()
}

/// Divides a query into the words to rank by and what a note has to meet: quoted words, tags and
/// links.
pub(crate) fn terms_of(query: &str) -> (String, Vec<Term>) {
    let (mut words, mut terms) = (Vec::new(), Vec::new());
    let mut rest = query.trim();
    while !rest.is_empty() {
        let quoted = rest
            .strip_prefix('"')
            .and_then(|inner| inner.find('"').map(|end| inner.split_at(end)));
        let link = rest
            .strip_prefix("[[")
            .and_then(|inner| inner.find("]]").map(|end| inner.split_at(end)));
        if let Some((quoted, after)) = quoted {
            let text = lowered(quoted.trim());
            if !text.is_empty() {
                words.push(quoted);
                terms.push(Term::Text(text));
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
                None => words.push(word),
            }
            rest = after;
        }
        rest = rest.trim_start();
    }
    (words.join(" "), terms)
}

/// Returns whether a note meets a condition.
pub(crate) fn meets(text: &str, term: &Term) -> bool {
    match term {
        Term::Text(words) => lowered(text).contains(words.as_str()),
        Term::Tag(tag) => has_tag(text, tag),
        Term::Link(target) => links(text).any(|link| {
            let link = folded(link);
            let link = without_md(&link);
            link == target
                || link
                    .strip_suffix(target.as_str())
                    .is_some_and(|rest| rest.ends_with('/'))
        }),
    }
}

/// The tag is looked for as text first: reading where tags count is dearer.
fn has_tag(text: &str, tag: &str) -> bool {
    let holds = lowered(text).contains(&lowered(tag));
    holds && tags(text).iter().any(|known| is_below(known, tag))
}

/// Returns a note as it is shown: its best passage's heading, and the first lines there that hold
/// something of the query; where that has none, the first such lines of the note.
fn hit(note: &Walked, text: &str, passage: Option<&Passage>, query: &Query, terms: &[Term]) -> Hit {
    let heading = passage
        .and_then(|passage| text.get(passage.heading.clone()?))
        .map(str::to_owned);
    let within = passage
        .map(|passage| lines(text, &passage.range, query, terms))
        .unwrap_or_default();
    let lines = if within.is_empty() {
        lines(text, &(0..text.len()), query, terms)
    } else {
        within
    };
    Hit {
        path: note.path.clone(),
        heading: heading.filter(|words| !words.is_empty()),
        lines,
    }
}

/// Returns the first lines of a part that hold something of the query.
fn lines(text: &str, part: &Range<usize>, query: &Query, terms: &[Term]) -> Vec<(usize, String)> {
    let first = text
        .get(..part.start)
        .map_or(0, |before| before.lines().count());
    let place = |line: &str| {
        let mut place = None;
        query.each_match(line, |at, _| place = place.or(Some(at)));
        place.or_else(|| terms.iter().find_map(|term| place_of(line, term)))
    };
    let shown = text
        .get(part.clone())
        .unwrap_or_default()
        .lines()
        .enumerate();
    shown
        .filter_map(|(number, line)| {
            place(line).map(|at| (first + number + 1, shortened(line, at)))
        })
        .take(LINES_MAX)
        .collect()
}

/// Returns where a line holds what a term asks for.
fn place_of(line: &str, term: &Term) -> Option<usize> {
    match term {
        Term::Text(words) => lowered(line).find(words.as_str()),
        Term::Tag(tag) => {
            let mut known = line
                .split_whitespace()
                .filter_map(super::note::tag_at_start);
            known.any(|known| is_below(known, tag)).then_some(0)
        }
        Term::Link(target) => links(line)
            .any(|link| without_md(&folded(link)).ends_with(target.as_str()))
            .then_some(0),
    }
}

/// Returns a line, a long one around a place in it.
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

/// One form of letters, without capitals.
fn lowered(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let lower = text.to_lowercase();
    // Below U+0300, whose first byte is 0xCC, nothing can be decomposed: most European text is done
    // here.
    let is_composed = lower.bytes().all(|byte| byte < 0xCC) || is_nfc(&lower);
    if is_composed {
        lower
    } else {
        lower.nfc().collect()
    }
}

fn without_md(path: &str) -> &str {
    let stem = path
        .len()
        .checked_sub(3)
        .and_then(|end| path.split_at_checked(end));
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
        found.extend(
            at.and_then(|at| notes.get(at))
                .map(|note| note.path.clone()),
        );
    }
    found
}
