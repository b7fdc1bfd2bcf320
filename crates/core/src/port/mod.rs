//! Ports: the traits that adapters, stores and dispatchers implement. The contract tests of
//! `adjutant-store` say what a store has to do.

mod booking;
mod branch;
mod budget;
mod change;
mod claim;
mod conversation;
mod conversation_index;
mod fact;
mod journal;
mod journaled_change;
mod language_model;
mod memory_ledger;
mod operator;
mod relay;
mod token;
mod user_setting;
mod work;
mod worker;

pub use crate::cursor::{Cursor, InvalidCursor};
pub use booking::{Booking, Drawn};
pub use branch::{Alternatives, BranchPoint, Branched, Branching};
pub use budget::{Ask, BudgetStore, GrantRequest, Granted};
pub use change::{Change, Changes};
pub use claim::Claim;
pub use conversation::{
    ConversationFilter, ConversationStore, ConversationSummary, Deleted, Entries, VersionCount,
    Versions,
};
pub use conversation_index::{
    Candidate, ConversationIndex, IndexMatches, IndexQuery, IndexedPart, Passage, Unindexed,
};
pub use fact::{FactStore, FactsChange, FactsFound, FactsUpdate};
pub use journal::{
    AcceptedInput, Begin, Begun, Finished, Journal, Known, Loaded, LogStore, Newer, Rated,
    Restorable, StoreError, Turns,
};
pub use journaled_change::{EndOfCall, JournaledChange};
pub use language_model::{DeltaStream, LanguageModel};
pub use memory_ledger::MemoryLedger;
pub use operator::{
    COUNTED_MAX, GroupBy, GroupTotal, OperatorStore, PeopleFilter, Person, Total, Totals,
    TotalsFilter, WaitingFilter, WaitingTurn, Which, WorkState, WorkerState,
};
pub use relay::{Alone, Recipients, Relay, RelayItem, RelayReceiver, pieces};
pub use token::{
    NoSuchRole, NoSuchScope, Role, TokenGrant, TokenKind, TokenRecord, TokenRefused, TokenScope,
    TokenScopes, TokenStore,
};
pub use user_setting::{UserSettingStore, UserSettings};
pub use work::{Due, Take, Taken, WorkPlace};
pub use worker::{Beat, Holder, Running, Worker, Writer};
