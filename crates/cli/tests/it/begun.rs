//! Turns that were interrupted: they stay with the model they began with, and a single question
//! takes up none.

use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::harness::{Home, Run, arg};
use crate::terminal::pty::{Kind, Terminal};
use crate::vendor::{Reply, Vendor};

/// A text that must not reach another model's server without a confirmation.
const SECRET: &str = "Hotel: Thon";

/// A model on this machine that is asked and does not answer as long as the test runs.
fn silent() -> (Vendor, Receiver<String>) {
    let (arrived, asked) = channel();
    let vendor = Vendor::answering_by_path(move |line, body| {
        let _ = arrived.send(format!("{line} {body}"));
        loop {
            std::thread::park();
        }
    });
    (vendor, asked)
}

/// An OpenAI-shaped answer.
fn says(text: &str) -> Reply {
    Reply::events(&[json!({
        "id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m",
        "choices": [{ "index": 0, "delta": { "role": "assistant", "content": text }, "finish_reason": "stop" }],
    })])
}

fn gemini(text: &str) -> Reply {
    let content = json!({ "role": "model", "parts": [{ "text": text }] });
    Reply::events(&[json!({ "candidates": [{ "content": content, "finishReason": "STOP" }] })])
}

/// A person whose local model was killed in the middle of a turn with a note in it.
struct Interrupted {
    home: Home,
    /// Nobody listens there any more.
    _gone: Vendor,
}

impl Interrupted {
    fn new() -> Self {
        let home = Home::new();
        std::fs::create_dir_all(home.path("Notes")).unwrap();
        home.file("Notes/Oslo.md", format!("{SECRET}\n"));
        let (vendor, asked) = silent();
        config(&home, &vendor.url(), "http://127.0.0.1:1");
        let vault = home.path("Notes");
        let mut chat = began(
            home.command(&["chat", "--vault", arg(&vault), "-m", "llama-cpp/a"]),
            "what of @Oslo",
        );
        let first = asked.recv().unwrap();
        assert!(first.contains(SECRET), "{first}");
        // SIGKILL.
        chat.kill().unwrap();
        chat.wait().unwrap();
        config(&home, "http://127.0.0.1:1", "http://127.0.0.1:1");
        Self {
            home,
            _gone: vendor,
        }
    }

    /// A command in which this server answers for Gemini.
    fn elsewhere(&self, vendor: &Vendor, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        command
            .env("GEMINI_API_KEY", "k")
            .env("GEMINI_BASE_URL", vendor.url());
        command
    }

    fn open(&self) -> Vec<Value> {
        self.home
            .json(&["turns", "list"])
            .1
            .as_array()
            .unwrap()
            .clone()
    }
}

fn config(home: &Home, local: &str, other: &str) {
    home.config(&format!(
        "[llm]\nretries = 0\n[llama-cpp]\nbase_url = \"{local}\"\n[groq]\nbase_url = \"{other}\"\n"
    ));
}

/// Waits until a turn has begun.
fn wait_until_begun(home: &Home, chat: &mut Child) {
    while home.json(&["log", "list"]).1.as_array().unwrap().is_empty() {
        assert!(
            chat.try_wait().unwrap().is_none(),
            "the turn ended before it was seen"
        );
    }
}

/// Starts a chat in a pipe and says something in it.
fn began(mut command: Command, said: &str) -> Child {
    use std::io::Write as _;

    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "{said}").unwrap();
    child
}

fn bodies(vendor: Vendor) -> Vec<String> {
    vendor
        .asked()
        .into_iter()
        .map(|asked| asked.body.to_string())
        .collect()
}

/// Returns the words of a screen, wherever its lines end.
fn words(screen: &str) -> String {
    screen.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_single_question_takes_up_no_other_conversations_turn() {
    let person = Interrupted::new();
    let vendor = Vendor::answering([gemini("4")]);
    let run =
        Run::of(&mut person.elsewhere(&vendor, &["-m", "gemini/b", "what is 2+2"])).succeeds();
    assert_eq!(run.stdout, "4\n");
    run.says("adjutant chat finishes it")
        .says("adjutant turns list");
    let asked = bodies(vendor);
    assert!(asked.iter().all(|body| !body.contains(SECRET)), "{asked:?}");
    assert_eq!(person.open().len(), 1);
}

#[test]
fn without_a_terminal_it_stays_open_unless_that_is_set() {
    let person = Interrupted::new();
    let vendor = Vendor::answering([gemini("Hello.")]);
    let mut chat = person.elsewhere(&vendor, &["chat", "-m", "gemini/b", "-y"]);
    let input = std::fs::File::open(person.home.file("said", "hello\n")).unwrap();
    let run = Run::of(chat.stdin(input)).succeeds();
    assert_eq!(run.stdout, "Hello.\n");
    let run = run
        .says("left open: “what of @Oslo")
        .says("with llama-cpp/a (on this machine), waiting for the model")
        .says("nothing listens at http://127.0.0.1:1")
        .says("gemini/b (not on this machine)")
        .says("adjutant chat -m llama-cpp/a");
    let asked = bodies(vendor);
    assert!(asked.iter().all(|body| !body.contains(SECRET)), "{asked:?}");
    // The command that is named ends it.
    let id = person.open()[0]["turn"].as_str().unwrap().to_owned();
    run.says(&format!("adjutant turns drop {}", &id[id.len() - 8..]));

    let vendor = Vendor::answering([gemini("It is in Oslo.")]);
    let mut chat = person.elsewhere(&vendor, &["chat", "-m", "gemini/b"]);
    let run = Run::of(chat.env("ADJUTANT_TURNS_FINISH_WITH_ANY_MODEL", "true")).succeeds();
    assert_eq!(run.stdout, "");
    run.says("turns.finish_with_any_model is set")
        .says("finished what was left open: It is in Oslo.");
    assert!(bodies(vendor)[0].contains(SECRET));
    assert!(person.open().is_empty());
}

#[test]
fn a_conversation_goes_on_behind_its_open_turn_only() {
    let person = Interrupted::new();
    let vendor = Vendor::answering([]);
    let run = Run::of(&mut person.elsewhere(&vendor, &["-c", "-m", "gemini/b", "and then?"]));
    run.ends_with(4)
        .says("this conversation still has an unfinished turn")
        .says("adjutant turns drop");
    assert_eq!(bodies(vendor), [""; 0]);
    let id = person.open()[0]["turn"].as_str().unwrap().to_owned();
    person.home.run(&["turns", "drop", &id, "-y"]).succeeds();
    let vendor = Vendor::answering([gemini("Then nothing.")]);
    let run =
        Run::of(&mut person.elsewhere(&vendor, &["-c", "-m", "gemini/b", "and then?"])).succeeds();
    assert_eq!(run.stdout, "Then nothing.\n");
    drop(bodies(vendor));
}

#[test]
fn the_model_it_began_with_finishes_it_beside_the_one_in_use() {
    let person = Interrupted::new();
    let back = Vendor::answering_by(|_| says("Thon it is."));
    config(&person.home, &back.url(), "http://127.0.0.1:1");
    let vendor = Vendor::answering([gemini("Hello.")]);
    let mut chat = person.elsewhere(&vendor, &["chat", "-m", "gemini/b"]);
    let input = std::fs::File::open(person.home.file("said", "hello\n")).unwrap();
    let run = Run::of(chat.stdin(input)).succeeds();
    assert_eq!(run.stdout, "Hello.\n");
    run.says("llama-cpp/a goes on with it")
        .says("finished what was left open: Thon it is.");
    let asked = bodies(vendor);
    assert!(asked.iter().all(|body| !body.contains(SECRET)), "{asked:?}");
    assert!(back.so_far()[0].body.to_string().contains(SECRET));
    assert!(person.open().is_empty());
    back.stop();
}

#[test]
fn the_same_name_at_another_address_is_another_place() {
    let person = Interrupted::new();
    config(&person.home, "http://gpu.invalid:1", "http://127.0.0.1:1");
    let run = person.home.pipe(&["chat", "-m", "llama-cpp/a"], b"");
    run.succeeds()
        .says("llama-cpp/a (not on this machine) needs your confirmation to finish it");
    assert_eq!(person.open().len(), 1);
}

#[test]
fn a_person_is_asked_and_says_what_becomes_of_it() {
    for (key, shown, left, requests) in [
        ("n", "it stays open", 1, 0),
        ("d", "it is ended", 0, 0),
        ("x\r", "Please answer y, n or d.", 1, 0),
        ("y", "It is in Oslo.", 0, 1),
    ] {
        let person = Interrupted::new();
        let vendor = Vendor::answering_by(|_| gemini("It is in Oslo."));
        let command = person.elsewhere(&vendor, &["-m", "gemini/b"]);
        let mut terminal = Terminal::of(command, Kind::Usual);
        let asked = |times: usize| {
            move |screen: &vt100::Screen| {
                words(&screen.contents()).matches("[d] drop it").count() == times
            }
        };
        terminal.waits("the question", asked(1));
        let screen = words(&terminal.screen());
        assert!(screen.contains("llama-cpp/a (on this machine)"), "{screen}");
        assert!(
            screen.contains("gemini/b (not on this machine)"),
            "{screen}"
        );
        assert!(screen.contains("is sent there"), "{screen}");
        terminal.keys(key).sees(shown);
        if key == "x\r" {
            terminal.waits("the question again", asked(2)).keys("n");
        }
        terminal.prompts_after("/help").keys("\x04");
        terminal.ends_with(0);
        assert_eq!(person.open().len(), left, "{key}");
        let asked = vendor.so_far();
        assert_eq!(asked.len(), requests, "{key}");
        assert!(
            asked
                .iter()
                .all(|asked| asked.body.to_string().contains(SECRET))
        );
        vendor.stop();
    }
}

#[test]
fn ctrl_c_stops_the_turn_that_is_taken_up_and_leads_to_the_prompt() {
    let home = Home::new();
    let slow = home.script(&[r#"{"match": "wait", "text": "never said", "delay_ms": 600000}"#]);
    let mut chat = began(home.command(&["chat", "-m", &slow]), "wait for me");
    wait_until_begun(&home, &mut chat);
    chat.kill().unwrap();
    chat.wait().unwrap();
    let again = home.script(&[
        r#"{"text": "Half.\n\nOf", "fault": "stall"}"#,
        r#"{"text": "Yes."}"#,
    ]);
    let mut terminal = Terminal::start(&home, &["-m", &again]);
    terminal
        .sees("left open: “wait for me”")
        .sees("Half.")
        .keys("\x03")
        .prompts_after("this turn is ended");
    terminal
        .line("are you there?")
        .prompts_after("Yes.")
        .keys("\x04");
    terminal.ends_with(0);
    assert_eq!(home.json(&["turns", "list"]).1, json!([]));
}

#[test]
fn a_question_that_waits_is_answered_by_its_own_model_too() {
    let home = Home::new();
    home.add_task("buy milk");
    let model = home.script(&[
        r#"{"match": "success", "text": "Gone."}"#,
        r#"{"match": "drop", "calls": [{"name": "delete_task", "args": {"task_id": "milk"}}]}"#,
    ]);
    home.run(&["-m", &model, "drop the milk"]).ends_with(4);
    let id = home.json(&["pending", "list"]).1[0]["call_id"]
        .as_str()
        .unwrap()
        .to_owned();
    for args in [&["pending", "approve", &id][..], &["-c", "yes"]] {
        let run = home
            .run(&[&["-m", "demo", "-y"], args].concat())
            .ends_with(4);
        // A script has no name under which it could be found.
        let run =
            run.says("scripted/script (on this machine), which cannot go on (it ran from a file that was not recorded)");
        assert!(!run.stderr.contains("-m scripted/script"), "{run:?}");
        assert_eq!(home.tasks(), ["buy milk"]);
    }
    home.run(&["-m", &model, "pending", "approve", &id])
        .succeeds();
    assert_eq!(home.tasks(), [""; 0]);
}

#[test]
fn a_service_goes_on_with_its_own_model_and_says_so() {
    use std::io::{BufRead as _, BufReader};

    let home = Home::new();
    let slow = home.script(&[r#"{"match": "wait", "text": "never said", "delay_ms": 600000}"#]);
    let mut chat = began(home.command(&["chat", "-m", &slow]), "wait for me");
    wait_until_begun(&home, &mut chat);
    chat.kill().unwrap();
    chat.wait().unwrap();
    let mut serve = home.command(&["serve", "-m", "demo", "--bind", "127.0.0.1:0"]);
    let mut serving = serve
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(serving.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let shown = lines
        .find(|line| line.contains("the turn began with the model"))
        .unwrap();
    serving.kill().unwrap();
    serving.wait().unwrap();
    assert!(
        shown.contains("scripted/script and goes on with scripted/demo"),
        "{shown}"
    );
}
