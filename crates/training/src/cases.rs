//! Sentences as cases for `adjutant eval`.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::sentences::{self, Line};

/// Prints the sentences of every file of a folder, one case a line.
///
/// # Errors
/// Those of [`sentences::lines`]; an action of no kind.
pub(crate) fn print(folder: &Path) -> Result<(), String> {
    for (line, tasks) in sentences::lines(folder)? {
        println!("{}", case(&line, &tasks)?);
    }
    Ok(())
}

fn case(line: &Line, tasks: &[String]) -> Result<Value, String> {
    let tasks: Vec<Value> = tasks
        .iter()
        .map(|task| {
            json!({
                "description": task.trim_start_matches('*'),
                "completed": task.starts_with('*')
            })
        })
        .collect();
    let mut expected = sentences::right(line)
        .iter()
        .map(|actions| expected(&line.id, actions))
        .collect::<Result<Vec<_>, _>>()?;
    let others = expected.split_off(1);
    let mut expect = expected.pop().unwrap_or_default();
    if !others.is_empty() {
        expect.insert("or".to_owned(), json!(others));
    }
    let mut case = json!({
        "id": line.id, "lang": line.lang, "class": line.class, "tasks": tasks,
        "input": line.say, "expect": expect
    });
    if !line.history.is_empty() {
        let said = line.history.iter();
        let said = said.map(|(role, text)| json!({ "role": role, "text": text }));
        case["history"] = said.collect();
    }
    // What is to be forgotten has to be known.
    let known: Vec<String> = sentences::right(line)
        .iter()
        .flatten()
        .filter(|action| action[0] == "forget")
        .map(|action| words(action).join(" "))
        .collect();
    if !known.is_empty() {
        case["facts"] = json!(known);
    }
    Ok(case)
}

/// Returns what a list of actions leads to, as the `expect` of a case.
fn expected(id: &str, actions: &[Value]) -> Result<Map<String, Value>, String> {
    let (mut added, mut completed, mut renamed) = (Vec::new(), Vec::new(), Map::new());
    let (mut pending, mut facts) = (Vec::new(), Vec::new());
    let mut expect = Map::new();
    for action in actions {
        let words = words(action);
        let number = action[1].as_u64().map(|number| number.to_string());
        let number = number.unwrap_or_default();
        match action[0].as_str().unwrap_or_default() {
            "add" => added.push(json!({ "is": words })),
            "done" => completed.push(json!(number)),
            "delete" => pending.push(json!({ "tool": "delete_task", "task_id": number })),
            "rename" => {
                renamed.insert(number, json!({ "is": words }));
            }
            "remember" => facts.push(json!(words)),
            "forget" => pending.push(json!({ "tool": "forget", "has": words })),
            "note" => {
                expect.insert("note_today".to_owned(), json!(words));
            }
            "list" if actions.len() == 1 => {
                expect.insert("tools".to_owned(), json!(["list_tasks"]));
            }
            "recall" if actions.len() == 1 => {
                expect.insert("tools".to_owned(), json!(["recall"]));
            }
            "ask" if actions.len() == 1 => {
                expect.insert("decision".to_owned(), json!(["ASK_CLARIFICATION"]));
            }
            "reply" | "refuse" if actions.len() == 1 => {
                expect.insert("decision".to_owned(), json!(["RESPOND_ONLY"]));
            }
            // Beside a change, reading and words are not judged.
            "list" | "recall" | "ask" | "reply" | "refuse" => {}
            other => return Err(format!("{id}: {other:?} is no action")),
        }
    }
    let mut changes = Map::new();
    for (name, list) in [("added", added), ("completed", completed)] {
        if !list.is_empty() {
            changes.insert(name.to_owned(), json!(list));
        }
    }
    if !renamed.is_empty() {
        changes.insert("renamed".to_owned(), Value::Object(renamed));
    }
    expect.insert("changes".to_owned(), Value::Object(changes));
    if !pending.is_empty() {
        expect.insert("pending".to_owned(), json!(pending));
    }
    if !facts.is_empty() {
        expect.insert("facts_after".to_owned(), json!(facts));
    }
    Ok(expect)
}

/// Returns the texts of an action.
fn words(action: &Value) -> Vec<&str> {
    let texts = action.as_array().into_iter().flatten().skip(1);
    texts.filter_map(Value::as_str).collect()
}
