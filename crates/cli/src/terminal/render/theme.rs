//! Styles: attributes and the terminal's own palette, which are readable on light and dark
//! backgrounds.

use termimad::crossterm::style::{Attribute, Color};
use termimad::{CompoundStyle, MadSkin};

use super::code::{Code, Kind};
use crate::terminal::display::clean;

/// Styles of an answer.
pub(super) struct Theme {
    /// False shows the Markdown marks instead: `**bold**`.
    pub(super) styled: bool,
    pub(super) skin: MadSkin,
}

impl Theme {
    pub(super) fn new(styled: bool) -> Self {
        let mut skin = MadSkin::no_style();
        if styled {
            skin.bold.add_attr(Attribute::Bold);
            skin.italic.add_attr(Attribute::Italic);
            skin.strikeout.add_attr(Attribute::CrossedOut);
            // ANSI 6 is readable on the background of every palette; its bright variant, 14,
            // vanishes on white.
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

    /// Styles a line of code and removes its control characters.
    pub(super) fn code(&self, code: &mut Code, line: &str) -> String {
        let line = clean(line);
        if !self.styled {
            return line;
        }
        code.pieces(&line)
            .into_iter()
            .map(|(kind, piece)| self.piece(kind, piece))
            .collect()
    }

    /// Returns the language of a code block for the line above it, if it has one.
    pub(super) fn language(&self, info: &str) -> Option<String> {
        let mut style = CompoundStyle::default();
        style.add_attr(Attribute::Dim);
        (self.styled && !info.is_empty()).then(|| style.apply_to(info).to_string())
    }

    fn piece(&self, kind: Kind, piece: &str) -> String {
        let style = &self.skin.inline_code;
        let style = match kind {
            Kind::Plain => *style,
            Kind::Comment => {
                let mut style = *style;
                style.add_attr(Attribute::Dim);
                style
            }
            // ANSI 2 and 5, and 1 for removed lines: besides 6, the ones readable on black and on
            // white.
            Kind::Text | Kind::Added => CompoundStyle::with_fg(Color::DarkGreen),
            Kind::Number | Kind::Keyword => CompoundStyle::with_fg(Color::DarkMagenta),
            Kind::Removed => CompoundStyle::with_fg(Color::DarkRed),
        };
        if piece.trim().is_empty() {
            piece.to_owned()
        } else {
            style.apply_to(piece).to_string()
        }
    }
}
