use adjutant_core::port::{ConversationStore, Journal, LogStore};
use adjutant_core::{
    DecisionRecord, Event, Input, InputBody, LogContent, Recorded, ToolInvocationRecord,
};
use serde_json::{Value, json};

use super::fixture::*;

/// Returns a turn with long messages, arguments, results and errors, in as many places as in a real
/// turn.
pub(crate) fn long_turn(number: u32, input: &str, words: &str) -> Vec<Event> {
    let rows: Vec<Value> = (0..60)
        .map(|row| json!({"row": row, "text": "äöü \u{1} \" \\ \n"}))
        .collect();
    let arguments = json!({"query": words, "rows": rows});
    let (answer, failure) = (
        json!({"found": rows, "note": words}),
        format!("failed: {words}"),
    );
    let results = [
        json!({"success": true, "data": answer}),
        json!({"success": true, "data": words, "verbatim": true}),
        json!({"success": false, "error": failure}),
        json!({"success": true, "data": "\u{1}blob:"}),
    ];
    let call = |at: usize| format!("call_{number}_{at}");
    let calls: Vec<Value> = (0..results.len())
        .map(|at| json!({"type": "tool_call", "index": at, "id": call(at), "name": "read", "arguments": arguments}))
        .collect();
    let event = |event: Value| serde_json::from_value::<Event>(event).unwrap();
    let mut started = serde_json::to_value(started(number, input)).unwrap();
    started["message"] = words.into();
    let reply = |model_call: u32, parts: &[Value]| {
        let mut replied = serde_json::to_value(replied(number, model_call)).unwrap();
        replied["reply"]["Ok"]["parts"] = parts.into();
        replied
    };
    let mut events = vec![event(started), event(reply(1, &calls))];
    for (at, result) in results.iter().enumerate() {
        events.push(event(json!({
            "event": "call_started", "turn": turn(number), "call": call(at), "tool": "read", "arguments": arguments,
            "key": format!("key_{at}"), "effect": "once",
        })));
        events.push(event(json!({
            "event": "call_finished", "turn": turn(number), "call": call(at), "tool": "read", "arguments": arguments,
            "result": result, "summary": null, "ms": 1, "attempt": 1,
        })));
    }
    let text = [json!({"type": "text", "text": words})];
    events.push(event(reply(2, &text)));
    let mut end = serde_json::to_value(finished(number, "SUCCESS:TASK_COMPLETED")).unwrap();
    let used = results
        .iter()
        .map(|result| json!({"tool": "read", "arguments": arguments, "result": result}));
    let mut messages = vec![
        json!({"role": "user", "parts": text}),
        json!({"role": "assistant", "parts": calls}),
    ];
    for (at, result) in results.iter().enumerate() {
        let part =
            json!({"type": "tool_result", "call_id": call(at), "name": "read", "result": result});
        messages.push(json!({"role": "tool", "parts": [part]}));
    }
    messages.push(json!({"role": "assistant", "parts": text}));
    end["end"]["tools_used"] = used.collect();
    end["end"]["messages"] = messages.into();
    end["end"]["decision"]["text"] = words.into();
    events.push(event(end));
    events
}

/// Long values are stored apart from their rows, and every read returns them complete.
pub async fn long_values_come_back_wherever_they_are_read(
    store: &(impl Journal + LogStore + ConversationStore),
) {
    let key = conversation("anna", 1);
    for (number, words) in [
        (1, "\u{1}blob: \u{0} ä\n".repeat(400)),
        (2, "\u{1}text:".to_owned()),
        (3, "x".repeat(5000)),
    ] {
        let id = format!("i{number}");
        let input = Input::new(
            adjutant_core::InputId::new(id.clone()).unwrap(),
            at(0),
            InputBody::message(words.clone()),
        );
        submit(store, &key, &input).await;
        let loaded = store.load(&key).await.unwrap();
        assert_eq!(
            loaded
                .inbox
                .iter()
                .map(|input| &input.body)
                .collect::<Vec<_>>(),
            [&input.body]
        );
        let events = Recorded::sequence(loaded.next_seq(), at(1), &long_turn(number, &id, &words));
        // Split as a real turn is: a part, then the rest.
        let (begun, rest) = events.split_at(5);
        store.append(&key, begun).await.unwrap();
        store.append(&key, rest).await.unwrap();

        assert_eq!(
            store.load(&key).await.unwrap().events[loaded.events.len()..],
            events
        );
        assert_eq!(
            store
                .load_turns(&key, None, 1)
                .await
                .unwrap()
                .unwrap()
                .events,
            events
        );
        assert_eq!(
            store
                .load_turn(&key, turn(number))
                .await
                .unwrap()
                .unwrap()
                .events,
            events
        );
        let newer = store.load_newer(&key, None).await.unwrap().unwrap();
        assert_eq!(newer.events[loaded.events.len()..], events);

        let mut decision =
            DecisionRecord::open(&key, at(1), &events[0].event, LogContent::Full).unwrap();
        events[1..]
            .iter()
            .for_each(|recorded| decision.apply(at(1), &recorded.event, LogContent::Full));
        assert_eq!(
            store.decision(&key.user, turn(number)).await.unwrap(),
            Some(decision)
        );
        // The log does not record how the model reads a result.
        let said = |mut record: ToolInvocationRecord| {
            record.result.verbatim = false;
            record
        };
        let of = |recorded: &Recorded| {
            ToolInvocationRecord::from_event(at(1), &recorded.event, LogContent::Full)
        };
        let expected: Vec<_> = events.iter().filter_map(of).map(said).collect();
        let calls = store
            .tool_invocations(&key.user, turn(number))
            .await
            .unwrap();
        assert_eq!(calls.into_iter().map(said).collect::<Vec<_>>(), expected);
    }
    let decisions = store
        .decisions(&key.user, &adjutant_core::DecisionFilter::default())
        .await
        .unwrap();
    assert_eq!(
        decisions
            .iter()
            .map(|decision| decision.message.len())
            .collect::<Vec<_>>(),
        [5000, 6, 400 * 12]
    );
}
