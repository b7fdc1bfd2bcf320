//! Conversations as notes: found again, added to, never rewritten; and whatever is said stays
//! inside its quotation.

use adjutant_core::{
    Arguments, CallId, ConversationId, Role, TranscriptCall, TranscriptMessage, TurnId,
};
use adjutant_memory::{
    ConversationLog, LoggedConversation, MemoryError, MemoryOptions, NoteFilter, VaultError,
};
use jiff::Timestamp;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::harness::{Dice, Home, files};

const START: &str = "2025-12-10T13:05:00Z";

fn id(number: u32) -> ConversationId {
    format!("00000000-0000-7000-8000-{number:012}")
        .parse()
        .unwrap()
}

fn turn(number: u32) -> TurnId {
    format!("11111111-0000-7000-8000-{number:012}")
        .parse()
        .unwrap()
}

/// One message, so many minutes after the beginning.
fn message(role: Role, number: u32, minutes: i64, content: &str) -> TranscriptMessage {
    let at = START.parse::<Timestamp>().unwrap() + jiff::SignedDuration::from_mins(minutes);
    TranscriptMessage {
        role,
        content: content.to_owned(),
        turn: Some(turn(number)),
        at: Some(at),
        tool_calls: Vec::new(),
        tool_call_id: None,
        result: None,
    }
}

fn exchange(number: u32, question: &str, answer: &str) -> Vec<TranscriptMessage> {
    let minutes = i64::from(number) - 1;
    vec![
        message(Role::User, number, minutes, question),
        message(Role::Assistant, number, minutes, answer),
    ]
}

fn log(title: &str, messages: Vec<TranscriptMessage>) -> ConversationLog {
    ConversationLog {
        id: id(1),
        title: title.to_owned(),
        started: START.parse().unwrap(),
        person: "You".to_owned(),
        assistant: "Diana".to_owned(),
        messages,
    }
}

async fn written(home: &Home, log: &ConversationLog) -> LoggedConversation {
    home.memory.log_conversation(log.clone()).await.unwrap()
}

const BOILER: &str = "conversations/2025-12-10 Fix the boiler.md";

fn boiler() -> Vec<TranscriptMessage> {
    exchange(1, "The boiler drips.", "Turn the **valve**.")
}

#[tokio::test]
async fn a_conversation_is_one_note_and_grows() {
    let home = Home::new();
    let mut messages = boiler();
    let first = log("Fix the boiler", messages.clone());
    let done = written(&home, &first).await;
    assert_eq!(
        done,
        LoggedConversation {
            file_path: Some(BOILER.to_owned()),
            added: 2
        }
    );
    let note = "---\ntype: conversation\ntitle: \"Fix the boiler\"\nconversation: 00000000-0000-7000-8000-000000000001\n\
        created: 2025-12-10T14:05:00\nmodified: 2025-12-10T14:05:00\nlogged: 11111111-0000-7000-8000-000000000001/2\n---\n\n\
        # Fix the boiler\n\n**You** 14:05\n\n> The boiler drips.\n\n**Diana** 14:05\n\n> Turn the **valve**.\n";
    assert_eq!(home.read(BOILER), note);

    // The same again changes nothing, also after the title was changed, by a memory without its history.
    home.later(jiff::Span::new().minutes(5));
    let renamed = ConversationLog {
        title: "Something else".to_owned(),
        ..first
    };
    let again = home.forgetful().log_conversation(renamed).await.unwrap();
    assert_eq!(
        again,
        LoggedConversation {
            file_path: Some(BOILER.to_owned()),
            added: 0
        }
    );
    assert_eq!(home.read(BOILER), note);

    // A tool's call is named, its arguments and its answer are not; another day is said.
    let mut calls = message(Role::Assistant, 2, 60 * 24, "");
    let name = "write_daily_note".to_owned();
    calls.tool_calls = vec![TranscriptCall {
        id: CallId::new("c").unwrap(),
        tool: name,
        arguments: Arguments::new(),
    }];
    messages.push(message(Role::User, 2, 60 * 24, "It still drips."));
    messages.push(calls);
    messages.push(message(Role::Tool, 2, 60 * 24, "secret result"));
    messages.push(message(Role::Assistant, 2, 60 * 24, "Noted."));
    let grown = log("Fix the boiler", messages);
    assert_eq!(written(&home, &grown).await.added, 3);
    let end = "\n**You** 2025-12-11 14:05\n\n> It still drips.\n\n**Diana** 14:05 · write\\_daily\\_note\n\n**Diana** 14:05\n\n> Noted.\n";
    let note = note.replace(
        "modified: 2025-12-10T14:05:00",
        "modified: 2025-12-10T14:10:00",
    );
    assert_eq!(
        home.read(BOILER),
        note.replace("000001/2", "000002/4") + end
    );
    assert_eq!(written(&home, &grown).await.added, 0);
    assert_eq!(files(&home.vault()).len(), 1);
}

#[tokio::test]
async fn what_the_owner_makes_of_the_note_is_kept() {
    let home = Home::new();
    let mut messages = boiler();
    written(&home, &log("Fix the boiler", messages.clone())).await;
    // Renamed, filed, tagged, written into, with other line endings, a byte order mark, and no
    // final line ending.
    let text = home.read(BOILER);
    std::fs::remove_file(home.vault().join(BOILER)).unwrap();
    let theirs = text
        .replace(
            "type: conversation\n",
            "type: conversation # keep\ntags: [haus, keep]\n",
        )
        .replace(
            "> The boiler drips.",
            "> The boiler ==drips==.\n\n- [ ] call keep",
        )
        .replace('\n', "\r\n");
    let theirs = format!("\u{FEFF}{}\r\nkeep my thoughts", theirs.trim_end());
    home.write("conversations/Haus/Therme.md", &theirs);
    messages.extend(exchange(2, "And now?", "Now it is dry."));
    let done = written(&home, &log("Fix the boiler", messages.clone())).await;
    assert_eq!(
        done,
        LoggedConversation {
            file_path: Some("conversations/Haus/Therme.md".to_owned()),
            added: 2
        }
    );
    let end =
        "\r\n\r\n**You** 14:06\r\n\r\n> And now?\r\n\r\n**Diana** 14:06\r\n\r\n> Now it is dry.";
    assert_eq!(
        home.read("conversations/Haus/Therme.md"),
        theirs.replace("000001/2", "000002/2") + end
    );

    // Where an end would swallow what follows, another note goes on.
    for (number, open) in (3..).zip(["```\nopen", "<!-- open", "%% open", "<script>\n"]) {
        let before = files(&home.vault());
        let (path, _) = before
            .iter()
            .find(|(_, bytes)| {
                let text = String::from_utf8_lossy(bytes);
                text.contains(&format!("{:012}/2", number - 1))
            })
            .unwrap();
        let path = path.to_string_lossy().into_owned();
        let text = format!("{}\n\n{open}", home.read(&path));
        home.write(&path, &text);
        messages.extend(exchange(number, "More?", "More."));
        let done = written(&home, &log("Fix the boiler", messages.clone())).await;
        assert_eq!(done.added, 2);
        let beside = done.file_path.unwrap();
        assert_ne!(beside, path, "{open}");
        assert_eq!(home.read(&path), text, "{open}");
        assert!(
            home.read(&beside).ends_with("> More.\n") && !home.read(&beside).contains("drips"),
            "{open}"
        );
        assert_eq!(
            written(&home, &log("Fix the boiler", messages.clone()))
                .await
                .added,
            0
        );
    }
}

#[tokio::test]
async fn a_note_that_is_no_longer_ours_is_left_alone() {
    for (from, to) in [
        ("conversation: 0", "conversation: x0"),
        ("logged: 1", "logged: soon 1"),
        ("---\ntype", "type"),
        ("conversation: 0", "was: 0"),
    ] {
        let home = Home::new();
        written(&home, &log("Fix the boiler", boiler())).await;
        let text = home.read(BOILER).replacen(from, to, 1);
        home.write(BOILER, &text);
        let done = written(&home, &log("Fix the boiler", boiler())).await;
        assert_eq!(
            done.file_path.as_deref(),
            Some("conversations/2025-12-10 Fix the boiler 2.md"),
            "{to}"
        );
        assert_eq!(home.read(BOILER), text);
        assert_eq!(
            written(&home, &log("Fix the boiler", boiler())).await.added,
            0,
            "{to}"
        );
    }
    // One that was deleted is made again.
    let home = Home::new();
    written(&home, &log("Fix the boiler", boiler())).await;
    std::fs::remove_file(home.vault().join(BOILER)).unwrap();
    assert_eq!(
        written(&home, &log("Fix the boiler", boiler())).await.added,
        2
    );
}

#[tokio::test]
async fn conversations_of_one_day_and_one_title_stand_beside_each_other() {
    let home = Home::new();
    home.write("Conversations/2025-12-10 fix the BOILER.md", "theirs\n");
    std::fs::create_dir(
        home.vault()
            .join("Conversations/2025-12-10 Fix the boiler 2.md"),
    )
    .unwrap();
    for number in 1..=3 {
        let log = ConversationLog {
            id: id(number),
            ..log("Fix the boiler", boiler())
        };
        assert_eq!(written(&home, &log).await.added, 2);
        assert_eq!(written(&home, &log).await.added, 0);
    }
    let names: Vec<String> = files(&home.vault())
        .keys()
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    assert_eq!(
        names,
        [
            "Conversations/2025-12-10 Fix the boiler 3.md",
            "Conversations/2025-12-10 Fix the boiler 4.md",
            "Conversations/2025-12-10 Fix the boiler 5.md",
            "Conversations/2025-12-10 fix the BOILER.md",
        ]
    );
    assert_eq!(
        home.read("Conversations/2025-12-10 fix the BOILER.md"),
        "theirs\n"
    );
}

#[tokio::test]
async fn names_are_safe_on_every_file_system() {
    for (title, name) in [
        ("", "2025-12-10 Conversation"),
        (" \n\u{7} ", "2025-12-10 Conversation"),
        ("../../etc/passwd", "2025-12-10 etc passwd"),
        ("C:\\CON: a*b?\"<>|#^[[x]]", "2025-12-10 C CON a b x"),
        (
            "What's up, Doc? (no. 2) & more…",
            "2025-12-10 What's up, Doc (no 2) & more",
        ),
        ("dots...", "2025-12-10 dots"),
        (
            "Über Cafe\u{301} 漢字 हिन्दी ไม่ 🎉",
            "2025-12-10 Über Café 漢字 हिन्दी ไม่",
        ),
        ("🎉\u{202E}\u{200D}", "2025-12-10 Conversation"),
    ] {
        let home = Home::new();
        let path = written(&home, &log(title, boiler()))
            .await
            .file_path
            .unwrap();
        assert_eq!(path, format!("conversations/{name}.md"), "{title:?}");
        assert_eq!(
            written(&home, &log(title, boiler())).await.added,
            0,
            "{title:?}"
        );
        assert!(home.memory.vault().unwrap().resolve(&path).is_ok());
    }
    for title in [
        "x".repeat(1000),
        "漢".repeat(1000),
        "e\u{301}\u{302}".repeat(1000),
        "a b ".repeat(500),
    ] {
        let home = Home::new();
        let path = written(&home, &log(&title, boiler()))
            .await
            .file_path
            .unwrap();
        assert!(
            path.len() < 220 && path.chars().count() < 200 && !path.contains(" .md"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_folder_is_the_owners_choice_and_stays_inside() {
    for (folder, path) in [
        ("", "2025-12-10 T.md"),
        ("/", "2025-12-10 T.md"),
        (
            "Archiv/Gespräche #1/",
            "Archiv/Gespräche #1/2025-12-10 T.md",
        ),
    ] {
        let home = Home::with(MemoryOptions {
            conversations: folder.to_owned(),
            ..MemoryOptions::default()
        });
        assert_eq!(
            written(&home, &log("T", boiler()))
                .await
                .file_path
                .as_deref(),
            Some(path)
        );
        assert_eq!(written(&home, &log("T", boiler())).await.added, 0);
    }
    for folder in ["..", "/etc", "~", "a/../..", ".obsidian", "C:/x", "a\\b"] {
        let home = Home::with(MemoryOptions {
            conversations: folder.to_owned(),
            ..MemoryOptions::default()
        });
        let error = home
            .memory
            .log_conversation(log("T", boiler()))
            .await
            .unwrap_err();
        assert!(
            matches!(error, MemoryError::Vault(VaultError::Name { .. })),
            "{folder}: {error}"
        );
        assert!(files(home.folder.path()).is_empty());
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_that_is_a_link_is_followed_inside_the_vault_only() {
    let home = Home::new();
    std::fs::create_dir(home.vault().join("Real")).unwrap();
    std::os::unix::fs::symlink("Real", home.vault().join("conversations")).unwrap();
    for added in [2, 0] {
        assert_eq!(written(&home, &log("T", boiler())).await.added, added);
    }
    assert!(home.vault().join("Real/2025-12-10 T.md").is_file());
    let home = Home::new();
    std::os::unix::fs::symlink(home.folder.path(), home.vault().join("conversations")).unwrap();
    home.memory
        .log_conversation(log("T", boiler()))
        .await
        .unwrap_err();
    assert!(files(home.folder.path()).is_empty());
}

#[tokio::test]
async fn a_conversation_without_messages_makes_no_note() {
    let home = Home::new();
    let silent = vec![
        message(Role::System, 1, 0, "You are Diana."),
        message(Role::User, 1, 0, " \n"),
        message(Role::Tool, 1, 0, "x"),
    ];
    assert_eq!(
        written(&home, &log("T", silent)).await,
        LoggedConversation::default()
    );
    assert_eq!(
        written(&home, &log("T", Vec::new())).await,
        LoggedConversation::default()
    );
    assert!(files(&home.vault()).is_empty());
}

#[tokio::test]
async fn turns_that_are_gone_from_the_conversation_stay_in_the_note() {
    let home = Home::new();
    let mut messages = vec![TranscriptMessage {
        turn: None,
        ..message(Role::User, 9, 0, "from before")
    }];
    messages.extend(boiler());
    written(&home, &log("T", messages)).await;
    // Only later turns are left, and one of them waited for a person when it was logged.
    let waits = vec![
        message(Role::User, 3, 2, "Delete it."),
        message(Role::Assistant, 3, 2, "Really?"),
    ];
    assert_eq!(written(&home, &log("T", waits)).await.added, 2);
    let mut ended = vec![TranscriptMessage {
        turn: None,
        ..message(Role::User, 9, 0, "from before")
    }];
    ended.extend(vec![
        message(Role::User, 3, 2, "Delete it."),
        message(Role::Tool, 3, 2, "gone"),
        message(Role::Assistant, 3, 2, "It is gone."),
    ]);
    assert_eq!(written(&home, &log("T", ended)).await.added, 1);
    let text = home.read("conversations/2025-12-10 T.md");
    let quotes: Vec<&str> = text.lines().filter(|line| line.starts_with("> ")).collect();
    assert_eq!(
        quotes,
        [
            "> from before",
            "> The boiler drips.",
            "> Turn the **valve**.",
            "> Delete it.",
            "> Really?",
            "> It is gone."
        ]
    );
}

#[tokio::test]
async fn a_conversation_without_end_goes_on_in_further_notes() {
    let home = Home::new();
    let long = "words and words\n".repeat(20_000);
    let messages: Vec<_> = (1..=8)
        .flat_map(|number| exchange(number, &long, "Yes."))
        .collect();
    let done = written(&home, &log("T", messages.clone())).await;
    assert_eq!(done.added, 16);
    let all = files(&home.vault());
    assert!(
        all.len() > 1 && all.values().all(|bytes| bytes.len() < 2 << 20),
        "{}",
        all.len()
    );
    let answers: usize = all
        .values()
        .map(|bytes| String::from_utf8_lossy(bytes).matches("> Yes.").count())
        .sum();
    assert_eq!(answers, 8);
    assert_eq!(
        written(&home, &log("T", messages)).await,
        LoggedConversation { added: 0, ..done }
    );
}

/// Pieces of which a message can be made that tries to get out of its quotation.
const PIECES: &[&str] = &[
    "\n",
    "\n\n",
    "```",
    "~~~",
    "````",
    "\n```",
    "\n~~~ ",
    "---",
    "\n---\n",
    "===",
    "# ",
    "\n# Key Facts\n",
    "## Important",
    "- ",
    "\n- [ ] x",
    "> ",
    "[!danger]",
    "\n[!note]- ",
    "![[",
    "![",
    "]]",
    "](http://h/x.png)",
    "[[Note]]",
    "%%",
    "%",
    "<!--",
    "-->",
    "<img src=x>",
    "<script>",
    "</div>",
    "<div>\n",
    "<%",
    "<%*",
    "%>",
    "`",
    "``",
    "`= ",
    "`$= ",
    "$$",
    "$",
    "\\",
    "\\\\",
    "    ",
    "\t",
    "\n\t",
    "  ",
    "dataviewjs",
    "query\n",
    "rust\n",
    "| a | b |\n|--|--|\n",
    "[^1]",
    "[^1]: ",
    "[a]: http://x",
    "#tag",
    "#",
    "^id",
    "\r",
    "\r\n",
    "\0",
    "\u{1b}[2J",
    "\u{202e}",
    "\u{2028}",
    "\u{85}",
    "\u{feff}",
    "é",
    "e\u{301}",
    "漢",
    "🎉",
    "words ",
    "1. ",
    "* ",
    "+ ",
    "<a",
    "<b ",
    "&#100;",
    "&lt;",
    "~",
    "=",
    ":::",
    "{{date}}",
    "http://x/#f",
    "  \n",
    "\\\n",
];

#[tokio::test]
async fn every_message_stays_in_its_quotation() {
    let mut dice = Dice(0x5EED);
    for round in 0..80 {
        let home = Home::new();
        let mut messages = Vec::new();
        for number in 1..=4 {
            let mut words = |most| -> String {
                (0..=dice.roll(most))
                    .map(|_| PIECES[dice.roll(PIECES.len() as u64) as usize])
                    .collect()
            };
            messages.extend(exchange(number, &words(6), &words(25)));
        }
        let title: String = (0..3)
            .map(|_| PIECES[dice.roll(PIECES.len() as u64) as usize])
            .collect();
        let all = log(&title, messages);
        // Half of it first, so that something is added to something.
        let half = ConversationLog {
            messages: all.messages[..4].to_vec(),
            ..all.clone()
        };
        written(&home, &half).await;
        let Some(path) = written(&home, &all).await.file_path else {
            continue;
        };
        let text = home.read(&path);
        let hint = || format!("round {round}: {:#?}\n{text}", all.messages);
        assert_eq!(files(&home.vault()).len(), 1, "{}", hint());
        check_quoted(&text, &hint);
        // The front matter is valid YAML, and the note is found.
        assert!(
            home.memory
                .notes()
                .unwrap()
                .list(&NoteFilter {
                    limit: 9,
                    ..NoteFilter::default()
                })
                .await
                .unwrap()
                .total
                == 1
        );
        let front = text
            .strip_prefix("---\n")
            .unwrap()
            .split_once("\n---\n")
            .unwrap()
            .0;
        let yaml = saphyr::LoadableYamlNode::load_from_str(front);
        let yaml: Vec<saphyr::Yaml<'_>> =
            yaml.unwrap_or_else(|error| panic!("{error}: {}", hint()));
        assert_eq!(yaml[0].as_mapping().unwrap().len(), 6, "{}", hint());
    }
}

/// At the top level there is one title, lines of who speaks, and quotations; in them nothing that
/// acts.
fn check_quoted(text: &str, hint: &dyn Fn() -> String) {
    let body = text.split_once("\n---\n").unwrap().1;
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
    let (mut depth, mut titles, mut code) = (0, 0, false);
    for event in Parser::new_ext(body, options) {
        match &event {
            Event::Start(tag) => {
                if depth == 0 {
                    assert!(
                        matches!(
                            tag,
                            Tag::Heading { .. } | Tag::Paragraph | Tag::BlockQuote(_)
                        ),
                        "{tag:?} {}",
                        hint()
                    );
                    titles += usize::from(matches!(tag, Tag::Heading { .. }));
                }
                assert!(
                    !matches!(
                        tag,
                        Tag::Image { .. } | Tag::HtmlBlock | Tag::FootnoteDefinition(_)
                    ),
                    "{tag:?} {}",
                    hint()
                );
                if let Tag::CodeBlock(kind) = tag {
                    code = matches!(kind, CodeBlockKind::Fenced(_));
                    if let CodeBlockKind::Fenced(info) = kind
                        && !info.is_empty()
                    {
                        let language = info.split_whitespace().next().unwrap_or_default();
                        assert!(["text", "rust"].contains(&language), "{info} {}", hint());
                    }
                }
                depth += 1;
            }
            Event::End(end) => {
                depth -= 1;
                if matches!(end, TagEnd::CodeBlock) {
                    code = false;
                }
            }
            Event::Html(_) | Event::InlineHtml(_) | Event::FootnoteReference(_) => {
                panic!("{event:?} {}", hint())
            }
            Event::Code(words) => {
                let words = words.trim();
                assert!(
                    !words.starts_with('=') && !words.starts_with("$="),
                    "{words} {}",
                    hint()
                );
            }
            _ => {}
        }
        if let Event::Text(words) = &event {
            assert!(code || !words.contains("%%"), "{words} {}", hint());
        }
    }
    assert_eq!(titles, 1, "{}", hint());
    assert!(!body.contains("<%"), "{}", hint());
    assert!(
        !body
            .chars()
            .any(|char| char.is_control() && !matches!(char, '\n' | '\t')),
        "{}",
        hint()
    );
    let said = body
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('>'));
    assert!(
        said.skip(1)
            .all(|line| line.starts_with("**You** ") || line.starts_with("**Diana** ")),
        "{}",
        hint()
    );
}
