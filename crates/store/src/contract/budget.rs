use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use adjutant_core::port::{BudgetStore, Reservation};
use adjutant_core::{Allowance, Cost, Exceeded, Quantity, Scope, Spending, UserId};
use jiff::civil::{Date, date};

use super::sample::user;

const TODAY: Date = date(2026, 11, 22);
const NONE: Allowance =
    Allowance { tokens: None, model_calls: None, tool_calls: None, time: None, cost: None };

fn tokens(tokens: u64) -> Spending {
    Spending { tokens, model_calls: 1, tool_calls: 0, ms: 10, cost: Cost::from_nano_usd(tokens * 1000) }
}

fn at_most(tokens: u64) -> Allowance {
    Allowance { tokens: Some(tokens), ..NONE }
}

fn step(user: &UserId, step: &str, amount: Spending) -> Reservation {
    Reservation {
        step: step.to_owned(),
        user: user.clone(),
        day: TODAY,
        amount,
        worker: crate::worker_id().to_owned(),
        ttl: Duration::from_secs(3600),
    }
}

fn over(scope: Scope, limit: u64, taken: u64, needed: u64) -> Exceeded {
    Exceeded { scope, quantity: Quantity::Tokens, limit, taken, needed }
}

/// What is set aside is taken until it is settled; then only what was used is. Every user and every day has its own.
pub async fn what_is_set_aside_is_taken_until_it_is_settled(store: &impl BudgetStore) {
    let (anna, bert) = (user("anna"), user("bert"));
    let allowed = at_most(100);
    let first = step(&anna, "a", tokens(70));
    assert_eq!(store.reserve(&first, &allowed, &NONE).await.unwrap(), None);
    let refused = store.reserve(&step(&anna, "b", tokens(40)), &allowed, &NONE).await.unwrap();
    assert_eq!(refused, Some(over(Scope::Day, 100, 70, 40)));
    // The same step again, after a crash, is the same reservation, for as much as it needs now.
    let again = step(&anna, "a", tokens(90));
    assert_eq!(store.reserve(&again, &allowed, &NONE).await.unwrap(), None);
    assert_eq!(store.spent(Some(&anna), TODAY).await.unwrap(), Spending::default());

    let used = Spending { tokens: 55, model_calls: 1, tool_calls: 2, ms: 30, cost: Cost::from_nano_usd(7) };
    store.settle(&again, used).await.unwrap();
    assert_eq!(store.spent(Some(&anna), TODAY).await.unwrap(), used);
    let refused = store.reserve(&step(&anna, "b", tokens(46)), &allowed, &NONE).await.unwrap();
    assert_eq!(refused, Some(over(Scope::Day, 100, 55, 46)));
    let last = step(&anna, "b", tokens(45));
    assert_eq!(store.reserve(&last, &allowed, &NONE).await.unwrap(), None);
    // Nothing was used after all: all of it is free again.
    store.settle(&last, Spending::default()).await.unwrap();
    assert_eq!(store.reserve(&last, &allowed, &NONE).await.unwrap(), None);

    assert_eq!(store.reserve(&step(&bert, "c", tokens(100)), &allowed, &NONE).await.unwrap(), None);
    let tomorrow = Reservation { day: date(2026, 11, 23), ..step(&anna, "d", tokens(100)) };
    assert_eq!(store.reserve(&tomorrow, &allowed, &NONE).await.unwrap(), None);
    store.settle(&tomorrow, tokens(1)).await.unwrap();
    assert_eq!(store.spent(None, TODAY).await.unwrap(), used);
}

/// Each quantity has its bound; what is not bounded is counted all the same.
pub async fn every_quantity_has_its_bound(store: &impl BudgetStore) {
    let anna = user("anna");
    let used = Spending { tokens: 10, model_calls: 1, tool_calls: 3, ms: 500, cost: Cost::from_nano_usd(40) };
    store.settle(&step(&anna, "a", used), used).await.unwrap();
    for (allowance, quantity, limit) in [
        (Allowance { tokens: Some(19), ..NONE }, Quantity::Tokens, 19),
        (Allowance { model_calls: Some(1), ..NONE }, Quantity::ModelCalls, 1),
        (Allowance { tool_calls: Some(5), ..NONE }, Quantity::ToolCalls, 5),
        (Allowance { time: Some(Duration::from_millis(999)), ..NONE }, Quantity::Time, 999),
        (Allowance { cost: Some(Cost::from_nano_usd(79)), ..NONE }, Quantity::Money, 79),
    ] {
        let refused = store.reserve(&step(&anna, "b", used), &allowance, &NONE).await.unwrap().unwrap();
        assert_eq!((refused.quantity, refused.limit), (quantity, limit));
        assert_eq!(
            (refused.taken * 2, refused.needed * 2),
            (refused.taken + refused.needed, 2 * refused.taken)
        );
    }
    // Nobody knows what it takes: it does not fit, and without a bound it harms nothing.
    let unknown = Spending { cost: Cost::from_nano_usd(u64::MAX), tokens: u64::MAX, ..used };
    let dear = Allowance { cost: Some(Cost::from_nano_usd(1 << 52)), ..NONE };
    assert!(store.reserve(&step(&anna, "b", unknown), &dear, &NONE).await.unwrap().is_some());
    assert_eq!(store.reserve(&step(&anna, "b", unknown), &NONE, &NONE).await.unwrap(), None);
    assert_eq!(store.reserve(&step(&anna, "c", unknown), &NONE, &NONE).await.unwrap(), None);
    assert!(store.reserve(&step(&anna, "d", used), &dear, &NONE).await.unwrap().is_some());
}

/// What everybody spends together has a bound of its own.
pub async fn everybody_together_has_a_bound(store: &impl BudgetStore) {
    let (anna, bert) = (user("anna"), user("bert"));
    let (own, all) = (at_most(100), at_most(150));
    store.settle(&step(&anna, "a", tokens(80)), tokens(80)).await.unwrap();
    let refused = store.reserve(&step(&bert, "b", tokens(71)), &own, &all).await.unwrap();
    assert_eq!(refused, Some(over(Scope::Everyone, 150, 80, 71)));
    assert_eq!(store.reserve(&step(&bert, "b", tokens(60)), &own, &all).await.unwrap(), None);
    let refused = store.reserve(&step(&anna, "c", tokens(15)), &own, &all).await.unwrap();
    assert_eq!(refused, Some(over(Scope::Everyone, 150, 140, 15)));
    assert_eq!(store.reserve(&step(&anna, "c", tokens(10)), &own, &all).await.unwrap(), None);
    assert_eq!(store.spent(None, TODAY).await.unwrap().tokens, 80);
}

/// What a process set aside that died is free when its time is over; should it live after all, what it used is booked.
pub async fn a_reservation_runs_out(store: &impl BudgetStore) {
    let anna = user("anna");
    let allowed = at_most(100);
    let dead = Reservation { ttl: Duration::ZERO, ..step(&anna, "a", tokens(100)) };
    assert_eq!(store.reserve(&dead, &allowed, &NONE).await.unwrap(), None);
    let next = step(&anna, "b", tokens(100));
    assert_eq!(store.reserve(&next, &allowed, &NONE).await.unwrap(), None);
    store.settle(&dead, tokens(60)).await.unwrap();
    store.settle(&next, tokens(70)).await.unwrap();
    assert_eq!(store.spent(Some(&anna), TODAY).await.unwrap().tokens, 130);
    assert!(store.reserve(&step(&anna, "c", tokens(1)), &allowed, &NONE).await.unwrap().is_some());
}

/// Only for stores of one machine: what a process set aside that is no more is free at once. `dead`: its worker id.
pub async fn a_dead_workers_reservation_is_free_at_once(store: &impl BudgetStore, dead: &str) {
    let anna = user("anna");
    let lost = Reservation { worker: dead.to_owned(), ..step(&anna, "a", tokens(100)) };
    assert_eq!(store.reserve(&lost, &at_most(100), &at_most(100)).await.unwrap(), None);
    let next = step(&anna, "b", tokens(100));
    assert_eq!(store.reserve(&next, &at_most(100), &at_most(100)).await.unwrap(), None);
}

/// Of many steps at once, of several users, as many begin as fit, and not one more; those that end make room.
pub async fn of_many_at_once_no_two_take_the_same_room(store: &impl BudgetStore) {
    let users = [user("anna"), user("bert"), user("carl")];
    let (own, all) = (at_most(50), at_most(120));
    let reservations: Vec<Reservation> =
        (0..36).map(|number| step(&users[number % 3], &format!("s{number}"), tokens(10))).collect();
    let answers =
        together(reservations.iter().map(|reservation| store.reserve(reservation, &own, &all))).await;
    let granted: Vec<&Reservation> = reservations
        .iter()
        .zip(answers)
        .filter_map(|(reservation, answer)| answer.unwrap().is_none().then_some(reservation))
        .collect();
    let of = |user: &UserId| granted.iter().filter(|reservation| reservation.user == *user).count();
    assert_eq!(granted.len(), 12, "120 of 10 each");
    assert!(users.iter().all(|user| of(user) <= 5), "50 of 10 each");

    // All of them end at once with half of what they set aside, while others begin.
    let settled = together(granted.iter().map(|reservation| store.settle(reservation, tokens(5))));
    let second: Vec<Reservation> =
        (0..36).map(|number| step(&users[number % 3], &format!("t{number}"), tokens(10))).collect();
    let begun = together(second.iter().map(|reservation| store.reserve(reservation, &own, &all)));
    let (settled, begun) = tokio::join!(settled, begun);
    settled.into_iter().for_each(|result| result.unwrap());
    let begun = begun.into_iter().filter(|answer| answer.as_ref().unwrap().is_none()).count();
    assert!(begun <= 6, "{begun} began where 60 are spent and 10 each are set aside");
    assert_eq!(store.spent(None, TODAY).await.unwrap().tokens, 60);
}

/// All of them at the same time; their results in order.
async fn together<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(|context: &mut Context<'_>| {
        for (future, done) in running.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(output) = future.as_mut().poll(context)
            {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
