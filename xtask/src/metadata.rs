//! The workspace as `cargo metadata` describes it: packages, features, examples, dependencies.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::command::{Failure, cargo, output};

/// With all that everything can have: the library's tests go through every provider, its examples
/// need the rest, and self-destruction is built in, because only such programs can be killed at a
/// chosen instant; nothing else of them is different. One selection for all of it, and the one that
/// `check` uses: another would build the workspace again. What ships is built without, and meets
/// the clients.
pub(crate) const SELECTION: &[&str] = &["--workspace", "--all-features"];

/// One package of the workspace.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) license: Option<String>,
    pub(crate) rust_version: Option<String>,
    /// Names of its features.
    pub(crate) features: BTreeSet<String>,
    /// Its examples, each with the features it needs.
    pub(crate) examples: BTreeMap<String, Vec<String>>,
    /// Packages of this workspace it depends on to be built.
    pub(crate) arrows: BTreeSet<String>,
    /// Packages of this workspace only its tests and examples depend on.
    pub(crate) dev_arrows: BTreeSet<String>,
    /// Everything that its manifest depends on, of the workspace or not.
    pub(crate) dependencies: Vec<Dependency>,
}

/// A row of a manifest's dependencies.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dependency {
    /// The name by which the source knows it, with the manifest's hyphens.
    pub(crate) name: String,
    pub(crate) kind: DependencyKind,
}

/// The targets that may use a dependency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum DependencyKind {
    /// The library or program, and its build script.
    Product,
    /// Tests, examples and benchmarks too: it is in `dev-dependencies`.
    Test,
}

/// Returns the packages of this workspace.
///
/// # Errors
/// If cargo cannot read them, or `Cargo.lock` would have to change.
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

/// Returns each crate of the lock file that states the compiler it needs: its name with its version,
/// and that of the compiler.
///
/// # Errors
/// If cargo cannot read them.
pub(crate) fn rust_versions() -> Result<Vec<(String, String)>, Failure> {
    let text = output(&mut cargo([
        "metadata",
        "--format-version",
        "1",
        "--locked",
    ]))?;
    let metadata: Value = serde_json::from_str(&text)
        .map_err(|error| format!("cargo metadata is not JSON: {error}"))?;
    let stated = list(&metadata["packages"]).iter().filter_map(|package| {
        let needed = package["rust_version"].as_str()?;
        let name = format!(
            "{} {}",
            text_of(&package["name"]),
            text_of(&package["version"])
        );
        Some((name, needed.to_owned()))
    });
    Ok(stated.collect())
}

/// Returns the version of one of them.
///
/// # Errors
/// If cargo does not know it.
pub(crate) fn version(package: &str) -> Result<String, Failure> {
    // Ends in `#name@1.2.3`.
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
    let packages = list(&metadata["packages"]);
    let names: BTreeSet<String> = packages
        .iter()
        .map(|package| text_of(&package["name"]))
        .collect();
    if names.is_empty() {
        return Err("cargo metadata names no package".to_owned());
    }
    Ok(packages
        .iter()
        .map(|package| read(package, &names))
        .collect())
}

fn read(package: &Value, workspace: &BTreeSet<String>) -> Package {
    let arrows = |dev: bool| {
        list(&package["dependencies"])
            .iter()
            // Normal and build dependencies have another kind than "dev".
            .filter(|dependency| (dependency["kind"] == "dev") == dev)
            .map(|dependency| text_of(&dependency["name"]))
            .filter(|name| workspace.contains(name))
            .collect()
    };
    let optional = |key: &str| package[key].as_str().map(str::to_owned);
    Package {
        name: text_of(&package["name"]),
        description: optional("description"),
        license: optional("license"),
        rust_version: optional("rust_version"),
        features: package["features"]
            .as_object()
            .map(|map| map.keys().cloned().collect())
            .unwrap_or_default(),
        examples: list(&package["targets"])
            .iter()
            .filter(|target| list(&target["kind"]).iter().any(|kind| kind == "example"))
            .map(|target| {
                (
                    text_of(&target["name"]),
                    list(&target["required-features"])
                        .iter()
                        .map(text_of)
                        .collect(),
                )
            })
            .collect(),
        arrows: arrows(false),
        dev_arrows: arrows(true),
        dependencies: list(&package["dependencies"])
            .iter()
            .map(dependency)
            .collect(),
    }
}

fn dependency(value: &Value) -> Dependency {
    Dependency {
        name: value["rename"]
            .as_str()
            .map_or_else(|| text_of(&value["name"]), str::to_owned),
        kind: if value["kind"] == "dev" {
            DependencyKind::Test
        } else {
            DependencyKind::Product
        },
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_read_with_its_arrows() {
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
    fn no_packages_and_no_json_are_failures() {
        assert!(parse("{}").is_err());
        assert!(parse("cargo: command not found").is_err());
    }
}
