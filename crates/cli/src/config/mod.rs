//! Settings: defaults, files, variables and options, laid over each other; each value knows where it came from.
//!
//! Later wins: default, user's file, project's file, `.env`, process, option.

mod dirs; // where things are
mod key; // which settings there are
mod layers; // one source at a time

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use adjutant_core::{MaxTokens, Temperature};
use secrecy::SecretString;

pub(crate) use dirs::Dirs;
use key::{KEYS, Value};
use layers::{Layer, Origin, Owner};

use crate::error::CliError;

/// The project's file, in the working directory.
const PROJECT_FILE: &str = "adjutant.toml";

/// The variable Gemini's key is in.
const GEMINI_KEY: &str = "GEMINI_API_KEY";

/// Where settings are looked for.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) dirs: Dirs,
    /// The working directory.
    pub(crate) project: PathBuf,
    /// The process's variables.
    pub(crate) variables: BTreeMap<String, String>,
    /// `--config`.
    pub(crate) config: Option<PathBuf>,
    /// `--env-file`.
    pub(crate) env_file: Option<PathBuf>,
    /// `--model`.
    pub(crate) model: Option<String>,
}

/// Every setting as it applies.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Who answers, if it was said.
    pub(crate) model: Option<String>,
    pub(crate) user_name: String,
    pub(crate) system_prompt_path: Option<PathBuf>,
    pub(crate) llm: Llm,
    pub(crate) agent: AgentSettings,
    pub(crate) gemini: GeminiSettings,
    /// The embedded model's name in the catalogue.
    pub(crate) embedded_model: Option<String>,
    pub(crate) store_path: PathBuf,
    #[cfg_attr(
        not(any(feature = "embedded", feature = "gemini")),
        expect(dead_code, reason = "only the models outside a script need folders")
    )]
    pub(crate) dirs: Dirs,
    /// Every setting's name, value and origin, for showing.
    pub(crate) shown: Vec<Shown>,
    /// What looks like a mistake and stops nothing.
    pub(crate) warnings: Vec<String>,
}

/// `[llm]`: how answers are generated, whoever does. `None`: the provider's own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Llm {
    pub(crate) temperature: Option<Temperature>,
    pub(crate) max_tokens: Option<MaxTokens>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retries: Option<u32>,
}

/// `[agent]`: the bounds of a turn, and who may do what.
#[derive(Debug, Clone, Default)]
pub(crate) struct AgentSettings {
    pub(crate) max_tool_iterations: Option<u32>,
    pub(crate) tool_timeout: Option<Duration>,
    pub(crate) turn_deadline: Option<Duration>,
    pub(crate) identical_calls_max: Option<u32>,
    pub(crate) confirmation_expiry: Option<Duration>,
    pub(crate) confirm: Vec<String>,
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
}

/// `[gemini]`, and its key from the environment.
#[derive(Debug, Clone, Default)]
#[cfg_attr(not(feature = "gemini"), expect(dead_code, reason = "settings are checked in every build"))]
pub(crate) struct GeminiSettings {
    pub(crate) model: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) key: Option<SecretString>,
}

/// One line of `adjutant config show`.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) name: &'static str,
    /// `None`: it has no value; what applies then is in `unset`.
    pub(crate) value: Option<String>,
    pub(crate) unset: &'static str,
    pub(crate) origin: String,
}

impl Sources {
    /// What this process was started with.
    ///
    /// # Errors
    /// No home directory.
    pub(crate) fn of_process(
        config: Option<PathBuf>,
        env_file: Option<PathBuf>,
        model: Option<String>,
    ) -> Result<Self, CliError> {
        let variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let project = std::env::current_dir().unwrap_or_default();
        Ok(Self { dirs: Dirs::of_process(&variables)?, project, variables, config, env_file, model })
    }

    /// The user's file: the named one, or the usual one.
    pub(crate) fn user_file(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| self.dirs.config.join("config.toml"))
    }

    /// The `.env` file: the named one, or the usual one. Never the working directory's: a cloned repository must not
    /// redirect a key.
    pub(crate) fn env_file(&self) -> PathBuf {
        self.env_file.clone().unwrap_or_else(|| self.dirs.config.join(".env"))
    }

    /// The project's file, unless it is the user's anyway.
    pub(crate) fn project_file(&self) -> Option<PathBuf> {
        let file = self.project.join(PROJECT_FILE);
        let same =
            |other: &Path| matches!((other.canonicalize(), file.canonicalize()), (Ok(a), Ok(b)) if a == b);
        (!same(&self.user_file())).then_some(file)
    }

    /// Reads everything and lays it over each other.
    ///
    /// # Errors
    /// A file that was named and cannot be read, or any setting that is wrong, wherever it is.
    pub(crate) fn load(&self) -> Result<Settings, CliError> {
        let mut values = Values::new(&self.dirs);
        let user_file = self.user_file();
        if let Some(text) = read(&user_file, self.config.is_some())? {
            values.lay(layers::toml(&text, &user_file, Owner::User)?);
        }
        if let Some(file) = self.project_file()
            && let Some(text) = read(&file, false)?
        {
            values.lay(stricter(layers::toml(&text, &file, Owner::Project)?, &values));
        }
        let env_path = self.env_file();
        let env_file = match read(&env_path, self.env_file.is_some())? {
            Some(text) => env_variables(&text, &env_path)?,
            None => BTreeMap::new(),
        };
        values.lay(layers::variables(&env_file, Some(&env_path))?);
        values.lay(layers::variables(&self.variables, None)?);
        if let Some(model) = &self.model {
            let value =
                KEYS[0].kind.read(model, false).ok_or_else(|| CliError::usage("-m needs a model's name"))?;
            values.set("model", value, Origin::Flag("-m"));
        }
        let key = |variables: &BTreeMap<String, String>| {
            variables.get(GEMINI_KEY).map(|key| key.trim().to_owned()).filter(|key| !key.is_empty())
        };
        let key = match (key(&self.variables), key(&env_file)) {
            (Some(key), _) => Some((key, format!("variable {GEMINI_KEY}"))),
            (None, Some(key)) => Some((key, format!("{GEMINI_KEY} in {}", env_path.display()))),
            (None, None) => None,
        };
        let mut warnings = layers::misspelt(&env_file);
        warnings.extend(layers::misspelt(&self.variables));
        Ok(values.settle(&self.dirs, key, warnings))
    }
}

/// A project's lists add to what the user has confirmed or denied; they take nothing away.
fn stricter(layer: Layer, below: &Values) -> Layer {
    let add = |(key, value, origin): (&'static key::Key, Value, Origin)| match value {
        Value::List(names) => {
            let mut all = below.list(key.name);
            all.extend(names.into_iter().filter(|name| !below.list(key.name).contains(name)));
            (key, Value::List(all), origin)
        }
        value => (key, value, origin),
    };
    layer.into_iter().map(add).collect()
}

/// A file's text; `None` if it is not there and need not be.
fn read(path: &Path, needed: bool) -> Result<Option<String>, CliError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !needed => Ok(None),
        Err(error) => {
            Err(CliError::configuration(format!("{} cannot be read", path.display()))
                .because(error.to_string()))
        }
    }
}

fn env_variables(text: &str, path: &Path) -> Result<BTreeMap<String, String>, CliError> {
    // The error's own words quote the line, and the line may hold a key.
    dotenvy::from_read_iter(text.as_bytes()).collect::<Result<_, _>>().map_err(|_| {
        CliError::configuration(format!("{} has a line that is not NAME=VALUE", path.display()))
            .or_try("put a value with spaces or # into quotes")
    })
}

/// Settings by name while they are collected.
struct Values(Vec<(&'static key::Key, Option<Value>, Origin)>);

impl Values {
    fn new(dirs: &Dirs) -> Self {
        Self(KEYS.iter().map(|key| (key, (key.default)(dirs), Origin::Default)).collect())
    }

    fn lay(&mut self, layer: Layer) {
        for (key, value, origin) in layer {
            self.set(key.name, value, origin);
        }
    }

    fn set(&mut self, name: &str, value: Value, origin: Origin) {
        for slot in self.0.iter_mut().filter(|slot| slot.0.name == name) {
            slot.1 = Some(value.clone());
            slot.2 = origin.clone();
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|slot| slot.0.name == name)?.1.as_ref()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(Value::to_string)
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        if let Some(Value::Path(path)) = self.get(name) { Some(path.clone()) } else { None }
    }

    fn time(&self, name: &str) -> Option<Duration> {
        if let Some(Value::Duration(time)) = self.get(name) { Some(*time) } else { None }
    }

    fn integer(&self, name: &str) -> Option<u32> {
        if let Some(Value::Integer(number)) = self.get(name) { u32::try_from(*number).ok() } else { None }
    }

    fn number(&self, name: &str) -> Option<f64> {
        if let Some(Value::Number(number)) = self.get(name) { Some(*number) } else { None }
    }

    fn list(&self, name: &str) -> Vec<String> {
        if let Some(Value::List(names)) = self.get(name) { names.clone() } else { Vec::new() }
    }

    fn settle(self, dirs: &Dirs, key: Option<(String, String)>, warnings: Vec<String>) -> Settings {
        let mut shown: Vec<Shown> = self
            .0
            .iter()
            .map(|(key, value, origin)| Shown {
                name: key.name,
                value: value.as_ref().map(Value::to_string),
                unset: key.unset,
                origin: origin.to_string(),
            })
            .collect();
        shown.push(Shown {
            name: GEMINI_KEY,
            value: key.as_ref().map(|_| "set, not shown".to_owned()),
            unset: "none",
            origin: key.as_ref().map_or_else(|| Origin::Default.to_string(), |(_, origin)| origin.clone()),
        });
        Settings {
            model: self.text("model"),
            user_name: self.text("user_name").unwrap_or_default(),
            system_prompt_path: self.path("system_prompt_path"),
            llm: Llm {
                temperature: self.number("llm.temperature").and_then(|value| Temperature::new(value).ok()),
                max_tokens: self.integer("llm.max_tokens").and_then(|value| MaxTokens::new(value).ok()),
                timeout: self.time("llm.timeout"),
                retries: self.integer("llm.retries"),
            },
            agent: AgentSettings {
                max_tool_iterations: self.integer("agent.max_tool_iterations"),
                tool_timeout: self.time("agent.tool_timeout"),
                turn_deadline: self.time("agent.turn_deadline"),
                identical_calls_max: self.integer("agent.identical_calls_max"),
                confirmation_expiry: self.time("agent.confirmation_expiry"),
                confirm: self.list("agent.confirm"),
                allow: self.list("agent.allow"),
                deny: self.list("agent.deny"),
            },
            gemini: GeminiSettings {
                model: self.text("gemini.model"),
                base_url: self.text("gemini.base_url"),
                key: key.map(|(key, _)| SecretString::from(key)),
            },
            embedded_model: self.text("embedded.model"),
            store_path: self.path("store.path").unwrap_or_else(|| dirs.data.join("adjutant.db")),
            dirs: dirs.clone(),
            shown,
            warnings,
        }
    }
}

#[cfg(test)]
mod tests;
