//! MCP servers in the JSON that the pages of servers print, and that other clients read.

use serde_json::{Map, Value};

use super::entry::Entry;

/// A server in the JSON.
#[derive(Debug, PartialEq)]
pub(super) struct Found {
    pub(super) name: String,
    /// The entry, or the reason for which it cannot be used.
    pub(super) entry: Result<Entry, String>,
    /// Notes for the person about what was left out or changed.
    pub(super) notes: Vec<String>,
}

/// Keys of other clients that say nothing about how to reach a server.
const IGNORED: [&str; 8] = [
    "alwaysAllow",
    "autoApprove",
    "description",
    "disabledTools",
    "enabled",
    "name",
    "timeout",
    "trust",
];

/// Parses the servers below `mcpServers`, `servers` or `mcp.servers`, or at the top. The outer
/// braces may be missing, as in many examples.
///
/// # Errors
/// The text is no JSON, or has no servers.
pub(super) fn parse(text: &str) -> Result<Vec<Found>, String> {
    let text = text.trim();
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => serde_json::from_str(&format!("{{{}}}", text.trim_end_matches(',')))
            .map_err(|_| error.to_string())?,
    };
    let inner = ["/mcpServers", "/mcp/servers", "/servers"]
        .iter()
        .find_map(|path| value.pointer(path));
    let servers = inner.unwrap_or(&value).as_object();
    let is_server = |server: &Value| {
        ["command", "url", "serverUrl", "httpUrl"]
            .iter()
            .any(|key| server.get(key).is_some())
    };
    let servers = servers.filter(|servers| {
        !servers.is_empty()
            && servers
                .values()
                .all(|server| inner.is_some() || is_server(server))
    });
    let servers = servers.ok_or("there is no object mcpServers in it")?;
    Ok(servers
        .iter()
        .map(|(name, server)| found(name, server))
        .collect())
}

fn found(name: &str, server: &Value) -> Found {
    let mut notes = Vec::new();
    let entry = match server.as_object() {
        Some(server) => entry(server, &mut notes),
        None => Err("it is no object".to_owned()),
    };
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    let plain: String = name
        .chars()
        .map(|letter| if fits(letter) { letter } else { '-' })
        .take(32)
        .collect();
    if plain != name {
        notes.push(format!("it was called {name:?}"));
    }
    Found {
        name: plain,
        entry,
        notes,
    }
}

fn entry(server: &Map<String, Value>, notes: &mut Vec<String>) -> Result<Entry, String> {
    let text = |key: &str| server.get(key).and_then(Value::as_str).map(str::to_owned);
    let transport = text("type").or_else(|| text("transport"));
    if transport.as_deref() == Some("sse") {
        return Err("it speaks the older HTTP+SSE, which is not supported".to_owned());
    }
    let words = |key: &str| -> Result<Vec<String>, String> {
        match server.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(word)) => Ok(vec![word.clone()]),
            Some(Value::Array(words)) => words
                .iter()
                .map(|word| word.as_str().map(str::to_owned))
                .collect::<Option<_>>()
                .ok_or_else(|| format!("{key} has an entry that is no text")),
            Some(_) => Err(format!("{key} is no list of texts")),
        }
    };
    let mut command = words("command")?;
    command.extend(words("args")?);
    let url = text("url")
        .or_else(|| text("serverUrl"))
        .or_else(|| text("httpUrl"));
    let env = texts(server, "env", notes)?;
    let headers = texts(server, "headers", notes)?;
    for key in server.keys() {
        let known = [
            "type",
            "transport",
            "command",
            "args",
            "url",
            "serverUrl",
            "httpUrl",
            "env",
            "headers",
            "cwd",
            "disabled",
        ];
        if !known.contains(&key.as_str()) && !IGNORED.contains(&key.as_str()) {
            notes.push(format!("{key} was left out"));
        }
    }
    Ok(Entry {
        command,
        url,
        env,
        headers,
        bearer_token_env: None,
        cwd: text("cwd"),
        disabled: server.get("disabled") == Some(&Value::Bool(true)),
    })
}

fn texts(
    server: &Map<String, Value>,
    key: &str,
    notes: &mut Vec<String>,
) -> Result<Vec<(String, String)>, String> {
    let Some(texts) = server.get(key).filter(|texts| !texts.is_null()) else {
        return Ok(Vec::new());
    };
    let texts = texts
        .as_object()
        .ok_or_else(|| format!("{key} is no object"))?;
    let mut pairs = Vec::new();
    for (name, value) in texts {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return Err(format!("{key}.{name} is no text")),
        };
        // VS Code's way to write a variable.
        let value = value.replace("${env:", "${");
        if is_placeholder(&value) {
            notes.push(format!(
                "{key}.{name} looks like a placeholder: put your own value there, or ${{VARIABLE}}"
            ));
        }
        pairs.push((name.clone(), value));
    }
    Ok(pairs)
}

/// Returns true for a value such as `<your token>`, `YOUR_API_KEY` or `${input:key}`.
fn is_placeholder(value: &str) -> bool {
    let lower = value.to_lowercase();
    lower.is_empty()
        || lower.contains("${input:")
        || (lower.contains('<') && lower.contains('>'))
        || ["your_", "your-", "your ", "xxx"]
            .iter()
            .any(|start| lower.contains(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Found {
        let mut found = parse(text).unwrap();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_usual_shapes_are_read() {
        let inner =
            r#"{"git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"A": "${env:B}"}}}"#;
        for text in [
            format!(r#"{{"mcpServers": {inner}}}"#),
            format!(r#"{{"servers": {inner}}}"#),
            format!(r#"{{"mcp": {{"servers": {inner}}}}}"#),
            format!(r#""mcpServers": {inner},"#),
            inner.to_owned(),
        ] {
            let found = one(&text);
            let entry = found.entry.unwrap();
            assert_eq!(entry.command, strings(&["uvx", "mcp-server-git"]), "{text}");
            assert_eq!(entry.env, [("A".to_owned(), "${B}".to_owned())]);
            assert_eq!((found.name.as_str(), found.notes.len()), ("git", 0));
        }
        let remote = one(
            r#"{"mcpServers": {"My API": {"type": "http", "url": "https://h/mcp", "headers": {"X-Key": "<your key>"}, "oauth": {}}}}"#,
        );
        assert_eq!(remote.name, "My-API");
        assert_eq!(remote.notes.len(), 3, "{:?}", remote.notes);
        assert_eq!(remote.entry.unwrap().url.as_deref(), Some("https://h/mcp"));
    }

    #[test]
    fn an_unusable_entry_has_its_reason() {
        assert!(parse("nothing").is_err());
        assert!(parse(r#"{"mcpServers": {}}"#).is_err());
        assert!(parse(r#"{"theme": "dark"}"#).is_err());
        let old = one(r#"{"mcpServers": {"x": {"type": "sse", "url": "https://h/sse"}}}"#);
        assert!(old.entry.unwrap_err().contains("HTTP+SSE"));
        let wrong = one(r#"{"mcpServers": {"x": {"command": "a", "args": [1]}}}"#);
        assert!(wrong.entry.unwrap_err().contains("args"));
    }
}
