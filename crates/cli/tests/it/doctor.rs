//! `adjutant doctor`: one broken thing at a time gives one finding, and what it says to do mends
//! it.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::harness::{Home, Run};
use crate::vendor::{Asked, Reply, Vendor};

/// A machine on which everything is well, and what differs from it.
struct Machine {
    home: Home,
    variables: Vec<(String, String)>,
}

impl Machine {
    fn new() -> Self {
        let home = Home::new();
        home.config("model = \"demo\"\n");
        Self {
            home,
            variables: Vec::new(),
        }
    }

    fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.variables.push((name.to_owned(), value.to_string()));
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.variables.retain(|(set, _)| set != name);
        self
    }

    fn config(self, text: impl AsRef<str>) -> Self {
        self.home.config(text.as_ref());
        self
    }

    fn doctor(&self) -> (i32, Value) {
        let mut command = self.home.command(&["doctor", "--json"]);
        command.env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        let run = Run::of(&mut command);
        let report = run.json();
        assert_eq!(report["ok"] == true, run.code == 0, "{report:#}");
        (run.code, report)
    }

    /// The one thing that is wrong: its name, all that is said about it, and what to do.
    #[track_caller]
    fn finding(&self, name: &str) -> String {
        let (code, report) = self.doctor();
        let failed: Vec<&Value> = report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|check| check["status"] == "fail")
            .collect();
        assert_eq!((code, failed.len()), (3, 1), "{failed:#?}");
        let check = failed[0];
        assert_eq!(check["name"], name, "{check:#}");
        for field in ["group", "message", "remedy"] {
            assert!(!check[field].as_str().unwrap().is_empty(), "{check:#}");
        }
        check["remedy"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn is_well(&self) {
        let (code, report) = self.doctor();
        assert_eq!(code, 0, "{report:#}");
    }

    /// Does what a remedy says: its command, up to the explanation or the second way.
    #[track_caller]
    fn follow(&self, remedy: &str) {
        self.follow_with(remedy, "");
    }

    /// The same with words on standard input.
    #[track_caller]
    fn follow_with(&self, remedy: &str, stdin: &str) {
        let end = ["    ", ", or ", ", then "]
            .iter()
            .filter_map(|end| remedy.find(end))
            .min();
        let line = &remedy[..end.unwrap_or(remedy.len())];
        assert!(
            ["adjutant ", "mv ", "mkdir ", "chmod "]
                .iter()
                .any(|word| line.starts_with(word)),
            "{remedy:?}"
        );
        let input = self.home.file("stdin", stdin);
        let binary = Path::new(env!("CARGO_BIN_EXE_adjutant")).parent().unwrap();
        let of_home = self.home.command(&[]);
        let mut shell = Command::new("sh");
        shell
            .env_clear()
            .envs(
                of_home
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env("PATH", format!("{}:/usr/bin:/bin", binary.display()))
            .current_dir(self.home.path("project"))
            .stdin(std::fs::File::open(input).unwrap())
            .args(["-c", line]);
        Run::of(&mut shell).succeeds();
    }

    /// Opens the file with an editor that makes this of it.
    #[track_caller]
    fn edit(self, remedy: &str, right: &str) -> Self {
        assert!(remedy.starts_with("adjutant config edit"), "{remedy:?}");
        let file = self.home.file("right.toml", right);
        let machine = self.with("EDITOR", format!("cp {}", file.display()));
        machine.follow(remedy);
        machine.without("EDITOR")
    }
}

#[test]
fn a_machine_on_which_all_is_well_is_ready() {
    let machine = Machine::new();
    machine.home.run(&["tasks", "add", "x"]).succeeds();
    let (code, report) = machine.doctor();
    assert_eq!((code, &report["ok"]), (0, &json!(true)), "{report:#}");
    let names: Vec<&str> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    for name in [
        "config.toml",
        "variables",
        "model",
        "data folder",
        "database",
        "vault",
        "serve.bind",
        "clock",
    ] {
        assert!(names.contains(&name), "no {name} in {names:?}");
    }
    let database = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "database")
        .unwrap();
    assert!(
        database["message"].as_str().unwrap().contains("SQLite 3."),
        "{database}"
    );
    let run = machine.home.run(&["doctor"]).succeeds();
    assert!(
        run.stdout.contains("✓ model") && run.stdout.contains("Ready"),
        "{run:?}"
    );
}

#[test]
fn broken_settings_are_named_and_mended() {
    for (wrong, said) in [
        ("model = \"demo\"\n[llm\n", "config.toml"),
        ("model = \"demo\"\n[llm]\ntemprature = 0.5\n", "config.toml"),
        ("model = \"demo\"\n[llm]\ntemperature = 9\n", "config.toml"),
        (
            "model = \"demo\"\nvaultPath = \"a\"\n[vault]\npath = \"b\"\n",
            "config.toml",
        ),
        (
            "model = \"demo\"\n[mcp.servers.x]\nkommand = [\"x\"]\n",
            "config.toml",
        ),
        (
            "model = \"demo\"\n[agent]\nconfirm = [\"delete_tsk\"]\n",
            "settings",
        ),
    ] {
        let machine = Machine::new().config(wrong);
        let remedy = machine.finding(said);
        machine.edit(&remedy, "model = \"demo\"\n").is_well();
    }
    let machine = Machine::new().config("model = \"dmo\"\n");
    let remedy = machine.finding("model");
    machine.follow(&remedy);
    machine.is_well();
    let machine = Machine::new().with("LLM_TIMEOUT", "soon");
    machine.finding("variables");
    machine.without("LLM_TIMEOUT").is_well();
    let machine = Machine::new();
    machine
        .home
        .file("config/adjutant/.env", "A=secret-123 and more words\n");
    let (_, report) = machine.doctor();
    assert!(!report.to_string().contains("secret-123"));
    assert!(machine.finding(".env").contains("edit "));
    machine
        .home
        .file("config/adjutant/.env", "A='secret-123 and more words'\n");
    machine.is_well();
    let machine = Machine::new();
    let file = machine.home.file(
        "config/adjutant/credentials.toml",
        "GEMINI_API_KEY = secret-123\n",
    );
    machine.finding("credentials.toml");
    std::fs::remove_file(file).unwrap();
    machine.is_well();
}

#[test]
fn what_is_odd_and_works_is_a_warning_with_a_remedy() {
    let machine = Machine::new().with("ADJUTANT_MODLE", "x");
    machine
        .home
        .file("project/adjutant.toml", "model = \"gemini\"\n");
    let (code, report) = machine.doctor();
    assert_eq!(code, 0, "{report:#}");
    let warnings: Vec<&Value> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["status"] == "warn")
        .collect();
    let remedy = |name: &str| {
        let check = warnings.iter().find(|check| check["name"] == name).unwrap();
        check["remedy"].as_str().unwrap().to_owned()
    };
    assert_eq!(remedy("variables"), "call it ADJUTANT_MODEL");
    assert_eq!(remedy("adjutant.toml"), "adjutant config trust");
}

#[test]
fn places_with_a_blank_in_their_name_are_mended_by_what_is_said() {
    let machine = Machine::new();
    let data = machine
        .home
        .file("my data", "a file where a folder should be");
    let machine = machine.with("XDG_DATA_HOME", data.display());
    let remedy = machine.finding("data folder");
    machine.follow(&remedy);
    machine.is_well();
    std::fs::create_dir_all(data.join("adjutant")).unwrap();
    std::fs::write(data.join("adjutant/adjutant.db"), "this is no database").unwrap();
    let remedy = machine.finding("database");
    machine.follow(&remedy);
    machine.is_well();
}

#[test]
fn broken_places_are_named_and_mended() {
    let machine = Machine::new();
    machine.home.file("data", "a file where a folder should be");
    let remedy = machine.finding("data folder");
    machine.follow(&remedy);
    machine.is_well();

    let machine = Machine::new();
    machine.home.run(&["tasks", "add", "x"]).succeeds();
    for end in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(
            machine
                .home
                .path(&format!("data/adjutant/adjutant.db{end}")),
        );
    }
    machine.home.file(
        "data/adjutant/adjutant.db",
        "this is no database, whatever its name says",
    );
    let remedy = machine.finding("database");
    machine.follow(&remedy);
    machine.is_well();

    let notes = Machine::new().home.path("nothing");
    let machine = Machine::new().config(format!(
        "model = \"demo\"\nvaultPath = '{}'\n",
        notes.display()
    ));
    let remedy = machine.finding("vault");
    machine.follow(&remedy);
    machine.is_well();
    std::fs::create_dir(notes.join(".obsidian")).unwrap();
    std::fs::write(notes.join(".obsidian/daily-notes.json"), "{ folder").unwrap();
    let remedy = machine.finding("Obsidian's settings");
    machine.follow(&remedy);
    machine.is_well();
    std::fs::create_dir_all(notes.join("memory")).unwrap();
    std::fs::write(
        notes.join("memory/facts.md"),
        b"# Key Facts\n\n- \xff\xfe\n",
    )
    .unwrap();
    assert!(machine.finding("facts").contains("memory/facts.md"));
    std::fs::write(notes.join("memory/facts.md"), "# Key Facts\n").unwrap();
    machine.is_well();
    std::fs::remove_dir_all(&notes).unwrap();
}

#[test]
fn broken_surroundings_are_named_and_mended() {
    for (variable, value, name) in [
        ("EDITOR", "no-such-editor --wait", "editor"),
        ("SSL_CERT_FILE", "/nowhere/ca.pem", "certificates"),
        ("HTTPS_PROXY", "http://127.0.0.1:1", "proxy"),
        ("HTTPS_PROXY", "http://user:secret-123@", "proxy"),
    ] {
        let machine = Machine::new().with(variable, value);
        let remedy = machine.finding(name);
        assert!(remedy.contains(&format!("unset {variable}")), "{remedy}");
        assert!(!machine.doctor().1.to_string().contains("secret-123"));
        machine.without(variable).is_well();
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let bind = taken.local_addr().unwrap();
    let machine = Machine::new().config(format!("model = \"demo\"\n[serve]\nbind = \"{bind}\"\n"));
    let remedy = machine.finding("serve.bind");
    machine.follow(&remedy);
    machine.is_well();
    let open = "model = \"demo\"\n[serve]\nbind = \"0.0.0.0:0\"\n";
    let machine = Machine::new().config(open);
    let remedy = machine.finding("serve.auth");
    machine.follow(&remedy);
    machine.is_well();
    let machine = Machine::new().config(format!("{open}auth = \"none\"\n"));
    let remedy = machine.finding("serve.auth");
    machine.follow(&remedy);
    machine.is_well();
    let server = "model = \"demo\"\n[mcp.servers.notes]\ncommand = [\"no-such-program\"]\n";
    let machine = Machine::new().config(server);
    assert!(machine.finding("mcp notes").contains("disabled = true"));
    machine
        .config(format!("{server}disabled = true\n"))
        .is_well();
}

#[cfg(feature = "openai")]
#[test]
fn a_provider_that_does_not_answer_is_named_and_mended() {
    let vendor = Vendor::answering_by(|asked: &Asked| {
        let has = |line: &str| asked.headers.iter().any(|header| header == line);
        match asked.body["model"].as_str() {
            _ if !has("authorization: Bearer sk-right-key-1234") => Reply::json(
                401,
                json!({ "error": { "message": "no such key", "code": "invalid_api_key" } }),
            ),
            Some("there") => Reply::json(
                200,
                json!({
                    "id": "1", "object": "chat.completion", "created": 1, "model": "there",
                    "choices": [{ "index": 0, "message": { "role": "assistant", "content": "ready" }, "finish_reason": "stop" }],
                    "usage": { "prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10 },
                }),
            ),
            _ => Reply::json(
                404,
                json!({ "error": { "message": "no such model", "code": "model_not_found" } }),
            ),
        }
    });
    let config = |model: &str, url: &str| {
        format!(
            "model = \"openai-chat/{model}\"\n[openai-chat]\nbase_url = \"{url}/v1\"\nretries = 0\n"
        )
    };
    let machine = Machine::new().config("model = \"openai-chat/there\"\n");
    assert_eq!(machine.finding("model"), "adjutant keys set openai-chat");

    let machine = machine.config(config("there", &vendor.url()));
    let wrong = |machine: &Machine| {
        let remedy = machine.finding("model");
        assert!(
            remedy.starts_with("adjutant keys set openai-chat"),
            "{remedy}"
        );
        remedy
    };
    machine.home.file(
        "config/adjutant/credentials.toml",
        "OPENAI_API_KEY = \"two words\"\n",
    );
    machine.follow_with(&wrong(&machine), "sk-wrong-key-1234\n");
    machine.follow_with(&wrong(&machine), "sk-right-key-1234\n");
    machine.is_well();
    assert!(!machine.doctor().1.to_string().contains("sk-right"));

    let machine = machine.config(config("gone", &vendor.url()));
    assert!(
        machine
            .finding("model")
            .starts_with("adjutant config set model openai-chat/NAME")
    );
    let machine = machine.config(config("there", "http://127.0.0.1:1"));
    assert!(machine.finding("model").contains("openai-chat.base_url"));
    machine.config(config("there", &vendor.url())).is_well();
    vendor.stop();
}

/// A server with models that come when they are pulled; `plain` cannot call tools.
#[cfg(feature = "ollama")]
fn ollama(installed: &[&str]) -> Vendor {
    let installed: Vec<String> = installed.iter().map(|name| (*name).to_owned()).collect();
    let installed = Arc::new(Mutex::new(installed));
    Vendor::answering_by_path(move |line, body| {
        let mut installed = installed.lock().unwrap();
        let name = body["model"].as_str().unwrap_or_default().to_owned();
        match line {
            "GET /api/version" => Reply::json(200, json!({ "version": "0.33.3" })),
            "GET /api/tags" => {
                let models: Vec<Value> = installed
                    .iter()
                    .map(|name| json!({ "name": name, "size": 5_000_000_000_u64 }))
                    .collect();
                Reply::json(200, json!({ "models": models }))
            }
            "POST /api/show" if installed.contains(&name) => {
                let tools = if name == "plain" {
                    json!(["completion"])
                } else {
                    json!(["completion", "tools"])
                };
                Reply::json(
                    200,
                    json!({ "capabilities": tools, "model_info": { "x.context_length": 8192 } }),
                )
            }
            "POST /api/pull" if name != "nobody" => {
                installed.push(name);
                let line = |line: Value| format!("{line}\n");
                let lines = [
                    json!({ "status": "pulling manifest" }),
                    json!({ "status": "pulling abc", "digest": "sha256:abc", "total": 1000, "completed": 400 }),
                    json!({ "status": "pulling abc", "digest": "sha256:abc", "total": 1000, "completed": 1000 }),
                    json!({ "status": "success" }),
                ];
                Reply::json(200, lines.map(line).concat())
                    .with("content-type: application/x-ndjson\r\n")
            }
            "POST /api/pull" => Reply::json(
                200,
                json!({ "error": "pull model manifest: file does not exist" }),
            ),
            "DELETE /api/delete" if installed.contains(&name) => {
                installed.retain(|other| *other != name);
                Reply::json(200, "")
            }
            _ => Reply::json(404, json!({ "error": format!("model '{name}' not found") })),
        }
    })
}

#[cfg(feature = "ollama")]
#[test]
fn a_server_on_this_machine_is_named_and_mended() {
    let machine = Machine::new().config("model = \"ollama/qwen3:8b\"\n");
    assert!(machine.finding("ollama").starts_with("ollama serve"));
    let server = ollama(&["plain"]);
    let machine = machine.with("OLLAMA_HOST", server.url());
    let remedy = machine.finding("model");
    assert_eq!(remedy, "adjutant models pull ollama/qwen3:8b");
    machine.follow(&remedy);
    machine.is_well();
    let machine = machine.config("model = \"ollama/qwen3:8b\"\n[ollama]\ncontext_size = 32768\n");
    let remedy = machine.finding("model");
    assert_eq!(remedy, "adjutant config set ollama.context_size 8192");
    machine.follow(&remedy);
    machine.is_well();
    let machine = machine.config("model = \"ollama/plain\"\n");
    let remedy = machine.finding("model");
    machine.follow(&remedy);
    machine.is_well();
    let other =
        Vendor::answering_by_path(|_, _| Reply::json(404, json!({ "detail": "Not Found" })));
    let machine = machine.with("OLLAMA_HOST", other.url());
    assert!(machine.finding("ollama").contains("OLLAMA_HOST"));
    machine
        .without("OLLAMA_HOST")
        .with("OLLAMA_HOST", server.url())
        .is_well();
    other.stop();
    server.stop();
}

#[cfg(feature = "ollama")]
#[test]
fn a_server_fetches_and_forgets_models() {
    let server = ollama(&[]);
    let home = Home::new();
    let run = |args: &[&str]| Run::of(home.command(args).env("OLLAMA_HOST", server.url()));
    let pulled = run(&["models", "pull", "qwen3:8b"])
        .succeeds()
        .says("fetching")
        .says("(100 %)");
    assert_eq!(pulled.stdout, "ollama/qwen3:8b is ready.\n");
    run(&["models", "pull", "nobody"])
        .ends_with(3)
        .says("there is no model \"nobody\"");
    run(&["models", "rm", "ollama/qwen3:8b"])
        .ends_with(4)
        .says("-y");
    run(&["models", "rm", "ollama/qwen3:8b", "-y"]).succeeds();
    run(&["models", "rm", "ollama/qwen3:8b", "-y"])
        .ends_with(3)
        .says("Ollama has no model");
    server.stop();
    home.run(&["models", "pull", "ollama/qwen3:8b"])
        .ends_with(5)
        .says("could not be fetched")
        .says("ollama serve");
}

#[cfg(all(unix, feature = "ollama"))]
#[test]
fn a_model_that_is_missing_in_a_conversation_is_offered() {
    use crate::terminal::pty::{Kind, Terminal};
    let server = ollama(&[]);
    let home = Home::new();
    let talk = || {
        let mut command = home.command(&["-m", "ollama/qwen3:8b"]);
        command.env("OLLAMA_HOST", server.url());
        Terminal::of(command, Kind::Usual)
    };
    let mut terminal = talk();
    terminal.sees("Fetch it? [Y/n]").line("n");
    assert!(
        terminal
            .ends_with(3)
            .contains("adjutant models pull ollama/qwen3:8b")
    );
    let mut terminal = talk();
    terminal
        .sees("Fetch it? [Y/n]")
        .line("")
        .prompts_after("/help")
        .keys("\x04");
    terminal.ends_with(0);
    server.stop();
}

#[test]
fn a_damaged_or_missing_embedded_model_is_named_with_the_command() {
    let machine = Machine::new().config("model = \"embedded\"\n");
    assert!(
        machine
            .finding("model")
            .starts_with("adjutant models pull qwen")
    );
    std::fs::create_dir_all(machine.home.path("data/adjutant/models")).unwrap();
    machine.home.file(
        "data/adjutant/models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        "half",
    );
    assert!(
        machine
            .finding("model")
            .starts_with("adjutant models pull qwen")
    );
    let machine = machine.config("model = \"embedded:nowhere.gguf\"\n");
    assert!(
        machine
            .finding("model")
            .starts_with("adjutant config set model embedded")
    );
    let machine = machine.config("model = \"scripted:nowhere.jsonl\"\n");
    assert!(
        machine
            .finding("model")
            .starts_with("adjutant config set model scripted:FILE")
    );
}

#[test]
fn the_source_of_daily_note_settings_is_reported() {
    let machine = Machine::new();
    let vault = machine.home.path("Notes");
    let machine = machine.config(format!(
        "model = \"demo\"\nvaultPath = '{}'\n",
        vault.display()
    ));
    let write = |name: &str, text: &str| {
        let file = vault.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    let told = || {
        let (_, report) = machine.doctor();
        let all = report["checks"].as_array().unwrap();
        let check = all
            .iter()
            .find(|check| check["name"] == "daily notes")
            .unwrap();
        format!(
            "{} {} {}",
            check["status"], check["message"], check["cause"]
        )
    };
    let says = |words: &[&str]| {
        let told = told();
        assert!(
            words.iter().all(|words| told.contains(words)),
            "{words:?}: {told}"
        );
    };
    write(".obsidian/daily-notes.json", r#"{"folder":"Core"}"#);
    says(&["ok", "set by Obsidian", "today Core/"]);
    write(".obsidian/community-plugins.json", r#"["periodic-notes"]"#);
    let data = ".obsidian/plugins/periodic-notes/data.json";
    write(
        data,
        r#"{"daily":{"enabled":true,"folder":"Journal","format":"YYYY dddd","template":"Day"}}"#,
    );
    says(&[
        "warn",
        "set by Periodic Notes",
        "today Journal/",
        "the template Day cannot be read",
    ]);
    write("Day.md", "<% tp.file.title %>\n");
    says(&["warn", "English names", "Templater"]);
    write("Day.md", "# {{title}}\n");
    says(&["ok", "set by Periodic Notes"]);
    write(data, "{\"daily\":");
    says(&["warn", "today Core/", "Periodic Notes cannot be read"]);
    write(".obsidian/community-plugins.json", "[");
    machine.finding("Obsidian's settings");
    write(".obsidian/community-plugins.json", "[]");
    write(".obsidian/daily-notes.json", r#"{"format":"[../]YYYY"}"#);
    machine.finding("daily notes");
}
