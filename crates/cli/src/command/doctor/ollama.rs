//! Checks of a model on an Ollama server: the server, the model, and the model's capabilities.

use adjutant_core::ModelError;
use adjutant_providers::Provider;
use adjutant_providers::ollama::{ModelInfo, OllamaOptions, Server};

use super::{Check, Group, Status};
use crate::config::Settings;
use crate::model_choice::{self, Override};
use crate::ollama::{GOOD, PATIENCE_WITH_A_NAMED_ONE, same_model};
use crate::terminal::display::plural;

const GROUP: Group = Group("model");

/// Checks the server, then the model. `Err` is the only check: without the server, nothing is known
/// of its models.
pub(super) async fn checks(
    settings: &Settings,
    provider: &'static Provider,
    model: Option<String>,
) -> Result<Vec<Check>, Check> {
    let to_localhost = "adjutant config set ollama.host localhost";
    let connection = model_choice::connection(settings, provider, &Override::default())
        .map_err(|error| GROUP.fail_with("ollama", &error, to_localhost))?;
    let server = Server::new(&connection)
        .map_err(|error| {
            GROUP
                .fail("ollama", error.to_string())
                .with_remedy(to_localhost)
        })?
        .within(PATIENCE_WITH_A_NAMED_ONE);
    let version = server.version().await.map_err(|error| {
        let check = GROUP.fail("ollama", "the server does not answer").because(&error);
        check.with_remedy(match error {
            ModelError::BadRequest { .. } => {
                "correct the address: ollama.host and ollama.port, or OLLAMA_HOST (adjutant config show --origin)"
            }
            _ => "ollama serve    (or say where it is: OLLAMA_HOST=host:port)",
        })
    })?;
    let installed = server.models().await.unwrap_or_default();
    let models = plural(installed.len() as u64, "model", "models");
    let mut checks = vec![GROUP.ok("ollama", format!("{version} · {models}"))];
    let Some(name) = model.or_else(|| settings.provider(provider).model) else {
        checks.push(default_model(&server, installed.into_iter().map(|model| model.name)).await);
        return Ok(checks);
    };
    let spec = format!("ollama/{name}");
    checks.push(match server.show(&name).await {
        Ok(info) => suits(settings, &spec, &info),
        Err(ModelError::NotFound { .. }) => {
            let near =
                adjutant_core::nearest(&name, installed.iter().map(|model| model.name.as_str()));
            let cause = match near.filter(|near| !same_model(near, &name)) {
                Some(near) => format!("it has {near}: adjutant config set model ollama/{near}"),
                None => "it was not fetched yet".to_owned(),
            };
            GROUP
                .fail("model", format!("the server does not have {name}"))
                .because(cause)
                .with_remedy(format!("adjutant models pull {spec}"))
        }
        Err(error) => GROUP
            .fail("model", format!("the server cannot say what {name} is"))
            .because(error)
            .with_remedy("ollama list"),
    });
    Ok(checks)
}

/// Checks the default model, if none was named.
async fn default_model(server: &Server, names: impl Iterator<Item = String>) -> Check {
    for name in names {
        if server.show(&name).await.is_ok_and(|info| info.can("tools")) {
            return GROUP.ok("model", format!("ollama/{name} · tools"));
        }
    }
    GROUP
        .fail("model", "the server has no model that can call tools")
        .because("tasks and notes are changed by tools")
        .with_remedy(format!("adjutant models pull {GOOD}"))
}

/// Checks that the model has the needed capabilities.
fn suits(settings: &Settings, spec: &str, info: &ModelInfo) -> Check {
    if !info.can("tools") {
        return GROUP
            .fail("model", format!("{spec} cannot call tools"))
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
    let configured = settings.ollama.context_size;
    let size = configured.unwrap_or(OllamaOptions::default().num_ctx);
    let shown = format!("{spec} · tools{thinks} · context {size}");
    match info.context_length {
        Some(most) if most < u64::from(size) => {
            // A size that the user set is a mistake to correct; the default is cut silently.
            let status = match configured {
                Some(_) => Status::Fail,
                None => Status::Warn,
            };
            GROUP
                .check(status, "model", shown)
                .because(format!("the model was made for {most} tokens"))
                .with_remedy(format!("adjutant config set ollama.context_size {most}"))
        }
        _ => GROUP.ok("model", shown),
    }
}
