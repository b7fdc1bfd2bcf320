//! Parts of a text between blanks, and the punctuation around them.

/// Returns true for a character that stands around words and is no part of one.
pub(super) fn is_around(c: char) -> bool {
    matches!(
        c,
        '.' | ','
            | ';'
            | ':'
            | '!'
            | '?'
            | '"'
            | '\''
            | '('
            | ')'
            | '['
            | ']'
            | '{'
            | '}'
            | '<'
            | '>'
            | '“'
            | '”'
            | '„'
            | '‘'
            | '’'
            | '«'
            | '»'
            | '…'
            | '*'
            | '`'
            | '-'
            | '–'
            | '—'
            | '•'
    )
}

/// Returns a part of a text without the punctuation around it.
pub(super) fn bare(chunk: &str) -> &str {
    chunk.trim_matches(is_around)
}
