//! Requirements of a binary on the system: shared libraries, and versions of their symbols.

use std::path::Path;

use super::system;
use super::target::GLIBC;
use crate::command::{Failure, fail_with, output};

/// Libraries that every Linux system with glibc has, without `.so` and version.
const LIBRARIES: &[&str] = &[
    "libc",
    "libm",
    "libpthread",
    "libdl",
    "librt",
    "ld-linux-x86-64",
    "ld-linux-aarch64",
];

/// Checks that a binary needs only glibc, in at most version [`GLIBC`].
///
/// # Errors
/// It needs more (the message lists everything), or `readelf` cannot read it.
pub(super) fn check_dynamic(binary: &Path) -> Result<(), Failure> {
    let requirements = Requirements::of_file(binary)?;
    println!("    libraries: {}", requirements.libraries.join(" "));
    println!(
        "    newest symbols: {}",
        requirements.newest().unwrap_or("none")
    );
    let found = requirements.unmet_by(GLIBC);
    fail_with(found)
}

/// Checks that a binary is statically linked.
///
/// # Errors
/// It loads a library, or `readelf` cannot read it.
pub(super) fn check_static(binary: &Path) -> Result<(), Failure> {
    let requirements = Requirements::of_file(binary)?;
    match requirements.libraries.as_slice() {
        [] => Ok(()),
        libraries => Err(format!("not static: it loads {}", libraries.join(" "))),
    }
}

/// The dynamic requirements of an ELF file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Requirements {
    /// File names of the shared libraries that it loads.
    pub(super) libraries: Vec<String>,
    /// Versions of symbols, as pairs of library and version.
    versions: Vec<(String, String)>,
}

impl Requirements {
    /// Reads the requirements of a file with `readelf`.
    ///
    /// # Errors
    /// `readelf` is missing or does not understand the file.
    pub(super) fn of_file(file: &Path) -> Result<Self, Failure> {
        // `--wide` keeps long names on one line, which the parser relies on.
        let mut readelf = system::command("readelf", "binutils")?;
        let output_text = output(
            readelf
                .args(["--wide", "--dynamic", "--version-info"])
                .arg(file),
        )?;
        Self::parse(&output_text).ok_or_else(|| {
            format!(
                "{} is not an ELF file that readelf understands",
                file.display()
            )
        })
    }

    /// Parses the output of `readelf --wide --dynamic --version-info`.
    fn parse(output_text: &str) -> Option<Self> {
        let mut requirements = Self::default();
        let mut library = String::new();
        let mut in_needed_versions = false;
        let mut is_elf = false;
        for line in output_text.lines() {
            is_elf |= line.starts_with("Dynamic section") || line.contains("no dynamic section");
            // Only `Version needs section` lists requirements; other sections have the same layout.
            if line.starts_with("Version ") {
                in_needed_versions = line.starts_with("Version needs section");
            }
            if let Some((_, name)) = line.split_once("Shared library: [") {
                requirements
                    .libraries
                    .push(name.trim_end().trim_end_matches(']').to_owned());
            } else if in_needed_versions && let Some(name) = word_after(line, "File: ") {
                name.clone_into(&mut library);
            } else if in_needed_versions && let Some(name) = word_after(line, "Name: ") {
                requirements
                    .versions
                    .push((library.clone(), name.to_owned()));
            }
        }
        is_elf.then_some(requirements)
    }

    /// Returns the requirements that a system with this glibc, and no other library, does not meet.
    fn unmet_by(&self, glibc: (u32, u32)) -> Vec<String> {
        let stem = |name: &str| name.split(".so").next().unwrap_or_default().to_owned();
        let foreign = self
            .libraries
            .iter()
            .filter(|name| !LIBRARIES.contains(&stem(name).as_str()));
        let mut found: Vec<String> = foreign
            .map(|name| format!("needs {name}, which is not glibc's"))
            .collect();
        for (library, version) in &self.versions {
            // Versions without a number, such as `GLIBC_PRIVATE` or `GLIBC_ABI_DT_RELR`, are not
            // guaranteed by any old glibc.
            if parse_version(version).is_none_or(|version| version > glibc) {
                let (major, minor) = glibc;
                found.push(format!(
                    "needs {version} of {library}: newer than glibc {major}.{minor}"
                ));
            }
        }
        found
    }

    /// Returns the newest version among the required symbols of glibc.
    fn newest(&self) -> Option<&str> {
        let numbered = self
            .versions
            .iter()
            .filter_map(|(_, name)| Some((parse_version(name)?, name)));
        numbered.max().map(|(_, name)| name.as_str())
    }
}

fn word_after<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    line.split_once(mark)?.1.split_whitespace().next()
}

/// Parses the first two numbers of a version such as `GLIBC_2.2.5`.
fn parse_version(version: &str) -> Option<(u32, u32)> {
    let mut parts = version
        .strip_prefix("GLIBC_")?
        .split('.')
        .map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns output as `readelf` 2.40 prints it, shortened, for a program with these
    /// requirements.
    fn readelf_output(libraries: &[&str], versions: &[&str]) -> String {
        let mut text = "\nDynamic section at offset 0x1 contains 2 entries:\n  Tag        Type                         Name/Value\n".to_owned();
        for library in libraries {
            text +=
                &format!(" 0x0000000000000001 (NEEDED)             Shared library: [{library}]\n");
        }
        text += "\nVersion symbols section '.gnu.version' contains 2 entries:\n  000:   0 (*local*)       2 (GLIBC_2.99)\n";
        text += "\nVersion needs section '.gnu.version_r' contains 1 entry:\n";
        text += " Addr: 0x00000000000018b0  Offset: 0x000018b0  Link: 8 (.dynstr)\n";
        text += "  000000: Version: 1  File: libc.so.6  Cnt: 2\n";
        for version in versions {
            text += &format!("  0x0070:   Name: {version}  Flags: none  Version: 9\n");
        }
        text
    }

    fn check(libraries: &[&str], versions: &[&str], expected: &[&str]) {
        let requirements =
            Requirements::parse(&readelf_output(libraries, versions)).expect("an ELF file");
        assert_eq!(requirements.libraries, libraries);
        assert_eq!(requirements.unmet_by((2, 28)), expected);
    }

    #[test]
    fn an_old_program_needs_nothing_new() {
        check(
            &["libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"],
            &["GLIBC_2.2.5", "GLIBC_2.28"],
            &[],
        );
    }

    #[test]
    fn a_newer_symbol_is_refused() {
        let message = "needs GLIBC_2.34 of libc.so.6: newer than glibc 2.28";
        check(&["libc.so.6"], &["GLIBC_2.2.5", "GLIBC_2.34"], &[message]);
        check(
            &["libc.so.6"],
            &["GLIBC_3.0"],
            &["needs GLIBC_3.0 of libc.so.6: newer than glibc 2.28"],
        );
        let unnumbered = "needs GLIBC_ABI_DT_RELR of libc.so.6: newer than glibc 2.28";
        check(&["libc.so.6"], &["GLIBC_ABI_DT_RELR"], &[unnumbered]);
    }

    #[test]
    fn another_library_is_refused() {
        check(
            &["libc.so.6", "libstdc++.so.6"],
            &["GLIBC_2.4"],
            &["needs libstdc++.so.6, which is not glibc's"],
        );
        check(
            &["libgcc_s.so.1"],
            &[],
            &["needs libgcc_s.so.1, which is not glibc's"],
        );
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let requirements = Requirements::parse(&readelf_output(
            &[],
            &["GLIBC_2.9", "GLIBC_2.14", "GLIBC_2.2.5"],
        ))
        .expect("an ELF file");
        assert_eq!(requirements.newest(), Some("GLIBC_2.14"));
    }

    #[test]
    fn a_static_program_has_no_requirements_and_a_text_is_refused() {
        let silent = "\nThere is no dynamic section in this file.\n\nNo version information found in this file.\n";
        assert_eq!(Requirements::parse(silent), Some(Requirements::default()));
        assert_eq!(Requirements::parse("readelf: Error: Not an ELF file"), None);
    }

    #[test]
    fn the_test_program_itself_loads_libc() {
        let file = std::env::current_exe().expect("this program");
        let requirements = Requirements::of_file(&file).expect("readelf");
        assert!(
            requirements
                .libraries
                .iter()
                .any(|name| name.starts_with("libc.")),
            "{requirements:?}"
        );
        assert!(check_static(&file).is_err());
    }
}
