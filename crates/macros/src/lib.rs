//! The `#[tool]` attribute: an `async fn` as a tool of an agent.
//!
//! Used through the facade crate, as `adjutant::tool`.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod docs; // descriptions from doc comments
mod expand; // expands a function to a tool
mod options; // the options of `#[tool(...)]`
mod parameter; // parameters as arguments of the tool

/// Turns an `async fn` into a tool.
///
/// The function's name becomes the tool's name, its doc comment the description the model chooses
/// by, its parameters the arguments, with a JSON Schema that allows no others:
///
/// ```text
/// /// Weather for a city.
/// #[tool(read_only)]
/// async fn weather(
///     /// The city's name, such as "Oslo".
///     city: String,
///     /// How many days ahead; today if it is left out.
///     days: Option<u8>,
/// ) -> Result<String, ToolError> {
///     Ok(format!("sunny in {city}"))
/// }
///
/// let agent = Agent::builder("helper").tool(weather);   // `weather` is the tool ...
/// let answer = weather::run("Oslo".to_owned(), None).await;   // ... and this the function, for tests
/// ```
///
/// # Parameters
/// Owned types that are `serde::Deserialize` and `schemars::JsonSchema`. `Option<T>` may be left
/// out. The description of a parameter is its doc comment or `#[arg(description = "...")]`;
/// `#[serde(...)]` and `#[schemars(...)]` are passed on, such as `#[serde(default)]` and
/// `#[schemars(range(min = 1, max = 14))]`. A first parameter of type `&ToolContext` or
/// `ToolContext` is not an argument: it contains the user and the conversation of the call.
///
/// # Result
/// `Result<T, E>` or `T`, where `T` is `serde::Serialize`. An error that is a `ToolError`, or turns
/// into one, is passed on; any other that implements `Display` becomes `ToolError::Failed` with its
/// message, which the model and perhaps the user read.
///
/// # Options
/// | option | meaning |
/// |---|---|
/// | `read_only` | changes nothing: may run concurrently and again |
/// | `destructive` | destroys something: a person confirms each call |
/// | `idempotent` | running twice is the same as once: may be repeated after a crash |
/// | `keyed` | ignores a repeat with the same `ToolContext::key`: may be repeated after a crash |
/// | `parallel` | may run concurrently although it changes something |
/// | `closed_world` | touches only the agent's own data: no network, no other program |
/// | `name = "..."` | name of the tool; default: the function's |
/// | `description = "..."` | description of the tool; default: the doc comment |
/// | `timeout_secs = N` | timeout of one execution in seconds; default: the turn's |
/// | `describe = path` | function `fn(&Arguments, &serde_json::Value) -> String` that tells the person the result of a call where the model's text cannot be trusted; default: the result in words |
/// | `crate = path` | path of the crate `adjutant`; default: `::adjutant` |
#[proc_macro_attribute]
pub fn tool(
    options: proc_macro::TokenStream,
    function: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand::tool(options.into(), function.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
