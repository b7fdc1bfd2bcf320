//! Results of tools as text for people.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

use crate::words;

/// Spaces by which a part of a result is indented.
const INDENT: usize = 2;
/// Whole numbers up to this size are exact in JSON's floating-point numbers.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Returns the result of a tool as text for a person, for tools that do not describe their results
/// ([`Tool::describe`](crate::Tool::describe)): no braces and quotation marks, names of members as
/// words, whole numbers without a fraction, a line for each row.
///
/// # Examples
///
/// ```
/// use adjutant_core::result_in_words;
/// use serde_json::json;
///
/// let weather = json!({"city": "Oslo", "weather": "sunny", "temperature_c": 21.0});
/// assert_eq!(result_in_words(&weather), "City: Oslo, weather: sunny, temperature c: 21");
/// assert_eq!(result_in_words(&json!(["milk", "bread"])), "milk, bread");
/// assert_eq!(result_in_words(&json!({"sent": true})), "Sent: yes");
/// ```
#[must_use]
pub fn result_in_words(data: &Value) -> String {
    match data {
        Value::Null => words::DONE.to_owned(),
        Value::Object(members) if !members.is_empty() && members.values().all(is_short) => {
            crate::capitalized(&in_line(data))
        }
        _ if is_short(data) => in_line(data),
        _ => {
            let mut text = String::new();
            write_rows(&mut text, data, 0);
            text.trim_end().to_owned()
        }
    }
}

/// Returns true for a value that fits a line: text of one line, a number, or a list of these.
fn is_short(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.contains('\n'),
        Value::Array(items) => items.iter().all(is_scalar),
        Value::Object(members) => members.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

fn is_scalar(value: &Value) -> bool {
    is_short(value) && !value.is_array() && !value.is_object()
}

fn in_line(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number_in_words(number),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null => "none".to_owned(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => joined(items.iter().map(in_line)),
        Value::Object(members) if members.is_empty() => "none".to_owned(),
        Value::Object(members) => joined(members.iter().map(member_in_line)),
    }
}

fn member_in_line((name, value): (&String, &Value)) -> String {
    format!("{}: {}", name_of(name), in_line(value))
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns `temperature_c` as "temperature c".
fn name_of(name: &str) -> String {
    name.replace('_', " ").trim().to_owned()
}

fn number_in_words(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() && value.fract() == 0.0 && value.abs() < EXACT_MAX => {
            format!("{value:.0}")
        }
        _ => number.to_string(),
    }
}

/// Writes a value whose parts need lines of their own.
fn write_rows(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Array(items) => {
            for item in items {
                write_row(text, "- ", item, depth);
            }
        }
        Value::Object(members) => write_members(text, members, depth),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&in_line(value));
            text.push('\n');
        }
    }
}

fn write_members(text: &mut String, members: &Map<String, Value>, depth: usize) {
    for (name, value) in members {
        write_row(text, &format!("{}: ", name_of(name)), value, depth);
    }
}

/// Writes a line that begins with `start`. A value that does not fit it stands below.
fn write_row(text: &mut String, start: &str, value: &Value, depth: usize) {
    let indent = " ".repeat(depth * INDENT);
    let fits = match value {
        Value::Object(members) => start == "- " && members.values().all(is_short),
        _ => is_short(value),
    };
    // Writing into a `String` cannot fail.
    let _ = match fits {
        true => writeln!(text, "{indent}{start}{}", in_line(value)),
        false => writeln!(text, "{indent}{}", start.trim_end()),
    };
    if !fits {
        match value {
            Value::String(lines) => {
                for line in lines.lines() {
                    let _ = writeln!(text, "{indent}{}{line}", " ".repeat(INDENT));
                }
            }
            _ => write_rows(text, value, depth + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_is_told_without_the_signs_of_json() {
        for (data, expected) in [
            (json!(42.0), "42"),
            (json!(2.5), "2.5"),
            (json!(1e300), "1e+300"),
            (json!(true), "yes"),
            (json!(null), "Done."),
            (json!("It is noon.\nAlmost."), "It is noon.\nAlmost."),
            (json!([]), "none"),
            (json!({}), "none"),
            (json!({"sum": 7, "parts": [3, 4]}), "Sum: 7, parts: 3, 4"),
            (
                json!([{"city": "Oslo", "days": 2}, {"city": "Rome", "days": null}]),
                "- city: Oslo, days: 2\n- city: Rome, days: none",
            ),
            (
                json!({"city": "Oslo", "forecast": [{"day": "Monday", "rain": false}], "wind": {"from": "north", "km_h": 12}}),
                "city: Oslo\nforecast:\n  - day: Monday, rain: no\nwind:\n  from: north\n  km h: 12",
            ),
            (json!({"log": "a\nb"}), "log:\n  a\n  b"),
            (json!([[1, 2], ["x\ny"]]), "- 1, 2\n-\n  -\n    x\n    y"),
        ] {
            assert_eq!(result_in_words(&data), expected, "{data}");
        }
    }
}
