//! Tools that the caller executes: the turn waits for the result, as data, and goes on with it,
//! also after a restart.

use adjutant::prelude::*;
use adjutant::scripted::{ScriptedModel, call, text};
use adjutant::{ClientSide, ClientTool, OutcomeCategory, ToolResult};
use serde_json::json;

/// Adds two numbers.
#[tool(read_only)]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> adjutant::Result<()> {
    let model = ScriptedModel::new([
        call("pick_number", json!({"of": "dice"})).and_call("add", json!({"a": 1, "b": 2})),
        text("You rolled a six, and the sum is three."),
    ]);
    let agent = Agent::builder("helper")
        .model(model)
        .instruction("Be brief.")
        .tool(add)
        .build()?;

    // The definition comes with the message, and is recorded with the turn.
    let parameters =
        json!({"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]});
    let pick = ClientTool::new(
        "pick_number",
        "Asks the person for a number.",
        Some(parameters),
    )?;
    let agent = agent.with_client(ClientSide {
        tools: vec![pick],
        ..ClientSide::default()
    })?;

    // The agent's own call ran; the other one waits. Its arguments fit the schema.
    let mut context = RunContext::default();
    let asked = agent
        .run_in(&mut context, "Roll the dice, and add one and two.")
        .await?;
    assert_eq!(asked.outcome, OutcomeCategory::PendingResult);
    let waiting = &asked.decision.pending[0];
    println!("{} {}", waiting.tool, waiting.arguments["of"]);

    // Whoever knows the result brings it.
    let six = waiting.provided(ToolResult::ok(6.into()));
    let done = agent.answer(&mut context, vec![six]).await?;
    println!("{}", done.content);
    Ok(())
}
