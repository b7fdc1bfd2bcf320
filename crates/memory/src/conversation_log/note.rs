//! The note of a conversation: its name, its front matter, and the position up to which it is
//! written.

use std::fmt::Write as _;

use adjutant_core::{ConversationId, Role, TranscriptMessage, TurnId};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::conversation::ConversationLog;
use super::quotation::{escaped, quoted, visible_line};
use crate::VaultError;
use crate::text::{front_matter_value, insertion, on_one_line, splice, timestamp};
use crate::vault::markdown::line_ending;
use crate::vault::walk::{list_notes, read_heads};
use crate::vault::{NotePath, StoredText, Vault, path};

/// Characters of a title in a file name.
const NAME_CHARS_MAX: usize = 60;
/// Bytes of a title in a file name: with date and number, every file system accepts it.
const NAME_BYTES_MAX: usize = 180;
/// Number of notes with the same name that are tried.
const NUMBERS_MAX: usize = 1_000;

/// The folder and the name of a conversation's note, and the zone of its times.
#[derive(Debug)]
pub(super) struct NoteLocation {
    /// The folder, relative to the vault; empty is the vault itself.
    pub(super) folder: String,
    name: String,
    zone: TimeZone,
}

/// A note that holds a conversation.
#[derive(Debug)]
pub(super) struct ExistingNote {
    pub(super) path: NotePath,
    pub(super) stored: StoredText,
    /// The index of the first message that it does not hold.
    pub(super) next: usize,
}

/// The part of a conversation that goes into one note.
#[derive(Debug)]
pub(super) struct RenderedPart {
    text: String,
    /// The position up to which the note is written, as its front matter has it.
    position: String,
    /// Number of messages in it.
    pub(super) messages: usize,
    /// Number of messages that did not fit.
    pub(super) left: usize,
}

/// The position up to which a note is written: the message of this number, from 1, of a turn.
/// Messages before the first turn have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LogPosition {
    turn: Option<TurnId>,
    number: usize,
}

impl LogPosition {
    fn of_message(messages: &[TranscriptMessage], at: usize) -> Option<Self> {
        let turn = messages.get(at)?.turn;
        let number = messages
            .iter()
            .take(at + 1)
            .filter(|message| message.turn == turn)
            .count();
        Some(Self { turn, number })
    }

    fn to_text(self) -> String {
        match self.turn {
            Some(turn) => format!("{turn}/{}", self.number),
            None => format!("before/{}", self.number),
        }
    }

    fn parse(text: &str) -> Option<Self> {
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

    /// Returns the index of the message behind the position. If its turn is gone, the first message
    /// of a later turn: their ids are in order of time.
    fn next(self, messages: &[TranscriptMessage]) -> usize {
        let is_of_turn =
            |at: &usize| messages.get(*at).map(|message| message.turn) == Some(self.turn);
        let of_turn: Vec<usize> = (0..messages.len()).filter(is_of_turn).collect();
        let last = of_turn
            .get(self.number.saturating_sub(1))
            .or(of_turn.last());
        match last {
            Some(last) => last + 1,
            // Messages before the first turn have none, which is less than any.
            None => messages
                .iter()
                .position(|message| message.turn > self.turn)
                .unwrap_or(messages.len()),
        }
    }
}

impl NoteLocation {
    pub(super) fn new(
        folder: &str,
        log: &ConversationLog,
        zone: &TimeZone,
    ) -> Result<Self, VaultError> {
        let folder = path::folder(folder)?.unwrap_or_default();
        let date = log.started.to_zoned(zone.clone()).date();
        let title = file_name(&log.title);
        let name = if title.is_empty() {
            format!("{date} Conversation")
        } else {
            format!("{date} {title}")
        };
        let location = Self {
            folder,
            name,
            zone: zone.clone(),
        };
        // A folder that no note can be in is reported before anything is written.
        location.path(1)?;
        Ok(location)
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

    /// Returns a path that no note has.
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

    /// Renders the messages from one on, as many as fit into `capacity` bytes; at least one.
    pub(super) fn render(
        &self,
        log: &ConversationLog,
        from: usize,
        capacity: usize,
    ) -> RenderedPart {
        let local = |at: Timestamp| at.to_zoned(self.zone.clone());
        let before = from
            .checked_sub(1)
            .and_then(|at| log.messages.get(at))
            .and_then(|message| message.at);
        let mut day: Date = local(before.unwrap_or(log.started)).date();
        let (mut text, mut messages, mut end) = (String::new(), 0, from);
        for message in log.messages.get(from..).unwrap_or_default() {
            let mut rendered = String::new();
            if is_logged(message) {
                let at = message.at.map(local);
                write_message(&mut rendered, log, message, at.as_ref(), day);
                day = at.map_or(day, |at| at.date());
                // A message that is longer than a whole note is written all the same: it is not
                // divided.
                if messages > 0 && text.len() + rendered.len() > capacity {
                    break;
                }
                messages += 1;
            }
            text.push_str(&rendered);
            end += 1;
        }
        let position = end
            .checked_sub(1)
            .and_then(|at| LogPosition::of_message(&log.messages, at))
            .map(LogPosition::to_text);
        let left = log
            .messages
            .get(end..)
            .unwrap_or_default()
            .iter()
            .filter(|message| is_logged(message))
            .count();
        RenderedPart {
            text: text.trim_end().to_owned(),
            position: position.unwrap_or_default(),
            messages,
            left,
        }
    }
}

/// Writes a message: a line with its author, time and tools, and its text as a quotation.
fn write_message(
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
    // Writing to a `String` cannot fail.
    let _ = write!(text, "**{}**{time}", escaped(name));
    let tools: Vec<String> = message
        .tool_calls
        .iter()
        .map(|call| escaped(&call.tool))
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

/// Returns true if a message goes into the note.
pub(super) fn is_logged(message: &TranscriptMessage) -> bool {
    match message.role {
        Role::User | Role::Assistant => {
            !message.content.trim().is_empty() || !message.tool_calls.is_empty()
        }
        Role::System | Role::Tool => false,
    }
}

/// Returns a title as a file name that every file system and Obsidian's links accept: letters,
/// digits, spaces and a few signs.
fn file_name(title: &str) -> String {
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
    for (count, char) in on_one_line(&kept).chars().enumerate() {
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

/// Finds the note of a conversation below the folder. Of several the one that goes furthest.
pub(super) fn find(
    vault: &Vault,
    location: &NoteLocation,
    log: &ConversationLog,
) -> Result<Option<ExistingNote>, VaultError> {
    // As the folder is called on the disk, and wherever a link in the vault leads.
    let inside = vault.settle(&location.inside(&log.id.to_string())?)?;
    let real = vault.locate(&inside)?.real;
    let Some(folder) = real.parent() else {
        return Ok(None);
    };
    let name = inside
        .as_str()
        .rsplit_once('/')
        .map_or("", |(name, _)| name);
    let notes = list_notes(folder, name).notes;
    let mut furthest: Option<(NotePath, usize)> = None;
    for (path, position) in read_heads(&notes, |note, head| {
        Some((note.path.clone(), position_in(head, log.id)?))
    }) {
        let next = position.next(&log.messages);
        if furthest.as_ref().is_none_or(|(_, most)| next > *most) {
            furthest = Some((NotePath::parse(&path)?, next));
        }
    }
    let Some((path, next)) = furthest else {
        return Ok(None);
    };
    // It may be gone by now; then there is none.
    let stored = vault.read_stored(&path)?;
    Ok(stored.map(|stored| ExistingNote { path, stored, next }))
}

/// Returns the position up to which a note is written, if it is one of this conversation.
fn position_in(text: &str, id: ConversationId) -> Option<LogPosition> {
    let value = |key: &str| {
        let value = text.get(front_matter_value(text, key)?)?;
        Some(value.trim().trim_matches(['"', '\'']))
    };
    if value("conversation")?.parse() != Ok(id) {
        return None;
    }
    LogPosition::parse(value("logged")?)
}

/// Returns the text of a new note.
pub(super) fn create(
    log: &ConversationLog,
    location: &NoteLocation,
    part: &RenderedPart,
    stamp: &str,
) -> String {
    let title = on_one_line(&log.title);
    let title = if title.is_empty() {
        "Conversation".to_owned()
    } else {
        title
    };
    let created = timestamp(&log.started.to_zoned(location.zone.clone()));
    // A JSON text is a YAML text too; what YAML does not take as it is (C1, surrogates) is not in
    // it.
    let quoted_title = serde_json::Value::from(visible_line(&title));
    format!(
        "---\ntype: conversation\ntitle: {quoted_title}\nconversation: {}\ncreated: {created}\nmodified: {stamp}\nlogged: {}\n---\n\n# {}\n\n{}\n",
        log.id,
        part.position,
        escaped(&title),
        part.text
    )
}

/// Returns a note with one more part at its end, in its own line endings.
pub(super) fn add(old: &str, part: &RenderedPart, stamp: &str) -> String {
    let block = part.text.replace('\n', line_ending(old));
    let inserted = insertion(old, old.len(), &block);
    let mut text = format!("{old}{inserted}");
    for (key, value) in [("modified", stamp), ("logged", &part.position)] {
        text = with_front_matter_value(&text, key, value);
    }
    text
}

/// Returns a text with a value of its front matter replaced, if it has the key.
fn with_front_matter_value(text: &str, key: &str, value: &str) -> String {
    match front_matter_value(text, key) {
        Some(range) => splice(text, range, &format!(" {value}")),
        None => text.to_owned(),
    }
}
