//! An index over the events of one turn: by model call and by tool call.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::call_end::CallEnd;
use crate::confirmation::{PendingCall, Verdict};
use crate::event::{EditedCall, Event, GateVerdict, Recorded, ResolvedBy};
use crate::id::{CallId, TurnId};
use crate::tool::{Arguments, Effect, ToolResult};
use crate::tool_choice::ToolChoice;

use super::weight::event_weight;

/// The last turn of a conversation with its events, indexed by the number of model calls and the id
/// of tool calls.
#[derive(Debug, Clone, PartialEq)]
pub struct CurrentTurn {
    turn: TurnId,
    events: Vec<Recorded>,
    // Places in `events`: a worker looks each step up before it takes it, which must not search the
    // turn.
    replies: HashMap<u32, usize>,
    calls: HashMap<CallId, Places>,
    summaries: Vec<usize>,
    parked: Vec<usize>,
    last_reply: Option<usize>,
    is_stopped: bool,
    weight: usize,
}

/// Indices of the events of one call.
#[derive(Debug, Clone, Default, PartialEq)]
struct Places {
    checked: Option<usize>,
    started: Vec<usize>,
    ended: Option<usize>,
    in_doubt: Vec<usize>,
    edited: Option<usize>,
    answered: Option<usize>,
    resolved: Vec<usize>,
}

impl CurrentTurn {
    pub(crate) fn new(turn: TurnId) -> Self {
        Self {
            turn,
            events: Vec::new(),
            replies: HashMap::new(),
            calls: HashMap::new(),
            summaries: Vec::new(),
            parked: Vec::new(),
            last_reply: None,
            is_stopped: false,
            weight: 0,
        }
    }

    /// Returns the message that the turn answers; empty if it answers a call.
    #[must_use]
    pub fn message(&self) -> &str {
        match self.started() {
            Some(Event::TurnStarted { message, .. }) => message,
            _ => "",
        }
    }

    pub(crate) fn push(&mut self, recorded: Recorded) {
        let at = self.events.len();
        // Events of the conversation itself may stand between those of the turn.
        if recorded.event.turn() == Some(self.turn) {
            self.index(at, &recorded.event);
        }
        self.weight += event_weight(&recorded.event);
        self.events.push(recorded);
    }

    /// Returns the approximate size of the events in memory, in bytes.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }

    fn index(&mut self, at: usize, event: &Event) {
        match event {
            Event::ModelReplied { number, .. } => {
                self.replies.entry(*number).or_insert(at);
                self.last_reply = Some(at);
            }
            Event::ConversationSummarized { .. } | Event::SummaryFailed { .. } => {
                self.summaries.push(at)
            }
            Event::TurnParked { .. } => self.parked.push(at),
            Event::TurnStopped { .. } => self.is_stopped = true,
            Event::CallChecked { call, .. } => {
                self.places(call).checked.get_or_insert(at);
            }
            Event::CallStarted { call, .. } => self.places(call).started.push(at),
            Event::CallFinished { call, .. } => {
                self.places(call).ended.get_or_insert(at);
            }
            Event::CallInDoubt { call, doubt, .. } => {
                let places = self.places(call);
                match doubt {
                    Some(_) => places.in_doubt.push(at),
                    // An older journal, in which no person was asked: the doubt stays open.
                    None => places.ended = places.ended.or(Some(at)),
                }
            }
            // The last one counts: a person may edit a call again while it waits.
            Event::CallEdited { pending, .. } => self.places(&pending.call_id).edited = Some(at),
            Event::CallAnswered { call, .. } => {
                self.places(call).answered.get_or_insert(at);
            }
            Event::DoubtResolved { call, .. } => self.places(call).resolved.push(at),
            _ => {}
        }
    }

    fn places(&mut self, call: &CallId) -> &mut Places {
        self.calls.entry(call.clone()).or_default()
    }

    fn event(&self, at: usize) -> Option<&Event> {
        self.events.get(at).map(|recorded| &*recorded.event)
    }

    fn of_call(&self, call: &CallId) -> Option<&Places> {
        self.calls.get(call)
    }

    /// Returns the id of the turn.
    #[must_use]
    pub fn id(&self) -> TurnId {
        self.turn
    }

    /// Returns the turn's events in order from [`Event::TurnStarted`] on, and events of the
    /// conversation between them.
    #[must_use]
    pub fn events(&self) -> &[Recorded] {
        &self.events
    }

    /// Returns the event with which the turn began.
    #[must_use]
    pub fn started(&self) -> Option<&Event> {
        self.event(0)
    }

    /// Returns the [`Event::ModelReplied`] of a model call by its number from 1.
    #[must_use]
    pub fn reply(&self, number: u32) -> Option<&Event> {
        self.event(*self.replies.get(&number)?)
    }

    /// Returns the events before the model's last reply, or `None` if it has not replied.
    #[must_use]
    pub fn before_last_reply(&self) -> Option<&[Recorded]> {
        self.events.get(..self.last_reply?)
    }

    /// Returns the events about summaries, in order.
    pub fn summaries(&self) -> impl Iterator<Item = &Event> {
        self.summaries.iter().filter_map(|at| self.event(*at))
    }

    /// Returns the [`Event::TurnParked`] events with their sequence numbers, in order.
    pub fn parked(&self) -> impl Iterator<Item = &Recorded> {
        self.parked.iter().filter_map(|at| self.events.get(*at))
    }

    /// Returns true if the turn was stopped while calls with an effect were under way.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Returns the calls with an effect that have begun and have no end yet, in the order of their
    /// last starts. Those that a person is asked about are not among them.
    #[must_use]
    pub fn under_way(&self) -> Vec<&Event> {
        let mut started: Vec<usize> = self
            .calls
            .values()
            .filter(|places| {
                places.ended.is_none() && places.in_doubt.len() == places.resolved.len()
            })
            .filter_map(|places| places.started.last().copied())
            .collect();
        started.sort_unstable();
        let events = started.into_iter().filter_map(|at| self.event(at));
        events
            .filter(|event| {
                !matches!(event, Event::CallStarted { effect, .. } if *effect == Effect::None)
            })
            .collect()
    }

    /// Returns the gate's verdict on a call.
    #[must_use]
    pub fn verdict(&self, call: &CallId) -> Option<&GateVerdict> {
        match self.event(self.of_call(call)?.checked?)? {
            Event::CallChecked { verdict, .. } => Some(verdict),
            _ => None,
        }
    }

    /// Returns the note about corrections of a call's arguments, if there were any.
    #[must_use]
    pub fn corrections(&self, call: &CallId) -> Option<&str> {
        match self.event(self.of_call(call)?.checked?)? {
            Event::CallChecked { corrections, .. } => corrections.as_deref(),
            _ => None,
        }
    }

    /// Returns the number of times a call was started.
    #[must_use]
    pub fn times_started(&self, call: &CallId) -> u32 {
        let times = self.of_call(call).map_or(0, |places| places.started.len());
        u32::try_from(times).unwrap_or(u32::MAX)
    }

    /// Returns the time at which a call was last started.
    #[must_use]
    pub fn last_started(&self, call: &CallId) -> Option<Timestamp> {
        let at = *self.of_call(call)?.started.last()?;
        self.events.get(at).map(|recorded| recorded.at)
    }

    /// Returns the effect class that the starts of a call were recorded with: [`Effect::Once`] if
    /// at least one of them was, whatever the tool declares later. `None`: it was not started.
    #[must_use]
    pub fn effect(&self, call: &CallId) -> Option<Effect> {
        let effect = |at: &usize| match self.event(*at) {
            Some(Event::CallStarted { effect, .. }) => Some(*effect),
            _ => None,
        };
        let mut effects = self.of_call(call)?.started.iter().filter_map(effect);
        let first = effects.next()?;
        // A tool that was declared repeatable later does not make an earlier start harmless.
        Some(if effects.any(|effect| effect == Effect::Once) {
            Effect::Once
        } else {
            first
        })
    }

    /// Returns the first doubt about a call after its start number `seen`, resolved or not.
    #[must_use]
    pub fn doubt_after(&self, call: &CallId, seen: u32) -> Option<&PendingCall> {
        self.of_call(call)?
            .in_doubt
            .iter()
            .find_map(|at| match self.event(*at)? {
                Event::CallInDoubt {
                    doubt: Some(pending),
                    ..
                } => pending
                    .doubt
                    .as_ref()
                    .is_some_and(|doubt| doubt.attempt > seen)
                    .then_some(pending),
                _ => None,
            })
    }

    /// Returns the last resolution of a call in doubt: the number of the start, the source, and the
    /// verdict.
    #[must_use]
    pub fn resolution(&self, call: &CallId) -> Option<(u32, ResolvedBy, Verdict)> {
        self.resolutions(call).last()
    }

    /// Returns true if the doubt about one start of a call is resolved.
    #[must_use]
    pub fn is_resolved(&self, call: &CallId, attempt: u32) -> bool {
        self.resolutions(call)
            .any(|(resolved, ..)| resolved == attempt)
    }

    fn resolutions(&self, call: &CallId) -> impl Iterator<Item = (u32, ResolvedBy, Verdict)> {
        let places = self
            .of_call(call)
            .map_or(&[][..], |places| &places.resolved);
        places.iter().filter_map(|at| match self.event(*at)? {
            Event::DoubtResolved {
                attempt,
                by,
                verdict,
                ..
            } => Some((*attempt, *by, *verdict)),
            _ => None,
        })
    }

    /// Returns the pending call with the arguments that a person entered, if they did.
    #[must_use]
    pub fn edited(&self, call: &CallId) -> Option<&PendingCall> {
        match self.event(self.of_call(call)?.edited?)? {
            Event::CallEdited { pending, .. } => Some(pending),
            _ => None,
        }
    }

    /// Returns tool and arguments of each call that was interrupted and may have had its effect.
    #[must_use]
    pub fn interrupted(&self) -> Vec<(String, Arguments)> {
        let ends = self.calls.keys().filter_map(|call| {
            // Of the end and not of the start: a call that ended well does not count.
            let arguments = self.end(call)?.interrupted()?.clone();
            let at = *self.of_call(call)?.started.last()?;
            let Event::CallStarted { tool, .. } = self.event(at)? else {
                return None;
            };
            Some((tool.clone(), arguments))
        });
        ends.collect()
    }

    /// Returns the answer to a call that waited for confirmation, with edited arguments.
    /// `Some(None)`: it expired.
    #[must_use]
    pub fn answer(&self, call: &CallId) -> Option<Option<(Verdict, Option<&EditedCall>)>> {
        match self.event(self.of_call(call)?.answered?)? {
            Event::CallAnswered {
                verdict, edited, ..
            } => Some(verdict.map(|verdict| (verdict, edited.as_ref()))),
            _ => None,
        }
    }

    /// Returns the tool choice that came with the last result of these calls, or `None` if none
    /// came.
    #[must_use]
    pub fn choice_after(&self, pending: &[PendingCall]) -> Option<&ToolChoice> {
        let answered = |shown: &PendingCall| self.of_call(&shown.call_id)?.answered;
        let choice = |at: usize| match self.event(at)? {
            Event::CallAnswered {
                verdict: Some(Verdict::Provided),
                choice,
                ..
            } => Some((at, choice)),
            _ => None,
        };
        pending
            .iter()
            .filter_map(answered)
            .filter_map(choice)
            // Results may arrive in any order; the choice that came last counts.
            .max_by_key(|(at, _)| *at)
            .map(|(_, choice)| choice)
    }

    /// Returns the end of a call that was started, or `None` if it has none yet.
    #[must_use]
    pub fn end(&self, call: &CallId) -> Option<CallEnd> {
        match self.event(self.of_call(call)?.ended?)? {
            Event::CallFinished {
                arguments,
                result,
                summary,
                ..
            } => {
                let arguments = arguments.clone();
                Some(match self.resolution(call) {
                    Some((_, ResolvedBy::Person | ResolvedBy::Expiry, Verdict::Leave)) => {
                        CallEnd::InDoubt { arguments }
                    }
                    Some((_, ResolvedBy::Person, Verdict::Done)) => {
                        CallEnd::TakenAsDone { arguments }
                    }
                    Some(_) | None => CallEnd::Executed {
                        arguments,
                        result: result.clone(),
                        summary: summary.clone(),
                    },
                })
            }
            Event::CallInDoubt { arguments, .. } => Some(CallEnd::InDoubt {
                arguments: arguments.clone(),
            }),
            _ => None,
        }
    }

    /// Returns the result that a call is recorded to have ended with.
    pub(crate) fn result(&self, call: &CallId) -> Option<&ToolResult> {
        match self.event(self.of_call(call)?.ended?)? {
            Event::CallFinished { result, .. } => Some(result),
            _ => None,
        }
    }

    /// Returns the tool and arguments that a call ran with, or `None` if it has not run in this
    /// turn.
    #[must_use]
    pub fn ran(&self, call: &CallId) -> Option<(&str, &Arguments)> {
        match self.event(self.of_call(call)?.ended?)? {
            Event::CallFinished {
                tool, arguments, ..
            } => Some((tool, arguments)),
            _ => None,
        }
    }
}
