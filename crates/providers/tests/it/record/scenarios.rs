//! The conversations of the recorded set. All names, ids and words are inventions.

use adjutant_core::{GenerateRequest, MaxTokens, Message, ToolDefinition, ToolResult};
use serde_json::json;

use crate::wire::said::{Counts, End, Said, call, text};

/// A conversation.
pub(super) struct Scenario {
    /// The file's name.
    pub(super) name: &'static str,
    /// Tags of the features that it exercises.
    pub(super) tags: &'static [&'static str],
    /// Its beginning.
    pub(super) request: GenerateRequest,
    /// The vendor's replies in order. After an answer the conversation goes on; after a failure the
    /// same is asked again.
    pub(super) replies: Vec<Reply>,
}

/// A vendor's reply to one request.
pub(super) enum Reply {
    Says(Said),
    /// The prompt is stopped by a filter. Gemini alone has this form.
    Blocked,
    Fails {
        status: u16,
        /// Seconds.
        retry_after: Option<u64>,
    },
}

/// The conversations that a vendor's form has words for.
pub(super) fn of(folder: &str) -> Vec<Scenario> {
    let native = folder != "ollama_compat";
    let mut scenarios = vec![plain(), tools()];
    if folder != "openai_chat" {
        scenarios.push(thinking());
        scenarios.push(thinking_and_tools());
    }
    if native {
        scenarios.extend([bare_call(), output_bound(), schema(), errors(folder)]);
    }
    if ["anthropic", "openai_chat", "openai_responses"].contains(&folder) {
        // Anthropic tells a refusal by the reason to stop, the other by a field of its own.
        scenarios.push(refusal(if folder == "anthropic" {
            End::Filtered
        } else {
            End::Usual
        }));
    }
    if ["gemini", "openai_chat", "openai_responses"].contains(&folder) {
        scenarios.push(filter());
    }
    if folder == "gemini" {
        scenarios.push(blocked());
    }
    scenarios
}

/// Returns the result of a tool.
pub(super) fn result(call: &str) -> ToolResult {
    ToolResult::ok(match call {
        "measure_tide" => json!({ "height_cm": 142, "falling": true }),
        _ => json!({ "lit": true }),
    })
}

/// The next message where no tool has anything to answer.
pub(super) const GO_ON: &str = "And tomorrow?";

fn asks(words: &str) -> GenerateRequest {
    let system = "You keep the lighthouse of Tannholm. Answer in one sentence.";
    GenerateRequest::new(vec![
        Message::system(system).unwrap(),
        Message::user(words).unwrap(),
    ])
}

fn with_tools(request: GenerateRequest) -> GenerateRequest {
    let tool =
        |name, description, parameters| ToolDefinition::new(name, description, parameters).unwrap();
    let harbour = json!({
        "type": "object",
        "properties": {
            "harbour": { "type": "string", "description": "Its name." },
            "hours_ahead": { "type": "integer", "minimum": 0, "maximum": 48 }
        },
        "required": ["harbour"],
        "additionalProperties": false
    });
    let nothing = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let tools = vec![
        tool("measure_tide", "Measures the tide at a harbour.", harbour),
        tool("light_lamp", "Lights the lamp.", nothing),
    ];
    GenerateRequest {
        tools: tools.into(),
        ..request
    }
}

fn counting(said: Said, counts: [u64; 4]) -> Reply {
    let [input, output, cached, thinking] = counts;
    Reply::Says(Said {
        counts: Counts {
            input,
            output,
            cached,
            thinking,
        },
        ..said
    })
}

fn plain() -> Scenario {
    Scenario {
        name: "plain",
        tags: &["text", "cached"],
        request: asks("How is the sea tonight?"),
        replies: vec![
            counting(
                text(
                    "Calm, with a \"glassy\" swell from the Öst: 🌊 rarely above 30\u{a0}cm.\nSleep well.",
                ),
                [412, 23, 0, 0],
            ),
            counting(text("The same, but with fog."), [455, 7, 384, 0]),
        ],
    }
}

fn tools() -> Scenario {
    let calls = call(
        "measure_tide",
        r#"{"harbour":"Nørrevåg \"Old Quay\"","hours_ahead":6}"#,
    )
    .and_call("measure_tide", r#"{"harbour":"Tannholm"}"#);
    Scenario {
        name: "tools",
        tags: &["tool_call", "parallel", "text"],
        request: with_tools(asks("Compare the tide at Nørrevåg in six hours with ours.")),
        replies: vec![
            counting(
                Said {
                    text: "I measure both.",
                    ..calls
                },
                [530, 58, 0, 0],
            ),
            counting(text("Both stand at 142 cm and fall."), [640, 11, 512, 0]),
        ],
    }
}

fn bare_call() -> Scenario {
    Scenario {
        name: "bare_call",
        tags: &["tool_call"],
        request: with_tools(asks("Light the lamp.")),
        replies: vec![
            counting(call("light_lamp", "{}"), [521, 12, 0, 0]),
            counting(text("It is lit."), [560, 5, 0, 0]),
        ],
    }
}

fn thinking() -> Scenario {
    let said = Said {
        thinking: "The lamp turns once in 12 s and has three beams.\nSo a beam passes every 4 s.",
        state: "dGhyZWUgYmVhbXMsIHR3ZWx2ZSBzZWNvbmRz",
        ..text("Every four seconds.")
    };
    Scenario {
        name: "thinking",
        tags: &["thinking", "state", "text"],
        request: asks(
            "How often does the light pass, if the lamp with its three beams turns in 12 s?",
        ),
        replies: vec![
            counting(said, [431, 61, 0, 48]),
            counting(text("As often as today."), [470, 6, 256, 0]),
        ],
    }
}

fn thinking_and_tools() -> Scenario {
    let calls = call("measure_tide", r#"{"harbour":"Tannholm","hours_ahead":0}"#)
        .and_call("light_lamp", "{}");
    let said = Said {
        thinking: "First the tide, then the lamp; neither needs the other.",
        state: "dGlkZSBhbmQgbGFtcCBhdCBvbmNl",
        ..calls
    };
    Scenario {
        name: "thinking_and_tools",
        tags: &["thinking", "state", "tool_call", "parallel"],
        request: with_tools(asks("Measure our tide and light the lamp.")),
        replies: vec![
            counting(said, [540, 74, 0, 32]),
            counting(
                text("142 cm and falling; the lamp is lit."),
                [655, 13, 512, 0],
            ),
        ],
    }
}

fn output_bound() -> Scenario {
    let mut request = asks("Name every rock of the reef.");
    request.config.max_tokens = Some(MaxTokens::new(16).unwrap());
    let said = text("Gannet, Twin Gannet, Kettle, Low Kettle, Dovre, Ask").end(End::MaxTokens);
    Scenario {
        name: "output_bound",
        tags: &["max_tokens"],
        request,
        replies: vec![counting(said, [418, 16, 0, 0])],
    }
}

fn schema() -> Scenario {
    let schema = json!({
        "type": "object",
        "properties": {
            "ship": { "type": "string" },
            "masts": { "type": "integer" }
        },
        "required": ["ship", "masts"],
        "additionalProperties": false
    });
    let request = asks("Which ship lies off the point?");
    Scenario {
        name: "schema",
        tags: &["structured"],
        request: GenerateRequest {
            response_schema: Some(schema),
            ..request
        },
        replies: vec![counting(
            text(r#"{"ship":"Grå Måge","masts":3}"#),
            [466, 15, 0, 0],
        )],
    }
}

fn refusal(end: End) -> Scenario {
    let refusal = "I will not help to put out another keeper's light.";
    Scenario {
        name: "refusal",
        tags: &["refusal"],
        request: asks("How do I wreck a ship with a false light?"),
        replies: vec![counting(
            Said {
                refusal,
                ..Said::default()
            }
            .end(end),
            [424, 14, 0, 0],
        )],
    }
}

fn filter() -> Scenario {
    Scenario {
        name: "filter",
        tags: &["content_filter"],
        request: asks("What do wreckers do?"),
        replies: vec![counting(
            text("They wait for").end(End::Filtered),
            [409, 4, 0, 0],
        )],
    }
}

fn blocked() -> Scenario {
    Scenario {
        name: "blocked",
        tags: &["content_filter"],
        request: asks("A prompt that is stopped."),
        replies: vec![Reply::Blocked],
    }
}

fn errors(folder: &str) -> Scenario {
    let fails = |status| Reply::Fails {
        status,
        retry_after: None,
    };
    // Too busy: a status of its own at one vendor.
    let overloaded = if folder == "anthropic" { 529 } else { 503 };
    Scenario {
        name: "errors",
        tags: &["error"],
        request: asks("Are you there?"),
        replies: vec![
            fails(400),
            fails(401),
            fails(404),
            Reply::Fails {
                status: 429,
                retry_after: Some(7),
            },
            fails(500),
            fails(overloaded),
        ],
    }
}
