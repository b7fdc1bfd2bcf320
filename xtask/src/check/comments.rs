//! Comments that do not help a reader: documentation that only repeats the item's name, first lines
//! that begin with a question word, and references to files that are not in the repository.

use super::files::File;

/// Words that a summary line must not begin with: "Returns the size", not "How big it is".
const QUESTION_WORDS: [&str; 9] = [
    "What", "How", "Whether", "Who", "Whose", "Which", "Where", "Why", "When",
];

/// The least number of words in a summary, besides those of the item's name.
const WORDS_MIN: usize = 4;

/// Folders at the root. A path that begins with one of them is relative to the root.
const FOLDERS: [&str; 8] = [
    "benches/", "crates/", "deploy/", "docs/", "evals/", "prompts/", "tests/", "xtask/",
];

/// Folders of other projects whose sources our comments cite.
const CITED_PROJECTS: [&str; 2] = ["sqlx-core/", "sqlx-postgres/"];

/// Returns summaries of documentation that say too little or begin with a question word.
pub(crate) fn unhelpful(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    // `benches/` is a workspace of its own without `missing_docs`.
    let checked = |file: &&File| is_rust(file) && !file.path.starts_with("benches/");
    for file in files.iter().filter(checked) {
        for summary in summaries(&file.text) {
            let location = format!("{}:{}", file.path, summary.line);
            let first = summary.text.split([' ', ',', '.']).next().unwrap_or("");
            if QUESTION_WORDS.contains(&first) {
                found.push(format!(
                    "{location}: begin with what it does or is, not with {first:?}"
                ));
            }
            if let Some(name) = summary.public.as_deref()
                && words_besides(&summary.text, name) < WORDS_MIN
            {
                found.push(format!(
                    "{location}: says no more than the name `{name}`: {:?}",
                    summary.text
                ));
            }
        }
    }
    found
}

/// Returns references in comments and documents to files and decisions that do not exist.
pub(crate) fn dead_references(files: &[File], tracked: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for file in files
        .iter()
        .filter(|file| is_rust(file) || file.path.ends_with(".md"))
        // The change log names removed files, and the sources of the checks name invented ones.
        .filter(|file| file.path != "CHANGELOG.md" && !file.path.starts_with("xtask/src/check/"))
    {
        for (index, line) in file.text.lines().enumerate() {
            let Some(text) = prose(file, line) else {
                continue;
            };
            let location = format!("{}:{}", file.path, index + 1);
            for reference in references(text) {
                if !exists(tracked, reference) {
                    found.push(format!("{location}: there is no {reference}"));
                }
            }
            for number in decisions(text) {
                let start = format!("docs/decisions/{number}-");
                if !tracked.iter().any(|path| path.starts_with(&start)) {
                    found.push(format!("{location}: there is no decision {number}"));
                }
            }
        }
    }
    found
}

fn is_rust(file: &File) -> bool {
    file.path.ends_with(".rs")
}

/// Returns the text of a line for human readers: in Rust a comment, elsewhere the whole line.
fn prose<'a>(file: &File, line: &'a str) -> Option<&'a str> {
    if !is_rust(file) {
        return Some(line);
    }
    line.trim_start().strip_prefix("//")
}

/// The first paragraph of a doc comment.
struct Summary {
    /// Number of its first line, from 1.
    line: usize,
    text: String,
    /// The name of the documented item, if it is public and the paragraph is the whole comment.
    public: Option<String>,
}

/// Returns the summaries in a source file. Those of modules (`//!`) have no name.
fn summaries(source: &str) -> Vec<Summary> {
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let mut found = Vec::new();
    // Indentation of the public enums and traits around this line, whose variants and methods are
    // public without `pub`.
    let mut open: Vec<usize> = Vec::new();
    let mut at = 0;
    for (index, line) in source.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let text = line.trim_start();
        if text.starts_with('}') {
            open.retain(|outer| *outer < indent);
        }
        if (text.starts_with("pub enum ") || text.starts_with("pub trait ")) && text.ends_with('{')
        {
            open.push(indent);
        }
        if index < at {
            continue;
        }
        let Some(marker) = ["///", "//!"]
            .into_iter()
            .find(|marker| text.starts_with(marker))
        else {
            continue;
        };
        let block = lines[index..]
            .iter()
            .take_while(|line| line.starts_with(marker))
            .map(|line| line[marker.len()..].trim())
            .collect::<Vec<_>>();
        at = index + block.len();
        let paragraph: Vec<&str> = block
            .iter()
            .copied()
            .take_while(|it| !it.is_empty())
            .collect();
        let whole = paragraph.len() == block.len();
        let item = lines[at..]
            .iter()
            .find(|line| !line.starts_with("#[") && !line.is_empty());
        let inside = open.iter().any(|outer| *outer < indent);
        found.push(Summary {
            line: index + 1,
            text: paragraph.join(" "),
            public: item
                .filter(|_| marker == "///" && whole)
                .and_then(|item| public_name(item, inside)),
        });
    }
    found
}

/// Returns the name of the item that begins on a line, if it is public.
fn public_name(line: &str, inside: bool) -> Option<String> {
    let item = match line.strip_prefix("pub ") {
        Some(rest) => rest,
        None if inside => line,
        None => return None,
    };
    const KEYWORDS: [&str; 12] = [
        "async", "const", "unsafe", "fn", "struct", "enum", "trait", "type", "static", "mod",
        "use", "extern",
    ];
    let name = item
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .find(|word| !word.is_empty() && !KEYWORDS.contains(word))?;
    Some(name.to_owned())
}

/// Counts the words of a text that are not part of an item's name.
fn words_besides(text: &str, name: &str) -> usize {
    let name = parts(name);
    text.split_whitespace()
        .flat_map(parts)
        .filter(|word| !name.contains(word))
        .count()
}

/// Splits a name or text into lower-case words without plural `s`.
fn parts(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in text.chars() {
        let new = !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase());
        if new && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
        .into_iter()
        .map(|word| match word.strip_suffix('s') {
            Some(singular) if !singular.is_empty() => singular.to_owned(),
            _ => word,
        })
        .collect()
}

/// Returns the source files and documents that a line refers to, in code quotes or as a link.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.split(['`', '(', ')', ' ', '"', ',', ';'])
        .map(|word| word.split('#').next().unwrap_or(word))
        .map(|word| word.trim_end_matches(['.', ':']))
        .filter(|word| !word.contains(['*', '{', '<', '>', '$', '|', '…']))
        .filter(|word| !word.contains("://") && !word.starts_with(['/', '~', '-', '@']))
        .filter(|word| !word.contains("...") && !word.chars().any(|c| c.is_ascii_uppercase()))
        .filter(|word| {
            if word.contains('/') {
                word.ends_with(".rs") || FOLDERS.iter().any(|folder| word.starts_with(folder))
            } else {
                // A compound name is that of a document; a single word or a date is an example of a
                // user's notes.
                let is_compound = word.contains('-') && word.starts_with(char::is_alphabetic);
                is_compound && word.ends_with(".md")
            }
        })
}

/// Returns the three-digit numbers that follow the word "decision".
fn decisions(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("decision ").filter_map(|(at, word)| {
        let number = text.get(at + word.len()..at + word.len() + 3)?;
        let end = text.as_bytes().get(at + word.len() + 3);
        (number.bytes().all(|byte| byte.is_ascii_digit()) && !end.is_some_and(u8::is_ascii_digit))
            .then_some(number)
    })
}

/// Returns true if a tracked file or folder matches a reference, whose leading folders may be
/// missing.
fn exists(tracked: &[String], reference: &str) -> bool {
    if CITED_PROJECTS
        .iter()
        .any(|folder| reference.starts_with(folder))
    {
        return true;
    }
    let mut plain = reference.trim_end_matches('/');
    while let Some(rest) = plain
        .strip_prefix("../")
        .or_else(|| plain.strip_prefix("./"))
    {
        plain = rest;
    }
    let inside = format!("{plain}/");
    let end = format!("/{plain}");
    let middle = format!("/{plain}/");
    tracked.iter().any(|path| {
        path == plain || path.starts_with(&inside) || path.ends_with(&end) || path.contains(&middle)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn check_unhelpful(text: &str, expected: &[&str]) {
        assert_eq!(unhelpful(&[file("a.rs", text)]), expected);
    }

    #[test]
    fn a_summary_that_repeats_the_name_is_found() {
        check_unhelpful(
            "/// The user's id.\npub user_id: UserId,",
            &["a.rs:1: says no more than the name `user_id`: \"The user's id.\""],
        );
        check_unhelpful(
            "pub enum A {\n    /// A turn.\n    Turn,\n}\n",
            &["a.rs:2: says no more than the name `Turn`: \"A turn.\""],
        );
    }

    #[test]
    fn private_items_and_longer_texts_pass() {
        check_unhelpful("/// The id.\nid: UserId,", &[]);
        check_unhelpful(
            "/// The id.\n///\n/// Unique per database.\npub id: UserId,",
            &[],
        );
        check_unhelpful(
            "/// Returns the digest as lower-case hexadecimal digits.\n#[must_use]\npub fn digest() {}",
            &[],
        );
    }

    #[test]
    fn summaries_that_begin_with_a_question_word_are_found() {
        check_unhelpful(
            "//! How it works.\n/// Whether it is\n/// open.\nfn is_open() {}",
            &[
                "a.rs:1: begin with what it does or is, not with \"How\"",
                "a.rs:2: begin with what it does or is, not with \"Whether\"",
            ],
        );
    }

    #[test]
    fn references_to_missing_files_and_decisions_are_found() {
        let tracked = [
            file(
                "crates/a/src/x.rs",
                "// See `a/src/x.rs`, `gone/y.rs`, `x.md`, `no-page.md` and decision 001, 002.",
            ),
            file(
                "docs/decisions/001-b.md",
                "[x](../../crates/a/src/x.rs), docs/none.md, decision 002.",
            ),
        ];
        let paths = tracked.each_ref().map(|file| file.path.clone());
        assert_eq!(
            dead_references(&tracked, &paths),
            [
                "crates/a/src/x.rs:1: there is no gone/y.rs",
                "crates/a/src/x.rs:1: there is no no-page.md",
                "docs/decisions/001-b.md:1: there is no docs/none.md",
                "docs/decisions/001-b.md:1: there is no decision 002",
            ]
        );
    }

    #[test]
    fn code_urls_and_patterns_are_no_references() {
        let text = "let path = \"gone/x.rs\"; // fine\n// https://a.org/docs/x.md crates/*/x.rs";
        assert_eq!(dead_references(&[file("a.rs", text)], &[]), [""; 0]);
    }
}
