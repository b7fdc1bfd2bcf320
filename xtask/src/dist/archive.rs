//! `adjutant-{version}-{target}.tar.gz`: unpack it anywhere, put the program on your path.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::files::{copy, empty, entries, files_below, size};
use super::release::{Release, forget, unless_root};
use super::target::{GLIBC, is_installed};
use super::trial::Installed;
use super::{binary, debian, pages, symbols, tar};
use crate::command::{Failure, root};
use crate::steps::{Ended, Steps};

/// Makes and tries the archives; those of other targets than this machine's only if programs may be
/// built.
pub(super) fn steps(steps: &Steps, release: &Release, build: bool) {
    let gnu = release.target.gnu();
    let mut archive = None;
    steps.step("archive", || {
        forget(release, |name| {
            name.starts_with("adjutant-") && name.contains("-unknown-linux-")
        })?;
        archive = Some(make(release, &gnu, &release.binary)?);
        Ok(())
    });
    if let Some(archive) = archive {
        steps.step("archive: tried here", || {
            tried_here(release, &gnu, &archive)
        });
        steps.may_be_skipped("archive: tried on old Debian", || {
            tried_on_old_debian(release, &gnu, &archive)
        });
    }
    let musl = release.target.musl();
    let static_one = format!("archive: {musl}");
    steps.may_be_skipped(&static_one, || {
        if let Some(cause) = cannot_build(&musl, build)? {
            return Ok(Ended::NotRun(cause));
        }
        let program = binary::build_for(&musl, &musl)?;
        symbols::check_static(&program)?;
        tried_here(release, &musl, &make(release, &musl, &program)?)?;
        Ok(Ended::Ok)
    });
    for other in release.target.others().map(super::target::Target::gnu) {
        steps.may_be_skipped(&format!("archive: {other}"), || {
            if let Some(cause) = cannot_build(&other, build)? {
                return Ok(Ended::NotRun(cause));
            }
            let program = binary::build_for(&other, &format!("{other}.{}.{}", GLIBC.0, GLIBC.1))?;
            symbols::check_dynamic(&program)?;
            make(release, &other, &program)?;
            Ok(Ended::NotRun(
                "made, and not tried: it is for another processor".to_owned(),
            ))
        });
    }
}

/// Returns the reason why a target cannot be built here, if there is one.
fn cannot_build(triple: &str, build: bool) -> Result<Option<String>, Failure> {
    if !build {
        return Ok(Some(
            "not made: --binary names the program of this machine".to_owned(),
        ));
    }
    let missing =
        format!("not made: its standard library is not installed (rustup target add {triple})");
    Ok((!is_installed(triple)?).then_some(missing))
}

/// Returns the name of the folder, and with `.tar.gz` of the archive. `cargo binstall` looks for
/// both.
fn name(version: &str, triple: &str) -> String {
    format!("adjutant-{version}-{triple}")
}

fn make(release: &Release, triple: &str, program: &Path) -> Result<PathBuf, Failure> {
    let name = name(&release.version, triple);
    let place = empty(&release.work.join("archive"))?;
    let folder = place.join(&name);
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
    tar::readable(&place)?;
    let archive = release.folder.join(format!("{name}.tar.gz"));
    tar::pack(&place, &name, release.epoch, None, &archive)?;
    println!("    {} ({} bytes)", archive.display(), size(&archive)?);
    Ok(archive)
}

fn tried_here(release: &Release, triple: &str, archive: &Path) -> Result<(), Failure> {
    let place = empty(&release.work.join("archive-tried"))?;
    tar::unpack(archive, &place, &[])?;
    let folder = place.join(name(&release.version, triple));
    let found = missing(&files_below(&folder)?);
    if !found.is_empty() {
        return Err(format!("not in the archive: {}", found.join(", ")));
    }
    Installed::here(&folder.join("adjutant"), &empty(&place.join("home"))?).works(&release.version)
}

fn tried_on_old_debian(release: &Release, triple: &str, archive: &Path) -> Result<Ended, Failure> {
    if let Some(ended) = unless_root("another root folder") {
        return Ok(ended);
    }
    let debian = match debian::packed(debian::OLDEST) {
        Ok(debian) => debian,
        Err(cause) => return Ok(Ended::NotRun(cause)),
    };
    let root = debian::Root::unpack(&debian, &release.work.join("old-debian"))?;
    tar::unpack(archive, &root.folder.join("opt"), &[])?;
    let program = format!("/opt/{}/adjutant", name(&release.version, triple));
    Installed::inside(&root.folder, &program, "/tmp/home")?.works(&release.version)?;
    Ok(Ended::Ok)
}

/// Returns what is promised to be in an archive and is not among these files.
fn missing(files: &BTreeSet<String>) -> Vec<String> {
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
    let promised = top
        .into_iter()
        .chain(notices)
        .chain(completions)
        .chain(manual);
    promised.filter(|file| !files.contains(file)).collect()
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
    fn what_is_promised_and_not_there_is_missed() {
        let mut files: BTreeSet<String> = missing(&BTreeSet::new()).into_iter().collect();
        assert!(
            files.contains("completions/_adjutant") && files.contains("adjutant"),
            "{files:?}"
        );
        assert_eq!(missing(&files), [] as [String; 0]);
        files.remove("LICENSE-MIT");
        assert_eq!(missing(&files), ["LICENSE-MIT"]);
    }

    #[test]
    fn a_target_without_its_standard_library_is_not_made() {
        let cause = cannot_build("no-such-machine", true);
        assert!(!matches!(cause, Ok(None)), "{cause:?}");
        let own = super::super::target::Target::of_this_machine()
            .expect("a target")
            .gnu();
        assert_eq!(cannot_build(&own, true), Ok(None));
        assert!(matches!(cannot_build(&own, false), Ok(Some(_))));
    }
}
