//! The memory over HTTP: of the vault's owner, of others with a vault of their own, and of
//! everybody else in the database.

mod database;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use serde_json::{Value, json};

use crate::harness::{Home, Run};
use crate::server::Server;
use crate::service::{Reply, Serving, send};
use crate::vendor::{self, Vendor};

const FACT: &str = "Zanzibar is where Josh was born";

fn ask(service: &Serving, token: &str, method: &str, path: &str, body: &Value) -> Reply {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
    ];
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    send(&service.address, method, path, &headers, &body).unwrap()
}

/// Facts about those who have no vault are not kept.
const VAULT_ALONE: (&str, &str) = ("ADJUTANT_MEMORY_DATABASE", "false");

fn serve(home: &Home, model: &str) -> Serving {
    let vault = home.path("Notes");
    std::fs::create_dir_all(vault.join(".obsidian")).unwrap();
    let mut command = home.serve_command(model);
    command.envs([VAULT_ALONE]);
    Serving::start(command.env("ADJUTANT_VAULT_PATH", vault))
}

/// Makes a token of a user.
fn token(home: &Home, user: &str) -> String {
    let made = home
        .run(&["token", "create", "--user", user, "--json"])
        .succeeds()
        .json();
    made["token"].as_str().unwrap().to_owned()
}

#[test]
fn its_owner_sees_and_changes_what_is_remembered_and_the_agent_has_its_tools() {
    let home = Home::new();
    let model = home.script(&[r#"{"match": "where was I born", "text": "I know."}"#]);
    let service = serve(&home, &model);
    let token = service.token().to_owned();
    let mine = |method: &str, path: &str, body: &Value| ask(&service, &token, method, path, body);
    let none = Value::Null;
    assert_eq!(mine("GET", "/v1/me", &none).json()["memory"], true);
    assert_eq!(
        mine("GET", "/v1/memory", &none).json(),
        json!({"facts": []})
    );

    let added = mine("POST", "/v1/memory", &json!({"content": FACT})).json();
    assert_eq!(
        (&added["status"], &added["fact"]["content"]),
        (&json!("added"), &json!(FACT)),
        "{added}"
    );
    let id = added["fact"]["id"].as_str().unwrap().to_owned();
    let file = home.path("Notes/memory/facts.md");
    assert!(std::fs::read_to_string(&file).unwrap().contains(FACT));

    let one = format!("/v1/memory/{id}");
    assert_eq!(
        mine("PATCH", &one, &json!({"important": true})).json()["fact"]["important"],
        true
    );
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .contains("#important")
    );
    assert_eq!(
        mine("GET", &one, &none).json()["history"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        mine("GET", "/v1/memory?q=born", &none).json()["facts"]
            .as_array()
            .unwrap()
            .len(),
        1
    );

    // The agent has its tools: it is the one of the terminal.
    let said = mine("POST", "/v1/chat", &json!({"message": "where was I born?"})).json();
    assert_eq!(said["content"], "I know.");
    assert!(mine("GET", "/v1/me", &none).text.contains("\"remember\""));

    assert_eq!(mine("DELETE", &one, &none).json()["status"], "forgotten");
    assert!(!std::fs::read_to_string(&file).unwrap().contains(FACT));
    assert!(mine("POST", "/v1/memory/undo", &none).json()["message"].is_string());
    assert!(std::fs::read_to_string(&file).unwrap().contains(FACT));

    for (method, path, body, status, code) in [
        ("GET", "/v1/memory/ffffff", &none, 404, "unknown"),
        ("DELETE", "/v1/memory/Zanzibar", &none, 404, "unknown"),
        (
            "POST",
            "/v1/memory",
            &json!({"content": " "}),
            422,
            "invalid_request",
        ),
        ("POST", "/v1/memory", &json!([]), 422, "invalid_request"),
        (
            "POST",
            "/v1/memory",
            &json!({"content": "x".repeat(1_001)}),
            422,
            "invalid_request",
        ),
        (
            "POST",
            "/v1/memory",
            &json!({"content": format!("x{}", " ".repeat(1_000))}),
            422,
            "invalid_request",
        ),
        (
            "PATCH",
            &one,
            &json!({"content": format!("x{}", " ".repeat(1_000))}),
            422,
            "invalid_request",
        ),
        (
            "GET",
            &format!("/v1/memory?q={}", "x".repeat(1_001)),
            &none,
            422,
            "invalid_request",
        ),
        (
            "GET",
            &format!("/v1/memory?q=x{}", "%20".repeat(1_000)),
            &none,
            422,
            "invalid_request",
        ),
    ] {
        let reply = mine(method, path, body);
        assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
        reply.is_problem(code, path.split_once('?').map_or(path, |(path, _)| path));
    }
    std::fs::create_dir(home.path("Notes/Plans")).unwrap();
    std::fs::write(home.path("Notes/Plans/The house.md"), "").unwrap();
    assert_eq!(mine("GET", "/v1/me", &none).json()["vault"], "Notes");
    let links = json!({"links": ["the house#Roof", "Gone"]});
    let opened = "obsidian://open?vault=Notes&file=Plans%2FThe%20house%23Roof";
    assert_eq!(
        mine("POST", "/v1/notes/links", &links).json(),
        json!({"addresses": [opened, null]})
    );
    for wrong in [
        json!({"links": vec!["a"; 101]}),
        json!({"links": ["a".repeat(1_001)]}),
        json!({}),
    ] {
        let reply = mine("POST", "/v1/notes/links", &wrong);
        assert_eq!(reply.status, 422, "{reply:?}");
        reply.is_problem("invalid_request", "/v1/notes/links");
    }
    // The vault may go away while it is served.
    std::fs::rename(home.path("Notes"), home.path("Elsewhere")).unwrap();
    let gone = mine("GET", "/v1/memory", &none);
    assert_eq!(gone.status, 409, "{gone:?}");
    assert!(
        !gone.text.contains(&*home.path("Notes").to_string_lossy()),
        "{gone:?}"
    );
    assert_eq!(mine("POST", "/v1/notes/links", &links).status, 409);
}

/// The words of a message are what the person said, and what was told with them stands beside.
#[test]
fn facts_attached_to_a_message_are_shown_with_it() {
    let home = Home::new();
    let model = home
        .script(&[r#"{"match": "where was Josh born", "text": "In Zanzibar.", "repeat": true}"#]);
    let service = serve(&home, &model);
    let token = service.token().to_owned();
    let mine = |method: &str, path: &str, body: &Value| ask(&service, &token, method, path, body);
    let fact = mine("POST", "/v1/memory", &json!({"content": FACT})).json()["fact"]["id"].clone();
    let said = |id: &str| json!({"id": id, "role": "user", "content": "where was Josh born?"});
    let run = json!({"threadId": "t", "runId": "r", "messages": [said("1")]});
    let bearer = format!("Bearer {token}");
    let stream = |run: &Value| {
        let stream = ("Accept", "text/event-stream");
        let headers = [
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
            stream,
        ];
        send(
            &service.address,
            "POST",
            "/v1/runs",
            &headers,
            &run.to_string(),
        )
        .unwrap()
        .text
    };
    let events = stream(&run);
    let events: Vec<Value> = events
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_memory = |event: &&Value| event["name"] == "memory";
    let recalled = &events.iter().find(of_memory).unwrap()["value"]["told"][0];
    assert_eq!(recalled["id"], fact, "{events:#?}");
    assert!(recalled["text"].as_str().unwrap().contains(FACT));

    let read = mine("GET", "/v1/threads/t/messages", &Value::Null).json();
    let asked = &read["messages"][0];
    assert_eq!(asked["content"], "where was Josh born?");
    assert_eq!(asked["memory"][0]["id"], fact, "{read}");
    // A client that knows nothing of the conversation is sent all that was said, and nothing else.
    let run = json!({"threadId": "t", "runId": "s", "messages": [said("2")]});
    let all = stream(&run);
    assert!(
        all.contains("MESSAGES_SNAPSHOT") && !all.contains("found in the person's memory"),
        "{all}"
    );
    let written = mine("GET", "/v1/threads/t/export", &Value::Null).text;
    assert!(
        written.contains("where was Josh born?") && !written.contains(FACT),
        "{written}"
    );
}

#[test]
fn no_other_user_sees_anything_of_it() {
    let home = Home::new();
    let made = home
        .run(&["token", "create", "--user", "bert", "--json"])
        .succeeds()
        .json();
    let bert = made["token"]
        .as_str()
        .or_else(|| made["secret"].as_str())
        .unwrap()
        .to_owned();
    let model = home.script(&[r#"{"text": "I heard you.", "repeat": true}"#]);
    let service = serve(&home, &model);
    let owner = service.token().to_owned();
    let added = ask(
        &service,
        &owner,
        "POST",
        "/v1/memory",
        &json!({"content": FACT}),
    )
    .json();
    let one = format!("/v1/memory/{}", added["fact"]["id"].as_str().unwrap());
    let fact = json!({"content": "Bert was here", "important": true});
    for (method, path, body) in [
        ("GET", "/v1/memory", &Value::Null),
        ("GET", one.as_str(), &Value::Null),
        ("POST", "/v1/memory", &fact),
        ("PATCH", one.as_str(), &fact),
        ("DELETE", one.as_str(), &Value::Null),
        ("POST", "/v1/memory/undo", &Value::Null),
        ("POST", "/v1/notes/links", &json!({"links": ["facts"]})),
    ] {
        let reply = ask(&service, &bert, method, path, body);
        assert_eq!(reply.status, 404, "{method} {path}: {reply:?}");
        assert!(!reply.text.contains("Zanzibar"), "{reply:?}");
    }
    let me = ask(&service, &bert, "GET", "/v1/me", &Value::Null);
    assert_eq!(
        (&me.json()["memory"], &me.json()["vault"]),
        (&json!(false), &Value::Null)
    );
    assert!(
        !me.text.contains("\"remember\""),
        "where several can ask, it is the task assistant: {}",
        me.text
    );
    let said = ask(
        &service,
        &bert,
        "POST",
        "/v1/chat",
        &json!({"message": "where was Josh born?"}),
    )
    .json();
    let run = said["run_id"].as_str().unwrap();
    let trace = ask(
        &service,
        &bert,
        "GET",
        &format!("/v1/decisions/{run}"),
        &Value::Null,
    )
    .text;
    assert!(!trace.contains("Zanzibar"), "{trace}");
    assert!(
        std::fs::read_to_string(home.path("Notes/memory/facts.md"))
            .unwrap()
            .contains(FACT)
    );
}

/// A Gemini that says the same to everybody, and keeps what it was asked.
pub(crate) fn gemini() -> Vendor {
    Vendor::answering_by_path(|_, _| {
        let content = json!({ "role": "model", "parts": [{ "text": "Hello." }] });
        vendor::Reply::events(&[
            json!({ "candidates": [{ "content": content, "finishReason": "STOP" }] }),
        ])
    })
}

fn serve_with(home: &Home, gemini: &Vendor, more: &[(&str, &str)]) -> Serving {
    let vault = home.path("Notes");
    std::fs::create_dir_all(vault.join(".obsidian")).unwrap();
    let mut command = home.serve_command("gemini");
    command
        .env("ADJUTANT_VAULT_PATH", vault)
        .env("GEMINI_API_KEY", "k")
        .env("GEMINI_BASE_URL", gemini.url());
    Serving::start(command.envs(more.iter().copied()))
}

/// Reads the agent, its tools and whether there is a memory from an answer of `/v1/me`.
fn offered(me: &Value) -> (String, Vec<String>, bool) {
    let tools = me["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned());
    (
        me["agent"].as_str().unwrap().to_owned(),
        tools.collect(),
        me["memory"].as_bool().unwrap(),
    )
}

#[test]
fn a_token_changes_nothing_for_the_owner_and_gives_others_nothing_of_theirs() {
    let home = Home::new();
    let model = gemini();
    let none = Value::Null;
    let hello = json!({"message": "hello"});
    let service = serve_with(&home, &model, &[VAULT_ALONE]);
    let me = |service: &Serving, token: &str| {
        offered(&ask(service, token, "GET", "/v1/me", &none).json())
    };
    let alone = me(&service, service.token());
    assert_eq!(alone.0, "diana");
    assert!(
        alone.1.iter().any(|tool| tool == "remember") && alone.2,
        "{alone:?}"
    );
    ask(
        &service,
        service.token(),
        "POST",
        "/v1/memory",
        &json!({"content": FACT, "important": true}),
    );

    let token = |user: &str| {
        home.run(&["token", "create", "--user", user, "--json"])
            .succeeds()
            .json()
    };
    let secret = |made: &Value| made["token"].as_str().unwrap().to_owned();
    let (own, bob) = (secret(&token("local")), secret(&token("bob")));
    let everything = |service: &Serving| {
        assert_eq!(me(service, &own), alone);
        let theirs = ask(service, &bob, "GET", "/v1/me", &none).json();
        let (agent, tools, memory) = offered(&theirs);
        assert_eq!(
            (agent.as_str(), tools.len(), memory),
            ("adjutant", 5, false),
            "{tools:?}"
        );
        assert!(
            theirs["memory_absent"]["detail"]
                .as_str()
                .unwrap()
                .contains("belong to another user"),
            "{theirs}"
        );
        for (method, path, body) in [
            (
                "POST",
                "/v1/tools/read_note/invoke",
                json!({"args": {"note": "memory/facts"}}),
            ),
            (
                "POST",
                "/v1/tools/remember/invoke",
                json!({"args": {"fact": "x"}}),
            ),
            ("GET", "/v1/models/diana", Value::Null),
        ] {
            let refused = ask(service, &bob, method, path, &body);
            assert_eq!(refused.status, 404, "{path}: {refused:?}");
        }
        model.so_far();
        assert_eq!(ask(service, &bob, "POST", "/v1/chat", &hello).status, 200);
        let asked: String = model
            .so_far()
            .iter()
            .map(|asked| asked.body.to_string())
            .collect();
        for word in [
            "Zanzibar",
            "\"remember\"",
            "_note",
            "notes",
            "vault",
            "Diana",
            "diana",
        ] {
            assert!(!asked.contains(word), "{word}: {asked}");
        }
        assert!(asked.contains("add_task"), "{asked}");
        assert_eq!(ask(service, &own, "POST", "/v1/chat", &hello).status, 200);
        let asked: String = model
            .so_far()
            .iter()
            .map(|asked| asked.body.to_string())
            .collect();
        assert!(
            asked.contains("Zanzibar") && asked.contains("read_note"),
            "{asked}"
        );
    };
    // In the same process, and after a restart; the other name of the owner's model stays good.
    everything(&service);
    drop(service);
    let service = serve_with(&home, &model, &[VAULT_ALONE]);
    everything(&service);
    assert_eq!(me(&service, service.token()), alone);
    assert_eq!(
        ask(&service, &own, "GET", "/v1/models/adjutant", &none).status,
        200
    );
    assert!(
        service.announced["notes"]
            .as_str()
            .unwrap()
            .contains("you have the notes")
    );
    drop(service);
    model.stop();
}

#[test]
fn the_owner_may_be_a_user_who_signs_in_elsewhere() {
    let home = Home::new();
    let model = gemini();
    let proxy = [
        ("ADJUTANT_SERVE_AUTH", "proxy"),
        ("ADJUTANT_SERVE_PROXY_HEADER", "x-user"),
        ("ADJUTANT_SERVE_PROXY_PEERS", "127.0.0.1"),
    ];
    let me = |service: &Serving, user: &str| {
        let reply = send(&service.address, "GET", "/v1/me", &[("x-user", user)], "").unwrap();
        offered(&reply.json())
    };
    let service = serve_with(&home, &model, &proxy);
    assert!(
        service.announced["notes"]
            .as_str()
            .unwrap()
            .contains("vault.owner"),
        "{}",
        service.announced
    );
    assert_eq!(me(&service, "ana").0, "adjutant");
    drop(service);
    let service = serve_with(
        &home,
        &model,
        &[&proxy[..], &[("ADJUTANT_VAULT_OWNER", "ana")]].concat(),
    );
    let (ana, eve) = (me(&service, "ana"), me(&service, "eve"));
    assert!(ana.0 == "diana" && ana.2 && ana.1.len() == 13, "{ana:?}");
    assert!(eve.0 == "adjutant" && eve.2 && eve.1.len() == 8, "{eve:?}");
    drop(service);
    model.stop();
}

#[test]
fn what_a_lost_process_left_goes_on_with_the_tools_of_whose_it_is() {
    let home = Home::new();
    let silent = Arc::new(AtomicBool::new(true));
    let waits = silent.clone();
    let (arrived, asked) = channel();
    let model = Vendor::answering_by_path(move |_, body| {
        let _ = arrived.send(body.to_string());
        if waits.load(Ordering::SeqCst) {
            // What is not answered is lost with the process that asked.
            return vendor::Reply::json(503, "{}");
        }
        let content = json!({ "role": "model", "parts": [{ "text": "Hello." }] });
        vendor::Reply::events(&[
            json!({ "candidates": [{ "content": content, "finishReason": "STOP" }] }),
        ])
    });
    let bob = home
        .run(&["token", "create", "--user", "bob", "--json"])
        .succeeds()
        .json();
    let bob = bob["token"].as_str().unwrap().to_owned();
    // The model says "later" again and again: both turns are open when the process is killed.
    let mut service = serve_with(&home, &model, &[("ADJUTANT_GEMINI_RETRIES", "10")]);
    let owner = service.token().to_owned();
    let body = json!({"message": "hello"});
    std::thread::scope(|scope| {
        for token in [&owner, &bob] {
            let (address, bearer, body) = (
                service.address.clone(),
                format!("Bearer {token}"),
                body.to_string(),
            );
            scope.spawn(move || {
                let headers = [
                    ("Authorization", bearer.as_str()),
                    ("Content-Type", "application/json"),
                ];
                let _ = send(&address, "POST", "/v1/chat", &headers, &body);
            });
        }
        let mut begun = [false; 2];
        while begun != [true; 2] {
            begun[usize::from(asked.recv().unwrap().contains("read_note"))] = true;
        }
        service.kill();
    });
    silent.store(false, Ordering::SeqCst);
    while asked.try_recv().is_ok() {}
    let service = serve_with(&home, &model, &[]);
    let (first, second) = (asked.recv().unwrap(), asked.recv().unwrap());
    let has = |request: &String| (request.contains("read_note"), request.contains("add_task"));
    let mut both = [has(&first), has(&second)];
    both.sort_unstable();
    assert_eq!(both, [(false, true), (true, true)], "{first}\n{second}");
    drop(service);
    model.stop();
}

/// Says something in a thread, and returns what the model was asked.
fn say(service: &Serving, model: &Vendor, token: &str, words: &str) -> String {
    model.so_far();
    let said = ask(
        service,
        token,
        "POST",
        "/v1/chat",
        &json!({"message": words, "thread_id": "t1"}),
    );
    assert_eq!(said.status, 200, "{said:?}");
    model
        .so_far()
        .iter()
        .map(|asked| asked.body.to_string())
        .collect()
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a daily note is of a day of the real world"
)]
fn each_user_may_have_a_vault_of_their_own() {
    let home = Home::new();
    let (anna, bert, eve) = (
        token(&home, "anna"),
        token(&home, "bert"),
        token(&home, "eve"),
    );
    let today = jiff::Zoned::now().date();
    let model = home.script(&[
        r#"{"match": "success", "text": "Done.", "repeat": true}"#,
        r#"{"match": "log ", "calls": [{"name": "write_daily_note", "args": {"activity": "{{rest}}"}}], "repeat": true}"#,
        r#"{"match": "keep ", "calls": [{"name": "remember", "args": {"fact": "{{rest}}"}}], "repeat": true}"#,
    ]);
    let folders = ["Anna", "Bert"].map(|name| home.path(name));
    for folder in &folders {
        std::fs::create_dir_all(folder).unwrap();
    }
    let start = |users: &str| {
        let mut command = home.serve_command(&model);
        command.env("ADJUTANT_VAULT_USERS", users);
        command
    };
    let [of_anna, of_bert] = folders
        .each_ref()
        .map(|folder| folder.display().to_string());
    let service = Serving::start(&mut start(&format!("anna={of_anna}, bert={of_bert}")));
    let place = |token: &str| {
        ask(&service, token, "GET", "/v1/me", &Value::Null).json()["memory_in"].clone()
    };
    assert_eq!(
        [&anna, &bert, &eve].map(|token| place(token)),
        ["vault", "vault", "database"]
    );
    for (token, name) in [(&anna, "Anna"), (&bert, "Bert")] {
        for words in [
            format!("log {name} fixed the boiler"),
            format!("keep {name} was born in Zanzibar"),
        ] {
            let said = ask(
                &service,
                token,
                "POST",
                "/v1/chat",
                &json!({"message": words}),
            );
            assert_eq!(said.json()["content"], "Done.", "{said:?}");
        }
    }
    for (folder, own, other) in [(&folders[0], "Anna", "Bert"), (&folders[1], "Bert", "Anna")] {
        let daily = std::fs::read_to_string(folder.join(format!("{today}.md"))).unwrap();
        let facts = std::fs::read_to_string(folder.join("memory/facts.md")).unwrap();
        assert!(daily.contains(own) && !daily.contains(other), "{daily}");
        assert!(facts.contains(own) && !facts.contains(other), "{facts}");
    }
    let found = ask(
        &service,
        &anna,
        "POST",
        "/v1/tools/search_notes/invoke",
        &json!({"args": {"query": "boiler"}}),
    );
    assert!(
        found.text.contains("Anna") && !found.text.contains("Bert"),
        "{found:?}"
    );
    assert_eq!(
        ask(
            &service,
            &eve,
            "POST",
            "/v1/tools/search_notes/invoke",
            &json!({"args": {"query": "boiler"}})
        )
        .status,
        404
    );
    drop(service);

    // A vault that is away gives nobody a second memory, and others their own as before.
    std::fs::rename(&folders[0], home.path("Away")).unwrap();
    let service = Serving::start(&mut start(&format!("anna={of_anna}, bert={of_bert}")));
    let me = ask(&service, &anna, "GET", "/v1/me", &Value::Null).json();
    assert_eq!(
        (&me["memory"], &me["memory_absent"]["code"]),
        (&json!(false), &json!("out_of_reach")),
        "{me}"
    );
    assert!(!me.to_string().contains("\"remember\""), "{me}");
    assert_eq!(
        ask(
            &service,
            &anna,
            "POST",
            "/v1/memory",
            &json!({"content": "x"})
        )
        .status,
        404
    );
    assert_eq!(
        ask(&service, &bert, "GET", "/v1/memory", &Value::Null).json()["facts"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    drop(service);
    std::fs::rename(home.path("Away"), &folders[0]).unwrap();

    // Two users of one folder, or of one inside the other's, are refused, and so is a second vault
    // of one.
    let inside = format!("{of_anna}/Private");
    for (users, path) in [
        (format!("anna={of_anna}, bert={of_anna}"), None),
        (format!("anna={of_anna}, bert={inside}"), None),
        (format!("anna={of_anna}"), Some(&of_anna)),
        (format!("local={of_anna}"), Some(&of_bert)),
    ] {
        let refused = |mut command: std::process::Command| {
            command.envs(path.map(|path| ("ADJUTANT_VAULT_PATH", path)));
            Run::of(&mut command)
        };
        let serve = refused(start(&users));
        assert_eq!(serve.code, 3, "{users} {path:?}: {serve:?}");
        let mut doctor = home.command(&["doctor", "-m", &model]);
        doctor.env("ADJUTANT_VAULT_USERS", &users);
        let doctor = refused(doctor);
        assert!(doctor.stdout.contains("vault.users"), "{users}: {doctor:?}");
    }
}
