//! The memory over HTTP: for the vault's owner, and nobody else.

use serde_json::{Value, json};

use crate::harness::Home;
use crate::service::{Reply, Serving, send};

const FACT: &str = "Zanzibar is where Josh was born";

fn ask(service: &Serving, token: &str, method: &str, path: &str, body: &Value) -> Reply {
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    send(&service.address, method, path, &headers, &body).unwrap()
}

fn serve(home: &Home, model: &str) -> Serving {
    let vault = home.path("Notes");
    std::fs::create_dir_all(vault.join(".obsidian")).unwrap();
    let mut command = home.command(&["serve", "--json", "-m", model, "--bind", "127.0.0.1:0"]);
    Serving::start(command.env("ADJUTANT_VAULT_PATH", vault))
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
    assert_eq!(mine("GET", "/v1/memory", &none).json(), json!({"facts": []}));

    let added = mine("POST", "/v1/memory", &json!({"content": FACT})).json();
    assert_eq!((&added["status"], &added["fact"]["content"]), (&json!("added"), &json!(FACT)), "{added}");
    let id = added["fact"]["id"].as_str().unwrap().to_owned();
    let file = home.path("Notes/memory/facts.md");
    assert!(std::fs::read_to_string(&file).unwrap().contains(FACT));

    let one = format!("/v1/memory/{id}");
    assert_eq!(mine("PATCH", &one, &json!({"important": true})).json()["fact"]["important"], true);
    assert!(std::fs::read_to_string(&file).unwrap().contains("#important"));
    assert_eq!(mine("GET", &one, &none).json()["history"].as_array().unwrap().len(), 2);
    assert_eq!(mine("GET", "/v1/memory?q=born", &none).json()["facts"].as_array().unwrap().len(), 1);

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
        ("POST", "/v1/memory", &json!({"content": " "}), 422, "invalid_request"),
        ("POST", "/v1/memory", &json!([]), 422, "invalid_request"),
        ("POST", "/v1/memory", &json!({"content": "x".repeat(501)}), 422, "invalid_request"),
        ("POST", "/v1/memory", &json!({"content": format!("x{}", " ".repeat(500))}), 422, "invalid_request"),
        ("PATCH", &one, &json!({"content": format!("x{}", " ".repeat(500))}), 422, "invalid_request"),
        ("GET", &format!("/v1/memory?q={}", "x".repeat(501)), &none, 422, "invalid_request"),
        ("GET", &format!("/v1/memory?q=x{}", "%20".repeat(500)), &none, 422, "invalid_request"),
    ] {
        let reply = mine(method, path, body);
        assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
        reply.is_problem(code, path.split_once('?').map_or(path, |(path, _)| path));
    }
    // The vault may go away while it is served.
    std::fs::rename(home.path("Notes"), home.path("Elsewhere")).unwrap();
    let gone = mine("GET", "/v1/memory", &none);
    assert_eq!(gone.status, 409, "{gone:?}");
    assert!(!gone.text.contains(&*home.path("Notes").to_string_lossy()), "{gone:?}");
}

#[test]
fn nobody_else_sees_anything_of_it() {
    let home = Home::new();
    let made = home.run(&["token", "create", "--user", "bert", "--json"]).succeeds().json();
    let bert = made["token"].as_str().or_else(|| made["secret"].as_str()).unwrap().to_owned();
    let model = home.script(&[r#"{"text": "I heard you.", "repeat": true}"#]);
    let service = serve(&home, &model);
    let owner = service.token().to_owned();
    let added = ask(&service, &owner, "POST", "/v1/memory", &json!({"content": FACT})).json();
    let one = format!("/v1/memory/{}", added["fact"]["id"].as_str().unwrap());
    let fact = json!({"content": "Bert was here", "important": true});
    for (method, path, body) in [
        ("GET", "/v1/memory", &Value::Null),
        ("GET", one.as_str(), &Value::Null),
        ("POST", "/v1/memory", &fact),
        ("PATCH", one.as_str(), &fact),
        ("DELETE", one.as_str(), &Value::Null),
        ("POST", "/v1/memory/undo", &Value::Null),
    ] {
        let reply = ask(&service, &bert, method, path, body);
        assert_eq!(reply.status, 404, "{method} {path}: {reply:?}");
        assert!(!reply.text.contains("Zanzibar"), "{reply:?}");
    }
    let me = ask(&service, &bert, "GET", "/v1/me", &Value::Null);
    assert_eq!(me.json()["memory"], false);
    assert!(
        !me.text.contains("\"remember\""),
        "where several can ask, it is the task assistant: {}",
        me.text
    );
    let said = ask(&service, &bert, "POST", "/v1/chat", &json!({"message": "where was Josh born?"})).json();
    let run = said["run_id"].as_str().unwrap();
    let trace = ask(&service, &bert, "GET", &format!("/v1/decisions/{run}"), &Value::Null).text;
    assert!(!trace.contains("Zanzibar"), "{trace}");
    assert!(std::fs::read_to_string(home.path("Notes/memory/facts.md")).unwrap().contains(FACT));
}
