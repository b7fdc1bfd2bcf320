//! The part of a request that is no message: what the answer has to look like, which tools the
//! client brings, how long it may be. It is the same for every route of this API, whatever its
//! members are called there.

use adjutant_core::{ClientSide, ClientTool, MaxTokens, Notice, OutputSchema, ToolChoice};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use utoipa::ToSchema;

use super::error::invalid;
use crate::problem::Problem;

/// The reason why a member of a request is not used, where a setting decides.
pub(super) const OF_THE_SERVICE: &str = "is the service's own setting";

/// The parts of a request beside its messages.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    /// JSON Schema of the answer.
    pub(super) output: Option<Value>,
    /// The member that asks for it, for errors.
    pub(super) form: &'static str,
    pub(super) max_tokens: Option<MaxTokens>,
    /// Tools of the client's, and what may be called.
    pub(super) client: ClientSide,
    /// Notices about parts of the request that have no effect.
    pub(super) notices: Vec<Notice>,
}

/// The function of a tool, as it is described to the model.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct FunctionOffered {
    /// Letters, digits, `_` and `-`; not the name of a tool of the agent's own.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_-]+$")]
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: Option<String>,
    /// JSON Schema of an object. Calls are checked against it, `strict` or not. Without it the tool
    /// takes no arguments.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub(super) parameters: Option<Value>,
}

impl FunctionOffered {
    /// Returns it as a tool. `place`: where it stands in the request.
    pub(super) fn tool(&self, place: String) -> Result<ClientTool, Problem> {
        let description = self.description.as_deref().unwrap_or_default();
        let parameters = self.parameters.clone().filter(|schema| !schema.is_null());
        ClientTool::new(self.name.clone(), description, parameters)
            .map_err(|error| invalid(place, error.to_string()))
    }
}

/// Reads a body. An error names the member that is wrong or missing.
pub(super) fn read<T: DeserializeOwned>(body: Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(body).map_err(|error| {
        let path = error.path().to_string();
        let detail = error.inner().to_string();
        match missing_field(&detail).map(str::to_owned) {
            Some(field) if path == "." => invalid(field, detail),
            _ if path == "." => Problem::invalid(detail),
            _ => invalid(path, detail),
        }
    })
}

/// Refuses a tool that is no function. `at`: its place among the tools.
pub(super) fn check_kind(at: usize, kind: &str) -> Result<(), Problem> {
    if kind == "function" {
        return Ok(());
    }
    let detail = format!("a tool of the type {kind} cannot be called here; only function can");
    Err(invalid(format!("tools[{at}].type"), detail))
}

/// Reads a choice that is a word.
pub(super) fn choice(word: &str) -> Result<ToolChoice, Problem> {
    match word {
        "auto" => Ok(ToolChoice::Auto),
        "none" => Ok(ToolChoice::None),
        "required" => Ok(ToolChoice::Required),
        _ => Err(unknown_choice()),
    }
}

/// Returns the problem of a choice that is none.
pub(super) fn unknown_choice() -> Problem {
    invalid(
        "tool_choice",
        "tool_choice has to be auto, none, required, or a function of tools by its name",
    )
}

/// Returns what a client brings: its tools, and which of them may be called.
pub(super) fn client(
    tools: Vec<ClientTool>,
    choice: ToolChoice,
    parallel: Option<bool>,
) -> ClientSide {
    let one_at_a_time = parallel == Some(false) && !tools.is_empty();
    ClientSide {
        tools,
        choice,
        one_at_a_time,
        ..ClientSide::default()
    }
}

/// Checks the schema of an answer. `param`: the member that holds it.
pub(super) fn output(param: &'static str, schema: Value) -> Result<Value, Problem> {
    OutputSchema::new(schema.clone()).map_err(|error| invalid(param, error.to_string()))?;
    Ok(schema)
}

/// Checks a bound of the answer, in tokens.
pub(super) fn max_tokens(param: &'static str, max: u64) -> Result<MaxTokens, Problem> {
    let max = u32::try_from(max).unwrap_or(u32::MAX);
    MaxTokens::new(max).map_err(|error| invalid(param, error.to_string()))
}

/// Refuses values that are out of their range. They have no effect otherwise.
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

/// Returns a notice for each member that was sent and is not used, with the reason.
pub(super) fn unused<const N: usize>(members: [(bool, &str, &str); N]) -> Vec<Notice> {
    let notice = |(_, param, why)| Notice::not_sent(format!("{param} was not used: {why}."));
    members
        .into_iter()
        .filter(|(asked, ..)| *asked)
        .map(notice)
        .collect()
}

/// Reads a whole number; `5.0` is one too.
pub(super) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    match Option::<f64>::deserialize(deserializer)? {
        None => Ok(None),
        Some(number) if number >= 0.0 && number.fract() == 0.0 => Ok(Some(number as u64)),
        Some(number) => Err(D::Error::custom(format!(
            "{number} is no whole number of 0 or more"
        ))),
    }
}

/// Returns the field that serde misses: its error has the place of what holds it only.
fn missing_field(detail: &str) -> Option<&str> {
    detail.strip_prefix("missing field `")?.split('`').next()
}
