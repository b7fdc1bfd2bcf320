//! An agent tested without a network: a script in the place of the model.

use adjutant::prelude::*;
use adjutant::scripted::{Fault, ScriptedModel, call, fault, text};
use adjutant::{DecisionKind, OutcomeCategory};
use serde_json::json;

/// Counts the letters of a word.
#[tool(read_only)]
async fn count_letters(word: String) -> Result<usize, ToolError> {
    if word.is_empty() {
        Err(ToolError::invalid("an empty word"))
    } else {
        Ok(word.chars().count())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> adjutant::Result<()> {
    // The script: the model calls the tool, then answers. Keep a clone to look at what it was
    // asked.
    let model = ScriptedModel::new([
        call("count_letters", json!({"word": "Oslo"})),
        text("Four."),
    ]);
    let agent = Agent::builder("counter")
        .model(model.clone())
        .instruction("Count letters.")
        .tool(count_letters)
        .build()?;

    let response = agent.run("How long is Oslo?").await?;
    assert_eq!(response.content, "Four.");
    assert_eq!(response.decision.kind, DecisionKind::InvokeTool);
    assert_eq!(response.tools_used[0].outcome(), Ok(&json!(4)));
    assert_eq!(
        model.requests().len(),
        2,
        "once for the call, once with its result"
    );

    // A model that fails is a response too, with words for the person and a typed cause.
    let broken = ScriptedModel::new([fault(Fault::Authentication)]);
    let agent = Agent::builder("counter")
        .model(broken)
        .instruction("Count letters.")
        .build()?;
    let response = agent.run("How long is Oslo?").await?;
    assert_eq!(response.outcome, OutcomeCategory::LlmFailure);
    println!(
        "what a person reads when the key is refused: {}",
        response.content
    );
    Ok(())
}
