//! What users spend in a day, in memory.

use std::time::Instant;

use adjutant_core::port::{BudgetStore, Reservation, StoreError};
use adjutant_core::{Allowance, BoxFuture, Exceeded, Scope, Spending, UserId};
use jiff::civil::Date;

use super::{InMemory, ready};

/// How many days are kept. Nobody asks for older ones.
const DAYS_MAX: usize = 32;

/// What was spent, and what is set aside.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    spent: Vec<(UserId, Date, Spending)>,
    set_aside: Vec<(Reservation, Option<Instant>)>,
}

impl Ledger {
    fn spent(&self, user: Option<&UserId>, day: Date) -> Spending {
        let of_day =
            self.spent.iter().filter(|(who, when, _)| *when == day && user.is_none_or(|user| who == user));
        of_day.map(|(.., spending)| *spending).sum()
    }

    /// Spent and set aside, the step's own not counted.
    fn taken(&self, user: Option<&UserId>, step: &Reservation) -> Spending {
        let now = Instant::now();
        let set_aside = self.set_aside.iter().filter(|(other, until)| {
            other.day == step.day
                && user.is_none_or(|user| other.user == *user)
                && !is_same_step(other, step)
                && until.is_none_or(|until| now < until)
        });
        self.spent(user, step.day) + set_aside.map(|(other, _)| other.amount).sum()
    }

    fn forget_old_days(&mut self) {
        let mut days: Vec<Date> = self.spent.iter().map(|(_, day, _)| *day).collect();
        days.sort_unstable();
        days.dedup();
        if let Some(oldest) = days.len().checked_sub(DAYS_MAX).and_then(|at| days.get(at)) {
            self.spent.retain(|(_, day, _)| day >= oldest);
        }
    }
}

fn is_same_step(a: &Reservation, b: &Reservation) -> bool {
    a.step == b.step && a.user == b.user && a.day == b.day
}

impl BudgetStore for InMemory {
    fn reserve<'a>(
        &'a self,
        reservation: &'a Reservation,
        per_day: &'a Allowance,
        everyone_per_day: &'a Allowance,
    ) -> BoxFuture<'a, Result<Option<Exceeded>, StoreError>> {
        let ledger = &mut self.state().ledger;
        let exceeded =
            [(everyone_per_day, Scope::Everyone, None), (per_day, Scope::Day, Some(&reservation.user))]
                .into_iter()
                .find_map(|(allowance, scope, user)| {
                    allowance.exceeded(scope, ledger.taken(user, reservation), reservation.amount)
                });
        if exceeded.is_none() {
            let now = Instant::now();
            ledger.set_aside.retain(|(other, until)| {
                !is_same_step(other, reservation) && until.is_none_or(|until| now < until)
            });
            ledger.set_aside.push((reservation.clone(), now.checked_add(reservation.ttl)));
        }
        ready(Ok(exceeded))
    }

    fn settle<'a>(
        &'a self,
        reservation: &'a Reservation,
        used: Spending,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let ledger = &mut self.state().ledger;
        ledger.set_aside.retain(|(other, _)| !is_same_step(other, reservation));
        let (user, day) = (&reservation.user, reservation.day);
        match ledger.spent.iter_mut().find(|(who, when, _)| who == user && *when == day) {
            Some((.., spending)) => *spending = *spending + used,
            None => {
                ledger.spent.push((user.clone(), day, used));
                ledger.forget_old_days();
            }
        }
        ready(Ok(()))
    }

    fn spent<'a>(
        &'a self,
        user: Option<&'a UserId>,
        day: Date,
    ) -> BoxFuture<'a, Result<Spending, StoreError>> {
        let spent = self.state().ledger.spent(user, day);
        ready(Ok(spent))
    }
}
