//! What a note says about itself: tags, aliases, links.

use saphyr::{LoadableYamlNode, Yaml};
use saphyr_parser::{Event, Parser};
use serde::Serialize;

use super::markdown::Outline;
use super::path::{folded, link_target};

/// Front matter longer than this is not read for aliases and tags.
const FRONT_BYTES_MAX: usize = 64 * 1024;
/// Nor is one that is nested deeper: its lists are read, and freed, one within the other on the
/// stack.
const FRONT_DEPTH_MAX: usize = 64;
/// Nor is a longer link one: names of files are shorter, and what nothing closes is not searched to
/// the end each time.
const LINK_BYTES_MAX: usize = 2_000;

/// A note as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// Relative to the vault, with `/` and `.md`.
    pub path: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was last changed, RFC 3339, if the system says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
}

/// A note's text, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoteText {
    /// Relative to the vault, with `/` and `.md`.
    pub path: String,
    /// The lines from `first_line` to `last_line`.
    pub text: String,
    /// The first line given, from 1.
    pub first_line: usize,
    /// The last line given.
    pub last_line: usize,
    /// How many lines the note has.
    pub lines: usize,
    /// What was left out and how to get it, if something was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

/// The tag that a word begins with, without `#`: letters, digits, `_`, `-` and `/`, not digits
/// alone.
pub(crate) fn tag_at_start(word: &str) -> Option<&str> {
    let rest = word.strip_prefix('#')?;
    let end = rest
        .find(|char: char| {
            !(char.is_alphanumeric() || matches!(char, '_' | '-' | '/') || is_part_of_emoji(char))
        })
        .unwrap_or(rest.len());
    let tag = rest.get(..end)?;
    let valid = tag
        .chars()
        .any(|char| !char.is_ascii_digit() && char != '/');
    (valid && !tag.is_empty()).then_some(tag)
}

/// Obsidian takes emoji in tags; combining marks belong to the letter before.
fn is_part_of_emoji(char: char) -> bool {
    matches!(u32::from(char), 0x300..=0x36F | 0x200D | 0xFE0F | 0x2600..=0x27BF | 0x1F300..=0x1FAFF)
}

/// Whether `tag` is `wanted` or stands below it (`project/x` below `project`). Case does not count.
pub(crate) fn is_below(tag: &str, wanted: &str) -> bool {
    let (tag, wanted) = (folded(tag), folded(wanted));
    tag == wanted
        || tag
            .strip_prefix(&wanted)
            .is_some_and(|rest| rest.starts_with('/'))
}

/// The tags of a note, without `#`: those of its front matter and those in its text outside code
/// and comments.
pub(crate) fn tags(text: &str) -> Vec<String> {
    let outline = Outline::of(text);
    let mut tags = outline
        .front
        .clone()
        .and_then(|front| text.get(front))
        .map_or_else(Vec::new, |front| {
            front_list(front, &["tags", "tag"])
                .into_iter()
                .flat_map(|entry| {
                    entry
                        .split([',', ' '])
                        .map(str::to_owned)
                        .collect::<Vec<_>>()
                })
                .map(|tag| tag.trim().trim_start_matches('#').to_owned())
                .filter(|tag| !tag.is_empty())
                .collect()
        });
    let mut before = ' ';
    for (at, char) in text.char_indices().skip_while(|(at, _)| *at < outline.body) {
        // A tag begins at white space; `a#b` and `[[Note#Part]]` are none.
        if char == '#' && before.is_whitespace() && !outline.is_dead(at) {
            tags.extend(text.get(at..).and_then(tag_at_start).map(str::to_owned));
        }
        before = char;
    }
    tags
}

/// The other names of a note.
pub(crate) fn aliases(text: &str) -> Vec<String> {
    let begin = text.trim_start_matches('\u{FEFF}');
    // Most notes have none: without the word there is nothing to parse.
    if !begin.starts_with("---")
        || !begin
            .get(..begin.len().min(FRONT_BYTES_MAX))
            .unwrap_or(begin)
            .contains("alias")
    {
        return Vec::new();
    }
    let Some(front) = super::markdown::front_matter(text)
        .0
        .and_then(|front| text.get(front))
    else {
        return Vec::new();
    };
    front_list(front, &["aliases", "alias"])
        .into_iter()
        .map(|alias| alias.trim().to_owned())
        .filter(|alias| !alias.is_empty())
        .collect()
}

/// The targets of the wiki links in a text, without heading and shown words.
pub(crate) fn links(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("[[").filter_map(|(at, _)| {
        let rest = text.get(at..text.floor_char_boundary(at + LINK_BYTES_MAX))?;
        let end = rest.find("]]")?;
        let link = rest.get(..end + 2)?;
        (!link.contains('\n')).then(|| link_target(link))
    })
}

/// The text or the list of texts under the first of these keys; nothing if the front matter is not
/// YAML.
fn front_list(front: &str, keys: &[&str]) -> Vec<String> {
    if front.len() > FRONT_BYTES_MAX || is_too_deep(front) {
        return Vec::new();
    }
    let Ok(documents) = Yaml::load_from_str(front) else {
        return Vec::new();
    };
    let Some(document) = documents.first() else {
        return Vec::new();
    };
    let Some(value) = keys.iter().find_map(|key| document.as_mapping_get(key)) else {
        return Vec::new();
    };
    let text = |value: &Yaml<'_>| {
        value
            .as_str()
            .map(str::to_owned)
            .or_else(|| value.as_integer().map(|number| number.to_string()))
    };
    match value.as_sequence() {
        Some(list) => list.iter().filter_map(text).collect(),
        // One text may hold several, divided by commas.
        None => text(value)
            .map(|text| text.split(',').map(str::to_owned).collect())
            .unwrap_or_default(),
    }
}

/// Returns whether a list or mapping stands in more others than are read. Finds that without going
/// into them.
fn is_too_deep(front: &str) -> bool {
    let mut depth: usize = 0;
    for event in Parser::new_from_str(front).map_while(Result::ok) {
        match event.0 {
            Event::SequenceStart(..) | Event::MappingStart(..) => depth += 1,
            Event::SequenceEnd | Event::MappingEnd => depth -= 1,
            _ => {}
        }
        if depth > FRONT_DEPTH_MAX {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_where_obsidian_reads_them() {
        let text = "---\ntags: [work, \"#home/garden\"]\n---\n# Title #h1\n#start, (#not) a#b `#code` #2025 #y2025\n```\n#fence\n```\n%% #hidden %%\n[[Note#Part]] #Ü-1_a\n";
        assert_eq!(
            tags(text),
            ["work", "home/garden", "h1", "start", "y2025", "Ü-1_a"]
        );
        assert_eq!(tags("---\ntags: one, two\n---\n"), ["one", "two"]);
        assert_eq!(tags("---\ntags:\n  - a\n  - b\n---\n"), ["a", "b"]);
        assert_eq!(tags("---\ntags: [unclosed\n---\n#body"), ["body"]);
    }

    #[test]
    fn front_matter_that_is_deep_or_grows_is_read_in_bounded_time_and_stack() {
        let indented: String = (0..300)
            .map(|level| format!("{}a:\n", " ".repeat(level)))
            .collect();
        let grows = (1..20).map(|level| {
            format!(
                "a{level}: &a{level} [{0}, {0}, {0}]\n",
                format!("*a{}", level - 1)
            )
        });
        let grows = format!("a0: &a0 [x]\n{}", grows.collect::<String>());
        for front in [
            "- ".repeat(30_000),
            "? ".repeat(30_000),
            "[".repeat(60_000),
            "{a: ".repeat(14_000),
            indented,
            grows,
        ] {
            assert_eq!(
                aliases(&format!("---\naliases: [One]\nmore:\n {front}\n---\n")),
                Vec::<String>::new(),
                "{front:.20}"
            );
        }
    }

    /// Each of these takes minutes if every mark is looked for from the beginning, or to the end.
    #[test]
    fn large_notes_of_marks_are_read_in_one_pass() {
        let filled = |mark: &str| mark.repeat(1024 * 1024 / mark.len());
        assert_eq!(tags(&filled("`a` #b ")).len(), 1024 * 1024 / 7);
        assert_eq!(tags(&filled("%% #a %% `b`\n\n")), Vec::<String>::new());
        assert_eq!(
            tags(&format!("{}%% #a", filled("`%%` "))),
            Vec::<String>::new()
        );
        assert_eq!(links(&filled("[[")).count(), 0);
        assert_eq!(links(&filled("[[a|b]] ")).count(), 1024 * 1024 / 8);
    }

    #[test]
    fn aliases_are_read_in_all_their_forms() {
        assert_eq!(
            aliases("---\naliases: [One, Two words]\n---\n"),
            ["One", "Two words"]
        );
        assert_eq!(aliases("\u{FEFF}---\r\nalias: Only\r\n---\r\n"), ["Only"]);
        assert_eq!(aliases("---\naliases:\n- A\n- 7\n---\n"), ["A", "7"]);
        assert!(aliases("aliases: [No]\n").is_empty());
    }
}
