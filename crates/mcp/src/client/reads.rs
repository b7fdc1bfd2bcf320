//! Tools whose names say that they only read, of servers that do not say it themselves. The person
//! decides whether to believe it.

use rmcp::model::Tool;

use super::ToolRules;
use super::config::is_listed;

/// Words that say a tool reads.
const READS: [&str; 19] = [
    "browse",
    "check",
    "count",
    "describe",
    "fetch",
    "find",
    "get",
    "info",
    "inspect",
    "list",
    "lookup",
    "query",
    "read",
    "search",
    "show",
    "status",
    "summarize",
    "validate",
    "view",
];

/// Words that say a tool does more than read, wherever they stand in its name.
const CHANGES: [&str; 58] = [
    "accept", "add", "append", "apply", "approve", "archive", "assign", "book", "buy", "call",
    "cancel", "change", "clear", "click", "close", "commit", "copy", "create", "delete", "deploy",
    "disable", "drop", "edit", "enable", "exec", "execute", "import", "insert", "install", "kill",
    "mark", "merge", "modify", "move", "open", "patch", "pay", "post", "publish", "push", "put",
    "remove", "rename", "replace", "reset", "restore", "run", "save", "send", "set", "start",
    "stop", "submit", "transfer", "update", "upload", "upsert", "write",
];

/// Returns true if a tool's name says that it only reads, and neither the server nor a rule says
/// anything about it.
pub(super) fn is_unannotated_read(tool: &Tool, rules: &ToolRules) -> bool {
    let hints = tool.annotations.clone().unwrap_or_default();
    hints.read_only_hint.is_none()
        && hints.destructive_hint.is_none()
        && !is_listed(&rules.read_only, &tool.name)
        && !is_listed(&rules.destructive, &tool.name)
        && says_it_reads(&tool.name)
}

/// Returns true if a name has a word that says the tool reads, and none that says it changes.
fn says_it_reads(name: &str) -> bool {
    // A name is stored as an entry of a rule, where other characters may have a meaning.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./ ".contains(letter);
    if !name.chars().all(is_plain) {
        return false;
    }
    let words = words(name);
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    has(&READS) && !has(&CHANGES)
}

/// Splits a name at its punctuation and at its capitals, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if !letter.is_ascii_alphanumeric() || (letter.is_ascii_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = letter.is_ascii_lowercase();
        if letter.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_if_a_word_says_so_and_none_says_more() {
        for name in [
            "get_task",
            "list-tables",
            "readNote",
            "obsidian_search_notes",
            "API-get-user",
            "read_query",
        ] {
            assert!(says_it_reads(name), "{name}");
        }
        for name in [
            "write_query",
            "get_and_delete",
            "calculate",
            "getOrCreate",
            "forget",
            "budget",
            "get_*",
            "listen",
            "",
        ] {
            assert!(!says_it_reads(name), "{name}");
        }
    }
}
