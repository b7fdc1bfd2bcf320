//! `adjutant_{version}_{machine}.deb`: the program, completions, the manual and a service that
//! nobody has started yet.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::files::{copy, empty, entries, files_below, read, size, write};
use super::release::{Release, forget, unless_root};
use super::target::GLIBC;
use super::trial::Installed;
use super::{debian, system, tar};
use crate::command::{Failure, output, root, run};
use crate::steps::{Ended, Steps};

/// Runs after files were put in place.
const POSTINST: &str = "#!/bin/sh
set -e
if [ \"$1\" = configure ] && [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload || true
    # After an upgrade, and only if it runs.
    systemctl try-restart adjutant.service || true
fi
";

/// Runs before files are removed.
const PRERM: &str = "#!/bin/sh
set -e
if [ \"$1\" = remove ] && command -v systemctl > /dev/null; then
    systemctl --quiet disable adjutant.service || true
    if [ -d /run/systemd/system ]; then
        systemctl stop adjutant.service || true
    fi
fi
";

/// Runs after files were removed. Settings and secrets go with `purge`; tasks and conversations are
/// the user's.
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

/// Makes and tries the package.
pub(super) fn steps(steps: &Steps, release: &Release) {
    let mut package = None;
    steps.step("deb", || {
        forget(release, |name| name.ends_with(".deb"))?;
        package = Some(make(release)?);
        Ok(())
    });
    if let Some(package) = package {
        for debian in [debian::OLDEST, debian::STABLE] {
            steps.may_be_skipped(&format!("deb: installed, run, removed on {debian}"), || {
                tried(release, &package, debian)
            });
        }
    }
}

fn make(release: &Release) -> Result<PathBuf, Failure> {
    let place = empty(&release.work.join("deb"))?;
    copy(&release.binary, &place.join("usr/bin/adjutant"))?;
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
        copy(&release.pages.completions.join(from), &place.join(to))?;
    }
    put_in(&release.pages.manual, &place.join("usr/share/man/man1"))?;
    let documents = place.join("usr/share/doc/adjutant");
    put_in(&release.pages.notices, &documents)?;
    copy(&root().join("README.md"), &documents.join("README.md"))?;
    copy(&root().join("CHANGELOG.md"), &documents.join("changelog"))?;
    write(
        &documents.join("copyright"),
        &copyright(&read(&root().join("LICENSE-MIT"))?),
    )?;
    compress(&[&place.join("usr/share/man/man1"), &documents])?;
    let unit = unit(&read(&root().join("deploy/adjutant.service"))?)?;
    write(
        &place.join("usr/lib/systemd/system/adjutant.service"),
        &unit,
    )?;
    fs::create_dir_all(place.join("etc/adjutant"))
        .map_err(|error| format!("etc/adjutant: {error}"))?;

    let files = files_below(&place)?;
    let kilobytes = files
        .iter()
        .map(|file| size(&place.join(file)))
        .sum::<Result<u64, _>>()?
        .div_ceil(1024);
    write(
        &place.join("DEBIAN/control"),
        &control(&release.version, release.target.debian, kilobytes),
    )?;
    let mut md5sum = system::command("md5sum", "coreutils")?;
    write(
        &place.join("DEBIAN/md5sums"),
        &output(md5sum.args(&files).current_dir(&place))?,
    )?;
    tar::readable(&place)?;
    for (name, text) in [("postinst", POSTINST), ("prerm", PRERM), ("postrm", POSTRM)] {
        let script = place.join("DEBIAN").join(name);
        write(&script, text)?;
        fs::set_permissions(&script, Permissions::from_mode(0o755))
            .map_err(|error| format!("{name}: {error}"))?;
    }

    let package = release.folder.join(format!(
        "adjutant_{}_{}.deb",
        release.version, release.target.debian
    ));
    let mut dpkg = system::command("dpkg-deb", "dpkg")?;
    // Not Zstandard, which Debian before 12 does not read.
    dpkg.args(["--root-owner-group", "-Zxz", "--build"])
        .arg(&place)
        .arg(&package);
    run(dpkg.env("SOURCE_DATE_EPOCH", release.epoch.to_string()))?;
    println!("    {} ({} bytes)", package.display(), size(&package)?);
    Ok(package)
}

fn put_in(from: &Path, to: &Path) -> Result<(), Failure> {
    entries(from)?
        .iter()
        .try_for_each(|file| copy(file, &to.join(file.file_name().unwrap_or_default())))
}

/// Compresses what Debian's policy wants compressed: manual pages, the changelog, and texts that
/// are long.
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

/// Returns the description of the package.
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
 process: no key, no server and no configuration are needed. What it changes is
 checked, asked for where it destroys something, and written down before it
 happens. The service for a team has a web page, an HTTP API, and the Model
 Context Protocol; it is installed, and neither enabled nor started.
"
    )
}

fn copyright(mit: &str) -> String {
    format!(
        "adjutant may be used under either of two licences, at your option.

1. The MIT license:

{mit}
2. The Apache License, version 2.0: /usr/share/common-licenses/Apache-2.0 on Debian.

What is of others, and inside the program, with its licences: THIRD-PARTY.txt.gz (crates), THIRD-PARTY-RUST.html.gz (Rust's
standard library) and THIRD-PARTY-ZIG.txt.gz (what the linker adds), beside this file.
"
    )
}

/// Returns the unit for a program that a package put in place, from the one for a program put in
/// place by hand.
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

/// Installs the package in a fresh Debian, uses it, removes it, and looks at what is left.
fn tried(release: &Release, package: &Path, version: &str) -> Result<Ended, Failure> {
    if let Some(ended) = unless_root("another root folder") {
        return Ok(ended);
    }
    let archive = match debian::packed(version) {
        Ok(archive) => archive,
        Err(cause) => return Ok(Ended::NotRun(cause)),
    };
    let debian = debian::Root::unpack(&archive, &release.work.join("deb-tried"))?;
    let before = files_below(&debian.folder)?;

    copy(package, &debian.folder.join("tmp/adjutant.deb"))?;
    run(&mut debian.command(&["dpkg", "--install", "/tmp/adjutant.deb"])?)?;
    Installed::inside(&debian.folder, "/usr/bin/adjutant", "/tmp/home")?.works(&release.version)?;
    let listed = output(&mut debian.command(&["dpkg", "--listfiles", "adjutant"])?)?;
    for file in [
        "/usr/share/man/man1/adjutant.1.gz",
        "/usr/share/bash-completion/completions/adjutant",
    ] {
        if !listed.lines().any(|line| line == file) {
            return Err(format!("not in the package: {file}"));
        }
    }
    run(&mut debian.command(&["dpkg", "--verify", "adjutant"])?)?;
    if version == debian::STABLE {
        // An older systemd wants a mounted /proc for this.
        run(&mut debian.command(&[
            "systemd-analyze",
            "--man=no",
            "verify",
            "adjutant.service",
        ])?)?;
    }
    let enabled = debian
        .command(&["systemctl", "is-enabled", "adjutant.service"])?
        .output();
    let enabled = enabled.map_err(|error| format!("systemctl: {error}"))?;
    if String::from_utf8_lossy(&enabled.stdout).trim() != "disabled" {
        return Err(format!("the service is not disabled: {enabled:?}"));
    }

    // As an administrator and the service leave them.
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
    only_these_are_new(&before, &files_below(&debian.folder)?, &kept)?;
    run(&mut debian.command(&["dpkg", "--purge", "adjutant"])?)?;
    only_these_are_new(&before, &files_below(&debian.folder)?, &[data])?;
    Ok(Ended::Ok)
}

/// Folders in which Debian itself writes down what it did, or that are empty after a start of the
/// machine.
const BOOKS: &[&str] = &[
    "run/",
    "var/lib/dpkg/",
    "var/log/",
    "var/cache/debconf/",
    "var/cache/ldconfig/",
    "var/lib/systemd/",
];

fn only_these_are_new(
    before: &BTreeSet<String>,
    after: &BTreeSet<String>,
    expected: &[&str],
) -> Result<(), Failure> {
    let new: Vec<&str> = after
        .difference(before)
        .map(String::as_str)
        .filter(|path| !BOOKS.iter().any(|book| path.starts_with(book)))
        .collect();
    println!("    left: {}", new.join(" "));
    if new.iter().collect::<BTreeSet<_>>() == expected.iter().collect() {
        Ok(())
    } else {
        Err(format!("left behind is {new:?}, not {expected:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_described_in_fields() {
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
        // An empty line would end the fields.
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
            only_these_are_new(&before, &after, &["var/lib/adjutant/adjutant.db"]),
            Ok(())
        );
        assert!(only_these_are_new(&before, &after, &[]).is_err());
        assert!(only_these_are_new(&before, &before, &["var/lib/adjutant/adjutant.db"]).is_err());
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
