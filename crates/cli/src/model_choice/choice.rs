//! The choice of a model as users write it: `PROVIDER`, `PROVIDER/MODEL` or `PROVIDER:FILE`.

use std::path::PathBuf;

use adjutant_core::nearest;
use adjutant_providers::Provider;

use crate::error::CliError;

/// Providers that are no vendors.
const OURS: &[&str] = &["embedded", "scripted", "demo"];

/// The choice of a model.
#[derive(Debug, Clone)]
pub(crate) enum Choice {
    /// A vendor's model; `None` for the configured one, else the provider's default.
    Vendor(&'static Provider, Option<String>),
    /// An embedded model; `None` for the configured one, else the default one.
    Embedded(Option<String>),
    /// An embedded model in a file of the user's.
    EmbeddedFile(PathBuf),
    /// Scripted answers from a file.
    Scripted(PathBuf),
    /// Scripted answers that are built in.
    Demo,
}

/// The origin of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    /// The user named it.
    Yes,
    /// It was found available.
    No,
}

impl Choice {
    /// Parses `PROVIDER`, `PROVIDER/MODEL` or `PROVIDER:FILE`.
    ///
    /// # Errors
    /// There is no such provider, or it does not take this form.
    pub(crate) fn parse(spec: &str) -> Result<Self, CliError> {
        let spec = spec.trim();
        let end = spec.find(['/', ':']).unwrap_or(spec.len());
        let (provider, rest) = spec.split_at(end);
        let rest = match rest.split_at_checked(1) {
            None => None,
            Some((_, "")) => return Err(unusable(spec, "nothing follows the provider's name")),
            Some((separator, name)) => Some((separator, name.to_owned())),
        };
        if let Some(vendor) = Provider::find(provider) {
            return match rest {
                None => Ok(Self::Vendor(vendor, None)),
                Some(("/", model)) => Ok(Self::Vendor(vendor, Some(model))),
                Some((_, model)) => Err(unusable(
                    spec,
                    &format!("a model stands behind a slash: {provider}/{model}"),
                )),
            };
        }
        match (provider, rest) {
            ("embedded", None) => Ok(Self::Embedded(None)),
            ("embedded", Some(("/", name))) => Ok(Self::Embedded(Some(name))),
            ("embedded", Some((_, file))) => Ok(Self::EmbeddedFile(PathBuf::from(file))),
            ("scripted", Some((":", file))) => Ok(Self::Scripted(PathBuf::from(file))),
            ("scripted", _) => Err(unusable(spec, "a script is a file: scripted:FILE")),
            ("demo", None) => Ok(Self::Demo),
            ("demo", Some(_)) => Err(unusable(spec, "the demo has one model")),
            (unknown, _) => Err(unknown_provider(spec, unknown)),
        }
    }

    /// Returns true if the choice names a model, not only a provider.
    pub(crate) fn has_model(&self) -> bool {
        match self {
            Self::Vendor(_, model) | Self::Embedded(model) => model.is_some(),
            Self::EmbeddedFile(_) | Self::Scripted(_) | Self::Demo => true,
        }
    }
}

/// Returns the variables of keys, the preferred providers first, one line each.
pub(crate) fn key_variables() -> Vec<String> {
    Provider::by_preference()
        .filter(|provider| provider.default_model.is_some())
        .filter_map(|provider| provider.key_variable)
        .take(3)
        .map(|variable| format!("{variable}=… adjutant …"))
        .collect()
}

fn unusable(spec: &str, cause: &str) -> CliError {
    CliError::no_such_model(format!("{spec:?} is not a model's name"))
        .because(cause)
        .or_try(
            "-m PROVIDER/NAME, -m embedded:FILE.gguf, -m scripted:FILE, -m demo (adjutant --help)",
        )
}

fn unknown_provider(spec: &str, unknown: &str) -> CliError {
    let error = CliError::no_such_model(format!("there is no provider {unknown:?}"));
    // The most likely mistake is a model's name without its provider.
    if let Some(provider) = provider_of_model(spec) {
        return error.because(format!("did you mean {provider}/{spec}?"));
    }
    // Names like `qwen3:8b` are Ollama's.
    let tagged = spec.contains(':')
        && !spec.contains('/')
        && nearest(unknown, OURS.iter().copied()).is_none();
    if let Some(provider) = Provider::find("ollama").filter(|_| tagged) {
        return error.because(format!("did you mean {}/{spec}?", provider.name));
    }
    let known = OURS
        .iter()
        .copied()
        .chain(Provider::all().flat_map(Provider::names));
    match nearest(unknown, known) {
        Some(near) => {
            let rest = spec.get(unknown.len()..).unwrap_or_default();
            error.because(format!("did you mean {near}{rest}?"))
        }
        None => {
            let names: Vec<&str> = Provider::all()
                .map(|provider| provider.name)
                .chain(OURS.iter().copied())
                .collect();
            error.because(format!("there are {}", names.join(", ")))
        }
    }
}

/// Returns the provider whose default model begins with the same word.
fn provider_of_model(model: &str) -> Option<&'static str> {
    let first = |name: &str| name.split('-').next().unwrap_or_default().to_owned();
    let word = first(model);
    let alike = |provider: &&Provider| {
        provider
            .default_model
            .is_some_and(|model| first(model) == word)
    };
    // A server on this machine has models of all makers, whose names say nothing about it.
    let makers = || Provider::by_preference().filter(|provider| !provider.local);
    (model.contains('-') && !word.is_empty())
        .then(|| makers().find(alike))?
        .map(|provider| provider.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(spec: &str) -> String {
        match Choice::parse(spec).unwrap() {
            Choice::Vendor(provider, model) => {
                format!("{} {}", provider.name, model.as_deref().unwrap_or("-"))
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn every_row_of_the_table_can_be_named_with_and_without_a_model() {
        for provider in Provider::all() {
            for name in provider.names() {
                assert_eq!(read(name), format!("{} -", provider.name));
                assert_eq!(
                    read(&format!("{name}/a/b:c")),
                    format!("{} a/b:c", provider.name)
                );
            }
        }
    }

    #[test]
    fn names_are_parsed_as_documented() {
        assert_eq!(read("embedded"), "Embedded(None)");
        assert_eq!(read("embedded/qwen"), "Embedded(Some(\"qwen\"))");
        assert_eq!(read("embedded:/a/b.gguf"), "EmbeddedFile(\"/a/b.gguf\")");
        assert_eq!(read("scripted:a/b.jsonl"), "Scripted(\"a/b.jsonl\")");
        assert_eq!(read(" demo "), "Demo");
    }

    #[cfg(feature = "gemini")]
    #[test]
    fn an_unknown_provider_is_an_error_with_the_nearest() {
        assert_eq!(read("google/gemini-x"), "gemini gemini-x");
        for (spec, hint) in [
            ("gemni", "did you mean gemini?"),
            ("embeded/x", "did you mean embedded/x?"),
            ("gemini-2.5-pro", "did you mean gemini/gemini-2.5-pro?"),
            ("skripted:f", "did you mean scripted:f?"),
            #[cfg(feature = "ollama")]
            ("qwen3:8b", "did you mean ollama/qwen3:8b?"),
            #[cfg(feature = "openai")]
            ("gpt-5", "did you mean openai/gpt-5?"),
            #[cfg(feature = "anthropic")]
            ("claude-x", "did you mean anthropic/claude-x?"),
            ("zzz", "there are gemini"),
            ("", "there are gemini"),
        ] {
            let error = Choice::parse(spec).unwrap_err();
            assert_eq!(error.exit as u8, 3, "{spec}");
            assert!(
                error.cause.as_ref().unwrap().contains(hint),
                "{spec}: {error:?}"
            );
        }
    }

    #[test]
    fn half_a_name_is_an_error() {
        for spec in ["embedded/", "embedded:", "scripted", "scripted/x", "demo/x"] {
            assert_eq!(Choice::parse(spec).unwrap_err().exit as u8, 3, "{spec}");
        }
        for provider in Provider::all() {
            for end in ["/", ":x"] {
                assert_eq!(
                    Choice::parse(&format!("{}{end}", provider.name))
                        .unwrap_err()
                        .exit as u8,
                    3
                );
            }
        }
    }
}
