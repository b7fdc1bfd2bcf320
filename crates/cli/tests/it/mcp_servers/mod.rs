//! Other people's tools in the real binary: configured, listed, called, confirmed, lost.

mod cost; // what declarations of tools take
mod daily; // what a person is asked about in ordinary days
mod manage; // adding, trying and trusting servers
mod pins; // what the person agreed to

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Home, arg};
use crate::service::{Serving, send};

/// A home with the shell server, called `shell`, and these further lines in its table.
fn home(lines: &str) -> Home {
    let home = Home::new();
    let server = home.file("server.sh", include_str!("server.sh"));
    home.config(&format!(
        "[mcp.servers.shell]\ncommand = [\"sh\", \"{}\"]\nenv = {{ TOKEN = \"${{SHELL_TOKEN}}\" }}\n{lines}\n",
        arg(&server)
    ));
    home.file("config/adjutant/.env", "SHELL_TOKEN=from-the-env-file\n");
    home
}

fn calls(tool: &str, args: &Value) -> String {
    json!({"calls": [{"name": tool, "args": args}]}).to_string()
}

/// Reads what a running command says on standard error until the server says that word, and returns
/// the number behind it.
fn pid_behind(child: &mut Child, word: &str) -> u32 {
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let mut lines = stderr.lines();
    let line = lines
        .by_ref()
        .map(Result::unwrap)
        .find(|line| line.contains(word))
        .expect("the server says so");
    // What it says from now on is nobody's business, and must not stop it.
    std::thread::spawn(move || lines.count());
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn runs(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap()
            .trim_start()
            .starts_with('Z')
    })
}

/// Whoever kills it does not wait for it, so its end is looked for; five minutes are for machines
/// that stand still.
#[track_caller]
fn is_gone(pid: u32) {
    let began = Instant::now();
    while runs(pid) {
        assert!(
            began.elapsed() < Duration::from_secs(300),
            "the server {pid} outlived adjutant"
        );
        std::thread::yield_now();
    }
}

#[test]
fn they_are_listed_with_their_origin_and_what_is_asked() {
    let home = home("deny = [\"hang\"]");
    let (code, listed) = home.json(&["tools"]);
    assert_eq!(code, 0, "{listed}");
    let tool = |name: &str| {
        let tools = listed["tools"].as_array().unwrap();
        tools
            .iter()
            .find(|tool| tool["name"] == name)
            .unwrap_or_else(|| panic!("no {name} in {listed}"))
            .clone()
    };
    let wipe = tool("shell__wipe");
    assert_eq!(
        (wipe["server"].as_str(), wipe["title"].as_str()),
        (Some("shell"), Some("Wipe the disk"))
    );
    assert_eq!(
        (wipe["destructive"].as_bool(), wipe["permission"].as_str()),
        (Some(true), Some("asks"))
    );
    assert_eq!(tool("shell__look")["permission"], "runs");
    assert!(tool("add_task")["server"].is_null());
    let server = &listed["servers"][0];
    assert_eq!(
        (server["health"].as_str(), server["software"].as_str()),
        (Some("connected"), Some("shell 1"))
    );
    assert_eq!(server["left_out"][0]["original_name"], "hang");
    let shown = home.run(&["tools"]).succeeds();
    assert!(
        shown
            .stdout
            .contains("MCP server shell: connected, 3 tools"),
        "{shown:?}"
    );
}

#[test]
fn one_that_reads_runs_and_its_words_stay_off_standard_output() {
    let home = home("");
    let model = home.script(&[
        &calls("shell__look", &json!({})),
        r#"{"text": "Seen: {{result}}"}"#,
    ]);
    let (code, answer) = home.ask(&model, "look");
    assert_eq!(code, 0, "{answer}");
    assert_eq!(
        answer["tools_used"][0]["result"]["data"],
        "token from-the-env-file"
    );
    let quiet = home
        .run(&["ask", "-m", &home.script(&[r#"{"text": "Hello."}"#]), "hi"])
        .succeeds();
    assert!(!quiet.stderr.contains("started"), "{quiet:?}");
    home.run(&[
        "-v",
        "ask",
        "-m",
        &home.script(&[r#"{"text": "Hello."}"#]),
        "hi",
    ])
    .succeeds()
    .says("shell: started");
}

#[test]
fn one_that_may_destroy_waits_for_a_yes_across_processes() {
    let home = home("");
    let words = json!({"disk": "C"});
    let model = home.script(&[&calls("shell__wipe", &words), r#"{"text": "It is gone."}"#]);
    let (code, answer) = home.ask(&model, "wipe it");
    assert_eq!(
        (code, answer["outcome"].as_str()),
        (4, Some("PENDING:CONFIRMATION")),
        "{answer}"
    );
    assert_eq!(
        answer["pending"][0]["preview"],
        "Wipe the disk (shell: wipe) with disk “C”"
    );
    assert!(!home.path("project/wiped").exists());
    let id = answer["pending"][0]["id"].as_str().unwrap();
    let done = home
        .run(&["pending", "approve", id, "-m", &model])
        .succeeds();
    assert_eq!(done.stdout, "It is gone.\n");
    assert_eq!(
        std::fs::read_to_string(home.path("project/wiped")).unwrap(),
        "wiped\n"
    );
    // In the logs under the name it has here.
    let (_, log) = home.json(&["log", "show"]);
    assert!(log.to_string().contains("shell__wipe"), "{log}");
}

#[test]
fn a_weak_model_calls_them_for_messages_that_speak_of_them() {
    let home = home("");
    let chosen = r#"[{"shell__wipe": {"disk": "sda"}}]"#;
    let script = |answer: &str| {
        home.script(&[
            r#"{"config": {"weak_tools": true}}"#,
            &json!({ "text": answer }).to_string(),
        ])
    };
    let model = script(chosen);
    let (code, answer) = home.ask(&model, "wipe the disk sda with the shell");
    assert_eq!(
        (code, answer["outcome"].as_str()),
        (4, Some("PENDING:CONFIRMATION")),
        "{answer}"
    );
    let id = answer["pending"][0]["id"].as_str().unwrap();
    let done = home
        .run(&["pending", "approve", id, "-m", &model])
        .succeeds();
    assert_eq!(done.stdout, "Wiped.\n");
    // The disk is not one that the person named.
    let (_, answer) = home.ask(
        &script(r#"[{"shell__wipe": {"disk": "nvme"}}]"#),
        "wipe the disk with the shell",
    );
    assert_eq!(
        answer["content"],
        "Your message does not say which \u{201c}disk\u{201d} I should use. What is it?",
        "{answer}"
    );
    // A message about tasks is not offered any of them.
    let (_, answer) = home.ask(
        &script(r#"[{"add_task": {"description": "Wipe the kitchen table"}}]"#),
        "add wipe the kitchen table to my list",
    );
    assert!(
        home.run(&["tasks", "list"])
            .succeeds()
            .stdout
            .contains("Wipe"),
        "{answer}"
    );
}

#[test]
fn rules_of_the_person_count_over_what_the_server_says() {
    let confirmed = home("confirm = [\"look\"]");
    let model = confirmed.script(&[&calls("shell__look", &json!({}))]);
    assert_eq!(confirmed.ask(&model, "look").0, 4);
    let trusted = home("read_only = [\"wipe\"]");
    let model = trusted.script(&[
        &calls("shell__wipe", &json!({"disk": "C"})),
        r#"{"text": "Done."}"#,
    ]);
    assert_eq!(trusted.ask(&model, "wipe").0, 0);
    let forbidden = home("\n[agent]\ndeny = [\"shell__look\"]");
    let model = forbidden.script(&[
        &calls("shell__look", &json!({})),
        r#"{"text": "{{result}}"}"#,
    ]);
    let (_, answer) = forbidden.ask(&model, "look");
    assert!(
        answer["content"]
            .as_str()
            .unwrap()
            .contains("not allowed here"),
        "{answer}"
    );
    // A command that starts no servers does not stumble over the names of their tools.
    forbidden.run(&["tasks", "list"]).succeeds();
    let misspelt = home("\n[agent]\ndeny = [\"shell__lok\"]");
    misspelt
        .run(&["tools"])
        .ends_with(3)
        .says("shell__look, if that is what you mean");
}

#[test]
fn a_server_that_is_killed_in_a_call_leaves_it_in_doubt_and_says_so() {
    let home = home("");
    let model = home.script(&[
        &calls("shell__die", &json!({})),
        r#"{"text": "{{result}}"}"#,
    ]);
    let (code, answer) = home.ask(&model, "die");
    assert_eq!(
        (code, answer["outcome"].as_str()),
        (4, Some("INTERRUPTED:IN_DOUBT")),
        "{answer}"
    );
    assert!(
        answer["content"]
            .as_str()
            .unwrap()
            .contains("may or may not have been done"),
        "{answer}"
    );
    let id = answer["pending"][0]["id"].as_str().unwrap();
    home.run(&["pending", "resolve", id, "leave", "-m", &model])
        .ends_with(1);
}

#[test]
fn one_that_is_required_has_to_start_and_another_is_only_missed() {
    let home = Home::new();
    let broken =
        "[mcp.servers.broken]\ncommand = [\"sh\", \"-c\", \"echo no licence >&2; exit 7\"]\n";
    home.config(broken);
    let model = home.script(&[r#"{"text": "Hello."}"#]);
    let run = home
        .run(&["ask", "-m", &model, "hi"])
        .succeeds()
        .says("MCP server broken did not start");
    assert!(
        run.stderr.contains("exit status: 7") && run.stderr.contains("no licence"),
        "{run:?}"
    );
    home.config(&format!("{broken}required = true\n"));
    let run = home
        .run(&["ask", "-m", &model, "hi"])
        .ends_with(3)
        .says("no licence");
    assert_eq!(run.stdout, "");
    home.run(&["tasks", "list"]).succeeds();
    home.config(
        "[mcp.servers.locked]\ncommand = [\"sh\"]\nenv = { TOKEN = \"${NOT_SET_ANYWHERE}\" }\n",
    );
    home.run(&["ask", "-m", &model, "hi"])
        .succeeds()
        .says("not set in the environment: NOT_SET_ANYWHERE");
}

#[test]
fn a_child_does_not_outlive_an_adjutant_that_is_killed() {
    let home = home("");
    let model = home.script(&[&calls("shell__hang", &json!({}))]);
    let mut asking = home
        .command(&["-v", "ask", "-m", &model, "hang"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let server = pid_behind(&mut asking, "hanging");
    assert!(runs(server));
    asking.kill().unwrap();
    asking.wait().unwrap();
    is_gone(server);
}

#[test]
fn ctrl_c_stops_the_call_and_leaves_no_child() {
    let home = home("");
    let model = home.script(&[&calls("shell__hang", &json!({})), r#"{"text": "Stopped."}"#]);
    let mut asking = home
        .command(&["-v", "ask", "-m", &model, "hang"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let server = pid_behind(&mut asking, "hanging");
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &asking.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let status = asking.wait().unwrap();
    assert_ne!(status.code(), Some(0), "{status}");
    is_gone(server);
}

#[test]
fn a_service_has_them_too_and_ends_them_with_itself() {
    let home = home("");
    let script = format!(
        "{}\n{}",
        calls("shell__look", &json!({})),
        r#"{"text": "Seen."}"#
    );
    let model = home.script(&[&script]);
    let args = [
        "-v",
        "serve",
        "--json",
        "-m",
        &model,
        "--bind",
        "127.0.0.1:0",
        "--drain-delay",
        "0s",
    ];
    let mut serving = Serving::start(&mut home.command(&args));
    let answer = serving.chat(serving.token(), &json!({"message": "look"}));
    assert_eq!(
        answer.body["tools_used"][0]["result"]["data"], "token from-the-env-file",
        "{answer:?}"
    );
    serving.signal("-TERM");
    assert!(serving.wait().success());
}

#[test]
fn a_service_without_a_server_that_is_required_is_not_ready() {
    let home = Home::new();
    let server = home.file("server.sh", include_str!("server.sh"));
    // It starts once, and never again.
    let once = format!("mkdir once || exit 9; . {}", arg(&server));
    home.config(&format!(
        "[mcp.servers.shell]\ncommand = [\"sh\", \"-c\", \"{once}\"]\nrequired = true\n"
    ));
    let model = home.script(&[&calls("shell__die", &json!({}))]);
    let serving = Serving::start(&mut home.serve_command(&model));
    let ready = || send(&serving.address, "GET", "/readyz", &[], "").unwrap();
    assert_eq!(ready().status, 200);
    let answer = serving.chat(serving.token(), &json!({"message": "die"}));
    assert_eq!(
        answer.body["decision"], "REQUEST_CONFIRMATION",
        "{answer:?}"
    );
    let answer = ready();
    assert_eq!(answer.status, 503);
    assert_eq!(
        answer.json()["reasons"],
        json!(["an MCP server that is required does not answer"])
    );
}

#[test]
fn what_is_wrong_in_its_table_is_named_with_its_place() {
    let home = Home::new();
    let check = |table: &str, words: &[&str]| {
        home.config(table);
        let run = home.run(&["config", "show"]).ends_with(3);
        for words in words {
            assert!(run.stderr.contains(words), "no {words:?} in {run:#?}");
        }
    };
    let table = "[mcp.servers.a]\ncommand = [\"x\"]\n";
    check(
        &format!("{table}comfirm = []\n"),
        &[
            "config.toml:3:1: unknown key mcp.servers.a.comfirm",
            "did you mean confirm?",
        ],
    );
    check(
        &format!("{table}url = \"https://x\"\n"),
        &["both `command` and `url`"],
    );
    check(
        "[mcp.servers.a]\nallow = []\n",
        &["needs `command` or `url`", "config.toml:1:14"],
    );
    check(
        "[mcp.servers.a]\ncommand = 5\n",
        &["must be a program, or a list of words", "not 5"],
    );
    check(
        "[mcp.servers.a]\nurl = \"ftp://x\"\n",
        &["begins with https:// or http://"],
    );
    check(
        "[mcp.servers.a]\nurl = \"https://me:secret-7@x\"\n",
        &["has a user or a password"],
    );
    check(
        &format!("{table}timeout = 3\n"),
        &["must be a time with its unit"],
    );
    check(
        &format!("{table}inject = {{ userid = \"x\" }}\n"),
        &["userid is nothing that can be filled in", "user_id"],
    );
    check(
        "[mcp.servers.\"a b\"]\ncommand = [\"x\"]\n",
        &["cannot be the name of an MCP server"],
    );
    check(
        "[mcp.server.a]\ncommand = [\"x\"]\n",
        &["did you mean [mcp.servers.NAME]?"],
    );
    let run = home.run(&["config", "show"]);
    assert!(!run.stderr.contains("secret-7"), "{run:?}");
    home.config("");
    home.file(
        "project/adjutant.toml",
        "[mcp.servers.evil]\ncommand = [\"sh\"]\n",
    );
    home.run(&["config", "show"])
        .succeeds()
        .says("is not trusted")
        .says("mcp.servers");
}

#[test]
fn what_is_secret_in_its_table_is_not_shown() {
    let home = Home::new();
    home.config(
        "[mcp.servers.a]\nurl = \"https://x/mcp?key=secret-1\"\nheaders = { X-Key = \"secret-2\" }\nbearer_token_env = \"T\"\n\
         [mcp.servers.b]\ncommand = [\"b\"]\nenv = { KEY = \"secret-3\" }\n",
    );
    let shown = home.run(&["config", "show", "--origin"]).succeeds();
    assert!(!shown.stdout.contains("secret-"), "{shown:?}");
    for words in [
        "mcp.servers.a.headers",
        "X-Key = (not shown)",
        "config.toml:2",
        "mcp.servers.b.env",
    ] {
        assert!(shown.stdout.contains(words), "no {words:?} in {shown:#?}");
    }
}
