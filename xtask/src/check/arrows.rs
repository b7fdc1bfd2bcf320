//! Allowed dependencies between the crates of the workspace. A new one is a design decision: review
//! the map in `docs/ARCHITECTURE.md`, then add it to the list here.

use std::collections::BTreeSet;

use crate::metadata::Package;

/// The workspace packages that a package may depend on. Cargo refuses cycles; this list also
/// refuses dependencies that skip a layer.
struct Allowed {
    package: &'static str,
    /// Dependencies of the library or program.
    normal: &'static [&'static str],
    /// Dependencies of tests and examples only.
    dev: &'static [&'static str],
}

const ALLOWED: &[Allowed] = &[
    Allowed {
        package: "adjutant-core",
        normal: &[],
        dev: &[],
    },
    Allowed {
        package: "adjutant-macros",
        normal: &[],
        dev: &[],
    },
    Allowed {
        package: "adjutant-providers",
        normal: &["adjutant-core"],
        dev: &[],
    },
    Allowed {
        package: "adjutant-embedded",
        normal: &["adjutant-core"],
        dev: &[],
    },
    Allowed {
        package: "adjutant-tools",
        normal: &["adjutant-core"],
        dev: &["adjutant-macros"],
    },
    Allowed {
        package: "adjutant-weak",
        normal: &["adjutant-core"],
        dev: &[],
    },
    // Its tests enable its own feature `contract`, the test suite that every backend must pass.
    Allowed {
        package: "adjutant-store",
        normal: &["adjutant-core", "adjutant-tools"],
        dev: &["adjutant-store"],
    },
    Allowed {
        package: "adjutant-runtime",
        normal: &["adjutant-core", "adjutant-weak"],
        dev: &["adjutant-providers", "adjutant-store", "adjutant-tools"],
    },
    Allowed {
        package: "adjutant-memory",
        normal: &["adjutant-core", "adjutant-tools"],
        dev: &[],
    },
    Allowed {
        package: "adjutant-mcp",
        normal: &["adjutant-core", "adjutant-runtime"],
        dev: &["adjutant-providers", "adjutant-store", "adjutant-tools"],
    },
    Allowed {
        package: "adjutant-service",
        normal: &[
            "adjutant-core",
            "adjutant-mcp",
            "adjutant-memory",
            "adjutant-runtime",
            "adjutant-tools",
        ],
        dev: &["adjutant-providers", "adjutant-store"],
    },
    Allowed {
        package: "adjutant-restate",
        normal: &["adjutant-core", "adjutant-runtime"],
        dev: &[
            "adjutant-durability",
            "adjutant-providers",
            "adjutant-service",
            "adjutant-store",
        ],
    },
    Allowed {
        package: "adjutant",
        normal: &[
            "adjutant-core",
            "adjutant-embedded",
            "adjutant-macros",
            "adjutant-memory",
            "adjutant-providers",
            "adjutant-runtime",
            "adjutant-service",
            "adjutant-store",
            "adjutant-tools",
            "adjutant-weak",
        ],
        dev: &[],
    },
    Allowed {
        package: "adjutant-cli",
        normal: &[
            "adjutant-core",
            "adjutant-embedded",
            "adjutant-mcp",
            "adjutant-memory",
            "adjutant-providers",
            "adjutant-restate",
            "adjutant-runtime",
            "adjutant-service",
            "adjutant-store",
            "adjutant-tools",
            "adjutant-weak",
        ],
        dev: &[],
    },
    // The fault-injection suite, and the process that it kills.
    Allowed {
        package: "adjutant-durability",
        normal: &[
            "adjutant-core",
            "adjutant-memory",
            "adjutant-providers",
            "adjutant-runtime",
            "adjutant-service",
            "adjutant-store",
            "adjutant-tools",
        ],
        dev: &[],
    },
    // Evaluation of memory retrieval.
    Allowed {
        package: "adjutant-evaluation",
        normal: &[
            "adjutant-core",
            "adjutant-memory",
            "adjutant-providers",
            "adjutant-runtime",
            "adjutant-store",
        ],
        dev: &[],
    },
    // Training of the classifiers of actions.
    Allowed {
        package: "adjutant-training",
        normal: &[
            "adjutant-core",
            "adjutant-embedded",
            "adjutant-store",
            "adjutant-tools",
            "adjutant-weak",
        ],
        dev: &[],
    },
    // Simulation of agents over a simulated store.
    Allowed {
        package: "adjutant-simulation",
        normal: &["adjutant-core", "adjutant-runtime", "adjutant-tools"],
        dev: &[],
    },
    Allowed {
        package: "xtask",
        normal: &[],
        dev: &[],
    },
];

/// Returns every dependency and every package that is not in the list.
pub(crate) fn broken(workspace: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    for package in workspace {
        let Some(allowed) = ALLOWED
            .iter()
            .find(|allowed| allowed.package == package.name)
        else {
            found.push(format!(
                "{}: not in the list of xtask/src/check/arrows.rs",
                package.name
            ));
            continue;
        };
        found.extend(outside(package, "", &package.arrows, allowed.normal));
        found.extend(outside(
            package,
            " for its tests",
            &package.dev_arrows,
            allowed.dev,
        ));
    }
    found
}

fn outside<'a>(
    package: &'a Package,
    purpose: &'a str,
    arrows: &'a BTreeSet<String>,
    allowed: &'a [&'a str],
) -> impl Iterator<Item = String> {
    arrows
        .iter()
        .filter(|name| !allowed.contains(&name.as_str()))
        .map(move |name| {
            format!(
                "{} depends on {name}{purpose}: not an allowed arrow",
                package.name
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, arrows: &[&str], dev_arrows: &[&str]) -> Package {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Package {
            name: name.to_owned(),
            arrows: set(arrows),
            dev_arrows: set(dev_arrows),
            ..Package::default()
        }
    }

    #[test]
    fn allowed_arrows_pass() {
        assert!(
            broken(&[package(
                "adjutant-tools",
                &["adjutant-core"],
                &["adjutant-macros"]
            )])
            .is_empty()
        );
    }

    #[test]
    fn a_backward_arrow_is_found() {
        assert_eq!(
            broken(&[package("adjutant-core", &["adjutant-runtime"], &[])]),
            ["adjutant-core depends on adjutant-runtime: not an allowed arrow"]
        );
    }

    #[test]
    fn a_test_arrow_is_no_licence_for_the_code() {
        assert_eq!(
            broken(&[package(
                "adjutant-tools",
                &["adjutant-macros"],
                &["adjutant-store"]
            )]),
            [
                "adjutant-tools depends on adjutant-macros: not an allowed arrow",
                "adjutant-tools depends on adjutant-store for its tests: not an allowed arrow",
            ]
        );
    }

    #[test]
    fn a_new_package_has_to_be_placed() {
        assert_eq!(
            broken(&[package("adjutant-extra", &[], &[])]),
            ["adjutant-extra: not in the list of xtask/src/check/arrows.rs"]
        );
    }

    #[test]
    fn the_list_itself_has_no_ring() {
        // Repeatedly removes the packages without remaining dependencies: if none can be removed,
        // the rest has a cycle. Test dependencies may go both ways.
        let mut left: Vec<&Allowed> = ALLOWED.iter().collect();
        while !left.is_empty() {
            let names: Vec<&str> = left.iter().map(|allowed| allowed.package).collect();
            let before = left.len();
            left.retain(|allowed| allowed.normal.iter().any(|name| names.contains(name)));
            assert!(left.len() < before, "a ring among {names:?}");
        }
    }
}
