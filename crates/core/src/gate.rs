//! The gate in front of every tool: known tool, valid arguments, resolved references, policy,
//! confirmation. The driver of the turn journals and executes what passes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::call_words::{call_in_words, name_in_words};
use crate::client_side::ClientTools;
use crate::confirmation::{Awaits, PendingCall, digest};
use crate::event::{GateVerdict, Refusal};
use crate::id::{TurnId, UserId};
use crate::own_words::{Foreign, KnownItems, OwnWords};
use crate::registry::{ToolRegistry, unknown_among};
use crate::repair::fitting;
use crate::schema::Schema;
use crate::tool::{
    Arguments, MalformedArguments, Prepared, Tool, ToolCall, ToolContext, ToolDefinition, ToolName,
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

/// Suffix of the question about a call that was proposed after text of others was read.
const AFTER_OTHERS: &str = " (proposed after reading words of others)";

/// Suffix of the question about another call that is not in the person's own words.
const NOT_OWN: &str = " (not in your own words)";

/// The origin of a call that a model made: what the person said, and what else the model had read.
#[derive(Debug)]
pub struct Provenance {
    /// The words of the person in this conversation.
    pub own_words: OwnWords,
    /// The items of results that the model could read.
    pub items: KnownItems,
    /// True if the model had read text of others, which may be what asks for the call.
    pub after_others: bool,
    /// Tools whose calls the person approved for the conversation.
    pub approved_tools: BTreeSet<String>,
}

/// A reason to ask the person about a call that the policy would let run.
#[derive(Debug, Clone, Copy)]
struct Suspicion {
    after_others: bool,
    /// True if an approval may count for the rest of the conversation.
    for_conversation: bool,
}

impl Provenance {
    /// Returns true if a call of a tool may have to be confirmed because of its origin: other calls
    /// need no provenance. `after_others` as in [`Provenance::after_others`].
    #[must_use]
    pub fn is_needed(tool: &dyn Tool, after_others: bool) -> bool {
        let annotations = tool.definition().annotations;
        // Text of others could gain by a change, or by a request that carries what the model
        // knows to a server. Without such text, only what leaves the house counts.
        let has_effect = !annotations.read_only || !annotations.closed_world;
        tool.recalled_argument().is_some()
            || has_effect && (after_others || tool.reads_from_others())
    }

    fn suspicion(
        &self,
        tool: &dyn Tool,
        written: &Arguments,
        arguments: &Arguments,
        is_allowed: bool,
    ) -> Option<Suspicion> {
        if !Self::is_needed(tool, self.after_others) {
            return None;
        }
        let definition = tool.definition();
        let recalled = tool.recalled_argument();
        let suspicion = Suspicion {
            after_others: self.after_others,
            for_conversation: recalled.is_none(),
        };
        let foreign = match recalled {
            // It would stay in every later conversation.
            Some(_) if self.after_others => Foreign::AmountOrAddress,
            Some(name) => arguments.get(name).map_or(Foreign::Nothing, |text| {
                self.own_words.foreign_in(name, text, &self.items)
            }),
            None => self
                .own_words
                .foreign_arguments(definition, written, arguments, &self.items),
        };
        let is_approved = || is_allowed || self.approved_tools.contains(definition.name.as_str());
        match foreign {
            Foreign::Nothing => None,
            Foreign::Words if suspicion.for_conversation && is_approved() => None,
            Foreign::Words | Foreign::AmountOrAddress => Some(suspicion),
        }
    }
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
    /// The origin of the call. `None`: a person made it, or it cannot have to be confirmed because of
    /// its origin ([`Provenance::is_needed`]).
    pub provenance: Option<&'a Provenance>,
    /// Tools of MCP servers whose calls the person always allows, with the fingerprints of their
    /// definitions. `None`: that cannot be stored here.
    pub allowed_tools: Option<&'a BTreeMap<String, String>>,
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
        let after_others = check.provenance.is_some_and(|origin| origin.after_others);
        let may_be_allowed = tool.reads_from_others()
            && !after_others
            && !context.from_others
            && self.policy.last_rule(&context.user, definition).is_none();
        let allowed = check.allowed_tools.filter(|_| may_be_allowed);
        let is_allowed = allowed
            .and_then(|allowed| allowed.get(definition.name.as_str()))
            .is_some_and(|fingerprint| *fingerprint == definition.fingerprint());
        if is_allowed {
            permission = Permission::Allow;
        }
        // A rule that names the tool is the operator's decision about exactly this case.
        let mut suspicion = check
            .provenance
            .filter(|_| !self.policy.allows_by_name(&context.user, definition))
            .and_then(|origin| origin.suspicion(&**tool, &call.arguments, &arguments, is_allowed));
        match (permission, &mut suspicion) {
            (Permission::Allow, Some(_)) => permission = Permission::Confirm,
            // The policy confirms every call of the tool, so that this is said only if there is a
            // reason for doubt.
            (_, Some(found)) if found.after_others => found.for_conversation = false,
            (_, _) => suspicion = None,
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
            suspicion,
            may_be_allowed: allowed.is_some() && !is_allowed,
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
    /// The reason to ask the person because of the call's origin.
    suspicion: Option<Suspicion>,
    /// True if the person may allow all later calls of the tool.
    may_be_allowed: bool,
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
        let preview = self.preview.as_deref();
        let mut pending = pending(
            context.turn,
            call,
            self.definition,
            arguments,
            preview,
            check,
        );
        if let Some(suspicion) = self.suspicion {
            let suffix = if suspicion.after_others {
                AFTER_OTHERS
            } else {
                NOT_OWN
            };
            pending.preview.push_str(suffix);
            pending.for_conversation = suspicion.for_conversation;
        }
        pending.always = self.may_be_allowed;
        pending
    }
}

/// Returns a call that waits, with the tool's description of it or one that is made of its
/// arguments.
fn pending(
    turn: TurnId,
    call: &ToolCall,
    definition: &ToolDefinition,
    arguments: Arguments,
    preview: Option<&str>,
    check: &GateCheck<'_>,
) -> PendingCall {
    let preview = match preview {
        Some(preview) => visible(preview),
        None => visible(&call_in_words(&name_in_words(&call.name), &arguments)),
    };
    PendingCall {
        digest: digest(turn, &call.id, &call.name, &arguments, &preview),
        call_id: call.id.clone(),
        tool: call.name.clone(),
        preview,
        arguments,
        definition: Some(definition.fingerprint()),
        intent: definition.intent.clone(),
        requested_at: check.now,
        expires_at: check.expires_at(),
        doubt: None,
        awaits: None,
        for_conversation: false,
        always: false,
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
    let mut pending = pending(turn, call, definition, arguments, None, check);
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
