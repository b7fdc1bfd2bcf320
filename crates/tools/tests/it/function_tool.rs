//! Tools from closures.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::{
    Annotations, Arguments, Effect, InvalidTool, Tool, ToolContext, ToolError, ToolRegistry,
};
use adjutant_tools::FunctionTool;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::{Caller, Outcome, context, object};

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The item to buy.
    item: String,
    count: u32,
    note: Option<String>,
}

fn order() -> FunctionTool {
    FunctionTool::typed(
        "order",
        "Orders something.",
        |context: ToolContext, order: Order| async move {
            if order.count == 0 {
                return Err(ToolError::invalid("nothing to order"));
            }
            Ok((context.user, order.item, order.count, order.note))
        },
    )
    .unwrap()
}

#[tokio::test]
async fn a_typed_closure_gets_its_type_and_the_user() {
    let caller = Caller::new(vec![Arc::new(order())]);
    assert_eq!(
        caller
            .call("ana", "order", json!({ "item": "tea", "count": 2 }))
            .await,
        Outcome::Done(json!(["ana", "tea", 2, null]), None)
    );
    assert_eq!(
        caller
            .call("ana", "order", json!({ "item": "tea", "count": 0 }))
            .await,
        Outcome::Refused("nothing to order".to_owned())
    );
    assert!(matches!(
        caller.call("ana", "order", json!({ "item": "tea", "count": 1, "user_id": "bob" })).await,
        Outcome::Refused(reason) if reason.contains("user_id")
    ));
}

#[test]
fn its_schema_comes_from_the_type() {
    assert_eq!(
        order().definition().parameters,
        json!({
            "type": "object",
            "properties": {
                "item": { "type": "string", "description": "The item to buy." },
                "count": { "type": "integer", "minimum": 0 },
                "note": { "type": ["string", "null"] },
            },
            "required": ["item", "count"],
            "additionalProperties": false,
        })
    );
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_type_name_the_place() {
    #[derive(Deserialize, JsonSchema)]
    struct Args {
        #[expect(dead_code, reason = "never gets here")]
        rows: Vec<Row>,
    }
    #[derive(Deserialize, JsonSchema)]
    struct Row {
        #[expect(dead_code, reason = "never gets here")]
        size: u8,
    }
    let tool = FunctionTool::typed("t", "T.", |_, _: Args| async { Ok(()) }).unwrap();
    let error = tool
        .call(
            &context("ana", 1),
            object(json!({ "rows": [{ "size": 1 }, { "size": "big" }] })),
        )
        .await;
    assert_eq!(
        error,
        Err(ToolError::invalid(
            "rows[1].size: invalid type: string \"big\", expected u8"
        ))
    );
}

#[tokio::test]
async fn a_result_that_is_no_json_is_not_taken_for_a_failure_without_effect() {
    let tool = FunctionTool::typed("t", "T.", |_, _: Value| async {
        Ok(std::collections::HashMap::from([((1, 2), 3)]))
    })
    .unwrap();
    assert!(matches!(
        tool.call(&context("ana", 1), Arguments::new()).await,
        Err(ToolError::Unknown { .. })
    ));
}

#[tokio::test]
async fn an_untyped_closure_gets_json() {
    let parameters = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let tool = FunctionTool::new(
        "double",
        "Doubles.",
        parameters,
        |_, arguments: Arguments| async move { Ok(json!(arguments["n"].as_i64().map(|n| 2 * n))) },
    )
    .unwrap()
    .annotated(Annotations {
        read_only: true,
        ..Annotations::default()
    })
    .with_timeout(Duration::from_secs(3));
    assert_eq!(tool.definition().annotations.effect(), Effect::None);
    assert_eq!(tool.timeout(), Some(Duration::from_secs(3)));
    let caller = Caller::new(vec![Arc::new(tool)]);
    assert_eq!(
        caller.call("ana", "double", json!({ "n": 21 })).await,
        Outcome::Done(json!(42), None)
    );
}

#[test]
fn what_cannot_be_a_tool_is_refused() {
    let make = |name: &str, description: &str, parameters: Value| {
        FunctionTool::new(name, description, parameters, |_, _| async {
            Ok(Value::Null)
        })
    };
    assert!(matches!(
        make("Big Name", "Does it.", json!({})),
        Err(InvalidTool::Name(_))
    ));
    assert!(matches!(
        make("t", "  ", json!({})),
        Err(InvalidTool::Description { .. })
    ));

    let mut registry = ToolRegistry::new();
    let mut register =
        |parameters| registry.register(Arc::new(make("t", "Does it.", parameters).unwrap()));
    assert!(matches!(
        register(json!({ "type": "string" })),
        Err(InvalidTool::Schema { .. })
    ));
    assert!(matches!(
        register(json!({ "type": "object", "properties": 3 })),
        Err(InvalidTool::Schema { .. })
    ));
    assert_eq!(register(json!({ "type": "object" })), Ok(()));
    assert_eq!(
        register(json!({ "type": "object" })),
        Err(InvalidTool::Duplicate {
            name: "t".to_owned()
        })
    );
}
