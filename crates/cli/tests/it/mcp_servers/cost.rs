//! Declarations of servers' tools: their share of a context window, and the most that a provider takes.

use serde_json::json;

use super::home;
use crate::harness::{Home, Run};

/// The shell server with so many more tools, whose descriptions have so many characters.
fn home_with_tools(count: usize, description: usize) -> Home {
    let tools: String = (0..count)
        .map(|number| {
            let tool = json!({
                "name": format!("look_{number}"), "description": "d".repeat(description),
                "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true},
            });
            format!("{tool},")
        })
        .collect();
    let before = r#"{"name":"look","#;
    let server = include_str!("server.sh").replace(before, &format!("{tools}{before}"));
    let home = home("");
    home.file("server.sh", server);
    home
}

#[test]
fn tools_that_take_much_of_a_window_are_told_of_at_the_start_and_by_a_message_without_room() {
    let home = home_with_tools(20, 900);
    let hello = |window: u32| {
        let window = json!({"config": {"context_window": window}}).to_string();
        let model = home.script(&[&window, r#"{"text": "Hi.", "repeat": true}"#]);
        home.run(&["-m", &model, "hello"])
    };
    let quiet = hello(131_072).succeeds();
    assert!(!quiet.stderr.contains("of MCP servers take"), "{quiet:?}");
    let told = hello(16_384).succeeds();
    let begins = "the tools of MCP servers take about ";
    let (_, tokens) = told.stderr.split_once(begins).unwrap();
    let (tokens, rest) = tokens.split_once(" (shell ").unwrap();
    let tokens: u32 = tokens.parse().unwrap();
    assert!(tokens >= 16_384 / 4, "{told:?}");
    let named = format!(
        "{tokens}) of the 16384 tokens that the model reads at once, in each request; `allow` or `disabled` in \
         [mcp.servers.NAME] leaves some out"
    );
    assert!(rest.starts_with(&named), "{told:?}");
    hello(4_096).ends_with(6).says(&format!(
        "`allow` or `disabled` in [mcp.servers.NAME]: the tools of MCP servers take about {tokens} (shell {tokens})"
    ));
}

#[cfg(feature = "openai")]
#[test]
fn more_tools_than_openai_takes_are_told_of_before_it_refuses() {
    use crate::vendor::{Reply, Vendor};

    let home = home_with_tools(126, 10);
    let limit = "130 tools, and this provider takes 128 in all";
    for (model, is_told) in [
        ("openai/m", true),
        ("openai-chat/m", true),
        ("groq/m", false),
    ] {
        let refusal = json!({"error": {"message": "too many", "type": "invalid_request_error"}});
        let vendor = Vendor::answering([Reply::json(400, refusal)]);
        let url = format!("{}/v1", vendor.url());
        let mut command = home.command(&["-m", model, "hello"]);
        let run = Run::of(
            command
                .env("OPENAI_API_KEY", "k")
                .env("GROQ_API_KEY", "k")
                .env("OPENAI_BASE_URL", &url)
                .env("GROQ_BASE_URL", &url),
        );
        assert_eq!(run.stderr.contains(limit), is_told, "{model}: {run:?}");
        let sent = vendor.asked().remove(0).body;
        assert!(sent["tools"].as_array().unwrap().len() > 128, "{sent}");
    }
}
