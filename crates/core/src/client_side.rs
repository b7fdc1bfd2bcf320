//! The client side of a message: tools that the sending program executes itself and context, for
//! the turn that answers it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::{CLIENT_CONTEXT_BYTES_MAX, CLIENT_TOOLS_BYTES_MAX, CLIENT_TOOLS_MAX};
use crate::registry::{RESERVED, ToolRegistry};
use crate::schema::Schema;
use crate::tool::{Annotations, ToolDefinition, ToolName};
use crate::tool_choice::ToolChoice;

/// A tool that the caller executes: the agent's model may call it, and the turn waits until the
/// caller brings the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientTool {
    name: String,
    description: String,
    parameters: Value,
}

/// The reason why a message's tools, tool choice or context are refused. Nothing of the message was
/// accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidClientSide {
    /// The name is not one that every provider takes.
    #[error("{name:?} is not a tool name: letters, digits, _ and - only, 1 to 64 of them")]
    Name {
        /// The name.
        name: String,
    },
    /// The turn uses the name itself.
    #[error("{name} is reserved: the turn uses it itself; choose another name for the tool")]
    Reserved {
        /// The name.
        name: String,
    },
    /// The agent has a tool of that name.
    #[error("the agent has a tool {name} of its own; choose another name for yours")]
    OfTheAgent {
        /// The name.
        name: String,
    },
    /// Two tools of one name.
    #[error("two tools are called {name}")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// The parameters are not a JSON Schema of an object, or one that cannot be checked in bounded
    /// time.
    #[error("the parameters of tool {name} are not a usable JSON Schema: {reason}")]
    Schema {
        /// The tool.
        name: String,
        /// The error in the schema, in words.
        reason: String,
    },
    /// There are too many tools.
    #[error("there are {tools} tools; at most {max} are taken")]
    TooMany {
        /// Number of tools in the message.
        tools: usize,
        /// The bound.
        max: usize,
    },
    /// The definitions, or what the caller knows, are too long.
    #[error("{what} takes {bytes} bytes; at most {max} are taken")]
    TooLarge {
        /// The part that is too long, in words.
        what: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// A tool is to be called that is not among them.
    #[error(
        "the tool {name} is to be called, and there is none of that name among the tools of the message"
    )]
    UnknownChoice {
        /// The name.
        name: String,
    },
    /// A tool is to be called, and there are none.
    #[error("a tool is to be called, and the message brings none")]
    NothingToChoose,
    /// A model that is given one constrained round of actions calls the agent's own tools only.
    #[error(
        "{model} cannot call tools of others: leave them out, or choose another model for the agent"
    )]
    WeakModel {
        /// The model.
        model: crate::id::ModelId,
    },
}

impl ClientTool {
    /// Checks a definition. A blank description is filled in with words that say whose tool it is;
    /// without parameters it takes none.
    ///
    /// # Errors
    /// [`InvalidClientSide`] for a name that some provider would refuse, a reserved one, or
    /// parameters that are no JSON Schema of an object or cannot be checked in bounded time.
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
        if RESERVED.contains(&name.as_str()) {
            return Err(InvalidClientSide::Reserved { name });
        }
        let parameters =
            parameters.unwrap_or_else(|| serde_json::json!({ "type": "object", "properties": {} }));
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
        let bytes = tool.bytes();
        if bytes > CLIENT_TOOLS_BYTES_MAX {
            let what = "the definition of a tool";
            return Err(InvalidClientSide::TooLarge {
                what,
                bytes,
                max: CLIENT_TOOLS_BYTES_MAX,
            });
        }
        tool.schema()?;
        Ok(tool)
    }

    /// Returns its name.
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

    /// Returns what models are told of it. `None`: its name is none that a request can hold.
    fn definition(&self) -> Option<ToolDefinition> {
        Some(ToolDefinition {
            name: ToolName::foreign(self.name.clone()).ok()?,
            description: self.description.clone(),
            parameters: self.parameters.clone(),
            annotations: Annotations::default(),
            references: Vec::new(),
            output_schema: None,
        })
    }
}

/// The tools and context that the program that sends a message adds to it: see
/// [`InputBody::Message`](crate::InputBody::Message). They are recorded with the turn; what was
/// recorded holds, whoever goes on with it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientSide {
    /// The tools that it executes, offered beside the agent's own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ClientTool>,
    /// The tool choice until results come with another one. Default: [`ToolChoice::Auto`].
    #[serde(skip_serializing_if = "ToolChoice::is_auto")]
    pub choice: ToolChoice,
    /// True if the model may call no more than one of its tools at a time: a second one is refused.
    /// Default: false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub one_at_a_time: bool,
    /// The context for the model, in front of the person's words. It is no part of what was said:
    /// later turns do not have it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub context: String,
}

impl ClientSide {
    /// Checks all of it beside the agent's own tools.
    ///
    /// # Errors
    /// [`InvalidClientSide`]: the first thing that is wrong.
    pub fn check(&self, own: &ToolRegistry) -> Result<(), InvalidClientSide> {
        let too_large = |what, bytes, max| Err(InvalidClientSide::TooLarge { what, bytes, max });
        if self.tools.len() > CLIENT_TOOLS_MAX {
            let tools = self.tools.len();
            return Err(InvalidClientSide::TooMany {
                tools,
                max: CLIENT_TOOLS_MAX,
            });
        }
        let bytes = self.tools.iter().map(ClientTool::bytes).sum();
        if bytes > CLIENT_TOOLS_BYTES_MAX {
            return too_large("what defines the tools", bytes, CLIENT_TOOLS_BYTES_MAX);
        }
        if self.context.len() > CLIENT_CONTEXT_BYTES_MAX {
            return too_large("the context", self.context.len(), CLIENT_CONTEXT_BYTES_MAX);
        }
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
            ToolChoice::Auto | ToolChoice::None | ToolChoice::Required | ToolChoice::Named(_) => {
                Ok(())
            }
        }
    }
}

/// The tools of the caller in one turn, with their schemas compiled. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ClientTools {
    tools: Arc<[(ToolDefinition, Schema)]>,
    one_at_a_time: bool,
}

impl ClientTools {
    /// Compiles what is recorded with a turn.
    ///
    /// # Errors
    /// [`InvalidClientSide`] if another version accepted what this one cannot use.
    pub fn of(client: &ClientSide) -> Result<Self, InvalidClientSide> {
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

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns whether one of them has this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Returns whether no more than one may be called at a time.
    #[must_use]
    pub fn one_at_a_time(&self) -> bool {
        self.one_at_a_time
    }

    /// Returns whether a choice can be made among them.
    #[must_use]
    pub fn has_choice(&self, choice: &ToolChoice) -> bool {
        match choice {
            ToolChoice::Named(name) => self.has(name),
            ToolChoice::Auto | ToolChoice::None | ToolChoice::Required => true,
        }
    }

    /// Returns what models are told of them, in order.
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
