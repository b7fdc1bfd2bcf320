//! The in-memory store keeps the contract of every store.

use adjutant_core::LogContent;
use adjutant_runtime::InMemory;
use adjutant_store::contract;

#[tokio::test]
async fn in_memory_keeps_the_task_contract() {
    contract::task_store(async || InMemory::new()).await;
}

#[tokio::test]
async fn in_memory_keeps_the_journal_contract() {
    contract::journal(async || InMemory::new()).await;
    contract::a_change_is_written_with_its_events(&InMemory::new()).await;
    for content in [LogContent::Redacted, LogContent::None] {
        contract::logs_hold_what_they_may(&InMemory::new().with_log_content(content)).await;
    }
}

#[tokio::test]
async fn in_memory_keeps_the_budget_contract() {
    contract::budget_store(async || InMemory::new()).await;
}
