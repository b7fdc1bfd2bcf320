//! The tools for a model that cannot be trusted with free tool calls: few, each with one argument,
//! which is what the person said.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{
    Annotations, Arguments, BoxFuture, Prepared, Probe, Tool, ToolContext, ToolDefinition,
    ToolError,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{definition, forget, read, reads, remember, write_daily_note, writes};
use crate::rank::Query;
use crate::{KeyFact, Memories, Memory, MemoryError, Place, Recollection};

/// The most that is shown as the answer to a question.
const FOUND_MAX: usize = 5;
/// Words that ask for something, and not for what.
const ASKS: &str = "about do everything is know me remember tell what who you";
/// The part of the best score that anything else has to have to be shown beside it.
const BESIDE: f64 = 0.5;
/// Characters that are shown of each at most.
const TEXT_CHARS_MAX: usize = 400;
/// Facts that are shown of all.
const LISTED_MAX: usize = 20;

/// Returns `remember`, `recall`, `write_daily_note` and `forget` over one memory, for a model that
/// cannot be trusted with free tool calls: their words are the person's own, and their results are
/// said to the person as they are. `owner`: what the person is called; a question about them is
/// about all facts. They refuse every user but the memory's owner.
#[must_use]
pub fn brief_tools(memory: &Memory, owner: Option<&str>) -> Vec<Arc<dyn Tool>> {
    let destroys = Annotations {
        destructive: true,
        ..writes()
    };
    let one =
        |tool: Arc<dyn Tool>, name, description, argument: &str, annotations| -> Arc<dyn Tool> {
            let properties = json!({ argument: { "type": "string", "minLength": 1 } });
            let definition = definition(name, description, properties, &[argument], annotations);
            Arc::new(Brief { tool, definition })
        };
    let memories = Memories::of_one(memory.clone());
    let mut tools = vec![
        one(
            Arc::new(remember::Remember::new(&memories)),
            "remember",
            "Keep a fact that the user states about themselves or wants kept",
            "fact",
            writes(),
        ),
        Arc::new(Recall::new(memory, owner)),
    ];
    if let Some(notes) = memory.notes() {
        tools.push(one(
            Arc::new(write_daily_note::WriteDailyNote::new(&notes)),
            "write_daily_note",
            "Write an entry into the user's diary of today",
            "activity",
            writes(),
        ));
    }
    tools.push(one(
        Arc::new(forget::Forget::new(&memories)),
        "forget",
        "Forget a fact",
        "fact",
        destroys,
    ));
    tools
}

/// A tool with a definition of its own, which takes less than the tool does.
struct Brief {
    tool: Arc<dyn Tool>,
    definition: ToolDefinition,
}

impl Tool for Brief {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn title(&self) -> Option<&str> {
        self.tool.title()
    }

    fn prepare<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Prepared, ToolError>> {
        self.tool.prepare(context, arguments)
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        self.tool.call(context, arguments)
    }

    /// Also what the model would be told to ask: this one is not asked again.
    fn describe(&self, arguments: &Arguments, data: &Value) -> Option<String> {
        let words = self.tool.describe(arguments, data)?;
        let beside = data
            .get("beside")
            .and_then(|beside| beside.get("fact"))
            .and_then(Value::as_str);
        Some(match beside {
            Some(beside) => format!(
                "{words}\nI know “{beside}” too, and both can hardly be true: forget the one that is wrong."
            ),
            None => words,
        })
    }

    fn probe<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: &'a Arguments,
    ) -> BoxFuture<'a, Probe> {
        self.tool.probe(context, arguments)
    }

    fn timeout(&self) -> Option<Duration> {
        self.tool.timeout()
    }
}

/// Says what is known that fits a question best.
struct Recall {
    definition: ToolDefinition,
    memory: Memory,
    owner: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    query: Option<String>,
}

impl Recall {
    fn new(memory: &Memory, owner: Option<&str>) -> Self {
        let definition = definition(
            "recall",
            "Look up what the user told before or has in notes; without a query, all facts",
            json!({ "query": { "type": "string", "minLength": 1 } }),
            &[],
            reads(),
        );
        Self {
            definition,
            memory: memory.clone(),
            owner: owner.map(str::to_lowercase),
        }
    }

    /// Returns whether nothing but the person is asked for.
    fn is_about_owner(&self, query: &str) -> bool {
        let words = query.to_lowercase();
        let words = words
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty());
        self.owner.as_deref().is_some_and(|owner| {
            let mut others = words.clone().filter(|word| *word != owner);
            words.clone().any(|word| word == owner)
                && others.all(|word| ASKS.split_whitespace().any(|asks| asks == word))
        })
    }

    async fn all(&self) -> Result<Value, MemoryError> {
        let mut facts = self.memory.facts().list().await?;
        let known = facts.len();
        facts.reverse();
        facts.sort_by_key(|fact| std::cmp::Reverse(fact.created));
        facts.truncate(LISTED_MAX);
        let facts: Vec<String> = facts.iter().map(line_of_fact).collect();
        let message = match (known, facts.len()) {
            (0, _) => "Nothing is kept yet. Tell me what to remember.".to_owned(),
            (known, shown) if known > shown => {
                format!("The {shown} newest of {known} facts:\n{}", facts.join("\n"))
            }
            _ => format!("This is what I know:\n{}", facts.join("\n")),
        };
        Ok(json!({ "message": message, "facts": known }))
    }

    async fn fitting(&self, query: &str, context: &ToolContext) -> Result<Value, MemoryError> {
        let mut found = self
            .memory
            .recall(query, None, Some(context.conversation))
            .await?;
        // What was said in conversations has the question itself in it, more often than the answer.
        if found.iter().any(|found| found.from != Place::Conversations) {
            found.retain(|found| found.from != Place::Conversations);
        }
        let best = found.first().map_or(0.0, |best| best.score);
        found.retain(|other| other.score >= best * BESIDE);
        found.truncate(FOUND_MAX);
        let asked = Query::of(&[(query, 1.0)]);
        let answers = found.iter().any(|found| asked.has_most_in(&found.text));
        let lines: Vec<String> = found.iter().map(line).collect();
        let message = match (lines.is_empty(), answers) {
            (true, _) => "I do not know that: nothing was told to me, and no note fits.".to_owned(),
            (false, true) => lines.join("\n"),
            (false, false) => format!(
                "I do not know exactly that. What fits best:\n{}",
                lines.join("\n")
            ),
        };
        Ok(json!({ "message": message, "found": found }))
    }
}

impl Tool for Recall {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let args: Args = read(arguments)?;
            if context.user != *self.memory.owner() {
                return Err(MemoryError::NotYours.into());
            }
            let query = args.query.unwrap_or_default();
            let asked = Query::of(&[(&*query, 1.0)]);
            Ok(if asked.is_empty() || self.is_about_owner(&query) {
                self.all().await?
            } else {
                self.fitting(&query, context).await?
            })
        })
    }

    fn describe(&self, _arguments: &Arguments, data: &Value) -> Option<String> {
        super::message(data)
    }
}

fn line_of_fact(fact: &KeyFact) -> String {
    match fact.created {
        Some(date) => format!("- {} ({date})", fact.content),
        None => format!("- {}", fact.content),
    }
}

/// Returns what was found, and where it is from.
fn line(found: &Recollection) -> String {
    let line = found.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text: String = line.chars().take(TEXT_CHARS_MAX).collect();
    if text.len() < line.len() {
        text.push('…');
    }
    let heading = found
        .heading
        .as_deref()
        .map(|heading| format!("#{heading}"))
        .unwrap_or_default();
    let source = match (found.from, found.date) {
        (Place::Facts, Some(date)) => date.to_string(),
        (Place::Facts, None) => return format!("- {text}"),
        (Place::Notes, _) => format!("note {}{heading}", found.source),
        (Place::Conversations, Some(date)) => format!("said on {date}"),
        (Place::Conversations, None) => "said before".to_owned(),
    };
    format!("- {text} ({source})")
}
