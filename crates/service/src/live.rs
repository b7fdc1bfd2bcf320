//! The runs in progress in this process, and the events of those that ended recently.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use adjutant_core::{
    AgentResponse, CancellationToken, ConversationKey, PendingCall, TurnId, UserId,
};
use adjutant_runtime::RunError;
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use crate::agui::{Event, Fingerprints};

/// Time for which an ended run can be replayed.
const RETENTION: Duration = Duration::from_secs(10 * 60);
/// Most ended runs of one user that are retained.
const RUNS_PER_USER: usize = 32;
/// Largest size of the ended runs of one user, in bytes.
const BYTES_PER_USER: usize = 8 * 1024 * 1024;
/// Largest size of one run, in bytes. Of a longer one, deltas are left out; their text is in the
/// messages at the end.
const BYTES_MAX: usize = 1024 * 1024;

/// All runs of this process.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    runs: Mutex<VecDeque<Arc<Run>>>,
}

/// One run, with its events for every subscriber, now and later.
#[derive(Debug)]
pub(crate) struct Run {
    /// The user and the conversation.
    pub(crate) key: ConversationKey,
    /// Name given by the client.
    pub(crate) name: String,
    /// Cancels the run.
    pub(crate) cancelled: CancellationToken,
    /// Fingerprints of the client and the request that started it.
    pub(crate) fingerprints: Fingerprints,
    /// The turn, once it runs.
    turn: OnceLock<TurnId>,
    /// Random prefix of event ids, by which an id of another run or process is recognised.
    id_prefix: String,
    log: Mutex<RunLog>,
    /// Notified after each event. Never touched while `log` is locked: a subscriber may lock it.
    changed: watch::Sender<()>,
    result: OnceLock<Result<AgentResponse, RunError>>,
    /// Cancelled once the input is in the journal, from which any process can continue.
    accepted: CancellationToken,
}

#[derive(Debug, Default)]
struct RunLog {
    frames: Vec<Frame>,
    bytes: usize,
    /// True if deltas were left out.
    is_cut: bool,
    ended_at: Option<Instant>,
}

/// One event in its serialized form.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) id: String,
    pub(crate) data: Arc<str>,
}

impl Runs {
    /// Starts a run. If the user has a run of that name in that conversation, returns it and
    /// `false`.
    pub(crate) fn start(
        &self,
        key: ConversationKey,
        name: String,
        fingerprints: Fingerprints,
    ) -> (Arc<Run>, bool) {
        let mut runs = self.runs();
        evict(&mut runs, &key.user);
        if let Some(run) = last(&runs, |run| run.key == key && run.name == name) {
            return (run, false);
        }
        let run = Arc::new(Run {
            fingerprints,
            ..Run::new(key, name)
        });
        runs.push_back(run.clone());
        (run, true)
    }

    /// Removes a run.
    pub(crate) fn remove(&self, run: &Arc<Run>) {
        self.runs().retain(|known| !Arc::ptr_eq(known, run));
    }

    /// Returns the run with this name in the conversation.
    pub(crate) fn find_by_name(&self, key: &ConversationKey, name: &str) -> Option<Arc<Run>> {
        let mut runs = self.runs();
        evict(&mut runs, &key.user);
        last(&runs, |run| run.key == *key && run.name == name)
    }

    /// Returns the user's last run with this name or turn id.
    pub(crate) fn find(&self, user: &UserId, id: &str) -> Option<Arc<Run>> {
        let mut runs = self.runs();
        evict(&mut runs, user);
        // An id that is no UUID can only be a client's name.
        let turn: Option<TurnId> = id.parse().ok();
        last(&runs, |run| {
            run.key.user == *user && (run.name == id || turn.is_some() && run.turn() == turn)
        })
    }

    /// Returns the last run of a conversation with this name or turn id. A waiting run is not found
    /// by its turn id, because the turn may have been continued by another process.
    pub(crate) fn find_in_conversation(&self, key: &ConversationKey, id: &str) -> Option<Arc<Run>> {
        let runs = self.runs();
        let turn: Option<TurnId> = id.parse().ok();
        last(&runs, |run| {
            run.key == *key
                && (run.name == id || turn.is_some() && run.turn() == turn && !run.is_waiting())
        })
    }

    /// Removes expired runs of all users.
    pub(crate) fn evict_expired(&self) {
        retain_recent(&mut self.runs());
    }

    fn runs(&self) -> MutexGuard<'_, VecDeque<Arc<Run>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn last(runs: &VecDeque<Arc<Run>>, is_it: impl Fn(&Run) -> bool) -> Option<Arc<Run>> {
    runs.iter().rev().find(|run| is_it(run)).cloned()
}

fn retain_recent(runs: &mut VecDeque<Arc<Run>>) {
    let now = Instant::now();
    runs.retain(|run| {
        run.ended_at()
            .is_none_or(|at| now.duration_since(at) < RETENTION)
    });
}

/// Removes expired runs, and the oldest of a user who has too many.
fn evict(runs: &mut VecDeque<Arc<Run>>, user: &UserId) {
    retain_recent(runs);
    let (mut count, mut bytes) = (0, 0);
    // From the newest to the oldest, so that the newest are retained.
    for at in (0..runs.len()).rev() {
        let Some(run) = runs
            .get(at)
            .filter(|run| run.key.user == *user && run.has_ended())
        else {
            continue;
        };
        count += 1;
        bytes += run.log().bytes;
        if count > RUNS_PER_USER || bytes > BYTES_PER_USER {
            runs.remove(at);
        }
    }
}

impl Run {
    /// Creates a run that is not in the registry.
    pub(crate) fn new(key: ConversationKey, name: String) -> Self {
        // The last digits of a version 7 UUID are random.
        let id_prefix = Uuid::now_v7().simple().to_string().split_off(24);
        Self {
            key,
            name,
            cancelled: CancellationToken::new(),
            fingerprints: Fingerprints::default(),
            turn: OnceLock::new(),
            id_prefix,
            log: Mutex::default(),
            changed: watch::Sender::new(()),
            result: OnceLock::new(),
            accepted: CancellationToken::new(),
        }
    }

    /// Appends events and notifies subscribers. Events after the last one are dropped.
    pub(crate) fn publish(&self, events: impl IntoIterator<Item = Event>) {
        let mut log = self.log();
        for event in events {
            // Fails only for maps whose keys are not strings, which events do not have.
            let Ok(data) = serde_json::to_string(&event) else {
                continue;
            };
            if log.ended_at.is_some() {
                continue;
            }
            // The stream is valid without deltas, so memory is bounded by leaving them out.
            if event.is_delta() && log.bytes + data.len() > BYTES_MAX {
                log.is_cut = true;
                continue;
            }
            log.bytes += data.len();
            let number = log.frames.len() + 1;
            let is_last = event.is_last();
            log.frames.push(Frame {
                id: format!("{}-{number}", self.id_prefix),
                data: data.into(),
            });
            if is_last {
                log.ended_at = Some(Instant::now());
            }
        }
        // Unlocked before the notification, because subscribers lock the log when they wake up.
        drop(log);
        self.changed.send_replace(());
    }

    /// Appends events that another process published.
    pub(crate) fn publish_frames(&self, frames: Vec<Frame>) {
        let mut log = self.log();
        // The process that published them has bounded their size.
        log.bytes += frames.iter().map(|frame| frame.data.len()).sum::<usize>();
        log.frames.extend(frames);
        drop(log);
        self.changed.send_replace(());
    }

    /// Returns the events from position `at`, at most `bytes_max` bytes but at least one event, if
    /// there is one.
    pub(crate) fn frames(&self, at: usize, bytes_max: usize) -> Vec<Frame> {
        let mut bytes = 0;
        let fits = |(number, frame): &(usize, &Frame)| {
            bytes += frame.data.len();
            *number == 0 || bytes <= bytes_max
        };
        let log = self.log();
        let behind = log.frames.iter().skip(at).enumerate().take_while(fits);
        behind.map(|(_, frame)| frame.clone()).collect()
    }

    /// Returns true if deltas were left out.
    pub(crate) fn is_cut(&self) -> bool {
        self.log().is_cut
    }

    /// Sets the turn, once it runs.
    pub(crate) fn set_turn(&self, turn: TurnId) {
        let _ = self.turn.set(turn);
    }

    pub(crate) fn turn(&self) -> Option<TurnId> {
        self.turn.get().copied()
    }

    /// Sets the result. Must be called before the last event is published.
    pub(crate) fn set_result(&self, result: Result<AgentResponse, RunError>) {
        let _ = self.result.set(result);
    }

    /// States that the input is in the journal.
    pub(crate) fn set_accepted(&self) {
        self.accepted.cancel();
    }

    /// Waits until the input is in the journal. Returns the error if it was not accepted.
    pub(crate) async fn accepted(&self) -> Option<&RunError> {
        tokio::select! {
            // An accepted input is certain, whatever the result, so it is checked first.
            biased;
            () = self.accepted.cancelled() => None,
            result = self.result() => result.and_then(|result| result.as_ref().err()),
        }
    }

    /// Waits for the last event and returns the result.
    pub(crate) async fn result(&self) -> Option<&Result<AgentResponse, RunError>> {
        // Subscribed before the check, so that an event in between is not missed.
        let mut changed = self.changed.subscribe();
        while !self.has_ended() {
            // The sender is part of this run, so it cannot be gone.
            changed.changed().await.ok()?;
        }
        self.result.get()
    }

    /// Returns the position after the event with this id; 0 for an id of another run or process.
    pub(crate) fn position_after(&self, id: &str) -> usize {
        let number = id
            .strip_prefix(&self.id_prefix)
            .and_then(|rest| rest.strip_prefix('-'));
        let number = number.and_then(|number| number.parse().ok());
        let count = self.log().frames.len();
        number.filter(|number| *number <= count).unwrap_or(0)
    }

    /// Returns the event at a position, waiting for it if necessary; `None` after the last event.
    pub(crate) async fn frame(&self, at: usize) -> Option<Frame> {
        // Subscribed before the check, so that an event in between is not missed.
        let mut changed = self.changed.subscribe();
        loop {
            {
                let log = self.log();
                if let Some(frame) = log.frames.get(at) {
                    return Some(frame.clone());
                }
                if log.ended_at.is_some() {
                    return None;
                }
            }
            changed.changed().await.ok()?;
        }
    }

    /// Returns true if the last event was published.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended_at().is_some()
    }

    /// Returns true if it ended with a pending call.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.asked().is_empty()
    }

    /// Returns the calls that it ended with a question about.
    pub(crate) fn asked(&self) -> &[PendingCall] {
        match self.result.get() {
            Some(Ok(response)) => &response.decision.pending,
            Some(Err(_)) | None => &[],
        }
    }

    /// Returns true if no event follows this position.
    pub(crate) fn is_complete_at(&self, position: usize) -> bool {
        let log = self.log();
        log.ended_at.is_some() && position >= log.frames.len()
    }

    /// Ends the run without a last event: subscribers have to reconnect, possibly to another
    /// process.
    pub(crate) fn close(&self) {
        // A run that has ended keeps its time, from which its retention is counted.
        self.log().ended_at.get_or_insert_with(Instant::now);
        self.changed.send_replace(());
    }

    fn ended_at(&self) -> Option<Instant> {
        self.log().ended_at
    }

    fn log(&self) -> MutexGuard<'_, RunLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn a_users_newest_runs_and_running_ones_are_retained() {
        let runs = Runs::default();
        let (goes_on, _) = runs.start(key("anna"), "goes on".to_owned(), Default::default());
        let (other, _) = runs.start(key("bert"), "0".to_owned(), Default::default());
        other.publish([error()]);
        for at in 0..2 * RUNS_PER_USER {
            runs.start(key("anna"), at.to_string(), Default::default())
                .0
                .publish([error()]);
        }
        let kept = (0..2 * RUNS_PER_USER)
            .filter(|at| runs.find_by_name(&key("anna"), &at.to_string()).is_some());
        assert_eq!(
            kept.collect::<Vec<_>>(),
            (RUNS_PER_USER..2 * RUNS_PER_USER).collect::<Vec<_>>()
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
            runs.start(key("anna"), "r".to_owned(), Default::default())
                .1
        );
        assert!(
            !runs
                .start(key("anna"), "r".to_owned(), Default::default())
                .1
        );
        assert!(
            runs.start(key("bert"), "r".to_owned(), Default::default())
                .1
                && runs.start(elsewhere, "r".to_owned(), Default::default()).1
        );
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn waiting_and_publishing_do_not_block_each_other() {
        for _ in 0..5000 {
            let run = Arc::new(Run::new(key("anna"), "r".to_owned()));
            let waiting = [(); 3].map(|()| {
                let run = run.clone();
                tokio::spawn(
                    async move { run.result().await.is_none() && run.frame(1).await.is_none() },
                )
            });
            run.publish([error()]);
            for waiting in waiting {
                assert!(waiting.await.unwrap());
            }
        }
    }

    #[tokio::test]
    async fn a_long_run_drops_deltas_and_stays_valid() {
        let run = Run::new(key("anna"), "r".to_owned());
        let piece = |at: usize| Event::TextMessageContent {
            message_id: "m".to_owned(),
            delta: at.to_string().repeat(1000),
        };
        run.publish([Event::TextMessageStart {
            message_id: "m".to_owned(),
            role: "assistant",
        }]);
        run.publish((0..5000).map(piece));
        run.publish([
            Event::TextMessageEnd {
                message_id: "m".to_owned(),
            },
            error(),
        ]);
        let log = run.log().frames.len();
        assert!(log < 5000 && run.log().bytes < BYTES_MAX + 1000);
        for (back, kind) in [(1, "RUN_ERROR"), (2, "TEXT_MESSAGE_END")] {
            assert!(run.frame(log - back).await.unwrap().data.contains(kind));
        }
        assert!(
            run.frame(log).await.is_none()
                && run.is_complete_at(log)
                && !run.is_complete_at(log - 1)
        );
        // Events after the last one are dropped.
        run.publish([error()]);
        assert_eq!(run.log().frames.len(), log);
    }
}
