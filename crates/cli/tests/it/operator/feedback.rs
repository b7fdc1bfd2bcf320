//! Ratings of answers and calls of client-side tools, as an operator finds them.

use super::*;

#[test]
fn what_a_program_is_to_bring_is_no_question_in_a_file() {
    Team::in_a_file(awaited);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_is_to_bring_is_no_question_on_a_server() {
    Team::on_a_server(awaited).await;
}

fn awaited(team: &Team<'_>) {
    let anna = team.token(ANNA);
    let service = team.serve();
    let operator = service.token().to_owned();
    let bearer = format!("Bearer {anna}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
    ];
    let tool = json!({"type": "function", "function": {"name": "setTheme", "parameters": {"type": "object"}}});
    let body = json!({"model": "adjutant", "messages": [{"role": "user", "content": "dark, please"}], "tools": [tool]});
    let asked = send(
        &service.address,
        "POST",
        "/v1/chat/completions",
        &headers,
        &body.to_string(),
    )
    .unwrap();
    assert_eq!(
        asked.json()["choices"][0]["finish_reason"],
        "tool_calls",
        "{asked:?}"
    );
    let waiting = || {
        let overview = get(&service, &operator, "/v1/admin/overview").json()["waiting"].clone();
        let questions =
            get(&service, &operator, "/v1/admin/questions?hours=0").json()["questions"].clone();
        let users = team.json(&["users", "list"])[0]["waiting"].clone();
        let status = team.json(&["db", "status"])["waiting"].clone();
        (
            overview,
            questions.as_array().unwrap().clone(),
            users,
            status,
        )
    };
    assert_eq!(waiting(), (json!(0), Vec::new(), json!(0), json!(0)));
    service.chat(&anna, &json!({"thread_id": "one", "message": "add milk"}));
    let asks = service.chat(&anna, &json!({"thread_id": "one", "message": "drop milk"}));
    assert_eq!(asks.body["decision"], "REQUEST_CONFIRMATION", "{asks:?}");
    let (overview, questions, users, status) = waiting();
    assert_eq!((overview, users, status), (json!(1), json!(1), json!(1)));
    let [question] = questions.as_slice() else {
        panic!("{questions:?}")
    };
    assert_eq!(
        (&question["run_id"], &question["calls"]),
        (&asks.body["run_id"], &json!(1))
    );
    assert_eq!(
        question["expires_at"], asks.body["pending"][0]["expires_at"],
        "{question}"
    );
    // The person at the machine is told who is waited for, and is asked nothing.
    let local = format!("Bearer {operator}");
    let headers = [
        ("Authorization", local.as_str()),
        ("Content-Type", "application/json"),
    ];
    send(
        &service.address,
        "POST",
        "/v1/chat/completions",
        &headers,
        &body.to_string(),
    )
    .unwrap();
    let listed = team.json(&["pending", "list"]);
    assert_eq!(
        (&listed[0]["awaits"], &listed[0]["tool"]),
        (&json!("client"), &json!("setTheme")),
        "{listed}"
    );
    assert!(
        listed[0]["conversation"].is_string() && listed[0]["requested_at"].is_string(),
        "{listed}"
    );
    let words = team.run(&["pending", "list"]).succeeds().stdout;
    assert!(
        words.contains("waits for the program that asked"),
        "{words}"
    );
    let id = listed[0]["id"].as_str().unwrap();
    team.run(&["pending", "approve", id])
        .ends_with(2)
        .says("it needs no yes");
    drop(service);
    assert_eq!(
        team.run(&["db", "check"]).succeeds().stdout,
        "All is well.\n"
    );
}

#[test]
fn what_people_think_of_answers_is_found_in_a_file() {
    Team::in_a_file(opinions);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_think_of_answers_is_found_on_a_server() {
    Team::on_a_server(opinions).await;
}

fn opinions(team: &Team<'_>) {
    let (anna, bert) = (team.token(ANNA), team.token("bert"));
    let service = team.serve();
    let operator = service.token().to_owned();
    let say = |token: &str| {
        let reply = service.chat(token, &json!({"thread_id": "one", "message": "hello"}));
        reply.body["run_id"].as_str().unwrap().to_owned()
    };
    let rate = |token: &str, turn: &str, opinion: Value| {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
        ];
        let path = format!("/v1/turns/{turn}/feedback");
        let reply = send(
            &service.address,
            "PUT",
            &path,
            &headers,
            &opinion.to_string(),
        )
        .unwrap();
        assert_eq!(reply.status, 204, "{reply:?}");
    };
    let (first, second, third, unrated) = (say(&anna), say(&anna), say(&bert), say(&bert));
    rate(
        &anna,
        &first,
        json!({"rating": "down", "comment": "Too \u{1b}[2Jshort."}),
    );
    rate(&anna, &second, json!({"rating": "up"}));
    rate(&bert, &third, json!({"rating": "up"}));

    let ids = |listed: &Value| -> Vec<String> {
        listed
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let listed = |rating: &str, whose: &[&str]| {
        team.json(&[&["log", "list", "--feedback", rating][..], whose].concat())
    };
    let down = listed("down", &["--all-users"]);
    assert_eq!(ids(&down), [first.as_str()]);
    assert_eq!(
        (
            &down[0]["feedback"]["rating"],
            &down[0]["feedback"]["comment"]
        ),
        (&json!("down"), &json!("Too  [2Jshort."))
    );
    assert_eq!(
        ids(&listed("up", &["--all-users"])),
        [third.as_str(), &second]
    );
    assert_eq!(ids(&listed("up", &["--user", ANNA])), [second.as_str()]);
    assert_eq!(ids(&listed("up", &["--all-users", "--failed"])), [""; 0]);
    let words = team.run(&["log", "list", "--all-users"]).succeeds().stdout;
    assert_eq!(
        (words.matches('👎').count(), words.matches('👍').count()),
        (1, 2),
        "{words}"
    );
    let shown = team.run(&["log", "show", &first]).succeeds().stdout;
    assert!(
        shown.contains("👎 down") && shown.contains("Too  [2Jshort."),
        "{shown}"
    );
    assert!(
        !team
            .run(&["log", "show", &unrated])
            .succeeds()
            .stdout
            .contains("feedback")
    );
    team.run(&["log", "list", "--feedback", "good"])
        .ends_with(2)
        .says("up, down");
    team.run(&["log", "stats", "--all-users", "--feedback", "up"])
        .ends_with(2)
        .says("--since");

    let totals = team.json(&["log", "stats", "--all-users", "--by", "user"]);
    let rated = |sum: &Value| {
        [sum["rated_up"].clone(), sum["rated_down"].clone()].map(|n| n.as_u64().unwrap())
    };
    assert_eq!(rated(&totals["all"]), [2, 1], "{totals}");
    assert_eq!(
        (rated(&totals["groups"][0]), rated(&totals["groups"][1])),
        ([1, 1], [1, 0]),
        "{totals}"
    );
    let words = team.run(&["log", "stats", "--all-users"]).succeeds().stdout;
    assert!(words.contains("2/1 (67 %)"), "{words}");
    let own = team.json(&["log", "stats", "--user", ANNA]);
    assert_eq!(rated(&own["total"]), [1, 1], "{own}");
    assert!(
        team.run(&["log", "stats", "--user", ANNA])
            .succeeds()
            .stdout
            .contains("1/1 (50 %)")
    );
    let exported = team
        .run(&["log", "export", "--all-users"])
        .succeeds()
        .stdout;
    assert_eq!(
        exported.matches(r#""feedback":{"rating":"#).count(),
        3,
        "{exported}"
    );
    assert!(
        export_of(team, ANNA)
            .iter()
            .any(|line| line.contains("Too  [2Jshort."))
    );

    let json = |path: &str| get(&service, &operator, path).json();
    assert_eq!(rated(&json("/v1/admin/overview")["day"]), [2, 1]);
    let users = json("/v1/admin/users");
    let of_anna = users["users"]
        .as_array()
        .unwrap()
        .iter()
        .find(|user| user["user"] == ANNA)
        .unwrap();
    assert_eq!(rated(of_anna), [1, 1], "{users}");
    let turns = json("/v1/admin/turns?rating=down");
    assert_eq!(
        (ids(&turns["turns"]), &turns["turns"][0]["rating"]),
        (vec![first.clone()], &json!("down"))
    );
    assert!(
        !turns.to_string().contains("short"),
        "words are not shown: {turns}"
    );
    let detail = get(
        &service,
        &operator,
        &format!("/v1/admin/turns/{first}?user={ANNA}"),
    );
    assert!(!detail.text.contains("short"), "{detail:?}");
}
