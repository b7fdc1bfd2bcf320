//! What every vendor's encoder needs: settings by family, what could not be said, whose state a
//! part carries.

use std::borrow::Cow;
use std::collections::BTreeSet;

use adjutant_core::limits::{OUTPUT_TOKENS_MAX, TEMPERATURE};
use adjutant_core::{
    Arguments, Content, GenerateRequest, GenerationConfig, ImageSource, Message, ModelError,
    ModelId, Part, ToolCall,
};
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use crate::family::{Common, Images, Setting, UNKNOWN_OUTPUT};

/// A request as bytes, and what could not be said in it.
#[derive(Debug, Clone)]
pub(crate) struct Encoded {
    pub(crate) body: Bytes,
    pub(crate) losses: Vec<String>,
}

/// Collects what is lost between a request and a vendor's form of it, and refuses what may not be
/// lost.
#[derive(Debug)]
pub(crate) struct Encoder<'a> {
    pub(crate) model: &'a ModelId,
    pub(crate) family: &'a Common,
    config: &'a GenerationConfig,
    losses: Vec<String>,
}

/// The settings to send; `None`: nothing is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Settings {
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    pub(crate) top_k: Option<u32>,
    /// Allowance for thinking included.
    pub(crate) max_tokens: Option<u32>,
}

/// The request without what a vendor said about an answer it refused: nobody said that in the
/// conversation, and sent back as the assistant's words it would prime the next answer.
pub(crate) fn without_explanations(request: &GenerateRequest) -> Cow<'_, GenerateRequest> {
    let explains = |message: &Message| message.parts().iter().any(Part::is_explanation);
    if !request.messages.iter().any(explains) {
        return Cow::Borrowed(request);
    }
    let mut request = request.clone();
    let without = |message: Message| {
        let said = message
            .parts()
            .iter()
            .filter(|part| !part.is_explanation())
            .cloned()
            .collect();
        // Of a message that was nothing else nothing is left.
        if explains(&message) {
            Message::new(message.role(), said).ok()
        } else {
            Some(message)
        }
    };
    request.messages = request.messages.into_iter().filter_map(without).collect();
    Cow::Owned(request)
}

/// Whether a part may carry provider state to a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum State<'a> {
    /// This very model sent it: it goes back as it came.
    Own(&'a Value),
    /// There is none, or it belongs to another model (which was reported).
    None,
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(
        model: &'a ModelId,
        family: &'a Common,
        request: &'a GenerateRequest,
    ) -> Self {
        Self {
            model,
            family,
            config: &request.config,
            losses: Vec::new(),
        }
    }

    /// Something of the request does not go out as it was said.
    pub(crate) fn lose(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.losses.contains(&what) {
            self.losses.push(what);
        }
    }

    /// `what` goes out without these JSON Schema keywords.
    pub(crate) fn lose_keywords(&mut self, what: &str, dropped: &BTreeSet<String>) {
        if !dropped.is_empty() {
            let keywords: Vec<&str> = dropped.iter().map(String::as_str).collect();
            self.lose(format!("{what} was sent without {}", keywords.join(", ")));
        }
    }

    /// What the model does not take: an error, or a loss if the caller opted into that.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] unless `drop_unsupported` is set.
    pub(crate) fn unsupported(&mut self, what: &str, instead: &str) -> Result<(), ModelError> {
        if self.config.drop_unsupported {
            self.lose(format!(
                "{what} was left out: {} does not take it",
                self.model
            ));
            return Ok(());
        }
        Err(self.refuse(format!(
            "{} does not take {what}; {instead}, or set GenerationConfig::drop_unsupported to have it left out",
            self.model
        )))
    }

    /// Whether there is anything to answer among the messages that go out. The vendors say it in
    /// words that help nobody, and a server of Ollama loads the model and says nothing at all.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] if there is no message.
    pub(crate) fn something_to_answer(&self, messages: usize) -> Result<(), ModelError> {
        match messages {
            0 => Err(self.refuse(
                "there is nothing to answer: the transcript has no message besides the instruction",
            )),
            _ => Ok(()),
        }
    }

    /// A request that the vendor would refuse.
    pub(crate) fn refuse(&self, message: impl Into<String>) -> ModelError {
        ModelError::BadRequest {
            provider: self.model.provider.clone(),
            message: message.into(),
        }
    }

    /// The settings as this family takes them.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] for an explicit setting the family refuses, with the setter's
    /// name.
    pub(crate) fn settings(&mut self) -> Result<Settings, ModelError> {
        let config = self.config;
        let explicit = Settings {
            temperature: config.temperature.map(|temperature| temperature.get()),
            top_p: config.top_p.map(|top_p| top_p.get()),
            top_k: config.top_k.map(|top_k| top_k.get()),
            max_tokens: config.max_tokens.map(|max_tokens| max_tokens.get()),
        };
        if config.verbatim {
            return Ok(explicit);
        }
        let family = self.family;
        Ok(Settings {
            // A default of ours that a model does not take is nothing that anybody asked for: no
            // loss.
            temperature: match (explicit.temperature, family.temperature) {
                (None, Setting::Taken) if !family.unknown => Some(TEMPERATURE),
                (None, _) => None,
                (Some(_), _) => {
                    self.explicit(explicit.temperature, family.temperature, "temperature")?
                }
            },
            top_p: self.explicit(explicit.top_p, family.top_p, "top_p")?,
            top_k: self.explicit(explicit.top_k, family.top_k, "top_k")?,
            max_tokens: Some(self.max_tokens(explicit.max_tokens)),
        })
    }

    fn explicit<T>(
        &mut self,
        value: Option<T>,
        setting: Setting,
        name: &str,
    ) -> Result<Option<T>, ModelError> {
        if value.is_some() && setting == Setting::Refused {
            self.unsupported(
                name,
                &format!("leave GenerationConfig::{name} (llm.{name}) unset"),
            )?;
            return Ok(None);
        }
        Ok(value)
    }

    /// `max_tokens` bounds what is seen; where thinking counts inside it, that gets room on top.
    fn max_tokens(&mut self, explicit: Option<u32>) -> u32 {
        let visible = explicit.unwrap_or(OUTPUT_TOKENS_MAX);
        if self.family.unknown {
            return explicit.unwrap_or(UNKNOWN_OUTPUT);
        }
        let (allowance, most) = (self.family.thinking_allowance, self.family.output_max);
        let sent = visible.saturating_add(allowance).min(most.max(visible));
        if sent > visible && explicit.is_some() {
            self.lose(format!(
                "max_tokens {visible} was sent as {sent}: the vendor counts thinking inside it"
            ));
        }
        sent
    }

    /// The arguments of a call, for wires that take an object. What the model sent that was none
    /// has no place there.
    pub(crate) fn arguments(&mut self, call: &'a ToolCall) -> &'a Arguments {
        if call.malformed.is_some() {
            self.lose("arguments that are no JSON object were sent as an empty one");
        }
        &call.arguments
    }

    /// Whose state a part carries. State of another model is left out and reported.
    pub(crate) fn state(&mut self, part: &'a Part) -> State<'a> {
        match &part.state {
            Some(state) if state.origin == *self.model => State::Own(&state.data),
            Some(state) => {
                let says_something = state.data.as_object().is_none_or(|data| !data.is_empty());
                if says_something {
                    self.lose(format!(
                        "state of {} on {} was left out",
                        state.origin,
                        kind(&part.content)
                    ));
                }
                State::None
            }
            None => State::None,
        }
    }

    /// A picture as bytes (media type and base64) or as an address, whichever this family takes.
    /// `None`: it was left out.
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
            (Image::Url(_), Images::Bytes) => {
                self.unsupported(
                    "an image by its address",
                    "send its bytes (ImageSource::Base64)",
                )?;
                Ok(None)
            }
            (_, Images::None) => {
                self.unsupported("images", "choose a model that does")?;
                Ok(None)
            }
        }
    }

    /// The same for a vendor that takes nothing but pictures there: other files fail where nobody
    /// can tell why.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] if the family does not take it, or it is no picture.
    pub(crate) fn picture(
        &mut self,
        source: &'a ImageSource,
    ) -> Result<Option<Image<'a>>, ModelError> {
        match self.image(source)? {
            Some(Image::Bytes { media_type, .. }) if !media_type.starts_with("image/") => {
                self.unsupported(
                    &format!("{media_type} as an image"),
                    "send a picture (image/...)",
                )?;
                Ok(None)
            }
            image => Ok(image),
        }
    }

    /// The bytes.
    ///
    /// # Errors
    /// [`ModelError::BadRequest`] if it cannot be JSON.
    pub(crate) fn finish(self, wire: &impl Serialize) -> Result<Encoded, ModelError> {
        let body = serde_json::to_vec(wire).map_err(|error| self.refuse(error.to_string()))?;
        Ok(self.encoded(body))
    }

    /// Bytes that are the request already.
    pub(crate) fn encoded(self, body: Vec<u8>) -> Encoded {
        Encoded {
            body: body.into(),
            losses: self.losses,
        }
    }
}

/// A picture, wherever it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Image<'a> {
    /// Such as `image/png`, and base64.
    Bytes { media_type: &'a str, data: &'a str },
    /// An address.
    Url(&'a str),
}

/// What a part is, for people.
pub(crate) fn kind(content: &Content) -> &'static str {
    match content {
        Content::Text { .. } => "text",
        Content::Thinking { .. } => "thinking",
        Content::Refusal { .. } => "a refusal",
        Content::Image { .. } => "an image",
        Content::ToolCall(_) => "a tool call",
        Content::ToolResult { .. } => "a tool result",
        Content::Opaque { .. } => "a trace of its own tools",
        // Content may grow.
        _ => "a part",
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::{MaxTokens, Message, ProviderState, SchemaSupport, Temperature, TopK};
    use serde_json::json;

    use super::*;

    const THINKER: Common = Common {
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
        family: Common,
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
        // The room ends where the family's output does, but what was asked for stays.
        assert_eq!((sent.temperature, sent.max_tokens), (None, Some(1024)));
        assert_eq!(
            losses,
            Vec::<String>::new(),
            "nobody asked for our defaults"
        );
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
            Common {
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
        let family = Common {
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
        let advised = Common {
            temperature: Setting::AdvisedAgainst,
            top_k: Setting::Taken,
            ..THINKER
        };
        assert_eq!(settings(advised, config).0.unwrap().temperature, Some(0.5));
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
        assert_eq!(encoder.state(&own), State::Own(&json!({"s": 1})));
        assert_eq!(encoder.state(&other), State::None);
        assert_eq!(encoder.state(&nothing), State::None);
        assert_eq!(
            encoder.losses,
            ["state of acme/m2 on thinking was left out"]
        );
    }

    #[test]
    fn what_a_vendor_explains_is_not_said_again() {
        let model = ModelId::new("acme", "m1").unwrap();
        let text = |text: &str| Part::ours(Content::Text { text: text.into() });
        let refused = |parts: Vec<Part>| {
            let explanation = Part::explanation("This was refused.".into(), model.clone());
            Message::assistant(parts.into_iter().chain([explanation]).collect()).unwrap()
        };
        let ask = || Message::user("?").unwrap();
        let request = |messages| GenerateRequest::new(messages);
        let own_words = Part::from_provider(
            Content::Refusal {
                text: "I will not.".into(),
            },
            None,
        );
        let sent = without_explanations(&request(vec![
            ask(),
            refused(vec![text("Well")]),
            ask(),
            refused(Vec::new()),
            ask(),
            Message::assistant(vec![own_words.clone()]).unwrap(),
        ]))
        .into_owned();
        let said = Message::assistant(vec![text("Well")]).unwrap();
        let own = Message::assistant(vec![own_words]).unwrap();
        assert_eq!(sent.messages, [ask(), said, ask(), ask(), own]);
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
