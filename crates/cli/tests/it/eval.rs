//! `adjutant eval`: every expectation can hold and can fail, and the exit code says what the totals
//! say.

use serde_json::{Value, json};

use crate::harness::{Home, Run};

/// A machine with a script and cases in the folder where the command runs.
pub(crate) struct Bench(pub(crate) Home);

impl Bench {
    pub(crate) fn new(script: &[Value], cases: &[Value]) -> Self {
        let bench = Self(Home::new());
        bench.write("script.jsonl", &lines(script));
        bench.write("cases.jsonl", &lines(cases));
        bench
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        self.0.file(&format!("project/{name}"), text);
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.run_with_input(arguments, "")
    }

    /// Runs the command without a model of its own.
    pub(crate) fn run_alone(&self, arguments: &[&str]) -> Run {
        self.0.pipe(&[&["eval"], arguments].concat(), b"")
    }

    fn run_with_input(&self, arguments: &[&str], input: &str) -> Run {
        self.0.pipe(
            &[&["eval", "-m", "scripted:script.jsonl"], arguments].concat(),
            input.as_bytes(),
        )
    }
}

/// The rows of cases, and the summary behind them, of `--json`.
pub(crate) fn read(run: &Run) -> (Vec<Value>, Value) {
    let mut lines: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON object a line"))
        .collect();
    let summary = lines.pop().expect("a summary");
    (lines, summary)
}

pub(crate) fn lines(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

pub(crate) fn call(tool: &str, arguments: Value) -> Value {
    json!({"calls": [{"name": tool, "args": arguments}]})
}

pub(crate) fn case(tasks: Value, input: &str, expect: &Value) -> Value {
    json!({"id": "c1", "tasks": tasks, "input": input, "expect": expect})
}

/// Runs one case and compares its verdict: no reasons mean that it passes.
fn check(script: &[Value], tasks: &Value, expect: &Value, reasons: &[&str]) {
    let bench = Bench::new(script, &[case(tasks.clone(), "please", expect)]);
    let ran = bench.run(&["cases.jsonl", "--json"]);
    let (rows, summary) = read(&ran);
    assert_eq!(rows.len(), 1, "{}", ran.stderr);
    assert_eq!(rows[0]["reasons"], json!(reasons), "{expect}");
    assert_eq!(rows[0]["passed"], json!(reasons.is_empty()));
    assert_eq!(summary["ok"], json!(reasons.is_empty()));
    assert_eq!(ran.code, i32::from(!reasons.is_empty()));
}

fn adds_owl_food() -> Vec<Value> {
    vec![
        call("add_task", json!({"description": "Buy owl food"})),
        json!({"text": "Added: Buy owl food."}),
    ]
}

#[test]
fn decision_and_tools_hold_or_fail() {
    let check = |expect, reasons: &[&str]| check(&adds_owl_food(), &json!([]), &expect, reasons);
    check(
        json!({"decision": ["RESPOND_ONLY", "INVOKE_TOOL"], "tools": ["add_task"]}),
        &[],
    );
    check(
        json!({"decision": ["RESPOND_ONLY"]}),
        &["decision is INVOKE_TOOL, expected RESPOND_ONLY"],
    );
    check(
        json!({"tools": []}),
        &["executed add_task, expected no tool"],
    );
    check(
        json!({"tools": ["list_tasks"]}),
        &["executed add_task, expected list_tasks"],
    );
}

#[test]
fn the_reply_holds_or_fails() {
    let check = |expect, reasons: &[&str]| check(&adds_owl_food(), &json!([]), &expect, reasons);
    check(
        json!({"reply_has": ["OWL"], "reply_lacks": ["badger"]}),
        &[],
    );
    check(
        json!({"reply_has": ["badger"]}),
        &["the reply lacks \"badger\""],
    );
    check(json!({"reply_lacks": ["Owl"]}), &["the reply has \"Owl\""]);
}

#[test]
fn tasks_after_hold_or_fail() {
    let tasks = json!([{"description": "Wax the sledge", "completed": true}]);
    let check = |expect, reasons: &[&str]| check(&adds_owl_food(), &tasks, &expect, reasons);
    check(
        json!({"tasks_after": [{"has": ["owl"], "completed": false}, {"has": ["SLEDGE"], "completed": true}]}),
        &[],
    );
    check(
        json!({"tasks_after": [{"has": ["owl"], "completed": false}, {"has": ["sledge"], "completed": false}]}),
        &[
            "no task \u{201c}sledge\u{201d} open",
            "unexpected task \u{201c}Wax the sledge\u{201d} done",
        ],
    );
    check(
        json!({"tasks_after": [{"has": ["sledge"], "completed": true}]}),
        &[
            "2 tasks after the turn, expected 1",
            "unexpected task \u{201c}Buy owl food\u{201d} open",
        ],
    );
}

#[test]
fn what_waits_holds_or_fails_and_stays_unanswered() {
    let script = [call("delete_task", json!({"task_id": "2"}))];
    let tasks = json!([
        {"description": "Wax the sledge", "completed": false},
        {"description": "Brush the goat", "completed": false},
    ]);
    let check = |expect, reasons: &[&str]| check(&script, &tasks, &expect, reasons);
    check(
        json!({
            "decision": ["REQUEST_CONFIRMATION"],
            "tools": [],
            "pending": {"tool": "delete_task", "task_id": "2"},
            "tasks_after": [{"has": ["goat"], "completed": false}, {"has": ["sledge"], "completed": false}],
        }),
        &[],
    );
    check(
        json!({"pending": {"tool": "delete_task", "task_id": "1"}}),
        &["delete_task of task 2 waits, expected delete_task of task 1"],
    );
}

#[test]
fn nothing_waits_where_something_should() {
    let expect = json!({"pending": {"tool": "delete_task", "task_id": "1"}});
    check(
        &adds_owl_food(),
        &json!(["Wax the sledge"]),
        &expect,
        &["nothing waits, expected delete_task of task 1"],
    );
}

#[test]
fn changes_hold_or_fail() {
    let tasks = json!(["Wax the sledge", {"description": "Brush the goat", "completed": true}]);
    let check = |expect, reasons: &[&str]| check(&adds_owl_food(), &tasks, &expect, reasons);
    check(json!({"changes": {"added": ["buy OWL food."]}}), &[]);
    check(
        json!({"changes": {"added": [{"is": ["Get owl food", "Buy owl food"]}]}}),
        &[],
    );
    check(
        json!({"changes": {"completed": ["1"]}}),
        &[
            "task 1 is not completed",
            "unexpected: added task \u{201c}Buy owl food\u{201d}",
        ],
    );
    check(
        json!({"changes": {}, "or": [{"tools": ["add_task"], "changes": {"added": [{"has": ["owl"]}]}}]}),
        &[],
    );
}

#[test]
fn every_case_has_a_store_of_its_own_and_ids_from_one() {
    let completes = |id: &str| {
        [
            call("complete_task", json!({"task_id": id})),
            json!({"text": "Done."}),
        ]
    };
    let tasks = json!([
        {"description": "Wax the sledge", "completed": false},
        {"description": "Brush the goat", "completed": false},
    ]);
    let expect = |sledge: bool| json!({"tasks_after": [{"has": ["sledge"], "completed": sledge}, {"has": ["goat"], "completed": !sledge}]});
    let script = [completes("1"), completes("2")].concat();
    let cases = [
        case(tasks.clone(), "the first", &expect(true)),
        case(tasks, "the second", &expect(false)),
    ];
    let ran = Bench::new(&script, &cases).run(&["cases.jsonl"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout
            .contains("2 of 2 cases passed (100.0 %), 2 needed; model scripted/"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout
            .contains("invalid calls: 0, unconfirmed deletes: 0\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn enough_cases_have_to_pass() {
    let hello = json!({"text": "Hello."});
    let cases = [
        case(json!([]), "one", &json!({"reply_has": ["hello"]})),
        case(json!([]), "two", &json!({"reply_has": ["badger"]})),
    ];
    let bench = Bench::new(&[hello.clone(), hello], &cases);
    let code = |arguments: &[&str]| bench.run(arguments).code;
    assert_eq!(code(&["cases.jsonl"]), 1, "all of them, if nothing is said");
    assert_eq!(code(&["cases.jsonl", "--min-pass", "2"]), 1);
    assert_eq!(code(&["cases.jsonl", "--min-pass", "1"]), 0);
    let ran = bench.run(&["cases.jsonl", "--min-pass", "3"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr
            .contains("--min-pass is 3, and there are only 2 cases"),
        "{}",
        ran.stderr
    );
}

#[test]
fn min_pass_counts_the_cases_of_all_files() {
    let hello = json!({"text": "Hello."});
    let cases = [case(json!([]), "one", &json!({"reply_has": ["hello"]}))];
    let bench = Bench::new(&[hello.clone(), hello], &cases);
    let ran = bench.run_with_input(
        &["cases.jsonl", "-", "--min-pass", "2", "--json"],
        &lines(&cases),
    );
    let (rows, summary) = read(&ran);
    assert_eq!(
        rows.iter()
            .map(|row| row["file"].as_str())
            .collect::<Vec<_>>(),
        [Some("cases.jsonl"), Some("-")]
    );
    assert_eq!(
        (&summary["cases"], &summary["passed"], &summary["min_pass"]),
        (&json!(2), &json!(2), &json!(2))
    );
    assert_eq!(ran.code, 0);
}

#[test]
fn a_line_that_is_no_case_is_named_and_nothing_runs() {
    let good = case(json!([]), "one", &json!({"tools": []}));
    for (line, reason) in [
        ("{\"id\": ", "cases.jsonl:2: EOF while parsing"),
        (
            r#"{"id":"a","tasks":[],"input":"x","expect":{"toolz":[]}}"#,
            "cases.jsonl:2: unknown field `toolz`",
        ),
        (
            r#"{"id":"a","tasks":[],"input":"x","expect":{}}"#,
            "cases.jsonl:2: expect is empty",
        ),
        (
            r#"{"id":"a","tasks":["b"],"input":"x","expect":{"changes":{"completed":["2"]}}}"#,
            "cases.jsonl:2: changes.completed has task 2, and the only task of the case is 1",
        ),
        (
            r#"{"id":"a","tasks":["b"],"input":"x","expect":{"changes":{},"tasks_after":[]}}"#,
            "cases.jsonl:2: expect has both changes and tasks_after",
        ),
    ] {
        let bench = Bench::new(&[json!({"text": "Hello."})], &[]);
        bench.write("cases.jsonl", &format!("{good}\n{line}\n"));
        let ran = bench.run(&["cases.jsonl"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{line}");
        assert!(ran.stderr.contains(reason), "{}", ran.stderr);
    }
}

#[test]
fn no_file_and_no_case_are_usage_errors() {
    let bench = Bench::new(&[], &[]);
    for (arguments, reason) in [
        (&["missing.jsonl"][..], "missing.jsonl cannot be read"),
        (&["cases.jsonl"], "there is no case in cases.jsonl"),
        (&["-", "-"], "standard input can be read once only"),
        (&[], "required"),
    ] {
        let ran = bench.run(arguments);
        assert_eq!(ran.code, 2, "{arguments:?}");
        assert!(ran.stderr.contains(reason), "{}", ran.stderr);
    }
}

#[test]
fn an_invalid_call_fails_the_run_though_its_case_passes() {
    for bad in [
        call("paint_task", json!({})),
        call("add_task", json!({"description": {"of": 7}})),
    ] {
        let script = [bad, json!({"text": "Sorry."})];
        let bench = Bench::new(&script, &[case(json!([]), "one", &json!({"tools": []}))]);
        let ran = bench.run(&["cases.jsonl", "--min-pass", "0", "--json"]);
        let (_, summary) = read(&ran);
        assert_eq!(
            (&summary["passed"], &summary["invalid_calls"]),
            (&json!(1), &json!(1))
        );
        assert_eq!(ran.code, 1);
    }
}

#[test]
fn an_unconfirmed_delete_fails_the_run_though_its_case_passes() {
    let script = [
        call("delete_task", json!({"task_id": "1"})),
        json!({"text": "Deleted."}),
    ];
    let tasks = json!([{"description": "Wax the sledge", "completed": false}]);
    let bench = Bench::new(&script, &[case(tasks, "one", &json!({"tasks_after": []}))]);
    // The agent is the one of `ask`: it does what the settings allow.
    bench.0.config("[agent]\nallow = [\"delete_task\"]\n");
    let ran = bench.run(&["cases.jsonl", "--min-pass", "0", "--json"]);
    let (_, summary) = read(&ran);
    assert_eq!(
        (&summary["passed"], &summary["unconfirmed_deletes"]),
        (&json!(1), &json!(1)),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.code, 1);
}

#[test]
fn a_failed_model_fails_the_case_whose_expectations_hold() {
    let script = [
        json!({"config": {"retries": 0}}),
        json!({"fault": "server"}),
    ];
    let bench = Bench::new(&script, &[case(json!([]), "one", &json!({"tools": []}))]);
    let ran = bench.run(&["cases.jsonl"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("c1  FAIL") && ran.stdout.contains("the model failed: "),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_model_that_cannot_be_asked_ends_the_run() {
    let case = case(json!([]), "one", &json!({"tools": []}));
    let ran = Bench::new(&[json!({"fault": "auth"})], &[case]).run(&["cases.jsonl"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, ""), "{}", ran.stderr);
}

#[test]
fn history_is_part_of_the_turn() {
    let mut case = case(json!([]), "yes please", &json!({"reply_has": ["fine"]}));
    case["history"] = json!([
        {"role": "user", "text": "owl food"},
        {"role": "assistant", "text": "Shall I add it?"},
    ]);
    let ran = Bench::new(&[json!({"text": "Fine."})], &[case.clone()]).run(&["cases.jsonl"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    case["history"][0]["role"] = json!("system");
    let ran = Bench::new(&[], &[case]).run(&["cases.jsonl"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("unknown variant `system`"),
        "{}",
        ran.stderr
    );
}
