//! `adjutant report`: enough for whoever mends a bug, and nothing that is somebody's own.

use std::path::Path;

use serde_json::Value;

use crate::harness::{Home, arg};

/// Words that stand somewhere in what the person has, and in no report.
const CANARIES: [&str; 9] = [
    "canary-task",
    "canary-talk",
    "canary-answer",
    "canary-path",
    "canary-key",
    "canary-user",
    "canary-server",
    "canary-host",
    "canary-log",
];

fn everything(folder: &Path) -> String {
    let mut all = String::new();
    for file in std::fs::read_dir(folder).unwrap() {
        all += &std::fs::read_to_string(file.unwrap().path()).unwrap();
    }
    all
}

fn json(folder: &Path, name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

/// A home in which all of these words are.
fn home() -> (Home, String) {
    let home = Home::new();
    let vault = home.path("home/canary-path");
    std::fs::create_dir_all(&vault).unwrap();
    home.config(&format!(
        "user_name = \"canary-user\"\n[vault]\npath = \"{}\"\n[llm]\ntemperature = 0.5\n[openai]\nbase_url = \"http://canary-host:1/v1\"\n\
         [serve]\nhosts = [\"canary-host\"]\nturns_at_once = 7\n[mcp.servers.canary-server]\ncommand = [\"canary-path\"]\ndisabled = true\n",
        vault.display()
    ));
    home.add_task("canary-task");
    let model = home.script(&[
        r#"{"config": {"retries": 0}}"#,
        r#"{"match": "trouble", "fault": "server"}"#,
        r#"{"text": "canary-answer", "repeat": true}"#,
    ]);
    home.ask(&model, "canary-talk");
    let (_, failed) = home.ask(&model, "canary-talk about trouble");
    let turn = failed["turn"].as_str().unwrap().to_owned();
    (home, turn)
}

#[test]
fn a_report_has_what_is_needed_and_nothing_of_ones_own() {
    let (home, turn) = home();
    let log = home.file(
        "service.log",
        "{\"time\":\"2026-01-31T09:00:00Z\",\"level\":\"ERROR\",\"message\":\"canary-log\",\"user\":\"canary-user\",\"request_id\":\"req-7\",\
         \"error\":\"canary-log\",\"path\":\"/srv/canary-path\",\"status\":503}\nplain canary-log\n\u{1b}]0;canary-log\u{7}\n{\"level\":{\"canary-log\":1}}\n",
    );
    let folder = home.path("report");
    let mut command = home.command(&[
        "report",
        "--folder",
        arg(&folder),
        "--turn",
        &turn,
        "--log",
        arg(&log),
    ]);
    command.env("OPENAI_API_KEY", "canary-key");
    let run = crate::harness::Run::of(&mut command).succeeds();
    for file in [
        "about.json",
        "settings.json",
        "doctor.json",
        "database.json",
        "errors.json",
        "turn.json",
        "log.jsonl",
    ] {
        assert!(run.stdout.contains(file), "no {file} in {run:?}");
    }
    let all = everything(&folder);
    let place = home.path("home");
    for canary in CANARIES.into_iter().chain([arg(&place)]) {
        assert!(!all.contains(canary), "{canary}: {all}");
    }
    assert_eq!(
        json(&folder, "about.json")["adjutant"],
        env!("CARGO_PKG_VERSION")
    );
    let settings = json(&folder, "settings.json");
    assert_eq!(
        settings["settings"]["llm.temperature"],
        serde_json::json!({"value": "0.5", "origin": "file"})
    );
    assert_eq!(
        settings["settings"]["vault.path"],
        serde_json::json!({"value": "(withheld)", "origin": "file"})
    );
    assert_eq!(settings["settings"]["serve.turns_at_once"]["value"], "7");
    assert_eq!(
        settings["settings"]["OPENAI_API_KEY"]["origin"], "variable",
        "{settings}"
    );
    assert_eq!(settings["mcp_servers"], 1);
    let errors = json(&folder, "errors.json");
    assert_eq!(
        (&errors[0]["id"], &errors[0]["error_code"]),
        (&turn.as_str().into(), &"server".into()),
        "{errors}"
    );
    let steps = json(&folder, "turn.json");
    let failed = steps["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["failed"] == true)
        .unwrap();
    assert_eq!(
        (&failed["kind"], &failed["code"]),
        (&"model".into(), &"server".into()),
        "{steps}"
    );
    assert!(
        json(&folder, "database.json")["rows"]["decision"]
            .as_u64()
            .unwrap()
            >= 2
    );
    let included = std::fs::read_to_string(folder.join("log.jsonl")).unwrap();
    assert!(
        included.contains("req-7")
            && included.contains("503")
            && run.stdout.contains("2 other lines"),
        "{included} {run:?}"
    );
    // What is there is not touched.
    home.run(&["report", "--folder", arg(&folder)])
        .ends_with(1)
        .says("cannot be written");
}

#[test]
fn words_are_in_a_report_only_if_they_are_asked_for() {
    let (home, turn) = home();
    let folder = home.path("report");
    let run = home
        .run(&[
            "report",
            "--folder",
            arg(&folder),
            "--turn",
            &turn[28..],
            "--with-words",
        ])
        .succeeds();
    assert!(run.stdout.contains("WITH WHAT WAS SAID"), "{run:?}");
    assert!(everything(&folder).contains("canary-talk about trouble"));
    home.run(&["report", "--with-words"]).ends_with(2);
    home.run(&["report", "--turn", "ffffffff"])
        .ends_with(1)
        .says("no decision of any user");
}

#[test]
fn a_report_is_one_file_also_where_nothing_can_be_read() {
    let home = Home::new();
    home.config("canary-key = [\n");
    let file = home.path("report.zip");
    let (code, made) = home.json(&["report", "-o", arg(&file)]);
    assert_eq!(code, 0, "{made}");
    let names: Vec<&str> = made["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["file"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["about.json", "doctor.json", "problem.json"]);
    let mut archive = zip::ZipArchive::new(std::fs::File::open(&file).unwrap()).unwrap();
    assert_eq!(
        archive.file_names().collect::<Result<Vec<_>, _>>().unwrap(),
        names
    );
    for name in names {
        let text = std::io::read_to_string(archive.by_name(name).unwrap()).unwrap();
        assert!(!text.contains("canary-key"), "{text}");
    }
    home.run(&["report", "-o", arg(&file)])
        .ends_with(1)
        .says("cannot be written");
}
