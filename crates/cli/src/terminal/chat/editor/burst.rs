//! Bursts: keys that arrive faster than a person types. A terminal that marks no pastes sends a
//! pasted text as such keys, and so does a program that writes to the terminal.

use std::time::{Duration, Instant};

use adjutant_core::limits::MESSAGE_BYTES_MAX;
use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, poll, read};

use crate::terminal::tty;

/// Two keys within this time come from a program: a person who types fast takes ten times as long.
const SAME_BURST: Duration = Duration::from_millis(5);

/// Time after an Enter of a program in which more may follow.
const MORE_WITHIN: Duration = Duration::from_millis(50);

/// Silence that ends a burst. Terminals hand a long text over in pieces, and this machine may be
/// busy.
const PAUSE: Duration = Duration::from_millis(100);

/// The text that followed an Enter in a burst.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rest {
    /// The text, without the Enter that ended it.
    pub(super) text: String,
    /// True if the last key was Enter.
    pub(super) entered: bool,
    /// True if Ctrl-C was among the keys.
    pub(super) interrupted: bool,
    /// The terminal's last size, if it was changed meanwhile.
    pub(super) resized: Option<(u16, u16)>,
}

/// Recognises a burst by the time between two keys.
#[derive(Debug, Default)]
pub(super) struct Bursts {
    last_key: Option<Instant>,
}

impl Bursts {
    /// Records that a key arrived.
    pub(super) fn key(&mut self) {
        self.last_key = Some(Instant::now());
    }

    /// Returns what follows an Enter in the same burst. `None`: a person pressed it, or nothing
    /// follows. Without a text, only a new size of the terminal followed it, or the line feed of the
    /// same Enter.
    pub(super) fn after_enter(&self) -> Option<Rest> {
        let wait = match self.last_key {
            Some(at) if at.elapsed() < SAME_BURST => MORE_WITHIN,
            // Input that is there already was typed before the line could be read.
            _ => Duration::ZERO,
        };
        if !has_more(wait) {
            return None;
        }
        let mut typed = TypedText::after_enter();
        let mut rest = Rest::default();
        while has_more(PAUSE) {
            let Ok(event) = read() else { break };
            match event {
                Event::Resize(columns, rows) => rest.resized = Some((columns, rows)),
                event if is_interrupt(&event) => {
                    rest.interrupted = true;
                    return Some(rest);
                }
                event => typed.push(event),
            }
        }
        rest.entered = typed.entered;
        rest.text = typed.text;
        if rest.entered {
            rest.text.pop();
        }
        Some(rest)
    }
}

/// Returns true if there is more input within this time.
fn has_more(wait: Duration) -> bool {
    if poll(wait).unwrap_or(false) {
        return true;
    }
    // The reader of keys takes a thousand bytes at a time and is woken by new input alone: what it
    // has left behind would wait for the next key.
    tty::wake_reader_for_rest() && poll(PAUSE).unwrap_or(false)
}

fn is_interrupt(event: &Event) -> bool {
    matches!(event, Event::Key(key)
        if key.code == KeyCode::Char('c') && key.modifiers == KeyModifiers::CONTROL)
}

/// Returns the text of all input that is there.
pub(super) fn typed_meanwhile() -> String {
    let mut typed = TypedText::default();
    // A longer text is refused as a message anyway.
    while typed.text.len() <= MESSAGE_BYTES_MAX && poll(Duration::ZERO).unwrap_or(false) {
        let Ok(event) = read() else { break };
        typed.push(event);
    }
    typed.text
}

/// Text made of keys.
#[derive(Debug, Default)]
struct TypedText {
    text: String,
    /// True if the last key was Enter.
    entered: bool,
    /// True if the last key was a carriage return, which a line feed may follow.
    returned: bool,
}

impl TypedText {
    fn after_enter() -> Self {
        Self {
            returned: true,
            ..Self::default()
        }
    }

    fn push(&mut self, event: Event) {
        let returned = std::mem::take(&mut self.returned);
        match event {
            Event::Paste(text) => {
                self.entered = false;
                self.add(&text);
            }
            Event::Key(key) if key.kind == KeyEventKind::Release => self.returned = returned,
            Event::Key(key) => {
                let entered = std::mem::take(&mut self.entered);
                match key.code {
                    // Ctrl-J is a line feed, which some terminals send for Enter.
                    KeyCode::Char('j') if key.modifiers == KeyModifiers::CONTROL => {
                        // CR LF is one end of a line.
                        if returned {
                            self.entered = entered;
                        } else {
                            self.add("\n");
                        }
                    }
                    KeyCode::Char(c) if !key.modifiers.contains(KeyModifiers::CONTROL) => {
                        self.add(c.encode_utf8(&mut [0; 4]));
                    }
                    KeyCode::Enter => {
                        (self.entered, self.returned) = (true, true);
                        self.add("\n");
                    }
                    KeyCode::Tab => self.add("\t"),
                    KeyCode::Backspace => {
                        self.text.pop();
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Adds text. Of a text that is longer than a message may be, enough is kept to show that.
    fn add(&mut self, text: &str) {
        if self.text.len() <= MESSAGE_BYTES_MAX {
            self.text.push_str(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::KeyEvent;

    #[test]
    fn keys_become_the_text_that_was_pasted() {
        let key = |code| Event::Key(KeyEvent::new(code, KeyModifiers::NONE));
        let line_feed = Event::Key(KeyEvent::new(KeyCode::Char('j'), KeyModifiers::CONTROL));
        let enter = || key(KeyCode::Enter);
        let a = || key(KeyCode::Char('a'));
        for (events, text, entered) in [
            (vec![a(), enter(), a()], "a\na", false),
            (vec![a(), enter()], "a\n", true),
            // The line feed belongs to the Enter in front of it.
            (
                vec![line_feed.clone(), a(), enter(), line_feed.clone()],
                "a\n",
                true,
            ),
            (vec![a(), line_feed.clone(), line_feed], "a\n\n", false),
            (
                vec![a(), key(KeyCode::Backspace), key(KeyCode::Tab)],
                "\t",
                false,
            ),
            (
                vec![Event::Paste("b\nc".to_owned()), enter()],
                "b\nc\n",
                true,
            ),
        ] {
            let mut typed = TypedText::after_enter();
            for event in events.clone() {
                typed.push(event);
            }
            assert_eq!(
                (typed.text.as_str(), typed.entered),
                (text, entered),
                "{events:?}"
            );
        }
    }
}
