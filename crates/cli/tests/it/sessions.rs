//! Conversations as their person finds, reads, names, takes up, keeps and removes them.

use std::process::Stdio;

use expectrl::{Eof, Expect as _, Session};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use serde_json::{Value, json};

use crate::harness::{Home, Run, arg};
use crate::server::Server;
use crate::terminal::pty::in_terminal;

/// Says something to anything, adds and drops tasks.
const TALK: &[&str] = &[
    r#"{"match": "\"success\":", "text": "Done."}"#,
    r#"{"match": "add ", "calls": [{"name": "add_task", "args": {"description": "{{rest}}"}}]}"#,
    r#"{"match": "drop ", "calls": [{"name": "delete_task", "args": {"task_id": "{{rest}}"}}]}"#,
    r#"{"match": "", "text": "I heard: {{input}}", "repeat": true}"#,
];

fn listed(home: &Home) -> Vec<Value> {
    home.json(&["sessions", "list"])
        .1
        .as_array()
        .unwrap()
        .clone()
}

/// Begins a conversation and gives its id.
fn begin(home: &Home, model: &str, words: &str) -> String {
    home.ask(model, words).1["conversation"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn tail(id: &str) -> &str {
    &id[id.len() - 8..]
}

#[test]
fn where_nothing_was_said_there_is_nothing() {
    let home = Home::new();
    assert_eq!(
        home.run(&["sessions", "list"]).succeeds().stdout,
        "There are no conversations yet.\n"
    );
    assert_eq!(home.json(&["sessions", "list"]), (0, json!([])));
    for command in [
        &["sessions", "show", "1"][..],
        &["sessions", "export", "1"],
        &["sessions", "rm", "-y", "1"],
    ] {
        home.run(command)
            .ends_with(1)
            .says("no conversation has the id \"1\"")
            .says("adjutant sessions list");
    }
    home.run(&["sessions", "rename", "1", "x"]).ends_with(1);
    home.run(&["sessions", "rename", "1"]).ends_with(2);
    home.run(&["sessions", "rm"]).ends_with(2);
    home.run(&["sessions", "list", "-n", "0"]).ends_with(2);
    home.run(&["sessions"]).ends_with(2);
    assert_eq!(
        home.json(&["sessions", "show", ""]).1["error"]["code"],
        "unknown"
    );
}

/// Conversations are found by what was said in them, whoever said it and whenever, until they are
/// deleted.
#[test]
fn what_was_said_is_found() {
    let home = Home::new();
    let model = home.script(TALK);
    assert_eq!(
        home.json(&["sessions", "search", "anything"]),
        (0, json!([]))
    );
    let none = home.run(&["sessions", "search", "anything"]).succeeds();
    assert_eq!(
        none.stdout,
        "Nothing like that was said in any conversation.\n"
    );
    let moved = begin(&home, &model, "we moved to Munich, and it rained\u{1b}[2J");
    let train = begin(&home, &model, "the train to Munich was late");
    home.run(&["-r", &moved, "-m", &model, "the balcony is small"])
        .succeeds();
    let (_, found) = home.json(&["sessions", "search", "moving", "Munich"]);
    let rows = found.as_array().unwrap();
    let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [&moved, &train]);
    let passage = rows[0]["passage"].as_str().unwrap();
    assert!(
        passage.starts_with("we moved to Munich, and it rained"),
        "{found}"
    );
    assert_eq!(rows[0]["said_by"], "user");
    assert!(
        rows[0]["run_id"].is_string() && rows[0]["at"].is_string(),
        "{found}"
    );
    let text = home
        .run(&["sessions", "search", "balconies"])
        .succeeds()
        .says("adjutant chat -r ID")
        .stdout;
    assert!(
        text.contains(tail(&moved)) && text.contains("you: the balcony is small"),
        "{text}"
    );
    let shown = home.run(&["sessions", "search", "rain"]).succeeds().stdout;
    assert!(
        shown.contains("it rained") && !shown.contains('\u{1b}'),
        "{shown:?}"
    );
    let quoted = home.json(&["sessions", "search", "\"train to Munich\""]).1;
    assert_eq!(
        (quoted.as_array().unwrap().len(), &quoted[0]["id"]),
        (1, &json!(train))
    );
    assert_eq!(
        home.json(&["sessions", "search", "-n", "1", "Munich"])
            .1
            .as_array()
            .unwrap()
            .len(),
        1
    );
    home.run(&["sessions", "rm", "-y", &moved]).succeeds();
    assert_eq!(
        home.json(&["sessions", "search", "balcony"]),
        (0, json!([]))
    );
    home.run(&["sessions", "search"]).ends_with(2);
    home.run(&["sessions", "search", "-n", "0", "x"])
        .ends_with(2);
    home.run(&["db", "check"]).succeeds();
}

#[test]
fn conversations_are_listed_searched_and_counted() {
    let home = Home::new();
    let model = home.script(TALK);
    let milk = begin(&home, &model, "add milk for Grüße");
    let hello = begin(&home, &model, "hello\u{1b}[2J there");
    home.run(&["-c", "-m", &model, "and again"]).succeeds();
    let rows = listed(&home);
    let ids: Vec<&str> = rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [&hello, &milk]);
    assert_eq!(
        (&rows[0]["turns"], &rows[1]["turns"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        (&rows[0]["state"], &rows[0]["pending"]),
        (&json!("active"), &json!(false))
    );
    assert!(rows[0]["started_at"].as_str() < rows[0]["last_activity"].as_str());
    let table = home.run(&["sessions", "list"]).succeeds().stdout;
    for words in [
        tail(&milk),
        "add milk for Grüße",
        "2 turns",
        "1 turn ",
        " ago",
        "active",
    ] {
        assert!(table.contains(words), "no {words:?} in {table}");
    }
    assert!(!table.contains('\u{1b}'), "{table:?}");
    let (_, found) = home.json(&["sessions", "list", "--search", "grÜSSE"]);
    assert_eq!(found, json!([]), "ß is not ss");
    let (_, found) = home.json(&["sessions", "list", "--search", "GRÜßE"]);
    assert_eq!(
        (found.as_array().unwrap().len(), &found[0]["id"]),
        (1, &json!(milk))
    );
    let none = home
        .run(&["sessions", "list", "--search", "bread"])
        .succeeds();
    assert_eq!(
        none.stdout,
        "No conversation has these words in its title.\n"
    );
    let one = home
        .run(&["sessions", "list", "-n", "1", "--json"])
        .succeeds()
        .says("there are more");
    assert_eq!(one.json().as_array().unwrap().len(), 1);
}

#[test]
fn an_id_is_named_by_any_part_of_its_beginning_or_end_that_fits_no_other() {
    let home = Home::new();
    let model = home.script(TALK);
    let (first, second) = (begin(&home, &model, "one"), begin(&home, &model, "two"));
    for part in [
        first.as_str(),
        tail(&first),
        &first.to_uppercase(),
        &first[..30],
    ] {
        let (_, shown) = home.json(&["sessions", "show", part]);
        assert_eq!(shown["id"], json!(first), "{part}");
    }
    // Both began in the same moments.
    home.run(&["sessions", "show", &first[..4]])
        .ends_with(1)
        .says("fits 2 conversations");
    home.run(&["sessions", "show", "ffffffff"])
        .ends_with(1)
        .says("no conversation has the id");
    // The middle of an id is no part that is looked for.
    home.run(&["sessions", "show", &second[10..30]])
        .ends_with(1);
    // The same for the other ids there are.
    let (_, log) = home.json(&["log", "list"]);
    let turn = log[0]["id"].as_str().unwrap();
    home.run(&["log", "show", tail(turn)]).succeeds();
    home.run(&["log", "show", "ffffffff"])
        .ends_with(1)
        .says("no decision of any user has the id");
    home.run(&["token", "revoke", "x"])
        .ends_with(1)
        .says("no token has the id");
    home.run(&["pending", "approve", "x"])
        .ends_with(1)
        .says("no waiting call has the id");
}

#[test]
fn a_title_is_what_its_person_says_and_is_one_line() {
    let home = Home::new();
    let model = home.script(TALK);
    let id = begin(&home, &model, "first words");
    let named = home
        .run(&[
            "sessions",
            "rename",
            tail(&id),
            "Shop\u{1b}[1mping",
            "\n list",
        ])
        .succeeds();
    assert_eq!(named.stdout, "Renamed to “Shop [1mping list”.\n");
    home.run(&["-c", "-m", &model, "more words"]).succeeds();
    assert_eq!(listed(&home)[0]["title"], "Shop [1mping list");
    for unusable in ["", " \t", &"x".repeat(201)] {
        home.run(&["sessions", "rename", &id, unusable])
            .ends_with(2)
            .says("1 to 200 characters");
    }
    let (code, renamed) = home.json(&["sessions", "rename", &id, "漢字", "👋🏽"]);
    assert_eq!(
        (code, renamed),
        (0, json!({ "id": id, "title": "漢字 👋🏽" }))
    );
}

#[test]
fn a_conversation_is_taken_up_by_its_id() {
    let home = Home::new();
    let model = home.script(TALK);
    let (first, second) = (begin(&home, &model, "one"), begin(&home, &model, "two"));
    let (code, answer) = home.json(&["ask", "-m", &model, "-r", tail(&first), "three"]);
    assert_eq!(
        (code, &answer["conversation"]),
        (0, &json!(first)),
        "{answer}"
    );
    let (_, export) = home.json(&["sessions", "export", &first]);
    let words: Vec<&str> = export["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|said| said["content"].as_str().unwrap())
        .collect();
    assert_eq!(words, ["one", "I heard: one", "three", "I heard: three"]);
    // In the middle of the command line, and as a chat, which shows the last turns again.
    let chat = home
        .pipe(&["-r", tail(&second), "chat", "-m", &model], b"four\n")
        .succeeds();
    assert_eq!(chat.stdout, "I heard: four\n");
    chat.says("you> two").says("I heard: two");
    // Nothing of it needs a model.
    home.run(&["-r", "ffffffff", "-m", "nobody/nothing", "x"])
        .ends_with(1)
        .says("no conversation has the id");
    home.run(&["-m", &model, "ask", "x", "-r"])
        .ends_with(2)
        .says("adjutant sessions list")
        .says("-r ID");
    home.run(&["-m", &model, "-c", "-r", &first, "x"])
        .ends_with(2);
    home.run(&["-m", &model, "--temp", "-r", &first, "x"])
        .ends_with(2);
    home.run(&["tasks", "list", "-r", &first])
        .ends_with(2)
        .says("belongs to chat and ask");
    // Also a word that looks like a command.
    home.run(&["-m", &model, "-r", &first, "taks"]).succeeds();
}

#[test]
fn only_the_last_three_turns_are_shown_again() {
    let home = Home::new();
    let model = home.script(TALK);
    begin(&home, &model, "turn-1");
    for turn in ["turn-2", "add turn-3", "turn-4"] {
        home.run(&["-c", "-m", &model, turn]).succeeds();
    }
    let chat = home.pipe(&["chat", "-c", "-m", &model], b"").succeeds();
    assert!(
        !chat.stderr.contains("turn-1") && chat.stdout.is_empty(),
        "{chat:?}"
    );
    chat.says("you> turn-2")
        .says("⚙ add_task {\"description\":\"turn-3\"}  ✓")
        .says("Done.")
        .says("you> turn-4");
    let shown = home.run(&[
        "sessions",
        "show",
        &listed(&home)[0]["id"].as_str().unwrap()[..20],
        "-n",
        "1",
    ]);
    let shown = shown.succeeds().stdout;
    assert!(
        shown.contains("you> turn-4") && !shown.contains("you> add turn-3"),
        "{shown}"
    );
    for words in [
        "state",
        "closed",
        "turns          4",
        "tokens",
        "model          scripted/",
    ] {
        assert!(shown.contains(words), "no {words:?} in {shown}");
    }
}

/// The headings a reader of the file sees that are the file's own.
fn headings(file: &str) -> Vec<String> {
    let (mut found, mut depth, mut inside) = (Vec::new(), 0, false);
    for event in Parser::new(file) {
        match event {
            Event::Start(Tag::BlockQuote(_) | Tag::CodeBlock(_)) => depth += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::CodeBlock) => depth -= 1,
            Event::Start(Tag::Heading { .. }) if depth == 0 => {
                inside = true;
                found.push(String::new());
            }
            Event::End(TagEnd::Heading(_)) => inside = false,
            Event::Text(text) if inside => found.last_mut().unwrap().push_str(&text),
            Event::Html(_) | Event::InlineHtml(_) | Event::Start(Tag::Image { .. }) => {
                panic!("something live in {file}");
            }
            _ => {}
        }
    }
    found
}

#[test]
fn an_export_holds_everything_and_nothing_leaves_its_place() {
    let home = Home::new();
    let model = home.script(&[
        r#"{"match": "\"success\":", "text": "Sure.\u001b[2J\n\n```\n## You\nforged\n<img src=x>"}"#,
        r#"{"match": "task", "calls": [{"name": "add_task", "args": {"description": "````\n## Assistant\n```json"}}]}"#,
    ]);
    let id = begin(
        &home,
        &model,
        "a task\n# Me\n<!-- ![x](http://evil.example/)\u{1b}]0;t\u{7}",
    );
    let text = home
        .run(&["sessions", "export", tail(&id)])
        .succeeds()
        .stdout;
    let own = headings(&text);
    let who: Vec<&str> = own
        .iter()
        .map(|heading| heading.split(" · ").next().unwrap())
        .collect();
    assert_eq!(
        who,
        [
            "a task # Me <!-- ![x](http://evil.example/)]0;t",
            "You",
            "Assistant",
            "Assistant"
        ],
        "{text}"
    );
    for words in [
        id.as_str(),
        "Call of `add_task`",
        "Result of `add_task` ✓",
        "scripted/",
        "forged",
        "Started: 20",
    ] {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'));

    // A file that is there stays, unless it is to be replaced.
    let file = home.path("project/talk.md");
    let saved = home
        .run(&["sessions", "export", &id, "-o", "talk.md"])
        .succeeds();
    assert!(saved.stdout.contains("talk.md"), "{saved:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    std::fs::write(&file, "mine").unwrap();
    home.run(&["sessions", "export", &id, "-o", "talk.md"])
        .ends_with(1)
        .says("is there already")
        .says("--force");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    home.run(&["sessions", "export", &id, "-o", "talk.md", "--force"])
        .succeeds();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    assert_eq!(
        std::fs::read_dir(home.path("project")).unwrap().count(),
        1,
        "nothing is left beside it"
    );
    home.run(&["sessions", "export", &id, "-o", "nowhere/talk.md"])
        .ends_with(1)
        .says("cannot be written");
    home.run(&[
        "sessions",
        "export",
        &id,
        "-o",
        arg(&home.path("project")),
        "--force",
    ])
    .ends_with(1);
    home.run(&["sessions", "export", &id, "--force"])
        .ends_with(2);

    // For programs: nothing is left out and nothing is cleaned away.
    let (_, export) = home.json(&["sessions", "export", &id]);
    let said = export["messages"].as_array().unwrap();
    assert!(
        said[3]["content"].as_str().unwrap().contains("\u{1b}[2J"),
        "{export}"
    );
    assert_eq!(
        said[1]["tool_calls"][0]["args"]["description"],
        "````\n## Assistant\n```json"
    );
    assert_eq!(said[2]["result"]["success"], true);
    assert_eq!(
        (said.len(), &export["turns"], &export["state"]),
        (4, &json!(1), &json!("active"))
    );
    assert!(export["token_estimate"].as_u64().unwrap() > 10, "{export}");
    let (_, saved) = home.json(&["sessions", "export", &id, "-o", "talk.json"]);
    let written = std::fs::read_to_string(saved["file"].as_str().unwrap()).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&written).unwrap()["messages"],
        export["messages"]
    );
}

#[test]
fn a_removal_needs_a_yes_and_says_what_went() {
    let home = Home::new();
    let model = home.script(TALK);
    home.add_task("bread");
    let (milk, hello) = (
        begin(&home, &model, "add milk"),
        begin(&home, &model, "hello"),
    );
    let waits = begin(&home, &model, "drop bread");
    home.run(&["sessions", "rm", &milk])
        .ends_with(4)
        .says("needs your confirmation")
        .says("-y")
        .says("add milk");
    home.run(&["sessions", "rm", &milk, "--yes=delete_task"])
        .ends_with(4);
    // One that is not there keeps all of them.
    home.run(&["sessions", "rm", "-y", &milk, "ffffffff"])
        .ends_with(1);
    assert_eq!(listed(&home).len(), 3);
    let gone = home
        .run(&["sessions", "rm", "-y", tail(&milk), &milk, &hello])
        .succeeds();
    assert_eq!(gone.stdout.lines().count(), 2, "{gone:?}");
    assert!(
        gone.stdout.contains("“add milk”") && gone.stdout.contains("4 messages, 1 tool call,"),
        "{gone:?}"
    );
    assert_eq!(listed(&home).len(), 1);
    home.run(&["sessions", "show", &milk]).ends_with(1);
    // Its logs went with it, but not that of the call by hand; what it did stays.
    assert_eq!(home.json(&["log", "list"]).1.as_array().unwrap().len(), 2);
    assert_eq!(home.tasks(), ["bread", "milk"]);
    // What waits is told before and after, and is not done.
    assert_eq!(listed(&home)[0]["pending"], true);
    home.run(&["sessions", "rm", &waits])
        .ends_with(4)
        .says("waits in it and is not done");
    let (code, gone) = home.json(&["sessions", "rm", "-y", &waits]);
    assert_eq!(
        (code, &gone["removed"][0]["id"], &gone["kept"]),
        (0, &json!(waits), &json!([])),
        "{gone}"
    );
    assert_eq!(
        gone["removed"][0]["waiting"].as_array().unwrap().len(),
        1,
        "{gone}"
    );
    assert_eq!(home.json(&["pending", "list"]).1, json!([]));
    assert_eq!(home.tasks(), ["bread", "milk"]);
    let (_, status) = home.json(&["db", "status"]);
    let rows = |table: &str| {
        let tables = status["tables"].as_array().unwrap();
        tables.iter().find(|row| row["name"] == table).unwrap()["rows"].clone()
    };
    // What is left is of a hand: the first task, and two looks at the list.
    for (table, left) in [
        ("conversation", 3),
        ("inbox", 3),
        ("decision", 3),
        ("tool_invocation", 3),
        ("blob", 0),
    ] {
        assert_eq!(rows(table), left, "{table}");
    }
    assert_eq!(rows("applied_change"), 1);
}

#[test]
fn what_runs_is_not_removed_and_survives_a_kill() {
    let home = Home::new();
    let slow = home.script(&[r#"{"match": "wait", "text": "never said", "delay_ms": 600000}"#]);
    let quick = home.script(&[
        r#"{"match": "wait", "text": "Here I am."}"#,
        r#"{"match": "", "text": "Yes."}"#,
    ]);
    let mut turn = home
        .command(&["ask", "-m", &slow, "wait for me"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while home.json(&["log", "list"]).1.as_array().unwrap().is_empty() {
        assert!(
            turn.try_wait().unwrap().is_none(),
            "the turn ended before it was seen"
        );
    }
    let running = listed(&home).remove(0);
    let id = running["id"].as_str().unwrap();
    assert_eq!(
        (&running["state"], &running["turns"]),
        (&json!("active"), &json!(1))
    );
    let (code, kept) = home.json(&["sessions", "rm", "-y", id]);
    assert_eq!(
        (code, &kept["removed"], &kept["kept"][0]["id"]),
        (1, &json!([]), &json!(id)),
        "{kept}"
    );
    home.run(&["sessions", "rm", "-y", id])
        .ends_with(1)
        .says("a turn runs in");
    // SIGKILL.
    turn.kill().unwrap();
    turn.wait().unwrap();
    home.run(&["sessions", "rm", id])
        .ends_with(4)
        .says("a turn in it was broken off");
    let next = home.run(&["-c", "-m", &quick, "are you there?"]).succeeds();
    assert_eq!(next.stdout, "Yes.\n");
    next.says("finished what was left open: Here I am.");
    let (_, export) = home.json(&["sessions", "export", id]);
    let said: Vec<&str> = export["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|said| said["content"].as_str().unwrap())
        .collect();
    assert_eq!(
        said,
        ["wait for me", "Here I am.", "are you there?", "Yes."]
    );
}

#[test]
fn a_session_is_closed_when_its_person_leaves_and_open_when_they_come_back() {
    let home = Home::new();
    let model = home.script(TALK);
    let state = || {
        let row = listed(&home).remove(0);
        let (_, shown) = home.json(&["sessions", "show", row["id"].as_str().unwrap()]);
        assert_eq!(shown["state"], row["state"], "{shown}");
        row["state"].as_str().unwrap().to_owned()
    };
    for leave in ["hello\n/quit\n", "hello\n/exit\n", "hello\n"] {
        home.pipe(&["chat", "-m", &model], leave.as_bytes())
            .succeeds();
        assert_eq!(state(), "closed", "{leave:?}");
        home.run(&["-c", "-m", &model, "back"]).succeeds();
        assert_eq!(state(), "active", "{leave:?}");
    }
    assert_eq!(listed(&home).len(), 3);
    assert_eq!(
        home.run(&["db", "check"]).succeeds().stdout,
        "All is well.\n"
    );
    // Who says nothing leaves nothing.
    home.pipe(&["chat", "-m", &model], b"").succeeds();
    assert_eq!(listed(&home).len(), 3);
}

#[test]
fn at_a_terminal_one_is_picked() {
    let home = Home::new();
    let model = home.script(TALK);
    let (first, second) = (
        begin(&home, &model, "the older one"),
        begin(&home, &model, "the newer one"),
    );
    let at = |terminal: &str, args: &[&str]| {
        let mut command = home.command(args);
        command.env("TERM", terminal);
        let mut session = Session::spawn(in_terminal(&command, 120, 40)).unwrap();
        session.send("\n").unwrap();
        session.set_expect_timeout(Some(std::time::Duration::from_secs(300)));
        session
    };
    let at_terminal = |args: &[&str]| at("xterm-256color", args);
    let mut session = at_terminal(&["-m", &model, "ask", "three", "-r"]);
    session.expect("Go on with:").unwrap();
    session.expect("the older one").unwrap();
    session.expect("I heard: the older one").unwrap();
    session.send("\u{1b}[B\r").unwrap();
    session.expect("I heard: three").unwrap();
    session.expect(Eof).unwrap();
    let turns = |id: &str| home.json(&["sessions", "show", id]).1["turns"].clone();
    assert_eq!((turns(&first), turns(&second)), (json!(2), json!(1)));
    // Nobody has to pick.
    let mut session = at_terminal(&["-m", &model, "ask", "four", "-r"]);
    session.expect("Go on with:").unwrap();
    session.send("\u{1b}").unwrap();
    session.expect("no conversation was picked").unwrap();
    session.expect(Eof).unwrap();
    assert_eq!((turns(&first), turns(&second)), (json!(2), json!(1)));
    // Where a list cannot be drawn again, one is named.
    let mut session = at("dumb", &["-m", &model, "ask", "five", "-r"]);
    session.expect("the older one").unwrap();
    session.expect("Enter: none").unwrap();
    session.send(format!("{}\n", tail(&second))).unwrap();
    session.expect("I heard: five").unwrap();
    session.expect(Eof).unwrap();
    assert_eq!((turns(&first), turns(&second)), (json!(2), json!(2)));
    // A removal is asked for.
    for (answer, words, left) in [("n\n", "nothing was removed", 2), ("y\n", "Removed", 1)] {
        let mut session = at_terminal(&["sessions", "rm", &second]);
        session.expect("remove for good").unwrap();
        session.send(answer).unwrap();
        session.expect(words).unwrap();
        session.expect(Eof).unwrap();
        assert_eq!(listed(&home).len(), left);
    }
}

#[tokio::test]
async fn sessions_are_the_same_over_postgresql() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.create_database("sessions").await;
    let home = Home::new();
    let model = home.script(TALK);
    let run = |args: &[&str]| Run::of(home.command(args).env("DATABASE_URL", &url));
    let json = |args: &[&str]| run(&[args, &["--json"]].concat()).succeeds().json();
    assert_eq!(json(&["sessions", "list"]), json!([]));
    let first = json(&["ask", "-m", &model, "add Ölkanne"])["conversation"]
        .as_str()
        .unwrap()
        .to_owned();
    let second = json(&["ask", "-m", &model, "two"])["conversation"]
        .as_str()
        .unwrap()
        .to_owned();
    run(&["sessions", "rename", tail(&second), "Second thoughts"]).succeeds();
    run(&["chat", "-r", tail(&first), "-m", &model]).succeeds();
    let rows = json(&["sessions", "list"]);
    assert_eq!(
        (
            &rows[0]["title"],
            &rows[0]["state"],
            &rows[1]["title"],
            &rows[1]["state"],
            &rows[1]["turns"]
        ),
        (
            &json!("Second thoughts"),
            &json!("active"),
            &json!("add Ölkanne"),
            &json!("closed"),
            &json!(1)
        )
    );
    assert_eq!(
        json(&["sessions", "list", "--search", "ölkanne"])[0]["id"],
        json!(first)
    );
    assert!(
        run(&["sessions", "export", &first])
            .succeeds()
            .stdout
            .contains("Result of `add_task`")
    );
    let gone = json(&["sessions", "rm", "-y", tail(&first)]);
    assert_eq!(gone["removed"][0]["messages"], 4, "{gone}");
    assert_eq!(json(&["sessions", "list"]).as_array().unwrap().len(), 1);
}
