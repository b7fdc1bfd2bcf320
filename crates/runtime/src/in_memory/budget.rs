//! What users spend in a day, in memory.

use std::time::Instant;

use adjutant_core::port::{BudgetStore, Reservation, StoreError};
use adjutant_core::{Allowance, BoxFuture, Exceeded, Scope, Spending, UserId};
use jiff::civil::Date;

use super::ledger::is_same_step;
use super::{InMemory, ready};

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
