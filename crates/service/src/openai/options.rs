//! Options of a request besides its messages: form of the answer, tools of the client, limits. They
//! are the same for every route of this API, under different names.

use adjutant_core::{ClientSide, ClientTool, MaxTokens, Notice, OutputSchema, ToolChoice};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use utoipa::ToSchema;

use super::error::invalid;
use crate::problem::Problem;

/// Reason for which an option is ignored: a setting of the service determines it.
pub(super) const SERVICE_SETTING: &str = "is the service's own setting";

/// The validated options of a request.
#[derive(Debug, Default)]
pub(super) struct RequestOptions {
    /// JSON Schema of the answer.
    pub(super) output: Option<Value>,
    /// Path of the option with the schema, for errors.
    pub(super) output_param: &'static str,
    pub(super) max_tokens: Option<MaxTokens>,
    /// Tools of the client, and the choice among all tools.
    pub(super) client: ClientSide,
    /// Notices about ignored options.
    pub(super) notices: Vec<Notice>,
}

/// A function of a tool, as it is described to the model.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct FunctionOffered {
    /// Letters, digits, `_` and `-`; must differ from the names of the agent's tools.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_-]+$")]
    pub(super) name: String,
    /// Description that the model reads.
    pub(super) description: Option<String>,
    /// JSON Schema of the arguments, an object. Calls are always validated against it, with
    /// `strict` or without. Without a schema the tool takes no arguments.
    #[schema(value_type = Option<Object>)]
    pub(super) parameters: Option<Value>,
}

impl FunctionOffered {
    /// Converts it to a tool. `place`: its path in the request, for errors.
    pub(super) fn tool(&self, place: String) -> Result<ClientTool, Problem> {
        let description = self.description.as_deref().unwrap_or_default();
        let parameters = self.parameters.clone().filter(|schema| !schema.is_null());
        ClientTool::new(self.name.clone(), description, parameters)
            .map_err(|error| invalid(place, error.to_string()))
    }
}

/// Deserializes a body. An error has the path of the invalid or missing member.
pub(super) fn parse_body<T: DeserializeOwned>(body: Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(body).map_err(|error| {
        let path = error.path().to_string();
        let detail = error.inner().to_string();
        // For a missing member serde names only its parent, which at the top is `.`.
        match missing_field(&detail).map(str::to_owned) {
            Some(field) if path == "." => invalid(field, detail),
            _ if path == "." => Problem::invalid(detail),
            _ => invalid(path, detail),
        }
    })
}

/// Refuses a tool that is not a function. `at`: its index among the tools.
pub(super) fn check_kind(at: usize, kind: &str) -> Result<(), Problem> {
    if kind == "function" {
        return Ok(());
    }
    let detail = format!("a tool of the type {kind} cannot be called here; only function can");
    Err(invalid(format!("tools[{at}].type"), detail))
}

/// Parses a tool choice that is a string.
pub(super) fn parse_choice(word: &str) -> Result<ToolChoice, Problem> {
    match word {
        "auto" => Ok(ToolChoice::Auto),
        "none" => Ok(ToolChoice::None),
        "required" => Ok(ToolChoice::Required),
        _ => Err(unknown_choice()),
    }
}

/// Returns the problem of an invalid tool choice.
pub(super) fn unknown_choice() -> Problem {
    invalid(
        "tool_choice",
        "tool_choice has to be auto, none, required, or a function of tools by its name",
    )
}

/// Combines the client's tools and the choice among them.
pub(super) fn client_side(
    tools: Vec<ClientTool>,
    choice: ToolChoice,
    parallel: Option<bool>,
) -> ClientSide {
    // Without tools it has no effect, and must not make an empty client side differ from none.
    let one_at_a_time = parallel == Some(false) && !tools.is_empty();
    ClientSide {
        tools,
        choice,
        one_at_a_time,
        ..ClientSide::default()
    }
}

/// Validates the JSON Schema of an answer. `param`: its path in the request.
pub(super) fn check_output_schema(param: &str, schema: &Value) -> Result<(), Problem> {
    let checked = OutputSchema::new(schema.clone());
    checked
        .map(|_| ())
        .map_err(|error| invalid(param, error.to_string()))
}

/// Parses the largest length of an answer, in tokens.
pub(super) fn parse_max_tokens(
    param: &str,
    max: Option<u64>,
) -> Result<Option<MaxTokens>, Problem> {
    // The service has a limit of its own, so a larger number is no error.
    let max = max.map(|max| u32::try_from(max).unwrap_or(u32::MAX));
    let max = max.map(MaxTokens::new).transpose();
    max.map_err(|error| invalid(param, error.to_string()))
}

/// Refuses sampling parameters that are out of range; valid ones are ignored.
pub(super) fn check_sampling(temperature: Option<f64>, top_p: Option<f64>) -> Result<(), Problem> {
    let out_of =
        |value: Option<f64>, max: f64| value.is_some_and(|value| !(0.0..=max).contains(&value));
    if out_of(temperature, 2.0) {
        return Err(invalid(
            "temperature",
            "temperature has to be between 0 and 2",
        ));
    }
    if out_of(top_p, 1.0) {
        return Err(invalid("top_p", "top_p has to be between 0 and 1"));
    }
    Ok(())
}

/// Refuses a request with the first of these options whose value is not supported, with the reason.
pub(super) fn refuse<const N: usize>(options: [(bool, &str, &str); N]) -> Result<(), Problem> {
    match options.into_iter().find(|(is_wrong, ..)| *is_wrong) {
        Some((_, param, detail)) => Err(invalid(param, detail)),
        None => Ok(()),
    }
}

/// Returns a notice for each option that was sent and is ignored, with the reason.
pub(super) fn ignored_notices<const N: usize>(members: [(bool, &str, &str); N]) -> Vec<Notice> {
    let notice = |(_, param, why)| Notice::not_sent(format!("{param} was not used: {why}."));
    members
        .into_iter()
        .filter(|(asked, ..)| *asked)
        .map(notice)
        .collect()
}

/// Deserializes a whole number. Some clients send `5.0`.
pub(super) fn deserialize_whole<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    match Option::<f64>::deserialize(deserializer)? {
        None => Ok(None),
        Some(number) if number >= 0.0 && number.fract() == 0.0 => Ok(Some(number as u64)),
        Some(number) => Err(D::Error::custom(format!(
            "{number} is no whole number of 0 or more"
        ))),
    }
}

/// Returns the missing field of serde's error, whose path is only that of the parent.
fn missing_field(detail: &str) -> Option<&str> {
    detail.strip_prefix("missing field `")?.split('`').next()
}
