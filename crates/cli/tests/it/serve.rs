//! `adjutant serve` and `adjutant token`.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::harness::Home;
use crate::service::Serving;

const ADDING: &[&str] = &[
    r#"{"match": "success", "text": "Added."}"#,
    r#"{"match": "add ", "calls": [{"name": "add_task", "args": {"description": "{{rest}}"}}]}"#,
    r#"{"match": "think", "text": "Done thinking.", "delay_ms": 600000}"#,
];

fn serve(home: &Home, model: &str, options: &[&str]) -> Serving {
    Serving::start(&mut home.command(&[&["serve", "--json", "-m", model], options].concat()))
}

#[test]
fn it_serves_the_person_who_started_it_and_ends_in_order() {
    let home = Home::new();
    let model = home.script(ADDING);
    let mut service = serve(&home, &model, &["--bind", "127.0.0.1:0"]);
    let add = json!({"message": "add buy milk"});
    let answer = service.chat(service.token(), &add);
    assert_eq!((answer.status, &answer.body["content"]), (200, &json!("Added.")), "{answer:?}");
    assert_eq!(service.chat("adj_wrong", &add).status, 401);
    // The same person, the same tasks.
    assert_eq!(home.tasks(), ["buy milk"]);

    let state = home.path("state/adjutant/serve.json");
    assert_eq!(std::fs::metadata(&state).unwrap().permissions().mode() & 0o777, 0o600);
    let found: Value = serde_json::from_slice(&std::fs::read(&state).unwrap()).unwrap();
    assert_eq!((&found["url"], &found["token"]), (&service.announced["url"], &service.announced["token"]));
    service.signal("-TERM");
    assert_eq!(service.wait().code(), Some(0));
    assert!(!state.exists());
}

#[test]
fn asked_twice_to_stop_it_stops_at_once_and_the_turn_goes_on_elsewhere() {
    let home = Home::new();
    let model = home.script(ADDING);
    let mut service = serve(&home, &model, &["--bind", "127.0.0.1:0"]);
    let (address, token) = (service.address.clone(), service.token().to_owned());
    let asking = std::thread::spawn(move || {
        crate::service::chat(&address, &token, None, &json!({"message": "think"}))
    });
    // The turn has begun once it is in the log.
    while home.json(&["log", "list"]).1.as_array().unwrap().is_empty() {}
    // Two of the same kind might arrive as one.
    service.signal("-INT");
    service.signal("-TERM");
    assert_eq!(service.wait().code(), Some(130));
    assert!(asking.join().unwrap().is_err());
    let quick = home.script(&[r#"{"match": "think", "text": "Done thinking."}"#, r#"{"text": "hello"}"#]);
    home.run(&["-m", &quick, "hello?"]).succeeds().says("Done thinking.");
}

#[test]
fn beyond_this_machine_it_needs_a_token_that_was_made() {
    let home = Home::new();
    let model = home.script(ADDING);
    let everywhere = ["serve", "-m", &model, "--bind", "0.0.0.0:0"];
    home.run(&everywhere).ends_with(3).says("adjutant token create --user");
    home.run(&[&everywhere[..], &["--auth", "none"]].concat()).ends_with(3).says("loopback");
    let secret = home.run(&["token", "create", "--user", "anna"]).succeeds().stdout;
    let service = serve(&home, &model, &["--bind", "0.0.0.0:0"]);
    assert_eq!(service.announced["token"], Value::Null);
    let local = service.address.replace("0.0.0.0", "127.0.0.1");
    let add = json!({"message": "add buy milk"});
    assert_eq!(crate::service::chat(&local, secret.trim(), None, &add).unwrap().status, 200);
    // Anna's tasks are not those of whoever sits at the machine.
    assert!(home.tasks().is_empty());
}

#[test]
fn tokens_are_shown_once_listed_without_secrets_and_revoked() {
    let home = Home::new();
    let model = home.script(ADDING);
    let (_, made) = home.json(&["token", "create", "--user", "anna", "--name", "laptop"]);
    let secret = made["token"].as_str().unwrap();
    let list = home.run(&["token", "list"]).succeeds();
    assert!(list.stdout.contains("anna") && list.stdout.contains("laptop"), "{list:?}");
    assert!(!list.stdout.contains(secret));
    let service = serve(&home, &model, &["--bind", "127.0.0.1:0"]);
    assert_eq!(service.chat(secret, &json!({"message": "add x"})).status, 200);
    let id = made["id"].as_str().unwrap();
    home.run(&["token", "revoke", id]).succeeds();
    assert_eq!(service.chat(secret, &json!({"message": "add y"})).status, 401);
    let (_, listed) = home.json(&["token", "list"]);
    assert!(listed[0]["revoked_at"].is_string() && listed[0]["token"].is_null(), "{listed}");
    assert!(home.run(&["token", "revoke", id]).succeeds().stdout.contains("before"));
    home.run(&["token", "revoke", "nothing"]).ends_with(1).says("adjutant token list");
    home.run(&["token", "create", "--user", " "]).ends_with(2);
    home.run(&["token", "create"]).ends_with(2);
}

#[test]
fn what_it_cannot_use_is_an_error_that_names_it() {
    let home = Home::new();
    let model = home.script(ADDING);
    home.run(&["serve", "--bind", "somewhere"]).ends_with(2).says("--bind");
    home.config("[serve]\nbind = \"somewhere\"\n");
    home.run(&["serve", "-m", &model]).ends_with(3).says("serve.bind");
    home.config("");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    home.run(&["serve", "-m", &model, "--bind", &address]).ends_with(3).says(&address);
}

#[cfg(not(feature = "restate"))]
#[test]
fn without_restate_it_says_how_to_get_it() {
    let home = Home::new();
    let refused = home.run(&["serve", "-m", "demo", "--dispatch", "restate://127.0.0.1:8080"]).ends_with(3);
    assert!(refused.stderr.contains("--features restate"), "{refused:?}");
}

#[test]
fn the_folder_it_is_started_in_may_hold_its_variables_and_nobody_elses() {
    let home = Home::new();
    home.file("project/.env", format!("ADJUTANT_MODEL={}\n", home.script(ADDING)));
    let service = Serving::start(&mut home.command(&["serve", "--json", "--bind", "127.0.0.1:0"]));
    assert_eq!(service.announced["model"], "scripted/script");
    let shown = home.run(&["config", "show", "--json"]).succeeds().json();
    assert_eq!(shown["model"]["value"], Value::Null, "{shown}");
}
