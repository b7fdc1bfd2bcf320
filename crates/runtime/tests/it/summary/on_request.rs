//! Compaction at a user's request, and its events.

use super::*;

#[tokio::test]
async fn a_person_asks_for_it_says_what_matters_and_sees_how_full_it_is() {
    let model = Reader::new(32_768);
    let store = Arc::new(InMemory::new());
    let agent = agent(&model, &store).build().unwrap();
    let mut context = RunContext::default();
    let new = agent
        .context_use(&context.key(&AgentName::adjutant()))
        .await
        .unwrap();
    assert!(new.instruction > 0 && new.tools > 0, "{new:?}");
    assert_eq!(
        (new.summary, new.history, new.results, new.counting),
        (0, 0, 0, Counting::Estimated)
    );
    assert_eq!(
        agent
            .compact(&context.key(&AgentName::adjutant()), None)
            .await
            .unwrap(),
        Compaction::NothingToDo
    );
    for turn in 0..3 {
        agent
            .run_in(&mut context, format!("page {turn}"))
            .await
            .unwrap();
    }
    let full = agent
        .context_use(&context.key(&AgentName::adjutant()))
        .await
        .unwrap();
    assert!(full.results > 15_000 && full.history > 0, "{full:?}");
    let done = agent
        .compact(&context.key(&AgentName::adjutant()), Some("the tea"))
        .await
        .unwrap();
    let Compaction::Done {
        summary,
        messages,
        before,
        after,
        usage,
        ..
    } = done
    else {
        panic!("{done:?}")
    };
    assert_eq!((summary.summarized_at, messages), (12, 12));
    assert!(before > 15_000 && after < 200 && usage.input_tokens.is_some());
    assert!(
        model.summaries()[0].messages[1]
            .text()
            .contains("<focus>\nthe tea\n</focus>")
    );
    let less = agent
        .context_use(&context.key(&AgentName::adjutant()))
        .await
        .unwrap();
    assert_eq!((less.results, less.summarized_at), (0, Some(12)));
    assert!(less.share() < 0.2 && less.summary > 0, "{less:?}");
    assert!(!less.needs_summary(WindowShare::new(0.8).unwrap()));
    // Nothing new was said since.
    assert_eq!(
        agent
            .compact(&context.key(&AgentName::adjutant()), None)
            .await
            .unwrap(),
        Compaction::NothingToDo
    );
    let response = agent.run_in(&mut context, "And?").await.unwrap();
    assert_eq!(
        (response.content.as_str(), context.history.len()),
        ("Read.", 14)
    );
    let sent = model.requests().pop().unwrap();
    assert!(
        sent.messages.len() == 2 && sent.messages[1].text().contains("likes tea"),
        "{:?}",
        sent.messages
    );
    // One that failed changes nothing.
    let broken = Reader {
        summary: |_| Ok(String::new()),
        ..model.clone()
    };
    let broken = self::agent(&broken, &store).build().unwrap();
    let failed = broken
        .compact(&context.key(&AgentName::adjutant()), None)
        .await
        .unwrap();
    assert!(
        matches!(&failed, Compaction::Failed { reason, .. } if reason.contains("no words")),
        "{failed:?}"
    );
    assert_eq!(
        agent
            .context_use(&context.key(&AgentName::adjutant()))
            .await
            .unwrap()
            .summarized_at,
        Some(12)
    );
}

#[tokio::test(start_paused = true)]
async fn a_summary_takes_the_time_it_takes_unless_a_turn_has_a_deadline() {
    let an_hour = Duration::from_secs(3600);
    for (deadline, is_done) in [
        (None, true),
        (Some(an_hour * 2), true),
        (Some(an_hour / 2), false),
    ] {
        let store = Arc::new(InMemory::new());
        let agent = |model: ScriptedModel| {
            let limits = TurnLimits {
                turn_deadline: deadline,
                ..TurnLimits::default()
            };
            builder(model)
                .journal(store.clone(), "test")
                .limits(limits)
                .build()
                .unwrap()
        };
        let mut context = RunContext::default();
        agent(ScriptedModel::new([text("Hi.")]))
            .run_in(&mut context, "word ".repeat(600))
            .await
            .unwrap();
        let slow = agent(ScriptedModel::new([text("A summary.").after(an_hour)]));
        let done = slow
            .compact(&context.key(&AgentName::adjutant()), None)
            .await
            .unwrap();
        match done {
            Compaction::Done { .. } => assert!(is_done, "{deadline:?}"),
            Compaction::Failed { error, .. } => {
                assert!(!is_done, "{deadline:?}: {error:?}");
                assert_eq!(error.unwrap().code(), "timeout");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_compaction_reports_its_progress_and_not_its_text() {
    let store = Arc::new(InMemory::new());
    let agent = |model| {
        builder(model)
            .journal(store.clone(), "test")
            .build()
            .unwrap()
    };
    let mut context = RunContext::default();
    agent(ScriptedModel::new([text("Hi.")]))
        .run_in(&mut context, "word ".repeat(600))
        .await
        .unwrap();
    let mut told = Vec::new();
    let agent = agent(ScriptedModel::new([text("A summary.")]));
    let key = agent.key(&context);
    let done = agent
        .compact_with_progress(&key, None, |event| told.push(event.clone()))
        .await
        .unwrap();
    assert!(matches!(done, Compaction::Done { .. }), "{done:?}");
    assert!(
        matches!(told[0], RunEvent::SummaryStarted { messages: 2, .. }),
        "{told:?}"
    );
    let bytes = told.iter().map(|event| match event {
        RunEvent::SummaryProgress { bytes } => *bytes,
        _ => 0,
    });
    assert_eq!(bytes.sum::<usize>(), "A summary.".len());
    assert!(!format!("{told:?}").contains("summary."), "{told:?}");
}

#[tokio::test]
async fn a_listener_sees_it_happen_and_its_tokens_are_the_turns() {
    let model = Reader::new(4_096);
    let store = Arc::new(InMemory::new());
    let agent = agent(&model, &store).build().unwrap();
    let mut context = RunContext::default();
    let mut seen = Vec::new();
    for turn in 0..12 {
        let mut stream = agent.stream(&context, format!("{turn} {}", "word ".repeat(300)));
        let asked = model.requests().len();
        let mut of_turn = Vec::new();
        while let Some(event) = stream.next().await {
            match &event {
                RunEvent::SummaryStarted { .. } => of_turn.push("started"),
                RunEvent::SummaryFinished { before, after, .. } => {
                    assert!(after < before);
                    of_turn.push("finished");
                }
                RunEvent::ModelStarted { .. } => of_turn.push("model"),
                _ => {}
            }
        }
        let (response, after) = stream.finish().await.unwrap();
        context = after;
        let read: u64 = model.requests()[asked..]
            .iter()
            .map(|request| model.tokens(request))
            .sum();
        assert_eq!(response.usage.input_tokens, Some(read), "{turn}");
        seen.push(of_turn);
    }
    assert!(
        seen.contains(&vec!["started", "finished", "model"]),
        "{seen:?}"
    );
    assert!(seen.iter().all(|of_turn| of_turn.ends_with(&["model"])));
}
