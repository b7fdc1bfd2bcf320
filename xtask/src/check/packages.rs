//! Required metadata of every package, and the minimum supported Rust version of all dependencies.

use crate::command::Failure;
use crate::metadata::{self, Package};

/// The licence of every package; `LICENSE-MIT` and `LICENSE-APACHE` at the root have its text.
const LICENCE: &str = "MIT OR Apache-2.0";

/// Returns missing or wrong metadata in the packages' manifests.
pub(crate) fn incomplete(workspace: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    for package in workspace {
        let name = &package.name;
        if !(name == "adjutant" || name.starts_with("adjutant-") || name == "xtask") {
            found.push(format!("{name}: the name must be adjutant or adjutant-..."));
        }
        if package.license.as_deref() != Some(LICENCE) {
            found.push(format!(
                "{name}: license must be {LICENCE:?} (license.workspace = true)"
            ));
        }
        if package.rust_version.is_none() {
            found.push(format!(
                "{name}: rust-version is missing (rust-version.workspace = true)"
            ));
        }
        if package
            .description
            .as_deref()
            .is_none_or(|text| text.trim().is_empty())
        {
            found.push(format!("{name}: description is missing"));
        }
    }
    found
}

/// Returns the crates of the lock file that need a newer compiler than the workspace's
/// `rust-version`. For our own code, clippy's `incompatible_msrv` does that.
///
/// # Errors
/// Cargo cannot read the dependencies.
pub(crate) fn too_new(workspace: &[Package]) -> Result<Vec<String>, Failure> {
    let promised: Vec<&str> = workspace
        .iter()
        .filter_map(|package| package.rust_version.as_deref())
        .collect();
    let (Some(oldest), Some(newest)) = (
        promised.iter().min_by_key(|version| numbers(version)),
        promised.iter().max_by_key(|version| numbers(version)),
    ) else {
        return Ok(vec!["no package states a rust-version".to_owned()]);
    };
    if numbers(oldest) != numbers(newest) {
        return Ok(vec![format!(
            "packages have different rust-versions: {oldest} and {newest}"
        )]);
    }
    Ok(needing_newer(metadata::rust_versions()?, oldest))
}

fn needing_newer(crates: Vec<(String, String)>, promised: &str) -> Vec<String> {
    crates
        .into_iter()
        .filter(|(_, needed)| numbers(needed) > numbers(promised))
        .map(|(name, needed)| format!("{name} needs Rust {needed}, and rust-version is {promised}"))
        .collect()
}

/// Parses a version, so that 1.9 is older than 1.95, and 1.95 equals 1.95.0.
fn numbers(version: &str) -> [u32; 3] {
    let mut numbers = [0; 3];
    for (number, part) in numbers.iter_mut().zip(version.split('.')) {
        *number = part.parse().unwrap_or(0);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package() -> Package {
        Package {
            name: "adjutant-x".to_owned(),
            description: Some("X.".to_owned()),
            license: Some(LICENCE.to_owned()),
            rust_version: Some("1.95".to_owned()),
            ..Package::default()
        }
    }

    #[test]
    fn a_complete_package_passes() {
        assert!(incomplete(&[package()]).is_empty());
    }

    #[test]
    fn each_missing_key_is_found() {
        let count = |package: Package| incomplete(&[package]).len();
        assert_eq!(
            count(Package {
                name: "helper".to_owned(),
                ..package()
            }),
            1
        );
        assert_eq!(
            count(Package {
                license: None,
                ..package()
            }),
            1
        );
        assert_eq!(
            count(Package {
                license: Some("MIT".to_owned()),
                ..package()
            }),
            1
        );
        assert_eq!(
            count(Package {
                rust_version: None,
                ..package()
            }),
            1
        );
        assert_eq!(
            count(Package {
                description: Some(" ".to_owned()),
                ..package()
            }),
            1
        );
    }

    #[test]
    fn a_crate_that_needs_a_newer_compiler_is_found() {
        let crates = ["1.9", "1.95", "1.95.0", "1.96", "1.100.0"]
            .map(|version| ("x".to_owned(), version.to_owned()));
        assert_eq!(
            needing_newer(crates.to_vec(), "1.95"),
            [
                "x needs Rust 1.96, and rust-version is 1.95",
                "x needs Rust 1.100.0, and rust-version is 1.95"
            ]
        );
    }
}
