//! Tokens that expire and are revoked, and browsers that stay signed in, over the real binary.

use serde_json::{Value, json};

use crate::harness::Home;
use crate::service::{Reply, Serving, send};

fn serve(home: &Home) -> Serving {
    let model = home.script(&[r#"{"text": "Hello.", "repeat": true}"#]);
    Serving::start(&mut home.serve_command(&model))
}

fn ask(service: &Serving, method: &str, path: &str, header: (&str, &str)) -> Reply {
    send(
        &service.address,
        method,
        path,
        &[header, ("Host", "127.0.0.1:8080")],
        "",
    )
    .unwrap()
}

fn me(service: &Serving, token: &str) -> Reply {
    ask(
        service,
        "GET",
        "/v1/me",
        ("Authorization", &format!("Bearer {token}")),
    )
}

fn create(home: &Home, more: &[&str]) -> Value {
    home.run(&[&["token", "create", "--user", "ana", "--json"], more].concat())
        .succeeds()
        .json()
}

#[test]
fn a_token_has_the_scopes_that_it_was_made_with() {
    let home = Home::new();
    let all = create(&home, &["--name", "laptop"]);
    assert_eq!(all["scopes"], json!(["read", "write", "answer"]));
    assert!(!home.run(&["token", "list"]).stdout.contains("read"));
    let some = ["--scope", "write", "--scope", "read"];
    assert_eq!(create(&home, &some)["scopes"], json!(["read", "write"]));
    let told = home.run(&[&["token", "create", "--user", "ana"], &some[..]].concat());
    assert!(told.succeeds().stderr.contains("may read+write"));
    let listed = home.run(&["token", "list"]).succeeds().stdout;
    assert_eq!(listed.matches("read+write").count(), 2, "{listed}");
}

#[test]
fn a_token_is_made_listed_and_taken_back() {
    let home = Home::new();
    for bad in [
        &["--expires", "soon"][..],
        &["--expires", "0s"],
        &["--grant", "root"],
        &["--scope", "fly"],
        &["--scope", "answer"],
    ] {
        home.run(&[&["token", "create", "--user", "ana"], bad].concat())
            .ends_with(2);
    }
    let for_ever = create(&home, &["--name", "laptop"]);
    assert_eq!(
        (&for_ever["expires_at"], &for_ever["role"]),
        (&Value::Null, &json!("user"))
    );
    home.config("[serve]\ntoken_expiry = \"30d\"\n");
    assert!(create(&home, &[])["expires_at"].is_string());
    assert_eq!(
        create(&home, &["--expires", "forever"])["expires_at"],
        Value::Null
    );
    let metrics = create(&home, &["--expires", "1h", "--grant", "metrics"]);
    assert_eq!(metrics["role"], "metrics");
    let listed = home.run(&["token", "list"]).succeeds().stdout;
    for word in ["laptop", "metrics", "never used", "expires "] {
        assert!(listed.contains(word), "{listed}");
    }

    let service = serve(&home);
    let token = for_ever["token"].as_str().unwrap();
    assert_eq!(me(&service, token).json()["role"], "user");
    let header = format!("Bearer {}", metrics["token"].as_str().unwrap());
    assert_eq!(
        ask(&service, "GET", "/metrics", ("Authorization", &header)).status,
        200
    );
    assert_eq!(me(&service, metrics["token"].as_str().unwrap()).status, 403);
    home.run(&["token", "revoke", for_ever["id"].as_str().unwrap()])
        .succeeds();
    assert_eq!(me(&service, token).status, 401);
    let all = home
        .run(&["token", "revoke", "--user", "ana", "--json"])
        .succeeds()
        .json();
    assert_eq!(all["revoked"], 3);
    assert_eq!(
        ask(&service, "GET", "/metrics", ("Authorization", &header)).status,
        401
    );
}

#[test]
fn a_browser_stays_signed_in_when_the_service_starts_again_and_nobody_else_gets_in() {
    let home = Home::new();
    let service = serve(&home);
    let link = format!("/?token={}", service.token());
    let entered = ask(&service, "GET", &link, ("Accept", "text/html"));
    let cookie = entered
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let signed_in = |service: &Serving| ask(service, "GET", "/v1/me", ("Cookie", &cookie));
    let here = signed_in(&service).json();
    assert_eq!(
        (&here["user"], &here["role"]),
        (&json!("local"), &json!("operator"))
    );
    let listed = home.run(&["token", "list", "--json"]).succeeds().json();
    assert_eq!(
        (listed.as_array().unwrap().len(), &listed[0]["kind"]),
        (1, &json!("session")),
        "{listed}"
    );
    let old = service.token().to_owned();
    drop(service);

    let service = serve(&home);
    assert_eq!(signed_in(&service).json()["user"], "local");
    // The link of the other start is over, and a session makes no service out of one that nobody
    // could ask.
    assert_eq!(me(&service, &old).status, 401);
    home.run(&["serve", "-m", "demo", "--bind", "0.0.0.0:0"])
        .ends_with(3)
        .says("there is no token yet");
    home.run(&["token", "revoke", "--user", "local"]).succeeds();
    assert_eq!(signed_in(&service).status, 401);
}
