//! Automatic recall: facts that are attached to a message.

use std::sync::Mutex;

use adjutant_core::recall_block;
use adjutant_core::{AgentName, RecalledText, TranscriptMessage};
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::{Recall, RecallRequest, RunContext};

use super::*;

/// Tells one fact about tea wherever it is spoken of, unless it still stands there.
#[derive(Clone, Default)]
struct Tea(Arc<Mutex<Vec<(String, usize)>>>);

const FACT: &str = "- [2026-03-02] Anna likes green tea (1a2b3c)";

impl Recall for Tea {
    fn for_message<'a>(&'a self, asked: RecallRequest<'a>) -> BoxFuture<'a, Vec<RecalledText>> {
        self.0
            .lock()
            .unwrap()
            .push((asked.message.to_owned(), asked.history.len()));
        let fits = asked.message.contains("tea") && !recall_block::contains(asked.history, FACT);
        let told = fits.then(|| RecalledText {
            id: Some("1a2b3c".to_owned()),
            text: FACT.to_owned(),
        });
        Box::pin(std::future::ready(told.into_iter().collect()))
    }
}

/// A memory that never answers.
struct Silent;

impl Recall for Silent {
    fn for_message<'a>(&'a self, _: RecallRequest<'a>) -> BoxFuture<'a, Vec<RecalledText>> {
        Box::pin(std::future::pending())
    }
}

fn lines(request: &GenerateRequest) -> Vec<String> {
    request
        .messages
        .iter()
        .map(|message| serde_json::to_string(message).unwrap())
        .collect()
}

#[tokio::test]
async fn it_stands_in_front_of_the_words_with_the_same_bytes_in_every_later_request() {
    let replies = [
        call("list_tasks", json!({})),
        text("Green, then."),
        text("Yes."),
        text("Still."),
        text("Done."),
    ];
    let model = ScriptedModel::new(replies);
    let (tea, store) = (Tea::default(), Arc::new(InMemory::new()));
    let agent = builder(model.clone())
        .tools(task_tools(store.clone()))
        .journal(store.clone(), "test")
        .recall(tea.clone())
        .build()
        .unwrap();
    let mut context = RunContext::default();
    for message in ["which tea?", "tea again", "and coffee?", "tea"] {
        agent.run_in(&mut context, message).await.unwrap();
    }
    let requests = model.requests();
    let told = requests[0].messages.last().unwrap().text();
    assert!(
        told.ends_with("\n</memory>\n\nwhich tea?") && told.contains(FACT),
        "{told}"
    );
    for (before, after) in requests.iter().zip(&requests[1..]) {
        assert!(
            lines(after).starts_with(&lines(before)),
            "{before:#?} is no beginning of {after:#?}"
        );
    }
    // Once: it still stands there.
    let all = requests
        .last()
        .unwrap()
        .messages
        .iter()
        .map(Message::text)
        .collect::<String>();
    assert_eq!(all.matches(FACT).count(), 1, "{all}");
    let asked = tea.0.lock().unwrap().clone();
    assert_eq!(
        asked[..2],
        [("which tea?".to_owned(), 0), ("tea again".to_owned(), 4)]
    );

    // It is recorded, and is nothing that anybody said.
    let key = context.key(&AgentName::adjutant());
    let kept = port::Journal::load(&*store, &key).await.unwrap();
    let told = kept
        .events
        .iter()
        .filter_map(|recorded| match &*recorded.event {
            Event::TurnStarted { recalled_texts, .. } => Some(recalled_texts.len()),
            _ => None,
        });
    assert_eq!(told.collect::<Vec<_>>(), [1, 0, 0, 0]);
    let said = adjutant_core::transcript(&kept.events);
    let said: Vec<&TranscriptMessage> =
        said.iter().filter(|said| said.role == Role::User).collect();
    assert_eq!(said[0].content, "which tea?");
}

#[tokio::test(start_paused = true)]
async fn a_memory_that_does_not_answer_holds_up_no_message_for_long() {
    let model = ScriptedModel::new([text("Hello.")]);
    let agent = builder(model.clone()).recall(Silent).build().unwrap();
    let response = agent.run("hello").await.unwrap();
    assert_eq!(response.content, "Hello.");
    assert_eq!(model.requests()[0].messages.last().unwrap().text(), "hello");
}
