//! Responses that go on from others, and those that are read again, deleted or stopped.

use super::*;

fn after(response: &Answer, body: Value) -> Value {
    with(body, "previous_response_id", response.json()["id"].clone())
}

fn path_of(response: &Answer) -> String {
    format!("{RESPONSES}/{}", response.json()["id"].as_str().unwrap())
}

#[tokio::test]
async fn any_earlier_response_can_be_continued() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let script = r#"{"calls": [{"name": "add_task", "args": {"description": "first"}}]}
{"text": "One."}
{"text": "Two."}
{"text": "Three.", "repeat": true}"#;
    let replica = world.replica(script).await;
    let one = replica
        .respond(
            &token,
            &with(input("first"), "instructions", json!("Rhyme.")),
        )
        .await;
    let two = replica.respond(&token, &after(&one, input("second"))).await;
    assert_eq!(two.words(), "Two.", "{two:?}");
    assert_eq!(two.json()["previous_response_id"], one.json()["id"]);
    assert_ne!(two.json()["id"], one.json()["id"]);
    let shown = transcript(&replica.last_request());
    let roles: Vec<Role> = shown.iter().map(|(role, _)| *role).collect();
    let expected = [
        Role::System,
        Role::User,
        Role::Assistant,
        Role::Tool,
        Role::Assistant,
        Role::User,
    ];
    assert_eq!(roles, expected, "with what its tools did: {shown:?}");
    assert!(
        shown.iter().all(|(_, text)| !text.contains("Rhyme.")),
        "instructions are for one answer: {shown:?}"
    );
    replica.stop().await;

    // From another process, and from the first one again: what was said after it is not there.
    let replica = world.replica(r#"{"text": "Three.", "repeat": true}"#).await;
    replica.respond(&token, &after(&two, input("third"))).await;
    let shown = transcript(&replica.last_request());
    assert!(shown.iter().any(|(_, text)| text == "second"), "{shown:?}");
    replica
        .respond(&token, &after(&one, input("another")))
        .await;
    let shown = transcript(&replica.last_request());
    assert!(shown.iter().any(|(_, text)| text == "first"), "{shown:?}");
    assert!(
        shown
            .iter()
            .all(|(_, text)| text != "second" && text != "third"),
        "{shown:?}"
    );
    // The model without tools reads words only.
    let plain = after(&one, with(input("and?"), "model", json!("adjutant-plain")));
    assert_eq!(replica.respond(&token, &plain).await.status, 200);
    assert!(
        transcript(&replica.last_request())
            .iter()
            .all(|(role, _)| *role != Role::Tool)
    );
    // They are nobody else's.
    let eve = world.token("eve").await;
    let foreign = replica.respond(&eve, &after(&one, input("hi"))).await;
    check_error(
        &foreign,
        400,
        "invalid_request_error",
        "previous_response_not_found",
        Some("previous_response_id"),
    );
    assert_eq!(
        (world.tasks("anna").await.len(), world.threads("anna").await),
        (1, 0)
    );
    replica.stop().await;
}

#[tokio::test]
async fn results_and_a_yes_need_the_id_of_the_response_alone() {
    let world = World::new().await;
    world.add("anna", "buy milk").await;
    let token = world.token("anna").await;
    let replica = world.replica(OSLO).await;
    let asked = replica
        .respond(&token, &with(input("weather?"), "tools", weather()))
        .await;
    let call = asked.items("function_call").remove(0);
    let without = replica.respond(&token, &after(&asked, input("and?"))).await;
    check_error(
        &without,
        400,
        "invalid_request_error",
        "invalid_request",
        Some("input"),
    );
    let done = replica
        .respond(
            &token,
            &after(&asked, input(json!([result(&call, "sunny")]))),
        )
        .await;
    assert_eq!(done.words(), "It is sunny.", "{done:?}");
    assert_eq!(
        done.json()["adjutant"]["run_id"],
        asked.json()["adjutant"]["run_id"]
    );
    let again = replica
        .respond(
            &token,
            &after(&asked, input(json!([result(&call, "sunny")]))),
        )
        .await;
    assert_eq!(again.words(), "It is sunny.", "{again:?}");
    let other = replica
        .respond(
            &token,
            &after(&asked, input(json!([result(&call, "rain")]))),
        )
        .await;
    check_error(
        &other,
        409,
        "invalid_request_error",
        "answered_before",
        Some("input"),
    );
    replica.stop().await;

    let script = format!(
        "{DELETE_MILK}{}",
        r#"{"match": "yes", "text": "Yes to what?", "repeat": true}"#
    );
    let replica = world.replica(&script).await;
    let question = replica.respond(&token, &input("delete milk")).await;
    assert!(question.words().contains("yes or no"), "{question:?}");
    let unclear = replica
        .respond(&token, &after(&question, input("hm?")))
        .await;
    assert!(
        unclear.words().ends_with(&question.words()),
        "{}",
        unclear.words()
    );
    assert_eq!(world.tasks("anna").await, ["buy milk"]);
    let gone = replica
        .respond(&token, &after(&unclear, input("yes")))
        .await;
    assert_eq!(gone.words(), "Gone.", "{gone:?}");
    assert!(world.tasks("anna").await.is_empty());
    let late = replica
        .respond(&token, &after(&question, input("yes")))
        .await;
    assert!(late.words().contains("answered before"), "{late:?}");
    // Behind what was done, a yes answers nothing.
    let idle = replica.respond(&token, &after(&gone, input("yes"))).await;
    assert_eq!(idle.words(), "Yes to what?", "{idle:?}");
    replica.stop().await;
}

#[tokio::test]
async fn items_that_the_client_names_by_their_ids_are_known() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let replica = world.replica(OSLO).await;
    let asked = replica
        .respond(&token, &with(input("weather?"), "tools", weather()))
        .await;
    let refer = |item: &Value| json!({"type": "item_reference", "id": item["id"]});
    let call = asked.items("function_call").remove(0);
    let mut items = vec![json!({"role": "user", "content": "weather?"})];
    items.extend(asked.json()["output"].as_array().unwrap().iter().map(refer));
    items.push(result(&call, "sunny"));
    let done = replica
        .respond(&token, &with(input(items.clone()), "tools", weather()))
        .await;
    assert_eq!(done.words(), "It is sunny.", "{done:?}");
    assert_eq!(
        done.json()["adjutant"]["run_id"],
        asked.json()["adjutant"]["run_id"]
    );
    replica.stop().await;

    let replica = world.replica(r#"{"text": "You are welcome."}"#).await;
    items.extend(done.json()["output"].as_array().unwrap().iter().map(refer));
    items.push(json!({"role": "user", "content": "thanks"}));
    assert_eq!(
        replica.respond(&token, &input(items.clone())).await.words(),
        "You are welcome."
    );
    let shown = transcript(&replica.last_request());
    assert!(
        shown
            .iter()
            .any(|said| *said == (Role::Assistant, "It is sunny.".to_owned())),
        "{shown:?}"
    );
    // Another user has no such items.
    let eve = world.token("eve").await;
    let foreign = replica.respond(&eve, &input(items)).await;
    check_error(
        &foreign,
        400,
        "invalid_request_error",
        "invalid_request",
        Some("input[1].id"),
    );
    replica.stop().await;
}

#[tokio::test]
async fn a_response_is_read_again_deleted_and_stopped() {
    let world = World::new().await;
    world.add("anna", "buy milk").await;
    let (token, eve) = (world.token("anna").await, world.token("eve").await);
    let replica = world.replica(&format!("{OSLO}{DELETE_MILK}")).await;
    let asked = replica
        .respond(&token, &with(input("weather?"), "tools", weather()))
        .await;
    let call = asked.items("function_call").remove(0);
    let done = replica
        .respond(
            &token,
            &after(&asked, input(json!([result(&call, "sunny")]))),
        )
        .await;
    for (given, words, calls) in [(&asked, "Let me look.", 1), (&done, "It is sunny.", 0)] {
        let read = replica
            .call("GET", &path_of(given), &token, &Value::Null)
            .await;
        assert_eq!(
            (read.words().as_str(), read.items("function_call").len()),
            (words, calls),
            "{read:?}"
        );
        assert_eq!(
            (&read.json()["id"], &read.json()["status"]),
            (&given.json()["id"], &json!("completed"))
        );
    }
    for (method, path) in [
        ("GET", path_of(&done)),
        ("DELETE", path_of(&done)),
        ("POST", format!("{}/cancel", path_of(&done))),
    ] {
        let foreign = replica.call(method, &path, &eve, &Value::Null).await;
        check_error(
            &foreign,
            404,
            "invalid_request_error",
            "unknown",
            Some("response_id"),
        );
    }
    let complete = replica
        .call(
            "POST",
            &format!("{}/cancel", path_of(&done)),
            &token,
            &Value::Null,
        )
        .await;
    check_error(
        &complete,
        400,
        "invalid_request_error",
        "invalid_request",
        Some("response_id"),
    );

    let question = replica.respond(&token, &input("delete milk")).await;
    let stopped = replica
        .call(
            "POST",
            &format!("{}/cancel", path_of(&question)),
            &token,
            &Value::Null,
        )
        .await;
    assert_eq!(
        (stopped.status, &stopped.json()["status"]),
        (200, &json!("cancelled")),
        "{stopped:?}"
    );
    assert_eq!(world.tasks("anna").await, ["buy milk"]);

    let deleted = replica
        .call("DELETE", &path_of(&done), &token, &Value::Null)
        .await;
    assert_eq!(
        (deleted.status, &deleted.json()["deleted"]),
        (200, &json!(true)),
        "{deleted:?}"
    );
    let gone = replica
        .call("GET", &path_of(&done), &token, &Value::Null)
        .await;
    check_error(
        &gone,
        404,
        "invalid_request_error",
        "unknown",
        Some("response_id"),
    );
    replica.stop().await;
}

#[tokio::test]
async fn the_same_request_is_two_responses_unless_it_has_a_name() {
    let world = World::new().await;
    let token = world.token("anna").await;
    let add = "{\"calls\": [{\"name\": \"add_task\", \"args\": {\"description\": \"buy milk\"}}]}\n{\"text\": \"Added.\"}\n";
    let replica = world.replica(&add.repeat(3)).await;
    let authorization = format!("Bearer {token}");
    let headers = [
        ("Authorization", authorization.as_str()),
        ("Idempotency-Key", "key-1"),
    ];
    let body = input("add buy milk").to_string();
    let (one, two) = (
        replica.send("POST", RESPONSES, &headers, &body).await,
        replica.send("POST", RESPONSES, &headers, &body).await,
    );
    assert_eq!(
        (one.words().as_str(), two.words().as_str()),
        ("Added.", "Added.")
    );
    assert_eq!(one.json()["id"], two.json()["id"], "one response");
    assert_eq!(world.tasks("anna").await.len(), 1);
    let other = after(&one, input("add buy milk")).to_string();
    let reused = replica.send("POST", RESPONSES, &headers, &other).await;
    assert_eq!(
        (reused.status, &reused.json()["error"]["code"]),
        (400, &json!("idempotency_key_reused")),
        "{reused:?}"
    );
    replica.respond(&token, &input("add buy milk")).await;
    assert_eq!(world.tasks("anna").await.len(), 2);
    replica.stop().await;
}
