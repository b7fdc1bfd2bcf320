//! Turns from input to response.

use adjutant_core::AgentName;
use std::time::Duration;

use adjutant_core::port::LogStore as _;
use adjutant_providers::scripted::{Fault, call, fault, text};
use adjutant_runtime::{BuildError, RunContext, RunError};

use super::*;

#[tokio::test]
async fn a_tool_runs_and_the_response_says_so() {
    let tasks = Arc::new(InMemory::new());
    let (agent, model) = task_agent(
        &tasks,
        [
            call("add_task", json!({"description": "buy milk"})),
            text("Added it."),
        ],
    );
    let response = agent.run("add buy milk").await.unwrap();
    assert_eq!(response.content, "Added it.");
    assert_eq!(response.decision.kind, DecisionKind::InvokeTool);
    assert_eq!(response.outcome, OutcomeCategory::TaskCompleted);
    assert_eq!(
        response.tools_used[0].outcome().unwrap()["description"],
        "buy milk"
    );
    assert_eq!(descriptions(&tasks).await, ["buy milk"]);
    // The model saw the result of its call, the instruction first, and no user field anywhere.
    let requests = model.requests();
    assert_eq!(requests[1].messages.len(), 4);
    assert_eq!(requests[1].messages[0].text(), "Be brief.");
    assert!(
        requests
            .iter()
            .flat_map(|request| &request.tools)
            .all(|tool| !tool.parameters.to_string().contains("user"))
    );
    let row = tasks
        .decision(&UserId::local(), response.turn)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (row.outcome, row.model_calls, row.iterations),
        (Some(response.outcome), 2, 1)
    );
    assert_eq!(
        tasks
            .tool_invocations(&UserId::local(), response.turn)
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn a_conversation_goes_on_and_other_users_see_nothing() {
    let tasks = Arc::new(InMemory::new());
    let (agent, model) = task_agent(
        &tasks,
        [text("Hello Ana."), text("Ana."), text("I do not know.")],
    );
    let mut ana = RunContext::new(UserId::new("ana").unwrap());
    agent.run_in(&mut ana, "I am Ana").await.unwrap();
    agent.run_in(&mut ana, "who am I?").await.unwrap();
    assert_eq!(ana.history.len(), 4);
    assert_eq!(model.requests()[1].messages.len(), 4);
    // Eve names Ana's conversation; it is empty to her.
    let mut eve = RunContext::new(UserId::new("eve").unwrap());
    eve.conversation = ana.conversation;
    agent.run_in(&mut eve, "who am I?").await.unwrap();
    assert_eq!(model.requests()[2].messages.len(), 2);
    let reloaded = agent
        .context(&ana.key(&AgentName::adjutant()))
        .await
        .unwrap();
    assert_eq!(reloaded.history, ana.history);
}

#[tokio::test]
async fn a_history_from_elsewhere_is_taken_once() {
    let tasks = Arc::new(InMemory::new());
    let (agent, model) = task_agent(&tasks, [text("Two."), text("Three.")]);
    let past = vec![
        Message::user("one").unwrap(),
        Message::assistant(vec![Part::ours(Content::Text {
            text: "One.".to_owned(),
        })])
        .unwrap(),
    ];
    let mut context = RunContext::default().with_history(past);
    agent.run_in(&mut context, "two").await.unwrap();
    agent.run_in(&mut context, "three").await.unwrap();
    assert_eq!(
        model
            .requests()
            .iter()
            .map(|request| request.messages.len())
            .collect::<Vec<_>>(),
        [4, 6]
    );
    assert_eq!(context.history.len(), 6);
}

#[tokio::test]
async fn calls_keep_their_order_and_harmless_ones_run_together() {
    let (sender, receiver) = tokio::sync::watch::channel(0);
    // Each of two readers waits until the other has begun: only a concurrent run can end.
    let reader = |name: &str| {
        let (sender, receiver) = (sender.clone(), receiver.clone());
        let tool = FunctionTool::new(name, "Reads.", json!({"type": "object"}), move |_, _| {
            let (sender, mut receiver) = (sender.clone(), receiver.clone());
            async move {
                sender.send_modify(|begun| *begun += 1);
                let _ = receiver.wait_for(|begun| *begun >= 2).await;
                Ok(json!(1))
            }
        });
        tool.unwrap().annotated(Annotations {
            read_only: true,
            ..Annotations::default()
        })
    };
    let changes = Arc::new(AtomicUsize::new(0));
    let agent = builder(ScriptedModel::new([
        call("read_a", json!({}))
            .and_call("read_b", json!({}))
            .and_call("change", json!({}))
            .and_call("change", json!({"x": 1})),
        text("Done."),
    ]))
    .tool(reader("read_a"))
    .tool(reader("read_b"))
    .tool(counting("change", Annotations::default(), &changes))
    .build()
    .unwrap();
    let response = agent.run("go").await.unwrap();
    let names: Vec<&str> = response
        .tools_used
        .iter()
        .map(|used| used.tool.as_str())
        .collect();
    assert_eq!(names, ["read_a", "read_b", "change", "change"]);
    let counts: Vec<&Value> = response.tools_used[2..]
        .iter()
        .map(|used| used.outcome().unwrap())
        .collect();
    assert_eq!(counts, [&json!(1), &json!(2)]);
}

#[tokio::test]
async fn faulty_calls_are_answered_with_errors_and_the_turn_lives() {
    let count = Arc::new(AtomicUsize::new(0));
    let model = ScriptedModel::new([
        call("cuont", json!({})),
        call("count", json!({})).and_call_text("count", r#"{"half": "#),
        call("strict", json!({"n": "three"})),
        text("Done."),
    ]);
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false});
    let strict =
        FunctionTool::new("strict", "Strict.", schema, |_, _| async { Ok(json!(1)) }).unwrap();
    let agent = builder(model.clone())
        .tool(counting("count", Annotations::default(), &count))
        .tool(strict)
        .report_failed_calls(true)
        .build()
        .unwrap();
    let response = agent.run("go").await.unwrap();
    // Whatever the model says: what failed is said beside what succeeded.
    let failed: Vec<&str> = response
        .failed_calls
        .iter()
        .map(|failed| failed.tool.as_str())
        .collect();
    assert_eq!(failed, ["count", "strict"]);
    let mut lines = vec!["Done."];
    lines.extend(response.failed_calls.iter().map(|failed| &*failed.message));
    assert_eq!(response.content, lines.join("\n"));
    assert_eq!(response.outcome, OutcomeCategory::TaskCompleted);
    assert_eq!(response.error, None);
    assert_eq!(count.load(Ordering::SeqCst), 1, "the half call never ran");
    assert_eq!(
        response.tools_used.len(),
        1,
        "refused calls are not used ones"
    );
    let told = |request: usize| {
        let messages = &model.requests()[request].messages;
        messages
            .last()
            .unwrap()
            .tool_result()
            .unwrap()
            .2
            .error
            .clone()
            .unwrap()
    };
    assert!(told(1).contains("did you mean \"count\""));
    assert!(told(2).contains("not a JSON object"));
    assert!(told(3).contains("/n"));
}

#[tokio::test]
async fn a_tool_that_breaks_panics_or_hangs_is_an_error_result() {
    let schema = || json!({"type": "object"});
    let fails = FunctionTool::new("fails", "x", schema(), |_, _| async {
        Err(ToolError::failed("no paper"))
    });
    let panics = FunctionTool::new("panics", "x", schema(), |_, _| async { panic!("a bug") });
    let hangs = FunctionTool::new("hangs", "x", schema(), |_, _| std::future::pending());
    let limits = TurnLimits {
        tool_timeout: Duration::from_millis(20),
        ..TurnLimits::default()
    };
    let reading = Annotations {
        read_only: true,
        ..Annotations::default()
    };
    let agent = builder(ScriptedModel::new([
        call("fails", json!({}))
            .and_call("panics", json!({}))
            .and_call("hangs", json!({})),
        text("It did not work."),
    ]))
    .tool(fails.unwrap())
    // Of tools that change something, nobody would know whether they had (doubt.rs).
    .tool(panics.unwrap().annotated(reading))
    .tool(hangs.unwrap().annotated(reading))
    .limits(limits)
    .report_failed_calls(true)
    .build()
    .unwrap();
    let response = agent.run("go").await.unwrap();
    let errors: Vec<&str> = response
        .tools_used
        .iter()
        .map(|used| used.outcome().unwrap_err())
        .collect();
    assert_eq!(errors[0], "no paper");
    assert!(errors[1].contains("bug in the tool"));
    assert!(errors[2].contains("0.02 s (tool_timeout)"));
    assert_eq!(response.outcome, OutcomeCategory::ToolFailure);
    let content = &response.content;
    assert!(
        content.contains("One step took longer than 0.02 s") && !content.contains("tool_"),
        "{content}"
    );
}

/// A tool that reports progress each half second, for so many times.
struct Slow {
    definition: ToolDefinition,
    steps: u32,
}

impl Tool for Slow {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            for step in 0..self.steps {
                tokio::time::sleep(Duration::from_millis(500)).await;
                context
                    .progress
                    .report(ToolProgress::new(step.into(), None, None));
            }
            Ok(json!("done"))
        })
    }

    fn timeout(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }

    fn timeout_with_progress(&self, timeout: Duration) -> Duration {
        timeout * 5
    }

    fn timed_out(&self, limit: Duration, extended: bool) -> ToolError {
        ToolError::failed(format!("{limit:?}, extended: {extended}"))
    }
}

#[tokio::test(start_paused = true)]
async fn progress_extends_the_time_of_a_call_up_to_its_bound() {
    for (steps, outcome) in [(8, Ok(json!("done"))), (20, Err("5s, extended: true"))] {
        let definition = ToolDefinition::new("slow", "x", json!({"type": "object"})).unwrap();
        let definition = definition.annotated(Annotations {
            read_only: true,
            ..Annotations::default()
        });
        let agent = builder(ScriptedModel::new([call("slow", json!({})), text("So.")]))
            .tool(Slow { definition, steps })
            .build()
            .unwrap();
        let response = agent.run("go").await.unwrap();
        let outcome = outcome.as_ref().map_err(|error| *error);
        assert_eq!(response.tools_used[0].outcome(), outcome);
    }
}

#[tokio::test]
async fn a_model_failure_is_a_response_with_a_typed_cause() {
    let limited = Fault::RateLimit {
        retry_after: Some(Duration::from_secs(3600)),
    };
    for (reply, outcome, words) in [
        (
            fault(limited),
            OutcomeCategory::RateLimited,
            "too many requests",
        ),
        (
            fault(Fault::Authentication),
            OutcomeCategory::LlmFailure,
            "not set up",
        ),
        (
            text("half")
                .and_call_text("x", "{")
                .finish(FinishReason::MaxTokens),
            OutcomeCategory::MaxTokensLimit,
            "too complex",
        ),
    ] {
        let again = reply.clone();
        let agent = builder(ScriptedModel::new([reply, again])).build().unwrap();
        let response = agent.run("hello").await.unwrap();
        assert_eq!(response.outcome, outcome);
        assert!(response.content.contains(words), "{}", response.content);
        assert!(response.error.is_some());
    }
}

#[tokio::test]
async fn the_deadline_ends_a_turn_whose_model_says_nothing() {
    let limits = TurnLimits {
        turn_deadline: Some(Duration::from_millis(30)),
        ..TurnLimits::default()
    };
    let agent = builder(ScriptedModel::new([fault(Fault::Stall)]))
        .limits(limits)
        .build()
        .unwrap();
    let response = agent.run("hello").await.unwrap();
    assert_eq!(response.outcome, OutcomeCategory::DeadlineLimit);
    assert!(
        response
            .error
            .unwrap()
            .to_string()
            .contains("turn deadline")
    );
}

#[tokio::test]
async fn bad_input_starts_no_turn() {
    let agent = builder(ScriptedModel::new([])).build().unwrap();
    assert_eq!(agent.run("  ").await.unwrap_err(), RunError::EmptyMessage);
    let huge = "x".repeat(1024 * 1024 + 1);
    assert!(matches!(
        agent.run(huge).await,
        Err(RunError::MessageTooLarge { .. })
    ));
}

#[tokio::test]
async fn a_long_message_is_refused_before_anything_is_accepted_if_that_is_wanted() {
    let tasks = Arc::new(InMemory::new());
    let limits = TurnLimits {
        message_chars_max: Some(5),
        long_message: LongMessage::Refuse,
        ..TurnLimits::default()
    };
    let model = ScriptedModel::new([text("Read it.")]);
    let agent = builder(model.clone())
        .journal(tasks.clone(), "test")
        .limits(limits)
        .build()
        .unwrap();
    let refused = agent.run("äöüß!?").await.unwrap_err();
    assert_eq!(refused, RunError::MessageTooLong { chars: 6, max: 5 });
    assert!(model.requests().is_empty());
    let turns = tasks
        .decisions(&UserId::local(), &DecisionFilter::default())
        .await
        .unwrap();
    assert_eq!(turns, []);
    assert_eq!(
        agent.run("äöüß!").await.unwrap().content,
        "Read it.",
        "characters count, not bytes"
    );
}

#[tokio::test]
async fn a_long_message_is_cut_and_both_the_model_and_the_user_know() {
    let tasks = Arc::new(InMemory::new());
    let (agent, model) = task_agent(&tasks, [text("Read it.")]);
    let response = agent.run("ä".repeat(5000)).await.unwrap();
    assert_eq!(response.notices[0].code, "message_cut");
    let seen = model.requests()[0].messages[1].text();
    assert!(
        seen.contains("cut here: 4000 of 5000"),
        "{}",
        &seen[seen.len() - 80..]
    );
    let row = tasks
        .decision(&UserId::local(), response.turn)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (row.message.chars().count(), row.message_chars),
        (4000, 5000)
    );
}

#[tokio::test]
async fn an_agent_needs_a_model_a_name_an_instruction_and_unique_tools() {
    let tool = || {
        FunctionTool::new("a", "x", json!({"type": "object"}), |_, _| async {
            Ok(json!(1))
        })
        .unwrap()
    };
    assert_eq!(
        Agent::builder("x").instruction("y").build().unwrap_err(),
        BuildError::NoModel
    );
    let model = || ScriptedModel::new([]);
    assert!(matches!(
        Agent::builder(" ").model(model()).instruction("y").build(),
        Err(BuildError::Empty(_))
    ));
    assert!(matches!(
        Agent::builder("x").model(model()).build(),
        Err(BuildError::Empty(_))
    ));
    let twice = builder(model()).tool(tool()).tool(tool()).build();
    assert!(matches!(
        twice,
        Err(BuildError::Tool(InvalidTool::Duplicate { .. }))
    ));
}

#[tokio::test]
async fn two_messages_at_once_in_one_conversation_are_answered_one_after_the_other() {
    let tasks = Arc::new(InMemory::new());
    let (agent, model) = task_agent(&tasks, [text("First."), text("Second.")]);
    let (mut one, mut two) = {
        let context = RunContext::default();
        (context.clone(), context)
    };
    let (a, b) = tokio::join!(agent.run_in(&mut one, "one"), agent.run_in(&mut two, "two"));
    let mut answers = [a.unwrap().content, b.unwrap().content];
    answers.sort();
    assert_eq!(answers, ["First.", "Second."]);
    assert_eq!(
        model.requests()[1].messages.len(),
        4,
        "the second saw the first"
    );
}
