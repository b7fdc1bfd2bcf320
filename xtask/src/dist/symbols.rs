//! Requirements of the program on its system: shared libraries and versions of their symbols.

use std::path::Path;

use super::system;
use super::target::GLIBC;
use crate::command::{Failure, output};

/// Libraries that every Linux with glibc has, without the number behind `.so.`.
const LIBRARIES: &[&str] = &[
    "libc",
    "libm",
    "libpthread",
    "libdl",
    "librt",
    "ld-linux-x86-64",
    "ld-linux-aarch64",
];

/// Passes if a program needs nothing but glibc, and no newer one than products are promised to run
/// with.
///
/// # Errors
/// If it needs more, all of it; or if `readelf` cannot read it.
pub(super) fn check_dynamic(binary: &Path) -> Result<(), Failure> {
    let needs = Needs::of(binary)?;
    println!("    libraries: {}", needs.libraries.join(" "));
    println!("    newest symbols: {}", needs.newest().unwrap_or("none"));
    let found = needs.beyond(GLIBC);
    if found.is_empty() {
        Ok(())
    } else {
        Err(found.join("\n"))
    }
}

/// Passes if a program loads nothing.
///
/// # Errors
/// As [`check_dynamic`].
pub(super) fn check_static(binary: &Path) -> Result<(), Failure> {
    let needs = Needs::of(binary)?;
    match needs.libraries.as_slice() {
        [] => Ok(()),
        libraries => Err(format!("not static: it loads {}", libraries.join(" "))),
    }
}

/// The requirements of an ELF file on the dynamic loader.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Needs {
    /// File names of the libraries it names itself.
    pub(super) libraries: Vec<String>,
    /// Versions of symbols, each with its library.
    versions: Vec<(String, String)>,
}

impl Needs {
    /// Reads them from a file.
    ///
    /// # Errors
    /// If `readelf` is missing or cannot read it.
    pub(super) fn of(file: &Path) -> Result<Self, Failure> {
        let mut readelf = system::command("readelf", "binutils")?;
        let said = output(
            readelf
                .args(["--wide", "--dynamic", "--version-info"])
                .arg(file),
        )?;
        Self::parse(&said)
            .ok_or_else(|| format!("{} is no ELF file that readelf understands", file.display()))
    }

    /// Reads what `readelf --wide --dynamic --version-info` says.
    fn parse(said: &str) -> Option<Self> {
        let mut needs = Self::default();
        let mut library = String::new();
        let mut in_needs = false;
        let mut is_elf = false;
        for line in said.lines() {
            is_elf |= line.starts_with("Dynamic section") || line.contains("no dynamic section");
            if line.starts_with("Version ") {
                in_needs = line.starts_with("Version needs section");
            }
            if let Some((_, name)) = line.split_once("Shared library: [") {
                needs
                    .libraries
                    .push(name.trim_end().trim_end_matches(']').to_owned());
            } else if in_needs && let Some(name) = word_after(line, "File: ") {
                name.clone_into(&mut library);
            } else if in_needs && let Some(name) = word_after(line, "Name: ") {
                needs.versions.push((library.clone(), name.to_owned()));
            }
        }
        is_elf.then_some(needs)
    }

    /// Returns what a system with this glibc, and nothing else, does not have.
    fn beyond(&self, glibc: (u32, u32)) -> Vec<String> {
        let stem = |name: &str| name.split(".so").next().unwrap_or_default().to_owned();
        let strange = self
            .libraries
            .iter()
            .filter(|name| !LIBRARIES.contains(&stem(name).as_str()));
        let mut found: Vec<String> = strange
            .map(|name| format!("needs {name}, which is not glibc's"))
            .collect();
        for (library, version) in &self.versions {
            // A name without a number, such as GLIBC_PRIVATE or GLIBC_ABI_DT_RELR, is not promised
            // by any old system.
            if number(version).is_none_or(|number| number > glibc) {
                let (major, minor) = glibc;
                found.push(format!(
                    "needs {version} of {library}: newer than glibc {major}.{minor}"
                ));
            }
        }
        found
    }

    /// Returns the newest version of glibc's symbols it needs.
    fn newest(&self) -> Option<&str> {
        let numbered = self
            .versions
            .iter()
            .filter_map(|(_, name)| Some((number(name)?, name)));
        numbered.max().map(|(_, name)| name.as_str())
    }
}

fn word_after<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    line.split_once(mark)?.1.split_whitespace().next()
}

/// Returns the number in `GLIBC_2.2.5`: its first two parts.
fn number(version: &str) -> Option<(u32, u32)> {
    let mut parts = version
        .strip_prefix("GLIBC_")?
        .split('.')
        .map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of `readelf` 2.40, shortened, for a program that needs these.
    fn said(libraries: &[&str], versions: &[&str]) -> String {
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
        let needs = Needs::parse(&said(libraries, versions)).expect("an ELF file");
        assert_eq!(needs.libraries, libraries);
        assert_eq!(needs.beyond((2, 28)), expected);
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
        let words = "needs GLIBC_2.34 of libc.so.6: newer than glibc 2.28";
        check(&["libc.so.6"], &["GLIBC_2.2.5", "GLIBC_2.34"], &[words]);
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
    fn the_newest_is_found_by_number_not_by_letter() {
        let needs = Needs::parse(&said(&[], &["GLIBC_2.9", "GLIBC_2.14", "GLIBC_2.2.5"]))
            .expect("an ELF file");
        assert_eq!(needs.newest(), Some("GLIBC_2.14"));
    }

    #[test]
    fn a_static_program_is_one_and_a_text_is_none() {
        let silent = "\nThere is no dynamic section in this file.\n\nNo version information found in this file.\n";
        assert_eq!(Needs::parse(silent), Some(Needs::default()));
        assert_eq!(Needs::parse("readelf: Error: Not an ELF file"), None);
    }

    #[test]
    fn this_very_program_is_read() {
        let file = std::env::current_exe().expect("this program");
        let needs = Needs::of(&file).expect("readelf");
        assert!(
            needs.libraries.iter().any(|name| name.starts_with("libc.")),
            "{needs:?}"
        );
        assert!(check_static(&file).is_err());
    }
}
