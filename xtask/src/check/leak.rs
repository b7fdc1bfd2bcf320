//! Words of evaluation cases that also occur in the prompts. A model that has read the question in
//! its prompt proves nothing by answering it.
//!
//! The check compares the stems of content words (names, subjects of tasks). Words that a prompt
//! cannot do without are in [`ORDINARY`] and do not count.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::files::File;

/// Function words, vocabulary of tasks and facts, weekdays, courtesies and everyday verbs and
/// adjectives; no noun that could be the subject of a task.
const ORDINARY: &str = "
    about again all already also and another bye cheer cheers any anything are back been before bring bought but buy call can cancel change check
    clean complete could correct create delete did does doing done down drop each edit else erase everything explain far fill find finish
    first for forget from get give goes going good got great has have haven hello help helpful her here his how instead into its just keep
    last learn leave left let like list look made make many mark mean more morning must need never new none not nothing note
    now number off okay old one ones only open order other ought our out over overview paint pay pending people pick plan please
    prepare put read really remember remind remove rename renew repair reply return right ring said say scrap second see send set shall
    she should show sign some something sort still strike such system take tell than thank thanks that the their them then
    there these they thing things this those tick time today tomorrow tonight too two update use very visit walk want was
    water weather week weekend well went were what when where which who whole why will with without word words work
    world would write written yes yesterday yet you your
    monday tuesday wednesday thursday friday saturday sunday
    add answer ask description due entry item message person question request status task tasks text todo todos user
    behind diana diary exactly fact facts know memory mind name prefer told way
";

/// The folder of all text that is sent to a model.
const PROMPTS: &str = "prompts/";
/// The folder of evaluation cases, one JSON object per line.
const CASES: &str = "evals/";

/// Returns true for a file of evaluation cases. Folders hold sentences to train and tune on, which may
/// share words with a prompt.
fn is_file_of_cases(path: &str) -> bool {
    let name = path.strip_prefix(CASES);
    name.is_some_and(|name| name.ends_with(".jsonl") && !name.contains('/'))
}

/// Returns every word of a case that also occurs in a prompt, with both locations.
pub(crate) fn leaks(files: &[File]) -> Vec<String> {
    let cases: Vec<&File> = files
        .iter()
        .filter(|file| is_file_of_cases(&file.path))
        .collect();
    let prompts: Vec<&File> = files
        .iter()
        .filter(|file| file.path.starts_with(PROMPTS))
        .collect();
    if cases.is_empty() || prompts.is_empty() {
        return vec![format!(
            "nothing to compare: no cases in {CASES} or no files in {PROMPTS}"
        )];
    }
    let mut words: BTreeMap<String, String> = BTreeMap::new();
    let mut found = Vec::new();
    for file in cases {
        for (index, line) in file
            .text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            match texts_of_case(line) {
                Some(texts) => {
                    for stem in texts.iter().flat_map(|text| content_words(text)) {
                        words
                            .entry(stem)
                            .or_insert_with(|| format!("{}:{}", file.path, index + 1));
                    }
                }
                None => found.push(format!("{}:{}: not a valid case", file.path, index + 1)),
            }
        }
    }
    for file in prompts {
        for (index, line) in file.text.lines().enumerate() {
            for stem in BTreeSet::from_iter(content_words(line)) {
                if let Some(case) = words.get(&stem) {
                    found.push(format!(
                        "{}:{}: {stem:?} is a word of {case}",
                        file.path,
                        index + 1
                    ));
                }
            }
        }
    }
    found
}

/// Returns the texts of a case that a model could recognise: input, tasks, history, facts and
/// earlier messages.
fn texts_of_case(line: &str) -> Option<Vec<String>> {
    let case: Value = serde_json::from_str(line).ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut texts = vec![text(&case["input"])?];
    for (list, field) in [("tasks", "description"), ("history", "text")] {
        texts.extend(
            case[list]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|entry| text(&entry[field])),
        );
    }
    for list in ["facts", "said"] {
        texts.extend(case[list].as_array().into_iter().flatten().filter_map(text));
    }
    Some(texts)
}

/// Returns the stems of all words that have three or more letters and are not ordinary.
fn content_words(text: &str) -> Vec<String> {
    text.to_lowercase()
        .split(|c: char| !c.is_alphabetic())
        .filter(|word| word.chars().count() >= 3)
        .map(stem)
        .filter(|word| {
            !ORDINARY
                .split_whitespace()
                .any(|ordinary| stem(ordinary) == *word)
        })
        .collect()
}

/// Returns a rough stem, the same for a word and its common inflections: `photos`, `photo`;
/// `watered`, `watering`.
fn stem(word: &str) -> String {
    const ENDINGS: [&str; 5] = ["ing", "ed", "es", "s", "e"];
    let cut = ENDINGS.iter().find_map(|ending| {
        word.strip_suffix(ending)
            .filter(|rest| rest.chars().count() >= 3)
    });
    // Again, because the ending of the word itself has to go as well: `walruses`, `walrus`,
    // `walru`.
    cut.map_or_else(|| word.to_owned(), stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(case: &str, prompt: &str, expected: &[&str]) {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        assert_eq!(
            leaks(&[file("evals/a.jsonl", case), file("prompts/p.md", prompt)]),
            expected
        );
    }

    const CASE: &str = r#"{"id":"a","tasks":[{"description":"Polish the telescopes"}],"input":"I fed the walrus","expect":{}}"#;

    #[test]
    fn a_word_of_a_case_in_a_prompt_is_found_in_any_form() {
        check(
            CASE,
            "one\nTwo Walruses",
            &["prompts/p.md:2: \"walru\" is a word of evals/a.jsonl:1"],
        );
        check(
            CASE,
            "a telescope",
            &["prompts/p.md:1: \"telescop\" is a word of evals/a.jsonl:1"],
        );
    }

    #[test]
    fn ordinary_words_are_free() {
        check(
            r#"{"id":"a","tasks":[],"input":"add a new task for Monday, please","expect":{}}"#,
            "Adding new tasks: Monday",
            &[],
        );
    }

    #[test]
    fn nothing_to_compare_is_a_finding() {
        assert_eq!(leaks(&[]).len(), 1);
        check("no case", "prompt", &["evals/a.jsonl:1: not a valid case"]);
        assert!(!is_file_of_cases("evals/sentences/en.jsonl"));
    }

    #[test]
    fn inflections_share_a_stem() {
        assert_eq!(stem("photos"), stem("photo"));
        assert_eq!(stem("watered"), stem("watering"));
        assert_eq!(stem("machines"), stem("machine"));
    }
}
