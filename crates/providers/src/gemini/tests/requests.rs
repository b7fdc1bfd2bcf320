//! Tests of requests: encoding, and configurations that are refused.

use super::*;

fn gemini(model: &str) -> ModelId {
    ModelId::new("gemini", model).unwrap()
}

pub(super) fn encoded(request: &GenerateRequest, model: &str) -> (Value, Vec<String>) {
    let model = gemini(model);
    let encode =
        || request::encode(request, &model, &family::for_model(&model.name), true).unwrap();
    let encoded = encode();
    assert_eq!(encoded.body, encode().body);
    (
        serde_json::from_slice(&encoded.body).unwrap(),
        encoded.losses,
    )
}

fn check_request(request: &GenerateRequest, model: &str, expected: Expect) {
    let (body, losses) = encoded(request, model);
    let lines = std::iter::once(serde_json::to_string_pretty(&body).unwrap()).chain(losses);
    expected.assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

/// A call of a model, signed, and its result.
fn exchange(index: usize, model: &str, id: &str) -> (Part, Message) {
    let call = ToolCall::from_object(
        index,
        Some(id.into()),
        "look".into(),
        json!({"at": index}).as_object().unwrap().clone(),
    );
    let result = Message::tool(call.id.clone(), "look", ToolResult::ok(json!(["seen"]))).unwrap();
    let state = ProviderState {
        origin: gemini(model),
        data: json!({"thoughtSignature": format!("sig-{id}")}),
    };
    (
        Part::from_provider(Content::ToolCall(call), Some(state)),
        result,
    )
}

fn conversation(model: &str) -> GenerateRequest {
    let (first, first_result) = exchange(0, model, "a");
    let (second, second_result) = exchange(1, model, "b");
    let look = ToolDefinition::new(
        "look",
        "Looks.",
        json!({"type": "object", "properties": {"at": {"type": "integer"}}, "additionalProperties": false}),
    );
    let nothing = ToolDefinition::new(
        "nothing",
        "Does nothing.",
        json!({"type": "object", "properties": {}}),
    );
    let mut request = GenerateRequest::new(vec![
        Message::system("Be brief.").unwrap(),
        Message::user("Look twice.").unwrap(),
        Message::assistant(vec![first, second]).unwrap(),
        first_result,
        second_result,
        Message::user("And?").unwrap(),
    ]);
    request.tools = vec![look.unwrap(), nothing.unwrap()].into();
    request
}

/// Keywords that the vendor does not take are checked by the gate all the same.
#[test]
fn what_a_tools_schema_is_sent_without_is_no_loss() {
    let mut request = conversation("gemini-2.5-flash");
    let schema = json!({"type": "object", "properties": {"at": {"type": "string", "maxLength": 5, "pattern": "^x"}}});
    request.tools = vec![ToolDefinition::new("look", "Looks.", schema).unwrap()].into();
    let (body, losses) = encoded(&request, "gemini-2.5-flash");
    assert!(
        !body.to_string().contains("pattern") && losses.is_empty(),
        "{body} {losses:?}"
    );
}

#[test]
fn a_whole_conversation() {
    check_request(
        &conversation("gemini-2.5-flash"),
        "gemini-2.5-flash",
        expect![[r#"
            {
              "systemInstruction": {
                "parts": [
                  {
                    "text": "Be brief."
                  }
                ]
              },
              "tools": [
                {
                  "functionDeclarations": [
                    {
                      "name": "look",
                      "description": "Looks.",
                      "parametersJsonSchema": {
                        "type": "object",
                        "properties": {
                          "at": {
                            "type": "integer"
                          }
                        },
                        "additionalProperties": false
                      }
                    },
                    {
                      "name": "nothing",
                      "description": "Does nothing."
                    }
                  ]
                }
              ],
              "toolConfig": {
                "functionCallingConfig": {
                  "mode": "AUTO"
                }
              },
              "generationConfig": {
                "temperature": 0.0,
                "maxOutputTokens": 9216
              },
              "store": false,
              "contents": [
                {
                  "role": "user",
                  "parts": [
                    {
                      "text": "Look twice."
                    }
                  ]
                },
                {
                  "role": "model",
                  "parts": [
                    {
                      "functionCall": {
                        "id": "a",
                        "name": "look",
                        "args": {
                          "at": 0
                        }
                      },
                      "thoughtSignature": "sig-a"
                    },
                    {
                      "functionCall": {
                        "id": "b",
                        "name": "look",
                        "args": {
                          "at": 1
                        }
                      },
                      "thoughtSignature": "sig-b"
                    }
                  ]
                },
                {
                  "role": "user",
                  "parts": [
                    {
                      "functionResponse": {
                        "name": "look",
                        "response": {
                          "success": true,
                          "data": [
                            "seen"
                          ]
                        },
                        "id": "a"
                      }
                    },
                    {
                      "functionResponse": {
                        "name": "look",
                        "response": {
                          "success": true,
                          "data": [
                            "seen"
                          ]
                        },
                        "id": "b"
                      }
                    }
                  ]
                },
                {
                  "role": "user",
                  "parts": [
                    {
                      "text": "And?"
                    }
                  ]
                }
              ]
            }"#]],
    );
}

#[test]
fn another_models_state_is_left_out_and_reported() {
    let (body, losses) = encoded(&conversation("gemini-2.5-flash"), "gemini-3.8-flash");
    expect![[r#"
        {"role":"model","parts":[{"functionCall":{"name":"look","args":{"at":0}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"look","args":{"at":1}}}]}
        {"role":"user","parts":[{"functionResponse":{"name":"look","response":{"success":true,"data":["seen"]}}},{"functionResponse":{"name":"look","response":{"success":true,"data":["seen"]}}}]}
        state of gemini/gemini-2.5-flash on a tool call was left out"#]].assert_eq(&format!(
        "{}\n{}\n{}",
        body["contents"][1],
        body["contents"][2],
        losses.join("\n")
    ));
    // Families that check no signatures get none made up.
    let (body, _) = encoded(&conversation("gemini-3.8-flash"), "gemini-2.0-flash");
    assert!(!body.to_string().contains("thoughtSignature"));
}

#[test]
fn settings() {
    let mut request = GenerateRequest::new(vec![Message::user("?").unwrap()]);
    let settings = |request: &GenerateRequest, model: &str| {
        let (body, losses) = encoded(request, model);
        format!("{} {losses:?}", body["generationConfig"])
    };
    expect![[r#"{"temperature":0.0,"maxOutputTokens":1024} []"#]]
        .assert_eq(&settings(&request, "gemini-2.0-flash"));
    expect![[r#"{"maxOutputTokens":17408} []"#]].assert_eq(&settings(&request, "gemini-3.8-flash"));
    request.config.temperature = Some(Temperature::new(0.5).unwrap());
    request.config.top_p = Some(TopP::new(0.9).unwrap());
    request.config.top_k = Some(TopK::new(40).unwrap());
    request.config.max_tokens = Some(MaxTokens::new(60_000).unwrap());
    request.response_schema =
        Some(json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}));
    expect![[r#"{"temperature":0.5,"topP":0.9,"topK":40,"maxOutputTokens":65536,"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"a":{"type":"string"}}}} ["max_tokens 60000 was sent as 65536: the vendor counts thinking inside it", "the response schema was sent without pattern"]"#]].assert_eq(&settings(&request, "gemini-3.8-flash"));
}

#[test]
fn images() {
    let image = |source| Part::ours(Content::Image { source });
    let parts = vec![
        image(ImageSource::Base64 {
            media_type: "image/png".into(),
            data: "AAAA".into(),
        }),
        image(ImageSource::Url("https://example.com/a.JPG?x=1".into())),
        image(ImageSource::Url("data:image/gif;base64,BBBB".into())),
        image(ImageSource::Url("https://example.com/picture".into())),
    ];
    let (body, _) = encoded(
        &GenerateRequest::new(vec![Message::new(Role::User, parts).unwrap()]),
        "gemini-2.0-flash",
    );
    expect![[r#"[{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"fileData":{"mimeType":"image/jpeg","fileUri":"https://example.com/a.JPG?x=1"}},{"inlineData":{"mimeType":"image/gif","data":"BBBB"}},{"fileData":{"fileUri":"https://example.com/picture"}}]"#]].assert_eq(&body["contents"][0]["parts"].to_string());
}

#[test]
fn what_cannot_work_is_not_sent() {
    let refused = |request: &GenerateRequest, model: &str| {
        let model = gemini(model);
        request::encode(request, &model, &family::for_model(&model.name), true)
            .unwrap_err()
            .to_string()
    };
    let mut request = conversation("gemini-2.5-flash");
    request.response_schema = Some(json!({"type": "object"}));
    expect![
        "gemini rejected the request: this model takes a response schema or tools, not both in one request"
    ]
    .assert_eq(&refused(&request, "gemini-2.5-flash"));
    let only_system = GenerateRequest::new(vec![Message::system("x").unwrap()]);
    expect!["gemini rejected the request: there is nothing to answer: the transcript has no message besides the instruction"].assert_eq(&refused(&only_system, "gemini-2.5-flash"));
}

#[test]
fn a_configuration_that_cannot_work_is_refused() {
    let transport = Transport::new().unwrap();
    let connection = |key: &str| Connection::new(transport.clone()).with_key(key.to_owned().into());
    let at = |base: &str| Connection {
        base_url: Some(base.parse().unwrap()),
        ..connection("k")
    };
    assert_eq!(
        model("gemini-x", connection(" \n")).unwrap_err().code(),
        "auth"
    );
    assert_eq!(
        model("gemini-x", Connection::new(transport.clone()))
            .unwrap_err()
            .code(),
        "auth"
    );
    assert_eq!(
        model(" ", connection("k")).unwrap_err().code(),
        "bad_request"
    );
    assert_eq!(
        model("models/", connection("k")).unwrap_err().code(),
        "bad_request"
    );
    assert_eq!(
        model("gemini-x", at("file:///x")).unwrap_err().code(),
        "bad_request"
    );
    let model = model("models/gemini-2.5-pro", connection("k")).unwrap();
    assert_eq!(model.id().to_string(), "gemini/gemini-2.5-pro");
    assert!(!format!("{model:?}").contains("\"k\""));
}

#[test]
fn a_model_of_vertex_ai_is_of_its_family_by_the_end_of_its_name() {
    let row = Provider::find("vertex-ai").unwrap();
    let connection = Connection::new(Transport::new().unwrap()).with_key("t".to_owned().into());
    let full = "projects/p/locations/us-central1/publishers/google/models/gemini-3.8-flash";
    let there = row.model(full, connection.clone()).unwrap();
    let here = model("gemini-3.8-flash", connection).unwrap();
    assert_eq!(there.capabilities(), here.capabilities());
    assert_eq!(there.id().name, full);
}
