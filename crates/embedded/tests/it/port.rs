//! The model behind core's port.

use std::time::Duration;

use adjutant_core::{
    Content, Delta, FinishReason, GenerateRequest, LanguageModel, MaxTokens, Message, ModelError,
    Part, ToolCall, ToolDefinition, ToolResult,
};
use adjutant_embedded::EmbeddedModel;
use futures::StreamExt;
use serde_json::json;

use crate::answers::action_schema;
use crate::tiny::{TinyFile, WINDOW};

fn request(user: &str) -> GenerateRequest {
    let mut request = GenerateRequest::new(vec![
        Message::system("Instruction.").unwrap(),
        Message::user(user).unwrap(),
    ]);
    request.response_schema = Some(action_schema());
    request
}

/// A request whose answer is as long as it may be.
fn endless() -> GenerateRequest {
    let mut request = request("endless");
    request.response_schema = Some(json!({ "type": "string", "minLength": 900 }));
    request
}

fn tiny() -> (TinyFile, EmbeddedModel) {
    let file = TinyFile::new();
    let model = EmbeddedModel::new("tiny", file.path()).unwrap();
    (file, model)
}

#[tokio::test]
async fn a_whole_answer_and_a_stream_agree() {
    let (_file, model) = tiny();
    assert_eq!(model.id().to_string(), "embedded/tiny");
    let whole = model.generate(&request("hello")).await.unwrap();
    let mut deltas: Vec<Delta> = model
        .stream(&request("hello"))
        .await
        .unwrap()
        .map(Result::unwrap)
        .collect()
        .await;
    let Some(Delta::Finished(last)) = deltas.pop() else {
        panic!("no end")
    };
    // The prompt was read for the answer before.
    let pieces: String = deltas
        .iter()
        .map(|delta| match delta {
            Delta::Text(text) => text.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(pieces, last.text());
    assert_eq!(last.finish, FinishReason::Stop);
    assert_eq!(whole.usage.cached_tokens, Some(0));
    assert_eq!(
        last.usage.cached_tokens.unwrap(),
        last.usage.input_tokens.unwrap() - 1
    );
    assert!(last.usage.output_tokens.unwrap() > 0);
    assert_eq!(&last.model, model.id());
    assert!(last.losses.is_empty());
}

#[tokio::test]
async fn requests_wait_for_each_other() {
    let (_file, model) = tiny();
    let requests: Vec<GenerateRequest> = (0..4).map(|n| request(&format!("message {n}"))).collect();
    let answers =
        futures::future::join_all(requests.iter().map(|request| model.generate(request))).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

#[tokio::test]
async fn dropping_the_stream_stops_the_model() {
    let (_file, model) = tiny();
    let mut stream = model.stream(&endless()).await.unwrap();
    while matches!(stream.next().await.unwrap().unwrap(), Delta::Reading(_)) {}
    drop(stream);
    assert!(model.generate(&request("next")).await.is_ok());
}

#[tokio::test]
async fn time_is_bounded() {
    let (_file, model) = tiny();
    let mut late = endless();
    late.time_left = Some(Duration::ZERO);
    assert!(matches!(
        model.generate(&late).await,
        Err(ModelError::Timeout {
            waited: Duration::ZERO,
            ..
        })
    ));
    late.time_left = Some(Duration::from_secs(600));
    late.config.max_tokens = Some(MaxTokens::new(3).unwrap());
    let answer = model.generate(&late).await.unwrap();
    assert_eq!(
        (answer.finish, answer.usage.output_tokens),
        (FinishReason::MaxTokens, Some(3))
    );
}

#[tokio::test]
async fn errors_have_the_port_s_names() {
    let (file, model) = tiny();
    let long = request(&"x".repeat(2 * WINDOW));
    assert!(matches!(
        model.generate(&long).await,
        Err(ModelError::ContextTooLong { .. })
    ));
    let mut unusable = request("x");
    unusable.response_schema = Some(json!({ "enum": [] }));
    assert!(matches!(
        model.generate(&unusable).await,
        Err(ModelError::BadRequest { .. })
    ));
    assert!(model.generate(&request("and it goes on")).await.is_ok());

    let elsewhere = file.dir.path().join("later.gguf");
    let missing = EmbeddedModel::new("later", &elsewhere).unwrap();
    let error = missing.generate(&request("x")).await.unwrap_err();
    assert!(
        matches!(&error, ModelError::NotFound { .. }) && error.to_string().contains("later.gguf"),
        "{error}"
    );
    // The file came in the meantime.
    std::fs::copy(file.path(), elsewhere).unwrap();
    assert!(missing.generate(&request("x")).await.is_ok());
    assert!(EmbeddedModel::new(" ", "x.gguf").is_err());
}

#[tokio::test]
async fn tokens_are_counted_once_the_model_is_loaded() {
    let (_file, model) = tiny();
    assert_eq!(model.count_tokens("an ant"), None);
    model.warm_up();
    model.generate(&request("x")).await.unwrap();
    // "an", " ", "an", "t": a space before a word belongs to it, and only " t" has a merge.
    assert_eq!(model.count_tokens("an ant"), Some(4));
}

#[tokio::test]
async fn reading_is_told_before_the_answer_and_only_then() {
    let (_file, model) = tiny();
    let mut long = request(&"an ant ".repeat(60));
    long.config.max_tokens = Some(MaxTokens::new(40).unwrap());
    let deltas: Vec<Delta> = model
        .stream(&long)
        .await
        .unwrap()
        .map(Result::unwrap)
        .collect()
        .await;
    let is_reading = |delta: &&Delta| matches!(delta, Delta::Reading(_));
    let reports = deltas.iter().take_while(is_reading).count();
    assert!(reports > 1, "{deltas:?}");
    assert_eq!(deltas.iter().filter(is_reading).count(), reports);
}

#[tokio::test]
async fn what_is_read_ahead_never_holds_up_a_request() {
    let (_file, model) = tiny();
    let head = "Instruction. ".repeat(40);
    let request = |user: &str| {
        let mut request = GenerateRequest::new(vec![
            Message::system(&head).unwrap(),
            Message::user(user).unwrap(),
        ]);
        request.config.max_tokens = Some(MaxTokens::new(2).unwrap());
        request
    };
    // Whether it comes to anything before the request does not matter, nor that it is asked for
    // again and again.
    for _ in 0..20 {
        model.prepare(&request("…"));
    }
    assert!(model.generate(&request("one")).await.is_ok());
    model.prepare(&request("…"));
    let answer = model.generate(&request("two")).await.unwrap();
    assert!(answer.usage.cached_tokens.unwrap() > 400, "{answer:?}");
    // Nobody waits for a model that reads ahead.
    model.prepare(&request("another head altogether"));
    drop(model);
}

#[tokio::test]
async fn earlier_calls_and_results_are_read_and_losses_are_told() {
    let (_file, model) = tiny();
    let call = ToolCall::from_json_text(0, None, "add_task".into(), r#"{"description":"milk"}"#);
    let id = call.id.clone();
    let mut request = request("x");
    request
        .messages
        .push(Message::assistant(vec![Part::ours(Content::ToolCall(call))]).unwrap());
    request
        .messages
        .push(Message::tool(id, "add_task", ToolResult::ok(json!({ "id": "1" }))).unwrap());
    request.tools =
        request
            .tools
            .with([ToolDefinition::new("add_task", "Adds.", json!({ "type": "object" })).unwrap()]);
    let answer = model.generate(&request).await.unwrap();
    assert_eq!(answer.losses.len(), 1, "{:?}", answer.losses);
    assert!(answer.losses[0].contains("tools"));
}

#[tokio::test]
async fn the_head_of_the_prompt_outlives_the_process() {
    let file = TinyFile::new();
    let cache = file.dir.path().join("cache/prefixes");
    let head = Message::system("A long instruction that never changes. ".repeat(8)).unwrap();
    let request =
        |user: &str| GenerateRequest::new(vec![head.clone(), Message::user(user).unwrap()]);
    let answer = async |user: &str| {
        // A model of its own each time, as in a process of its own.
        let model = EmbeddedModel::with_prefix_cache("tiny", file.path(), &cache).unwrap();
        let mut request = request(user);
        request.config.max_tokens = Some(MaxTokens::new(5).unwrap());
        model
            .generate(&request)
            .await
            .unwrap()
            .usage
            .cached_tokens
            .unwrap()
    };
    let files = || {
        std::fs::read_dir(&cache)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect::<Vec<_>>()
    };
    assert_eq!(answer("one").await, 0);
    assert!(answer("two").await > 200);
    let [kept] = &files()[..] else {
        panic!("{:?}", files())
    };
    // Damaged: computed and written again.
    std::fs::write(kept, b"ADJKV").unwrap();
    assert_eq!(answer("three").await, 0);
    assert!(answer("four").await > 200);
    assert_eq!(files().len(), 1);
    // A folder that cannot be made costs nothing but time.
    std::fs::remove_dir_all(&cache).unwrap();
    std::fs::write(&cache, b"").unwrap();
    assert_eq!(answer("five").await, 0);
}
