//! A provider's key, and the rule that a key is not sent to an address which a file of the working
//! directory names, unless the user agrees: the author of that file would get the key.

use std::path::Path;
use std::sync::Arc;

use adjutant_providers::Provider;
use secrecy::SecretString;

use super::WithheldKey;
use super::env_file::ProviderKeys;
use super::layer::{Assignment, Origin, Values};
use super::value::Value;
use crate::error::CliError;

impl Values {
    /// Returns the key of a provider, or the one that is withheld.
    pub(super) fn provider_key(
        &self,
        provider: &Provider,
        keys: &ProviderKeys<'_>,
    ) -> (Option<SecretString>, Option<WithheldKey>) {
        let found = provider
            .key_variable
            .and_then(|variable| keys.find(variable));
        let Some(found) = found else {
            return (None, None);
        };
        match self.address_of_project(provider, keys) {
            Some((address, address_origin)) if !found.of_project => {
                let withheld = WithheldKey {
                    key: found.key,
                    origin: found.origin,
                    address,
                    address_origin,
                    agreed: Arc::default(),
                };
                (None, Some(withheld))
            }
            _ => (Some(found.key), None),
        }
    }

    /// Checks that a database which the working directory names is not opened with a password from
    /// elsewhere.
    ///
    /// # Errors
    /// It would be: the server at that address would get the password.
    pub(super) fn check_database(&self, keys: &ProviderKeys<'_>) -> Result<(), CliError> {
        let Some(Assignment {
            value: Some(Value::Database(database)),
            origin,
            ..
        }) = self.find("serve.database_url")
        else {
            return Ok(());
        };
        if database.has_password() || !keys.is_of_project(origin) {
            return Ok(());
        }
        // The places where PostgreSQL's clients look for a password that the address does not have.
        let file = keys
            .process
            .get("HOME")
            .map(|home| Path::new(home).join(".pgpass"));
        let found = ["PGPASSWORD", "PGPASSFILE"]
            .into_iter()
            .find(|name| keys.process.contains_key(*name));
        let found = found.or(file.filter(|file| file.is_file()).map(|_| "~/.pgpass"));
        found.map_or(Ok(()), |found| {
            Err(CliError::configuration(format!(
                "your password ({found}) is not sent to {database}"
            ))
            .because(format!(
                "{origin}, a file of this folder, names the address, and has no password for it"
            ))
            .or_try("--database ADDRESS    an address that you name yourself")
            .or_try("the password in the folder's own address"))
        })
    }

    /// Returns the address of a provider and the source of it, if a file of the working directory
    /// names the address.
    fn address_of_project(
        &self,
        provider: &Provider,
        keys: &ProviderKeys<'_>,
    ) -> Option<(String, String)> {
        let set = |setting: &str| {
            let slot = self.find(&format!("{}.{setting}", provider.name))?;
            slot.value
                .as_ref()
                .map(|value| (value.to_string(), &slot.origin))
        };
        let of_project = |origin: &Origin| keys.is_of_project(origin).then(|| origin.to_string());
        if let Some((address, origin)) = set("base_url") {
            return Some((address, of_project(origin)?));
        }
        // Only Ollama's section has these. Either of the two leads elsewhere.
        let (host, port) = (set("host"), set("port"));
        let origin = [&host, &port]
            .into_iter()
            .flatten()
            .find_map(|(_, origin)| of_project(origin))?;
        let text = |part: Option<(String, _)>, default: &str| {
            part.map_or_else(|| default.to_owned(), |(text, _)| text)
        };
        Some((
            format!("{}:{}", text(host, "localhost"), text(port, "11434")),
            origin,
        ))
    }
}
