//! The faults of one run. Each seed leaves some of them out, because one fault can hide another.

use std::fmt;
use std::time::Duration;

use adjutant_core::{Allowance, Budgets};

use crate::chance::Chance;

/// A bug that is put into the simulated store on purpose, to check that it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plant {
    /// The store ignores epochs: a worker that was suspended for too long writes under the lease of
    /// its next life.
    Epoch,
    /// The store compares the end of a lease with the clock of whoever asks.
    Clock,
    /// Processes are not told that the store has lost commits of theirs.
    Loss,
}

impl fmt::Display for Plant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Epoch => f.write_str("epoch"),
            Self::Clock => f.write_str("clock"),
            Self::Loss => f.write_str("loss"),
        }
    }
}

/// The options of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Seed of the random numbers that decide every step.
    pub seed: u64,
    /// Number of processes that share the store. `None`: the seed decides.
    pub workers: Option<usize>,
    /// The bug that the store has.
    pub plant: Option<Plant>,
    /// True if, on top of the other faults, clocks step, the store loses commits that it has
    /// confirmed, or its disk fails.
    pub disasters: bool,
}

impl Options {
    /// Returns a run of a store without bugs.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            workers: None,
            plant: None,
            disasters: false,
        }
    }
}

/// The faults of a run, and how often each happens, in 1,000 cases unless stated otherwise.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) workers: usize,
    pub(crate) conversations: usize,
    pub(crate) inputs: usize,
    /// Time until the faults end.
    pub(crate) faults: Duration,
    pub(crate) kills: bool,
    pub(crate) pauses: bool,
    /// True if processes are suspended often, and longer than their leases last.
    pub(crate) long_stops: bool,
    pub(crate) outages: bool,
    /// True if listening connections break: the store takes a live process for lost.
    pub(crate) breaks: bool,
    /// True if the store notices at once that the connection of a killed process has ended.
    pub(crate) sees_gone: bool,
    /// Answers of the store that are lost after it executed the request.
    pub(crate) lost_answers: u32,
    pub(crate) lost_news: u32,
    pub(crate) lost_words: u32,
    pub(crate) slow: u32,
    pub(crate) model_fails: u32,
    pub(crate) tool_fails: u32,
    pub(crate) cancels: u32,
    /// Inputs that are dispatched. 0: there is no dispatcher.
    pub(crate) dispatched: u32,
    /// Calls of the dispatcher that are lost, late or made twice.
    pub(crate) dispatch_fails: u32,
    pub(crate) budgets: Budgets,
    pub(crate) confirmation_expiry: Duration,
    /// True if the clocks of processes step, by hours and days.
    pub(crate) clock_steps: bool,
    /// True if a standby takes the place of the store that lacks the last commits.
    pub(crate) losses: bool,
    /// Requests that fail because of the store's disk, executed or not.
    pub(crate) disk_fails: u32,
}

impl Plan {
    pub(crate) fn draw(options: Options, chance: &mut Chance) -> Self {
        let mut some = |of_1000: u32, most: i64| match chance.happens(of_1000) {
            true => u32::try_from(chance.number(1..most + 1)).unwrap_or_default(),
            false => 0,
        };
        let lost_answers = some(600, 60);
        let (lost_news, lost_words) = (some(600, 400), some(600, 200));
        let (slow, model_fails, tool_fails) = (some(500, 60), some(500, 150), some(500, 200));
        let (cancels, dispatched, dispatch_fails) =
            (some(400, 150), some(500, 1000), some(700, 400));
        let bounded = chance.happens(400);
        let calls = |most: u64| Allowance {
            model_calls: Some(most),
            ..Allowance::default()
        };
        let own = u64::try_from(chance.number(3..30)).unwrap_or(3);
        // Drawn only if wanted, so that all other runs stay as they were.
        let disaster = options.disasters.then(|| chance.below(4));
        let losses = disaster == Some(0);
        // The ids of blocks would be other ones after the store has lost some.
        let budgets = match bounded && !losses {
            true => Budgets {
                per_day: calls(own),
                everyone_per_day: calls(own + own / 2),
                ..Budgets::default()
            },
            false => Budgets::default(),
        };
        let long_stops = chance.happens(250);
        Self {
            // With few workers, a suspended one meets its own next life.
            workers: options
                .workers
                .unwrap_or_else(|| 1 + chance.below(if long_stops { 2 } else { 4 })),
            conversations: 1 + chance.below(4),
            inputs: 1 + chance.below(4),
            faults: chance.ms(20_000..150_000),
            kills: chance.happens(650),
            pauses: chance.happens(650),
            long_stops,
            outages: chance.happens(400),
            breaks: chance.happens(300),
            sees_gone: chance.happens(500),
            lost_answers,
            lost_news,
            lost_words,
            slow,
            model_fails,
            tool_fails,
            cancels,
            dispatched,
            dispatch_fails,
            budgets,
            confirmation_expiry: chance.ms(30_000..600_000),
            losses,
            clock_steps: matches!(disaster, Some(1 | 3)),
            disk_fails: if matches!(disaster, Some(2 | 3)) {
                40
            } else {
                0
            },
        }
    }
}
