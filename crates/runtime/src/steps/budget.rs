//! What a step may spend: set aside before it begins, booked as what it really took when it ends.

use std::time::Duration;

use adjutant_core::port::Worker;
use adjutant_core::turn::{estimate_tokens, request_tokens};
use adjutant_core::{
    Budgets, Cost, Event, Exceeded, GenerateRequest, GenerateResponse, ModelError, PendingCall,
    Recorded, Scope, Spending, ToolCall, TurnId, UserId, limits,
};
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::Steps;
use crate::RunError;
use crate::inner::Inner;
use crate::log::Log;
use crate::purse::{Reserved, Spent, StepCost};
use crate::spending::{SpendingLimits, most_it_costs};

/// What was set aside for a step that has begun.
pub(crate) struct SetAside {
    /// `None`: no day is bounded.
    reserved: Option<Reserved>,
    /// The most it may take.
    most: Spending,
    /// What is booked if nobody knows what it took: its answer was not waited for.
    unknown: Spending,
}

impl SetAside {
    /// Books a model call that was answered or failed, with the event that says so.
    pub(crate) fn settle_reply(
        self,
        log: &mut Log,
        reply: &Result<GenerateResponse, ModelError>,
        ms: u64,
    ) {
        let used = self.used(reply, ms);
        self.settle(log, used);
    }

    /// Books a model call beside the conversations: the next commit of this process writes it.
    pub(crate) fn settle_beside(
        self,
        inner: &Inner,
        reply: &Result<GenerateResponse, ModelError>,
        ms: u64,
    ) {
        let used = self.used(reply, ms);
        if let Some(reserved) = self.reserved {
            reserved.settle(used, &mut Spent::new(inner.spending.purse.clone()));
        }
    }

    /// Returns what a model call took that was answered or failed. What an answer does not report
    /// is the most that was set aside.
    fn used(&self, reply: &Result<GenerateResponse, ModelError>, ms: u64) -> Spending {
        let used = match reply {
            Ok(reply) => Spending {
                tokens: reply.usage.total().unwrap_or(self.most.tokens),
                cost: reply.cost.unwrap_or(self.most.cost),
                ..self.most
            },
            Err(ModelError::Timeout { .. } | ModelError::Truncated { .. }) => self.unknown,
            Err(_) => Spending {
                model_calls: self.most.model_calls,
                ..Spending::default()
            },
        };
        Spending { ms, ..used }
    }

    /// Books a model call whose answer was not waited for.
    pub(super) fn settle_dropped(self, log: &mut Log, ms: u64) {
        let used = Spending { ms, ..self.unknown };
        self.settle(log, used);
    }

    /// Books that calls of tools begin, with their intents. The time they take is set aside on.
    fn settle_calls(&mut self, log: &mut Log) {
        let calls = Spending {
            tool_calls: self.most.tool_calls,
            ..Spending::default()
        };
        if let Some(reserved) = &mut self.reserved {
            reserved.settle_part(calls, &mut log.spent);
        }
        self.most = self.most - calls;
    }

    /// Books the time of calls of tools.
    pub(super) fn settle_tools(self, log: &mut Log, ms: u64) {
        let used = Spending { ms, ..self.most };
        self.settle(log, used);
    }

    fn settle(self, log: &mut Log, used: Spending) {
        if let Some(reserved) = self.reserved {
            reserved.settle(used, &mut log.spent);
        }
    }
}

/// Time reserved for a model call without a bound. The time it really took is booked when it ends.
const UNBOUNDED: Duration = Duration::from_secs(10 * 60);

impl Steps<'_> {
    /// Sets aside what a model call may take at most: its request as it is counted here, and all of
    /// the output it may have. `Err`: it does not fit.
    pub(super) async fn set_aside_for_model(
        &self,
        request: &GenerateRequest,
        time: Option<Duration>,
    ) -> Result<Result<SetAside, Exceeded>, RunError> {
        if self.inner.spending.budgets == Budgets::default() {
            return Ok(Ok(SetAside::nothing()));
        }
        let time = time.unwrap_or(UNBOUNDED);
        let (most, unknown) = self.inner.most_of(request, time);
        self.set_aside(most, unknown, time).await
    }

    /// What the turn has spent so far.
    pub(super) async fn spent(&self) -> Spending {
        spent(
            self.inner,
            self.log.lock().await.conversation().recent(),
            self.turn,
        )
    }

    /// Sets aside what the calls of one answer may take: all of them begin, or none. Once the gate
    /// has looked at one of them they have begun, and go on after a crash.
    pub(super) async fn set_aside_for_tools(
        &self,
        calls: &[ToolCall],
    ) -> Result<Result<SetAside, Exceeded>, RunError> {
        let Some(first) = calls.first() else {
            return Ok(Ok(SetAside::nothing()));
        };
        if !self.inner.spending.bounds_tools() || self.recorded_verdict(&first.id).await.is_some() {
            return Ok(Ok(SetAside::nothing()));
        }
        let number = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        let time = self.time_of(calls.iter().map(|call| call.name.as_str()));
        let most = Spending {
            tool_calls: number.into(),
            ms: millis(time),
            ..Spending::default()
        };
        let mut set_aside = self.set_aside(most, most, time).await?;
        if let Ok(set_aside) = &mut set_aside {
            set_aside.settle_calls(&mut *self.log.lock().await);
        }
        Ok(set_aside)
    }

    /// Sets aside the time of calls that a person let run. That they are calls was counted when the
    /// model asked for them.
    pub(super) async fn set_aside_for_answered(
        &self,
        calls: &[&PendingCall],
    ) -> Result<Result<SetAside, Exceeded>, RunError> {
        if calls.is_empty() || !self.inner.spending.bounds_tools() {
            return Ok(Ok(SetAside::nothing()));
        }
        let time = self.time_of(calls.iter().map(|call| call.tool.as_str()));
        let most = Spending {
            ms: millis(time),
            ..Spending::default()
        };
        self.set_aside(most, most, time).await
    }

    /// How long these tools may take, one after the other.
    fn time_of<'t>(&self, tools: impl Iterator<Item = &'t str>) -> Duration {
        let time = |name: &str| {
            let own = self
                .tools
                .gate()
                .registry
                .get(name)
                .and_then(|tool| tool.timeout());
            own.unwrap_or(self.inner.limits.tool_timeout)
        };
        tools
            .map(time)
            .fold(Duration::ZERO, Duration::saturating_add)
    }

    async fn set_aside(
        &self,
        most: Spending,
        unknown: Spending,
        time: Duration,
    ) -> Result<Result<SetAside, Exceeded>, RunError> {
        let spent = match self.inner.spending.budgets.per_turn.is_unlimited() {
            true => Spending::default(),
            false => self.spent().await,
        };
        self.inner
            .set_aside(
                (&self.key.user, self.hold.worker()),
                spent,
                (most, unknown),
                time,
            )
            .await
    }
}

impl SetAside {
    fn nothing() -> Self {
        Self {
            reserved: None,
            most: Spending::default(),
            unknown: Spending::default(),
        }
    }
}

impl Inner {
    /// Sets aside what the model call may take that puts old turns into few words. `spent`: what
    /// its turn has spent.
    pub(crate) async fn set_aside_for_summary(
        &self,
        who: (&UserId, Worker<'_>),
        spent: Option<Spending>,
        request: &GenerateRequest,
    ) -> Result<Result<SetAside, Exceeded>, RunError> {
        if self.spending.budgets == Budgets::default() {
            return Ok(Ok(SetAside::nothing()));
        }
        let time = self.summary_time().unwrap_or(UNBOUNDED);
        let most = self.most_of(request, time);
        self.set_aside(who, spent.unwrap_or_default(), most, time)
            .await
    }

    /// Sets aside what a model call beside the conversations may take.
    pub(crate) async fn set_aside_beside(
        &self,
        who: (&UserId, Worker<'_>),
        request: &GenerateRequest,
        time: Duration,
    ) -> Result<Result<SetAside, Exceeded>, RunError> {
        if self.spending.budgets == Budgets::default() {
            return Ok(Ok(SetAside::nothing()));
        }
        self.set_aside(who, Spending::default(), self.most_of(request, time), time)
            .await
    }

    /// The most that a model call takes, and what is booked if nobody knows what it took.
    pub(super) fn most_of(
        &self,
        request: &GenerateRequest,
        time: Duration,
    ) -> (Spending, Spending) {
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
            cost: self.most_it_costs(input, output),
        };
        (spending(all, millis(time)), spending(u64::from(visible), 0))
    }

    async fn set_aside(
        &self,
        (user, worker): (&UserId, Worker<'_>),
        spent: Spending,
        (most, unknown): (Spending, Spending),
        time: Duration,
    ) -> Result<Result<SetAside, Exceeded>, RunError> {
        let SpendingLimits { budgets, purse } = &self.spending;
        if let Some(exceeded) = budgets.per_turn.exceeded(Scope::Turn, spent, most) {
            return Ok(Err(exceeded));
        }
        let Some(purse) = purse else {
            return Ok(Ok(SetAside {
                reserved: None,
                most,
                unknown,
            }));
        };
        let step = StepCost {
            user,
            day: self.today(),
            most,
            unknown,
            time,
        };
        let reserved = purse.reserve(worker, step).await?;
        Ok(reserved.map(|reserved| SetAside {
            reserved: Some(reserved),
            most,
            unknown,
        }))
    }

    /// The day that spending counts for.
    fn today(&self) -> Date {
        self.now().to_zoned(TimeZone::UTC).date()
    }

    /// [`most_it_costs`] of a call today. Nothing, where no money is bounded or nothing is paid.
    fn most_it_costs(&self, input: u64, output: u64) -> Cost {
        if !self.spending.budgets.bound_money() || self.model.capabilities().local {
            return Cost::default();
        }
        let most = most_it_costs(&self.prices, self.model.id(), (input, output), self.today());
        most.unwrap_or(Cost::from_nano_usd(u64::MAX))
    }
}

/// The tokens of a request, by the model's own tokenizer, else on the safe side: two bytes a token,
/// where four are usual.
fn input_tokens(inner: &Inner, request: &GenerateRequest) -> u32 {
    let count = |text: &str| {
        let most = || u32::try_from(text.len().div_ceil(2)).unwrap_or(u32::MAX);
        inner.model.count_tokens(text).unwrap_or_else(most)
    };
    request_tokens(request, &count)
}

/// What a turn has spent, as its events say. Where a provider did not count, what it said is
/// estimated.
fn spent(inner: &Inner, events: &[Recorded], turn: TurnId) -> Spending {
    let of_event = |event: &Event| match event {
        Event::ModelReplied {
            reply: Ok(reply),
            ms,
            ..
        } => {
            let said = || {
                serde_json::to_string(&reply.parts)
                    .map_or(0, |text| u64::from(estimate_tokens(&text)))
            };
            let tokens = reply.usage.total().unwrap_or_else(said);
            let cost = reply.cost.unwrap_or_else(|| inner.most_it_costs(0, tokens));
            Spending {
                tokens,
                model_calls: 1,
                ms: *ms,
                cost,
                ..Spending::default()
            }
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
        } => {
            let tokens = usage.total().unwrap_or_default();
            let cost = cost.unwrap_or_else(|| inner.most_it_costs(0, tokens));
            Spending {
                tokens,
                model_calls: 1,
                ms: *ms,
                cost,
                ..Spending::default()
            }
        }
        Event::ModelReplied { ms, .. } => Spending {
            model_calls: 1,
            ms: *ms,
            ..Spending::default()
        },
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
