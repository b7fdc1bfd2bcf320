//! The decisions that scores and words lead to, over every sentence of `evals/sentences`. Where the
//! model would choose, the right choice is taken if it is offered: the figures say what the rules
//! for words make possible.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use adjutant_core::{
    ActionKind, ActionScores, Annotations, Content, Counters, FinishReason, GenerateRequest,
    GenerateResponse, Language, Message, ModelId, Part, ProviderId, RESERVED, Reference,
    ReferenceArgument, ToolDefinition, Usage,
};
use adjutant_weak::WeakTools;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::sentences::{self, Line};

/// Probability of the actions that are right, if scores are not read from a file.
const GIVEN: f32 = 0.95;

/// A line of `target/action-scores.jsonl`.
#[derive(Deserialize)]
struct Scored {
    id: String,
    language: String,
    scores: Vec<f32>,
}

/// The outcome of a sentence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    #[default]
    Right,
    Asked,
    Missed,
    Wrong,
}

impl Verdict {
    pub(crate) const ALL: [(Self, &'static str); 4] = [
        (Self::Right, "right"),
        (Self::Asked, "asked"),
        (Self::Missed, "missed"),
        (Self::Wrong, "wrong change"),
    ];
}

/// The sentences with what they are judged by.
pub(crate) struct Evaluation {
    /// Each with the tasks of its list.
    pub(crate) lines: Vec<(Line, Vec<String>)>,
    pub(crate) tools: Vec<ToolDefinition>,
    /// The scores of sentences, if they are read from a file.
    known: Option<BTreeMap<String, ActionScores>>,
}

impl Evaluation {
    /// Reads the sentences, and the scores of a file: without one the right actions are given.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(crate) fn new(root: &Path, scores: Option<&Path>) -> Result<Self, String> {
        let known = scores.map(read_scores).transpose()?;
        let mut lines = sentences::lines(&root.join("evals/sentences"))?;
        if let Some(known) = &known {
            lines.retain(|(line, _)| known.contains_key(&line.id));
        }
        Ok(Self {
            lines,
            tools: tools()?,
            known,
        })
    }

    /// Returns the verdict of every sentence, with the answer that it is of.
    ///
    /// # Errors
    /// A sentence of no language or kind of action.
    pub(crate) fn judged(&self, weak: &WeakTools) -> Result<Vec<Judged>, String> {
        let judged = |(line, tasks): &(Line, Vec<String>)| {
            let known = self.known.as_ref().and_then(|known| known.get(&line.id));
            let scores = known.map_or_else(|| given(line), |scores| Ok(*scores))?;
            best(weak, line, tasks, &self.tools, scores)
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = self.lines.len().div_ceil(threads).max(1);
        std::thread::scope(|scope| {
            let parts: Vec<_> = (self.lines.chunks(share))
                .map(|lines| scope.spawn(move || lines.iter().map(judged).collect::<Vec<_>>()))
                .collect();
            parts
                .into_iter()
                .flat_map(|part| {
                    let stopped = |_| vec![Err("a thread stopped".to_owned())];
                    part.join().unwrap_or_else(stopped)
                })
                .collect()
        })
    }
}

/// Returns the scores of a sentence if the right actions are known.
///
/// # Errors
/// A language or kind of action that there is none of.
pub(crate) fn given(line: &Line) -> Result<ActionScores, String> {
    let scores = ActionScores::new(sentences::language(line)?);
    let kinds = sentences::kinds(&line.actions)?.into_iter();
    Ok(kinds.fold(scores, |scores, kind| scores.with(kind, GIVEN)))
}

/// A verdict with the answer that it is of.
pub(crate) type Judged = (Verdict, GenerateResponse);

/// Prints the shares of the verdicts, by class and language.
///
/// # Errors
/// Those of [`Evaluation`].
pub(crate) fn run(root: &Path, scores: Option<&Path>) -> Result<(), String> {
    let evaluation = Evaluation::new(root, scores)?;
    let judged = evaluation.judged(&WeakTools::new())?;
    let verdicts = judged.iter().map(|(verdict, _)| *verdict);
    let lines = evaluation.lines.iter().map(|(line, _)| line);
    print_shares(lines.zip(verdicts));
    Ok(())
}

/// Prints the shares of verdicts of sentences, by class and language.
pub(crate) fn print_shares<'a>(judged: impl Iterator<Item = (&'a Line, Verdict)>) {
    let mut counts: BTreeMap<(String, Verdict), usize> = BTreeMap::new();
    for (line, verdict) in judged {
        let class = format!("class {}", line.class);
        for group in ["all".to_owned(), class, line.lang.clone()] {
            *counts.entry((group, verdict)).or_default() += 1;
        }
    }
    let mut groups: Vec<&String> = counts.keys().map(|(group, _)| group).collect();
    groups.dedup();
    print!("{:<16} {:>9}", "", "sentences");
    Verdict::ALL
        .iter()
        .for_each(|(_, name)| print!("  {name:>12}"));
    println!();
    for group in groups {
        let count = |verdict| counts.get(&(group.clone(), verdict)).copied().unwrap_or(0);
        let all: usize = Verdict::ALL
            .iter()
            .map(|(verdict, _)| count(*verdict))
            .sum();
        print!("{group:<16} {all:>9}");
        for (verdict, _) in Verdict::ALL {
            let share = 100.0 * count(verdict) as f64 / all.max(1) as f64;
            print!("  {share:>10.1} %");
        }
        println!();
    }
}

/// Prints the sentences of a class that are not right, with the right actions given: the verdict,
/// what is right, and what the words lead to.
///
/// # Errors
/// Those of [`Evaluation`].
pub(crate) fn misses(root: &Path, class: &str) -> Result<(), String> {
    let evaluation = Evaluation::new(root, None)?;
    let judged = evaluation.judged(&WeakTools::new())?;
    for ((line, tasks), (verdict, response)) in evaluation.lines.iter().zip(&judged) {
        if line.class != class || *verdict == Verdict::Right {
            continue;
        }
        let name = Verdict::ALL.iter().find(|(known, _)| known == verdict);
        let (_, name) = name.copied().unwrap_or_default();
        println!("{name}, {}, {}: {}", line.id, line.lang, line.say);
        for (speaker, text) in &line.history {
            println!("    {speaker}: {text}");
        }
        println!("    tasks: {}", tasks.join(" | "));
        let right = sentences::right(line).into_iter().map(Value::from);
        let right: Vec<String> = right.map(|right| right.to_string()).collect();
        println!("    right: {}", right.join(" or "));
        for part in &response.parts {
            match &part.content {
                Content::ToolCall(call) => {
                    println!("    is: {} {}", call.name, json!(call.arguments));
                }
                Content::Text { text } => println!("    is: {text}"),
                _ => {}
            }
        }
    }
    Ok(())
}

fn read_scores(file: &Path) -> Result<BTreeMap<String, ActionScores>, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    text.lines()
        .map(|line| {
            let line: Scored = serde_json::from_str(line).map_err(|error| error.to_string())?;
            let language = Language::ALL
                .into_iter()
                .find(|language| language.code() == line.language)
                .unwrap_or_default();
            let scores = ActionKind::ALL.into_iter().zip(line.scores).fold(
                ActionScores::new(language),
                |scores, (kind, probability)| scores.with(kind, probability),
            );
            Ok((line.id, scores))
        })
        .collect()
}

/// Returns the tools of the terminal's assistant with their parts that matter here.
fn tools() -> Result<Vec<ToolDefinition>, String> {
    let text = json!({ "type": "string", "minLength": 1 });
    let (task, none) = (json!({ "type": "string" }), Annotations::default());
    let reads = Annotations {
        read_only: true,
        ..none
    };
    let destroys = Annotations {
        destructive: true,
        ..none
    };
    [
        ("add_task", json!({ "description": text }), none),
        ("complete_task", json!({ "task_id": task }), none),
        ("update_task", json!({ "task_id": task, "description": text }), none),
        ("delete_task", json!({ "task_id": task }), destroys),
        ("list_tasks", json!({}), reads),
        ("remember", json!({ "fact": text }), none),
        ("recall", json!({ "query": text }), reads),
        ("write_daily_note", json!({ "activity": text }), none),
        ("forget", json!({ "fact": text }), destroys),
    ]
    .into_iter()
    .map(|(name, properties, annotations)| {
        let required: Vec<&String> = properties.as_object().into_iter().flatten().map(|(name, _)| name).collect();
        // A query may be left out.
        let required = if name == "recall" { json!([]) } else { json!(required) };
        let has_task = properties.get("task_id").is_some();
        let schema = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false
        });
        let mut tool = ToolDefinition::new(name, "A tool.", schema)
            .map_err(|error| error.to_string())?
            .annotated(annotations);
        tool.references.extend(has_task.then(|| ReferenceArgument {
            argument: "task_id".to_owned(),
            kind: "task".to_owned(),
        }));
        Ok(tool)
    })
    .collect()
}

/// Returns the verdict of a sentence for the best of the answers that are right.
fn best(
    weak: &WeakTools,
    line: &Line,
    tasks: &[String],
    tools: &[ToolDefinition],
    scores: ActionScores,
) -> Result<Judged, String> {
    let references = references(tasks);
    let mut request = GenerateRequest::new(messages(line)?);
    request.tools = tools.to_vec().into();
    let encoded = weak.encode(&request, &references, Some(&scores));
    let schema = encoded.response_schema.unwrap_or_default();
    let judged = |right: &Vec<Value>| {
        let answer = Value::from(chosen(&schema, right)).to_string();
        let decoded = weak.decode(response(answer)?, &request, &references, Some(&scores));
        Ok((judge(&decoded, right), decoded))
    };
    let judged = sentences::right(line)
        .iter()
        .map(judged)
        .collect::<Result<Vec<_>, String>>()?;
    let best = judged.into_iter().min_by_key(|(verdict, _)| *verdict);
    best.ok_or_else(|| format!("{}: nothing is right", line.id))
}

/// Returns the tasks of a list, of which those with an asterisk are done.
pub(crate) fn references(tasks: &[String]) -> Vec<Reference> {
    let reference = |(index, task): (usize, &String)| Reference {
        kind: "task".to_owned(),
        id: (index + 1).to_string(),
        label: task.trim_start_matches('*').to_owned(),
        done: task.starts_with('*'),
    };
    tasks.iter().enumerate().map(reference).collect()
}

/// Returns the messages of a sentence, the last one its own.
///
/// # Errors
/// A text that is no message.
pub(crate) fn messages(line: &Line) -> Result<Vec<Message>, String> {
    let earlier = line
        .history
        .iter()
        .map(|(speaker, text)| match speaker.as_str() {
            "user" => Message::user(text),
            _ => Message::assistant(vec![Part::ours(Content::Text { text: text.clone() })]),
        });
    let all = earlier.chain([Message::user(&line.say)]);
    all.map(|message| message.map_err(|error| error.to_string()))
        .collect()
}

fn response(text: String) -> Result<GenerateResponse, String> {
    Ok(GenerateResponse {
        parts: vec![Part::ours(Content::Text { text })],
        finish: FinishReason::Stop,
        usage: Usage::default(),
        model: ModelId {
            provider: ProviderId::new("none").map_err(|error| error.to_string())?,
            name: "none".to_owned(),
        },
        counters: Counters::default(),
        cost: None,
        certainty: None,
        losses: Vec::new(),
    })
}

/// Returns the answer to a schema: of each choice the right one, or else the first.
fn chosen(schema: &Value, right: &[Value]) -> Vec<Value> {
    let fixed = schema.get("prefixItems").and_then(Value::as_array);
    let items = fixed.into_iter().flatten().chain(schema.get("items"));
    let mut answer: Vec<Value> = Vec::new();
    for item in items {
        let properties = item.get("properties").and_then(Value::as_object);
        let Some((tool, arguments)) = properties.and_then(|properties| properties.iter().next())
        else {
            continue;
        };
        let action = match tool.as_str() {
            "add_task" => "add",
            "update_task" => "rename",
            _ => {
                answer.push(json!({ tool: { "text": "Hello." } }));
                continue;
            }
        };
        let choices = arguments.pointer("/properties/description/enum");
        let choices: Vec<&str> = choices
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let task = arguments.pointer("/properties/task_id/enum/0");
        let call = |text: &str| match task {
            Some(task) => json!({ tool: { "task_id": task, "description": text } }),
            None => json!({ tool: { "description": text } }),
        };
        let mut calls: Vec<Value> = right
            .iter()
            .filter(|wanted| wanted[0] == action)
            .filter_map(|wanted| choices.iter().find(|choice| has_text(wanted, choice)))
            .map(|choice| call(choice))
            .collect();
        if calls.is_empty() {
            calls.extend(choices.first().map(|choice| call(choice)));
        }
        answer.extend(calls);
    }
    answer
}

/// Returns true if a text is one of the wordings of an action.
pub(crate) fn has_text(wanted: &Value, text: &str) -> bool {
    let wordings = wanted.as_array().into_iter().flatten().skip(1);
    wordings
        .filter_map(Value::as_str)
        .any(|wording| plain(wording) == plain(text))
}

/// Returns a text without case and marks.
fn plain(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Judges calls, questions and texts by what is right.
pub(crate) fn judge(response: &GenerateResponse, right: &[Value]) -> Verdict {
    let (mut calls, mut asks, mut declines) = (Vec::new(), false, false);
    for part in &response.parts {
        if let Content::ToolCall(call) = &part.content {
            match call.name.as_str() {
                "decline" => declines = true,
                name if RESERVED.contains(&name) => asks = true,
                _ => calls.push(call),
            }
        }
    }
    let fits = |call: &adjutant_core::ToolCall, wanted: &Value| {
        let argument = |name: &str| {
            call.arguments
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let is_task = || wanted[1].as_u64() == argument("task_id").parse().ok();
        let has_words = |text: &str| {
            let words = wanted
                .as_array()
                .into_iter()
                .flatten()
                .skip(1)
                .filter_map(Value::as_str);
            words
                .into_iter()
                .all(|word| plain(text).contains(&plain(word)))
        };
        match (wanted[0].as_str().unwrap_or_default(), call.name.as_str()) {
            ("add", "add_task") => has_text(wanted, argument("description")),
            ("done", "complete_task") | ("delete", "delete_task") => is_task(),
            ("rename", "update_task") => is_task() && has_text(wanted, argument("description")),
            ("remember", "remember") | ("forget", "forget") => has_words(argument("fact")),
            ("note", "write_daily_note") => has_words(argument("activity")),
            ("list", "list_tasks") | ("recall", "recall") => true,
            _ => false,
        }
    };
    let is_reply = |wanted: &Value| matches!(wanted[0].as_str(), Some("reply" | "refuse" | "ask"));
    let wants_question = right.iter().any(|wanted| wanted[0] == "ask");
    let other = |call: &&&adjutant_core::ToolCall| !right.iter().any(|wanted| fits(call, wanted));
    let others: Vec<&&adjutant_core::ToolCall> = calls.iter().filter(other).collect();
    // Reading changes nothing, and a deletion is confirmed.
    let is_change = |call: &&&&adjutant_core::ToolCall| {
        !matches!(
            call.name.as_str(),
            "list_tasks" | "recall" | "delete_task" | "forget"
        )
    };
    let asks_deletion = others
        .iter()
        .any(|call| matches!(call.name.as_str(), "delete_task" | "forget"));
    let done = right
        .iter()
        .filter(|wanted| !is_reply(wanted))
        .all(|wanted| calls.iter().any(|call| fits(call, wanted)));
    if others.iter().any(|call| is_change(&call)) {
        Verdict::Wrong
    } else if asks_deletion || asks && !wants_question {
        Verdict::Asked
    } else if !done || !others.is_empty() || wants_question && !asks && !declines {
        Verdict::Missed
    } else {
        Verdict::Right
    }
}
