//! Open turns of all users, for whoever runs the service.

use crate::harness::Home;

const DROP: &[&str] = &[
    r#"{"match": "drop", "calls": [{"name": "delete_task", "args": {"task_id": "milk"}}]}"#,
    r#"{"match": "hello", "text": "Hello."}"#,
];

#[test]
fn an_open_turn_is_listed_shown_and_ended() {
    let home = Home::new();
    assert_eq!(home.run(&["turns", "list"]).succeeds().stdout.lines().count(), 1);
    let model = home.script(DROP);
    home.add_task("buy milk");
    home.run(&["-m", &model, "drop the milk"]).ends_with(4);
    let (_, listed) = home.json(&["turns", "list"]);
    let turn = listed[0]["turn"].as_str().unwrap().to_owned();
    assert_eq!((&listed[0]["user"], &listed[0]["state"]), (&"local".into(), &"waiting".into()), "{listed}");
    let shown = home.run(&["turns", "show", &turn]).succeeds();
    assert!(shown.stdout.contains("turn_parked") && !shown.stdout.contains("milk"), "{shown:?}");

    home.run(&["turns", "drop", &turn]).ends_with(4).says("needs a yes");
    home.run(&["turns", "drop", "ffffffff", "-y"]).ends_with(1).says("no open turn");
    home.run(&["turns", "drop", &turn, "-y"]).succeeds();
    assert_eq!(home.json(&["turns", "list"]).1, serde_json::json!([]));
    assert_eq!(home.json(&["pending", "list"]).1, serde_json::json!([]));
    assert_eq!(home.tasks(), ["buy milk"]);
    // The conversation goes on.
    assert_eq!(home.run(&["-m", &model, "-c", "hello"]).succeeds().stdout, "Hello.\n");
}
