//! The licences and notices of the third-party crates in the program, collected in one file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::binary::FEATURES;
use crate::command::{Failure, cargo, output, root};
use crate::file_system::{entries, read};

/// Beginnings, in lower case, of the names of files that must accompany a crate.
const NAMES: &[&str] = &["licen", "copying", "copyright", "notice", "unlicense"];

/// A third-party crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Crate {
    name: String,
    version: String,
    /// SPDX expression, or `in its text` if the manifest has none.
    licence: String,
    repository: String,
    /// Texts of its licences and notices; empty if it was published without any.
    texts: Vec<String>,
}

/// Returns the notice for the program as built for a target triple: all crates, their licences, and
/// every text once.
///
/// # Errors
/// Cargo fails, or a crate has neither a text nor a licence with a standard text.
pub(super) fn notice(triple: &str) -> Result<String, Failure> {
    let built = parse_tree(&output(&mut cargo([
        "tree",
        "--locked",
        "--package",
        "adjutant-cli",
        "--features",
        FEATURES,
        "--edges",
        // Procedural macros run in the compiler and are not part of the program.
        "normal,no-proc-macro",
        "--target",
        triple,
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]))?);
    let text = output(&mut cargo([
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        triple,
    ]))?;
    let metadata: Value = serde_json::from_str(&text)
        .map_err(|error| format!("cargo metadata is not JSON: {error}"))?;
    let mut crates = crates(&metadata, &built)?;
    crates.push(moment()?);
    crates.sort();
    let own = |name: &str| read(&root().join(name));
    render(
        &crates,
        &Standard {
            mit: &without_holder(&own("LICENSE-MIT")?),
            apache: &own("LICENSE-APACHE")?,
        },
    )
}

/// Returns the names of months and days in `crates/memory`, which come from moment.js, as a crate.
fn moment() -> Result<Crate, Failure> {
    Ok(Crate {
        name: "moment (names of months and days)".to_owned(),
        version: "2.29.4".to_owned(),
        licence: "MIT".to_owned(),
        repository: "https://github.com/moment/moment".to_owned(),
        texts: texts(&root().join("crates/memory/locales"))?,
    })
}

/// Parses the lines `name v1.2.3 (...)` of `cargo tree` into names and versions.
fn parse_tree(tree: &str) -> BTreeSet<(String, String)> {
    let pair = |line: &str| {
        let mut words = line.split_whitespace();
        Some((
            words.next()?.to_owned(),
            words.next()?.strip_prefix('v')?.to_owned(),
        ))
    };
    tree.lines().filter_map(pair).collect()
}

/// Returns those crates of cargo's metadata that are not of this workspace, with their texts.
fn crates(metadata: &Value, built: &BTreeSet<(String, String)>) -> Result<Vec<Crate>, Failure> {
    let packages = metadata["packages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for package in packages
        .iter()
        .filter(|package| !package["source"].is_null())
    {
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        if built.contains(&(name.clone(), version.clone())) {
            let folder = PathBuf::from(text(&package["manifest_path"]));
            let texts = texts(folder.parent().unwrap_or(Path::new("")))?;
            let licence = package["license"]
                .as_str()
                .unwrap_or("in its text")
                .to_owned();
            found.push(Crate {
                name,
                version,
                licence,
                repository: text(&package["repository"]),
                texts,
            });
        }
    }
    found.sort();
    if found.is_empty() {
        Err("cargo names no third-party crate".to_owned())
    } else {
        Ok(found)
    }
}

/// Reads every licence or notice file in a crate's folder, and in subfolders with such a name.
fn texts(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut texts = Vec::new();
    for path in entries(folder)? {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_lowercase();
        // A module such as `license.rs` has the right name but no licence text.
        if !NAMES.iter().any(|start| name.starts_with(start)) || name.ends_with(".rs") {
            continue;
        }
        let files = if path.is_dir() {
            entries(&path)?
        } else {
            vec![path]
        };
        for file in files.iter().filter(|file| file.is_file()) {
            let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
            texts.push(
                String::from_utf8_lossy(&bytes)
                    .replace('\r', "")
                    .trim_end()
                    .to_owned(),
            );
        }
    }
    Ok(texts)
}

/// Standard texts for crates that were published without a licence file.
struct Standard<'a> {
    /// The MIT text without its copyright line.
    mit: &'a str,
    apache: &'a str,
}

impl Standard<'_> {
    fn text_for(&self, dependency: &Crate) -> Result<String, Failure> {
        if dependency
            .licence
            .split_whitespace()
            .any(|word| word == "MIT")
        {
            return Ok(format!(
                "Copyright (c) the authors of {}\n\n{}",
                dependency.name, self.mit
            ));
        }
        if dependency
            .licence
            .split_whitespace()
            .any(|word| word == "Apache-2.0")
        {
            return Ok(self.apache.trim_end().to_owned());
        }
        Err(format!(
            "{} {} ({}) has no text of its licence",
            dependency.name, dependency.version, dependency.licence
        ))
    }
}

fn without_holder(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("Copyright (c)"))
        .collect();
    lines.join("\n")
}

fn render(crates: &[Crate], standard: &Standard<'_>) -> Result<String, Failure> {
    let mut text = format!(
        "Third-party crates in adjutant: {}. Each text below is that of the crates named above it.\n\n",
        crates.len()
    );
    // The key is the text without line breaks, because many copies differ only in these.
    let mut licences: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    for dependency in crates {
        let repository = if dependency.repository.is_empty() {
            ""
        } else {
            "  "
        };
        text += &format!(
            "{} {}  {}{repository}{}\n",
            dependency.name, dependency.version, dependency.licence, dependency.repository
        );
        let mut texts = dependency.texts.clone();
        if texts.is_empty() {
            texts.push(standard.text_for(dependency)?);
        }
        for licence in texts {
            let key = licence.split_whitespace().collect::<Vec<_>>().join(" ");
            let name = format!("{} {}", dependency.name, dependency.version);
            licences
                .entry(key)
                .or_insert_with(|| (licence, Vec::new()))
                .1
                .push(name);
        }
    }
    for (licence, names) in licences.into_values() {
        text += &format!("\n{}\n{}\n\n{licence}\n", "=".repeat(100), names.join(", "));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const STANDARD: Standard<'_> = Standard {
        mit: "MIT License\n\nPermission",
        apache: "Apache License",
    };

    fn one(name: &str, licence: &str, texts: &[&str]) -> Crate {
        Crate {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.to_owned(),
            repository: String::new(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    #[test]
    fn data_from_moment_js_has_its_licence() {
        let moment = moment().unwrap();
        assert!(
            moment.texts.len() == 1 && moment.texts[0].contains("JS Foundation"),
            "{:?}",
            moment.texts
        );
    }

    #[test]
    fn a_tree_is_read_line_by_line() {
        let tree = "adjutant-cli v0.1.0 (crates/cli)\nserde v1.0.229\nserde v1.0.229 (*)\n\n";
        let names: Vec<String> = parse_tree(tree)
            .into_iter()
            .map(|(name, version)| name + " " + &version)
            .collect();
        assert_eq!(names, ["adjutant-cli 0.1.0", "serde 1.0.229"]);
    }

    #[test]
    fn each_text_stands_once_with_its_crates() {
        let crates = [
            one("a", "MIT", &["One\ntext"]),
            one("b", "MIT", &["One text", "Notice"]),
        ];
        let text = render(&crates, &STANDARD).expect("a notice");
        assert!(
            text.starts_with("Third-party crates in adjutant: 2."),
            "{text}"
        );
        assert_eq!(text.matches("One").count(), 1, "{text}");
        assert!(text.contains("\na 1.0.0, b 1.0.0\n\nOne\ntext\n"), "{text}");
        assert!(text.contains("\nb 1.0.0\n\nNotice\n"), "{text}");
    }

    #[test]
    fn a_crate_without_a_text_gets_the_standard_one_or_is_refused() {
        let text = render(&[one("a", "Apache-2.0 OR MIT", &[])], &STANDARD).expect("a notice");
        assert!(
            text.contains("Copyright (c) the authors of a\n\nMIT License"),
            "{text}"
        );
        let apache = render(&[one("a", "Apache-2.0", &[])], &STANDARD).expect("a notice");
        assert!(apache.contains("\nApache License\n"), "{apache}");
        let refused = render(&[one("a", "ISC", &[])], &STANDARD);
        assert_eq!(
            refused,
            Err("a 1.0.0 (ISC) has no text of its licence".to_owned())
        );
    }

    #[test]
    fn our_copyright_line_is_not_put_on_other_crates() {
        assert_eq!(
            without_holder("MIT\n\nCopyright (c) 2026 Us\n\nPermission"),
            "MIT\n\n\nPermission"
        );
    }

    #[test]
    fn only_crates_of_the_binary_are_read_with_their_texts() {
        let package = |name: &str, source: Value| {
            json!({
                "name": name, "version": "1.0.0", "license": "MIT OR Apache-2.0", "repository": null,
                "source": source, "manifest_path": root().join("Cargo.toml"),
            })
        };
        let packages = [
            package("inside", json!("a registry")),
            package("outside", json!("a registry")),
            package("ours", Value::Null),
        ];
        let metadata = json!({ "packages": packages });
        let named = |name: &str| (name.to_owned(), "1.0.0".to_owned());
        let inside = BTreeSet::from([named("inside"), named("ours")]);
        let found = crates(&metadata, &inside).expect("crates");
        assert_eq!(
            found.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(),
            ["inside"]
        );
        assert_eq!(
            (found[0].licence.as_str(), found[0].texts.len()),
            ("MIT OR Apache-2.0", 2)
        );
        assert!(crates(&metadata, &BTreeSet::new()).is_err());
    }
}
