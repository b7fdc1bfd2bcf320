//! `[budget]`: what may not be spent is not begun, and the setting is named.

use crate::harness::Home;

const ADDING: &[&str] = &[
    r#"{"match": "success", "text": "Added.", "usage": {"input": 50, "output": 5}}"#,
    r#"{"match": "add ", "calls": [{"name": "add_task", "args": {"description": "{{rest}}"}}], "usage": {"input": 50, "output": 5}}"#,
    r#"{"text": "Hello.", "usage": {"input": 50, "output": 5}, "repeat": true}"#,
];

#[test]
fn a_turn_that_may_take_too_much_ends_and_names_the_setting() {
    let home = Home::new();
    let model = home.script(ADDING);
    home.config("[budget]\nper_turn_model_calls = 1\n");
    home.run(&["-m", &model, "hello"]).succeeds();
    let (code, answer) = home.ask(&model, "add buy milk");
    assert_eq!(
        (code, answer["outcome"].as_str()),
        (6, Some("LIMIT:BUDGET")),
        "{answer}"
    );
    assert!(
        answer["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("budget.per_turn_model_calls"),
        "{answer}"
    );
    // What ran before the bound stays done.
    assert_eq!(home.tasks(), ["buy milk"]);
}

#[test]
fn a_days_budget_holds_across_processes() {
    let home = Home::new();
    let model = home.script(ADDING);
    home.config("[budget]\nper_day_model_calls = 2\n");
    for _ in 0..2 {
        home.run(&["-m", &model, "hello"]).succeeds();
    }
    home.run(&["-m", &model, "hello"])
        .ends_with(6)
        .says("budget.per_day_model_calls");
    home.config("[budget]\nper_day_model_calls = 3\n");
    home.run(&["-m", &model, "hello"]).succeeds();
}

#[test]
fn spending_is_not_bounded_where_the_price_is_unknown() {
    let home = Home::new();
    home.config("[budget]\nper_day_usd = 1.0\n");
    let mut command = home.command(&["-m", "openai/unheard-of", "hello"]);
    let run = crate::harness::Run::of(command.env("OPENAI_API_KEY", "k"));
    run.ends_with(3).says("price of");
    home.config("[budget]\nper_day_usd = \"a dollar\"\n");
    home.run(&["-m", "demo", "hello"])
        .ends_with(3)
        .says("budget.per_day_usd");
    assert!(
        home.run(&["config", "show"])
            .ends_with(3)
            .stderr
            .contains("config.toml:2")
    );
}
