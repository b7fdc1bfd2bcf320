//! The workspace as `cargo metadata` describes it: packages, features, examples and dependencies.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::command::{Failure, cargo, output};

/// Packages and features that `check` and `test` build: everything, because the tests use every
/// provider and the fault-injection code of the feature `faults`, which lets a test kill the
/// program at a chosen point and changes nothing else. It is the same selection everywhere, since
/// another one would rebuild the workspace. The binary that ships is built without it, and is
/// tested by the clients of other languages.
pub(crate) const SELECTION: &[&str] = &["--workspace", "--all-features"];

/// A package of the workspace, with the parts of its manifest that the checks need.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) license: Option<String>,
    pub(crate) rust_version: Option<String>,
    /// Names of the features that the manifest declares or implies.
    pub(crate) features: BTreeSet<String>,
    /// Names of the examples, each with its `required-features`.
    pub(crate) examples: BTreeMap<String, Vec<String>>,
    /// Packages of this workspace that the library, program or build script depends on.
    pub(crate) arrows: BTreeSet<String>,
    /// Packages of this workspace that only tests and examples depend on.
    pub(crate) dev_arrows: BTreeSet<String>,
    /// All dependencies in the manifest, of this workspace or not.
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency in a manifest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dependency {
    /// The name in the manifest, which is the crate's name in the source but for hyphens.
    pub(crate) name: String,
    pub(crate) kind: DependencyKind,
}

/// The targets that may use a dependency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum DependencyKind {
    /// The library or program, and its build script.
    Product,
    /// Tests, examples and benchmarks only: it is in `dev-dependencies`.
    Test,
}

/// Returns the packages of this workspace.
///
/// # Errors
/// Cargo fails, for example because `Cargo.lock` is out of date.
pub(crate) fn packages() -> Result<Vec<Package>, Failure> {
    let text = output(&mut cargo([
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--locked",
    ]))?;
    parse(&text)
}

/// Returns every crate of the lock file that declares a `rust-version`, as `("name 1.2.3",
/// rust-version)`.
///
/// # Errors
/// Cargo fails.
pub(crate) fn rust_versions() -> Result<Vec<(String, String)>, Failure> {
    let text = output(&mut cargo([
        "metadata",
        "--format-version",
        "1",
        "--locked",
    ]))?;
    let metadata: Value = serde_json::from_str(&text)
        .map_err(|error| format!("cargo metadata is not JSON: {error}"))?;
    let stated = array(&metadata["packages"]).iter().filter_map(|package| {
        let needed = package["rust_version"].as_str()?;
        let name = format!(
            "{} {}",
            string(&package["name"]),
            string(&package["version"])
        );
        Some((name, needed.to_owned()))
    });
    Ok(stated.collect())
}

/// Returns the version of a package of this workspace.
///
/// # Errors
/// Cargo does not know the package.
pub(crate) fn version(package: &str) -> Result<String, Failure> {
    // The package id ends in `#name@1.2.3`.
    let id = output(&mut cargo(["pkgid", "--locked", "--package", package]))?;
    let version = id
        .trim()
        .rsplit_once('@')
        .map(|(_, version)| version.to_owned());
    version.ok_or_else(|| format!("cargo pkgid names no version: {id}"))
}

fn parse(text: &str) -> Result<Vec<Package>, Failure> {
    let metadata: Value = serde_json::from_str(text)
        .map_err(|error| format!("cargo metadata is not JSON: {error}"))?;
    let packages = array(&metadata["packages"]);
    let names: BTreeSet<String> = packages
        .iter()
        .map(|package| string(&package["name"]))
        .collect();
    if names.is_empty() {
        return Err("cargo metadata names no package".to_owned());
    }
    Ok(packages
        .iter()
        .map(|package| parse_package(package, &names))
        .collect())
}

fn parse_package(package: &Value, workspace: &BTreeSet<String>) -> Package {
    let arrows = |dev: bool| {
        array(&package["dependencies"])
            .iter()
            // `kind` is null for a normal dependency, and otherwise "dev" or "build".
            .filter(|dependency| (dependency["kind"] == "dev") == dev)
            .map(|dependency| string(&dependency["name"]))
            .filter(|name| workspace.contains(name))
            .collect()
    };
    let optional = |key: &str| package[key].as_str().map(str::to_owned);
    Package {
        name: string(&package["name"]),
        description: optional("description"),
        license: optional("license"),
        rust_version: optional("rust_version"),
        features: package["features"]
            .as_object()
            .map(|map| map.keys().cloned().collect())
            .unwrap_or_default(),
        examples: array(&package["targets"])
            .iter()
            .filter(|target| array(&target["kind"]).iter().any(|kind| kind == "example"))
            .map(|target| {
                (
                    string(&target["name"]),
                    array(&target["required-features"])
                        .iter()
                        .map(string)
                        .collect(),
                )
            })
            .collect(),
        arrows: arrows(false),
        dev_arrows: arrows(true),
        dependencies: array(&package["dependencies"])
            .iter()
            .map(parse_dependency)
            .collect(),
    }
}

fn parse_dependency(value: &Value) -> Dependency {
    Dependency {
        // The source uses the new name of a renamed dependency.
        name: value["rename"]
            .as_str()
            .map_or_else(|| string(&value["name"]), str::to_owned),
        kind: if value["kind"] == "dev" {
            DependencyKind::Test
        } else {
            DependencyKind::Product
        },
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_parsed_with_its_dependencies() {
        let packages = parse(
            r#"{"packages":[
                {"name":"a","license":"MIT","rust_version":null,"description":"A.","features":{"x":[],"default":["x"]},
                 "targets":[{"kind":["lib"],"name":"a"},{"kind":["example"],"name":"e","required-features":["x"]}],
                 "dependencies":[{"name":"b","kind":null},{"name":"serde","kind":null},{"name":"c","kind":"dev"},{"name":"c","kind":"build"}]},
                {"name":"b"},{"name":"c"}]}"#,
        )
        .expect("metadata");
        let set = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(packages[0].features, set(&["default", "x"]));
        assert_eq!(
            packages[0].examples,
            BTreeMap::from([("e".to_owned(), vec!["x".to_owned()])])
        );
        assert_eq!(
            (&packages[0].arrows, &packages[0].dev_arrows),
            (&set(&["b", "c"]), &set(&["c"]))
        );
        assert_eq!(packages[0].rust_version, None);
    }

    #[test]
    fn invalid_json_and_an_empty_list_of_packages_are_errors() {
        assert!(parse("{}").is_err());
        assert!(parse("cargo: command not found").is_err());
    }
}
