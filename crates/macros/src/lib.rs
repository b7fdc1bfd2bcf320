//! The `#[tool]` attribute: an `async fn` as a tool of an agent.
//!
//! Used through the facade crate, as `adjutant::tool`.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod docs; // doc comments to descriptions
mod expand; // the function to a tool
mod options; // what is written in `#[tool(...)]`
mod parameter; // a parameter to an argument

/// Makes a tool of an `async fn`.
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
/// out. What the model reads about a parameter is its doc comment or `#[arg(description = "...")]`;
/// `#[serde(...)]` and `#[schemars(...)]` are passed on, such as `#[serde(default)]` and
/// `#[schemars(range(min = 1, max = 14))]`. A first parameter of type `&ToolContext` or
/// `ToolContext` is no argument: it says who the call is for.
///
/// # Result
/// `Result<T, E>` or `T`, where `T` is `serde::Serialize`. An error that is a `ToolError`, or turns
/// into one, is passed on; any other that can be printed becomes `ToolError::Failed` with its
/// words. The model reads them, and the person may.
///
/// # Options
/// | option | meaning |
/// |---|---|
/// | `read_only` | it changes nothing: may run concurrently and again |
/// | `destructive` | it destroys something: a human confirms it first |
/// | `idempotent` | twice is the same as once: may be repeated after a crash |
/// | `keyed` | it absorbs a repeat with the same `ToolContext::key`: may be repeated after a crash |
/// | `parallel` | it may run beside other calls although it changes something |
/// | `closed_world` | it touches nothing but what the agent keeps: no network, no other program |
/// | `name = "..."` | the name, if it is not the function's |
/// | `description = "..."` | the description, if it is not the doc comment |
/// | `timeout_secs = N` | bound of one execution in seconds, instead of the turn's |
/// | `crate = path` | where `adjutant` is, if it is not `::adjutant` |
#[proc_macro_attribute]
pub fn tool(
    options: proc_macro::TokenStream,
    function: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand::tool(options.into(), function.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
