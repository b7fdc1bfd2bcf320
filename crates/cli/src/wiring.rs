//! Builds agents from settings, model, store, tools, policy and limits.

use std::sync::Arc;

use adjutant_core::port::BudgetStore;
use adjutant_core::{
    Budgets, Capabilities, GenerationConfig, LanguageModel, Permission, Policy, Tool, ToolName,
    TurnLimits, nearest,
};
use adjutant_mcp::client::{Health, ServerReport, Servers, matches_name};
use adjutant_memory::DatabaseMemory;
use adjutant_providers::scripted::ScriptedModel;
use adjutant_runtime::{Agent, AgentBuilder, Prices};
use adjutant_tools::TaskStore;
use adjutant_tools::{ReadResult, task_tools};
use adjutant_weak::WeakTools;

use crate::config::{DEFAULT_USER_NAME, RunBounds, Settings, read_named_text};
use crate::error::CliError;
use crate::instructions::Locations;
use crate::memory::{self, DatabaseRecall, UserInstruction, UserMemory};
use crate::store::{self, Store, Stores, Work};

/// Instruction of the task assistant.
const CONSTITUTION: &str = include_str!("../../../prompts/constitution.md");

/// Addition if facts are kept in the database.
const MEMORY: &str = include_str!("../../../prompts/memory.md");
/// The same for a small context window.
const MEMORY_BRIEF: &str = include_str!("../../../prompts/memory_brief.md");

/// Addition for models that write texts themselves: dates in tasks, and that nothing rings.
const DATES: &str = include_str!("../../../prompts/dates.md");

/// Instruction of the terminal's assistant, and additions for her abilities.
const DIANA: &str = include_str!("../../../prompts/diana.md");
const DIANA_TASKS: &str = include_str!("../../../prompts/diana_tasks.md");
const DIANA_VAULT: &str = include_str!("../../../prompts/diana_vault.md");
const DIANA_NO_NOTES: &str = include_str!("../../../prompts/diana_no_notes.md");
const DIANA_NO_MEMORY: &str = include_str!("../../../prompts/diana_no_memory.md");
const DIANA_TEMP: &str = include_str!("../../../prompts/diana_temp.md");

/// Addition if tools of MCP servers are available.
const FOREIGN_TOOLS: &str = include_str!("../../../prompts/foreign_tools.md");
const FOREIGN_INSTRUCTIONS: &str = include_str!("../../../prompts/foreign_instructions.md");

/// Context windows below this many tokens are small: the tools of facts and their rules take 1,000
/// tokens, which a conversation there needs itself, so that a shorter form of both is used.
const SMALL_WINDOW: u32 = 8_192;

/// Examples of tool calls for weak models.
const EXAMPLES: &str = include_str!("../../../prompts/weak/todo.jsonl");
const EXAMPLES_OF_MEMORY: &str = include_str!("../../../prompts/weak/memory.jsonl");
const EXAMPLES_SCORED: &str = include_str!("../../../prompts/weak/scored.jsonl");

/// Addition that contains the text of `--role` and `--system`.
const FOR_RUN: &str = include_str!("../../../prompts/told_for_run.md");

/// Placeholder of that text.
const FOR_RUN_TEXT: &str = "{{text}}";

/// Placeholder of the setting `user_name` in an instruction.
const USER_NAME: &str = "{{user_name}}";

/// Builds the task assistant with tasks and conversations in two stores.
///
/// # Errors
/// A setting names a tool that does not exist, or the instruction's file cannot be read.
pub(crate) fn agent(
    settings: &Settings,
    model: Arc<dyn LanguageModel>,
    tasks: Arc<dyn TaskStore>,
    work: Arc<dyn Work>,
) -> Result<Agent, CliError> {
    agent_with(settings, model, tasks, work, None, None)
}

/// Builds the task assistant with tools of MCP servers and a memory for each user. A weak model
/// gets no facts that it did not ask for.
///
/// # Errors
/// Those of [`agent`].
pub(crate) fn agent_with(
    settings: &Settings,
    model: Arc<dyn LanguageModel>,
    tasks: Arc<dyn TaskStore>,
    work: Arc<dyn Work>,
    servers: Option<&Servers>,
    memory: Option<&DatabaseMemory>,
) -> Result<Agent, CliError> {
    let weak = model.capabilities().weak_tools;
    let foreign = servers.map(Servers::tools).unwrap_or_default();
    let about_servers = &about_servers(&foreign, servers);
    let about_memory = match memory {
        Some(_) if !weak => rules_of_facts(&*model),
        _ => "",
    };
    // With constrained tool calling the words of a task are the person's.
    let about_dates = if weak { "" } else { DATES };
    let built_in = [CONSTITUTION, about_dates, about_memory];
    let instruction = instruction(settings, &built_in, about_servers)?;
    let mut tools = task_tools(tasks);
    if let Some(memory) = memory {
        tools.extend(memory::tools_in_database(
            memory,
            weak || has_small_window(&*model),
        ));
    }
    let tools = with_foreign(tools, foreign, &work, weak);
    let policy = policy(settings, &names_of(&tools), servers)?;
    let builder = builder(settings, model.clone(), work.clone(), work)?
        .display_name("adjutant")
        .description("Manages a person's tasks.")
        .instruction(instruction)
        .tools(tools)
        .policy(policy)
        .limits(limits(settings, model.capabilities()));
    let Some(memory) = memory.filter(|_| settings.memory.automatic_recall && !weak) else {
        return Ok(builder.build()?);
    };
    let recall = DatabaseRecall::new(memory.clone(), model);
    Ok(builder
        .turn_instruction(recall.clone())
        .recall(recall)
        .build()?)
}

/// Builds the terminal's assistant, with tasks, notes and memory of one user. A weak model gets the
/// task assistant with a few memory tools instead.
///
/// Also returns the parts of the instruction that are made for every turn; `None` for a weak model.
///
/// # Errors
/// Those of [`agent`].
pub(crate) fn diana(
    settings: &Settings,
    model: Arc<dyn LanguageModel>,
    stores: &Stores,
    servers: Option<&Servers>,
    user_memory: &UserMemory,
) -> Result<(Agent, Option<UserInstruction>), CliError> {
    let weak = model.capabilities().weak_tools;
    let foreign = servers.map(Servers::tools).unwrap_or_default();
    let owner = (settings.user_name != DEFAULT_USER_NAME).then_some(settings.user_name.as_str());
    let has_vault = user_memory.vault().is_some();
    let of_memory = if weak || (has_small_window(&*model) && !has_vault) {
        memory::brief(user_memory, owner)
    } else {
        memory::tools(user_memory)
    };
    let has_memory = !of_memory.is_empty() && !settings.bounds.no_tools;
    let work: Arc<dyn Work> = stores.conversation.clone();
    let mut tools = task_tools(memory::task_store(settings, user_memory.memory(), stores)?);
    tools.extend(of_memory);
    let mut tools = with_foreign(tools, foreign, &work, weak);
    // Before tools are removed for this run, so that a rule for one of them is no error.
    let policy = policy(settings, &names_of(&tools), servers)?;
    let RunBounds { temp, no_tools, .. } = settings.bounds;
    tools.retain(|tool| !no_tools && (!temp || tool.definition().annotations.read_only));
    let about_servers = &about_servers(&tools, servers);
    let instruction = if weak {
        instruction(settings, &[CONSTITUTION], about_servers)?
    } else {
        let [about_tasks, about_dates] = match no_tools {
            true => ["", ""],
            false => [DIANA_TASKS, DATES],
        };
        let about_memory: &[&str] = match (user_memory.vault(), has_memory) {
            _ if temp => &[DIANA_TEMP],
            (Some(_), true) => &[DIANA_VAULT],
            (None, true) => &[rules_of_facts(&*model), DIANA_NO_NOTES],
            (_, false) => &[DIANA_NO_MEMORY],
        };
        let parts = [&[DIANA, about_tasks, about_dates], about_memory].concat();
        instruction(settings, &parts, about_servers)?
    };
    let limits = match weak {
        true => limits(settings, model.capabilities()),
        // The context window is the only limit for a user's own assistant, unless they set one.
        false => TurnLimits {
            message_chars_max: message_chars_max(settings),
            history_messages_max: history_messages_max(settings, None),
            ..limits(settings, model.capabilities())
        },
    };
    let builder = builder(settings, model.clone(), work, stores.kept.clone())?
        .display_name("diana")
        .description("One person's assistant: tasks, notes, memory.")
        .instruction(instruction)
        .tools(tools)
        .policy(policy)
        .limits(limits);
    if weak {
        return Ok((builder.build()?, None));
    }
    let project = std::env::current_dir().unwrap_or_default();
    let locations = user_memory
        .has_files()
        .then(|| Locations::new(&settings.dirs, project));
    let for_turn = UserInstruction::new(
        user_memory,
        settings.memory.automatic_recall,
        locations,
        model,
    );
    let builder = builder
        .turn_instruction(for_turn.clone())
        .recall(for_turn.clone());
    Ok((builder.build()?, Some(for_turn)))
}

/// Returns the part of the instruction about facts in the database.
fn rules_of_facts(model: &dyn LanguageModel) -> &'static str {
    match has_small_window(model) {
        true => MEMORY_BRIEF,
        false => MEMORY,
    }
}

fn has_small_window(model: &dyn LanguageModel) -> bool {
    model.capabilities().context_window < SMALL_WINDOW
}

/// Returns the builder of an assistant with what both have, with conversations in `work` and
/// spending in `spent`. Conversations of both are kept under [`store::agent_name`].
fn builder(
    settings: &Settings,
    model: Arc<dyn LanguageModel>,
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
    let examples = read(EXAMPLES)?
        .with_on_demand(read(EXAMPLES_OF_MEMORY)?)
        .with_scored(read(EXAMPLES_SCORED)?);
    let mut agent = Agent::builder(store::agent_name())
        .version(env!("CARGO_PKG_VERSION"))
        .weak_tools(examples)
        .control_functions(settings.agent.control_functions)
        .report_failed_calls(true)
        .claims_change(adjutant_weak::claims_a_change)
        .ask_after_lost_commits(settings.agent.ask_after_lost_commits)
        .config(config)
        .prices(prices(settings)?)
        .user_settings(work.clone())
        .dyn_journal(work.clone(), work.clone(), work, store::worker(settings))
        .model(model);
    if settings.budgets != Budgets::default() {
        agent = agent.budgets(settings.budgets, spent);
    }
    Ok(agent)
}

/// Joins built-in tools with those of MCP servers.
fn with_foreign(
    mut tools: Vec<Arc<dyn Tool>>,
    foreign: Vec<Arc<dyn Tool>>,
    work: &Arc<dyn Work>,
    weak: bool,
) -> Vec<Arc<dyn Tool>> {
    if !foreign.is_empty() && !weak {
        // MCP tools may return more than a context window holds; this tool reads a long result in
        // parts. A weak model has one round of calls, and reads no results.
        tools.push(Arc::new(ReadResult::new(work.clone())));
    }
    tools.extend(foreign);
    tools
}

/// Returns the addition to an instruction if a tool of an MCP server is among these tools: its name
/// begins with the server's name and two underscores. What the servers say about their tools is
/// marked as their words.
fn about_servers(tools: &[Arc<dyn Tool>], servers: Option<&Servers>) -> String {
    let is_foreign = |name: &str| name.contains("__");
    if !names_of(tools).into_iter().any(is_foreign) {
        return String::new();
    }
    let said = servers.map(Servers::instructions).unwrap_or_default();
    let mut about = FOREIGN_TOOLS.to_owned();
    if !said.is_empty() {
        about.push_str(FOREIGN_INSTRUCTIONS);
    }
    for (server, text) in said {
        // The text must not end its own mark.
        let text = text.replace("</", "< /");
        about.push_str(&format!(
            "<program name=\"{server}\">\n{text}\n</program>\n"
        ));
    }
    about
}

fn names_of(tools: &[Arc<dyn Tool>]) -> Vec<&str> {
    tools
        .iter()
        .map(|tool| tool.definition().name.as_str())
        .collect()
}

/// Builds the task assistant for commands that call tools directly: the same gate, and a model that
/// is never called.
///
/// # Errors
/// Those of [`agent`].
pub(crate) async fn agent_without_model(
    settings: &Settings,
    store: Arc<dyn Store>,
) -> Result<Agent, CliError> {
    agent_without_model_in(settings, &Stores::shared(store)).await
}

/// Like [`agent_without_model`], with stores that may differ.
///
/// # Errors
/// Those of [`agent`] and [`memory::own_task_store`].
pub(crate) async fn agent_without_model_in(
    settings: &Settings,
    stores: &Stores,
) -> Result<Agent, CliError> {
    let tasks = memory::own_task_store(settings, stores).await?;
    agent(settings, no_model(), tasks, stores.conversation.clone())
}

/// Returns a model that is never called.
pub(crate) fn no_model() -> Arc<dyn LanguageModel> {
    Arc::new(ScriptedModel::new([]))
}

/// Builds the policy: deny overrides confirm, confirm overrides allow, and all override a tool's
/// own class. A server's `confirm` cannot be overridden by allow.
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
        // Between confirm and deny: a server's own confirmations override what the user allows, and
        // yield to what they deny.
        if permission == Permission::Deny
            && let Some(servers) = servers
        {
            policy = servers.require_confirmations(policy);
        }
        for name in names {
            // A pattern is the names that it matches; `*` alone is all tools, and no name.
            if name != "*" && name.contains('*') {
                let matching = tools.iter().filter(|tool| matches_name(name, tool));
                let matching: Vec<&str> = matching.copied().collect();
                if matching.is_empty() && !of_absent_server(name, settings, servers) {
                    return Err(CliError::configuration(format!(
                        "there is no tool that {name:?} matches"
                    ))
                    .because(format!("in {key}")));
                }
                policy = matching
                    .into_iter()
                    .fold(policy, |policy, tool| policy.rule(tool, None, permission));
                continue;
            }
            // Settings apply to all commands; a memory tool may be missing in this one.
            let elsewhere = memory::TOOL_NAMES.contains(&name.as_str());
            if !elsewhere && !of_absent_server(name, settings, servers) {
                known_tool(name, tools).map_err(|error| error.because(format!("in {key}")))?;
            }
            policy = policy.rule(name, None, permission);
        }
    }
    Ok(policy)
}

/// Returns true for a tool name of a configured server that is not running, whose tools cannot be
/// known.
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

/// Checks that a tool exists; `*` stands for all.
///
/// # Errors
/// It does not; the nearest name is suggested.
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

/// Returns the names of an agent's tools.
pub(crate) fn tool_names(agent: &Agent) -> Vec<&str> {
    agent.tools().names().map(ToolName::as_str).collect()
}

fn limits(settings: &Settings, capabilities: &Capabilities) -> TurnLimits {
    let usual = TurnLimits::for_model(capabilities);
    let set = &settings.agent;
    TurnLimits {
        tool_iterations_max: set.max_tool_iterations.unwrap_or(usual.tool_iterations_max),
        parallel_tools_max: set.max_parallel_tools.unwrap_or(usual.parallel_tools_max),
        identical_calls_max: set.identical_calls_max.unwrap_or(usual.identical_calls_max),
        message_chars_max: message_chars_max(settings)
            .or_else(|| Some(TurnLimits::long_message_chars_max(capabilities))),
        long_message: set.long_message,
        history_messages_max: history_messages_max(settings, usual.history_messages_max),
        summarize_at: set.summarize_at,
        tool_timeout: set.tool_timeout.unwrap_or(usual.tool_timeout),
        turn_deadline: set.turn_deadline.or(usual.turn_deadline),
        confirmation_expiry: set.confirmation_expiry.unwrap_or(usual.confirmation_expiry),
        ..usual
    }
}

/// Returns the limit that the user set.
fn message_chars_max(settings: &Settings) -> Option<usize> {
    settings
        .agent
        .message_chars_max
        // A number beyond the address space limits nothing.
        .and_then(|max| usize::try_from(max).ok())
}

/// Returns the limit that the user set, where 0 is none, else the usual one.
fn history_messages_max(settings: &Settings, usual: Option<usize>) -> Option<usize> {
    match settings.agent.history_messages_max {
        None => usual,
        Some(max) => usize::try_from(max).ok().filter(|max| *max > 0),
    }
}

/// Returns the built-in prices, overridden by the user's.
fn prices(settings: &Settings) -> Result<Prices, CliError> {
    let Some(path) = &settings.prices_file else {
        return Ok(Prices::builtin());
    };
    let unusable = |cause: String| {
        CliError::configuration(format!("the prices {} cannot be used", path.display()))
            .because(cause)
            .or_try("prices_file in the configuration (adjutant config show --origin)")
    };
    let text = read_named_text(path).map_err(|error| unusable(error.to_string()))?;
    let own = toml::from_str(&text).map_err(|error| unusable(error.message().to_owned()))?;
    Ok(Prices::builtin().overridden_by(own))
}

/// Returns the user's instruction, else the built-in one, with what is added to either.
fn instruction(settings: &Settings, built_in: &[&str], added: &str) -> Result<String, CliError> {
    let text = match &settings.system_prompt_path {
        None => built_in.concat(),
        Some(path) => read_named_text(path).map_err(|error| {
            CliError::configuration(format!("the instruction {} cannot be read", path.display()))
                .because(error.to_string())
                .or_try("system_prompt_path in the configuration (adjutant config show --origin)")
        })?,
    };
    let name = match settings.user_name.as_str() {
        DEFAULT_USER_NAME => "the person at this terminal",
        name => name,
    };
    let for_run = match &settings.extra_instructions {
        Some(text) => FOR_RUN.replace(FOR_RUN_TEXT, text),
        None => String::new(),
    };
    Ok([&text.replace(USER_NAME, name), added, &for_run].concat())
}
