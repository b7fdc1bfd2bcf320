//! Long conversations: no dead end, no call without its result, and every drop announced.

use adjutant_core::AgentName;
use adjutant_core::port::Journal as _;
use adjutant_core::turn::{READ_RESULT, estimate_tokens, request_tokens};
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::RunContext;
use adjutant_tools::ReadResult;

use super::*;

/// Size of the tool's result in bytes.
const LONG: usize = 200 * 1024;

fn agent(replies: Vec<Reply>) -> (Agent, ScriptedModel) {
    let store = Arc::new(InMemory::new());
    let schema = json!({"type": "object"});
    let tool = FunctionTool::new("fetch", "Fetches a page.", schema, |_, _| async {
        Ok(json!(
            (0..LONG / 8)
                .map(|line| format!("{line:07} "))
                .collect::<String>()
        ))
    });
    let tool = tool.unwrap().annotated(Annotations {
        read_only: true,
        ..Annotations::default()
    });
    let model = ScriptedModel::new(replies).with_requests_kept(usize::MAX);
    let window = Capabilities {
        context_window: 32_768,
        ..model.capabilities().clone()
    };
    let model = model.with_capabilities(window);
    let agent = builder(model.clone())
        .tool(tool)
        .tool(ReadResult::new(store.clone()));
    let limits = TurnLimits {
        history_messages_max: None,
        ..TurnLimits::default()
    };
    (
        agent.limits(limits).journal(store, "test").build().unwrap(),
        model,
    )
}

#[tokio::test]
async fn a_hundred_turns_with_long_results_end_each_and_say_what_was_left_out() {
    const TURNS: usize = 100;
    let replies = (0..TURNS)
        .flat_map(|_| [call("fetch", json!({})), text("Read.")])
        .collect();
    let (agent, model) = agent(replies);
    let mut context = RunContext::default();
    let mut trimmed = 0;
    for turn in 0..TURNS {
        let response = agent
            .run_in(&mut context, format!("page {turn}"))
            .await
            .unwrap();
        assert_eq!(
            response.outcome,
            OutcomeCategory::TaskCompleted,
            "{turn}: {:?}",
            response.error
        );
        let codes: Vec<&str> = response
            .notices
            .iter()
            .map(|notice| notice.code.as_str())
            .collect();
        assert!(codes.contains(&"result_in_part"), "{turn}: {codes:?}");
        trimmed += usize::from(codes.contains(&"context_trimmed"));
    }
    assert!(
        trimmed > TURNS / 2,
        "the window was full for most of them: {trimmed}"
    );
    let requests = model.requests();
    assert_eq!(requests.len(), 2 * TURNS);
    for request in &requests {
        check_pairing(&request.messages).unwrap();
        assert!(request_tokens(request, &estimate_tokens) <= 32_768);
    }
}

#[tokio::test]
async fn the_model_reads_on_where_it_was_shown_a_part() {
    let (agent, model) = agent(vec![call("fetch", json!({})), text("Long.")]);
    let mut context = RunContext::default();
    agent.run_in(&mut context, "page").await.unwrap();
    let shown = model.requests()[1]
        .messages
        .last()
        .unwrap()
        .tool_result()
        .unwrap()
        .2
        .to_text();
    // As the model has it: read_result with call "ID" and from N reads on.
    let words = shown
        .split(&format!("{READ_RESULT} with call "))
        .nth(1)
        .unwrap()
        .replace(['\\', '"'], "");
    let (id, rest) = words.split_once(' ').unwrap();
    let from: usize = rest
        .strip_prefix("and from ")
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let mut read = async |arguments: Value| {
        let _ = model
            .clone()
            .then(call(READ_RESULT, arguments))
            .then(text("Read."));
        let response = agent.run_in(&mut context, "go on").await.unwrap();
        response.tools_used[0].result.to_json()
    };
    let piece = read(json!({"call": id, "from": from, "length": 16})).await;
    let whole: String = (0..LONG / 8).map(|line| format!("{line:07} ")).collect();
    assert_eq!(
        piece["data"],
        json!({"text": &whole[from..from + 16], "from": from, "to": from + 16, "of": whole.len()})
    );
    let beyond = read(json!({"call": id, "from": LONG + 5})).await;
    assert_eq!(
        (&beyond["data"]["text"], &beyond["data"]["from"]),
        (&json!(""), &json!(LONG))
    );
    let unknown = read(json!({"call": "call_of_nobody"})).await;
    assert!(
        unknown["error"].as_str().unwrap().contains("no call"),
        "{unknown}"
    );
}

/// A history that no provider accepts is refused before an input is accepted.
#[tokio::test]
async fn a_history_that_cannot_be_sent_is_refused_with_the_place() {
    let (model, store) = (
        ScriptedModel::new([text("Hello.")]),
        Arc::new(InMemory::new()),
    );
    let agent = builder(model.clone())
        .journal(store.clone(), "test")
        .build()
        .unwrap();
    let greets = Message::assistant(vec![Part::ours(Content::Text {
        text: "How can I help?".to_owned(),
    })])
    .unwrap();
    let mut context = RunContext::default().with_history(vec![greets.clone()]);
    let refused = agent.run_in(&mut context, "hi").await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the history of the context cannot be used: the transcript is broken at message 0: \
         a history begins with words of the person"
    );
    let loaded = store
        .load(&context.key(&AgentName::adjutant()))
        .await
        .unwrap();
    assert!(loaded.events.is_empty() && loaded.inbox.is_empty() && model.calls_made() == 0);
    context.history = vec![Message::user("hello").unwrap(), greets];
    assert_eq!(
        agent.run_in(&mut context, "hi").await.unwrap().content,
        "Hello."
    );
    assert_eq!(
        (agent.instruction(), agent.config()),
        ("Be brief.", &GenerationConfig::default())
    );
}
