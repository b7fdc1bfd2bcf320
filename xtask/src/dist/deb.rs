//! The Debian package `adjutant_{version}_{machine}.deb`: the program, completions, manual pages
//! and a systemd unit, which is neither enabled nor started on installation.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::release::{Release, remove_old_products, skip_without_root};
use super::smoke_test::Installed;
use super::target::GLIBC;
use super::{debian, system, tar};
use crate::command::{Failure, output, root, run};
use crate::file_system::{copy, create_empty, entries, files_below, read, size, write};
use crate::steps::{Outcome, Steps};

/// Runs after the files were installed.
const POSTINST: &str = "#!/bin/sh
set -e
if [ \"$1\" = configure ] && [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload || true
    # Restarts a running service after an upgrade.
    systemctl try-restart adjutant.service || true
fi
";

/// Runs before the files are removed.
const PRERM: &str = "#!/bin/sh
set -e
if [ \"$1\" = remove ] && command -v systemctl > /dev/null; then
    systemctl --quiet disable adjutant.service || true
    if [ -d /run/systemd/system ]; then
        systemctl stop adjutant.service || true
    fi
fi
";

/// Runs after the files were removed. `purge` deletes settings and secrets, but never the user's
/// tasks and conversations.
const POSTRM: &str = "#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload || true
fi
if [ \"$1\" = purge ]; then
    rm -rf /etc/adjutant /var/cache/adjutant /var/cache/private/adjutant
    if [ -d /var/lib/private/adjutant ] || [ -d /var/lib/adjutant ]; then
        echo 'The data of adjutant is kept: /var/lib/adjutant' >&2
    fi
fi
";

/// Builds and tests the package.
pub(super) fn steps(steps: &Steps, release: &Release) {
    let mut package = None;
    steps.step("deb", || {
        remove_old_products(release, |name| name.ends_with(".deb"))?;
        package = Some(make(release)?);
        Ok(())
    });
    if let Some(package) = package {
        for debian in [debian::OLDEST, debian::STABLE] {
            steps.skippable_step(
                &format!("deb: installed, tested, removed on {debian}"),
                || test(release, &package, debian),
            );
        }
    }
}

fn make(release: &Release) -> Result<PathBuf, Failure> {
    let scratch = create_empty(&release.work.join("deb"))?;
    copy(&release.binary, &scratch.join("usr/bin/adjutant"))?;
    for (from, to) in [
        (
            "adjutant.bash",
            "usr/share/bash-completion/completions/adjutant",
        ),
        ("_adjutant", "usr/share/zsh/vendor-completions/_adjutant"),
        (
            "adjutant.fish",
            "usr/share/fish/vendor_completions.d/adjutant.fish",
        ),
    ] {
        copy(&release.pages.completions.join(from), &scratch.join(to))?;
    }
    copy_all(&release.pages.manual, &scratch.join("usr/share/man/man1"))?;
    let documents = scratch.join("usr/share/doc/adjutant");
    copy_all(&release.pages.notices, &documents)?;
    copy(&root().join("README.md"), &documents.join("README.md"))?;
    copy(&root().join("CHANGELOG.md"), &documents.join("changelog"))?;
    write(
        &documents.join("copyright"),
        &copyright(&read(&root().join("LICENSE-MIT"))?),
    )?;
    compress(&[&scratch.join("usr/share/man/man1"), &documents])?;
    let unit = unit(&read(&root().join("deploy/adjutant.service"))?)?;
    write(
        &scratch.join("usr/lib/systemd/system/adjutant.service"),
        &unit,
    )?;
    fs::create_dir_all(scratch.join("etc/adjutant"))
        .map_err(|error| format!("etc/adjutant: {error}"))?;

    let files = files_below(&scratch)?;
    let kilobytes = files
        .iter()
        .map(|file| size(&scratch.join(file)))
        .sum::<Result<u64, _>>()?
        .div_ceil(1024);
    write(
        &scratch.join("DEBIAN/control"),
        &control(&release.version, release.target.debian, kilobytes),
    )?;
    // `dpkg --verify` compares the installed files with these sums.
    let mut md5sum = system::command("md5sum", "coreutils")?;
    write(
        &scratch.join("DEBIAN/md5sums"),
        &output(md5sum.args(&files).current_dir(&scratch))?,
    )?;
    tar::make_readable(&scratch)?;
    for (name, text) in [("postinst", POSTINST), ("prerm", PRERM), ("postrm", POSTRM)] {
        let script = scratch.join("DEBIAN").join(name);
        write(&script, text)?;
        // `dpkg-deb` refuses maintainer scripts that are not executable.
        fs::set_permissions(&script, Permissions::from_mode(0o755))
            .map_err(|error| format!("{name}: {error}"))?;
    }

    let package = release.folder.join(format!(
        "adjutant_{}_{}.deb",
        release.version, release.target.debian
    ));
    let mut dpkg = system::command("dpkg-deb", "dpkg")?;
    // Not Zstandard, the default on Ubuntu, which Debian before 12 cannot read.
    // `--root-owner-group`: all files belong to root, no matter who builds the package.
    dpkg.args(["--root-owner-group", "-Zxz", "--build"])
        .arg(&scratch)
        .arg(&package);
    // The variable sets the time of all entries, so that the package is reproducible.
    run(dpkg.env("SOURCE_DATE_EPOCH", release.epoch.to_string()))?;
    println!("    {} ({} bytes)", package.display(), size(&package)?);
    Ok(package)
}

fn copy_all(from: &Path, to: &Path) -> Result<(), Failure> {
    entries(from)?
        .iter()
        .try_for_each(|file| copy(file, &to.join(file.file_name().unwrap_or_default())))
}

/// Compresses the files that Debian's policy requires to be compressed: manual pages, the
/// changelog, and long texts.
fn compress(folders: &[&Path]) -> Result<(), Failure> {
    for folder in folders {
        for file in entries(folder)? {
            let name = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if name.ends_with(".1") || name == "changelog" || name.starts_with("THIRD-PARTY") {
                output(
                    system::command("gzip", "gzip")?
                        .args(["--force", "--no-name", "-9"])
                        .arg(&file),
                )?;
            }
        }
    }
    Ok(())
}

/// Returns the package's control file.
fn control(version: &str, machine: &str, kilobytes: u64) -> String {
    let (major, minor) = GLIBC;
    format!(
        "Package: adjutant
Version: {version}
Architecture: {machine}
Maintainer: The Adjutant contributors
Installed-Size: {kilobytes}
Depends: libc6 (>= {major}.{minor})
Recommends: ca-certificates
Suggests: postgresql
Section: utils
Priority: optional
Description: assistant for tasks and notes, in the terminal and as a service
 Keeps your tasks with the help of a language model, which may run inside the
 process: no key, no server and no configuration are needed. Every change is
 checked, needs a confirmation if it deletes something, and is recorded before
 it happens. The service for a team has a web page, an HTTP API, and the Model
 Context Protocol; installing the package neither enables nor starts it.
"
    )
}

fn copyright(mit: &str) -> String {
    format!(
        "adjutant may be used under either of two licences, at your option.

1. The MIT license:

{mit}
2. The Apache License, version 2.0: /usr/share/common-licenses/Apache-2.0 on Debian.

Third-party parts of the program, with their licences: THIRD-PARTY.txt.gz (crates), THIRD-PARTY-RUST.html.gz (Rust's
standard library) and THIRD-PARTY-ZIG.txt.gz (the linker's runtime library), in this folder.
"
    )
}

/// Returns the systemd unit for the packaged program, made from the one for a manual installation.
fn unit(text: &str) -> Result<String, Failure> {
    const BY_HAND: &str = "/usr/local/bin/adjutant";
    if !text.contains(&format!("ExecStart={BY_HAND} ")) {
        return Err(format!("deploy/adjutant.service does not start {BY_HAND}"));
    }
    let text = text.replace(BY_HAND, "/usr/bin/adjutant");
    Ok(text.replace(
        "/etc/systemd/system/adjutant.service",
        "/usr/lib/systemd/system/adjutant.service",
    ))
}

/// Installs the package in a fresh Debian system, tests it, removes it, and checks the files that
/// are left.
fn test(release: &Release, package: &Path, version: &str) -> Result<Outcome, Failure> {
    if let Some(ended) = skip_without_root("chroot") {
        return Ok(ended);
    }
    let archive = match debian::archive(version) {
        Ok(archive) => archive,
        Err(reason) => return Ok(Outcome::NotRun(reason)),
    };
    let debian = debian::Root::unpack(&archive, &release.work.join("deb-test"))?;
    let before = files_below(&debian.folder)?;

    copy(package, &debian.folder.join("tmp/adjutant.deb"))?;
    run(&mut debian.command(&["dpkg", "--install", "/tmp/adjutant.deb"])?)?;
    Installed::inside(&debian.folder, "/usr/bin/adjutant", "/tmp/home")?.test(&release.version)?;
    let files = output(&mut debian.command(&["dpkg", "--listfiles", "adjutant"])?)?;
    for file in [
        "/usr/share/man/man1/adjutant.1.gz",
        "/usr/share/bash-completion/completions/adjutant",
    ] {
        if !files.lines().any(|line| line == file) {
            return Err(format!("not in the package: {file}"));
        }
    }
    run(&mut debian.command(&["dpkg", "--verify", "adjutant"])?)?;
    if version == debian::STABLE {
        // Older versions of `systemd-analyze` need a mounted `/proc` for this.
        run(&mut debian.command(&[
            "systemd-analyze",
            "--man=no",
            "verify",
            "adjutant.service",
        ])?)?;
    }
    // `is-enabled` ends with an error code for a disabled unit, so its output is checked instead.
    let enabled = debian
        .command(&["systemctl", "is-enabled", "adjutant.service"])?
        .output();
    let enabled = enabled.map_err(|error| format!("systemctl: {error}"))?;
    if String::from_utf8_lossy(&enabled.stdout).trim() != "disabled" {
        return Err(format!("the service is not disabled: {enabled:?}"));
    }

    // Files that an administrator and the running service create.
    run(&mut debian.command(&["systemctl", "enable", "adjutant.service"])?)?;
    write(
        &debian.folder.join("etc/adjutant/environment"),
        "GEMINI_API_KEY=secret\n",
    )?;
    write(
        &debian.folder.join("var/lib/adjutant/adjutant.db"),
        "tasks\n",
    )?;
    write(&debian.folder.join("var/cache/adjutant/file"), "again\n")?;
    for file in ["tmp/adjutant.deb", "tmp/home"] {
        let path = debian.folder.join(file);
        let removed = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        removed.map_err(|error| format!("{file}: {error}"))?;
    }
    run(&mut debian.command(&["dpkg", "--remove", "adjutant"])?)?;
    let data = "var/lib/adjutant/adjutant.db";
    let kept = ["etc/adjutant/environment", "var/cache/adjutant/file", data];
    check_new_files(&before, &files_below(&debian.folder)?, &kept)?;
    run(&mut debian.command(&["dpkg", "--purge", "adjutant"])?)?;
    check_new_files(&before, &files_below(&debian.folder)?, &[data])?;
    Ok(Outcome::Passed)
}

/// Folders where Debian itself writes, such as logs, package state and caches. Changes in them are
/// ignored.
const SYSTEM_FOLDERS: &[&str] = &[
    "run/",
    "var/lib/dpkg/",
    "var/log/",
    "var/cache/debconf/",
    "var/cache/ldconfig/",
    "var/lib/systemd/",
];

fn check_new_files(
    before: &BTreeSet<String>,
    after: &BTreeSet<String>,
    expected: &[&str],
) -> Result<(), Failure> {
    let new: Vec<&str> = after
        .difference(before)
        .map(String::as_str)
        .filter(|path| !SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder)))
        .collect();
    println!("    files left: {}", new.join(" "));
    if new.iter().collect::<BTreeSet<_>>() == expected.iter().collect() {
        Ok(())
    } else {
        Err(format!(
            "unexpected files are left: {new:?} instead of {expected:?}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_file_has_the_required_fields() {
        let text = control("0.1.0", "amd64", 40_000);
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(&format!("{name}: ")))
        };
        assert_eq!(field("Package"), Some("adjutant"));
        assert_eq!(
            (field("Version"), field("Architecture")),
            (Some("0.1.0"), Some("amd64"))
        );
        assert_eq!(
            (field("Depends"), field("Recommends")),
            (Some("libc6 (>= 2.28)"), Some("ca-certificates"))
        );
        assert_eq!(field("Installed-Size"), Some("40000"));
        // An empty line would end the paragraph of fields.
        assert!(text.ends_with('\n') && !text.contains("\n\n"), "{text}");
        assert!(
            text.lines()
                .all(|line| line.starts_with(' ') || line.contains(": ")),
            "{text}"
        );
    }

    #[test]
    fn the_unit_starts_the_packaged_program() {
        let own = read(&root().join("deploy/adjutant.service")).expect("the unit");
        let packaged = unit(&own).expect("a unit");
        assert!(
            packaged.contains("ExecStart=/usr/bin/adjutant serve"),
            "{packaged}"
        );
        assert!(!packaged.contains("/usr/local"), "{packaged}");
        assert!(unit("ExecStart=/opt/adjutant serve").is_err());
    }

    #[test]
    fn a_file_that_is_left_behind_is_found() {
        let set = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<BTreeSet<_>>()
        };
        let before = set(&["etc/passwd"]);
        let after = set(&[
            "etc/passwd",
            "var/lib/dpkg/status-old",
            "var/lib/adjutant/adjutant.db",
        ]);
        assert_eq!(
            check_new_files(&before, &after, &["var/lib/adjutant/adjutant.db"]),
            Ok(())
        );
        assert!(check_new_files(&before, &after, &[]).is_err());
        assert!(check_new_files(&before, &before, &["var/lib/adjutant/adjutant.db"]).is_err());
    }

    #[test]
    fn data_outlives_a_purge() {
        assert!(!POSTRM.contains("rm -rf /var/lib") && !POSTRM.contains(" /var/lib/adjutant /"));
        let removed = POSTRM
            .lines()
            .find(|line| line.contains("rm -rf"))
            .expect("settings are removed");
        assert!(!removed.contains("/var/lib"), "{removed}");
    }
}
