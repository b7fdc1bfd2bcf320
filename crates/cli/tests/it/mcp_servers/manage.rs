//! `adjutant mcp`: servers are added, looked at and removed, and their reads trusted.

use serde_json::json;

use super::{calls, home};
#[cfg(feature = "gemini")]
use crate::harness::Run;
use crate::harness::{Home, arg};
#[cfg(unix)]
use crate::terminal::pty::Terminal;

/// The shell server with a tool that only reads by its name, instructions, a prompt and a resource.
fn talkative() -> String {
    let changed = include_str!("server.sh")
        .replace(
            r#""serverInfo":{"name":"shell","version":"1"}"#,
            r#""instructions":"Look before you wipe.","serverInfo":{"name":"shell","version":"1"}"#,
        )
        .replace(
            r#"{"name":"look","#,
            r#"{"name":"get_note","description":"Gets a note.","inputSchema":{"type":"object"}},
        {"name":"look","#,
        )
        .replace(
            r#"    *'"name":"look"'*)"#,
            r#"    *'"name":"get_note"'*) text 'A note.' ;;
    *'"method":"prompts/list"'*) say '"result":{"prompts":[{"name":"tidy","description":"Tidies up.","arguments":[{"name":"room","required":true}]}]}' ;;
    *'"method":"prompts/get"'*) say '"result":{"messages":[{"role":"user","content":{"type":"text","text":"Tidy the kitchen."}}]}' ;;
    *'"method":"resources/list"'*) say '"result":{"resources":[{"uri":"note://1","name":"first"}]}' ;;
    *'"method":"resources/templates/list"'*) say '"result":{"resourceTemplates":[]}' ;;
    *'"method":"resources/read"'*) say '"result":{"contents":[{"uri":"note://1","text":"Buy milk."}]}' ;;
    *'"name":"look"'*)"#,
        );
    assert_eq!(changed.matches("get_note").count(), 2);
    changed
}

fn talkative_home() -> Home {
    let home = home("");
    home.file("server.sh", talkative());
    home
}

#[test]
fn a_server_is_added_tried_and_removed() {
    let home = Home::new();
    home.config("# mine\nmodel = \"demo\"\n");
    let server = home.file("server.sh", talkative());
    home.run(&[
        "mcp",
        "add",
        "shell",
        "--env",
        "TOKEN=t-1",
        "--",
        "sh",
        arg(&server),
        "-x",
    ])
    .succeeds();
    let text = std::fs::read_to_string(home.path("config/adjutant/config.toml")).unwrap();
    assert!(
        text.starts_with("# mine\nmodel = \"demo\"\n\n[mcp.servers.shell]\n"),
        "{text}"
    );
    let (_, listed) = home.json(&["mcp", "list"]);
    assert_eq!(listed[0]["name"], "shell");
    assert!(
        listed[0]["place"]
            .as_str()
            .unwrap()
            .ends_with("server.sh -x"),
        "{listed}"
    );

    let shown = home.run(&["mcp", "test", "shell"]).succeeds();
    for words in [
        "connected, 5 tools of about",
        "get_note",
        "It tells the model: Look before you wipe.",
    ] {
        assert!(shown.stdout.contains(words), "no {words:?} in {shown:?}");
    }
    // To look is not to agree.
    assert!(!home.path("state/adjutant/mcp-tools").exists());

    home.run(&["mcp", "add", "shell", "https://example.com/mcp"])
        .ends_with(2);
    home.run(&["mcp", "add", "other", "nonsense"]).ends_with(3);
    home.run(&[
        "mcp",
        "add",
        "web",
        "https://example.com/mcp",
        "--bearer-token-env",
        "T",
    ])
    .succeeds();
    home.run(&["mcp", "rm", "shell"]).succeeds();
    home.run(&["mcp", "rm", "shell"])
        .ends_with(1)
        .says("adjutant mcp list");
    let text = std::fs::read_to_string(home.path("config/adjutant/config.toml")).unwrap();
    assert_eq!(
        text,
        "# mine\nmodel = \"demo\"\n\n[mcp.servers.web]\nurl = \"https://example.com/mcp\"\nbearer_token_env = \"T\"\n"
    );
}

#[test]
fn the_json_of_a_servers_page_is_imported() {
    let home = Home::new();
    let server = home.file("server.sh", talkative());
    let json = json!({"mcpServers": {
        "shell": {"command": "sh", "args": [arg(&server)], "env": {"TOKEN": "<your token>"}},
        "old": {"type": "sse", "url": "https://example.com/sse"},
    }});
    let file = home.file("servers.json", json.to_string());
    let run = home.run(&["mcp", "import", arg(&file)]).succeeds();
    run.says("env.TOKEN looks like a placeholder");
    home.run(&["mcp", "import", arg(&file)])
        .ends_with(1)
        .says("there is a server of this name already");
    home.run(&["mcp", "test", "shell"]).succeeds();
    let (_, listed) = home.json(&["mcp", "list"]);
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
}

#[test]
fn the_words_of_other_clients_are_understood() {
    let home = Home::new();
    let server = home.file("server.sh", include_str!("server.sh"));
    home.config(&format!(
        "[mcp.servers.shell]\ntype = \"stdio\"\ncommand = \"sh\"\nargs = [\"{}\"]\n",
        arg(&server)
    ));
    home.run(&["mcp", "test", "shell"]).succeeds();
    for (table, words) in [
        ("type = \"http\"\ncommand = \"sh\"", "needs `url`"),
        ("type = \"sse\"\nurl = \"https://h/sse\"", "HTTP+SSE"),
        (
            "command = \"npx -y server\"",
            "command = [\"npx\", \"-y\", \"server\"]",
        ),
    ] {
        home.config(&format!("[mcp.servers.shell]\n{table}\n"));
        home.run(&["mcp", "list"]).ends_with(3).says(words);
    }
    home.config("[mcpServers.shell]\ncommand = \"sh\"\n");
    home.run(&["mcp", "list"])
        .ends_with(3)
        .says("adjutant mcp import FILE");
}

#[test]
fn servers_whose_tools_could_be_mistaken_for_each_other_are_refused() {
    for (a, b) in [("Bank", "bank"), ("my-bank", "my_bank"), ("a", "a__b")] {
        let home = Home::new();
        home.config(&format!(
            "[mcp.servers.{a}]\ncommand = [\"sh\"]\n[mcp.servers.{b}]\ncommand = [\"sh\"]\n"
        ));
        home.run(&["mcp", "list"])
            .ends_with(3)
            .says("cannot be told apart by the names of their tools");
    }
}

#[test]
fn reads_that_nobody_describes_ask_until_they_are_trusted() {
    let home = talkative_home();
    let model = home.script(&[
        &calls("shell__get_note", &json!({})),
        r#"{"text": "Read."}"#,
    ]);
    let first = home.run(&["-m", &model, "read it"]).ends_with(4);
    first.says("these ask each time: get_note (adjutant mcp trust-reads shell lets them run)");
    home.run(&["mcp", "trust-reads", "shell"]).ends_with(4);
    home.run(&["mcp", "trust-reads", "shell", "-y"]).succeeds();
    let (code, answer) = home.ask(&model, "read it");
    assert_eq!(code, 0, "{answer}");
    assert_eq!(answer["tools_used"][0]["result"]["data"], "A note.");
    home.run(&["mcp", "trust-reads", "shell", "--revoke"])
        .succeeds();
    assert_eq!(home.ask(&model, "read it").0, 4);
}

#[cfg(unix)]
#[test]
fn a_person_is_asked_once_for_all_reads_of_a_server() {
    let home = talkative_home();
    let model = home.script(&[
        &calls("shell__get_note", &json!({})),
        r#"{"text": "Read."}"#,
    ]);
    let mut terminal = Terminal::start(&home, &["-m", &model, "read it"]);
    terminal
        .sees("Let these run without asking?")
        .sees("get_note")
        .line("y");
    let shown = terminal.ends_with(0);
    assert!(shown.contains("Read."), "{shown}");
    let mut again = Terminal::start(&home, &["-m", &model, "read it"]);
    let shown = again.ends_with(0);
    assert!(!shown.contains("Let these run"), "{shown}");
}

#[test]
fn rules_take_patterns() {
    for rules in [
        "read_only = [\"get_*\"]\n",
        "[agent]\nallow = [\"shell__g*\"]\n",
    ] {
        let home = home(rules);
        home.file("server.sh", talkative());
        let (_, listed) = home.json(&["tools"]);
        let tools = listed["tools"].as_array().unwrap();
        let get = tools
            .iter()
            .find(|tool| tool["name"] == "shell__get_note")
            .unwrap();
        assert_eq!(get["permission"], "runs", "{rules}");
        assert_eq!(listed["servers"][0]["warnings"], json!([]));
    }
    let home = home("[agent]\ndeny = [\"shell__z*\"]\n");
    home.run(&["tools"])
        .ends_with(3)
        .says("there is no tool that");
}

#[test]
fn prompts_and_resources_are_for_the_person() {
    let home = talkative_home();
    let prints = |args: &[&str], words: &str| {
        let run = home.run(args).succeeds();
        assert!(run.stdout.contains(words), "{run:?}");
    };
    prints(&["mcp", "prompts", "shell"], "tidy room=…  Tidies up.");
    prints(
        &["mcp", "prompts", "shell", "tidy", "room=kitchen"],
        "user: Tidy the kitchen.",
    );
    prints(&["mcp", "resources", "shell"], "note://1  first");
    prints(&["mcp", "resources", "shell", "note://1"], "Buy milk.");
    home.run(&["mcp", "prompts", "shel"])
        .ends_with(1)
        .says("shell, if that is what you mean");
}

#[test]
fn instructions_of_a_server_are_agreed_to_like_its_tools() {
    let home = talkative_home();
    home.run(&["tools"])
        .succeeds()
        .says("its 5 tools are accepted as they are now, and what it tells the model about them");
    home.file("server.sh", talkative().replace("before you wipe", "away"));
    home.run(&["tools"])
        .succeeds()
        .says("has changed since it was agreed to, and is not used");
    let shown = home.run(&["tools", "accept", "shell", "-y"]).succeeds();
    for line in [
        "description was: Look before you wipe.",
        "description now: Look away.",
    ] {
        assert!(shown.stdout.contains(line), "{shown:?}");
    }
    let quiet = home.run(&["tools"]).succeeds();
    assert!(!quiet.stderr.contains("has changed"), "{quiet:?}");
}

#[cfg(feature = "gemini")]
#[test]
fn instructions_of_a_server_reach_the_model_bounded_and_as_the_servers() {
    use crate::vendor::{Reply, Vendor};

    let home = home("");
    let long = format!("Look before you wipe. {}", "x".repeat(5_000));
    home.file(
        "server.sh",
        talkative().replace("Look before you wipe.", &long),
    );
    let content = json!({ "role": "model", "parts": [{ "text": "Hi." }] });
    let answer = json!({ "candidates": [{ "content": content, "finishReason": "STOP" }] });
    let vendor = Vendor::answering([Reply::events(&[answer])]);
    let mut command = home.command(&["-m", "gemini/m", "hello"]);
    Run::of(
        command
            .env("GEMINI_API_KEY", "k")
            .env("GEMINI_BASE_URL", vendor.url()),
    )
    .succeeds();
    let sent = vendor.asked().remove(0).body;
    let instruction = sent["systemInstruction"]["parts"][0]["text"].as_str();
    let instruction = instruction.unwrap();
    let heading = instruction.find("What these programs say").unwrap();
    let begins = instruction.find("Look before you wipe.").unwrap();
    assert!(heading < begins, "{instruction}");
    let most = "x".repeat(2_000 - "Look before you wipe. ".len());
    assert!(
        instruction.contains(&format!("{most} … (cut)")),
        "{instruction}"
    );
    assert!(!instruction.contains(&format!("{most}x")), "{instruction}");
}
