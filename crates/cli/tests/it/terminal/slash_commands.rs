//! Slash commands and mentions in a conversation.

use super::*;

#[test]
fn the_last_answer_is_rated() {
    let home = Home::new();
    let mut terminal = talking(&home, &[r#"{"text": "Grüße."}"#]);
    terminal
        .line("/good")
        .prompts_after("there is no answer yet");
    terminal.line("hello").prompts_after("Grüße.");
    terminal.line("/good").prompts_after("noted");
    terminal
        .line("/bad not in Swiss German")
        .prompts_after("noted");
    terminal.quits();
    let listed = home
        .run(&["log", "list", "--feedback", "down", "--json"])
        .succeeds()
        .json();
    assert_eq!(
        listed[0]["feedback"]["comment"], "not in Swiss German",
        "{listed}"
    );
}

#[test]
fn the_clipboard_gets_the_answer() {
    use base64::Engine as _;
    let home = Home::new();
    let mut terminal = talking(&home, &[r#"{"text": "Grüße."}"#]);
    terminal
        .line("/copy")
        .prompts_after("there is no answer yet");
    terminal.line("hello").prompts_after("Grüße.");
    terminal.line("/copy").prompts_after("clipboard");
    let copied = base64::engine::general_purpose::STANDARD.encode("Grüße.");
    assert!(terminal.raw().contains(&format!("\x1b]52;c;{copied}\x07")));
    terminal.quits();
}

#[test]
fn another_model_answers_in_the_middle_of_a_conversation() {
    let home = Home::new();
    let other = home.script(&[r#"{"text": "I am another."}"#]);
    let mut terminal = talking(&home, &[ECHO]);
    terminal.line("hello").prompts_after("You said: hello");
    terminal
        .line("/model nosuch/model")
        .sees("Error:")
        .prompts_after("Error:");
    terminal.line(&format!("/model {other}")).waits(
        "the greeting of the other model, and a prompt",
        |screen| {
            let contents = screen.contents();
            contents.matches("scripted/script").count() == 2
                && contents.trim_end().ends_with("you>")
                && screen.bracketed_paste()
        },
    );
    terminal.line("and you?").prompts_after("I am another.");
    terminal
        .line("/retry")
        .waits("the failure of a script that is used up", |screen| {
            screen.contents().contains("Error:")
                && screen.contents().matches("and you?").count() >= 2
        });
    terminal.quits();
    let (_, decisions) = home.json(&["log", "list"]);
    let conversations: std::collections::HashSet<_> = decisions
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["conversation"].to_string())
        .collect();
    assert_eq!(
        conversations.len(),
        2,
        "what is answered anew is answered in a branch"
    );
}

#[test]
fn other_answers_and_other_words_are_kept_beside_the_first() {
    let home = Home::new();
    let replies = ["Tea.", "Coffee.", "Cocoa."].map(|words| format!(r#"{{"text": "{words}"}}"#));
    let mut terminal = talking(&home, &replies.each_ref().map(String::as_str));
    terminal
        .line("/retry")
        .prompts_after("nothing has been said yet");
    terminal.line("something hot").prompts_after("Tea.");
    terminal.line("/branches").prompts_after("in one way only");
    terminal.line("/retry").prompts_after("Coffee.");
    terminal
        .line("/rewind 2")
        .prompts_after("that many messages");
    terminal
        .line("/rewind")
        .sees("the next message replaces")
        .waits("the words at the prompt", |screen| {
            screen.contents().trim_end().ends_with("you> something hot")
        });
    terminal.line(" and sweet").prompts_after("Cocoa.");
    terminal
        .line("/branches")
        .prompts_after("* 3  something hot and sweet → Cocoa.");
    let screen = terminal.screen();
    assert!(
        screen.contains("1  something hot → Tea.") && screen.contains("2  something hot → Coffee."),
        "{screen}"
    );
    terminal
        .line("/branches 4")
        .prompts_after("there are 3 of them");
    terminal
        .line("/branches 1")
        .waits("the first answer again", |screen| {
            screen.contents().matches("Tea.").count() == 3
        });
    terminal
        .line("/branches")
        .prompts_after("* 1  something hot → Tea.");
    terminal.quits();
    let (_, listed) = home.json(&["sessions", "list"]);
    let branches: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["branched_from"]["seq"] == 0)
        .collect();
    assert_eq!(
        (listed.as_array().unwrap().len(), branches.len()),
        (3, 2),
        "{listed}"
    );
    let first = branches[0]["branched_from"]["conversation_id"]
        .as_str()
        .unwrap();
    let table = home.run(&["sessions", "list"]).succeeds().stdout;
    assert_eq!(
        table
            .matches(&format!("branch of {}", &first[first.len() - 8..]))
            .count(),
        2,
        "{table}"
    );
    home.run(&["sessions", "rm", "-y", first]).succeeds();
    assert_eq!(home.json(&["db", "check"]).0, 0);
    assert_eq!(
        home.json(&["sessions", "list"]).1.as_array().unwrap().len(),
        2
    );
}

#[test]
fn a_vault_is_named_completed_attached_and_written_to() {
    let home = Home::new();
    std::fs::create_dir_all(home.path("Notes/Projects")).unwrap();
    home.file(
        "Notes/Projects/Diana.md",
        "She \u{1b}[31mlikes\u{1b}[0m tea.\n",
    );
    let vault = home.path("Notes");
    let model = home.script(&[ECHO]);
    let mut terminal = Terminal::start(&home, &["--vault", arg(&vault), "-m", &model]);
    terminal.sees("vault Notes").prompts_after("/help");
    terminal.line("#Ana rides to work").prompts_after("/undo");
    let facts = std::fs::read_to_string(vault.join("memory/facts.md")).unwrap();
    assert!(facts.contains("Ana rides to work"), "{facts}");
    terminal
        .line("/memory")
        .prompts_after("  Ana rides to work")
        .line("/undo")
        .prompts_after("is forgotten.");
    terminal.keys("what of @dia\t").sees("@Projects/Diana");
    terminal
        .line("and @nobody?")
        .sees("attached: Projects/Diana.md, 1 line")
        .sees("@nobody is not attached");
    terminal.prompts_after("tea.");
    assert!(!terminal.raw().contains("\x1b[31mlikes"));
    terminal.quits();
    assert!(
        !std::fs::read_to_string(vault.join("memory/facts.md"))
            .unwrap()
            .contains("Ana rides")
    );
}

#[test]
fn facts_attached_to_a_message_are_shown_and_corrected() {
    let home = Home::new();
    let vault = home.path("Notes");
    std::fs::create_dir_all(&vault).unwrap();
    let model = home.script(&[ECHO]);
    let mut terminal = Terminal::start(&home, &["--vault", arg(&vault), "-m", &model]);
    terminal
        .prompts_after("/help")
        .line("/memory told")
        .prompts_after("no turn yet");
    terminal
        .line("#Ana rides her bike to work")
        .prompts_after("/undo");
    terminal
        .line("how does Ana get to work?")
        .sees("1 line from your memory")
        .prompts_after("You said");
    terminal
        .line("/memory told")
        .sees("Ana rides her bike to work")
        .sees("by you")
        .prompts_after("/forget ID");
    terminal
        .line("/memory edit bike: Ana takes the train to work")
        .prompts_after("/undo");
    terminal
        .line("/memory told")
        .prompts_after("changed or forgotten since");
    // What stands there already is not told again; that it is wrong is.
    terminal
        .line("and to work on Monday?")
        .sees("2 lines from your memory")
        .prompts_after("You said");
    terminal
        .line("/memory told")
        .sees("Ana takes the train to work")
        .prompts_after("/forget ID");
    terminal.quits();
}

#[test]
fn conversations_are_listed_renamed_continued_and_exported() {
    let home = Home::new();
    let mut terminal = talking(&home, &[ECHO]);
    terminal
        .line("/export")
        .prompts_after("nothing has been said");
    terminal
        .line("about cheese")
        .prompts_after("You said: about cheese");
    terminal
        .line("/rename Cheese")
        .prompts_after("is now called");
    terminal
        .line("/context")
        .sees("instruction")
        .prompts_after("kept free");
    terminal
        .line("/export cheese.md")
        .prompts_after("written to");
    let written = std::fs::read_to_string(home.path("project/cheese.md")).unwrap();
    assert!(
        written.starts_with("# Cheese") && written.contains("You said: about cheese"),
        "{written}"
    );
    terminal
        .line("/export cheese.md")
        .prompts_after("there already");
    terminal
        .line("/new")
        .prompts_after("a new conversation")
        .line("about wine")
        .prompts_after("You said: about wine");
    terminal
        .line("/sessions chee")
        .sees("Cheese")
        .prompts_after("Cheese");
    let (_, sessions) = home.json(&["sessions", "list"]);
    let named = |row: &&serde_json::Value| row["title"] == "Cheese";
    let id = sessions.as_array().unwrap().iter().find(named).unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    terminal
        .line(&format!("/resume {id}"))
        .sees("going on with")
        .prompts_after("going on with");
    terminal
        .line("more of it")
        .prompts_after("You said: more of it");
    terminal.quits();
    let (_, decisions) = home.json(&["log", "list"]);
    assert_eq!(decisions[0]["conversation"], decisions[2]["conversation"]);
    assert_ne!(decisions[0]["conversation"], decisions[1]["conversation"]);
}

#[test]
fn a_file_behind_an_at_sign_is_completed_asked_for_once_and_attached() {
    let home = Home::new();
    std::fs::create_dir(home.path("project/src")).unwrap();
    home.file("project/src/main.rs", "fn main() {}\n");
    home.file("project/README.md", "Read me.\n");
    let mut terminal = talking(&home, &[ECHO]);
    terminal
        .keys("see @src/ma\t")
        .sees("@src/main.rs")
        .keys("\r")
        .sees("Allow @ to attach files from")
        .sees("[y/N]");
    terminal
        .line("n")
        .sees("is not attached, and nothing was sent");
    let twice = |words: &'static str| {
        move |screen: &vt100::Screen| screen.contents().matches(words).count() == 2
    };
    terminal.waits("the line that came back", twice("you> see @src/main.rs"));
    terminal.keys("\r").waits("the question", twice("[y/N]"));
    terminal
        .line("y")
        .sees("attached: file \"src/main.rs\", 1 line")
        .prompts_after("fn main() {}");
    terminal
        .line("and @README.md")
        .sees("attached: file \"README.md\"")
        .prompts_after("Read me.");
    terminal
        .line("and @src/mian.rs")
        .sees("@src/mian.rs cannot be read");
    terminal.waits("the line that came back", twice("you> and @src/mian.rs"));
    terminal.keys(CTRL_C).prompts_after("mian.rs");
    terminal.quits();
    assert_eq!(messages(&home).len(), 2);
    let list = home.run(&["config", "trust", "--list"]).succeeds();
    assert!(
        list.stdout.contains("may go along with a message"),
        "{list:?}"
    );
    home.run(&["-m", &home.script(&[ECHO]), "sum @README.md"])
        .succeeds();
    home.run(&["config", "trust", "--revoke"]).succeeds();
    home.run(&["-m", &home.script(&[ECHO]), "sum @README.md"])
        .ends_with(2)
        .says("is not trusted");
}
