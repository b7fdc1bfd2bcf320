//! Answers as Rust values: the model's JSON is checked against the type's schema, and asked for
//! again if it does not fit.

use adjutant::prelude::*;
use adjutant::schemars::JsonSchema;
use adjutant::scripted::{ScriptedModel, call, text};
use serde::Deserialize;
use serde_json::json;

/// Something to buy.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Purchase {
    /// Name of the item.
    item: String,
    /// Number of pieces.
    #[schemars(range(min = 1))]
    count: u32,
    /// US dollars for one.
    price: f64,
}

/// Returns the price of an item in the shop.
#[tool(read_only)]
async fn price_of(item: String) -> f64 {
    if item == "milk" { 1.25 } else { 2.5 }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> adjutant::Result<()> {
    let model = ScriptedModel::new([
        call("price_of", json!({"item": "milk"})),
        text(r#"{"item": "milk", "count": "two", "price": 1.25}"#),
        text(r#"{"item": "milk", "count": 2, "price": 1.25}"#),
        text("You have 2 cartons of milk on your list."),
    ]);
    let agent = Agent::builder("shopper")
        .model(model.clone())
        .instruction("Fill in what the person wants to buy.")
        .tool(price_of)
        .build()?;
    let mut context = RunContext::default();

    // For one request; `Agent::builder(...).output::<Purchase>()` is for all of them. Tools run as
    // usual.
    let response = agent
        .with_output::<Purchase>()?
        .run_in(&mut context, "Two cartons of milk.")
        .await?;
    let purchase: Purchase = response.output()?;
    assert_eq!(
        purchase,
        Purchase {
            item: "milk".to_owned(),
            count: 2,
            price: 1.25
        }
    );
    println!(
        "{purchase:?}, {:.2} dollars",
        f64::from(purchase.count) * purchase.price
    );

    // "two" is no integer: the model was sent the error and asked once more.
    let again = model.requests()[2]
        .messages
        .last()
        .map(|message| message.text())
        .unwrap_or_default();
    println!("{again}");

    // The next answer of the same conversation is words again.
    println!(
        "{}",
        agent
            .run_in(&mut context, "What did I want?")
            .await?
            .content
    );
    Ok(())
}
