//! The runs that go on in this process, and what was told of those that ended a moment ago.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use adjutant_core::{AgentResponse, CancellationToken, ConversationKey, TurnId, UserId};
use adjutant_runtime::RunError;
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use crate::agui::Event;

/// How long a run that ended can be told again.
const KEPT: Duration = Duration::from_secs(10 * 60);
/// How many ended runs of one user are kept.
const KEPT_PER_USER: usize = 32;
/// How much of the ended runs of one user is kept, in bytes.
const BYTES_PER_USER: usize = 8 * 1024 * 1024;
/// What is kept of one run, in bytes. The pieces of a longer one are left out, and are in the
/// messages at its end.
const BYTES_MAX: usize = 1024 * 1024;

/// All runs of this process.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    known: Mutex<VecDeque<Arc<Run>>>,
}

/// One run: what was told of it, for everybody who listens or comes later.
#[derive(Debug)]
pub(crate) struct Run {
    /// Whose run it is, and in which conversation.
    pub(crate) key: ConversationKey,
    /// The client's name for it.
    pub(crate) name: String,
    /// Stops it.
    pub(crate) cancelled: CancellationToken,
    /// What the client had that began it: whoever has the same can be told the same.
    pub(crate) began_with: String,
    /// A mark of the request that began it.
    pub(crate) asks: String,
    /// The turn it is of, once it is known.
    turn: OnceLock<TurnId>,
    /// So that a place in another run's events, or in those of another process, is not taken for
    /// one in these.
    mark: String,
    told: Mutex<Told>,
    /// Fires with every event. Never touched while `told` is held: whoever waits may look there.
    news: watch::Sender<()>,
    end: OnceLock<Result<AgentResponse, RunError>>,
    /// Fires once its end is certain, whatever becomes of this process.
    accepted: CancellationToken,
}

#[derive(Debug, Default)]
struct Told {
    frames: Vec<Frame>,
    bytes: usize,
    /// Whether pieces were left out.
    is_cut: bool,
    ended_at: Option<Instant>,
}

/// One event, as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) id: String,
    pub(crate) data: Arc<str>,
}

impl Runs {
    /// Takes a new run in, unless its owner has one of that name in that conversation: then it is
    /// that one, and `false`.
    pub(crate) fn begin(
        &self,
        key: ConversationKey,
        name: String,
        (began_with, asks): (String, String),
    ) -> (Arc<Run>, bool) {
        let mut known = self.known();
        forget(&mut known, &key.user);
        if let Some(run) = known
            .iter()
            .rev()
            .find(|run| run.key == key && run.name == name)
        {
            return (run.clone(), false);
        }
        let run = Arc::new(Run {
            began_with,
            asks,
            ..Run::new(key, name)
        });
        known.push_back(run.clone());
        (run, true)
    }

    /// Forgets a run.
    pub(crate) fn remove(&self, run: &Arc<Run>) {
        self.known().retain(|known| !Arc::ptr_eq(known, run));
    }

    /// The user's run of that name in that conversation.
    pub(crate) fn named(&self, key: &ConversationKey, name: &str) -> Option<Arc<Run>> {
        let mut known = self.known();
        forget(&mut known, &key.user);
        known
            .iter()
            .rev()
            .find(|run| run.key == *key && run.name == name)
            .cloned()
    }

    /// The user's last run that the client calls so, or whose turn is called so.
    pub(crate) fn find(&self, user: &UserId, id: &str) -> Option<Arc<Run>> {
        let mut known = self.known();
        forget(&mut known, user);
        let turn: Option<TurnId> = id.parse().ok();
        let is_it = |run: &&Arc<Run>| {
            run.key.user == *user && (run.name == id || turn.is_some() && run.turn() == turn)
        };
        known.iter().rev().find(is_it).cloned()
    }

    /// Returns the last run of a conversation that is called so, by its client or by its turn. One
    /// that waits is none by the name of its turn: that may have gone on elsewhere since.
    pub(crate) fn of_conversation(&self, key: &ConversationKey, id: &str) -> Option<Arc<Run>> {
        let known = self.known();
        let turn: Option<TurnId> = id.parse().ok();
        let is_it = |run: &&Arc<Run>| {
            run.key == *key
                && (run.name == id || turn.is_some() && run.turn() == turn && !run.waits())
        };
        known.iter().rev().find(is_it).cloned()
    }

    /// Drops what ended too long ago, whoever's it was.
    pub(crate) fn forget_old(&self) {
        let now = Instant::now();
        self.known().retain(|run| {
            run.ended_at()
                .is_none_or(|at| now.duration_since(at) < KEPT)
        });
    }

    fn known(&self) -> MutexGuard<'_, VecDeque<Arc<Run>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops what ended too long ago, and of one user what is too much.
fn forget(known: &mut VecDeque<Arc<Run>>, user: &UserId) {
    let now = Instant::now();
    known.retain(|run| {
        run.ended_at()
            .is_none_or(|at| now.duration_since(at) < KEPT)
    });
    let (mut runs, mut bytes) = (0, 0);
    // The last ones stay.
    for at in (0..known.len()).rev() {
        let Some(run) = known
            .get(at)
            .filter(|run| run.key.user == *user && run.has_ended())
        else {
            continue;
        };
        runs += 1;
        bytes += run.told().bytes;
        if runs > KEPT_PER_USER || bytes > BYTES_PER_USER {
            known.remove(at);
        }
    }
}

impl Run {
    /// One that nobody finds.
    pub(crate) fn new(key: ConversationKey, name: String) -> Self {
        // The tail of a version 7 UUID is random.
        let mark = Uuid::now_v7().simple().to_string().split_off(24);
        Self {
            key,
            name,
            cancelled: CancellationToken::new(),
            began_with: String::new(),
            asks: String::new(),
            turn: OnceLock::new(),
            mark,
            told: Mutex::default(),
            news: watch::Sender::new(()),
            end: OnceLock::new(),
            accepted: CancellationToken::new(),
        }
    }

    /// Tells everybody.
    pub(crate) fn tell(&self, events: impl IntoIterator<Item = Event>) {
        let mut told = self.told();
        for event in events {
            let Ok(data) = serde_json::to_string(&event) else {
                continue;
            };
            if told.ended_at.is_some() {
                continue;
            }
            if event.is_piece() && told.bytes + data.len() > BYTES_MAX {
                told.is_cut = true;
                continue;
            }
            told.bytes += data.len();
            let number = told.frames.len() + 1;
            let is_last = event.is_last();
            told.frames.push(Frame {
                id: format!("{}-{number}", self.mark),
                data: data.into(),
            });
            if is_last {
                told.ended_at = Some(Instant::now());
            }
        }
        drop(told);
        self.news.send_replace(());
    }

    /// Tells everybody what another process told of it.
    pub(crate) fn pass_on(&self, frames: Vec<Frame>) {
        let mut told = self.told();
        told.bytes += frames.iter().map(|frame| frame.data.len()).sum::<usize>();
        told.frames.extend(frames);
        drop(told);
        self.news.send_replace(());
    }

    /// Returns the events from a place on, from 0, of at most so many bytes; one at least, if there
    /// is one.
    pub(crate) fn frames(&self, at: usize, bytes_max: usize) -> Vec<Frame> {
        let mut bytes = 0;
        let fits = |(number, frame): &(usize, &Frame)| {
            bytes += frame.data.len();
            *number == 0 || bytes <= bytes_max
        };
        let told = self.told();
        let behind = told.frames.iter().skip(at).enumerate().take_while(fits);
        behind.map(|(_, frame)| frame.clone()).collect()
    }

    /// Returns whether pieces of it were left out.
    pub(crate) fn is_cut(&self) -> bool {
        self.told().is_cut
    }

    /// Says which turn it is of.
    pub(crate) fn is_of(&self, turn: TurnId) {
        let _ = self.turn.set(turn);
    }

    pub(crate) fn turn(&self) -> Option<TurnId> {
        self.turn.get().copied()
    }

    /// Says what came of it, before the last event is told.
    pub(crate) fn ended(&self, end: Result<AgentResponse, RunError>) {
        let _ = self.end.set(end);
    }

    /// Says that what was asked for is in the journal.
    pub(crate) fn is_accepted(&self) {
        self.accepted.cancel();
    }

    /// Waits until what was asked for is in the journal. Returns the reason if it never will be.
    pub(crate) async fn accepted(&self) -> Option<&RunError> {
        tokio::select! {
            biased;
            () = self.accepted.cancelled() => None,
            end = self.end() => end.and_then(|end| end.as_ref().err()),
        }
    }

    /// What came of it, once its last event was told.
    pub(crate) async fn end(&self) -> Option<&Result<AgentResponse, RunError>> {
        let mut news = self.news.subscribe();
        while !self.has_ended() {
            news.changed().await.ok()?;
        }
        self.end.get()
    }

    /// The place behind an event, by its id: how many events whoever has it has seen. From
    /// elsewhere: none.
    pub(crate) fn place_of(&self, id: &str) -> usize {
        let number = id
            .strip_prefix(&self.mark)
            .and_then(|rest| rest.strip_prefix('-'));
        let number = number.and_then(|number| number.parse().ok()).unwrap_or(0);
        if number <= self.told().frames.len() {
            number
        } else {
            0
        }
    }

    /// The event at a place, from 0, as soon as there is one; nothing behind the last.
    pub(crate) async fn frame(&self, at: usize) -> Option<Frame> {
        let mut news = self.news.subscribe();
        loop {
            {
                let told = self.told();
                if let Some(frame) = told.frames.get(at) {
                    return Some(frame.clone());
                }
                if told.ended_at.is_some() {
                    return None;
                }
            }
            news.changed().await.ok()?;
        }
    }

    /// Whether its last event was told.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended_at().is_some()
    }

    /// Whether it ended with something that waits for a human.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.end.get(), Some(Ok(response)) if !response.decision.pending.is_empty())
    }

    /// Whether nothing will ever come behind this place.
    pub(crate) fn has_told(&self, place: usize) -> bool {
        let told = self.told();
        told.ended_at.is_some() && place >= told.frames.len()
    }

    /// Ends it without a last event: whoever listens has to ask again, somewhere else.
    pub(crate) fn close(&self) {
        self.told().ended_at.get_or_insert_with(Instant::now);
        self.news.send_replace(());
    }

    fn ended_at(&self) -> Option<Instant> {
        self.told().ended_at
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::{AgentName, ConversationId};

    use super::*;

    fn key(user: &str) -> ConversationKey {
        ConversationKey {
            agent: AgentName::adjutant(),
            user: UserId::new(user).unwrap(),
            conversation: ConversationId(Uuid::nil()),
        }
    }

    fn error() -> Event {
        Event::RunError {
            message: String::new(),
            code: String::new(),
            metadata: serde_json::Map::new(),
            usage: Vec::new(),
        }
    }

    #[test]
    fn of_one_user_the_last_runs_are_kept_and_those_that_go_on() {
        let runs = Runs::default();
        let (goes_on, _) = runs.begin(key("anna"), "goes on".to_owned(), Default::default());
        let (other, _) = runs.begin(key("bert"), "0".to_owned(), Default::default());
        other.tell([error()]);
        for at in 0..2 * KEPT_PER_USER {
            runs.begin(key("anna"), at.to_string(), Default::default())
                .0
                .tell([error()]);
        }
        let kept =
            (0..2 * KEPT_PER_USER).filter(|at| runs.named(&key("anna"), &at.to_string()).is_some());
        assert_eq!(
            kept.collect::<Vec<_>>(),
            (KEPT_PER_USER..2 * KEPT_PER_USER).collect::<Vec<_>>()
        );
        assert!(
            !runs.find(&key("anna").user, "goes on").unwrap().has_ended() && !goes_on.has_ended()
        );
        assert!(runs.find(&key("bert").user, "0").is_some());
    }

    #[test]
    fn a_name_is_one_run_of_one_user_in_one_conversation() {
        let runs = Runs::default();
        let elsewhere = ConversationKey {
            conversation: ConversationId(Uuid::max()),
            ..key("anna")
        };
        assert!(
            runs.begin(key("anna"), "r".to_owned(), Default::default())
                .1
        );
        assert!(
            !runs
                .begin(key("anna"), "r".to_owned(), Default::default())
                .1
        );
        assert!(
            runs.begin(key("bert"), "r".to_owned(), Default::default())
                .1
                && runs.begin(elsewhere, "r".to_owned(), Default::default()).1
        );
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn whoever_waits_for_the_end_and_whoever_tells_do_not_hold_each_other_up() {
        for _ in 0..5000 {
            let run = Arc::new(Run::new(key("anna"), "r".to_owned()));
            let waiting = [(); 3].map(|()| {
                let run = run.clone();
                tokio::spawn(
                    async move { run.end().await.is_none() && run.frame(1).await.is_none() },
                )
            });
            run.tell([error()]);
            for waiting in waiting {
                assert!(waiting.await.unwrap());
            }
        }
    }

    #[tokio::test]
    async fn the_pieces_of_a_long_run_are_left_out_and_its_form_is_kept() {
        let run = Run::new(key("anna"), "r".to_owned());
        let piece = |at: usize| Event::TextMessageContent {
            message_id: "m".to_owned(),
            delta: at.to_string().repeat(1000),
        };
        run.tell([Event::TextMessageStart {
            message_id: "m".to_owned(),
            role: "assistant",
        }]);
        run.tell((0..5000).map(piece));
        run.tell([
            Event::TextMessageEnd {
                message_id: "m".to_owned(),
            },
            error(),
        ]);
        let told = run.told().frames.len();
        assert!(told < 5000 && run.told().bytes < BYTES_MAX + 1000);
        for (back, kind) in [(1, "RUN_ERROR"), (2, "TEXT_MESSAGE_END")] {
            assert!(run.frame(told - back).await.unwrap().data.contains(kind));
        }
        assert!(run.frame(told).await.is_none() && run.has_told(told) && !run.has_told(told - 1));
        // What comes behind the end is not told.
        run.tell([error()]);
        assert_eq!(run.told().frames.len(), told);
    }
}
