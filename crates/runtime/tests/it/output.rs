//! Answers that fit a JSON Schema.

use adjutant_core::AgentName;
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::{BuildError, RunContext};
use schemars::JsonSchema;
use serde::Deserialize;

use super::*;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct City {
    name: String,
    people: u32,
}

const OSLO: &str = r#"{"name":"Oslo","people":700000}"#;

fn oslo() -> City {
    City {
        name: "Oslo".to_owned(),
        people: 700_000,
    }
}

#[tokio::test]
async fn an_agent_answers_with_a_value_after_its_tools_ran() {
    let tasks = Arc::new(InMemory::new());
    let model = ScriptedModel::new([
        call("add_task", json!({"description": "go there"})),
        text(OSLO),
    ]);
    let agent = builder(model.clone())
        .tools(task_tools(tasks.clone()))
        .journal(tasks.clone(), "test")
        .output::<City>()
        .build()
        .unwrap();
    let response = agent.run("where to?").await.unwrap();
    assert_eq!(response.output::<City>().unwrap(), oslo());
    assert_eq!(response.content, OSLO);
    assert_eq!(response.outcome, OutcomeCategory::TaskCompleted);
    assert_eq!(descriptions(&tasks).await, ["go there"]);
    let asked = model.requests();
    assert_eq!(asked[0].response_schema, Some(schema_of::<City>()));
    assert_eq!(asked[0].response_schema, asked[1].response_schema);
    // What the model said is in the history, and nothing beside it.
    let key = ConversationKey {
        agent: AgentName::adjutant(),
        user: UserId::local(),
        conversation: response.conversation,
    };
    assert_eq!(agent.context(&key).await.unwrap().history.len(), 4);
}

#[tokio::test]
async fn one_request_may_ask_for_a_value() {
    let model = ScriptedModel::new([text("Hello."), text(OSLO), text("Bye.")]);
    let agent = builder(model.clone()).build().unwrap();
    let mut context = RunContext::default();
    let hello = agent.run_in(&mut context, "hello").await.unwrap();
    assert_eq!(
        hello.output::<City>(),
        Err(OutputError::None {
            outcome: OutcomeCategory::ResponseGiven
        })
    );
    let city = agent
        .with_output::<City>()
        .unwrap()
        .run_in(&mut context, "which city?")
        .await
        .unwrap();
    assert_eq!(city.output::<City>().unwrap(), oslo());
    assert_eq!(
        agent.run_in(&mut context, "bye").await.unwrap().content,
        "Bye."
    );
    let schemas: Vec<bool> = model
        .requests()
        .iter()
        .map(|request| request.response_schema.is_some())
        .collect();
    assert_eq!(schemas, [false, true, false]);
    assert_eq!(model.requests()[2].messages.len(), 6, "one conversation");
}

#[tokio::test]
async fn a_model_without_structured_output_gets_the_schema_in_the_instruction() {
    let model = ScriptedModel::new([text("Here:\n```json\n{\"name\":\"Oslo\"}\n```"), text(OSLO)]);
    let capabilities = Capabilities {
        response_schema: SchemaSupport::Prompted,
        ..model.capabilities().clone()
    };
    let agent = builder(model.clone().with_capabilities(capabilities))
        .output::<City>()
        .build()
        .unwrap();
    let response = agent.run("where to?").await.unwrap();
    assert_eq!(response.output::<City>().unwrap(), oslo());
    let asked = model.requests();
    assert_eq!(asked.len(), 2, "the first answer did not fit");
    assert!(
        asked[1]
            .messages
            .last()
            .unwrap()
            .text()
            .contains(r#""people" is a required property"#)
    );
    for request in &asked {
        assert_eq!(request.response_schema, None);
        let instruction = request.messages[0].text();
        assert!(
            instruction.starts_with("Be brief.")
                && instruction.ends_with(&schema_of::<City>().to_string())
        );
    }
}

#[tokio::test]
async fn an_answer_that_never_fits_is_in_the_log_with_its_words() {
    let store = Arc::new(InMemory::new());
    let model = ScriptedModel::new([text("no"), text("still no")]);
    let agent = builder(model)
        .journal(store.clone(), "test")
        .output::<City>()
        .build()
        .unwrap();
    let response = agent.run("where to?").await.unwrap();
    assert_eq!(
        (response.outcome, response.output.clone()),
        (OutcomeCategory::LlmFailure, None)
    );
    assert_eq!(response.error.as_ref().unwrap().code(), "invalid_response");
    assert!(matches!(
        response.output::<City>(),
        Err(OutputError::None { .. })
    ));
    let row = port::LogStore::decision(&*store, &UserId::local(), response.turn)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.error_code.as_deref(), Some("invalid_response"));
    assert_eq!(row.raw_response.as_deref(), Some("still no"));
}

#[tokio::test]
async fn a_turn_that_waited_still_owes_its_value() {
    let tasks = Arc::new(InMemory::new());
    let model = ScriptedModel::new([
        call("add_task", json!({"description": "a"})),
        text("Added."),
        call("delete_task", json!({"task_id": "1"})),
        text(OSLO),
    ]);
    let agent = builder(model)
        .tools(task_tools(tasks.clone()))
        .journal(tasks.clone(), "test")
        .build()
        .unwrap();
    let mut context = RunContext::default();
    agent.run_in(&mut context, "add a").await.unwrap();
    let typed = agent.with_output::<City>().unwrap();
    let waiting = typed
        .run_in(&mut context, "delete a, and where to?")
        .await
        .unwrap();
    assert_eq!(waiting.outcome, OutcomeCategory::PendingConfirmation);
    // Whoever answers, the recorded turn knows what its answer must look like.
    let done = agent.run_in(&mut context, "yes").await.unwrap();
    assert_eq!(done.output::<City>().unwrap(), oslo());
}

#[tokio::test]
async fn a_value_of_another_type_is_an_error_of_its_own_kind() {
    let agent = builder(ScriptedModel::new([text(r#"{"name":"Oslo","people":-1}"#)]))
        .output_schema(json!({"type": "object"}))
        .build()
        .unwrap();
    let response = agent.run("where to?").await.unwrap();
    let error = response.output::<City>().unwrap_err();
    assert!(
        matches!(&error, OutputError::Unreadable { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("City: invalid value"), "{error}");
}

#[tokio::test]
async fn what_cannot_work_is_refused_when_the_agent_is_built() {
    let bad = builder(ScriptedModel::new([]))
        .output_schema(json!({"type": "citty"}))
        .build();
    assert!(matches!(bad, Err(BuildError::Output(_))), "{bad:?}");
    let model = ScriptedModel::new([text(OSLO)]);
    let weak = Capabilities {
        weak_tools: true,
        ..model.capabilities().clone()
    };
    let weak = model.with_capabilities(weak);
    let tasks = Arc::new(InMemory::new());
    let with_tools = builder(weak.clone())
        .tools(task_tools(tasks))
        .build()
        .unwrap();
    let refused = with_tools.with_output::<City>().unwrap_err();
    assert!(
        matches!(&refused, BuildError::OutputBesideWeakTools { .. }),
        "{refused}"
    );
    // Without tools nothing stands in the way.
    let response = builder(weak)
        .output::<City>()
        .build()
        .unwrap()
        .run("where to?")
        .await
        .unwrap();
    assert_eq!(response.output::<City>().unwrap(), oslo());
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Server {
    address: std::net::Ipv4Addr,
    port: u16,
}

fn localhost() -> Server {
    Server {
        address: std::net::Ipv4Addr::LOCALHOST,
        port: 80,
    }
}

#[tokio::test]
async fn an_answer_that_the_type_refuses_is_asked_for_again() {
    let replies = || {
        [
            text(r#"{"address":"999.1.1.1","port":80}"#),
            text(r#"{"address":"127.0.0.1","port":80.0}"#),
        ]
    };
    let typed = |model: ScriptedModel| builder(model).output::<Server>().build().unwrap();
    let requested = |model: ScriptedModel| {
        let agent = builder(model).build().unwrap();
        agent.with_output::<Server>().unwrap()
    };
    for make in [&typed as &dyn Fn(ScriptedModel) -> Agent, &requested] {
        let model = ScriptedModel::new(replies()).with_requests_kept(usize::MAX);
        let response = make(model.clone()).run("where?").await.unwrap();
        // 80.0 is an integer.
        assert_eq!(response.output::<Server>(), Ok(localhost()));
        assert_eq!(response.outcome, OutcomeCategory::ResponseGiven);
        let requests = model.requests();
        assert_eq!(requests.len(), 2);
        let told = requests[1].messages.last().unwrap().text();
        assert!(told.contains("invalid IPv4 address"), "{told}");
    }
}

#[tokio::test]
async fn an_answer_that_the_type_refuses_to_the_end_is_no_success() {
    let wrong = r#"{"address":"999.1.1.1","port":80}"#;
    let model = ScriptedModel::new([text(wrong), text(wrong), text(wrong), text(wrong)]);
    let agent = builder(model.clone()).output::<Server>().build().unwrap();
    let response = agent.run("where?").await.unwrap();
    assert_eq!(response.outcome, OutcomeCategory::LlmFailure);
    assert_eq!(response.output, None);
    assert!(model.calls_made() > 1);
}

#[tokio::test]
async fn an_unknown_tag_is_answered_with_the_known_ones() {
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Reading {
        Rain { mm: u32 },
        Wind { knots: u32 },
    }
    let model = ScriptedModel::new([
        text(r#"{"kind":"snow","mm":3}"#),
        text(r#"{"kind":"rain","mm":3}"#),
    ])
    .with_requests_kept(usize::MAX);
    let agent = builder(model.clone()).output::<Reading>().build().unwrap();
    let response = agent.run("weather?").await.unwrap();
    assert_eq!(response.output(), Ok(Reading::Rain { mm: 3 }));
    let told = model.requests()[1].messages.last().unwrap().text();
    assert!(
        told.contains("`rain`, `wind`") || told.contains("`rain` or `wind`"),
        "{told}"
    );
    assert_ne!(response.output(), Ok(Reading::Wind { knots: 3 }));
}
