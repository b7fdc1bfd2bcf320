//! Budget reservations: the most that a step may take is reserved before it starts, and what it
//! really took is booked when it ends.

use std::time::Duration;

use adjutant_core::port::Worker;
use adjutant_core::turn::{estimate_tokens, request_tokens};
use adjutant_core::{
    Budgets, Cost, Event, GenerateRequest, GenerateResponse, ModelError, PendingCall, Recorded,
    Scope, Spending, ToolCall, TurnId, UserId, limits,
};
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::Steps;
use crate::daily_budget::{Reservation, ReserveError, StepCost, UnwrittenBookings};
use crate::inner::Inner;
use crate::log::Log;
use crate::spending::{SpendingLimits, max_cost};

/// The reservation of a step that has started. It is booked by one of its `settle` methods; dropped
/// without, as a step whose answer was not awaited.
pub(crate) struct StepReservation {
    /// `None`: no budget per day is set.
    reserved: Option<Reservation>,
    limit: StepLimit,
}

/// The spending that is reserved for a step.
#[derive(Clone, Copy, Default)]
pub(crate) struct StepLimit {
    /// The most that the step may take.
    pub(crate) most: Spending,
    /// The amount that is booked if the step's usage stays unknown: its answer was not awaited.
    unknown: Spending,
}

impl StepReservation {
    /// A reservation of nothing, for steps that no budget limits.
    fn unlimited() -> Self {
        Self {
            reserved: None,
            limit: StepLimit::default(),
        }
    }

    /// Books a model call that was answered or failed; written with the event that records it.
    pub(crate) fn settle_reply(
        self,
        log: &mut Log,
        reply: &Result<GenerateResponse, ModelError>,
        ms: u64,
    ) {
        let used = self.used(reply, ms);
        self.settle(&mut log.bookings, used);
    }

    /// Books a model call that belongs to no turn; written with the next commit of this process.
    pub(crate) fn settle_outside_turns(
        self,
        inner: &Inner,
        reply: &Result<GenerateResponse, ModelError>,
        ms: u64,
    ) {
        let used = self.used(reply, ms);
        let mut bookings = UnwrittenBookings::new(inner.spending.daily_budget.clone());
        self.settle(&mut bookings, used);
    }

    /// Returns the spending of a model call that was answered or failed. What a provider does not
    /// report counts as the most that was reserved.
    fn used(&self, reply: &Result<GenerateResponse, ModelError>, ms: u64) -> Spending {
        let StepLimit { most, unknown } = self.limit;
        let used = match reply {
            Ok(reply) => Spending {
                tokens: reply.usage.total().unwrap_or(most.tokens),
                cost: reply.cost.unwrap_or(most.cost),
                ..most
            },
            // The provider may have generated, and charges for it.
            Err(ModelError::Timeout { .. } | ModelError::Truncated { .. }) => unknown,
            // The provider refused the request or could not be reached: it counts as a call, and
            // nothing was generated.
            Err(_) => Spending {
                model_calls: most.model_calls,
                ..Spending::default()
            },
        };
        Spending { ms, ..used }
    }

    /// Books a model call whose answer was not awaited.
    pub(super) fn settle_dropped(self, log: &mut Log, ms: u64) {
        let used = Spending {
            ms,
            ..self.limit.unknown
        };
        self.settle(&mut log.bookings, used);
    }

    /// Books the number of tool calls at once, to be written with their intents: they count even if
    /// this process is lost. Their time stays reserved.
    fn settle_call_count(&mut self, log: &mut Log) {
        let calls = Spending {
            tool_calls: self.limit.most.tool_calls,
            ..Spending::default()
        };
        if let Some(reserved) = &mut self.reserved {
            reserved.settle_part(calls, &mut log.bookings);
        }
        self.limit.most = self.limit.most - calls;
    }

    /// Books the time that tool calls took.
    pub(super) fn settle_tools(self, log: &mut Log, ms: u64) {
        let used = Spending {
            ms,
            ..self.limit.most
        };
        self.settle(&mut log.bookings, used);
    }

    fn settle(self, bookings: &mut UnwrittenBookings, used: Spending) {
        if let Some(reserved) = self.reserved {
            reserved.settle(used, bookings);
        }
    }
}

/// Time reserved for a model call without a time limit. The time it really took is booked when it
/// ends.
const UNBOUNDED: Duration = Duration::from_secs(10 * 60);

impl Steps<'_> {
    /// Reserves what a model call may take at most: its request as counted here, and all of the
    /// output it may have.
    pub(super) async fn reserve_for_model(
        &self,
        request: &GenerateRequest,
        time: Option<Duration>,
    ) -> Result<StepReservation, ReserveError> {
        let who = (&self.key.user, self.lease.worker());
        let spent = self.spent_if_limited().await;
        self.inner
            .reserve_for_request(who, Some(spent), request, time)
            .await
    }

    /// Returns the spending of the turn so far.
    pub(super) async fn spent(&self) -> Spending {
        let log = self.log.lock().await;
        spent_in_turn(self.inner, log.conversation().recent(), self.turn)
    }

    /// Returns the spending of the turn so far, which is not summed up if no budget needs it.
    async fn spent_if_limited(&self) -> Spending {
        match self.inner.spending.budgets.per_turn.is_unlimited() {
            true => Spending::default(),
            false => self.spent().await,
        }
    }

    /// Reserves what the calls of one round may take: all of them run, or none. A round whose first
    /// call has a verdict was reserved before a crash, and continues.
    pub(super) async fn reserve_for_tools(
        &self,
        calls: &[ToolCall],
    ) -> Result<StepReservation, ReserveError> {
        let Some(first) = calls.first() else {
            return Ok(StepReservation::unlimited());
        };
        if !self.inner.spending.bounds_tools() || self.recorded_verdict(&first.id).await.is_some() {
            return Ok(StepReservation::unlimited());
        }
        let number = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        let names = calls.iter().map(|call| call.name.as_str());
        let mut reservation = self.reserve_tool_time(number, names).await?;
        reservation.settle_call_count(&mut *self.log.lock().await);
        Ok(reservation)
    }

    /// Reserves the time of calls that a person approved. Their number was booked when the model
    /// made them.
    pub(super) async fn reserve_for_answered(
        &self,
        calls: &[&PendingCall],
    ) -> Result<StepReservation, ReserveError> {
        if calls.is_empty() || !self.inner.spending.bounds_tools() {
            return Ok(StepReservation::unlimited());
        }
        self.reserve_tool_time(0, calls.iter().map(|call| call.tool.as_str()))
            .await
    }

    /// Reserves a number of calls and the timeouts of their tools, one after the other.
    async fn reserve_tool_time<'t>(
        &self,
        calls: u32,
        tools: impl Iterator<Item = &'t str>,
    ) -> Result<StepReservation, ReserveError> {
        let timeout = |name: &str| {
            let default = self.inner.limits.tool_timeout;
            self.tools
                .gate()
                .registry
                .get(name)
                .map_or(default, |tool| {
                    tool.timeout_with_progress(tool.timeout().unwrap_or(default))
                })
        };
        let time = tools
            .map(timeout)
            .fold(Duration::ZERO, Duration::saturating_add);
        let most = Spending {
            tool_calls: calls.into(),
            ms: millis(time),
            ..Spending::default()
        };
        let who = (&self.key.user, self.lease.worker());
        let limit = StepLimit {
            most,
            unknown: most,
        };
        let spent = self.spent_if_limited().await;
        self.inner.reserve(who, spent, limit, time).await
    }
}

impl Inner {
    /// Reserves what a model call may take, within a turn or beside the conversations. `spent`: the
    /// spending of its turn so far, if it has one.
    pub(crate) async fn reserve_for_request(
        &self,
        who: (&UserId, Worker<'_>),
        spent: Option<Spending>,
        request: &GenerateRequest,
        time: Option<Duration>,
    ) -> Result<StepReservation, ReserveError> {
        if self.spending.budgets == Budgets::default() {
            return Ok(StepReservation::unlimited());
        }
        let time = time.unwrap_or(UNBOUNDED);
        let limit = self.request_limit(request, time);
        self.reserve(who, spent.unwrap_or_default(), limit, time)
            .await
    }

    /// Returns the most that a model call takes, and what is booked if its usage stays unknown: the
    /// visible output without thinking.
    pub(super) fn request_limit(&self, request: &GenerateRequest, time: Duration) -> StepLimit {
        let capabilities = self.model.capabilities();
        let input = u64::from(input_tokens(self, request).min(capabilities.context_window));
        let visible = request
            .config
            .max_tokens
            .map_or(limits::OUTPUT_TOKENS_MAX, |max| max.get());
        let all = u64::from(visible.saturating_add(capabilities.thinking_allowance));
        let spending = |output: u64, ms| Spending {
            tokens: input.saturating_add(output),
            model_calls: 1,
            tool_calls: 0,
            ms,
            cost: self.max_cost(input, output),
        };
        StepLimit {
            most: spending(all, millis(time)),
            unknown: spending(u64::from(visible), 0),
        }
    }

    async fn reserve(
        &self,
        (user, worker): (&UserId, Worker<'_>),
        spent: Spending,
        limit: StepLimit,
        time: Duration,
    ) -> Result<StepReservation, ReserveError> {
        let SpendingLimits {
            budgets,
            daily_budget,
        } = &self.spending;
        let StepLimit { most, unknown } = limit;
        if let Some(exceeded) = budgets.per_turn.exceeded(Scope::Turn, spent, most) {
            return Err(exceeded.into());
        }
        let reserved = match daily_budget {
            None => None,
            Some(daily_budget) => {
                let step = StepCost {
                    user,
                    day: self.today(),
                    most,
                    unknown,
                    time,
                };
                Some(daily_budget.reserve(worker, step).await?)
            }
        };
        Ok(StepReservation { reserved, limit })
    }

    /// Returns the day that spending is booked on, in UTC.
    fn today(&self) -> Date {
        self.now().to_zoned(TimeZone::UTC).date()
    }

    /// Returns the most that a call costs today: [`max_cost`], or nothing where no budget limits
    /// money or the model is local.
    fn max_cost(&self, input: u64, output: u64) -> Cost {
        if !self.spending.budgets.bound_money() || self.model.capabilities().local {
            return Cost::default();
        }
        let most = max_cost(&self.prices, self.model.id(), input, output, self.today());
        most.unwrap_or(Cost::from_nano_usd(u64::MAX))
    }
}

/// Returns an upper bound of a request's tokens: counted by the model's own tokenizer, else two
/// bytes per token, where four are usual.
fn input_tokens(inner: &Inner, request: &GenerateRequest) -> u32 {
    let count = |text: &str| {
        let most = || u32::try_from(text.len().div_ceil(2)).unwrap_or(u32::MAX);
        inner.model.count_tokens(text).unwrap_or_else(most)
    };
    request_tokens(request, &count)
}

/// Returns the spending of a turn according to its events. Tokens that a provider did not report
/// are estimated from the answer's text.
fn spent_in_turn(inner: &Inner, events: &[Recorded], turn: TurnId) -> Spending {
    let model_call = |tokens: u64, cost: Option<Cost>, ms| Spending {
        tokens,
        model_calls: 1,
        ms,
        cost: cost.unwrap_or_else(|| inner.max_cost(0, tokens)),
        ..Spending::default()
    };
    let of_event = |event: &Event| match event {
        Event::ModelReplied {
            reply: Ok(reply),
            ms,
            ..
        } => {
            let estimated = || {
                serde_json::to_string(&reply.parts)
                    .map_or(0, |text| u64::from(estimate_tokens(&text)))
            };
            let tokens = reply.usage.total().unwrap_or_else(estimated);
            model_call(tokens, reply.cost, *ms)
        }
        Event::ConversationSummarized {
            usage, cost, ms, ..
        }
        | Event::SummaryFailed {
            asked: true,
            usage,
            cost,
            ms,
            ..
        } => model_call(usage.total().unwrap_or_default(), *cost, *ms),
        Event::ModelReplied { ms, .. } => model_call(0, Some(Cost::default()), *ms),
        Event::CallChecked { .. } => Spending {
            tool_calls: 1,
            ..Spending::default()
        },
        Event::CallFinished { ms, .. } => Spending {
            ms: *ms,
            ..Spending::default()
        },
        _ => Spending::default(),
    };
    let of_turn = events
        .iter()
        .filter(|recorded| recorded.event.turn() == Some(turn));
    of_turn.map(|recorded| of_event(&recorded.event)).sum()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
