//! The undo command in messages about changes.

/// The undo command in messages of the library.
const UNDO: &str = "undo: /undo";

/// The way to undo for users of the service, who have no terminal.
pub(super) const ON_PAGE: &str = "Memory on the page, or POST /v1/memory/undo";

/// Replaces the undo command in a message.
pub(super) fn with_undo(words: &str, undo: &str) -> String {
    match words.rsplit_once(UNDO) {
        Some((before, after)) => format!("{before}undo: {undo}{after}"),
        None => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_is_named_once_and_at_the_end() {
        let words = "✎ remembered: he types undo: /undo a lot  (undo: /undo)";
        let renamed = "✎ remembered: he types undo: /undo a lot  (undo: adjutant memory undo)";
        assert_eq!(with_undo(words, "adjutant memory undo"), renamed);
        assert_eq!(with_undo("Already known: x", "y"), "Already known: x");
    }
}
