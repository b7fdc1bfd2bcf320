//! [`Script`]: chooses the next reply, and fills in its placeholders.

use adjutant_core::recall_block;
use adjutant_core::{GenerateRequest, Message, Role};
use serde_json::Value;

use super::reply::{Reply, ScriptedArguments};

/// The replies of a script, and how often each was given.
#[derive(Debug, Default)]
pub(super) struct Script {
    replies: Vec<Reply>,
    /// The number of times each reply was given.
    given: Vec<u32>,
    started: bool,
}

impl Script {
    pub(super) fn new(replies: Vec<Reply>) -> Self {
        let given = vec![0; replies.len()];
        Self {
            replies,
            given,
            started: false,
        }
    }

    pub(super) fn push(&mut self, reply: Reply) {
        self.replies.push(reply);
        self.given.push(0);
    }

    /// Returns the reply to a request: the first that matches, else the next of the sequence. Fails
    /// with a message once there is none.
    pub(super) fn next(&mut self, request: &GenerateRequest) -> Result<Reply, String> {
        if !self.started {
            self.started = true;
            self.skip_answered(&request.messages);
        }
        let query = Query::from_messages(&request.messages);
        // A reply to these words goes first, so that a demo reacts to what it is asked.
        let chosen = self.matching(&query).or_else(|| self.in_sequence());
        match chosen {
            Some(index) => {
                self.given[index] = self.given[index].saturating_add(1);
                Ok(query.fill_in(self.replies[index].clone()))
            }
            None => Err(format!(
                "the script is over: it had {} replies",
                self.replies.len()
            )),
        }
    }

    /// Skips the replies that were given in this turn already. A process that died in the middle of
    /// a turn is replaced by one with a fresh script and a transcript with these answers. Only
    /// answers of the sequence count, not those of matching replies.
    fn skip_answered(&mut self, messages: &[Message]) {
        let turn_start = messages
            .iter()
            .rposition(|message| message.role() == Role::User)
            .unwrap_or(0);
        for at in turn_start..messages.len() {
            if messages[at].role() != Role::Assistant {
                continue;
            }
            let before = Query::from_messages(&messages[..at]);
            if let Some(index) = self.matching(&before).or_else(|| self.in_sequence()) {
                self.given[index] = self.given[index].saturating_add(1);
            }
        }
    }

    fn matching(&self, query: &Query) -> Option<usize> {
        self.position(|reply| {
            reply
                .matching
                .as_ref()
                .is_some_and(|text| query.contains(text))
        })
    }

    fn in_sequence(&self) -> Option<usize> {
        self.position(|reply| reply.matching.is_none())
    }

    fn position(&self, wanted: impl Fn(&Reply) -> bool) -> Option<usize> {
        self.replies
            .iter()
            .zip(&self.given)
            .position(|(reply, given)| *given < reply.times_max() && wanted(reply))
    }
}

/// The latest messages of a request, which a reply has to answer.
struct Query {
    /// The text that `match` is compared with: the tool results if there are any, else `input`.
    text: String,
    /// The user's last message, without facts from the memory.
    input: String,
    /// The tool results after the user's message, as text.
    result: String,
    /// The same results as JSON.
    data: Vec<Value>,
}

impl Query {
    fn from_messages(messages: &[Message]) -> Self {
        let input = messages
            .iter()
            .rfind(|message| message.role() == Role::User)
            .map(|message| recall_block::strip(&message.text()).to_owned())
            .unwrap_or_default();
        let last_other = messages
            .iter()
            .rposition(|message| message.role() != Role::Tool);
        let results = &messages[last_other.map_or(0, |at| at + 1)..];
        let (mut texts, mut result, mut data) = (Vec::new(), Vec::new(), Vec::new());
        for (_, _, answer) in results.iter().filter_map(Message::tool_result) {
            texts.push(answer.to_json().to_string());
            data.extend(answer.data.as_deref().cloned());
            result.push(match (answer.data.as_deref(), &answer.error) {
                (_, Some(error)) => error.clone(),
                (Some(Value::String(text)), None) => text.clone(),
                (Some(data), None) => data.to_string(),
                (None, None) => String::new(),
            });
        }
        let text = if texts.is_empty() {
            input.clone()
        } else {
            texts.join("\n")
        };
        Self {
            text,
            input,
            result: result.join("\n"),
            data,
        }
    }

    fn contains(&self, text: &str) -> bool {
        self.text.to_lowercase().contains(&text.to_lowercase())
    }

    /// Replaces the placeholders of a reply with the request's input and tool results.
    fn fill_in(&self, mut reply: Reply) -> Reply {
        let rest = reply
            .matching
            .as_deref()
            .map_or(self.input.as_str(), |text| after(&self.input, text));
        let values = [
            ("{{input}}", self.input.as_str()),
            ("{{rest}}", rest),
            ("{{result}}", self.result.as_str()),
        ];
        if let Some(text) = &mut reply.text {
            *text = replace(&self.fill_in_members(text), &values);
        }
        for call in &mut reply.calls {
            if let ScriptedArguments::Json(arguments) = &mut call.arguments {
                replace_in(arguments, &values);
            }
        }
        reply
    }

    /// Replaces each `{{result.NAME}}` with that member of the tool results. A dot selects a member
    /// of a member; of a list, each element is meant.
    fn fill_in_members(&self, text: &str) -> String {
        let mut pieces = text.split("{{result.");
        let mut filled = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            match piece.split_once("}}") {
                Some((path, rest)) => {
                    let path: Vec<&str> = path.split('.').collect();
                    let found: Vec<String> = self
                        .data
                        .iter()
                        .flat_map(|data| members(data, &path))
                        .collect();
                    filled.push_str(&found.join(", "));
                    filled.push_str(rest);
                }
                None => filled.extend(["{{result.", piece]),
            }
        }
        filled
    }
}

/// Returns the values at a path as text.
fn members(value: &Value, path: &[&str]) -> Vec<String> {
    match (value, path) {
        (Value::Array(items), _) => items.iter().flat_map(|item| members(item, path)).collect(),
        (Value::String(text), []) => vec![text.clone()],
        (value, []) => vec![value.to_string()],
        (value, [name, rest @ ..]) => value
            .get(name)
            .map(|value| members(value, rest))
            .unwrap_or_default(),
    }
}

/// Returns the part of `input` after `text`, trimmed; all of it if `text` is not in it.
fn after<'a>(input: &'a str, text: &str) -> &'a str {
    let text = text.to_lowercase();
    // Lower case may have another length in bytes than the original, so the end is searched for in
    // the original.
    let end = input
        .char_indices()
        .find(|(at, _)| input[*at..].to_lowercase().starts_with(&text))
        .map_or(0, |(at, _)| {
            input[at..]
                .char_indices()
                .nth(text.chars().count())
                .map_or(input.len(), |(end, _)| at + end)
        });
    input[end..].trim_matches(|c: char| c.is_whitespace() || c == ':')
}

fn replace(text: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(name, value)
    })
}

fn replace_in(value: &mut Value, values: &[(&str, &str)]) {
    match value {
        Value::String(text) => *text = replace(text, values),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_in(item, values)),
        Value::Object(map) => map.values_mut().for_each(|item| replace_in(item, values)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
