use jiff::civil::date;

use super::edit::{Completion, Style, TaskEdit, complete, edit, new_line};
use super::{Kind, TaskFormat, TaskLine};

fn style() -> Style {
    Style::default()
}

/// Words, tags and fields of a line, as `words|tag tag|kind=value kind=value|^link`.
fn read(line: &str) -> String {
    let Some(line) = TaskLine::parse(line) else {
        return "none".to_owned();
    };
    let tags: Vec<&str> = line.tags.iter().map(|tag| line.slice(tag)).collect();
    let fields: Vec<String> = line
        .fields
        .iter()
        .map(|field| format!("{:?}={}", field.kind, line.slice(&field.value)))
        .collect();
    let link = line
        .block_link
        .as_ref()
        .map(|link| line.slice(link))
        .unwrap_or_default();
    format!(
        "{}|{}|{}|{link}",
        line.slice(&line.words),
        tags.join(" "),
        fields.join(" ")
    )
}

#[test]
fn a_line_is_a_task_by_its_mark_and_its_brackets() {
    for line in [
        "- [ ] a",
        "* [ ] a",
        "+ [ ] a",
        "1. [ ] a",
        "12) [ ] a",
        "  - [ ] a",
        "\t- [ ] a",
        "> - [ ] a",
        "> > 3. [ ] a",
        ">[ ]",
        "-   [ ]   a",
        "- [x] a",
        "- [/] a",
        "- [-] a",
        "- [!] a",
        "- [é] a",
        "- [😀] a",
        "- []] a",
        "- [ ]\ta",
        "\u{a0}- [ ] a",
        "- [ ] a\r",
        "- [ ] a \u{a0} ",
    ] {
        let expected = if line == ">[ ]" { "none" } else { "a|||" };
        assert_eq!(read(line), expected, "{line:?}");
    }
    for line in [
        "",
        "-",
        "- a",
        "-[ ] a",
        "- [] a",
        "- [  ] a",
        "- [ ]a",
        "- [ ]",
        "- [ ] ",
        "[ ] a",
        "a - [ ] a",
        "1 [ ] a",
        "a) [ ] a",
        "-\t[ ] a",
        "• [ ] a",
        "- [ a",
        "# [ ] a",
        "- [ ] \r",
        "- - [ ] a",
        "- [ ] 📅 2026-11-30",
        "- [ ] ^a ^b",
        "| - [ ] a |",
    ] {
        let expected = if line == "- [ ] ^a ^b" {
            "^a|||^b"
        } else {
            "none"
        };
        assert_eq!(read(line), expected, "{line:?}");
    }
}

#[test]
fn fields_are_read_from_the_end_as_the_plugin_reads_them() {
    for (line, expected) in [
        ("- [ ] a 📅 2026-11-30", "a||Due=2026-11-30|"),
        ("- [ ] a 📅2026-11-30", "a||Due=2026-11-30|"),
        ("- [ ] a📅   2026-11-30", "a||Due=2026-11-30|"),
        ("- [ ] a 📆 2026-11-30", "a||Due=2026-11-30|"),
        ("- [ ] a 🗓️ 2026-11-30", "a||Due=2026-11-30|"),
        ("- [ ] a ⌛️ 2026-11-30", "a||Scheduled=2026-11-30|"),
        ("- [ ] a ⏫", "a||Priority=⏫|"),
        ("- [ ] a 🔺\u{FE0F} #b", "a|#b|Priority=🔺|"),
        (
            "- [ ] a ⏳ 2026-01-01 🛫 2026-01-02 ➕ 2026-01-03 ✅ 2026-01-04 ❌ 2026-01-05",
            "a||Scheduled=2026-01-01 Start=2026-01-02 Created=2026-01-03 Done=2026-01-04 Cancelled=2026-01-05|",
        ),
        (
            "- [ ] a 🔁 every 2 weeks when done 🆔 ab-c_1 ⛔ x1, y2 ,z3 🏁 delete ^link-1",
            "a||Recurrence=every 2 weeks when done Id=ab-c_1 DependsOn=x1, y2 ,z3 OnCompletion=delete|^link-1",
        ),
        (
            "- [ ] a #b 📅 2026-11-30 #c/d ⏬ #é",
            "a|#b #c/d #é|Due=2026-11-30 Priority=⏬|",
        ),
        // What does not stand at the end is text.
        ("- [ ] a 📅 2026-11-30 b", "a 📅 2026-11-30 b|||"),
        ("- [ ] a 📅 2026-11-30 ^b c", "a 📅 2026-11-30 ^b c|||"),
        ("- [ ] a 📅 2026-11-30.", "a 📅 2026-11-30.|||"),
        // Half written.
        ("- [ ] a 📅", "a 📅|||"),
        ("- [ ] a 📅 2026-11-3", "a 📅 2026-11-3|||"),
        ("- [ ] a 📅 tomorrow", "a 📅 tomorrow|||"),
        ("- [ ] a 🔁 jede Woche ✓", "a 🔁 jede Woche ✓|||"),
        ("- [ ] a 🆔 ä", "a 🆔 ä|||"),
        // A day that does not exist has the form of one.
        ("- [ ] a 📅 2026-02-31", "a||Due=2026-02-31|"),
        // Twice.
        (
            "- [ ] a 📅 2026-11-30 📅 2026-12-01",
            "a||Due=2026-11-30 Due=2026-12-01|",
        ),
        ("- [ ] a [due:: 2026-11-30]", "a||Due=2026-11-30|"),
        ("- [ ] a (due::2026-11-30)", "a||Due=2026-11-30|"),
        (
            "- [ ] a  [ priority:: high ]  [repeat:: every day],  (completion:: 2026-01-02) ,",
            "a||Priority=high Recurrence=every day Done=2026-01-02|",
        ),
        (
            "- [ ] a [start:: 2026-01-01] [created:: 2026-01-02] [scheduled:: 2026-01-03] [cancelled:: 2026-01-04]",
            "a||Start=2026-01-01 Created=2026-01-02 Scheduled=2026-01-03 Cancelled=2026-01-04|",
        ),
        (
            "- [ ] a [id:: x] [dependsOn:: y,z] [onCompletion:: keep] ^l",
            "a||Id=x DependsOn=y,z OnCompletion=keep|^l",
        ),
        ("- [ ] a [due:: 2026-11-30)", "a [due:: 2026-11-30)|||"),
        ("- [ ] a [Due:: 2026-11-30]", "a [Due:: 2026-11-30]|||"),
        ("- [ ] a [due:: soon]", "a [due:: soon]|||"),
        ("- [ ] a due:: 2026-11-30", "a due:: 2026-11-30|||"),
        ("- [ ] a [[due:: 2026-11-30]]", "a [[due:: 2026-11-30]]|||"),
        // Foreign fields.
        ("- [ ] a [effort:: 3]", "a [effort:: 3]|||"),
        ("- [ ] a ⏰ 2026-11-30", "a ⏰ 2026-11-30|||"),
        ("- [ ] https://x.org/#b", "https://x.org/#b|||"),
        ("- [ ] a #", "a #|||"),
        ("- [ ] #1", "|#1||"),
    ] {
        assert_eq!(read(line), expected, "{line:?}");
    }
}

#[test]
fn a_line_of_marks_is_read_in_bounded_time() {
    for mark in [
        "📅 2026-11-30 ",
        "[due:: 2026-11-30] ",
        "#a ",
        "🔁 ",
        "⛔ a,",
        "(((",
        "[[[",
        " ^a",
        ">",
    ] {
        let line = format!("- [ ] {}", mark.repeat(1_000_000 / mark.len()));
        let _ = TaskLine::parse(&line);
        let _ = TaskLine::parse(&mark.repeat(1_000_000 / mark.len()));
    }
}

fn done(line: &str) -> (String, Option<String>) {
    let Completion { done, next } = complete(
        &TaskLine::parse(line).unwrap(),
        date(2026, 11, 27),
        &style(),
    )
    .unwrap();
    (done.unwrap_or_else(|| "gone".to_owned()), next)
}

#[test]
fn completing_changes_the_status_and_adds_the_day_in_the_lines_own_format() {
    for (line, expected) in [
        ("- [ ] a", "- [x] a ✅ 2026-11-27"),
        (
            "> * [/]  a  b 📅 2026-11-30  ^l  ",
            "> * [x]  a  b 📅 2026-11-30 ✅ 2026-11-27  ^l  ",
        ),
        (
            "- [ ] a [due:: 2026-11-30]",
            "- [x] a [due:: 2026-11-30]  [completion:: 2026-11-27]",
        ),
        (
            "- [ ] a (due:: 2026-11-30) #b ^l",
            "- [x] a (due:: 2026-11-30) #b  [completion:: 2026-11-27] ^l",
        ),
        ("- [ ] a ✅ 2020-01-01", "- [x] a ✅ 2026-11-27"),
        (
            "- [ ] a [completion:: 2020-01-01]",
            "- [x] a [completion:: 2026-11-27]",
        ),
        ("- [-] a ❌ 2026-11-01 ⏫", "- [x] a ⏫ ✅ 2026-11-27"),
        ("- [😀] a\t", "- [x] a ✅ 2026-11-27\t"),
        (
            "- [ ] a 📅 2026-02-31",
            "- [x] a 📅 2026-02-31 ✅ 2026-11-27",
        ),
        ("- [ ] a 🏁 keep", "- [x] a 🏁 keep ✅ 2026-11-27"),
        ("- [ ] a 🏁 Delete", "gone"),
    ] {
        assert_eq!(done(line), (expected.to_owned(), None), "{line:?}");
    }
    let undated = Style {
        done_date: false,
        format: TaskFormat::Dataview,
        ..style()
    };
    let line = TaskLine::parse("- [ ] a").unwrap();
    assert_eq!(
        complete(&line, date(2026, 11, 27), &undated)
            .unwrap()
            .done
            .unwrap(),
        "- [x] a"
    );
    let dataview = Style {
        format: TaskFormat::Dataview,
        ..style()
    };
    assert_eq!(
        complete(&line, date(2026, 11, 27), &dataview)
            .unwrap()
            .done
            .unwrap(),
        "- [x] a  [completion:: 2026-11-27]"
    );
}

#[test]
fn a_recurring_task_has_a_next_one_with_its_dates_moved() {
    for (line, next) in [
        (
            "- [ ] a 🔁 every day 📅 2026-11-30",
            "- [ ] a 🔁 every day 📅 2026-12-01",
        ),
        (
            "- [ ] a 🔁 every 3 days 📅 2026-11-30",
            "- [ ] a 🔁 every 3 days 📅 2026-12-03",
        ),
        (
            "- [ ] a 🔁 every week ⏳ 2026-11-30",
            "- [ ] a 🔁 every week ⏳ 2026-12-07",
        ),
        (
            "- [ ] a 🔁 every 1 month 📅 2026-01-31",
            "- [ ] a 🔁 every 1 month 📅 2026-02-28",
        ),
        (
            "- [ ] a 🔁 every 2 months 📅 2026-12-31",
            "- [ ] a 🔁 every 2 months 📅 2027-02-28",
        ),
        (
            "- [ ] a 🔁 every year 📅 2024-02-29",
            "- [ ] a 🔁 every year 📅 2025-02-28",
        ),
        (
            "- [ ] a 🔁 Every 4 Years 📅 2024-02-29",
            "- [ ] a 🔁 Every 4 Years 📅 2028-02-29",
        ),
        (
            "- [ ] a 🔁 every week when done 📅 2026-01-01",
            "- [ ] a 🔁 every week when done 📅 2026-12-04",
        ),
        ("- [ ] a 🔁 every day", "- [ ] a 🔁 every day"),
        (
            "- [ ] a 🔁 every week 🛫 2026-11-25 ⏳ 2026-11-28 📅 2026-11-30",
            "- [ ] a 🔁 every week 🛫 2026-12-02 ⏳ 2026-12-05 📅 2026-12-07",
        ),
        (
            "> 2. [/] a [repeat:: every week]  [due:: 2026-11-30] #b",
            "> 2. [ ] a [repeat:: every week]  [due:: 2026-12-07] #b",
        ),
        (
            "- [ ] a 🆔 x ⛔ y,z ➕ 2026-01-01 🔁 every day 🏁 keep ❌ 2026-01-01 ✅ 2026-01-01 ^l  ",
            "- [ ] a 🔁 every day 🏁 keep",
        ),
    ] {
        assert_eq!(done(line).1.as_deref(), Some(next), "{line:?}");
    }
    assert_eq!(
        done("- [ ] a 🔁 every day 🏁 delete"),
        (
            "gone".to_owned(),
            Some("- [ ] a 🔁 every day 🏁 delete".to_owned())
        )
    );
    let line = TaskLine::parse("- [ ] a 🔁 every day ⏳ 2026-11-28 📅 2026-11-30").unwrap();
    let other = Style {
        drop_scheduled: true,
        created_date: true,
        ..style()
    };
    assert_eq!(
        complete(&line, date(2026, 11, 27), &other)
            .unwrap()
            .next
            .unwrap(),
        "- [ ] a 🔁 every day 📅 2026-12-01 ➕ 2026-11-27"
    );
}

#[test]
fn another_recurrence_is_refused_with_words() {
    for rule in [
        "every weekday",
        "every week on Monday",
        "every month on the last",
        "every January",
        "every 0 days",
        "every other week",
        "daily",
        "every",
        "every 2",
        "every day when",
        "when done",
        "every 99999999999 days",
        "every 9999999 years",
        "every 3 fortnights",
        "every day, every week",
    ] {
        let line = format!("- [ ] a 🔁 {rule} 📅 2026-11-30");
        let refusal = complete(
            &TaskLine::parse(&line).unwrap(),
            date(2026, 11, 27),
            &style(),
        )
        .unwrap_err();
        assert!(refusal.contains(rule), "{rule}: {refusal}");
    }
    let line = TaskLine::parse("- [ ] a 🔁 every day 📅 2026-02-31").unwrap();
    assert!(
        complete(&line, date(2026, 11, 27), &style())
            .unwrap_err()
            .contains("2026-02-31")
    );
}

fn reworded(line: &str, words: &str) -> String {
    let change = TaskEdit {
        words: Some(words),
        due: None,
    };
    edit(&TaskLine::parse(line).unwrap(), &change, &style()).unwrap_or_else(|refusal| refusal)
}

#[test]
fn other_words_leave_the_fields_alone() {
    for (line, words, expected) in [
        ("- [ ] a", "b", "- [ ] b"),
        (
            "- [ ]  a  📅 2026-11-30 ⏫ ^l ",
            "b c",
            "- [ ]  b c  📅 2026-11-30 ⏫ ^l ",
        ),
        (
            "- [ ] a 📅 2026-11-30",
            "b 📅 2026-12-01",
            "- [ ] b 📅 2026-12-01",
        ),
        (
            "- [ ] a [due:: 2026-11-30]",
            "b 📅 2026-12-01",
            "- [ ] b [due:: 2026-12-01]",
        ),
        (
            "- [ ] a [priority:: low]",
            "b ⏫",
            "- [ ] b [priority:: high]",
        ),
        (
            "- [ ] a 📅 2026-11-30",
            "📅 2026-12-01",
            "- [ ] a 📅 2026-12-01",
        ),
        ("- [ ] a ⏫", "b 📅 2026-12-01", "- [ ] b ⏫ 📅 2026-12-01"),
        ("- [ ] a #x 📅 2026-11-30 #y", "b", "- [ ] b 📅 2026-11-30"),
        (
            "- [ ] a #x 📅 2026-11-30 #y",
            "b #x #y",
            "- [ ] b #x 📅 2026-11-30 #y",
        ),
        (
            "- [ ] a #x 📅 2026-11-30 #y",
            "b #y",
            "- [ ] b 📅 2026-11-30 #y",
        ),
        ("- [ ] a 📅 2026-11-30", "b #y", "- [ ] b #y 📅 2026-11-30"),
        ("- [ ] #x 📅 2026-11-30", "b", "- [ ] b 📅 2026-11-30"),
        ("- [ ] 📅 2026-11-30 #x", "b #x", "- [ ] b 📅 2026-11-30 #x"),
        (
            "- [ ] a 📅 2026-11-30 📅 2026-11-29",
            "b 📅 2026-12-01 📅 2027-01-01",
            "- [ ] b 📅 2026-12-01 📅 2026-11-29",
        ),
        ("- [x] a ✅ 2026-11-01", "b", "- [x] b ✅ 2026-11-01"),
        ("- [ ] a", "  b\u{a0}", "- [ ] b"),
        ("- [ ] a", "", "a task needs words"),
        (
            "- [ ] a",
            "b ✅ 2026-01-01",
            "when it was done is not part of its words; complete it instead",
        ),
    ] {
        assert_eq!(reworded(line, words), expected, "{line:?} {words:?}");
    }
    let filtered = Style {
        global_filter: "#task".to_owned(),
        ..style()
    };
    for (line, expected) in [
        ("- [ ] #task a", "- [ ] #task b"),
        ("- [ ] a #task 📅 2026-11-30", "- [ ] b #task 📅 2026-11-30"),
    ] {
        let change = TaskEdit {
            words: Some("b"),
            due: None,
        };
        assert_eq!(
            edit(&TaskLine::parse(line).unwrap(), &change, &filtered).unwrap(),
            expected
        );
    }
}

#[test]
fn the_due_day_is_set_changed_and_taken_out() {
    for (line, due, expected) in [
        ("- [ ] a", Some(date(2026, 12, 1)), "- [ ] a 📅 2026-12-01"),
        (
            "- [ ] a ^l",
            Some(date(2026, 12, 1)),
            "- [ ] a 📅 2026-12-01 ^l",
        ),
        (
            "- [ ] a 🗓️ 2026-11-30 ⏫",
            Some(date(2026, 12, 1)),
            "- [ ] a 🗓️ 2026-12-01 ⏫",
        ),
        (
            "- [ ] a [id:: x]",
            Some(date(2026, 12, 1)),
            "- [ ] a [id:: x]  [due:: 2026-12-01]",
        ),
        ("- [ ] a 📅 2026-11-30 ⏫", None, "- [ ] a ⏫"),
        ("- [ ] a 📅 2026-11-30 📅 2026-11-30", None, "- [ ] a"),
        ("- [ ] a", None, "- [ ] a"),
    ] {
        let change = TaskEdit {
            words: None,
            due: Some(due),
        };
        assert_eq!(
            edit(&TaskLine::parse(line).unwrap(), &change, &style()).unwrap(),
            expected,
            "{line:?}"
        );
    }
}

#[test]
fn a_new_task_is_written_as_the_owner_writes_them() {
    let today = date(2026, 11, 27);
    let other = Style {
        global_filter: "#task".to_owned(),
        created_date: true,
        format: TaskFormat::Dataview,
        ..style()
    };
    assert_eq!(
        new_line(" call mom 📅 2026-12-01 ", today, &style()).unwrap(),
        "- [ ] call mom 📅 2026-12-01"
    );
    assert_eq!(
        new_line("call mom", today, &other).unwrap(),
        "- [ ] #task call mom  [created:: 2026-11-27]"
    );
    assert_eq!(
        new_line("call #task", today, &other).unwrap(),
        "- [ ] call #task  [created:: 2026-11-27]"
    );
    for words in ["", " ", "📅 2026-12-01", "a ✅ 2026-12-01"] {
        assert!(new_line(words, today, &style()).is_err(), "{words:?}");
    }
    assert_eq!(
        TaskLine::parse("- [ ] a 📅 2026-02-31")
            .unwrap()
            .date(Kind::Due),
        None
    );
}
