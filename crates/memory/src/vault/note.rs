//! The metadata of a note: tags, aliases and links.

use saphyr::{LoadableYamlNode, Yaml};
use saphyr_parser::{Event, Parser};
use serde::Serialize;

use super::markdown::Outline;
use super::path::{case_folded, link_target};

/// Bytes of front matter that is parsed. Longer front matter has no aliases and tags.
const FRONT_BYTES_MAX: usize = 64 * 1024;
/// Depth of front matter that is parsed. The parser reads and frees nested lists on the stack, so
/// deeper ones could overflow it.
const FRONT_DEPTH_MAX: usize = 64;
/// Bytes of a link. File names are shorter, and without a bound each `[[` that is never closed
/// would be searched to the end of the note.
const LINK_BYTES_MAX: usize = 2_000;

/// A note as a list shows it: its path, size and time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The path relative to the vault, with `/` and `.md`.
    pub path: String,
    /// The size of the file, in bytes.
    pub bytes: u64,
    /// The time of the last change, RFC 3339, if the system has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
}

/// The text of a note, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoteText {
    /// The path relative to the vault, with `/` and `.md`.
    pub path: String,
    /// The lines from `first_line` to `last_line`.
    pub text: String,
    /// The number of the first line in `text`, from 1.
    pub first_line: usize,
    /// The number of the last line in `text`, from 1.
    pub last_line: usize,
    /// Number of lines of the whole note.
    pub lines: usize,
    /// A remark on the lines that are left out and how to read them, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

/// Returns the tag that a word begins with, without `#`: letters, digits, `_`, `-` and `/`, not
/// digits alone.
pub(crate) fn tag_at_start(word: &str) -> Option<&str> {
    let rest = word.strip_prefix('#')?;
    let end = rest
        .find(|char: char| {
            !(char.is_alphanumeric() || matches!(char, '_' | '-' | '/') || is_part_of_emoji(char))
        })
        .unwrap_or(rest.len());
    let tag = rest.get(..end)?;
    // Obsidian takes no number for a tag: `#1` is text.
    let valid = tag
        .chars()
        .any(|char| !char.is_ascii_digit() && char != '/');
    (valid && !tag.is_empty()).then_some(tag)
}

/// Returns true for emoji, which Obsidian accepts in tags, and for combining marks, which belong to
/// the letter before.
fn is_part_of_emoji(char: char) -> bool {
    matches!(u32::from(char), 0x300..=0x36F | 0x200D | 0xFE0F | 0x2600..=0x27BF | 0x1F300..=0x1FAFF)
}

/// Returns true if `tag` is `wanted` or stands below it (`project/x` below `project`), in any case.
pub(crate) fn is_below(tag: &str, wanted: &str) -> bool {
    let (tag, wanted) = (case_folded(tag), case_folded(wanted));
    tag == wanted
        || tag
            .strip_prefix(&wanted)
            .is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the tags of a note, without `#`: those of its front matter and those in its text outside
/// code and comments.
pub(crate) fn tags(text: &str) -> Vec<String> {
    let outline = Outline::parse(text);
    let front = outline.front.clone().and_then(|front| text.get(front));
    let listed = front.and_then(|front| front_list(front, &["tags", "tag"]));
    let mut tags: Vec<String> = listed
        .iter()
        .flatten()
        .flat_map(|entry| entry.split([',', ' ']))
        .map(|tag| tag.trim().trim_start_matches('#').to_owned())
        .filter(|tag| !tag.is_empty())
        .collect();
    let mut before = ' ';
    for (at, char) in text.char_indices().skip_while(|(at, _)| *at < outline.body) {
        // A tag begins after white space; `a#b` and `[[Note#Part]]` hold none.
        if char == '#' && before.is_whitespace() && !outline.is_opaque(at) {
            tags.extend(text.get(at..).and_then(tag_at_start).map(str::to_owned));
        }
        before = char;
    }
    tags
}

/// Returns the aliases of a note, its other names.
pub(crate) fn aliases(text: &str) -> Vec<String> {
    let begin = text.trim_start_matches('\u{FEFF}');
    // Most notes have none: without the word there is nothing to parse, which is slow.
    if !begin.starts_with("---")
        || !begin
            .get(..begin.len().min(FRONT_BYTES_MAX))
            .unwrap_or(begin)
            .contains("alias")
    {
        return Vec::new();
    }
    let front = super::markdown::front_matter(text)
        .0
        .and_then(|front| text.get(front));
    let listed = front.and_then(|front| front_list(front, &["aliases", "alias"]));
    listed
        .iter()
        .flatten()
        .map(|alias| alias.trim().to_owned())
        .filter(|alias| !alias.is_empty())
        .collect()
}

/// Returns the targets of the wiki links in a text, without heading and display text.
pub(crate) fn links(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("[[").filter_map(|(at, _)| {
        let rest = text.get(at..text.floor_char_boundary(at + LINK_BYTES_MAX))?;
        let end = rest.find("]]")?;
        let link = rest.get(..end + 2)?;
        (!link.contains('\n')).then(|| link_target(link))
    })
}

/// Returns the texts of the first of these keys, a text or a list of them; none if the front matter
/// is not YAML.
fn front_list(front: &str, keys: &[&str]) -> Option<Vec<String>> {
    let documents = front_document(front)?;
    let document = documents.first()?;
    let value = keys.iter().find_map(|key| document.as_mapping_get(key))?;
    let text = |value: &Yaml<'_>| {
        value
            .as_str()
            .map(str::to_owned)
            .or_else(|| value.as_integer().map(|number| number.to_string()))
    };
    match value.as_sequence() {
        Some(list) => Some(list.iter().filter_map(text).collect()),
        // Obsidian also accepts several in one text, divided by commas.
        None => Some(text(value)?.split(',').map(str::to_owned).collect()),
    }
}

/// Parses front matter. `None` if it is no YAML, or too long or too deep to be parsed.
pub(super) fn front_document(front: &str) -> Option<Vec<Yaml<'_>>> {
    if front.len() > FRONT_BYTES_MAX || is_too_deep(front) {
        return None;
    }
    Yaml::load_from_str(front).ok()
}

/// Returns true if lists and mappings are nested deeper than is parsed. The events of the parser
/// tell that without recursion.
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

    /// Each of these takes minutes if every mark is searched for from the beginning, or to the end.
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
