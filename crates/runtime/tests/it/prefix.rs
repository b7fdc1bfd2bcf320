//! Prompt caches hit as long as requests grow only at their end.

use std::sync::Mutex;

use adjutant_core::port::DeltaStream;
use adjutant_providers::scripted::{call, text};
use adjutant_runtime::RunContext;
use adjutant_weak::WeakTools;

use super::*;

/// A scripted model that remembers what it was prepared for.
struct Prepared {
    inner: ScriptedModel,
    requests: Arc<Mutex<Vec<GenerateRequest>>>,
}

impl LanguageModel for Prepared {
    fn id(&self) -> &ModelId {
        self.inner.id()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn generate<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<GenerateResponse, ModelError>> {
        self.inner.generate(request)
    }

    fn stream<'a>(
        &'a self,
        request: &'a GenerateRequest,
    ) -> BoxFuture<'a, Result<DeltaStream, ModelError>> {
        self.inner.stream(request)
    }

    fn prepare(&self, request: &GenerateRequest) {
        self.requests.lock().unwrap().push(request.clone());
    }
}

/// The prepared request is, but for the last message, the one of every turn, also with tasks and a
/// history.
#[tokio::test]
async fn what_is_read_ahead_is_the_head_of_every_request() {
    for weak_tools in [true, false] {
        let model = ScriptedModel::new((0..4).map(|_| text("Hello.")));
        let capabilities = Capabilities {
            weak_tools,
            ..model.capabilities().clone()
        };
        let model = model.with_capabilities(capabilities);
        let requests = Arc::new(Mutex::new(Vec::new()));
        let prepared = Prepared {
            inner: model.clone(),
            requests: requests.clone(),
        };
        let tasks = Arc::new(InMemory::new());
        let examples = r#"{"instruction":"You keep a list."}
{"message":"hi","answer":[{"tool":"small-talk","args":{"text":"Hello."}}]}"#;
        let agent = Agent::builder("adjutant")
            .model(prepared)
            .instruction("Be brief.")
            .weak_tools(WeakTools::from_jsonl(examples).unwrap())
            .tools(task_tools(tasks.clone()))
            .journal(tasks.clone(), "test")
            .build()
            .unwrap();
        agent.prepare();
        let mut context = RunContext::default();
        agent.run_in(&mut context, "hello").await.unwrap();
        let arguments = json!({ "description": "sharpen the saw" })
            .as_object()
            .unwrap()
            .clone();
        let call = RequestedCall::new("add_task", arguments);
        agent
            .call_tool(&mut RunContext::for_call(UserId::local(), None), None, call)
            .await
            .unwrap();
        agent.run_in(&mut context, "hello again").await.unwrap();

        let ahead = requests.lock().unwrap().clone();
        let [ahead] = ahead.as_slice() else {
            panic!("{ahead:?}")
        };
        let (_, head) = ahead.messages.split_last().unwrap();
        let lines = |messages: &[Message]| {
            messages
                .iter()
                .map(|message| serde_json::to_string(message).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(head.len(), if weak_tools { 3 } else { 1 });
        assert_eq!(model.requests().len(), 2);
        for request in model.requests() {
            assert!(
                lines(&request.messages).starts_with(&lines(head)),
                "{request:?}"
            );
            assert_eq!(
                serde_json::to_string(&request.tools).unwrap(),
                serde_json::to_string(&ahead.tools).unwrap()
            );
        }
    }
}

#[tokio::test]
async fn requests_of_a_conversation_grow_only_at_their_end_until_history_is_trimmed() {
    const TURNS: usize = 24;
    let tasks = Arc::new(InMemory::new());
    let replies = (0..TURNS).flat_map(|turn| {
        let adds = call("add_task", json!({"description": format!("a{turn}")}))
            .and_call("add_task", json!({"description": format!("b{turn}")}));
        [
            adds.saying("One moment."),
            call("list_tasks", json!({})),
            text(format!("Added, turn {turn}.")),
        ]
    });
    let (agent, model) = task_agent(&tasks, replies);
    let mut context = RunContext::default();
    for turn in 0..TURNS {
        let response = agent
            .run_in(&mut context, format!("add two, turn {turn}"))
            .await
            .unwrap();
        assert_eq!(response.outcome, OutcomeCategory::TaskCompleted);
    }
    let requests = model.requests();
    assert_eq!(requests.len(), 3 * TURNS);
    let mut trims = Vec::new();
    for (at, pair) in requests.windows(2).enumerate() {
        let [before, after] = pair else {
            unreachable!("windows of two")
        };
        // Compared as JSON: what is the same value must be the same bytes.
        assert_eq!(
            serde_json::to_string(&before.tools).unwrap(),
            serde_json::to_string(&after.tools).unwrap()
        );
        assert_eq!(before.config, after.config);
        let [before, after] = [before, after].map(|request| {
            let lines = request
                .messages
                .iter()
                .map(|message| serde_json::to_string(message).unwrap());
            lines.collect::<Vec<String>>()
        });
        assert_eq!(before[0], after[0], "the instruction");
        if !after.starts_with(&before) {
            trims.push((at + 1) / 3);
            assert_eq!((at + 1) % 3, 0, "only between turns");
            assert!(
                before.ends_with(&after[1..after.len() - 2]),
                "a trim drops from the front, whole turns"
            );
        }
    }
    // 4 spoken messages a turn: over 20 with the sixth, then down to 10, which is two turns and
    // their neighbours.
    assert!(trims.len() >= 3, "{trims:?}");
    assert!(
        trims.windows(2).all(|pair| pair[1] - pair[0] >= 3),
        "in blocks, not every turn: {trims:?}"
    );
}

#[tokio::test]
async fn a_schema_in_the_instruction_stands_at_its_end_every_time() {
    let tasks = Arc::new(InMemory::new());
    let model = ScriptedModel::new([
        call("list_tasks", json!({})),
        text("[]"),
        call("list_tasks", json!({})),
        text("[]"),
    ]);
    let prompted = Capabilities {
        response_schema: SchemaSupport::WithoutTools,
        ..model.capabilities().clone()
    };
    let agent = builder(model.clone().with_capabilities(prompted))
        .tools(task_tools(tasks.clone()))
        .output_schema(json!({"type": "array"}))
        .build()
        .unwrap();
    let mut context = RunContext::default();
    agent.run_in(&mut context, "list").await.unwrap();
    agent.run_in(&mut context, "again").await.unwrap();
    let requests = model.requests();
    for pair in requests.windows(2) {
        let [before, after] = pair else {
            unreachable!("windows of two")
        };
        assert!(after.messages.starts_with(&before.messages));
    }
}
