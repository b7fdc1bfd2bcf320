//! The archive `adjutant-{version}-{target}.tar.gz`: unpack it anywhere and put the program on the
//! `PATH`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::release::{Release, remove_old_products, skip_without_root};
use super::smoke_test::Installed;
use super::target::{GLIBC, is_installed};
use super::{binary, debian, pages, symbols, tar};
use crate::command::{Failure, root};
use crate::file_system::{copy, create_empty, entries, files_below, size};
use crate::steps::{Outcome, Steps};

/// Builds and tests the archives. Those for other targets need a build of their own, so they are
/// skipped if `build` is false.
pub(super) fn steps(steps: &Steps, release: &Release, build: bool) {
    let gnu = release.target.gnu();
    let mut archive = None;
    steps.step("archive", || {
        remove_old_products(release, |name| {
            name.starts_with("adjutant-") && name.contains("-unknown-linux-")
        })?;
        archive = Some(make(release, &gnu, &release.binary)?);
        Ok(())
    });
    if let Some(archive) = archive {
        steps.step("archive: tested here", || {
            test_here(release, &gnu, &archive)
        });
        steps.skippable_step("archive: tested on old Debian", || {
            test_on_old_debian(release, &gnu, &archive)
        });
    }
    let musl = release.target.musl();
    let step = format!("archive: {musl}");
    steps.skippable_step(&step, || {
        if let Some(reason) = cannot_build(&musl, build)? {
            return Ok(Outcome::NotRun(reason));
        }
        let program = binary::build_for(&musl, &musl)?;
        symbols::check_static(&program)?;
        test_here(release, &musl, &make(release, &musl, &program)?)?;
        Ok(Outcome::Passed)
    });
    for other in release.target.others().map(super::target::Target::gnu) {
        steps.skippable_step(&format!("archive: {other}"), || {
            if let Some(reason) = cannot_build(&other, build)? {
                return Ok(Outcome::NotRun(reason));
            }
            let program = binary::build_for(&other, &format!("{other}.{}.{}", GLIBC.0, GLIBC.1))?;
            symbols::check_dynamic(&program)?;
            make(release, &other, &program)?;
            Ok(Outcome::NotRun(
                "built but not tested: it is for another processor".to_owned(),
            ))
        });
    }
}

/// Returns the reason why a target cannot be built on this machine, if there is one.
fn cannot_build(triple: &str, build: bool) -> Result<Option<String>, Failure> {
    if !build {
        return Ok(Some(
            "not built: --binary names the program of this machine".to_owned(),
        ));
    }
    let missing =
        format!("not built: its standard library is not installed (rustup target add {triple})");
    Ok((!is_installed(triple)?).then_some(missing))
}

/// Returns the name of the archive (without `.tar.gz`) and of the folder in it. `cargo binstall`
/// relies on both.
fn name(version: &str, triple: &str) -> String {
    format!("adjutant-{version}-{triple}")
}

fn make(release: &Release, triple: &str, program: &Path) -> Result<PathBuf, Failure> {
    let name = name(&release.version, triple);
    let scratch = create_empty(&release.work.join("archive"))?;
    let folder = scratch.join(&name);
    copy(program, &folder.join("adjutant"))?;
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root().join(file), &folder.join(file))?;
    }
    let pages = &release.pages;
    for (from, to) in [
        (&pages.notices, "."),
        (&pages.completions, "completions"),
        (&pages.manual, "man"),
    ] {
        for file in entries(from)? {
            copy(
                &file,
                &folder.join(to).join(file.file_name().unwrap_or_default()),
            )?;
        }
    }
    tar::make_readable(&scratch)?;
    let archive = release.folder.join(format!("{name}.tar.gz"));
    tar::pack(&scratch, &name, release.epoch, None, &archive)?;
    println!("    {} ({} bytes)", archive.display(), size(&archive)?);
    Ok(archive)
}

fn test_here(release: &Release, triple: &str, archive: &Path) -> Result<(), Failure> {
    let scratch = create_empty(&release.work.join("archive-test"))?;
    tar::unpack(archive, &scratch, &[])?;
    let folder = scratch.join(name(&release.version, triple));
    let found = missing_files(&files_below(&folder)?);
    if !found.is_empty() {
        return Err(format!("not in the archive: {}", found.join(", ")));
    }
    Installed::here(
        &folder.join("adjutant"),
        &create_empty(&scratch.join("home"))?,
    )
    .test(&release.version)
}

fn test_on_old_debian(release: &Release, triple: &str, archive: &Path) -> Result<Outcome, Failure> {
    if let Some(ended) = skip_without_root("chroot") {
        return Ok(ended);
    }
    let debian = match debian::archive(debian::OLDEST) {
        Ok(debian) => debian,
        Err(reason) => return Ok(Outcome::NotRun(reason)),
    };
    let root = debian::Root::unpack(&debian, &release.work.join("old-debian"))?;
    tar::unpack(archive, &root.folder.join("opt"), &[])?;
    let program = format!("/opt/{}/adjutant", name(&release.version, triple));
    Installed::inside(&root.folder, &program, "/tmp/home")?.test(&release.version)?;
    Ok(Outcome::Passed)
}

/// Returns the documented files of an archive that are not in this list.
fn missing_files(files: &BTreeSet<String>) -> Vec<String> {
    let top = [
        "adjutant",
        "README.md",
        "CHANGELOG.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
    ]
    .map(str::to_owned);
    let notices = [
        "THIRD-PARTY.txt",
        "THIRD-PARTY-RUST.html",
        "THIRD-PARTY-ZIG.txt",
    ]
    .map(str::to_owned);
    let completions = pages::SHELLS
        .iter()
        .map(|(_, file)| format!("completions/{file}"));
    let manual = ["man/adjutant.1", "man/adjutant-serve.1"].map(str::to_owned);
    let documented = top
        .into_iter()
        .chain(notices)
        .chain(completions)
        .chain(manual);
    documented.filter(|file| !files.contains(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_named_after_its_version_and_target() {
        assert_eq!(
            name("0.1.0", "x86_64-unknown-linux-gnu"),
            "adjutant-0.1.0-x86_64-unknown-linux-gnu"
        );
    }

    #[test]
    fn a_missing_file_of_an_archive_is_found() {
        let mut files: BTreeSet<String> = missing_files(&BTreeSet::new()).into_iter().collect();
        assert!(
            files.contains("completions/_adjutant") && files.contains("adjutant"),
            "{files:?}"
        );
        assert_eq!(missing_files(&files), [] as [String; 0]);
        files.remove("LICENSE-MIT");
        assert_eq!(missing_files(&files), ["LICENSE-MIT"]);
    }

    #[test]
    fn a_target_without_its_standard_library_is_skipped() {
        let reason = cannot_build("no-such-machine", true);
        assert!(!matches!(reason, Ok(None)), "{reason:?}");
        let own = super::super::target::Target::of_this_machine()
            .expect("a target")
            .gnu();
        assert_eq!(cannot_build(&own, true), Ok(None));
        assert!(matches!(cannot_build(&own, false), Ok(Some(_))));
    }
}
