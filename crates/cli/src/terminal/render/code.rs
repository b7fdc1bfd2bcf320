//! Syntax colours for code blocks: comments, strings, numbers and keywords, recognised line by line
//! as they stream in.
//!
//! Full grammars, as editors have them, are megabytes, and the library for them builds on crates
//! that are no longer maintained. A table of marks and keywords per language is enough for the few
//! lines in an answer.

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Comment,
    Text,
    Number,
    Keyword,
    /// An added line of a patch.
    Added,
    /// A removed line of a patch.
    Removed,
}

/// Marks and keywords of a language.
struct Language {
    /// Names of the language in the info string of a fence, and of files in it.
    names: &'static str,
    /// Marks that begin a comment up to the end of the line.
    line_comments: &'static [&'static str],
    block_comment: Option<(&'static str, &'static str)>,
    /// Quotes of single-line strings. A backslash escapes the next character.
    quotes: &'static [char],
    /// Quotes of strings that span lines.
    long_quotes: &'static [&'static str],
    keywords: &'static str,
}

const NO_LANGUAGE: Language = Language {
    names: "",
    line_comments: &[],
    block_comment: None,
    quotes: &[],
    long_quotes: &[],
    keywords: "",
};

const C: Language = Language {
    line_comments: &["//"],
    block_comment: Some(("/*", "*/")),
    quotes: &['"', '\''],
    ..NO_LANGUAGE
};

const HASH: Language = Language {
    line_comments: &["#"],
    quotes: &['"', '\''],
    ..NO_LANGUAGE
};

const LANGUAGES: &[Language] = &[
    Language {
        names: "rust rs",
        // A quote may also begin a lifetime.
        quotes: &['"'],
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod \
                   move mut pub ref return self Self static struct super trait true type unsafe use where while",
        ..C
    },
    Language {
        names: "python py python3",
        long_quotes: &["\"\"\"", "'''"],
        keywords: "and as assert async await break class continue def del elif else except False finally for from global if \
                   import in is lambda match None nonlocal not or pass raise return True try while with yield",
        ..HASH
    },
    Language {
        names: "javascript js jsx typescript ts tsx mjs",
        long_quotes: &["`"],
        keywords: "abstract any as async await boolean break case catch class const continue default delete do else enum export \
                   extends false finally for from function if implements import in instanceof interface keyof let new null \
                   number of private public readonly return static string super switch this throw true try type typeof \
                   undefined var void while yield",
        ..C
    },
    Language {
        names: "go golang",
        long_quotes: &["`"],
        keywords: "break case chan const continue default defer else fallthrough false for func go goto if import interface map \
                   nil package range return select struct switch true type var",
        ..C
    },
    Language {
        names: "c h cpp c++ cc hpp objc cuda",
        keywords: "auto bool break case catch char class const constexpr continue default delete do double else enum extern \
                   false float for if include inline int long namespace new nullptr NULL private protected public return \
                   short signed sizeof static struct switch template this throw true try typedef typename union unsigned \
                   using virtual void while",
        ..C
    },
    Language {
        names: "java kotlin kt scala csharp cs c# swift dart php groovy",
        long_quotes: &["\"\"\""],
        keywords: "abstract as async await boolean break case catch class const continue data def default do double else enum \
                   extends false final finally float for foreach fun func function guard if implements import in init int \
                   interface internal is let long namespace new nil null object override package private protected public \
                   return self static string struct super switch this throw throws true try val var void when where while \
                   with yield",
        ..C
    },
    Language {
        names: "sh bash zsh shell console fish powershell ps1 make makefile dockerfile",
        keywords: "case do done elif else esac exit export fi for function if in local return set then until while FROM RUN COPY \
                   CMD ENTRYPOINT ENV WORKDIR",
        ..HASH
    },
    Language {
        names: "ruby rb elixir ex perl pl r julia jl nix",
        keywords: "alias and begin break case class def defmodule do else elsif end ensure false for fn function if in inherit let \
                   local module my new next nil not or rec require rescue return self sub then true unless until use when while \
                   with yield",
        ..HASH
    },
    Language {
        names: "yaml yml toml ini conf env",
        keywords: "true false null yes no",
        ..HASH
    },
    Language {
        names: "json jsonc json5 ndjson",
        keywords: "true false null",
        ..C
    },
    Language {
        names: "css scss less",
        line_comments: &[],
        ..C
    },
    Language {
        names: "sql postgresql sqlite mysql",
        line_comments: &["--"],
        block_comment: Some(("/*", "*/")),
        quotes: &['\'', '"'],
        keywords: "add all alter and as asc begin between by case check column commit constraint create default delete desc \
                   distinct drop else end exists false foreign from full group having if in index inner insert into is join key \
                   left like limit not null on or order outer primary references returning right rollback select set table \
                   then true union unique update using values view when where with",
        ..NO_LANGUAGE
    },
    Language {
        names: "lua haskell hs elm",
        line_comments: &["--"],
        quotes: &['"'],
        keywords: "and break case class data deriving do else elseif end false for function if import in instance let local module \
                   newtype nil not of or repeat return then true type until where while",
        ..NO_LANGUAGE
    },
    Language {
        names: "html xml svg vue",
        block_comment: Some(("<!--", "-->")),
        quotes: &['"'],
        ..NO_LANGUAGE
    },
];

/// Splits the lines of a code block into tokens.
pub(super) struct Code {
    grammar: Grammar,
    /// The mark that ends a comment or string which an earlier line began.
    open: Option<(&'static str, Kind)>,
}

enum Grammar {
    Of(&'static Language),
    Patch,
    Unknown,
}

impl Code {
    /// Creates the tokenizer for the info string of a fence, whose first word is the language.
    pub(super) fn new(info: &str) -> Self {
        let name = info
            .split([' ', ',', '{', ':'])
            .next()
            .unwrap_or_default()
            .to_lowercase();
        let grammar = match LANGUAGES
            .iter()
            .find(|language| is_among(&name, language.names))
        {
            Some(language) => Grammar::Of(language),
            None if matches!(name.as_str(), "diff" | "patch") => Grammar::Patch,
            None => Grammar::Unknown,
        };
        Self {
            grammar,
            open: None,
        }
    }

    /// Splits the next line into tokens.
    pub(super) fn pieces<'a>(&mut self, line: &'a str) -> Vec<(Kind, &'a str)> {
        let language = match self.grammar {
            Grammar::Of(language) => language,
            Grammar::Patch => return vec![(patch_kind(line), line)],
            Grammar::Unknown => return vec![(Kind::Plain, line)],
        };
        let (mut pieces, mut rest) = (Vec::new(), line);
        while !rest.is_empty() {
            let (kind, end) = match self.open {
                Some((mark, kind)) => (kind, self.until(mark, rest, 0)),
                None => self.next(language, rest),
            };
            let (piece, after) = rest.split_at(end);
            pieces.push((kind, piece));
            rest = after;
        }
        pieces
    }

    /// Returns the end of an open comment or string, if it is in this line.
    fn until(&mut self, mark: &str, rest: &str, from: usize) -> usize {
        match rest.get(from..).and_then(|rest| rest.find(mark)) {
            Some(at) => {
                self.open = None;
                from + at + mark.len()
            }
            None => rest.len(),
        }
    }

    fn next(&mut self, language: &'static Language, rest: &str) -> (Kind, usize) {
        if language
            .line_comments
            .iter()
            .any(|mark| rest.starts_with(mark))
        {
            return (Kind::Comment, rest.len());
        }
        if let Some((begin, end)) = language.block_comment
            && rest.starts_with(begin)
        {
            self.open = Some((end, Kind::Comment));
            return (Kind::Comment, self.until(end, rest, begin.len()));
        }
        if let Some(mark) = language
            .long_quotes
            .iter()
            .find(|mark| rest.starts_with(**mark))
        {
            self.open = Some((mark, Kind::Text));
            return (Kind::Text, self.until(mark, rest, mark.len()));
        }
        let Some(first) = rest.chars().next() else {
            return (Kind::Plain, rest.len());
        };
        if language.quotes.contains(&first) {
            return (Kind::Text, end_of_text(rest, first));
        }
        if is_of_word(first) {
            let end = rest
                // `1.5` is one number, `a.b` are two names.
                .find(|c| !(is_of_word(c) || c == '.' && first.is_ascii_digit()))
                .unwrap_or(rest.len());
            let word = &rest[..end];
            // SQL keywords are written in upper case as often as in lower case.
            let folds = is_among("sql", language.names);
            let is =
                |keyword: &str| keyword == word || (folds && keyword.eq_ignore_ascii_case(word));
            return match first {
                '0'..='9' => (Kind::Number, end),
                _ if language.keywords.split_whitespace().any(is) => (Kind::Keyword, end),
                _ => (Kind::Plain, end),
            };
        }
        // A character that begins no token is joined with what follows, up to the next that may
        // begin one.
        let end = rest.char_indices().skip(1).find(|(at, c)| {
            is_of_word(*c) || language.quotes.contains(c) || self.begins(language, &rest[*at..])
        });
        (Kind::Plain, end.map_or(rest.len(), |(at, _)| at))
    }

    fn begins(&self, language: &Language, rest: &str) -> bool {
        let marks = language
            .line_comments
            .iter()
            .chain(language.long_quotes)
            .copied();
        marks
            .chain(language.block_comment.map(|(begin, _)| begin))
            .any(|mark| rest.starts_with(mark))
    }
}

fn is_among(word: &str, words: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the end of a string within its line; an unclosed one ends with the line.
fn end_of_text(rest: &str, quote: char) -> usize {
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        if c == '\\' {
            characters.next();
        } else if c == quote {
            return at + c.len_utf8();
        }
    }
    rest.len()
}

fn patch_kind(line: &str) -> Kind {
    match line.as_bytes().first() {
        Some(b'+') => Kind::Added,
        Some(b'-') => Kind::Removed,
        Some(b'@') => Kind::Keyword,
        _ => Kind::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(info: &str, lines: &[&str], expected: &[(Kind, &str)]) {
        let mut code = Code::new(info);
        let pieces: Vec<_> = lines.iter().flat_map(|line| code.pieces(line)).collect();
        let seen: Vec<_> = pieces
            .iter()
            .copied()
            .filter(|(kind, _)| *kind != Kind::Plain)
            .collect();
        assert_eq!(seen, expected);
        let whole: String = pieces.iter().map(|(_, piece)| *piece).collect();
        assert_eq!(whole, lines.concat());
    }

    #[test]
    fn comments_strings_numbers_and_keywords_are_distinguished() {
        check(
            "rust",
            &[
                r#"let x = 4_2.5; // "no" string"#,
                r#"call("a \" b", 'c', fnord);"#,
            ],
            &[
                (Kind::Keyword, "let"),
                (Kind::Number, "4_2.5"),
                (Kind::Comment, r#"// "no" string"#),
                (Kind::Text, r#""a \" b""#),
            ],
        );
        check(
            "SQL",
            &["SELECT 'x' from t -- all"],
            &[
                (Kind::Keyword, "SELECT"),
                (Kind::Text, "'x'"),
                (Kind::Keyword, "from"),
                (Kind::Comment, "-- all"),
            ],
        );
        check("sh", &["echo \"open"], &[(Kind::Text, "\"open")]);
        check(
            "diff",
            &["+a", "-b", " c", "@@ 1"],
            &[
                (Kind::Added, "+a"),
                (Kind::Removed, "-b"),
                (Kind::Keyword, "@@ 1"),
            ],
        );
    }

    #[test]
    fn what_a_line_leaves_open_goes_on_in_the_next() {
        check(
            "c",
            &["a /* one", "two */ if"],
            &[
                (Kind::Comment, "/* one"),
                (Kind::Comment, "two */"),
                (Kind::Keyword, "if"),
            ],
        );
        check(
            "python",
            &["x = \"\"\"one", "two\"\"\" + 3"],
            &[
                (Kind::Text, "\"\"\"one"),
                (Kind::Text, "two\"\"\""),
                (Kind::Number, "3"),
            ],
        );
    }

    #[test]
    fn code_of_no_known_language_has_one_colour() {
        check("klingon", &["let x = \"y\" // z"], &[]);
        check("", &["# x"], &[]);
    }
}
