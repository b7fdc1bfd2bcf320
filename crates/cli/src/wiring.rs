//! Puts the pieces together: journal, tools, policy, bounds, model.

use std::sync::Arc;

use adjutant_core::port::{BudgetStore, TaskStore};
use adjutant_core::weak::WeakTools;
use adjutant_core::{
    Budgets, Capabilities, GenerationConfig, LanguageModel, Permission, Policy, Tool, ToolName,
    TurnLimits, nearest,
};
use adjutant_mcp::client::{Health, ServerReport, Servers};
use adjutant_memory::DatabaseMemory;
use adjutant_providers::scripted::ScriptedModel;
use adjutant_runtime::{Agent, AgentBuilder, Prices};
use adjutant_tools::{ReadResult, task_tools};

use crate::config::{NAMELESS, RunBounds, Settings};
use crate::error::CliError;
use crate::instructions::Places;
use crate::memory::{self, Desk, Told, ToldOfEach};
use crate::store::{self, Store, Stores, Work};

/// The task assistant's instruction.
const CONSTITUTION: &str = include_str!("../../../prompts/constitution.md");

/// The addition to it where facts about users are kept in the database.
const MEMORY: &str = include_str!("../../../prompts/memory.md");

/// The instruction of the assistant of the terminal, and what is added to it for what she can do.
const DIANA: &str = include_str!("../../../prompts/diana.md");
const DIANA_TASKS: &str = include_str!("../../../prompts/diana_tasks.md");
const DIANA_VAULT: &str = include_str!("../../../prompts/diana_vault.md");
const DIANA_NO_VAULT: &str = include_str!("../../../prompts/diana_no_vault.md");
const DIANA_TEMP: &str = include_str!("../../../prompts/diana_temp.md");

/// What is added to it when tools of other programs joined.
const FOREIGN_TOOLS: &str = include_str!("../../../prompts/foreign_tools.md");

/// Examples of the task tools and of those of a memory, for models that need them.
const EXAMPLES: &str = include_str!("../../../prompts/weak/todo.jsonl");
const EXAMPLES_OF_MEMORY: &str = include_str!("../../../prompts/weak/memory.jsonl");

/// What is added to it when the person tells this run how the assistant is to be.
const TOLD_FOR_RUN: &str = include_str!("../../../prompts/told_for_run.md");

/// In it, stands for the person's text.
const TOLD: &str = "{{text}}";

/// In an instruction, stands for the setting `user_name`.
const USER_NAME: &str = "{{user_name}}";

/// The task assistant over a model and the tasks of a store, whose conversations are kept in
/// another.
///
/// # Errors
/// A setting names a tool there is not, or the instruction's file cannot be read.
pub(crate) fn agent(
    settings: &Settings,
    model: Arc<dyn LanguageModel>,
    tasks: Arc<dyn TaskStore>,
    work: Arc<dyn Work>,
) -> Result<Agent, CliError> {
    agent_with(settings, model, tasks, work, None, None)
}

/// The same with the tools of MCP servers, and with a memory of each user. A model that cannot be
/// trusted with free tool calls has no memory.
///
/// # Errors
/// As [`agent`].
pub(crate) fn agent_with(
    settings: &Settings,
    model: Arc<dyn LanguageModel>,
    tasks: Arc<dyn TaskStore>,
    work: Arc<dyn Work>,
    servers: Option<&Servers>,
    memory: Option<&DatabaseMemory>,
) -> Result<Agent, CliError> {
    let memory = memory.filter(|_| !model.capabilities().weak_tools);
    let foreign = servers.map(Servers::tools).unwrap_or_default();
    let joined = if foreign.is_empty() {
        ""
    } else {
        FOREIGN_TOOLS
    };
    let about_memory = if memory.is_some() { MEMORY } else { "" };
    let instruction = instruction(settings, &[CONSTITUTION, about_memory], joined)?;
    let mut tools = task_tools(tasks);
    tools.extend(memory.map(memory::tools_in_database).unwrap_or_default());
    let tools = with_foreign(tools, foreign, &work);
    let policy = policy(settings, &names_of(&tools), servers)?;
    let limits = limits(settings, model.capabilities());
    let parts = Parts {
        name: "adjutant",
        description: "Manages a person's tasks.",
        instruction,
        tools,
        policy,
        limits,
    };
    let builder = builder(settings, model.clone(), parts, work.clone(), work)?;
    let Some(memory) = memory.filter(|_| settings.memory.told) else {
        return Ok(builder.build()?);
    };
    let told = ToldOfEach::new(memory.clone(), model);
    Ok(builder
        .turn_instruction(told.clone())
        .recall(told)
        .build()?)
}

/// The assistant of the terminal: one person, their tasks, their notes, their memory. A model that
/// cannot be trusted with free tool calls is the task assistant, with its few and simple tools,
/// here too, and has few and simple ones of the memory.
///
/// Also what the agent is told anew every turn; none for such a model.
///
/// # Errors
/// As [`agent`].
pub(crate) fn diana(
    settings: &Settings,
    model: Arc<dyn LanguageModel>,
    stores: &Stores,
    servers: Option<&Servers>,
    desk: &Desk,
) -> Result<(Agent, Option<Told>), CliError> {
    let weak = model.capabilities().weak_tools;
    let foreign = servers
        .filter(|_| !weak)
        .map(Servers::tools)
        .unwrap_or_default();
    let owner = (settings.user_name != NAMELESS).then_some(settings.user_name.as_str());
    let of_vault = if weak {
        memory::brief(desk, owner)
    } else {
        memory::tools(desk)
    };
    let has_vault = !of_vault.is_empty();
    let work: Arc<dyn Work> = stores.conversation.clone();
    let mut tools = task_tools(memory::task_store(settings, desk.memory(), stores)?);
    tools.extend(of_vault);
    let mut tools = with_foreign(tools, foreign, &work);
    // Before tools are taken away: a rule about one of them is none about nothing.
    let policy = policy(settings, &names_of(&tools), servers)?;
    let RunBounds { temp, no_tools, .. } = settings.bounds;
    tools.retain(|tool| !no_tools && (!temp || tool.definition().annotations.read_only));
    let joined = tools
        .iter()
        .any(|tool| tool.definition().name.as_str().contains("__"));
    let joined = if joined { FOREIGN_TOOLS } else { "" };
    let instruction = if weak {
        instruction(settings, &[CONSTITUTION], joined)?
    } else {
        let about_tasks = if no_tools { "" } else { DIANA_TASKS };
        let about_memory = match (has_vault, temp) {
            (_, true) => DIANA_TEMP,
            (true, false) if !no_tools => DIANA_VAULT,
            (_, false) => DIANA_NO_VAULT,
        };
        instruction(settings, &[DIANA, about_tasks, about_memory], joined)?
    };
    let limits = match weak {
        true => limits(settings, model.capabilities()),
        // Only the window bounds what one person says to their own assistant, unless they bound it.
        false => TurnLimits {
            message_chars_max: message_chars_max(settings),
            history_messages_max: None,
            summarize_at: settings.agent.summarize_at,
            ..limits(settings, model.capabilities())
        },
    };
    let description = "One person's assistant: tasks, notes, memory.";
    let parts = Parts {
        name: "diana",
        description,
        instruction,
        tools,
        policy,
        limits,
    };
    let builder = builder(settings, model.clone(), parts, work, stores.kept.clone())?;
    if weak {
        return Ok((builder.build()?, None));
    }
    let project = std::env::current_dir().unwrap_or_default();
    let places = desk
        .has_files()
        .then(|| Places::new(&settings.dirs, project));
    let told = Told::new(desk, settings.memory.told, places, model);
    Ok((
        builder
            .turn_instruction(told.clone())
            .recall(told.clone())
            .build()?,
        Some(told),
    ))
}

/// What makes one assistant different from another.
struct Parts {
    /// The name that people read; conversations are kept under [`store::agent_name`].
    name: &'static str,
    description: &'static str,
    instruction: String,
    tools: Vec<Arc<dyn Tool>>,
    policy: Policy,
    limits: TurnLimits,
}

/// An assistant whose conversations are kept in `work`, and what it spent in `spent`.
fn builder(
    settings: &Settings,
    model: Arc<dyn LanguageModel>,
    Parts {
        name,
        description,
        instruction,
        tools,
        policy,
        limits,
    }: Parts,
    work: Arc<dyn Work>,
    spent: Arc<dyn BudgetStore>,
) -> Result<AgentBuilder, CliError> {
    let config = GenerationConfig {
        temperature: settings.llm.temperature,
        max_tokens: settings.llm.max_tokens,
        ..GenerationConfig::default()
    };
    let read =
        |text| WeakTools::from_jsonl(text).map_err(|error| CliError::failed(error.to_string()));
    let examples = read(EXAMPLES)?.with_on_demand(read(EXAMPLES_OF_MEMORY)?);
    let mut agent = Agent::builder(store::agent_name())
        .display_name(name)
        .version(env!("CARGO_PKG_VERSION"))
        .description(description)
        .instruction(instruction)
        .tools(tools)
        .weak_tools(examples)
        .control_functions(settings.agent.control_functions)
        .policy(policy)
        .config(config)
        .prices(prices(settings)?)
        .limits(limits)
        .dyn_journal(work.clone(), work.clone(), work, store::worker(settings))
        .model(model);
    if settings.budgets != Budgets::default() {
        agent = agent.budgets(settings.budgets, spent);
    }
    Ok(agent)
}

/// Our own tools and those of other programs.
fn with_foreign(
    mut tools: Vec<Arc<dyn Tool>>,
    foreign: Vec<Arc<dyn Tool>>,
    work: &Arc<dyn Work>,
) -> Vec<Arc<dyn Tool>> {
    if !foreign.is_empty() {
        // Others may answer with more than a model's window holds.
        tools.push(Arc::new(ReadResult::new(work.clone())));
    }
    tools.extend(foreign);
    tools
}

fn names_of(tools: &[Arc<dyn Tool>]) -> Vec<&str> {
    tools
        .iter()
        .map(|tool| tool.definition().name.as_str())
        .collect()
}

/// The task assistant for people who call its tools themselves: the same gate, and a model that is
/// never asked.
///
/// # Errors
/// As [`agent`].
pub(crate) async fn agent_without_model(
    settings: &Settings,
    store: Arc<dyn Store>,
) -> Result<Agent, CliError> {
    agent_without_model_in(settings, &Stores::one(store)).await
}

/// The same over stores that may be two.
///
/// # Errors
/// As [`agent`], and as [`memory::own_task_store`].
pub(crate) async fn agent_without_model_in(
    settings: &Settings,
    stores: &Stores,
) -> Result<Agent, CliError> {
    let tasks = memory::own_task_store(settings, stores).await?;
    agent(settings, no_model(), tasks, stores.conversation.clone())
}

/// A model that is never asked.
pub(crate) fn no_model() -> Arc<dyn LanguageModel> {
    Arc::new(ScriptedModel::new([]))
}

/// Deny wins over confirm, confirm over allow, all over what a tool says of itself. What a server's
/// `confirm` asks for is confirmed, whatever is allowed.
pub(crate) fn policy(
    settings: &Settings,
    tools: &[&str],
    servers: Option<&Servers>,
) -> Result<Policy, CliError> {
    let lists = [
        ("agent.allow", &settings.agent.allow, Permission::Allow),
        (
            "agent.confirm",
            &settings.agent.confirm,
            Permission::Confirm,
        ),
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
            // What stands in the settings is said for every face; a tool of the memory may not be
            // here.
            let elsewhere = memory::TOOL_NAMES.contains(&name.as_str());
            if !elsewhere && !of_absent_server(name, settings, servers) {
                known_tool(name, tools).map_err(|error| error.because(format!("in {key}")))?;
            }
            policy = policy.rule(name, None, permission);
        }
    }
    Ok(policy)
}

/// Whether this is the name of a tool whose server is configured and not there: nobody can know
/// whether it has such a tool.
fn of_absent_server(name: &str, settings: &Settings, servers: Option<&Servers>) -> bool {
    let connected: Vec<ServerReport> = servers.map(Servers::report).unwrap_or_default();
    let absent = settings.mcp.iter().filter(|server| {
        !connected
            .iter()
            .any(|report| report.name == server.name && report.health == Health::Connected)
    });
    absent.into_iter().any(|server| {
        let prefix = server.name.as_str().to_ascii_lowercase().replace('-', "_");
        name.trim_start_matches('_')
            .starts_with(&format!("{prefix}__"))
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
    let usual = TurnLimits::for_model(capabilities);
    let set = &settings.agent;
    TurnLimits {
        tool_iterations_max: set.max_tool_iterations.unwrap_or(usual.tool_iterations_max),
        identical_calls_max: set.identical_calls_max.unwrap_or(usual.identical_calls_max),
        message_chars_max: message_chars_max(settings).or(usual.message_chars_max),
        long_message: set.long_message,
        tool_timeout: set.tool_timeout.unwrap_or(usual.tool_timeout),
        turn_deadline: set.turn_deadline.or(usual.turn_deadline),
        confirmation_expiry: set.confirmation_expiry.unwrap_or(usual.confirmation_expiry),
        ..usual
    }
}

/// The bound that the person set.
fn message_chars_max(settings: &Settings) -> Option<usize> {
    settings
        .agent
        .message_chars_max
        .and_then(|max| usize::try_from(max).ok())
}

/// The built-in prices, and before them the person's own.
fn prices(settings: &Settings) -> Result<Prices, CliError> {
    let Some(path) = &settings.prices_file else {
        return Ok(Prices::builtin());
    };
    let unusable = |cause: String| {
        CliError::configuration(format!("the prices {} cannot be used", path.display()))
            .because(cause)
            .or_try("prices_file in the configuration (adjutant config show --origin)")
    };
    let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    let own = toml::from_str(&text).map_err(|error| unusable(error.message().to_owned()))?;
    Ok(Prices::builtin().overridden_by(own))
}

/// The person's own text, else the built-in ones, and what is added to either.
fn instruction(settings: &Settings, built_in: &[&str], added: &str) -> Result<String, CliError> {
    let text = match &settings.system_prompt_path {
        None => built_in.concat(),
        Some(path) => std::fs::read_to_string(path).map_err(|error| {
            CliError::configuration(format!("the instruction {} cannot be read", path.display()))
                .because(error.to_string())
                .or_try("system_prompt_path in the configuration (adjutant config show --origin)")
        })?,
    };
    let name = match settings.user_name.as_str() {
        NAMELESS => "the person at this terminal",
        name => name,
    };
    let told = settings
        .told
        .as_ref()
        .map(|told| TOLD_FOR_RUN.replace(TOLD, told));
    Ok([
        &text.replace(USER_NAME, name),
        added,
        told.as_deref().unwrap_or_default(),
    ]
    .concat())
}
