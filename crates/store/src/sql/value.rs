//! Parameters of statements.

use std::borrow::Cow;

/// A parameter of a statement.
///
/// It has a type even where it is `NULL`, because PostgreSQL cannot infer one for every place in
/// which a parameter stands.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    Int(Option<i64>),
    Real(Option<f64>),
    Text(Option<Cow<'a, str>>),
}

impl Value<'_> {
    fn to_static(&self) -> Value<'static> {
        match self {
            Self::Int(value) => Value::Int(*value),
            Self::Real(value) => Value::Real(*value),
            Self::Text(value) => {
                Value::Text(value.as_deref().map(|text| Cow::Owned(text.to_owned())))
            }
        }
    }
}

/// Returns the parameters as owned data, for work that another thread or task does.
pub(super) fn to_static(values: &[Value<'_>]) -> Vec<Value<'static>> {
    values.iter().map(Value::to_static).collect()
}

macro_rules! impl_from {
    ($($from:ty => $variant:ident, |$value:ident| $convert:expr;)*) => {
        $(impl<'a> From<$from> for Value<'a> {
            fn from($value: $from) -> Self {
                Self::$variant($convert)
            }
        })*
    };
}

impl_from! {
    i64 => Int, |value| Some(value);
    Option<i64> => Int, |value| value;
    Option<f64> => Real, |value| value;
    &'a str => Text, |value| Some(Cow::Borrowed(value));
    &'a String => Text, |value| Some(Cow::Borrowed(value));
    Option<&'a str> => Text, |value| value.map(Cow::Borrowed);
    String => Text, |value| Some(Cow::Owned(value));
    Option<String> => Text, |value| value.map(Cow::Owned);
}

/// Lists the parameters of a statement, `$1` first.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &$crate::sql::value_array![$($value),*] };
}
pub(crate) use values;

/// Lists values as [`values!`] does, as an array: for lists that are joined.
macro_rules! value_array {
    ($($value:expr),* $(,)?) => { [$($crate::sql::Value::from($value)),*] };
}
pub(crate) use value_array;

/// Lists the parameters of a statement whose `$1` to `$3` identify a conversation (agent, user and
/// id), followed by the others.
macro_rules! key_values {
    ($key:expr $(, $value:expr)* $(,)?) => {
        $crate::sql::values![
            $key.agent.as_str(),
            $key.user.as_str(),
            &$key.conversation.to_string()
            $(, $value)*
        ]
    };
}
pub(crate) use key_values;
