use adjutant_core::limits::MESSAGE_BYTES_MAX;
use crossterm::event::{Event, KeyEventKind};
use reedline::{
    EditCommand, EditMode, Emacs, KeyCode, KeyModifiers, Keybindings, PromptEditMode,
    ReedlineEvent, ReedlineRawEvent, Vi, default_emacs_keybindings, default_vi_insert_keybindings,
    default_vi_normal_keybindings, default_vi_visual_keybindings,
};

use super::burst::Bursts;
use super::paste::Pastes;
use super::{complete, host};
use crate::config::EditorKeys;
use crate::terminal::display::clean;
use crate::terminal::tty::forget_typed;

/// Key bindings of a shell (emacs or vi), pastes as one piece of text, and keys that the chat
/// handles.
pub(super) struct KeyBindings {
    mode: Box<dyn EditMode>,
    pastes: Pastes,
    bursts: Bursts,
}

impl KeyBindings {
    pub(super) fn new(keys: EditorKeys, pastes: Pastes) -> Self {
        let mode: Box<dyn EditMode> = match keys {
            EditorKeys::Emacs => Box::new(Emacs::new(with_own(default_emacs_keybindings()))),
            EditorKeys::Vi => Box::new(Vi::new(
                with_own(default_vi_insert_keybindings()),
                with_own(default_vi_normal_keybindings()),
                with_own(default_vi_visual_keybindings()),
            )),
        };
        Self {
            mode,
            pastes,
            bursts: Bursts::default(),
        }
    }

    /// Returns the edit that inserts a pasted text.
    fn insert(&self, before: &str, text: &str) -> ReedlineEvent {
        if text.len() > MESSAGE_BYTES_MAX {
            return ReedlineEvent::ExecuteHostCommand(host::TOO_LONG.to_owned());
        }
        // The text is echoed while it is edited: a control sequence in it would be obeyed by the
        // terminal.
        let text = clean(&text.replace("\r\n", "\n").replace('\r', "\n"));
        let inserted = [before, &self.pastes.shorten(&text)].concat();
        ReedlineEvent::Edit(vec![EditCommand::InsertString(inserted)])
    }

    /// Returns the event of an Enter: a line break, if more keys of the same burst follow it.
    fn enter(&mut self, event: Event) -> ReedlineEvent {
        let Some(rest) = self.bursts.after_enter() else {
            return self.key(event);
        };
        if rest.interrupted {
            // Drops pieces that are still on their way: they belong to the text that is given up.
            forget_typed();
            return ReedlineEvent::CtrlC;
        }
        let mut events = Vec::new();
        let follows = !rest.text.is_empty();
        if follows {
            events.push(self.insert("\n", &rest.text));
        }
        if let Some((columns, rows)) = rest.resized {
            events.push(ReedlineEvent::Resize(columns, rows));
        }
        if rest.entered || !follows {
            events.push(self.key(event));
        }
        ReedlineEvent::Multiple(events)
    }

    fn key(&mut self, event: Event) -> ReedlineEvent {
        match ReedlineRawEvent::try_from(event) {
            Ok(event) => self.mode.parse_event(event),
            // A key release, reported by some terminals beside the press.
            Err(()) => ReedlineEvent::None,
        }
    }
}

/// Adds the keys that are the same in every mode.
fn with_own(mut keys: Keybindings) -> Keybindings {
    let (none, control, alt, shift) = (
        KeyModifiers::NONE,
        KeyModifiers::CONTROL,
        KeyModifiers::ALT,
        KeyModifiers::SHIFT,
    );
    let edit = |command: EditCommand| ReedlineEvent::Edit(vec![command]);
    let host = |command: &str| ReedlineEvent::ExecuteHostCommand(command.to_owned());
    // Four keys, because terminals differ in which of them they report as more than Enter.
    for (modifier, key) in [
        (alt, KeyCode::Enter),
        (shift, KeyCode::Enter),
        (control, KeyCode::Enter),
        (control, KeyCode::Char('j')),
    ] {
        keys.add_binding(modifier, key, edit(EditCommand::InsertNewline));
    }
    keys.add_binding(control, KeyCode::Char('o'), host(host::EDIT));
    keys.add_binding(alt, KeyCode::Char('t'), host(host::THINKING));
    // The usual key for suspending a process, on systems that have that.
    #[cfg(unix)]
    keys.add_binding(control, KeyCode::Char('z'), host(host::SUSPEND));
    // Most terminals report Ctrl-_ as Ctrl-7, and some send it for Ctrl-/.
    for key in ['7', '_', '/'] {
        keys.add_binding(control, KeyCode::Char(key), edit(EditCommand::Undo));
    }
    keys.add_binding(control, KeyCode::Char('g'), edit(EditCommand::Redo));
    // Tab opens the menu; in an open menu it goes to the next entry.
    let next = ReedlineEvent::UntilFound(vec![
        ReedlineEvent::Menu(complete::MENU.to_owned()),
        ReedlineEvent::MenuNext,
    ]);
    keys.add_binding(none, KeyCode::Tab, next);
    keys.add_binding(shift, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
    keys
}

impl EditMode for KeyBindings {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        let event = Event::from(event);
        match &event {
            Event::Paste(text) => self.insert("", text),
            Event::Key(key)
                if key.code == KeyCode::Enter
                    && key.modifiers == KeyModifiers::NONE
                    && key.kind != KeyEventKind::Release =>
            {
                self.enter(event)
            }
            Event::Key(_) => {
                self.bursts.key();
                self.key(event)
            }
            _ => self.key(event),
        }
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.mode.edit_mode()
    }
}
