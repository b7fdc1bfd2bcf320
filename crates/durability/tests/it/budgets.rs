//! Budgets per day, shared by agents on one database: their cost does not depend on the number of
//! users, and no more is spent than the budget allows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use adjutant_core::port::{
    Booking, BudgetStore, ConversationStore, GrantRequest, Granted, Journal, LogStore, StoreError,
};
use adjutant_core::{Allowance, BoxFuture, Budgets, OutcomeCategory, Spending, UserId};
use adjutant_providers::scripted::{ScriptedModel, text};
use adjutant_runtime::{Agent, RunContext};
use adjutant_store::{postgres, sqlite};
use futures::StreamExt as _;
use jiff::Timestamp;
use jiff::civil::{Date, date};
use sqlx::AssertSqlSafe;
use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use tempfile::TempDir;

use crate::server::Server;
use crate::size::cases;

const TODAY: Date = date(2026, 11, 22);
const NONE: Allowance = Allowance {
    tokens: None,
    model_calls: None,
    tool_calls: None,
    time: None,
    cost: None,
};

/// Users who have spent something today, as SQL of both databases.
const USERS: usize = 100_000;
const SPENT_IN_SQLITE: &str = "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 100000)
    INSERT INTO adjutant_budget (user_id, day, tokens, model_calls) SELECT 'user ' || n, '2026-11-22', 120, 1 FROM number;
    INSERT INTO adjutant_budget (user_id, day, tokens, model_calls) VALUES ('', '2026-11-22', 12000000, 100000)";
const SPENT_IN_POSTGRES: &str =
    "INSERT INTO adjutant_budget (user_id, day, tokens, model_calls) SELECT 'user ' || n, '2026-11-22', 120, 1
    FROM generate_series(1, 100000) AS n;
    INSERT INTO adjutant_budget (user_id, day, tokens, model_calls) VALUES ('', '2026-11-22', 12000000, 100000)";

trait Store: Journal + LogStore + ConversationStore + BudgetStore {}
impl<S: Journal + LogStore + ConversationStore + BudgetStore> Store for S {}

/// Counts the requests of the budgets to a store. Each is one commit.
struct Counted<S> {
    store: Arc<S>,
    asked: AtomicUsize,
}

impl<S: Store> BudgetStore for Counted<S> {
    fn grant<'a>(
        &'a self,
        request: GrantRequest<'a>,
    ) -> BoxFuture<'a, Result<Granted, StoreError>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.store.grant(request)
    }

    fn book<'a>(&'a self, bookings: &'a [Booking]) -> BoxFuture<'a, Result<(), StoreError>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.store.book(bookings)
    }

    fn fold(&self, day: Date) -> BoxFuture<'_, Result<(), StoreError>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.store.fold(day)
    }

    fn spent<'a>(
        &'a self,
        user: Option<&'a UserId>,
        day: Date,
    ) -> BoxFuture<'a, Result<Spending, StoreError>> {
        self.store.spent(user, day)
    }
}

fn agent<S: Store>(
    counted: &Arc<Counted<S>>,
    worker: &str,
    budgets: Budgets,
) -> (Agent, ScriptedModel) {
    let noon: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
    let model = ScriptedModel::new([text("Hi.").usage(100, 20).forever()]);
    let agent = Agent::builder("adjutant")
        .model(model.clone())
        .instruction("Be brief.")
        .clock(move || noon)
        .journal(counted.store.clone(), worker)
        .budgets(budgets, counted.clone())
        .build();
    (agent.unwrap(), model)
}

fn counted<S: Store>(store: Arc<S>) -> Arc<Counted<S>> {
    Arc::new(Counted {
        store,
        asked: AtomicUsize::new(0),
    })
}

async fn run_message(agent: &Agent, user: usize) -> OutcomeCategory {
    let user = UserId::new(format!("user {user}")).unwrap();
    agent
        .run_in(&mut RunContext::new(user), "hello")
        .await
        .unwrap()
        .outcome
}

fn everyone(allowance: Allowance) -> Budgets {
    Budgets {
        everyone_per_day: allowance,
        ..Budgets::default()
    }
}

async fn on_file(folder: &TempDir) -> Arc<sqlite::Store> {
    let path = folder.path().join("adjutant.db");
    let store = Arc::new(sqlite::Store::open(&path).await.unwrap());
    let mut hand = SqliteConnectOptions::new()
        .filename(&path)
        .connect()
        .await
        .unwrap();
    sqlx::raw_sql(SPENT_IN_SQLITE)
        .execute(&mut hand)
        .await
        .unwrap();
    store
}

async fn on_server(server: &Server, name: &str) -> Arc<postgres::Store> {
    let url = server.create_database(name).await;
    let store = Arc::new(postgres::Store::connect(&url, 4).await.unwrap());
    let mut hand = url
        .parse::<PgConnectOptions>()
        .unwrap()
        .connect()
        .await
        .unwrap();
    sqlx::raw_sql(AssertSqlSafe(SPENT_IN_POSTGRES))
        .execute(&mut hand)
        .await
        .unwrap();
    store
}

/// A thousand steps in sequence, of as many users, cost a few requests to the store.
async fn a_thousand_steps<S: Store>(database: &str, store: Arc<S>) {
    let turns = cases(1000, 200);
    let counted = counted(store);
    let plenty = Allowance {
        tokens: Some(1 << 40),
        model_calls: Some(1 << 20),
        ..NONE
    };
    let (agent, _) = agent(&counted, "one", everyone(plenty));
    for user in 1..=turns {
        assert_eq!(
            run_message(&agent, user).await,
            OutcomeCategory::ResponseGiven
        );
    }
    let asked = counted.asked.load(Ordering::SeqCst);
    println!("{database}: {turns} steps, {USERS} users: asked {asked} times");
    assert!(asked < 100, "asked {asked} times");
    let spent = counted.spent(None, TODAY).await.unwrap();
    let calls = USERS + turns;
    assert_eq!(
        (spent.model_calls, spent.tokens),
        (calls as u64, 120 * calls as u64)
    );
    let first = counted
        .spent(Some(&UserId::new("user 1").unwrap()), TODAY)
        .await
        .unwrap();
    assert_eq!((first.model_calls, first.tokens), (2, 240));
}

/// Eight agents spend the rest of a budget: all of it, and no more.
async fn a_small_remainder<S: Store>(store: Arc<S>) {
    const LEFT: usize = 75;
    let counted = counted(store);
    let calls = (USERS + LEFT) as u64;
    let agents: Vec<_> = (0..8)
        .map(|number| {
            agent(
                &counted,
                &format!("replica {number}"),
                everyone(Allowance {
                    model_calls: Some(calls),
                    ..NONE
                }),
            )
        })
        .collect();
    let work = async |agent: &Agent, number: usize| {
        let mut answered = 0;
        while run_message(agent, number * 3 + answered % 3).await == OutcomeCategory::ResponseGiven
        {
            answered += 1;
        }
        answered
    };
    // Two turns of each agent at once.
    let works = agents
        .iter()
        .enumerate()
        .flat_map(|(number, (agent, _))| [work(agent, number), work(agent, number)]);
    let answered: usize = futures::future::join_all(works).await.into_iter().sum();
    let made: usize = agents.iter().map(|(_, model)| model.calls_made()).sum();
    assert_eq!((answered, made), (LEFT, LEFT));
    assert_eq!(counted.spent(None, TODAY).await.unwrap().model_calls, calls);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_of_many_users_ask_a_file_a_few_times() {
    let folder = TempDir::new().unwrap();
    let store = on_file(&folder).await;
    a_thousand_steps("SQLite", store.clone()).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn steps_of_many_users_ask_a_server_a_few_times() {
    let Some(server) = Server::start() else {
        return;
    };
    let store = on_server(&server, "steps").await;
    a_thousand_steps("PostgreSQL", store.clone()).await;
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_small_remainder_all_is_spent_and_no_more() {
    let folder = TempDir::new().unwrap();
    a_small_remainder(on_file(&folder).await).await;
    let Some(server) = Server::start() else {
        return;
    };
    a_small_remainder(on_server(&server, "remainder").await).await;
}

/// Measures the steps per second that two agents pay for, each of many users at once, with both
/// budgets per day.
async fn pace<S: Store>(database: &str, store: Arc<S>) {
    let turns = 10_000;
    let counted = counted(store);
    let plenty = Allowance {
        tokens: Some(1 << 40),
        model_calls: Some(1 << 20),
        ..NONE
    };
    for (bounds, budgets) in [
        ("no bound", Budgets::default()),
        ("everyone's", everyone(plenty)),
        (
            "everyone's and the user's",
            Budgets {
                per_day: plenty,
                ..everyone(plenty)
            },
        ),
    ] {
        let agents = [
            agent(&counted, "one", budgets).0,
            agent(&counted, "two", budgets).0,
        ];
        let began = Instant::now();
        counted.asked.store(0, Ordering::SeqCst);
        let all =
            futures::stream::iter(0..turns).map(|number| run_message(&agents[number % 2], number));
        let answered = all
            .buffer_unordered(128)
            .filter(|outcome| std::future::ready(*outcome == OutcomeCategory::ResponseGiven));
        assert_eq!(answered.count().await, turns);
        let pace = turns as f64 / began.elapsed().max(Duration::from_millis(1)).as_secs_f64();
        let asked = counted.asked.load(Ordering::SeqCst);
        println!(
            "{database}, {bounds}: {pace:.0} turns of one step a second, the store was asked {asked} times"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: it says a figure and checks none"]
async fn steps_a_second() {
    let folder = TempDir::new().unwrap();
    pace("SQLite", on_file(&folder).await).await;
    let Some(server) = Server::start() else {
        return;
    };
    pace("PostgreSQL", on_server(&server, "pace").await).await;
}
