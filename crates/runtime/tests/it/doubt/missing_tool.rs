//! Pending calls and calls in doubt whose tool is missing or has changed.

use super::*;

#[tokio::test]
async fn a_yes_while_the_tool_is_away_waits_for_the_person_and_runs_nothing_later() {
    let careful = Annotations {
        destructive: true,
        ..ONCE
    };
    let (store, post) = (store().await, Post::new(careful, &[], Probe::Unknown));
    let (agent, _) = process(&store, &post, letter());
    let mut context = RunContext::default();
    let asked = agent.run_in(&mut context, "write to Anna").await.unwrap();
    assert_eq!(asked.outcome, OutcomeCategory::PendingConfirmation);

    let (away, model) = without_tool(&store, letter());
    let yes = asked.decision.pending[0].answer(Verdict::Approved);
    for _ in 0..2 {
        let refused = away
            .answer(&mut context.clone(), vec![yes.clone()])
            .await
            .unwrap();
        assert_eq!(refused.outcome, OutcomeCategory::PendingConfirmation);
        assert!(
            refused
                .content
                .contains("Send a letter to Anna: what this needs is not available"),
            "{refused:?}"
        );
        assert_eq!(refused.notices[0].code, "answer_refused");
    }
    let refused = say(&away, &context.key(&AgentName::adjutant()), "yes").await;
    assert_eq!(
        refused.decision.pending, asked.decision.pending,
        "it still waits"
    );
    assert_eq!((post.times(), model.calls_made()), (0, 0));

    // The server is back: nothing runs until the person says so.
    let (back, _) = process(&store, &post, letter());
    assert!(back.recover(None).await.unwrap().is_empty());
    assert_eq!(post.times(), 0);
    assert_eq!(
        say(&back, &context.key(&AgentName::adjutant()), "yes")
            .await
            .outcome,
        OutcomeCategory::TaskCompleted
    );
    assert_eq!(post.times(), 1);
}

#[tokio::test]
async fn a_yes_is_to_the_tool_as_it_was_when_it_was_asked() {
    let careful = Annotations {
        destructive: true,
        ..ONCE
    };
    let (store, post) = (store().await, Post::new(careful, &[], Probe::Unknown));
    // Description, hints and parameters: each of them makes it another tool.
    let schema = post.definition.parameters.clone();
    let others = [
        ToolDefinition::new("send", "Wires money to anybody.", schema.clone())
            .unwrap()
            .annotated(careful),
        ToolDefinition::new("send", "Sends a letter.", schema)
            .unwrap()
            .annotated(ONCE),
        ToolDefinition::new("send", "Sends a letter.", json!({"type": "object"}))
            .unwrap()
            .annotated(careful),
    ];
    for definition in others {
        let (agent, _) = process(&store, &post, letter());
        let mut context = RunContext::default();
        let asked = agent.run_in(&mut context, "write to Anna").await.unwrap();
        assert_eq!(asked.outcome, OutcomeCategory::PendingConfirmation);

        let other = Arc::new(Post {
            definition,
            script: StdMutex::default(),
            probe: Probe::Unknown,
            begun: StdMutex::default(),
        });
        let (changed, _) = process(&store, &other, letter());
        let yes = asked.decision.pending[0].answer(Verdict::Approved);
        let ended = changed.answer(&mut context, vec![yes]).await.unwrap();
        assert_eq!(ended.outcome, OutcomeCategory::ToolFailure);
        assert!(
            ended
                .content
                .contains("the tool for this is another one than when you were asked"),
            "{ended:?}"
        );
        assert_eq!((post.times(), other.times()), (0, 0));
        // It is over: nothing waits, and nothing runs later, also where the tool is what it was.
        assert!(
            store
                .parked(&AgentName::adjutant(), None)
                .await
                .unwrap()
                .is_empty()
        );
        let (back, _) = process(&store, &post, letter());
        assert!(back.recover(None).await.unwrap().is_empty());
        assert_eq!(post.times(), 0);
    }
}

#[tokio::test]
async fn a_retry_is_of_the_tool_as_it_was_when_it_was_asked() {
    let (store, post) = (
        store().await,
        Post::new(ONCE, &[Then::IsLost], Probe::Unknown),
    );
    let (agent, _) = process(&store, &post, letter());
    let mut context = RunContext::default();
    let asked = agent.run_in(&mut context, "write to Anna").await.unwrap();
    assert_eq!((asked.outcome, post.times()), (OutcomeCategory::InDoubt, 1));
    let other = Post::new(
        Annotations {
            idempotent: true,
            ..ONCE
        },
        &[],
        Probe::Unknown,
    );
    let (changed, _) = process(&store, &other, letter());
    let again = asked.decision.pending[0].answer(Verdict::Retry);
    let ended = changed.answer(&mut context, vec![again]).await.unwrap();
    assert_eq!(
        (ended.outcome, other.times()),
        (OutcomeCategory::ToolFailure, 0)
    );
}

#[tokio::test]
async fn a_call_in_doubt_is_asked_about_also_while_its_tool_is_away() {
    for (annotations, asks) in [
        (ONCE, true),
        (
            Annotations {
                keyed: true,
                ..ONCE
            },
            true,
        ),
        (
            Annotations {
                read_only: true,
                ..ONCE
            },
            false,
        ),
    ] {
        let (store, post) = (store().await, Post::new(annotations, &[], Probe::Unknown));
        let (agent, _) = process(&store, &post, letter());
        let mut context = RunContext::default();
        agent.run_in(&mut context, "write to Anna").await.unwrap();
        // As a process leaves it that dies between the effect and its end.
        let events = store
            .load(&context.key(&AgentName::adjutant()))
            .await
            .unwrap()
            .events;
        let until = events
            .iter()
            .position(|recorded| recorded.event.kind() == "call_started")
            .unwrap();
        let store = Arc::new(sqlite::Store::in_memory().await.unwrap());
        let key = RunContext::default().key(&AgentName::adjutant());
        let input = Input::new(
            InputId::new("i1").unwrap(),
            Timestamp::UNIX_EPOCH,
            InputBody::message("write to Anna"),
        );
        store.submit(&key, &input).await.unwrap();
        let mut cut: Vec<Event> = events[..=until]
            .iter()
            .map(|recorded| (*recorded.event).clone())
            .collect();
        if let Event::TurnStarted { input, .. } = &mut cut[0] {
            *input = InputId::new("i1").unwrap();
        }
        store
            .append(&key, &Recorded::sequence(1, Timestamp::UNIX_EPOCH, &cut))
            .await
            .unwrap();

        let (away, _) = without_tool(&store, letter());
        let swept = away.recover(None).await.unwrap();
        assert_eq!(swept.len(), 1);
        if !asks {
            assert_eq!(
                swept[0].outcome,
                OutcomeCategory::ToolFailure,
                "{annotations:?}"
            );
            continue;
        }
        assert_eq!(
            swept[0].outcome,
            OutcomeCategory::InDoubt,
            "{annotations:?}"
        );
        let waits = away.context(&key).await.unwrap();
        assert_eq!(waits.pending.len(), 1);
        // To try again takes the tool; what became of it can be said without.
        let again = say(&away, &key, "not done, try again").await;
        assert!(
            again.content.contains("what this needs is not available"),
            "{}",
            again.content
        );
        assert_eq!(
            say(&away, &key, "it was done").await.outcome,
            OutcomeCategory::TaskCompleted
        );
        assert_eq!(post.times(), 1);
    }
}
