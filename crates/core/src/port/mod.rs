//! What others implement: the language model, and what survives a crash.

mod booking;
mod branch;
mod budget;
mod change;
mod claim;
mod conversation;
mod fact;
mod journal;
mod journaled_change;
mod language_model;
mod memory_ledger;
mod operator;
mod past;
mod relay;
mod task;
mod task_index;
mod token;
mod work;
mod worker;

pub use crate::cursor::{Cursor, InvalidCursor};
pub use booking::{Booking, Drawn};
pub use branch::{Alternatives, BranchPoint, Branched, Branching};
pub use budget::{Ask, BudgetStore, GrantRequest, Granted};
pub use change::{Change, Changes};
pub use claim::Claim;
pub use conversation::{ConversationFilter, ConversationStore, ConversationSummary, Deleted};
pub use fact::{FactStore, FactsChange, FactsFound};
pub use journal::{
    AcceptedInput, Begin, Begun, Finished, Journal, Known, Loaded, LogStore, Newer, Rated,
    Restorable, StoreError, Turns,
};
pub use journaled_change::JournaledChange;
pub use language_model::{DeltaStream, LanguageModel};
pub use memory_ledger::MemoryLedger;
pub use operator::{
    COUNTED_MAX, GroupBy, GroupTotal, OperatorStore, PeopleFilter, Person, Total, Totals,
    TotalsFilter, WaitingFilter, WaitingTurn, Which, WorkState, WorkerState,
};
pub use past::{
    Candidate, IndexedPart, Passage, PastConversations, PastFound, PastQuery, Unindexed,
};
pub use relay::{Alone, Heard, Hearing, Relay, To, pieces};
pub use task::TaskStore;
pub use task_index::{NumbersChange, TaskIndex, TaskNumber};
pub use token::{NoSuchRole, Role, TokenGrant, TokenKind, TokenRecord, TokenRefused, TokenStore};
pub use work::{Due, Take, Taken, WorkPlace};
pub use worker::{Beat, Holder, Running, Worker, Writer};
