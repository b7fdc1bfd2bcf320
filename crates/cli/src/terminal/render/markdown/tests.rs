use expect_test::{Expect, expect};

use super::*;
use adjutant_core::is_control;

fn shown(source: &str, columns: usize, styled: bool) -> String {
    Layout::new(Theme::new(styled)).whole(source, columns)
}

/// Removes the escape sequences of styles.
fn words(shown: &str) -> String {
    anstream::adapter::strip_str(shown).to_string()
}

#[track_caller]
fn check(source: &str, columns: usize, expected: Expect) {
    let styled = shown(source, columns, true);
    let lines: Vec<String> = words(&styled)
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

#[track_caller]
fn check_plain(source: &str, columns: usize, expected: Expect) {
    let plain = shown(source, columns, false);
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    let lines: Vec<String> = plain
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

const ANSWER: &str = "\
# Plan for *today*

You have **3** open tasks, see [the list](https://example.org/tasks) and `adjutant tasks list`:

1. Buy milk, and because this item is long it has to be wrapped with its words under each other
2. Write the report
   - first part
   - second part

> Nobody said
> it was easy.

```bash
adjutant   tasks list
```

| task | due |
|:-----|----:|
| buy milk | tomorrow |
| ~~write~~ | never |
";

#[test]
fn an_answer_is_laid_out() {
    check(
        ANSWER,
        40,
        expect![[r#"
            Plan for today

            You have 3 open tasks, see the list
            (https://example.org/tasks) and adjutant
            tasks list:

            1. Buy milk, and because this item is
               long it has to be wrapped with its
               words under each other
            2. Write the report
               • first part
               • second part

            ▌ Nobody said
            ▌ it was easy.

            bash
            adjutant   tasks list

            ┌────────┬────────┐
            │task    │     due│
            ├────────┼────────┤
            │buy milk│tomorrow│
            │write   │   never│
            └────────┴────────┘"#]],
    );
}

#[test]
fn without_colours_what_was_written_shows_the_styles() {
    check_plain(
        ANSWER,
        60,
        expect![[r#"
        # Plan for *today*

        You have **3** open tasks, see the list
        (https://example.org/tasks) and `adjutant tasks list`:

        1. Buy milk, and because this item is long it has to be
           wrapped with its words under each other
        2. Write the report
           - first part
           - second part

        > Nobody said
        > it was easy.

        ```bash
        adjutant   tasks list
        ```

        +---------+--------+
        |task     |     due|
        +---------+--------+
        |buy milk |tomorrow|
        |~~write~~|   never|
        +---------+--------+"#]],
    );
}

#[test]
fn nothing_a_model_says_is_left_out() {
    let source = "<b>html</b> ![picture](https://example.org/p.png) <https://example.org> \\*no emphasis\\*\n\n\
                  [ref]: https://example.org/ref\n\n- [x] done\n-\n- <div>\n\nA&amp;B\n\n---\nend";
    check(
        source,
        80,
        expect![[r#"
            <b>html</b> picture (https://example.org/p.png) https://example.org *no
            emphasis*

            [ref]: https://example.org/ref

            • [x] done
            •
            • <div>

            A&B

            ────────────────────────────────────────────────────────────
            end"#]],
    );
}

#[test]
fn an_entity_is_no_way_around_the_filter() {
    for source in [
        "&#27;[31mred",
        "`\u{1b}[2J`",
        "```\n\u{9b}31m\n```",
        "| a |\n|---|\n| &#x1b;[2J&#8238; |",
        "[x](<&#27;]8>)",
    ] {
        for styled in [true, false] {
            let shown = shown(source, 60, styled);
            assert!(
                !words(&shown).chars().any(|c| c != '\n' && is_control(c)),
                "{source:?} became {shown:?}"
            );
            // Only our own style sequences remain.
            assert!(
                !shown.contains("\u{1b}[2J") && !shown.contains("\u{1b}[31m"),
                "{shown:?}"
            );
        }
    }
}

#[test]
fn no_text_steers_the_terminal_wherever_it_stands() {
    for text in crate::terminal::display::hostile::texts() {
        for around in [
            "{}",
            "# {}",
            "- {}",
            "> {}",
            "`{}`",
            "```{}\n{}\n```",
            "    {}",
            "|{}|\n|---|\n|{}|",
            "[{}](<{}>)",
            "<b {}>",
        ] {
            let source = around.replace("{}", &text);
            for styled in [true, false] {
                // Removing our own style sequences keeps the text of injected ones visible.
                let shown = words(&shown(&source, 60, styled));
                assert!(
                    !shown.chars().any(|c| c != '\n' && is_control(c)),
                    "{source:?} became {shown:?}"
                );
                assert!(
                    !shown.contains("\u{200b}") && !shown.contains("\u{ad}"),
                    "{source:?} became {shown:?}"
                );
            }
        }
    }
}

#[test]
fn lines_fit_and_keep_their_words() {
    for columns in [20, 37, 80, 200] {
        for styled in [true, false] {
            let shown = words(&shown(ANSWER, columns, styled));
            // Code and URLs are not wrapped.
            for line in shown
                .lines()
                .filter(|line| !line.contains("adjutant   tasks") && !line.contains("(https:"))
            {
                assert!(line.chars().count() <= columns, "{columns}: {line:?}");
            }
            for word in [
                "today",
                "milk",
                "report",
                "second",
                "easy",
                "never",
                "https://example.org/tasks",
            ] {
                let joined: String = shown.split_whitespace().collect();
                assert!(joined.contains(word), "{columns}: no {word} in {shown}");
            }
            assert!(
                shown.contains("adjutant   tasks list"),
                "code is left as it is: {shown}"
            );
        }
    }
}

#[test]
fn depth_does_not_push_words_off_the_page_or_end_the_process() {
    for source in [
        ">".repeat(20_000),
        "- ".repeat(5_000),
        "*".repeat(9_999),
        format!("{}deep", "> ".repeat(50)),
    ] {
        let shown = words(&shown(&source, 40, true));
        assert!(
            shown.lines().all(|line| line.chars().count() <= 40),
            "{}",
            &shown[..shown.len().min(400)]
        );
    }
}

#[test]
fn a_table_that_does_not_fit_loses_neither_words_nor_columns() {
    let source = "| one | two | three | four | five |\n|---|---|---|---|---|\n| a | b **c** | https://e.org/d | | e |";
    check(
        source,
        20,
        expect![[r#"
            one │ two │ three │
            four │ five
            ────────────────────
            a │ b c │
            https://e.org/d │  │
            e"#]],
    );
    check(
        "| a |\n|---|\n| 1 | 2 \\| 3 | 4 |\n| x\n",
        40,
        expect![[r#"
            ┌─┬─────┬─┐
            │a│     │ │
            ├─┼─────┼─┤
            │1│2 | 3│4│
            │x│     │ │
            └─┴─────┴─┘"#]],
    );
}

#[test]
fn a_bar_stands_where_it_should_beside_what_terminals_disagree_on() {
    let shown = shown("| a | b |\n|---|---|\n| 👩\u{200d}💻 | x |", 40, true);
    assert!(shown.contains("\u{1b}[6G│x│"), "{shown:?}");
}
