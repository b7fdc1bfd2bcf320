//! Titles of conversations in the model's words.

use adjutant_core::port::ConversationStore as _;
use adjutant_providers::scripted::{Fault, call, fault, text};
use adjutant_runtime::RunContext;

use super::*;

/// A conversation in which these messages were said, the model that answered, and what the
/// conversation is called at the end.
async fn named(
    replies: Vec<Reply>,
    messages: &[&str],
) -> (Vec<Option<String>>, ScriptedModel, String) {
    let store = Arc::new(InMemory::new());
    let (agent, model) = task_agent(&store, replies);
    let mut context = RunContext::default();
    let key = agent.key(&context);
    let mut found = Vec::new();
    for message in messages {
        agent.run_in(&mut context, *message).await.unwrap();
        found.push(agent.generate_title(&key).await.unwrap());
    }
    let title = store.summary(&key).await.unwrap().unwrap().title;
    (found, model, title)
}

#[tokio::test]
async fn a_conversation_of_one_turn_costs_no_request_for_a_title() {
    let replies = vec![text("Noted."), text("Never asked.")];
    let (found, model, title) = named(replies, &["Hi! I need milk and bread"]).await;
    assert_eq!(
        (found, title.as_str()),
        (vec![None], "I need milk and bread")
    );
    assert_eq!(model.calls_made(), 1);
}

#[tokio::test]
async fn the_model_is_asked_once_after_the_turn_that_follows_the_first_words() {
    let replies = vec![
        text("Hi!"),
        text("Noted."),
        text("Tea, too."),
        text("\u{201e}Milk, bread\u{201c}"),
        text("Noted."),
    ];
    let messages = ["hello", "Hi! I need milk and bread", "and tea", "and jam"];
    let (found, model, title) = named(replies, &messages).await;
    assert_eq!(found, [None, None, Some("Milk, bread".to_owned()), None]);
    assert_eq!((title.as_str(), model.calls_made()), ("Milk, bread", 5));
    let requests = model.requests();
    let asked = &requests[3];
    assert!(
        asked.tools.is_empty() && asked.config.max_tokens.is_some(),
        "{asked:?}"
    );
    assert!(
        asked.messages[0].text().contains("You name conversations"),
        "{asked:?}"
    );
    let material: Value = serde_json::from_str(&asked.messages[1].text()).unwrap();
    assert_eq!(
        material,
        json!([
            {"person": "Hi! I need milk and bread", "assistant": "Noted."},
            {"person": "and tea", "assistant": "Tea, too."},
        ])
    );
    // Nobody who goes on with the conversation hears of it.
    assert!(
        requests[4]
            .messages
            .iter()
            .all(|message| !message.text().contains("Milk, bread"))
    );
}

#[tokio::test]
async fn what_is_not_found_changes_nothing() {
    for reply in [
        text("\n…\n"),
        fault(Fault::Quota),
        fault(Fault::Authentication),
        call("add_task", json!({"description": "x"})),
    ] {
        let replies = vec![text("Noted."), text("Noted."), reply, text("Noted.")];
        let messages = ["I need milk", "and tea", "and jam"];
        let (found, model, title) = named(replies, &messages).await;
        assert_eq!(
            (found, title.as_str()),
            (vec![None, None, None], "I need milk")
        );
        assert_eq!(model.calls_made(), 4, "a title has one attempt");
    }
}

#[tokio::test]
async fn a_title_is_clean_or_the_first_words_stay() {
    for (answer, expected) in [
        (
            "<think>The user wants milk.</think>\n\nBuying milk",
            "Buying milk",
        ),
        (
            "Sure! Here is a good title for this conversation: **Buying milk**",
            "Buying milk",
        ),
        ("```json\n{\"title\": \"Buying milk\"}\n```", "Buying milk"),
        ("1. \"Buying milk\"\n2. Groceries", "Buying milk"),
        ("<think>The user wants", "I need milk"),
        ("The answer is **42**.", "I need milk"),
        (
            "I would be happy to name this conversation for you!",
            "I need milk",
        ),
    ] {
        let replies = vec![text("Noted."), text("Noted."), text(answer)];
        let (_, _, title) = named(replies, &["I need milk", "and tea"]).await;
        assert_eq!(title, expected, "{answer:?}");
    }
}

#[tokio::test]
async fn a_greeting_is_the_title_until_more_is_said() {
    let replies = vec![text("Hi!"), text("The answer is **42**.")];
    let (found, _, title) = named(replies, &["hello there"]).await;
    assert_eq!((found, title.as_str()), (vec![None], "hello there"));
    let replies = vec![
        text("Hi!"),
        text("Noted."),
        text("Noted."),
        text("The answer is **42**."),
    ];
    let (_, _, title) = named(replies, &["hello there", "I need milk", "and tea"]).await;
    assert_eq!(title, "I need milk");
}

#[tokio::test]
async fn a_name_that_a_person_gave_stays_and_a_budget_is_kept() {
    let store = Arc::new(InMemory::new());
    let model = ScriptedModel::new([text("Noted."), text("Noted."), text("Never asked.")]);
    let allowance = Allowance {
        tokens: None,
        model_calls: Some(2),
        tool_calls: None,
        time: None,
        cost: None,
    };
    let budgets = Budgets {
        per_day: allowance,
        ..Budgets::default()
    };
    let agent = builder(model.clone())
        .journal(store.clone(), "test")
        .budgets(budgets, store.clone());
    let agent = agent.build().unwrap();
    let mut context = RunContext::default();
    let key = agent.key(&context);
    assert_eq!(
        agent.generate_title(&key).await.unwrap(),
        None,
        "there is no such conversation"
    );
    agent.run_in(&mut context, "I need milk").await.unwrap();
    agent.run_in(&mut context, "and tea").await.unwrap();
    assert_eq!(
        agent.generate_title(&key).await.unwrap(),
        None,
        "the day has two calls"
    );
    store.rename(&key, "Groceries").await.unwrap();
    assert_eq!(agent.generate_title(&key).await.unwrap(), None);
    assert_eq!(
        store.summary(&key).await.unwrap().unwrap().title,
        "Groceries"
    );
    assert_eq!(model.calls_made(), 2);
}

#[tokio::test]
async fn a_name_that_a_person_chose_stays_also_if_it_is_the_first_words() {
    let store = Arc::new(InMemory::new());
    let model = ScriptedModel::new([text("Noted."), text("Noted."), text("Never asked.")]);
    let agent = builder(model.clone())
        .journal(store.clone(), "test")
        .build()
        .unwrap();
    let mut context = RunContext::default();
    let key = agent.key(&context);
    agent.run_in(&mut context, "I need milk").await.unwrap();
    agent.run_in(&mut context, "and tea").await.unwrap();
    store.rename(&key, "I need milk").await.unwrap();
    assert_eq!(agent.generate_title(&key).await.unwrap(), None);
    assert_eq!(
        model.calls_made(),
        2,
        "nothing is paid for a title that is not wanted"
    );
}
