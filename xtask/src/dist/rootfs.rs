//! The archive `adjutant-{version}-rootfs-{machine}.tar.gz`, the complete file system of the
//! container image: the program, the few shared libraries it loads, TLS root certificates, time
//! zones and a user. It has no shell and no package manager.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::release::{PROGRAM, Release, remove_old_products, skip_without_root};
use super::smoke_test::{Installed, USER};
use super::symbols::Requirements;
use super::{debian, image, tar};
use crate::command::{Failure, root};
use crate::file_system::{copy, create_empty, entries, read, size, write};
use crate::steps::{Outcome, Steps};

/// The program's data folder, and the volume of the image.
const HOME: &str = "/var/lib/adjutant";
/// Debian packages that parts of the file system come from.
const PACKAGES: &[&str] = &["base-files", "ca-certificates", "libc6", "tzdata"];

/// Builds and tests the file system and the image.
pub(super) fn steps(steps: &Steps, release: &Release) {
    let mut archive = None;
    steps.step("rootfs", || {
        remove_old_products(release, |name| name.contains("-rootfs-"))?;
        archive = Some(make(release)?);
        Ok(())
    });
    if let Some(archive) = archive {
        steps.skippable_step("rootfs: tested by another user", || test(release, &archive));
        steps.skippable_step("rootfs: image built and run", || {
            image::test(release, &archive)
        });
    }
}

fn make(release: &Release) -> Result<PathBuf, Failure> {
    let base = unpack_base(release)?;
    let scratch = create_empty(&release.work.join("rootfs"))?;
    copy(&release.binary, &scratch.join("usr/bin/adjutant"))?;
    copy_libraries(release, &base, &scratch)?;
    for file in [
        "etc/ssl/certs/ca-certificates.crt",
        "etc/debian_version",
        "usr/lib/os-release",
    ] {
        copy(&base.join(file), &scratch.join(file))?;
    }
    link("../usr/lib/os-release", &scratch.join("etc/os-release"))?;
    let zones = "usr/share/zoneinfo";
    write(&scratch.join("usr/share/doc/README"), README)?;
    fs::rename(base.join(zones), scratch.join(zones))
        .map_err(|error| format!("{zones}: {error}"))?;
    let installed = read(&base.join("var/lib/dpkg/status"))?;
    for package in PACKAGES {
        let copyright = format!("usr/share/doc/{package}/copyright");
        copy(&base.join(&copyright), &scratch.join(&copyright))?;
        // Vulnerability scanners look for packages in `status.d` if there is no package manager.
        let paragraph = paragraph(&installed, package)
            .ok_or_else(|| format!("Debian has no package {package}"))?;
        write(
            &scratch.join("var/lib/dpkg/status.d").join(package),
            &format!("{paragraph}\n"),
        )?;
    }
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(
            &root().join(licence),
            &scratch.join("usr/share/doc/adjutant").join(licence),
        )?;
    }
    for notice in entries(&release.pages.notices)? {
        copy(
            &notice,
            &scratch
                .join("usr/share/doc/adjutant")
                .join(notice.file_name().unwrap_or_default()),
        )?;
    }
    for (file, text) in users() {
        write(&scratch.join(file), &text)?;
    }
    for folder in ["tmp", HOME.trim_start_matches('/')] {
        fs::create_dir_all(scratch.join(folder)).map_err(|error| format!("{folder}: {error}"))?;
    }
    tar::make_readable(&scratch)?;
    // Sticky, as usual for `/tmp`: users cannot delete the files of others.
    let world_writable = fs::Permissions::from_mode(0o1777);
    fs::set_permissions(scratch.join("tmp"), world_writable)
        .map_err(|error| format!("tmp: {error}"))?;

    let archive = release.folder.join(format!(
        "adjutant-{}-rootfs-{}.tar.gz",
        release.version, release.target.debian
    ));
    let owned = tar::OwnedFolder {
        path: &format!(".{HOME}"),
        id: USER,
    };
    tar::pack(&scratch, ".", release.epoch, Some(&owned), &archive)?;
    println!("    {} ({} bytes)", archive.display(), size(&archive)?);
    Ok(archive)
}

/// Unpacks the needed parts of a Debian release.
fn unpack_base(release: &Release) -> Result<PathBuf, Failure> {
    let debian = debian::archive(debian::STABLE)?;
    let folder = create_empty(&release.work.join("rootfs-base"))?;
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

/// Copies the libraries that the program loads, directly or not, and links the loader to the path
/// that the program expects.
fn copy_libraries(release: &Release, base: &Path, scratch: &Path) -> Result<(), Failure> {
    let folder = Path::new("usr/lib").join(release.target.libraries());
    let loader = Path::new(release.target.loader);
    let loader_name = loader
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut queue = VecDeque::from(Requirements::of_file(&release.binary)?.libraries);
    queue.push_back(loader_name.clone());
    let mut seen = BTreeSet::new();
    while let Some(name) = queue.pop_front() {
        if seen.insert(name.clone()) {
            let from = base.join(&folder).join(&name);
            copy(&from, &scratch.join(&folder).join(&name))?;
            queue.extend(Requirements::of_file(&from)?.libraries);
        }
    }
    println!(
        "    libraries: {}",
        seen.into_iter().collect::<Vec<_>>().join(" ")
    );

    // As in Debian, `/lib` is a link to `/usr/lib`, and the path of the loader is another link.
    link("usr/lib", &scratch.join("lib"))?;
    let loader_folder = loader
        .parent()
        .and_then(Path::file_name)
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    if loader_folder != "lib" {
        link(
            &format!("usr/{loader_folder}"),
            &scratch.join(&loader_folder),
        )?;
    }
    let target = format!("../lib/{}/{loader_name}", release.target.libraries());
    link(
        &target,
        &scratch.join("usr").join(&loader_folder).join(&loader_name),
    )
}

fn link(to: &str, at: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| format!("{}: {error}", at.display());
    if let Some(folder) = at.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    symlink(to, at).map_err(failed)
}

/// Returns a package's paragraph in `dpkg`'s status file.
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

/// Returns the system files that define the users.
fn users() -> [(&'static str, String); 3] {
    let no_login = "/usr/sbin/nologin";
    [
        (
            "etc/passwd",
            format!("root:x:0:0:root:/:{no_login}\nadjutant:x:{USER}:{USER}::{HOME}:{no_login}\n"),
        ),
        ("etc/group", format!("root:x:0:\nadjutant:x:{USER}:\n")),
        (
            "etc/nsswitch.conf",
            "passwd: files\ngroup: files\nhosts: files dns\n".to_owned(),
        ),
    ]
}

/// Unpacks the archive, and tests the program in it as the image's unprivileged user.
fn test(release: &Release, archive: &Path) -> Result<Outcome, Failure> {
    if let Some(ended) = skip_without_root("chroot") {
        return Ok(ended);
    }
    let image = debian::Root::unpack(archive, &release.work.join("rootfs-test"))?;
    // The home is used as it was packed, because its owner in the archive is part of the test.
    let installed = Installed {
        program: PROGRAM.into(),
        root: Some(image.folder.clone()),
        home: HOME.into(),
    };
    installed.test(&release.version)?;
    Ok(Outcome::Passed)
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
