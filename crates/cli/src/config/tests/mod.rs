//! Tests of all sources together, and of the page that documents the settings.

mod documentation;

use super::*;

/// A user's folder and a project's, with these files.
struct Folders {
    root: tempfile::TempDir,
    sources: Sources,
}

impl Folders {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let dirs = Dirs {
            config: at("config"),
            data: root.path().join("data"),
            cache: root.path().join("cache"),
            state: root.path().join("state"),
            os_user: "ana".to_owned(),
        };
        let sources = Sources::new(dirs, at("project"), BTreeMap::new());
        Self { root, sources }
    }

    fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.root.path().join(name), text).unwrap();
        self
    }

    /// Trusts the project's files as they are.
    fn trust(&self) {
        trust::Candidates::read(&self.sources.project)
            .unwrap()
            .trust(&self.sources.dirs.state)
            .unwrap();
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.sources
            .variables
            .insert(name.to_owned(), value.to_owned());
        self
    }

    fn load(&self) -> Settings {
        self.sources.load().unwrap()
    }
}

fn origin(settings: &Settings, name: &str) -> String {
    settings
        .shown
        .iter()
        .find(|shown| shown.name == name)
        .unwrap()
        .origin
        .clone()
}

#[test]
fn nothing_set_is_the_defaults() {
    let settings = Folders::new().load();
    assert_eq!(settings.model, None);
    assert_eq!(settings.user_name, "ana");
    assert_eq!(settings.agent.max_tool_iterations, Some(5));
    assert!(settings.database.to_string().ends_with("data/adjutant.db"));
    assert!(settings.serve.bind.ip().is_loopback());
    assert_eq!(settings.serve.auth, Authentication::Token);
    assert_eq!(settings.keep, None);
    assert!(settings.llm.temperature.is_none() && settings.llm.timeout.is_none());
}

#[test]
fn later_sources_win_one_by_one() {
    let mut folders =
        Folders::new().file("config/config.toml", "[agent]\nmax_tool_iterations = 1\n");
    let iterations = |folders: &Folders| folders.load().agent.max_tool_iterations.unwrap();
    assert_eq!(iterations(&folders), 1);
    assert!(origin(&folders.load(), "agent.max_tool_iterations").ends_with("config/config.toml:2"));
    folders = folders.file(
        "project/adjutant.toml",
        "[agent]\nmax_tool_iterations = 2\n",
    );
    assert_eq!(iterations(&folders), 2);
    folders = folders.file("config/.env", "MAX_TOOL_ITERATIONS=3\n");
    assert_eq!(iterations(&folders), 3);
    folders = folders.variable("MAX_TOOL_ITERATIONS", "4");
    assert_eq!(iterations(&folders), 4);
    assert_eq!(
        origin(&folders.load(), "agent.max_tool_iterations"),
        "variable MAX_TOOL_ITERATIONS"
    );
}

#[test]
fn the_option_wins_over_everything() {
    let mut folders = Folders::new().variable("ADJUTANT_MODEL", "gemini");
    folders.sources.model = Some("demo".to_owned());
    let settings = folders.load();
    assert_eq!(settings.model.as_deref(), Some("demo"));
    assert_eq!(origin(&settings, "model"), "option -m");
}

#[test]
fn a_projects_lists_only_add() {
    let settings = Folders::new()
        .file(
            "config/config.toml",
            "[agent]\nconfirm = [\"add_task\"]\ndeny = [\"update_task\"]\n",
        )
        .file(
            "project/adjutant.toml",
            "[agent]\nconfirm = []\ndeny = [\"delete_task\"]\n",
        )
        .load();
    assert_eq!(settings.agent.confirm, ["add_task"]);
    assert_eq!(settings.agent.deny, ["update_task", "delete_task"]);
}

#[test]
fn a_project_runs_no_program_and_chooses_no_conversation() {
    let text = "[notify]\ncommand = [\"/tmp/evil\"]\n[sessions]\ncontinue = \"folder\"\n";
    let folders = Folders::new().file("project/adjutant.toml", text);
    let settings = folders.load();
    assert!(settings.notify.is_empty() && settings.scope == Scope::Global);
    folders.trust();
    assert_eq!(folders.load().notify, ["/tmp/evil"]);
}

#[test]
fn the_projects_env_file_is_not_read() {
    let settings = Folders::new()
        .file(
            "project/.env",
            "GEMINI_API_KEY=stolen\nGEMINI_BASE_URL=http://evil\n",
        )
        .load();
    let gemini = &settings.providers["gemini"];
    assert!(gemini.key.is_none() && gemini.base_url.is_none());
}

#[test]
fn serve_uses_the_projects_env_file_once_it_is_trusted() {
    let mut folders = Folders::new()
        .file("project/.env", "MAX_TOOL_ITERATIONS=2\n")
        .file("config/.env", "MAX_TOOL_ITERATIONS=3\n");
    folders.sources.serves = true;
    let iterations = |folders: &Folders| folders.load().agent.max_tool_iterations;
    assert_eq!(iterations(&folders), Some(3));
    let warnings = folders.load().warnings.join(" ");
    assert!(
        warnings.contains("project/.env is not trusted")
            && warnings.contains("adjutant config trust"),
        "{warnings}"
    );
    folders.trust();
    assert_eq!(
        (iterations(&folders), folders.load().warnings),
        (Some(2), Vec::new())
    );
    folders.sources.serves = false;
    assert_eq!(
        (iterations(&folders), folders.load().warnings),
        (Some(3), Vec::new())
    );
    folders.sources.serves = true;
    let folders = folders.file("project/.env", "MAX_TOOL_ITERATIONS=4\n");
    assert_eq!(iterations(&folders), Some(3), "it has changed since");
}

#[test]
fn an_address_of_the_folder_gets_no_key_from_elsewhere() {
    let trusted = |toml: &str, env: &str| {
        let mut folders = Folders::new()
            .file("project/adjutant.toml", toml)
            .file("project/.env", env);
        folders.sources.serves = true;
        folders.trust();
        folders
    };
    let of = |folders: &Folders, provider: &str| {
        let set = folders.load().providers[provider].clone();
        (
            set.key.is_some(),
            set.withheld.map(|withheld| withheld.address),
        )
    };
    let there = |address: &str| (false, Some(address.to_owned()));
    let evil = "http://evil.example/v1";
    let [in_toml, in_env] = [
        trusted(&format!("[gemini]\nbase_url = \"{evil}\"\n"), ""),
        trusted("", &format!("GEMINI_BASE_URL={evil}\n")),
    ];
    for folders in [in_toml, in_env] {
        assert_eq!(of(&folders, "gemini"), (false, None));
        let folders = folders.file("config/credentials.toml", "GEMINI_API_KEY = \"kept\"\n");
        assert_eq!(of(&folders, "gemini"), there(evil));
        let folders = folders.variable("GEMINI_API_KEY", "of the process");
        assert_eq!(of(&folders, "gemini"), there(evil));
        // A variable of the process wins over the folder's files, so the address is the user's.
        let folders = folders.variable("GEMINI_BASE_URL", "http://own.example");
        assert_eq!(of(&folders, "gemini"), (true, None));
    }
    let both = trusted(
        "",
        &format!("GEMINI_BASE_URL={evil}\nGEMINI_API_KEY=its-own\n"),
    );
    assert_eq!(of(&both, "gemini"), (true, None));
    let named = Folders::new().file("own.env", &format!("GEMINI_BASE_URL={evil}\n"));
    let mut named = named.variable("GEMINI_API_KEY", "of the process");
    named.sources.env_file = Some(named.root.path().join("own.env"));
    assert_eq!(of(&named, "gemini"), (true, None));
}

#[cfg(feature = "ollama")]
#[test]
fn a_database_of_the_folder_gets_no_password_from_elsewhere() {
    let load = |url: &str, variable: &str| {
        let folders = Folders::new()
            .file(
                "project/adjutant.toml",
                &format!("[serve]\ndatabase_url = \"{url}\"\n"),
            )
            .variable(variable, "secret");
        folders.trust();
        folders.sources.load()
    };
    for variable in ["PGPASSWORD", "PGPASSFILE"] {
        for url in [
            "postgres://ana@evil.example/d",
            "postgresql:///d?host=127.0.0.1",
        ] {
            let refused = load(url, variable).unwrap_err();
            assert!(refused.message.contains(variable), "{}", refused.message);
        }
        for url in [
            "postgres://ana:own@h/d",
            "postgres://h/d?password=own",
            "sqlite:a.db",
        ] {
            assert!(load(url, variable).is_ok(), "{url}");
        }
    }
    assert!(load("postgres://ana@h/d", "PGUSER").is_ok());
    let home = Folders::new()
        .file(
            "project/adjutant.toml",
            "[serve]\ndatabase_url = \"postgres://h/d\"\n",
        )
        .file(".pgpass", "*:*:*:*:secret");
    let root = home.root.path().to_string_lossy().into_owned();
    let home = home.variable("HOME", &root);
    home.trust();
    assert!(
        home.sources
            .load()
            .unwrap_err()
            .message
            .contains("~/.pgpass")
    );
    // The user may name any address themselves.
    let own = Folders::new()
        .variable("DATABASE_URL", "postgres://ana@h/d")
        .variable("PGPASSWORD", "secret");
    assert!(own.sources.load().is_ok());
}

#[test]
fn variables_of_the_process_stay_out_of_the_folders_env_file() {
    let load = |env: &str, named: bool| {
        let mut folders = Folders::new()
            .file("project/.env", env)
            .variable("MY_KEY", "secret");
        folders.sources.serves = true;
        if named {
            folders.sources.env_file = Some(folders.sources.project.join(".env"));
        }
        folders.trust();
        folders.sources.load()
    };
    for value in [
        "http://h/${MY_KEY}",
        "http://h/$MY_KEY",
        "\"a ${MY_KEY}\"",
        "$$MY_KEY",
        "a'$'${MY_KEY}",
    ] {
        let line = format!("OPENAI_BASE_URL={value}\n");
        let refused = load(&line, false).unwrap_err();
        assert!(
            refused.message.contains("uses your variable MY_KEY"),
            "{}",
            refused.message
        );
        assert!(!refused.message.contains("secret"));
    }
    assert!(load("A=\"http://h/${MY_KEY}\"\n", true).is_ok());
    assert!(load("A=1\nB=$A\nC='p$ss'\n", false).is_ok());
}

#[test]
fn a_host_of_the_folder_gets_no_key_from_elsewhere() {
    for (line, address) in [
        ("host = \"evil.example\"", "evil.example:11434"),
        ("port = 77", "localhost:77"),
    ] {
        let folders = Folders::new()
            .file("project/adjutant.toml", &format!("[ollama]\n{line}\n"))
            .variable("OLLAMA_API_KEY", "of the process");
        folders.trust();
        let set = folders.load().providers["ollama"].clone();
        assert_eq!(
            (set.key.is_some(), set.withheld.unwrap().address),
            (false, address.to_owned())
        );
    }
}

#[test]
fn the_key_is_taken_from_the_environment_and_never_shown() {
    let folders = Folders::new().file("config/.env", "GEMINI_API_KEY=from-file\n");
    assert!(folders.load().providers["gemini"].key.is_some());
    let settings = folders.variable("GEMINI_API_KEY", "from-process").load();
    assert_eq!(
        origin(&settings, "GEMINI_API_KEY"),
        "variable GEMINI_API_KEY"
    );
    let everything = format!("{settings:?}");
    assert!(
        !everything.contains("from-file") && !everything.contains("from-process"),
        "{everything}"
    );
}

#[test]
fn a_file_that_was_named_has_to_be_there() {
    let mut folders = Folders::new();
    folders.sources.config = Some(folders.root.path().join("nowhere.toml"));
    assert_eq!(folders.sources.load().unwrap_err().exit as u8, 3);
    folders.sources.config = None;
    folders.sources.env_file = Some(folders.root.path().join("nowhere.env"));
    assert_eq!(folders.sources.load().unwrap_err().exit as u8, 3);
}

#[test]
fn a_broken_env_file_does_not_show_its_secrets() {
    let folders = Folders::new().file("config/.env", "GEMINI_API_KEY=secret-123 and more words\n");
    let error = folders.sources.load().unwrap_err();
    assert!(!format!("{error:?}").contains("secret-123"), "{error:?}");
}

/// A value other than the default for each setting, as a variable has it and as TOML has it.
fn example(name: &str) -> (&'static str, &'static str) {
    match name {
        "model" | "user_name" | "embedded.model" => ("word", "\"word\""),
        name if name.ends_with(".model") || name.ends_with(".base_url") => ("word", "\"word\""),
        name if name.ends_with(".retries") => ("7", "7"),
        "ollama.host" | "ollama.keep_alive" => ("word", "\"word\""),
        "terminal.thinking" => ("show", "\"show\""),
        "ollama.think" => ("off", "\"off\""),
        "ollama.port" | "ollama.context_size" => ("777", "777"),
        "system_prompt_path" | "store.path" | "prices_file" => ("/some/file", "\"/some/file\""),
        "llm.temperature" | "agent.summarize_at" => ("0.7", "0.7"),
        name if name.ends_with("_usd") => ("0.7", "0.7"),
        name if name.ends_with("_tokens") || name.ends_with("_calls") => ("7", "7"),
        "llm.max_tokens"
        | "agent.max_tool_iterations"
        | "agent.max_parallel_tools"
        | "agent.identical_calls_max"
        | "agent.history_messages_max"
        | "agent.message_chars_max" => ("7", "7"),
        "agent.long_message" => ("refuse", "\"refuse\""),
        "fallback" => ("ollama,demo", "[\"ollama\", \"demo\"]"),
        "agent.confirm" | "agent.allow" | "agent.deny" => {
            ("add_task,list_tasks", "[\"add_task\", \"list_tasks\"]")
        }
        "serve.bind" | "serve.metrics_bind" => ("127.0.0.1:77", "\"127.0.0.1:77\""),
        "vault.path" => ("/some/folder", "\"/some/folder\""),
        "vault.daily" | "vault.conversations" | "memory.path" | "memory.heading" => {
            ("word", "\"word\"")
        }
        "vault.users" => ("anna=/some/folder", "{ anna = \"/some/folder\" }"),
        "memory.database" => ("false", "false"),
        "vault.tasks" => ("notes", "\"notes\""),
        "vault.tasks_note" => ("word", "\"word\""),
        "vault.locale" => ("pt-br", "\"pt-br\""),
        "vault.exclude" => ("Archive/,*.private.md", "[\"Archive/\", \"*.private.md\"]"),
        "terminal.keys" => ("vi", "\"vi\""),
        "vault.log_conversations" | "turns.finish_with_any_model" | "serve.operator_sees_words" => {
            ("true", "true")
        }
        "agent.control_functions" | "memory.told" => ("false", "false"),
        "memory.max_facts" => ("7", "7"),
        "serve.jwt_secret" => ("0123456789", "\"0123456789\""),
        "serve.jwt_jwks_file" => ("/some/file", "\"/some/file\""),
        "serve.jwt_jwks_url" | "serve.jwt_issuer" | "vault.owner" | "serve.oidc_issuer" => {
            ("word", "\"word\"")
        }
        "serve.oidc_client_id" | "serve.oidc_redirect" | "serve.oidc_user_claim" => {
            ("word", "\"word\"")
        }
        "serve.oidc_client_secret" => ("0123456789", "\"0123456789\""),
        "serve.roles_claim" => ("groups", "\"groups\""),
        "serve.roles_header" | "serve.proxy_header" => ("x-user", "\"x-user\""),
        "serve.operators"
        | "serve.operator_roles"
        | "serve.metrics_roles"
        | "serve.oidc_scopes" => ("one,two", "[\"one\", \"two\"]"),
        "serve.token_expiry" => ("77d", "\"77d\""),
        "serve.proxy_peers" | "serve.jwt_audience" => ("one,two", "[\"one\", \"two\"]"),
        "serve.requests_per_minute" | "serve.turns_at_once" | "serve.turns_in_all" => ("7", "7"),
        "serve.messages_queued" | "serve.connections" | "serve.connections_per_address" => {
            ("7", "7")
        }
        "serve.metrics" => ("off", "\"off\""),
        "serve.titles" => ("words", "\"words\""),
        "serve.log" => ("debug", "\"debug\""),
        "serve.log_format" => ("json", "\"json\""),
        "serve.trace_propagation" => ("false", "false"),
        "serve.mcp_ask" => ("false", "false"),
        "serve.auth" => ("none", "\"none\""),
        "serve.dispatch" => ("restate://queue:8080", "\"restate://queue:8080\""),
        "serve.background_prompts" => ("agent", "\"agent\""),
        "serve.name" => ("The team's assistant", "\"The team's assistant\""),
        "serve.contact" => ("ops@example.com", "\"ops@example.com\""),
        "serve.origins" => ("http://localhost:5173", "[\"http://localhost:5173\"]"),
        "serve.hosts" => (
            "tasks.example,team.example",
            "[\"tasks.example\", \"team.example\"]",
        ),
        "sessions.continue" => ("folder", "\"folder\""),
        "notify.command" => ("tell,{text}", "[\"tell\", \"{text}\"]"),
        "database.pool_max" => ("7", "7"),
        "database.listen_url" => ("postgres://db:5432/team", "\"postgres://db:5432/team\""),
        "serve.database_url" => ("postgres://db/team", "\"postgres://db/team\""),
        "log.keep" => ("77d", "\"77d\""),
        "log.content" => ("redacted", "\"redacted\""),
        "llm.tool_calling" => ("free", "\"free\""),
        _ => ("77s", "\"77s\""),
    }
}

/// The settings without the list that is only for showing.
fn effect(settings: &Settings) -> String {
    format!(
        "{:?}",
        Settings {
            shown: Vec::new(),
            ..settings.clone()
        }
    )
}

#[test]
fn every_setting_has_an_effect_from_toml_from_its_own_variable_and_from_older_ones() {
    for key in KEYS.iter() {
        let (text, in_toml) = example(&key.name);
        let (section, name) = key.section_and_name();
        let header = if section.is_empty() {
            String::new()
        } else {
            format!("[{section}]\n")
        };
        let mut places = vec![Folders::new().file(
            "config/config.toml",
            &format!("{header}{name} = {in_toml}\n"),
        )];
        for variable in key.variables() {
            let text = if Some(variable.as_str()) == key.variable {
                text.trim_end_matches('s')
            } else {
                text
            };
            places.push(Folders::new().variable(&variable, text));
        }
        for folders in places {
            let settings = folders.load();
            let shown = settings
                .shown
                .iter()
                .find(|shown| shown.name == key.name)
                .unwrap();
            let value = shown.value.clone().unwrap();
            let visible = if matches!(key.kind, Kind::Secret) {
                "set,not shown"
            } else {
                text
            };
            assert_eq!(value.replace(", ", ","), visible, "{}", key.name);
            let bare = Folders {
                root: folders.root,
                sources: Sources {
                    variables: BTreeMap::new(),
                    ..folders.sources
                },
            };
            let _ = std::fs::remove_file(bare.root.path().join("config/config.toml"));
            assert_ne!(
                effect(&settings),
                effect(&bare.load()),
                "{} changes nothing",
                key.name
            );
        }
    }
}

#[test]
fn names_and_variables_are_unique() {
    let mut seen: Vec<String> = Vec::new();
    for key in KEYS.iter() {
        let (section, _) = key.section_and_name();
        seen.extend([key.name.to_string(), key.own_variable()]);
        seen.extend(key.alias.map(|alias| format!("{section}.{alias}")));
        // Providers of one vendor share its variables.
        seen.extend(key.variable.filter(|_| !key.quiet).map(str::to_owned));
    }
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all);
}
