//! Rust source as tokens: as much of them as is needed to find names. What stands in comments and
//! literals is left out.

/// One token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::check) enum Token<'a> {
    /// A name or a keyword, without the `r#` of a raw one.
    Word(&'a str),
    /// `::`.
    Path,
    /// Any other character, such as `{`.
    Sign(char),
    /// A literal.
    Literal,
}

/// Reads a file's tokens.
pub(in crate::check) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let (token, length) = next(rest, first);
        tokens.extend(token);
        // Whatever was unterminated ends with the file.
        rest = rest.get(length..).unwrap_or_default();
    }
    tokens
}

/// Returns the token that a source begins with, if that is one, and how long it is in bytes.
fn next(source: &str, first: char) -> (Option<Token<'_>>, usize) {
    if source.starts_with("//") {
        return (None, source.find('\n').unwrap_or(source.len()));
    }
    if source.starts_with("/*") {
        return (None, block_comment(source));
    }
    if source.starts_with("::") {
        return (Some(Token::Path), 2);
    }
    if let Some(length) = string(source) {
        return (Some(Token::Literal), length);
    }
    if first == '\'' {
        return match character(source) {
            Some(length) => (Some(Token::Literal), length),
            // The name of a lifetime is no name of an item.
            None => (None, 1 + word(&source[1..])),
        };
    }
    if first.is_ascii_digit() {
        return (Some(Token::Literal), word(source));
    }
    if first == '_' || first.is_alphabetic() {
        let raw = source.strip_prefix("r#").filter(|rest| word(rest) > 0);
        let (start, text) = raw.map_or((0, source), |rest| (2, rest));
        let length = word(text);
        return (Some(Token::Word(&text[..length])), start + length);
    }
    (
        (!first.is_whitespace()).then_some(Token::Sign(first)),
        first.len_utf8(),
    )
}

fn word(source: &str) -> usize {
    source
        .find(|c: char| c != '_' && !c.is_alphanumeric())
        .unwrap_or(source.len())
}

/// Returns the length of a block comment; they nest.
fn block_comment(source: &str) -> usize {
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

/// Returns the length of the string literal that a source begins with, whatever its prefix.
fn string(source: &str) -> Option<usize> {
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
    Some(prefix.len() + 1 + until(&text[1..], '"'))
}

/// Returns the length of the character or byte literal that a source begins with. `None`: it is a
/// lifetime.
fn character(source: &str) -> Option<usize> {
    let text = source.strip_prefix('\'')?;
    if text.starts_with('\\') {
        return Some(1 + until(text, '\''));
    }
    let length = text.chars().next()?.len_utf8();
    text[length..].starts_with('\'').then_some(length + 2)
}

/// Returns how long it is until after `end`, where a backslash takes the next character's meaning
/// away.
fn until(text: &str, end: char) -> usize {
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
            if let Token::Word(word) = token {
                Some(word)
            } else {
                None
            }
        };
        tokens(source).into_iter().filter_map(word).collect()
    }

    #[test]
    fn what_comments_and_literals_say_is_no_name() {
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
            [Token::Word("a"), Token::Path, Token::Word("b")]
        );
    }
}
