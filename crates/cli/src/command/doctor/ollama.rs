//! Checks of a model on an Ollama server: the server, the model, and the model's capabilities.

use adjutant_core::ModelError;
use adjutant_providers::Provider;
use adjutant_providers::ollama::{ModelInfo, OllamaOptions, Server};

use super::Check;
use crate::config::Settings;
use crate::model_choice::{self, Override};
use crate::ollama::{GOOD, PATIENCE_WITH_A_NAMED_ONE, same_model};
use crate::terminal::display::plural;

const GROUP: &str = "model";

/// Checks the server, then the model.
pub(super) async fn checks(
    settings: &Settings,
    provider: &'static Provider,
    model: Option<String>,
) -> Vec<Check> {
    let connection = match model_choice::connection(settings, provider, &Override::default()) {
        Ok(connection) => connection,
        Err(error) => {
            return vec![Check::from_error(
                GROUP,
                "ollama",
                &error,
                "adjutant config set ollama.host localhost",
            )];
        }
    };
    let server = match Server::new(&connection) {
        Ok(server) => server.within(PATIENCE_WITH_A_NAMED_ONE),
        Err(error) => {
            return vec![
                Check::fail(GROUP, "ollama", error.to_string())
                    .with_remedy("adjutant config set ollama.host localhost"),
            ];
        }
    };
    let (version, installed) = match server.version().await {
        Ok(version) => (version, server.models().await.unwrap_or_default()),
        Err(error) => {
            let check = Check::fail(GROUP, "ollama", "the server does not answer")
                .because(error.to_string());
            return vec![match error {
                ModelError::BadRequest { .. } => check
                    .with_remedy("correct the address: ollama.host and ollama.port, or OLLAMA_HOST (adjutant config show --origin)"),
                _ => check.with_remedy("ollama serve    (or say where it is: OLLAMA_HOST=host:port)"),
            }];
        }
    };
    let mut checks = vec![Check::ok(
        GROUP,
        "ollama",
        format!(
            "{version} · {}",
            plural(installed.len() as u64, "model", "models")
        ),
    )];
    let wanted = model.or_else(|| settings.provider(provider).model);
    let Some(name) = wanted else {
        checks.push(default_model(&server, installed.into_iter().map(|model| model.name)).await);
        return checks;
    };
    let spec = format!("ollama/{name}");
    checks.push(match server.show(&name).await {
        Ok(info) => suits(settings, &spec, &info),
        Err(ModelError::NotFound { .. }) => {
            let near =
                adjutant_core::nearest(&name, installed.iter().map(|model| model.name.as_str()));
            let check = Check::fail(GROUP, "model", format!("the server does not have {name}"));
            let check = match near.filter(|near| !same_model(near, &name)) {
                Some(near) => check.because(format!(
                    "it has {near}: adjutant config set model ollama/{near}"
                )),
                None => check.because("it was not fetched yet"),
            };
            check.with_remedy(format!("adjutant models pull {spec}"))
        }
        Err(error) => Check::fail(
            GROUP,
            "model",
            format!("the server cannot say what {name} is"),
        )
        .because(error.to_string())
        .with_remedy("ollama list"),
    });
    checks
}

/// Checks the default model, if none was named.
async fn default_model(server: &Server, names: impl Iterator<Item = String>) -> Check {
    for name in names {
        if server.show(&name).await.is_ok_and(|info| info.can("tools")) {
            return Check::ok(GROUP, "model", format!("ollama/{name} · tools"));
        }
    }
    Check::fail(
        GROUP,
        "model",
        "the server has no model that can call tools",
    )
    .because("tasks and notes are changed by tools")
    .with_remedy(format!("adjutant models pull {GOOD}"))
}

/// Checks that the model has the needed capabilities.
fn suits(settings: &Settings, spec: &str, info: &ModelInfo) -> Check {
    if !info.can("tools") {
        return Check::fail(GROUP, "model", format!("{spec} cannot call tools"))
            .because("tasks and notes are changed by tools")
            .with_remedy(format!(
                "adjutant models pull {GOOD} && adjutant config set model ollama/{GOOD}"
            ));
    }
    let thinks = if info.can("thinking") {
        " · thinking"
    } else {
        ""
    };
    let said = settings.ollama.context_size;
    let size = said.unwrap_or(OllamaOptions::default().num_ctx);
    let shown = format!("{spec} · tools{thinks} · context {size}");
    match info.context_length {
        Some(most) if most < u64::from(size) => {
            let check = if said.is_some() {
                Check::fail
            } else {
                Check::warn
            };
            check(GROUP, "model".to_owned(), shown)
                .because(format!("the model was made for {most} tokens"))
                .with_remedy(format!("adjutant config set ollama.context_size {most}"))
        }
        _ => Check::ok(GROUP, "model", shown),
    }
}
