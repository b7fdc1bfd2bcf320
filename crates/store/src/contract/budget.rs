use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use adjutant_core::port::{
    Ask, Booking, BudgetStore, Drawn, Finished, GrantRequest, Granted, Journal, StoreError, Worker,
    Writer,
};
use adjutant_core::{Allowance, Cost, Exceeded, Quantity, Scope, Spending, UserId};
use jiff::civil::{Date, date};
use uuid::Uuid;

use super::fixture::{at, conversation, finished, message, recorded, started, submit, user};

const TODAY: Date = date(2026, 11, 22);
const NONE: Allowance = Allowance {
    tokens: None,
    model_calls: None,
    tool_calls: None,
    time: None,
    cost: None,
};
const LONG: Duration = Duration::from_secs(3600);

fn tokens(tokens: u64) -> Spending {
    Spending {
        tokens,
        model_calls: 1,
        tool_calls: 0,
        ms: 10,
        cost: Cost::from_nano_usd(tokens * 1000),
    }
}

fn at_most(tokens: u64) -> Allowance {
    Allowance {
        tokens: Some(tokens),
        ..NONE
    }
}

fn over(scope: Scope, limit: u64, taken: u64, needed: u64) -> Granted {
    Granted::Exceeded(Exceeded {
        scope,
        quantity: Quantity::Tokens,
        limit,
        taken,
        needed,
    })
}

/// A worker with one block for each limit, counting its own use.
#[derive(Debug, Clone)]
struct Process {
    worker: String,
    user: UserId,
    day: Date,
    ttl: Duration,
    everyone: Option<(Uuid, Allowance)>,
    own: Option<(Uuid, Allowance)>,
    kept: Spending,
}

impl Process {
    fn new(user: &UserId, own: Allowance, everyone: Allowance) -> Self {
        let block =
            |allowance: Allowance| (!allowance.is_unlimited()).then(|| (Uuid::now_v7(), allowance));
        Self {
            worker: crate::worker_id().to_owned(),
            user: user.clone(),
            day: TODAY,
            ttl: LONG,
            everyone: block(everyone),
            own: block(own),
            kept: Spending::default(),
        }
    }

    /// Reserves a step, asking for more if `wanted`. The grant is kept: the step starts.
    async fn ask(&mut self, store: &impl BudgetStore, need: Spending, wanted: Spending) -> Granted {
        let ask = |(block, allowance)| Ask {
            block,
            allowance,
            kept: self.kept,
            wanted,
        };
        let request = GrantRequest {
            day: self.day,
            user: &self.user,
            worker: Worker {
                id: &self.worker,
                epoch: 1,
            },
            ttl: self.ttl,
            need,
            everyone: self.everyone.map(ask),
            own: self.own.map(ask),
        };
        let granted = store.grant(request).await.unwrap();
        if matches!(granted, Granted::Blocks { .. }) {
            self.kept = self.kept + need;
        }
        granted
    }

    /// Reserves exactly one step. Returns `None` if it may start.
    async fn reserve(&mut self, store: &impl BudgetStore, need: Spending) -> Option<Granted> {
        let granted = self.ask(store, need, Spending::default()).await;
        matches!(granted, Granted::Exceeded(_)).then_some(granted)
    }

    /// Returns the booking of a step that had reserved `most`.
    fn used(&mut self, most: Spending, used: Spending, closes: bool) -> Booking {
        self.kept = self.kept - most + used;
        let drawn = |(block, _)| Drawn { block, closes };
        let (everyone, own) = (self.everyone.map(drawn), self.own.map(drawn));
        Booking {
            id: Uuid::now_v7(),
            day: self.day,
            user: self.user.clone(),
            used,
            everyone,
            own,
        }
    }
}

/// The amount of a block counts as used until the block is closed, whatever is booked of it; after
/// that, only the bookings count. Users and days are separate.
pub async fn a_block_counts_as_used_until_it_is_closed(store: &impl BudgetStore) {
    let (anna, bert) = (user("anna"), user("bert"));
    let of = |user: &UserId| Process::new(user, at_most(100), NONE);
    let (mut first, mut second) = (of(&anna), of(&anna));
    assert_eq!(first.reserve(store, tokens(70)).await, None);
    assert_eq!(
        second.reserve(store, tokens(40)).await,
        Some(over(Scope::Day, 100, 70, 40))
    );
    assert_eq!(
        store.spent(Some(&anna), TODAY).await.unwrap(),
        Spending::default()
    );

    let used = Spending {
        tokens: 55,
        model_calls: 1,
        tool_calls: 2,
        ms: 30,
        cost: Cost::from_nano_usd(7),
    };
    let booking = first.used(tokens(70), used, false);
    for _ in 0..2 {
        // The answer to the first was lost.
        store.book(std::slice::from_ref(&booking)).await.unwrap();
        assert_eq!(store.spent(Some(&anna), TODAY).await.unwrap(), used);
        assert_eq!(
            second.reserve(store, tokens(40)).await,
            Some(over(Scope::Day, 100, 70, 40))
        );
    }
    // The rest of a block is returned when the worker asks again.
    assert_eq!(first.reserve(store, tokens(1)).await, None);
    assert_eq!(
        second.reserve(store, tokens(45)).await,
        Some(over(Scope::Day, 100, 56, 45))
    );
    // Nothing was used after all.
    let nothing = first.used(tokens(1), Spending::default(), true);
    store.book(&[nothing]).await.unwrap();
    assert_eq!(second.reserve(store, tokens(45)).await, None);

    assert_eq!(of(&bert).reserve(store, tokens(100)).await, None);
    let mut tomorrow = Process {
        day: date(2026, 11, 23),
        ..of(&anna)
    };
    assert_eq!(tomorrow.reserve(store, tokens(100)).await, None);
    store
        .book(&[tomorrow.used(tokens(100), tokens(1), true)])
        .await
        .unwrap();
    assert_eq!(store.spent(None, TODAY).await.unwrap(), used);
}

/// Folding changes no sum: neither what was spent, nor what a block still reserves, nor what is
/// closed.
pub async fn folding_changes_no_sum(store: &impl BudgetStore) {
    let (anna, bert) = (user("anna"), user("bert"));
    let of = |user: &UserId| Process::new(user, at_most(100), at_most(160));
    let (mut runs, mut closed, mut third) = (of(&anna), of(&bert), of(&bert));
    assert_eq!(runs.reserve(store, tokens(60)).await, None);
    assert_eq!(closed.reserve(store, tokens(50)).await, None);
    store
        .book(&[
            runs.used(tokens(20), tokens(5), false),
            closed.used(tokens(50), tokens(30), true),
        ])
        .await
        .unwrap();
    for _ in 0..3 {
        assert_eq!(store.spent(Some(&anna), TODAY).await.unwrap(), tokens(5));
        assert_eq!(store.spent(Some(&bert), TODAY).await.unwrap(), tokens(30));
        assert_eq!(
            store.spent(None, TODAY).await.unwrap(),
            tokens(5) + tokens(30)
        );
        assert_eq!(
            third.reserve(store, tokens(80)).await,
            Some(over(Scope::Everyone, 160, 90, 80))
        );
        store.fold(TODAY).await.unwrap();
    }
    // More is booked on a block whose earlier bookings were folded.
    store
        .book(&[runs.used(tokens(40), tokens(45), false)])
        .await
        .unwrap();
    for _ in 0..2 {
        assert_eq!(
            third.reserve(store, tokens(80)).await,
            Some(over(Scope::Everyone, 160, 90, 80))
        );
        store.fold(TODAY).await.unwrap();
    }
    store
        .book(&[runs.used(Spending::default(), Spending::default(), true)])
        .await
        .unwrap();
    assert_eq!(
        third.reserve(store, tokens(75)).await,
        Some(over(Scope::Day, 100, 30, 75))
    );
    assert_eq!(third.reserve(store, tokens(70)).await, None);
    assert_eq!(store.spent(None, TODAY).await.unwrap().tokens, 80);
}

/// Each quantity has its own limit; one without a limit is counted all the same.
pub async fn every_quantity_has_its_limit(store: &impl BudgetStore) {
    let anna = user("anna");
    let used = Spending {
        tokens: 10,
        model_calls: 1,
        tool_calls: 3,
        ms: 500,
        cost: Cost::from_nano_usd(40),
    };
    let of = |allowance| Process::new(&anna, allowance, NONE);
    store
        .book(&[of(NONE).used(used, used, false)])
        .await
        .unwrap();
    for (allowance, quantity, limit) in [
        (
            Allowance {
                tokens: Some(19),
                ..NONE
            },
            Quantity::Tokens,
            19,
        ),
        (
            Allowance {
                model_calls: Some(1),
                ..NONE
            },
            Quantity::ModelCalls,
            1,
        ),
        (
            Allowance {
                tool_calls: Some(5),
                ..NONE
            },
            Quantity::ToolCalls,
            5,
        ),
        (
            Allowance {
                time: Some(Duration::from_millis(999)),
                ..NONE
            },
            Quantity::Time,
            999,
        ),
        (
            Allowance {
                cost: Some(Cost::from_nano_usd(79)),
                ..NONE
            },
            Quantity::Money,
            79,
        ),
    ] {
        let refused = of(allowance).reserve(store, used).await;
        let Some(Granted::Exceeded(refused)) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((refused.quantity, refused.limit), (quantity, limit));
        assert_eq!(refused.taken, refused.needed);
    }
    // The use is unknown: it fits no limit, and does no harm without one.
    let unknown = Spending {
        cost: Cost::from_nano_usd(u64::MAX),
        tokens: u64::MAX,
        ..used
    };
    let dear = Allowance {
        cost: Some(Cost::from_nano_usd(1 << 52)),
        ..NONE
    };
    let calls = Allowance {
        model_calls: Some(100),
        ..NONE
    };
    assert!(of(dear).reserve(store, unknown).await.is_some());
    assert_eq!(of(calls).reserve(store, unknown).await, None);
    assert_eq!(of(calls).reserve(store, unknown).await, None);
    assert!(of(dear).reserve(store, used).await.is_some());
}

/// The limit of all users together is checked besides that of each, by one request.
pub async fn all_users_together_have_a_limit(store: &impl BudgetStore) {
    let (anna, bert) = (user("anna"), user("bert"));
    let of = |user: &UserId| Process::new(user, at_most(100), at_most(150));
    store
        .book(&[of(&anna).used(tokens(80), tokens(80), true)])
        .await
        .unwrap();
    let mut second = of(&bert);
    assert_eq!(
        second.reserve(store, tokens(71)).await,
        Some(over(Scope::Everyone, 150, 80, 71))
    );
    assert_eq!(second.reserve(store, tokens(60)).await, None);
    assert_eq!(
        of(&anna).reserve(store, tokens(15)).await,
        Some(over(Scope::Everyone, 150, 140, 15))
    );
    assert_eq!(of(&anna).reserve(store, tokens(10)).await, None);
    assert_eq!(store.spent(None, TODAY).await.unwrap().tokens, 80);
}

/// A worker is granted more than it needs, but at most a sixteenth of the rest. A worker that is
/// refused keeps no unused part, so that another may have it.
pub async fn of_a_remainder_nothing_is_left_unused(store: &impl BudgetStore) {
    let anna = user("anna");
    let of = || Process::new(&anna, NONE, at_most(160));
    let wanted = tokens(1000);
    let blocks = |holds: u64, need: Spending| Granted::Blocks {
        everyone: Spending {
            tokens: holds,
            ..need
        },
        own: Spending::default(),
        many: false,
    };
    let (mut first, mut second) = (of(), of());
    assert_eq!(
        first.ask(store, tokens(2), wanted).await,
        blocks(10, tokens(2))
    );
    assert_eq!(
        second.ask(store, tokens(2), wanted).await,
        blocks(9, tokens(2))
    );
    // 160 without what both keep, and without the rest of the second one's block.
    assert_eq!(
        first.ask(store, tokens(150), wanted).await,
        over(Scope::Everyone, 160, 11, 150)
    );
    assert_eq!(
        second.ask(store, tokens(157), wanted).await,
        over(Scope::Everyone, 160, 4, 157)
    );
    assert_eq!(first.reserve(store, tokens(156)).await, None);
    assert_eq!(
        second.reserve(store, tokens(1)).await,
        Some(over(Scope::Everyone, 160, 160, 1))
    );
}

/// A dead worker's block is free after its time, and not before. Should the worker live after all,
/// its use is booked.
pub async fn the_block_of_a_dead_process_runs_out(store: &impl BudgetStore) {
    let anna = user("anna");
    let of = |ttl| Process {
        ttl,
        worker: "elsewhere".to_owned(),
        ..Process::new(&anna, at_most(100), at_most(100))
    };
    let mut alive = of(LONG);
    assert_eq!(alive.reserve(store, tokens(30)).await, None);
    let mut dead = of(Duration::ZERO);
    assert_eq!(dead.reserve(store, tokens(70)).await, None);
    // A running step keeps the time that it was started with.
    assert_eq!(alive.reserve(store, tokens(1)).await, None);
    alive.ttl = Duration::ZERO;
    assert_eq!(alive.reserve(store, tokens(1)).await, None);
    let mut next = of(LONG);
    assert_eq!(
        next.reserve(store, tokens(69)).await,
        Some(over(Scope::Everyone, 100, 32, 69))
    );
    assert_eq!(next.reserve(store, tokens(68)).await, None);
    store
        .book(&[
            dead.used(tokens(70), tokens(60), false),
            next.used(tokens(68), tokens(50), false),
        ])
        .await
        .unwrap();
    assert_eq!(store.spent(Some(&anna), TODAY).await.unwrap().tokens, 110);
    assert!(of(LONG).reserve(store, tokens(1)).await.is_some());
}

/// The block of a dead worker is free at once. Only for stores whose workers are on one machine.
/// `dead`: its worker id.
pub async fn a_dead_workers_block_is_free_at_once(store: &impl BudgetStore, dead: &str) {
    let of = || Process::new(&user("anna"), at_most(100), at_most(100));
    let mut lost = Process {
        worker: dead.to_owned(),
        ..of()
    };
    assert_eq!(lost.reserve(store, tokens(100)).await, None);
    assert_eq!(of().reserve(store, tokens(100)).await, None);
}

/// With many workers and several users at once, as many steps start as fit, and not one more; a
/// step that ends leaves its remainder to another.
pub async fn of_many_requests_at_once_no_two_get_the_same_remainder(store: &impl BudgetStore) {
    let users = [user("anna"), user("bert"), user("carl")];
    let (own, all) = (at_most(50), at_most(120));
    let many = || -> Vec<Process> {
        (0..36)
            .map(|number| Process::new(&users[number % 3], own, all))
            .collect()
    };
    let mut first = many();
    let answers = together(
        first
            .iter_mut()
            .map(|process| process.reserve(store, tokens(10))),
    )
    .await;
    let mut granted: Vec<Process> = first
        .into_iter()
        .zip(answers)
        .filter_map(|(process, answer)| answer.is_none().then_some(process))
        .collect();
    let of = |user: &UserId| {
        granted
            .iter()
            .filter(|process| process.user == *user)
            .count()
    };
    assert_eq!(granted.len(), 12, "120 of 10 each");
    assert!(users.iter().all(|user| of(user) <= 5), "50 of 10 each");

    // All end at once with half of what they reserved, while others start.
    let bookings: Vec<Booking> = granted
        .iter_mut()
        .map(|process| process.used(tokens(10), tokens(5), true))
        .collect();
    let settled = together(bookings.chunks(1).map(|booking| store.book(booking)));
    let mut second = many();
    let begun = together(
        second
            .iter_mut()
            .map(|process| process.reserve(store, tokens(10))),
    );
    let (settled, begun) = tokio::join!(settled, begun);
    settled.into_iter().for_each(|result| result.unwrap());
    let begun = begun.into_iter().filter(Option::is_none).count();
    assert!(
        begun <= 6,
        "{begun} began where 60 are spent and 10 each are set aside"
    );
    assert_eq!(store.spent(None, TODAY).await.unwrap().tokens, 60);
}

/// Eight workers reserve more than they need each time and spend all of it: together exactly the
/// limit.
pub async fn eight_workers_with_shares_spend_all_and_no_more(store: &impl BudgetStore) {
    const LIMIT: u64 = 1000;
    let work = async |number: u64| {
        let user = user(&format!("u{}", number % 3));
        let mut process = Process::new(&user, NONE, at_most(LIMIT));
        let mut asked = 0;
        loop {
            asked += 1;
            let need = tokens(1);
            let Granted::Blocks { everyone, many, .. } =
                process.ask(store, need, tokens(LIMIT)).await
            else {
                break;
            };
            // The step that asked, and those that are covered by the block.
            let rest = (everyone - process.kept).tokens;
            process.kept = process.kept
                + Spending {
                    tokens: rest,
                    ..Spending::default()
                };
            let one = Spending {
                tokens: 1,
                ..Spending::default()
            };
            let bookings: Vec<Booking> =
                (0..=rest).map(|_| process.used(one, one, false)).collect();
            store.book(&bookings).await.unwrap();
            if many {
                store.fold(TODAY).await.unwrap();
            }
        }
        asked
    };
    let asked = together((0..8).map(work)).await;
    assert_eq!(store.spent(None, TODAY).await.unwrap().tokens, LIMIT);
    let asked: u32 = asked.into_iter().sum();
    assert!(asked < 200, "{asked} times for {LIMIT} steps");
}

/// Spending is booked in the same commit as the events that it belongs to.
pub async fn bookings_are_in_the_commit_of_their_events(store: &(impl BudgetStore + Journal)) {
    let key = conversation("anna", 1);
    let process = &mut Process::new(&key.user, at_most(100), NONE);
    assert_eq!(process.reserve(store, tokens(90)).await, None);
    submit(store, &key, &message("i1", 0, "hello")).await;
    store.claim(&key, "w", LONG).await.unwrap();
    let begin = recorded(1, at(1), &[started(1, "i1")]);
    let first = [process.used(tokens(40), tokens(10), false)];
    let (worker, stranger) = (Worker::from("w"), Worker::from("other"));
    let spent = async || store.spent(Some(&key.user), TODAY).await.unwrap().tokens;
    let refused = store
        .append_held(
            &key,
            Writer {
                worker: stranger,
                spent: &first,
            },
            &begin,
        )
        .await;
    assert_eq!((refused, spent().await), (Err(StoreError::Conflict), 0));
    store
        .append_held(
            &key,
            Writer {
                worker,
                spent: &first,
            },
            &begin,
        )
        .await
        .unwrap();
    assert_eq!(spent().await, 10);
    let end = recorded(2, at(2), &[finished(1, "SUCCESS:RESPONSE_GIVEN")]);
    let last = [
        process.used(tokens(50), tokens(20), true),
        Process::new(&key.user, NONE, NONE).used(tokens(1), tokens(1), false),
    ];
    let refused = store
        .finish(
            &key,
            Writer {
                worker: stranger,
                spent: &last,
            },
            &end,
            None,
        )
        .await;
    assert_eq!((refused, spent().await), (Err(StoreError::Conflict), 10));
    let finished = store
        .finish(
            &key,
            Writer {
                worker,
                spent: &last,
            },
            &end,
            None,
        )
        .await
        .unwrap();
    assert_eq!((finished, spent().await), (Finished::Released, 31));
    // The block was closed with it.
    assert_eq!(
        Process::new(&key.user, at_most(100), NONE)
            .reserve(store, tokens(69))
            .await,
        None
    );
    // An end without events books too.
    store.claim(&key, "w", LONG).await.unwrap();
    let more = [process.used(tokens(0), tokens(3), false)];
    store
        .finish(
            &key,
            Writer {
                worker,
                spent: &more,
            },
            &[],
            None,
        )
        .await
        .unwrap();
    assert_eq!(spent().await, 34);
}

/// Runs futures concurrently, and returns their results in order.
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
        if done.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}
