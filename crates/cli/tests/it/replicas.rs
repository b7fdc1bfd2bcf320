//! Two processes of the binary on one PostgreSQL, requests spread over both at random, one of the
//! two killed again and again while they work: every request ends exactly once, no task is doubled
//! or lost, conversations stay in order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use adjutant_core::port::Journal as _;
use adjutant_core::{AgentName, ConversationId, ConversationKey, Event, UserId};
use adjutant_store::postgres::Store;
use adjutant_tools::{TaskFilter, TaskStore as _};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Home, Run};
use crate::server::Server;
use crate::service::{self, Serving};

const MODEL: &[&str] = &[
    r#"{"match": "success", "text": "Done."}"#,
    r#"{"match": "add ", "calls": [{"name": "add_task", "args": {"description": "{{rest}}"}}]}"#,
    r#"{"match": "drop ", "calls": [{"name": "delete_task", "args": {"task_id": "{{rest}}"}}]}"#,
];
const USERS: [&str; 3] = ["anna", "bert", "carla"];
/// Of each user, each with a client of its own.
const CONVERSATIONS: usize = 2;
/// Tasks that are added in each conversation; then the first is deleted, after a yes.
const ADDS: usize = 10;
const KILLS: usize = 6;
/// Lease of a claim, milliseconds: shorter than the default, so that a killed replica's work is
/// taken over soon.
const LEASE_MS: &str = "5000";

/// State shared by all threads.
struct Replicas {
    addresses: [Mutex<String>; 2],
    /// Requests that were answered.
    answered: Mutex<usize>,
    progress: Condvar,
    sent_again: AtomicUsize,
}

impl Replicas {
    /// One request, sent until it is answered, each time to either replica.
    fn ask(&self, token: &str, name: &str, body: &Value, dice: &mut Dice) -> Value {
        loop {
            let address = self.addresses[dice.roll() % 2].lock().unwrap().clone();
            match service::chat(&address, token, Some(name), body) {
                Ok(answer) if answer.status == 200 => {
                    *self.answered.lock().unwrap() += 1;
                    self.progress.notify_all();
                    return answer.body;
                }
                // It says itself that it may be tried again.
                Ok(answer) if answer.status == 503 => {}
                Ok(answer) => panic!("{name}: {answer:?}"),
                Err(_) => {}
            }
            self.sent_again.fetch_add(1, Ordering::Relaxed);
            // What any client does that tries again.
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn wait_for(&self, answered: usize) {
        let count = self.answered.lock().unwrap();
        drop(
            self.progress
                .wait_while(count, |count| *count < answered)
                .unwrap(),
        );
    }
}

/// Random enough to spread requests, and the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap()
    }
}

/// One person in one conversation: adds, then a delete and its yes.
fn client(replicas: &Replicas, token: &str, thread: &str, words: &str, mut dice: Dice) {
    for number in 0..ADDS {
        let body = json!({"message": format!("add {words}-{number}."), "thread_id": thread});
        let answer = replicas.ask(token, &format!("{words}-{number}"), &body, &mut dice);
        assert_eq!(answer["outcome"], "SUCCESS:TASK_COMPLETED", "{answer}");
    }
    let drop = json!({"message": format!("drop {words}-0."), "thread_id": thread});
    let asked = replicas.ask(token, &format!("{words}-drop"), &drop, &mut dice);
    assert_eq!(asked["outcome"], "PENDING:CONFIRMATION", "{asked}");
    let interrupt = &asked["pending"][0]["interrupt_id"];
    let yes =
        json!({"thread_id": thread, "resume": [{"interrupt_id": interrupt, "approved": true}]});
    let gone = replicas.ask(token, &format!("{words}-yes"), &yes, &mut dice);
    assert_eq!(gone["outcome"], "SUCCESS:TASK_COMPLETED", "{gone}");
}

#[tokio::test]
async fn two_replicas_lose_and_double_nothing_while_one_is_killed_again_and_again() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("team").await;
    let home = Home::new();
    let model = home.script(MODEL);
    let start = || {
        let args = [
            "serve",
            "--json",
            "--bind",
            "127.0.0.1:0",
            "-m",
            &model,
            "--database",
            &url,
        ];
        Serving::start(home.command(&args).env("ADJUTANT_LEASE_MS", LEASE_MS))
    };
    let tokens = USERS.map(|user| {
        let made =
            Run::of(&mut home.command(&["token", "create", "--user", user, "--database", &url]));
        made.succeeds().stdout.trim().to_owned()
    });
    let mut services = [start(), start()];
    let replicas = Replicas {
        addresses: [0, 1].map(|number: usize| Mutex::new(services[number].address.clone())),
        answered: Mutex::new(0),
        progress: Condvar::new(),
        sent_again: AtomicUsize::new(0),
    };
    let clients: Vec<(usize, ConversationId, String)> = (0..USERS.len() * CONVERSATIONS)
        .map(|number| {
            let user = number % USERS.len();
            (
                user,
                ConversationId(Uuid::now_v7()),
                format!("{}-thing-{number}", USERS[user]),
            )
        })
        .collect();
    let requests = clients.len() * (ADDS + 2);

    std::thread::scope(|scope| {
        for (number, (user, conversation, words)) in clients.iter().enumerate() {
            let (replicas, token) = (&replicas, &tokens[*user]);
            scope.spawn(move || {
                client(
                    replicas,
                    token,
                    &conversation.to_string(),
                    words,
                    Dice(number as u64),
                );
            });
        }
        // The kills are spread over the work, whatever it takes.
        for kill in 1..=KILLS {
            replicas.wait_for(kill * requests / (KILLS + 1));
            let victim = kill % 2;
            services[victim].kill();
            services[victim] = start();
            replicas.addresses[victim]
                .lock()
                .unwrap()
                .clone_from(&services[victim].address);
        }
    });
    assert_eq!(*replicas.answered.lock().unwrap(), requests);
    let sent_again = replicas.sent_again.load(Ordering::Relaxed);
    assert!(sent_again > 0, "no kill was noticed");

    let store = Store::connect(&url, 2).await.unwrap();
    assert_eq!(
        store.unsettled(&AgentName::adjutant(), None).await.unwrap(),
        []
    );
    for (number, user) in USERS.iter().enumerate() {
        let tasks = store
            .list(&UserId::new(*user).unwrap(), TaskFilter::All)
            .await
            .unwrap();
        let mut found: Vec<String> = tasks
            .iter()
            .map(|task| task.description.to_string())
            .collect();
        let of_user = clients.iter().filter(|client| client.0 == number);
        let mut expected: Vec<String> = of_user
            .flat_map(|(_, _, words)| (1..ADDS).map(move |task| format!("{words}-{task}.")))
            .collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{user}");
    }
    for (user, conversation, words) in &clients {
        let key = ConversationKey {
            agent: AgentName::adjutant(),
            user: UserId::new(USERS[*user]).unwrap(),
            conversation: *conversation,
        };
        let loaded = store.load(&key).await.unwrap();
        assert_eq!(loaded.inbox, []);
        let mut said = Vec::new();
        let mut open = None;
        for (index, recorded) in loaded.events.iter().enumerate() {
            assert_eq!(recorded.seq, index as u64 + 1);
            match &*recorded.event {
                Event::TurnStarted { turn, message, .. } => {
                    assert_eq!(
                        open.replace(*turn),
                        None,
                        "{words}: a turn began inside another"
                    );
                    said.push(message.clone());
                }
                Event::TurnFinished { turn, .. } => assert_eq!(open.take(), Some(*turn), "{words}"),
                _ => {}
            }
        }
        assert_eq!(open, None);
        let mut expected: Vec<String> = (0..ADDS)
            .map(|number| format!("add {words}-{number}."))
            .collect();
        expected.push(format!("drop {words}-0."));
        assert_eq!(said, expected);
    }
    store.close().await;
    println!(
        "{requests} requests of {} people over two replicas, {KILLS} kills, {sent_again} sent again: each was answered \
         once, {} tasks are there once each, {} conversations are in order",
        USERS.len(),
        clients.len() * (ADDS - 1),
        clients.len()
    );
}
