//! Changes of a user's data that a store carries out in one transaction with events.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;

use jiff::Timestamp;

use crate::id::{IdempotencyKey, StoreId, UserId};

/// A change of a user's data, such as the user's tasks, that a store can carry out in the
/// transaction in which the journal records the call.
///
/// Core knows neither the change nor its outcome: the tool that makes the change and the store that
/// carries it out share the type. A database downcasts the change to the types it has tables for
/// (as `&dyn Any`) and refuses others; a store in memory calls
/// [`apply_in_memory`](StoreChange::apply_in_memory).
pub trait StoreChange: Any + fmt::Debug + Send + Sync {
    /// Carries the change out in a store in memory, once for each key, and returns its outcome. A
    /// key that was used before changes nothing and returns the outcome of that time.
    fn apply_in_memory(
        &self,
        tables: &mut UserTables,
        user: &UserId,
        key: &IdempotencyKey,
        now: Timestamp,
    ) -> Box<dyn Any>;
}

/// A table of one user's data in a store in memory.
pub trait UserTable: Any + fmt::Debug + Send {
    /// Forgets the outcomes of changes whose keys begin with `prefix`: their conversation was
    /// deleted, so no call of it can be repeated.
    fn forget_outcomes(&mut self, prefix: &str);
}

/// The tables of one user in a store in memory, one of each type.
#[derive(Debug, Default)]
pub struct UserTables(HashMap<TypeId, Box<dyn UserTable>>);

impl UserTables {
    /// Returns the table of a type, which is created if there is none.
    pub fn table<T: UserTable + Default>(&mut self) -> &mut T {
        // The type's id is the key, so that crates that know nothing of each other share the map.
        let table: &mut dyn Any = &mut **self
            .0
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Box::new(T::default()));
        #[expect(
            clippy::expect_used,
            reason = "the key of a table is the id of its type"
        )]
        table.downcast_mut().expect("a table under its own type")
    }

    /// Forgets the outcomes of changes in every table; see [`UserTable::forget_outcomes`].
    pub fn forget_outcomes(&mut self, prefix: &str) {
        for table in self.0.values_mut() {
            table.forget_outcomes(prefix);
        }
    }
}

/// A store in memory, which keeps tables of types that it does not know.
///
/// A crate with a port of its own, such as that of tasks, implements the port for every such store.
pub trait InMemoryTables: Send + Sync + 'static {
    /// Returns the id of the store, which is also the journal's.
    fn store_id(&self) -> StoreId;

    /// Runs `work` with the tables of a user and the time of the store's clock. Everything else in
    /// the store waits meanwhile.
    fn with_tables<R>(
        &self,
        user: &UserId,
        work: impl FnOnce(&mut UserTables, Timestamp) -> R,
    ) -> R;
}
