//! An MCP server for tests that does what real ones do on bad days. It speaks JSON-RPC by hand, so
//! that what it sends is what the tests mean and not what a library allows.
//!
//! `odd_server MODE`: `usual`, or how its start goes wrong. Its tools say what they do by their
//! names.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a program for tests only: it breaks loudly, and shows its environment"
)]

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

fn main() {
    let mode = std::env::args().nth(1).unwrap_or_default();
    match mode.as_str() {
        "dies" => {
            eprintln!("reading the configuration");
            eprintln!("fatal: no token \u{1b}[31mfound\u{1b}[0m");
            std::process::exit(3);
        }
        "noisy" => {
            println!("Welcome to the odd server!\n");
            println!("[not, json");
        }
        "loud" => eprintln!("listening on standard input"),
        // Installs something first, and tells so.
        "busy" => {
            for step in 0..60 {
                eprintln!("installing {step}");
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        }
        // Says nothing until the file is there.
        "waits" => {
            let file = std::env::args().nth(2).unwrap();
            while !std::path::Path::new(&file).exists() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
        "newer" | "usual" | "silent" | "stubborn" | "refusing" | "endless" | "circle"
        | "empty_pages" | "unlisted" | "schemas" | "no_tools" | "ours" => {}
        other => panic!("no mode {other:?}"),
    }
    let mut server = Server {
        mode,
        received: Vec::new(),
        hanging: Vec::new(),
        renamed: false,
        asked: Vec::new(),
    };
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let message: Value = serde_json::from_str(&line).unwrap();
        server.received.push(message.clone());
        server.take(&message);
    }
    // What `finish` of a process has to cope with.
    if server.mode == "stubborn" {
        loop {
            std::thread::park();
        }
    }
}

struct Server {
    mode: String,
    received: Vec<Value>,
    /// Requests that wait for their cancellation, each with whether it is answered then.
    hanging: Vec<(Value, bool)>,
    renamed: bool,
    /// A call that waits until the client has answered three questions.
    asked: Vec<Value>,
}

impl Server {
    fn take(&mut self, message: &Value) {
        let id = message["id"].clone();
        match message["method"].as_str() {
            Some("initialize") => self.greet(&id, message),
            Some("server/discover") if self.mode == "newer" => answer(
                &id,
                json!({
                    "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                    "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                    "serverInfo": {"name": "odd", "version": "2"}
                }),
            ),
            Some("tools/list") => self.list(&id, message),
            Some("tools/call") => self.call(&id, message),
            Some("notifications/cancelled") => {
                let cancelled = &message["params"]["requestId"];
                for (id, answers) in std::mem::take(&mut self.hanging) {
                    if id != *cancelled {
                        self.hanging.push((id, answers));
                    } else if answers {
                        text(&id, "stopped half-way");
                    }
                }
            }
            Some("ping") => answer(&id, json!({})),
            Some(_) if id.is_null() => {}
            Some(_) => refuse(&id, -32601, "no such method"),
            None => self.answered(message),
        }
    }

    fn greet(&self, id: &Value, message: &Value) {
        match self.mode.as_str() {
            "silent" => {}
            "refusing" => refuse(id, -32000, "not on Sundays"),
            "newer" => refuse(id, -32601, "initialize is of the past"),
            mode => {
                let ours = if mode == "ours" {
                    json!({"adjutant": {}})
                } else {
                    Value::Null
                };
                let version = &message["params"]["protocolVersion"];
                let capabilities = if mode == "no_tools" {
                    json!({})
                } else {
                    json!({"tools": {"listChanged": true}, "experimental": ours})
                };
                let software = json!({"name": "odd", "version": "1"});
                answer(
                    id,
                    json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": software}),
                );
            }
        }
    }

    fn list(&self, id: &Value, message: &Value) {
        let tools = match self.mode.as_str() {
            "no_tools" => return refuse(id, -32601, "no tools here"),
            "unlisted" => return,
            "endless" => {
                let page: u64 = message["params"]["cursor"]
                    .as_str()
                    .unwrap_or("0")
                    .parse()
                    .unwrap();
                let tools: Vec<Value> = (0..10)
                    .map(|n| json!({"name": format!("t{page}_{n}"), "inputSchema": {}}))
                    .collect();
                return answer(
                    id,
                    json!({"tools": tools, "nextCursor": (page + 1).to_string()}),
                );
            }
            // A new cursor each time, and nothing on the pages.
            "empty_pages" => {
                let page = message["params"]["cursor"].as_str().unwrap_or("p");
                return answer(id, json!({"tools": [], "nextCursor": format!("{page}.")}));
            }
            "circle" => {
                let tool = |name: &str| json!({"name": name, "inputSchema": {}});
                let tools = [tool("a"), tool("b")];
                return answer(id, json!({"tools": tools, "nextCursor": "same"}));
            }
            "schemas" => schemas(),
            _ => self.tools(),
        };
        answer(id, json!({ "tools": tools }));
    }

    fn tools(&self) -> Vec<Value> {
        let text = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        let tool = |name: &str, hints: Value| json!({"name": name, "description": name, "inputSchema": text, "annotations": hints});
        let reads = json!({"readOnlyHint": true});
        let writes = json!({"destructiveHint": false});
        let echo = if self.renamed { "echo_2" } else { "echo" };
        vec![
            tool(echo, reads.clone()),
            tool("received", reads.clone()),
            tool("variables", reads.clone()),
            tool("hang_reading", reads.clone()),
            tool("die_reading", reads),
            tool("hang", writes.clone()),
            tool("stop_when_told", writes.clone()),
            tool("die", writes.clone()),
            tool("fail", writes.clone()),
            tool("refuse", writes.clone()),
            tool("nonsense", writes.clone()),
            tool("bare", writes.clone()),
            json!({
                "name": "misfit", "inputSchema": {}, "annotations": {"readOnlyHint": true},
                "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
            }),
            tool("huge", writes.clone()),
            tool("too_huge", writes.clone()),
            tool("change", writes.clone()),
            tool("change_nothing", writes.clone()),
            tool("log_much", writes.clone()),
            tool("tell_progress", writes.clone()),
            tool("ask", writes),
            json!({
                "name": "Delete-Everything", "title": "Delete \u{1b}everything",
                "description": "Deletes.", "inputSchema": {}
            }),
            json!({
                "name": "whoami", "description": "Says who.", "annotations": {"readOnlyHint": true},
                "inputSchema": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}
            }),
            json!({
                "name": "typed", "description": "Takes every type.", "annotations": {"readOnlyHint": true},
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string"},
                        "count": {"type": "integer"},
                        "all": {"type": "boolean"},
                        "level": {"type": "string", "enum": ["error", "warning"]},
                        "tags": {"type": "array", "items": {"type": "string"}},
                        "maybe": {"type": ["string", "null"]}
                    },
                    "required": ["id"],
                    "additionalProperties": false
                }
            }),
        ]
    }

    fn call(&mut self, id: &Value, message: &Value) {
        let arguments = &message["params"]["arguments"];
        match message["params"]["name"].as_str().unwrap() {
            "echo" | "echo_2" | "whoami" | "typed" => answer(
                id,
                json!({"content": [{"type": "text", "text": arguments.to_string()}], "structuredContent": arguments}),
            ),
            "received" => answer(
                id,
                json!({"content": [], "structuredContent": {"received": self.received}}),
            ),
            "variables" => {
                let names: Vec<String> = std::env::vars_os()
                    .map(|(name, _)| name.to_string_lossy().into_owned())
                    .collect();
                let place = std::env::current_dir().unwrap();
                answer(
                    id,
                    json!({"content": [], "structuredContent": {
                        "names": names, "token": std::env::var_os("TOKEN").map(|token| token.to_string_lossy().into_owned()), "place": place, "pid": std::process::id()
                    }}),
                );
            }
            "hang" | "hang_reading" => self.hanging.push((id.clone(), false)),
            "stop_when_told" => self.hanging.push((id.clone(), true)),
            "die" | "die_reading" => {
                eprintln!("out of memory, or so");
                std::process::abort();
            }
            "fail" => answer(
                id,
                json!({"isError": true, "content": [{"type": "text", "text": "no such \u{1b}[2Jrepository"}]}),
            ),
            "refuse" => refuse(id, -32602, "text must be a haiku"),
            "bare" => answer(id, json!({})),
            "misfit" => answer(
                id,
                json!({"content": [], "structuredContent": {"n": "many"}}),
            ),
            "nonsense" => answer(id, json!({"content": "none"})),
            "huge" => text(id, &"x".repeat(1_000_000)),
            "too_huge" => text(id, &"x".repeat(17_000_000)),
            "change" => {
                self.renamed = true;
                send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                text(id, "changed");
            }
            "change_nothing" => {
                send(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                text(id, "the same");
            }
            "log_much" => {
                let params = json!({"level": "info", "data": "x".repeat(5_000)});
                let said =
                    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params});
                (0..2_000).for_each(|_| send(&said));
                text(id, "said");
            }
            "tell_progress" => {
                let params = json!({
                    "progressToken": message["params"]["_meta"]["progressToken"], "progress": 3, "total": 10,
                    "message": "reading\n\u{1b}a.txt",
                });
                send(
                    &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
                );
                self.hanging.push((id.clone(), true));
            }
            "ask" => {
                self.asked = vec![id.clone()];
                let sample = json!({"messages": [], "maxTokens": 10});
                let form = json!({"message": "your password?", "requestedSchema": {"type": "object", "properties": {}}});
                for (number, method, params) in [
                    (1, "sampling/createMessage", sample),
                    (2, "roots/list", json!({})),
                    (3, "elicitation/create", form),
                ] {
                    send(
                        &json!({"jsonrpc": "2.0", "id": format!("q{number}"), "method": method, "params": params}),
                    );
                }
            }
            "Delete-Everything" => text(id, "deleted"),
            other => refuse(id, -32602, &format!("no tool {other}")),
        }
    }

    /// The client has answered a question of ours.
    fn answered(&mut self, message: &Value) {
        if self.asked.is_empty() {
            return;
        }
        self.asked.push(message.clone());
        if self.asked.len() == 4 {
            let mut answers = std::mem::take(&mut self.asked);
            let id = answers.remove(0);
            answers.sort_by_key(|answer| answer["id"].to_string());
            answer(
                &id,
                json!({"content": [], "structuredContent": {"answers": answers}}),
            );
        }
    }
}

fn schemas() -> Vec<Value> {
    let remote =
        json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}});
    let bad = json!({"type": "object", "properties": {"a": {"type": "nonsense"}}});
    vec![
        json!({"name": "good", "inputSchema": {"type": "object"}}),
        json!({"name": "remote", "inputSchema": remote}),
        json!({"name": "later", "inputSchema": {}, "execution": {"taskSupport": "required"}}),
        json!({"name": "later_or_now", "inputSchema": {}, "execution": {"taskSupport": "optional"}}),
        json!({"name": "php", "inputSchema": {"type": "object", "properties": []}}),
        json!({"name": "bad", "inputSchema": bad}),
        json!({"name": "twice", "inputSchema": {}}),
        json!({"name": "twice", "inputSchema": {}}),
        json!({"name": "a.b", "inputSchema": {}}),
        json!({"name": "a-b", "inputSchema": {}}),
    ]
}

fn text(id: &Value, text: &str) {
    answer(id, json!({"content": [{"type": "text", "text": text}]}));
}

fn answer(id: &Value, result: Value) {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn refuse(id: &Value, code: i32, message: &str) {
    send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
}

fn send(message: &Value) {
    let mut out = std::io::stdout().lock();
    // The client may have gone.
    let _ = writeln!(out, "{message}").and_then(|()| out.flush());
}
