use jiff::civil::Date;
use uuid::Uuid;

use crate::budget::Spending;
use crate::id::UserId;

/// Spending to be booked exactly once. Booking the same id again changes nothing, until the
/// bookings are folded ([`BudgetStore::fold`](crate::port::BudgetStore::fold)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booking {
    /// Identifies the booking among those of all processes.
    pub id: Uuid,
    /// Day of the budget, in UTC.
    pub day: Date,
    /// User whose budget is charged.
    pub user: UserId,
    /// Amount that was used, which may be more or less than was reserved.
    pub used: Spending,
    /// Block of the common budget that the amount comes from.
    pub everyone: Option<Drawn>,
    /// Block of the user's budget that the amount comes from.
    pub own: Option<Drawn>,
}

/// A block of a budget that was drawn on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// Id of the block that was granted.
    pub block: Uuid,
    /// True if the process closes the block with this booking: what is left of it returns to the
    /// budget.
    pub closes: bool,
}
