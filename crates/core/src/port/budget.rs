use std::time::Duration;

use jiff::civil::Date;
use uuid::Uuid;

use crate::BoxFuture;
use crate::budget::{Allowance, Exceeded, Scope, Spending};
use crate::id::UserId;
use crate::port::{Booking, StoreError, Worker};

/// The arguments of [`BudgetStore::grant`]: a process asks for blocks of the daily budgets, from
/// which it then makes reservations without asking again.
#[derive(Debug, Clone, Copy)]
pub struct GrantRequest<'a> {
    /// Day of the budget, in UTC.
    pub day: Date,
    /// User whose budget is charged.
    pub user: &'a UserId,
    /// Process that obtains the blocks.
    pub worker: Worker<'a>,
    /// Duration for which the blocks count as taken, used or not. Afterwards, or when the process
    /// is known to be gone, only booked amounts count.
    pub ttl: Duration,
    /// The most that the next step can cost: at least this is granted, or nothing.
    pub need: Spending,
    /// The process's block of the common budget. `None`: there is no such budget.
    pub everyone: Option<Ask>,
    /// The process's block of the user's budget. `None`: there is no such budget.
    pub own: Option<Ask>,
}

/// A request to enlarge or open one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Id of the block. An unknown one is opened.
    pub block: Uuid,
    /// The whole budget of the day.
    pub allowance: Allowance,
    /// Amount used of the block since it was opened, booked or not, plus current reservations. The
    /// rest of the block is returned.
    pub kept: Spending,
    /// Amount that the process expects to need soon; no more is granted.
    pub wanted: Spending,
}

impl Ask {
    /// Returns the new size of the block, given what `others` have taken: what is kept, what the
    /// next step needs and, of the rest, what is wanted, but at most a sixteenth. So early requests
    /// leave some for others, and of a small remainder each takes only what it needs.
    ///
    /// # Errors
    ///
    /// [`Exceeded`] if the step does not fit into the budget.
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
            let remaining = limit.saturating_sub(taken.of(quantity));
            need.max(self.wanted.of(quantity).min(remaining / SHARES))
        });
        Ok(self.kept + more)
    }
}

/// The result of [`BudgetStore::grant`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// Total size of each block since it was opened; nothing for a block that was not requested.
    Blocks {
        /// Size of the block of the common budget.
        everyone: Spending,
        /// Size of the block of the user's budget.
        own: Spending,
        /// True if many bookings are not folded yet, so that the caller should call
        /// [`BudgetStore::fold`].
        many: bool,
    },
    /// The step does not fit into the budget. The blocks shrink to what was kept.
    Exceeded(Exceeded),
}

/// Daily budgets of each user and of all users together, shared by all processes of the store.
///
/// A process obtains blocks of the budgets and reserves from them in memory. What a step used is
/// booked in the commit that records its result ([`Writer::spent`](crate::port::Writer)), so this
/// port belongs to the same store as the journal.
pub trait BudgetStore: Send + Sync + 'static {
    /// Enlarges blocks so that a step fits, within the user's and the common budget and together
    /// with everything booked and all blocks of all processes. Concurrent requests are never
    /// granted the same amount. Both budgets change in one commit.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written; the size of the blocks is then unknown until
    /// the next successful request.
    fn grant<'a>(&'a self, request: GrantRequest<'a>)
    -> BoxFuture<'a, Result<Granted, StoreError>>;

    /// Books amounts that no commit of the journal carries, in a separate commit.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; the amounts may be booked or not.
    fn book<'a>(&'a self, bookings: &'a [Booking]) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Folds the bookings of a day into sums, so that reading the budget does not depend on the
    /// number of bookings. Changes no sum.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be written.
    fn fold(&self, day: Date) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns the booked amount of a user, or of all users, on a day, without reservations.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be read.
    fn spent<'a>(
        &'a self,
        user: Option<&'a UserId>,
        day: Date,
    ) -> BoxFuture<'a, Result<Spending, StoreError>>;
}
