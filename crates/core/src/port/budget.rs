use std::time::Duration;

use jiff::civil::Date;

use crate::BoxFuture;
use crate::budget::{Allowance, Exceeded, Spending};
use crate::id::UserId;
use crate::port::StoreError;

/// What a step sets aside before it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// The step, a name of its own among all. The same step again, after a crash, is the same reservation.
    pub step: String,
    /// Who spends.
    pub user: UserId,
    /// The day it counts for, in UTC.
    pub day: Date,
    /// The most the step may take.
    pub amount: Spending,
    /// Who runs the step, as in [`Journal::claim`](crate::port::Journal::claim).
    pub worker: String,
    /// How long the step may run. After that, or once the worker is known to be gone, it sets nothing aside any more.
    pub ttl: Duration,
}

/// What users spend in a day. Whoever shares the store shares the budgets, in any number of processes.
pub trait BudgetStore: Send + Sync + 'static {
    /// Sets aside what a step may take, if it fits into the user's day and into everybody's together with what is spent
    /// and set aside there. `Some`: it does not fit, and nothing was set aside. Of several at once, no two take the same room.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing was set aside.
    fn reserve<'a>(
        &'a self,
        reservation: &'a Reservation,
        per_day: &'a Allowance,
        everyone_per_day: &'a Allowance,
    ) -> BoxFuture<'a, Result<Option<Exceeded>, StoreError>>;

    /// Ends a reservation and books what the step really took: more or less than was set aside, or nothing. It is booked
    /// also if the reservation has run out meanwhile.
    ///
    /// # Errors
    /// [`StoreError`]; then the reservation is as it was.
    fn settle<'a>(
        &'a self,
        reservation: &'a Reservation,
        used: Spending,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// What a user, or everybody, has spent on a day; what is only set aside is not in it.
    ///
    /// # Errors
    /// [`StoreError`].
    fn spent<'a>(
        &'a self,
        user: Option<&'a UserId>,
        day: Date,
    ) -> BoxFuture<'a, Result<Spending, StoreError>>;
}
