//! The cost of heartbeats and of waiting.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_a_model_asks_nothing_of_the_journal() {
    let store = Arc::new(InMemory::new());
    let journal = Arc::new(Counting::new(store.clone()));
    let counted = journal.counted.clone();
    let limits = TurnLimits {
        turn_deadline: Some(Duration::from_secs(3600)),
        ..TurnLimits::default()
    };
    let agent = builder(ScriptedModel::new([fault(Fault::Stall)]))
        .limits(limits)
        .dyn_journal(journal, store.clone(), store, "test")
        .build()
        .unwrap();
    // Until the turn's time is up, which is an hour of this clock.
    let answer = agent.run("hello").await.unwrap();
    assert_eq!(answer.outcome, OutcomeCategory::DeadlineLimit);
    let mut asked = counted.lock().unwrap().asked.clone();
    asked.retain(|asked| *asked != "beat");
    assert_eq!(asked, ["begin", "finish"]);
}

/// Lets so many turns wait for their models side by side until they are over after twelve seconds
/// of this clock.
async fn beats_of(turns: usize) -> usize {
    let store = Arc::new(InMemory::new());
    let counted = Arc::new(Mutex::new(Counted::default()));
    let journal = Arc::new(Counting {
        counted: counted.clone(),
        ..Counting::new(store.clone())
    });
    let limits = TurnLimits {
        turn_deadline: Some(Duration::from_secs(12)),
        ..TurnLimits::default()
    };
    let agent = builder(ScriptedModel::new(std::iter::repeat_n(
        fault(Fault::Stall),
        turns,
    )))
    .limits(limits)
    .dyn_journal(journal, store.clone(), store, "test")
    .build()
    .unwrap();
    let runs = (0..turns).map(|_| agent.run("hello"));
    for answer in futures::future::join_all(runs).await {
        assert_eq!(answer.unwrap().outcome, OutcomeCategory::DeadlineLimit);
    }
    // Nothing runs any more, and nothing is said of it.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let counted = counted.lock().unwrap();
    assert_eq!(counted.asked.len(), 2 * turns + 2, "{:?}", counted.asked);
    counted
        .asked
        .iter()
        .filter(|asked| **asked == "beat")
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_process_sends_one_heartbeat_for_all_that_it_runs() {
    assert_eq!((beats_of(1).await, beats_of(50).await), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_without_notification_is_found_with_the_next_heartbeat() {
    let store = Arc::new(InMemory::new());
    let journal = Arc::new(Counting {
        is_deaf: true,
        ..Counting::new(store.clone())
    });
    let agent = builder(ScriptedModel::new([fault(Fault::Stall)]))
        .dyn_journal(journal, store.clone(), store.clone(), "test")
        .build()
        .unwrap();
    let context = RunContext::default();
    let mut stream = agent.stream(&context, "hello");
    stream.next().await;
    let stop = Input::new(
        InputId::new("stop").unwrap(),
        agent.now(),
        InputBody::Cancel,
    );
    store.submit(&agent.key(&context), &stop).await.unwrap();
    let (response, _) = stream.finish().await.unwrap();
    assert_eq!(response.outcome, OutcomeCategory::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_process_whose_heartbeat_comes_too_late_stops_its_turns() {
    let store = Arc::new(InMemory::new());
    let journal = Arc::new(Counting {
        too_late: true,
        ..Counting::new(store.clone())
    });
    let agent = builder(ScriptedModel::new([
        fault(Fault::Stall),
        text("Here again."),
    ]))
    .dyn_journal(journal, store.clone(), store.clone(), "test")
    .build()
    .unwrap();
    let context = RunContext::default();
    let stopped = agent.run_in(&mut context.clone(), "hello").await;
    assert_eq!(stopped.unwrap_err(), RunError::Store(StoreError::Conflict));
    assert_eq!(
        store.unsettled(agent.name(), None).await.unwrap(),
        [agent.key(&context)]
    );
    let responses = agent.recover(None).await.unwrap();
    assert_eq!(
        responses
            .iter()
            .map(|response| response.outcome)
            .collect::<Vec<_>>(),
        [OutcomeCategory::ResponseGiven]
    );
}
