//! `adjutant mcp test`, `trust-reads`, `prompts` and `resources`: one server, started for the
//! question.

use std::collections::BTreeSet;

use adjutant_core::{nearest, visible};
use adjutant_mcp::client::{
    Health, Pins as _, ServerConfig, ServerName, ServerReport, Servers, StartError,
};
use serde_json::{Map, Value, json};

use crate::command::output::lines;
use crate::command::tools::{print_server, server_json};
use crate::config::Settings;
use crate::error::{CliError, Exit};
use crate::mcp_servers::pins::PinFiles;
use crate::mcp_servers::{client_options, log};
use crate::terminal::display::{clean_line, clip, json_line};
use crate::terminal::render::live::Status;
use crate::terminal::screen::Screen;
use crate::terminal::yes_no::require_yes;

/// Most characters of a description in a list.
const DESCRIPTION_MAX: usize = 80;

/// Starts a server, shows its tools and what they cost, and ends it. Nothing is agreed to.
///
/// # Errors
/// There is no such server, or it does not start.
pub(super) async fn test(
    settings: &Settings,
    screen: &Screen,
    server: &str,
) -> Result<Exit, CliError> {
    let (servers, name) = start(settings, screen, server).await?;
    let report = servers.report().pop();
    let told = servers.instructions().pop();
    servers.stop().await;
    let report = report.ok_or_else(|| unknown(settings, server))?;
    if report.health != Health::Connected {
        return Err(
            CliError::failed(format!("the MCP server {name} does not start"))
                .because(reason(&report))
                .or_try(format!("adjutant -v mcp test {name}    shows what it says")),
        );
    }
    if screen.json() {
        let mut shown = server_json(&report);
        shown["instructions"] = json!(told.map(|(_, text)| text));
        let tools = report.tools.iter().map(|tool| {
            json!({
                "name": tool.name, "original_name": tool.original, "title": tool.title,
                "tokens": tool.tokens, "read_only": tool.annotations.read_only,
                "destructive": tool.annotations.destructive,
            })
        });
        shown["tools"] = tools.collect();
        screen.answer_json(&shown);
        return Ok(Exit::Ok);
    }
    print_server(screen, &report);
    for tool in &report.tools {
        let nature = match (tool.annotations.read_only, tool.annotations.destructive) {
            (true, _) => "reads",
            (false, true) => "asks",
            (false, false) => "changes",
        };
        let original = clip(&tool.original, 60);
        print(
            screen,
            &format!("  {:7} {:>6} tokens  {original}", nature, tool.tokens),
        );
    }
    for warning in &report.warnings {
        print(screen, &format!("  {warning}"));
    }
    if let Some((_, text)) = told {
        print(
            screen,
            &format!("  It tells the model: {}", clip(&text, 1_000)),
        );
    }
    Ok(Exit::Ok)
}

/// Lets tools run without asking whose names say that they only read, or takes it back.
///
/// # Errors
/// There is no such server, its tools were never accepted, or the person says no.
pub(super) async fn trust_reads(
    settings: &Settings,
    screen: &Screen,
    server: &str,
    revoke: bool,
    yes: bool,
) -> Result<Exit, CliError> {
    let config = find(settings, server)?;
    let (name, pins) = (&config.name, PinFiles::listing(settings));
    let pinned = pins
        .load(name)
        .map_err(|reason| CliError::failed("what was agreed to cannot be read").because(reason))?;
    let Some(mut pinned) = pinned.filter(|pinned| pinned.place == config.place()) else {
        return Err(CliError::failed(format!(
            "the tools of the MCP server {name} were not accepted yet"
        ))
        .or_try(format!("adjutant tools accept {name}")));
    };
    let reads = match revoke {
        true => BTreeSet::new(),
        false => pinned.unannotated_reads(&config.rules),
    };
    if !revoke && reads.is_empty() {
        screen.note(&format!(
            "{name} leaves no tool open that only reads by its name"
        ));
        return Ok(Exit::Ok);
    }
    let named: Vec<&str> = reads.iter().map(String::as_str).collect();
    if !revoke && !yes {
        let question = format!(
            "Let these tools of {name} run without asking? {}",
            named.join(", ")
        );
        let needed = CliError::confirmation_needed("to let tools run without asking needs a yes");
        let question = visible(&question);
        require_yes(
            screen,
            &question,
            needed.or_try("run it again with -y"),
            "they ask as before",
        )
        .await?;
    }
    let named = named.join(", ");
    pinned.trusted_reads = Some(reads.clone());
    pins.write(name, &pinned)
        .map_err(|reason| CliError::failed("the answer cannot be kept").because(reason))?;
    screen.result(
        &json!({ "server": name.as_str(), "trusted_reads": reads }),
        || match revoke {
            true => {
                format!("The tools of {name} ask again, unless it says itself that they only read.")
            }
            false => format!("These tools of {name} run without asking: {named}."),
        },
    );
    Ok(Exit::Ok)
}

/// Lists the prompts of a server, or prints the messages of one.
///
/// # Errors
/// There is no such server or prompt, or it does not answer.
pub(super) async fn prompts(
    settings: &Settings,
    screen: &Screen,
    server: &str,
    prompt: Option<String>,
    arguments: &[String],
) -> Result<Exit, CliError> {
    let arguments = arguments
        .iter()
        .map(|argument| match argument.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), Value::from(value))),
            None => Err(CliError::usage(format!("{argument:?} is no NAME=VALUE"))),
        });
    let arguments = arguments.collect::<Result<Map<String, Value>, _>>()?;
    let (servers, name) = connected(settings, screen, server).await?;
    let answer = match &prompt {
        Some(prompt) => servers.prompt(&name, prompt, arguments).await,
        None => servers.prompts(&name).await.map(Value::from),
    };
    servers.stop().await;
    let answer = answer.map_err(|reason| failed(&name, reason))?;
    screen.result(&answer, || match &prompt {
        Some(_) => messages(&answer),
        None => entries(&answer, "This server offers no prompts.", prompt_line),
    });
    Ok(Exit::Ok)
}

/// Lists the resources of a server, or prints one.
///
/// # Errors
/// There is no such server or resource, or it does not answer.
pub(super) async fn resources(
    settings: &Settings,
    screen: &Screen,
    server: &str,
    uri: Option<String>,
) -> Result<Exit, CliError> {
    let (servers, name) = connected(settings, screen, server).await?;
    let answer = match &uri {
        Some(uri) => servers.resource(&name, uri).await,
        None => servers.resources(&name).await.map(Value::from),
    };
    servers.stop().await;
    let answer = answer.map_err(|reason| failed(&name, reason))?;
    screen.result(&answer, || match &uri {
        Some(_) => contents(&answer),
        None => entries(&answer, "This server offers no resources.", resource_line),
    });
    Ok(Exit::Ok)
}

/// Finds a configured server.
fn find<'a>(settings: &'a Settings, server: &str) -> Result<&'a ServerConfig, CliError> {
    let mut configured = settings.mcp.iter();
    let found = configured.find(|config| config.name.as_str() == server);
    found.ok_or_else(|| unknown(settings, server))
}

fn unknown(settings: &Settings, server: &str) -> CliError {
    let names = settings.mcp.iter().map(|config| config.name.as_str());
    let error = CliError::unknown(format!(
        "there is no MCP server {server:?} in the configuration"
    ));
    error.or_try(match nearest(server, names) {
        Some(near) => format!("{near}, if that is what you mean"),
        None => "adjutant mcp list    lists them".to_owned(),
    })
}

/// Starts one server alone, without agreeing to its tools.
async fn start(
    settings: &Settings,
    screen: &Screen,
    server: &str,
) -> Result<(Servers, ServerName), CliError> {
    let config = ServerConfig {
        // A disabled server is looked at before it is used; one that does not start has its report.
        disabled: false,
        required: false,
        ..find(settings, server)?.clone()
    };
    let (name, pins) = (config.name.clone(), PinFiles::listing(settings));
    let mut options = client_options(std::slice::from_ref(&config), log(screen.verbose()), &pins)?;
    // As it is now, whatever was agreed to.
    options.pins = None;
    if !screen.verbose() {
        screen.live(&Status::new(format!("starting {name}")), "");
    }
    let started = Servers::start(vec![config], options).await;
    screen.end_live();
    let servers = started.map_err(|error: StartError| CliError::from(error))?;
    Ok((servers, name))
}

/// Starts one server alone, and fails if it does not start.
async fn connected(
    settings: &Settings,
    screen: &Screen,
    server: &str,
) -> Result<(Servers, ServerName), CliError> {
    let (servers, name) = start(settings, screen, server).await?;
    match servers.report().pop() {
        Some(report) if report.health != Health::Connected => {
            servers.stop().await;
            let error = CliError::failed(format!("the MCP server {name} does not start"));
            Err(error.because(reason(&report)))
        }
        Some(_) | None => Ok((servers, name)),
    }
}

fn reason(report: &ServerReport) -> String {
    match &report.health {
        Health::Failed { reason } => reason.clone(),
        other => other.to_string(),
    }
}

fn failed(server: &ServerName, reason: String) -> CliError {
    CliError::failed(format!("the MCP server {server} gave no answer")).because(reason)
}

fn print(screen: &Screen, line: &str) {
    screen.answer_line(&clean_line(&visible(line)));
}

fn entries(answer: &Value, none: &str, line: fn(&Value) -> String) -> String {
    match answer.as_array().map(Vec::as_slice) {
        Some([]) | None => none.to_owned(),
        Some(entries) => lines(entries, |entry| clean_line(&visible(&line(entry)))),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn prompt_line(prompt: &Value) -> String {
    let arguments = prompt["arguments"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let arguments: String = arguments
        .iter()
        .map(|argument| match argument["required"] == true {
            true => format!(" {}=…", text(argument, "name")),
            false => format!(" [{}=…]", text(argument, "name")),
        })
        .collect();
    let description = clip(text(prompt, "description"), DESCRIPTION_MAX);
    format!("{}{arguments}  {description}", text(prompt, "name"))
}

fn resource_line(resource: &Value) -> String {
    let address = match text(resource, "uri") {
        "" => text(resource, "uriTemplate"),
        uri => uri,
    };
    let title = match text(resource, "title") {
        "" => text(resource, "name"),
        title => title,
    };
    format!("{address}  {}", clip(title, DESCRIPTION_MAX))
}

/// Returns the messages of a prompt as text.
fn messages(prompt: &Value) -> String {
    let messages = prompt["messages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let said = lines(messages, |message| {
        let content = &message["content"];
        let said = match content["text"].as_str() {
            Some(text) => text.to_owned(),
            None => json_line(content),
        };
        format!("{}: {said}", text(message, "role"))
    });
    visible(&said)
}

/// Returns the contents of a resource as text; binary ones as their size.
fn contents(resource: &Value) -> String {
    let contents = resource["contents"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let shown = lines(contents, |content| match content["text"].as_str() {
        Some(text) => text.to_owned(),
        None => format!(
            "{} ({}), {} characters of base64",
            text(content, "uri"),
            text(content, "mimeType"),
            text(content, "blob").len()
        ),
    });
    visible(&shown)
}
