//! Facts in the database, for people without a vault.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use adjutant_core::{BoxFuture, LanguageModel, Tool, UserId};
use adjutant_memory::{
    DatabaseMemory, ImportantFacts, Memory, MemoryError, RecallLimits, brief_fact_tools, fact_tools,
};
use adjutant_runtime::{InstructionAddition, Recall, RecallRequest, TurnInstruction};

use super::instruction::{count_tokens, in_part, unread};
use super::tools::named;
use super::undo::ON_PAGE;

/// Maximum time between a message and the start of its turn, in which facts read for the one are
/// used by the other.
const HANDED_ON: Duration = Duration::from_secs(5);

/// Returns the memory tools, which act for the user of each call: the brief ones, for weak models and
/// small context windows, or all.
pub(crate) fn tools_in_database(memory: &DatabaseMemory, brief: bool) -> Vec<Arc<dyn Tool>> {
    let tools = match brief {
        true => brief_fact_tools(memory),
        false => fact_tools(memory),
    };
    tools.into_iter().map(|tool| named(tool, ON_PAGE)).collect()
}

/// Adds each user's facts to instruction and messages. Cheap to clone.
#[derive(Clone)]
pub(crate) struct DatabaseRecall {
    memory: DatabaseMemory,
    model: Arc<dyn LanguageModel>,
    /// The important facts read with a message, until its turn begins: one query serves both.
    handed_on: Arc<Mutex<HashMap<UserId, (Instant, ImportantFacts)>>>,
}

impl DatabaseRecall {
    pub(crate) fn new(memory: DatabaseMemory, model: Arc<dyn LanguageModel>) -> Self {
        Self {
            memory,
            model,
            handed_on: Arc::default(),
        }
    }

    fn count(&self, text: &str) -> u32 {
        count_tokens(&*self.model, text)
    }

    fn hand_on(&self, user: &UserId, important: ImportantFacts) {
        let now = Instant::now();
        let mut handed_on = self.lock();
        // Entries of turns that never began.
        handed_on.retain(|_, (at, _)| now.duration_since(*at) < HANDED_ON);
        handed_on.insert(user.clone(), (now, important));
    }

    /// Takes the facts that a message was read with. Taken, because a later turn of the user has to
    /// see what changed since.
    fn take_handed_on(&self, user: &UserId) -> Option<ImportantFacts> {
        let (at, important) = self.lock().remove(user)?;
        (at.elapsed() < HANDED_ON).then_some(important)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<UserId, (Instant, ImportantFacts)>> {
        // A panic of another turn leaves whole entries, so the map stays usable.
        self.handed_on
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn important(&self, memory: &Memory) -> Result<ImportantFacts, MemoryError> {
        match self.take_handed_on(memory.owner()) {
            Some(important) => Ok(important),
            None => memory.facts().instruction(&|text| self.count(text)).await,
        }
    }
}

impl Recall for DatabaseRecall {
    fn for_message<'a>(
        &'a self,
        asked: RecallRequest<'a>,
    ) -> BoxFuture<'a, Vec<adjutant_core::RecalledText>> {
        Box::pin(async move {
            let user = &asked.key.user;
            let (limits, count) = (RecallLimits::default(), |text: &str| self.count(text));
            let memory = self.memory.for_user(user);
            // The error is reported by the code that makes the instruction.
            let Ok(read) = memory
                .for_turn(asked.message, asked.history, limits, &count)
                .await
            else {
                return Vec::new();
            };
            // The turn begins at once and needs the important facts, which were read just now.
            self.hand_on(user, read.important);
            read.recalled
        })
    }
}

impl TurnInstruction for DatabaseRecall {
    fn for_turn<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, InstructionAddition> {
        Box::pin(async move {
            let memory = self.memory.for_user(user);
            let (facts, notice) = match self.important(&memory).await {
                Ok(facts) => {
                    let remedy = "The star under Memory on the page takes importance away.";
                    let notice = in_part(&facts, remedy);
                    (facts.text, notice)
                }
                Err(error) => (String::new(), Some(unread(&error))),
            };
            InstructionAddition {
                text: facts,
                notices: notice.into_iter().collect(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use adjutant_core::port::{FactStore, FactsChange, FactsFound, FactsUpdate, StoreError};
    use adjutant_core::{ConversationKey, MemoryScope};
    use adjutant_memory::{Cause, InMemoryLedger};
    use adjutant_providers::scripted::ScriptedModel;
    use adjutant_store::sqlite;

    use super::*;
    use crate::store;

    /// Counts the queries that read facts.
    struct Counting(sqlite::Store, AtomicU32);

    impl FactStore for Counting {
        fn facts<'a>(&'a self, user: &'a UserId) -> BoxFuture<'a, Result<FactsFound, StoreError>> {
            self.1.fetch_add(1, Ordering::SeqCst);
            self.0.facts(user)
        }

        fn facts_since<'a>(
            &'a self,
            user: &'a UserId,
            revision: Option<i64>,
        ) -> BoxFuture<'a, Result<FactsUpdate, StoreError>> {
            self.1.fetch_add(1, Ordering::SeqCst);
            self.0.facts_since(user, revision)
        }

        fn change_facts<'a>(
            &'a self,
            scope: &'a MemoryScope,
            change: FactsChange<'a>,
        ) -> BoxFuture<'a, Result<bool, StoreError>> {
            self.0.change_facts(scope, change)
        }
    }

    #[tokio::test]
    async fn a_turn_reads_the_facts_once() {
        let store = Arc::new(Counting(
            sqlite::Store::in_memory().await.unwrap(),
            AtomicU32::new(0),
        ));
        let clock = Arc::new(|| "2025-12-10T14:05:00[UTC]".parse().unwrap());
        let memory = DatabaseMemory::new(store.clone(), Arc::new(InMemoryLedger::new()), 9, clock);
        let recall = DatabaseRecall::new(memory.clone(), Arc::new(ScriptedModel::new([])));
        let anna = UserId::new("anna").unwrap();
        let facts = memory.for_user(&anna).facts();
        facts
            .add("Anna drinks Darjeeling", true, &Cause::person())
            .await
            .unwrap();
        facts
            .add("Anna was born in Zanzibar", false, &Cause::person())
            .await
            .unwrap();
        store.1.store(0, Ordering::SeqCst);
        let key = ConversationKey {
            agent: store::agent_name(),
            user: anna.clone(),
            conversation: "00000000-0000-7000-8000-000000000001".parse().unwrap(),
        };
        let asked = RecallRequest {
            key: &key,
            message: "Where was I born?",
            history: &[],
        };
        let with_message = recall.for_message(asked).await;
        assert!(
            with_message[0].text.contains("Zanzibar"),
            "{with_message:?}"
        );
        // What is read for another turn meanwhile is another user's.
        let bert = UserId::new("bert").unwrap();
        assert!(!recall.for_turn(&bert).await.text.contains("Darjeeling"));
        assert_eq!(store.1.swap(0, Ordering::SeqCst), 2);
        assert!(recall.for_turn(&anna).await.text.contains("Darjeeling"));
        assert_eq!(store.1.swap(0, Ordering::SeqCst), 0);
        // A turn that goes on without a message has them read anew.
        facts.forget("Darjeeling", &Cause::person()).await.unwrap();
        store.1.store(0, Ordering::SeqCst);
        assert!(!recall.for_turn(&anna).await.text.contains("Darjeeling"));
        assert_eq!(store.1.load(Ordering::SeqCst), 1);
    }
}
