//! Target triples, and the architecture names of Debian and the dynamic loader.

use std::process::Command;

use crate::command::{Failure, output};

/// The oldest glibc that the packages support: that of Debian 10, Ubuntu 18.10 and RHEL 8.
pub(super) const GLIBC: (u32, u32) = (2, 28);

/// A processor architecture that packages are built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    /// Rust's name of the architecture, as in `std::env::consts::ARCH`.
    arch: &'static str,
    /// Debian's name of the architecture.
    pub(super) debian: &'static str,
    /// Path of the dynamic loader, which is recorded in every dynamically linked program.
    pub(super) loader: &'static str,
}

/// All architectures that packages are built for.
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
    /// Returns the architecture of this machine.
    ///
    /// # Errors
    /// No packages are built for it.
    pub(super) fn of_this_machine() -> Result<Self, Failure> {
        let arch = std::env::consts::ARCH;
        let found = TARGETS.iter().copied().find(|target| target.arch == arch);
        found.ok_or_else(|| format!("no packages are built for {arch}"))
    }

    /// Returns the other architectures.
    pub(super) fn others(self) -> impl Iterator<Item = Self> {
        TARGETS
            .iter()
            .copied()
            .filter(move |target| *target != self)
    }

    /// Returns the triple of programs that are linked to the system's glibc.
    pub(super) fn gnu(self) -> String {
        format!("{}-unknown-linux-gnu", self.arch)
    }

    /// Returns the triple of statically linked programs.
    pub(super) fn musl(self) -> String {
        format!("{}-unknown-linux-musl", self.arch)
    }

    /// Returns Debian's multiarch name, the folder of shared libraries below `/usr/lib`.
    pub(super) fn libraries(self) -> String {
        format!("{}-linux-gnu", self.arch)
    }
}

/// Returns true if Rust's standard library for this triple is installed.
///
/// # Errors
/// `rustc` fails.
pub(super) fn is_installed(triple: &str) -> Result<bool, Failure> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let folder = output(rustc.args(["--print", "target-libdir", "--target", triple]))?;
    Ok(std::path::Path::new(folder.trim()).is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_architecture_has_a_name_in_every_convention() {
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
    fn only_an_installed_target_is_reported_as_installed() {
        assert_eq!(
            is_installed(&format!("{}-unknown-linux-gnu", std::env::consts::ARCH)),
            Ok(cfg!(target_env = "gnu"))
        );
        assert!(!is_installed("no-such-machine").unwrap_or(false));
    }
}
