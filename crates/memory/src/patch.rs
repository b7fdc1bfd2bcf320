//! What a change did to the bytes of a file, and the way back.

use adjutant_core::FilePatch;
use sha2::{Digest, Sha256};

use crate::key_fact::document::splice;

/// The smallest replacement that makes `after` of `before`.
pub(crate) fn between(before: &str, after: &str) -> FilePatch {
    let mut at = before
        .bytes()
        .zip(after.bytes())
        .take_while(|(one, other)| one == other)
        .count();
    while !before.is_char_boundary(at) {
        at -= 1;
    }
    let (old, new) = (
        before.get(at..).unwrap_or_default(),
        after.get(at..).unwrap_or_default(),
    );
    let mut same = old
        .bytes()
        .rev()
        .zip(new.bytes().rev())
        .take_while(|(one, other)| one == other)
        .count();
    while !old.is_char_boundary(old.len() - same) {
        same -= 1;
    }
    FilePatch {
        after: digest(after),
        at,
        removed: old.get(..old.len() - same).unwrap_or_default().to_owned(),
        inserted: new.len() - same,
    }
}

/// The file as it was before the change, if it is still as the change left it.
pub(crate) fn taken_back(text: &str, patch: &FilePatch) -> Option<String> {
    let end = patch.at.checked_add(patch.inserted)?;
    (digest(text) == patch.after && text.get(patch.at..end).is_some())
        .then(|| splice(text, patch.at..end, &patch.removed))
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_taken_back_to_the_byte_or_not_at_all() {
        for (before, after) in [
            ("", "a"),
            ("a", ""),
            ("same", "same"),
            ("aaa", "aa"),
            ("aba", "ababa"),
            ("é", "è"),
            ("x漢y", "x字y"),
            ("\u{1F600}", "\u{1F601}"),
            ("a\r\nb", "a\nb"),
        ] {
            let patch = between(before, after);
            assert_eq!(
                taken_back(after, &patch).as_deref(),
                Some(before),
                "{before:?} {after:?}"
            );
            assert_eq!(taken_back(&format!("{after} "), &patch), None);
        }
    }
}
