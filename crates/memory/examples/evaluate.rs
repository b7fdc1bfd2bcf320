//! Temporary.
#![expect(clippy::print_stdout, reason = "a program")]
use std::collections::BTreeMap;
use std::sync::Arc;

use adjutant_core::UserId;
use adjutant_memory::{Filter, InMemoryLedger, Memory, MemoryOptions, ToldLimits, Vault};
use serde_json::Value;

fn lines(path: &std::path::Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::main]
async fn main() {
    let folder = std::env::args().nth(1).unwrap();
    let (mut asked, mut at10, mut at20, mut tokens, mut told_times) = (0, 0, 0, 0, 0);
    let (mut notes_asked, mut at5, mut n10) = (0, 0, 0);
    let mut pairs: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    pairs.sort();
    for pair in pairs {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("memory")).unwrap();
        let facts = lines(&pair.join("facts.jsonl"));
        let mut text = String::from("# Key Facts\n\n## Important\n\n## Recent\n\n");
        let mut ids = BTreeMap::new();
        for fact in &facts {
            ids.insert(fact["fact"].as_str().unwrap().to_owned(), fact["id"].as_u64().unwrap());
            text.push_str(&format!(
                "- [{}] {}\n",
                fact["created"].as_str().unwrap(),
                fact["fact"].as_str().unwrap()
            ));
        }
        std::fs::write(root.path().join("memory/facts.md"), text).unwrap();
        let notes = root.path().join("notes");
        std::fs::create_dir_all(&notes).unwrap();
        for note in std::fs::read_dir(pair.join("notes")).unwrap() {
            let note = note.unwrap();
            std::fs::copy(note.path(), notes.join(note.file_name())).unwrap();
        }
        let vault = Vault::open(root.path()).unwrap();
        let memory = Memory::new(
            vault,
            UserId::local(),
            MemoryOptions::default(),
            Arc::new(InMemoryLedger::new()),
            Arc::new(jiff::Zoned::now),
        )
        .unwrap();
        assert_eq!(memory.facts().list().await.unwrap().len(), facts.len());
        let count = |text: &str| adjutant_core::turn::estimate_tokens(text);
        for question in lines(&pair.join("questions.jsonl")) {
            if question["category"] == 5 {
                continue;
            }
            let words = question["question"].as_str().unwrap();
            if let Some(each) = question["facts_any_of_each"].as_array().filter(|e| !e.is_empty()) {
                asked += 1;
                for (n, hits) in [(10usize, &mut at10), (20, &mut at20)] {
                    let told = memory
                        .facts()
                        .fitting(words, &[], ToldLimits { facts: n, tokens: 35 * n as u32 }, &count)
                        .await
                        .unwrap();
                    if n == 10 {
                        tokens += told.iter().map(|t| count(&t.line)).sum::<u32>();
                        told_times += 1;
                    }
                    let told: Vec<u64> = told.iter().map(|t| ids[&t.fact.content]).collect();
                    *hits += i32::from(each.iter().all(|any| {
                        any.as_array().unwrap().iter().any(|id| told.contains(&id.as_u64().unwrap()))
                    }));
                }
            }
            if let Some(wanted) = question["notes"].as_array().filter(|e| !e.is_empty()) {
                notes_asked += 1;
                let found = memory
                    .notes()
                    .search(words, &Filter { folder: "notes".to_owned(), tag: None, limit: 10 })
                    .await
                    .map(|f| f.notes)
                    .unwrap_or_default();
                let names: Vec<&str> =
                    found.iter().map(|hit| hit.path.strip_prefix("notes/").unwrap()).collect();
                let has =
                    |k: usize| wanted.iter().all(|w| names.iter().take(k).any(|n| *n == w.as_str().unwrap()));
                at5 += i32::from(has(5));
                n10 += i32::from(has(10));
            }
        }
    }
    let share = |n: i32, of: i32| f64::from(n) / f64::from(of);
    println!(
        "facts {asked}: {:.3} {:.3}; tokens {:.0}; notes {notes_asked}: {:.3} {:.3}",
        share(at10, asked),
        share(at20, asked),
        f64::from(tokens) / f64::from(told_times),
        share(at5, notes_asked),
        share(n10, notes_asked)
    );
}
