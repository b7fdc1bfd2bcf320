//! Values written into statements as literals.
//!
//! The driver needs two round trips for an unnamed statement with parameters, and a named one would
//! outlive its transaction, which poolers do not allow (docs/decisions/007-one-message-per-postgresql-write.md). A
//! statement with literals needs one.

use std::fmt::Write as _;

use adjutant_core::ConversationKey;

use crate::sql::Value;

/// Replaces `$1`, `$2` and so on by the values.
pub(super) fn fill(statement: &str, values: &[Value<'_>]) -> String {
    let mut filled = String::with_capacity(statement.len() + 16 * values.len());
    // No statement of ours has a `$` that begins no parameter.
    let mut pieces = statement.split('$');
    filled.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let end = piece
            .find(|digit: char| !digit.is_ascii_digit())
            .unwrap_or(piece.len());
        let (number, rest) = piece.split_at(end);
        let at = number
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1));
        match at.and_then(|at| values.get(at)) {
            Some(value) => write_value(&mut filled, value),
            // Left in place: PostgreSQL's error message names the missing parameter.
            None => {
                filled.push('$');
                filled.push_str(number);
            }
        }
        filled.push_str(rest);
    }
    filled
}

/// A call of a database function that returns one row.
pub(super) struct Call(String);

impl Call {
    /// Starts a call whose first parameters identify a conversation: agent, user and id.
    pub(super) fn new(function: &str, key: &ConversationKey) -> Self {
        let call = Self(format!("SELECT * FROM {function}("));
        call.value(key.agent.as_str())
            .value(key.user.as_str())
            .value(key.conversation.to_string())
    }

    pub(super) fn value<'a>(mut self, value: impl Into<Value<'a>>) -> Self {
        self.separate();
        write_value(&mut self.0, &value.into());
        self
    }

    /// Adds an array of numbers as one parameter.
    pub(super) fn ints(mut self, values: &[i64]) -> Self {
        self.separate();
        self.0.push_str("'{");
        for (at, value) in values.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write_number(&mut self.0, format_args!("{comma}{value}"));
        }
        self.0.push_str("}'::BIGINT[]");
        self
    }

    /// Adds an array of values, as texts, as one parameter.
    pub(super) fn texts(mut self, values: &[Value<'_>]) -> Self {
        self.separate();
        self.list(values);
        self.0.push_str("::TEXT[]");
        self
    }

    /// Adds rows of equal length as one two-dimensional array of texts, or NULL if there are none.
    pub(super) fn rows<'a>(mut self, rows: impl IntoIterator<Item = Vec<Value<'a>>>) -> Self {
        self.separate();
        let start = self.0.len();
        for row in rows {
            self.0
                .push_str(if self.0.len() == start { "ARRAY[" } else { "," });
            self.list(&row);
        }
        self.0.push_str(if self.0.len() == start {
            "NULL::TEXT[]"
        } else {
            "]::TEXT[]"
        });
        self
    }

    /// Returns the statement without its last parameter, which [`super::call_batch`] adds.
    pub(super) fn without_wait(mut self) -> String {
        self.separate();
        self.0
    }

    /// Returns the statement of a call that waits for locks.
    pub(super) fn with_wait(self) -> String {
        format!("{}TRUE)", self.without_wait())
    }

    fn separate(&mut self) {
        if !self.0.ends_with('(') {
            self.0.push(',');
        }
    }

    fn list(&mut self, values: &[Value<'_>]) {
        self.0.push_str("ARRAY[");
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                self.0.push(',');
            }
            write_literal(&mut self.0, value);
        }
        self.0.push(']');
    }
}

/// Writes a literal with its type, as a parameter would have one.
fn write_value(out: &mut String, value: &Value<'_>) {
    write_literal(out, value);
    out.push_str(match value {
        Value::Int(_) => "::BIGINT",
        Value::Real(_) => "::DOUBLE PRECISION",
        Value::Text(_) => "::TEXT",
    });
}

/// Writes a literal without a type.
fn write_literal(out: &mut String, value: &Value<'_>) {
    match value {
        Value::Int(Some(value)) => write_number(out, format_args!("'{value}'")),
        // `Display` writes the shortest digits that parse to the same number.
        Value::Real(Some(value)) => write_number(out, format_args!("'{value}'")),
        Value::Text(Some(text)) => write_text(out, text),
        Value::Int(None) | Value::Real(None) | Value::Text(None) => out.push_str("NULL"),
    }
}

fn write_number(out: &mut String, number: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = out.write_fmt(number);
}

/// Writes an `E'…'` literal, whose meaning does not depend on `standard_conforming_strings`. Only
/// quotes and backslashes need escaping; both are doubled.
///
/// Source: PostgreSQL 17 documentation, 4.1.2.2, "String Constants with C-Style Escapes" (checked
/// 2026-11).
fn write_text(out: &mut String, text: &str) {
    out.push_str("E'");
    let mut rest = text;
    while let Some(at) = rest.find(['\'', '\\', '\0']) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        out.push_str(match special.as_bytes().first() {
            Some(b'\'') => "''",
            Some(b'\\') => "\\\\",
            // NUL is the one character that PostgreSQL cannot store. Bodies are JSON and never
            // contain it; messages may.
            _ => "\u{fffd}",
        });
        rest = special.get(1..).unwrap_or_default();
    }
    out.push_str(rest);
    out.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_their_numbers_are_and_are_not_looked_into() {
        let filled = fill(
            "SELECT $2, $1, $1",
            &[Value::from("a $2 ' \\ \0"), Value::from(-7)],
        );
        assert_eq!(
            filled,
            "SELECT '-7'::BIGINT, E'a $2 '' \\\\ \u{fffd}'::TEXT, E'a $2 '' \\\\ \u{fffd}'::TEXT"
        );
        assert_eq!(
            fill("SELECT $1, $3", &[Value::Text(None)]),
            "SELECT NULL::TEXT, $3"
        );
    }

    #[test]
    fn a_call_has_its_parameters_in_order() {
        let row = |a: &'static str| vec![Value::from(a), Value::Text(None)];
        let call = Call("SELECT * FROM f(".to_owned())
            .value("x")
            .value(None::<i64>)
            .ints(&[1, -2])
            .texts(&row("t"));
        assert_eq!(
            call.rows([row("a"), row("b")]).rows([]).without_wait(),
            "SELECT * FROM f(E'x'::TEXT,NULL::BIGINT,'{1,-2}'::BIGINT[],ARRAY[E't',NULL]::TEXT[],\
             ARRAY[ARRAY[E'a',NULL],ARRAY[E'b',NULL]]::TEXT[],NULL::TEXT[],"
        );
    }
}
