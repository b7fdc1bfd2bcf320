//! `adjutant-{version}-rootfs-{machine}.tar.gz`: the whole file system of the container's image. It
//! holds the program, the few shared libraries it loads, the roots of TLS, time zones, and a user;
//! no shell, and no package manager.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::files::{copy, empty, entries, read, size, write};
use super::release::{PROGRAM, Release, forget, unless_root};
use super::symbols::Needs;
use super::trial::{Installed, USER};
use super::{debian, image, tar};
use crate::command::{Failure, root};
use crate::steps::{Ended, Steps};

/// The program's data folder; the image's volume.
const HOME: &str = "/var/lib/adjutant";
/// Debian's packages that parts are taken from.
const PACKAGES: &[&str] = &["base-files", "ca-certificates", "libc6", "tzdata"];

/// Makes and tries the file system.
pub(super) fn steps(steps: &Steps, release: &Release) {
    let mut archive = None;
    steps.step("rootfs", || {
        forget(release, |name| name.contains("-rootfs-"))?;
        archive = Some(make(release)?);
        Ok(())
    });
    if let Some(archive) = archive {
        steps.may_be_skipped("rootfs: tried by another user", || tried(release, &archive));
        steps.may_be_skipped("rootfs: image built and run", || {
            image::tried(release, &archive)
        });
    }
}

fn make(release: &Release) -> Result<PathBuf, Failure> {
    let base = base(release)?;
    let place = empty(&release.work.join("rootfs"))?;
    copy(&release.binary, &place.join("usr/bin/adjutant"))?;
    libraries(release, &base, &place)?;
    for file in [
        "etc/ssl/certs/ca-certificates.crt",
        "etc/debian_version",
        "usr/lib/os-release",
    ] {
        copy(&base.join(file), &place.join(file))?;
    }
    link("../usr/lib/os-release", &place.join("etc/os-release"))?;
    let zones = "usr/share/zoneinfo";
    write(&place.join("usr/share/doc/README"), README)?;
    fs::rename(base.join(zones), place.join(zones)).map_err(|error| format!("{zones}: {error}"))?;
    let installed = read(&base.join("var/lib/dpkg/status"))?;
    for package in PACKAGES {
        let copyright = format!("usr/share/doc/{package}/copyright");
        copy(&base.join(&copyright), &place.join(&copyright))?;
        let paragraph =
            paragraph(&installed, package).ok_or_else(|| format!("Debian without {package}"))?;
        write(
            &place.join("var/lib/dpkg/status.d").join(package),
            &format!("{paragraph}\n"),
        )?;
    }
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(
            &root().join(licence),
            &place.join("usr/share/doc/adjutant").join(licence),
        )?;
    }
    for notice in entries(&release.pages.notices)? {
        copy(
            &notice,
            &place
                .join("usr/share/doc/adjutant")
                .join(notice.file_name().unwrap_or_default()),
        )?;
    }
    for (file, text) in users() {
        write(&place.join(file), &text)?;
    }
    for folder in ["tmp", HOME.trim_start_matches('/')] {
        fs::create_dir_all(place.join(folder)).map_err(|error| format!("{folder}: {error}"))?;
    }
    tar::readable(&place)?;
    let everybody = fs::Permissions::from_mode(0o1777);
    fs::set_permissions(place.join("tmp"), everybody).map_err(|error| format!("tmp: {error}"))?;

    let archive = release.folder.join(format!(
        "adjutant-{}-rootfs-{}.tar.gz",
        release.version, release.target.debian
    ));
    let owned = tar::Owned {
        path: &format!(".{HOME}"),
        id: USER,
    };
    tar::pack(&place, ".", release.epoch, Some(&owned), &archive)?;
    println!("    {} ({} bytes)", archive.display(), size(&archive)?);
    Ok(archive)
}

/// Unpacks the parts of Debian that are looked into.
fn base(release: &Release) -> Result<PathBuf, Failure> {
    let debian = debian::packed(debian::STABLE)?;
    let folder = empty(&release.work.join("rootfs-base"))?;
    let libraries = format!("./usr/lib/{}", release.target.libraries());
    let mut members = vec![
        libraries,
        "./etc/ssl/certs/ca-certificates.crt".to_owned(),
        "./etc/debian_version".to_owned(),
        "./usr/lib/os-release".to_owned(),
        "./usr/share/zoneinfo".to_owned(),
        "./var/lib/dpkg/status".to_owned(),
    ];
    members.extend(
        PACKAGES
            .iter()
            .map(|package| format!("./usr/share/doc/{package}/copyright")),
    );
    tar::unpack(
        &debian,
        &folder,
        &members.iter().map(String::as_str).collect::<Vec<_>>(),
    )?;
    Ok(folder)
}

/// Copies the libraries that the program loads, those that they load, and puts the loader where the
/// program looks for it.
fn libraries(release: &Release, base: &Path, place: &Path) -> Result<(), Failure> {
    let folder = Path::new("usr/lib").join(release.target.libraries());
    let loader = Path::new(release.target.loader);
    let loader_name = loader
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut waiting = VecDeque::from(Needs::of(&release.binary)?.libraries);
    waiting.push_back(loader_name.clone());
    let mut seen = BTreeSet::new();
    while let Some(name) = waiting.pop_front() {
        if seen.insert(name.clone()) {
            let from = base.join(&folder).join(&name);
            copy(&from, &place.join(&folder).join(&name))?;
            waiting.extend(Needs::of(&from)?.libraries);
        }
    }
    println!(
        "    libraries: {}",
        seen.into_iter().collect::<Vec<_>>().join(" ")
    );

    // As in Debian, /lib is /usr/lib, and the loader's own place is a link.
    link("usr/lib", &place.join("lib"))?;
    let own = loader
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    if own != "lib" {
        link(&format!("usr/{own}"), &place.join(&own))?;
    }
    let target = format!("../lib/{}/{loader_name}", release.target.libraries());
    link(&target, &place.join("usr").join(&own).join(&loader_name))
}

fn link(to: &str, at: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| format!("{}: {error}", at.display());
    if let Some(folder) = at.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    symlink(to, at).map_err(failed)
}

/// Returns what `dpkg`'s status says of a package.
fn paragraph<'a>(status: &'a str, package: &str) -> Option<&'a str> {
    let first = format!("Package: {package}");
    status
        .split("\n\n")
        .map(str::trim)
        .find(|paragraph| paragraph.lines().next() == Some(first.as_str()))
}

const README: &str = "\
The program /usr/bin/adjutant, parts of the packages of Debian that /var/lib/dpkg/status.d names with their versions, and
the licences of all of it. There is no shell here.
";

/// Returns the files that give the user a name.
fn users() -> [(&'static str, String); 3] {
    let nobody = "/usr/sbin/nologin";
    [
        (
            "etc/passwd",
            format!("root:x:0:0:root:/:{nobody}\nadjutant:x:{USER}:{USER}::{HOME}:{nobody}\n"),
        ),
        ("etc/group", format!("root:x:0:\nadjutant:x:{USER}:\n")),
        (
            "etc/nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files dns\n".to_owned(),
        ),
    ]
}

/// Unpacks the archive, and tries the program in it as the image's user, with nothing around it.
fn tried(release: &Release, archive: &Path) -> Result<Ended, Failure> {
    if let Some(ended) = unless_root("another root folder") {
        return Ok(ended);
    }
    let image = debian::Root::unpack(archive, &release.work.join("rootfs-tried"))?;
    // The home as it was packed: it has to belong to the user already.
    let installed = Installed {
        program: PROGRAM.into(),
        root: Some(image.folder.clone()),
        home: HOME.into(),
    };
    installed.works(&release.version)?;
    Ok(Ended::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_found_by_its_whole_name() {
        let status = "Package: libc6-dev\nVersion: 1\n\nPackage: libc6\nVersion: 2\n";
        assert_eq!(
            paragraph(status, "libc6"),
            Some("Package: libc6\nVersion: 2")
        );
        assert_eq!(paragraph(status, "libc"), None);
    }

    #[test]
    fn the_image_has_the_user_that_the_container_file_names() {
        let file = read(&root().join("deploy/Containerfile")).expect("deploy/Containerfile");
        assert!(file.contains(&format!("\nUSER {USER}:{USER}\n")), "{file}");
        assert!(
            file.contains(&format!("ENTRYPOINT [\"{PROGRAM}\"]")),
            "{file}"
        );
        assert!(file.contains(&format!("HOME={HOME} ")), "{file}");
        let passwd = &users()[0].1;
        assert!(
            passwd.contains(&format!("adjutant:x:{USER}:{USER}::{HOME}:")),
            "{passwd}"
        );
    }
}
