use jiff::Timestamp;
use serde::Serialize;

use crate::BoxFuture;
use crate::cost::{self, Cost};
use crate::id::{AgentName, ConversationId, UserId};
use crate::log::{DecisionFilter, DecisionRecord};
use crate::port::StoreError;

/// The most turns that are looked at to add something up. Beyond it the newest count, and
/// [`Totals::is_cut`] says so.
pub const COUNTED_MAX: u32 = 100_000;

/// Reads over all users, for whoever runs a store. No other port answers without a user.
///
/// Whatever is asked, what is read is bounded: by a page, by [`COUNTED_MAX`] turns, or by the turns
/// of the users of a page.
pub trait OperatorStore: Send + Sync + 'static {
    /// Returns decisions of all users, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    fn decisions_of_all<'a>(
        &'a self,
        filter: &'a DecisionFilter,
        which: Which,
    ) -> BoxFuture<'a, Result<Vec<DecisionRecord>, StoreError>>;

    /// Returns decisions whose id is `id` or begins or ends with it, newest first, at most `limit`.
    /// Those with the whole id come before all others.
    ///
    /// # Errors
    /// [`StoreError`].
    fn decisions_named<'a>(
        &'a self,
        id: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<DecisionRecord>, StoreError>>;

    /// Returns the decisions that a request over HTTP started, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`].
    fn decisions_of_request<'a>(
        &'a self,
        request_id: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<DecisionRecord>, StoreError>>;

    /// Adds up turns, by group.
    ///
    /// # Errors
    /// [`StoreError`].
    fn totals<'a>(&'a self, asked: &'a TotalsFilter) -> BoxFuture<'a, Result<Totals, StoreError>>;

    /// Returns a page of everybody who has anything in the store, in the order of their names'
    /// bytes.
    ///
    /// # Errors
    /// [`StoreError`].
    fn people<'a>(
        &'a self,
        filter: &'a PeopleFilter,
    ) -> BoxFuture<'a, Result<Vec<Person>, StoreError>>;

    /// Returns the conversations in which something has waited for a person since before a moment,
    /// the longest first.
    ///
    /// # Errors
    /// [`StoreError`].
    fn waiting<'a>(
        &'a self,
        filter: &'a WaitingFilter,
    ) -> BoxFuture<'a, Result<Vec<WaitingTurn>, StoreError>>;

    /// Returns what there is to do, and who does it.
    ///
    /// # Errors
    /// [`StoreError`].
    fn work(&self) -> BoxFuture<'_, Result<WorkState, StoreError>>;
}

/// A choice of turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Which {
    /// All of them.
    #[default]
    All,
    /// Those that have an error's code: a model or a tool failed, or a limit was reached.
    Failed,
}

/// The key by which turns are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// Their user.
    User,
    /// The model they began with, as `provider/name`.
    Model,
    /// The day they began, in UTC.
    Day,
    /// Their outcome; empty for those that run.
    Outcome,
    /// Their error's code, of those that have one.
    Error,
}

/// A request for [`OperatorStore::totals`].
#[derive(Debug, Clone, PartialEq)]
pub struct TotalsFilter {
    /// Only those of this user.
    pub user: Option<UserId>,
    /// Only those started at or after this moment.
    pub since: Option<Timestamp>,
    /// Only those started before this moment.
    pub until: Option<Timestamp>,
    /// The key by which turns are grouped.
    pub by: GroupBy,
    /// At most so many groups: those with the most turns, or the latest days.
    pub limit: u32,
}

/// Sums over turns: counts, tokens and cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Total {
    /// Turns.
    pub turns: u64,
    /// Those of them with an error's code.
    pub failed: u64,
    /// Tokens sent to models.
    pub input_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
    /// Money, as far as it is known, in US dollars.
    #[serde(rename = "cost_usd", serialize_with = "cost::as_usd")]
    pub cost: Cost,
    /// Turns whose cost is not known; they are not in `cost`.
    pub cost_unknown: u64,
    /// Turns whose answer a person rated as of use.
    pub rated_up: u64,
    /// Turns whose answer a person rated as of no use.
    pub rated_down: u64,
}

/// Sums over the turns of a group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupTotal {
    /// The group: a user, a model, a day, an outcome, an error's code.
    pub group: String,
    /// The sums, in JSON beside `group`.
    #[serde(flatten)]
    pub total: Total,
}

/// The answer to [`OperatorStore::totals`].
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Sums over all turns that were looked at, also those of groups that are left out.
    pub all: Total,
    /// The groups, those with the most turns first; days, latest first.
    pub groups: Vec<GroupTotal>,
    /// True if there are more groups than [`TotalsFilter::limit`].
    pub more_groups: bool,
    /// True if there are more turns than [`COUNTED_MAX`]: then only the newest are added up.
    pub is_cut: bool,
}

/// A request for [`OperatorStore::people`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PeopleFilter {
    /// Only those behind this name.
    pub after: Option<String>,
    /// Of their turns, only those started at or after this moment are added up.
    pub since: Option<Timestamp>,
    /// At most so many.
    pub limit: u32,
}

/// Somebody who has something in the store.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Person {
    /// Their name. It need not be valid: whoever reads it has to bear anything.
    pub user: String,
    /// Their conversations, calls by hand included, of all agents.
    pub conversations: u64,
    /// Those of them that wait for the person.
    pub waiting: u64,
    /// Their tasks.
    pub tasks: u64,
    /// Their tokens for the service that are not revoked.
    pub access_tokens: u64,
    /// Sums over their turns since [`PeopleFilter::since`].
    #[serde(flatten)]
    pub total: Total,
    /// Time of the last change of one of their conversations. `None`: they have none.
    pub last_seen: Option<Timestamp>,
}

/// A request for [`OperatorStore::waiting`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WaitingFilter {
    /// Only what has waited since before this moment.
    pub before: Timestamp,
    /// Only those behind this place: [`WaitingTurn::place`].
    pub after: Option<(Timestamp, i64)>,
    /// At most so many.
    pub limit: u32,
}

/// A conversation in which something waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaitingTurn {
    /// Whose.
    pub user: String,
    /// Its agent.
    pub agent: AgentName,
    /// The conversation.
    pub conversation: ConversationId,
    /// The turn.
    pub turn: Option<String>,
    /// Since when.
    pub since: Timestamp,
    /// The earliest expiry of the calls.
    pub expires_at: Option<Timestamp>,
    /// Calls that wait.
    pub calls: u64,
    /// Its place in the list.
    #[serde(skip)]
    pub place: (Timestamp, i64),
}

/// The conversations that need work, and the processes that do it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkState {
    /// Conversations with an input nobody took, or a turn that neither ended nor waits: counted up
    /// to [`WorkState::COUNTED_MAX`].
    pub unsettled: u64,
    /// Conversations that wait for a person: counted up to [`WorkState::COUNTED_MAX`].
    pub waiting: u64,
    /// The processes that gave a sign of life and hold until a moment that has not passed, the
    /// latest first.
    pub workers: Vec<WorkerState>,
    /// The version of the database's schema.
    pub schema_version: u64,
}

impl WorkState {
    /// Counts end here.
    pub const COUNTED_MAX: u32 = 10_000;
}

/// A process that runs conversations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerState {
    /// Its name in the journal.
    pub id: String,
    /// Until when its claims hold.
    pub seen_until: Timestamp,
}
