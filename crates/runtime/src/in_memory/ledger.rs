//! Booked spending per day, and the budget blocks that agents hold.

use std::collections::{HashMap, VecDeque};

use adjutant_core::port::Booking;
use adjutant_core::{Spending, UserId};
use jiff::civil::Date;
use tokio::time::Instant;
use uuid::Uuid;

/// Number of days that are kept; older ones are never read.
const DAYS_MAX: usize = 32;

/// Number of booking ids that are kept: a repeated booking follows soon after the first.
const BOOKINGS_MAX: usize = 256;

/// Booked spending, and budget blocks.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    days: HashMap<Date, Day>,
    blocks: HashMap<Uuid, Block>,
    /// Ids of the last bookings, so that none is booked twice.
    bookings: VecDeque<Uuid>,
}

#[derive(Debug, Default)]
struct Day {
    everyone: Spending,
    users: HashMap<UserId, Spending>,
}

#[derive(Debug)]
struct Block {
    day: Date,
    /// `None`: a block of the shared budget.
    user: Option<UserId>,
    holds: Spending,
    booked: Spending,
    /// `None`: the end overflows the clock.
    until: Option<Instant>,
}

impl Ledger {
    pub(super) fn spent(&self, user: Option<&UserId>, day: Date) -> Spending {
        let Some(day) = self.days.get(&day) else {
            return Spending::default();
        };
        match user {
            None => day.everyone,
            Some(user) => day.users.get(user).copied().unwrap_or_default(),
        }
    }

    /// Returns the spending that is booked or held in blocks, without that of one block.
    pub(super) fn taken(&self, user: Option<&UserId>, day: Date, apart: Uuid) -> Spending {
        let now = Instant::now();
        let own = self
            .blocks
            .get(&apart)
            .map(|block| block.booked)
            .unwrap_or_default();
        let held = self.blocks.iter().filter(|(id, block)| {
            **id != apart
                && block.day == day
                && block.user.as_ref() == user
                && block.until.is_none_or(|until| now < until)
        });
        let held: Spending = held.map(|(_, block)| block.holds - block.booked).sum();
        self.spent(user, day) - own + held
    }

    /// Sets the amount that a block holds, creating it if it is new.
    pub(super) fn hold(
        &mut self,
        user: Option<&UserId>,
        day: Date,
        id: Uuid,
        holds: Spending,
        until: Option<Instant>,
    ) {
        let new = || Block {
            day,
            user: user.cloned(),
            holds,
            booked: Spending::default(),
            until,
        };
        let block = self.blocks.entry(id).or_insert_with(new);
        block.holds = holds;
        // Running steps were started under the earlier expiry, so it never shrinks.
        block.until = block
            .until
            .zip(until)
            .map(|(before, until)| before.max(until));
    }

    /// Reduces a block, if it is known, to the amount that running steps keep.
    pub(super) fn keep(&mut self, id: Uuid, kept: Spending) {
        if let Some(block) = self.blocks.get_mut(&id) {
            block.holds = kept;
        }
    }

    pub(super) fn book(&mut self, bookings: &[Booking]) {
        for booking in bookings {
            if self.bookings.contains(&booking.id) {
                continue;
            }
            self.bookings.truncate(BOOKINGS_MAX);
            self.bookings.push_front(booking.id);
            let is_new = !self.days.contains_key(&booking.day);
            let day = self.days.entry(booking.day).or_default();
            day.everyone = day.everyone + booking.used;
            let spent = day.users.entry(booking.user.clone()).or_default();
            *spent = *spent + booking.used;
            for drawn in [booking.everyone, booking.own].into_iter().flatten() {
                if drawn.closes {
                    self.blocks.remove(&drawn.block);
                } else if let Some(block) = self.blocks.get_mut(&drawn.block) {
                    block.booked = block.booked + booking.used;
                }
            }
            if is_new {
                self.forget_old_days();
            }
        }
    }

    fn forget_old_days(&mut self) {
        let mut days: Vec<Date> = self.days.keys().copied().collect();
        days.sort_unstable();
        if let Some(oldest) = days.len().checked_sub(DAYS_MAX).and_then(|at| days.get(at)) {
            self.days.retain(|day, _| day >= oldest);
            self.blocks.retain(|_, block| block.day >= *oldest);
        }
    }
}
