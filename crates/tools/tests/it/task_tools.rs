//! The five task tools over a store in memory.

use std::sync::Arc;

use adjutant_core::port::StoreError;
use adjutant_core::{Annotations, Effect, Prepared, Reference, ToolRegistry, UserId};
use adjutant_tools::{InvalidDescription, TaskDescription, TaskId, TaskStore, task_tools};
use serde_json::{Value, json};

use crate::harness::{Caller, MemoryTasks, Outcome, context, object};

fn caller() -> Caller {
    Caller::new(task_tools(Arc::new(MemoryTasks::default())))
}

/// Adds tasks, numbered from 1, and completes those with an `x` in front.
async fn caller_with(user: &str, tasks: &[&str]) -> Caller {
    let caller = caller();
    add(&caller, user, tasks).await;
    caller
}

async fn add(caller: &Caller, user: &str, tasks: &[&str]) {
    for task in tasks {
        let done = task.strip_prefix("x ");
        let added = caller
            .call(
                user,
                "add_task",
                json!({ "description": done.unwrap_or(task) }),
            )
            .await;
        let Outcome::Done(data, _) = added else {
            panic!("{added:?}")
        };
        if done.is_some() {
            caller
                .call(user, "complete_task", json!({ "task_id": data["id"] }))
                .await;
        }
    }
}

/// The words of a call that worked.
async fn words(caller: &Caller, user: &str, tool: &str, arguments: Value) -> String {
    match caller.call(user, tool, arguments).await {
        Outcome::Done(_, Some(words)) => words,
        other => panic!("{other:?}"),
    }
}

async fn list(caller: &Caller, user: &str) -> String {
    words(caller, user, "list_tasks", json!({})).await
}

#[test]
fn declarations_are_the_seeds_and_stricter() {
    let seed: Vec<Value> =
        serde_json::from_str(include_str!("fixtures/seed_declarations.json")).unwrap();
    let ours = caller().registry.definitions(None);
    assert_eq!(ours.len(), seed.len());
    for (ours, seed) in ours.iter().zip(&seed) {
        let mut expected = seed["parameters"].clone();
        expected["additionalProperties"] = json!(false);
        if let Some(description) = expected["properties"].get_mut("description") {
            description["minLength"] = json!(1);
            description["maxLength"] = json!(1000);
        }
        assert_eq!(ours.name.as_str(), seed["name"]);
        assert_eq!(ours.description, seed["description"]);
        assert_eq!(ours.parameters, expected);
    }
}

#[test]
fn annotations_and_references() {
    let registry = caller().registry;
    let of = |name: &str| registry.get(name).unwrap().definition();
    let annotations = |name: &str| of(name).annotations;
    let none = Annotations {
        closed_world: true,
        ..Annotations::default()
    };
    assert_eq!(
        annotations("list_tasks"),
        Annotations {
            read_only: true,
            idempotent: true,
            ..none
        }
    );
    assert_eq!(
        annotations("add_task"),
        Annotations {
            keyed: true,
            ..none
        }
    );
    assert_eq!(
        annotations("update_task"),
        Annotations {
            idempotent: true,
            keyed: true,
            ..none
        }
    );
    assert_eq!(
        annotations("complete_task"),
        Annotations {
            idempotent: true,
            keyed: true,
            ..none
        }
    );
    assert_eq!(
        annotations("delete_task"),
        Annotations {
            destructive: true,
            idempotent: true,
            keyed: true,
            ..none
        }
    );
    assert!(
        ["add_task", "update_task", "complete_task", "delete_task"]
            .iter()
            .all(|name| annotations(name).effect() == Effect::Keyed)
    );

    for name in ["update_task", "complete_task", "delete_task"] {
        let references = &of(name).references;
        assert_eq!(
            (
                references.len(),
                &*references[0].argument,
                &*references[0].kind
            ),
            (1, "task_id", "task")
        );
    }
    assert!(of("add_task").references.is_empty() && of("list_tasks").references.is_empty());
}

#[tokio::test]
async fn add_gives_the_task_without_its_owner() {
    let caller = caller();
    let added = caller
        .call("ana", "add_task", json!({ "description": "  Buy milk " }))
        .await;
    assert_eq!(
        added,
        Outcome::Done(
            json!({
                "id": "1",
                "description": "Buy milk",
                "completed": false,
                "created_at": "1970-01-01T00:00:01Z",
                "updated_at": "1970-01-01T00:00:01Z",
                "completed_at": null,
            }),
            Some("Added “Buy milk”.".to_owned())
        )
    );
}

#[tokio::test]
async fn a_repeated_call_adds_one_task() {
    let caller = caller();
    let (context, arguments) = (
        context("ana", 7),
        object(json!({ "description": "Buy milk" })),
    );
    let first = caller.run(&context, "add_task", arguments.clone()).await;
    assert_eq!(first, caller.run(&context, "add_task", arguments).await);
    assert_eq!(list(&caller, "ana").await, "Your tasks:\n  1. Buy milk");
}

#[tokio::test]
async fn arguments_that_make_no_task_are_refused() {
    let caller = caller();
    for arguments in [
        json!({}),
        json!({ "description": "" }),
        json!({ "description": 3 }),
        json!({ "description": "x".repeat(1001) }),
        json!({ "description": "Buy milk", "user_id": "bob" }),
        json!({ "description": " \n " }),
    ] {
        let came = caller.call("ana", "add_task", arguments.clone()).await;
        assert!(matches!(came, Outcome::Refused(_)), "{arguments}: {came:?}");
    }
    assert!(matches!(
        caller
            .call(
                "ana",
                "add_task",
                json!({ "description": "ä".repeat(1000) })
            )
            .await,
        Outcome::Done(..)
    ));
}

#[tokio::test]
async fn list_by_status() {
    let caller = caller_with("ana", &["Buy milk", "x Pay bills", "Call mum"]).await;
    let came = caller
        .call("ana", "list_tasks", json!({ "status": "pending" }))
        .await;
    let Outcome::Done(data, words) = came else {
        panic!("{came:?}")
    };
    assert_eq!(
        (&data["count"], &data["status"]),
        (&json!(2), &json!("pending"))
    );
    assert_eq!(data["tasks"][1]["id"], "3");
    assert!(
        !data.to_string().contains("ana"),
        "the owner is not shown: {data}"
    );
    assert_eq!(
        words.as_deref(),
        Some("Open tasks:\n  1. Buy milk\n  3. Call mum")
    );
    assert_eq!(
        list(&caller, "ana").await,
        "Your tasks:\n  1. Buy milk\n  2. Pay bills (done)\n  3. Call mum"
    );
    let completed = json!({ "status": "completed" });
    assert_eq!(
        self::words(&caller, "ana", "list_tasks", completed).await,
        "Completed tasks:\n  2. Pay bills (done)"
    );
    assert!(matches!(
        caller
            .call("ana", "list_tasks", json!({ "status": "late" }))
            .await,
        Outcome::Refused(_)
    ));
}

#[tokio::test]
async fn empty_lists_say_so() {
    let caller = caller_with("ana", &[]).await;
    assert_eq!(list(&caller, "ana").await, "You have no tasks.");
    let status = |status: &str| json!({ "status": status });
    assert_eq!(
        words(&caller, "ana", "list_tasks", status("pending")).await,
        "You have nothing left to do."
    );
    assert_eq!(
        words(&caller, "ana", "list_tasks", status("completed")).await,
        "You have no completed tasks."
    );
}

#[tokio::test]
async fn update_by_words() {
    let caller = caller_with("ana", &["Buy milk", "Call mum"]).await;
    let arguments = json!({ "task_id": "the milk one", "description": "Buy oat milk" });
    let came = caller.call("ana", "update_task", arguments).await;
    let Outcome::Done(data, words) = came else {
        panic!("{came:?}")
    };
    assert_eq!(
        (&data["id"], &data["previous_description"]),
        (&json!("1"), &json!("Buy milk"))
    );
    assert_eq!(
        words.as_deref(),
        Some("Renamed “Buy milk” to “Buy oat milk”.")
    );
    assert_eq!(
        list(&caller, "ana").await,
        "Your tasks:\n  1. Buy oat milk\n  2. Call mum"
    );
    let blank = json!({ "task_id": "1", "description": "  " });
    assert_eq!(
        caller.call("ana", "update_task", blank).await,
        Outcome::Refused("a task needs a description".to_owned())
    );
}

#[tokio::test]
async fn complete_once_and_again() {
    let caller = caller_with("ana", &["Buy milk"]).await;
    let came = caller
        .call("ana", "complete_task", json!({ "task_id": "#1" }))
        .await;
    let Outcome::Done(data, words) = came else {
        panic!("{came:?}")
    };
    assert_eq!(
        (&data["completed"], data.get("already_completed")),
        (&json!(true), None)
    );
    assert_eq!(words.as_deref(), Some("Completed “Buy milk”."));

    let came = caller
        .call("ana", "complete_task", json!({ "task_id": "milk" }))
        .await;
    let Outcome::Done(again, words) = came else {
        panic!("{came:?}")
    };
    assert_eq!(
        (&again["already_completed"], &again["completed_at"]),
        (&json!(true), &data["completed_at"])
    );
    assert_eq!(words.as_deref(), Some("“Buy milk” was already done."));
}

#[tokio::test]
async fn delete_is_previewed_by_words_and_done_by_id() {
    let caller = caller_with("ana", &["Buy milk", "Call mum"]).await;
    let prepared = caller
        .prepare(
            &context("ana", 90),
            "delete_task",
            object(json!({ "task_id": "Milk" })),
        )
        .await;
    assert_eq!(
        prepared,
        Ok(Prepared::Ready {
            arguments: object(json!({ "task_id": "1" })),
            preview: Some("Delete “Buy milk”".to_owned()),
        })
    );
    assert_eq!(
        words(&caller, "ana", "delete_task", json!({ "task_id": "milk" })).await,
        "Deleted “Buy milk”."
    );
    assert_eq!(list(&caller, "ana").await, "Your tasks:\n  2. Call mum");
    // Its number is not given to another task.
    add(&caller, "ana", &["Water plants"]).await;
    assert_eq!(
        list(&caller, "ana").await,
        "Your tasks:\n  2. Call mum\n  3. Water plants"
    );
}

#[tokio::test]
async fn a_task_that_went_away_since_it_was_prepared_is_not_found() {
    let caller = caller_with("ana", &["Buy milk"]).await;
    for tool in ["complete_task", "delete_task"] {
        let came = caller
            .run(&context("ana", 91), tool, object(json!({ "task_id": "4" })))
            .await;
        assert_eq!(came, Outcome::Refused("there is no task 4".to_owned()));
    }
    let update = object(json!({ "task_id": "4", "description": "x" }));
    let came = caller.run(&context("ana", 92), "update_task", update).await;
    assert_eq!(came, Outcome::Refused("there is no task 4".to_owned()));
}

#[tokio::test]
async fn words_that_were_never_resolved_do_not_run() {
    let caller = caller_with("ana", &["Buy milk"]).await;
    let came = caller
        .run(
            &context("ana", 93),
            "delete_task",
            object(json!({ "task_id": "milk" })),
        )
        .await;
    assert_eq!(
        came,
        Outcome::Refused("task_id: \"milk\" is not a task id".to_owned())
    );
    assert_eq!(list(&caller, "ana").await, "Your tasks:\n  1. Buy milk");
}

#[tokio::test]
async fn what_is_not_clear_becomes_a_question_and_changes_nothing() {
    let caller = caller_with("ana", &["Buy milk", "Buy oat milk"]).await;
    for tool in ["complete_task", "delete_task"] {
        let came = caller.call("ana", tool, json!({ "task_id": "milk" })).await;
        assert_eq!(
            came,
            Outcome::Asked("Which one do you mean: “Buy milk” or “Buy oat milk”?".to_owned())
        );
    }
    let came = caller
        .call(
            "ana",
            "update_task",
            json!({ "task_id": "9", "description": "x" }),
        )
        .await;
    assert!(
        matches!(came, Outcome::Asked(question) if question.starts_with("I can't find task 9."))
    );
    assert_eq!(
        list(&caller, "ana").await,
        "Your tasks:\n  1. Buy milk\n  2. Buy oat milk"
    );
}

#[tokio::test]
async fn users_do_not_see_each_other() {
    let caller = caller_with("ana", &["Buy milk", "Call mum"]).await;
    add(&caller, "bob", &["Fix bike"]).await;
    for task_id in ["2", "milk", "Call mum"] {
        let came = caller
            .call("bob", "delete_task", json!({ "task_id": task_id }))
            .await;
        let Outcome::Asked(question) = came else {
            panic!("{came:?}")
        };
        assert!(
            question.contains("Fix bike") && !question.contains("“Buy milk”"),
            "{question}"
        );
    }
    // The same number is another task.
    assert_eq!(
        words(&caller, "bob", "complete_task", json!({ "task_id": "1" })).await,
        "Completed “Fix bike”."
    );
    assert_eq!(
        list(&caller, "ana").await,
        "Your tasks:\n  1. Buy milk\n  2. Call mum"
    );
    assert_eq!(list(&caller, "eve").await, "You have no tasks.");
    // Not even an id that was resolved for somebody else.
    let came = caller
        .run(
            &context("bob", 94),
            "delete_task",
            object(json!({ "task_id": "2" })),
        )
        .await;
    assert_eq!(came, Outcome::Refused("there is no task 2".to_owned()));
}

#[tokio::test]
async fn references_are_the_users_tasks() {
    let caller = caller_with("ana", &["Buy milk", "x Pay bills"]).await;
    add(&caller, "bob", &["Fix bike"]).await;
    let reference = |id: &str, label: &str, done| Reference {
        kind: "task".to_owned(),
        id: id.to_owned(),
        label: label.to_owned(),
        done,
    };
    assert_eq!(
        caller
            .registry
            .references(&UserId::new("ana").unwrap())
            .await,
        Ok(vec![
            reference("1", "Buy milk", false),
            reference("2", "Pay bills", true)
        ])
    );
}

#[tokio::test]
async fn trouble_of_the_store_names_no_internals() {
    let store = Arc::new(MemoryTasks::default());
    let caller = Caller::new(task_tools(store.clone()));
    let secret = || "postgres://admin@db.internal refused".to_owned();
    for error in [
        StoreError::Conflict,
        StoreError::unavailable(secret()),
        StoreError::unusable(secret()),
        StoreError::unreadable(secret()),
    ] {
        store.fail_with(error);
        for (tool, arguments) in [
            ("add_task", json!({ "description": "x" })),
            ("list_tasks", json!({})),
            ("update_task", json!({ "task_id": "1", "description": "x" })),
            ("complete_task", json!({ "task_id": "1" })),
            ("delete_task", json!({ "task_id": "1" })),
        ] {
            let came = caller.call("ana", tool, arguments).await;
            let Outcome::Refused(message) = came else {
                panic!("{tool}: {came:?}")
            };
            assert!(
                message.starts_with("The task list") && !message.contains("postgres"),
                "{message}"
            );
        }
    }
}

#[test]
fn registering_the_pack_twice_is_an_error() {
    let store: Arc<dyn TaskStore> = Arc::new(MemoryTasks::default());
    let mut registry = ToolRegistry::new();
    for tool in task_tools(store.clone()) {
        registry.register(tool).unwrap();
    }
    assert!(
        task_tools(store)
            .into_iter()
            .all(|tool| registry.register(tool).is_err())
    );
    assert_eq!(registry.len(), 5);
}

#[test]
fn task_descriptions_and_ids() {
    assert_eq!(
        TaskDescription::new("  buy\nmilk ").unwrap().as_str(),
        "buy milk"
    );
    assert!(TaskDescription::new(" \t").is_err());
    assert!(TaskDescription::new(&"ä".repeat(1000)).is_ok());
    assert_eq!(
        TaskDescription::new(&"ä".repeat(1001)).unwrap_err(),
        InvalidDescription::TooLong { chars: 1001 }
    );
    assert_eq!(
        serde_json::to_value(TaskId::new(7).unwrap()).unwrap(),
        json!("7")
    );
    assert!(TaskId::new(0).is_none() && TaskId::try_from("0".to_owned()).is_err());
}

#[test]
fn each_tool_names_the_intent_that_the_log_shows() {
    let tools = task_tools(Arc::new(MemoryTasks::default()));
    let intents: Vec<(&str, &str)> = tools
        .iter()
        .map(|tool| tool.definition())
        .map(|definition| (definition.name.as_str(), definition.intent()))
        .collect();
    assert_eq!(
        intents,
        [
            ("add_task", "CREATE_TASK"),
            ("list_tasks", "LIST_TASKS"),
            ("update_task", "UPDATE_TASK"),
            ("complete_task", "COMPLETE_TASK"),
            ("delete_task", "DELETE_TASK"),
        ]
    );
}
