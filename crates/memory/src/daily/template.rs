//! Templates of daily notes: `{{date}}`, `{{time}}` and `{{title}}`, with formats after a colon, and
//! the calls of the plugin Templater that need no program: titles and dates.

use jiff::{Span, Zoned};
use serde_json::Value;

use super::locale::Locale;
use super::moment::format_moment_in;
use crate::vault::Vault;

/// Returns a template with its variables replaced, those of Obsidian's own templates and the simple
/// ones of Templater. Other text stays.
pub(crate) fn render(
    vault: &Vault,
    template: &str,
    title: &str,
    time: &Zoned,
    locale: Locale,
) -> String {
    let formats = vault
        .obsidian_setting("templates.json")
        .and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let format = |key: &str, default: &str| {
        let set = formats
            .as_ref()
            .and_then(|formats| formats.get(key))
            .and_then(Value::as_str);
        set.filter(|format| !format.is_empty())
            .unwrap_or(default)
            .to_owned()
    };
    // The formats that Obsidian itself has by default.
    let (date_format, time_format) = (
        format("dateFormat", "YYYY-MM-DD"),
        format("timeFormat", "HH:mm"),
    );
    let written = |format: &str| format_moment_in(format, time, locale);
    let filled = fill_variables(template, title, (&date_format, &time_format), written);
    fill_templater(&filled, title, time, locale)
}

/// Replaces the calls of Templater that are known here; others stay.
fn fill_templater(template: &str, title: &str, time: &Zoned, locale: Locale) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find("<%") {
        let (before, from) = rest.split_at(open);
        let command = from
            .find("%>")
            .and_then(|close| Some((from.get(2..close)?, from.get(close + 2..)?)));
        let Some((inner, after)) = command else { break };
        // `<%-` and `-%>` take a line break beside them away, `<%_` and `_%>` all white space.
        let (inner, trims_before) = match inner.strip_prefix(['-', '_']) {
            Some(inner) => (inner, true),
            None => (inner, false),
        };
        let (inner, trims_after) = match inner.strip_suffix(['-', '_']) {
            Some(inner) => (inner, true),
            None => (inner, false),
        };
        match templater_value(inner.trim(), title, time, locale) {
            Some(value) => {
                out.push_str(if trims_before {
                    before.trim_end()
                } else {
                    before
                });
                out.push_str(&value);
                rest = if trims_after {
                    after.trim_start()
                } else {
                    after
                };
            }
            None => {
                out.push_str(before);
                out.push_str("<%");
                rest = from.get(2..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out
}

/// Returns the value of a call of Templater: the title of the note, a date in a format, or the
/// place of the cursor, which is nothing. `None` for all else.
///
/// Source: Templater's documentation, "Internal functions" (`tp.date`, `tp.file`).
fn templater_value(call: &str, title: &str, time: &Zoned, locale: Locale) -> Option<String> {
    if call == "tp.file.title" {
        return Some(title.to_owned());
    }
    let (function, arguments) = call.strip_suffix(')')?.split_once('(')?;
    // Numbers of the places that the cursor goes to.
    if function == "tp.file.cursor" && arguments.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(String::new());
    }
    let (format, rest) = match arguments.trim() {
        "" => ("YYYY-MM-DD", ""),
        quoted => quoted_text(quoted)?,
    };
    // A third argument would be a date of another note.
    let days = match rest.trim().strip_prefix(',') {
        Some(days) => Some(days.trim().parse::<i64>().ok()?),
        None if rest.trim().is_empty() => None,
        None => return None,
    };
    let offset = match (function, days) {
        ("tp.date.now", days) => days.unwrap_or_default(),
        ("tp.date.tomorrow", None) => 1,
        ("tp.date.yesterday", None) => -1,
        _ => return None,
    };
    let day = time.checked_add(Span::new().try_days(offset).ok()?).ok()?;
    Some(format_moment_in(format, &day, locale))
}

/// Returns the text between quotes of JavaScript, and what follows. `None` if it is not plain text.
fn quoted_text(text: &str) -> Option<(&str, &str)> {
    let quote = text
        .chars()
        .next()
        .filter(|first| "\"'`".contains(*first))?;
    let (inner, rest) = text.get(1..)?.split_once(quote)?;
    (!inner.contains(['\\', '$'])).then_some((inner, rest))
}

/// Returns true if a template has code of the plugin Templater, which only that plugin can run.
pub(crate) fn has_code(template: &str) -> bool {
    template.contains("<%")
}

fn fill_variables(
    template: &str,
    title: &str,
    usual: (&str, &str),
    written: impl Fn(&str) -> String,
) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find("{{") {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        // Not closed, so it is text to the end.
        let Some(close) = from.find("}}") else {
            out.push_str(from);
            return out;
        };
        let inner = from.get(2..close).unwrap_or_default();
        let (name, format) = match inner.split_once(':') {
            Some((name, format)) => (name, Some(format)),
            None => (inner, None),
        };
        match name.trim().to_ascii_lowercase().as_str() {
            "title" if format.is_none() => out.push_str(title),
            "date" => out.push_str(&written(format.map_or(usual.0, str::trim))),
            "time" => out.push_str(&written(format.map_or(usual.1, str::trim))),
            _ => {
                // It is no variable of ours: the braces stay, and the text behind the first of them
                // may be one.
                out.push_str("{{");
                rest = from.get(2..).unwrap_or_default();
                continue;
            }
        }
        rest = from.get(close + 2..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_and_others_stay() {
        let time: Zoned = "2025-12-10T14:05:00[UTC]".parse().unwrap();
        let filled = |template: &str| {
            let written = |format: &str| format_moment_in(format, &time, Locale::english());
            fill_variables(template, "Wed", ("YYYY-MM-DD", "HH:mm"), written)
        };
        assert_eq!(
            filled("# {{title}} {{date}} {{time}}"),
            "# Wed 2025-12-10 14:05"
        );
        assert_eq!(
            filled("{{date:dddd, MMMM Do}} {{ Time : h:mm a }}"),
            "Wednesday, December 10th 2:05 pm"
        );
        assert_eq!(
            filled("{{weather}} {{ {{date}} }} <% tp.date %> {{"),
            "{{weather}} {{ 2025-12-10 }} <% tp.date %> {{"
        );
    }

    #[test]
    fn simple_calls_of_templater_are_filled_and_others_stay() {
        let time: Zoned = "2025-12-10T14:05:00[UTC]".parse().unwrap();
        for (template, filled) in [
            ("# <% tp.file.title %>", "# Wed"),
            ("<%tp.date.now()%>", "2025-12-10"),
            (
                "<% tp.date.now(\"dddd, D MMMM\") %>",
                "Wednesday, 10 December",
            ),
            ("<% tp.date.now('YYYY-MM-DD', -7) %>", "2025-12-03"),
            (
                "<% tp.date.now('YYYY', 9999999999999) %>",
                "<% tp.date.now('YYYY', 9999999999999) %>",
            ),
            (
                "<% tp.date.tomorrow(\"MM-DD\") %> <% tp.date.yesterday() %>",
                "12-11 2025-12-09",
            ),
            ("a\n<%- tp.file.title -%>\nb", "aWedb"),
            ("x<% tp.file.cursor() %>y<% tp.file.cursor(1) %>", "xy"),
            (
                "<%* let a = 1 %> <% tp.file.title %>",
                "<%* let a = 1 %> Wed",
            ),
            ("<% tp.web.daily_quote() %>", "<% tp.web.daily_quote() %>"),
            ("<% tp.date.now(`${x}`) %>", "<% tp.date.now(`${x}`) %>"),
            ("<% never closed", "<% never closed"),
        ] {
            let seen = fill_templater(template, "Wed", &time, Locale::english());
            assert_eq!(seen, filled, "{template}");
        }
        assert!(!has_code(&fill_templater(
            "<% tp.file.title %>",
            "Wed",
            &time,
            Locale::english()
        )));
    }
}
