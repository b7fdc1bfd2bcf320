//! Messages as quotations in a note: they read as Markdown, and nothing in them reaches out of the
//! quotation.
//!
//! Inside, markup that has an effect when the note is opened is neutralised: embedded notes and
//! pictures (the address of a picture is requested when the note is shown), HTML, comments that
//! would hide the rest, tags that would file the note, and code that plugins run (Dataview,
//! Templater). A link stays a link.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

use crate::text::{on_one_line, without_controls};
use crate::vault::markdown::contains_offset;
use crate::vault::note::tag_at_start;

/// Languages of code blocks that are shown and not run. Any other name may be that of a plugin.
const SHOWN: &str = "\
    text txt plain plaintext log console output diff patch markdown md html xml css scss svg json jsonc json5 jsonl \
    yaml yml toml ini csv sql graphql regex http bash sh shell zsh fish powershell ps1 bat cmd makefile make cmake \
    dockerfile docker nginx rust rs c cpp c++ h hpp csharp cs fsharp java kotlin kt scala groovy swift objc go golang \
    zig nim d python py ruby rb perl php lua r julia matlab haskell hs ocaml elm clojure lisp scheme elixir erlang \
    dart javascript js jsx typescript ts tsx vue svelte latex tex vim nix hcl terraform protobuf proto assembly asm \
    wasm solidity fortran pascal vb mermaid";

/// Bytes of a link label: at most 999 characters.
const LABEL_BYTES_MAX: usize = 4 * 999;

/// Returns a text as a quotation; empty if it is blank.
pub(super) fn quoted(words: &str) -> String {
    // Blanks at the end of a line go first: they decide where code ends.
    let mut words = readable(words)
        .lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n");
    // What was HTML is Markdown once its marks are escaped, and is neutralised again.
    for _ in 0..4 {
        let again = neutralised(&words);
        if again == words {
            break;
        }
        words = again;
    }
    let lines: Vec<&str> = words.lines().collect();
    let begin = lines
        .iter()
        .position(|line| !line.is_empty())
        .unwrap_or(lines.len());
    let end = lines
        .iter()
        .rposition(|line| !line.is_empty())
        .map_or(begin, |last| last + 1);
    let quoted = lines
        .get(begin..end)
        .unwrap_or_default()
        .iter()
        .map(|line| {
            let space = if line.is_empty() { "" } else { " " };
            format!(">{space}{line}")
        });
    quoted.collect::<Vec<_>>().join("\n")
}

/// Characters that have a meaning in Markdown, or in a dialect of it.
const ACTIVE: &str = "\\`*_{}[]<>#|~^$=!%";

/// Returns a text on one line with all of its Markdown escaped: a name, a title.
pub(super) fn escaped(words: &str) -> String {
    let mut text = String::new();
    for char in visible_line(words).chars() {
        if ACTIVE.contains(char) {
            text.push('\\');
        }
        text.push(char);
    }
    // Templater ignores escapes.
    text.replace("\\<\\%", "\\< \\%")
}

/// Returns a text on one line, without invisible characters.
pub(super) fn visible_line(words: &str) -> String {
    on_one_line(&readable(words))
}

/// Returns a text without control characters and those that change the direction of text, and with
/// tabs at the beginning of a line as spaces, because the mark of a quotation would shift them.
fn readable(words: &str) -> String {
    let words = without_controls(words);
    let seen = words.chars().filter(
        |char| !matches!(char, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}'),
    );
    let seen: String = seen.collect();
    let mut text = String::with_capacity(seen.len());
    for line in seen.split_inclusive('\n') {
        let inner = line.trim_start_matches([' ', '\t']);
        let mut column = 0;
        // Tabs become spaces: after `> ` the tab stops are nearer, which would change what is code.
        for char in line.chars().take(line.len() - inner.len()) {
            column = if char == '\t' {
                (column / 4 + 1) * 4
            } else {
                column + 1
            };
        }
        text.extend(std::iter::repeat_n(' ', column));
        text.push_str(inner);
    }
    text
}

/// The ranges of code in a text.
struct CodeRanges {
    /// Fenced blocks, the fences included.
    fenced: Vec<Range<usize>>,
    /// `code` in a line.
    inline: Vec<Range<usize>>,
    /// The texts behind opening fences.
    infos: Vec<Range<usize>>,
}

impl CodeRanges {
    fn find(words: &str) -> Self {
        let mut code = Self {
            fenced: Vec::new(),
            inline: Vec::new(),
            infos: Vec::new(),
        };
        let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
        for (event, range) in Parser::new_ext(words, options).into_offset_iter() {
            match event {
                Event::Code(_) => code.inline.push(range),
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                    let first = words
                        .get(range.clone())
                        .unwrap_or_default()
                        .lines()
                        .next()
                        .unwrap_or_default();
                    let mark = if first.trim_start().starts_with('~') {
                        '~'
                    } else {
                        '`'
                    };
                    let marks = first.len() - first.trim_start().trim_start_matches(mark).len();
                    if !info.trim().is_empty() {
                        code.infos
                            .push(range.start + marks..range.start + first.len());
                    }
                    code.fenced.push(range);
                }
                _ => {}
            }
        }
        code
    }
}

fn neutralised(words: &str) -> String {
    let code = CodeRanges::find(words);
    // One `$$` that nothing closes would take the rest of the note with it in an editor.
    let open_math = words.matches("$$").count() % 2 == 1;
    let mut out = String::with_capacity(words.len() + words.len() / 16);
    let mut before = '\n';
    for (at, char) in words.char_indices() {
        let rest = words.get(at..).unwrap_or_default();
        let after = rest.chars().nth(1);
        let info = code
            .infos
            .binary_search_by_key(&at, |info| info.start)
            .ok()
            .and_then(|info| code.infos.get(info));
        if let Some(info) = info {
            let language = words.get(info.clone()).unwrap_or_default();
            let ends = |char: char| char.is_whitespace() || matches!(char, ',' | '{');
            let language = language.trim_start().split(ends).next().unwrap_or_default();
            let language = language.to_ascii_lowercase();
            if !SHOWN.split_whitespace().any(|shown| shown == language) {
                // With a word in front the language of the fence is one that no plugin runs.
                out.push_str("text ");
            }
        }
        // Templater finds its marks everywhere, in code too.
        let template = char == '<' && after == Some('%');
        if contains_offset(&code.fenced, at) {
            out.push(char);
        } else if contains_offset(&code.inline, at) {
            if begins_query(rest, &out) {
                out.push('\\');
            }
            out.push(char);
            if char == '%' && after == Some('%') {
                out.push(' ');
            }
        } else {
            let acts = match char {
                '[' => matches!(after, Some('!' | '^')) || defines_link(rest),
                '<' => after.is_some_and(|after| {
                    after.is_ascii_alphabetic() || matches!(after, '/' | '!' | '?')
                }),
                '#' => tag_at_start(rest).is_some() && begins_word(before),
                '$' if open_math && (after == Some('$') || before == '$') => true,
                '$' | '=' => begins_query(rest, &out),
                _ => false,
            };
            // What is escaped already is not escaped again: that would undo it.
            let is_escaped = || (out.len() - out.trim_end_matches('\\').len()) % 2 == 1;
            if acts && !is_escaped() {
                out.push('\\');
            }
            out.push(char);
            // A space is understood by every reader of Markdown.
            if (char == '%' && after == Some('%')) || (char == '!' && after == Some('[')) {
                out.push(' ');
            }
        }
        if template {
            out.push(' ');
        }
        before = char;
    }
    out
}

/// Returns true for `[label]: address`, which would make a link of every such label in the note.
fn defines_link(rest: &str) -> bool {
    let rest = rest
        .get(..rest.floor_char_boundary(LABEL_BYTES_MAX))
        .unwrap_or(rest);
    rest.find(']')
        .and_then(|end| rest.get(end + 1..))
        .is_some_and(|after| after.starts_with(':'))
}

/// Returns true for text that Dataview would compute if the backtick before it begins code. It is
/// not checked that it does: parsers differ.
fn begins_query(rest: &str, before: &str) -> bool {
    let blank = |char: char| char.is_whitespace() || char == '>';
    (rest.starts_with('=') || rest.starts_with("$="))
        && before.trim_end_matches(blank).ends_with('`')
}

/// Returns true if a tag may begin after a character.
fn begins_word(before: char) -> bool {
    before.is_whitespace() || "(*_\"'>~,;|=".contains(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text_and_active_markup_is_shown() {
        for (words, text) in [
            ("", ""),
            ("\n \n", ""),
            ("a\n\n  b\r\nc", "> a\n>\n>   b\n> c"),
            ("# Key Facts\n---\n- a", "> # Key Facts\n> ---\n> - a"),
            ("```\n# open", "> ```\n> # open"),
            (
                "![[secret]] ![x](http://h/?q) [[Note]]",
                "> ! [[secret]] ! [x](http://h/?q) [[Note]]",
            ),
            ("[!danger] x", "> \\[!danger] x"),
            (
                "<img src=x> a < b <3 </p> <!-- c",
                "> \\<img src=x> a < b <3 \\</p> \\<!-- c",
            ),
            ("100%% %% hide", "> 100% % % % hide"),
            (
                "#tag a#b #1 (#in) # Heading",
                "> \\#tag a#b #1 (\\#in) # Heading",
            ),
            ("`#no %% <% `", "> `#no % % < % `"),
            ("`= this.x` `$= dv` `a=b`", "> `\\= this.x` `\\$= dv` `a=b`"),
            (
                "```dataviewjs\ndv\n```",
                "> ```text dataviewjs\n> dv\n> ```",
            ),
            (
                "```rust\n%% #[x] ![a] <b>\n```",
                "> ```rust\n> %% #[x] ![a] <b>\n> ```",
            ),
            ("~~~ query\nx", "> ~~~text  query\n> x"),
            ("<% tp.x %>", "> < % tp.x %>"),
            ("```\n<%* x\n```", "> ```\n> < %* x\n> ```"),
            (
                "[^1]: note\n[a]: http://x",
                "> \\[^1]: note\n> \\[a]: http://x",
            ),
            ("$$ open", "> \\$\\$ open"),
            ("$$x$$", "> $$x$$"),
            ("\tcode\n  \tx", ">     code\n>     x"),
            ("a\u{0}b\u{1b}[31m\u{202e}c", "> ab[31mc"),
            ("\\![x] \\#t \\\\#t", "> \\! [x] \\#t \\\\#t"),
            (
                "<div>\n`= x`\n```dataview\n```",
                "> \\<div>\n> `\\= x`\n> ```text dataview\n> ```",
            ),
            (
                "- x\n  ```ad\n  a\n  ```",
                "> - x\n>   ```text ad\n>   a\n>   ```",
            ),
            ("\\```js-engine\n", "> \\```js-engine"),
        ] {
            assert_eq!(quoted(words), text, "{words:?}");
        }
        // Each of these takes minutes if every mark is searched for to the end, or from the
        // beginning.
        for mark in ["[", "\\\\", "```x\n```\n", "`= `", "[a]: b\n"] {
            let marks = quoted(&mark.repeat(512 * 1024 / mark.len()));
            assert!(marks.starts_with('>'), "{mark:?}");
        }
        assert_eq!(escaped("  a*b\n[c] <%d\u{7}  "), "a\\*b \\[c\\] \\< \\%d");
    }
}
