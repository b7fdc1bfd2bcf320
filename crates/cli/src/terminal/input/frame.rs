//! Frames around attached text, with descriptions that a terminal shows in one line.

use adjutant_core::attachment;

use crate::terminal::display::clean_line;

/// Returns the text in a frame. `what` describes it, such as `file "notes.txt"`.
pub(crate) fn framed(what: &str, text: &str) -> String {
    attachment::framed(&clean_line(what), text)
}

#[cfg(test)]
mod tests {
    use super::framed;

    #[test]
    fn a_description_is_one_line() {
        assert!(framed("file \"a\nb\"", "x").contains("file \"a b\""));
    }
}
