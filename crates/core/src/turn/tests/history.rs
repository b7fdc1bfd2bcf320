//! The messages that a turn leaves for the next request.

use super::*;
use crate::message::Role;
use crate::unanswered::is_note;

fn timed_out() -> In {
    In::Fails(ModelError::Timeout {
        provider: provider(),
        waited: std::time::Duration::from_secs(30),
        bound: TimeBound::Total,
    })
}

/// Returns role and text of the messages that a turn adds to the history. Notes to the model are
/// shown as such.
fn left(end: &TurnEnd) -> Vec<String> {
    let line = |message: Message| match message.role() {
        Role::User if is_note(&message) => "note".to_owned(),
        Role::User => format!("user: {}", message.text()),
        Role::Assistant if message.tool_calls().next().is_some() => "calls".to_owned(),
        Role::Assistant => format!("assistant: {}", message.text()),
        Role::Tool | Role::System => "result".to_owned(),
    };
    end.history().map(line).collect()
}

fn ended(setup: TurnSetup, inputs: &[In]) -> TurnEnd {
    run(Turn::new(setup).unwrap(), inputs).1.unwrap()
}

fn library() -> TurnSetup {
    TurnSetup {
        reports_failed_calls: false,
        claims_change: None,
        ..setup()
    }
}

#[test]
fn words_of_the_program_are_not_the_assistants() {
    let called = || In::Calls(vec![("add", json!({}))]);
    let done = || In::Ends(vec![ran(json!(1), "Added.")]);
    let failed = || In::Ends(vec![broke("the disk is full")]);
    for (inputs, expected) in [
        (vec![timed_out()], vec!["user: hello", "note"]),
        (
            vec![In::Stop(StopReason::Cancelled)],
            vec!["user: hello", "note"],
        ),
        (
            vec![called(), done(), timed_out()],
            vec!["user: hello", "calls", "result", "note"],
        ),
        (
            vec![called(), failed(), In::Says("I added it.")],
            vec!["user: hello", "calls", "result", "assistant: I added it."],
        ),
        (
            vec![In::Calls(vec![(
                ASK_USER,
                json!({"question": "Which one?"}),
            )])],
            vec!["user: hello", "calls", "result", "assistant: Which one?"],
        ),
        (
            vec![
                In::Calls(vec![
                    ("add", json!({})),
                    (ASK_USER, json!({"question": "Which one?"})),
                ]),
                done(),
            ],
            vec![
                "user: hello",
                "calls",
                "result",
                "result",
                "assistant: Which one?",
            ],
        ),
        (
            vec![
                called(),
                In::Ends(vec![CallEnd::Asked {
                    question: "Which task: 1 or 2?".to_owned(),
                }]),
            ],
            vec!["user: hello", "calls", "result"],
        ),
        (
            vec![In::Reply(FinishReason::ContentFilter, vec![text("")])],
            vec!["user: hello", "note"],
        ),
    ] {
        for setup in [setup(), library()] {
            assert_eq!(left(&ended(setup, &inputs)), expected);
        }
    }
}

#[test]
fn descriptions_of_constrained_calls_are_the_assistants_words() {
    let weak = TurnSetup {
        style: ToolStyle::OneRound,
        ..setup()
    };
    let inputs = [
        In::Calls(vec![("add", json!({}))]),
        In::Ends(vec![ran(json!(1), "Added.")]),
    ];
    assert_eq!(
        left(&ended(weak, &inputs)),
        ["user: hello", "calls", "result", "assistant: Added."]
    );
}

#[test]
fn an_answer_that_broke_off_is_kept_without_the_programs_words() {
    for stopped in [true, false] {
        let mut turn = Turn::new(setup()).unwrap();
        turn.start().unwrap();
        turn.on_partial_answer("one two three four f".to_owned());
        let action = if stopped {
            turn.stop(StopReason::Cancelled, Vec::new())
        } else {
            let In::Fails(error) = timed_out() else {
                unreachable!()
            };
            turn.on_model_result(Err(error)).unwrap()
        };
        let Action::Finish(end) = action else {
            unreachable!()
        };
        assert_eq!(
            left(&end),
            ["user: hello", "assistant: one two three four f"]
        );
        let words = end.decision.text.strip_prefix("one two three four f\n");
        assert!(words.is_some_and(|words| !words.is_empty()), "{end:?}");
    }
}

#[test]
fn the_words_of_older_versions_become_notes_in_their_place() {
    let said = |text: &str| {
        let part = Part::ours(Content::Text { text: text.into() });
        Message::assistant(vec![part]).unwrap()
    };
    let failed = || {
        ended(
            setup(),
            &[
                In::Calls(vec![("add", json!({}))]),
                In::Ends(vec![broke("the disk is full")]),
                In::Says("Sorry."),
            ],
        )
    };

    let mut doubled = failed();
    doubled.decision.text = "Sorry.\nthe disk is full".to_owned();
    doubled.messages.push(said("Sorry.\nthe disk is full"));
    assert_eq!(
        left(&doubled),
        [
            "user: hello",
            "calls",
            "result",
            "assistant: Sorry.",
            "note"
        ]
    );

    let mut unavailable = ended(setup(), &[timed_out()]);
    unavailable.messages.truncate(1);
    unavailable
        .messages
        .push(said(&unavailable.decision.text.clone()));
    assert_eq!(left(&unavailable), ["user: hello", "note"]);

    let cut = ended(
        setup(),
        &[In::Reply(FinishReason::MaxTokens, vec![text("Half an")])],
    );
    assert_eq!(left(&cut), ["user: hello", "assistant: Half an"]);

    let answered = ended(setup(), &[In::Says("Hi.")]);
    assert_eq!(left(&answered), ["user: hello", "assistant: Hi."]);
}

#[test]
fn a_stored_turn_with_a_blank_answer_is_read_without_it() {
    let end = ended(setup(), &[In::Says("Hi.")]);
    let mut stored = serde_json::to_value(&end).unwrap();
    let blank = json!({"role": "assistant", "parts": [{"type": "text", "text": ""}]});
    stored["messages"].as_array_mut().unwrap().push(blank);
    let read: TurnEnd = serde_json::from_value(stored).unwrap();
    assert_eq!(read, end);
}

#[test]
fn failed_calls_are_named_beside_a_success_and_stand_for_the_answer_without_one() {
    let both = || In::Calls(vec![("add", json!({"a": 1})), ("add_task", json!({}))]);
    let claims = || In::Says("I added both.");
    let good_and_bad = || In::Ends(vec![ran(json!(1), "Added."), broke("the disk is full")]);
    let bad = || In::Ends(vec![broke("no paper"), broke("the disk is full")]);
    for (setup, ends, outcome, words, failed) in [
        (
            setup(),
            good_and_bad(),
            OutcomeCategory::TaskCompleted,
            "I added both.\nthe disk is full",
            1,
        ),
        (
            setup(),
            bad(),
            OutcomeCategory::ToolFailure,
            "no paper\nthe disk is full",
            2,
        ),
        (
            library(),
            good_and_bad(),
            OutcomeCategory::TaskCompleted,
            "I added both.",
            1,
        ),
        (
            library(),
            bad(),
            OutcomeCategory::ResponseGiven,
            "I added both.",
            2,
        ),
    ] {
        let end = ended(setup, &[both(), ends, claims()]);
        assert_eq!(
            (end.outcome, &*end.decision.text, end.failed_calls.len()),
            (outcome, words, failed)
        );
        assert_eq!(end.error.is_some(), outcome == OutcomeCategory::ToolFailure);
        let last = end.failed_calls.last().unwrap();
        assert_eq!(
            (&*last.tool, &*last.message),
            ("add_task", "the disk is full")
        );
    }
}

#[test]
fn failed_calls_are_named_in_words_for_a_person() {
    let refused = |refusal| CallEnd::Refused {
        refusal,
        message: "/description: is missing".to_owned(),
    };
    let end = ended(
        setup(),
        &[
            In::Calls(vec![
                ("add_task", json!({"title": "buy milk"})),
                ("send_mail", json!({})),
            ]),
            In::Ends(vec![
                refused(Refusal::InvalidArguments),
                refused(Refusal::UnknownTool),
            ]),
            In::Says("I added “buy milk” to your list!"),
        ],
    );
    assert_eq!(
        end.decision.text,
        format!(
            "{}\n{}",
            words::unusable_call("Add task with title “buy milk”"),
            words::unknown_call("Send mail")
        )
    );
}

#[test]
fn words_about_several_calls_are_said_once() {
    let denied = |id| CallEnd::Denied {
        arguments: json!({ "id": id }).as_object().unwrap().clone(),
    };
    let question = "I can't find a task 2.";
    let mut turn = Turn::new(setup()).unwrap();
    turn.start().unwrap();
    let Action::CallTools(calls) = turn
        .on_model_result(Ok(reply(
            FinishReason::ToolCalls,
            calls(&[
                ("add", json!({"id": 1})),
                ("add", json!({"id": 2})),
                ("add", json!({"id": 3})),
            ]),
        )))
        .unwrap()
    else {
        unreachable!()
    };
    let ids: Vec<CallId> = calls.into_iter().map(|call| call.id).collect();
    let asked = CallEnd::Asked {
        question: question.to_owned(),
    };
    let ends = [waits("Delete 1"), asked, waits("Delete 3")];
    turn.on_call_ends(ids.iter().cloned().zip(ends).collect())
        .unwrap();
    let answers = vec![(ids[0].clone(), denied(1)), (ids[2].clone(), denied(3))];
    let Action::Finish(end) = turn.on_call_ends(answers).unwrap() else {
        unreachable!()
    };
    assert_eq!(
        end.decision.text,
        format!("{}\n{question}", words::NOTHING_CHANGED)
    );
}

#[test]
fn results_are_described_in_words_before_a_failure() {
    let undescribed = CallEnd::Executed {
        arguments: Arguments::new(),
        result: ToolResult::ok(json!("written")),
        summary: None,
    };
    let end = ended(
        setup(),
        &[
            In::Calls(vec![("add_task", json!({}))]),
            In::Ends(vec![undescribed]),
            timed_out(),
        ],
    );
    assert_eq!(
        end.decision.text,
        format!(
            "{}\n{}",
            words::carried_out("Add task"),
            words::TEMPORARILY_UNAVAILABLE
        )
    );
}
