//! Tools that act on no entities: which of them a message is offered, and which calls are checked how.

use adjutant_core::{ActionKind, ActionScores, Language, ToolName};

use super::*;

fn tool(name: &str, description: &str, properties: Value, required: Value) -> ToolDefinition {
    let parameters = json!({ "type": "object", "properties": properties, "required": required });
    let mut tool = ToolDefinition::new("tool", description, parameters).unwrap();
    tool.name = ToolName::foreign(name).unwrap();
    tool
}

/// Tools of an agent of its own.
fn own() -> Vec<ToolDefinition> {
    vec![
        tool(
            "get_weather",
            "Returns the weather of a city.",
            json!({
                "city": { "type": "string", "description": "City and country", "examples": ["Oslo, Norway"] },
                "unit": { "type": "string", "enum": ["celsius", "fahrenheit"] },
                "days": { "type": "integer", "description": "Days ahead", "default": 1 }
            }),
            json!(["city"]),
        ),
        tool(
            "triangle_area",
            "Calculates the area of a triangle.",
            json!({ "base": { "type": "number" }, "height": { "type": "number" } }),
            json!(["base", "height"]),
        ),
        tool(
            "post__sendReport",
            "Sends a message to somebody.",
            json!({ "to": { "type": "string" }, "words": { "type": "string" } }),
            json!(["to", "words"]),
        ),
    ]
}

fn asked(tools: Vec<ToolDefinition>, before: Option<&str>, message: &str) -> GenerateRequest {
    GenerateRequest {
        tools: tools.into(),
        ..request(before, message)
    }
}

fn with_tasks() -> Vec<ToolDefinition> {
    tools().into_iter().chain(own()).collect()
}

/// Returns the names of the tools that a message is offered.
fn offered(request: &GenerateRequest, scores: Option<&ActionScores>) -> Vec<String> {
    let encoded = weak().encode(request, &references(LIST), scores);
    let schema = encoded.response_schema.unwrap().to_string();
    let names = request.tools.iter().map(|tool| tool.name.to_string());
    names
        .filter(|name| schema.contains(&format!("\"{name}\"")))
        .collect()
}

fn offered_own(message: &str) -> Vec<String> {
    offered(&asked(own(), None, message), None)
}

fn decoded_own(before: Option<&str>, message: &str, chosen: &Value) -> String {
    let response = WeakTools::new().decode(
        answer(&chosen.to_string(), FinishReason::Stop),
        &asked(own(), before, message),
        &[],
        None,
    );
    let lines = response.parts.iter().map(|part| match &part.content {
        Content::Text { text } => format!("says {text}"),
        Content::ToolCall(call) => {
            format!("{} {}", call.name, Value::Object(call.arguments.clone()))
        }
        other => format!("{other:?}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_tool_is_offered_if_words_of_the_message_stand_in_its_declaration() {
    assert_eq!(
        offered_own("what's the wether like in Rome?"),
        ["get_weather"]
    );
    assert_eq!(
        offered_own("area of a triangle with base 3 and height 4"),
        ["triangle_area"]
    );
    // A name in one word has the words of its capitals, and its server's name counts too.
    assert_eq!(offered_own("send Anna a report"), ["post__sendReport"]);
    assert_eq!(offered_own("some post for Anna"), ["post__sendReport"]);
    assert_eq!(offered_own("who painted the Mona Lisa?"), [""; 0]);
    assert_eq!(offered_own("hello"), [""; 0]);
}

#[test]
fn words_of_another_language_than_the_declarations_say_nothing_about_them() {
    let german = "Wie wird das Wetter morgen in Rom und was ziehe ich dann an?";
    assert_eq!(offered_own(german).len(), 3);
}

#[test]
fn declarations_are_shown_with_samples_and_only_as_far_as_they_fit() {
    let request = asked(own(), None, "weather in Rome");
    let encoded = WeakTools::new().encode(&request, &[], None);
    expect![[r#"
        Actions:
        - get_weather: Returns the weather of a city.
          city (string): City and country, such as Oslo, Norway
          unit (celsius|fahrenheit, optional)
          days (integer, optional): Days ahead, such as 1
        Message: weather in Rome"#]]
    .assert_eq(&encoded.messages.last().unwrap().text());
    assert!(
        encoded.messages[0]
            .text()
            .starts_with("The agent's long instruction.\n")
    );
    let many = (0..40).map(|at| {
        let name = format!("weather_{at}");
        tool(
            &name,
            &"Weather of a city. ".repeat(80),
            json!({}),
            json!([]),
        )
    });
    let request = asked(many.collect(), None, "weather in Rome");
    assert_eq!(offered(&request, None).len(), 8);
    let encoded = WeakTools::new().encode(&request, &[], None);
    assert!(encoded.messages.last().unwrap().text().len() < 5000);
}

#[test]
fn the_beginning_is_the_same_for_every_message() {
    let head = |message: &str| {
        let encoded = WeakTools::new().encode(&asked(own(), None, message), &[], None);
        encoded.messages[..encoded.messages.len() - 1].to_vec()
    };
    assert_eq!(head("weather in Rome"), head("send Anna a report"));
    assert_eq!(head("…"), head("hello"));
}

#[test]
fn arguments_come_from_the_message() {
    let rows = [
        (
            "weather in Rome and Paris",
            json!([{ "get_weather": { "city": "Rome, Italy" } }, { "get_weather": { "city": "Paris, France" } }]),
            "get_weather {\"city\":\"Rome, Italy\"}\nget_weather {\"city\":\"Paris, France\"}",
        ),
        // What nobody asked for is left out, and the same call twice is one.
        (
            "weather in Rome",
            json!([
                { "get_weather": { "city": "Rome", "unit": "celsius", "days": 3 } },
                { "get_weather": { "city": "Rome", "days": 5 } }
            ]),
            "get_weather {\"city\":\"Rome\"}",
        ),
        (
            "weather in Rome for the next 3 days in fahrenheit",
            json!([{ "get_weather": { "city": "Rome", "unit": "fahrenheit", "days": 3 } }]),
            "get_weather {\"city\":\"Rome\",\"unit\":\"fahrenheit\",\"days\":3}",
        ),
        (
            "what's the weather like?",
            json!([{ "get_weather": { "city": "London" } }]),
            "ask_user {\"question\":\"Your message does not say which \u{201c}city\u{201d} I should use. What is it?\"}",
        ),
        (
            "area of a triangle with base 3",
            json!([{ "triangle_area": { "base": 3, "height": 5 } }]),
            "ask_user {\"question\":\"Your message does not say which \u{201c}height\u{201d} I should use. What is it?\"}",
        ),
        (
            "area of a triangle with base 3.50 and a height of 5%",
            json!([{ "triangle_area": { "base": 3.5, "height": 0.05 } }]),
            "triangle_area {\"base\":3.5,\"height\":0.05}",
        ),
        (
            "area of a triangle with base twenty and height three",
            json!([{ "triangle_area": { "base": 20, "height": 3 } }]),
            "triangle_area {\"base\":20,\"height\":3}",
        ),
        (
            "send a report at half past six",
            json!([{ "post__sendReport": { "to": "06:30", "words": "Now" } }]),
            "post__sendReport {\"to\":\"06:30\",\"words\":\"Now\"}",
        ),
        // One text that the person gave speaks for what the model words.
        (
            "send Anna a report that I am late",
            json!([{ "post__sendReport": { "to": "Anna", "words": "Delayed!" } }]),
            "post__sendReport {\"to\":\"Anna\",\"words\":\"Delayed!\"}",
        ),
        (
            "weather in Rome",
            json!([{ "get_weather": {} }]),
            "ask_user {\"question\":\"Your message does not say which \u{201c}city\u{201d} I should use. What is it?\"}",
        ),
    ];
    for (message, chosen, becomes) in rows {
        assert_eq!(decoded_own(None, message, &chosen), becomes, "{message}");
    }
}

#[test]
fn an_answer_to_the_question_is_read_with_the_message_before_it() {
    let before =
        Some("Your message does not say which \u{201c}city\u{201d} I should use. What is it?");
    let mut request = asked(own(), before, "Rome");
    request.messages[1] = Message::user("what's the weather like?").unwrap();
    assert_eq!(offered(&request, None), ["get_weather"]);
    let chosen = json!([{ "get_weather": { "city": "Rome" } }]).to_string();
    let response =
        WeakTools::new().decode(answer(&chosen, FinishReason::Stop), &request, &[], None);
    assert_eq!(response.tool_calls().count(), 1);
    let encoded = WeakTools::new().encode(&request, &[], None);
    assert!(
        encoded
            .messages
            .last()
            .unwrap()
            .text()
            .contains("Earlier message: what's the weather like?\nYou said: Your message")
    );
}

#[test]
fn texts_claim_nothing_and_nonsense_becomes_a_question() {
    let says = |chosen: Value| decoded_own(None, "weather in Rome", &chosen);
    assert_eq!(
        says(json!([{ "off-topic": { "message": "Sorry, not that." } }])),
        "decline {\"message\":\"Sorry, not that.\"}"
    );
    assert!(
        says(json!([{ "small-talk": { "text": "I've sent the report." } }]))
            .starts_with("ask_user")
    );
    assert!(says(json!("nonsense")).starts_with("ask_user"));
    assert!(says(json!([{ "launch": {} }])).starts_with("ask_user"));
}

#[test]
fn beside_tasks_the_scores_say_what_a_message_is_about() {
    let likely = |kind| ActionScores::new(Language::English).with(kind, 0.9);
    let of =
        |message: &str, kind| offered(&asked(with_tasks(), None, message), Some(&likely(kind)));
    assert_eq!(of("weather in Rome", ActionKind::Decline), ["get_weather"]);
    // A task may have words of a tool.
    let task = of("look up the weather in Rome", ActionKind::Create);
    assert!(!task.contains(&"get_weather".to_owned()), "{task:?}");
    // Two words of a tool's name mean the tool.
    assert_eq!(
        of("send a report to Anna", ActionKind::Create),
        ["post__sendReport"]
    );
    let chat = of("who painted the Mona Lisa?", ActionKind::Decline);
    assert!(chat.is_empty(), "{chat:?}");
}

#[test]
fn an_own_tool_leaves_decisions_about_tasks_as_they_are() {
    let scores = ActionScores::new(Language::English).with(ActionKind::Complete, 0.9);
    let (alone, beside) = (
        asked(tools(), None, "fed the rabbits"),
        asked(with_tasks(), None, "fed the rabbits"),
    );
    for scores in [Some(&scores), None] {
        let alone = weak().encode(&alone, &references(LIST), scores);
        let beside = weak().encode(&beside, &references(LIST), scores);
        assert_eq!(alone.response_schema, beside.response_schema);
        assert_eq!(alone.messages, beside.messages);
    }
}

#[test]
fn a_tool_with_a_query_is_no_search_of_the_memory() {
    let search = tool(
        "web__search",
        "Searches the web for pages.",
        json!({ "query": { "type": "string" } }),
        json!(["query"]),
    )
    .annotated(Annotations {
        read_only: true,
        ..Annotations::default()
    });
    let request = asked(vec![search], None, "search the web for llamas");
    assert_eq!(offered(&request, None), ["web__search"]);
    let chosen = json!([{ "web__search": { "query": "llamas" } }]).to_string();
    let response =
        WeakTools::new().decode(answer(&chosen, FinishReason::Stop), &request, &[], None);
    let call = response.tool_calls().next().unwrap();
    assert_eq!(call.arguments["query"], "llamas");
}
