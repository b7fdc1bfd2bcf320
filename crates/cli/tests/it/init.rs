//! Three questions, then a configuration that works.

use crate::harness::{Home, arg};
use crate::terminal::pty::Terminal;

const FILE: &str = "config/adjutant/config.toml";

/// A home with a vault in it.
fn home_with_vault() -> Home {
    let home = Home::new();
    std::fs::create_dir_all(home.path("home/Notes/.obsidian")).unwrap();
    home
}

fn written(home: &Home) -> String {
    std::fs::read_to_string(home.path(FILE)).unwrap_or_default()
}

#[test]
fn options_do_what_the_questions_do() {
    let home = home_with_vault();
    let vault = home.path("home/Notes").canonicalize().unwrap();
    let run = home.run(&[
        "init",
        "--model",
        "demo",
        "--vault",
        arg(&vault),
        "--memory",
        "me/facts.md",
        "--yes",
    ]);
    let run = run.succeeds().says("gets:").says("model = demo");
    assert!(run.stdout.contains("Ready"), "{run:?}");
    let expected = format!(
        "model = \"demo\"\n\n[vault]\npath = \"{}\"\n\n[memory]\npath = \"me/facts.md\"\n",
        vault.display()
    );
    assert_eq!(written(&home), expected);
    // A second time there is nothing to do.
    home.run(&["init", "-m", "demo", "--yes"])
        .succeeds()
        .says("nothing to write");
    assert_eq!(written(&home), expected);
}

#[test]
fn nothing_that_is_there_is_changed() {
    let home = home_with_vault();
    let mine = "# mine\nmodel = \"demo\" # for now\n\n[llm]\n# warmer\ntemperature = 0.5\n";
    home.config(mine);
    home.run(&["init", "-m", "gemini", "--yes"])
        .ends_with(3)
        .says("model is set already")
        .says("config.toml:2 says demo")
        .says("adjutant config set model gemini");
    assert_eq!(written(&home), mine);
    let vault = home.path("home/Notes");
    home.run(&["init", "--vault", arg(&vault), "--yes"])
        .succeeds();
    assert!(written(&home).starts_with(mine), "{}", written(&home));
    home.config("modle = 1\n");
    home.run(&["init", "-m", "demo", "--yes"])
        .ends_with(3)
        .says("unknown key modle");
    assert_eq!(written(&home), "modle = 1\n");
}

#[test]
fn without_a_terminal_and_options_it_is_a_usage_error() {
    let home = Home::new();
    home.run(&["init"])
        .ends_with(2)
        .says("this command asks questions, and this is not a terminal")
        .says("adjutant init --yes");
    for args in [
        &["init", "--vault", "nowhere", "--yes"][..],
        &["init", "--vault", "none", "--memory", "../out.md", "--yes"],
    ] {
        home.run(args).ends_with(2);
    }
    home.run(&["init", "-m", "gemni", "--yes"])
        .ends_with(3)
        .says("did you mean gemini?");
    assert_eq!(written(&home), "");
}

#[test]
fn three_questions_at_a_terminal() {
    let home = home_with_vault();
    let vault = home.path("home/Notes").canonicalize().unwrap();
    let mut command = home.command(&["init"]);
    // A key, so that the first choice is one that needs no download; nobody listens there.
    command
        .env("GEMINI_API_KEY", "sk-not-a-real-key")
        .env("GEMINI_BASE_URL", "http://127.0.0.1:1");
    let mut terminal = Terminal::of(command, crate::terminal::pty::Kind::Usual);
    terminal
        .sees("Which model answers?")
        .sees("there is a key")
        .keys("\r");
    terminal
        .sees("Where are your notes")
        .sees("another folder")
        .keys("\r");
    terminal.sees("Where does memory go").keys("\r");
    terminal.sees("Write it?").keys("\r");
    // What was chosen does not answer, and that is said at once.
    let screen = terminal.ends_with(3);
    assert!(screen.contains("does not answer"), "{screen}");
    let text = written(&home);
    assert!(text.starts_with("model = \"gemini/"), "{text}");
    assert!(
        text.contains(&format!("path = \"{}\"", vault.display())),
        "{text}"
    );
    assert!(text.contains("path = \"memory/facts.md\""), "{text}");
    assert!(!terminal.raw().contains("sk-not-a-real-key"));
}

#[test]
fn ctrl_c_writes_nothing_at_any_question() {
    for questions in 0..4 {
        let home = home_with_vault();
        let mut terminal = Terminal::start(&home, &["init"]);
        let asked = [
            "Which model answers?",
            "Where are your notes",
            "Where does memory go",
            "Write it?",
        ];
        for question in &asked[..questions] {
            terminal.sees(question).keys("\r");
        }
        terminal.sees(asked[questions]).keys("\x03");
        let screen = terminal.ends_with(130);
        assert!(screen.contains("nothing was written"), "{screen}");
        assert!(!home.path(FILE).exists());
        assert!(!home.path("config/adjutant/credentials.toml").exists());
    }
}

#[test]
fn vaults_that_obsidian_knows_are_offered_first() {
    let home = home_with_vault();
    let deep = home.path("home/a/b/c/d/e/Deep");
    std::fs::create_dir_all(&deep).unwrap();
    let list = serde_json::json!({ "vaults": { "x": { "path": deep, "ts": 1, "open": true } } });
    std::fs::create_dir_all(home.path("config/obsidian")).unwrap();
    std::fs::write(home.path("config/obsidian/obsidian.json"), list.to_string()).unwrap();
    let mut terminal = Terminal::start(&home, &["init", "-m", "demo"]);
    terminal
        .sees("Where are your notes")
        .sees("e/Deep")
        .sees("home/Notes")
        .keys("\r");
    terminal.sees("Where does memory go").keys("\r");
    terminal.sees("Write it?").keys("\r");
    terminal.ends();
    assert!(
        written(&home).contains("a/b/c/d/e/Deep\""),
        "{}",
        written(&home)
    );
}

#[test]
fn the_folder_question_completes_clears_and_asks_again() {
    let home = Home::new();
    for folder in ["home/Papers/Journal", "home/Papers/.obsidian", "home/Music"] {
        std::fs::create_dir_all(home.path(folder)).unwrap();
    }
    let other = |terminal: &mut Terminal| {
        // The vault, another folder, none.
        terminal
            .sees("Where are your notes")
            .sees("another folder")
            .keys("\x1b[B\r");
        terminal.sees("Which folder");
    };
    let mut terminal = Terminal::start(&home, &["init", "-m", "demo"]);
    other(&mut terminal);
    // Before it is asked again, keys are the system's, which takes some of them for itself.
    let asked_again = |terminal: &mut Terminal, why: &str, line: &str| {
        terminal.waits(line, |screen| {
            let after = screen
                .contents()
                .rsplit_once(why)
                .map(|(_, after)| after.trim_end().to_owned());
            after.is_some_and(|after| after.ends_with(line)) && screen.bracketed_paste()
        });
    };
    terminal.keys("~/nowhere\r");
    asked_again(&mut terminal, "is not there", "(Tab completes)? ~/nowhere");
    terminal.keys("\x15").waits("an empty line", |screen| {
        screen
            .contents()
            .trim_end()
            .ends_with("Which folder (Tab completes)?")
    });
    terminal.keys("\r");
    asked_again(
        &mut terminal,
        "type the path of a folder",
        "(Tab completes)?",
    );
    terminal
        .keys("~/Pa\t")
        .sees("~/Papers/")
        .keys("Jo\t")
        .sees("~/Papers/Journal/")
        .keys("\r");
    terminal.sees("Where does memory go").keys("\r");
    terminal.sees("Write it?").keys("\r");
    terminal.ends();
    assert!(
        written(&home).contains("/Papers/Journal\""),
        "{}",
        written(&home)
    );

    for key in ["\x03", "\x1b", "\x04"] {
        let home = home_with_vault();
        let mut terminal = Terminal::start(&home, &["init", "-m", "demo"]);
        other(&mut terminal);
        terminal.keys(key);
        assert!(
            terminal.ends_with(130).contains("nothing was written"),
            "{key:?}"
        );
        assert!(!home.path(FILE).exists());
    }
}

#[test]
fn the_command_that_changes_a_setting_can_be_pasted() {
    let home = home_with_vault();
    let vault = home.path("home/My Notes");
    std::fs::create_dir(&vault).unwrap();
    home.config("[vault]\npath = \"/elsewhere\"\n");
    let run = home
        .run(&["init", "--vault", arg(&vault), "--yes"])
        .ends_with(3);
    let vault = vault.canonicalize().unwrap();
    run.says(&format!(
        "adjutant config set vault.path '{}'",
        vault.display()
    ));
}
