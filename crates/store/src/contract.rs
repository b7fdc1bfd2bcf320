//! Contract tests: the behaviour that the ports of `adjutant_core` require of every backend.
//!
//! A backend passes a function that creates an empty store; each test gets its own. The tests panic
//! on a violation.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "these are tests, and panicking is how a test fails"
)]

mod begin;
mod branch;
mod budget;
mod conversation;
mod fact;
mod fixture;
mod history;
mod journal;
mod lease;
mod log;
mod long_values;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod maintenance;
mod memory_ledger;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod passages;
mod queue;
mod snapshot;
mod task;
mod task_change;
mod task_index;
mod token;
mod user_setting;

pub use begin::*;
pub use branch::*;
pub use budget::*;
pub use conversation::*;
pub use fact::*;
pub use history::*;
pub use journal::*;
pub use lease::*;
pub use log::*;
pub use long_values::*;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use maintenance::*;
pub use memory_ledger::*;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use passages::*;
pub use queue::*;
pub use snapshot::*;
pub use task::*;
pub use task_change::*;
pub use task_index::*;
pub use token::*;
pub use user_setting::*;

#[cfg(any(feature = "sqlite", feature = "postgres"))]
use adjutant_core::port::ConversationIndex;
use adjutant_core::port::{
    BudgetStore, ConversationStore, FactStore, Journal, LogStore, MemoryLedger, TokenStore,
    UserSettingStore,
};
use adjutant_tools::{TaskIndex, TaskStore};

/// Checks the contract of [`TaskStore`].
pub async fn task_store<T: TaskStore>(make: impl AsyncFn() -> T) {
    tasks_are_added_changed_and_removed(&make().await).await;
    task_ids_are_never_reused(&make().await).await;
    tasks_belong_to_their_user(&make().await).await;
    a_repeated_key_has_one_effect(&make().await).await;
    completing_twice_is_reported(&make().await).await;
    a_deleted_task_comes_back_as_it_was(&make().await).await;
    a_task_says_if_a_program_wrote_it(&make().await).await;
    descriptions_hold_any_unicode(&make().await).await;
}

/// Checks the contract of a journal, with its logs and its list of conversations.
pub async fn journal<J: Journal + LogStore + ConversationStore>(make: impl AsyncFn() -> J) {
    inputs_wait_in_order_and_once(&make().await).await;
    an_id_of_another_request_is_refused(&make().await).await;
    only_the_next_place_is_free(&make().await).await;
    a_step_has_one_event_of_a_kind(&make().await).await;
    every_kind_of_event_comes_back_as_it_was(&make().await).await;
    large_bodies_come_back_as_they_were(&make().await).await;
    long_values_come_back_wherever_they_are_read(&make().await).await;
    events_take_their_inputs(&make().await).await;
    messages_that_wait_in_a_conversation_are_bounded(&make().await).await;
    messages_that_wait_for_the_end_of_a_turn_are_bounded_too(&make().await).await;
    of_many_messages_at_once_as_many_are_accepted_as_may_wait(&make().await).await;
    conversations_belong_to_their_user(&make().await).await;
    conversations_belong_to_their_agent(&make().await).await;
    of_many_writers_one_succeeds(&make().await).await;
    a_turn_begins_and_ends_with_its_lease(&make().await).await;
    known_events_are_not_read_again(&make().await).await;
    a_turn_may_begin_before_a_worker_has_the_lease(&make().await).await;
    a_turn_begins_only_where_no_other_work_waits(&make().await).await;
    the_lease_of_a_waiting_turn_is_released_unless_an_answer_came(&make().await).await;
    turns_are_read_from_the_end(&make().await).await;
    large_events_come_with_their_turn(&make().await).await;
    an_input_is_found_by_its_id(&make().await).await;
    conversations_are_listed_renamed_and_deleted(&make().await).await;
    conversations_are_paged_and_searched(&make().await).await;
    a_conversation_that_runs_is_not_deleted(&make().await).await;
    leases_exclude_until_released_or_expired(&make().await).await;
    work_is_found_until_it_is_settled(&make().await).await;
    a_turn_waits_until_its_last_call_is_answered(&make().await).await;
    expired_calls_are_found(&make().await).await;
    work_is_taken_in_order_and_once(&make().await).await;
    expired_calls_are_taken(&make().await).await;
    of_many_takers_one_gets_each(&make().await).await;
    a_cancellation_is_seen_until_it_is_taken(&make().await).await;
    subscribers_receive_changes(&make().await).await;
    a_heartbeat_extends_all_leases_of_its_epoch(&make().await).await;
    a_decision_opens_with_its_turn_and_closes_at_its_end(&make().await).await;
    an_unreadable_answer_is_kept_in_the_decision(&make().await).await;
    decisions_are_filtered(&make().await).await;
    decisions_are_paged(&make().await).await;
    logs_belong_to_their_user(&make().await).await;
    decisions_name_their_agent(&make().await).await;
    logs_have_the_content_that_the_store_allows(&make().await).await;
    a_decision_names_its_request(&make().await).await;
    an_answer_is_rated_by_its_user_only(&make().await).await;
    a_branch_begins_with_the_events_before_its_place(&make().await).await;
    a_branch_begins_between_turns(&make().await).await;
    a_branch_inherits_nothing_that_waits(&make().await).await;
    alternatives_are_listed_where_they_differ(&make().await).await;
    a_deleted_conversation_leaves_its_branches_whole(&make().await).await;
    versions_are_one_entry_of_the_list(&make().await).await;
    versions_are_deleted_together(&make().await).await;
    for seed in 1..=2 {
        every_conversation_of_a_tree_reads_as_it_was_appended(&make().await, seed).await;
    }
}

/// Checks the contract of a journal that stores snapshots.
pub async fn snapshots<J: Journal + ConversationStore>(make: impl AsyncFn() -> J) {
    a_snapshot_replaces_the_events_before_it(&make().await).await;
    a_branch_goes_on_from_its_own_snapshot(&make().await).await;
}

/// Checks the contract of the index of past conversations.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub async fn past_conversations<T>(make: impl AsyncFn() -> T)
where
    T: ConversationIndex + ConversationStore + crate::Maintenance,
{
    turns_are_indexed_once_and_found(&make().await).await;
    turns_that_are_not_indexed_come_with_a_search(&make().await).await;
    passages_belong_to_their_user_and_agent(&make().await).await;
    a_deleted_conversation_leaves_the_index(&make().await).await;
    a_branch_is_indexed_from_its_place_on(&make().await).await;
    index_words_hold_any_signs(&make().await).await;
}

/// Checks the contract of [`TokenStore`].
pub async fn token_store<T: TokenStore>(make: impl AsyncFn() -> T) {
    tokens_are_valid_for_their_user_until_revoked(&make().await).await;
    a_token_has_the_properties_it_was_created_with(&make().await).await;
    tokens_created_by_a_token_are_revoked_with_it(&make().await).await;
    expired_sessions_are_forgotten(&make().await).await;
}

/// Checks the contract of [`BudgetStore`], including bookings through the [`Journal`].
pub async fn budget_store<T: BudgetStore + Journal>(make: impl AsyncFn() -> T) {
    a_block_counts_as_used_until_it_is_closed(&make().await).await;
    folding_changes_no_sum(&make().await).await;
    every_quantity_has_its_limit(&make().await).await;
    all_users_together_have_a_limit(&make().await).await;
    of_a_remainder_nothing_is_left_unused(&make().await).await;
    the_block_of_a_dead_process_runs_out(&make().await).await;
    of_many_requests_at_once_no_two_get_the_same_remainder(&make().await).await;
    eight_workers_with_shares_spend_all_and_no_more(&make().await).await;
    bookings_are_in_the_commit_of_their_events(&make().await).await;
}

/// Checks the contract of [`UserSettingStore`].
pub async fn user_setting_store<T: UserSettingStore>(make: impl AsyncFn() -> T) {
    settings_belong_to_their_user(&make().await).await;
}

/// Checks the contract of [`TaskIndex`].
pub async fn task_index<T: TaskIndex + TaskStore>(make: impl AsyncFn() -> T) {
    numbers_come_back_as_they_were(&make().await).await;
    numbers_are_shared_with_the_tasks_of_the_user(&make().await).await;
}

/// Checks the contract of [`MemoryLedger`].
pub async fn memory_ledger<T: MemoryLedger>(make: impl AsyncFn() -> T) {
    changes_of_a_memory_come_back_as_they_were(&make().await).await;
    a_change_of_a_memory_is_replaced_in_its_place(&make().await).await;
    memories_belong_to_their_user_and_vault(&make().await).await;
}

/// Checks the contract of [`FactStore`], including the [`MemoryLedger`].
pub async fn fact_store<T: FactStore + MemoryLedger>(make: impl AsyncFn() -> T) {
    facts_are_added_changed_and_removed_with_their_history(&make().await).await;
    facts_are_changed_only_as_they_were_known(&make().await).await;
    facts_that_were_written_since_a_revision_are_read(&make().await).await;
    facts_belong_to_their_user(&make().await).await;
    of_many_changes_of_facts_at_once_one_succeeds_at_a_time(&make().await).await;
}
