//! The tools that the MCP project's conformance suite asks for, given by our own service at `/mcp`,
//! without a token. `tests/clients/mcp` runs the suite against it. Prints its address as JSON, and
//! ends with its standard input.

use std::io::Write as _;
use std::num::NonZeroU32;
use std::time::Duration;

use adjutant_core::{Annotations, CancellationToken, ToolError};
use adjutant_providers::scripted::ScriptedModel;
use adjutant_runtime::Agent;
use adjutant_service::{Auth, Service, ServiceConfig};
use adjutant_tools::FunctionTool;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let agent = Agent::builder("conformance")
        .instruction("Nobody asks the model.")
        .tool(says(
            "test_simple_text",
            "This is a simple text response for testing.",
        )?)
        .tool(says("test_reconnection", "The stream was not closed.")?)
        .tool(FunctionTool::new(
            "test_error_handling",
            "Fails.",
            object(),
            |_, _| {
                std::future::ready(Err(ToolError::failed(
                    "This tool intentionally returns an error for testing",
                )))
            },
        )?)
        // Long enough for three reports of our own: the suite wants three.
        .tool(FunctionTool::new(
            "test_tool_with_progress",
            "Takes a while.",
            object(),
            |_, _| async {
                tokio::time::sleep(Duration::from_millis(3500)).await;
                Ok(json!("done"))
            },
        )?)
        .tool(
            FunctionTool::new(
                "test_elicitation",
                "Asks the person first.",
                message(),
                |_, _| std::future::ready(Ok(json!("the person agreed"))),
            )?
            .annotated(Annotations {
                destructive: true,
                ..Annotations::default()
            }),
        )
        .tool(FunctionTool::new(
            "json_schema_2020_12_tool",
            "Has a schema.",
            modern(),
            |_, arguments| std::future::ready(Ok(Value::Object(arguments))),
        )?)
        .model(ScriptedModel::new([]))
        .build()?;
    let mut config = ServiceConfig::new("127.0.0.1:0".parse()?, Auth::None);
    // All scenarios are one user's: none of them is to fail because of those before it.
    config.limits.requests_per_minute = NonZeroU32::MAX;
    let service = Service::bind(agent, config).await?;
    writeln!(
        std::io::stdout(),
        "{}",
        json!({ "url": format!("http://{}/mcp", service.address()) })
    )?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
        stopping.cancel();
    });
    Ok(service.run(stop).await?)
}

fn says(name: &str, text: &'static str) -> Result<FunctionTool> {
    let tool = FunctionTool::new(name, "Says something.", object(), move |_, _| {
        std::future::ready(Ok(json!(text)))
    });
    Ok(tool?)
}

fn object() -> Value {
    json!({ "type": "object", "additionalProperties": false })
}

fn message() -> Value {
    json!({ "type": "object", "properties": { "message": { "type": "string" } }, "required": ["message"] })
}

fn modern() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": { "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" } },
        "additionalProperties": false,
    })
}
