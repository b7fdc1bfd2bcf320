//! Patches between two texts of a file, to revert a change to the byte.

use adjutant_core::FilePatch;

use crate::text::{sha256_hex, splice};

/// Returns the smallest replacement that makes `after` of `before`.
pub(crate) fn diff(before: &str, after: &str) -> FilePatch {
    let mut at = before
        .bytes()
        .zip(after.bytes())
        .take_while(|(one, other)| one == other)
        .count();
    // Two characters may have their first bytes in common.
    while !before.is_char_boundary(at) {
        at -= 1;
    }
    let (old, new) = (
        before.get(at..).unwrap_or_default(),
        after.get(at..).unwrap_or_default(),
    );
    // From the end, and only behind the common beginning, so that the two parts do not overlap.
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

/// Returns the text before a change. `None` if the text is not as the change left it.
pub(crate) fn revert(text: &str, patch: &FilePatch) -> Option<String> {
    let end = patch.at.checked_add(patch.inserted)?;
    // The digest is of the whole file: any other edit since would shift the place.
    (digest(text) == patch.after && text.get(patch.at..end).is_some())
        .then(|| splice(text, patch.at..end, &patch.removed))
}

fn digest(text: &str) -> String {
    sha256_hex(text.as_bytes(), 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_reverted_to_the_byte_or_not_at_all() {
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
            let patch = diff(before, after);
            assert_eq!(
                revert(after, &patch).as_deref(),
                Some(before),
                "{before:?} {after:?}"
            );
            assert_eq!(revert(&format!("{after} "), &patch), None);
        }
    }
}
