//! Settings, keys and places: found, named when wrong, never told when secret.

use crate::harness::{Home, Run, arg};

#[test]
fn broken_toml_names_file_line_and_column() {
    let home = Home::new();
    home.config("model = \"demo\"\n[llm\n");
    home.run(&["hello"])
        .ends_with(3)
        .says("config/adjutant/config.toml:2:")
        .says("is not TOML");
}

#[test]
fn an_unknown_key_names_the_nearest() {
    let home = Home::new();
    home.config("model = \"demo\"\n\n[llm]\ntemprature = 0.5\n");
    home.run(&["hello"])
        .ends_with(3)
        .says("config.toml:4:1: unknown key llm.temprature")
        .says("did you mean llm.temperature?");
}

#[test]
fn a_value_out_of_range_names_key_value_range_and_place() {
    let home = Home::new();
    home.config("[agent]\nmax_tool_iterations = 0\n");
    home.run(&["tasks", "list"])
        .ends_with(3)
        .says("agent.max_tool_iterations must be a whole number from 1 to 100, not 0")
        .says("config.toml:2:23");
}

#[test]
fn a_wrong_variable_names_itself_and_its_range() {
    let home = Home::new();
    for (name, value) in [
        ("LLM_TEMPERATURE", "warm"),
        ("LLM_TEMPERATURE", "2.5"),
        ("LLM_MAX_TOKENS", "0"),
        ("LLM_TIMEOUT", "soon"),
        ("MAX_TOOL_ITERATIONS", "-1"),
        ("ADJUTANT_AGENT_TOOL_TIMEOUT", "30"),
    ] {
        let run = Run::of(home.command(&["-m", "demo", "hello"]).env(name, value)).ends_with(3);
        run.says(&format!("{name} must be "))
            .says(&format!("not {value:?}"));
    }
}

#[test]
fn a_missing_key_names_the_ways_out() {
    let home = Home::new();
    home.run(&["-m", "gemini", "hello"])
        .ends_with(3)
        .says("there is no key for gemini")
        .says("GEMINI_API_KEY")
        .says("adjutant -m embedded");
}

#[test]
fn without_key_terminal_and_download_the_ways_out_are_named() {
    let home = Home::new();
    let run = home.run(&["hello"]).ends_with(3);
    run.says("there is no").says("GEMINI_API_KEY");
}

#[test]
fn an_unknown_provider_or_model_is_an_error() {
    let home = Home::new();
    home.run(&["-m", "gemni", "hello"])
        .ends_with(3)
        .says("did you mean gemini?");
    home.run(&["-m", "embedded:nowhere.gguf", "hello"])
        .ends_with(3);
    home.run(&["-m", "scripted:nowhere.jsonl", "hello"])
        .ends_with(3)
        .says("nowhere.jsonl");
    home.config("model = \"chatgpt\"\n");
    home.run(&["hello"])
        .ends_with(3)
        .says("there is no provider \"chatgpt\"");
}

#[cfg(feature = "openai")]
#[test]
fn a_key_without_a_model_and_a_provider_without_an_address_say_what_is_missing() {
    let home = Home::new();
    let run = Run::of(home.command(&["hello"]).env("GROQ_API_KEY", "secret-123")).ends_with(3);
    run.says("there is a key for groq").says("-m groq/NAME");
    let mut command = home.command(&["-m", "groq", "hello"]);
    Run::of(command.env("GROQ_API_KEY", "secret-123"))
        .ends_with(3)
        .says("which model of groq?");
    home.run(&["-m", "openai-compatible/x", "hello"])
        .ends_with(3)
        .says("OPENAI_COMPATIBLE_BASE_URL=");
}

#[cfg(feature = "openai")]
#[test]
fn every_provider_has_a_section_and_the_more_specific_setting_wins() {
    let home = Home::new();
    home.config(
        "model = \"groq/m\"\n[groq]\nbase_url = \"http://127.0.0.1:1\"\nretries = 0\n[llm]\nretries = 9\n",
    );
    // Nobody listens there: one attempt, and no key is needed for an address of one's own.
    let run = home.run(&["hello"]).ends_with(5).says("cannot reach groq");
    assert!(!run.stderr.contains("attempt 1 failed"), "{run:?}");
    let shown = home.run(&["config", "show"]).succeeds();
    assert!(
        shown.stdout.contains("groq.base_url") && !shown.stdout.contains("mistral."),
        "{shown:?}"
    );
    home.config("[groq]\nbase_ulr = \"x\"\n");
    home.run(&["hello"])
        .ends_with(3)
        .says("did you mean groq.base_url?");
    home.config("[groq]\napi_key = \"secret-123\"\n");
    let run = home
        .run(&["hello"])
        .ends_with(3)
        .says("GROQ_API_KEY in the environment");
    assert!(!format!("{run:?}").contains("secret-123"));
}

#[test]
fn the_key_is_never_told() {
    let home = Home::new();
    home.file("config/adjutant/.env", "GEMINI_API_KEY=secret-123\n");
    let show = home.run(&["config", "show", "--origin"]).succeeds();
    assert!(show.stdout.contains("set, not shown"), "{show:?}");
    assert!(!format!("{show:?}").contains("secret-123"));
    // Nobody listens on port 1, so this fails without leaving the machine.
    let mut command = home.command(&["-v", "hello"]);
    let run = Run::of(
        command
            .env("GEMINI_BASE_URL", "http://127.0.0.1:1")
            .env("ADJUTANT_LLM_RETRIES", "0"),
    );
    let run = run.ends_with(5).says("gemini/");
    assert!(!format!("{run:?}").contains("secret-123"), "{run:?}");
}

#[test]
fn an_unusable_data_folder_is_an_error() {
    let home = Home::new();
    home.file("data", "a file where a folder should be");
    for args in [
        &["-m", "demo", "hello"][..],
        &["tasks", "list"],
        &["pending", "list"],
        &["log", "list"],
    ] {
        home.run(args)
            .ends_with(3)
            .says("Error: the data cannot be used")
            .says("ADJUTANT_STORE_PATH");
    }
    let other = home.path("elsewhere/my.db");
    Run::of(
        home.command(&["tasks", "add", "x"])
            .env("ADJUTANT_STORE_PATH", &other),
    )
    .succeeds();
    assert!(other.exists());
}

#[test]
fn show_tells_value_and_origin_and_path_works_when_broken() {
    let home = Home::new();
    home.config("[llm]\ntemperature = 0.5\n");
    let mut command = home.command(&["config", "show", "--json"]);
    let shown = Run::of(command.env("LLM_TIMEOUT", "7")).succeeds().json();
    assert_eq!(shown["llm.temperature"]["value"], "0.5");
    assert!(
        shown["llm.temperature"]["origin"]
            .as_str()
            .unwrap()
            .ends_with("config.toml:2")
    );
    assert_eq!(shown["llm.timeout"]["value"], "7s");
    assert_eq!(shown["llm.timeout"]["origin"], "variable LLM_TIMEOUT");
    assert_eq!(shown["user_name"]["value"], "ana");
    home.config("broken");
    home.run(&["config", "show"]).ends_with(3);
    let path = home.run(&["config", "path"]).succeeds();
    assert!(
        path.stdout.contains("config.toml") && path.stdout.contains("adjutant.db"),
        "{path:?}"
    );
}

#[test]
fn named_files_are_used() {
    let home = Home::new();
    let config = home.file("other.toml", "model = \"demo\"\n");
    home.run(&["-C", arg(&config), "hello"])
        .succeeds()
        .says("scripted/demo");
    let env = home.file("other.env", "ADJUTANT_MODEL=demo\n");
    home.run(&["--env-file", arg(&env), "hello"])
        .succeeds()
        .says("scripted/demo");
    home.run(&["-C", "nowhere.toml", "hello"])
        .ends_with(3)
        .says("nowhere.toml");
}

#[test]
fn a_project_bounds_but_does_not_redirect_until_it_is_trusted() {
    let home = Home::new();
    let file = "model = \"demo\"\n[agent]\ndeny = [\"add_task\"]\n";
    home.file("project/adjutant.toml", file);
    // Its bounds count, and what would redirect does not.
    home.run(&["tasks", "add", "x"])
        .ends_with(1)
        .says("Error:")
        .says("is not trusted")
        .says("model");
    assert!(home.tasks().is_empty());
    home.run(&["config", "get", "model"])
        .ends_with(1)
        .says("model is not set");
    home.run(&["config", "trust"]).succeeds();
    assert_eq!(
        home.run(&["config", "get", "model"]).succeeds().stdout,
        "demo\n"
    );
    // Whoever changes it has to be trusted anew.
    home.file(
        "project/adjutant.toml",
        format!("{file}confirm = [\"*\"]\n"),
    );
    home.run(&["config", "get", "model"]).ends_with(1);
    assert!(
        home.run(&["config", "trust", "--list"])
            .succeeds()
            .stdout
            .contains("changed")
    );
    home.run(&["config", "trust", arg(&home.path("project"))])
        .succeeds();
    home.run(&["config", "get", "model"]).succeeds();
    home.run(&["config", "trust", "--revoke"]).succeeds();
    home.run(&["config", "get", "model"]).ends_with(1);
    home.run(&["config", "trust", "/nowhere"])
        .ends_with(1)
        .says("there is no folder");
}

#[test]
fn one_setting_is_read_and_written_and_the_rest_of_the_file_stays() {
    let home = Home::new();
    let mine = "# mine\nmodel = \"demo\" # for now\n\n[llm]\n# warmer\ntemperature = 0.5\n";
    home.config(mine);
    let text = || std::fs::read_to_string(home.path("config/adjutant/config.toml")).unwrap();
    home.run(&["config", "set", "llm.temperature", "0.7"])
        .succeeds();
    assert_eq!(text(), mine.replace("0.5", "0.7"));
    assert_eq!(
        home.run(&["config", "get", "llm.temperature"])
            .succeeds()
            .stdout,
        "0.7\n"
    );
    home.run(&["config", "set", "vault.path", "Notes"])
        .succeeds();
    let project = home.path("project").canonicalize().unwrap();
    assert!(
        text().ends_with(&format!(
            "[vault]\npath = \"{}/Notes\"\n",
            project.display()
        )),
        "{}",
        text()
    );
    home.run(&["config", "set", "vaultPath", "--unset"])
        .succeeds();
    for (key, value) in [
        ("llm.temperature", "hot"),
        ("agent.max_tool_iterations", "-1"),
    ] {
        home.run(&["config", "set", key, value])
            .ends_with(2)
            .says(&format!("{key} must be"));
    }
    home.run(&["config", "set", "llm.temprature", "1"])
        .ends_with(3)
        .says("did you mean llm.temperature?");
    home.run(&["config", "get", "nothing"]).ends_with(3);
    home.run(&["config", "set", "model"]).ends_with(2);
    let run = Run::of(
        home.command(&["config", "set", "llm.timeout", "9s"])
            .env("LLM_TIMEOUT", "7"),
    )
    .succeeds();
    run.says("another source wins over it: variable LLM_TIMEOUT");
    home.config("model = [\n");
    home.run(&["config", "set", "model", "demo"])
        .ends_with(3)
        .says("config.toml:");
    assert_eq!(text(), "model = [\n");
}

#[test]
fn check_looks_at_every_source() {
    let home = Home::new();
    let run = home.run(&["config", "check"]).succeeds();
    assert_eq!(run.stdout, "The configuration is right.\n");
    home.config("[llm]\ntemprature = 1\n");
    home.file("config/adjutant/.env", "LLM_TIMEOUT=soon\n");
    home.run(&["config", "check"])
        .ends_with(3)
        .says("config.toml:2:1: unknown key llm.temprature")
        .says("did you mean llm.temperature?")
        .says("LLM_TIMEOUT must be");
    let (code, report) = home.json(&["config", "check"]);
    assert_eq!(
        (code, report["problems"].as_array().unwrap().len()),
        (3, 2),
        "{report:#}"
    );
}

#[test]
fn the_editor_is_opened_and_what_comes_out_is_checked() {
    let home = Home::new();
    let right = home.file("right.toml", "model = \"demo\"\n");
    let edit = |editor: String| {
        Run::of(
            home.command(&["config", "edit"])
                .env("PATH", "/usr/bin:/bin")
                .env("EDITOR", editor),
        )
    };
    edit(format!("cp {}", right.display())).succeeds();
    assert_eq!(
        home.run(&["config", "get", "model"]).succeeds().stdout,
        "demo\n"
    );
    home.file("right.toml", "modle = 1\n");
    edit(format!("cp {}", right.display()))
        .ends_with(3)
        .says("did you mean model?");
    edit("false".to_owned())
        .ends_with(1)
        .says("false ended with");
    home.run(&["config", "edit"])
        .ends_with(2)
        .says("no editor is named");
}

#[test]
fn the_schema_is_one() {
    let home = Home::new();
    let run = home.run(&["config", "schema"]).succeeds();
    let schema: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    jsonschema::meta::validate(&schema).unwrap();
    assert!(
        jsonschema::validator_for(&schema)
            .unwrap()
            .is_valid(&serde_json::json!({ "model": "demo" }))
    );
}

#[test]
fn a_policy_that_names_no_tool_is_an_error() {
    let home = Home::new();
    home.config("[agent]\nconfirm = [\"delete_tsk\"]\n");
    home.run(&["tasks", "list"])
        .ends_with(3)
        .says("there is no tool \"delete_tsk\"")
        .says("delete_task");
}

#[test]
fn the_instruction_can_be_replaced() {
    let home = Home::new();
    home.config("system_prompt_path = \"me.md\"\nmodel = \"demo\"\n");
    home.run(&["hello"])
        .ends_with(3)
        .says("me.md cannot be read");
    home.file("config/adjutant/me.md", "You help {{user_name}}.");
    home.run(&["hello"]).succeeds();
}

/// It reaches the model, with the person's name.
#[cfg(feature = "gemini")]
#[test]
fn a_replaced_instruction_is_what_the_model_reads() {
    use crate::vendor::{Reply, Vendor};

    let home = Home::new();
    home.config("system_prompt_path = \"me.md\"\nuser_name = \"Ana\"\n");
    home.file("config/adjutant/me.md", "You help {{user_name}}.");
    let answer = serde_json::json!({"candidates": [
        {"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP"}
    ]});
    let vendor = Vendor::answering(vec![Reply::events(&[answer])]);
    let mut command = home.command(&["ask", "-m", "gemini/m", "hello"]);
    Run::of(
        command
            .env("GEMINI_API_KEY", "k")
            .env("GEMINI_BASE_URL", vendor.url()),
    )
    .succeeds();
    let asked = vendor.asked();
    let instruction = asked[0].body["systemInstruction"]["parts"][0]["text"]
        .as_str()
        .unwrap();
    assert!(instruction.contains("You help Ana."), "{instruction}");
    assert!(!instruction.contains("Diana"), "{instruction}");
}

#[test]
fn a_misspelt_variable_is_told_and_stops_nothing() {
    let home = Home::new();
    let run = Run::of(
        home.command(&["-m", "demo", "hello"])
            .env("ADJUTANT_MODLE", "x"),
    )
    .succeeds();
    run.says("did you mean ADJUTANT_MODEL?");
}
