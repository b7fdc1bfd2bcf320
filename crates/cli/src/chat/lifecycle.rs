//! Where a session is, from start to end, and where each event leads.

/// The states of a session.
///
/// ```text
/// INITIALIZING ─opened─► READY ─message─► PROCESSING ─answered, failed─► CHECK CONTEXT ─fits─► READY
///      │                                      ◄──────────overflows──────────┘
///      └─not opened─► FAILED          READY, PROCESSING, CHECK CONTEXT ─leave─► TERMINATING ─saved─► CLOSED
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Model, store, instruction, facts and tools are opened.
    Initializing,
    /// It waits for a person.
    Ready,
    /// A turn runs.
    Processing,
    /// What was said is measured, and made shorter where it has to be.
    CheckContext,
    /// The conversation is saved, servers are stopped.
    Terminating,
    /// It is over.
    Closed,
    /// It never began: what is missing was told, with the way out.
    Failed,
}

/// What happens to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Everything is there.
    Opened,
    /// The model, its server, the instruction or the store is not there.
    NotOpened,
    /// A person said something.
    Message,
    /// The turn ended with an answer, whatever its outcome.
    Answered,
    /// The turn ended without one: a time-out after its retries, a tool that broke down, a store
    /// that is away.
    TurnFailed,
    /// What was said fits the model's window, or has been made to.
    Fits,
    /// What was said did not fit the model's window; it is shorter now, and the message is sent
    /// once more.
    Overflows,
    /// The person, or the system, ends it.
    Leave,
    /// Everything is saved and stopped.
    Saved,
}

/// An event that does not happen in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfOrder {
    pub(crate) state: State,
    pub(crate) event: Event,
}

impl State {
    /// The state after an event.
    ///
    /// # Errors
    /// The event does not happen in this state.
    pub(crate) fn after(self, event: Event) -> Result<Self, OutOfOrder> {
        match (self, event) {
            (Self::Initializing, Event::Opened) => Ok(Self::Ready),
            (Self::Initializing, Event::NotOpened) => Ok(Self::Failed),
            (Self::Ready, Event::Message) => Ok(Self::Processing),
            (Self::Processing, Event::Answered | Event::TurnFailed) => Ok(Self::CheckContext),
            (Self::CheckContext, Event::Fits) => Ok(Self::Ready),
            (Self::CheckContext, Event::Overflows) => Ok(Self::Processing),
            (Self::Ready | Self::Processing | Self::CheckContext, Event::Leave) => {
                Ok(Self::Terminating)
            }
            (Self::Terminating, Event::Saved) => Ok(Self::Closed),
            (state, event) => Err(OutOfOrder { state, event }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [State; 7] = [
        State::Initializing,
        State::Ready,
        State::Processing,
        State::CheckContext,
        State::Terminating,
        State::Closed,
        State::Failed,
    ];
    const EVENTS: [Event; 9] = [
        Event::Opened,
        Event::NotOpened,
        Event::Message,
        Event::Answered,
        Event::TurnFailed,
        Event::Fits,
        Event::Overflows,
        Event::Leave,
        Event::Saved,
    ];

    fn through(events: &[Event]) -> Result<State, OutOfOrder> {
        events
            .iter()
            .try_fold(State::Initializing, |state, event| state.after(*event))
    }

    #[test]
    fn a_turn_that_fails_leads_back_to_the_prompt() {
        use Event::*;
        assert_eq!(
            through(&[Opened, Message, Answered, Fits]),
            Ok(State::Ready)
        );
        assert_eq!(
            through(&[Opened, Message, TurnFailed, Fits]),
            Ok(State::Ready)
        );
    }

    #[test]
    fn what_does_not_fit_is_sent_once_more() {
        use Event::*;
        assert_eq!(
            through(&[Opened, Message, Answered, Overflows]),
            Ok(State::Processing)
        );
        assert_eq!(
            through(&[Opened, Message, Answered, Overflows, Answered, Fits]),
            Ok(State::Ready)
        );
        assert!(through(&[Opened, Overflows]).is_err());
    }

    #[test]
    fn what_cannot_be_opened_never_becomes_ready() {
        use Event::*;
        assert_eq!(through(&[NotOpened]), Ok(State::Failed));
        assert!(
            EVENTS
                .iter()
                .all(|event| State::Failed.after(*event).is_err())
        );
    }

    #[test]
    fn it_can_be_left_from_wherever_it_runs_and_ends_once() {
        for state in STATES {
            let runs = matches!(
                state,
                State::Ready | State::Processing | State::CheckContext
            );
            assert_eq!(state.after(Event::Leave).is_ok(), runs, "{state:?}");
        }
        use Event::*;
        assert_eq!(through(&[Opened, Leave, Saved]), Ok(State::Closed));
        assert!(
            EVENTS
                .iter()
                .all(|event| State::Closed.after(*event).is_err())
        );
    }
}
