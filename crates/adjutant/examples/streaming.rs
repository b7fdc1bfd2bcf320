//! The way to an answer, as events. The blocking calls are this stream, drained.

use adjutant::prelude::*;
use adjutant::scripted::{ScriptedModel, call, text};
use serde_json::json;

/// Twice a number.
#[tool(read_only)]
async fn double(number: i64) -> i64 {
    number * 2
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> adjutant::Result<()> {
    let model = ScriptedModel::new([
        call("double", json!({"number": 21})),
        text("It is forty-two.").in_pieces(4),
    ]);
    let agent = Agent::builder("calculator")
        .model(model)
        .instruction("Calculate.")
        .tool(double)
        .build()?;

    let mut stream = agent.stream(&RunContext::default(), "Twice 21?");
    while let Some(event) = stream.next().await {
        match event {
            RunEvent::Text(piece) => print!("{piece}"),
            RunEvent::ToolStarted { call } => println!("[{} ...]", call.name),
            RunEvent::ToolFinished {
                tool, result, ms, ..
            } => {
                println!("[{tool} {} {ms} ms]", result.to_json());
            }
            RunEvent::Finished(response) => {
                println!("\n{} {}", response.decision.kind, response.outcome)
            }
            _ => {}
        }
    }
    let (response, context) = stream.finish().await?;
    assert_eq!(response.content, "It is forty-two.");
    assert_eq!(
        context.history.len(),
        4,
        "the question, the call, its result, the answer"
    );
    Ok(())
}
