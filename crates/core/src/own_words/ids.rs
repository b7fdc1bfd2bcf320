//! Ids of items that the person can mean: those that the agent's own tools listed, and those of
//! items that the person named.

use std::collections::HashSet;

use serde_json::Value;

/// Names under which results give an item's name.
const NAMES: [&str; 12] = [
    "name",
    "title",
    "subject",
    "filename",
    "file_name",
    "fileName",
    "label",
    "summary",
    "description",
    "display_name",
    "displayName",
    "topic",
];

/// The items of the results that a model can read.
#[derive(Debug, Clone, Default)]
pub struct KnownItems {
    /// Ids in results of the agent's own tools.
    listed: HashSet<String>,
    /// Ids with the names of their items, in results of others.
    named: Vec<(String, String)>,
}

impl KnownItems {
    /// Adds the items of one result. `from_others`: it is text of others, so that an id counts only
    /// together with the item's name.
    pub fn add(&mut self, result: &Value, from_others: bool) {
        match result {
            Value::Array(values) => values.iter().for_each(|value| self.add(value, from_others)),
            Value::Object(values) => {
                for (name, value) in values {
                    if let Some(id) = id_text(value).filter(|_| is_name_of_id(name)) {
                        if !from_others {
                            self.listed.insert(id);
                            continue;
                        }
                        let names = NAMES.iter().filter_map(|name| values.get(*name)?.as_str());
                        self.named
                            .extend(names.map(|name| (id.clone(), name.to_owned())));
                    }
                    self.add(value, from_others);
                }
            }
            // Many servers send JSON as text.
            Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
                if let Ok(inner) = serde_json::from_str::<Value>(text)
                    && !inner.is_string()
                {
                    self.add(&inner, from_others);
                }
            }
            Value::String(text) if from_others => self.add_blocks(text),
            _ => {}
        }
    }

    /// Adds the items of a text that lists each in lines of `key: value`, as YAML and many servers
    /// do.
    fn add_blocks(&mut self, text: &str) {
        let (mut ids, mut names): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for line in text.lines().chain([""]) {
            if line.trim().is_empty() || line.starts_with("- ") {
                for id in ids.drain(..) {
                    let named = names.iter().map(|name| (id.clone(), name.clone()));
                    self.named.extend(named);
                }
                names.clear();
            }
            let entry = line.strip_prefix("- ").unwrap_or(line);
            let Some((key, value)) = entry.trim().split_once(": ") else {
                continue;
            };
            let value = value.trim().trim_matches(['\'', '"']);
            if is_name_of_id(key) {
                ids.push(value.to_owned());
            } else if NAMES.contains(&key) {
                names.push(value.to_owned());
            }
        }
    }

    /// Returns true if a value is the id of an item that the person can mean. `is_named`: the person
    /// named an item of that name.
    pub(super) fn contains(&self, value: &Value, is_named: impl Fn(&str) -> bool) -> bool {
        let Some(wanted) = id_text(value) else {
            return false;
        };
        self.listed.contains(&wanted)
            || self
                .named
                .iter()
                .any(|(id, name)| *id == wanted && is_named(name))
    }
}

fn id_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns true if the last word of an argument's name says that it is an id: `task_id`, `eventId`,
/// `ids`.
pub(super) fn is_name_of_id(name: &str) -> bool {
    let name = name.trim_end_matches('_');
    let name = name.strip_suffix('s').unwrap_or(name);
    let before = name
        .strip_suffix("id")
        .or_else(|| name.strip_suffix("ID"))
        .or_else(|| name.strip_suffix("Id"));
    before.is_some_and(|before| {
        before.is_empty() || before.ends_with('_') || before.ends_with('-') || !name.ends_with("id")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{KnownItems, is_name_of_id};

    #[test]
    fn an_item_is_known_by_the_own_list_or_by_its_name() {
        let mut items = KnownItems::default();
        items.add(&json!({"tasks": [{"id": 1, "title": "Milk"}]}), false);
        items.add(&json!([{"id": "2", "title": "Introductory meeting"}]), true);
        let as_text = json!("{\"event_id\": 3, \"name\": \"Introductory meeting\"}");
        items.add(&as_text, true);
        items.add(
            &json!("- id_: '4'\n  title: Introductory meeting\n- id_: '5'\n  title: Party"),
            true,
        );
        let known = |id| items.contains(&id, |named| named == "Introductory meeting");
        assert!(known(json!(1)) && known(json!("2")) && known(json!(3)) && known(json!("4")));
        assert!(!known(json!("5")) && !known(json!(6)) && !known(json!("Party")));
    }

    #[test]
    fn names_of_ids_end_with_it() {
        for name in [
            "id", "ids", "task_id", "eventId", "eventIDs", "file-id", "id_",
        ] {
            assert!(is_name_of_id(name), "{name}");
        }
        for name in ["paid", "grid", "amount", "identity", "kid", "bids"] {
            assert!(!is_name_of_id(name), "{name}");
        }
    }
}
