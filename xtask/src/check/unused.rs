//! Dependencies that a package has in its manifest but does not name in its source.

use std::collections::BTreeSet;

use super::cycles::token::{Token, tokens};
use super::files::File;
use crate::metadata::{DependencyKind, Package};

/// Dependencies that are needed without being named: package, dependency, and the reason.
const UNNAMED: &[(&str, &str, &str)] = &[];

/// Returns the dependencies that no source file of their package names, and entries of [`UNNAMED`]
/// that are no longer true.
pub(crate) fn dependencies(workspace: &[Package], files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    for package in workspace {
        let folder = match package.name.strip_prefix("adjutant-") {
            Some(name) => format!("crates/{name}/"),
            None if package.name == "xtask" => "xtask/".to_owned(),
            None => format!("crates/{}/", package.name),
        };
        let product = names(files, |path| {
            path.starts_with(&format!("{folder}src/")) || path == format!("{folder}build.rs")
        });
        let all = names(files, |path| path.starts_with(&folder));
        for dependency in &package.dependencies {
            let crate_name = dependency.name.replace('-', "_");
            let named = match dependency.kind {
                DependencyKind::Product => product.contains(crate_name.as_str()),
                DependencyKind::Test => all.contains(crate_name.as_str()),
            };
            let known = UNNAMED
                .iter()
                .any(|(name, unnamed, _)| *name == package.name && *unnamed == dependency.name);
            if !named && !known {
                found.push(format!(
                    "{}: {} is in Cargo.toml, but no source file names it",
                    package.name, dependency.name
                ));
            } else if named && known {
                found.push(format!(
                    "{}: {} is named in the source: remove it from UNNAMED",
                    package.name, dependency.name
                ));
            }
        }
    }
    found
}

/// Returns every identifier in the Rust files that pass the filter, and in files that they include
/// with `#[path]`. Comments and literals do not count.
fn names(files: &[File], filter: impl Fn(&str) -> bool) -> BTreeSet<&str> {
    let own: Vec<&File> = files
        .iter()
        .filter(|file| file.path.ends_with(".rs") && filter(&file.path))
        .collect();
    let included: BTreeSet<String> = own.iter().flat_map(|file| included(file)).collect();
    files
        .iter()
        .filter(|file| filter(&file.path) || included.contains(&file.path))
        .filter(|file| file.path.ends_with(".rs"))
        .flat_map(|file| tokens(&file.text))
        .filter_map(|token| match token {
            Token::Ident(word) => Some(word),
            Token::PathSeparator | Token::Punct(_) | Token::Literal => None,
        })
        .collect()
}

/// Returns the paths, from the repository root, of the files that a file includes with `#[path =
/// "..."]`.
fn included(file: &File) -> impl Iterator<Item = String> {
    file.text.split("#[path = \"").skip(1).filter_map(|rest| {
        let mut folders: Vec<&str> = file.path.split('/').collect();
        folders.pop();
        for part in rest.split('"').next()?.split('/') {
            match part {
                ".." => drop(folders.pop()),
                "." => {}
                name => folders.push(name),
            }
        }
        Some(folders.join("/"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    fn package(kind: DependencyKind) -> Package {
        Package {
            name: "adjutant-a".to_owned(),
            dependencies: vec![Dependency {
                name: "some-crate".to_owned(),
                kind,
            }],
            ..Package::default()
        }
    }

    fn check(kind: DependencyKind, path: &str, text: &str, findings: usize) {
        let file = File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let shared = File {
            path: "tests/shared.rs".to_owned(),
            text: "use some_crate::X;".to_owned(),
        };
        assert_eq!(
            dependencies(&[package(kind)], &[file, shared]).len(),
            findings
        );
    }

    #[test]
    fn a_file_included_by_path_counts() {
        let text = "#[path = \"../../../../tests/shared.rs\"]\nmod shared;";
        check(DependencyKind::Test, "crates/a/tests/it/main.rs", text, 0);
        check(DependencyKind::Test, "crates/a/tests/it/main.rs", "", 1);
    }

    #[test]
    fn a_crate_is_used_where_it_is_named() {
        let product = DependencyKind::Product;
        check(product, "crates/a/src/lib.rs", "use some_crate::X;", 0);
        check(
            product,
            "crates/a/src/lib.rs",
            "// some_crate\n\"some_crate\"",
            1,
        );
        check(product, "crates/b/src/lib.rs", "use some_crate::X;", 1);
    }

    #[test]
    fn a_crate_that_only_tests_name_is_a_dev_dependency() {
        let text = "some_crate::x();";
        check(
            DependencyKind::Product,
            "crates/a/tests/it/main.rs",
            text,
            1,
        );
        check(DependencyKind::Test, "crates/a/tests/it/main.rs", text, 0);
    }
}
