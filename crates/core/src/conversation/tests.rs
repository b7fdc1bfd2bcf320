//! Folding in steps is folding at once, and what the fold keeps is what the whole past says.

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::decision::{AgentDecision, DecisionKind, OutcomeCategory, UserIntent};
use crate::error::ModelError;
use crate::event::{GateVerdict, TurnEnd};
use crate::id::{CallId, IdempotencyKey, ProviderId};
use crate::limits::TurnLimits;
use crate::message::{Content, Part, Role};
use crate::model::{Counters, FinishReason, GenerateResponse};
use crate::tool::{Arguments, Effect, ToolCall, ToolResult};
use crate::turn::trim;

/// One thing that happens in a generated conversation.
#[derive(Debug, Clone)]
enum Happens {
    Turn {
        model: u8,
        tools: usize,
        summary: Option<usize>,
        finishes: bool,
    },
    Summary(usize),
    SummaryFailed,
    HistorySet(usize),
    SessionEnded,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        8 => (0..2_u8, 0..4_usize, proptest::option::of(0..6_usize), proptest::bool::weighted(0.95)).prop_map(
            |(model, tools, summary, finishes)| Happens::Turn { model, tools, summary, finishes }
        ),
        2 => (0..60_usize).prop_map(Happens::Summary),
        1 => Just(Happens::SummaryFailed),
        1 => (0..7_usize).prop_map(Happens::HistorySet),
        1 => Just(Happens::SessionEnded),
    ]
}

fn model(number: u8) -> ModelId {
    ModelId::new("test", format!("model-{number}")).unwrap()
}

fn said(role: Role, text: String) -> Message {
    Message::new(role, vec![Part::ours(Content::Text { text })]).unwrap()
}

fn summarised(turn: Option<TurnId>, at: usize) -> Event {
    Event::ConversationSummarized {
        turn,
        number: u32::from(turn.is_some()),
        summary: Summary {
            summarized_at: at,
            text: format!("the first {at}"),
        },
        before: 10,
        after: 5,
        usage: Usage::default(),
        cost: None,
        ms: 1,
    }
}

/// The events of what happens, as a runtime writes them: what it puts into few words begins behind
/// what it was given.
fn journal(happenings: &[Happens], messages_max: Option<usize>) -> Vec<Recorded> {
    let mut journal: Vec<Recorded> = Vec::new();
    for (at, happening) in happenings.iter().enumerate() {
        let turn = TurnId(uuid::Uuid::from_u128(at as u128 + 1));
        let past = turn_history_by_definition(&journal, messages_max);
        let up_to = |more: &usize| past.from + more.min(&past.messages.len());
        let mut ends = false;
        let events = match happening {
            Happens::HistorySet(turns) => {
                let messages = (0..*turns).flat_map(|n| {
                    [
                        said(Role::User, format!("q{n}")),
                        said(Role::Assistant, format!("a{n}")),
                    ]
                });
                vec![Event::HistorySet {
                    messages: messages.collect(),
                    from_others: false,
                }]
            }
            Happens::Summary(more) => vec![summarised(None, up_to(more))],
            Happens::SummaryFailed => vec![Event::SummaryFailed {
                turn: None,
                number: 0,
                reason: "no".to_owned(),
                asked: true,
                usage: Usage::default(),
                cost: None,
                ms: 1,
            }],
            Happens::SessionEnded => vec![Event::SessionEnded {}],
            Happens::Turn {
                model,
                tools,
                summary,
                finishes,
            } => {
                let mut messages = vec![said(Role::User, format!("question {at}"))];
                let inside = summary
                    .as_ref()
                    .map(|more| summarised(Some(turn), up_to(more)));
                let mut events = turn_of(turn, at, *model, *tools, inside, &mut messages);
                ends = !finishes;
                if *finishes {
                    events.push(finished(turn, messages));
                }
                events
            }
        };
        for event in events {
            let seq = journal.len() as u64 + 1;
            journal.push(Recorded {
                seq,
                at: time(seq),
                event: event.into(),
            });
        }
        if ends {
            // The conversation ends with a turn that is open.
            break;
        }
    }
    journal
}

fn time(seq: u64) -> Timestamp {
    Timestamp::from_second(i64::try_from(seq).unwrap()).unwrap()
}

fn turn_of(
    turn: TurnId,
    at: usize,
    number: u8,
    tools: usize,
    inside: Option<Event>,
    messages: &mut Vec<Message>,
) -> Vec<Event> {
    let mut events = vec![Event::TurnStarted {
        turn,
        agent: None,
        version: None,
        metadata: serde_json::Map::new(),
        sent_at: None,
        recalled_texts: Vec::new(),
        input: InputId::new(format!("input-{at}")).unwrap(),
        accepted_at: None,
        request_id: None,
        message: format!("question {at}"),
        message_chars: 10,
        model: model(number),
        local: None,
        limits: TurnLimits::default(),
        output_schema: None,
        call: None,
        client: None,
        from_others: false,
    }];
    events.extend(inside);
    let calls: Vec<ToolCall> = (0..tools)
        .map(|n| ToolCall {
            id: CallId::new(format!("call-{at}-{n}")).unwrap(),
            ..ToolCall::from_object(n, None, "note".to_owned(), Arguments::new())
        })
        .collect();
    events.push(replied(turn, 1, number, &calls));
    if !calls.is_empty() {
        messages.push(
            Message::assistant(
                calls
                    .iter()
                    .cloned()
                    .map(|call| Part::ours(Content::ToolCall(call)))
                    .collect(),
            )
            .unwrap(),
        );
    }
    for call in calls {
        let arguments = Arguments::new();
        let verdict = GateVerdict::Run {
            arguments: arguments.clone(),
        };
        events.push(Event::CallChecked {
            turn,
            call: call.id.clone(),
            verdict,
            corrections: None,
        });
        events.push(Event::CallStarted {
            turn,
            call: call.id.clone(),
            tool: call.name.clone(),
            arguments: arguments.clone(),
            key: IdempotencyKey::new("k").unwrap(),
            effect: Effect::Once,
        });
        let result = ToolResult::ok(serde_json::json!({ "n": at }));
        events.push(Event::CallFinished {
            turn,
            call: call.id.clone(),
            tool: call.name.clone(),
            arguments,
            result: result.clone(),
            summary: None,
            ms: 1,
            attempt: 1,
        });
        messages.push(Message::tool(call.id, call.name, result).unwrap());
    }
    if tools > 0 {
        events.push(replied(turn, 2, number, &[]));
    }
    messages.push(said(Role::Assistant, format!("answer {at}")));
    events
}

fn replied(turn: TurnId, number: u32, asked: u8, calls: &[ToolCall]) -> Event {
    let parts = match calls {
        [] => vec![Part::ours(Content::Text {
            text: "ok".to_owned(),
        })],
        calls => calls
            .iter()
            .cloned()
            .map(|call| Part::ours(Content::ToolCall(call)))
            .collect(),
    };
    let reply = if asked == 1 && number == 2 {
        let message = "maximum context length is 4096".to_owned();
        Err(ModelError::ContextTooLong {
            provider: ProviderId::new("test").unwrap(),
            message,
        })
    } else {
        Ok(GenerateResponse {
            parts,
            finish: FinishReason::Stop,
            usage: Usage {
                input_tokens: Some(1_500),
                ..Usage::default()
            },
            counters: Counters::default(),
            cost: None,
            model: model(asked),
            losses: Vec::new(),
            certainty: None,
        })
    };
    Event::ModelReplied {
        turn,
        number,
        reply,
        ms: 1,
        attempts: 1,
        counted: Some(1_000),
        notices: Vec::new(),
        past: None,
    }
}

fn finished(turn: TurnId, messages: Vec<Message>) -> Event {
    let end = TurnEnd {
        decision: AgentDecision {
            kind: DecisionKind::RespondOnly,
            intent: UserIntent::GeneralChat,
            text: "ok".to_owned(),
            tool_calls: Vec::new(),
            pending: Vec::new(),
        },
        outcome: OutcomeCategory::ResponseGiven,
        output: None,
        usage: Usage {
            input_tokens: Some(3),
            output_tokens: Some(1),
            ..Usage::default()
        },
        cost: None,
        iterations: 0,
        error: None,
        notices: Vec::new(),
        tools_used: Vec::new(),
        failed_calls: Vec::new(),
        messages,
        from_others: false,
    };
    Event::TurnFinished {
        turn,
        input: None,
        end,
    }
}

/// Returns the past that a turn is given, from the definition: all messages of the whole past, less
/// those that the last summary stands for, trimmed.
fn turn_history_by_definition(events: &[Recorded], messages_max: Option<usize>) -> TurnHistory {
    let history = history(events);
    let summary = super::last_summary(events).filter(|known| known.summarized_at <= history.len());
    let since = &history[summary.map_or(0, |summary| summary.summarized_at)..];
    let messages = trim(since, messages_max).to_vec();
    TurnHistory {
        summary: summary.cloned(),
        from: history.len() - messages.len(),
        messages,
    }
}

proptest! {
    #[test]
    fn folding_in_two_steps_is_folding_at_once(
        happenings in proptest::collection::vec(happens(), 0..30),
        cut in 0..200_usize,
        max in proptest::option::of(1..8_usize),
    ) {
        let events = journal(&happenings, max);
        let cut = cut.min(events.len());
        let mut stepwise = Conversation::from_events(max, events[..cut].iter().cloned());
        stepwise.extend(events[cut..].iter().cloned());
        let at_once = Conversation::from_events(max, events.iter().cloned());
        prop_assert_eq!(&stepwise, &at_once);
        prop_assert_eq!(at_once.seq(), events.len() as u64);
        prop_assert_eq!(at_once.messages(), history(&events).len());
        prop_assert_eq!(at_once.status().turns, events.iter().filter(|recorded| {
            matches!(*recorded.event, Event::TurnStarted { .. })
        }).count() as u64);
    }

    #[test]
    fn folding_from_a_snapshot_is_folding_everything(
        happenings in proptest::collection::vec(happens(), 0..30),
        max in proptest::option::of(1..8_usize),
    ) {
        let events = journal(&happenings, max);
        let at_once = Conversation::from_events(max, events.iter().cloned());
        let mut before = Conversation::new(max);
        for (at, recorded) in events.iter().enumerate() {
            before.apply(recorded.clone());
            let Some(snapshot) = before.snapshot().unwrap() else {
                prop_assert!(before.open_turn().is_some());
                continue;
            };
            prop_assert_eq!(snapshot.messages_max(), Some(max));
            let said = |recorded: &&Recorded| {
                (snapshot.messages_from..=snapshot.seq).contains(&recorded.seq) && recorded.event.has_messages()
            };
            let said: Vec<Recorded> = events.iter().filter(said).cloned().collect();
            let mut restored = Conversation::restore(max, &snapshot, said.iter().cloned()).unwrap();
            let mut folded = before.clone();
            folded.forget_finished_turn();
            prop_assert_eq!(&restored, &folded);
            let again = restored.snapshot().unwrap();
            prop_assert_eq!(again.as_ref(), Some(&snapshot));
            restored.extend(events[at + 1..].iter().cloned());
            let mut all = at_once.clone();
            // What came behind the end of a turn is kept beside it by those that saw the turn.
            if at_once.current().is_some_and(|turn| turn.events()[0].seq <= snapshot.seq) {
                all.forget_finished_turn();
            }
            prop_assert_eq!(&restored, &all);
            prop_assert!(Conversation::restore(Some(99), &snapshot, said.iter().cloned()).is_none());
            if !before.kept_messages().is_empty() {
                prop_assert!(Conversation::restore(max, &snapshot, said[1..].iter().cloned()).is_none());
            }
        }
    }

    #[test]
    fn with_another_bound_a_turn_is_given_the_end_of_what_the_past_says(
        happenings in proptest::collection::vec(happens(), 0..30),
        max in proptest::option::of(1..8_usize),
        other in proptest::option::of(1..8_usize),
        cut in 0..200_usize,
    ) {
        let mut events = journal(&happenings, max);
        // An open turn is not part of the past.
        if Conversation::from_events(max, events.iter().cloned()).open_turn().is_some() {
            let start = events.iter().rposition(|recorded| matches!(*recorded.event, Event::TurnStarted { .. }));
            events.truncate(start.unwrap());
        }
        let conversation = Conversation::from_events(max, events.iter().cloned());
        let mut all = turn_history_by_definition(&events, other);
        all.summary = conversation.summary().cloned();
        prop_assert_eq!(&conversation.turn_history_within(other, &events), &all);
        let last = conversation.turn_history_within(None, &events[cut.min(events.len())..]);
        let everything = conversation.turn_history_within(None, &events);
        prop_assert!(everything.messages.ends_with(&last.messages));
        prop_assert_eq!(last.from, everything.from + everything.messages.len() - last.messages.len());
    }

    #[test]
    fn what_a_turn_is_given_is_what_the_whole_past_says(
        happenings in proptest::collection::vec(happens(), 0..30),
        max in proptest::option::of(1..8_usize),
    ) {
        let events = journal(&happenings, max);
        let conversation = Conversation::from_events(max, events.iter().cloned());
        prop_assert_eq!(conversation.turn_history_now(), turn_history_by_definition(&events, max));
        // The open turn keeps what it was given when it started.
        if conversation.open_turn().is_some() {
            let start = events.iter().rposition(|recorded| matches!(*recorded.event, Event::TurnStarted { .. }));
            prop_assert_eq!(conversation.turn_history(), turn_history_by_definition(&events[..start.unwrap()], max));
        }
        if let Some(max) = max {
            let kept = conversation.kept_messages();
            let spoken = kept.iter().filter(|message| message.role() != Role::Tool).count();
            // One turn is kept whole, however long it is.
            prop_assert!(spoken <= max.max(3), "{} kept of at most {}", spoken, max);
        }
    }
}

#[test]
fn the_current_turn_finds_its_steps_by_number_and_call() {
    let events = journal(
        &[
            Happens::Turn {
                model: 0,
                tools: 1,
                summary: None,
                finishes: true,
            },
            Happens::Turn {
                model: 0,
                tools: 2,
                summary: None,
                finishes: false,
            },
        ],
        None,
    );
    let conversation = Conversation::from_events(None, events);
    let current = conversation.current().unwrap();
    let (earlier, call) = (
        CallId::new("call-0-0").unwrap(),
        CallId::new("call-1-1").unwrap(),
    );
    assert!(current.reply(2).is_some() && current.reply(3).is_none());
    assert!(matches!(
        current.verdict(&call),
        Some(GateVerdict::Run { .. })
    ));
    assert_eq!(
        (current.times_started(&call), current.effect(&call)),
        (1, Some(Effect::Once))
    );
    assert!(current.end(&call).is_some());
    assert!(
        current.end(&earlier).is_none() && current.times_started(&earlier) == 0,
        "of another turn"
    );
}

#[test]
fn a_summary_is_tried_less_and_less_often_after_failures() {
    let failed = Happens::SummaryFailed;
    let turn = Happens::Turn {
        model: 0,
        tools: 0,
        summary: None,
        finishes: true,
    };
    let is_time = |happenings: &[&Happens]| {
        let happenings: Vec<Happens> = happenings
            .iter()
            .map(|happening| (*happening).clone())
            .collect();
        Conversation::from_events(None, journal(&happenings, None)).is_time_to_summarize()
    };
    assert!(is_time(&[]) && is_time(&[&turn]));
    assert!(!is_time(&[&turn, &failed]) && is_time(&[&turn, &failed, &turn]));
    assert!(!is_time(&[&failed, &failed, &turn]) && is_time(&[&failed, &failed, &turn, &turn]));
    assert!(is_time(&[&failed, &Happens::Summary(0)]));
}
