//! A soak of attacks: one service with two users is killed, stopped, starved of its disk and
//! attacked at random while they work. In the end no message is lost, no effect happened twice, and
//! nobody was shown what is another's.
//!
//! `ADJUTANT_SOAK_SECONDS` says for how long, 5 if it is not set; `ADJUTANT_SOAK_SEED` repeats the
//! choices of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Home, Run, arg};
use crate::service::{Reply, Serving, send};

/// Users, and the word that every message of theirs holds and no other's.
const USERS: [&str; 2] = ["ana", "ben"];
/// Conversations that each user has going at the same time.
const CONVERSATIONS: usize = 2;

/// Between two tries of a client, as a client would wait: the service needs the processor too.
const PAUSE: Duration = Duration::from_millis(10);

const SCRIPT: &[&str] = &[
    r#"{"match": "success", "text": "Paid: {{result}}", "repeat": true}"#,
    r#"{"match": "pay ", "calls": [{"name": "fx__pay", "args": {"what": "{{rest}}"}}], "repeat": true}"#,
    r#"{"match": "nest", "text": "{\"v\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}", "repeat": true}"#,
    r#"{"text": "You said: {{input}}", "repeat": true}"#,
];

/// A server with one tool, which writes what it does into a file and nowhere else.
const SERVER: &str = r#"#!/bin/sh
say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"method":"initialize"'*)
      say '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"fx","version":"1"}}' ;;
    *'"method":"tools/list"'*)
      say '"result":{"tools":[{"name":"pay","description":"Pays.","inputSchema":{"type":"object","properties":{"what":{"type":"string"}}},"annotations":{"destructiveHint":false}}]}' ;;
    *'"name":"pay"'*)
      what=$(printf '%s' "$line" | sed -n 's/.*"what":"\([^"]*\)".*/\1/p')
      echo "$what" >> EFFECTS
      say "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"success $what\"}]}" ;;
  esac
done
"#;

/// Choices that a seed repeats (splitmix64).
struct Choices(u64);

impl Choices {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs the tests says by a variable how long"
)]
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A file system of its own for the data, so that it can be full. `None`: none can be mounted here.
struct Disk(PathBuf);

impl Disk {
    /// Mounts one with room for what is said in so many seconds: a mebibyte in each, or two on a
    /// fast machine.
    fn mount(folder: PathBuf, seconds: u64) -> Option<Self> {
        std::fs::create_dir_all(&folder).unwrap();
        let mut mount = Command::new("mount");
        let options = format!("size={}m,mode=0755", 64 + 4 * seconds);
        mount
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(&folder);
        mount
            .output()
            .is_ok_and(|output| output.status.success())
            .then_some(Self(folder))
    }

    /// Takes all the space there is.
    fn fill(&self) {
        let mut filler = std::fs::File::create(self.0.join("filler")).unwrap();
        while filler.write_all(&[7; 64 * 1024]).is_ok() {}
    }

    fn free(&self) {
        let _ = std::fs::remove_file(self.0.join("filler"));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

/// State shared by all threads.
struct Scene<'a> {
    home: &'a Home,
    model: String,
    /// Nobody while it is down.
    address: Mutex<String>,
    tokens: BTreeMap<&'static str, String>,
    is_over: AtomicBool,
    resent: AtomicU32,
    /// Runs of each user, for the others to ask for.
    runs: Mutex<BTreeMap<&'static str, String>>,
    /// Violations found so far.
    faults: Mutex<Vec<String>>,
}

impl Scene<'_> {
    fn serve(&self) -> Serving {
        let mut command = self.home.command(&[
            "serve",
            "--json",
            "--auth",
            "token",
            "-m",
            &self.model,
            "--bind",
            "127.0.0.1:0",
        ]);
        let settings = [
            ("REQUESTS_PER_MINUTE", "1000000"),
            ("TURNS_AT_ONCE", "1000"),
            ("CONNECTIONS_PER_ADDRESS", "200"),
        ];
        command.envs(settings.map(|(name, value)| (format!("ADJUTANT_SERVE_{name}"), value)));
        let serving = Serving::start(&mut command);
        locked(&self.address).clone_from(&serving.address);
        serving
    }

    fn send(
        &self,
        user: &str,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: &str,
    ) -> std::io::Result<Reply> {
        let authorization = format!("Bearer {}", self.tokens[user]);
        let mut headers = vec![
            ("Authorization", authorization.as_str()),
            ("Content-Type", "application/json"),
        ];
        headers.extend(key.map(|key| ("Idempotency-Key", key)));
        let address = locked(&self.address).clone();
        let reply = send(&address, method, path, &headers, body)?;
        for other in USERS.iter().filter(|other| **other != user) {
            if reply.text.contains(&format!("{other}-")) {
                locked(&self.faults).push(format!(
                    "{user} was shown {other}'s by {method} {path}: {}",
                    reply.text
                ));
            }
        }
        Ok(reply)
    }

    /// Sends a message until there is an answer, and returns the outcome and what became of the
    /// message.
    fn ask(&self, user: &'static str, thread: &str, key: &str, message: &str) -> (String, String) {
        let body = json!({ "message": message, "thread_id": thread }).to_string();
        loop {
            if let Ok(reply) = self.send(user, "POST", "/v1/chat", Some(key), &body)
                && let Ok(answer) = serde_json::from_str::<Value>(&reply.text)
                && let Some(outcome) = answer["outcome"].as_str()
                && let Some(disposition) = answer["disposition"].as_str()
            {
                if let Some(run) = answer["run_id"].as_str() {
                    locked(&self.runs).insert(user, run.to_owned());
                }
                return (outcome.to_owned(), disposition.to_owned());
            }
            self.resent.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(PAUSE);
        }
    }

    /// One conversation of a user's, until it is over. Returns how each message ended.
    fn talk(&self, user: &'static str, number: usize) -> Vec<(String, String)> {
        let thread = format!("t{number}");
        let mut ended = Vec::new();
        while !self.is_over.load(Ordering::Relaxed) {
            let name = format!("{user}-{number}-{}", ended.len());
            for answers in 0.. {
                let (outcome, disposition) = self.ask(user, &thread, &name, &format!("pay {name}"));
                if outcome == "INTERRUPTED:IN_DOUBT" {
                    let key = format!("{name}-doubt-{answers}");
                    self.ask(user, &thread, &key, "leave it");
                }
                // The question was another turn's. The message is kept, and its key brings its own
                // end now.
                if disposition == "queued" {
                    continue;
                }
                if disposition != "ran" {
                    locked(&self.faults).push(format!("{name} was {disposition}: {outcome}"));
                }
                ended.push((name, outcome));
                break;
            }
        }
        ended
    }

    /// Silence, halves, nonsense, schemas, and questions for what is another's, until it is over.
    fn attack(&self, mut choices: Choices) -> u32 {
        let schema = json!({
            "type": "object",
            "properties": {"v": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"anyOf": [
                {"type": "array", "items": {"$ref": "#/$defs/a"}},
                {"type": "array", "items": {"$ref": "#/$defs/a"}},
                {"const": "never"},
            ]}},
        });
        let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
        let nest = json!({"model": "adjutant", "messages": [{"role": "user", "content": "nest"}], "response_format": format});
        let (mut silent, mut done) = (Vec::new(), 0);
        while !self.is_over.load(Ordering::Relaxed) {
            let user = USERS[usize::try_from(choices.below(2)).unwrap()];
            let address = locked(&self.address).clone();
            // Any of it may fail: the service may be down.
            match choices.below(6) {
                0 | 1 => {
                    if let Ok(mut connection) = TcpStream::connect(address) {
                        let half = [
                            "",
                            "POST /v1/chat HTTP/1.1\r\nHost: ",
                            "POST /v1/session HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{",
                        ];
                        let half = half[usize::try_from(choices.below(3)).unwrap()];
                        let _ = connection.write_all(half.as_bytes());
                        silent.push(connection);
                    }
                    if silent.len() > 100 {
                        silent.clear();
                    }
                }
                2 => drop(self.send(
                    user,
                    "POST",
                    "/v1/chat/completions",
                    None,
                    &nest.to_string(),
                )),
                3 => drop(self.send(user, "POST", "/v1/chat", None, &"[".repeat(100_000))),
                4 => {
                    let runs = locked(&self.runs).clone();
                    for (_, run) in runs.iter().filter(|(whose, _)| **whose != user) {
                        if let Ok(reply) =
                            self.send(user, "GET", &format!("/v1/decisions/{run}"), None, "")
                            && reply.status == 200
                        {
                            locked(&self.faults).push(format!("{user} may read {run}"));
                        }
                    }
                }
                _ => drop(self.send(user, "GET", "/v1/decisions/export", None, "")),
            }
            done += 1;
            std::thread::sleep(PAUSE);
        }
        done
    }
}

/// Returns the violations, given the effects, the end of each message, and the log of each.
fn judged(
    effects: &[String],
    ended: &BTreeMap<String, String>,
    logged: &BTreeMap<String, usize>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    effects
        .iter()
        .for_each(|effect| *times.entry(effect).or_default() += 1);
    for (effect, times) in &times {
        if *times > 1 || !ended.contains_key(*effect) {
            wrong.push(format!(
                "{effect}: {times} effects, ended {:?}",
                ended.get(*effect)
            ));
        }
    }
    for (message, outcome) in ended {
        if outcome == "SUCCESS:TASK_COMPLETED" && !times.contains_key(message.as_str()) {
            wrong.push(format!("{message}: said to be done, without an effect"));
        }
        match logged.get(message) {
            Some(1) => {}
            turns => wrong.push(format!(
                "{message}: {} turns in the log",
                turns.copied().unwrap_or(0)
            )),
        }
    }
    wrong
}

#[test]
fn a_lost_message_and_an_effect_too_many_are_found() {
    let strings = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let done = |names: &[&str]| -> BTreeMap<String, String> {
        names
            .iter()
            .map(|name| ((*name).to_owned(), "SUCCESS:TASK_COMPLETED".to_owned()))
            .collect()
    };
    let once = |names: &[&str]| -> BTreeMap<String, usize> {
        names.iter().map(|name| ((*name).to_owned(), 1)).collect()
    };
    let (both, ended) = (strings(&["a", "b"]), done(&["a", "b"]));
    assert!(judged(&both, &ended, &once(&["a", "b"])).is_empty());
    for (effects, logged) in [
        (strings(&["a", "b", "a"]), once(&["a", "b"])),
        (strings(&["a"]), once(&["a", "b"])),
        (strings(&["a", "b", "c"]), once(&["a", "b"])),
        (both.clone(), once(&["a"])),
        (both, [("a".to_owned(), 2), ("b".to_owned(), 1)].into()),
    ] {
        assert_eq!(
            judged(&effects, &ended, &logged).len(),
            1,
            "{effects:?} {logged:?}"
        );
    }
}

/// Turns by the message that began them, of both users.
fn logged(scene: &Scene<'_>) -> BTreeMap<String, usize> {
    let mut turns = BTreeMap::new();
    for user in USERS {
        let export = scene
            .send(user, "GET", "/v1/decisions/export", None, "")
            .unwrap();
        for line in export.text.lines() {
            let decision: Value = serde_json::from_str(line).unwrap();
            if let Some(name) = decision["message"].as_str().unwrap().strip_prefix("pay ") {
                *turns.entry(name.to_owned()).or_default() += 1;
                assert!(!decision["ended_at"].is_null(), "left open: {decision}");
            }
        }
    }
    turns
}

fn effects(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file)
        .unwrap_or_default()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn nothing_is_lost_or_doubled_or_shown_to_others_whatever_happens() {
    let seconds = variable("ADJUTANT_SOAK_SECONDS").unwrap_or(5);
    let seed = variable("ADJUTANT_SOAK_SEED").unwrap_or_else(|| std::process::id().into());
    println!("seed {seed}: ADJUTANT_SOAK_SEED={seed} repeats its choices");
    let home = Home::new();
    let disk = Disk::mount(home.path("data"), seconds);
    if disk.is_none() {
        crate::not_run::not_run(
            "cli",
            "the part of the soak with a full disk: no file system can be mounted here",
        );
    }
    let journal = home.path("effects");
    let server = home.file(
        "fx.sh",
        SERVER.replace("EFFECTS", &format!("'{}'", journal.display())),
    );
    home.config(&format!(
        "[mcp.servers.fx]\ncommand = [\"sh\", \"{}\"]\n",
        arg(&server)
    ));
    let token = |user: &'static str| {
        let made = Run::of(&mut home.command(&["token", "create", "--user", user, "--json"]))
            .succeeds()
            .json();
        (
            user,
            made["token"]
                .as_str()
                .or_else(|| made["secret"].as_str())
                .unwrap()
                .to_owned(),
        )
    };
    let scene = Scene {
        home: &home,
        model: home.script(SCRIPT),
        address: Mutex::default(),
        tokens: USERS.into_iter().map(token).collect(),
        is_over: AtomicBool::new(false),
        resent: AtomicU32::new(0),
        runs: Mutex::default(),
        faults: Mutex::default(),
    };
    let mut serving = scene.serve();
    let (mut choices, mut kills, mut stops, mut fills) = (Choices(seed), 0, 0, 0);
    let (ended, attacks) = std::thread::scope(|scope| {
        let scene = &scene;
        let talks: Vec<_> = USERS
            .into_iter()
            .flat_map(|user| (0..CONVERSATIONS).map(move |number| (user, number)))
            .map(|(user, number)| scope.spawn(move || scene.talk(user, number)))
            .collect();
        let attacking = scope.spawn(move || scene.attack(Choices(seed ^ 0xa77a)));
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(seconds) {
            // How long it is left alone is part of what is tried.
            std::thread::sleep(Duration::from_millis(100 + choices.below(1_400)));
            let choice = if kills == 0 { 4 } else { choices.below(5) };
            match (choice, &disk) {
                (0, Some(disk)) => {
                    disk.fill();
                    std::thread::sleep(Duration::from_millis(choices.below(700)));
                    disk.free();
                    fills += 1;
                }
                (1, _) => {
                    serving.signal("-STOP");
                    std::thread::sleep(Duration::from_millis(choices.below(2_000)));
                    serving.signal("-CONT");
                    stops += 1;
                }
                _ => {
                    serving.kill();
                    serving = scene.serve();
                    kills += 1;
                }
            }
        }
        scene.is_over.store(true, Ordering::Relaxed);
        let ended: Vec<_> = talks
            .into_iter()
            .flat_map(|talk| talk.join().unwrap())
            .collect();
        (ended, attacking.join().unwrap())
    });
    // Once more from the beginning: what was left is taken up. Asked again, a message has the
    // answer that it had: all that did not end well are, and one of ten others.
    serving.kill();
    serving = scene.serve();
    let names: BTreeSet<&String> = ended.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), ended.len());
    let ended: BTreeMap<String, String> = ended.iter().cloned().collect();
    let sampled = ended
        .iter()
        .enumerate()
        .filter(|(at, (_, outcome))| at % 10 == 0 || *outcome != "SUCCESS:TASK_COMPLETED");
    for (_, (name, outcome)) in sampled {
        let (user, rest) = name.split_once('-').unwrap();
        let user = USERS.into_iter().find(|known| *known == user).unwrap();
        let thread = format!("t{}", rest.split('-').next().unwrap());
        let (again, _) = scene.ask(user, &thread, name, &format!("pay {name}"));
        // A doubt that was answered since has another end.
        if again != *outcome && outcome != "INTERRUPTED:IN_DOUBT" {
            locked(&scene.faults).push(format!("{name} ended {outcome}, and asked again {again}"));
        }
    }
    let effects = effects(&journal);
    let mut wrong = judged(&effects, &ended, &logged(&scene));
    wrong.append(&mut locked(&scene.faults));
    drop(serving);
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    ended
        .values()
        .for_each(|outcome| *outcomes.entry(outcome).or_default() += 1);
    println!(
        "{} messages ({outcomes:?}), {} effects, {kills} kills, {stops} stops, {fills} full disks, {attacks} attacks, \
         {} sent again",
        ended.len(),
        effects.len(),
        scene.resent.load(Ordering::Relaxed),
    );
    assert!(
        wrong.is_empty(),
        "seed {seed}: {} wrong: {:#?}",
        wrong.len(),
        wrong.iter().take(10).collect::<Vec<_>>()
    );
    assert!(kills > 0 && attacks > 0 && outcomes.contains_key("SUCCESS:TASK_COMPLETED"));
    home.run(&["db", "check"]).succeeds();
}
