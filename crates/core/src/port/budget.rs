use std::time::Duration;

use jiff::civil::Date;
use uuid::Uuid;

use crate::BoxFuture;
use crate::budget::{Allowance, Exceeded, Scope, Spending};
use crate::id::UserId;
use crate::port::{Booking, StoreError, Worker};

/// A request for room in the budgets of a day, for [`BudgetStore::grant`]. What is granted is spent
/// from without asking again.
#[derive(Debug, Clone, Copy)]
pub struct GrantRequest<'a> {
    /// The day it counts for, in UTC.
    pub day: Date,
    /// The user who spends.
    pub user: &'a UserId,
    /// The process that asks.
    pub worker: Worker<'a>,
    /// Time for which the blocks count as taken from now on, used or not. A process that has not
    /// asked again by then, and one that is known to be gone, has taken only what it booked.
    pub ttl: Duration,
    /// The most that the next step may take: at least this is granted, or nothing.
    pub need: Spending,
    /// The process's block of what everybody spends together. `None`: nothing of that is needed.
    pub everyone: Option<Ask>,
    /// Its block of what the user spends. `None`: nothing of that is needed.
    pub own: Option<Ask>,
}

/// A process's request for one of its blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The block. One that is not known yet is opened.
    pub block: Uuid,
    /// All that may be spent in the day.
    pub allowance: Allowance,
    /// Used of the block since it was opened, booked or not, and set aside for steps that run. The
    /// rest of what it held before is given back.
    pub kept: Spending,
    /// More than this is not needed soon.
    pub wanted: Spending,
}

impl Ask {
    /// Returns how much the block holds from now on, where `others` is taken beside what is kept of
    /// it: what is kept, what the next step needs and, of the rest, what is wanted, but no more
    /// than a sixteenth. So the first who ask leave room for others, and of a small remainder each
    /// takes what it needs and no more.
    ///
    /// # Errors
    /// [`Exceeded`] if the step does not fit.
    pub fn grant(
        &self,
        scope: Scope,
        others: Spending,
        need: Spending,
    ) -> Result<Spending, Exceeded> {
        const SHARES: u64 = 16;
        let taken = others + self.kept;
        if let Some(exceeded) = self.allowance.exceeded(scope, taken, need) {
            return Err(exceeded);
        }
        let more = Spending::from_fn(|quantity| {
            let need = need.of(quantity);
            let Some(limit) = self.allowance.limit(quantity) else {
                return need;
            };
            let room = limit.saturating_sub(taken.of(quantity));
            need.max(self.wanted.of(quantity).min(room / SHARES))
        });
        Ok(self.kept + more)
    }
}

/// The answer to a [`GrantRequest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// All that each block holds since it was opened; of one that was not asked for, nothing.
    Blocks {
        /// Of the block of everybody's.
        everyone: Spending,
        /// Of the block of the user's.
        own: Spending,
        /// True if there are many bookings to be added up: time for [`BudgetStore::fold`].
        many: bool,
    },
    /// It does not fit. The blocks hold only what was kept.
    Exceeded(Exceeded),
}

/// What users spend in a day. Whoever shares the store shares the budgets, in any number of
/// processes.
///
/// A process takes blocks of what there is and spends from them without asking; what it used is
/// booked by the commit that writes what came of it ([`Writer::spent`](crate::port::Writer)). So
/// the store behind this port is the one the journal writes to.
pub trait BudgetStore: Send + Sync + 'static {
    /// Grants room for a step, if it fits into the user's day and into everybody's together with
    /// what is booked and what the blocks of all processes hold; of several at once, no two are
    /// granted the same room. In one commit, for both.
    ///
    /// # Errors
    /// [`StoreError`]; then it is not known what the blocks hold, until the next time.
    fn grant<'a>(&'a self, request: GrantRequest<'a>)
    -> BoxFuture<'a, Result<Granted, StoreError>>;

    /// Books what was used, in a commit of its own: what no commit of the journal takes along.
    ///
    /// # Errors
    /// [`StoreError`]; then it may be booked or not.
    fn book<'a>(&'a self, bookings: &'a [Booking]) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Adds up the bookings of a day, so that reading what was spent does not depend on how many
    /// there are. Changes no sum.
    ///
    /// # Errors
    /// [`StoreError`].
    fn fold(&self, day: Date) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns the booked spending of a user, or of everybody, on a day. What is only set aside is
    /// not in it.
    ///
    /// # Errors
    /// [`StoreError`].
    fn spent<'a>(
        &'a self,
        user: Option<&'a UserId>,
        day: Date,
    ) -> BoxFuture<'a, Result<Spending, StoreError>>;
}
