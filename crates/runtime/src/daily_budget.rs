//! Budget reservations of a process in the budgets per day.
//!
//! The store grants the process blocks of a day's budget. Steps reserve their spending from a block
//! in memory, so that most of them cost no commit; what they used is booked with the commit that
//! records their result. An idle process returns its blocks; those of a lost process expire.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adjutant_core::port::{
    Ask, Booking, BudgetStore, Drawn, GrantRequest, Granted, StoreError, Worker,
};
use adjutant_core::{Allowance, Budgets, Exceeded, Spending, UserId};
use jiff::civil::Date;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;
use uuid::Uuid;

/// Time by which a block outlives the steps that it pays for, if its process is lost: clocks
/// differ, and the last commit takes time.
const GRACE: Duration = Duration::from_secs(60);

/// A process that ran this many steps keeps its block of the shared budget while it is idle, until
/// its last heartbeat: more steps are likely, and a new block costs a commit.
const BUSY: u32 = 16;

/// The blocks of the budgets per day that one agent holds in this process.
pub(crate) struct DailyBudget {
    store: Arc<dyn BudgetStore>,
    per_day: Allowance,
    everyone_per_day: Allowance,
    /// Time in which steps may start on a block before it is renewed.
    lease: Duration,
    state: Mutex<State>,
    /// True while the store sums up old bookings at this process's request.
    is_folding: AtomicBool,
}

#[derive(Default)]
struct State {
    days: HashMap<Date, Day>,
    /// Bookings of steps whose turns broke off; written with the next commit of any turn.
    orphaned: Vec<Booking>,
    /// Number of steps since the process was last idle at a heartbeat.
    steps: u32,
}

#[derive(Default)]
struct Day {
    everyone: Account,
    users: HashMap<UserId, Account>,
}

/// The process's side of one budget of a day: the shared one, or one user's.
#[derive(Default)]
struct Account {
    /// Number of steps that are reserving, running, or not booked yet.
    open: usize,
    share: Option<Share>,
    /// Locked while the store is asked, so that concurrent steps do not ask for the same amount.
    asking: Arc<AsyncMutex<()>>,
}

/// A block that the store has granted. Amounts count from its first grant.
struct Share {
    block: Uuid,
    /// The user of the first step that was paid from it.
    user: UserId,
    epoch: i64,
    holds: Spending,
    /// Used by finished steps, or reserved for running ones.
    kept: Spending,
    /// The sum of all reservations so far, from which the next request is estimated.
    reserved_total: Spending,
    /// Steps on the block must end before this time. `None`: it was not granted yet.
    until: Option<Instant>,
}

impl Share {
    fn new(user: &UserId) -> Self {
        Self {
            block: Uuid::now_v7(),
            user: user.clone(),
            epoch: 0,
            holds: Spending::default(),
            kept: Spending::default(),
            reserved_total: Spending::default(),
            until: None,
        }
    }
}

/// The spending of a step that is about to start.
#[derive(Clone, Copy)]
pub(crate) struct StepCost<'a> {
    /// The user whose budget pays.
    pub(crate) user: &'a UserId,
    /// The day it is booked on, in UTC.
    pub(crate) day: Date,
    /// The most that it may take.
    pub(crate) most: Spending,
    /// The amount that is booked if its usage stays unknown.
    pub(crate) unknown: Spending,
    /// The longest time that it may run.
    pub(crate) time: Duration,
}

/// An error of a budget reservation.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReserveError {
    /// The step does not fit a budget.
    #[error("a budget is exceeded: {0:?}")]
    Exceeded(Exceeded),
    /// The store could not grant a block.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Exceeded> for ReserveError {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

impl ReserveError {
    /// Returns the budget that is exceeded, which ends the turn, or the store's error.
    pub(crate) fn into_exceeded(self) -> Result<Exceeded, StoreError> {
        match self {
            Self::Exceeded(exceeded) => Ok(exceeded),
            Self::Store(error) => Err(error),
        }
    }
}

impl DailyBudget {
    /// Returns reservations without blocks. `None`: no budget per day is set.
    pub(crate) fn new(
        budgets: &Budgets,
        store: Option<Arc<dyn BudgetStore>>,
        lease: Duration,
    ) -> Option<Arc<Self>> {
        let Budgets {
            per_day,
            everyone_per_day,
            ..
        } = *budgets;
        if per_day.is_unlimited() && everyone_per_day.is_unlimited() {
            return None;
        }
        let (state, is_folding) = (Mutex::default(), AtomicBool::new(false));
        Some(Arc::new(Self {
            store: store?,
            per_day,
            everyone_per_day,
            lease,
            state,
            is_folding,
        }))
    }

    /// Returns the rest of a day's shared budget, as far as it is limited. Reservations of running
    /// steps are not deducted.
    ///
    /// # Errors
    /// [`StoreError`] if the bookings cannot be read.
    pub(crate) async fn shared_budget_left(&self, day: Date) -> Result<Allowance, StoreError> {
        if self.everyone_per_day.is_unlimited() {
            return Ok(Allowance::default());
        }
        let spent = self.store.spent(None, day).await?;
        Ok(self.everyone_per_day.left_of(spent))
    }

    /// Reserves what a step may take from the blocks of this process, which are enlarged by the
    /// store if they are too small.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        worker: Worker<'_>,
        step: StepCost<'_>,
    ) -> Result<Reservation, ReserveError> {
        let mut reserved = self.open(step);
        let mut granted = Shortfall::default();
        loop {
            // A grant counts as fresh for one attempt: a later one checks its expiry again.
            let lack = match self.take(worker, step, std::mem::take(&mut granted)) {
                Ok(blocks) => {
                    reserved.set_blocks(step.most, blocks);
                    return Ok(reserved);
                }
                Err(lack) => lack,
            };
            // The user's lock before the shared one, in every task, so that no two deadlock.
            let (own, everyone) = self.asking(step, lack);
            let _own = lock(own.as_deref()).await;
            let _everyone = lock(everyone.as_deref()).await;
            // The previous holder of the locks may have been granted enough for this step too.
            let lack = match self.take(worker, step, Shortfall::default()) {
                Ok(blocks) => {
                    reserved.set_blocks(step.most, blocks);
                    return Ok(reserved);
                }
                Err(now) if now.is_within(lack) => now,
                Err(_) => continue,
            };
            let ttl = self.lease.saturating_add(step.time).saturating_add(GRACE);
            let (everyone, own) = self.ask(step, lack);
            let until = Instant::now().checked_add(ttl);
            let StepCost {
                user, day, most, ..
            } = step;
            let request = GrantRequest {
                day,
                user,
                worker,
                ttl,
                need: most,
                everyone,
                own,
            };
            match self.store.grant(request).await? {
                Granted::Exceeded(exceeded) => return Err(exceeded.into()),
                Granted::Blocks {
                    everyone,
                    own,
                    many,
                } => {
                    self.record_grant(worker, step, lack, (everyone, own), until);
                    granted = lack;
                    if many {
                        self.fold(day).await;
                    }
                }
            }
        }
    }

    /// Returns the booked spending of a user on a day.
    ///
    /// # Errors
    /// [`StoreError`] if the bookings cannot be read.
    pub(crate) async fn spent(&self, user: &UserId, day: Date) -> Result<Spending, StoreError> {
        self.store.spent(Some(user), day).await
    }

    /// Returns idle blocks to the store, and writes orphaned bookings. Called after the last
    /// heartbeat, when nothing runs any more.
    pub(crate) async fn release_idle(self: &Arc<Self>) {
        self.state().steps = 0;
        let mut spent = UnwrittenBookings::new(Some(self.clone()));
        spent.close(None);
        if !spent.bookings().is_empty() && self.store.book(spent.bookings()).await.is_ok() {
            spent.mark_written();
        }
    }

    /// Counts a step that is about to start, so that its blocks are not returned.
    fn open(
        self: &Arc<Self>,
        StepCost {
            user, day, unknown, ..
        }: StepCost<'_>,
    ) -> Reservation {
        // Before the first await: a turn that ends meanwhile would return the blocks as idle.
        let booking = empty_booking(day, user.clone());
        self.state().count(&booking);
        Reservation {
            daily_budget: self.clone(),
            amount: None,
            unknown,
            booking: Some(booking),
        }
    }

    /// Reserves what a step needs from both blocks, or nothing. `fresh`: blocks that were granted
    /// for this step just now, whose expiry needs no check.
    fn take(
        &self,
        worker: Worker<'_>,
        step: StepCost<'_>,
        fresh: Shortfall,
    ) -> Result<Blocks, Shortfall> {
        let state = &mut *self.state();
        let (days, steps) = (&mut state.days, &mut state.steps);
        let day = days.entry(step.day).or_default();
        let end = Instant::now().checked_add(step.time.saturating_add(GRACE));
        let lacks = |allowance: &Allowance, share: Option<&Share>, is_fresh: bool| {
            !allowance.is_unlimited()
                && !share.is_some_and(|share| {
                    allowance.is_covered(share.holds - share.kept, step.most)
                        && (is_fresh || (share.epoch == worker.epoch && share.until >= end))
                })
        };
        let own = day.users.entry(step.user.clone()).or_default();
        let lack = Shortfall {
            everyone: lacks(
                &self.everyone_per_day,
                day.everyone.share.as_ref(),
                fresh.everyone,
            ),
            own: lacks(&self.per_day, own.share.as_ref(), fresh.own),
        };
        if lack != Shortfall::default() {
            return Err(lack);
        }
        // Counted here, because a step that was not granted costs the process nothing.
        *steps = steps.saturating_add(1);
        let pay = |share: &mut Share| {
            share.kept = share.kept + step.most;
            share.reserved_total = share.reserved_total + step.most;
            share.block
        };
        Ok((
            day.everyone.share.as_mut().map(pay),
            own.share.as_mut().map(pay),
        ))
    }

    fn asking(&self, step: StepCost<'_>, lack: Shortfall) -> (Asking, Asking) {
        let state = &mut *self.state();
        let day = state.days.entry(step.day).or_default();
        let own = day.users.entry(step.user.clone()).or_default();
        let asking = |account: &Account, lacks: bool| lacks.then(|| account.asking.clone());
        (asking(own, lack.own), asking(&day.everyone, lack.everyone))
    }

    /// Returns the requests to the store. Until it answers, nothing more can be reserved from the
    /// blocks: the store replaces what they hold.
    fn ask(&self, step: StepCost<'_>, lack: Shortfall) -> (Option<Ask>, Option<Ask>) {
        let state = &mut *self.state();
        let day = state.days.entry(step.day).or_default();
        let own = day.users.entry(step.user.clone()).or_default();
        let ask = |account: &mut Account, allowance: Allowance| {
            let share = account.share.get_or_insert_with(|| Share::new(step.user));
            share.holds = share.kept;
            // As much as was reserved so far may come again; a new process needs at least the steps
            // of a turn.
            let wanted = share.reserved_total + step.most + step.most + step.most;
            Ask {
                block: share.block,
                allowance,
                kept: share.kept,
                wanted,
            }
        };
        let everyone = lack
            .everyone
            .then(|| ask(&mut day.everyone, self.everyone_per_day));
        (everyone, lack.own.then(|| ask(own, self.per_day)))
    }

    fn record_grant(
        &self,
        worker: Worker<'_>,
        step: StepCost<'_>,
        lack: Shortfall,
        (everyone, own): (Spending, Spending),
        until: Option<Instant>,
    ) {
        let state = &mut *self.state();
        let Some(day) = state.days.get_mut(&step.day) else {
            return;
        };
        let shares = [
            (lack.everyone, day.everyone.share.as_mut(), everyone),
            (
                lack.own,
                day.users
                    .get_mut(step.user)
                    .and_then(|own| own.share.as_mut()),
                own,
            ),
        ];
        for (_, share, holds) in shares.into_iter().filter(|(asked, ..)| *asked) {
            if let Some(share) = share {
                (share.holds, share.until, share.epoch) = (holds, until, worker.epoch);
            }
        }
    }

    async fn fold(&self, day: Date) {
        if !self.is_folding.swap(true, Ordering::AcqRel) {
            // Best effort: folding changes no sum, and the next grant asks for it again.
            let _ = self.store.fold(day).await;
            self.is_folding.store(false, Ordering::Release);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock leaves no partial update, so a poisoned lock is usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Asking = Option<Arc<AsyncMutex<()>>>;

/// The blocks of the shared and of the user's budget that pay for a step, where these are limited.
type Blocks = (Option<Uuid>, Option<Uuid>);

async fn lock(asking: Option<&AsyncMutex<()>>) -> Option<tokio::sync::MutexGuard<'_, ()>> {
    match asking {
        Some(asking) => Some(asking.lock().await),
        None => None,
    }
}

/// The blocks that are too small for a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Shortfall {
    everyone: bool,
    own: bool,
}

impl Shortfall {
    /// Returns true if all blocks that are too small here are so in `other`.
    fn is_within(self, other: Self) -> bool {
        (!self.everyone || other.everyone) && (!self.own || other.own)
    }
}

impl State {
    fn count(&mut self, booking: &Booking) {
        let day = self.days.entry(booking.day).or_default();
        day.everyone.open += 1;
        day.users.entry(booking.user.clone()).or_default().open += 1;
    }

    /// Forgets a step that has been booked, or never started.
    fn uncount(&mut self, booking: &Booking) {
        let Some(day) = self.days.get_mut(&booking.day) else {
            return;
        };
        day.everyone.open -= 1;
        if let Some(own) = day.users.get_mut(&booking.user) {
            own.open -= 1;
            if own.open == 0 && own.share.is_none() {
                day.users.remove(&booking.user);
            }
        }
        if day.everyone.open == 0 && day.everyone.share.is_none() && day.users.is_empty() {
            self.days.remove(&booking.day);
        }
    }

    /// Replaces a step's reservation in its blocks by what it used.
    fn settle(&mut self, booking: &Booking, amount: Spending) {
        let Some(day) = self.days.get_mut(&booking.day) else {
            return;
        };
        let own = day
            .users
            .get_mut(&booking.user)
            .and_then(|own| own.share.as_mut());
        for (share, drawn) in [
            (day.everyone.share.as_mut(), booking.everyone),
            (own, booking.own),
        ] {
            if let (Some(share), Some(drawn)) = (share, drawn)
                && share.block == drawn.block
            {
                share.kept = share.kept - amount + booking.used;
            }
        }
    }
}

/// The reservation of one step. Dropped, the step is booked as one whose usage is unknown.
pub(crate) struct Reservation {
    daily_budget: Arc<DailyBudget>,
    /// `None`: the step has not started.
    amount: Option<Spending>,
    unknown: Spending,
    /// `None`: the step is settled.
    booking: Option<Booking>,
}

impl Reservation {
    fn set_blocks(&mut self, amount: Spending, (everyone, own): Blocks) {
        let drawn = |block: Option<Uuid>| {
            block.map(|block| Drawn {
                block,
                closes: false,
            })
        };
        self.amount = Some(amount);
        if let Some(booking) = &mut self.booking {
            (booking.everyone, booking.own) = (drawn(everyone), drawn(own));
        }
    }

    /// Ends the step with its real usage.
    pub(crate) fn settle(mut self, used: Spending, spent: &mut UnwrittenBookings) {
        spent.bookings.extend(self.end(used));
    }

    /// Books a part of the reservation that is certain to be used, before the step ends.
    pub(crate) fn settle_part(&mut self, used: Spending, spent: &mut UnwrittenBookings) {
        let (Some(amount), Some(booking)) = (&mut self.amount, &self.booking) else {
            return;
        };
        *amount = *amount - used;
        self.unknown = self.unknown - used;
        let part = Booking {
            id: Uuid::now_v7(),
            used,
            ..booking.clone()
        };
        self.daily_budget.state().count(&part);
        spent.bookings.push(part);
    }

    fn end(&mut self, used: Spending) -> Option<Booking> {
        let mut booking = self.booking.take()?;
        let mut state = self.daily_budget.state();
        let Some(amount) = self.amount else {
            state.uncount(&booking);
            return None;
        };
        booking.used = used;
        state.settle(&booking, amount);
        Some(booking)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(booking) = self.end(self.unknown) {
            self.daily_budget.state().orphaned.push(booking);
        }
    }
}

/// Bookings that are not written yet. Dropped, they are written with the next commit of this
/// process.
pub(crate) struct UnwrittenBookings {
    /// `None`: no budget per day is set, and there are never any bookings.
    daily_budget: Option<Arc<DailyBudget>>,
    bookings: Vec<Booking>,
}

impl UnwrittenBookings {
    pub(crate) fn new(daily_budget: Option<Arc<DailyBudget>>) -> Self {
        Self {
            daily_budget,
            bookings: Vec::new(),
        }
    }

    /// Returns the bookings for the next commit.
    pub(crate) fn bookings(&self) -> &[Booking] {
        &self.bookings
    }

    /// Adds the orphaned bookings of turns that broke off.
    pub(crate) fn gather(&mut self) {
        if let Some(daily_budget) = &self.daily_budget {
            self.bookings.append(&mut daily_budget.state().orphaned);
        }
    }

    /// Prepares the last commit of a user's turn: adds orphaned bookings, and returns the blocks
    /// that are idle after it.
    pub(crate) fn gather_last(&mut self, user: &UserId) {
        self.close(Some(user));
    }

    /// Adds orphaned bookings, and marks the blocks as closed that are idle once these are written:
    /// `only` this user's, or all, and the shared one unless the process is busy.
    fn close(&mut self, only: Option<&UserId>) {
        let Some(daily_budget) = self.daily_budget.clone() else {
            return;
        };
        self.gather();
        let state = &mut *daily_budget.state();
        let is_busy = only.is_some() && state.steps >= BUSY;
        let mut closing = Vec::new();
        for (&date, day) in &mut state.days {
            let of_day = || self.bookings.iter().filter(|booking| booking.day == date);
            let mut close = |user: &UserId, own: &mut Account| {
                let is_idle = own.open == of_day().filter(|booking| booking.user == *user).count();
                if let Some(share) = own.share.take_if(|_| is_idle) {
                    closing.push((date, user.clone(), share.block, false));
                }
            };
            match only {
                Some(user) => day
                    .users
                    .get_mut(user)
                    .into_iter()
                    .for_each(|own| close(user, own)),
                None => day
                    .users
                    .iter_mut()
                    .for_each(|(user, own)| close(user, own)),
            }
            let is_idle = day.everyone.open == of_day().count();
            if let Some(share) = day.everyone.share.take_if(|_| is_idle && !is_busy) {
                closing.push((date, share.user, share.block, true));
            }
        }
        for (day, user, block, is_everyone) in closing {
            let taken = self
                .bookings
                .iter_mut()
                .filter_map(|booking| drawn(booking, is_everyone).as_mut());
            if let Some(last) = taken.filter(|drawn| drawn.block == block).last() {
                last.closes = true;
                continue;
            }
            let mut booking = empty_booking(day, user);
            *drawn(&mut booking, is_everyone) = Some(Drawn {
                block,
                closes: true,
            });
            state.count(&booking);
            self.bookings.push(booking);
        }
    }

    /// Records that the bookings are in the store.
    pub(crate) fn mark_written(&mut self) {
        if let Some(daily_budget) = &self.daily_budget {
            let mut state = daily_budget.state();
            self.bookings
                .drain(..)
                .for_each(|booking| state.uncount(&booking));
        }
    }
}

fn empty_booking(day: Date, user: UserId) -> Booking {
    Booking {
        id: Uuid::now_v7(),
        day,
        user,
        used: Spending::default(),
        everyone: None,
        own: None,
    }
}

fn drawn(booking: &mut Booking, is_everyone: bool) -> &mut Option<Drawn> {
    if is_everyone {
        &mut booking.everyone
    } else {
        &mut booking.own
    }
}

impl Drop for UnwrittenBookings {
    fn drop(&mut self) {
        if let Some(daily_budget) = &self.daily_budget
            && !self.bookings.is_empty()
        {
            daily_budget.state().orphaned.append(&mut self.bookings);
        }
    }
}

impl std::fmt::Debug for UnwrittenBookings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bookings.fmt(f)
    }
}
