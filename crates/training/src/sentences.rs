//! The sentences of `evals/sentences`, with the actions that they ask for.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use adjutant_core::{ActionKind, Language};
use serde::Deserialize;
use serde_json::Value;

/// Of so many sentences without a history, one is also trained with another exchange before it: a
/// message is seldom the first of its conversation.
const WITH_EXCHANGE_EVERY: usize = 3;

/// Letters of a word, at least, that a sentence may share with a task.
const SHARED_LETTERS_MIN: usize = 4;

/// A message with what it asks for.
#[derive(Debug, Clone)]
pub(crate) struct Sentence {
    pub(crate) id: String,
    pub(crate) message: String,
    pub(crate) before: Option<String>,
    pub(crate) earlier: Option<String>,
    pub(crate) language: Language,
    /// The kinds of its actions; another set is as good.
    pub(crate) kinds: Vec<ActionKind>,
    pub(crate) alternatives: Vec<Vec<ActionKind>>,
    pub(crate) class: String,
    /// The number of sentences that it stands for.
    pub(crate) weight: f32,
}

/// The first line of a file.
#[derive(Deserialize)]
struct Lists {
    lists: BTreeMap<String, Vec<String>>,
}

/// A sentence as its file has it.
#[derive(Deserialize)]
pub(crate) struct Line {
    pub(crate) id: String,
    pub(crate) lang: String,
    pub(crate) class: String,
    list: String,
    pub(crate) say: String,
    /// The earlier messages, each with its speaker.
    #[serde(default)]
    pub(crate) history: Vec<(String, String)>,
    #[serde(rename = "do")]
    pub(crate) actions: Value,
    or: Option<Value>,
}

/// Reads the sentences of every file of a folder, but for those that only their list makes unclear.
///
/// # Errors
/// Those of [`lines`]; a line that is no sentence.
pub(crate) fn read(folder: &Path) -> Result<Vec<Sentence>, String> {
    let clear = |(line, tasks): &(Line, Vec<String>)| !is_unclear_by_its_list(line, tasks);
    let lines = lines(folder)?.into_iter().filter(clear);
    lines.map(|(line, _)| sentence(line)).collect()
}

/// Reads every file of a folder, in the order of their names: each line with the tasks of its list.
///
/// # Errors
/// A file that cannot be read, or a line that is no sentence, with the place.
pub(crate) fn lines(folder: &Path) -> Result<Vec<(Line, Vec<String>)>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = fs::read_dir(folder)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    files.retain(|file| file.extension().is_some_and(|it| it == "jsonl"));
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(failed)?;
        let in_line = |index: usize, error: serde_json::Error| {
            format!("{}:{}: {error}", file.display(), index + 1)
        };
        let mut lines = text.lines().enumerate();
        let (_, lists) = lines.next().unwrap_or_default();
        let Lists { lists } = serde_json::from_str(lists).map_err(|error| in_line(0, error))?;
        for (index, line) in lines {
            let line: Line = serde_json::from_str(line).map_err(|error| in_line(index, error))?;
            let tasks = lists.get(&line.list).cloned().unwrap_or_default();
            all.push((line, tasks));
        }
    }
    Ok(all)
}

/// Returns the language of a sentence.
///
/// # Errors
/// It is none of [`Language::ALL`].
pub(crate) fn language(line: &Line) -> Result<Language, String> {
    Language::ALL
        .into_iter()
        .find(|language| language.code() == line.lang)
        .ok_or_else(|| format!("{}: no language {:?}", line.id, line.lang))
}

/// Returns the answers that are right, each with its actions.
pub(crate) fn right(line: &Line) -> Vec<Vec<Value>> {
    let actions = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut right = vec![actions(&line.actions)];
    match &line.or {
        None => {}
        // One other answer, or a list of them.
        Some(or) if or.pointer("/0/0").is_some_and(Value::is_array) => {
            right.extend(actions(or).iter().map(actions));
        }
        Some(or) => right.push(actions(or)),
    }
    right
}

/// Returns the sentences of a class, and one in `every` of the others.
pub(crate) fn sampled(sentences: &[Sentence], class: &str, every: usize) -> Vec<Sentence> {
    let (own, others): (Vec<&Sentence>, Vec<&Sentence>) = sentences
        .iter()
        .partition(|sentence| sentence.class == class);
    let sample = others.into_iter().step_by(every).map(|sentence| Sentence {
        weight: every as f32,
        ..sentence.clone()
    });
    own.into_iter().cloned().chain(sample).collect()
}

/// Returns true for a sentence whose action is clear, and only the list makes it unclear which task
/// is meant: the list is not what is scored.
fn is_unclear_by_its_list(line: &Line, tasks: &[String]) -> bool {
    let words = |text: &str| -> Vec<String> {
        text.to_lowercase()
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| word.chars().count() >= SHARED_LETTERS_MIN)
            .map(str::to_owned)
            .collect()
    };
    let said = words(&line.say);
    let asks = kinds(&line.actions).is_ok_and(|kinds| kinds == [ActionKind::Ask]);
    asks && (tasks.iter()).any(|task| words(task).iter().any(|word| said.contains(word)))
}

fn sentence(line: Line) -> Result<Sentence, String> {
    let mut right = right(&line)
        .into_iter()
        .map(|actions| kinds(&Value::from(actions)))
        .collect::<Result<Vec<_>, _>>()?;
    let alternatives = right.split_off(1);
    let language = language(&line)?;
    let mut history = line.history.into_iter().rev();
    let before = history.next().map(|(_, text)| text);
    let earlier = history.next().map(|(_, text)| text);
    Ok(Sentence {
        id: line.id,
        class: line.class,
        weight: 1.0,
        message: line.say,
        before,
        earlier,
        language,
        kinds: right.pop().unwrap_or_default(),
        alternatives,
    })
}

/// Returns the kinds of a list of actions, each once.
///
/// # Errors
/// An action of no kind.
pub(crate) fn kinds(actions: &Value) -> Result<Vec<ActionKind>, String> {
    let kind = |action: &Value| match action.pointer("/0").and_then(Value::as_str) {
        Some("add") => Ok(ActionKind::Create),
        Some("done") => Ok(ActionKind::Complete),
        Some("delete") => Ok(ActionKind::Delete),
        Some("rename") => Ok(ActionKind::Reword),
        Some("list") => Ok(ActionKind::List),
        Some("remember") => Ok(ActionKind::Remember),
        Some("recall") => Ok(ActionKind::Recall),
        Some("note") => Ok(ActionKind::Log),
        Some("forget") => Ok(ActionKind::Forget),
        Some("reply") => Ok(ActionKind::Reply),
        Some("refuse") => Ok(ActionKind::Decline),
        Some("ask") => Ok(ActionKind::Ask),
        _ => Err(format!("{action} is no action")),
    };
    let mut kinds = actions
        .as_array()
        .ok_or("the actions are no list")?
        .iter()
        .map(kind)
        .collect::<Result<Vec<_>, _>>()?;
    kinds.sort_by_key(|kind| *kind as usize);
    kinds.dedup();
    Ok(kinds)
}

/// Adds copies of sentences without a history, each with the exchange of another one before it.
pub(crate) fn with_exchanges(mut sentences: Vec<Sentence>) -> Vec<Sentence> {
    let alone: Vec<&Sentence> = sentences
        .iter()
        .filter(|sentence| sentence.before.is_none())
        .collect();
    let exchange = |(index, sentence): (usize, &&Sentence)| {
        // Another one of the same language, in no order that means anything.
        let other = alone
            .iter()
            .cycle()
            .skip(index * 7 + 1)
            .take(alone.len())
            .find(|other| other.language == sentence.language && other.id != sentence.id)?;
        Some(Sentence {
            id: format!("{}+", sentence.id),
            before: Some(reply_to(other)),
            earlier: Some(other.message.clone()),
            ..(*sentence).clone()
        })
    };
    let copies: Vec<Sentence> = alone
        .iter()
        .enumerate()
        .filter(|(index, _)| index % WITH_EXCHANGE_EVERY == 0)
        .filter_map(exchange)
        .collect();
    sentences.extend(copies);
    sentences
}

/// Returns what the assistant may have said to a sentence.
fn reply_to(sentence: &Sentence) -> String {
    match sentence.kinds.first() {
        Some(ActionKind::Create) => {
            format!("Added \u{201c}{}\u{201d} to your list.", sentence.message)
        }
        Some(ActionKind::Complete) => format!("Completed \u{201c}{}\u{201d}.", sentence.message),
        Some(ActionKind::Delete) => format!("Deleted \u{201c}{}\u{201d}.", sentence.message),
        Some(ActionKind::Reword) => format!("Renamed it to \u{201c}{}\u{201d}.", sentence.message),
        Some(ActionKind::List) => "You have 3 open tasks.".to_owned(),
        Some(ActionKind::Decline) => "I only look after your to-do list.".to_owned(),
        Some(ActionKind::Remember) => "I will keep that in mind.".to_owned(),
        Some(_) | None => "All right.".to_owned(),
    }
}
