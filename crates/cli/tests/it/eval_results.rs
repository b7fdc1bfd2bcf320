//! `adjutant eval`: verdicts, repeated runs, several models, and the files of results.

use serde_json::{Value, json};

use crate::eval::{Bench, call, case, lines, read};
use crate::harness::Run;

/// Cases with ids of their own, without tasks.
fn cases(expects: &[Value]) -> Vec<Value> {
    let with_id = |(at, expect): (usize, &Value)| {
        let mut case = case(json!(["Wax the sledge"]), "please", expect);
        case["id"] = json!(format!("c{}", at + 1));
        case
    };
    expects.iter().enumerate().map(with_id).collect()
}

fn says(text: &str) -> Value {
    json!({ "text": text })
}

fn verdicts(rows: &[Value]) -> Vec<&str> {
    rows.iter()
        .map(|row| row["verdict"].as_str().expect("a verdict"))
        .collect()
}

fn fails_with(ran: &Run, code: i32, reason: &str) {
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (code, ""),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains(reason), "{}", ran.stderr);
}

#[test]
fn every_run_has_a_verdict() {
    let adds = json!({"changes": {"added": ["Buy owl food"]}});
    let script = [
        call("add_task", json!({"description": "Buy owl food"})),
        says("Added."),
        call("add_task", json!({"description": "Buy cat food"})),
        says("Added."),
        says("Which food do you mean?"),
        call("delete_task", json!({"task_id": "1"})),
        says("I've added owl food to your list."),
        says("You have one task."),
    ];
    let bench = Bench::new(&script, &cases(&vec![adds; 6]));
    let ran = bench.run(&["cases.jsonl", "--json"]);
    let (rows, summary) = read(&ran);
    assert_eq!(
        verdicts(&rows),
        [
            "right",
            "wrong_change",
            "asked",
            "asked",
            "pretence",
            "missed"
        ],
        "{}",
        ran.stdout
    );
    assert_eq!(
        summary["verdicts"]["asked"],
        json!({"count": 2, "share": 0.3333, "low": 0.0968, "high": 0.7})
    );
    assert_eq!(ran.code, 1);
}

#[test]
fn too_many_wrong_changes_fail_the_run() {
    let script = [
        call("add_task", json!({"description": "Buy cat food"})),
        says("Added."),
        says("You have one task."),
    ];
    let expects = [json!({"changes": {}}), json!({"reply_has": ["badger"]})];
    let bench = Bench::new(&script, &cases(&expects));
    let code = |max: &str| bench.run(&["cases.jsonl", "--max-wrong-change", max]).code;
    assert_eq!((code("0"), code("1")), (1, 0));
    let with_both = ["cases.jsonl", "--max-wrong-change", "1", "--min-pass", "1"];
    assert_eq!(bench.run(&with_both).code, 1);
}

#[test]
fn repeated_runs_are_counted_and_those_that_differ() {
    let script = ["One.", "Two.", "One.", "One."].map(says);
    let expect = json!({"reply_has": ["one"]});
    let bench = Bench::new(&script, &cases(&[expect.clone(), expect]));
    let ran = bench.run(&["cases.jsonl", "--repeat", "2", "--json"]);
    let (rows, summary) = read(&ran);
    assert_eq!(verdicts(&rows), ["right", "missed", "right", "right"]);
    assert_eq!(rows[1]["run"], 2);
    assert_eq!(
        (
            &summary["cases"],
            &summary["runs"],
            &summary["cases_that_vary"]
        ),
        (&json!(2), &json!(4), &json!(1))
    );
    let enough = ["cases.jsonl", "--repeat", "2", "--min-pass", "3"];
    let ran = bench.run(&enough);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stdout.contains("3 of 4 runs passed"), "{}", ran.stdout);
    let ran = bench.run(&["cases.jsonl", "--repeat", "2", "--min-pass", "5"]);
    fails_with(&ran, 2, "--min-pass is 5, and there are only 4 runs");
    assert_eq!(bench.run(&["cases.jsonl", "--repeat", "0"]).code, 2);
}

#[test]
fn several_models_stand_side_by_side() {
    let expects = [json!({"reply_has": ["one"]}), json!({"reply_has": ["."]})];
    let bench = Bench::new(&[], &cases(&expects));
    bench.write("a.jsonl", &lines(&["One.", "One."].map(says)));
    bench.write("b.jsonl", &lines(&["Two.", "Two."].map(says)));
    let models = [
        "cases.jsonl",
        "--models",
        "scripted:a.jsonl,scripted:b.jsonl",
    ];
    let ran = bench.run_alone(&[&models[..], &["--json"]].concat());
    let (rows, summary) = read(&ran);
    assert_eq!(verdicts(&rows), ["right", "right", "missed", "right"]);
    assert_eq!(
        (
            &summary["models"][0]["passed"],
            &summary["models"][1]["passed"]
        ),
        (&json!(2), &json!(1)),
        "{}",
        ran.stderr
    );
    assert_eq!(
        summary["differing"],
        json!([{"file": "cases.jsonl", "id": "c1", "number": 1, "results": ["right", "missed"]}])
    );
    // Both scripts have the same id, so the second one is called by its name too.
    assert_eq!(
        (&rows[0]["model"], &rows[2]["model"]),
        (
            &json!("scripted/script"),
            &json!("scripted/script (scripted:b.jsonl)")
        )
    );
    assert_eq!(ran.code, 1);
    let ran = bench.run_alone(&models);
    assert!(
        ran.stdout
            .ends_with("the models differ in 1 of 2 cases\nc1 of cases.jsonl: right | missed\n"),
        "{}",
        ran.stdout
    );
    // Enough for each model by itself.
    let ran = bench.run_alone(&[&models[..], &["--min-pass", "1"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert_eq!(bench.run(&models).code, 2, "-m and --models");
}

#[test]
fn a_later_run_is_compared_with_a_saved_one() {
    let expect = json!({"reply_has": ["one"]});
    let bench = Bench::new(
        &["One.", "Two."].map(says),
        &cases(&vec![expect.clone(); 2]),
    );
    let saved = bench.run(&["cases.jsonl", "--save", "base.json", "--min-pass", "0"]);
    assert_eq!(saved.code, 0, "{}", saved.stderr);
    let with_baseline = ["cases.jsonl", "--baseline", "base.json"];
    let ran = bench.run(&with_baseline);
    assert_eq!(
        ran.code, 0,
        "not all pass, and none is worse: {}",
        ran.stdout
    );

    bench.write("script.jsonl", &lines(&["Two.", "One.", "One."].map(says)));
    bench.write("cases.jsonl", &lines(&cases(&vec![expect; 3])));
    let ran = bench.run(&with_baseline);
    assert_eq!(ran.code, 1);
    for line in [
        "compared with the baseline: 1 better, 1 worse (0 allowed), 1 new, 0 gone\n",
        "better  c2 of cases.jsonl: was missed, is right; model scripted/",
        "WORSE   c1 of cases.jsonl: was right, is missed; model scripted/",
        "new     c3 of cases.jsonl; model scripted/",
    ] {
        assert!(ran.stdout.contains(line), "{line}\n{}", ran.stdout);
    }
    let ran = bench.run(&[&with_baseline[..], &["--allow-worse", "1", "--json"]].concat());
    let (_, summary) = read(&ran);
    assert_eq!(
        (ran.code, &summary["baseline"]["worse"][0]["id"]),
        (0, &json!("c1"))
    );
}

#[test]
fn a_baseline_that_cannot_be_read_ends_the_run_before_it_begins() {
    let bench = Bench::new(&[says("One.")], &cases(&[json!({"reply_has": ["one"]})]));
    bench.write("later.json", r#"{"adjutant_eval": 2, "models": []}"#);
    bench.write("other.json", "{\"id\": \"c1\"}\n");
    for (file, reason) in [
        ("missing.json", "--baseline: missing.json cannot be read"),
        (
            "later.json",
            "it is of version 2, and this program reads version 1",
        ),
        (
            "other.json",
            "other.json has no results of adjutant eval that can be read",
        ),
    ] {
        let ran = bench.run(&["cases.jsonl", "--baseline", file]);
        fails_with(&ran, 2, reason);
    }
    let ran = bench.run(&["cases.jsonl", "--allow-worse", "1"]);
    fails_with(&ran, 2, "--baseline");
}

#[test]
fn a_file_that_has_no_place_ends_the_run_before_it_begins() {
    let bench = Bench::new(&[says("One.")], &cases(&[json!({"reply_has": ["one"]})]));
    for option in ["--save", "--junit"] {
        let ran = bench.run(&["cases.jsonl", option, "no/such/folder/file"]);
        fails_with(
            &ran,
            2,
            &format!("{option}: there is no folder no/such/folder"),
        );
        let ran = bench.run(&["cases.jsonl", option, "."]);
        fails_with(&ran, 2, &format!("{option}: . is a folder"));
    }
}

#[test]
fn junit_has_a_test_for_each_run() {
    let expects = [
        json!({"reply_has": ["one"]}),
        json!({"reply_has": ["<&\">"]}),
    ];
    let bench = Bench::new(&["One.", "Two <&\u{1}"].map(says), &cases(&expects));
    let ran = bench.run(&["cases.jsonl", "--junit", "report.xml"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let file = bench.0.path("project/report.xml");
    let xml = std::fs::read_to_string(file).expect("a report");
    for part in [
        "<testsuites name=\"adjutant eval\" tests=\"2\" failures=\"1\" errors=\"0\"",
        "<testcase classname=\"cases.jsonl\" name=\"c1\" time=\"",
        "<failure type=\"missed\" message=\"the reply lacks &quot;&lt;&amp;\\&quot;&gt;&quot;\">reply: Two &lt;&amp;",
    ] {
        assert!(xml.contains(part), "{part}\n{xml}");
    }
    assert!(!xml.contains('\u{1}'), "{xml}");
}

#[test]
fn the_example_of_the_documentation_runs_as_it_says() {
    let document = include_str!("../../../../docs/evaluation.md");
    let block = |number: usize| {
        let blocks = document.split("```").skip(1).step_by(2);
        let block = blocks.into_iter().nth(number).expect("a block");
        block.split_once('\n').expect("a language").1
    };
    let bench = Bench::new(&[], &[]);
    bench.write("cases.jsonl", block(0));
    bench.write("script.jsonl", block(1));
    let ran = bench.run(&["cases.jsonl"]);
    let (command, shown) = block(2).split_once('\n').expect("a command");
    assert_eq!(
        command,
        "$ adjutant eval cases.jsonl -m scripted:script.jsonl"
    );
    // The times are those of a machine.
    let without_times = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("seconds a case"));
        lines
            .map(
                |line| match line.split_once(" s  ").or(line.split_once(" s")) {
                    Some((row, reasons))
                        if row.contains("  pass  ") || row.contains("  FAIL  ") =>
                    {
                        format!(
                            "{} {reasons}",
                            row.trim_end_matches(|c: char| !c.is_alphabetic())
                        )
                    }
                    _ => line.to_owned(),
                },
            )
            .collect()
    };
    assert_eq!(without_times(&ran.stdout), without_times(shown));
}
