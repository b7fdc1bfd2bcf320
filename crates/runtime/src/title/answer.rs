//! Parses the title in a model's answer to a request for one.

use adjutant_core::{clean_line, given_title, is_greeting};
use serde_json::Value;

/// Unicode characters of a title at most, as of one that is made of a message.
const CHARS_MAX: usize = 60;
/// Words of a title at most. Two to six are asked for.
const WORDS_MAX: usize = 10;
/// Words from which on a line with a mark at its end is a sentence.
const SENTENCE_WORDS_MIN: usize = 4;

/// The names of tags around thinking that a server left in the text.
const THINKING_TAGS: &[&str] = &["think", "thinking", "thought"];
/// Words for a title and for what it names, in lower case.
const TITLE_WORDS: &[&str] = &[
    "title",
    "titles",
    "titel",
    "titre",
    "título",
    "titolo",
    "conversation",
    "unterhaltung",
    "gespräch",
    "conversación",
    "conversazione",
];
/// Other labels in front of a title, and first words of a sentence that announces one.
const OPENINGS: &[&str] = &[
    "name",
    "subject",
    "topic",
    "thema",
    "betreff",
    "sure",
    "certainly",
    "okay",
    "ok",
    "here",
    "heres",
    "gerne",
    "natürlich",
    "klar",
    "hier",
    "voici",
    "claro",
    "aquí",
    "certo",
    "ecco",
];
/// Those of [`PAIRS`] that quote nothing.
const EMPHASIS: &[&str] = &["**", "__", "*", "_", "`"];
/// Marks around a whole title: quotation marks and Markdown.
const PAIRS: &[(&str, &str)] = &[
    ("**", "**"),
    ("__", "__"),
    ("*", "*"),
    ("_", "_"),
    ("`", "`"),
    ("\"", "\""),
    ("'", "'"),
    ("“", "”"),
    ("„", "“"),
    ("„", "”"),
    ("‘", "’"),
    ("‚", "‘"),
    ("«", "»"),
    ("»", "«"),
    ("「", "」"),
    ("『", "』"),
];

/// Returns the title that an answer consists of, without what models put around one: thinking,
/// JSON, a fence, a sentence that announces it, a label, the number of a list, a heading, emphasis,
/// quotation marks. `None` if it says something else or more than a title.
pub(super) fn parse(answer: &str) -> Option<String> {
    let answer = behind_thinking(answer)?;
    let lines = answer
        .lines()
        .map(|line| clean_line(line).trim().to_owned());
    let lines: Vec<String> = lines
        .filter(|line| !line.starts_with("```") && line.chars().any(char::is_alphanumeric))
        .collect();
    let (first, rest) = lines.split_first()?;
    if first.starts_with(['{', '[']) {
        let value = serde_json::from_str(&behind_fence(answer)).ok()?;
        return parse_line(&title_in(&value)?);
    }
    // `Sure!` and `Here it is:` on a line of their own.
    let announces = |line: &str| behind_marks(line).ends_with([':', '：', '!', '！']);
    match rest.first() {
        Some(next) if announces(first) => parse_line(next),
        _ => parse_line(first),
    }
}

/// Returns the answer behind its thinking; `None` if that does not end.
fn behind_thinking(answer: &str) -> Option<&str> {
    let mut answer = answer.trim_start();
    for name in THINKING_TAGS {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        // Some chat templates write the opening tag themselves.
        match answer.rsplit_once(&close) {
            Some((_, behind)) => answer = behind,
            None if answer.starts_with(&open) => return None,
            None => {}
        }
    }
    Some(answer)
}

/// Returns a text without the lines of a code fence.
fn behind_fence(text: &str) -> String {
    text.lines()
        .filter(|line| !line.trim_start().starts_with("```"))
        .collect()
}

/// Returns the title in a JSON value: the text of a field that is named so, else the only text.
fn title_in(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => title_in(items.first()?),
        Value::Object(fields) => {
            let named = fields
                .iter()
                .find(|(name, _)| words(name).any(|word| is_one_of(&word, TITLE_WORDS)));
            let mut texts = fields.values().filter(|value| value.is_string());
            match (named, texts.next(), texts.next()) {
                (Some((_, value)), ..) => title_in(value),
                (None, Some(only), None) => title_in(only),
                (None, ..) => None,
            }
        }
        _ => None,
    }
}

fn parse_line(line: &str) -> Option<String> {
    let mut line = behind_marks(line);
    // `Sure! Here is a title: Buying milk`, `Of course! Buying milk`.
    while let Some(behind) = behind_announcement(line) {
        line = behind_marks(behind);
    }
    let count = words(line).count();
    let is_sentence = ends_sentence(line) && count >= SENTENCE_WORDS_MIN;
    let speaks_of_titles =
        count >= SENTENCE_WORDS_MIN && words(line).any(|word| is_one_of(&word, TITLE_WORDS));
    // Emphasis of a part, a tag, or what announces more is a text's.
    let is_text = ["**", "__", "</"].iter().any(|mark| line.contains(mark))
        || line.starts_with('<')
        || line.ends_with([':', '：']);
    let is_too_long = count > WORDS_MAX || line.chars().count() > CHARS_MAX;
    let is_none = count == 0 || is_greeting(line);
    if is_none || is_sentence || speaks_of_titles || is_text || is_too_long {
        return None;
    }
    given_title(line)
}

/// Strips what marks a line as a heading, a quotation or an item of a list, and the marks around all
/// of it.
fn behind_marks(line: &str) -> &str {
    let mut line = line.trim();
    loop {
        let before = line;
        line = line
            .trim_start_matches(['#', '>', '•', '–', '—'])
            .trim_start();
        for bullet in ["- ", "* ", "+ "] {
            line = line.strip_prefix(bullet).unwrap_or(line).trim_start();
        }
        line = behind_number(line).unwrap_or(line);
        line = inside_tag(line).unwrap_or(line);
        for (open, close) in PAIRS {
            let inside = line
                .strip_prefix(open)
                .and_then(|line| line.strip_suffix(close));
            if let Some(inside) =
                inside.filter(|inside| !inside.contains(open) && !inside.contains(close))
            {
                line = inside.trim();
                // Nobody quotes a sentence as an answer: the mark belongs to the quoted title.
                if !EMPHASIS.contains(open) {
                    line = line.trim_end_matches(['.', '。', '…', ' ']);
                }
            }
        }
        // The end of a short title; of more words it is a sentence's.
        if words(line).count() < SENTENCE_WORDS_MIN {
            line = line.trim_end_matches(['.', '。', '…', ' ']);
        }
        // A quotation that was cut off.
        if line.matches('"').count() == 1 {
            line = line.trim_matches('"').trim();
        }
        if line == before {
            return line;
        }
    }
}

/// Returns the text behind the number of an item in a list, such as `1. ` or `2) `.
fn behind_number(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let behind = rest
        .strip_prefix(". ")
        .or_else(|| rest.strip_prefix(") "))?;
    (rest.len() < line.len()).then(|| behind.trim_start())
}

/// Returns the text between a tag and its end, if that is the whole line.
fn inside_tag(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix('<')?.split_once('>')?;
    let inside = rest
        .strip_suffix('>')?
        .strip_suffix(name)?
        .strip_suffix("</")?;
    (!inside.contains('<')).then(|| inside.trim())
}

/// Returns the text behind a label or an announcement: words up to a colon that speak of a title,
/// open a sentence or precede a quotation, or an exclamation.
fn behind_announcement(line: &str) -> Option<&str> {
    let mark = line.find([':', '：', '!', '！'])?;
    let (before, rest) = line.split_at(mark);
    let mut rest = rest.chars();
    let is_exclamation = matches!(rest.next(), Some('!' | '！'));
    let behind = rest.as_str();
    // `**Title:** Buying milk`
    let emphasis = ["**", "__", "*", "_"]
        .into_iter()
        .find(|mark| before.starts_with(mark));
    let behind = emphasis
        .and_then(|mark| behind.strip_prefix(mark))
        .unwrap_or(behind)
        .trim_start();
    let opening: Vec<String> = words(before).collect();
    let first = opening.first()?;
    let announces = is_exclamation
        || is_one_of(first, OPENINGS)
        || opening.iter().any(|word| is_one_of(word, TITLE_WORDS))
        || (opening.len() > 1 && behind.starts_with(['"', '“', '„', '«', '‘', '「']));
    (announces && words(behind).next().is_some()).then_some(behind)
}

fn ends_sentence(line: &str) -> bool {
    line.ends_with(['.', '!', '?', '…', '。', '！', '？'])
}

/// Returns the words of a text in lower case, without apostrophes.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '’'))
        .map(|word| word.replace(['\'', '’'], "").to_lowercase())
        .filter(|word| !word.is_empty())
}

fn is_one_of(word: &str, list: &[&str]) -> bool {
    list.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn check(answer: &str, title: Option<&str>) {
        assert_eq!(parse(answer).as_deref(), title, "{answer:?}");
    }

    #[test]
    fn a_title_is_read_out_of_what_models_write_around_it() {
        let wrapped = [
            "@",
            "@.",
            "\n\n**\"@.\"**\nIt is about milk.",
            "# @",
            "## **@**",
            "> @",
            "- @",
            "1. @",
            "1) @\n2) Something else",
            "Title: @",
            "**Title:** @",
            "### Title: \"@\"",
            "Titel: „@“",
            "Conversation title: @",
            "«@»",
            "‘@’",
            "`@`",
            "_@_",
            "\"@\".",
            "\"@",
            "{\"title\": \"@\"}",
            "{\"language\": \"en\", \"conversation_title\": \"@\"}",
            "{\"text\": \"@\"}",
            "[\"@\", \"Something else\"]",
            "```json\n{\n  \"title\": \"@\"\n}\n```",
            "```\n@\n```",
            "<title>@</title>",
            "<think>The user wants a title. Perhaps \"Milk\"?</think>\n\n@",
            "The user wants a title.\n</think>\n@",
            "<think>\n\n</think>\n\n{\"title\": \"@\"}",
            "Sure! Here is a good title for this conversation: @",
            "Sure! Here is a good title for this conversation:\n\n**@**",
            "Here's a title: \"@\"",
            "I would call it: “@”",
            "Some suggestions:\n- @\n- Something else",
            "Certainly! @",
            "Sure!\n@",
            "Hier ist ein passender Titel: „@“",
            "A fitting title would be: @\n\nIt says what was bought.",
        ];
        for answer in wrapped {
            check(
                &answer.replace('@', "Buying oat milk"),
                Some("Buying oat milk"),
            );
        }
    }

    #[test]
    fn a_title_keeps_its_own_marks() {
        for title in [
            "C++ and R&D",
            "Einkauf für Samstag",
            "Recipes: pasta and pizza",
            "\"Dune\" and \"Emma\"",
            "2026 budget",
            "Node.js 3.5 upgrade",
            "Why Rust?",
            "`cargo test` fails",
            "St. Patrick's day",
            "买燕麦奶",
            "10:30 meeting",
        ] {
            check(title, Some(title));
        }
        check("Buy\u{1b}[2J\u{200b} milk", Some("Buy[2J milk"));
    }

    #[test]
    fn whatever_is_no_title_gives_none() {
        for answer in [
            "",
            "…",
            "Title:",
            "<think>The user wants",
            "The answer is **42**.",
            "The answer is **42**",
            "The answer is 42.",
            "Great question! The answer is 42.",
            "Hello! How can I help you today?",
            "Hello!",
            "I'm sorry, but I can't help with that.",
            "\"Buying oat milk\" is a good title for this conversation",
            "I would call this conversation Buying oat milk.",
            "{\"title\": \"Buying",
            "{\"a\": \"Buying\", \"b\": \"milk\"}",
            "<answer>Buying oat milk",
        ] {
            check(answer, None);
        }
        check(&"long ".repeat(30), None);
        check(&"漢".repeat(61), None);
    }
}
