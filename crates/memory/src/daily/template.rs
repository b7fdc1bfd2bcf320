//! Templates of daily notes: `{{date}}`, `{{time}}` and `{{title}}`, with formats after a colon.

use jiff::Zoned;
use serde_json::Value;

use super::locale::Locale;
use super::moment::format_moment_in;
use crate::vault::Vault;

/// Returns a template with its variables replaced. Text that is no variable of Obsidian's own
/// templates stays.
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
    fill_variables(template, title, (&date_format, &time_format), written)
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
}
