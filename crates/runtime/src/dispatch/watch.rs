//! Signs of life of whoever is at a conversation, for those who wait for it.

use std::time::Duration;

use adjutant_core::ConversationKey;
use adjutant_core::port::{Change, Holder};
use tokio::time::Instant;

use crate::audience::{ASKED_ONCE, Told};
use crate::event::RunEvent;
use crate::inner::Inner;

/// Time after which this process does the work itself, if nobody has begun with it.
pub(super) const BEGINS_WITHIN: Duration = Duration::from_secs(1);

/// Time without a word of another process after which it is asked whether it is there, and in which
/// it answers.
const SILENCE: Duration = Duration::from_millis(800);

/// Time by which a look is late if this process could not do anything.
const LATE: Duration = Duration::from_millis(300);

/// Time after which it is looked who has a conversation that nobody was heard to begin with.
const LOOKS: Duration = Duration::from_millis(300);

/// Time after which it is looked again where nobody can be asked.
const LOOKS_AGAIN: Duration = Duration::from_secs(2);

/// Time after which it is looked at a conversation that a task of this process is at.
const LOOKS_HERE: Duration = Duration::from_secs(15);

/// The worker that is at a conversation, as far as it is known.
enum Seen {
    Nobody,
    /// One of this process, which stands still when this does.
    Here,
    /// One of another process, with the time at which it was heard last.
    Away(Holder, Instant),
    /// One of another process that was asked whether it is there, at that time.
    Asked(Holder, Instant),
    /// One that was asked again, after the store answered: it is not the store that stands still.
    AskedAgain(Holder, Instant),
}

/// Waits for signs of life of whoever is at a conversation.
pub(super) struct Watch {
    /// The time until which nothing is done but waiting.
    pub(super) until: Instant,
    seen: Seen,
    /// True if the conversation is waited for in the store too.
    waits: bool,
    /// The worker that the conversation was taken from.
    gave_up: Option<Holder>,
}

impl Watch {
    pub(super) fn new(asked: Instant) -> Self {
        Self {
            until: asked + BEGINS_WITHIN,
            seen: Seen::Nobody,
            waits: false,
            gave_up: None,
        }
    }

    /// Returns whether what is told is of a turn that goes on: not of one that was taken from
    /// whoever tells it.
    pub(super) fn listens(&self) -> bool {
        self.gave_up.is_none()
    }

    /// Returns whether nobody is known to be at it.
    pub(super) fn sees_nobody(&self) -> bool {
        matches!(self.seen, Seen::Nobody)
    }

    /// Takes in that the conversation is waited for in the store.
    pub(super) fn waits(&mut self) {
        self.waits = true;
        if self.sees_nobody() {
            self.until = Instant::now() + LOOKS;
        }
    }

    /// Takes in what was heard. Returns whether that is the first sign that somebody has begun.
    pub(super) fn heard(&mut self, told: &Told) -> bool {
        let now = Instant::now();
        if let Told::Begun(holder) = told {
            self.gave_up.take_if(|gave_up| gave_up != holder);
        }
        if !self.listens() {
            return false;
        }
        let was_nobody = self.sees_nobody();
        let (seen, wait) = match (std::mem::replace(&mut self.seen, Seen::Nobody), told) {
            (_, Told::Begun(holder)) => (Seen::Away(holder.clone(), now), SILENCE),
            (Seen::Nobody, Told::Event(RunEvent::TurnStarted { .. })) => (Seen::Here, LOOKS_HERE),
            (Seen::Nobody, _) => return false,
            (_, Told::End) => (Seen::Nobody, BEGINS_WITHIN),
            (Seen::Here, _) => (Seen::Here, LOOKS_HERE),
            (Seen::Away(holder, _) | Seen::Asked(holder, _) | Seen::AskedAgain(holder, _), _) => {
                (Seen::Away(holder, now), SILENCE)
            }
        };
        (self.seen, self.until) = (seen, now + wait);
        was_nobody && !self.sees_nobody()
    }

    /// Decides after a time without a word. Returns whether the conversation is to be waited for in
    /// the store, to be gone on with here.
    pub(super) async fn looks(&mut self, inner: &Inner, key: &ConversationKey) -> bool {
        let now = Instant::now();
        if now > self.until + LATE && !self.sees_nobody() {
            // This process stood still itself: what was said meanwhile is still to be heard.
            self.until = now + SILENCE;
            return false;
        }
        let heard = |holder: &Holder, since| {
            let heard = inner.audience.heard_at(&holder.worker)?;
            (heard > since).then_some(heard)
        };
        // Another may have asked a moment before, and then it was not asked once more.
        let answered =
            |holder: &Holder, asked: Instant| heard(holder, asked.checked_sub(ASKED_ONCE)?);
        let ask = |holder: &Holder| inner.audience.ask(&*inner.journal.relay(), &holder.worker);
        let (seen, until) = match std::mem::replace(&mut self.seen, Seen::Nobody) {
            Seen::Here => (Seen::Here, now + LOOKS_HERE),
            Seen::Nobody if !self.waits => (Seen::Nobody, now + LOOKS),
            Seen::Nobody => match inner.journal.holder(key).await {
                Ok(Some(holder)) if holder.worker != inner.heart.worker() => {
                    ask(&holder);
                    let asked = Instant::now();
                    (Seen::AskedAgain(holder, asked), asked + SILENCE)
                }
                // It is gone on with here.
                Ok(Some(_)) => (Seen::Here, now + LOOKS_HERE),
                Ok(None) | Err(_) => (Seen::Nobody, now + LOOKS_AGAIN),
            },
            Seen::Away(holder, since) if let Some(heard) = heard(&holder, since) => {
                (Seen::Away(holder, heard), heard + SILENCE)
            }
            Seen::Asked(holder, asked) | Seen::AskedAgain(holder, asked)
                if let Some(heard) = answered(&holder, asked) =>
            {
                (Seen::Away(holder, heard), heard + SILENCE)
            }
            Seen::Away(holder, _) => {
                ask(&holder);
                (Seen::Asked(holder, now), now + SILENCE)
            }
            // Where the store stands still too, nothing could be heard.
            Seen::Asked(holder, _) => match inner.journal.holder(key).await {
                Ok(Some(known)) if known == holder => {
                    ask(&holder);
                    let asked = Instant::now();
                    (Seen::AskedAgain(holder, asked), asked + SILENCE)
                }
                Ok(_) => (Seen::Nobody, now + LOOKS),
                Err(_) => (Seen::Away(holder, now), now + SILENCE),
            },
            Seen::AskedAgain(holder, _) => {
                // If that fails, it is looked again.
                if inner
                    .journal
                    .end_claim(key, holder.worker())
                    .await
                    .unwrap_or_default()
                {
                    inner.waiting.hear(&Change::Free(key.clone()));
                    self.gave_up = Some(holder);
                }
                (Seen::Nobody, Instant::now() + LOOKS_AGAIN)
            }
        };
        let starts = !self.waits && matches!(seen, Seen::Nobody | Seen::Here);
        (self.seen, self.until) = (seen, until);
        starts
    }
}
