//! However a turn goes, a client of AG-UI reads its words once, and has while it listens what it
//! has when it comes back.

use serde_json::{Value, json};

use crate::deltas::{Follower, snapshots};
use crate::harness::Running;
use crate::resources::ask;
use crate::runs::{Client, decision, interrupts, of_kind, resume};

/// Calls that go well, fail, are refused and are unknown.
const CALLS: [&str; 6] = [
    "",
    r#"{"name": "add_task", "args": {"description": "milk"}}"#,
    r#"{"name": "complete_task", "args": {"task_id": "the yoga"}}"#,
    r#"{"name": "add_task", "args": {"words": "milk"}}"#,
    r#"{"name": "add_tsk", "args": {}}"#,
    r#"{"name": "send_letter", "args": {"to": "bert"}}"#,
];

/// The model's last reply. The last two end the turn with a function.
const ENDS: [&str; 5] = [
    r#"{"text": "All is well."}"#,
    r#"{"text": "All is well. \n\n"}"#,
    r#"{"text": "Is all well?"}"#,
    r#"{"text": "Which one?", "calls": [{"name": "ask_user", "args": {}}]}"#,
    r#"{"calls": [{"name": "decline", "args": {"message": "That is not for me."}}]}"#,
];

/// A turn as the script of its model.
fn turn(calls: &[&str], beside: &str, end: &str) -> String {
    let calls: Vec<&str> = calls
        .iter()
        .copied()
        .filter(|call| !call.is_empty())
        .collect();
    match calls.as_slice() {
        [] => format!("{end}\n"),
        calls => format!(
            "{{\"text\": {}, \"calls\": [{}]}}\n{end}\n",
            json!(beside),
            calls.join(", ")
        ),
    }
}

/// The words of the assistant, one message below the other.
fn words(messages: &[Value]) -> String {
    let said = messages
        .iter()
        .filter(|message| message["role"] == "assistant");
    said.filter_map(|message| message["content"].as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Checks what a client has after the only turn of its conversation.
async fn check(
    service: &Running,
    client: &Client<'_>,
    follower: &Follower,
    content: &str,
    what: &str,
) {
    let live = words(&follower.messages);
    for line in content
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let times = |text: &str| text.lines().filter(|other| other.trim() == line).count();
        assert_eq!(
            times(&live),
            times(content),
            "{line:?} of {content:?} in {live:?}: {what}"
        );
    }
    let nothing = json!("nothing of that name");
    let again = client
        .run(&resume(
            "t",
            "again",
            &[(&nothing, json!({"approved": true}))],
        ))
        .await;
    let kept = of_kind(&again, "MESSAGES_SNAPSHOT")[0]["messages"]
        .as_array()
        .unwrap();
    assert_eq!(
        Follower::known(&follower.messages),
        Follower::known(kept),
        "{what}"
    );
    let token = client.token.trim_start_matches("Bearer ");
    let read = ask(
        service,
        token,
        "GET",
        "/v1/threads/t/messages",
        &Value::Null,
    )
    .await;
    let last = read.body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"], content, "{what}");
}

#[tokio::test]
async fn the_text_of_a_turn_is_sent_once_live_and_in_a_replay() {
    let mut turns: Vec<String> = Vec::new();
    for end in ENDS {
        for (at, first) in CALLS.iter().enumerate() {
            for second in &CALLS[at..] {
                let beside = ["", "Let me look."][turns.len() % 2];
                turns.push(turn(&[first, second], beside, end));
            }
        }
    }
    let mut waited = 0;
    for turn in &turns {
        // A turn may end before its model has said everything of its script.
        let service = Running::start(turn).await;
        let client = Client::new(&service, "anna").await;
        let mut follower = Follower::default();
        let mut frames = follower.say(&client, "hello").await;
        assert_eq!(snapshots(&frames), 0, "{turn}");
        // Of the first letter nobody knows whether it was sent.
        if frames.last().unwrap().event["outcome"]["type"] == "interrupt" {
            waited += 1;
            let doubt = interrupts(&frames).remove(0);
            frames = follower
                .answer(&client, &doubt, json!({"verdict": "done"}))
                .await;
        }
        let content = decision(&frames)["content"].as_str().unwrap();
        check(&service, &client, &follower, content, turn).await;
        service.stop().await;
    }
    assert!(waited > 0);
}

#[tokio::test]
async fn a_message_after_a_denial_is_read_once() {
    let drop = r#"{"name": "delete_task", "args": {"task_id": "milk"}}"#;
    let milk = turn(&[CALLS[1]], "", ENDS[0]);
    for end in ENDS {
        let turn = turn(&[drop, CALLS[3]], "Let me look.", end);
        let service = Running::start(&(milk.clone() + &turn)).await;
        let client = Client::new(&service, "anna").await;
        // The task is added in another conversation.
        client
            .run(&crate::runs::say("before", "before", "add milk"))
            .await;
        let mut follower = Follower::default();
        let asked = follower.say(&client, "drop it").await;
        let denied = follower
            .answer(&client, &interrupts(&asked)[0], json!({"approved": false}))
            .await;
        let content = decision(&denied)["content"].as_str().unwrap();
        check(&service, &client, &follower, content, &turn).await;
        service.stop().await;
    }
}
