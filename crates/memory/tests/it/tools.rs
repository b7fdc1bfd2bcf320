//! The tools at their boundary: arguments in, data and words out.

use adjutant_core::{Annotations, Prepared, ToolContext, ToolError, ToolRegistry};
use adjutant_memory::{Cause, brief_tools, memory_tools, reading_tools};
use serde_json::{Value, json};

use crate::harness::{Home, context};

fn registry(home: &Home) -> ToolRegistry {
    let mut registry = ToolRegistry::new();
    for tool in memory_tools(&home.memory) {
        registry.register(tool).unwrap();
    }
    registry
}

async fn call(
    home: &Home,
    user: &str,
    number: u32,
    tool: &str,
    arguments: Value,
) -> Result<(Value, Option<String>), ToolError> {
    call_for(home, context(user, number), tool, arguments).await
}

async fn call_for(
    home: &Home,
    context: ToolContext,
    tool: &str,
    arguments: Value,
) -> Result<(Value, Option<String>), ToolError> {
    let registry = registry(home);
    let Value::Object(arguments) = arguments else {
        panic!("{arguments} is no object")
    };
    registry
        .check_arguments(tool, &arguments)
        .map_err(ToolError::invalid)?;
    let tool = registry.get(tool).unwrap();
    let Prepared::Ready { arguments, .. } = tool.prepare(&context, arguments).await? else {
        panic!("asked")
    };
    let data = tool.call(&context, arguments.clone()).await?;
    let words = tool.describe(&arguments, &data);
    Ok((data, words))
}

#[tokio::test]
async fn the_tools_have_these_names_and_parameters() {
    let home = Home::new();
    let registry = registry(&home);
    let names: Vec<String> = registry.names().map(ToString::to_string).collect();
    assert_eq!(
        names,
        [
            "remember",
            "recall",
            "forget",
            "write_daily_note",
            "write_note",
            "read_note",
            "search_notes",
            "list_notes"
        ]
    );
    let daily = registry
        .get("write_daily_note")
        .unwrap()
        .definition()
        .clone();
    assert!(
        daily
            .description
            .starts_with("Write an entry to today's daily log in Obsidian")
    );
    assert_eq!(
        daily.parameters,
        json!({
            "type": "object",
            "properties": {
                "activity": { "type": "string", "minLength": 1, "description": "The activity or note to log" },
                "title": { "type": "string", "description": "Optional title for the entry" },
            },
            "required": ["activity"],
            "additionalProperties": false,
        })
    );
    let annotations = |name: &str| registry.get(name).unwrap().definition().annotations;
    for name in ["remember", "write_daily_note", "write_note"] {
        assert_eq!(
            annotations(name),
            Annotations {
                keyed: true,
                closed_world: true,
                ..Annotations::default()
            }
        );
    }
    assert!(annotations("forget").destructive);
    for name in ["recall", "read_note", "search_notes", "list_notes"] {
        assert!(annotations(name).read_only, "{name}");
    }
    let reading: Vec<String> = reading_tools(&home.memory)
        .iter()
        .map(|tool| tool.definition().name.to_string())
        .collect();
    assert_eq!(
        reading,
        ["recall", "read_note", "search_notes", "list_notes"]
    );
}

#[tokio::test]
async fn every_write_has_a_message_for_the_user() {
    let home = Home::new();
    let (data, words) = call(
        &home,
        "local",
        1,
        "remember",
        json!({ "fact": "Josh has a cat", "important": true }),
    )
    .await
    .unwrap();
    assert_eq!(data["status"], "added");
    assert_eq!(data["fact"]["tags"], json!(["#important"]));
    assert_eq!(
        words.unwrap(),
        "✎ remembered: Josh has a cat  (undo: /undo)"
    );
    let (data, words) = call(
        &home,
        "local",
        2,
        "write_daily_note",
        json!({ "activity": "Slept", "title": "Nap" }),
    )
    .await
    .unwrap();
    assert_eq!(
        (&data["file_path"], &data["created"]),
        (&json!("2025-12-10.md"), &json!(true))
    );
    assert_eq!(
        words.unwrap(),
        "✎ noted in 2025-12-10.md: 14:05 **Nap**: Slept  (undo: /undo)"
    );
    let (_, words) = call(
        &home,
        "local",
        3,
        "write_note",
        json!({ "note": "Cats", "content": "purr" }),
    )
    .await
    .unwrap();
    assert_eq!(words.unwrap(), "✎ wrote the note Cats.md  (undo: /undo)");
    let (_, words) = call(&home, "local", 4, "read_note", json!({ "note": "cats" }))
        .await
        .unwrap();
    assert_eq!(words.unwrap(), "Cats.md:\npurr\n");
    let (_, words) = call(
        &home,
        "local",
        5,
        "search_notes",
        json!({ "query": "PURR" }),
    )
    .await
    .unwrap();
    assert_eq!(words.unwrap(), "- Cats.md\n  1: purr");
    let (data, words) = call(
        &home,
        "local",
        6,
        "recall",
        json!({ "query": "Which cats purr?" }),
    )
    .await
    .unwrap();
    let sources: Vec<&str> = data["found"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["source"].as_str().unwrap())
        .collect();
    assert_eq!(
        (sources.len(), data["found"][0]["from"].as_str()),
        (2, Some("notes")),
        "{data}"
    );
    let words = words.unwrap();
    assert!(
        words.contains("purr (Cats.md)") && words.contains("Josh has a cat ("),
        "{words}"
    );
    let (data, _) = call(
        &home,
        "local",
        7,
        "recall",
        json!({ "query": "cat", "from": "facts" }),
    )
    .await
    .unwrap();
    assert_eq!(data["found"].as_array().unwrap().len(), 1);
    let (data, words) = call(&home, "local", 8, "list_notes", json!({}))
        .await
        .unwrap();
    assert_eq!(data["total"], 3);
    assert_eq!(
        words.unwrap(),
        "- 2025-12-10.md\n- Cats.md\n- memory/facts.md"
    );
    let (_, words) = call(&home, "local", 9, "forget", json!({ "fact": "cat" }))
        .await
        .unwrap();
    assert_eq!(words.unwrap(), "✎ forgotten: Josh has a cat  (undo: /undo)");
    assert!(home.contents().await.is_empty());
}

#[tokio::test]
async fn another_user_gets_nothing() {
    let home = Home::new();
    home.remember("Josh has a cat").await;
    let before = home.facts();
    for (tool, arguments) in [
        ("remember", json!({ "fact": "x" })),
        ("write_daily_note", json!({ "activity": "x" })),
        ("write_note", json!({ "note": "x", "content": "x" })),
        ("read_note", json!({ "note": "memory/facts" })),
        ("search_notes", json!({ "query": "cat" })),
        ("recall", json!({ "query": "cat" })),
        ("forget", json!({ "fact": "cat" })),
        ("list_notes", json!({})),
    ] {
        let error = call(&home, "eve", 1, tool, arguments).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "this memory belongs to another user",
            "{tool}"
        );
    }
    assert_eq!(home.facts(), before);
}

#[tokio::test]
async fn the_users_message_decides_if_a_fact_is_corrected() {
    let home = Home::new();
    let mut number = 0;
    let mut remember = async |said: &str, fact: &str| {
        number += 1;
        let context = ToolContext {
            message: said.into(),
            ..context("local", number)
        };
        call_for(&home, context, "remember", json!({ "fact": fact }))
            .await
            .unwrap()
            .0
    };
    remember("I live in Berlin", "Josh lives in Berlin").await;
    remember("Gina lives in Berlin, too", "Gina lives in Berlin").await;
    // Nothing says that the first does not hold any more: the model asks.
    let data = remember("My address is in Munich.", "Josh lives in Munich").await;
    assert_eq!(
        (&data["status"], &data["beside"]["fact"]),
        (&json!("added"), &json!("Josh lives in Berlin"))
    );
    assert_eq!(home.contents().await.len(), 3);
    // Only the sentence that the fact is of counts.
    let data = remember(
        "No, I don't want tea. Josh lives in Hamburg.",
        "Josh lives in Hamburg",
    )
    .await;
    assert_eq!(data["status"], "added", "{data}");
    let data = remember(
        "No. Josh lives in Rome now, not in Munich.",
        "Josh lives in Rome",
    )
    .await;
    assert_eq!(
        (&data["status"], &data["before"]),
        (&json!("updated"), &json!("Josh lives in Munich"))
    );
    assert!(
        home.contents()
            .await
            .contains(&"Gina lives in Berlin".to_owned())
    );
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_refused_with_their_name() {
    let home = Home::new();
    for (tool, arguments) in [
        ("remember", json!({})),
        ("remember", json!({ "fact": "" })),
        ("remember", json!({ "fact": "x", "user_id": "eve" })),
        ("remember", json!({ "fact": "x".repeat(1_001) })),
        ("write_daily_note", json!({ "title": "x" })),
        ("write_note", json!({ "note": "../x", "content": "x" })),
        ("read_note", json!({ "note": "gone" })),
        ("read_note", json!({ "note": "x", "from_line": 0 })),
        ("search_notes", json!({ "query": "x", "limit": 101 })),
        ("list_notes", json!({ "folder": ".obsidian" })),
    ] {
        let error = call(&home, "local", 1, tool, arguments.clone())
            .await
            .unwrap_err();
        assert!(
            matches!(
                error,
                ToolError::Invalid { .. } | ToolError::NotFound { .. }
            ),
            "{tool} {arguments}: {error:?}"
        );
    }
    assert_eq!(std::fs::read_dir(home.vault()).unwrap().count(), 0);
}

/// Returns what a tool for a small model says to the person.
async fn brief(home: &Home, tool: &str, arguments: Value) -> Result<String, ToolError> {
    let mut registry = ToolRegistry::new();
    for tool in brief_tools(&home.memory, Some("Josh")) {
        registry.register(tool).unwrap();
    }
    let Value::Object(arguments) = arguments else {
        panic!("{arguments} is no object")
    };
    registry
        .check_arguments(tool, &arguments)
        .map_err(ToolError::invalid)?;
    // A call of each tool is another one.
    let context = context("local", u32::try_from(tool.len()).unwrap());
    let tool = registry.get(tool).unwrap();
    let Prepared::Ready { arguments, .. } = tool.prepare(&context, arguments).await? else {
        panic!("asked")
    };
    let data = tool.call(&context, arguments.clone()).await?;
    Ok(tool.describe(&arguments, &data).unwrap())
}

#[tokio::test]
async fn the_brief_tools_report_what_is_stored_and_what_is_not() {
    let home = Home::new();
    let asked = |query: &str| json!({ "query": query });
    let nothing = brief(&home, "recall", json!({})).await.unwrap();
    assert!(nothing.starts_with("Nothing is kept yet."), "{nothing}");
    let unknown = brief(&home, "recall", asked("what is my sister's name?"))
        .await
        .unwrap();
    assert!(unknown.starts_with("I do not know that"), "{unknown}");

    for fact in [
        "My sister's name is Anna",
        "Anna lives in Munich",
        "I am allergic to nuts",
    ] {
        home.memory
            .facts()
            .add(fact, false, &Cause::person())
            .await
            .unwrap();
    }
    home.memory
        .notes()
        .unwrap()
        .write_daily("The boiler was serviced", None, &Cause::person())
        .await
        .unwrap();
    let found = brief(&home, "recall", asked("what is my sister's name?"))
        .await
        .unwrap();
    assert_eq!(
        found.lines().next(),
        Some("- My sister's name is Anna (2025-12-10)"),
        "{found}"
    );
    assert!(!found.contains("nuts"), "{found}");
    let found = brief(&home, "recall", asked("when was the boiler serviced?"))
        .await
        .unwrap();
    assert!(
        found.contains("serviced (note ") && found.contains("2025-12-10.md"),
        "{found}"
    );
    let near = brief(&home, "recall", asked("what is my brother's name?"))
        .await
        .unwrap();
    assert!(
        near.starts_with("I do not know exactly that. What fits best:\n"),
        "{near}"
    );
    for all in [
        json!({}),
        asked("what do you know about Josh?"),
        asked("tell me everything about josh"),
    ] {
        let all = brief(&home, "recall", all).await.unwrap();
        assert!(
            all.starts_with("This is what I know:\n") && all.lines().count() == 4,
            "{all}"
        );
    }

    // A contradiction is said: there is no second turn in which it could be asked.
    let kept = brief(&home, "remember", json!({ "fact": "Anna lives in Bonn" }))
        .await
        .unwrap();
    assert!(kept.contains("I know “Anna lives in Munich” too"), "{kept}");
    assert!(
        brief(&home, "remember", json!({ "fact": "x", "important": true }))
            .await
            .is_err()
    );
    let forgotten = brief(&home, "forget", json!({ "fact": "what I am allergic to" }))
        .await
        .unwrap();
    assert!(
        forgotten.contains("forgotten: I am allergic to nuts"),
        "{forgotten}"
    );
    assert!(
        brief(&home, "forget", json!({ "fact": "the colour of my bike" }))
            .await
            .is_err()
    );
}
