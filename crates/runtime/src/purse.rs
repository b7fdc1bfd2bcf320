//! The process's shares in the budgets of the day: steps are paid from them without asking again.

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

/// Time by which a block outlives the steps it is for, should its process die: clocks and commits
/// take their time.
const GRACE: Duration = Duration::from_secs(60);

/// So many steps make a busy process: it keeps its block of everybody's though nothing runs, until
/// its last sign of life. There will be more, and asking costs a commit.
const BUSY: u32 = 16;

/// The shares of one agent in the budgets of the day.
pub(crate) struct Purse {
    store: Arc<dyn BudgetStore>,
    per_day: Allowance,
    everyone_per_day: Allowance,
    /// Time for which steps may begin before the store is asked again.
    lease: Duration,
    state: Mutex<State>,
    /// True while bookings are being added up.
    folds: AtomicBool,
}

#[derive(Default)]
struct State {
    days: HashMap<Date, Day>,
    /// Used by steps whose turns broke off: whoever commits next takes it along.
    left_over: Vec<Booking>,
    /// Steps since the first or the last sign of life after which nothing ran.
    steps: u32,
}

#[derive(Default)]
struct Day {
    everyone: Account,
    users: HashMap<UserId, Account>,
}

/// The process's account of one of the bounds of a day.
#[derive(Default)]
struct Account {
    /// Number of steps that are about to begin, run, or have used what is not booked yet.
    open: usize,
    share: Option<Share>,
    /// Locked while the store is asked, so that each asks for what the one before did not get.
    asking: Arc<AsyncMutex<()>>,
}

/// A block that the store has granted. Everything is counted since it was opened.
struct Share {
    block: Uuid,
    /// The user of the first step that was paid from it.
    user: UserId,
    epoch: i64,
    holds: Spending,
    /// Used, and set aside for steps that run.
    kept: Spending,
    /// All that was ever set aside.
    begun: Spending,
    /// Until then, a step has to be over. `None`: it was not granted yet.
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
            begun: Spending::default(),
            until: None,
        }
    }
}

/// A step that is to be paid.
#[derive(Clone, Copy)]
pub(crate) struct StepCost<'a> {
    /// The user who spends.
    pub(crate) user: &'a UserId,
    /// The day it counts for, in UTC.
    pub(crate) day: Date,
    /// The most it may take.
    pub(crate) most: Spending,
    /// Amount that is booked if nobody knows what it took.
    pub(crate) unknown: Spending,
    /// Longest time it may run.
    pub(crate) time: Duration,
}

impl Purse {
    /// Makes an empty one. `None`: no day is bounded.
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
        let (state, folds) = (Mutex::default(), AtomicBool::new(false));
        Some(Arc::new(Self {
            store: store?,
            per_day,
            everyone_per_day,
            lease,
            state,
            folds,
        }))
    }

    /// Returns what is left of what everybody may spend together on a day, as far as it is bounded.
    /// What is set aside for steps that run, in any process, is not taken off.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn everyone_left(&self, day: Date) -> Result<Allowance, StoreError> {
        if self.everyone_per_day.is_unlimited() {
            return Ok(Allowance::default());
        }
        let spent = self.store.spent(None, day).await?;
        Ok(self.everyone_per_day.left_of(spent))
    }

    /// Sets aside what a step may take: from what this process has, or the store is asked for more.
    /// `Err`: it does not fit.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        worker: Worker<'_>,
        step: StepCost<'_>,
    ) -> Result<Result<Reserved, Exceeded>, StoreError> {
        let mut reserved = self.open(step);
        let mut fresh = Lack::default();
        loop {
            // What was granted counts once: if the rest is lacking, all of it is looked at again.
            let lack = match self.take(worker, step, std::mem::take(&mut fresh)) {
                Ok(blocks) => {
                    reserved.has(step.most, blocks);
                    return Ok(Ok(reserved));
                }
                Err(lack) => lack,
            };
            // Always in this order.
            let (own, everyone) = self.asking(step, lack);
            let _own = lock(own.as_deref()).await;
            let _everyone = lock(everyone.as_deref()).await;
            // Whoever asked before may have got enough for both.
            let lack = match self.take(worker, step, Lack::default()) {
                Ok(blocks) => {
                    reserved.has(step.most, blocks);
                    return Ok(Ok(reserved));
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
                Granted::Exceeded(exceeded) => return Ok(Err(exceeded)),
                Granted::Blocks {
                    everyone,
                    own,
                    many,
                } => {
                    self.take_in((worker, step), lack, (everyone, own), until);
                    fresh = lack;
                    if many {
                        self.fold(day).await;
                    }
                }
            }
        }
    }

    /// Returns what is booked for a user on a day.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn spent(&self, user: &UserId, day: Date) -> Result<Spending, StoreError> {
        self.store.spent(Some(user), day).await
    }

    /// Gives back what nothing runs on any more, with what was used and is booked by nobody else.
    pub(crate) async fn give_back(self: &Arc<Self>) {
        self.state().steps = 0;
        let mut spent = Spent::new(Some(self.clone()));
        spent.close(None);
        if !spent.bookings().is_empty() && self.store.book(spent.bookings()).await.is_ok() {
            spent.written();
        }
    }

    /// Counts a step that is about to begin.
    fn open(
        self: &Arc<Self>,
        StepCost {
            user, day, unknown, ..
        }: StepCost<'_>,
    ) -> Reserved {
        let booking = Booking {
            id: Uuid::now_v7(),
            day,
            user: user.clone(),
            used: Spending::default(),
            everyone: None,
            own: None,
        };
        self.state().count(&booking);
        Reserved {
            purse: self.clone(),
            amount: None,
            unknown,
            booking: Some(booking),
        }
    }

    /// Takes what a step needs from both shares, or nothing. `fresh`: what was granted for this
    /// step just now.
    fn take(&self, worker: Worker<'_>, step: StepCost<'_>, fresh: Lack) -> Result<Blocks, Lack> {
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
        let lack = Lack {
            everyone: lacks(
                &self.everyone_per_day,
                day.everyone.share.as_ref(),
                fresh.everyone,
            ),
            own: lacks(&self.per_day, own.share.as_ref(), fresh.own),
        };
        if lack != Lack::default() {
            return Err(lack);
        }
        *steps = steps.saturating_add(1);
        let pay = |share: &mut Share| {
            share.kept = share.kept + step.most;
            share.begun = share.begun + step.most;
            share.block
        };
        Ok((
            day.everyone.share.as_mut().map(pay),
            own.share.as_mut().map(pay),
        ))
    }

    fn asking(&self, step: StepCost<'_>, lack: Lack) -> (Asking, Asking) {
        let state = &mut *self.state();
        let day = state.days.entry(step.day).or_default();
        let own = day.users.entry(step.user.clone()).or_default();
        let asking = |account: &Account, lacks: bool| lacks.then(|| account.asking.clone());
        (asking(own, lack.own), asking(&day.everyone, lack.everyone))
    }

    /// Says what is asked for. Until the answer, nothing is left of the shares: what they held
    /// beside what is kept is given back.
    fn ask(&self, step: StepCost<'_>, lack: Lack) -> (Option<Ask>, Option<Ask>) {
        let state = &mut *self.state();
        let day = state.days.entry(step.day).or_default();
        let own = day.users.entry(step.user.clone()).or_default();
        let ask = |account: &mut Account, allowance: Allowance| {
            let share = account.share.get_or_insert_with(|| Share::new(step.user));
            share.holds = share.kept;
            // Of a process that has begun so much, as much may come again; of a new one, the steps
            // of a turn.
            let wanted = share.begun + step.most + step.most + step.most;
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

    fn take_in(
        &self,
        (worker, step): (Worker<'_>, StepCost<'_>),
        lack: Lack,
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
        if !self.folds.swap(true, Ordering::AcqRel) {
            // Best effort: it makes no difference to any sum, and the next one who asks tries
            // again.
            let _ = self.store.fold(day).await;
            self.folds.store(false, Ordering::Release);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is half done while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Asking = Option<Arc<AsyncMutex<()>>>;

/// The blocks of everybody's and of the user's that a step is paid from, where these are bounded.
type Blocks = (Option<Uuid>, Option<Uuid>);

async fn lock(asking: Option<&AsyncMutex<()>>) -> Option<tokio::sync::MutexGuard<'_, ()>> {
    match asking {
        Some(asking) => Some(asking.lock().await),
        None => None,
    }
}

/// The shares that are too small.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Lack {
    everyone: bool,
    own: bool,
}

impl Lack {
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

    /// The step is over, or what it used is booked.
    fn discount(&mut self, booking: &Booking) {
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

    /// A step took less of its shares than was set aside, or more.
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

/// Room that is set aside for a step. Dropped, the step is booked as one whose answer was not
/// waited for.
pub(crate) struct Reserved {
    purse: Arc<Purse>,
    /// `None`: the step has not begun.
    amount: Option<Spending>,
    unknown: Spending,
    /// `None`: it is settled.
    booking: Option<Booking>,
}

impl Reserved {
    fn has(&mut self, amount: Spending, (everyone, own): Blocks) {
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

    /// Ends with what was really taken.
    pub(crate) fn settle(mut self, used: Spending, spent: &mut Spent) {
        spent.bookings.extend(self.end(used));
    }

    /// Books a part of what is set aside that is certain to be used, before the step is over.
    pub(crate) fn settle_part(&mut self, used: Spending, spent: &mut Spent) {
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
        self.purse.state().count(&part);
        spent.bookings.push(part);
    }

    fn end(&mut self, used: Spending) -> Option<Booking> {
        let mut booking = self.booking.take()?;
        let mut state = self.purse.state();
        let Some(amount) = self.amount else {
            state.discount(&booking);
            return None;
        };
        booking.used = used;
        state.settle(&booking, amount);
        Some(booking)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(booking) = self.end(self.unknown) {
            self.purse.state().left_over.push(booking);
        }
    }
}

/// Bookings that are not written yet. Dropped, the next commit of this process takes them along.
pub(crate) struct Spent {
    /// `None`: no day is bounded, and nothing is ever in it.
    purse: Option<Arc<Purse>>,
    bookings: Vec<Booking>,
}

impl Spent {
    pub(crate) fn new(purse: Option<Arc<Purse>>) -> Self {
        Self {
            purse,
            bookings: Vec::new(),
        }
    }

    /// Returns what is to be written with the next commit.
    pub(crate) fn bookings(&self) -> &[Booking] {
        &self.bookings
    }

    /// Takes along what others have left.
    pub(crate) fn gather(&mut self) {
        if let Some(purse) = &self.purse {
            self.bookings.append(&mut purse.state().left_over);
        }
    }

    /// Gathers what is to be written with the last commit of a user's turn, which gives back the
    /// shares on which nothing runs then.
    pub(crate) fn gather_last(&mut self, user: &UserId) {
        self.close(Some(user));
    }

    /// Gathers, and closes the shares on which nothing runs once this is written: this user's, or
    /// everybody's that nothing has run on for a while.
    fn close(&mut self, only: Option<&UserId>) {
        let Some(purse) = self.purse.clone() else {
            return;
        };
        self.gather();
        let state = &mut *purse.state();
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
            let (id, used) = (Uuid::now_v7(), Spending::default());
            let mut booking = Booking {
                id,
                day,
                user,
                used,
                everyone: None,
                own: None,
            };
            *drawn(&mut booking, is_everyone) = Some(Drawn {
                block,
                closes: true,
            });
            state.count(&booking);
            self.bookings.push(booking);
        }
    }

    /// Notes that it is written.
    pub(crate) fn written(&mut self) {
        if let Some(purse) = &self.purse {
            let mut state = purse.state();
            self.bookings
                .drain(..)
                .for_each(|booking| state.discount(&booking));
        }
    }
}

fn drawn(booking: &mut Booking, is_everyone: bool) -> &mut Option<Drawn> {
    if is_everyone {
        &mut booking.everyone
    } else {
        &mut booking.own
    }
}

impl Drop for Spent {
    fn drop(&mut self) {
        if let Some(purse) = &self.purse
            && !self.bookings.is_empty()
        {
            purse.state().left_over.append(&mut self.bookings);
        }
    }
}

impl std::fmt::Debug for Spent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bookings.fmt(f)
    }
}
