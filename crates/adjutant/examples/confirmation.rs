//! Destructive calls wait for a confirmation. The pending call is data: it can be shown, stored,
//! and answered days later.

use adjutant::prelude::*;
use adjutant::scripted::{ScriptedModel, call, text};
use adjutant::{DecisionKind, Verdict};
use serde_json::json;

/// Deletes a file for good.
#[tool(destructive)]
async fn delete_file(name: String) -> String {
    format!("{name} is gone")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> adjutant::Result<()> {
    let model = ScriptedModel::new([
        call("delete_file", json!({"name": "draft.txt"})),
        text("I kept it."),
        call("delete_file", json!({"name": "draft.txt"})),
        text("It is deleted."),
    ]);
    let agent = Agent::builder("janitor")
        .model(model)
        .instruction("Tidy up.")
        .tool(delete_file)
        .build()?;
    let mut context = RunContext::default();

    // Nothing runs before the person approves it.
    let asked = agent.run_in(&mut context, "Delete the draft.").await?;
    assert_eq!(asked.decision.kind, DecisionKind::RequestConfirmation);
    println!("{}", asked.content);

    // Plain words are an answer. They are read by a parser, never by the model.
    let kept = agent.run_in(&mut context, "no").await?;
    assert_eq!(kept.decision.kind, DecisionKind::CancelPending);
    println!("{}", kept.content);

    // So is an answer with the digest of what was shown: only this very call, with these arguments,
    // runs.
    let asked = agent.run_in(&mut context, "I am sure: delete it.").await?;
    let pending = &asked.decision.pending[0];
    let yes = pending.answer(Verdict::Approved);
    let done = agent.answer(&mut context, vec![yes]).await?;
    assert_eq!(done.decision.kind, DecisionKind::ExecutePending);
    println!("{}", done.content);
    Ok(())
}
