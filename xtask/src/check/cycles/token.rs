//! A small tokenizer for Rust source, just enough to find names. Comments are skipped, and literals
//! have no content.

/// A token of Rust source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::check) enum Token<'a> {
    /// An identifier or keyword, without the `r#` of a raw identifier.
    Ident(&'a str),
    /// The path separator `::`.
    PathSeparator,
    /// Any other single character, such as `{`.
    Punct(char),
    /// A string, character or number literal.
    Literal,
}

/// Splits a source file into tokens.
pub(in crate::check) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let (token, length) = next_token(rest, first);
        tokens.extend(token);
        // An unterminated literal or comment extends to the end of the file.
        rest = rest.get(length..).unwrap_or_default();
    }
    tokens
}

/// Returns the token at the start of the source (`None` for white space, comments and lifetimes)
/// and its length in bytes.
fn next_token(source: &str, first: char) -> (Option<Token<'_>>, usize) {
    if source.starts_with("//") {
        return (None, source.find('\n').unwrap_or(source.len()));
    }
    if source.starts_with("/*") {
        return (None, block_comment_length(source));
    }
    if source.starts_with("::") {
        return (Some(Token::PathSeparator), 2);
    }
    if let Some(length) = string_length(source) {
        return (Some(Token::Literal), length);
    }
    if first == '\'' {
        return match character_length(source) {
            Some(length) => (Some(Token::Literal), length),
            // A lifetime is not the name of an item.
            None => (None, 1 + identifier_length(&source[1..])),
        };
    }
    if first.is_ascii_digit() {
        return (Some(Token::Literal), identifier_length(source));
    }
    if first == '_' || first.is_alphabetic() {
        let raw = source
            .strip_prefix("r#")
            .filter(|rest| identifier_length(rest) > 0);
        let (start, text) = raw.map_or((0, source), |rest| (2, rest));
        let length = identifier_length(text);
        return (Some(Token::Ident(&text[..length])), start + length);
    }
    (
        (!first.is_whitespace()).then_some(Token::Punct(first)),
        first.len_utf8(),
    )
}

fn identifier_length(source: &str) -> usize {
    source
        .find(|c: char| c != '_' && !c.is_alphanumeric())
        .unwrap_or(source.len())
}

/// Returns the length of a block comment. Block comments nest in Rust.
fn block_comment_length(source: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < source.len() {
        let rest = &source.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// Returns the length of the string literal at the start of the source, with any prefix (`b`, `c`,
/// `r#`).
fn string_length(source: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        source.strip_prefix(prefix).is_some_and(|rest| {
            rest.starts_with('"')
                || prefix.ends_with('r') && rest.trim_start_matches('#').starts_with('"')
        })
    })?;
    let text = &source[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = text.len() - text.trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let body = text.get(hashes + 1..)?;
        return Some(
            prefix.len() + hashes + 1 + body.find(&end).map_or(body.len(), |at| at + end.len()),
        );
    }
    Some(prefix.len() + 1 + length_until(&text[1..], '"'))
}

/// Returns the length of the character literal at the start of the source, or `None` if it is a
/// lifetime.
fn character_length(source: &str) -> Option<usize> {
    let text = source.strip_prefix('\'')?;
    if text.starts_with('\\') {
        return Some(1 + length_until(text, '\''));
    }
    let length = text.chars().next()?.len_utf8();
    text[length..].starts_with('\'').then_some(length + 2)
}

/// Returns the length of the text up to and including `end`, skipping characters after a backslash.
fn length_until(text: &str, end: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == end => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<&str> {
        let word = |token| {
            if let Token::Ident(word) = token {
                Some(word)
            } else {
                None
            }
        };
        tokens(source).into_iter().filter_map(word).collect()
    }

    #[test]
    fn comments_and_literals_contain_no_names() {
        assert_eq!(words("a // b\nc /* d /* e */ f */ g"), ["a", "c", "g"]);
        assert_eq!(
            words(r##"a "b \" c" d r"e" r#"f " g"# h b"i" br#"j"# k"##),
            ["a", "d", "h", "k"]
        );
        assert_eq!(
            words(r"a 'b' '\'' '\\' 'ü' c 1_000u64 0xff 1.5e3 d"),
            ["a", "c", "d"]
        );
        assert_eq!(words("a \"never ends"), ["a"]);
    }

    #[test]
    fn a_lifetime_is_neither_a_name_nor_a_character() {
        assert_eq!(
            words("fn f<'a>(x: &'a str, y: &'static u8) -> 'x'"),
            ["fn", "f", "x", "str", "y", "u8"]
        );
    }

    #[test]
    fn names_may_be_raw_and_of_any_alphabet() {
        assert_eq!(words("r#type größe"), ["type", "größe"]);
        assert_eq!(
            tokens("a::b"),
            [Token::Ident("a"), Token::PathSeparator, Token::Ident("b")]
        );
    }
}
