//! Branches: edited messages and other answers, beside what was said first.

use adjutant_core::port::Alternatives;
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::{BranchError, RunContext};
use adjutant_store::sqlite;

use super::*;

/// Returns the texts of a request's messages.
fn said(request: &GenerateRequest) -> Vec<String> {
    request
        .messages
        .iter()
        .filter(|message| message.role() != Role::System)
        .map(Message::text)
        .collect()
}

fn user_words(messages: &[Message]) -> Vec<String> {
    messages
        .iter()
        .filter(|message| message.role() == Role::User)
        .map(Message::text)
        .collect()
}

#[tokio::test]
async fn another_answer_and_other_words_are_branches_of_the_conversation() {
    let replies = ["One.", "Two.", "Two again.", "Three.", "Other."].map(text);
    let (agent, model) = task_agent(&Arc::new(InMemory::new()), replies);
    let mut context = RunContext::default();
    agent.run_in(&mut context, "first").await.unwrap();
    agent.run_in(&mut context, "second").await.unwrap();
    let key = agent.key(&context);
    let before = agent.journal().load(&key).await.unwrap();

    let mut again = agent.branch(&key, None, None).await.unwrap();
    assert_eq!(again.context.history.len(), 2);
    let answer = agent
        .run_input(&mut again.context, None, again.input)
        .await
        .unwrap();
    assert_eq!(answer.content, "Two again.");
    assert_eq!(user_words(&again.context.history), ["first", "second"]);
    assert_eq!(
        said(&model.requests()[2]),
        said(&model.requests()[1]),
        "nothing of the first try is told"
    );
    // The branch goes on from what this process knows of it, and from the database alike.
    agent.run_in(&mut again.context, "third").await.unwrap();
    assert_eq!(
        said(&model.requests()[3])[..],
        ["first", "One.", "second", "Two again.", "third"]
    );
    assert_eq!(
        again.context.history,
        agent
            .context(&agent.key(&again.context))
            .await
            .unwrap()
            .history
    );

    // An earlier message of the branch, which is one of the conversation it comes from.
    let first = before
        .events
        .first()
        .and_then(|recorded| recorded.event.turn());
    let branch = agent.key(&again.context);
    let mut edited = agent.branch(&branch, first, None).await.unwrap();
    assert_eq!(
        (edited.from.conversation, edited.from.seq),
        (key.conversation, 0)
    );
    assert_eq!(edited.input, InputBody::message("first"));
    agent
        .run_in(&mut edited.context, "other words")
        .await
        .unwrap();
    assert_eq!(said(&model.requests()[4])[..], ["other words"]);

    assert_eq!(
        agent.journal().load(&key).await.unwrap(),
        before,
        "what was said stays said"
    );
    let of = |ids: &[&RunContext], current, seq| Alternatives {
        seq,
        conversations: ids.iter().map(|context| context.conversation).collect(),
        current,
    };
    let second = again.from.seq;
    assert_eq!(
        agent.conversations().alternatives(&branch).await.unwrap(),
        [
            of(&[&context, &edited.context], 0, 0),
            of(&[&context, &again.context], 1, second)
        ]
    );
}

#[tokio::test]
async fn a_turn_that_waits_can_be_left_for_another() {
    let tasks = Arc::new(InMemory::new());
    let replies = [
        call("add_task", json!({"description": "milk"})),
        text("Added."),
        call("delete_task", json!({"task_id": "1"})),
        text("Kept it."),
    ];
    let (agent, _) = task_agent(&tasks, replies);
    let mut context = RunContext::default();
    agent.run_in(&mut context, "add milk").await.unwrap();
    let asked = agent.run_in(&mut context, "delete the milk").await.unwrap();
    assert_eq!(asked.decision.pending.len(), 1);

    let mut branch = agent
        .branch(&agent.key(&context), Some(asked.turn), None)
        .await
        .unwrap();
    assert_eq!(branch.context.pending, []);
    let kept = agent
        .run_in(&mut branch.context, "leave the milk")
        .await
        .unwrap();
    assert_eq!(
        (kept.content.as_str(), kept.decision.pending.len()),
        ("Kept it.", 0)
    );
    // The question is where it was asked, and is answered there.
    let waiting = agent.journal().parked(agent.name(), None).await.unwrap();
    assert_eq!(
        waiting
            .iter()
            .map(|(key, _)| key.conversation)
            .collect::<Vec<_>>(),
        [context.conversation]
    );
    let answers = vec![asked.decision.pending[0].answer(Verdict::Approved)];
    agent
        .answer(&mut branch.context, answers.clone())
        .await
        .unwrap_err();
    assert_eq!(descriptions(&tasks).await, ["milk"]);
    agent.answer(&mut context, answers).await.unwrap();
    assert!(descriptions(&tasks).await.is_empty());
}

#[tokio::test]
async fn a_branch_goes_on_in_another_process_and_is_made_once() {
    let store = Arc::new(sqlite::Store::in_memory().await.unwrap());
    let agent = |replies: &[&str], worker: &str| {
        let model =
            ScriptedModel::new(replies.iter().map(|words| text(*words))).with_requests_kept(9);
        (
            builder(model.clone())
                .journal(store.clone(), worker)
                .build()
                .unwrap(),
            model,
        )
    };
    let (first, _) = agent(&["One.", "Two."], "a");
    let mut context = RunContext::default();
    first.run_in(&mut context, "first").await.unwrap();
    first.run_in(&mut context, "second").await.unwrap();
    let (key, id) = (
        first.key(&context),
        ConversationId(uuid::Uuid::from_u128(7)),
    );
    for _ in 0..2 {
        assert_eq!(
            first
                .branch(&key, None, Some(id))
                .await
                .unwrap()
                .context
                .conversation,
            id
        );
    }
    let (other, model) = agent(&["Else."], "b");
    let mut branch = RunContext {
        conversation: id,
        ..RunContext::default()
    };
    other.run_in(&mut branch, "and").await.unwrap();
    assert_eq!(said(&model.requests()[0])[..], ["first", "One.", "and"]);

    let nobody = other.key_for(UserId::new("eve").unwrap(), key.conversation);
    assert_eq!(
        other.branch(&nobody, None, None).await.unwrap_err(),
        BranchError::NoSuchConversation
    );
    let no_turn = TurnId(uuid::Uuid::nil());
    assert_eq!(
        other.branch(&key, Some(no_turn), None).await.unwrap_err(),
        BranchError::NoSuchTurn
    );
    let reused = other
        .branch(&key, None, Some(key.conversation))
        .await
        .unwrap_err();
    assert_eq!(reused, BranchError::Store(port::StoreError::Reused));
}
