//! Vaults of several users of a service.

use std::path::{Path, PathBuf};

use adjutant_core::UserId;

use crate::config::Settings;
use crate::error::CliError;

/// A user and their vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnVault {
    pub(crate) user: UserId,
    pub(crate) path: PathBuf,
    /// The setting that assigns it.
    pub(crate) setting: String,
}

impl OwnVault {
    /// Returns the settings for this user's memory and assistant. Those of `vault.path` are
    /// unchanged.
    pub(crate) fn settings(&self, settings: &Settings) -> Settings {
        let mut own = settings.clone();
        own.memory.vault = Some(self.path.clone());
        if !self.is_of_machine() {
            self.user.as_str().clone_into(&mut own.user_name);
        }
        own
    }

    /// Returns true for the vault of `vault.path`, whose owner also owns the local user's
    /// instruction files.
    pub(crate) fn is_of_machine(&self) -> bool {
        self.setting == PATH
    }
}

const PATH: &str = "vault.path";

/// Returns the vaults in the settings, that of `vault.path` first.
///
/// # Errors
/// A user name is invalid, a user has two vaults, or two users have the same folder or one inside
/// of the other's.
pub(crate) fn vaults(settings: &Settings) -> Result<Vec<OwnVault>, CliError> {
    let memory = &settings.memory;
    let user = |name: &str, setting: &str| {
        UserId::new(name).map_err(|error| CliError::configuration(format!("{setting}: {error}")))
    };
    let owner = match &memory.owner {
        Some(name) => user(name, "vault.owner")?,
        None => UserId::local(),
    };
    let mut all = Vec::new();
    if let Some(path) = &memory.vault {
        all.push(OwnVault {
            user: owner,
            path: path.clone(),
            setting: PATH.to_owned(),
        });
    }
    for (name, path) in &memory.users {
        let setting = format!("vault.users.{name}");
        let own = OwnVault {
            user: user(name, &setting)?,
            path: path.clone(),
            setting,
        };
        // Compared with all before it, so that each pair is compared once.
        for other in &all {
            apart(&own, other)?;
        }
        all.push(own);
    }
    Ok(all)
}

fn apart(own: &OwnVault, other: &OwnVault) -> Result<(), CliError> {
    if own.user == other.user {
        return Err(
            CliError::configuration(format!("{} has two vaults", own.user))
                .because(format!("{} and {}", other.setting, own.setting))
                .or_try("leave one of them out"),
        );
    }
    // A search in the outer folder would find the notes of the other user.
    let (one, two) = (real(&own.path), real(&other.path));
    if one.starts_with(&two) || two.starts_with(&one) {
        return Err(CliError::configuration(format!(
            "the vaults of {} and {} are one folder, or one is in the other",
            other.user, own.user
        ))
        .because(format!(
            "{} is {}, and {} is {}",
            other.setting,
            two.display(),
            own.setting,
            one.display()
        ))
        .or_try("a folder for each, beside each other"));
    }
    Ok(())
}

/// Resolves symbolic links of the existing part of a path. The rest may be created later and must
/// not overlap with another user's vault either.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // A folder that does not exist yet has no canonical path, but an ancestor may be a link.
    let there = path
        .ancestors()
        .find_map(|part| Some((part, part.canonicalize().ok()?)));
    match there {
        Some((part, real)) => path
            .strip_prefix(part)
            .map_or(real.clone(), |rest| real.join(rest)),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_vault(user: &str, path: &Path) -> OwnVault {
        OwnVault {
            user: UserId::new(user).unwrap(),
            path: path.to_owned(),
            setting: format!("of {user}"),
        }
    }

    #[test]
    fn no_two_users_share_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("anna/inside")).unwrap();
        std::fs::create_dir(path("annabel")).unwrap();
        let anna = own_vault("anna", &path("anna"));
        for shared in [
            "anna",
            "anna/inside",
            "anna/not there",
            ".",
            "annabel/../anna",
        ] {
            assert!(
                apart(&own_vault("bert", &path(shared)), &anna).is_err(),
                "{shared}"
            );
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(path("anna"), path("link")).unwrap();
            assert!(apart(&own_vault("bert", &path("link")), &anna).is_err());
            assert!(apart(&own_vault("bert", &path("link/later")), &anna).is_err());
        }
        for other in ["annabel", "annabel/not there", "bert"] {
            apart(&own_vault("bert", &path(other)), &anna).unwrap();
        }
        assert!(
            apart(&own_vault("anna", &path("annabel")), &anna).is_err(),
            "two of one user"
        );
    }
}
