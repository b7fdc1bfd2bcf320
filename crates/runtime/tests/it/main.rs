//! The engine through its public face: scripted models, real tools, the in-memory store and SQLite.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail a test by panicking"
)]

mod branch;
mod budget;
mod call;
mod cancel;
mod client_tools;
mod confirmation;
mod context;
mod corrections;
mod cost;
mod dispatch;
mod disposition;
mod doubt;
mod in_memory;
mod injected;
mod kept_words;
mod lease;
#[path = "../../../../tests/logged.rs"]
mod logged;
mod lost_workers;
mod model_span;
mod output;
mod prefix;
mod programs;
mod recall;
mod recovery;
mod round;
mod scored;
mod sent_at;
mod stopped_calls;
mod stream;
mod summary;
mod titles;
mod turn;
mod turn_instruction;
mod untrusted;
mod vendor;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use adjutant_core::*;
use adjutant_providers::scripted::{Reply, ScriptedModel};
use adjutant_runtime::{Agent, AgentBuilder, InMemory};
use adjutant_tools::{
    FunctionTool, TaskChange, TaskDescription, TaskFilter, TaskStore, task_tools,
};
use serde_json::{Value, json};

/// An agent with the task tools over `tasks`, and its model for inspection.
fn task_agent(
    tasks: &Arc<InMemory>,
    replies: impl IntoIterator<Item = Reply>,
) -> (Agent, ScriptedModel) {
    let model = ScriptedModel::new(replies).with_requests_kept(usize::MAX);
    let agent = builder(model.clone())
        .tools(task_tools(tasks.clone()))
        .journal(tasks.clone(), "test")
        .build();
    (agent.unwrap(), model)
}

fn builder(model: ScriptedModel) -> AgentBuilder {
    Agent::builder("adjutant")
        .model(model)
        .instruction("Be brief.")
}

/// A tool that counts how often it ran.
fn counting(name: &str, annotations: Annotations, count: &Arc<AtomicUsize>) -> FunctionTool {
    let count = Arc::clone(count);
    let schema = json!({"type": "object"});
    let tool = FunctionTool::new(name, "Counts.", schema, move |_, _| {
        let count = Arc::clone(&count);
        async move { Ok(Value::from(count.fetch_add(1, Ordering::SeqCst) + 1)) }
    });
    tool.unwrap().annotated(annotations)
}

async fn descriptions(tasks: &InMemory) -> Vec<String> {
    let list = TaskStore::list(tasks, &UserId::local(), TaskFilter::All)
        .await
        .unwrap();
    list.into_iter()
        .map(|task| task.description.as_str().to_owned())
        .collect()
}
