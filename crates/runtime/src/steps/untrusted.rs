//! The origin of the calls that a model makes: the person's own words, and text of others that may
//! contain instructions (prompt injection).

use std::collections::{BTreeMap, BTreeSet};

use adjutant_core::conversation::Conversation;
use adjutant_core::turn::Turn;
use adjutant_core::{
    Event, KnownItems, OwnWords, PendingCall, Provenance, Role, Tool, ToolCall, ToolResult,
    attachment, recall_block, without_client_context,
};
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::Steps;

impl Steps<'_> {
    /// Returns the origin of the calls of a group, if one of them may have to be confirmed because
    /// of it. A call that a person made has none. Of those that a program made in their name, only
    /// what is recalled in later conversations is confirmed: its scopes allow the rest.
    pub(super) async fn provenance(&self, turn: &Turn, group: &[ToolCall]) -> Option<Provenance> {
        if turn.is_requested_call() {
            let registry = &self.tools.gate().registry;
            let is_recalled = |call: &ToolCall| {
                registry
                    .get(&call.name)
                    .is_some_and(|tool| tool.recalled_argument().is_some())
            };
            return (self.from_others && group.iter().any(is_recalled)).then(|| Provenance {
                own_words: OwnWords::new([], Date::MIN),
                items: KnownItems::default(),
                after_others: true,
                approved_tools: BTreeSet::new(),
            });
        }
        let log = self.log.lock().await;
        let conversation = log.conversation();
        let after_others = conversation.last_reply_is_from_others();
        let registry = &self.tools.gate().registry;
        let is_needed = |call: &ToolCall| {
            registry
                .get(&call.name)
                .is_some_and(|tool| Provenance::is_needed(&**tool, after_others))
        };
        group.iter().any(is_needed).then(|| Provenance {
            own_words: own_words(
                conversation,
                self.inner.now().to_zoned(TimeZone::UTC).date(),
            ),
            items: known_items(conversation),
            after_others,
            approved_tools: conversation.approved_tools().clone(),
        })
    }

    /// Returns the tools that the user always allows, with the fingerprints of their definitions, if
    /// that may matter to one of these calls.
    /// `None`: nothing stores it here, or the store does not answer.
    pub(super) async fn allowed_tools(
        &self,
        group: &[ToolCall],
    ) -> Option<BTreeMap<String, String>> {
        let store = self.inner.user_settings.as_ref()?;
        let registry = &self.tools.gate().registry;
        let can_be_allowed = |call: &ToolCall| {
            registry
                .get(&call.name)
                .is_some_and(|tool| can_be_allowed(&**tool))
        };
        if !group.iter().any(can_be_allowed) {
            return None;
        }
        let settings = store.user_settings(&self.key.user).await.ok()?;
        Some(settings.allowed_tools)
    }

    /// Stores that the user always allows the tool of a call, as it was defined when they were asked.
    /// If that fails, the next call is confirmed again.
    pub(super) async fn allow_always(&self, call: &PendingCall) {
        let (Some(store), Some(definition)) = (&self.inner.user_settings, &call.definition) else {
            return;
        };
        let user = &self.key.user;
        if let Ok(mut settings) = store.user_settings(user).await {
            let allowed = &mut settings.allowed_tools;
            allowed.insert(call.tool.clone(), definition.clone());
            let _ = store.put_user_settings(user, &settings).await;
        }
    }
}

/// Returns true if the person may allow all calls of a tool, each of which would else be confirmed.
fn can_be_allowed(tool: &dyn Tool) -> bool {
    tool.reads_from_others() && Provenance::is_needed(tool, false)
}

/// Returns the words that the person wrote in the conversation, without what they attached and
/// without what a program wrote in their name. `today`: the day, if the message does not say it.
fn own_words(conversation: &Conversation, today: Date) -> OwnWords {
    if conversation.others_wrote_message() {
        return OwnWords::new([], today);
    }
    // The history does not tell whose words are whose.
    let is_mixed = conversation.others_wrote_messages();
    let kept = conversation.kept_messages().iter();
    let earlier = kept
        .filter(|message| message.role() == Role::User && !is_mixed)
        .map(without_client_context);
    let (message, sent_on) = match conversation.current().and_then(|turn| turn.started()) {
        Some(Event::TurnStarted {
            message, sent_at, ..
        }) => (message.as_str(), sent_at.as_deref().and_then(day_of)),
        _ => ("", None),
    };
    let earlier: Vec<String> = earlier
        .map(|text| attachment::strip(recall_block::strip(&text)).into_owned())
        .collect();
    let current = attachment::strip(message);
    let all = earlier.iter().map(String::as_str).chain([&*current]);
    OwnWords::new(all, sent_on.unwrap_or(today))
}

/// Returns the day of a local time such as `Saturday, 2026-11-28, 09:15 (Europe/Berlin, UTC+01:00)`.
fn day_of(sent_at: &str) -> Option<Date> {
    sent_at
        .split([',', ' '])
        .find_map(|part| part.parse::<Date>().ok())
}

/// Returns the items of the results that the model can read: those of the open turn, and those of
/// the history.
fn known_items(conversation: &Conversation) -> KnownItems {
    let mut items = KnownItems::default();
    let mut add = |result: &ToolResult, from_others: bool| {
        if let Some(data) = &result.data {
            items.add(data, from_others);
        }
    };
    for message in conversation.kept_messages() {
        if let Some((_, _, result)) = message.tool_result() {
            add(result, result.from_others);
        }
    }
    let before = conversation
        .current()
        .and_then(|turn| turn.before_last_reply());
    for recorded in before.unwrap_or_default() {
        if let Event::CallFinished { result, .. } = &*recorded.event {
            add(result, result.from_others);
        }
    }
    items
}
