//! Keys that are not sent to an address which a file of the working directory names, unless their
//! person agrees.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use adjutant_providers::Provider;
use secrecy::SecretString;

use super::env::Secrets;
use super::key::{DATABASE, Value};
use super::layers::Origin;
use super::{ProviderSettings, Values};
use crate::error::CliError;

/// A key that is not the working directory's, while the address that it would be sent to is.
#[derive(Debug, Clone)]
pub(crate) struct Withheld {
    pub(crate) key: SecretString,
    /// Where the key is from.
    pub(crate) origin: String,
    pub(crate) address: String,
    /// Where the address is from.
    pub(crate) address_origin: String,
    /// Set once the person has said that this address may have it.
    pub(crate) agreed: Arc<OnceLock<()>>,
}

impl ProviderSettings {
    /// Returns the key there is, whether it may be sent or not.
    pub(crate) fn any_key(&self) -> Option<&SecretString> {
        self.key
            .as_ref()
            .or(self.withheld.as_ref().map(|withheld| &withheld.key))
    }
}

impl Values {
    /// Returns the key of a provider; or the one that is kept back, because the working directory
    /// says where it would go.
    pub(super) fn key(
        &self,
        provider: &Provider,
        secrets: &Secrets<'_>,
    ) -> (Option<SecretString>, Option<Withheld>) {
        let found = provider
            .key_variable
            .and_then(|variable| secrets.get(variable));
        match (found, self.address_of_folder(provider, secrets)) {
            (Some(found), Some((address, address_origin))) if !found.of_folder => {
                let agreed = Arc::default();
                let (key, origin) = (found.key, found.origin);
                (
                    None,
                    Some(Withheld {
                        key,
                        origin,
                        address,
                        address_origin,
                        agreed,
                    }),
                )
            }
            (found, _) => (found.map(|found| found.key), None),
        }
    }

    /// Sees to it that a database which the working directory names is not opened with a password
    /// from elsewhere.
    ///
    /// # Errors
    /// It would be: whoever is at that address would get it.
    pub(super) fn check_database(&self, secrets: &Secrets<'_>) -> Result<(), CliError> {
        let slot = self
            .0
            .iter()
            .find(|slot| slot.0.name == DATABASE && secrets.is_of_folder(&slot.2));
        let Some((_, Some(Value::Database(database)), origin)) = slot else {
            return Ok(());
        };
        if database.has_password() {
            return Ok(());
        }
        let file = secrets
            .process
            .get("HOME")
            .map(|home| Path::new(home).join(".pgpass"));
        let found = ["PGPASSWORD", "PGPASSFILE"]
            .into_iter()
            .find(|name| secrets.process.contains_key(*name));
        let found = found.or(file.filter(|file| file.is_file()).map(|_| "~/.pgpass"));
        found.map_or(Ok(()), |found| {
            Err(CliError::configuration(format!(
                "your password ({found}) is not sent to {database}"
            ))
            .because(format!(
                "{origin}, a file of this folder, names the address, and has no password for it"
            ))
            .or_try("--database ADDRESS    an address that you say yourself")
            .or_try("the password in the folder's own address"))
        })
    }

    /// Returns the address that a file of the working directory gives a provider, and which file
    /// does.
    fn address_of_folder(
        &self,
        provider: &Provider,
        secrets: &Secrets<'_>,
    ) -> Option<(String, String)> {
        let set = |name: &str| {
            let slot = self.0.iter().find(|slot| slot.0.name == name)?;
            slot.1.as_ref().map(|value| (value.to_string(), &slot.2))
        };
        let said = |(address, origin): (String, &Origin)| {
            secrets
                .is_of_folder(origin)
                .then(|| (address, origin.to_string()))
        };
        let name = |setting: &str| format!("{}.{setting}", provider.name);
        if let Some(base_url) = set(&name("base_url")) {
            return said(base_url);
        }
        // Only Ollama's section has these.
        let (host, port) = (set(&name("host")), set(&name("port")));
        let part = |part: &Option<(String, &Origin)>, usual: &str| {
            part.as_ref()
                .map_or_else(|| usual.to_owned(), |(text, _)| text.clone())
        };
        let address = format!("{}:{}", part(&host, "localhost"), part(&port, "11434"));
        let (_, origin) = host.and_then(said).or_else(|| port.and_then(said))?;
        Some((address, origin))
    }
}
