//! Repair of arguments that differ from their schema by a slip that models make, such as a number
//! in quotes. A value is repaired only if the schema refuses it and exactly one repair fits.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::{Map, Number, Value};

use crate::schema::Schema;
use crate::tool::{Arguments, ToolDefinition};

/// Property in which some models wrap the arguments of a call.
const WRAPPER: &str = "arguments";
/// Maximum number of sets of edits that are tried for one value.
const TRIES_MAX: u32 = 64;
/// Maximum number of errors, and of edits of one group, for which a repair is sought.
const PLACES_MAX: usize = 256;
/// Maximum length of the note about corrections, in bytes.
const NOTE_BYTES_MAX: usize = 400;
/// Integers up to this absolute value are exact as floating-point numbers.
const EXACT_INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// Arguments that fit their schema after a repair.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Repaired {
    pub(crate) arguments: Arguments,
    /// The places that were changed and how, for the model. Contains no values.
    pub(crate) note: String,
}

/// Returns arguments as they fit a tool's schema, and a note for the model if they were corrected
/// for it. Arguments that fit are never changed.
///
/// # Errors
///
/// The paths that do not fit, if not exactly one correction does; see [`Schema::check`].
pub(crate) fn fitting(
    schema: &Schema,
    definition: &ToolDefinition,
    arguments: Arguments,
) -> Result<(Arguments, Option<String>), String> {
    let Err(places) = schema.check(&Value::Object(arguments.clone())) else {
        return Ok((arguments, None));
    };
    let allowed = Allowed::of(&definition.parameters, definition.annotations.destructive);
    match repair(schema, &arguments, allowed) {
        Some(repaired) => Ok((repaired.arguments, Some(repaired.note))),
        None => Err(places),
    }
}

/// The repairs that a tool allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowed {
    /// Single values and JSON texts may become lists.
    pub(crate) lists: bool,
    /// Arguments may be wrapped in `arguments`, because no property has that name.
    pub(crate) wrapped: bool,
}

impl Allowed {
    /// Returns the repairs that a tool with this schema allows. A list instead of one value could
    /// widen the effect of a destructive tool.
    pub(crate) fn of(parameters: &Value, destructive: bool) -> Self {
        Self {
            lists: !destructive,
            wrapped: !may_declare_wrapper(parameters),
        }
    }
}

/// Returns true if a schema, or any schema inside it, may have a property called like the wrapper.
fn may_declare_wrapper(schema: &Value) -> bool {
    let mut rest = vec![schema];
    while let Some(schema) = rest.pop() {
        match schema {
            Value::Object(keywords) => {
                if keywords
                    .get("properties")
                    .is_some_and(|properties| properties.get(WRAPPER).is_some())
                    || keywords.contains_key("patternProperties")
                {
                    return true;
                }
                rest.extend(keywords.values());
            }
            Value::Array(schemas) => rest.extend(schemas),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    false
}

/// The slips that are repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slip {
    Null,
    EmptyText,
    Case,
    Quoted,
    Unquoted,
    Fraction,
    SingleValue,
    ListAsText,
}

impl Slip {
    fn correction(self) -> &'static str {
        match self {
            Self::Null => "null was left out",
            Self::EmptyText => "the empty text was left out",
            Self::Case => "upper and lower case were corrected",
            Self::Quoted => "quotation marks were removed",
            Self::Unquoted => "the number was written as text",
            Self::Fraction => "the number was written as an integer",
            Self::SingleValue => "the value was put into a list",
            Self::ListAsText => "the text was read as a list",
        }
    }
}

/// The change of one place of a value.
#[derive(Debug, Clone, PartialEq)]
struct Edit {
    /// JSON Pointer of the place.
    path: String,
    slip: Slip,
    /// The new value. `None`: the property is removed.
    value: Option<Value>,
}

impl Edit {
    fn apply(&self, whole: &mut Value) -> Option<()> {
        match &self.value {
            Some(value) => *whole.pointer_mut(&self.path)? = value.clone(),
            None => {
                let (parent, name) = self.path.rsplit_once('/')?;
                let name = name.replace("~1", "/").replace("~0", "~");
                // The order of the others is kept.
                whole
                    .pointer_mut(parent)?
                    .as_object_mut()?
                    .shift_remove(&name)?;
            }
        }
        Some(())
    }
}

/// Errors of the schema at and below one place, with the edits that may mend them.
struct Group {
    path: String,
    edits: Vec<Edit>,
}

/// The work that may still be done for one value.
struct Left {
    /// Checks for listings of errors.
    visits: u64,
    /// Sets of edits.
    tries: u32,
}

/// Repairs arguments that do not fit a schema. `None`: no repair fits, or more than one does.
pub(crate) fn repair(schema: &Schema, arguments: &Arguments, allowed: Allowed) -> Option<Repaired> {
    let direct = repair_places(schema, arguments, allowed);
    let unwrapped = inner_arguments(arguments)
        .filter(|_| allowed.wrapped)
        .and_then(|inner| match schema.check(&Value::Object(inner.clone())) {
            Ok(()) => Some((inner.clone(), Vec::new())),
            Err(_) => repair_places(schema, inner, allowed),
        });
    let is_unwrapped = unwrapped.is_some();
    let (arguments, edits) = match (direct, unwrapped) {
        (Some(repaired), None) | (None, Some(repaired)) => repaired,
        (Some(_), Some(_)) | (None, None) => return None,
    };
    Some(Repaired {
        arguments,
        note: note(is_unwrapped, &edits),
    })
}

/// Repairs places of arguments that do not fit.
fn repair_places(
    schema: &Schema,
    arguments: &Arguments,
    allowed: Allowed,
) -> Option<(Arguments, Vec<Edit>)> {
    let whole = Value::Object(arguments.clone());
    let mut left = Left {
        visits: schema.visits_max(),
        tries: TRIES_MAX,
    };
    let mut edits = Vec::new();
    for group in groups(schema, &whole, allowed, &mut left)? {
        edits.extend(only_repair(schema, &whole, &group, &mut left)?);
    }
    let mut repaired = whole;
    for edit in &edits {
        edit.apply(&mut repaired)?;
    }
    // A property that was removed may be required.
    schema.check(&repaired).ok()?;
    match repaired {
        Value::Object(arguments) => Some((arguments, edits)),
        _ => None,
    }
}

/// Returns the errors of a value, by places of which none contains another. `None`: too many.
fn groups(schema: &Schema, value: &Value, allowed: Allowed, left: &mut Left) -> Option<Vec<Group>> {
    let errors: Vec<_> = schema
        .errors(value, &mut left.visits)?
        .take(PLACES_MAX + 1)
        .collect();
    if errors.len() > PLACES_MAX {
        return None;
    }
    let mut paths: Vec<&str> = errors
        .iter()
        .map(|error| error.instance_path().as_str())
        .collect();
    // A place comes before those inside it.
    paths.sort_unstable_by_key(|path| path.len());
    let mut groups: Vec<Group> = Vec::new();
    for path in paths {
        if !groups.iter().any(|group| is_inside(path, &group.path)) {
            groups.push(Group {
                path: path.to_owned(),
                edits: Vec::new(),
            });
        }
    }
    for error in &errors {
        let path = error.instance_path().as_str();
        if let Some(group) = groups.iter_mut().find(|group| is_inside(path, &group.path)) {
            add_edits(error, value, allowed, &mut group.edits);
        }
    }
    let are_few = |group: &Group| group.edits.len() <= PLACES_MAX;
    groups.iter().all(are_few).then_some(groups)
}

/// Returns the edits of the only repair of a group: the smallest sets of edits after which
/// nothing inside the group is wrong have to give one and the same value.
fn only_repair(
    schema: &Schema,
    value: &Value,
    group: &Group,
    left: &mut Left,
) -> Option<Vec<Edit>> {
    if let [only] = group.edits.as_slice() {
        return Some(vec![only.clone()]);
    }
    let mut found: Vec<(Vec<usize>, Value)> = Vec::new();
    // Sets of edits by size, each with its indices in order.
    let mut sets: Vec<Vec<usize>> = (0..group.edits.len()).map(|at| vec![at]).collect();
    while !sets.is_empty() {
        let mut larger = Vec::new();
        for set in sets {
            let holds_found = found
                .iter()
                .any(|(fitting, _)| fitting.iter().all(|at| set.contains(at)));
            if holds_found {
                continue;
            }
            left.tries = left.tries.checked_sub(1)?;
            let mut repaired = value.clone();
            set.iter()
                .filter_map(|at| group.edits.get(*at))
                .try_for_each(|edit| edit.apply(&mut repaired))?;
            let is_right = schema
                .errors(&repaired, &mut left.visits)?
                .all(|error| !is_inside(error.instance_path().as_str(), &group.path));
            if is_right {
                found.push((set, repaired));
                continue;
            }
            let next = set.last().map_or(0, |last| last + 1);
            for (at, edit) in group.edits.iter().enumerate().skip(next) {
                let is_apart = set
                    .iter()
                    .filter_map(|at| group.edits.get(*at))
                    .all(|other| {
                        !is_inside(&edit.path, &other.path) && !is_inside(&other.path, &edit.path)
                    });
                if is_apart {
                    larger.push(set.iter().copied().chain([at]).collect());
                }
            }
        }
        sets = larger;
    }
    let (set, repaired) = found.first()?;
    found.iter().all(|(_, other)| other == repaired).then(|| {
        let edits = set.iter().filter_map(|at| group.edits.get(*at));
        edits.cloned().collect()
    })
}

/// Returns the arguments inside of the wrapper, if there is nothing beside it.
fn inner_arguments(arguments: &Arguments) -> Option<&Map<String, Value>> {
    match arguments.get(WRAPPER) {
        Some(Value::Object(inner)) if arguments.len() == 1 => Some(inner),
        _ => None,
    }
}

fn note(is_unwrapped: bool, edits: &[Edit]) -> String {
    let wrapper = is_unwrapped.then(|| format!("they were taken out of {WRAPPER:?}"));
    let places = edits
        .iter()
        .map(|edit| format!("{}: {}", edit.path, edit.slip.correction()));
    let corrections: Vec<String> = wrapper.into_iter().chain(places).collect();
    let mut note = format!(
        "the arguments did not fit and were corrected: {}",
        corrections.join("; ")
    );
    if note.len() > NOTE_BYTES_MAX {
        note.truncate(note.floor_char_boundary(NOTE_BYTES_MAX));
        note.push('…');
    }
    note
}

/// Returns true if a place is `outer` or inside of it.
fn is_inside(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Adds the edits that may mend an error, of all branches if it is one of a union.
fn add_edits(error: &ValidationError<'_>, whole: &Value, allowed: Allowed, edits: &mut Vec<Edit>) {
    let path = error.instance_path().as_str();
    let Some(value) = whole.pointer(path) else {
        return;
    };
    let mut add = |slip, value| {
        let edit = Edit {
            path: path.to_owned(),
            slip,
            value,
        };
        // One too many is enough to see that they are.
        if edits.len() <= PLACES_MAX && !edits.contains(&edit) {
            edits.push(edit);
        }
    };
    if let Some(slip) = removal(value, path)
        && is_of_a_named_property(error)
    {
        add(slip, None);
    }
    match error.kind() {
        ValidationErrorKind::Type { kind } => {
            let types: Vec<JsonType> = match kind {
                TypeKind::Single(one) => vec![*one],
                TypeKind::Multiple(types) => types.iter().collect(),
            };
            for (slip, value) in types
                .into_iter()
                .filter_map(|wanted| converted(value, wanted, allowed))
            {
                add(slip, Some(value));
            }
        }
        ValidationErrorKind::Enum { options } => {
            for (slip, value) in chosen(value, options.as_array().map_or(&[], Vec::as_slice)) {
                add(slip, Some(value));
            }
        }
        ValidationErrorKind::Constant { expected_value } => {
            for (slip, value) in chosen(value, std::slice::from_ref(expected_value)) {
                add(slip, Some(value));
            }
        }
        ValidationErrorKind::AnyOf { context }
        | ValidationErrorKind::OneOfNotValid { context }
        | ValidationErrorKind::OneOfMultipleValid { context } => {
            for error in context.iter().flatten() {
                add_edits(error, whole, allowed, edits);
            }
        }
        _ => {}
    }
}

/// Returns the slip if the value stands for a property that was left out.
fn removal(value: &Value, path: &str) -> Option<Slip> {
    let is_top_level = path.matches('/').count() == 1;
    match value {
        Value::Null => Some(Slip::Null),
        Value::String(text) if text.is_empty() && is_top_level => Some(Slip::EmptyText),
        _ => None,
    }
}

/// Returns true unless the error is about an element of a list or an entry of a map, which are
/// never optional properties.
fn is_of_a_named_property(error: &ValidationError<'_>) -> bool {
    const APPLICATORS: [&str; 8] = [
        "properties",
        "additionalProperties",
        "patternProperties",
        "unevaluatedProperties",
        "items",
        "prefixItems",
        "additionalItems",
        "unevaluatedItems",
    ];
    let path = error.evaluation_path().as_str();
    let segments: Vec<&str> = path.split('/').collect();
    let mut at = 0;
    let mut last = None;
    while let Some(segment) = segments.get(at) {
        if APPLICATORS.contains(segment) {
            last = Some(*segment);
        }
        // The name behind it is no keyword.
        at += if matches!(*segment, "properties" | "patternProperties" | "$defs") {
            2
        } else {
            1
        };
    }
    last == Some("properties")
}

/// Returns the value as another type, if it is of that type but for a slip.
fn converted(value: &Value, wanted: JsonType, allowed: Allowed) -> Option<(Slip, Value)> {
    match (value, wanted) {
        (Value::String(text), JsonType::Integer | JsonType::Number) => {
            let number = number_in(text)?;
            let number = match wanted {
                JsonType::Integer => integer(&number)?,
                _ => number,
            };
            Some((Slip::Quoted, Value::Number(number)))
        }
        (Value::String(text), JsonType::Boolean) => {
            let truth = [true, false]
                .into_iter()
                .find(|truth| text.eq_ignore_ascii_case(&truth.to_string()))?;
            Some((Slip::Quoted, Value::Bool(truth)))
        }
        // The text of an integer is the same whoever writes it.
        (Value::Number(number), JsonType::String) if !number.is_f64() => {
            Some((Slip::Unquoted, Value::String(number.to_string())))
        }
        (Value::Number(number), JsonType::Integer) => {
            Some((Slip::Fraction, Value::Number(integer(number)?)))
        }
        (Value::String(text), JsonType::Array) if allowed.lists => match list_in(text) {
            Some(list) => Some((Slip::ListAsText, list)),
            None if text.is_empty() => None,
            None => Some((Slip::SingleValue, Value::Array(vec![value.clone()]))),
        },
        (Value::Bool(_) | Value::Number(_) | Value::Object(_), JsonType::Array)
            if allowed.lists =>
        {
            Some((Slip::SingleValue, Value::Array(vec![value.clone()])))
        }
        _ => None,
    }
}

/// Returns those of some allowed values that a value is but for a slip.
fn chosen(value: &Value, options: &[Value]) -> Vec<(Slip, Value)> {
    let slip = |option: &Value| match (value, option) {
        (Value::String(text), Value::String(option)) => {
            (text.to_lowercase() == option.to_lowercase()).then_some(Slip::Case)
        }
        (Value::String(text), Value::Number(option)) => {
            (number_in(text)?.as_f64() == option.as_f64()).then_some(Slip::Quoted)
        }
        (Value::String(text), Value::Bool(option)) => text
            .eq_ignore_ascii_case(&option.to_string())
            .then_some(Slip::Quoted),
        (Value::Number(number), Value::String(option)) => {
            (!number.is_f64() && number.to_string() == *option).then_some(Slip::Unquoted)
        }
        _ => None,
    };
    options
        .iter()
        .filter_map(|option| Some((slip(option)?, option.clone())))
        .collect()
}

/// Returns the number that a text consists of, if no digit of it is lost.
fn number_in(text: &str) -> Option<Number> {
    let is_bare = text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && text.ends_with(|c: char| c.is_ascii_digit());
    let number: Number = serde_json::from_str(text).ok().filter(|_| is_bare)?;
    let is_exact = !number.is_f64() || digits(text) == digits(&number.to_string());
    is_exact.then_some(number)
}

/// Returns the significant digits of a number in JSON, and the power of ten of the last of them.
fn digits(text: &str) -> Option<(String, i64)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let mantissa = mantissa.trim_start_matches('-');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let all = all.trim_start_matches('0');
    let significant = all.trim_end_matches('0');
    if significant.is_empty() {
        return Some((String::new(), 0));
    }
    let zeros = i64::try_from(all.len() - significant.len()).ok()?;
    let behind_point = i64::try_from(fraction.len()).ok()?;
    let power = exponent.checked_sub(behind_point)?.checked_add(zeros)?;
    Some((significant.to_owned(), power))
}

/// Returns the list that a text consists of, if no digit of its numbers can be lost.
fn list_in(text: &str) -> Option<Value> {
    let list: Value = serde_json::from_str(text).ok()?;
    (list.is_array() && !holds_inexact_number(&list)).then_some(list)
}

/// Returns true if a value that was parsed from text has a number that the text may have had with
/// more digits.
fn holds_inexact_number(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            number.is_f64()
                && number
                    .as_f64()
                    .is_some_and(|number| number.abs() >= EXACT_INTEGER_MAX)
        }
        Value::Array(values) => values.iter().any(holds_inexact_number),
        Value::Object(values) => values.values().any(holds_inexact_number),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// Returns a number as an integer if it is one, in whatever form: `3` for `3.0`.
fn integer(number: &Number) -> Option<Number> {
    match number.as_f64() {
        Some(float) if number.is_f64() => {
            if float.fract() != 0.0 || float.abs() > EXACT_INTEGER_MAX {
                return None;
            }
            // Exact, so the digits of its text are those of the integer.
            format!("{float:.0}").parse::<i64>().ok().map(Number::from)
        }
        _ => Some(number.clone()),
    }
}

/// Returns a value in which every number that is an integer is written as one: `3` for
/// `3.0`, which JSON Schema takes for an integer and Rust's integer types do not.
#[must_use]
pub fn with_integers(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(integer(&number).unwrap_or(number)),
        Value::Array(values) => values.into_iter().map(with_integers).collect(),
        Value::Object(values) => values
            .into_iter()
            .map(|(name, value)| (name, with_integers(value)))
            .collect(),
        other => other,
    }
}
