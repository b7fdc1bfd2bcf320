//! The cost of reading long conversations: it does not grow with their length.

use super::*;

#[tokio::test]
async fn a_process_that_knows_nothing_reads_the_same_however_long_the_conversation_is() {
    let store = Store::in_memory().await.unwrap();
    let (first, written) = newcomer(&store, 1_000);
    let mut context = RunContext::default();
    let mut costs = Vec::new();
    for turn in 1..=1_010 {
        if !(11..=20).contains(&turn) && turn <= 1_000 {
            context.history.clear();
            first.run_in(&mut context, words()).await.unwrap();
            continue;
        }
        let (agent, journal) = newcomer(&store, 1);
        context.history.clear();
        agent.run_in(&mut context, words()).await.unwrap();
        let counted = journal.counted.lock().unwrap().clone();
        assert_eq!(counted.asked, ["begin", "finish"], "turn {turn}");
        costs.push((counted.events_read, journal.bytes.lock().unwrap().read));
    }
    let most = |costs: &[(usize, usize)]| {
        (
            costs.iter().map(|cost| cost.0).max().unwrap(),
            costs.iter().map(|cost| cost.1).max().unwrap(),
        )
    };
    let ((events, bytes), (events_late, bytes_late)) = (most(&costs[..10]), most(&costs[10..]));
    // Places and times of other lengths, and nothing else.
    assert!(
        events_late <= events && bytes_late <= bytes + bytes / 50,
        "{costs:?}"
    );
    // What snapshots take stays within what was said.
    let Bytes {
        events_written,
        snapshots_written,
        ..
    } = *written.bytes.lock().unwrap();
    assert!(
        (1..events_written).contains(&snapshots_written),
        "{snapshots_written} of {events_written}"
    );
    assert_eq!(store.check().await.unwrap(), []);
}

/// Returns what showing a turn read of a store, and what it showed of the first request.
async fn shown(store: &Store, key: &ConversationKey, turn: TurnId) -> (Counted, Vec<Step>) {
    let journal = Counting::new(Arc::new(store.clone()));
    let steps = read_trace(&journal, key, turn, LogContent::Full)
        .await
        .unwrap();
    let counted = journal.counted.lock().unwrap().clone();
    (counted, steps)
}

#[tokio::test]
async fn the_trace_of_a_turn_costs_the_same_however_long_the_conversation_is() {
    let store = Store::in_memory().await.unwrap();
    let (agent, _) = newcomer(&store, 1_015);
    let (mut context, mut read) = (RunContext::default(), Vec::new());
    for number in 1..=1_015 {
        context.history.clear();
        let turn = agent
            .run_in(&mut context, format!("Number {number}."))
            .await
            .unwrap()
            .turn;
        if [20, 1_010].contains(&number) {
            read.push(turn);
        }
    }
    let key = agent.key(&context);
    let mut costs = Vec::new();
    for turn in read {
        let (cost, steps) = shown(&store, &key, turn).await;
        let all = store.load(&key).await.unwrap();
        assert_eq!(
            steps,
            trace(&all.events, turn, LogContent::Full),
            "what is shown is what the whole past shows"
        );
        let model = steps
            .iter()
            .find(|step| step.kind == StepKind::Model)
            .unwrap();
        let messages = model.request.as_ref().unwrap()["messages"]
            .as_array()
            .unwrap()
            .len();
        costs.push((cost.asked, cost.events_read, messages));
    }
    for (asked, read, messages) in &costs {
        assert_eq!(asked, &["load_turn", "load_turns"], "{costs:?}");
        // The turn itself, and at most as many as it may be given messages, of three events each.
        assert!(
            (11..=21).contains(messages) && *read <= 3 + 20 * 3,
            "{costs:?}"
        );
    }
}

#[tokio::test]
async fn the_summary_that_a_turn_was_given_is_shown_however_long_ago_it_was_made() {
    let store = Store::in_memory().await.unwrap();
    let (agent, _) = newcomer(&store, 31);
    let mut context = RunContext::default();
    for number in 1..=10 {
        agent
            .run_in(&mut context, format!("Number {number}."))
            .await
            .unwrap();
    }
    let key = agent.key(&context);
    let seq = store.load(&key).await.unwrap().events.len() as u64;
    let summary = Summary {
        summarized_at: 8,
        text: "They count.".to_owned(),
    };
    let summarized = Event::ConversationSummarized {
        turn: None,
        number: 0,
        summary,
        before: 80,
        after: 8,
        usage: Usage::default(),
        cost: None,
        ms: 1,
    };
    store
        .append(
            &key,
            &Recorded::sequence(seq + 1, agent.now(), &[summarized]),
        )
        .await
        .unwrap();
    let mut turns = Vec::new();
    for number in 11..=30 {
        context.history.clear();
        turns.push(
            agent
                .run_in(&mut context, format!("Number {number}."))
                .await
                .unwrap()
                .turn,
        );
    }
    let all = store.load(&key).await.unwrap();
    for turn in [turns[0], turns[10], turns[19]] {
        let (cost, steps) = shown(&store, &key, turn).await;
        assert!(
            !cost.asked.contains(&"load") && cost.events_read < all.events.len(),
            "{cost:?}"
        );
        let request = steps
            .iter()
            .find(|step| step.kind == StepKind::Model)
            .unwrap()
            .request
            .clone()
            .unwrap();
        assert!(
            request["messages"][0]["content"]
                .as_str()
                .unwrap()
                .contains("They count."),
            "{request}"
        );
        assert_eq!(steps, trace(&all.events, turn, LogContent::Full));
    }
}

#[tokio::test]
async fn reading_the_state_is_a_step_of_the_turn_that_waited_for_it() {
    let store = Store::in_memory().await.unwrap();
    let (first, _) = newcomer(&store, 5);
    let mut context = RunContext::default();
    for _ in 0..5 {
        first.run_in(&mut context, "go on").await.unwrap();
    }
    let (agent, journal) = newcomer(&store, 1);
    let turn = agent.run_in(&mut context, "and here?").await.unwrap().turn;
    let read = journal.counted.lock().unwrap().events_read;
    let (_, steps) = shown(&store, &agent.key(&context), turn).await;
    let kinds: Vec<StepKind> = steps
        .iter()
        .map(|step| step.kind)
        .filter(|kind| *kind != StepKind::Engine)
        .collect();
    assert_eq!(kinds, [StepKind::Queue, StepKind::Load, StepKind::Model]);
    let load = steps
        .iter()
        .find(|step| step.kind == StepKind::Load)
        .unwrap();
    assert!(load.ms.is_some() && read > 1);
    assert_eq!(load.response, Some(json!({ "events": read })));
}

#[tokio::test]
async fn a_view_of_a_long_conversation_reads_its_end() {
    let store = Store::in_memory().await.unwrap();
    let (first, _) = newcomer(&store, 200);
    let mut context = RunContext::default();
    let input = |number: usize| InputId::new(format!("i{number}")).unwrap();
    for number in 1..=200 {
        let body = InputBody::message(words());
        first
            .run_input(&mut context, Some(input(number)), body)
            .await
            .unwrap();
    }
    let key = first.key(&context);
    let (agent, journal) = newcomer(&store, 3);
    let asked = || {
        let Counted {
            asked, events_read, ..
        } = std::mem::take(&mut *journal.counted.lock().unwrap());
        // The turns of at most 20 messages, of three events each, are all that anybody needs.
        assert!(events_read <= 30, "{asked:?}: {events_read}");
        asked
    };
    let known = agent.context(&key).await.unwrap();
    assert_eq!(
        (asked(), known.history.last().map(Message::text)),
        (vec!["load_newer"], Some("Yes.".to_owned()))
    );
    assert!(agent.context_use(&key).await.unwrap().total() > 1_000);
    assert_eq!(asked(), ["load_newer"]);
    assert!(agent.has_input(&key, &input(1)).await.unwrap());
    assert!(!agent.has_input(&key, &input(999)).await.unwrap());
    assert_eq!(asked(), ["find_input", "find_input"]);
    // The same input again: what it led to is what it leads to.
    for number in [200, 198] {
        let mut again = known.clone();
        let body = InputBody::message(words());
        let answer = agent
            .run_input(&mut again, Some(input(number)), body)
            .await
            .unwrap();
        assert_eq!(
            (answer.content.as_str(), again.history.len()),
            ("Yes.", known.history.len())
        );
        let asked = asked();
        assert!(
            asked.starts_with(&["begin"]) && !asked.contains(&"load"),
            "{asked:?}"
        );
    }
    // A context that knows the end of the conversation goes on knowing it.
    let mut on = known.clone();
    agent.run_in(&mut on, "And?").await.unwrap();
    assert_eq!(asked(), ["begin", "finish"]);
    assert_eq!(
        on.history
            .iter()
            .rev()
            .map(Message::text)
            .take(2)
            .collect::<Vec<_>>(),
        ["Yes.", "And?"]
    );
    // A turn with a bound of its own.
    let limits = TurnLimits {
        history_messages_max: Some(4),
        ..TurnLimits::default()
    };
    let body = InputBody::Message {
        text: "And now?".to_owned(),
        output_schema: None,
        limits: Some(Box::new(limits)),
        client: None,
        shown: Vec::new(),
        time_zone: None,
        from_others: false,
    };
    agent.run_input(&mut on, None, body).await.unwrap();
    assert_eq!(asked(), ["begin", "load_turns", "finish"]);
}
