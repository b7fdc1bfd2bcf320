//! Parts of encoding that every vendor shares: sampling settings, images, provider state, and the
//! record of what a request loses.

use std::collections::BTreeSet;

use adjutant_core::limits::{OUTPUT_TOKENS_MAX, TEMPERATURE};
use adjutant_core::{
    Arguments, Content, GenerateRequest, ImageSource, ModelError, ModelId, Part, ToolCall,
    ToolChoice, ToolDefinition, ToolSet,
};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::family::{FamilyLimits, Images, Setting, UNKNOWN_OUTPUT};

/// The body of a request, and a description of everything that could not be sent in it.
#[derive(Debug, Clone)]
pub(crate) struct Encoded {
    pub(crate) body: Bytes,
    pub(crate) losses: Vec<String>,
}

/// Collects what a request loses in a vendor's form, and refuses what may not be lost without the
/// caller's consent.
#[derive(Debug)]
pub(crate) struct Encoder<'a> {
    pub(crate) model: &'a ModelId,
    pub(crate) family: &'a FamilyLimits,
    request: &'a GenerateRequest,
    losses: Vec<String>,
}

/// The sampling settings to send; `None` is not sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Settings {
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    pub(crate) top_k: Option<u32>,
    /// The bound on the answer, with the allowance for thinking added.
    pub(crate) max_tokens: Option<u32>,
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(
        model: &'a ModelId,
        family: &'a FamilyLimits,
        request: &'a GenerateRequest,
    ) -> Self {
        Self {
            model,
            family,
            request,
            losses: Vec::new(),
        }
    }

    /// Records that something of the request is not sent as the caller has it.
    pub(crate) fn record_loss(&mut self, what: impl Into<String>) {
        let what = what.into();
        // The same loss occurs once per message; one notice is enough.
        if !self.losses.contains(&what) {
            self.losses.push(what);
        }
    }

    /// Records that `what` is sent without these JSON Schema keywords.
    pub(crate) fn record_dropped_keywords(&mut self, what: &str, dropped: &BTreeSet<String>) {
        if !dropped.is_empty() {
            let keywords: Vec<&str> = dropped.iter().map(String::as_str).collect();
            self.record_loss(format!("{what} was sent without {}", keywords.join(", ")));
        }
    }

    /// Leaves out what the model does not take if the caller allowed that, and returns `None` for
    /// it; else returns an error.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] unless `drop_unsupported` is set.
    pub(crate) fn unsupported<T>(
        &mut self,
        what: &str,
        instead: &str,
    ) -> Result<Option<T>, ModelError> {
        if self.request.config.drop_unsupported {
            self.record_loss(format!(
                "{what} was left out: {} does not take it",
                self.model
            ));
            return Ok(None);
        }
        Err(self.bad_request(format!(
                    "{} does not take {what}; {instead}, or set GenerationConfig::drop_unsupported to have it left out",
                    self.model
                )))
    }

    /// Checks that messages are left to answer. The vendors' own errors for it do not name the
    /// cause, and an Ollama server loads the model and returns an empty answer.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] if there is no message.
    pub(crate) fn require_messages(&self, messages: usize) -> Result<(), ModelError> {
        if messages > 0 {
            return Ok(());
        }
        Err(self.bad_request(
            "there is nothing to answer: the transcript has no message besides the instruction",
        ))
    }

    /// Checks that the model can keep to the request's response schema, if there is one.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] with this message if it cannot.
    pub(crate) fn require_schema_support(&self, message: &str) -> Result<(), ModelError> {
        if self.request.response_schema.is_some() && !self.covers_schema() {
            return Err(self.bad_request(message));
        }
        Ok(())
    }

    /// Returns true if the model can keep to a response schema in a request with these tools.
    pub(crate) fn covers_schema(&self) -> bool {
        let with_tools = !self.request.tools.is_empty();
        self.family.schema.covers(with_tools)
    }

    /// Returns the tools to offer, and the tool choice to send with them. A choice that the model
    /// cannot be held to is approximated: of a named choice only that tool is offered.
    pub(crate) fn offer(&mut self, forcing: Forcing) -> (ToolSet, ToolChoice) {
        let GenerateRequest {
            tools, tool_choice, ..
        } = self.request;
        let as_given = self.request.config.verbatim
            || tools.is_empty()
            || forcing == Forcing::Any
            || !tool_choice.requires_call();
        if as_given {
            return (tools.clone(), tool_choice.clone());
        }
        let offered = match tool_choice {
            ToolChoice::Named(_) => tools
                .iter()
                .filter(|tool| tool_choice.permits(tool.name.as_str()))
                .cloned()
                .collect(),
            ToolChoice::Auto | ToolChoice::None | ToolChoice::Required => tools.clone(),
        };
        if forcing == Forcing::Required {
            return (offered, ToolChoice::Required);
        }
        self.record_loss(match tool_choice {
            ToolChoice::Named(name) => format!(
                "the call of {name} was not required: {} cannot be made to call a tool, so {name} was the only one offered",
                self.model
            ),
            _ => format!(
                "a call was not required: {} cannot be made to call a tool",
                self.model
            ),
        });
        (offered, ToolChoice::Auto)
    }

    /// Returns the error for a request that the vendor would refuse.
    pub(crate) fn bad_request(&self, message: impl Into<String>) -> ModelError {
        ModelError::BadRequest {
            provider: self.model.provider.clone(),
            message: message.into(),
        }
    }

    /// Returns the sampling settings to send to this family.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] for an explicit setting the family refuses, with the setting's
    /// name.
    pub(crate) fn settings(&mut self) -> Result<Settings, ModelError> {
        let config = &self.request.config;
        let explicit = Settings {
            temperature: config.temperature.map(|temperature| temperature.get()),
            top_p: config.top_p.map(|top_p| top_p.get()),
            top_k: config.top_k.map(|top_k| top_k.get()),
            max_tokens: config.max_tokens.map(|max_tokens| max_tokens.get()),
        };
        // Another program chose these values for this very model; they are sent unchecked.
        if config.verbatim {
            return Ok(explicit);
        }
        let family = self.family;
        Ok(Settings {
            // The caller did not ask for our default, so leaving it out is no loss.
            temperature: match (explicit.temperature, family.temperature) {
                (None, Setting::Taken) if !family.unknown => Some(TEMPERATURE),
                (None, _) => None,
                (Some(_), _) => {
                    self.if_supported(explicit.temperature, family.temperature, "temperature")?
                }
            },
            top_p: self.if_supported(explicit.top_p, family.top_p, "top_p")?,
            top_k: self.if_supported(explicit.top_k, family.top_k, "top_k")?,
            max_tokens: Some(self.max_tokens(explicit.max_tokens)),
        })
    }

    fn if_supported<T>(
        &mut self,
        value: Option<T>,
        setting: Setting,
        name: &str,
    ) -> Result<Option<T>, ModelError> {
        if value.is_some() && setting == Setting::Refused {
            let instead = format!("leave GenerationConfig::{name} (llm.{name}) unset");
            return self.unsupported(name, &instead);
        }
        Ok(value)
    }

    /// Returns the bound to send. The caller bounds the visible answer; where the vendor counts
    /// thinking inside the bound, an allowance for it is added.
    fn max_tokens(&mut self, explicit: Option<u32>) -> u32 {
        let visible = explicit.unwrap_or(OUTPUT_TOKENS_MAX);
        if self.family.unknown {
            return explicit.unwrap_or(UNKNOWN_OUTPUT);
        }
        let (allowance, most) = (self.family.thinking_allowance, self.family.output_max);
        // Never less than the caller asked for: a bound over the vendor's is the vendor's to
        // refuse.
        let sent = visible.saturating_add(allowance).min(most.max(visible));
        if sent > visible && explicit.is_some() {
            self.record_loss(format!(
                "max_tokens {visible} was sent as {sent}: the vendor counts thinking inside it"
            ));
        }
        sent
    }

    /// Returns the arguments of a call, for vendors that take an object only. Malformed arguments
    /// become an empty one.
    pub(crate) fn arguments(&mut self, call: &'a ToolCall) -> &'a Arguments {
        if call.malformed.is_some() {
            self.record_loss("arguments that are no JSON object were sent as an empty one");
        }
        &call.arguments
    }

    /// Returns the provider state of a part, which is sent back as it is. `None` if there is none,
    /// or if another model sent it, which is recorded as a loss.
    pub(crate) fn state(&mut self, part: &'a Part) -> Option<&'a Value> {
        let state = part.state.as_ref()?;
        if state.origin == *self.model {
            return Some(&state.data);
        }
        let is_empty = state.data.as_object().is_some_and(|data| data.is_empty());
        if !is_empty {
            self.record_loss(format!(
                "state of {} on {} was left out",
                state.origin,
                describe(&part.content)
            ));
        }
        None
    }

    /// Returns an image as bytes (media type and base64) or as an address, whichever this family
    /// takes; `None` if it was left out.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] if the family does not take it.
    pub(crate) fn image(
        &mut self,
        source: &'a ImageSource,
    ) -> Result<Option<Image<'a>>, ModelError> {
        let image = match source {
            ImageSource::Base64 { media_type, data } => Image::Bytes { media_type, data },
            ImageSource::Url(url) => {
                match url
                    .strip_prefix("data:")
                    .and_then(|rest| rest.split_once(";base64,"))
                {
                    Some((media_type, data)) => Image::Bytes { media_type, data },
                    None => Image::Url(url),
                }
            }
        };
        match (image, self.family.images) {
            (_, Images::BytesOrUrl) | (Image::Bytes { .. }, Images::Bytes) => Ok(Some(image)),
            (Image::Url(_), Images::Bytes) => self.unsupported(
                "an image by its address",
                "send its bytes (ImageSource::Base64)",
            ),
            (_, Images::None) => self.unsupported("images", "choose a model that does"),
        }
    }

    /// Returns an image as [`image`](Self::image) does, and refuses other files. For vendors whose
    /// own error for such a file does not name the cause.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] if the family does not take it, or it is not an image.
    pub(crate) fn picture(
        &mut self,
        source: &'a ImageSource,
    ) -> Result<Option<Image<'a>>, ModelError> {
        match self.image(source)? {
            Some(Image::Bytes { media_type, .. }) if !media_type.starts_with("image/") => self
                .unsupported(
                    &format!("{media_type} as an image"),
                    "send a picture (image/...)",
                ),
            image => Ok(image),
        }
    }

    /// Serializes the request.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] if it cannot be JSON.
    pub(crate) fn finish(self, wire: &impl Serialize) -> Result<Encoded, ModelError> {
        let body = serde_json::to_vec(wire).map_err(|error| self.bad_request(error.to_string()))?;
        Ok(self.encoded(body))
    }

    /// Returns a body that was serialized already, with the losses so far.
    pub(crate) fn encoded(self, body: Vec<u8>) -> Encoded {
        Encoded {
            body: body.into(),
            losses: self.losses,
        }
    }
}

/// The required calls that a model can be held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forcing {
    /// A call of any tool, or of a named one.
    Any,
    /// A call of any tool of those offered; a name is not understood.
    Required,
    /// None: the API has no tool choice, or refuses this one.
    Never,
}

/// An image as the caller gave it: its bytes, or an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Image<'a> {
    /// A media type such as `image/png`, and the bytes as base64.
    Bytes { media_type: &'a str, data: &'a str },
    /// An address from which the vendor fetches the image.
    Url(&'a str),
}

impl Image<'_> {
    /// Returns the address; for bytes, a `data:` URL.
    pub(crate) fn to_url(self) -> String {
        match self {
            Self::Bytes { media_type, data } => format!("data:{media_type};base64,{data}"),
            Self::Url(url) => url.to_owned(),
        }
    }
}

/// A tool in the form of Chat Completions, which Ollama shares.
#[derive(Debug, Serialize)]
pub(crate) struct FunctionTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    pub(crate) function: Function<'a>,
}

/// The function of a [`FunctionTool`].
#[derive(Debug, Serialize)]
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) description: &'a str,
    pub(crate) parameters: Value,
}

impl<'a> FunctionTool<'a> {
    /// Describes a tool, with its parameters in the JSON Schema that the server takes.
    pub(crate) fn new(tool: &'a ToolDefinition, parameters: Value) -> Self {
        Self {
            kind: "function",
            function: Function {
                name: tool.name.as_str(),
                description: &tool.description,
                parameters,
            },
        }
    }
}

/// Builds a JSON object, its fields in the given order.
pub(crate) fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Returns the text in a field of a JSON object.
pub(crate) fn str_field<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    fields.get(name)?.as_str()
}

/// Names a kind of content in a description of a loss.
pub(crate) fn describe(content: &Content) -> &'static str {
    match content {
        Content::Text { .. } => "text",
        Content::Thinking { .. } => "thinking",
        Content::Refusal { .. } => "a refusal",
        Content::Image { .. } => "an image",
        Content::ToolCall(_) => "a tool call",
        Content::ToolResult { .. } => "a tool result",
        Content::Opaque { .. } => "a trace of its own tools",
        // `Content` is non-exhaustive.
        _ => "a part",
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::{
        GenerationConfig, MaxTokens, Message, ProviderState, SchemaSupport, Temperature, TopK,
    };
    use serde_json::json;

    use super::*;

    const THINKER: FamilyLimits = FamilyLimits {
        context_window: 1000,
        output_max: 500,
        thinking_allowance: 400,
        temperature: Setting::Refused,
        top_p: Setting::Taken,
        top_k: Setting::Refused,
        schema: SchemaSupport::Native,
        images: Images::Bytes,
        unknown: false,
    };

    fn request(config: GenerationConfig) -> GenerateRequest {
        GenerateRequest {
            config,
            ..GenerateRequest::new(vec![Message::user("?").unwrap()])
        }
    }

    fn settings(
        family: FamilyLimits,
        config: GenerationConfig,
    ) -> (Result<Settings, ModelError>, Vec<String>) {
        let (model, request) = (ModelId::new("acme", "m1").unwrap(), request(config));
        let mut encoder = Encoder::new(&model, &family, &request);
        (encoder.settings(), encoder.losses)
    }

    #[test]
    fn defaults_are_left_out_where_they_are_refused_and_thinking_gets_room() {
        let (sent, losses) = settings(THINKER, GenerationConfig::default());
        let sent = sent.unwrap();
        // The allowance ends at the family's output limit, but an explicit bound stays.
        assert_eq!((sent.temperature, sent.max_tokens), (None, Some(1024)));
        assert_eq!(losses, Vec::<String>::new(), "defaults are no loss");
        let config = GenerationConfig {
            max_tokens: Some(MaxTokens::new(50).unwrap()),
            ..GenerationConfig::default()
        };
        let (sent, losses) = settings(THINKER, config);
        assert_eq!(sent.unwrap().max_tokens, Some(450));
        assert_eq!(
            losses[0],
            "max_tokens 50 was sent as 450: the vendor counts thinking inside it"
        );
        let (sent, losses) = settings(
            FamilyLimits {
                temperature: Setting::Taken,
                thinking_allowance: 0,
                ..THINKER
            },
            GenerationConfig::default(),
        );
        assert_eq!((sent.unwrap().temperature, losses.len()), (Some(0.0), 0));
    }

    #[test]
    fn a_model_nobody_knows_gets_room_and_no_settings_of_ours() {
        let family = FamilyLimits {
            temperature: Setting::Taken,
            unknown: true,
            ..THINKER
        };
        let (sent, losses) = settings(family, GenerationConfig::default());
        assert_eq!(
            sent.unwrap(),
            Settings {
                temperature: None,
                top_p: None,
                top_k: None,
                max_tokens: Some(16_384)
            }
        );
        assert_eq!(losses.len(), 0);
        // What was set goes out as it was set.
        let config = GenerationConfig {
            temperature: Some(Temperature::new(0.5).unwrap()),
            max_tokens: Some(MaxTokens::new(50).unwrap()),
            ..GenerationConfig::default()
        };
        let (sent, losses) = settings(family, config);
        let sent = sent.unwrap();
        assert_eq!(
            (sent.temperature, sent.max_tokens, losses.len()),
            (Some(0.5), Some(50), 0)
        );
        assert_eq!(
            family.capabilities().thinking_allowance,
            16_384 - OUTPUT_TOKENS_MAX
        );
    }

    #[test]
    fn an_explicit_setting_is_sent_or_is_the_error() {
        let config = GenerationConfig {
            temperature: Some(Temperature::new(0.5).unwrap()),
            top_k: Some(TopK::new(3).unwrap()),
            ..GenerationConfig::default()
        };
        let error = settings(THINKER, config.clone()).0.unwrap_err().to_string();
        assert!(
            error.contains("GenerationConfig::temperature (llm.temperature)"),
            "{error}"
        );
        let (sent, losses) = settings(
            THINKER,
            GenerationConfig {
                drop_unsupported: true,
                ..config.clone()
            },
        );
        assert_eq!((sent.unwrap().temperature, losses.len()), (None, 2));
        let (sent, losses) = settings(
            THINKER,
            GenerationConfig {
                verbatim: true,
                ..config.clone()
            },
        );
        assert_eq!(
            sent.unwrap(),
            Settings {
                temperature: Some(0.5),
                top_p: None,
                top_k: Some(3),
                max_tokens: None
            }
        );
        assert!(losses.is_empty());
        let advised = FamilyLimits {
            temperature: Setting::AdvisedAgainst,
            top_k: Setting::Taken,
            ..THINKER
        };
        assert_eq!(settings(advised, config).0.unwrap().temperature, Some(0.5));
    }

    #[test]
    fn a_tool_choice_is_sent_or_approximated_and_told() {
        let tool =
            |name| ToolDefinition::new(name, "Does it.", json!({ "type": "object" })).unwrap();
        let named = || ToolChoice::Named("b".into());
        for (choice, forcing, verbatim, tools, sent, told) in [
            (named(), Forcing::Any, false, "a b", named(), 0),
            (
                named(),
                Forcing::Required,
                false,
                "b",
                ToolChoice::Required,
                0,
            ),
            (named(), Forcing::Never, false, "b", ToolChoice::Auto, 1),
            (named(), Forcing::Never, true, "a b", named(), 0),
            (
                ToolChoice::Required,
                Forcing::Required,
                false,
                "a b",
                ToolChoice::Required,
                0,
            ),
            (
                ToolChoice::Required,
                Forcing::Never,
                false,
                "a b",
                ToolChoice::Auto,
                1,
            ),
            (
                ToolChoice::Auto,
                Forcing::Never,
                false,
                "a b",
                ToolChoice::Auto,
                0,
            ),
            (
                ToolChoice::None,
                Forcing::Never,
                false,
                "a b",
                ToolChoice::None,
                0,
            ),
        ] {
            let model = ModelId::new("acme", "m1").unwrap();
            let request = GenerateRequest {
                tools: vec![tool("a"), tool("b")].into(),
                tool_choice: choice.clone(),
                ..request(GenerationConfig {
                    verbatim,
                    ..GenerationConfig::default()
                })
            };
            let mut encoder = Encoder::new(&model, &THINKER, &request);
            let (offered, choice_sent) = encoder.offer(forcing);
            let names: Vec<&str> = offered.iter().map(|tool| tool.name.as_str()).collect();
            assert_eq!(
                (names.join(" ").as_str(), choice_sent, encoder.losses.len()),
                (tools, sent, told),
                "{choice:?} {forcing:?}"
            );
        }
    }

    #[test]
    fn only_state_of_this_model_goes_back() {
        let (model, request) = (
            ModelId::new("acme", "m1").unwrap(),
            request(GenerationConfig::default()),
        );
        let part = |name: &str, data: Value| {
            let state = ProviderState {
                origin: ModelId::new("acme", name).unwrap(),
                data,
            };
            Part::from_provider(Content::Thinking { text: "Hm".into() }, Some(state))
        };
        let (own, other, nothing) = (
            part("m1", json!({"s": 1})),
            part("m2", json!({"s": 1})),
            part("m2", json!({})),
        );
        let mut encoder = Encoder::new(&model, &THINKER, &request);
        assert_eq!(encoder.state(&own), Some(&json!({"s": 1})));
        assert_eq!(encoder.state(&other), None);
        assert_eq!(encoder.state(&nothing), None);
        assert_eq!(
            encoder.losses,
            ["state of acme/m2 on thinking was left out"]
        );
    }

    #[test]
    fn a_picture_the_model_cannot_take_says_so() {
        let (model, request) = (
            ModelId::new("acme", "m1").unwrap(),
            request(GenerationConfig::default()),
        );
        let mut encoder = Encoder::new(&model, &THINKER, &request);
        let data = ImageSource::Url("data:image/png;base64,AAAA".into());
        assert_eq!(
            encoder.image(&data).unwrap(),
            Some(Image::Bytes {
                media_type: "image/png",
                data: "AAAA"
            })
        );
        let url = ImageSource::Url("https://a.example/cat.png".into());
        let error = encoder.image(&url).unwrap_err().to_string();
        assert!(error.contains("ImageSource::Base64"), "{error}");
        let file = ImageSource::Base64 {
            media_type: "application/pdf".into(),
            data: "AAAA".into(),
        };
        assert!(encoder.image(&file).unwrap().is_some());
        let error = encoder.picture(&file).unwrap_err().to_string();
        assert!(
            error.contains("does not take application/pdf as an image; send a picture"),
            "{error}"
        );
        assert!(encoder.picture(&data).unwrap().is_some());
    }
}
