//! What users spent, and what running steps may spend.

use std::time::Instant;

use adjutant_core::port::Reservation;
use adjutant_core::{Spending, UserId};
use jiff::civil::Date;

/// How many days are kept. Nobody asks for older ones.
const DAYS_MAX: usize = 32;

/// What was spent, and what is set aside.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) spent: Vec<(UserId, Date, Spending)>,
    pub(super) set_aside: Vec<(Reservation, Option<Instant>)>,
}

impl Ledger {
    pub(super) fn spent(&self, user: Option<&UserId>, day: Date) -> Spending {
        let of_day =
            self.spent.iter().filter(|(who, when, _)| *when == day && user.is_none_or(|user| who == user));
        of_day.map(|(.., spending)| *spending).sum()
    }

    /// Spent and set aside, the step's own not counted.
    pub(super) fn taken(&self, user: Option<&UserId>, step: &Reservation) -> Spending {
        let now = Instant::now();
        let set_aside = self.set_aside.iter().filter(|(other, until)| {
            other.day == step.day
                && user.is_none_or(|user| other.user == *user)
                && !is_same_step(other, step)
                && until.is_none_or(|until| now < until)
        });
        self.spent(user, step.day) + set_aside.map(|(other, _)| other.amount).sum()
    }

    pub(super) fn forget_old_days(&mut self) {
        let mut days: Vec<Date> = self.spent.iter().map(|(_, day, _)| *day).collect();
        days.sort_unstable();
        days.dedup();
        if let Some(oldest) = days.len().checked_sub(DAYS_MAX).and_then(|at| days.get(at)) {
            self.spent.retain(|(_, day, _)| day >= oldest);
        }
    }
}

pub(super) fn is_same_step(a: &Reservation, b: &Reservation) -> bool {
    a.step == b.step && a.user == b.user && a.day == b.day
}
