//! The tools for a model that cannot be trusted with free tool calls: few of them, each with one
//! argument, which holds the user's own words.

use std::sync::Arc;

use adjutant_core::{Tool, ToolContext, ToolDefinition, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::operation::{Operation, brief_tool, definition, reads, tool};
use super::{forget, remember, write_daily_note};
use crate::rank::Query;
use crate::text::on_one_line;
use crate::{
    DatabaseMemory, KeyFact, Memories, Memory, MemoryError, Notes, RecallHit, RecallSource,
};

/// Number of results that a question is answered with.
const FOUND_MAX: usize = 5;
/// Words of a question that do not name what is asked for. A question of these and the user's name
/// alone asks for all facts.
const QUESTION_WORDS: &str = "about do everything is know me remember tell what who you";
/// Share of the best score from which another result is shown beside the best.
const SCORE_SHARE_MIN: f64 = 0.5;
/// Characters of one result.
const TEXT_CHARS_MAX: usize = 400;
/// Number of facts that are shown if all are asked for.
const LISTED_MAX: usize = 20;

/// Returns `remember`, `recall`, `write_daily_note` and `forget` over one memory, for a model that
/// cannot be trusted with free tool calls. Their arguments are the user's own words, and their
/// results are shown to the user as they are. `owner`: the user's name; a question about them alone
/// asks for all facts. They refuse every user but the memory's owner.
#[must_use]
pub fn brief_tools(memory: &Memory, owner: Option<&str>) -> Vec<Arc<dyn Tool>> {
    tools_over(&Memories::single(memory.clone()), memory.notes(), owner)
}

/// Returns `remember`, `recall` and `forget` as [`brief_tools`] does, over the facts of a database.
/// Each works in the memory of the user whose turn runs.
#[must_use]
pub fn brief_fact_tools(memory: &DatabaseMemory) -> Vec<Arc<dyn Tool>> {
    tools_over(&Memories::default().with_others(memory.clone()), None, None)
}

fn tools_over(
    memories: &Memories,
    notes: Option<Notes>,
    owner: Option<&str>,
) -> Vec<Arc<dyn Tool>> {
    let memories = || memories.clone();
    let mut tools = vec![
        brief_tool(
            remember::Remember(memories()),
            "Keep a fact that the user states about themselves or wants kept",
            "fact",
        ),
        tool(Recall {
            memories: memories(),
            owner: owner.map(str::to_lowercase),
        }),
    ];
    if let Some(notes) = notes {
        tools.push(brief_tool(
            write_daily_note::WriteDailyNote(notes),
            "Write an entry into the user's diary of today",
            "activity",
        ));
    }
    tools.push(brief_tool(
        forget::Forget(memories()),
        "Forget a fact",
        "fact",
    ));
    tools
}

/// Answers a question with the facts, notes and conversations that fit it best.
struct Recall {
    memories: Memories,
    /// The user's name, in lower case.
    owner: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    query: Option<String>,
}

impl Recall {
    /// Returns true if a question asks for the user and nothing else.
    fn is_about_owner(&self, query: &str) -> bool {
        let words = query.to_lowercase();
        let words = words
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty());
        self.owner.as_deref().is_some_and(|owner| {
            let mut others = words.clone().filter(|word| *word != owner);
            words.clone().any(|word| word == owner)
                && others.all(|word| QUESTION_WORDS.split(' ').any(|known| known == word))
        })
    }

    async fn all_facts(memory: &Memory) -> Result<Value, MemoryError> {
        let mut facts = memory.facts().list().await?;
        let known = facts.len();
        // Of one day the last is the newest; the sort is stable.
        facts.reverse();
        facts.sort_by_key(|fact| std::cmp::Reverse(fact.created));
        facts.truncate(LISTED_MAX);
        let facts: Vec<String> = facts.iter().map(fact_line).collect();
        let message = match (known, facts.len()) {
            (0, _) => "Nothing is kept yet. Tell me what to remember.".to_owned(),
            (known, shown) if known > shown => {
                format!("The {shown} newest of {known} facts:\n{}", facts.join("\n"))
            }
            _ => format!("This is what I know:\n{}", facts.join("\n")),
        };
        Ok(json!({ "message": message, "facts": known }))
    }

    async fn best_hits(
        memory: &Memory,
        query: &str,
        context: &ToolContext,
    ) -> Result<Value, MemoryError> {
        let current = Some(context.conversation);
        let mut found = memory.recall(query, None, current).await?;
        // Past conversations contain the question itself more often than its answer.
        if (found.iter()).any(|hit| hit.from != RecallSource::Conversations) {
            found.retain(|hit| hit.from != RecallSource::Conversations);
        }
        let best = found.first().map_or(0.0, |best| best.score);
        found.retain(|other| other.score >= best * SCORE_SHARE_MIN);
        found.truncate(FOUND_MAX);
        let asked = Query::new(&[(query, 1.0)]);
        let is_answered = found.iter().any(|hit| asked.has_most_in(&hit.text));
        let lines: Vec<String> = found.iter().map(hit_line).collect();
        let lines = lines.join("\n");
        let message = match (found.is_empty(), is_answered) {
            (true, _) if memory.notes().is_none() => {
                "I do not know that: nothing of it was told to me.".to_owned()
            }
            (true, _) => "I do not know that: nothing was told to me, and no note fits.".to_owned(),
            (false, true) => lines,
            (false, false) => format!("I do not know exactly that. What fits best:\n{lines}"),
        };
        Ok(json!({ "message": message, "found": found }))
    }
}

impl Operation for Recall {
    type Args = Args;

    fn definition(&self) -> ToolDefinition {
        definition(
            "recall",
            "Look up what the user told before or has in notes; without a query, all facts",
            json!({ "query": { "type": "string", "minLength": 1 } }),
            &[],
            reads(),
        )
    }

    async fn call(&self, context: &ToolContext, args: Args) -> Result<Value, ToolError> {
        let memory = self.memories.require(&context.user)?;
        let query = args.query.unwrap_or_default();
        let asks_for_all = Query::new(&[(&*query, 1.0)]).is_empty() || self.is_about_owner(&query);
        Ok(match asks_for_all {
            true => Self::all_facts(&memory).await?,
            false => Self::best_hits(&memory, &query, context).await?,
        })
    }
}

fn fact_line(fact: &KeyFact) -> String {
    match fact.created {
        Some(date) => format!("- {} ({date})", fact.content),
        None => format!("- {}", fact.content),
    }
}

/// Returns a result on one line, with its source.
fn hit_line(hit: &RecallHit) -> String {
    let line = on_one_line(&hit.text);
    let mut text: String = line.chars().take(TEXT_CHARS_MAX).collect();
    if text.len() < line.len() {
        text.push('…');
    }
    let heading = hit.heading.as_deref();
    let heading = heading.map_or(String::new(), |heading| format!("#{heading}"));
    let source = match (hit.from, hit.date) {
        (RecallSource::Facts, Some(date)) => date.to_string(),
        (RecallSource::Facts, None) => return format!("- {text}"),
        (RecallSource::Notes, _) => format!("note {}{heading}", hit.source),
        (RecallSource::Conversations, Some(date)) => format!("said on {date}"),
        (RecallSource::Conversations, None) => "said before".to_owned(),
    };
    format!("- {text} ({source})")
}
