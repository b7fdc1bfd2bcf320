//! The power fails at any time while several conversations go on.
//!
//! What the worker does to its files and says to others is recorded in its order ([`record`]). Then every moment is played
//! again up to which a disk has kept all, nothing or some of what it was not told to keep ([`disk`]), and the store is
//! opened there. Whatever the worker had said by then has to be there: the events of a turn somebody was answered about, and
//! the intent of a call before the tool heard of it.

mod disk;
mod record;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

use adjutant_core::port::{Journal as _, Loaded};
use adjutant_core::{CallId, ConversationId, ConversationKey, Event};
use adjutant_durability::{Called, Heard, Reply, Setup};
use adjutant_store::{Maintenance as _, sqlite};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::bench::Played;
use crate::invariants;
use crate::not_run::not_run;
use crate::power::disk::{Disk, Left};
use crate::power::record::{Operation, Recorder};
use crate::scene::{SCENES, Scene, Talk};
use crate::size;
use crate::worker::{Harm, Worker};
use crate::world::{Seen, World};

/// Conversations that go on at the same time.
const AT_ONCE: usize = 6;
/// Of so many operations one is tried in the sample.
const ONE_OF: u32 = 47;
/// Of so many operations one is tried in the sample, if it is a sync.
const SYNC_OF: u32 = 3;
/// After so many power losses a worker goes on where the last one left off, in a long run and in a sample.
const GOES_ON: [usize; 2] = [200, 60];

/// A disk with the database, in memory where that can be: what is lost here is lost by calculation.
fn folder() -> TempDir {
    let memory = std::path::Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.unwrap()
}

fn setup(folder: &TempDir, world: &World) -> Setup {
    Setup {
        database: folder.path().join("adjutant.db").to_str().unwrap().to_owned(),
        name: None,
        model: world.model,
        tools: world.tools,
        probe: false,
        patience: std::time::Duration::from_secs(60),
        confirmation_expiry: std::time::Duration::from_secs(3600),
    }
}

/// What was recorded while all scenes were played, several at once.
struct Recording {
    operations: Vec<Operation>,
    /// The conversations, before anything was said.
    talks: Vec<(Scene, Talk)>,
    /// The number under which the worker was asked, in the order of a conversation.
    said: HashMap<u64, usize>,
    /// The journals at the end.
    loaded: HashMap<ConversationId, Loaded>,
}

/// What a worker had said before the power failed.
#[derive(Default)]
struct Said {
    /// Answers, by conversation.
    heard: HashMap<usize, Vec<Heard>>,
    calls: Vec<Called>,
}

impl Recording {
    fn new(recorder: &Recorder, forgets_syncs: bool) -> Self {
        let (folder, world) = (folder(), World::new());
        let variables = recorder.variables(folder.path(), forgets_syncs);
        let worker = Worker::start_with(&setup(&folder, &world), Harm::default(), variables);
        let scenes =
            || SCENES.iter().flat_map(|scene| scene.effects().iter().map(move |effect| (scene, *effect)));
        let talks: Vec<_> = (0..size::cases(4, 2))
            .flat_map(|_| scenes())
            .map(|(scene, effect)| (*scene, Talk::new(scene, effect)))
            .collect();
        let next = AtomicUsize::new(0);
        let converse = || {
            let mut said = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::SeqCst);
                let Some((scene, talk)) = talks.get(number) else { return said };
                let mut talk = talk.again(scene);
                while let Some(request) = talk.next() {
                    let (asked, answer) = worker.say_numbered(&request).unwrap();
                    said.push((asked, number));
                    talk.hear(crate::worker::hear(&answer).unwrap().unwrap());
                }
            }
        };
        let said = std::thread::scope(|scope| {
            let talking: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(converse)).collect();
            talking.into_iter().flat_map(|talking| talking.join().unwrap()).collect()
        });
        worker.end();
        let operations = recorder.operations();
        let mut disk = Disk::default();
        for operation in &operations {
            disk.play(operation);
        }
        let is = disk.after(Left::Everything);
        for file in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
            let name = file.file_name().into_string().unwrap();
            assert!(is.get(&name) == Some(&std::fs::read(file.path()).unwrap()), "{name} was changed unseen");
        }
        let calls = talks.iter().flat_map(|(_, talk)| world.seen(talk.key.conversation));
        let calls = calls.filter(|seen| matches!(seen, Seen::Tool(_))).count();
        let recorded = operations.iter().filter(|operation| matches!(operation, Operation::Tool(_))).count();
        assert_eq!(recorded, calls, "calls of tools");
        let runtime = Runtime::new().unwrap();
        let loaded = runtime.block_on(async {
            let store = sqlite::Store::open(folder.path().join("adjutant.db")).await.unwrap();
            load(&store, &talks).await
        });
        Self { operations, talks, said, loaded }
    }

    /// Makes sure that the power can fail in whatever a database does: while it is made, while its log is written, written
    /// back and begun anew, and while it is closed.
    fn covers_everything(&self) {
        let first = |wanted: fn(&Operation) -> bool| self.operations.iter().position(wanted).unwrap();
        let last = |wanted: fn(&Operation) -> bool| self.operations.iter().rposition(wanted).unwrap();
        let created = first(|it| matches!(it, Operation::Create { name } if name == "adjutant.db"));
        let told = first(|it| matches!(it, Operation::Reply(_)));
        let written_back =
            |it: &Operation| matches!(it, Operation::Write { name, .. } if name == "adjutant.db");
        let last_told = last(|it| matches!(it, Operation::Reply(_)));
        assert!(created < told);
        let back = self.operations[told..last_told].iter().position(written_back);
        let anew =
            |it: &Operation| matches!(it, Operation::Write { name, at: 0, .. } if name == "adjutant.db-wal");
        let begun = self.operations.iter().filter(|it| anew(it)).count();
        assert!(back.is_some() && begun > 1, "the log was never written back: {back:?}, {begun}");
        assert!(last_told < last(|it| matches!(it, Operation::Unlink { name } if name == "adjutant.db-wal")));
    }

    /// Returns what of the unsynced is left if the power fails before the operation `at`, if it does.
    fn losses(&self, at: usize) -> Vec<Left> {
        let next = self.operations.get(at);
        let mut left = Vec::new();
        // Until the next sync nothing more is kept for certain, but more may have been said.
        let is_sync = matches!(next, Some(Operation::Sync { .. } | Operation::SyncFolder));
        if next.is_none() || is_sync && size::takes(u32::try_from(at).unwrap(), SYNC_OF) {
            left.push(Left::Nothing);
        }
        if size::takes(u32::try_from(at).unwrap(), ONE_OF) {
            left.push(Left::Everything);
            left.push(Left::Sectors(at as u64));
            if matches!(self.operations.get(at.wrapping_sub(1)), Some(Operation::Write { .. })) {
                left.extend([Left::FirstHalf, Left::LastHalf]);
            }
        }
        left
    }

    /// Returns the number of events of a conversation that have to be there.
    fn promised(&self, number: usize, said: &Said) -> usize {
        let key = &self.talks[number].1.key;
        let events = &self.loaded[&key.conversation].events;
        let place = |call: &CallId| {
            let intent = |event: &Event| matches!(event, Event::CallStarted { call: it, .. } if it == call);
            events.iter().position(|recorded| intent(&recorded.event)).unwrap() + 1
        };
        let calls = said.calls.iter().filter(|called| called.conversation == key.conversation);
        let called = calls.map(|called| place(&called.call)).max().unwrap_or_default();
        // All that was written before the next input was taken.
        let heard = said.heard.get(&number).map_or(0, Vec::len);
        let mut taken = BTreeSet::new();
        let mut takes_next = |event: &Event| {
            event.takes_input().is_some_and(|input| taken.insert(input.clone()) && taken.len() > heard)
        };
        let answered = match heard {
            0 => 0,
            _ => events.iter().position(|it| takes_next(&it.event)).unwrap_or(events.len()),
        };
        called.max(answered)
    }

    /// Looks for what is wrong with what is left.
    async fn faults(&self, store: &sqlite::Store, said: &Said) -> Vec<String> {
        let mut faults: Vec<_> = match store.check().await {
            Ok(found) => found.iter().map(|finding| format!("{finding}")).collect(),
            Err(error) => return vec![error.to_string()],
        };
        let found = load(store, &self.talks).await;
        for (number, (scene, talk)) in self.talks.iter().enumerate() {
            let conversation = talk.key.conversation;
            let (there, all) = (&found[&conversation].events, &self.loaded[&conversation].events);
            if !all.starts_with(there) {
                faults.push(format!("{scene:?}: {there:?} is no beginning of {all:?}"));
            }
            let promised = self.promised(number, said);
            if there.len() < promised {
                faults.push(format!("{scene:?}: {} of {promised} events are left", there.len()));
            }
        }
        faults
    }

    /// Lets everybody go on where they were: with the answers they had, and a new worker.
    fn goes_on(&self, files: &BTreeMap<String, Vec<u8>>, said: &Said, about: &str) {
        let (folder, world) = (folder(), World::new());
        disk::put(files, folder.path());
        let worker = Worker::start(&setup(&folder, &world), Harm::default());
        let runtime = Runtime::new().unwrap();
        let store = runtime.block_on(sqlite::Store::open(folder.path().join("adjutant.db"))).unwrap();
        for (number, (scene, talk)) in self.talks.iter().enumerate() {
            let mut talk = talk.again(scene);
            for heard in said.heard.get(&number).into_iter().flatten() {
                talk.next().unwrap();
                talk.hear(heard.clone());
            }
            while let Some(request) = talk.next() {
                talk.hear(worker.ask(&request).unwrap().unwrap_or_else(|error| panic!("{about}: {error}")));
            }
            let key = talk.key.clone();
            let before = said.calls.iter().filter(|called| called.conversation == key.conversation);
            let before = before.cloned().map(Seen::Tool);
            let played = Played {
                loaded: runtime.block_on(store.load(&key)).unwrap(),
                seen: before.chain(world.seen(key.conversation)).collect(),
                talk,
                probed: false,
                kills: Vec::new(),
                open: Default::default(),
            };
            let about = format!("{about}, {scene:?}");
            invariants::every_input_has_its_end(&played, &about);
            invariants::no_effect_is_repeated(&played, 1, &about);
            invariants::every_call_has_one_result(&played, &about);
        }
    }

    /// Lets the power fail at one of `of` moments, the one with this number. Returns how often it failed, and what was
    /// wrong afterwards.
    fn fail(&self, number: usize, of: usize, goes_on: bool) -> (usize, Vec<String>) {
        let runtime = Runtime::new().unwrap();
        let (mut disk, mut said, mut losses, mut faults) = (Disk::default(), Said::default(), 0, Vec::new());
        for at in 0..=self.operations.len() {
            if at % of == number {
                for left in self.losses(at) {
                    let files = disk.after(left);
                    let folder = folder();
                    disk::put(&files, folder.path());
                    let about = format!("power lost after operation {at}, {left:?} is left");
                    let found = runtime.block_on(async {
                        match sqlite::Store::open(folder.path().join("adjutant.db")).await {
                            Ok(store) => self.faults(&store, &said).await,
                            Err(error) => vec![error.to_string()],
                        }
                    });
                    losses += 1;
                    if goes_on && found.is_empty() && losses % size::cases(GOES_ON[0], GOES_ON[1]) == 0 {
                        self.goes_on(&files, &said, &about);
                    }
                    faults.extend(found.into_iter().map(|fault| format!("{about}: {fault}")));
                }
            }
            match self.operations.get(at) {
                Some(Operation::Reply(Reply { number, result })) => {
                    let heard = said.heard.entry(self.said[number]).or_default();
                    heard.push(result.clone().unwrap());
                }
                Some(Operation::Tool(called)) => said.calls.push(called.clone()),
                Some(operation) => disk.play(operation),
                None => {}
            }
        }
        (losses, faults)
    }

    /// Lets the power fail at every moment, or a sample of them.
    fn fail_everywhere(&self, goes_on: bool) -> (usize, Vec<String>) {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| self.fail(1, 2, goes_on));
            let (losses, mut faults) = self.fail(0, 2, goes_on);
            let (more, others) = other.join().unwrap();
            faults.extend(others);
            (losses + more, faults)
        })
    }
}

async fn load(store: &sqlite::Store, talks: &[(Scene, Talk)]) -> HashMap<ConversationId, Loaded> {
    let mut loaded = HashMap::new();
    for (_, talk) in talks {
        let key: &ConversationKey = &talk.key;
        loaded.insert(key.conversation, store.load(key).await.unwrap());
    }
    loaded
}

#[test]
fn a_power_loss_takes_nothing_that_was_told() {
    let recorder = match Recorder::new() {
        Ok(recorder) => recorder,
        Err(reason) => return not_run("adjutant-durability", &reason),
    };
    let recording = Recording::new(&recorder, false);
    recording.covers_everything();
    let (losses, faults) = recording.fail_everywhere(true);
    assert!(losses > size::cases(2000, 300), "the power failed only {losses} times");
    assert!(faults.is_empty(), "{} of {losses}:\n{}", faults.len(), faults.join("\n"));
}

/// What the test above finds is lost where a disk does not keep what it was told to.
#[test]
fn a_disk_that_forgets_to_sync_is_found_out() {
    let recorder = match Recorder::new() {
        Ok(recorder) => recorder,
        Err(reason) => return not_run("adjutant-durability", &reason),
    };
    let (losses, faults) = Recording::new(&recorder, true).fail_everywhere(false);
    let lost = faults.iter().filter(|fault| fault.contains("events are left")).count();
    assert!(lost > 10, "only {lost} of {losses} were found: {faults:?}");
}
