//! Puts the pieces together: journal, tools, policy, bounds, model.

use std::sync::Arc;

use adjutant_core::limits::TURN_DEADLINE_LOCAL;
use adjutant_core::weak::WeakTools;
use adjutant_core::{
    Budgets, Capabilities, GenerationConfig, LanguageModel, Permission, Policy, ToolName, TurnLimits, nearest,
};
use adjutant_mcp::client::{Health, ServerReport, Servers};
use adjutant_providers::scripted::ScriptedModel;
use adjutant_runtime::{Agent, Prices};
use adjutant_tools::{ReadResult, task_tools};

use crate::config::Settings;
use crate::error::CliError;
use crate::store::{self, Work};

/// The task assistant's instruction.
const CONSTITUTION: &str = include_str!("../../../prompts/constitution.md");

/// What is added to it when tools of other programs joined.
const FOREIGN_TOOLS: &str = include_str!("../../../prompts/foreign_tools.md");

/// Examples of the task tools, for models that need them.
const EXAMPLES: &str = include_str!("../../../prompts/weak/todo.jsonl");

/// In an instruction, stands for the setting `user_name`.
const USER_NAME: &str = "{{user_name}}";

/// The task assistant over a model and a store.
///
/// # Errors
/// A setting names a tool there is not, or the instruction's file cannot be read.
pub(crate) fn agent(
    settings: &Settings,
    model: Arc<dyn LanguageModel>,
    store: Arc<dyn Work>,
) -> Result<Agent, CliError> {
    agent_with(settings, model, store, None)
}

/// The same with the tools of MCP servers.
///
/// # Errors
/// As [`agent`].
pub(crate) fn agent_with(
    settings: &Settings,
    model: Arc<dyn LanguageModel>,
    store: Arc<dyn Work>,
    servers: Option<&Servers>,
) -> Result<Agent, CliError> {
    let foreign = servers.map(Servers::tools).unwrap_or_default();
    let instruction = instruction(settings, !foreign.is_empty())?;
    let mut tools = task_tools(store.clone());
    if !foreign.is_empty() {
        // Others may answer with more than a model's window holds.
        tools.push(Arc::new(ReadResult::new(store.clone())));
    }
    tools.extend(foreign);
    let names: Vec<&str> = tools.iter().map(|tool| tool.definition().name.as_str()).collect();
    let policy = policy(settings, &names, servers)?;
    let limits = limits(settings, model.capabilities());
    let config = GenerationConfig {
        temperature: settings.llm.temperature,
        max_tokens: settings.llm.max_tokens,
        ..GenerationConfig::default()
    };
    let examples = WeakTools::from_jsonl(EXAMPLES).map_err(|error| CliError::failed(error.to_string()))?;
    let mut agent = Agent::builder("adjutant")
        .description("Manages a person's tasks.")
        .instruction(instruction)
        .tools(tools)
        .weak_tools(examples)
        .policy(policy)
        .config(config)
        .prices(prices(settings)?)
        .limits(limits)
        .dyn_journal(store.clone(), store.clone(), store.clone(), store::worker(settings))
        .model(model);
    if settings.budgets != Budgets::default() {
        agent = agent.budgets(settings.budgets, store);
    }
    Ok(agent.build()?)
}

/// The task assistant for people who call its tools themselves: the same gate, and a model that is never asked.
///
/// # Errors
/// As [`agent`].
pub(crate) fn agent_without_model(settings: &Settings, store: Arc<dyn Work>) -> Result<Agent, CliError> {
    agent(settings, no_model(), store)
}

/// A model that is never asked.
pub(crate) fn no_model() -> Arc<dyn LanguageModel> {
    Arc::new(ScriptedModel::new([]))
}

/// Deny wins over confirm, confirm over allow, all over what a tool says of itself. What a server's `confirm` asks for is
/// confirmed, whatever is allowed.
pub(crate) fn policy(
    settings: &Settings,
    tools: &[&str],
    servers: Option<&Servers>,
) -> Result<Policy, CliError> {
    let lists = [
        ("agent.allow", &settings.agent.allow, Permission::Allow),
        ("agent.confirm", &settings.agent.confirm, Permission::Confirm),
        ("agent.deny", &settings.agent.deny, Permission::Deny),
    ];
    let mut policy = Policy::default();
    for (key, names, permission) in lists {
        if permission == Permission::Deny
            && let Some(servers) = servers
        {
            policy = servers.confirmed(policy);
        }
        for name in names {
            if !of_absent_server(name, settings, servers) {
                known_tool(name, tools).map_err(|error| error.because(format!("in {key}")))?;
            }
            policy = policy.rule(name, None, permission);
        }
    }
    Ok(policy)
}

/// Whether this is the name of a tool whose server is configured and not there: nobody can know whether it has such a tool.
fn of_absent_server(name: &str, settings: &Settings, servers: Option<&Servers>) -> bool {
    let connected: Vec<ServerReport> = servers.map(Servers::report).unwrap_or_default();
    let absent = settings.mcp.iter().filter(|server| {
        !connected.iter().any(|report| report.name == server.name && report.health == Health::Connected)
    });
    absent.into_iter().any(|server| {
        let prefix = server.name.as_str().to_ascii_lowercase().replace('-', "_");
        name.trim_start_matches('_').starts_with(&format!("{prefix}__"))
    })
}

/// Whether there is such a tool; `*` is all of them.
///
/// # Errors
/// There is not; the nearest is named.
pub(crate) fn known_tool(name: &str, tools: &[&str]) -> Result<(), CliError> {
    if name == "*" || tools.contains(&name) {
        return Ok(());
    }
    let error = CliError::configuration(format!("there is no tool {name:?}"));
    Err(match nearest(name, tools.iter().copied()) {
        Some(near) => error.or_try(format!("{near}, if that is what you mean")),
        None => error.or_try(tools.join(", ")),
    })
}

/// The names of an agent's tools.
pub(crate) fn tool_names(agent: &Agent) -> Vec<&str> {
    agent.tools().names().map(ToolName::as_str).collect()
}

fn limits(settings: &Settings, capabilities: &Capabilities) -> TurnLimits {
    let usual = TurnLimits::default();
    let set = &settings.agent;
    let for_model = match capabilities.turn_deadline {
        Some(deadline) => deadline,
        None if capabilities.local => TURN_DEADLINE_LOCAL,
        None => usual.turn_deadline,
    };
    TurnLimits {
        tool_iterations_max: set.max_tool_iterations.unwrap_or(usual.tool_iterations_max),
        identical_calls_max: set.identical_calls_max.unwrap_or(usual.identical_calls_max),
        tool_timeout: set.tool_timeout.unwrap_or(usual.tool_timeout),
        turn_deadline: set.turn_deadline.unwrap_or(for_model),
        confirmation_expiry: set.confirmation_expiry.unwrap_or(usual.confirmation_expiry),
        ..usual
    }
}

/// The built-in prices, and before them the person's own.
fn prices(settings: &Settings) -> Result<Prices, CliError> {
    let Some(path) = &settings.prices_file else { return Ok(Prices::builtin()) };
    let unusable = |cause: String| {
        CliError::configuration(format!("the prices {} cannot be used", path.display()))
            .because(cause)
            .or_try("prices_file in the configuration (adjutant config show --origin)")
    };
    let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    let own = toml::from_str(&text).map_err(|error| unusable(error.message().to_owned()))?;
    Ok(Prices::builtin().overridden_by(own))
}

fn instruction(settings: &Settings, foreign_tools: bool) -> Result<String, CliError> {
    let text = match &settings.system_prompt_path {
        None => CONSTITUTION.to_owned(),
        Some(path) => std::fs::read_to_string(path).map_err(|error| {
            CliError::configuration(format!("the instruction {} cannot be read", path.display()))
                .because(error.to_string())
                .or_try("system_prompt_path in the configuration (adjutant config show --origin)")
        })?,
    };
    let text = text.replace(USER_NAME, &settings.user_name);
    Ok(if foreign_tools { text + FOREIGN_TOOLS } else { text })
}
