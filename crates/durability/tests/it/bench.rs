//! A database with workers on it, and the result of a scene.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::port::{Begin, Journal, Loaded};
use adjutant_core::{AgentName, CallId, ConversationKey, Effect, Event, Input, UserId};
use adjutant_durability::{Called, Setup, Style, tool_name};
use adjutant_store::{postgres, sqlite};
use adjutant_tools::{Task, TaskFilter, TaskStore};
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::journal;
use crate::scene::{Scene, Talk};
use crate::server::Server;
use crate::worker::{Gone, Harm, Worker};
use crate::world::{Seen, World};

/// The database under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

/// A database, the servers around it, and a connection to read the journal.
pub(crate) struct Bench {
    pub(crate) world: World,
    pub(crate) setup: Setup,
    pub(crate) server: Option<Server>,
    _folder: TempDir,
    journal: Arc<dyn Journal>,
    tasks: Arc<dyn TaskStore>,
    runtime: Runtime,
}

/// Releases the leases of a worker that is gone, whose epoch is not known any more.
pub(crate) async fn give_back(journal: &dyn Journal, key: &ConversationKey, worker: &str) {
    let again = Begin {
        input: None,
        turn: &[],
        first: None,
        worker: worker.into(),
        lease: Duration::from_secs(60),
        known: None,
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    journal.begin(key, again).await.unwrap();
    journal.release(key, worker.into()).await.unwrap();
}

/// A played scene with its result.
pub(crate) struct Played {
    pub(crate) talk: Talk,
    /// True if tools could be probed.
    pub(crate) probed: bool,
    /// The boundaries at which workers were killed.
    pub(crate) kills: Vec<String>,
    /// Calls that were started and not finished when a worker was killed.
    pub(crate) open: BTreeSet<CallId>,
    pub(crate) loaded: Loaded,
    pub(crate) seen: Vec<Seen>,
}

impl Bench {
    /// Returns `None`, with a note, if the store is PostgreSQL and it is missing.
    pub(crate) fn new(kind: Kind) -> Option<Self> {
        let runtime = Runtime::new().unwrap();
        // In memory if possible: no power is lost here.
        let memory = std::path::Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            TempDir::new_in(memory)
        } else {
            TempDir::new()
        }
        .unwrap();
        type Parts = (String, Option<Server>, Arc<dyn Journal>, Arc<dyn TaskStore>);
        let (database, server, journal, tasks): Parts = match kind {
            Kind::Sqlite => {
                let path = folder.path().join("adjutant.db");
                let store = Arc::new(runtime.block_on(sqlite::Store::open(&path)).unwrap());
                (
                    path.to_str().unwrap().to_owned(),
                    None,
                    store.clone(),
                    store,
                )
            }
            Kind::Postgres => {
                let server = Server::start()?;
                let url = runtime.block_on(server.create_database("faults"));
                let store = Arc::new(runtime.block_on(postgres::Store::connect(&url, 2)).unwrap());
                (url, Some(server), store.clone(), store)
            }
        };
        let world = World::new();
        let setup = Setup {
            database,
            agent: AgentName::new("worker").unwrap(),
            resumes: false,
            // Started again under the same name, it has its leases at once; tests of leases use
            // other names.
            name: (kind == Kind::Postgres).then(|| "replica".to_owned()),
            model: world.model,
            tools: world.tools,
            probe: false,
            patience: Duration::from_secs(60),
            confirmation_expiry: Duration::from_secs(3600),
        };
        Some(Self {
            world,
            setup,
            server,
            _folder: folder,
            journal,
            tasks,
            runtime,
        })
    }

    pub(crate) fn start(&self, harm: Harm) -> Worker {
        Worker::start(&self.setup, harm)
    }

    /// Starts a worker with this name, so that others wait for the end of its leases.
    pub(crate) fn start_as(&self, name: &str, harm: Harm) -> Worker {
        Worker::start(
            &Setup {
                name: Some(name.to_owned()),
                ..self.setup.clone()
            },
            harm,
        )
    }

    pub(crate) fn load(&self, key: &ConversationKey) -> Loaded {
        self.runtime.block_on(self.journal.load(key)).unwrap()
    }

    pub(crate) fn tasks(&self, user: &UserId) -> Vec<Task> {
        self.runtime
            .block_on(self.tasks.list(user, TaskFilter::All))
            .unwrap()
    }

    /// Returns the conversations that must be recovered.
    pub(crate) fn unsettled(&self) -> Vec<ConversationKey> {
        self.runtime
            .block_on(self.journal.unsettled(&self.setup.agent, None))
            .unwrap()
    }

    /// Ends the lease of a worker that is gone, as its expiry does.
    pub(crate) fn release(&self, key: &ConversationKey, worker: &str) {
        self.runtime
            .block_on(give_back(&*self.journal, key, worker));
    }

    pub(crate) fn submit(&self, key: &ConversationKey, input: &Input) {
        self.runtime
            .block_on(self.journal.submit(key, input))
            .unwrap();
    }

    /// Plays a scene whose workers are killed at these boundaries, in sequence; the last one lives.
    pub(crate) fn play(&self, talk: Talk, kills: &[u32]) -> Played {
        let mut kill_at = kills.iter().copied();
        let mut start = || {
            self.start(Harm {
                kill_at: kill_at.next(),
                ..Harm::default()
            })
        };
        let (mut talk, mut worker) = (talk, start());
        let (mut killed, mut open) = (Vec::new(), BTreeSet::new());
        while let Some(request) = talk.next() {
            match worker.ask(&request) {
                Ok(response) => {
                    talk.record(response.unwrap_or_else(|error| panic!("{killed:?}: {error}")))
                }
                Err(Gone) => {
                    let words = worker.last_words();
                    assert!(
                        words.starts_with("killed at boundary"),
                        "after {killed:?}: {words}"
                    );
                    killed.push(words);
                    open.extend(self.left_open(&worker, &talk.key));
                    worker = start();
                }
            }
        }
        self.played(talk, killed, open)
    }

    /// Returns the calls of a conversation that a killed worker had started and not finished.
    pub(crate) fn left_open(&self, killed: &Worker, key: &ConversationKey) -> BTreeSet<CallId> {
        if let Some(sessions) = killed.sessions() {
            self.runtime
                .block_on(end_of(sessions, &self.setup.database));
        }
        open_calls(&self.load(key))
    }

    pub(crate) fn played(&self, talk: Talk, kills: Vec<String>, open: BTreeSet<CallId>) -> Played {
        let loaded = self.load(&talk.key);
        let seen = self.world.seen(talk.key.conversation);
        Played {
            talk,
            probed: self.setup.probe,
            kills,
            open,
            loaded,
            seen,
        }
    }

    /// Plays a scene without a kill.
    pub(crate) fn golden(&self, scene: &Scene, effect: Effect) -> Played {
        self.play(Talk::new(scene, effect), &[])
    }
}

/// Waits until PostgreSQL has ended the sessions of this name. A server notices that a client is
/// gone only after it has executed what it received: one of two concurrent calls may have sent its
/// commit when the other reached the boundary of the kill.
async fn end_of(sessions: &str, database: &str) {
    let mut connection = PgConnection::connect(database).await.unwrap();
    loop {
        let open =
            sqlx::query_scalar("SELECT count(*) FROM pg_stat_activity WHERE application_name = $1");
        let open: i64 = open
            .bind(sessions)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        if open == 0 {
            return connection.close().await.unwrap();
        }
    }
}

/// Returns the calls that were started and did not finish.
pub(crate) fn open_calls(loaded: &Loaded) -> BTreeSet<CallId> {
    let mut open = BTreeSet::new();
    for recorded in &loaded.events {
        match &*recorded.event {
            Event::CallStarted { call, .. } => {
                open.insert(call.clone());
            }
            Event::CallFinished { call, .. } | Event::CallInDoubt { call, .. } => {
                open.remove(call);
            }
            _ => {}
        }
    }
    open
}

impl Played {
    /// Returns the number of times that each call reached its tool, and of distinct keys.
    pub(crate) fn calls(&self, effect: Effect) -> Vec<(CallId, usize, usize)> {
        let mut ids: Vec<&CallId> = Vec::new();
        let called = self.called();
        let of_effect = || called.iter().filter(move |called| called.effect == effect);
        for called in of_effect() {
            if !ids.contains(&&called.call) {
                ids.push(&called.call);
            }
        }
        let count = |id: &CallId| {
            let keys: BTreeSet<&str> = of_effect()
                .filter(|called| called.call == *id)
                .map(|called| called.key.as_str())
                .collect();
            (
                id.clone(),
                of_effect().filter(|called| called.call == *id).count(),
                keys.len(),
            )
        };
        ids.into_iter().map(count).collect()
    }

    /// Returns the calls that reached the tools, in order.
    pub(crate) fn called(&self) -> Vec<Called> {
        let called = self.seen.iter().filter_map(|seen| match seen {
            Seen::Tool(called) => Some(called.clone()),
            Seen::Model => None,
        });
        called.collect()
    }

    pub(crate) fn model_calls(&self) -> usize {
        self.seen
            .iter()
            .filter(|seen| **seen == Seen::Model)
            .count()
    }

    /// Returns the journaled calls that were in doubt.
    pub(crate) fn in_doubt(&self) -> BTreeSet<CallId> {
        journal::in_doubt(&self.loaded)
    }

    /// Returns true if a journaled call was of a tool with this effect.
    pub(crate) fn has_effect(&self, wanted: &CallId, effect: Effect) -> bool {
        let names = Style::ALL.map(|style| tool_name(effect, style));
        self.loaded.events.iter().any(|recorded| {
            matches!(&*recorded.event, Event::CallStarted { call, tool, .. } if call == wanted && names.contains(tool))
        })
    }
}
