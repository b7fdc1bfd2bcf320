//! A process that is killed while it writes.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use adjutant_core::port::Journal as _;
use adjutant_core::{
    AgentName, ConversationKey, IdempotencyKey, Input, InputBody, InputId, UserId,
};
use adjutant_store::{contract, sqlite::Store, worker_id};
use adjutant_tools::{TaskChange, TaskDescription, TaskFilter, TaskStore as _};

use crate::place;

/// Tells the child which database to write to.
const CHILD: &str = "ADJUTANT_STORE_TEST_CHILD";

fn key(number: usize) -> ConversationKey {
    let conversation = format!("00000000-0000-7000-8000-{number:012}")
        .parse()
        .unwrap();
    ConversationKey {
        agent: AgentName::adjutant(),
        user: UserId::local(),
        conversation,
    }
}

fn input(number: usize) -> Input {
    let body = InputBody::message(format!("message {number}"));
    Input::new(
        InputId::new(format!("i{number}")).unwrap(),
        jiff::Timestamp::UNIX_EPOCH,
        body,
    )
}

fn change(number: usize) -> (TaskChange, IdempotencyKey) {
    let description = TaskDescription::new(&format!("task {number}")).unwrap();
    (
        TaskChange::Add {
            description,
            from_others: false,
        },
        IdempotencyKey::new(format!("key {number}")).unwrap(),
    )
}

/// Writes and takes leases until it is killed, printing what was confirmed.
async fn child(path: &Path) -> ! {
    use std::io::Write as _;

    let store = Store::open(path).await.unwrap();
    let mut out = std::io::stdout();
    // The name of the test may stand in front, on the same line.
    writeln!(out, "\nworker {}", worker_id()).unwrap();
    for number in 1.. {
        store.submit(&key(number), &input(number)).await.unwrap();
        assert!(
            store
                .claim(&key(number), worker_id(), Duration::from_secs(3600))
                .await
                .unwrap()
                .is_held()
        );
        let (change, key) = change(number);
        store
            .apply(&UserId::local(), &change, Some(&key))
            .await
            .unwrap();
        writeln!(out, "done {number}").unwrap();
        out.flush().unwrap();
    }
    unreachable!("there are always more numbers")
}

#[cfg(target_os = "linux")]
#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "how a test knows that it is the child"
)]
async fn confirmed_writes_survive_a_kill_and_dead_workers_leases_are_free() {
    if let Some(path) = std::env::var_os(CHILD) {
        child(Path::new(&path)).await;
    }
    let (_folder, path) = place();
    let mut confirmed = 0;
    let mut dead = String::new();
    for round in 1..=3 {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "crash::confirmed_writes_survive_a_kill_and_dead_workers_leases_are_free",
                "--nocapture",
            ])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        for line in lines {
            if let Some(worker) = line.strip_prefix("worker ") {
                worker.clone_into(&mut dead);
            } else if let Some(number) = line.strip_prefix("done ") {
                confirmed = confirmed.max(number.parse().unwrap());
                // Killed a little later each time, in the middle of whatever it does then.
                if number.parse::<usize>().unwrap() >= 7 * round {
                    process.kill().unwrap();
                    break;
                }
            }
        }
        process.wait().unwrap();
        assert!(confirmed >= 7 * round, "the child ended early");

        let store = Store::open(&path).await.unwrap();
        let tasks = store.list(&UserId::local(), TaskFilter::All).await.unwrap();
        assert!(tasks.len() >= confirmed);
        for (number, task) in (1..).zip(&tasks) {
            assert_eq!(
                (task.id.get(), task.description.to_string()),
                (number, format!("task {number}"))
            );
        }
        let unsettled = store.unsettled(&AgentName::adjutant(), None).await.unwrap();
        assert!(unsettled.len() >= tasks.len());
        for number in 1..=confirmed {
            assert!(
                unsettled.contains(&key(number)),
                "{number} is leased by no live worker"
            );
            assert_eq!(
                store.load(&key(number)).await.unwrap().inbox,
                [input(number)]
            );
        }
        // A repeat after the restart has no second effect.
        let (change, key) = change(confirmed);
        store
            .apply(&UserId::local(), &change, Some(&key))
            .await
            .unwrap();
        assert_eq!(
            store
                .list(&UserId::local(), TaskFilter::All)
                .await
                .unwrap()
                .len(),
            tasks.len()
        );
        store.close().await;
    }
    contract::a_dead_workers_lease_is_free_at_once(&Store::in_memory().await.unwrap(), &dead).await;
    contract::a_dead_workers_block_is_free_at_once(&Store::in_memory().await.unwrap(), &dead).await;
}
