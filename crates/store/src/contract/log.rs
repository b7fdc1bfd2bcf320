use adjutant_core::port::{Cursor, Journal, LogStore, Rated};
use adjutant_core::{
    ClientSide, ClientTool, ConversationKey, Cost, DecisionFilter, DecisionKind, DecisionRecord,
    Event, Feedback, Input, LogContent, Notice, OutcomeCategory, Rating, RecalledText, ToolChoice,
    ToolInvocationRecord, ToolResult, UserIntent,
};

use super::fixture::*;

/// The decision's row exists before the first model call, follows the turn, and is closed at its
/// end.
pub async fn a_decision_opens_with_its_turn_and_closes_at_its_end(
    store: &(impl Journal + LogStore),
) {
    let key = conversation("anna", 1);
    submit(store, &key, &message("i1", 0, "drop the milk")).await;
    assert_eq!(store.decision(&key.user, turn(1)).await.unwrap(), None);

    append(store, &key, 1, at(1), &[started(1, "i1")]).await;
    let open = store.decision(&key.user, turn(1)).await.unwrap().unwrap();
    assert_eq!(
        Some(&open),
        DecisionRecord::open(&key, at(1), &started(1, "i1"), LogContent::Full).as_ref()
    );
    assert_eq!(
        (open.started_at, open.ended_at, open.message.as_str()),
        (at(1), None, "drop the milk")
    );

    // Whatever the events are, the row equals the record that core computes.
    let mut expected = open;
    let rest: Vec<_> = every_kind().split_off(3);
    for (seq, event) in (2..).zip(&rest) {
        let moment = at(i64::try_from(seq).unwrap());
        append(store, &key, seq, moment, std::slice::from_ref(event)).await;
        expected.apply(moment, event, LogContent::Full);
        assert_eq!(
            store.decision(&key.user, turn(1)).await.unwrap().as_ref(),
            Some(&expected),
            "{}",
            event.kind()
        );
    }
    let last = i64::try_from(rest.len() + 1).unwrap();
    assert_eq!(expected.ended_at, Some(at(last)));
    let total_ms = u64::try_from((last - 1) * 1000).ok();
    assert_eq!(
        (expected.total_ms, expected.tool_ms, expected.model_calls),
        (total_ms, 7, 2)
    );
    assert_eq!(expected.kind, Some(DecisionKind::ExecutePending));
    assert_eq!(
        expected.intent,
        Some(UserIntent::from("DELETE_TASK".to_owned()))
    );
    assert_eq!(expected.outcome, Some(OutcomeCategory::TaskCompleted));
    assert_eq!(expected.usage.total(), Some(250));
    assert_eq!(expected.cost, Some(Cost::from_nano_usd(5)));
    assert_eq!(
        expected.notices,
        [Notice::not_sent("temperature 0 was left out")]
    );

    let calls = store.tool_invocations(&key.user, turn(1)).await.unwrap();
    let event = call_finished(1, "call_1");
    assert_eq!(
        calls,
        [ToolInvocationRecord::from_event(at(9), &event, LogContent::Full).unwrap()]
    );
    assert_eq!(
        (calls[0].ms, calls[0].attempt, calls[0].result.success),
        (7, 2, true)
    );
}

/// A decision has the raw response and the error code of a failed model call; a failed tool call
/// has its message; calls are in the order in which they ended.
pub async fn an_unreadable_answer_is_kept_in_the_decision(store: &(impl Journal + LogStore)) {
    let key = conversation("anna", 1);
    submit(store, &key, &message("i1", 0, "drop the milk")).await;
    let events = [
        started(1, "i1"),
        failed(1, 1),
        call_failed(1, "call_2"),
        call_finished(1, "call_1"),
    ];
    append(store, &key, 1, at(1), &events).await;
    let row = store.decision(&key.user, turn(1)).await.unwrap().unwrap();
    assert_eq!(row.error_code.as_deref(), Some("invalid_response"));
    assert_eq!(row.raw_response.as_deref(), Some("<html>"));
    let calls = store.tool_invocations(&key.user, turn(1)).await.unwrap();
    let ids: Vec<_> = calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["call_2", "call_1"]);
    assert_eq!(calls[0].result, ToolResult::failed("there is no task 1"));
}

/// Decisions are listed newest first, filtered by outcome, conversation, time and number, and by
/// all of them together.
pub async fn decisions_are_filtered(store: &(impl Journal + LogStore)) {
    let anna = user("anna");
    // Turn number: conversation, seconds, outcome.
    let turns = [
        (1, 1, 10, Some("SUCCESS:RESPONSE_GIVEN")),
        (2, 2, 20, Some("ERROR:LLM_FAILURE")),
        (3, 1, 30, None),
        (4, 1, 40, Some("ERROR:LLM_FAILURE")),
    ];
    for (number, place, seconds, outcome) in turns {
        let key = conversation("anna", place);
        let input = format!("i{number}");
        submit(store, &key, &message(&input, seconds, "hello")).await;
        let mut events = vec![started(number, &input)];
        if number % 2 == 0 {
            events.push(call_finished(number, "call_1"));
        }
        events.extend(outcome.map(|outcome| finished(number, outcome)));
        let next = store.load(&key).await.unwrap().next_seq();
        append(store, &key, next, at(seconds), &events).await;
    }
    let all = DecisionFilter::default();
    let failed = Some(OutcomeCategory::LlmFailure);
    let first = Some(conversation("anna", 1).conversation);
    let deletes = Some("delete_task".to_owned());
    let cases: [(DecisionFilter, &[u32]); 13] = [
        (all.clone(), &[4, 3, 2, 1]),
        (
            DecisionFilter {
                limit: Some(2),
                ..all.clone()
            },
            &[4, 3],
        ),
        (
            DecisionFilter {
                limit: Some(0),
                ..all.clone()
            },
            &[],
        ),
        (
            DecisionFilter {
                outcome: failed,
                ..all.clone()
            },
            &[4, 2],
        ),
        (
            DecisionFilter {
                outcome: Some(OutcomeCategory::Cancelled),
                ..all.clone()
            },
            &[],
        ),
        (
            DecisionFilter {
                conversation: first,
                ..all.clone()
            },
            &[4, 3, 1],
        ),
        (
            DecisionFilter {
                since: Some(at(20)),
                ..all.clone()
            },
            &[4, 3, 2],
        ),
        (
            DecisionFilter {
                until: Some(at(20)),
                ..all.clone()
            },
            &[1],
        ),
        (
            DecisionFilter {
                since: Some(at(20)),
                until: Some(at(40)),
                ..all.clone()
            },
            &[3, 2],
        ),
        (
            DecisionFilter {
                tool: deletes.clone(),
                ..all.clone()
            },
            &[4, 2],
        ),
        (
            DecisionFilter {
                tool: Some("delete".to_owned()),
                ..all.clone()
            },
            &[],
        ),
        (
            DecisionFilter {
                after: Some(Cursor {
                    at: at(30),
                    id: turn(3).0,
                }),
                ..all.clone()
            },
            &[2, 1],
        ),
        (
            DecisionFilter {
                agent: Some(agent()),
                outcome: failed,
                feedback: None,
                conversation: first,
                tool: deletes,
                since: Some(at(20)),
                until: Some(at(41)),
                after: Some(Cursor {
                    at: at(41),
                    id: turn(1).0,
                }),
                limit: Some(9),
            },
            &[4],
        ),
    ];
    for (filter, expected) in cases {
        let found: Vec<_> = store
            .decisions(&anna, &filter)
            .await
            .unwrap()
            .iter()
            .map(|row| row.id)
            .collect();
        assert_eq!(
            found,
            expected
                .iter()
                .map(|number| turn(*number))
                .collect::<Vec<_>>(),
            "{filter:?}"
        );
    }
}

/// Paging returns each decision once, even if some have the same time.
pub async fn decisions_are_paged(store: &(impl Journal + LogStore)) {
    let anna = user("anna");
    for number in 1..=5 {
        let key = conversation("anna", number);
        submit(store, &key, &message("i1", 0, "hello")).await;
        append(
            store,
            &key,
            1,
            at(i64::from(number / 3)),
            &[started(number, "i1")],
        )
        .await;
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let filter = DecisionFilter {
            after,
            limit: Some(2),
            ..DecisionFilter::default()
        };
        let page = store.decisions(&anna, &filter).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.cursor());
        seen.extend(page.iter().map(|row| row.id));
    }
    assert_eq!(seen, [5, 4, 3, 2, 1].map(turn));
}

/// The logs have as much message content as the store allows, and the journal has all of it.
pub async fn logs_have_the_content_that_the_store_allows(store: &(impl Journal + LogStore)) {
    let (key, content) = (conversation("anna", 1), store.content());
    submit(store, &key, &message("i1", 0, "drop the milk")).await;
    let events = [
        started(1, "i1"),
        failed(1, 1),
        call_finished(1, "call_1"),
        parked(1, &["call_2"]),
    ];
    append(store, &key, 1, at(1), &events).await;

    let row = store.decision(&key.user, turn(1)).await.unwrap().unwrap();
    let calls = store.tool_invocations(&key.user, turn(1)).await.unwrap();
    let written = serde_json::to_string(&(&row, &calls)).unwrap();
    for words in ["drop the milk", "Delete \\\"milk\\\"?", "<html>"] {
        assert_eq!(
            written.contains(words),
            content == LogContent::Full,
            "{content}: {words}: {written}"
        );
    }
    assert_eq!(
        (row.message_chars, row.error_code.as_deref()),
        (13, Some("invalid_response"))
    );
    assert_eq!(
        (calls[0].tool.as_str(), calls[0].result.success),
        ("delete_task", true)
    );
    assert_eq!(row.message, content.text("drop the milk"));
    // The row equals the record that core computes, also if it is read again for each event.
    assert_eq!(row.raw_response.is_some(), content != LogContent::None);
    assert_eq!(
        store.load(&key).await.unwrap().events,
        recorded(1, at(1), &events)
    );
}

/// A decision has the id of the request that its input came with, and the other properties that its
/// turn began with.
pub async fn a_decision_names_its_request(store: &(impl Journal + LogStore)) {
    let key = conversation("anna", 1);
    let input = Input {
        request_id: Some("req-1".to_owned()),
        ..message("i1", 0, "hi")
    };
    submit(store, &key, &input).await;
    assert_eq!(store.load(&key).await.unwrap().inbox, [input]);
    let Event::TurnStarted {
        turn,
        input,
        message,
        message_chars,
        model,
        limits,
        output_schema,
        call,
        ..
    } = started(1, "i1")
    else {
        panic!("a sample of another kind")
    };
    let request_id = Some("req-1".to_owned());
    let accepted_at = Some(at(0));
    let begun = Event::TurnStarted {
        turn,
        agent: Some(key.agent.clone()),
        version: Some("2.1".to_owned()),
        metadata: serde_json::Map::from_iter([("ticket".to_owned(), 7.into())]),
        sent_at: None,
        recalled_texts: vec![RecalledText {
            id: Some("fact-1".to_owned()),
            text: "Josh has a cat".to_owned(),
        }],
        input,
        accepted_at,
        request_id,
        message,
        message_chars,
        model,
        local: None,
        limits,
        output_schema,
        call,
        from_others: false,
        client: Some(Box::new(ClientSide {
            tools: vec![ClientTool::new("setTheme", "Sets the theme.", None).unwrap()],
            choice: ToolChoice::Required,
            one_at_a_time: true,
            context: "The page is dark.".to_owned(),
        })),
    };
    let (by, point) = ("policy".to_owned(), "before_model".to_owned());
    let decided = Event::Decided {
        turn,
        by,
        point,
        value: serde_json::json!({ "model": "small" }),
    };
    let events = [begun, decided];
    append(store, &key, 1, at(1), &events).await;
    assert_eq!(
        store.load(&key).await.unwrap().events,
        recorded(1, at(1), &events)
    );
    let row = store.decision(&key.user, turn).await.unwrap().unwrap();
    assert_eq!(row.request_id.as_deref(), Some("req-1"));
    assert_eq!(
        (row.agent, row.version.as_deref()),
        (key.agent, Some("2.1"))
    );
}

/// A user's decisions with all agents are listed together, and each names its agent.
pub async fn decisions_name_their_agent(store: &(impl Journal + LogStore)) {
    let (ours, theirs) = two_agents();
    for (number, key) in [(1, &ours), (2, &theirs)] {
        let id = format!("i{number}");
        submit(store, key, &message(&id, 0, "hi")).await;
        append(store, key, 1, at(number.into()), &[started(number, &id)]).await;
    }
    let found = async |agent: Option<&ConversationKey>| {
        let agent = agent.map(|key| key.agent.clone());
        let filter = DecisionFilter {
            agent,
            ..DecisionFilter::default()
        };
        let rows = store.decisions(&ours.user, &filter).await.unwrap();
        rows.into_iter()
            .map(|row| (row.id, row.agent))
            .collect::<Vec<_>>()
    };
    let (first, second) = (
        (turn(1), ours.agent.clone()),
        (turn(2), theirs.agent.clone()),
    );
    assert_eq!(found(None).await, [second.clone(), first.clone()]);
    assert_eq!(found(Some(&ours)).await, [first]);
    assert_eq!(found(Some(&theirs)).await, [second]);
}

/// Logs of one user are invisible to others, whatever ids they know.
pub async fn logs_belong_to_their_user(store: &(impl Journal + LogStore)) {
    let (key, bert) = (conversation("anna", 1), user("bert"));
    submit(store, &key, &message("i1", 0, "anna's secret")).await;
    append(
        store,
        &key,
        1,
        at(1),
        &[started(1, "i1"), call_finished(1, "call_1")],
    )
    .await;
    let here = DecisionFilter {
        conversation: Some(key.conversation),
        ..DecisionFilter::default()
    };
    assert_eq!(store.decisions(&key.user, &here).await.unwrap().len(), 1);
    assert_eq!(store.decisions(&bert, &here).await.unwrap(), []);
    assert_eq!(store.decision(&bert, turn(1)).await.unwrap(), None);
    assert_eq!(store.tool_invocations(&bert, turn(1)).await.unwrap(), []);
}

/// A rating can be given for one's own turn that has ended; it replaces an earlier one. Later
/// events in the conversation do not change it.
pub async fn an_answer_is_rated_by_its_user_only(store: &(impl Journal + LogStore)) {
    let (key, bert, content) = (conversation("anna", 1), user("bert"), store.content());
    let anna = &key.user;
    let of = |rating, comment: Option<&str>, seconds| {
        Feedback::new(rating, comment, at(seconds)).unwrap()
    };
    let (good, bad) = (
        of(Rating::Up, None, 20),
        of(Rating::Down, Some("ä wrong day"), 21),
    );
    for number in 1..=3 {
        let input = format!("i{number}");
        submit(store, &key, &message(&input, 0, "hello")).await;
        let mut events = vec![started(number, &input)];
        if number < 3 {
            events.push(finished(number, "SUCCESS:RESPONSE_GIVEN"));
        }
        let next = store.load(&key).await.unwrap().next_seq();
        append(store, &key, next, at(number.into()), &events).await;
    }
    let all = [turn(1), turn(2), turn(3), turn(9)];
    assert_eq!(store.feedback(anna, &all).await.unwrap(), []);
    assert_eq!(
        store.rate(anna, turn(3), Some(&good)).await.unwrap(),
        Rated::Open
    );
    assert_eq!(
        store.rate(anna, turn(9), Some(&good)).await.unwrap(),
        Rated::NoSuchTurn
    );
    assert_eq!(
        store.rate(&bert, turn(1), Some(&good)).await.unwrap(),
        Rated::NoSuchTurn
    );
    assert_eq!(
        store.rate(&bert, turn(1), None).await.unwrap(),
        Rated::NoSuchTurn
    );

    assert_eq!(
        store.rate(anna, turn(1), Some(&good)).await.unwrap(),
        Rated::Kept { before: None }
    );
    assert_eq!(
        store.rate(anna, turn(2), Some(&good)).await.unwrap(),
        Rated::Kept { before: None }
    );
    let before = Some(Rating::Up);
    assert_eq!(
        store.rate(anna, turn(1), Some(&bad)).await.unwrap(),
        Rated::Kept { before }
    );
    let next = store.load(&key).await.unwrap().next_seq();
    let end = [finished(3, "SUCCESS:RESPONSE_GIVEN")];
    append(store, &key, next, at(30), &end).await;

    let kept = bad.kept(content);
    assert_eq!(
        store
            .decision(anna, turn(1))
            .await
            .unwrap()
            .unwrap()
            .feedback
            .as_ref(),
        Some(&kept)
    );
    let mut found = store.feedback(anna, &all).await.unwrap();
    found.sort_by_key(|(turn, _)| *turn);
    assert_eq!(found, [(turn(1), kept), (turn(2), good.clone())]);
    assert_eq!(
        store.feedback(anna, &[turn(2)]).await.unwrap(),
        [(turn(2), good)]
    );
    assert_eq!(store.feedback(anna, &[]).await.unwrap(), []);
    assert_eq!(store.feedback(&bert, &all).await.unwrap(), []);
    for (rating, expected) in [(Rating::Down, turn(1)), (Rating::Up, turn(2))] {
        let filter = DecisionFilter {
            feedback: Some(rating),
            ..DecisionFilter::default()
        };
        let found: Vec<_> = store
            .decisions(anna, &filter)
            .await
            .unwrap()
            .iter()
            .map(|row| row.id)
            .collect();
        assert_eq!(found, [expected], "{rating}");
    }

    let before = Some(Rating::Down);
    assert_eq!(
        store.rate(anna, turn(1), None).await.unwrap(),
        Rated::Kept { before }
    );
    assert_eq!(
        store.rate(anna, turn(1), None).await.unwrap(),
        Rated::Kept { before: None }
    );
    assert_eq!(
        store
            .decision(anna, turn(1))
            .await
            .unwrap()
            .unwrap()
            .feedback,
        None
    );
}
