//! The adapters against somebody else's server: llama.cpp's own, which speaks three vendors'
//! languages, with a small model on this machine. The binary is the one that ships.
//!
//! Asserted is what is valid, never what is clever: a small model is no reference.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::command::{Failure, end, output, root, target};
use crate::steps::{Ended, Steps};

/// The package that carries the server.
const PACKAGE: &str = "xllamacpp==2026.10.11549";
const KEY: &str = "key-of-a-test";
const TOOL: &str = "get_weather";

/// The API that is spoken to the server, and the variable that an adapter reads its key from.
const LANGUAGES: &[(&str, &str)] = &[
    ("llama-cpp", "LLAMA_API_KEY"),
    ("openai", "OPENAI_API_KEY"),
    ("anthropic", "ANTHROPIC_API_KEY"),
];

/// Gets the server, starts it with these weights, and asks it through every adapter it speaks the
/// language of.
pub(crate) fn suite(steps: &Steps, adjutant: &Path, weights: &Path) {
    let mut server = None;
    steps.may_be_skipped("a real server: llama.cpp's own", || match package() {
        Ok(package) => {
            let started = Server::start(&package, weights)?;
            println!("    {}", started.address);
            server = Some(started);
            Ok(Ended::Ok)
        }
        Err(cause) => Ok(Ended::NotRun(cause)),
    });
    let Some(server) = server else { return };
    for (language, key_variable) in LANGUAGES {
        steps.step(&format!("a real server: as {language}"), || {
            let mut found = Vec::new();
            for case in cases() {
                let asked = ask(adjutant, &server.address, (language, key_variable), &case);
                found.extend(asked.err().map(|reason| format!("{}: {reason}", case.name)));
            }
            if found.is_empty() {
                Ok(())
            } else {
                Err(found.join("\n"))
            }
        });
    }
    // It is a step so that the server's own processor time is counted.
    steps.step("a real server: its end", || {
        drop(server);
        Ok(())
    });
}

/// Gets the server, if it can be had: [`suite`] says if not.
pub(crate) fn prepare(steps: &Steps) {
    steps.may_be_skipped("a real server: what it needs", || match package() {
        Ok(_) => Ok(Ended::Ok),
        Err(cause) => Ok(Ended::NotRun(cause)),
    });
}

/// The folder of the package, installed there if it is not yet.
fn package() -> Result<PathBuf, Failure> {
    let folder = target().join("xtask").join(PACKAGE);
    if !folder.join("xllamacpp").is_dir() {
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--target",
        ]);
        output(pip.arg(&folder).arg(PACKAGE))?;
    }
    Ok(folder)
}

/// A running server. It ends with this.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    /// Waits until the model is loaded.
    fn start(package: &Path, weights: &Path) -> Result<Self, Failure> {
        let files = root().join("xtask/src/server");
        let mut command = Command::new("python3");
        command
            .arg(files.join("serve.py"))
            .arg(package)
            .arg(weights)
            .arg(files.join("template.jinja"))
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
        let said = server
            .process
            .stdout
            .take()
            .ok_or("the server has no output")?;
        BufReader::new(said)
            .read_line(&mut server.address)
            .map_err(failed)?;
        server.address = server.address.trim().to_owned();
        if server.address.starts_with("http") {
            Ok(server)
        } else {
            Err(format!("the server gives no address: {:?}", server.address))
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// A request, and what its answer has to be.
struct Case {
    name: String,
    request: Value,
    key: &'static str,
    wanted: Wanted,
}

#[derive(Clone, Copy)]
enum Wanted {
    /// Words.
    Words,
    /// Words to a bound. llama.cpp calls such a Response completed (checked 2026-11-22), so either
    /// end is right.
    Bounded,
    /// A call that fits.
    Call,
    /// Words, or a call that fits.
    Either,
    /// No answer: this kind of error, this exit code.
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
    let called = json!({ "id": "call_1", "name": TOOL, "args": { "city": "Rome" } });
    let told = [
        user("What is the weather in Rome?"),
        json!({ "role": "assistant", "text": "", "tool_calls": [called] }),
        json!({ "role": "tool", "id": "call_1", "name": TOOL, "content": { "sky": "sunny" } }),
    ];
    let asks = |messages: &[Value], max_tokens: u32| json!({ "messages": messages, "max_tokens": max_tokens, "temperature": 0 });
    let with_tool = |mut request: Value| {
        request["tools"] = json!([tool]);
        request
    };
    let oslo = with_tool(asks(
        &[user("What is the weather in Oslo? Call get_weather.")],
        60,
    ));
    let hello = asks(&[user("Say hello.")], 40);
    let count = asks(&[user("Count from one to twenty in words.")], 4);
    // More than the server's window of 4,096 tokens, in one word each.
    let long = asks(&[user(&"word ".repeat(6000))], 4);
    let both = [
        ("words", hello.clone(), Wanted::Words),
        ("words up to a bound", count, Wanted::Bounded),
        ("a call", oslo, Wanted::Call),
        ("a result", with_tool(asks(&told, 60)), Wanted::Either),
    ];
    let mut cases = Vec::new();
    for (name, request, wanted) in both {
        let mut streamed = request.clone();
        streamed["stream"] = true.into();
        cases.push(Case {
            name: name.to_owned(),
            request,
            key: KEY,
            wanted,
        });
        cases.push(Case {
            name: format!("{name}, streamed"),
            request: streamed,
            key: KEY,
            wanted,
        });
    }
    let too_long = Wanted::Error("context_too_long", 6);
    cases.push(Case {
        name: "more than fits".to_owned(),
        request: long,
        key: KEY,
        wanted: too_long,
    });
    let refused = Wanted::Error("auth", 3);
    cases.push(Case {
        name: "a wrong key".to_owned(),
        request: hello,
        key: "wrong",
        wanted: refused,
    });
    cases
}

fn ask(
    adjutant: &Path,
    address: &str,
    (language, key_variable): (&str, &str),
    case: &Case,
) -> Result<(), Failure> {
    let mut command = Command::new(adjutant);
    command
        .args(["models", "call", "--base-url", address, "-m"])
        .arg(format!("{language}/local"));
    // The time of a model on this machine, also where the language is a cloud's.
    command
        .env("LLM_TIMEOUT", "120")
        .env(key_variable, case.key)
        .current_dir(root());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let failed = |error: std::io::Error| format!("it cannot be asked: {error}");
    let mut process = command.spawn().map_err(failed)?;
    if let Some(mut input) = process.stdin.take() {
        input
            .write_all(case.request.to_string().as_bytes())
            .map_err(failed)?;
    }
    let ended = process.wait_with_output().map_err(failed)?;
    let said = String::from_utf8_lossy(&ended.stdout);
    let last = said.lines().last().unwrap_or_default();
    println!("    {}: {last}", case.name);
    let answer: Value = serde_json::from_str(last).map_err(|error| format!("{error}: {last:?}"))?;
    fits(&answer, ended.status.code(), case.wanted).map_err(|reason| format!("{reason}: {last}"))
}

/// Returns an error unless an answer is the expected one.
fn fits(answer: &Value, exit: Option<i32>, wanted: Wanted) -> Result<(), Failure> {
    let must = |holds: bool, words: &str| if holds { Ok(()) } else { Err(words.to_owned()) };
    let said = answer["text"]
        .as_str()
        .is_some_and(|text| !text.trim().is_empty());
    let counted = |counter: &str| {
        answer["usage"][counter]
            .as_u64()
            .is_some_and(|tokens| tokens > 0)
    };
    let calls = answer["tool_calls"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let fitting = |call: &Value| call["name"] == TOOL && call["args"]["city"].is_string();
    let called = !calls.is_empty() && calls.iter().all(fitting) && answer["finish"] == "tool_calls";
    let ended = calls.is_empty() && answer["finish"] == "stop";
    match wanted {
        Wanted::Words => must(said && ended, "no words with their end")?,
        Wanted::Bounded => must(
            said && (ended || answer["finish"] == "max_tokens"),
            "no words with their end",
        )?,
        Wanted::Call => must(called, "no call that fits")?,
        Wanted::Either => must(
            called || said && ended,
            "neither words nor a call that fits",
        )?,
        Wanted::Error(kind, code) => {
            must(answer["error"]["kind"] == kind, "another error")?;
            return must(exit == Some(code), "another exit code");
        }
    }
    must(answer["error"].is_null(), "an error")?;
    must(exit == Some(0), "an exit code other than 0")?;
    must(
        counted("input") && counted("output"),
        "tokens are not counted",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: Value, exit: i32, wanted: Wanted, expected: Result<(), &str>) {
        assert_eq!(
            fits(&answer, Some(exit), wanted),
            expected.map_err(str::to_owned),
            "{answer}"
        );
    }

    fn answer(text: &str, calls: Value, finish: &str) -> Value {
        json!({ "text": text, "tool_calls": calls, "finish": finish, "usage": { "input": 9, "output": 1 }, "error": null })
    }

    #[test]
    fn words_have_an_end_and_are_counted() {
        let hello = answer("Hello", json!([]), "stop");
        check(hello.clone(), 0, Wanted::Words, Ok(()));
        check(hello.clone(), 0, Wanted::Either, Ok(()));
        check(
            hello.clone(),
            5,
            Wanted::Words,
            Err("an exit code other than 0"),
        );
        check(
            answer(" ", json!([]), "stop"),
            0,
            Wanted::Words,
            Err("no words with their end"),
        );
        let cut = answer("Hel", json!([]), "max_tokens");
        check(cut.clone(), 0, Wanted::Bounded, Ok(()));
        check(cut, 0, Wanted::Words, Err("no words with their end"));
        let mut uncounted = hello;
        uncounted["usage"]["input"] = Value::Null;
        check(uncounted, 0, Wanted::Words, Err("tokens are not counted"));
    }

    #[test]
    fn calls_are_of_the_tool_and_fit_it() {
        let call = |name: &str, args: Value| {
            answer("", json!([{ "name": name, "args": args }]), "tool_calls")
        };
        check(
            call(TOOL, json!({ "city": "Oslo" })),
            0,
            Wanted::Call,
            Ok(()),
        );
        check(
            call(TOOL, json!({ "city": "Oslo" })),
            0,
            Wanted::Either,
            Ok(()),
        );
        check(
            call(TOOL, json!({})),
            0,
            Wanted::Call,
            Err("no call that fits"),
        );
        check(
            call(TOOL, json!({})),
            0,
            Wanted::Either,
            Err("neither words nor a call that fits"),
        );
        check(
            call("other", json!({ "city": "Oslo" })),
            0,
            Wanted::Call,
            Err("no call that fits"),
        );
        check(
            answer("Sunny.", json!([]), "stop"),
            0,
            Wanted::Call,
            Err("no call that fits"),
        );
    }

    #[test]
    fn errors_have_their_kind_and_exit_code() {
        let refused = json!({ "text": "", "finish": "error", "error": { "kind": "auth" } });
        check(refused.clone(), 3, Wanted::Error("auth", 3), Ok(()));
        check(
            refused.clone(),
            5,
            Wanted::Error("auth", 3),
            Err("another exit code"),
        );
        check(
            refused,
            3,
            Wanted::Error("network", 3),
            Err("another error"),
        );
    }
}
