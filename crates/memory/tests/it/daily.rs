//! Daily notes: where they are, what they begin with, where an entry goes, and one effect for one
//! call.

use adjutant_core::port::MemoryLedger;
use adjutant_core::{MemoryChange, MemoryEffect, MemoryScope, MemoryState, UserId};
use adjutant_memory::{Cause, MemoryError, MemoryOptions, VaultError};
use jiff::ToSpan;

use crate::harness::{Home, context};

async fn log(home: &Home, words: &str) -> adjutant_memory::NoteChange {
    home.memory
        .notes()
        .unwrap()
        .write_daily(words, None, &Cause::person())
        .await
        .unwrap()
}

#[tokio::test]
async fn without_settings_it_is_where_obsidian_has_it() {
    let home = Home::new();
    let written = log(&home, "Fixed the boiler").await;
    assert_eq!(
        written.message(),
        "✎ noted in 2025-12-10.md: 14:05 Fixed the boiler  (undo: /undo)"
    );
    assert_eq!(
        home.read("2025-12-10.md"),
        "## Log\n\n- 14:05 Fixed the boiler\n"
    );
    home.later(3.minutes());
    home.memory
        .notes()
        .unwrap()
        .write_daily(
            "Called Ana\n\n- about the boat\n",
            Some("Phone"),
            &Cause::person(),
        )
        .await
        .unwrap();
    assert_eq!(
        home.read("2025-12-10.md"),
        "## Log\n\n- 14:05 Fixed the boiler\n- 14:08 **Phone**: Called Ana\n\n  - about the boat\n"
    );
}

#[tokio::test]
async fn the_vaults_own_settings_and_template_are_followed() {
    let home = Home::new();
    home.write(
        ".obsidian/daily-notes.json",
        r#"{"folder":"Journal/","format":"YYYY/MM-MMMM/YYYY-MM-DD dddd","template":"Templates/Daily","autorun":true}"#,
    );
    home.write(".obsidian/templates.json", r#"{"dateFormat":"DD.MM.YYYY"}"#);
    home.write("Templates/Daily.md", "---\r\ncreated: {{date:YYYY-MM-DD}}\r\n---\r\n# {{title}} ({{date}}, {{time:HH:mm}})\r\n\r\n## Log\r\n\r\n## Gratitude\r\n\r\n{{unknown}}\r\n");
    let written = log(&home, "Fixed the boiler").await;
    assert_eq!(
        (written.file_path.as_str(), written.created),
        ("Journal/2025/12-December/2025-12-10 Wednesday.md", true)
    );
    assert_eq!(
        home.read(&written.file_path),
        "---\r\ncreated: 2025-12-10\r\n---\r\n# 2025-12-10 Wednesday (10.12.2025, 14:05)\r\n\r\n## Log\r\n\r\n- 14:05 Fixed the boiler\r\n\r\n## Gratitude\r\n\r\n{{unknown}}\r\n"
    );
}

#[tokio::test]
async fn settings_that_are_partial_or_damaged_fall_back_and_say_so() {
    for (settings, path, notices) in [
        ("{}", "2025-12-10.md", 0),
        (r#"{"folder":"Daily"}"#, "Daily/2025-12-10.md", 0),
        (r#"{"format":"","folder":7}"#, "2025-12-10.md", 0),
        (r#"{"format":"DD"}"#, "10.md", 0),
        ("", "2025-12-10.md", 0),
        ("{\"folder\":", "2025-12-10.md", 1),
        (r#"{"template":"gone"}"#, "2025-12-10.md", 1),
    ] {
        let home = Home::new();
        home.write(".obsidian/daily-notes.json", settings);
        let written = log(&home, "words").await;
        assert_eq!(
            (written.file_path.as_str(), written.notices.len()),
            (path, notices),
            "{settings}"
        );
    }
}

/// Periodic Notes on, with its own folder, while the core plugin has another.
fn with_periodic_notes(core: &str, community: &str, data: &str) -> Home {
    let home = Home::new();
    home.write(".obsidian/core-plugins.json", core);
    home.write(".obsidian/community-plugins.json", community);
    home.write(".obsidian/daily-notes.json", r#"{"folder":"Core"}"#);
    home.write(".obsidian/plugins/periodic-notes/data.json", data);
    home
}

#[tokio::test]
async fn periodic_notes_are_followed_where_they_make_the_daily_notes() {
    let on = r#"{"daily":{"enabled":true,"folder":"Periodic","format":"YYYY/MM-DD"}}"#;
    let off = r#"{"daily":{"enabled":false,"folder":"Periodic"},"weekly":{"enabled":true}}"#;
    let beta = r#"{"calendarSets":[{"id":"Default","day":{"enabled":true,"folder":"Set"}}]}"#;
    let (there, gone) = (r#"["calendar","periodic-notes"]"#, r#"["calendar"]"#);
    for (core, community, data, path, notices) in [
        (
            r#"["file-explorer"]"#,
            there,
            on,
            "Periodic/2025/12-10.md",
            0,
        ),
        (
            r#"{"daily-notes":false}"#,
            there,
            on,
            "Periodic/2025/12-10.md",
            0,
        ),
        // With both on, other plugins follow Periodic Notes, too.
        (
            r#"{"daily-notes":true}"#,
            there,
            on,
            "Periodic/2025/12-10.md",
            0,
        ),
        (r#"["daily-notes"]"#, there, beta, "Set/2025-12-10.md", 0),
        ("{", there, beta, "Set/2025-12-10.md", 0),
        (
            r#"{"daily-notes":false}"#,
            there,
            off,
            "Core/2025-12-10.md",
            0,
        ),
        (
            r#"{"daily-notes":false}"#,
            gone,
            on,
            "Core/2025-12-10.md",
            0,
        ),
        (
            r#"{"daily-notes":true}"#,
            "[\"periodic",
            on,
            "Core/2025-12-10.md",
            0,
        ),
        (
            r#"{"daily-notes":true}"#,
            there,
            "{\"daily\":",
            "Core/2025-12-10.md",
            1,
        ),
        (
            r#"{"daily-notes":true}"#,
            there,
            "",
            "Core/2025-12-10.md",
            0,
        ),
    ] {
        let home = with_periodic_notes(core, community, data);
        let written = log(&home, "words").await;
        assert_eq!(
            (written.file_path.as_str(), written.notices.len()),
            (path, notices),
            "{core} {data}"
        );
    }
}

#[tokio::test]
async fn code_of_templater_is_left_and_reported() {
    let home = with_periodic_notes(
        "[]",
        r#"["periodic-notes"]"#,
        r#"{"daily":{"enabled":true,"template":"Templates/Day"}}"#,
    );
    home.write("Templates/Day.md", "# <% tp.user.quote() %> {{date}}\n");
    let written = log(&home, "words").await;
    assert!(
        home.read("2025-12-10.md")
            .starts_with("# <% tp.user.quote() %> 2025-12-10\n")
    );
    assert!(
        written.message().contains("Templater"),
        "{}",
        written.message()
    );
    home.later(1.minutes());
    assert!(
        log(&home, "more").await.notices.is_empty(),
        "the note was there"
    );
}

/// Writes an entry into a vault of that format with those notes, on the given day.
async fn daily_beside(
    format: &str,
    notes: &[&str],
    day: &str,
    locale: Option<&str>,
) -> (String, Vec<String>) {
    let locale = locale.map(|code| code.parse().unwrap());
    let home = Home::with(MemoryOptions {
        locale,
        ..MemoryOptions::default()
    });
    *home.time.lock().unwrap() = format!("{day}T14:05:00[Europe/Berlin]").parse().unwrap();
    home.write(
        ".obsidian/daily-notes.json",
        serde_json::json!({ "format": format }).to_string(),
    );
    for note in notes {
        home.write(note, "# Day\n");
    }
    let written = log(&home, "words").await;
    (written.file_path, written.notices)
}

#[tokio::test]
async fn names_are_in_the_language_of_the_notes_that_are_there() {
    let format = "YYYY/MM MMMM/DD dddd";
    for (notes, day, path) in [
        (
            &["2026/11 November/22 Sonntag.md"][..],
            "2026-11-22",
            "2026/11 November/22 Sonntag.md",
        ),
        (
            &["2026/11 November/22 Sonntag.md"],
            "2026-12-01",
            "2026/12 Dezember/01 Dienstag.md",
        ),
        (
            &["2026/11 novembre/22 dimanche.md"],
            "2026-11-23",
            "2026/11 novembre/23 lundi.md",
        ),
        (
            &["2026/11 listopad/22 niedziela.md"],
            "2026-12-01",
            "2026/12 grudzień/01 wtorek.md",
        ),
        (
            &["2026/11 11月/22 日曜日.md"],
            "2026-11-23",
            "2026/11 11月/23 月曜日.md",
        ),
        // Two years ago, with one English note of yesterday beside them.
        (
            &[
                "2025/03 März/01 Samstag.md",
                "2025/03 März/02 Sonntag.md",
                "2026/11 November/22 Sunday.md",
            ],
            "2026-11-23",
            "2026/11 November/23 Montag.md",
        ),
        (&[], "2026-11-22", "2026/11 November/22 Sunday.md"),
        (
            &["2026/11 November/22 Sunday.md", "Sonntag.md"],
            "2026-11-23",
            "2026/11 November/23 Monday.md",
        ),
        (
            &["2026/11 Brumaire/22 Decadi.md"],
            "2026-11-23",
            "2026/11 November/23 Monday.md",
        ),
    ] {
        assert_eq!(
            daily_beside(format, notes, day, None).await,
            (path.to_owned(), vec![]),
            "{notes:?}"
        );
    }
}

#[tokio::test]
async fn the_setting_goes_before_the_guess() {
    let notes = ["22 Sonntag.md"];
    let (path, _) = daily_beside("DD dddd", &notes, "2026-11-23", Some("fr")).await;
    assert_eq!(path, "23 lundi.md");
    let (path, _) = daily_beside("DD dddd", &notes, "2026-11-23", Some("en")).await;
    assert_eq!(path, "23 Monday.md");
}

#[tokio::test]
async fn languages_that_fit_alike_are_reported_if_their_names_differ() {
    // Sunday is "søndag" in Norwegian and in Danish; Saturday is "lørdag" in both; the weeks do not
    // differ.
    let (path, notices) = daily_beside("DD dddd", &["22 søndag.md"], "2026-11-28", None).await;
    assert_eq!((path.as_str(), notices.len()), ("28 lørdag.md", 0));
    // "måndag" is Swedish and Nynorsk; on Sunday they part.
    let (path, notices) = daily_beside("DD dddd", &["23 måndag.md"], "2026-11-29", None).await;
    assert_eq!(path, "29 söndag.md");
    assert!(notices[0].contains("vault.locale"), "{notices:?}");
}

#[tokio::test]
async fn weeks_are_those_of_the_language() {
    // 22 November 2026 is a Sunday: the 48th week of the United States, the 47th elsewhere.
    let format = "gggg-[W]ww/YYYY-MM-DD";
    let (path, _) = daily_beside(format, &["2026-W47/2026-11-22.md"], "2026-11-29", None).await;
    assert_eq!(path, "2026-W48/2026-11-29.md");
    let (path, _) = daily_beside(format, &["2026-W48/2026-11-22.md"], "2026-11-29", None).await;
    assert_eq!(path, "2026-W49/2026-11-29.md");
}

#[tokio::test]
async fn decomposed_names_on_the_disk_are_found() {
    // "März" and "févr." as macOS may keep them.
    let (path, _) = daily_beside(
        "YYYY/MMMM/DD dddd",
        &["2026/Ma\u{308}rz/02 Montag.md"],
        "2026-03-03",
        None,
    )
    .await;
    assert_eq!(path, "2026/März/03 Dienstag.md");
    let home = Home::with(MemoryOptions {
        locale: Some("fr".parse().unwrap()),
        ..MemoryOptions::default()
    });
    *home.time.lock().unwrap() = "2026-02-03T14:05:00[Europe/Paris]".parse().unwrap();
    home.write(".obsidian/daily-notes.json", r#"{"format":"MMM/DD"}"#);
    home.write("fe\u{301}vr./03.md", "# Jour\n");
    log(&home, "mots").await;
    assert!(home.read("fe\u{301}vr./03.md").contains("14:05 mots"));
    home.memory.undo().await.unwrap();
    assert_eq!(home.read("fe\u{301}vr./03.md"), "# Jour\n");
    // What "03 ma." becomes in German ends in a dot, too.
    home.write(".obsidian/daily-notes.json", r#"{"format":"[03 Di.]"}"#);
    assert_eq!(log(&home, "mots").await.file_path, "03 Di..md");
    assert!(
        home.memory
            .notes()
            .unwrap()
            .read("03 Di..md", None)
            .await
            .unwrap()
            .text
            .contains("mots")
    );
}

#[tokio::test]
async fn a_format_that_leads_out_of_the_vault_is_refused() {
    for format in ["[../]YYYY", "[/etc/]YYYY", "[.hidden/]YYYY", "[C:/]YYYY"] {
        let home = Home::new();
        home.write(
            ".obsidian/daily-notes.json",
            format!("{{\"format\":{format:?},\"folder\":\"\"}}"),
        );
        let written = home
            .memory
            .notes()
            .unwrap()
            .write_daily("words", None, &Cause::person())
            .await;
        // A slash in front is a slip: the rest stays inside.
        match written {
            Ok(written) => assert_eq!(written.file_path, "etc/2025.md", "{format}"),
            Err(error) => {
                assert!(
                    matches!(error, MemoryError::Vault(VaultError::Name { .. })),
                    "{format}: {error}"
                )
            }
        }
    }
}

#[tokio::test]
async fn a_setting_of_ours_goes_before_the_vaults() {
    let daily = "[Log]/YYYY/MM-DD".parse().unwrap();
    let home = Home::with(MemoryOptions {
        daily,
        heading: "Journal".to_owned(),
        ..MemoryOptions::default()
    });
    home.write(".obsidian/daily-notes.json", r#"{"folder":"Elsewhere"}"#);
    assert_eq!(log(&home, "words").await.file_path, "Log/2025/12-10.md");
    assert!(home.read("Log/2025/12-10.md").starts_with("## Journal\n"));
}

#[tokio::test]
async fn an_entry_goes_to_the_end_of_its_section_and_nothing_else_changes() {
    for (before, after) in [
        (
            "# Day\n\n### log\ntext\n\n## Next\n",
            "# Day\n\n### log\ntext\n\n- 14:05 E\n\n## Next\n",
        ),
        (
            "## Log\n- a\n  - b\n\n\n## Next\n",
            "## Log\n- a\n  - b\n- 14:05 E\n\n\n## Next\n",
        ),
        (
            "## Log\n> quote\n## Next\n",
            "## Log\n> quote\n\n- 14:05 E\n\n## Next\n",
        ),
        ("## Log\n- [ ] task", "## Log\n- [ ] task\n- 14:05 E"),
        ("## Log", "## Log\n\n- 14:05 E"),
        ("text", "text\n\n## Log\n\n- 14:05 E"),
        (
            "```\n## Log\n```\ntext\n\n---\n",
            "```\n## Log\n```\ntext\n\n---\n\n## Log\n\n- 14:05 E\n",
        ),
        (
            "%%\n## Log\n%%\n",
            "%%\n## Log\n%%\n\n## Log\n\n- 14:05 E\n",
        ),
        (
            "\u{FEFF}## Log\r\n\r\n### Sub\r\n\r\nx\r\n",
            "\u{FEFF}## Log\r\n\r\n### Sub\r\n\r\nx\r\n\r\n- 14:05 E\r\n",
        ),
        ("", "## Log\n\n- 14:05 E\n"),
    ] {
        let home = Home::new();
        home.write("2025-12-10.md", before);
        log(&home, "E").await;
        assert_eq!(home.read("2025-12-10.md"), after, "{before:?}");
        home.memory.undo().await.unwrap();
        assert_eq!(home.read("2025-12-10.md"), before, "undo");
    }
}

#[tokio::test]
async fn an_entry_that_would_disappear_is_refused() {
    for before in [
        "text\n```\ncode that is never closed\n",
        "words %% a comment\n\nthat stays open\n",
    ] {
        let home = Home::new();
        home.write("2025-12-10.md", before);
        let error = home
            .memory
            .notes()
            .unwrap()
            .write_daily("E", None, &Cause::person())
            .await
            .unwrap_err();
        assert!(
            matches!(error, MemoryError::Vault(VaultError::Shape { .. })),
            "{error}"
        );
        assert_eq!(home.read("2025-12-10.md"), before);
    }
}

#[tokio::test]
async fn entries_that_hold_structure_stay_one_entry() {
    let home = Home::new();
    log(&home, "```\nunclosed").await;
    home.later(1.minutes());
    log(&home, "# heading\n## Log\n%% comment").await;
    home.later(1.minutes());
    log(&home, "last").await;
    assert_eq!(
        home.read("2025-12-10.md"),
        "## Log\n\n- 14:05 ```\n  unclosed\n- 14:06 # heading\n  ## Log\n  % % comment\n- 14:07 last\n"
    );
}

#[tokio::test]
async fn the_same_words_in_the_same_minute_are_one_entry() {
    let home = Home::new();
    log(&home, "Drank water").await;
    // Also without history: the text itself says so.
    let again = home
        .forgetful()
        .notes()
        .unwrap()
        .write_daily("Drank water", None, &Cause::person())
        .await
        .unwrap();
    assert!(again.already);
    home.later(1.minutes());
    assert!(!log(&home, "Drank water").await.already);
    assert_eq!(
        home.read("2025-12-10.md"),
        "## Log\n\n- 14:05 Drank water\n- 14:06 Drank water\n"
    );
}

#[tokio::test]
async fn a_call_repeated_after_a_crash_writes_once() {
    let scope = |home: &Home| MemoryScope {
        user: UserId::local(),
        vault: home
            .vault()
            .canonicalize()
            .unwrap()
            .to_string_lossy()
            .into_owned(),
    };
    let begun = |change: MemoryChange| MemoryChange {
        state: MemoryState::Begun,
        ..change
    };
    // The process died after the file was written and before the history said so.
    let home = Home::new();
    let cause = Cause::call(&context("local", 1));
    let first = home
        .memory
        .notes()
        .unwrap()
        .write_daily("Fixed it", None, &cause)
        .await
        .unwrap();
    let change = home
        .ledger
        .by_key(&scope(&home), cause.key.as_ref().unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(change.state, MemoryState::Done);
    home.ledger
        .put(&scope(&home), &begun(change.clone()))
        .await
        .unwrap();
    home.later(2.days());
    let again = home
        .memory
        .notes()
        .unwrap()
        .write_daily("Fixed it", None, &cause)
        .await
        .unwrap();
    assert_eq!(again, first);
    assert_eq!(home.read("2025-12-10.md"), "## Log\n\n- 14:05 Fixed it\n");
    assert!(!home.vault().join("2025-12-12.md").exists());
    // It died before the file was written: the entry is that of the day and the minute of the call.
    let home = Home::new();
    let MemoryEffect::Note { .. } = &change.effect else {
        panic!("{change:?}")
    };
    home.ledger
        .put(&scope(&home), &begun(change))
        .await
        .unwrap();
    home.later(2.days());
    home.memory
        .notes()
        .unwrap()
        .write_daily("Fixed it", None, &cause)
        .await
        .unwrap();
    assert_eq!(home.read("2025-12-10.md"), "## Log\n\n- 14:05 Fixed it\n");
}

#[tokio::test]
async fn words_that_are_no_entry_are_refused() {
    let home = Home::new();
    for words in ["", " \n\t"] {
        let error = home
            .memory
            .notes()
            .unwrap()
            .write_daily(words, None, &Cause::person())
            .await
            .unwrap_err();
        assert!(matches!(error, MemoryError::Fact { .. }), "{error}");
    }
    let long = "x".repeat(10_001);
    let error = home
        .memory
        .notes()
        .unwrap()
        .write_daily(&long, None, &Cause::person())
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("at most 10000 characters, this one has 10001"),
        "{error}"
    );
}

#[tokio::test]
async fn odd_settings_and_templates_are_followed_as_far_as_they_go() {
    for (settings, templates, template, path, begins) in [
        // The folder is made; a slash at either end is a slip.
        (
            r#"{"folder":"/A/B c/","format":"YYYY"}"#,
            "",
            None,
            "A/B c/2025.md",
            "## Log",
        ),
        (
            r#"{"format":"YYYY/[Week] ww/Do dddd"}"#,
            "",
            None,
            "2025/Week 50/10th Wednesday.md",
            "## Log",
        ),
        (
            r#"{"format":"GGGG-[W]WW gggg X"}"#,
            "",
            None,
            "2025-W50 2025 1765371900.md",
            "## Log",
        ),
        (
            r#"{"format":"[it's] YYYY"}"#,
            "",
            None,
            "it's 2025.md",
            "## Log",
        ),
        // Broken formats of templates are left out; a template may be named with or without its
        // ending.
        (
            r#"{"template":"T/x.md"}"#,
            "{",
            Some("{{date}} {{time}}\r\n"),
            "2025-12-10.md",
            "2025-12-10 14:05\r\n\r\n## Log",
        ),
        (
            r#"{"template":"T/x"}"#,
            r#"{"dateFormat":"","timeFormat":5}"#,
            Some("{{date}} {{time}}"),
            "2025-12-10.md",
            "2025-12-10 14:05\n\n## Log",
        ),
        (
            r#"{"template":"T/x"}"#,
            "[]",
            Some("\u{FEFF}{{title}}\n"),
            "2025-12-10.md",
            "\u{FEFF}2025-12-10\n\n## Log",
        ),
        (
            r#"{"template":"T/x"}"#,
            "",
            Some("{{date:YYYY[}}]}} {{date:}} {{x"),
            "2025-12-10.md",
            "",
        ),
        (
            r#"{"template":"T/x"}"#,
            "",
            Some(""),
            "2025-12-10.md",
            "## Log",
        ),
        ("null", "", None, "2025-12-10.md", "## Log"),
        (
            "\u{FEFF}{\"format\":\"YYYY\"}",
            "",
            None,
            "2025.md",
            "## Log",
        ),
    ] {
        let home = Home::new();
        home.write(".obsidian/daily-notes.json", settings);
        home.write(".obsidian/templates.json", templates);
        if let Some(text) = template {
            home.write("T/x.md", text);
        }
        let written = log(&home, "words").await;
        assert_eq!(written.file_path, path, "{settings}");
        let text = home.read(path);
        assert!(
            text.starts_with(begins) && text.trim_end().ends_with("- 14:05 words"),
            "{settings}: {text:?}"
        );
        let returns = text.matches("\r\n").count();
        assert!(
            returns == 0 || returns == text.matches('\n').count(),
            "{text:?}"
        );
    }
    // A template out of the vault, a hidden one, a folder, and one that is no text.
    for template in ["../secret", "/etc/passwd", ".obsidian/x", "folder", "bytes"] {
        let home = Home::new();
        home.write(
            ".obsidian/daily-notes.json",
            format!("{{\"template\":{template:?}}}"),
        );
        home.write(".obsidian/x.md", "hidden");
        home.write("folder.md/x.md", "x");
        home.write("bytes.md", b"\xff\xfe");
        std::fs::write(home.folder.path().join("secret.md"), "secret").unwrap();
        let written = log(&home, "words").await;
        assert_eq!(written.notices.len(), 1, "{template}");
        assert_eq!(
            home.read("2025-12-10.md"),
            "## Log\n\n- 14:05 words\n",
            "{template}"
        );
    }
}
