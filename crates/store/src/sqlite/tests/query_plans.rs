//! Query plans: the statements that are run often use an index.

use super::*;
use crate::sql::{
    budget, conversation, fact, history, journal, lease, log, operator, passage, task, user_page,
};

#[tokio::test]
async fn looking_for_work_reads_an_index() {
    let store = Store::in_memory().await.unwrap();
    // The statements themselves, so that none of them can change without this test.
    let queries = [
        (journal::UNSETTLED, "adjutant_conversation_unsettled"),
        (lease::FIND_UNSETTLED, "adjutant_conversation_unsettled"),
        (lease::FIND_EXPIRED, "adjutant_conversation_wake"),
        (journal::PARKED, "adjutant_conversation_parked"),
        (history::INBOX, "adjutant_inbox_untaken"),
        (history::INPUT, "(conversation=? AND id=?)"),
        (
            history::TURNS,
            "SEARCH event USING PRIMARY KEY (conversation=? AND seq>? AND seq<?)",
        ),
        (
            history::TURNS,
            "SEARCH first USING PRIMARY KEY (conversation=? AND seq<?)",
        ),
        (
            history::TURN,
            "SEARCH event USING PRIMARY KEY (conversation=? AND seq>? AND seq<?)",
        ),
        (
            history::TURN,
            "adjutant_event_once (conversation=? AND step=? AND kind=?)",
        ),
        (
            history::TURN,
            "SEARCH next USING PRIMARY KEY (conversation=? AND seq>?)",
        ),
        (
            task::OPEN,
            "SEARCH adjutant_task USING PRIMARY KEY (user_id=?",
        ),
        (
            task::LAST_OPEN,
            "SEARCH adjutant_task USING PRIMARY KEY (user_id=? AND id<?)",
        ),
        (journal::CANCELLATION, "adjutant_inbox_untaken"),
        (conversation::NEWEST, "adjutant_conversation_recent"),
        (conversation::SEARCHED, "adjutant_conversation_recent"),
        (
            conversation::NEWEST_CONVERSATIONS,
            "SEARCH conversation USING INDEX adjutant_conversation_recent",
        ),
        (
            conversation::NEWEST_CONVERSATIONS,
            "SEARCH below USING COVERING INDEX adjutant_conversation_branches",
        ),
        (
            conversation::SEARCHED_CONVERSATIONS,
            "SEARCH conversation USING INDEX adjutant_conversation_recent",
        ),
        (log::DECISIONS, "adjutant_decision_recent"),
        (
            log::FEEDBACK,
            "adjutant_decision_feedback (user_id=? AND id>? AND id<?)",
        ),
    ];
    for (query, index) in queries {
        let plan = plan(&store, query).await;
        assert!(
            plan.contains(index) && !plan.contains("TEMP B-TREE"),
            "{query}: {plan}"
        );
    }
    let facts = plan(&store, fact::FOUND).await;
    assert!(
        facts.contains("adjutant_fact USING INDEX") && facts.contains("(user_id=?)"),
        "{facts}"
    );
    assert!(
        facts.contains("adjutant_memory_change USING INDEX") && facts.contains("(scope=?"),
        "{facts}"
    );
    let written = plan(&store, fact::SINCE).await;
    assert!(
        written.contains("INDEX adjutant_fact_written (user_id=? AND revision>?)")
            && !written.contains("SCAN adjutant"),
        "{written}"
    );
    let newer = plan(&store, passage::UNINDEXED).await;
    let index = "USING INDEX adjutant_conversation_unindexed (agent=?)";
    assert!(
        newer.contains(index) && !newer.contains("TEMP B-TREE"),
        "{newer}"
    );
    // Few conversations wait. They are found by their expiry, and sorted then.
    let plan = plan(&store, journal::EXPIRED).await;
    assert!(plan.contains("adjutant_conversation_wake"), "{plan}");
}

#[tokio::test]
async fn an_operator_reads_indices() {
    let store = Store::in_memory().await.unwrap();
    let queries = [
        (
            operator::ALL,
            "SEARCH decision USING INDEX adjutant_decision_newest",
        ),
        (
            operator::FAILED,
            "SEARCH decision USING INDEX adjutant_decision_failed",
        ),
        (
            operator::RATED,
            "SEARCH decision USING INDEX adjutant_decision_rated",
        ),
        (
            operator::OF_REQUEST,
            "SEARCH decision USING INDEX adjutant_decision_request (request_id=?)",
        ),
        // All ids are looked through, and not the rows.
        (
            operator::NAMED,
            "SCAN named USING COVERING INDEX adjutant_decision_newest",
        ),
        (
            operator::NAMED_IN_PART,
            "SCAN named USING COVERING INDEX adjutant_decision_newest",
        ),
        (
            operator::WAITING,
            "SEARCH adjutant_conversation USING INDEX adjutant_conversation_asking",
        ),
        (
            user_page::NAMES[0],
            "SEARCH adjutant_decision USING COVERING INDEX",
        ),
        (
            user_page::NAMES[1],
            "SEARCH adjutant_task USING PRIMARY KEY (user_id>?)",
        ),
        (
            user_page::NAMES[2],
            "SEARCH adjutant_token USING COVERING INDEX adjutant_token_user (user_id>?)",
        ),
        (
            user_page::NAMES[3],
            "SEARCH adjutant_memory_change USING COVERING INDEX adjutant_memory_change_user (user_id>?)",
        ),
        (
            user_page::NAMES_OF_AGENT,
            "SEARCH adjutant_conversation USING COVERING INDEX",
        ),
        (
            user_page::AGENTS,
            "SEARCH adjutant_conversation USING COVERING INDEX",
        ),
        (user_page::TURNS, "SEARCH adjutant_decision USING INDEX"),
    ];
    for (query, part) in queries {
        let plan = plan(&store, query).await;
        assert!(plan.contains(part), "{query}: {plan}");
    }
    for by in [
        GroupBy::User,
        GroupBy::Model,
        GroupBy::Day,
        GroupBy::Outcome,
        GroupBy::Error,
    ] {
        let (of_all, of_user) = operator::totals_statements(by);
        for (query, index) in [
            (of_all, ["_newest", "_failed"]),
            (of_user, ["_recent", "_failed"]),
        ] {
            let plan = plan(&store, query).await;
            let found = index.iter().any(|index| {
                plan.contains(&format!(
                    "SEARCH adjutant_decision USING INDEX adjutant_decision{index}"
                ))
            });
            assert!(found, "{query}: {plan}");
        }
    }
}

#[tokio::test]
async fn what_is_taken_of_a_day_is_read_without_the_other_users() {
    let store = Store::in_memory().await.unwrap();
    for (query, bookings) in [
        (budget::USE_BY_ALL, "adjutant_budget_booking_day (day=?)"),
        (
            budget::USE_BY_USER,
            "adjutant_budget_booking_day (day=? AND user_id=?)",
        ),
    ] {
        let plan = plan(&store, query).await;
        for part in [
            "SEARCH adjutant_budget USING PRIMARY KEY (day=? AND user_id=?)",
            "adjutant_budget_block_day (day=? AND user_id=?)",
            bookings,
        ] {
            assert!(plan.contains(part), "{part}: {plan}");
        }
        assert!(!plan.contains("SCAN"), "{plan}");
    }
}

async fn plan(store: &Store, query: &'static str) -> String {
    let asked = store.backend.writer.visit(move |rows| {
        let mut plan = rows.raw.prepare(&format!("EXPLAIN QUERY PLAN {query}"))?;
        let steps = plan
            .raw_query()
            .mapped(|row| row.get::<_, String>(3))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(steps.join("; "))
    });
    asked.await.unwrap()
}
