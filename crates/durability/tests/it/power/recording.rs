//! A recording of several conversations, and checks of the data that is left after a power loss.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use adjutant_core::port::{Journal as _, Loaded};
use adjutant_core::{AgentName, CallId, Event};
use adjutant_durability::{Called, Reply, Response, Setup};
use adjutant_store::{Maintenance as _, sqlite};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::bench::Played;
use crate::invariants;
use crate::power::disk::{self, Disk, Left};
use crate::power::record::{Defect, Operation, Recorder};
use crate::scene::{Scene, Talk};
use crate::worker::{Harm, Worker, receive};
use crate::world::{Seen, World};

/// Conversations that run at the same time.
const AT_ONCE: usize = 6;

/// A recording of file operations and replies.
pub(crate) struct Recording {
    pub(crate) operations: Vec<Operation>,
    /// Errors that clients got, by conversation.
    pub(crate) errors: Vec<(usize, String)>,
    /// The conversations before their first message.
    talks: Vec<(Scene, Talk)>,
    /// The conversations after their last message.
    ended: Vec<Talk>,
    /// The calls that the tool process saw, by conversation.
    seen: Vec<Vec<Seen>>,
    /// The journal of each conversation at the end.
    loaded: Vec<Loaded>,
    /// The conversation of each request number.
    said: HashMap<u64, usize>,
}

/// The output of a worker before the power loss.
#[derive(Default)]
struct Said {
    /// Responses, by conversation.
    responses: HashMap<usize, Vec<Response>>,
    calls: Vec<Called>,
}

impl Recording {
    /// Plays the scenes with every effect class, several at once. A client that gets an error
    /// submits the same input again.
    pub(crate) fn new(recorder: &Recorder, defect: Defect, scenes: &[Scene]) -> Self {
        let (folder, world) = (folder(), World::new());
        let variables = recorder.variables(folder.path(), defect);
        let worker = Worker::start_with(&setup(&folder, &world), Harm::default(), variables);
        let plays = |scene: &Scene| {
            let scene = *scene;
            scene
                .effects()
                .iter()
                .map(move |effect| (scene, Talk::new(&scene, *effect)))
        };
        let talks: Vec<(Scene, Talk)> = scenes.iter().flat_map(plays).collect();
        let next = AtomicUsize::new(0);
        let errors: Mutex<Vec<(usize, String)>> = Mutex::default();
        let said: Mutex<HashMap<u64, usize>> = Mutex::default();
        let converse = || {
            let mut ended = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::SeqCst);
                let Some((scene, talk)) = talks.get(number) else {
                    return ended;
                };
                let mut talk = talk.again(scene);
                while let Some(request) = talk.next() {
                    let (asked, answer) = worker.say_numbered(&request).unwrap();
                    said.lock().unwrap().insert(asked, number);
                    match receive(&answer).unwrap() {
                        Ok(response) => talk.record(response),
                        Err(error) => errors.lock().unwrap().push((number, error)),
                    }
                }
                ended.push((number, talk));
            }
        };
        let mut ended: Vec<(usize, Talk)> = std::thread::scope(|scope| {
            let talking: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(converse)).collect();
            talking
                .into_iter()
                .flat_map(|talking| talking.join().unwrap())
                .collect()
        });
        ended.sort_by_key(|(number, _)| *number);
        worker.end();
        let operations = recorder.operations();
        everything_was_recorded(&operations, &folder);
        let seen: Vec<_> = talks
            .iter()
            .map(|(_, talk)| world.seen(talk.key.conversation))
            .collect();
        let calls = seen
            .iter()
            .flatten()
            .filter(|seen| matches!(seen, Seen::Tool(_)))
            .count();
        let recorded = operations
            .iter()
            .filter(|it| matches!(it, Operation::Tool(called) if !called.probe));
        assert_eq!(recorded.count(), calls, "calls of tools");
        let loaded = Runtime::new().unwrap().block_on(async {
            let store = sqlite::Store::open(folder.path().join("adjutant.db"))
                .await
                .unwrap();
            load(&store, &talks).await
        });
        Self {
            operations,
            errors: errors.into_inner().unwrap(),
            talks,
            ended: ended.into_iter().map(|(_, talk)| talk).collect(),
            seen,
            loaded,
            said: said.into_inner().unwrap(),
        }
    }

    /// Checks that each conversation ended as if nothing had failed, except for repeats that an
    /// error allows.
    pub(crate) fn is_done_once(&self, about: &str) {
        let ended = self.talks.iter().zip(&self.ended).enumerate();
        for (number, ((scene, _), talk)) in ended {
            let errors = self.errors.iter().filter(|(of, _)| *of == number).count();
            let about = format!("{about}, {scene:?} after {errors} errors");
            let (loaded, seen) = (self.loaded[number].clone(), self.seen[number].clone());
            is_done_once(talk.clone(), loaded, seen, errors, &about);
        }
    }

    /// Simulates a power loss at each of these moments, which are in order. Returns what is wrong
    /// afterwards. After every `goes_on`-th moment without a fault the conversations continue from
    /// there.
    pub(crate) fn fail_at(&self, moments: &[(usize, Left)], goes_on: Option<usize>) -> Vec<String> {
        std::thread::scope(|scope| {
            let of = |half: usize| moments.iter().skip(half).step_by(2);
            let other = scope.spawn(move || self.fail(of(1), goes_on));
            let mut faults = self.fail(of(0), goes_on);
            faults.extend(other.join().unwrap());
            faults
        })
    }

    fn fail<'a>(
        &self,
        moments: impl Iterator<Item = &'a (usize, Left)>,
        goes_on: Option<usize>,
    ) -> Vec<String> {
        let runtime = Runtime::new().unwrap();
        let (mut disk, mut said, mut done, mut faults) =
            (Disk::default(), Said::default(), 0, Vec::new());
        for (number, (at, left)) in moments.enumerate() {
            for operation in &self.operations[done..*at] {
                match operation {
                    Operation::Reply(Reply { number, result }) => {
                        said.responses
                            .entry(self.said[number])
                            .or_default()
                            .extend(result.clone());
                    }
                    Operation::Tool(called) => said.calls.push(called.clone()),
                    operation => disk.play(operation),
                }
            }
            done = *at;
            let (files, folder) = (disk.after(*left), folder());
            disk::put(&files, folder.path());
            let about = format!("power lost after operation {at}, {left:?} is left");
            let found = runtime.block_on(async {
                match sqlite::Store::open(folder.path().join("adjutant.db")).await {
                    Ok(store) => self.faults(&store, &said).await,
                    Err(error) => vec![error.to_string()],
                }
            });
            if found.is_empty()
                && goes_on.is_some_and(|goes_on| (number + 1).is_multiple_of(goes_on))
            {
                self.go_on(&files, &said, &about);
            }
            faults.extend(found.into_iter().map(|fault| format!("{about}: {fault}")));
        }
        faults
    }

    /// Returns what is wrong with the data that is left.
    async fn faults(&self, store: &sqlite::Store, said: &Said) -> Vec<String> {
        let mut faults: Vec<_> = match store.check().await {
            Ok(found) => found.iter().map(|finding| format!("{finding}")).collect(),
            Err(error) => return vec![error.to_string()],
        };
        let found = load(store, &self.talks).await;
        for (number, (scene, _)) in self.talks.iter().enumerate() {
            let (there, all) = (&found[number].events, &self.loaded[number].events);
            let promised = self.promised(number, said);
            if there.len() < promised {
                faults.push(format!(
                    "{scene:?}: {} of {promised} events are left",
                    there.len()
                ));
                continue;
            }
            // The outcome of a failed request is unknown: it may be there, and may have been
            // repeated differently.
            let sure = if self.errors.is_empty() {
                there.len()
            } else {
                promised
            };
            if !all.starts_with(&there[..sure]) {
                faults.push(format!("{scene:?}: {there:?} is no beginning of {all:?}"));
            }
        }
        faults
    }

    /// Returns the number of events of a conversation that must be there.
    fn promised(&self, number: usize, said: &Said) -> usize {
        let conversation = self.talks[number].1.key.conversation;
        let events = &self.loaded[number].events;
        let place = |call: &CallId| {
            let is_intent =
                |event: &Event| matches!(event, Event::CallStarted { call: it, .. } if it == call);
            events
                .iter()
                .position(|recorded| is_intent(&recorded.event))
                .unwrap()
                + 1
        };
        let calls = said
            .calls
            .iter()
            .filter(|called| called.conversation == conversation);
        let called = calls
            .map(|called| place(&called.call))
            .max()
            .unwrap_or_default();
        // Everything that was written before the next input was taken.
        let responses = said.responses.get(&number).map_or(0, Vec::len);
        let mut taken = BTreeSet::new();
        let mut takes_next = |event: &Event| {
            event
                .takes_input()
                .is_some_and(|input| taken.insert(input.clone()) && taken.len() > responses)
        };
        let answered = match responses {
            0 => 0,
            _ => events
                .iter()
                .position(|it| takes_next(&it.event))
                .unwrap_or(events.len()),
        };
        called.max(answered)
    }

    /// Continues every conversation with the responses it had and a new worker.
    fn go_on(&self, files: &BTreeMap<String, Vec<u8>>, said: &Said, about: &str) {
        let (folder, world) = (folder(), World::new());
        disk::put(files, folder.path());
        let worker = Worker::start(&setup(&folder, &world), Harm::default());
        let runtime = Runtime::new().unwrap();
        let store = runtime
            .block_on(sqlite::Store::open(folder.path().join("adjutant.db")))
            .unwrap();
        for (number, (scene, talk)) in self.talks.iter().enumerate() {
            let mut talk = talk.again(scene);
            for response in said.responses.get(&number).into_iter().flatten() {
                talk.next().unwrap();
                talk.record(response.clone());
            }
            while let Some(request) = talk.next() {
                talk.record(
                    worker
                        .ask(&request)
                        .unwrap()
                        .unwrap_or_else(|error| panic!("{about}: {error}")),
                );
            }
            let key = talk.key.clone();
            let before = said
                .calls
                .iter()
                .filter(|called| called.conversation == key.conversation);
            let seen = before
                .cloned()
                .map(Seen::Tool)
                .chain(world.seen(key.conversation))
                .collect();
            let loaded = runtime.block_on(store.load(&key)).unwrap();
            is_done_once(talk, loaded, seen, 1, &format!("{about}, {scene:?}"));
        }
    }
}

/// Returns a folder for the database, in memory if possible: the losses are simulated.
fn folder() -> TempDir {
    let memory = std::path::Path::new("/dev/shm");
    if memory.is_dir() {
        TempDir::new_in(memory)
    } else {
        TempDir::new()
    }
    .unwrap()
}

fn setup(folder: &TempDir, world: &World) -> Setup {
    Setup {
        database: folder
            .path()
            .join("adjutant.db")
            .to_str()
            .unwrap()
            .to_owned(),
        agent: AgentName::new("worker").unwrap(),
        resumes: false,
        name: None,
        model: world.model,
        tools: world.tools,
        probe: false,
        patience: std::time::Duration::from_secs(60),
        confirmation_expiry: std::time::Duration::from_secs(3600),
    }
}

/// Replaying all operations gives the files as they are.
fn everything_was_recorded(operations: &[Operation], folder: &TempDir) {
    let mut disk = Disk::default();
    operations.iter().for_each(|operation| disk.play(operation));
    let played = disk.after(Left::Everything);
    for file in std::fs::read_dir(folder.path())
        .unwrap()
        .map(Result::unwrap)
    {
        let name = file.file_name().into_string().unwrap();
        // SQLite rebuilds this file from the others.
        if name.ends_with("-shm") {
            continue;
        }
        assert!(
            played.get(&name) == Some(&std::fs::read(file.path()).unwrap()),
            "{name} was changed unseen"
        );
    }
}

/// Checks a conversation that was interrupted this often.
fn is_done_once(talk: Talk, loaded: Loaded, seen: Vec<Seen>, interruptions: usize, about: &str) {
    let played = Played {
        talk,
        probed: false,
        kills: Vec::new(),
        open: BTreeSet::new(),
        loaded,
        seen,
    };
    invariants::basics(&played, interruptions, about);
}

async fn load(store: &sqlite::Store, talks: &[(Scene, Talk)]) -> Vec<Loaded> {
    let mut loaded = Vec::new();
    for (_, talk) in talks {
        loaded.push(store.load(&talk.key).await.unwrap());
    }
    loaded
}
