//! The provider adapters against an independent implementation: llama.cpp's server, which speaks
//! the APIs of three vendors, with a small model on this machine. The binary is the one that ships.
//!
//! The checks concern the format of an answer only (text, tool calls, token counts), because a
//! small model may well answer wrongly.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::command::{Failure, fail_with, kill, output, pip_install, root, target};
use crate::steps::{Outcome, Steps};

/// The Python package that contains the server.
const PACKAGE: &str = "xllamacpp==2026.10.11549";
pub(crate) const KEY: &str = "key-of-a-test";
const TOOL: &str = "get_weather";
/// The chat template, beside the program that starts the server.
const TEMPLATE: &str = "template.jinja";

/// Providers whose API the server implements, each with the environment variable of its key.
const APIS: &[Api] = &[
    Api {
        provider: "llama-cpp",
        key_variable: "LLAMA_API_KEY",
    },
    Api {
        provider: "openai",
        key_variable: "OPENAI_API_KEY",
    },
    Api {
        provider: "anthropic",
        key_variable: "ANTHROPIC_API_KEY",
    },
];

struct Api {
    provider: &'static str,
    key_variable: &'static str,
}

/// Installs and starts the server with these weights, then sends all requests through each adapter.
pub(crate) fn suite(steps: &Steps, adjutant: &Path, weights: &Path) {
    let mut server = None;
    steps.skippable_step("llama.cpp server: start", || match package() {
        Ok(package) => {
            let started = Server::start(&package, weights, TEMPLATE)?;
            println!("    {}", started.address);
            server = Some(started);
            Ok(Outcome::Passed)
        }
        Err(reason) => Ok(Outcome::NotRun(reason)),
    });
    let Some(server) = server else { return };
    for api in APIS {
        steps.step(&format!("llama.cpp server: {}", api.provider), || {
            let mut found = Vec::new();
            for case in cases() {
                let result = send(adjutant, &server.address, api, &case);
                found.extend(
                    result
                        .err()
                        .map(|reason| format!("{}: {reason}", case.name)),
                );
            }
            fail_with(found)
        });
    }
    // A step of its own, so that the server's CPU time is counted.
    steps.step("llama.cpp server: stop", || {
        drop(server);
        Ok(())
    });
}

/// Downloads the server while other steps run. A failure is reported here and again by [`suite`].
pub(crate) fn prepare(steps: &Steps) {
    steps.skippable_step("llama.cpp server: download", || match package() {
        Ok(_) => Ok(Outcome::Passed),
        Err(reason) => Ok(Outcome::NotRun(reason)),
    });
}

/// Returns the folder of the Python package, and installs it there if it is missing.
pub(crate) fn package() -> Result<PathBuf, Failure> {
    let folder = target().join("xtask").join(PACKAGE);
    if !folder.join("xllamacpp").is_dir() {
        output(pip_install(&folder).args(["--no-deps", PACKAGE]))?;
    }
    Ok(folder)
}

/// A running server, killed on drop.
pub(crate) struct Server {
    process: Child,
    pub(crate) address: String,
}

impl Server {
    /// Starts the server and waits until the model is loaded. `template`: the file of a chat
    /// template; empty for the one of the model.
    pub(crate) fn start(package: &Path, weights: &Path, template: &str) -> Result<Self, Failure> {
        let files = root().join("xtask/src/server");
        let template = match template {
            "" => PathBuf::new(),
            file => files.join(file),
        };
        let mut command = Command::new("python3");
        command
            .arg(files.join("serve.py"))
            .arg(package)
            .arg(weights)
            .arg(template)
            .arg(KEY);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let failed = |error: std::io::Error| format!("the server cannot be started: {error}");
        let process = command.spawn().map_err(failed)?;
        let mut server = Self {
            process,
            address: String::new(),
        };
        let stdout = server
            .process
            .stdout
            .take()
            .ok_or("the server has no output")?;
        BufReader::new(stdout)
            .read_line(&mut server.address)
            .map_err(failed)?;
        server.address = server.address.trim().to_owned();
        if server.address.starts_with("http") {
            Ok(server)
        } else {
            Err(format!(
                "the server printed no address: {:?}",
                server.address
            ))
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        kill(&mut self.process);
    }
}

/// A request, and the kind of answer it must get.
struct Case {
    name: String,
    request: Value,
    key: &'static str,
    expected: Expected,
}

#[derive(Clone, Copy)]
enum Expected {
    /// A complete text.
    Text,
    /// A text that may be cut off by `max_tokens`. llama.cpp reports such an OpenAI Response as
    /// completed (checked 2026-11-22), so both finish reasons are accepted.
    TruncatedText,
    /// Tool calls whose arguments have the right type.
    Call,
    /// A complete text or valid tool calls: after a tool result, a small model may do either.
    TextOrCall,
    /// An error of this kind, with this exit code of the process.
    Error(&'static str, i32),
}

fn cases() -> Vec<Case> {
    let user = |text: &str| json!({ "role": "user", "text": text });
    let tool = json!({
        "name": TOOL, "description": "Gets the weather of a city.",
        "parameters": {
            "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"]
        }
    });
    let call = json!({ "id": "call_1", "name": TOOL, "args": { "city": "Rome" } });
    let with_result = [
        user("What is the weather in Rome?"),
        json!({ "role": "assistant", "text": "", "tool_calls": [call] }),
        json!({ "role": "tool", "id": "call_1", "name": TOOL, "content": { "sky": "sunny" } }),
    ];
    // Temperature 0 selects the most likely token, so that runs repeat.
    let request = |messages: &[Value], max_tokens: u32| json!({ "messages": messages, "max_tokens": max_tokens, "temperature": 0 });
    let with_tool = |mut request: Value| {
        request["tools"] = json!([tool]);
        request
    };
    let oslo = with_tool(request(
        &[user("What is the weather in Oslo? Call get_weather.")],
        60,
    ));
    let hello = request(&[user("Say hello.")], 40);
    let count = request(&[user("Count from one to twenty in words.")], 4);
    // The server's context window is 4,096 tokens, and every word is at least one.
    let long = request(&[user(&"word ".repeat(6000))], 4);
    let in_both_modes = [
        ("text", hello.clone(), Expected::Text),
        ("text cut off by max_tokens", count, Expected::TruncatedText),
        ("a tool call", oslo, Expected::Call),
        (
            "a tool result",
            with_tool(request(&with_result, 60)),
            Expected::TextOrCall,
        ),
    ];
    let mut cases = Vec::new();
    for (name, request, expected) in in_both_modes {
        let mut streamed = request.clone();
        streamed["stream"] = true.into();
        cases.push(Case {
            name: name.to_owned(),
            request,
            key: KEY,
            expected,
        });
        cases.push(Case {
            name: format!("{name}, streamed"),
            request: streamed,
            key: KEY,
            expected,
        });
    }
    let too_long = Expected::Error("context_too_long", 6);
    cases.push(Case {
        name: "a context that is too long".to_owned(),
        request: long,
        key: KEY,
        expected: too_long,
    });
    let refused = Expected::Error("auth", 3);
    cases.push(Case {
        name: "a wrong key".to_owned(),
        request: hello,
        key: "wrong",
        expected: refused,
    });
    cases
}

fn send(adjutant: &Path, address: &str, api: &Api, case: &Case) -> Result<(), Failure> {
    let mut command = Command::new(adjutant);
    command
        .args(["models", "call", "--base-url", address, "-m"])
        .arg(format!("{}/local", api.provider));
    // The default timeout of a cloud's adapter is too short for a model on this machine.
    command
        .env("LLM_TIMEOUT", "120")
        .env(api.key_variable, case.key)
        .current_dir(root());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let failed = |error: std::io::Error| format!("adjutant cannot be run: {error}");
    let mut process = command.spawn().map_err(failed)?;
    if let Some(mut input) = process.stdin.take() {
        input
            .write_all(case.request.to_string().as_bytes())
            .map_err(failed)?;
    }
    let ended = process.wait_with_output().map_err(failed)?;
    let stdout = String::from_utf8_lossy(&ended.stdout);
    let last = stdout.lines().last().unwrap_or_default();
    println!("    {}: {last}", case.name);
    let answer: Value = serde_json::from_str(last).map_err(|error| format!("{error}: {last:?}"))?;
    check_answer(&answer, ended.status.code(), case.expected)
        .map_err(|reason| format!("{reason}: {last}"))
}

/// Returns an error that names the first property in which an answer differs from the expected one.
fn check_answer(answer: &Value, exit: Option<i32>, expected: Expected) -> Result<(), Failure> {
    let must = |holds: bool, message: &str| {
        if holds {
            Ok(())
        } else {
            Err(message.to_owned())
        }
    };
    let has_text = answer["text"]
        .as_str()
        .is_some_and(|text| !text.trim().is_empty());
    let is_counted = |counter: &str| {
        answer["usage"][counter]
            .as_u64()
            .is_some_and(|tokens| tokens > 0)
    };
    let calls = answer["tool_calls"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let is_valid = |call: &Value| call["name"] == TOOL && call["args"]["city"].is_string();
    let has_calls =
        !calls.is_empty() && calls.iter().all(is_valid) && answer["finish"] == "tool_calls";
    let is_complete = calls.is_empty() && answer["finish"] == "stop";
    match expected {
        Expected::Text => must(has_text && is_complete, "no complete text")?,
        Expected::TruncatedText => must(
            has_text && (is_complete || answer["finish"] == "max_tokens"),
            "no complete text",
        )?,
        Expected::Call => must(has_calls, "no valid tool call")?,
        Expected::TextOrCall => must(
            has_calls || has_text && is_complete,
            "neither a complete text nor a valid tool call",
        )?,
        Expected::Error(kind, code) => {
            must(
                answer["error"]["kind"] == kind,
                "an unexpected kind of error",
            )?;
            return must(exit == Some(code), "an unexpected exit code");
        }
    }
    must(answer["error"].is_null(), "an error")?;
    must(exit == Some(0), "an exit code other than 0")?;
    must(
        is_counted("input") && is_counted("output"),
        "tokens are not counted",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: Value, exit: i32, expected: Expected, result: Result<(), &str>) {
        assert_eq!(
            check_answer(&answer, Some(exit), expected),
            result.map_err(str::to_owned),
            "{answer}"
        );
    }

    fn answer(text: &str, calls: Value, finish: &str) -> Value {
        json!({ "text": text, "tool_calls": calls, "finish": finish, "usage": { "input": 9, "output": 1 }, "error": null })
    }

    #[test]
    fn a_text_is_complete_and_its_tokens_are_counted() {
        let hello = answer("Hello", json!([]), "stop");
        check(hello.clone(), 0, Expected::Text, Ok(()));
        check(hello.clone(), 0, Expected::TextOrCall, Ok(()));
        check(
            hello.clone(),
            5,
            Expected::Text,
            Err("an exit code other than 0"),
        );
        check(
            answer(" ", json!([]), "stop"),
            0,
            Expected::Text,
            Err("no complete text"),
        );
        let cut = answer("Hel", json!([]), "max_tokens");
        check(cut.clone(), 0, Expected::TruncatedText, Ok(()));
        check(cut, 0, Expected::Text, Err("no complete text"));
        let mut uncounted = hello;
        uncounted["usage"]["input"] = Value::Null;
        check(uncounted, 0, Expected::Text, Err("tokens are not counted"));
    }

    #[test]
    fn a_call_names_the_tool_and_has_valid_arguments() {
        let call = |name: &str, args: Value| {
            answer("", json!([{ "name": name, "args": args }]), "tool_calls")
        };
        check(
            call(TOOL, json!({ "city": "Oslo" })),
            0,
            Expected::Call,
            Ok(()),
        );
        check(
            call(TOOL, json!({ "city": "Oslo" })),
            0,
            Expected::TextOrCall,
            Ok(()),
        );
        check(
            call(TOOL, json!({})),
            0,
            Expected::Call,
            Err("no valid tool call"),
        );
        check(
            call(TOOL, json!({})),
            0,
            Expected::TextOrCall,
            Err("neither a complete text nor a valid tool call"),
        );
        check(
            call("other", json!({ "city": "Oslo" })),
            0,
            Expected::Call,
            Err("no valid tool call"),
        );
        check(
            answer("Sunny.", json!([]), "stop"),
            0,
            Expected::Call,
            Err("no valid tool call"),
        );
    }

    #[test]
    fn an_error_has_the_expected_kind_and_exit_code() {
        let refused = json!({ "text": "", "finish": "error", "error": { "kind": "auth" } });
        check(refused.clone(), 3, Expected::Error("auth", 3), Ok(()));
        check(
            refused.clone(),
            5,
            Expected::Error("auth", 3),
            Err("an unexpected exit code"),
        );
        check(
            refused,
            3,
            Expected::Error("network", 3),
            Err("an unexpected kind of error"),
        );
    }
}
