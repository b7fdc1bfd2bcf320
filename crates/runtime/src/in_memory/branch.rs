//! Branches: conversations that begin with the events of another.

use adjutant_core::conversation::Status;
use adjutant_core::port::{
    Alternatives, BranchPoint, Branched, Branching, StoreError, VersionCount, Versions,
};
use adjutant_core::{
    ConversationId, ConversationKey, DecisionRecord, Event, LogContent, Recorded, TurnId,
};

use super::conversation::{Conversation, Origin};
use super::state::State;
use super::weight::Weight;

/// Returns the key of another conversation of the same user and agent.
pub(super) fn sibling(key: &ConversationKey, conversation: ConversationId) -> ConversationKey {
    ConversationKey {
        conversation,
        ..key.clone()
    }
}

impl State {
    /// Creates a branch, or returns it if the same one was created before.
    pub(super) fn branch(
        &mut self,
        branching: Branching<'_>,
        log: LogContent,
    ) -> Result<Branched, StoreError> {
        let Branching { from, seq, id, at } = branching;
        let Some(named) = self.conversations.get(from) else {
            return Ok(Branched::NoSuchConversation);
        };
        let common = usize::try_from(seq)
            .ok()
            .and_then(|common| named.events.get(..common));
        let Some(common) = common else {
            return Ok(Branched::NotBetweenTurns);
        };
        let status = Status::from_events(common);
        if status.turn.is_some() {
            return Ok(Branched::NotBetweenTurns);
        }
        let mut point = BranchPoint {
            conversation: from.conversation,
            seq,
        };
        // A point within shared turns belongs to the conversation that has them first, so that all
        // branches of one point are listed together.
        while let Some(conversation) = self.conversations.get(&sibling(from, point.conversation))
            && let Some(origin) = conversation.origin
            && seq <= origin.seq
        {
            point.conversation = origin.conversation;
        }
        let key = sibling(from, id);
        if let Some(known) = self.conversations.get(&key) {
            let is_same = known.origin.is_some_and(|origin| origin.point() == point);
            return if is_same {
                Ok(Branched::At(point))
            } else {
                Err(StoreError::Reused)
            };
        }
        self.touches += 1;
        // The events are shared, but each conversation that has them keeps them alive.
        let mut weight = Weight::new(&self.bytes);
        common
            .iter()
            .for_each(|recorded| weight.add(&recorded.event, log));
        let branch = Conversation {
            title: if seq == 0 {
                String::new()
            } else {
                named.title.clone()
            },
            named: seq > 0 && named.named,
            touched: self.touches,
            events: common.to_vec(),
            status,
            origin: Some(Origin {
                conversation: point.conversation,
                seq,
                number: self.touches,
            }),
            ..Conversation::new(at, weight)
        };
        self.branches
            .entry(sibling(from, point.conversation))
            .or_default()
            .push(id);
        self.conversations.insert(key.clone(), branch);
        self.evict_except(&key);
        Ok(Branched::At(point))
    }

    /// Returns the branches that begin in a conversation, in the order of their points.
    fn branches(&self, key: &ConversationKey) -> Vec<(ConversationId, Origin)> {
        let origin =
            |branch: &ConversationId| self.conversations.get(&sibling(key, *branch))?.origin;
        let known = self.branches.get(key).into_iter().flatten();
        let mut branches: Vec<(ConversationId, Origin)> = known
            .filter_map(|branch| Some((*branch, origin(branch)?)))
            .collect();
        branches.sort_by_key(|(_, origin)| (origin.seq, origin.number));
        branches
    }

    /// Returns the versions of a conversation.
    pub(super) fn versions(&self, key: &ConversationKey) -> Option<Versions> {
        let mut root = key.conversation;
        while let Some(origin) = self.conversations.get(&sibling(key, root))?.origin {
            root = origin.conversation;
        }
        let mut ids = vec![root];
        let mut at = 0;
        while let Some(id) = ids.get(at) {
            let branches = self.branches(&sibling(key, *id));
            ids.extend(branches.into_iter().map(|(branch, _)| branch));
            at += 1;
        }
        ids.sort_by_key(|id| {
            let found = self.conversations.get(&sibling(key, *id));
            let used = found.map(|version| (version.is_used(), version.updated_at));
            std::cmp::Reverse((used, *id))
        });
        Some(Versions { root, ids })
    }

    /// Returns the number of a conversation's versions if it is the one with the newest input.
    pub(super) fn version_count(&self, key: &ConversationKey) -> Option<VersionCount> {
        let versions = self.versions(key)?;
        let is_counted = |id: &&ConversationId| {
            let found = self.conversations.get(&sibling(key, **id));
            !id.is_of_a_request() && found.is_some_and(Conversation::is_used)
        };
        let newest = versions.ids.iter().find(is_counted);
        let count = versions.ids.iter().filter(is_counted).count() as u64;
        (newest == Some(&key.conversation)).then_some(VersionCount {
            root: versions.root,
            count,
        })
    }

    /// Forgets that a branch begins in a conversation.
    fn forget_branch(&mut self, key: &ConversationKey, branch: ConversationId) {
        if let Some(branches) = self.branches.get_mut(key) {
            branches.retain(|other| *other != branch);
            if branches.is_empty() {
                self.branches.remove(key);
            }
        }
    }

    /// Returns the points at which other branches continue differently.
    pub(super) fn alternatives(&self, key: &ConversationKey) -> Vec<Alternatives> {
        let mut places = Vec::new();
        let (mut at, mut below, mut until) = (key.clone(), None, u64::MAX);
        while let Some(conversation) = self.conversations.get(&at) {
            let branches = self.branches(&at);
            for same in branches.chunk_by(|(_, one), (_, other)| one.seq == other.seq) {
                let Some((_, Origin { seq, .. })) = same.first() else {
                    continue;
                };
                if *seq > until.min(conversation.last_seq()) {
                    continue;
                }
                let own = (conversation.last_seq() > *seq).then_some(at.conversation);
                let begun = same.iter().map(|(branch, _)| *branch).filter(|branch| {
                    self.conversations
                        .get(&sibling(&at, *branch))
                        .is_some_and(Conversation::has_begun)
                });
                let conversations: Vec<ConversationId> = own.into_iter().chain(begun).collect();
                let shown = if *seq == until { below } else { own };
                let current = shown.and_then(|shown| {
                    conversations
                        .iter()
                        .position(|conversation| *conversation == shown)
                });
                if let Some(current) = current.filter(|_| conversations.len() > 1) {
                    places.push(Alternatives {
                        seq: *seq,
                        conversations,
                        current,
                    });
                }
            }
            let Some(origin) = conversation.origin else {
                break;
            };
            (below, until) = (Some(at.conversation), origin.seq);
            at = sibling(&at, origin.conversation);
        }
        places.sort_by_key(|place| place.seq);
        places
    }

    /// Removes a conversation. The branch with the latest point inherits the logs of the common
    /// turns, and the other branches begin in that one from now on.
    pub(super) fn remove(&mut self, key: &ConversationKey) -> Option<Conversation> {
        let mut gone = self.conversations.remove(key)?;
        if let Some(origin) = gone.origin {
            self.forget_branch(&sibling(key, origin.conversation), key.conversation);
        }
        let branches = self.branches(key);
        self.branches.remove(key);
        let latest = branches.iter().map(|(_, origin)| origin.seq).max();
        let heir = branches
            .iter()
            .find(|(_, origin)| Some(origin.seq) == latest);
        let Some((heir, Origin { seq, .. })) = heir.copied() else {
            return Some(gone);
        };
        if let Some(conversation) = self.conversations.get_mut(&sibling(key, heir)) {
            let is_common = |turn: TurnId| {
                gone.events.iter().any(|Recorded { seq: place, event, .. }| {
                    *place <= seq && matches!(&**event, Event::TurnStarted { turn: own, .. } if *own == turn)
                })
            };
            let decisions = gone.decisions.extract_if(.., |row| is_common(row.id));
            let decisions = decisions.map(|row| DecisionRecord {
                conversation: heir,
                ..row
            });
            let decisions: Vec<_> = decisions.collect();
            let invocations: Vec<_> = gone
                .invocations
                .extract_if(.., |row| is_common(row.decision))
                .collect();
            conversation.decisions.splice(0..0, decisions);
            conversation.invocations.splice(0..0, invocations);
            conversation.origin = gone.origin.map(|origin| Origin {
                number: conversation.origin.map_or(origin.number, |own| own.number),
                ..origin
            });
        }
        if let Some(origin) = gone.origin {
            self.branches
                .entry(sibling(key, origin.conversation))
                .or_default()
                .push(heir);
        }
        for (branch, _) in branches {
            if branch != heir
                && let Some(origin) = self
                    .conversations
                    .get_mut(&sibling(key, branch))
                    .and_then(|branch| branch.origin.as_mut())
            {
                origin.conversation = heir;
                self.branches
                    .entry(sibling(key, heir))
                    .or_default()
                    .push(branch);
            }
        }
        Some(gone)
    }
}
