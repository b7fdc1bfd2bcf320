//! Tools that `#[tool]` makes of functions.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{Annotations, Arguments, Tool, ToolContext, ToolError};
use adjutant_macros::tool;
use serde_json::json;

use crate::harness::{Caller, Outcome, context, object};

/// Stands for the facade crate.
mod facade {
    pub(crate) use adjutant_tools::macro_support as __private;
}

/// Weather for a city,
/// today or soon.
#[tool(crate = crate::tool_macro::facade, read_only)]
async fn weather(
    /// The city's name.
    city: String,
    #[arg(description = "Days ahead.")]
    #[schemars(range(max = 14))]
    days: Option<u8>,
    #[serde(default)] mut details: bool,
) -> Result<String, ToolError> {
    if city == "Atlantis" {
        return Err(ToolError::NotFound {
            what: "city".to_owned(),
            id: city,
        });
    }
    details |= days.is_some();
    Ok(format!("sunny in {city}, {days:?}, {details}"))
}

#[test]
fn the_definition_is_read_from_the_function() {
    let definition = weather.definition();
    assert_eq!(definition.name.as_str(), "weather");
    assert_eq!(definition.description, "Weather for a city, today or soon.");
    assert_eq!(
        definition.annotations,
        Annotations {
            read_only: true,
            ..Annotations::default()
        }
    );
    assert_eq!(
        definition.parameters,
        json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "description": "The city's name." },
                "days": { "type": ["integer", "null"], "description": "Days ahead.", "minimum": 0, "maximum": 14 },
                "details": { "type": "boolean", "default": false },
            },
            "required": ["city"],
            "additionalProperties": false,
        })
    );
    assert_eq!(weather.timeout(), None);
}

#[tokio::test]
async fn it_is_called_with_its_arguments() {
    let caller = Caller::new(vec![Arc::new(weather)]);
    assert_eq!(
        caller
            .call("ana", "weather", json!({ "city": "Oslo" }))
            .await,
        Outcome::Done(json!("sunny in Oslo, None, false"), None)
    );
    assert_eq!(
        caller
            .call("ana", "weather", json!({ "city": "Oslo", "days": 3 }))
            .await,
        Outcome::Done(json!("sunny in Oslo, Some(3), true"), None)
    );
    for wrong in [
        json!({}),
        json!({ "city": 3 }),
        json!({ "city": "Oslo", "days": 15 }),
        json!({ "city": "Oslo", "user": "bob" }),
    ] {
        let came = caller.call("ana", "weather", wrong.clone()).await;
        assert!(matches!(came, Outcome::Refused(_)), "{wrong}: {came:?}");
    }
    // Without the gate's check the type still refuses, and names the place.
    let unchecked = weather
        .call(
            &context("ana", 1),
            object(json!({ "city": "Oslo", "days": "soon" })),
        )
        .await;
    assert_eq!(
        unchecked,
        Err(ToolError::invalid(
            "days: invalid type: string \"soon\", expected u8"
        ))
    );
}

#[tokio::test]
async fn the_function_can_be_called_itself() {
    assert_eq!(
        weather::run("Oslo".to_owned(), None, true).await,
        Ok("sunny in Oslo, None, true".to_owned())
    );
}

/// Forgets a note.
#[tool(
    crate = crate::tool_macro::facade,
    destructive,
    idempotent,
    keyed,
    parallel,
    name = "forget_note",
    description = "Forget it.",
    timeout_secs = 5
)]
async fn forget(context: &ToolContext, id: u32) -> serde_json::Value {
    json!({ "user": context.user, "id": id })
}

#[tokio::test]
async fn options_and_context() {
    let definition = forget.definition();
    assert_eq!(
        (definition.name.as_str(), definition.description.as_str()),
        ("forget_note", "Forget it.")
    );
    assert_eq!(
        definition.annotations,
        Annotations {
            read_only: false,
            destructive: true,
            idempotent: true,
            keyed: true,
            parallel: true,
            closed_world: false,
        }
    );
    assert_eq!(forget.timeout(), Some(Duration::from_secs(5)));
    assert_eq!(definition.parameters["required"], json!(["id"]));
    assert!(definition.parameters["properties"].get("context").is_none());
    let caller = Caller::new(vec![Arc::new(forget)]);
    assert_eq!(
        caller.call("ana", "forget_note", json!({ "id": 7 })).await,
        Outcome::Done(json!({ "user": "ana", "id": 7 }), None)
    );
}

fn words_of_sum(arguments: &Arguments, sum: &serde_json::Value) -> String {
    format!("{} and {} are {sum}.", arguments["a"], arguments["b"])
}

/// Adds two numbers.
#[tool(crate = crate::tool_macro::facade, read_only, describe = words_of_sum)]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[test]
fn a_result_is_described_by_the_function_that_the_tool_names() {
    let arguments = json!({"a": 2, "b": 3}).as_object().unwrap().clone();
    assert_eq!(
        add.describe(&arguments, &json!(5)).as_deref(),
        Some("2 and 3 are 5.")
    );
    assert_eq!(whoami.describe(&Arguments::new(), &json!("ana")), None);
}

/// Owns its context.
#[tool(crate = crate::tool_macro::facade)]
async fn whoami(context: ToolContext) -> String {
    context.user.into()
}

/// Returns nothing.
#[tool(crate = crate::tool_macro::facade)]
async fn nothing() {}

/// Any error that can be printed.
#[tool(crate = crate::tool_macro::facade)]
async fn parse(number: String) -> Result<i64, std::num::ParseIntError> {
    number.parse()
}

/// Text as an error.
#[tool(crate = crate::tool_macro::facade)]
async fn refuse() -> Result<(), String> {
    Err("not today".to_owned())
}

/// An error that knows which [`ToolError`] it is.
#[derive(Debug)]
struct Missing;

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("these words are not used")
    }
}

impl From<Missing> for ToolError {
    fn from(_: Missing) -> Self {
        Self::NotFound {
            what: "note".to_owned(),
            id: "7".to_owned(),
        }
    }
}

type Found<T> = Result<T, Missing>;

/// Behind an alias.
#[tool(crate = crate::tool_macro::facade)]
async fn find() -> Found<String> {
    Err(Missing)
}

/// A keyword, and names the expansion uses itself.
#[tool(crate = crate::tool_macro::facade)]
async fn r#match(r#type: String, arguments: u8, __arguments: u8) -> (String, u8) {
    (r#type, arguments + __arguments)
}

#[tokio::test]
async fn every_kind_of_result() {
    let context = context("ana", 1);
    let call = |tool: &'static dyn Tool, arguments| {
        let context = context.clone();
        async move { tool.call(&context, object(arguments)).await }
    };
    assert_eq!(call(&whoami, json!({})).await, Ok(json!("ana")));
    assert_eq!(call(&nothing, json!({})).await, Ok(json!(null)));
    assert_eq!(call(&parse, json!({ "number": "42" })).await, Ok(json!(42)));
    assert_eq!(
        call(&parse, json!({ "number": "x" })).await,
        Err(ToolError::failed("invalid digit found in string"))
    );
    assert_eq!(
        call(&refuse, json!({})).await,
        Err(ToolError::failed("not today"))
    );
    assert_eq!(
        call(&find, json!({})).await,
        Err(ToolError::NotFound {
            what: "note".to_owned(),
            id: "7".to_owned()
        })
    );
    assert_eq!(
        call(&weather, json!({ "city": "Atlantis" })).await,
        Err(ToolError::NotFound {
            what: "city".to_owned(),
            id: "Atlantis".to_owned()
        })
    );
    assert_eq!(r#match.definition().name.as_str(), "match");
    assert_eq!(
        call(
            &r#match,
            json!({ "type": "t", "arguments": 1, "__arguments": 2 })
        )
        .await,
        Ok(json!(["t", 3]))
    );
}

#[test]
fn a_function_inside_a_function() {
    /// Adds.
    #[tool(crate = facade)]
    async fn add(a: i32, b: i32) -> i32 {
        a + b
    }
    assert_eq!(add.definition().description, "Adds.");
}
