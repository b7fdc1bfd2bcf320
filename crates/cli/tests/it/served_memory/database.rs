//! Facts in the database, for users without a vault.

use super::*;

fn everybody_has_facts(home: &Home, more: &[(&str, &str)]) {
    let model = gemini();
    let made = |user: &str| {
        let mut command = home.command(&["token", "create", "--user", user, "--json"]);
        let made = Run::of(command.envs(more.iter().copied()))
            .succeeds()
            .json();
        made["token"].as_str().unwrap().to_owned()
    };
    let (anna, bert) = (made("anna"), made("bert"));
    let none = Value::Null;
    let service = serve_with(home, &model, more);
    let (agent, tools, has_memory) = offered(&ask(&service, &anna, "GET", "/v1/me", &none).json());
    assert!(agent == "adjutant" && has_memory, "{agent}");
    assert_eq!(tools[5..], ["remember", "recall", "forget"]);
    assert_eq!(
        ask(&service, &anna, "GET", "/v1/me", &none).json()["memory_in"],
        "database"
    );
    let add = |token: &str, content: &str, important: bool| {
        ask(
            &service,
            token,
            "POST",
            "/v1/memory",
            &json!({"content": content, "important": important}),
        )
        .json()
    };
    let id = |added: &Value| added["fact"]["id"].as_str().unwrap().to_owned();
    let fact = id(&add(&anna, "Anna was born in Zanzibar", false));
    let tea = id(&add(&anna, "Anna drinks Darjeeling", true));
    add(&bert, "Bert was born in Rome", false);

    // Each is told what is theirs: what is important in the instruction, what fits with the
    // message.
    let asked = say(&service, &model, &anna, "Where was I born?");
    let fits = format!("Anna was born in Zanzibar ({fact})");
    assert!(asked.contains(&fits) && asked.contains(&tea), "{asked}");
    assert!(!asked.contains("Rome"), "{asked}");
    let asked = say(&service, &model, &bert, "Where was I born?");
    assert!(asked.contains("Bert was born in Rome"), "{asked}");
    for word in ["Zanzibar", "Darjeeling", "_note", "notes", "vault", "Diana"] {
        assert!(!asked.contains(word), "{word}: {asked}");
    }

    // Found, changed, explained and forgotten, each by whom it is about.
    let of = |token: &str, method: &str, path: &str, body: &Value| {
        ask(&service, token, method, path, body)
    };
    let found = of(&anna, "GET", "/v1/memory?q=born", &none).json();
    assert_eq!(found["facts"].as_array().unwrap().len(), 1, "{found}");
    let one = format!("/v1/memory/{fact}");
    for (method, body) in [
        ("GET", &none),
        ("DELETE", &none),
        ("PATCH", &json!({"important": true})),
    ] {
        assert_eq!(of(&bert, method, &one, body).status, 404, "{method}");
    }
    assert_eq!(
        of(&anna, "GET", &one, &none).json()["history"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let changed = of(
        &anna,
        "PATCH",
        &one,
        &json!({"content": "Anna was born in Pemba"}),
    )
    .json();
    assert_eq!(
        (&changed["status"], &changed["before"]),
        (&json!("updated"), &json!("Anna was born in Zanzibar"))
    );
    let one = format!("/v1/memory/{}", id(&changed));
    assert_eq!(
        of(&anna, "GET", &one, &none).json()["history"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let asked = say(&service, &model, &anna, "Where was I born?");
    assert!(
        asked.contains("Withdrawn, it does not hold any more: Anna was born in Zanzibar"),
        "{asked}"
    );
    assert_eq!(
        of(&anna, "DELETE", &one, &none).json()["status"],
        "forgotten"
    );
    assert!(
        of(&anna, "POST", "/v1/memory/undo", &none).json()["message"]
            .as_str()
            .unwrap()
            .contains("Pemba")
    );

    // With a conversation goes what was said in it, and no fact; and everything is there after a
    // restart.
    assert_eq!(of(&anna, "DELETE", "/v1/threads/t1", &none).status, 204);
    let before = of(&anna, "GET", "/v1/memory", &none).json();
    assert_eq!(before["facts"].as_array().unwrap().len(), 2, "{before}");
    drop(service);
    let service = serve_with(home, &model, more);
    assert_eq!(
        ask(&service, &anna, "GET", "/v1/memory", &none).json(),
        before
    );
    drop(service);
    // And with a user, all of it.
    let delete = |user: &str| {
        let mut command = home.command(&["users", "delete", user, "-y", "--json"]);
        Run::of(command.envs(more.iter().copied())).succeeds()
    };
    let deleted = delete("anna").stdout;
    assert!(deleted.contains("fact"), "{deleted}");
    let service = serve_with(home, &model, more);
    let anna = made("anna");
    assert_eq!(
        ask(&service, &anna, "GET", "/v1/memory", &none).json(),
        json!({"facts": []})
    );
    assert_eq!(
        ask(&service, &anna, "POST", "/v1/memory/undo", &none).status,
        404
    );
    let berts = ask(&service, &bert, "GET", "/v1/memory", &none).json();
    assert_eq!(berts["facts"].as_array().unwrap().len(), 1, "{berts}");
    drop(service);
    model.stop();
}

#[test]
fn everybody_without_a_vault_has_facts_in_a_file() {
    everybody_has_facts(&Home::new(), &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_without_a_vault_has_facts_on_a_server() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("facts").await;
    tokio::task::block_in_place(|| {
        everybody_has_facts(&Home::new(), &[("DATABASE_URL", url.as_str())])
    });
}

#[test]
fn a_fact_is_remembered_once_however_its_process_dies() {
    let mut kills = 0;
    for boundary in 1.. {
        let home = Home::new();
        let anna = token(&home, "anna");
        let model = home.script(&[
            r#"{"match": "success", "text": "Kept."}"#,
            r#"{"match": "born", "calls": [{"name": "remember", "args": {"fact": "Anna was born in Zanzibar"}}]}"#,
            r#"{"match": "are you there", "text": "hello"}"#,
        ]);
        let serve = || home.serve_command(&model);
        let service = Serving::start(serve().env("ADJUTANT_KILL_AT", boundary.to_string()));
        let bearer = format!("Bearer {anna}");
        let headers = [
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
        ];
        let say = |service: &Serving, words: &str| {
            let body = json!({"message": words, "thread_id": "t1"}).to_string();
            send(&service.address, "POST", "/v1/chat", &headers, &body)
        };
        let answered = say(&service, "I was born in Zanzibar");
        drop(service);
        if answered.is_ok_and(|reply| reply.status == 200) {
            break;
        }
        kills += 1;
        // What was accepted is done before anything else in its conversation.
        let service = Serving::start(&mut serve());
        let next = say(&service, "are you there").unwrap();
        assert_eq!(next.json()["content"], "hello", "{boundary}: {next:?}");
        let facts = ask(&service, &anna, "GET", "/v1/memory", &Value::Null).json();
        let turns = ask(&service, &anna, "GET", "/v1/decisions", &Value::Null).json();
        let turns = turns["decisions"].as_array().unwrap().len();
        let facts = facts["facts"].as_array().unwrap();
        assert_eq!(facts.len(), turns - 1, "{boundary}: {facts:?}");
        for fact in facts {
            let one = format!("/v1/memory/{}", fact["id"].as_str().unwrap());
            let why = ask(&service, &anna, "GET", &one, &Value::Null).json();
            assert_eq!(
                why["history"].as_array().unwrap().len(),
                1,
                "{boundary}: {why}"
            );
            assert!(
                why["thread_id"].is_string() && why["run_id"].is_string(),
                "{why}"
            );
        }
    }
    // Input, turn, model, intent, effect, result, model, end.
    assert!(kills >= 8, "only {kills} places to die at");
}

#[test]
fn a_small_model_keeps_each_users_facts_in_their_own_words() {
    let home = Home::new();
    let model = home.script(&[
        r#"{"config": {"weak_tools": true}}"#,
        r#"{"text": "[{\"recall\": {}}]", "repeat": true}"#,
    ]);
    let (anna, bert) = (token(&home, "anna"), token(&home, "bert"));
    let service = Serving::start(&mut home.serve_command(&model));
    let say = |token: &str, message: &str| {
        let said = json!({ "message": message });
        let answer = ask(&service, token, "POST", "/v1/chat", &said).json();
        answer["content"].as_str().unwrap().to_owned()
    };
    let kept = say(&anna, "Remember that my sister's name is Marlene");
    assert!(
        kept.contains("remembered: My sister's name is Marlene"),
        "{kept}"
    );
    let found = say(&anna, "what is my sister's name?");
    assert!(found.contains("Marlene"), "{found}");
    let unknown = say(&bert, "what is my sister's name?");
    assert!(
        unknown.contains("do not know") && !unknown.contains("Marlene"),
        "{unknown}"
    );
}
