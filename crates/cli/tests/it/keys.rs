//! Keys: kept for their person alone, used, and never told.

use crate::harness::{Home, Run};
use crate::vendor::{Reply, Vendor};

const KEY: &str = "sk-not-a-real-key-1234";
const FILE: &str = "config/adjutant/credentials.toml";

#[cfg(unix)]
fn mode(path: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_key_from_standard_input_is_kept_listed_by_its_end_and_forgotten() {
    let home = Home::new();
    let run = home
        .pipe(&["keys", "set", "gemini"], format!("{KEY}\n").as_bytes())
        .succeeds();
    assert!(!format!("{run:?}").contains(KEY));
    #[cfg(unix)]
    assert_eq!(mode(&home.path(FILE)), 0o600);
    let list = home.run(&["keys", "list"]).succeeds();
    assert!(
        list.stdout.contains("gemini") && list.stdout.contains("…1234"),
        "{list:?}"
    );
    assert!(list.stdout.contains("credentials.toml") && !list.stdout.contains(KEY));
    let show = home.run(&["config", "show", "--origin"]).succeeds();
    assert!(
        show.stdout.contains("credentials.toml") && !show.stdout.contains(KEY),
        "{show:?}"
    );
    home.run(&["keys", "rm", "google"]).succeeds();
    assert_eq!(home.run(&["keys", "list"]).succeeds().stdout, "");
    home.run(&["keys", "rm", "gemini"])
        .ends_with(1)
        .says("there is no key for gemini");
}

#[cfg(all(unix, feature = "gemini"))]
#[test]
fn the_key_is_sent_and_environment_and_env_file_win_over_it() {
    let home = Home::new();
    let vendor = Vendor::answering_by(|_| Reply::json(500, "{}"));
    let sent = |home: &Home, variable: Option<&str>| {
        let mut command = home.command(&["-m", "gemini", "hello"]);
        command
            .env("GEMINI_BASE_URL", vendor.url())
            .env("ADJUTANT_LLM_RETRIES", "0");
        if let Some(key) = variable {
            command.env("GEMINI_API_KEY", key);
        }
        Run::of(&mut command).ends_with(5);
        format!("{:?}", vendor.so_far().pop().unwrap().headers)
    };
    home.pipe(&["keys", "set", "gemini"], KEY.as_bytes())
        .succeeds();
    assert!(sent(&home, None).contains(KEY));
    home.file("config/adjutant/.env", "GEMINI_API_KEY=of-the-env-file\n");
    assert!(sent(&home, None).contains("of-the-env-file"));
    assert!(sent(&home, Some("of-the-process")).contains("of-the-process"));
    vendor.stop();
}

#[test]
fn what_is_no_key_is_refused_and_nothing_is_written() {
    let home = Home::new();
    for text in [
        "",
        "two words",
        "\"quoted\"",
        "GEMINI_API_KEY=sk-12345",
        "sk-1\nsk-2",
    ] {
        let run = home
            .pipe(&["keys", "set", "gemini"], text.as_bytes())
            .ends_with(2)
            .says("this is not a key");
        assert!(text.is_empty() || !run.stderr.contains(text), "{run:?}");
    }
    home.pipe(&["keys", "set", "gemini"], b"\xff\xfe")
        .ends_with(2)
        .says("not UTF-8");
    home.pipe(&["keys", "set", "gemni"], KEY.as_bytes())
        .ends_with(2)
        .says("did you mean gemini?");
    // Somebody gives the key where the name belongs.
    let run = home.run(&["keys", "set", KEY]).ends_with(2);
    assert!(!run.stderr.contains(KEY), "{run:?}");
    assert!(!home.path(FILE).exists());
}

#[test]
fn comments_and_other_keys_stay_and_open_permissions_are_noted_and_closed() {
    let home = Home::new();
    let text = "# mine\nOPENAI_API_KEY = \"sk-other-key-5678\" # work\n";
    home.file(FILE, text);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(home.path(FILE), std::fs::Permissions::from_mode(0o644)).unwrap();
        home.run(&["keys", "list"]).succeeds().says("chmod 600");
    }
    home.pipe(&["keys", "set", "openai"], KEY.as_bytes())
        .succeeds();
    home.pipe(&["keys", "set", "gemini"], KEY.as_bytes())
        .succeeds();
    let now = std::fs::read_to_string(home.path(FILE)).unwrap();
    assert_eq!(
        now,
        format!(
            "{}GEMINI_API_KEY = \"{KEY}\"\n",
            text.replace("sk-other-key-5678", KEY)
        )
    );
    #[cfg(unix)]
    {
        assert_eq!(mode(&home.path(FILE)), 0o600);
        let run = home.run(&["keys", "list"]).succeeds();
        assert!(!run.stderr.contains("chmod"), "{run:?}");
    }
}

#[test]
fn a_broken_file_is_named_without_what_is_in_it() {
    let home = Home::new();
    home.file(FILE, format!("GEMINI_API_KEY = {KEY}\n"));
    for args in [
        &["keys", "list"][..],
        &["tasks", "list"],
        &["keys", "rm", "gemini"],
    ] {
        let run = home
            .run(args)
            .ends_with(3)
            .says("credentials.toml cannot be read")
            .says("line 1");
        assert!(!run.stderr.contains(KEY), "{run:?}");
    }
    home.file(FILE, "GEMINI_API_KEI = \"x\"\n");
    home.run(&["keys", "list"])
        .succeeds()
        .says("did you mean GEMINI_API_KEY?");
}

#[cfg(unix)]
#[test]
fn at_a_terminal_the_key_is_not_shown() {
    let home = Home::new();
    let mut terminal = crate::terminal::pty::Terminal::start(&home, &["keys", "set", "gemini"]);
    terminal.sees("Key for gemini:").line(KEY);
    let screen = terminal.ends_with(0);
    assert!(
        !screen.contains("not-a-real") && !terminal.raw().contains("not-a-real"),
        "{screen}"
    );
    assert!(
        std::fs::read_to_string(home.path(FILE))
            .unwrap()
            .contains(KEY)
    );
    let mut terminal = crate::terminal::pty::Terminal::start(&home, &["keys", "set", "openai"]);
    terminal.sees("Key for openai:").keys("half\x03");
    terminal.ends_with(130);
    assert!(
        !std::fs::read_to_string(home.path(FILE))
            .unwrap()
            .contains("OPENAI")
    );
}
