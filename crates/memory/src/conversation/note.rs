//! The note of a conversation: its name, its front matter, and how far it goes.

use std::fmt::Write as _;

use adjutant_core::{ConversationId, Role, TranscriptMessage, TurnId};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::ConversationLog;
use super::words::{inline, quoted};
use crate::VaultError;
use crate::key_fact::document::{insertion, splice};
use crate::vault::markdown::{front_matter, line_ending};
use crate::vault::walk::{below, read_heads};
use crate::vault::{NotePath, Stored, Vault, path};

/// Characters of a title in a file's name.
const NAME_CHARS_MAX: usize = 60;
/// Bytes of a title in a file's name: with date and number, every file system takes it.
const NAME_BYTES_MAX: usize = 180;
/// Notes of one name that are tried.
const NUMBERS_MAX: usize = 1_000;

/// Where the note of a conversation goes, and in which zone its times are.
#[derive(Debug)]
pub(super) struct Place {
    /// Relative to the vault; empty is the vault itself.
    pub(super) folder: String,
    name: String,
    zone: TimeZone,
}

/// The note that has a conversation.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) path: NotePath,
    pub(super) stored: Stored,
    /// The first message that does not stand in it.
    pub(super) next: usize,
}

/// What of a conversation goes into one note.
#[derive(Debug)]
pub(super) struct Part {
    text: String,
    /// How far it goes, as the front matter says it.
    mark: String,
    /// Messages in it.
    pub(super) told: usize,
    /// Messages that found no room.
    pub(super) left: usize,
}

/// How far a note goes: to the message of this number, from 1, of a turn. Messages before the first
/// turn have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    turn: Option<TurnId>,
    number: usize,
}

impl Mark {
    fn of(messages: &[TranscriptMessage], at: usize) -> Option<Self> {
        let turn = messages.get(at)?.turn;
        let number = messages
            .iter()
            .take(at + 1)
            .filter(|message| message.turn == turn)
            .count();
        Some(Self { turn, number })
    }

    fn text(self) -> String {
        match self.turn {
            Some(turn) => format!("{turn}/{}", self.number),
            None => format!("before/{}", self.number),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let (turn, number) = text.split_once('/')?;
        let turn = if turn == "before" {
            None
        } else {
            Some(turn.parse().ok()?)
        };
        Some(Self {
            turn,
            number: number.parse().ok()?,
        })
    }

    /// The message after it. Where its turn is gone, the first of a later turn: their ids are in
    /// order of time.
    fn next(self, messages: &[TranscriptMessage]) -> usize {
        let of_turn: Vec<usize> = (0..messages.len())
            .filter(|at| {
                messages
                    .get(*at)
                    .is_some_and(|message| message.turn == self.turn)
            })
            .collect();
        let last = of_turn
            .get(self.number.saturating_sub(1))
            .or(of_turn.last());
        match (last, self.turn) {
            (Some(last), _) => last + 1,
            (None, None) => messages
                .iter()
                .position(|message| message.turn.is_some())
                .unwrap_or(messages.len()),
            (None, Some(turn)) => messages
                .iter()
                .position(|message| message.turn.is_some_and(|other| other > turn))
                .unwrap_or(messages.len()),
        }
    }
}

impl Place {
    pub(super) fn of(
        folder: &str,
        log: &ConversationLog,
        zone: &TimeZone,
    ) -> Result<Self, VaultError> {
        let folder = path::folder(folder)?.unwrap_or_default();
        let date = log.started.to_zoned(zone.clone()).date();
        let title = name_of(&log.title);
        let name = if title.is_empty() {
            format!("{date} Conversation")
        } else {
            format!("{date} {title}")
        };
        let place = Self {
            folder,
            name,
            zone: zone.clone(),
        };
        // A folder that no note can be in is found out before anything is done.
        place.path(1)?;
        Ok(place)
    }

    fn path(&self, number: usize) -> Result<NotePath, VaultError> {
        let number = if number == 1 {
            String::new()
        } else {
            format!(" {number}")
        };
        self.inside(&format!("{}{number}.md", self.name))
    }

    fn inside(&self, name: &str) -> Result<NotePath, VaultError> {
        let between = if self.folder.is_empty() { "" } else { "/" };
        NotePath::parse(&format!("{}{between}{name}", self.folder))
    }

    /// A name that no note has.
    pub(super) fn free_path(&self, vault: &Vault) -> Result<NotePath, VaultError> {
        for number in 1..=NUMBERS_MAX {
            let path = vault.settle(&self.path(number)?)?;
            // A folder of that name takes the name too.
            if vault.locate(&path).is_ok_and(|located| !located.exists) {
                return Ok(path);
            }
        }
        Err(VaultError::Exists {
            name: self.path(1)?.to_string(),
        })
    }

    /// The messages from one on, as far as there is room for them, in bytes; one at least.
    pub(super) fn render(&self, log: &ConversationLog, from: usize, room: usize) -> Part {
        let local = |at: Timestamp| at.to_zoned(self.zone.clone());
        let before = from
            .checked_sub(1)
            .and_then(|at| log.messages.get(at))
            .and_then(|message| message.at);
        let mut day: Date = local(before.unwrap_or(log.started)).date();
        let (mut text, mut told, mut end) = (String::new(), 0, from);
        for message in log.messages.get(from..).unwrap_or_default() {
            let mut said = String::new();
            if is_told(message) {
                let at = message.at.map(local);
                heading(&mut said, log, message, at.as_ref(), day);
                day = at.map_or(day, |at| at.date());
                if told > 0 && text.len() + said.len() > room {
                    break;
                }
                told += 1;
            }
            text.push_str(&said);
            end += 1;
        }
        let mark = end
            .checked_sub(1)
            .and_then(|at| Mark::of(&log.messages, at))
            .map(Mark::text);
        let left = log
            .messages
            .get(end..)
            .unwrap_or_default()
            .iter()
            .filter(|message| is_told(message))
            .count();
        Part {
            text: text.trim_end().to_owned(),
            mark: mark.unwrap_or_default(),
            told,
            left,
        }
    }
}

/// Who speaks, when, and what: a line and a quotation.
fn heading(
    text: &mut String,
    log: &ConversationLog,
    message: &TranscriptMessage,
    at: Option<&Zoned>,
    day: Date,
) {
    let name = if message.role == Role::User {
        &log.person
    } else {
        &log.assistant
    };
    let time = match at {
        Some(at) if at.date() == day => at.strftime(" %H:%M").to_string(),
        Some(at) => at.strftime(" %Y-%m-%d %H:%M").to_string(),
        None => String::new(),
    };
    let _ = write!(text, "**{}**{time}", inline(name));
    let tools: Vec<String> = message
        .tool_calls
        .iter()
        .map(|call| inline(&call.tool))
        .collect();
    if !tools.is_empty() {
        let _ = write!(text, " · {}", tools.join(", "));
    }
    text.push_str("\n\n");
    let words = quoted(&message.content);
    if !words.is_empty() {
        text.push_str(&words);
        text.push_str("\n\n");
    }
}

/// Whether something of the message goes into the note.
pub(super) fn is_told(message: &TranscriptMessage) -> bool {
    match message.role {
        Role::User | Role::Assistant => {
            !message.content.trim().is_empty() || !message.tool_calls.is_empty()
        }
        Role::System | Role::Tool => false,
    }
}

/// A title as a file name that every file system and Obsidian's links take: letters, digits, spaces
/// and a few signs.
fn name_of(title: &str) -> String {
    let signs = |char: char| matches!(char, '-' | '_' | '\'' | ',' | '(' | ')' | '&' | '+');
    let kept: String = title
        .nfc()
        .map(|char| {
            if char.is_alphanumeric() || is_combining_mark(char) || signs(char) {
                char
            } else {
                ' '
            }
        })
        .collect();
    let mut name = String::new();
    for (count, char) in kept
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .enumerate()
    {
        if count >= NAME_CHARS_MAX && !is_combining_mark(char)
            || name.len() + char.len_utf8() > NAME_BYTES_MAX
        {
            break;
        }
        name.push(char);
    }
    name.trim_matches(|char: char| {
        char == ' ' || is_combining_mark(char) && name.len() == char.len_utf8()
    })
    .to_owned()
}

/// The note of the conversation below the folder that goes furthest.
pub(super) fn find(
    vault: &Vault,
    place: &Place,
    log: &ConversationLog,
) -> Result<Option<Known>, VaultError> {
    // As the folder is called on the disk, and wherever a link in the vault leads.
    let inside = vault.settle(&place.inside(&log.id.to_string())?)?;
    let real = vault.locate(&inside)?.real;
    let Some(folder) = real.parent() else {
        return Ok(None);
    };
    let notes = below(
        folder,
        inside
            .as_str()
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder),
    );
    let mut furthest: Option<(NotePath, usize)> = None;
    for (path, mark) in read_heads(&notes, |note, head| {
        Some((note.path.clone(), mark_in(head, log.id)?))
    }) {
        let next = mark.next(&log.messages);
        if furthest.as_ref().is_none_or(|(_, most)| next > *most) {
            furthest = Some((NotePath::parse(&path)?, next));
        }
    }
    let Some((path, next)) = furthest else {
        return Ok(None);
    };
    // It may be gone by now; then there is none.
    let stored = vault.read_stored(&path)?;
    Ok(stored.map(|stored| Known { path, stored, next }))
}

/// How far the note of this conversation goes, if it is one.
fn mark_in(text: &str, id: ConversationId) -> Option<Mark> {
    let front = text.get(front_matter(text).0?)?;
    let value = |wanted: &str| {
        front.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key == wanted).then(|| value.trim().trim_matches(['"', '\'']))
        })
    };
    if value("conversation")?.parse() != Ok(id) {
        return None;
    }
    Mark::read(value("logged")?)
}

/// A new note.
pub(super) fn create(log: &ConversationLog, place: &Place, part: &Part, stamp: &str) -> String {
    let title = log.title.split_whitespace().collect::<Vec<_>>().join(" ");
    let title = if title.is_empty() {
        "Conversation".to_owned()
    } else {
        title
    };
    let created = self::stamp(&log.started.to_zoned(place.zone.clone()));
    // A JSON text is a YAML text too; what YAML does not take as it is (C1, surrogates) is not in
    // it.
    let quoted_title = serde_json::Value::from(super::words::visible_line(&title));
    format!(
        "---\ntype: conversation\ntitle: {quoted_title}\nconversation: {}\ncreated: {created}\nmodified: {stamp}\nlogged: {}\n---\n\n# {}\n\n{}\n",
        log.id,
        part.mark,
        inline(&title),
        part.text
    )
}

/// The note with one part more at its end, in its own line endings.
pub(super) fn add(old: &str, part: &Part, stamp: &str) -> String {
    let block = part.text.replace('\n', line_ending(old));
    let inserted = insertion(old, old.len(), &block);
    let mut text = format!("{old}{inserted}");
    for (key, value) in [("modified", stamp), ("logged", &part.mark)] {
        text = with_value(&text, key, value);
    }
    text
}

/// The text with one value of its front matter replaced, if it is there.
fn with_value(text: &str, wanted: &str, value: &str) -> String {
    let Some(front) = front_matter(text).0 else {
        return text.to_owned();
    };
    let mut at = front.start;
    for line in text.get(front).unwrap_or_default().split_inclusive('\n') {
        let bare = line.trim_end_matches(['\r', '\n']);
        if bare.split_once(':').is_some_and(|(key, _)| key == wanted) {
            return splice(
                text,
                at + wanted.len() + 1..at + bare.len(),
                &format!(" {value}"),
            );
        }
        at += line.len();
    }
    text.to_owned()
}

/// Local, to the second, without zone: as in the front matter of the facts.
pub(super) fn stamp(at: &Zoned) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}
