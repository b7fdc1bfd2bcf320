//! Constrained decoding: restricts the tokens of an answer to those that keep it within a JSON
//! Schema.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use toktrie::{SimpleVob, TokEnv, TokenId};

use crate::error::DecodeError;
use crate::tokenizer::Tokenizer;

/// Compiles schemas to constraints for one tokenizer.
pub(crate) struct Constraints {
    factory: ParserFactory,
}

impl Constraints {
    pub(crate) fn new(tokenizer: Arc<Tokenizer>) -> Result<Self, DecodeError> {
        let environment: TokEnv = tokenizer;
        let mut factory = ParserFactory::new_simple(&environment).map_err(unusable)?;
        factory.quiet();
        Ok(Self { factory })
    }

    /// Compiles `schema` to a constraint for one answer, which is compact JSON.
    ///
    /// Only references inside of the schema (`#/...`) are followed.
    pub(crate) fn compile(&self, schema: &Value) -> Result<Constraint, DecodeError> {
        let mut schema = schema.clone();
        if let Value::Object(fields) = &mut schema {
            // Optional white space would make the model decide at every separator; without it about
            // half of the tokens are forced.
            fields.insert("x-guidance".into(), json!({ "whitespace_flexible": false }));
        }
        let parser = self
            .factory
            .create_parser(TopLevelGrammar::from_json_schema(schema));
        let matcher = Matcher::new(parser);
        match matcher.get_error() {
            Some(reason) => Err(DecodeError::Schema { reason }),
            None => Ok(Constraint { matcher }),
        }
    }
}

/// The position of one answer within its schema.
pub(crate) struct Constraint {
    matcher: Matcher,
}

impl Constraint {
    /// Takes the tokens that are the only possible ones, without asking the model.
    pub(crate) fn take_forced(&mut self) -> Vec<TokenId> {
        if self.is_complete() {
            return Vec::new();
        }
        self.matcher.consume_ff_tokens()
    }

    /// Returns true if the answer is complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.matcher.is_stopped()
    }

    /// Returns the tokens that are allowed next.
    pub(crate) fn allowed(&mut self) -> Result<SimpleVob, DecodeError> {
        self.matcher.compute_mask().map_err(unusable)
    }

    /// Advances by the token that the model chose. It must be an allowed one and not an end token.
    pub(crate) fn take(&mut self, token: TokenId) -> Result<(), DecodeError> {
        self.matcher.consume_token(token).map_err(unusable)
    }
}

fn unusable(error: impl std::fmt::Display) -> DecodeError {
    DecodeError::Schema {
        reason: error.to_string(),
    }
}
