//! Turns without tools, and tools that the caller executes.

use adjutant_core::AgentName;
use adjutant_core::port::{Journal as _, LogStore as _};
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::{BuildError, RunContext, RunError};
use adjutant_store::sqlite;
use jiff::{SignedDuration, Timestamp};

use super::*;

fn weather() -> ClientTool {
    let city =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    ClientTool::new("getWeather", "The weather in a city.", Some(city)).unwrap()
}

fn bringing(tools: Vec<ClientTool>) -> ClientSide {
    ClientSide {
        tools,
        ..ClientSide::default()
    }
}

fn sun() -> ToolResult {
    ToolResult::verbatim("sunny".into())
}

/// The events of a conversation, by kind.
async fn kinds(store: &(impl port::Journal + ?Sized), key: &ConversationKey) -> Vec<&'static str> {
    store
        .load(key)
        .await
        .unwrap()
        .events
        .iter()
        .map(|recorded| recorded.event.kind())
        .collect()
}

fn words_only(text: &str) -> InputBody {
    let limits = TurnLimits {
        words_only: true,
        ..TurnLimits::default()
    };
    InputBody::Message {
        text: text.to_owned(),
        output_schema: None,
        limits: Some(Box::new(limits)),
        client: None,
        shown: Vec::new(),
        time_zone: None,
        from_others: false,
    }
}

#[tokio::test]
async fn a_turn_without_tools_has_none_whatever_the_model_calls() {
    let tasks = Arc::new(InMemory::new());
    let (agent, model) = task_agent(
        &tasks,
        [
            call("add_task", json!({"description": "milk"})),
            text("Milk"),
        ],
    );
    let response = agent
        .run_input(
            &mut RunContext::default(),
            None,
            words_only("A title, please"),
        )
        .await
        .unwrap();
    assert_eq!(response.content, "Milk");
    assert!(descriptions(&tasks).await.is_empty() && response.tools_used.is_empty());
    let told = model.requests()[1]
        .messages
        .last()
        .unwrap()
        .tool_result()
        .unwrap()
        .2
        .clone();
    assert_eq!(
        told.error.as_deref(),
        Some("there is no tool \"add_task\"; there are no tools")
    );
}

/// Also where another process goes on after a crash, and where a version before had let the call
/// through.
#[tokio::test]
async fn a_turn_without_tools_has_none_in_another_process_either() {
    for let_through in [false, true] {
        let store = Arc::new(sqlite::Store::in_memory().await.unwrap());
        let first = builder(ScriptedModel::new([text("unused")]))
            .tools(task_tools(store.clone()))
            .journal(store.clone(), "first")
            .build()
            .unwrap();
        let key = RunContext::default().key(first.name());
        let input = Input::new(
            InputId::new("i1").unwrap(),
            Timestamp::UNIX_EPOCH,
            words_only("A title"),
        );
        store.submit(&key, &input).await.unwrap();
        let (turn, call_id) = (
            TurnId(uuid::Uuid::from_u128(42)),
            CallId::new("call_000000000000002a_1").unwrap(),
        );
        let arguments: Arguments = [("description".to_owned(), json!("milk"))]
            .into_iter()
            .collect();
        let reply = GenerateResponse {
            parts: vec![Part::ours(Content::ToolCall(ToolCall::from_object(
                0,
                None,
                "add_task".to_owned(),
                arguments.clone(),
            )))],
            finish: FinishReason::ToolCalls,
            usage: Usage::default(),
            counters: Counters::default(),
            cost: None,
            model: ModelId::new("scripted", "script").unwrap(),
            losses: Vec::new(),
            certainty: None,
        };
        let limits = TurnLimits {
            words_only: true,
            ..TurnLimits::default()
        };
        let mut events = vec![
            super::lost_workers::started_with(turn, limits),
            Event::ModelReplied {
                turn,
                number: 1,
                reply: Ok(reply),
                ms: 1,
                attempts: 1,
                counted: None,
                notices: Vec::new(),
                past: None,
            },
        ];
        if let_through {
            events.push(Event::CallChecked {
                turn,
                call: call_id,
                verdict: GateVerdict::Run { arguments },
                corrections: None,
            });
        }
        store
            .append(&key, &Recorded::sequence(1, Timestamp::UNIX_EPOCH, &events))
            .await
            .unwrap();
        assert!(
            store
                .claim(&key, "a lost worker", std::time::Duration::ZERO)
                .await
                .unwrap()
                .is_held()
        );
        let second = builder(ScriptedModel::new([text("unused"), text("Milk")]))
            .tools(task_tools(store.clone()))
            .journal(store.clone(), adjutant_store::worker_id())
            .build()
            .unwrap();
        let swept = second
            .recover_until(None, &CancellationToken::new())
            .await
            .unwrap();
        assert!(swept.failed.is_empty(), "{:?}", swept.failed);
        let tasks = TaskStore::list(&*store, &key.user, TaskFilter::All)
            .await
            .unwrap();
        assert!(tasks.is_empty(), "{let_through}: {tasks:?}");
        assert!(
            !kinds(&*store, &key).await.contains(&"call_started"),
            "{let_through}"
        );
    }
}

#[tokio::test]
async fn a_call_of_the_callers_waits_for_its_result_and_the_turn_goes_on_with_it() {
    let tasks = Arc::new(InMemory::new());
    let (agent, model) = task_agent(
        &tasks,
        [
            call("getWeather", json!({"city": "Oslo"}))
                .and_call("add_task", json!({"description": "buy a hat"})),
            text("It is sunny."),
        ],
    );
    let agent = agent.with_client(bringing(vec![weather()])).unwrap();
    let mut context = RunContext::default();
    let asked = agent
        .run_in(&mut context, "a hat, and the weather in Oslo")
        .await
        .unwrap();
    assert_eq!(asked.outcome, OutcomeCategory::PendingResult);
    assert_eq!(asked.decision.kind, DecisionKind::AwaitResult);
    assert_eq!(
        descriptions(&tasks).await,
        ["buy a hat"],
        "the agent's own call ran"
    );
    let [shown] = asked.decision.pending.as_slice() else {
        panic!("{asked:?}")
    };
    assert!(shown.awaits_result() && shown.awaits == Some(Awaits::Client));
    assert_eq!(
        (shown.tool.as_str(), &shown.arguments["city"]),
        ("getWeather", &json!("Oslo"))
    );
    let offered = model.requests()[0].tools.clone();
    let names: Vec<&str> = offered.iter().map(|tool| tool.name.as_str()).collect();
    assert!(
        names.contains(&"add_task") && names.contains(&"getWeather"),
        "{names:?}"
    );

    // Words are no result, nor is a yes, nor an answer without one.
    let yes = agent
        .answer(&mut context, vec![shown.answer(Verdict::Approved)])
        .await
        .unwrap();
    assert_eq!(yes.notices[0].code, "answer_refused");
    let empty = agent
        .answer(&mut context, vec![shown.answer(Verdict::Provided)])
        .await
        .unwrap();
    assert_eq!(empty.notices[0].code, "answer_refused");
    assert_eq!(model.calls_made(), 1, "no model reads an answer");

    let done = agent
        .answer(&mut context, vec![shown.provided(sun())])
        .await
        .unwrap();
    assert_eq!(
        (done.content.as_str(), done.turn),
        ("It is sunny.", asked.turn)
    );
    assert_eq!(done.outcome, OutcomeCategory::TaskCompleted);
    let read = model.requests()[1].messages.iter().find_map(|message| {
        message
            .tool_result()
            .filter(|(_, tool, _)| *tool == "getWeather")
            .map(|(_, _, result)| result.to_text())
    });
    assert_eq!(read.as_deref(), Some("sunny"), "as it was brought");
    check_pairing(&context.history).unwrap();
    let used: Vec<&str> = done
        .tools_used
        .iter()
        .map(|used| used.tool.as_str())
        .collect();
    assert_eq!(used, ["getWeather", "add_task"]);

    // The same answer again is the same answer; another one changes nothing and says so.
    let again = agent
        .answer(&mut context, vec![shown.provided(sun())])
        .await
        .unwrap();
    assert_eq!(
        (again.content.as_str(), again.notices.len()),
        ("It is sunny.", 0)
    );
    let other = ToolResult::verbatim("rain".into());
    let late = agent
        .answer(&mut context, vec![shown.provided(other)])
        .await
        .unwrap();
    assert_eq!(late.notices[0].code, "answered_before");
    assert_eq!(model.calls_made(), 2);
}

#[tokio::test]
async fn what_was_recorded_holds_in_another_process() {
    let store = Arc::new(sqlite::Store::in_memory().await.unwrap());
    let agent = |replies: Vec<Reply>| {
        let model = ScriptedModel::new(replies).with_requests_kept(usize::MAX);
        let agent = builder(model.clone())
            .journal(store.clone(), adjutant_store::worker_id())
            .build();
        (agent.unwrap(), model)
    };
    let replies = || vec![call("getWeather", json!({"city": "Oslo"})), text("Sunny.")];
    let (first, _) = agent(replies());
    let mut context = RunContext::default();
    let client = ClientSide {
        context: "The page is dark.".to_owned(),
        ..bringing(vec![weather()])
    };
    let asked = first
        .with_client(client)
        .unwrap()
        .run_in(&mut context, "weather?")
        .await
        .unwrap();
    drop(first);
    // The other process knows of the tools by the journal alone.
    let (second, model) = agent(replies());
    let mut context = second.context(&context.key(second.name())).await.unwrap();
    assert_eq!(context.pending, asked.decision.pending);
    let answer = context.pending[0].provided(sun());
    let done = second.answer(&mut context, vec![answer]).await.unwrap();
    assert_eq!(done.content, "Sunny.");
    let request = model.requests().pop().unwrap();
    assert!(
        request
            .tools
            .iter()
            .any(|tool| tool.name.as_str() == "getWeather")
    );
    let said: Vec<String> = request.messages.iter().map(Message::text).collect();
    assert_eq!(said[1], "The page is dark.\n\nweather?");
    // What the caller knows is no part of what was said.
    assert_eq!(context.history[0].text(), "weather?");
}

#[tokio::test]
async fn a_result_beside_a_question_waits_for_both() {
    let tasks = Arc::new(InMemory::new());
    let change = TaskChange::Add {
        description: TaskDescription::new("Buy milk").unwrap(),
        from_others: false,
    };
    TaskStore::apply(tasks.as_ref(), &UserId::local(), &change, None)
        .await
        .unwrap();
    let both = || {
        call("delete_task", json!({"task_id": "milk"}))
            .and_call("getWeather", json!({"city": "Oslo"}))
    };
    for results_first in [false, true] {
        let (agent, model) = task_agent(&tasks, [both(), text("Done.")]);
        let agent = agent.with_client(bringing(vec![weather()])).unwrap();
        let mut context = RunContext::default();
        let asked = agent.run_in(&mut context, "both").await.unwrap();
        assert_eq!(asked.outcome, OutcomeCategory::PendingConfirmation);
        assert!(
            asked.content.contains("Buy milk") && !asked.content.contains("getWeather"),
            "{}",
            asked.content
        );
        let shown = asked
            .decision
            .pending
            .iter()
            .find(|call| call.awaits_result())
            .unwrap()
            .clone();
        let bring = vec![shown.provided(sun())];
        let (first, last) = if results_first {
            let first = agent.answer(&mut context, bring).await.unwrap();
            (first, agent.run_in(&mut context, "no").await.unwrap())
        } else {
            let first = agent.run_in(&mut context, "no").await.unwrap();
            (first, agent.answer(&mut context, bring).await.unwrap())
        };
        assert_eq!(first.decision.pending.len(), 1, "{first:?}");
        assert_eq!((last.content.as_str(), model.calls_made()), ("Done.", 2));
        assert_eq!(descriptions(&tasks).await, ["Buy milk"]);
    }
}

#[tokio::test]
async fn words_that_come_while_a_result_is_awaited_are_the_next_message() {
    let model = ScriptedModel::new([
        call("getWeather", json!({"city": "Oslo"})),
        text("Sunny."),
        text("Hello."),
    ]);
    let agent = builder(model.clone())
        .build()
        .unwrap()
        .with_client(bringing(vec![weather()]))
        .unwrap();
    let mut context = RunContext::default();
    let asked = agent.run_in(&mut context, "weather?").await.unwrap();
    let queued = agent.run_in(&mut context, "yes").await.unwrap();
    assert_eq!(
        (queued.turn, queued.notices[0].code.as_str()),
        (asked.turn, "message_queued")
    );
    assert_eq!(queued.notices[0].text, words::MESSAGE_QUEUED_BEHIND_RESULT);
    let answer = asked.decision.pending[0].provided(sun());
    assert_eq!(
        agent
            .answer(&mut context, vec![answer])
            .await
            .unwrap()
            .content,
        "Sunny."
    );
    assert_eq!(
        model.calls_made(),
        3,
        "the message that waited was answered"
    );
}

#[tokio::test]
async fn a_result_that_does_not_come_ends_the_turn_without_a_question() {
    let clock = Arc::new(std::sync::Mutex::new(Timestamp::UNIX_EPOCH));
    let (time, store) = (Arc::clone(&clock), Arc::new(InMemory::new()));
    let model = ScriptedModel::new([call("getWeather", json!({"city": "Oslo"})), text("Hello.")]);
    let agent = builder(model.clone())
        .journal(store.clone(), "test")
        .clock(move || *time.lock().unwrap());
    let agent = agent
        .build()
        .unwrap()
        .with_client(bringing(vec![weather()]))
        .unwrap();
    let mut context = RunContext::default();
    let asked = agent.run_in(&mut context, "weather?").await.unwrap();
    *clock.lock().unwrap() += SignedDuration::from_hours(7 * 24);
    let swept = agent
        .recover_until(None, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(
        (swept.responses[0].outcome, model.calls_made()),
        (OutcomeCategory::NoResult, 1)
    );
    let mut context = agent.context(&context.key(agent.name())).await.unwrap();
    check_pairing(&context.history).unwrap();
    let told = context
        .history
        .iter()
        .find_map(Message::tool_result)
        .unwrap()
        .2
        .error
        .clone()
        .unwrap();
    assert!(told.contains("no result in time"), "{told}");
    let late = agent
        .answer(
            &mut context,
            vec![asked.decision.pending[0].provided(sun())],
        )
        .await
        .unwrap();
    assert_eq!(late.notices[0].code, "answered_late");
    assert_eq!(
        agent.run_in(&mut context, "hello").await.unwrap().content,
        "Hello."
    );
}

#[tokio::test]
async fn a_cancelled_wait_has_words_for_the_model() {
    let model = ScriptedModel::new([call("getWeather", json!({"city": "Oslo"}))]);
    let agent = builder(model.clone())
        .build()
        .unwrap()
        .with_client(bringing(vec![weather()]))
        .unwrap();
    let mut context = RunContext::default();
    agent.run_in(&mut context, "weather?").await.unwrap();
    let stopped = agent.cancel(&mut context).await.unwrap();
    assert_eq!(stopped.outcome, OutcomeCategory::Cancelled);
    check_pairing(&context.history).unwrap();
    let told = context
        .history
        .iter()
        .find_map(Message::tool_result)
        .unwrap()
        .2
        .error
        .clone()
        .unwrap();
    assert!(told.contains("not known whether it was done"), "{told}");
}

#[tokio::test]
async fn arguments_have_to_fit_before_anybody_is_asked_to_execute_them() {
    let model = ScriptedModel::new([
        call("getWeather", json!({"town": "Oslo"})),
        call("getWeather", json!({"city": "Oslo"})),
        text("Sunny."),
    ]);
    let agent = builder(model.clone())
        .build()
        .unwrap()
        .with_client(bringing(vec![weather()]))
        .unwrap();
    let asked = agent
        .run_in(&mut RunContext::default(), "weather?")
        .await
        .unwrap();
    assert_eq!((asked.decision.pending.len(), model.calls_made()), (1, 2));
}

#[tokio::test]
async fn the_caller_chooses_what_may_be_called() {
    let tasks = Arc::new(InMemory::new());
    let add = || call("add_task", json!({"description": "milk"}));
    let with = |choice, one_at_a_time| ClientSide {
        choice,
        one_at_a_time,
        ..bringing(vec![weather()])
    };
    let oslo = || call("getWeather", json!({"city": "Oslo"}));
    // None: neither the caller's tools nor the agent's.
    let (agent, _) = task_agent(&tasks, [add(), oslo(), text("No tools.")]);
    let none = agent.with_client(with(ToolChoice::None, false)).unwrap();
    assert_eq!(none.run("go").await.unwrap().content, "No tools.");
    // One by name: another is one that there is not.
    let (agent, _) = task_agent(&tasks, [add(), oslo()]);
    let named = agent
        .with_client(with(ToolChoice::Named("getWeather".to_owned()), false))
        .unwrap();
    assert_eq!(
        named.run("go").await.unwrap().outcome,
        OutcomeCategory::PendingResult
    );
    assert!(descriptions(&tasks).await.is_empty());
    // Required: words are asked for again, and the choice holds until results come.
    let (agent, model) = task_agent(
        &tasks,
        [
            text("Sunny?"),
            oslo(),
            text("Sunny."),
            text("Words."),
            text("Words."),
        ],
    );
    let required = agent
        .with_client(with(ToolChoice::Required, false))
        .unwrap();
    let mut context = RunContext::default();
    let asked = required.run_in(&mut context, "go").await.unwrap();
    assert_eq!(
        (asked.outcome, model.calls_made()),
        (OutcomeCategory::PendingResult, 2)
    );
    let done = required
        .answer(
            &mut context,
            vec![asked.decision.pending[0].provided(sun())],
        )
        .await
        .unwrap();
    assert_eq!(done.content, "Sunny.");
    let failed = required.run("go").await.unwrap();
    assert_eq!(failed.outcome, OutcomeCategory::LlmFailure);
    assert!(
        failed.content.contains("required a call of a tool"),
        "{}",
        failed.content
    );
    // With the results comes the next choice.
    let (agent, model) = task_agent(&tasks, [oslo(), text("Sunny."), oslo()]);
    let agent = agent.with_client(with(ToolChoice::Auto, false)).unwrap();
    let mut context = RunContext::default();
    let asked = agent.run_in(&mut context, "go").await.unwrap();
    let more = asked.decision.pending[0]
        .provided(sun())
        .choosing(ToolChoice::Required);
    let asked = agent.answer(&mut context, vec![more]).await.unwrap();
    assert_eq!(
        (asked.outcome, model.calls_made()),
        (OutcomeCategory::PendingResult, 3)
    );
    // One at a time.
    let (agent, model) = task_agent(
        &tasks,
        [oslo().and_call("getWeather", json!({"city": "Rome"}))],
    );
    let agent = agent.with_client(with(ToolChoice::Auto, true)).unwrap();
    assert_eq!(agent.run("go").await.unwrap().decision.pending.len(), 1);
    assert_eq!(model.calls_made(), 1);
}

#[tokio::test]
async fn rounds_of_the_callers_are_not_bounded_by_those_of_the_agent() {
    let rounds = 2 * adjutant_core::limits::TOOL_ITERATIONS_MAX;
    let replies = (0..rounds).map(|city| call("getWeather", json!({"city": city.to_string()})));
    let model = ScriptedModel::new(replies.chain([text("Enough.")]));
    let agent = builder(model)
        .build()
        .unwrap()
        .with_client(bringing(vec![weather()]))
        .unwrap();
    let mut context = RunContext::default();
    let mut response = agent.run_in(&mut context, "all of them").await.unwrap();
    for _ in 0..rounds {
        let answer = response.decision.pending[0].provided(sun());
        response = agent.answer(&mut context, vec![answer]).await.unwrap();
    }
    assert_eq!(response.content, "Enough.");
}

#[tokio::test]
async fn what_cannot_be_offered_is_refused_with_words() {
    let object = || Some(json!({"type": "object"}));
    for (name, schema, words) in [
        ("", object(), "not a tool name"),
        ("get weather", object(), "not a tool name"),
        (&*"x".repeat(65), object(), "not a tool name"),
        ("ask_user", object(), "reserved"),
        ("list", Some(json!({"type": "array"})), "its type must be"),
        (
            "far",
            Some(json!({"type": "object", "$ref": "https://example.org/x"})),
            "not a usable JSON Schema",
        ),
    ] {
        let error = ClientTool::new(name, "Does it.", schema)
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{name}: {error}");
    }
    let huge = "x".repeat(adjutant_core::limits::CLIENT_TOOLS_BYTES_MAX);
    assert!(ClientTool::new("huge", &huge, object()).is_err());
    let tasks = Arc::new(InMemory::new());
    let (agent, _) = task_agent(&tasks, []);
    let tool = |name: &str| ClientTool::new(name, "Does it.", object()).unwrap();
    for (client, words) in [
        (bringing(vec![tool("add_task")]), "of its own"),
        (bringing(vec![tool("a"), tool("a")]), "two tools"),
        (
            bringing((0..129).map(|number| tool(&format!("t{number}"))).collect()),
            "at most 128",
        ),
        (
            ClientSide {
                choice: ToolChoice::Required,
                ..ClientSide::default()
            },
            "brings none",
        ),
        (
            ClientSide {
                choice: ToolChoice::Named("b".to_owned()),
                ..bringing(vec![tool("a")])
            },
            "none of that name",
        ),
        (
            ClientSide {
                context: "x".repeat(64 * 1024 + 1),
                ..ClientSide::default()
            },
            "the context takes",
        ),
    ] {
        let error = agent.with_client(client.clone()).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        // Nor is it accepted by another way.
        let body = InputBody::Message {
            text: "go".to_owned(),
            output_schema: None,
            limits: None,
            client: Some(Box::new(client)),
            shown: Vec::new(),
            time_zone: None,
            from_others: false,
        };
        let refused = agent
            .run_input(&mut RunContext::default(), None, body)
            .await;
        assert!(matches!(refused, Err(RunError::Client(_))), "{refused:?}");
    }
    let weak =
        ScriptedModel::from_jsonl("{\"config\": {\"weak_tools\": true}}\n{\"text\": \"Hi.\"}")
            .unwrap();
    let error = builder(weak)
        .build()
        .unwrap()
        .with_client(bringing(vec![weather()]))
        .unwrap_err();
    assert!(
        matches!(
            error,
            BuildError::Client(InvalidClientSide::WeakModel { .. })
        ),
        "{error}"
    );
}

/// Every write of such a turn, and no more: what was said with the start, the round with the wait,
/// the results, the end.
#[tokio::test]
async fn a_call_of_the_callers_is_written_with_the_wait_and_once() {
    let store = Arc::new(sqlite::Store::in_memory().await.unwrap());
    let two =
        call("getWeather", json!({"city": "Oslo"})).and_call("getWeather", json!({"city": "Rome"}));
    let agent = builder(ScriptedModel::new([two, text("Sunny.")]))
        .journal(store.clone(), adjutant_store::worker_id())
        .build()
        .unwrap()
        .with_client(bringing(vec![weather()]))
        .unwrap();
    let mut context = RunContext::default();
    let asked = agent.run_in(&mut context, "weather?").await.unwrap();
    let answers = asked
        .decision
        .pending
        .iter()
        .map(|call| call.provided(sun()))
        .collect();
    agent.answer(&mut context, answers).await.unwrap();
    let key = context.key(&AgentName::adjutant());
    assert_eq!(
        kinds(&*store, &key).await,
        [
            "turn_started",
            "model_replied",
            "call_checked",
            "call_checked",
            "turn_parked",
            "call_answered",
            "call_finished",
            "call_answered",
            "call_finished",
            "model_replied",
            "turn_finished",
        ]
    );
    let calls = store.tool_invocations(&key.user, asked.turn).await.unwrap();
    assert_eq!(calls.len(), 2, "{calls:?}");
}
