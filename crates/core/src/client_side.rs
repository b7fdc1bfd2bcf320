//! Additions of the program that sends a message: tools that it executes itself, and context for
//! the turn.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::{CLIENT_CONTEXT_BYTES_MAX, CLIENT_TOOLS_BYTES_MAX, CLIENT_TOOLS_MAX};
use crate::message::{Content, Message};
use crate::registry::{RESERVED, ToolRegistry};
use crate::schema::Schema;
use crate::tool::{Annotations, ToolDefinition, ToolName};
use crate::tool_choice::ToolChoice;

/// Introduction of text that the sending program shows the model, such as its own instructions, a
/// page or a document.
pub const CLIENT_CONTEXT_INTRODUCTION: &str = include_str!("../../../prompts/client_context.md");

/// Returns the words of a message without text of the sending program.
#[must_use]
pub fn without_client_context(message: &Message) -> String {
    let introduction = CLIENT_CONTEXT_INTRODUCTION.trim_end();
    let texts = message
        .parts()
        .iter()
        .filter_map(|part| match &part.content {
            Content::Text { text } if !text.starts_with(introduction) => Some(text.as_str()),
            _ => None,
        });
    texts.collect()
}

/// A tool that the caller executes. The model may call it, and the turn waits until the caller
/// submits the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientTool {
    name: String,
    description: String,
    parameters: Value,
}

/// The reason for which a message's tools, tool choice or context are rejected, and the message
/// with them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidClientSide {
    /// Some provider would reject the tool's name.
    #[error("{name:?} is not a tool name: letters, digits, _ and - only, 1 to 64 of them")]
    Name {
        /// Name of the rejected tool.
        name: String,
    },
    /// The name is reserved for a control function of the turn.
    #[error("{name} is reserved: the turn uses it itself; choose another name for the tool")]
    Reserved {
        /// Name of the rejected tool.
        name: String,
    },
    /// The agent itself has a tool of that name.
    #[error("the agent has a tool {name} of its own; choose another name for yours")]
    OfTheAgent {
        /// Name of the rejected tool.
        name: String,
    },
    /// Two tools of the message have the same name.
    #[error("two tools are called {name}")]
    Duplicate {
        /// Name of the rejected tool.
        name: String,
    },
    /// The parameters are not a JSON Schema of an object, or cannot be validated in bounded time.
    #[error("the parameters of tool {name} are not a usable JSON Schema: {reason}")]
    Schema {
        /// Name of the rejected tool.
        name: String,
        /// Description of the error in the schema.
        reason: String,
    },
    /// The message has too many tools.
    #[error("there are {tools} tools; at most {max} are taken")]
    TooMany {
        /// Number of tools that the message has.
        tools: usize,
        /// Largest value that is accepted.
        max: usize,
    },
    /// The definitions or the context are too long.
    #[error("{what} takes {bytes} bytes; at most {max} are taken")]
    TooLarge {
        /// Description of the part that is too long.
        what: &'static str,
        /// Length of that part, in bytes.
        bytes: usize,
        /// Largest value that is accepted.
        max: usize,
    },
    /// The tool choice names a tool that the message does not have.
    #[error(
        "the tool {name} is to be called, and there is none of that name among the tools of the message"
    )]
    UnknownChoice {
        /// Name of the rejected tool.
        name: String,
    },
    /// The tool choice requires a call, and there are no tools.
    #[error("a tool is to be called, and the message brings none")]
    NothingToChoose,
    /// The model has constrained tool calling, which covers the agent's own tools only.
    #[error(
        "{model} cannot call tools of others: leave them out, or choose another model for the agent"
    )]
    WeakModel {
        /// Model that the agent is built with.
        model: crate::id::ModelId,
    },
}

impl ClientTool {
    /// Creates a tool from its definition. A blank description is replaced by a statement of who
    /// executes it; without parameters it takes none.
    ///
    /// # Errors
    ///
    /// [`InvalidClientSide`] for a name that a provider would reject, a reserved name, or
    /// parameters that are not a JSON Schema of an object or cannot be validated in bounded time.
    pub fn new(
        name: impl Into<String>,
        description: &str,
        parameters: Option<Value>,
    ) -> Result<Self, InvalidClientSide> {
        let name = name.into();
        let fits = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if !fits || !(1..=64).contains(&name.len()) {
            return Err(InvalidClientSide::Name { name });
        }
        // A call of it would be taken for one of the turn's own functions.
        if RESERVED.contains(&name.as_str()) {
            return Err(InvalidClientSide::Reserved { name });
        }
        let parameters =
            parameters.unwrap_or_else(|| serde_json::json!({ "type": "object", "properties": {} }));
        // Providers take nothing else for the parameters of a tool.
        if parameters.get("type").and_then(Value::as_str) != Some("object") {
            let reason = "its type must be \"object\"".to_owned();
            return Err(InvalidClientSide::Schema { name, reason });
        }
        let description = match description.trim() {
            "" => format!("{name}, a tool of the program that the person uses."),
            words => words.to_owned(),
        };
        let tool = Self {
            name,
            description,
            parameters,
        };
        check_bytes(
            "the definition of a tool",
            tool.bytes(),
            CLIENT_TOOLS_BYTES_MAX,
        )?;
        // Compiled for the error alone; the turn compiles it from what is recorded.
        tool.schema()?;
        Ok(tool)
    }

    /// Returns the name of the tool.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn bytes(&self) -> usize {
        self.name.len() + self.description.len() + self.parameters.to_string().len()
    }

    fn schema(&self) -> Result<Schema, InvalidClientSide> {
        Schema::compile(&self.parameters).map_err(|error| InvalidClientSide::Schema {
            name: self.name.clone(),
            reason: error.to_string(),
        })
    }

    /// Returns the definition for models, or `None` if the name cannot be part of a request.
    fn definition(&self) -> Option<ToolDefinition> {
        Some(ToolDefinition {
            // Tools of other programs may have capital letters and hyphens, which the agent's own
            // cannot have.
            name: ToolName::foreign(self.name.clone()).ok()?,
            description: self.description.clone(),
            parameters: self.parameters.clone(),
            annotations: Annotations::default(),
            references: Vec::new(),
            output_schema: None,
            intent: None,
        })
    }
}

/// The tools and context that a program adds to its message: see
/// [`InputBody::Message`](crate::InputBody::Message). They are recorded with the turn and hold for
/// all of it, whichever worker runs it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientSide {
    /// Tools that the program executes, offered together with the agent's own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ClientTool>,
    /// Tool choice until results bring another one. Default: [`ToolChoice::Auto`].
    #[serde(skip_serializing_if = "ToolChoice::is_auto")]
    pub choice: ToolChoice,
    /// True if the model may call only one of these tools at a time, so that a second call is
    /// refused. Default: false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub one_at_a_time: bool,
    /// Context for the model, in front of the person's message. Not part of the message: later
    /// turns do not contain it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub context: String,
}

impl ClientSide {
    /// Returns true if the program shows the model something beside the person's message.
    #[must_use]
    pub fn has_context(&self) -> bool {
        !self.context.trim().is_empty()
    }

    /// Validates tools, choice and context together with the agent's own tools.
    ///
    /// # Errors
    ///
    /// [`InvalidClientSide`] for the first problem.
    pub fn check(&self, own: &ToolRegistry) -> Result<(), InvalidClientSide> {
        if self.tools.len() > CLIENT_TOOLS_MAX {
            return Err(InvalidClientSide::TooMany {
                tools: self.tools.len(),
                max: CLIENT_TOOLS_MAX,
            });
        }
        let bytes = self.tools.iter().map(ClientTool::bytes).sum();
        check_bytes("what defines the tools", bytes, CLIENT_TOOLS_BYTES_MAX)?;
        check_bytes("the context", self.context.len(), CLIENT_CONTEXT_BYTES_MAX)?;
        for (at, tool) in self.tools.iter().enumerate() {
            let name = tool.name.clone();
            if own.has(&name) {
                return Err(InvalidClientSide::OfTheAgent { name });
            }
            if self.tools.iter().take(at).any(|before| before.name == name) {
                return Err(InvalidClientSide::Duplicate { name });
            }
        }
        match &self.choice {
            ToolChoice::Required if self.tools.is_empty() => {
                Err(InvalidClientSide::NothingToChoose)
            }
            ToolChoice::Named(name) if !self.tools.iter().any(|tool| tool.name == *name) => {
                Err(InvalidClientSide::UnknownChoice { name: name.clone() })
            }
            _ => Ok(()),
        }
    }
}

fn check_bytes(what: &'static str, bytes: usize, max: usize) -> Result<(), InvalidClientSide> {
    if bytes > max {
        return Err(InvalidClientSide::TooLarge { what, bytes, max });
    }
    Ok(())
}

/// The caller's tools in a turn, with compiled schemas. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ClientTools {
    tools: Arc<[(ToolDefinition, Schema)]>,
    one_at_a_time: bool,
}

impl ClientTools {
    /// Compiles the tools that are recorded with a turn.
    ///
    /// # Errors
    ///
    /// [`InvalidClientSide`] if another version accepted a tool that this one cannot use.
    pub fn compile(client: &ClientSide) -> Result<Self, InvalidClientSide> {
        // Both were checked when the message was accepted, perhaps by another version.
        let compiled = |tool: &ClientTool| {
            let name = || InvalidClientSide::Name {
                name: tool.name.clone(),
            };
            Ok((tool.definition().ok_or_else(name)?, tool.schema()?))
        };
        let tools = client
            .tools
            .iter()
            .map(compiled)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            tools,
            one_at_a_time: client.one_at_a_time,
        })
    }

    /// Returns true if the caller has no tools.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns true if one of the tools has this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns true if only one tool may be called at a time.
    #[must_use]
    pub fn one_at_a_time(&self) -> bool {
        self.one_at_a_time
    }

    /// Returns true if the tool choice is possible with these tools.
    #[must_use]
    pub fn has_choice(&self, choice: &ToolChoice) -> bool {
        match choice {
            ToolChoice::Named(name) => self.has(name),
            ToolChoice::Auto | ToolChoice::None | ToolChoice::Required => true,
        }
    }

    /// Returns the definitions for models, in order.
    pub fn definitions(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.tools.iter().map(|(definition, _)| definition)
    }

    pub(crate) fn get(&self, name: &str) -> Option<(&ToolDefinition, &Schema)> {
        let (definition, schema) = self
            .tools
            .iter()
            .find(|(tool, _)| tool.name.as_str() == name)?;
        Some((definition, schema))
    }
}
