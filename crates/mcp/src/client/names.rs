//! Names of servers' tools: `server__tool`, in the characters that every provider accepts.

use std::collections::BTreeSet;

use super::ServerName;

/// Most bytes of a tool's name.
const LENGTH_MAX: usize = 64;

/// Returns `server__tool` in lower case, with other characters replaced by `_`, cut at 64 bytes.
fn plain(server: &ServerName, tool: &str) -> String {
    let letter = |letter: char| match letter.to_ascii_lowercase() {
        letter @ ('a'..='z' | '0'..='9' | '_') => letter,
        _ => '_',
    };
    let mut name: String = format!("{server}__{tool}").chars().map(letter).collect();
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        name.insert(0, '_');
    }
    // Every character is ASCII by now, so a name is cut at any byte.
    name.truncate(LENGTH_MAX);
    name
}

/// Returns a name that no tool has yet, with a number appended if needed.
pub(super) fn unique(server: &ServerName, tool: &str, taken: &mut BTreeSet<String>) -> String {
    let plain = plain(server, tool);
    let mut name = plain.clone();
    let mut number = 2;
    while !taken.insert(name.clone()) {
        let suffix = format!("_{number}");
        let keep = plain.len().min(LENGTH_MAX - suffix.len());
        name = format!("{}{suffix}", &plain[..keep]);
        number += 1;
    }
    name
}

#[cfg(test)]
mod tests {
    use adjutant_core::ToolName;

    use super::*;

    fn name(server: &str, tool: &str) -> String {
        unique(
            &ServerName::new(server).unwrap(),
            tool,
            &mut BTreeSet::new(),
        )
    }

    #[test]
    fn every_name_is_one_that_a_tool_can_have() {
        assert_eq!(name("github", "list_issues"), "github__list_issues");
        assert_eq!(
            name("My-Server", "getIssue.v2/x"),
            "my_server__getissue_v2_x"
        );
        assert_eq!(name("1password", "read"), "_1password__read");
        assert_eq!(name("a", "größe"), "a__gr__e");
        assert_eq!(name("a", ""), "a__");
        for odd in ["\u{1b}[2J", "a b\nc", "🦀", &"x".repeat(500)] {
            ToolName::new(name("s", odd)).unwrap();
        }
    }

    #[test]
    fn two_that_come_out_the_same_are_numbered() {
        let server = ServerName::new("s").unwrap();
        let mut taken = BTreeSet::new();
        assert_eq!(unique(&server, "a-b", &mut taken), "s__a_b");
        assert_eq!(unique(&server, "a.b", &mut taken), "s__a_b_2");
        assert_eq!(unique(&server, "A_B", &mut taken), "s__a_b_3");
        let long = "x".repeat(80);
        let first = unique(&server, &long, &mut taken);
        let second = unique(&server, &format!("{long}y"), &mut taken);
        assert_eq!((first.len(), second.len()), (64, 64));
        assert!(second.ends_with("x_2"), "{second}");
    }
}
