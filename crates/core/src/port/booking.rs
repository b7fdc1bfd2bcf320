use jiff::civil::Date;
use uuid::Uuid;

use crate::budget::Spending;
use crate::id::UserId;

/// Spending that is booked once. The same booking again, by its id, changes nothing, as long as it
/// was not added up ([`BudgetStore::fold`](crate::port::BudgetStore::fold)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Booking {
    /// A name of its own among all.
    pub id: Uuid,
    /// The day it counts for, in UTC.
    pub day: Date,
    /// The user who spent.
    pub user: UserId,
    /// Amount that was used: more or less than was set aside, or nothing.
    pub used: Spending,
    /// The block of everybody's it was taken from.
    pub everyone: Option<Drawn>,
    /// The block of the user's it was taken from.
    pub own: Option<Drawn>,
}

/// The block that something was taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// The block.
    pub block: Uuid,
    /// True if nothing will be taken from it any more: what is left of it is given back.
    pub closes: bool,
}
