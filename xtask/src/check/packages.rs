//! What every package states about itself.

use crate::metadata::Package;

/// The licence of every package, and the files at the root that carry its text.
const LICENCE: &str = "MIT OR Apache-2.0";

/// Packages whose manifest lacks something.
pub(crate) fn incomplete(workspace: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    for package in workspace {
        let name = &package.name;
        if !(name == "adjutant" || name.starts_with("adjutant-") || name == "xtask") {
            found.push(format!(
                "{name}: packages are called adjutant or adjutant-..."
            ));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn package() -> Package {
        Package {
            name: "adjutant-x".to_owned(),
            description: Some("X.".to_owned()),
            license: Some(LICENCE.to_owned()),
            rust_version: Some("1.95".to_owned()),
            features: Default::default(),
            examples: Default::default(),
            arrows: Default::default(),
            dev_arrows: Default::default(),
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
}
