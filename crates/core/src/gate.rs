//! The gate in front of every tool: known tool, valid arguments, resolved references, policy,
//! confirmation. The driver of the turn journals and executes what passes.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::call_words::{call_in_words, name_in_words};
use crate::client_side::ClientTools;
use crate::confirmation::{Awaits, PendingCall, digest};
use crate::event::{GateVerdict, Refusal};
use crate::id::{TurnId, UserId};
use crate::registry::{ToolRegistry, unknown_among};
use crate::repair::fitting;
use crate::schema::Schema;
use crate::tool::{
    Arguments, MalformedArguments, Prepared, ToolCall, ToolContext, ToolDefinition, ToolName,
};
use crate::tool_choice::ToolChoice;
use crate::visible::visible;

/// The decision of a policy about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// The call runs without confirmation.
    Allow,
    /// The call runs after a person approved it.
    Confirm,
    /// The call never runs.
    Deny,
}

/// Rules that allow, confirm or deny tools. Without a rule, destructive tools are confirmed and
/// others allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    tool: String,
    user: Option<UserId>,
    permission: Permission,
}

impl Policy {
    /// Adds a rule for one tool or all (`*`), and one user or all (`None`). Later rules win.
    #[must_use]
    pub fn rule(
        mut self,
        tool: impl Into<String>,
        user: Option<UserId>,
        permission: Permission,
    ) -> Self {
        self.rules.push(Rule {
            tool: tool.into(),
            user,
            permission,
        });
        self
    }

    /// Returns true if a rule allows this tool by name for this user, and no later rule differs.
    fn allows_by_name(&self, user: &UserId, tool: &ToolDefinition) -> bool {
        self.last_rule(user, tool)
            // A rule for all tools was not written with this one in mind.
            .is_some_and(|rule| rule.tool != "*" && rule.permission == Permission::Allow)
    }

    fn last_rule(&self, user: &UserId, tool: &ToolDefinition) -> Option<&Rule> {
        self.rules.iter().rev().find(|rule| {
            (rule.tool == "*" || rule.tool == tool.name.as_str())
                && rule.user.as_ref().is_none_or(|wanted| wanted == user)
        })
    }

    /// Returns the decision about a user's call of a tool.
    #[must_use]
    pub fn permission(&self, user: &UserId, tool: &ToolDefinition) -> Permission {
        let default = if tool.annotations.destructive {
            Permission::Confirm
        } else {
            Permission::Allow
        };
        self.last_rule(user, tool)
            .map_or(default, |rule| rule.permission)
    }
}

/// The gate of an agent: its tools and its policy.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    /// Tools that can be called.
    pub registry: ToolRegistry,
    /// Rules about who may call which tool.
    pub policy: Policy,
}

/// Suffix of the question if the call was proposed after content from others was read.
const AFTER_OTHERS: &str = " (proposed after reading words of others)";

/// Returns true if an argument contains a web address that is not in the person's own messages:
/// requesting it would reveal data to its owner.
fn names_an_address(arguments: &Arguments, messages: &str) -> bool {
    fn names(name: &str, value: &Value, messages: &str) -> bool {
        match value {
            Value::String(text) => {
                let is_place = is_named_as_an_address(name)
                    && !text.is_empty()
                    // An address that the person wrote themselves reveals nothing.
                    && !messages.contains(text.as_str());
                is_place
                    || text
                        .split(|c: char| {
                            c.is_whitespace() || matches!(c, '"' | '<' | '>' | '(' | ')')
                        })
                        .any(|word| is_address(word) && !messages.contains(word))
            }
            Value::Array(values) => values.iter().any(|value| names(name, value, messages)),
            Value::Object(values) => values
                .iter()
                .any(|(name, value)| names(name, value, messages)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    arguments
        .iter()
        .any(|(name, value)| names(name, value, messages))
}

/// Returns true if one of the words of an argument's name (`target_url`, `targetUrl`) says that it
/// is an address.
fn is_named_as_an_address(name: &str) -> bool {
    const NAMES: [&str; 10] = [
        "url", "uri", "href", "link", "host", "hostname", "domain", "website", "webpage",
        "endpoint",
    ];
    let mut words = String::new();
    let mut was_lower = false;
    for letter in name.chars() {
        if was_lower && letter.is_uppercase() || !letter.is_alphanumeric() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
        was_lower = letter.is_lowercase();
    }
    words.split(|c: char| !c.is_alphanumeric()).any(|word| {
        NAMES
            .iter()
            .any(|named| word.strip_suffix('s').unwrap_or(word) == *named || word == *named)
    })
}

/// Returns true if a word looks like a web address: with a scheme, `www.`, or a host with dots and
/// a path. A host alone looks like a file name.
fn is_address(word: &str) -> bool {
    let begins_with_www = word
        .get(..4)
        .is_some_and(|begin| begin.eq_ignore_ascii_case("www."));
    let host_with_path = word
        .split_once(['/', '?', '#', ':'])
        .is_some_and(|(host, _)| {
            let labels = || host.split('.');
            labels().count() > 1
                && labels().all(|label| {
                    !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-')
                })
                && labels()
                    .next_back()
                    .is_some_and(|last| last.len() > 1 && last.chars().all(char::is_alphabetic))
        });
    word.contains("://") || begins_with_www || host_with_path
}

/// The context of a check: time, earlier decisions of the turn, and what the caller provides.
#[derive(Debug, Clone)]
pub struct GateCheck<'a> {
    /// Time of the check, from which expiry counts.
    pub now: Timestamp,
    /// Duration after which a confirmation expires.
    pub confirmation_expiry: std::time::Duration,
    /// Tool and arguments of calls that the person denied in this turn.
    pub denied: &'a [(String, Arguments)],
    /// Tool and arguments of calls that were interrupted in this turn and may have had their
    /// effect.
    pub interrupted: &'a [(String, Arguments)],
    /// The person's messages, if content from others was read in this turn before the call was
    /// proposed ([`Tool::reads_from_others`](crate::Tool::reads_from_others)), because that content
    /// may be what asks for the call.
    pub said_before_others: Option<&'a str>,
    /// Tools that the caller executes in this turn.
    pub client: &'a ClientTools,
    /// Tool choice of the turn. A call that it does not permit is refused like one of an unknown
    /// tool.
    pub choice: &'a ToolChoice,
}

impl GateCheck<'_> {
    /// Returns the time at which a confirmation expires.
    fn expires_at(&self) -> Timestamp {
        let expiry =
            SignedDuration::try_from(self.confirmation_expiry).unwrap_or(SignedDuration::MAX);
        self.now.checked_add(expiry).unwrap_or(Timestamp::MAX)
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedCall {
    /// The gate's decision, with the arguments that are used.
    pub verdict: GateVerdict,
    /// The corrections of the arguments, as a note for the model: the schema refused them as they
    /// were written, and exactly one correction fits. `None`: nothing was corrected.
    pub corrections: Option<String>,
}

impl From<GateVerdict> for CheckedCall {
    fn from(verdict: GateVerdict) -> Self {
        Self {
            verdict,
            corrections: None,
        }
    }
}

impl Gate {
    /// Checks a call in a fixed order: known tool, arguments fit the schema, if need be after a
    /// correction, references resolved, policy, confirmation. Executes nothing.
    pub async fn check(
        &self,
        context: &ToolContext,
        call: &ToolCall,
        check: &GateCheck<'_>,
    ) -> CheckedCall {
        // The names cannot clash: a message with a tool of the name of one of the agent's was
        // rejected.
        if check.choice.permits(&call.name)
            && let Some((definition, schema)) = check.client.get(&call.name)
        {
            return hand_over(context.turn, call, definition, schema, check);
        }
        let passed = match self.examine(context, call, check).await {
            Ok(passed) => passed,
            Err(Stopped::Ask(question)) => return GateVerdict::Ask { question }.into(),
            Err(Stopped::Refused(refusal, message)) => {
                return GateVerdict::Refuse { refusal, message }.into();
            }
        };
        let corrections = passed.corrections.clone();
        let verdict = match passed.permission {
            Permission::Confirm => GateVerdict::Confirm {
                pending: passed.question(context, call, check),
            },
            // A denied call does not get this far.
            Permission::Allow | Permission::Deny => GateVerdict::Run {
                arguments: passed.arguments,
            },
        };
        CheckedCall {
            verdict,
            corrections,
        }
    }

    /// Returns the confirmation for a call, also if the policy would let it run without one.
    /// Executes nothing.
    ///
    /// # Errors
    ///
    /// The reason as a message for the person: the call does not pass the gate, or a reference is
    /// ambiguous.
    pub async fn question(
        &self,
        context: &ToolContext,
        call: &ToolCall,
        check: &GateCheck<'_>,
    ) -> Result<PendingCall, String> {
        match self.examine(context, call, check).await {
            Ok(passed) => Ok(passed.question(context, call, check)),
            Err(Stopped::Ask(words) | Stopped::Refused(_, words)) => Err(words),
        }
    }

    /// Runs all checks of a call, including the policy.
    async fn examine<'g>(
        &'g self,
        context: &ToolContext,
        call: &ToolCall,
        check: &GateCheck<'_>,
    ) -> Result<Passed<'g>, Stopped> {
        let refuse = |refusal, message| Err(Stopped::Refused(refusal, message));
        let tool = self
            .registry
            .get(&call.name)
            // A tool that the choice excludes is unknown to the model in this turn, also in the
            // message about it.
            .filter(|_| check.choice.permits(&call.name));
        let Some(tool) = tool else {
            return refuse(Refusal::UnknownTool, self.unknown(&call.name, check));
        };
        // Before the schema: without arguments it would report the wrong mistake.
        if let Some(malformed) = &call.malformed {
            return refuse(
                Refusal::InvalidArguments,
                not_an_object(&call.name, malformed),
            );
        }
        // Models write an empty text for an argument that they leave out.
        let arguments = self.registry.without_blanks(&call.name, &call.arguments);
        let fitted = self.registry.fitting_arguments(&call.name, arguments);
        let (arguments, corrections) = match fitted {
            Ok(fitted) => fitted,
            Err(places) => return refuse(Refusal::InvalidArguments, misfit(&places)),
        };
        // Only with arguments that fit: code of the tool sees no others.
        let (arguments, preview) = match tool.prepare(context, arguments).await {
            Ok(Prepared::Ready { arguments, preview }) => (arguments, preview),
            Ok(Prepared::Ask { question }) => return Err(Stopped::Ask(question)),
            Err(error) => return refuse(Refusal::Failed, error.to_string()),
        };
        // After the references are resolved: the same entity may be named in other words.
        let is_among = |calls: &[(String, Arguments)]| {
            let same =
                |(tool, known): &(String, Arguments)| *tool == call.name && *known == arguments;
            calls.iter().any(same)
        };
        if is_among(check.denied) {
            let message = "the person has just refused this; do not ask again".to_owned();
            return refuse(Refusal::DeniedBefore, message);
        }
        if is_among(check.interrupted) {
            let message = "the same call was interrupted and may have been carried out; it is not repeated, and only \
                           the person can say what became of it";
            return refuse(Refusal::InDoubt, message.to_owned());
        }
        let definition = tool.definition();
        let mut permission = self.policy.permission(&context.user, definition);
        // Text of others may try to act through the model. What it could gain by is a change, or an
        // address that carries what the model knows to a server.
        let is_suspect = check.said_before_others.is_some_and(|messages| {
            let changes = !definition.annotations.read_only;
            let reaches_out =
                !definition.annotations.closed_world && names_an_address(&arguments, messages);
            // A rule that names the tool is the operator's decision about exactly this case.
            (changes || reaches_out) && !self.policy.allows_by_name(&context.user, definition)
        });
        if is_suspect && permission == Permission::Allow {
            permission = Permission::Confirm;
        }
        if permission == Permission::Deny {
            return refuse(
                Refusal::Forbidden,
                format!("{} is not allowed here; do not try again", call.name),
            );
        }
        Ok(Passed {
            definition,
            arguments,
            corrections,
            preview,
            permission,
            is_suspect,
        })
    }

    /// Returns the error for a model that called a tool it may not call.
    fn unknown(&self, name: &str, check: &GateCheck<'_>) -> String {
        let own = self.registry.names().map(ToolName::as_str);
        let clients = check.client.definitions().map(|tool| tool.name.as_str());
        unknown_among(
            name,
            own.chain(clients).filter(|name| check.choice.permits(name)),
        )
    }
}

/// The reason for which a call did not pass.
enum Stopped {
    /// A reference is ambiguous.
    Ask(String),
    Refused(Refusal, String),
}

/// A call that passed, or would pass after an approval.
struct Passed<'g> {
    definition: &'g ToolDefinition,
    /// Arguments with references resolved.
    arguments: Arguments,
    /// The note about corrections, if the arguments did not fit as they were written.
    corrections: Option<String>,
    /// The tool's description of the effect, if it has one.
    preview: Option<String>,
    permission: Permission,
    /// True if content from others may be what asks for the call.
    is_suspect: bool,
}

impl Passed<'_> {
    fn question(
        self,
        context: &ToolContext,
        call: &ToolCall,
        check: &GateCheck<'_>,
    ) -> PendingCall {
        // The model chose the order of the arguments, and with it what a person reads first: the
        // schema's order is used instead.
        let arguments = self.definition.in_order(self.arguments);
        let mut pending = pending(context.turn, call, self.definition, arguments, check);
        if let Some(preview) = &self.preview {
            pending.preview = visible(preview);
        }
        if self.is_suspect {
            pending.preview.push_str(AFTER_OTHERS);
        }
        pending
    }
}

/// Returns a call that waits, with a description that is made of its arguments.
fn pending(
    turn: TurnId,
    call: &ToolCall,
    definition: &ToolDefinition,
    arguments: Arguments,
    check: &GateCheck<'_>,
) -> PendingCall {
    PendingCall {
        digest: digest(turn, &call.id, &call.name, &arguments),
        call_id: call.id.clone(),
        tool: call.name.clone(),
        preview: visible(&call_in_words(&name_in_words(&call.name), &arguments)),
        arguments,
        definition: Some(definition.fingerprint()),
        intent: definition.intent.clone(),
        requested_at: check.now,
        expires_at: check.expires_at(),
        doubt: None,
        awaits: None,
    }
}

/// Checks a call that the caller executes. The caller decides about its effect, so no policy
/// applies here.
fn hand_over(
    turn: TurnId,
    call: &ToolCall,
    definition: &ToolDefinition,
    schema: &Schema,
    check: &GateCheck<'_>,
) -> CheckedCall {
    let invalid = |message| {
        CheckedCall::from(GateVerdict::Refuse {
            refusal: Refusal::InvalidArguments,
            message,
        })
    };
    if let Some(malformed) = &call.malformed {
        return invalid(not_an_object(&call.name, malformed));
    }
    let (arguments, corrections) = match fitting(schema, definition, call.arguments.clone()) {
        Ok(fitted) => fitted,
        Err(places) => return invalid(misfit(&places)),
    };
    let mut pending = pending(turn, call, definition, arguments, check);
    pending.awaits = Some(Awaits::Client);
    CheckedCall {
        verdict: GateVerdict::Await { pending },
        corrections,
    }
}

fn not_an_object(tool: &str, malformed: &MalformedArguments) -> String {
    format!(
        "the arguments are not a JSON object: {}. Call {tool} again with complete arguments",
        malformed.reason
    )
}

fn misfit(places: &str) -> String {
    format!("the arguments do not fit: {places}")
}
