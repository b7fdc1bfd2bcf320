//! Confirmations: destructive calls wait for a person, as data.

use adjutant_core::AgentName;
use adjutant_core::port::Journal as _;
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::{EditError, RunContext, RunError};
use jiff::{SignedDuration, Timestamp};

use super::*;

async fn with_task(words: &str) -> Arc<InMemory> {
    let tasks = Arc::new(InMemory::new());
    let change = TaskChange::Add {
        description: TaskDescription::new(words).unwrap(),
        from_others: false,
    };
    TaskStore::apply(tasks.as_ref(), &UserId::local(), &change, None)
        .await
        .unwrap();
    tasks
}

fn delete_milk() -> Vec<Reply> {
    vec![
        call("delete_task", json!({"task_id": "milk"})),
        text("As you wish."),
    ]
}

#[tokio::test]
async fn a_delete_waits_and_a_yes_runs_exactly_what_was_shown() {
    let tasks = with_task("Buy milk").await;
    let (agent, model) = task_agent(&tasks, delete_milk());
    let mut context = RunContext::default();
    let asked = agent
        .run_in(&mut context, "delete the milk one")
        .await
        .unwrap();
    assert_eq!(asked.outcome, OutcomeCategory::PendingConfirmation);
    assert!(asked.content.contains("Buy milk"));
    let pending = asked.decision.pending[0].clone();
    assert_eq!(pending.arguments["task_id"], "1");
    assert_eq!(descriptions(&tasks).await, ["Buy milk"]);

    // Unclear words ask again, and neither they nor a wrong digest run anything.
    let again = agent.run_in(&mut context, "maybe").await.unwrap();
    assert_eq!(again.decision.kind, DecisionKind::RequestConfirmation);
    let forged = Answer {
        digest: "0".repeat(64),
        ..pending.answer(Verdict::Approved)
    };
    assert!(agent.answer(&mut context, vec![forged]).await.is_err());
    assert_eq!(descriptions(&tasks).await, ["Buy milk"]);
    assert_eq!(model.calls_made(), 1, "no model reads an answer");

    let done = agent.run_in(&mut context, "yes").await.unwrap();
    assert_eq!(
        (done.decision.kind, done.turn),
        (DecisionKind::ExecutePending, asked.turn)
    );
    assert!(descriptions(&tasks).await.is_empty());
    assert!(context.pending.is_empty());
}

#[tokio::test]
async fn invisible_characters_are_written_out_in_a_preview() {
    let sent = Arc::new(AtomicUsize::new(0));
    let annotations = Annotations {
        destructive: true,
        ..Annotations::default()
    };
    // Tags spell "all" where a terminal and a browser show nothing.
    let replies = vec![
        call("send", json!({"text": "hi\u{e0061}\u{e006c}\u{e006c}"})),
        text("Sent."),
    ];
    let agent = builder(ScriptedModel::new(replies))
        .tool(counting("send", annotations, &sent))
        .build()
        .unwrap();
    let mut context = RunContext::default();
    let asked = agent.run_in(&mut context, "send it").await.unwrap();
    let shown = r#"hi\u{e0061}\u{e006c}\u{e006c}"#;
    assert!(asked.content.contains(shown), "{}", asked.content);
    assert!(asked.decision.pending[0].preview.contains(shown));
}

#[tokio::test]
async fn a_denial_is_a_result_and_leaves_everything() {
    let tasks = with_task("Buy milk").await;
    let (agent, model) = task_agent(&tasks, delete_milk());
    let mut context = RunContext::default();
    agent
        .run_in(&mut context, "delete the milk one")
        .await
        .unwrap();
    let done = agent.run_in(&mut context, "no").await.unwrap();
    assert_eq!(done.outcome, OutcomeCategory::ConfirmationDenied);
    assert_eq!(descriptions(&tasks).await, ["Buy milk"]);
    let told = model.requests()[1]
        .messages
        .last()
        .unwrap()
        .tool_result()
        .unwrap()
        .2
        .clone();
    assert!(!told.success && told.error.unwrap().contains("refused"));
}

#[tokio::test]
async fn a_cancelled_confirmation_ends_the_turn_and_runs_nothing() {
    let tasks = with_task("Buy milk").await;
    let (agent, model) = task_agent(&tasks, delete_milk());
    let mut context = RunContext::default();
    agent
        .run_in(&mut context, "delete the milk one")
        .await
        .unwrap();
    let stopped = agent.cancel(&mut context).await.unwrap();
    assert_eq!(stopped.outcome, OutcomeCategory::Cancelled);
    assert_eq!(
        (
            descriptions(&tasks).await,
            context.pending.len(),
            model.calls_made()
        ),
        (vec!["Buy milk".to_owned()], 0, 1)
    );
    check_pairing(&context.history).unwrap();
    assert!(
        agent.cancel(&mut context).await.is_err(),
        "nothing waits any more"
    );
}

#[tokio::test]
async fn an_answer_after_the_expiry_runs_nothing() {
    let tasks = with_task("Buy milk").await;
    let clock = Arc::new(std::sync::Mutex::new(Timestamp::UNIX_EPOCH));
    let time = Arc::clone(&clock);
    let agent = builder(ScriptedModel::new(delete_milk()))
        .tools(task_tools(tasks.clone()))
        .journal(tasks.clone(), "test")
        .clock(move || *time.lock().unwrap())
        .build()
        .unwrap();
    let mut context = RunContext::default();
    agent
        .run_in(&mut context, "delete the milk one")
        .await
        .unwrap();
    *clock.lock().unwrap() += SignedDuration::from_hours(7 * 24);
    let error = agent.run_in(&mut context, "yes").await;
    assert_eq!(descriptions(&tasks).await, ["Buy milk"]);
    // The late "yes" is not lost either: it is a message of its own after the turn ended.
    assert!(error.is_ok(), "{error:?}");
    let expired = tasks
        .load(&context.key(&AgentName::adjutant()))
        .await
        .unwrap();
    let ended = expired
        .events
        .iter()
        .find_map(|recorded| match &*recorded.event {
            Event::TurnFinished { end, .. } => Some(end.outcome),
            _ => None,
        });
    assert_eq!(ended, Some(OutcomeCategory::ConfirmationExpired));
}

/// A tool that keeps what it was called with, and has to be confirmed.
fn post(sent: &Arc<std::sync::Mutex<Vec<Value>>>) -> FunctionTool {
    let sent = Arc::clone(sent);
    let schema = json!({
        "type": "object", "required": ["to"], "additionalProperties": false,
        "properties": {"to": {"type": "string", "minLength": 2}},
    });
    let tool = FunctionTool::new("send", "Sends.", schema, move |_, arguments| {
        sent.lock().unwrap().push(Value::Object(arguments));
        async { Ok(json!("sent")) }
    });
    tool.unwrap().annotated(Annotations {
        destructive: true,
        ..Annotations::default()
    })
}

fn to(name: &str) -> Arguments {
    json!({ "to": name }).as_object().cloned().unwrap()
}

/// One of several processes over the store.
fn process(
    name: &str,
    store: &Arc<adjutant_store::sqlite::Store>,
    sent: &Arc<std::sync::Mutex<Vec<Value>>>,
    replies: Vec<Reply>,
) -> (Agent, ScriptedModel) {
    let model = ScriptedModel::new(replies);
    let agent = builder(model.clone())
        .tool(post(sent))
        .journal(store.clone(), name)
        .build()
        .unwrap();
    (agent, model)
}

#[tokio::test]
async fn a_yes_with_other_arguments_passes_the_gate_again_and_runs_those() {
    let (tasks, sent) = (Arc::new(InMemory::new()), Arc::default());
    let model = ScriptedModel::new([call("send", json!({"to": "Anna"})), text("Sent.")]);
    let agent = builder(model.clone())
        .tool(post(&sent))
        .journal(tasks.clone(), "test")
        .build()
        .unwrap();
    let mut context = RunContext::default();
    let asked = agent.run_in(&mut context, "write").await.unwrap();
    let shown = asked.decision.pending[0].clone();

    for (answer, words) in [
        (
            shown.answer(Verdict::Approved).with_arguments(to("x")),
            "/to",
        ),
        (
            shown
                .answer(Verdict::Approved)
                .with_arguments(Arguments::new()),
            "to",
        ),
        (
            shown.answer(Verdict::Denied).with_arguments(to("Bert")),
            "only go with a yes",
        ),
        (shown.answer(Verdict::Done), "yes or a no"),
    ] {
        let refused = agent.answer(&mut context, vec![answer]).await.unwrap();
        assert_eq!(
            refused.decision.pending,
            std::slice::from_ref(&shown),
            "it keeps waiting"
        );
        assert_eq!(refused.notices[0].code, "answer_refused");
        assert!(
            refused.content.contains(words),
            "{words:?} is not in {}",
            refused.content
        );
    }
    assert!(sent.lock().unwrap().is_empty());

    // The question with them is seen, and changes nothing.
    let key = context.key(&AgentName::adjutant());
    let question = async |arguments| {
        agent
            .preview_edited_call(&key, &shown.digest, arguments)
            .await
    };
    let to_bert = question(to("Bert")).await.unwrap();
    assert_eq!(
        to_bert.digest,
        digest(
            asked.turn,
            &shown.call_id,
            "send",
            &to("Bert"),
            &to_bert.preview
        )
    );
    assert_eq!(
        (&to_bert.arguments, to_bert.expires_at),
        (&to("Bert"), shown.expires_at)
    );
    let refused = question(to("x")).await.unwrap_err();
    assert!(matches!(refused, EditError::Unusable(reason) if reason.contains("/to")));
    let gone = agent
        .preview_edited_call(&key, &to_bert.digest, to("Carl"))
        .await;
    assert_eq!(gone, Err(EditError::NotPending));

    let edited = shown
        .answer(Verdict::Approved)
        .with_arguments(to("Bert"))
        .as_shown(&to_bert.digest);
    let done = agent.answer(&mut context, vec![edited]).await.unwrap();
    assert_eq!(done.outcome, OutcomeCategory::TaskCompleted);
    assert_eq!(*sent.lock().unwrap(), [json!({"to": "Bert"})]);
    assert_eq!(done.tools_used[0].arguments, to("Bert"));
    let told = model.requests()[1]
        .messages
        .last()
        .unwrap()
        .tool_result()
        .unwrap()
        .2
        .clone();
    let told = told.data.unwrap();
    assert_eq!(
        (&told["result"], &told["arguments"]),
        (&json!("sent"), &json!({"to": "Bert"}))
    );
    let events = tasks
        .load(&context.key(&AgentName::adjutant()))
        .await
        .unwrap()
        .events;
    let recorded = events.iter().find_map(|recorded| match &*recorded.event {
        Event::CallAnswered { edited, .. } => edited.clone(),
        _ => None,
    });
    let recorded = recorded.unwrap();
    assert_eq!(
        recorded.digest,
        digest(
            asked.turn,
            &shown.call_id,
            "send",
            &to("Bert"),
            &to_bert.preview
        )
    );
    assert_ne!(recorded.digest, shown.digest);
}

#[tokio::test]
async fn what_was_not_shown_is_asked_about_and_not_done() {
    let store = Arc::new(adjutant_store::sqlite::Store::in_memory().await.unwrap());
    let sent = Arc::default();
    let script = || {
        vec![
            call("send", json!({"to": "Anna"})).and_call("send", json!({"to": "Bert"})),
            text("As you said."),
        ]
    };
    let (one, _) = process("one", &store, &sent, script());
    let mut context = RunContext::default();
    let key = context.key(&AgentName::adjutant());
    let asked = one.run_in(&mut context, "write to both").await.unwrap();
    let [anna, bert] = asked.decision.pending.as_slice() else {
        panic!("{asked:?}")
    };
    let carl_instead = anna.answer(Verdict::Approved).with_arguments(to("Carl"));

    // One is answered and the other edited, without a look, or with a look at something else.
    let with_other = carl_instead.clone().as_shown(&bert.digest);
    let again = one
        .answer(
            &mut context,
            vec![bert.answer(Verdict::Approved), with_other],
        )
        .await
        .unwrap();
    let [carl] = again.decision.pending.as_slice() else {
        panic!("{again:?}")
    };
    assert_eq!(
        (&carl.arguments, &carl.call_id, carl.expires_at),
        (&to("Carl"), &anna.call_id, anna.expires_at)
    );
    assert!(
        carl.preview.contains("Carl") && again.content.contains("Carl"),
        "{again:?}"
    );
    assert!(!again.content.contains("Anna"), "{}", again.content);
    assert_eq!(again.notices[0].code, "asked_again");
    assert!(sent.lock().unwrap().is_empty());

    // Another process sees the same question, and a yes to the one before it is none to this one.
    let (two, model) = process("two", &store, &sent, script());
    let mut there = two.context(&key).await.unwrap();
    assert_eq!(there.pending, std::slice::from_ref(carl));
    let old = two
        .answer(&mut there, vec![anna.answer(Verdict::Approved)])
        .await;
    assert!(matches!(old, Err(RunError::CannotContinue(_))), "{old:?}");
    let mut there = two.context(&key).await.unwrap();
    assert_eq!(there.pending, std::slice::from_ref(carl));
    assert!(sent.lock().unwrap().is_empty());
    // Back to what it was is a question again, too.
    let back = carl.answer(Verdict::Approved).with_arguments(to("Anna"));
    let anew = two.answer(&mut there, vec![back]).await.unwrap();
    assert_eq!(anew.decision.pending[0].digest, anna.digest);
    let edit = anew.decision.pending[0]
        .answer(Verdict::Approved)
        .with_arguments(to("Carl"));
    let anew = two.answer(&mut there, vec![edit]).await.unwrap();
    assert_eq!(anew.decision.pending[0].digest, carl.digest);

    let done = two.run_in(&mut there, "yes").await.unwrap();
    assert_eq!(
        (done.content.as_str(), model.requests().len()),
        ("As you said.", 1)
    );
    assert_eq!(
        *sent.lock().unwrap(),
        [json!({"to": "Carl"}), json!({"to": "Bert"})]
    );
    let requests = model.requests();
    let told: Vec<_> = requests[0]
        .messages
        .iter()
        .filter_map(|told| told.tool_result())
        .collect();
    assert!(
        told[0]
            .2
            .data
            .as_ref()
            .unwrap()
            .to_string()
            .contains("Carl"),
        "{told:?}"
    );
}

#[tokio::test]
async fn several_calls_are_answered_one_by_one_in_any_order_by_any_process() {
    let store = Arc::new(adjutant_store::sqlite::Store::in_memory().await.unwrap());
    let sent = Arc::default();
    let script = || {
        vec![
            call("send", json!({"to": "Anna"}))
                .and_call("send", json!({"to": "Bert"}))
                .and_call("send", json!({"to": "Carl"})),
            call("send", json!({"to": "Bert"})),
            text("All said."),
        ]
    };
    let (one, _) = process("one", &store, &sent, script());
    let mut context = RunContext::default();
    let asked = one.run_in(&mut context, "write to all").await.unwrap();
    let [anna, bert, carl] = asked.decision.pending.as_slice() else {
        panic!("{asked:?}")
    };

    let (two, _) = process("two", &store, &sent, script());
    let mut there = two
        .context(&context.key(&AgentName::adjutant()))
        .await
        .unwrap();
    // Twice in one answer is once.
    let twice = vec![carl.answer(Verdict::Approved), carl.answer(Verdict::Denied)];
    let first = two.answer(&mut there, twice).await.unwrap();
    assert_eq!(first.decision.pending, [anna.clone(), bert.clone()]);
    assert!(
        !first.content.contains("Carl") && first.content.contains("Anna"),
        "{}",
        first.content
    );
    assert!(
        sent.lock().unwrap().is_empty(),
        "the turn goes on when the last one is answered"
    );
    let second = one
        .answer(&mut context, vec![bert.answer(Verdict::Denied)])
        .await
        .unwrap();
    assert_eq!(second.decision.pending, std::slice::from_ref(anna));
    // A second answer is nothing, and says so.
    let again = two
        .answer(&mut there, vec![bert.answer(Verdict::Approved)])
        .await
        .unwrap();
    assert_eq!(
        (again.decision.pending.len(), again.notices[0].code.as_str()),
        (1, "answered_before")
    );

    let (three, model) = process("three", &store, &sent, script());
    let mut elsewhere = three
        .context(&context.key(&AgentName::adjutant()))
        .await
        .unwrap();
    let done = three
        .answer(&mut elsewhere, vec![anna.answer(Verdict::Approved)])
        .await
        .unwrap();
    assert_eq!(done.content, "All said.");
    assert_eq!(
        *sent.lock().unwrap(),
        [json!({"to": "Anna"}), json!({"to": "Carl"})]
    );
    // The model asked for Bert again: what was denied is not asked again in the turn.
    let last = model.requests()[1]
        .messages
        .last()
        .unwrap()
        .tool_result()
        .unwrap()
        .2
        .clone();
    assert!(last.error.unwrap().contains("refused"));
    check_pairing(&elsewhere.history).unwrap();
}

#[tokio::test]
async fn an_expired_call_ends_unanswered_and_a_late_answer_gets_a_notice() {
    let store = Arc::new(adjutant_store::sqlite::Store::in_memory().await.unwrap());
    let sent: Arc<std::sync::Mutex<Vec<Value>>> = Arc::default();
    let clock = Arc::new(std::sync::Mutex::new(Timestamp::UNIX_EPOCH));
    let agent = |name: &str| {
        let time = Arc::clone(&clock);
        builder(ScriptedModel::new([
            call("send", json!({"to": "Anna"})),
            text("Nobody said yes."),
        ]))
        .tool(post(&sent))
        .journal(store.clone(), name)
        .clock(move || *time.lock().unwrap())
        .build()
        .unwrap()
    };
    let mut context = RunContext::default();
    let asked = agent("one").run_in(&mut context, "write").await.unwrap();
    *clock.lock().unwrap() += SignedDuration::from_hours(7 * 24);
    let other = agent("two");
    let swept = other.recover(None).await.unwrap();
    assert_eq!(
        (swept.len(), swept[0].outcome),
        (1, OutcomeCategory::ConfirmationExpired)
    );
    assert!(other.recover(None).await.unwrap().is_empty());
    let yes = vec![asked.decision.pending[0].answer(Verdict::Approved)];
    let late = other.answer(&mut context, yes).await.unwrap();
    assert_eq!(
        (late.turn, late.notices[0].code.as_str()),
        (asked.turn, "answered_late")
    );
    assert!(late.content.contains("too late"), "{}", late.content);
    assert!(sent.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_yes_that_was_said_before_the_question_is_none() {
    let tasks = with_task("Buy milk").await;
    let (agent, _) = task_agent(&tasks, delete_milk());
    let context = RunContext::default();
    let said = |id: &str, words: &str| {
        Input::new(
            InputId::new(id).unwrap(),
            Timestamp::UNIX_EPOCH,
            InputBody::message(words),
        )
    };
    // Both are accepted before anybody works on them: sent in haste, or one replica was slow.
    tasks
        .submit(
            &context.key(&AgentName::adjutant()),
            &said("1", "delete the milk one"),
        )
        .await
        .unwrap();
    tasks
        .submit(&context.key(&AgentName::adjutant()), &said("2", "yes"))
        .await
        .unwrap();
    agent
        .run_conversation(&context.key(&AgentName::adjutant()))
        .await
        .unwrap();
    assert_eq!(descriptions(&tasks).await, ["Buy milk"]);
    let mut waits = agent
        .context(&context.key(&AgentName::adjutant()))
        .await
        .unwrap();
    assert_eq!(waits.pending.len(), 1);
    assert_eq!(
        agent.run_in(&mut waits, "yes").await.unwrap().decision.kind,
        DecisionKind::ExecutePending
    );
}

/// It is the next message, whatever it says, and whoever sent it hears so.
#[tokio::test]
async fn a_message_that_came_before_the_question_is_the_next_one() {
    for answer in ["no", "yes"] {
        let tasks = with_task("Buy milk").await;
        let replies = delete_milk().into_iter().take(1).chain(match answer {
            "no" => {
                vec![
                    text("Kept."),
                    call("add_task", json!({"description": "Make bread"})),
                    text("Added."),
                ]
            }
            _ => vec![
                text("Gone."),
                call("add_task", json!({"description": "Make bread"})),
                text("Added."),
            ],
        });
        let (agent, _) = task_agent(&tasks, replies);
        let context = RunContext::default();
        let input = |id: &str, words: &str| {
            Input::new(
                InputId::new(id).unwrap(),
                Timestamp::UNIX_EPOCH,
                InputBody::message(words),
            )
        };
        tasks
            .submit(
                &context.key(&AgentName::adjutant()),
                &input("1", "delete the milk one"),
            )
            .await
            .unwrap();
        tasks
            .submit(
                &context.key(&AgentName::adjutant()),
                &input("2", "make bread"),
            )
            .await
            .unwrap();
        // Whoever sent it hears that it is kept, also when it is sent again.
        let bread = Some(InputId::new("2").unwrap());
        for _ in 0..2 {
            let body = InputBody::message("make bread");
            let queued = agent
                .run_input(&mut context.clone(), bread.clone(), body)
                .await
                .unwrap();
            assert_eq!(queued.outcome, OutcomeCategory::PendingConfirmation);
            assert!(
                queued.content.contains(words::MESSAGE_QUEUED),
                "{}",
                queued.content
            );
        }
        assert!(
            tasks
                .unsettled(&AgentName::adjutant(), None)
                .await
                .unwrap()
                .is_empty(),
            "while the turn waits there is nothing to do"
        );

        let mut waits = agent
            .context(&context.key(&AgentName::adjutant()))
            .await
            .unwrap();
        agent.run_in(&mut waits, answer).await.unwrap();
        let left = if answer == "no" {
            vec!["Buy milk", "Make bread"]
        } else {
            vec!["Make bread"]
        };
        assert_eq!(descriptions(&tasks).await, left);
        let body = InputBody::message("make bread");
        let done = agent.run_input(&mut waits, bread, body).await.unwrap();
        assert_eq!(
            (done.content.as_str(), done.outcome),
            ("Added.", OutcomeCategory::TaskCompleted)
        );
        assert_eq!(descriptions(&tasks).await, left, "once");
    }
}

/// Places in the journal decide what was seen, not clocks.
#[tokio::test]
async fn a_yes_counts_also_when_the_clock_was_set_back() {
    let tasks = with_task("Buy milk").await;
    let clock = Arc::new(std::sync::Mutex::new(
        Timestamp::from_second(1_800_000_000).unwrap(),
    ));
    let time = Arc::clone(&clock);
    let agent = builder(ScriptedModel::new(delete_milk()))
        .tools(task_tools(tasks.clone()))
        .journal(tasks.clone(), "test")
        .clock(move || *time.lock().unwrap())
        .build()
        .unwrap();
    let mut context = RunContext::default();
    agent
        .run_in(&mut context, "delete the milk one")
        .await
        .unwrap();
    *clock.lock().unwrap() -= SignedDuration::from_hours(3 * 24);
    let done = agent.run_in(&mut context, "yes").await.unwrap();
    assert_eq!(done.decision.kind, DecisionKind::ExecutePending);
    assert!(descriptions(&tasks).await.is_empty());
}
