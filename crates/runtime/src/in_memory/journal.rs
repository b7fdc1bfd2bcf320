//! The journal in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::conversation::Snapshot;
use adjutant_core::port::{
    self, AcceptedInput, Alone, Beat, Begin, Begun, Change, Changes, Finished, Journal,
    JournaledChange, Known, Loaded, Newer, Relay, Running, StoreError, Take, Taken, Turns, Worker,
    Writer,
};
use adjutant_core::{
    AgentName, BoxFuture, ConversationKey, Input, InputBody, InputId, Recorded, StoreId, TurnId,
    UserId,
};
use jiff::Timestamp;
use tokio::time::Instant;

use super::conversation::Conversation;
use super::state::{State, is_of};
use super::{InMemory, ready};

impl Journal for InMemory {
    fn submit<'a>(
        &'a self,
        key: &'a ConversationKey,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let accepted = self
            .state()
            .accept(key, input, self.messages_queued_max)
            .map(|conversation| conversation.claim.is_some());
        ready(accepted.map(|is_claimed| {
            if is_claimed {
                self.changes.notify(|| Change::Input(key.clone()));
            }
        }))
    }

    fn load<'a>(&'a self, key: &'a ConversationKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        let loaded = self
            .state()
            .conversations
            .get(key)
            .map(|conversation| Loaded {
                events: conversation.events.clone(),
                inbox: conversation.inbox.waiting().to_vec(),
            });
        ready(Ok(loaded.unwrap_or_default()))
    }

    fn load_newer<'a>(
        &'a self,
        key: &'a ConversationKey,
        known: Option<Known>,
    ) -> BoxFuture<'a, Result<Option<Newer>, StoreError>> {
        ready(Ok(self
            .state()
            .conversations
            .get(key)
            .map(|conversation| conversation.newer(known))))
    }

    fn load_turns<'a>(
        &'a self,
        key: &'a ConversationKey,
        before: Option<u64>,
        turns: u32,
    ) -> BoxFuture<'a, Result<Option<Turns>, StoreError>> {
        let state = self.state();
        let conversation = state.conversations.get(key);
        ready(Ok(
            conversation.map(|conversation| conversation.turns(before, turns))
        ))
    }

    fn load_turn<'a>(
        &'a self,
        key: &'a ConversationKey,
        turn: TurnId,
    ) -> BoxFuture<'a, Result<Option<Turns>, StoreError>> {
        let state = self.state();
        let conversation = state.conversations.get(key);
        ready(Ok(
            conversation.and_then(|conversation| conversation.turn(turn))
        ))
    }

    fn find_input<'a>(
        &'a self,
        key: &'a ConversationKey,
        id: &'a InputId,
    ) -> BoxFuture<'a, Result<Option<AcceptedInput>, StoreError>> {
        let state = self.state();
        let conversation = state.conversations.get(key);
        ready(Ok(
            conversation.and_then(|conversation| conversation.inbox.find(id))
        ))
    }

    fn begin<'a>(
        &'a self,
        key: &'a ConversationKey,
        begin: Begin<'a>,
    ) -> BoxFuture<'a, Result<Begun, StoreError>> {
        let mut state = self.state();
        let conversation = match begin.input {
            Some(input) => match state.accept(key, input, self.messages_queued_max) {
                Ok(conversation) => conversation,
                Err(error) => return ready(Err(error)),
            },
            None => match state.conversations.get_mut(key) {
                Some(conversation) => conversation,
                None => return ready(Ok(Begun::Nothing)),
            },
        };
        let claim = conversation.take(begin.worker.id, Some(begin.worker.epoch), begin.lease);
        // The worker that has the lease reads the input when it is notified.
        if !claim.is_held() {
            self.changes.notify(|| Change::Input(key.clone()));
            return ready(Ok(Begun::Elsewhere));
        }
        let only = matches!(conversation.inbox.waiting(), [one] if begin.input.is_some_and(|it| it.id == one.id));
        let starts = only && conversation.status.turn.is_none() && !begin.turn.is_empty();
        if starts {
            let first = begin.first.filter(|_| conversation.events.is_empty());
            let next = conversation
                .events
                .last()
                .map_or(1, |recorded| recorded.seq + 1);
            let events: Vec<Recorded> = (next..)
                .zip(first.into_iter().chain(begin.turn))
                .map(|(seq, event)| Recorded {
                    seq,
                    at: begin.at,
                    event: event.clone().into(),
                })
                .collect();
            if let Err(error) = conversation.append(key, &events, self.log) {
                // The caller gets no lease with the error, so it could not release this one.
                conversation.claim = None;
                return ready(Err(error));
            }
        }
        let newer = conversation.newer(begin.known);
        ready(Ok(if starts {
            Begun::Started(newer)
        } else {
            Begun::Claimed { claim, newer }
        }))
    }

    fn append<'a>(
        &'a self,
        key: &'a ConversationKey,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut state = self.state();
        let Some(conversation) = state.conversations.get_mut(key) else {
            return ready(Err(StoreError::Conflict));
        };
        ready(conversation.append(key, events, self.log))
    }

    fn append_held<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let State {
            conversations,
            ledger,
            ..
        } = &mut *self.state();
        let appended = leased(conversations, key, writer.worker)
            .and_then(|leased| leased.append(key, events, self.log));
        ready(appended.map(|()| ledger.book(writer.spent)))
    }

    fn store_id(&self) -> Option<StoreId> {
        Some(StoreId::of(self))
    }

    fn append_with_change<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
        JournaledChange {
            change,
            key: call,
            ended,
        }: JournaledChange,
    ) -> BoxFuture<'a, Result<Recorded, StoreError>> {
        let State {
            conversations,
            users,
            ledger,
            ..
        } = &mut *self.state();
        let appended = leased(conversations, key, writer.worker).and_then(|leased| {
            if events.is_empty() || leased.new_steps(events).is_err() {
                return Err(StoreError::Conflict);
            }
            let tables = users.entry(key.user.clone()).or_default();
            let outcome = change.apply_in_memory(tables, &key.user, &call, self.clock.now());
            let ended = ended(&*outcome);
            let events: Vec<Recorded> = events.iter().chain([&ended]).cloned().collect();
            leased.append(key, &events, self.log)?;
            Ok(ended)
        });
        ready(appended.inspect(|_| ledger.book(writer.spent)))
    }

    fn finish<'a>(
        &'a self,
        key: &'a ConversationKey,
        writer: Writer<'a>,
        events: &'a [Recorded],
        _snapshot: Option<&'a Snapshot>,
    ) -> BoxFuture<'a, Result<Finished, StoreError>> {
        let State {
            conversations,
            ledger,
            ..
        } = &mut *self.state();
        let conversation = match leased(conversations, key, writer.worker) {
            Ok(conversation) => conversation,
            Err(error) => return ready(Err(error)),
        };
        if let Err(error) = conversation.append(key, events, self.log) {
            return ready(Err(error));
        }
        ledger.book(writer.spent);
        // An input that was accepted while the turn ended is run under the same lease: a release
        // would leave it to the next recovery.
        if conversation.has_work_in_inbox() {
            return ready(Ok(Finished::Kept(conversation.inbox.waiting().to_vec())));
        }
        conversation.claim = None;
        self.changes.notify(|| Change::Free(key.clone()));
        ready(Ok(Finished::Released))
    }

    fn claim<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<port::Claim, StoreError>> {
        let mut state = self.state();
        let conversation = state.conversations.get_mut(key);
        ready(Ok(conversation
            .map_or(port::Claim::Refused, |conversation| {
                conversation.take(worker, None, ttl)
            })))
    }

    fn renew<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        let mut state = self.state();
        let claim = state
            .conversations
            .get_mut(key)
            .and_then(|conversation| conversation.claim.as_mut());
        let own = claim.filter(|claim| claim.is_of(worker));
        let is_own = own.is_some();
        if let Some(claim) = own {
            claim.until = Instant::now().checked_add(ttl);
        }
        ready(Ok(is_own))
    }

    fn beat<'a>(
        &'a self,
        beat: Beat<'a>,
    ) -> BoxFuture<'a, Result<Option<Vec<Running>>, StoreError>> {
        ready(Ok(self.state().beat(beat)))
    }

    fn release<'a>(
        &'a self,
        key: &'a ConversationKey,
        worker: Worker<'a>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        if let Some(conversation) = self.state().conversations.get_mut(key)
            && conversation.is_held(worker)
        {
            conversation.claim = None;
        }
        self.changes.notify(|| Change::Free(key.clone()));
        ready(Ok(()))
    }

    fn take<'a>(&'a self, take: Take<'a>) -> BoxFuture<'a, Result<Vec<Taken>, StoreError>> {
        ready(Ok(self.state().take(take)))
    }

    fn unsettled<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>> {
        let state = self.state();
        ready(Ok(state.unclaimed(agent, user, |it| !it.is_settled())))
    }

    fn expired<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<ConversationKey>, StoreError>> {
        let state = self.state();
        ready(Ok(
            state.unclaimed(agent, user, |it| it.status.has_expired(now))
        ))
    }

    fn changes(&self) -> Box<dyn Changes> {
        self.changes.listen()
    }

    fn relay(&self) -> Arc<dyn Relay> {
        Arc::new(Alone)
    }

    fn cancellation<'a>(
        &'a self,
        key: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Option<InputId>, StoreError>> {
        let state = self.state();
        let first = state.conversations.get(key).and_then(|conversation| {
            conversation
                .inbox
                .waiting()
                .iter()
                .find(|input| input.body == InputBody::Cancel)
        });
        ready(Ok(first.map(|input| input.id.clone())))
    }

    fn parked<'a>(
        &'a self,
        agent: &'a AgentName,
        user: Option<&'a UserId>,
    ) -> BoxFuture<'a, Result<Vec<(ConversationKey, Recorded)>, StoreError>> {
        let state = self.state();
        let mut parked: Vec<(ConversationKey, Recorded)> = state
            .conversations
            .iter()
            .filter(|(key, _)| is_of(key, agent, user))
            .filter(|(_, conversation)| conversation.status.is_parked())
            .filter_map(|(key, conversation)| {
                let at = usize::try_from(conversation.status.parked_seq?).ok()?;
                let last = conversation.events.get(at.checked_sub(1)?)?;
                Some((key.clone(), last.clone()))
            })
            .collect();
        parked.sort_by_key(|(_, recorded)| recorded.at);
        ready(Ok(parked))
    }
}

/// Returns a conversation whose lease the worker has.
fn leased<'c>(
    conversations: &'c mut HashMap<ConversationKey, Conversation>,
    key: &ConversationKey,
    worker: Worker<'_>,
) -> Result<&'c mut Conversation, StoreError> {
    conversations
        .get_mut(key)
        .filter(|conversation| conversation.is_held(worker))
        .ok_or(StoreError::Conflict)
}
