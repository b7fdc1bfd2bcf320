//! `#[tool]` as a user of the library writes it: only `adjutant` among the dependencies is needed
//! by the expansion.

use adjutant::prelude::*;
use adjutant::scripted::{ScriptedModel, call, text};
use serde_json::json;

/// Weather for a city.
#[tool(read_only)]
async fn weather(
    /// The city's name.
    city: String,
    days: Option<u8>,
) -> Result<String, ToolError> {
    match days {
        Some(days) if days > 14 => Err(ToolError::invalid("at most 14 days ahead")),
        _ => Ok(format!("sunny in {city}")),
    }
}

/// Says for whom the agent works.
#[tool]
async fn whoami(context: &ToolContext) -> String {
    context.user.to_string()
}

#[test]
fn the_expansion_finds_everything_in_the_facade() {
    assert_eq!(
        weather.definition().parameters,
        json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "description": "The city's name." },
                "days": { "type": ["integer", "null"], "minimum": 0, "maximum": 255 },
            },
            "required": ["city"],
            "additionalProperties": false,
        })
    );
}

#[tokio::test]
async fn an_agent_calls_annotated_functions() {
    let model = ScriptedModel::new([
        call("weather", json!({ "city": "Oslo" })),
        call("weather", json!({ "city": "Oslo", "days": 15 })),
        call("whoami", json!({})),
        text("Sunny."),
    ]);
    let agent = Agent::builder("helper")
        .model(model)
        .instruction("Be brief.")
        .tool(weather)
        .tool(whoami)
        .build()
        .expect("a valid agent");

    let response = agent.run("weather in Oslo?").await.expect("a turn");

    assert_eq!(response.content, "Sunny.");
    let results: Vec<_> = response
        .tools_used
        .iter()
        .map(|used| used.outcome())
        .collect();
    assert_eq!(
        results,
        [
            Ok(&json!("sunny in Oslo")),
            Err("at most 14 days ahead"),
            Ok(&json!("local"))
        ]
    );
}

#[tokio::test]
async fn the_function_is_tested_without_an_agent() {
    assert_eq!(
        weather::run("Oslo".to_owned(), None).await,
        Ok("sunny in Oslo".to_owned())
    );
}
