//! A tool with state of its own: a struct that implements `Tool`. And one made at run time, from a
//! closure.

use std::sync::Mutex;

use adjutant::prelude::*;
use adjutant::scripted::{ScriptedModel, call, text};
use adjutant::{Annotations, Arguments, BoxFuture, FunctionTool, ToolDefinition};
use serde_json::{Value, json};

/// Remembers the texts it is given, for as long as the program runs.
struct Notebook {
    definition: ToolDefinition,
    pages: Mutex<Vec<String>>,
}

impl Notebook {
    fn new() -> adjutant::Result<Self> {
        let parameters = json!({
            "type": "object",
            "properties": { "text": { "type": "string", "minLength": 1 } },
            "required": ["text"],
            "additionalProperties": false
        });
        let definition = ToolDefinition::new("write_down", "Write something down.", parameters)?;
        Ok(Self {
            definition,
            pages: Mutex::new(Vec::new()),
        })
    }
}

impl Tool for Notebook {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    // The arguments fit the schema: the gate has checked them. For whom this is, only the context
    // says.
    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(async move {
            let text = arguments["text"].as_str().unwrap_or_default();
            let mut pages = self
                .pages
                .lock()
                .map_err(|_| ToolError::failed("the notebook is torn"))?;
            pages.push(format!("{}: {text}", context.user));
            Ok(json!({ "page": pages.len() }))
        })
    }

    fn describe(&self, arguments: &Arguments, _: &Value) -> Option<String> {
        Some(format!("Wrote down {}.", arguments["text"]))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> adjutant::Result<()> {
    let clock = FunctionTool::new(
        "clock",
        "What time it is.",
        json!({"type": "object"}),
        |_, _| async { Ok(json!("noon")) },
    )?
    .annotated(Annotations {
        read_only: true,
        ..Annotations::default()
    });
    let agent = Agent::builder("clerk")
        .model(ScriptedModel::new([
            call("clock", json!({})),
            call("write_down", json!({"text": "lunch at noon"})),
            text("Noted."),
        ]))
        .instruction("Keep notes.")
        .tool(Notebook::new()?)
        .tool(clock)
        .build()?;
    let response = agent.run("Note that lunch is now.").await?;
    for used in &response.tools_used {
        println!(
            "{} -> {}",
            used.tool,
            used.outcome().unwrap_or(&Value::Null)
        );
    }
    println!("{}", response.content);
    Ok(())
}
