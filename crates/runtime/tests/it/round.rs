//! The calls of one answer: how often the journal is written for them, and what is durable before
//! the next one is prepared and begun.

use std::sync::Mutex;

use adjutant_core::port::Journal as _;
use adjutant_providers::scripted::text;
use adjutant_store::sqlite::Store;

use super::*;

const ONCE: Annotations = Annotations {
    read_only: false,
    idempotent: false,
    destructive: false,
    keyed: false,
    parallel: false,
    closed_world: false,
};
const KEYED: Annotations = Annotations {
    keyed: true,
    ..ONCE
};
const IDEMPOTENT: Annotations = Annotations {
    idempotent: true,
    ..ONCE
};
const READ_ONLY: Annotations = Annotations {
    read_only: true,
    ..ONCE
};

/// Events that the journal holds, by what a call is: started and finished ones.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Durable {
    started: usize,
    finished: usize,
}

/// A tool that looks, whenever it is asked anything, at what the journal holds by then.
struct Looks {
    definition: ToolDefinition,
    store: Store,
    prepared: Arc<Mutex<Vec<Durable>>>,
    begun: Arc<Mutex<Vec<Durable>>>,
}

impl Looks {
    async fn look(&self, context: &ToolContext) -> Durable {
        let loaded = self.store.load(&context.conversation_key()).await.unwrap();
        let count = |is: fn(&Event) -> bool| {
            loaded
                .events
                .iter()
                .filter(|recorded| is(&recorded.event))
                .count()
        };
        Durable {
            started: count(|event| matches!(event, Event::CallStarted { .. })),
            finished: count(|event| matches!(event, Event::CallFinished { .. })),
        }
    }
}

impl Tool for Looks {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let durable = self.look(context).await;
            self.begun.lock().unwrap().push(durable);
            Ok(json!("done"))
        })
    }

    fn prepare<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Prepared, ToolError>> {
        Box::pin(async move {
            let durable = self.look(context).await;
            self.prepared.lock().unwrap().push(durable);
            Ok(Prepared::Ready {
                arguments,
                preview: None,
            })
        })
    }
}

/// Started and finished calls that were durable at each preparation, and at each beginning.
type Seen = (Vec<(usize, usize)>, Vec<(usize, usize)>);

/// Runs one answer that calls tools with these annotations in this order.
async fn seen(annotations: &[Annotations]) -> Seen {
    let store = Store::in_memory().await.unwrap();
    let (prepared, begun) = (Arc::default(), Arc::default());
    let mut reply = Reply::default();
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for (number, annotations) in annotations.iter().enumerate() {
        let name = format!("tool_{number}");
        let definition = ToolDefinition::new(&name, "Looks.", json!({"type": "object"})).unwrap();
        tools.push(Arc::new(Looks {
            definition: definition.annotated(*annotations),
            store: store.clone(),
            prepared: Arc::clone(&prepared),
            begun: Arc::clone(&begun),
        }));
        reply = reply.and_call(name, json!({}));
    }
    let agent = builder(ScriptedModel::new([reply, text("Done.")]))
        .tools(tools)
        .journal(Arc::new(store.clone()), adjutant_store::worker_id())
        .build()
        .unwrap();
    agent.run("go on").await.unwrap();
    let pairs = |seen: Arc<Mutex<Vec<Durable>>>| {
        seen.lock()
            .unwrap()
            .iter()
            .map(|durable| (durable.started, durable.finished))
            .collect()
    };
    (pairs(prepared), pairs(begun))
}

#[tokio::test]
async fn the_end_of_a_call_that_must_not_be_repeated_is_durable_before_the_next_is_prepared() {
    let (prepared, begun) = seen(&[ONCE, ONCE, ONCE]).await;
    assert_eq!(prepared, [(0, 0), (1, 1), (2, 2)]);
    assert_eq!(begun, [(1, 0), (2, 1), (3, 2)]);
}

#[tokio::test]
async fn the_end_of_a_call_that_may_be_repeated_is_durable_before_the_next_begins() {
    for repeatable in [KEYED, IDEMPOTENT] {
        for next in [ONCE, KEYED, READ_ONLY] {
            let (prepared, begun) = seen(&[repeatable, next]).await;
            // It is written with the next intent: a crash before that repeats a call whose repeat
            // is absorbed.
            assert_eq!(prepared, [(0, 0), (1, 0)], "{next:?}");
            assert_eq!(begun, [(1, 0), (2, 1)], "{next:?}");
        }
    }
}

/// Runs one answer with 100 harmless calls. Returns the most that ran at once, and the results in
/// the order in which the model got them.
async fn at_once(limits: TurnLimits) -> (usize, Vec<Value>) {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let peak = Arc::clone(&most);
    let tool = FunctionTool::new("look", "Looks.", json!({"type": "object"}), {
        move |_, arguments: Arguments| {
            let (running, peak) = (Arc::clone(&running), Arc::clone(&peak));
            async move {
                let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                peak.fetch_max(now, Ordering::SeqCst);
                // Early calls take longer than later ones, and every other call gets its turn.
                let number = arguments["number"].as_u64().unwrap();
                for _ in 0..200 - number {
                    tokio::task::yield_now().await;
                }
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(json!(number))
            }
        }
    });
    let reply = (0..100).fold(Reply::default(), |reply, number| {
        reply.and_call("look", json!({"number": number}))
    });
    let model = ScriptedModel::new([reply, text("Done.")]).with_requests_kept(usize::MAX);
    let agent = builder(model.clone())
        .tool(tool.unwrap().annotated(READ_ONLY))
        .limits(limits)
        .build()
        .unwrap();
    agent.run("look at everything").await.unwrap();
    let requests = model.requests();
    let results = requests[1].messages.iter().filter_map(Message::tool_result);
    let numbers = results.map(|(_, _, result)| (**result.data.as_ref().unwrap()).clone());
    (most.load(Ordering::SeqCst), numbers.collect())
}

#[tokio::test]
async fn harmless_calls_run_eight_at_once_and_keep_their_order() {
    let in_order: Vec<Value> = (0..100).map(Value::from).collect();
    assert_eq!(at_once(TurnLimits::default()).await, (8, in_order.clone()));
    let limits = TurnLimits {
        parallel_tools_max: 3.try_into().unwrap(),
        ..TurnLimits::default()
    };
    assert_eq!(at_once(limits).await, (3, in_order));
}
