//! A conversation that outlives its process: the same agent on an SQLite file.

use std::sync::Arc;

use adjutant::prelude::*;
use adjutant::scripted::{ScriptedModel, call, text};
use adjutant::{sqlite, task_tools, worker_id};
use serde_json::json;

async fn agent(store: &Arc<sqlite::Store>) -> adjutant::Result<Agent> {
    let model = ScriptedModel::new([
        call("add_task", json!({"description": "buy milk"})),
        text("Added."),
    ]);
    Ok(Agent::builder("assistant")
        .model(model)
        .instruction("Keep the person's tasks.")
        .tools(task_tools(store.clone()))
        .journal(store.clone(), worker_id())
        .build()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> adjutant::Result<()> {
    let path = std::env::temp_dir().join(format!("adjutant-example-{}.db", std::process::id()));
    let mut context = RunContext::default();
    {
        let store = Arc::new(sqlite::Store::open(&path).await?);
        agent(&store)
            .await?
            .run_in(&mut context, "add buy milk")
            .await?;
        store.close().await;
    }

    // Another process, as it were: everything is in the file.
    let store = Arc::new(sqlite::Store::open(&path).await?);
    let agent = agent(&store).await?;
    for response in agent.recover(None).await? {
        println!("finished what a crash left open: {}", response.content);
    }
    let reloaded = agent.context(&agent.key(&context)).await?;
    assert_eq!(reloaded.history, context.history);
    println!("{} messages remembered", reloaded.history.len());
    store.close().await;
    for suffix in ["", "-wal", "-shm"] {
        // The last connection may have removed the companions already.
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    Ok(())
}
