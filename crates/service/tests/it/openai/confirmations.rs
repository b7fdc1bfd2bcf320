//! Questions, and the next message as their answer.

use super::*;

#[tokio::test]
async fn a_confirmation_is_answered_by_the_next_message_on_any_replica() {
    let world = World::new().await;
    world.add("anna", "buy milk").await;
    let token = world.token("anna").await;
    let first = world.replica(DELETE_MILK).await;
    let history = ["add buy milk", "Added.", "delete the milk one"];
    let asked = first.ask(&token, &said(&history)).await;
    let question = asked.content();
    assert!(
        question.contains("buy milk") && question.contains("yes or no"),
        "{question}"
    );
    let pending = asked.json()["adjutant"]["pending"].clone();
    assert_eq!(pending[0]["tool"], "delete_task");
    assert_eq!(
        pending[0]["expires_at"], "2027-01-15T08:10:00Z",
        "ten minutes"
    );
    first.stop().await;

    // What is neither yes nor no asks again and does nothing, however often.
    let second = world.replica(DELETE_MILK).await;
    let unclear = second
        .ask(
            &token,
            &said(&[&history[..], &[&question, "hm, is that wise?"]].concat()),
        )
        .await;
    assert_eq!(
        (
            &unclear.json()["adjutant"]["decision"],
            &unclear.json()["adjutant"]["disposition"]
        ),
        (&json!("REQUEST_CONFIRMATION"), &json!("dropped"))
    );
    assert!(
        unclear.content().ends_with(&question),
        "{}",
        unclear.content()
    );
    assert_eq!(world.tasks("anna").await, ["buy milk"]);
    assert_eq!(second.model.calls_made(), 0, "no model reads it");

    // The question may come back with what the interface made of it: its thinking in front, other
    // white space.
    let sent_back = format!(
        "<details type=\"reasoning\" done=\"true\">\n⚙ x\n</details>\n{}\n",
        question.replace(' ', "  ")
    );
    let yes = [
        &history[..],
        &[&sent_back, "hm, is that wise?", &question, "Yes!"],
    ]
    .concat();
    let done = second.stream(&token, &said(&yes)).await;
    assert_eq!(done.streamed("content"), "Gone.");
    assert!(
        done.streamed("reasoning_content")
            .contains("⚙ delete_task {\"task_id\":\"1\"}"),
        "{}",
        done.text
    );
    assert_eq!(world.tasks("anna").await, Vec::<String>::new());

    // Sent again, it says what became of it and asks no model.
    let again = second.ask(&token, &said(&yes)).await;
    assert!(
        again.content().contains("answered before") && again.content().ends_with("Gone."),
        "{again:?}"
    );
    assert_eq!(second.model.calls_made(), 1);
    assert_eq!(
        (world.decisions("anna").await, world.threads("anna").await),
        (2, 0)
    );
    second.stop().await;
}

#[tokio::test]
async fn a_denied_call_is_not_executed() {
    let world = World::new().await;
    world.add("anna", "buy milk").await;
    let token = world.token("anna").await;
    let replica = world
        .replica(&format!("{DELETE_MILK}{}", r#"{"text": "again"}"#))
        .await;
    let question = replica.ask(&token, &said(&["delete milk"])).await.content();
    let kept = replica
        .ask(&token, &said(&["delete milk", &question, "no"]))
        .await;
    assert_eq!(
        kept.json()["adjutant"]["decision"],
        "CANCEL_PENDING",
        "{kept:?}"
    );
    assert_eq!(world.tasks("anna").await, ["buy milk"]);
    // Changing one's mind afterwards does nothing.
    let late = replica
        .ask(&token, &said(&["delete milk", &question, "yes"]))
        .await;
    assert!(late.content().contains("answered before"), "{late:?}");
    assert_eq!(world.tasks("anna").await, ["buy milk"]);
    replica.stop().await;
}

#[tokio::test]
async fn an_expired_confirmation_executes_nothing() {
    let world = World::new().await;
    world.add("anna", "buy milk").await;
    let token = world.token("anna").await;
    let replica = world.replica(DELETE_MILK).await;
    let question = replica.ask(&token, &said(&["delete milk"])).await.content();
    world.ahead.store(601, Ordering::SeqCst);
    for _ in 0..2 {
        let late = replica
            .ask(&token, &said(&["delete milk", &question, "yes"]))
            .await;
        assert!(late.content().contains("too late"), "{late:?}");
        assert_eq!(
            late.json()["adjutant"]["outcome"],
            "REFUSAL:CONFIRMATION_EXPIRED"
        );
    }
    assert_eq!(world.tasks("anna").await, ["buy milk"]);
    replica.stop().await;
}

#[tokio::test]
async fn an_approval_applies_to_the_last_confirmation_only() {
    let world = World::new().await;
    world.add("anna", "buy milk").await;
    let token = world.token("anna").await;
    let replica = world
        .replica(&format!(
            "{DELETE_MILK}{}",
            r#"{"match": "yes", "text": "Yes to what?", "repeat": true}"#
        ))
        .await;
    let question = replica.ask(&token, &said(&["delete milk"])).await.content();
    for other in [
        // Another conversation.
        said(&["delete bread", &question, "yes"]),
        said(&["hi", "Hello.", "delete milk", &question, "yes"]),
        // Another question.
        said(&["delete milk", "Shall I?", "yes"]),
        // No question.
        said(&["yes"]),
    ] {
        assert_eq!(
            replica.ask(&token, &other).await.content(),
            "Yes to what?",
            "{other}"
        );
    }
    assert_eq!(world.tasks("anna").await, ["buy milk"]);
    replica.stop().await;
}

#[tokio::test]
async fn two_users_with_the_same_dialogue_have_separate_conversations() {
    let world = World::new().await;
    for user in ["anna", "eve"] {
        world.add(user, "buy milk").await;
    }
    let (anna, eve) = (world.token("anna").await, world.token("eve").await);
    let replica = world
        .replica(&format!(
            "{DELETE_MILK}{}",
            r#"{"match": "yes", "text": "Yes to what?", "once": true}"#
        ))
        .await;
    let question = replica.ask(&anna, &said(&["delete milk"])).await.content();
    let yes = said(&["delete milk", &question, "yes"]);
    assert_eq!(replica.ask(&eve, &yes).await.content(), "Yes to what?");
    assert_eq!(
        (
            world.tasks("anna").await.len(),
            world.tasks("eve").await.len()
        ),
        (1, 1)
    );
    assert_eq!(replica.ask(&anna, &yes).await.content(), "Gone.");
    assert_eq!(
        (
            world.tasks("anna").await.len(),
            world.tasks("eve").await.len()
        ),
        (0, 1)
    );
    replica.stop().await;
}
