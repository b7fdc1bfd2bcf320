//! How text is styled: with attributes and one of the terminal's own colours, so that it can be read on light and dark.

use termimad::MadSkin;
use termimad::crossterm::style::{Attribute, Color};

/// Styles of an answer.
pub(super) struct Look {
    /// Whether there are any. Without, what was written shows them: `**bold**`.
    pub(super) styled: bool,
    pub(super) skin: MadSkin,
}

impl Look {
    pub(super) fn new(styled: bool) -> Self {
        let mut skin = MadSkin::no_style();
        if styled {
            skin.bold.add_attr(Attribute::Bold);
            skin.italic.add_attr(Attribute::Italic);
            skin.strikeout.add_attr(Attribute::CrossedOut);
            // ANSI 6, which every theme makes readable on its own background; 14, the bright one, vanishes on white.
            skin.inline_code.set_fg(Color::DarkCyan);
            for (depth, header) in skin.headers.iter_mut().enumerate() {
                header.compound_style.add_attr(Attribute::Bold);
                if depth < 2 {
                    header.compound_style.add_attr(Attribute::Underlined);
                }
            }
        } else {
            skin.limit_to_ascii();
        }
        Self { styled, skin }
    }

    /// A line of code.
    pub(super) fn code(&self, line: &str) -> String {
        if self.styled && !line.is_empty() {
            self.skin.inline_code.apply_to(line).to_string()
        } else {
            line.to_owned()
        }
    }
}
