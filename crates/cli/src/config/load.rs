//! All sources of settings, loaded and laid over each other.

use adjutant_providers::Provider;

use super::credentials::Credentials;
use super::env_file::ProviderKeys;
use super::files::read_file;
use super::layer::{Assignment, Origin, Shown, Values};
use super::section::Section as _;
use super::sources::Sources;
use super::toml_file::{self, Owner};
use super::value::{Kind, Value};
use super::{KEYS, Settings, mcp, variables};
use crate::error::CliError;

impl Sources {
    /// Loads every source and lays them over each other.
    ///
    /// # Errors
    /// A file that was named cannot be read, or a setting is wrong in any of the sources, even if a
    /// stronger source has it too.
    pub(crate) fn load(&self) -> Result<Settings, CliError> {
        // From the weakest source to the strongest. Each is parsed whole, so that a mistake is
        // found where it is, and not only once the stronger source is gone.
        let mut values = Values::defaults(&KEYS, &self.dirs);
        let mut warnings = Vec::new();
        let user_file = self.user_file();
        let user_text = read_file(&user_file, self.config.is_some())?.unwrap_or_default();
        values.lay(toml_file::parse(&user_text, &user_file, Owner::User)?.layer);
        let project = self.read_project_file()?;
        if let Some(project) = &project {
            let parsed = toml_file::parse(&project.text, &project.path, project.owner)?;
            warnings.extend(parsed.not_trusted_warning(&project.path));
            values.lay_project(parsed.layer);
        }
        let env_file = self.read_env_file()?;
        warnings.extend(env_file.not_trusted.clone());
        values.lay(variables::parse(&env_file.variables, Some(&env_file.path))?);
        values.lay(variables::parse(&self.variables, None)?);
        self.lay_options(&mut values)?;
        let credentials = Credentials::load(&self.dirs.config)?;
        let keys = ProviderKeys {
            process: &self.variables,
            file: &env_file,
            credentials: &credentials,
            project_files: (project.iter().map(|project| project.path.clone()))
                .chain(env_file.of_project.then(|| env_file.path.clone()))
                .collect(),
        };
        // Only now it is known which source names the database.
        values.check_database(&keys)?;
        warnings.extend(credentials.warnings.iter().cloned());
        warnings.extend(variables::misspelt(&env_file.variables));
        warnings.extend(variables::misspelt(&self.variables));
        let mut settings = Settings::from_values("", &values)?;
        // A key has no place in a file of settings, so it is no setting and is added here.
        for provider in Provider::all() {
            let section = settings.providers.entry(provider.name).or_default();
            (section.key, section.withheld) = values.provider_key(provider, &keys);
        }
        settings.shown = values.shown(&keys);
        // Servers after the settings: their tables have names that users give.
        let lookup = mcp::Variables {
            process: &self.variables,
            file: &env_file.variables,
        };
        let mut servers = mcp::parse_servers(&user_text, &user_file, &lookup)?;
        if let Some(project) = project.filter(|project| project.owner == Owner::TrustedProject) {
            let of_project = mcp::parse_servers(&project.text, &project.path, &lookup)?;
            // One of the same name takes the other's place, as with every setting.
            let is_other =
                |a: &mcp::ServerTable, b: &mcp::ServerTable| a.config.name != b.config.name;
            servers.retain(|server| of_project.iter().all(|other| is_other(server, other)));
            servers.extend(of_project);
        }
        for server in servers {
            settings.mcp.push(server.config);
            settings.shown.extend(server.shown);
        }
        mcp::check_names(&settings.mcp)?;
        settings.dirs = self.dirs.clone();
        settings.warnings = warnings;
        Ok(settings)
    }

    /// Lays the options of the command line over the other sources.
    fn lay_options(&self, values: &mut Values) -> Result<(), CliError> {
        if let Some(model) = &self.model {
            // Whether there is such a model is checked where one is chosen.
            let value = Kind::Text
                .parse(model, false)
                .ok_or_else(|| CliError::usage("-m needs a model's name"))?;
            values.set("model", value, Origin::Flag("-m"));
        }
        if let Some(database) = &self.database {
            let value = Kind::Database.parse(database, false).ok_or_else(|| {
                CliError::usage(format!("--database needs {}", Kind::Database.expected()))
            })?;
            values.set("serve.database_url", value, Origin::Flag("--database"));
        }
        if let Some(vault) = &self.vault {
            let value = Value::Path(vault.clone());
            values.set("vault.path", value, Origin::Flag("--vault"));
        }
        Ok(())
    }
}

impl Values {
    /// Returns the lines of `adjutant config show`: every setting, then every provider's key.
    pub(super) fn shown(&self, keys: &ProviderKeys<'_>) -> Vec<Shown> {
        let line = |slot: &Assignment<Option<Value>>| Shown {
            name: slot.key.name.clone(),
            value: slot.value.as_ref().map(Value::to_string),
            unset: slot.key.unset,
            quiet: slot.key.quiet,
            origin: slot.origin.to_string(),
        };
        let mut shown: Vec<Shown> = self.0.iter().map(line).collect();
        for variable in Provider::all().filter_map(|provider| provider.key_variable) {
            // Providers of one vendor share its key.
            if shown.iter().any(|shown| shown.name == variable) {
                continue;
            }
            let key = keys.find(variable);
            shown.push(Shown {
                name: variable.to_owned(),
                value: key.as_ref().map(|_| "set, not shown".to_owned()),
                unset: "none",
                quiet: true,
                origin: key.map_or_else(|| Origin::Default.to_string(), |found| found.origin),
            });
        }
        shown
    }
}
