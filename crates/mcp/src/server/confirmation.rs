//! Confirmations in MCP: by the client, if it can ask its user (elicitation), otherwise where the
//! user sees pending calls (the page, `adjutant pending`). The model cannot approve for the user.

use std::collections::BTreeMap;
use std::time::Duration;

use adjutant_core::PendingCall;
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, InputResponses, ProtocolVersion,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use serde_json::Value;

use super::may_answer::may_answer;

/// The argument with the id of a pending call, to ask for its result. It approves nothing. Clients
/// that can ask their users have it too: a question that is closed is answered elsewhere.
pub(super) const CONFIRMATION_ID: &str = "confirmation_id";
/// The only field of a form, and the name of the question.
pub(super) const CONFIRM: &str = "confirm";

/// The way in which a client's user is asked for confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfirmationMode {
    /// By `elicitation/create`, while the call waits.
    Elicitation,
    /// The call returns the question, and is repeated with the answer (2026-07-28).
    InputRequired,
    /// The call returns, and the user answers elsewhere. The call is repeated to get the result.
    Elsewhere,
}

impl ConfirmationMode {
    /// Returns the way that this client supports.
    pub(super) fn for_client(context: &RequestContext<RoleServer>) -> Self {
        let can_ask = context
            .client_capabilities()
            .is_some_and(|capabilities| has_forms(&capabilities));
        let version = context.protocol_version();
        // Versions are dates, which compare as text.
        match version
            .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
        {
            _ if !can_ask || !may_answer(context) => Self::Elsewhere,
            true => Self::InputRequired,
            false => Self::Elicitation,
        }
    }
}

/// Returns true if the client supports forms. Before 2025-11-25 there were only forms, without a
/// capability for them.
fn has_forms(capabilities: &ClientCapabilities) -> bool {
    let Some(elicitation) = &capabilities.elicitation else {
        return false;
    };
    elicitation.form.is_some() || elicitation.url.is_none()
}

/// The result of asking for confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// A literal yes.
    Yes,
    /// Any other choice of a person.
    No,
    /// No choice: the question was closed, or could not be asked, or was not answered in time.
    Nothing,
}

/// Asks for confirmation while the call waits.
pub(super) async fn ask(
    context: &RequestContext<RoleServer>,
    pending: &PendingCall,
    patience: Duration,
) -> Answer {
    let request = ElicitRequest::new(form(pending));
    let options = PeerRequestOptions::with_timeout(patience);
    let asked = context
        .peer
        .send_request_with_option(request.into(), options);
    // An error is no confirmation, just as silence is none.
    let answered = async { asked.await.ok()?.await_response().await.ok() };
    let response = tokio::select! {
        response = answered => response,
        () = context.ct.cancelled() => None,
    };
    match response {
        Some(rmcp::model::ClientResult::ElicitResult(result)) => answer(&result),
        Some(_) | None => Answer::Nothing,
    }
}

/// Returns questions, by their names, as the result of a call.
pub(super) fn input_required<'a>(
    asked: impl IntoIterator<Item = (String, &'a PendingCall)>,
    state: String,
) -> InputRequiredResult {
    let question = |call| InputRequest::Elicitation(ElicitRequest::new(form(call)));
    let questions: BTreeMap<_, _> = asked
        .into_iter()
        .map(|(name, call)| (name, question(call)))
        .collect();
    InputRequiredResult::new(Some(questions), Some(state))
}

/// Returns the answer to a question in a repeated call.
pub(super) fn answer_to(responses: &InputResponses, name: &str) -> Answer {
    let Some(response) = responses.get(name) else {
        return Answer::Nothing;
    };
    serde_json::from_value::<ElicitResult>(response.clone())
        .map_or(Answer::Nothing, |result| answer(&result))
}

/// Decodes an answer. Only a literal yes counts as one.
fn answer(result: &ElicitResult) -> Answer {
    let confirmed = result
        .content
        .as_ref()
        .and_then(|content| content.get(CONFIRM));
    match (&result.action, confirmed) {
        (ElicitationAction::Accept, Some(Value::Bool(true))) => Answer::Yes,
        (ElicitationAction::Cancel, _) => Answer::Nothing,
        _ => Answer::No,
    }
}

fn form(pending: &PendingCall) -> ElicitRequestParams {
    let schema = ElicitationSchema::builder()
        .required_bool_property(CONFIRM, |field| {
            field
                .title("Do it")
                .description(pending.preview.clone())
                // A form that is sent unchanged is no yes.
                .with_default(false)
        })
        .build();
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("{}?", pending.preview),
        // The schema is fixed, so building it does not fail.
        requested_schema: schema.unwrap_or_else(|_| ElicitationSchema::new(BTreeMap::new())),
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{ElicitationCapability, FormElicitationCapability, UrlElicitationCapability};
    use serde_json::json;

    use super::*;

    fn answered(response: Value) -> Answer {
        answer_to(&BTreeMap::from([(CONFIRM.to_owned(), response)]), CONFIRM)
    }

    #[test]
    fn only_a_plain_yes_is_one() {
        assert_eq!(
            answered(json!({"action": "accept", "content": {"confirm": true}})),
            Answer::Yes
        );
        for no in [
            json!({"action": "accept", "content": {"confirm": false}}),
            json!({"action": "accept", "content": {"confirm": "true"}}),
            json!({"action": "accept", "content": {"confirm": 1}}),
            json!({"action": "accept", "content": {}}),
            json!({"action": "accept"}),
            json!({"action": "decline", "content": {"confirm": true}}),
        ] {
            assert_eq!(answered(no.clone()), Answer::No, "{no}");
        }
        for nothing in [
            json!({"action": "cancel"}),
            json!({"action": "cancel", "content": {"confirm": true}}),
            json!({"action": "yes"}),
            json!({}),
            json!(true),
            json!(null),
        ] {
            assert_eq!(answered(nothing.clone()), Answer::Nothing, "{nothing}");
        }
        let elsewhere = json!({"action": "accept", "content": {"confirm": true}});
        assert_eq!(
            answer_to(&BTreeMap::from([("other".to_owned(), elsewhere)]), CONFIRM),
            Answer::Nothing
        );
    }

    #[test]
    fn a_client_without_forms_cannot_ask() {
        let with = |elicitation| {
            let mut capabilities = ClientCapabilities::default();
            capabilities.elicitation = elicitation;
            has_forms(&capabilities)
        };
        let capability = ElicitationCapability::new;
        assert!(!with(None));
        assert!(with(Some(capability())));
        assert!(with(Some(
            capability().with_form(FormElicitationCapability::default())
        )));
        assert!(!with(Some(
            capability().with_url(UrlElicitationCapability::default())
        )));
    }
}
