//! Names of one machine, in the words of Rust, Debian and the dynamic loader.

use std::process::Command;

use crate::command::{Failure, output};

/// The oldest glibc that products run with: Debian 10, Ubuntu 18.10, RHEL 8 and what came after.
pub(super) const GLIBC: (u32, u32) = (2, 28);

/// A kind of processor that products are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    /// In Rust's words.
    arch: &'static str,
    /// In Debian's words.
    pub(super) debian: &'static str,
    /// Path of the dynamic loader, which every program names.
    pub(super) loader: &'static str,
}

/// Every processor that products are made for.
const TARGETS: &[Target] = &[
    Target {
        arch: "x86_64",
        debian: "amd64",
        loader: "/lib64/ld-linux-x86-64.so.2",
    },
    Target {
        arch: "aarch64",
        debian: "arm64",
        loader: "/lib/ld-linux-aarch64.so.1",
    },
];

impl Target {
    /// Returns the target of the machine this runs on.
    ///
    /// # Errors
    /// If products are not made for its processor.
    pub(super) fn of_this_machine() -> Result<Self, Failure> {
        let arch = std::env::consts::ARCH;
        let found = TARGETS.iter().copied().find(|target| target.arch == arch);
        found.ok_or_else(|| format!("products are not made for {arch}"))
    }

    /// Returns the targets of all other machines.
    pub(super) fn others(self) -> impl Iterator<Item = Self> {
        TARGETS
            .iter()
            .copied()
            .filter(move |target| *target != self)
    }

    /// Returns the triple whose programs load the system's glibc.
    pub(super) fn gnu(self) -> String {
        format!("{}-unknown-linux-gnu", self.arch)
    }

    /// Returns the triple whose programs load nothing.
    pub(super) fn musl(self) -> String {
        format!("{}-unknown-linux-musl", self.arch)
    }

    /// Returns the folder's name that Debian gives this machine's libraries.
    pub(super) fn libraries(self) -> String {
        format!("{}-linux-gnu", self.arch)
    }
}

/// Returns true if the standard library for this triple is installed.
///
/// # Errors
/// If `rustc` cannot be asked.
pub(super) fn is_installed(triple: &str) -> Result<bool, Failure> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let folder = output(rustc.args(["--print", "target-libdir", "--target", triple]))?;
    Ok(std::path::Path::new(folder.trim()).is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_machine_has_a_name_in_every_language() {
        let [intel, arm] = TARGETS else {
            panic!("two targets: {TARGETS:?}")
        };
        assert_eq!(intel.gnu(), "x86_64-unknown-linux-gnu");
        assert_eq!(
            (arm.musl(), arm.libraries()),
            (
                "aarch64-unknown-linux-musl".into(),
                "aarch64-linux-gnu".into()
            )
        );
        assert_eq!(intel.others().collect::<Vec<_>>(), [*arm]);
    }

    #[test]
    fn what_runs_this_is_installed_and_an_unknown_machine_is_not() {
        assert_eq!(
            is_installed(&format!("{}-unknown-linux-gnu", std::env::consts::ARCH)),
            Ok(cfg!(target_env = "gnu"))
        );
        assert!(!is_installed("no-such-machine").unwrap_or(false));
    }
}
