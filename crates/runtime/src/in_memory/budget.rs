//! The budget store in memory.

use adjutant_core::port::{Booking, BudgetStore, GrantRequest, Granted, StoreError};
use adjutant_core::{BoxFuture, Scope, Spending, UserId};
use jiff::civil::Date;
use tokio::time::Instant;

use super::{InMemory, ready};

impl BudgetStore for InMemory {
    fn grant<'a>(
        &'a self,
        request: GrantRequest<'a>,
    ) -> BoxFuture<'a, Result<Granted, StoreError>> {
        let ledger = &mut self.state().ledger;
        let GrantRequest { day, need, .. } = request;
        let (mut everyone, mut own) = (Spending::default(), Spending::default());
        let asks = [
            (Scope::Everyone, None, request.everyone, &mut everyone),
            (Scope::Day, Some(request.user), request.own, &mut own),
        ];
        let mut granted = Vec::new();
        for (scope, user, ask, holds) in asks {
            let Some(ask) = ask else { continue };
            match ask.grant(scope, ledger.taken(user, day, ask.block), need) {
                Ok(all) => (*holds) = all,
                Err(exceeded) => {
                    let asked = [request.everyone, request.own];
                    asked
                        .iter()
                        .flatten()
                        .for_each(|ask| ledger.keep(ask.block, ask.kept));
                    return ready(Ok(Granted::Exceeded(exceeded)));
                }
            }
            granted.push((user, ask.block, *holds));
        }
        let until = Instant::now().checked_add(request.ttl);
        for (user, block, holds) in granted {
            ledger.hold(user, day, block, holds, until);
        }
        ready(Ok(Granted::Blocks {
            everyone,
            own,
            many: false,
        }))
    }

    fn book<'a>(&'a self, bookings: &'a [Booking]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.state().ledger.book(bookings);
        ready(Ok(()))
    }

    fn fold(&self, _day: Date) -> BoxFuture<'_, Result<(), StoreError>> {
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
