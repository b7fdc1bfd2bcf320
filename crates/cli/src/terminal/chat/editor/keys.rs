use adjutant_core::limits::MESSAGE_BYTES_MAX;
use crossterm::event::Event;
use reedline::{
    EditCommand, EditMode, Emacs, KeyCode, KeyModifiers, PromptEditMode, ReedlineEvent,
    ReedlineRawEvent, default_emacs_keybindings,
};

use super::paste::Pastes;
use super::{complete, host};
use crate::terminal::display::clean;

/// Key bindings of a shell (emacs mode), pastes as one piece of text, and keys that the chat
/// handles.
pub(super) struct KeyBindings {
    emacs: Emacs,
    pastes: Pastes,
}

impl KeyBindings {
    pub(super) fn new(pastes: Pastes) -> Self {
        let mut keys = default_emacs_keybindings();
        let (control, alt, shift) = (
            KeyModifiers::CONTROL,
            KeyModifiers::ALT,
            KeyModifiers::SHIFT,
        );
        let newline = || ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
        let host = |command: &str| ReedlineEvent::ExecuteHostCommand(command.to_owned());
        // Four keys, because terminals differ in which of them they report as more than Enter.
        keys.add_binding(alt, KeyCode::Enter, newline());
        keys.add_binding(shift, KeyCode::Enter, newline());
        keys.add_binding(control, KeyCode::Enter, newline());
        keys.add_binding(control, KeyCode::Char('j'), newline());
        keys.add_binding(control, KeyCode::Char('o'), host(host::EDIT));
        keys.add_binding(alt, KeyCode::Char('t'), host(host::THINKING));
        // Tab opens the menu; in an open menu it goes to the next entry.
        let next = ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu(complete::MENU.to_owned()),
            ReedlineEvent::MenuNext,
        ]);
        keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, next);
        keys.add_binding(shift, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
        Self {
            emacs: Emacs::new(keys),
            pastes,
        }
    }
}

impl EditMode for KeyBindings {
    fn parse_event(&mut self, event: ReedlineRawEvent) -> ReedlineEvent {
        match Event::from(event) {
            Event::Paste(text) if text.len() > MESSAGE_BYTES_MAX => {
                ReedlineEvent::ExecuteHostCommand(host::TOO_LONG.to_owned())
            }
            Event::Paste(text) => {
                // The text is echoed while it is edited: a control sequence in it would be obeyed
                // by the terminal.
                let text = clean(&text.replace("\r\n", "\n").replace('\r', "\n"));
                ReedlineEvent::Edit(vec![EditCommand::InsertString(self.pastes.shorten(&text))])
            }
            event => match ReedlineRawEvent::try_from(event) {
                Ok(event) => self.emacs.parse_event(event),
                // A key release, reported by some terminals beside the press.
                Err(()) => ReedlineEvent::None,
            },
        }
    }

    fn edit_mode(&self) -> PromptEditMode {
        self.emacs.edit_mode()
    }
}
