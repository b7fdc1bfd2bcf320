//! Schemas, patterns and documents of outsiders that would take for ever: the service refuses them,
//! answers others meanwhile, and afterwards computes nothing and keeps no memory of them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::Home;
use crate::service::{Reply, Serving, send};

/// Milliseconds of a window in which a service that has nothing to do is looked at.
const WINDOW: Duration = Duration::from_secs(1);
/// Clock ticks, a hundredth of a second each, that such a service may use in it.
const IDLE_TICKS: u64 = 25;

/// A field of `/proc/PID/status` in KiB.
fn kib(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Clock ticks that all threads of a process have computed.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    // utime and stime, the 14th and 15th of proc(5); the first two are before the bracket.
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Returns how many windows passed until the process computed next to nothing in one.
fn windows_until_idle(pid: u32) -> u32 {
    (1..)
        .find(|_| {
            let before = ticks(pid);
            std::thread::sleep(WINDOW);
            ticks(pid) - before <= IDLE_TICKS
        })
        .unwrap()
}

fn ask(serving: &Serving, message: &str, schema: &Value) -> Reply {
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}});
    let body = json!({
        "model": "adjutant", "response_format": format, "messages": [{"role": "user", "content": message}],
    });
    let authorization = format!("Bearer {}", serving.token());
    let headers = [
        ("Authorization", authorization.as_str()),
        ("Content-Type", "application/json"),
    ];
    send(
        &serving.address,
        "POST",
        "/v1/chat/completions",
        &headers,
        &body.to_string(),
    )
    .unwrap()
}

fn nested(levels: usize) -> String {
    format!("{{\"v\":{}1{}}}", "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn checks_that_are_out_of_budget_leave_nothing_behind() {
    let home = Home::new();
    let items: Vec<Value> = (0..40_000).map(|number| json!({ "n": number })).collect();
    let empty = vec![json!({}); 10_000];
    let text = |answer: String| json!({"repeat": true, "text": answer});
    let line = |word: &str, answer: String| {
        let mut line = text(answer);
        line["match"] = json!(word);
        line.to_string()
    };
    let script = [
        line("branches", nested(60)),
        line("deeper", nested(18)),
        line(
            "pattern",
            json!({"v": format!("{}!", "a".repeat(30_000))}).to_string(),
        ),
        line("unique", json!({ "v": items }).to_string()),
        line("names", json!({ "v": empty }).to_string()),
        line("well", json!({"v": "fits"}).to_string()),
        // The model is told what does not fit, and asked again.
        text("I have no other answer.".to_owned()).to_string(),
    ];
    let script: Vec<&str> = script.iter().map(String::as_str).collect();
    let model = home.script(&script);
    let mut command = home.serve_command(&model);
    let serving = Serving::start(command.env("ADJUTANT_SERVE_TURNS_AT_ONCE", "100"));
    let of =
        |schema: Value| json!({"type": "object", "properties": {"v": schema}, "required": ["v"]});
    let mut branching = of(json!({"$ref": "#/$defs/a"}));
    branching["$defs"] = json!({"a": {"anyOf": [
        {"type": "array", "items": {"$ref": "#/$defs/a"}},
        {"type": "array", "items": {"$ref": "#/$defs/a"}},
        {"const": "never"},
    ]}});
    let names: Vec<String> = (0..15_000).map(|number| format!("name {number}")).collect();
    let attacks = [
        ("branches", branching.clone()),
        ("deeper", branching),
        (
            "pattern",
            of(json!({"type": "string", "pattern": "(?<!x)(a+)+$"})),
        ),
        ("unique", of(json!({"type": "array", "uniqueItems": true}))),
        (
            "names",
            of(json!({"type": "array", "items": {"required": names}})),
        ),
    ];
    let well = of(json!({"type": "string", "maxLength": 10}));
    assert_eq!(ask(&serving, "well", &well).status, 200);
    windows_until_idle(serving.pid());
    let before = kib(serving.pid(), "VmRSS");

    let answered: Vec<(&str, Reply)> = std::thread::scope(|scope| {
        let asking: Vec<_> = attacks
            .iter()
            .flat_map(|attack| [attack; 3])
            .map(|(word, schema)| (*word, scope.spawn(|| ask(&serving, word, schema))))
            .collect();
        // Whatever is going on, others are served.
        assert_eq!(
            send(&serving.address, "GET", "/healthz", &[], "")
                .unwrap()
                .status,
            200
        );
        assert_eq!(ask(&serving, "well", &well).status, 200);
        asking
            .into_iter()
            .map(|(word, asked)| (word, asked.join().unwrap()))
            .collect()
    });
    for (word, reply) in &answered {
        assert_eq!(
            (reply.status, reply.json()["error"]["code"].as_str()),
            (502, Some("invalid_response")),
            "{word}: {reply:?}"
        );
    }
    assert_eq!(
        windows_until_idle(serving.pid()),
        1,
        "nothing goes on computing once they are answered"
    );
    let more = kib(serving.pid(), "VmRSS").saturating_sub(before);
    assert!(more < 128 * 1024, "{more} KiB were kept");
    assert!(
        kib(serving.pid(), "VmHWM") < 1024 * 1024,
        "nor was there ever much more"
    );
    assert_eq!(ask(&serving, "well", &well).status, 200);
}
