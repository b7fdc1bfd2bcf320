//! Which answer is next.

use adjutant_core::told::words_alone;
use adjutant_core::{GenerateRequest, Message, Role};
use serde_json::Value;

use super::reply::{Reply, ScriptedArguments};

/// The replies of a script and how far it was played.
#[derive(Debug, Default)]
pub(super) struct Script {
    replies: Vec<Reply>,
    /// How often each reply was given.
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

    /// The reply to a request: the first that matches, else the next of the sequence. Fails in
    /// words once there is none.
    pub(super) fn next(&mut self, request: &GenerateRequest) -> Result<Reply, String> {
        if !self.started {
            self.started = true;
            self.skip_what_was_answered(&request.messages);
        }
        let latest = Latest::of(&request.messages);
        let chosen = self.matching(&latest).or_else(|| self.in_sequence());
        match chosen {
            Some(index) => {
                self.given[index] = self.given[index].saturating_add(1);
                Ok(latest.fill_in(self.replies[index].clone()))
            }
            None => Err(format!(
                "the script is over: it had {} replies",
                self.replies.len()
            )),
        }
    }

    /// A process that died in the middle of a turn comes back with a fresh script and a transcript
    /// that holds the answers it already gave. Only answers the sequence gave count, not those of
    /// matching replies.
    fn skip_what_was_answered(&mut self, messages: &[Message]) {
        let asked = messages
            .iter()
            .rposition(|message| message.role() == Role::User)
            .unwrap_or(0);
        for at in asked..messages.len() {
            if messages[at].role() != Role::Assistant {
                continue;
            }
            let before = Latest::of(&messages[..at]);
            if let Some(index) = self.matching(&before).or_else(|| self.in_sequence()) {
                self.given[index] = self.given[index].saturating_add(1);
            }
        }
    }

    fn matching(&self, latest: &Latest) -> Option<usize> {
        self.position(|reply| {
            reply
                .matching
                .as_ref()
                .is_some_and(|words| latest.holds(words))
        })
    }

    fn in_sequence(&self) -> Option<usize> {
        self.position(|reply| reply.matching.is_none())
    }

    fn position(&self, wanted: impl Fn(&Reply) -> bool) -> Option<usize> {
        self.replies
            .iter()
            .zip(&self.given)
            .position(|(reply, given)| *given < reply.uses_max() && wanted(reply))
    }
}

/// What a request asks to be answered: the person's last words, or the tool results behind them.
struct Latest {
    /// What `match` looks at.
    words: String,
    /// The person's last words, without what a memory put in front of them.
    input: String,
    /// What the tools returned, if they are what is answered.
    result: String,
    /// The same as data.
    data: Vec<Value>,
}

impl Latest {
    fn of(messages: &[Message]) -> Self {
        let input = messages
            .iter()
            .rfind(|message| message.role() == Role::User)
            .map(|message| words_alone(&message.text()).to_owned())
            .unwrap_or_default();
        let results: Vec<&Message> = messages
            .iter()
            .rev()
            .take_while(|message| message.role() == Role::Tool)
            .collect();
        let (mut words, mut result, mut data) = (Vec::new(), Vec::new(), Vec::new());
        for (_, _, answer) in results
            .iter()
            .rev()
            .filter_map(|message| message.tool_result())
        {
            words.push(answer.to_json().to_string());
            data.extend(answer.data.as_deref().cloned());
            result.push(match (answer.data.as_deref(), &answer.error) {
                (_, Some(error)) => error.clone(),
                (Some(Value::String(text)), None) => text.clone(),
                (Some(data), None) => data.to_string(),
                (None, None) => String::new(),
            });
        }
        let words = if words.is_empty() {
            input.clone()
        } else {
            words.join("\n")
        };
        Self {
            words,
            input,
            result: result.join("\n"),
            data,
        }
    }

    fn holds(&self, words: &str) -> bool {
        self.words.to_lowercase().contains(&words.to_lowercase())
    }

    /// Puts the request's own words into the placeholders of a reply.
    fn fill_in(&self, mut reply: Reply) -> Reply {
        let rest = reply
            .matching
            .as_deref()
            .map_or(self.input.as_str(), |words| after(&self.input, words));
        let values = [
            ("{{input}}", self.input.as_str()),
            ("{{rest}}", rest),
            ("{{result}}", self.result.as_str()),
        ];
        if let Some(text) = &mut reply.text {
            *text = replace(&self.with_members(text), &values);
        }
        for call in &mut reply.calls {
            if let ScriptedArguments::Json(arguments) = &mut call.arguments {
                replace_in(arguments, &values);
            }
        }
        reply
    }
}

impl Latest {
    /// Puts members of what the tools returned in the places of `{{result.NAME}}`; a dot goes
    /// deeper, and of a list each element is meant.
    fn with_members(&self, text: &str) -> String {
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

/// What stands in a value at a path, as text.
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

/// What follows `words` in `input`, without the blanks around it; everything if it is not there.
fn after<'a>(input: &'a str, words: &str) -> &'a str {
    let words = words.to_lowercase();
    // Lower case may be longer or shorter in bytes than what it came from, so the place is looked
    // for in the original.
    let end = input
        .char_indices()
        .find(|(at, _)| input[*at..].to_lowercase().starts_with(&words))
        .map_or(0, |(at, _)| {
            input[at..]
                .char_indices()
                .nth(words.chars().count())
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
