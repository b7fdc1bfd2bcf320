//! `cargo xtask dist`: builds the release packages (archive, container root file system, Debian
//! package) and tests each one as it would be installed.

mod archive; // adjutant-{version}-{target}.tar.gz
mod binary; // the program, linked for old glibc versions
mod deb; // Debian's package
mod debian; // file systems of Debian releases
mod image; // the container's image
mod licences; // texts of the third-party crates inside
mod pages; // completions, manual pages and notices
mod release; // inputs that all packages share
mod rootfs; // the container image's root file system
mod smoke_test; // tests of an installed program
mod symbols; // shared libraries and glibc symbols the program needs
mod system; // external programs
mod tar; // reproducible archives
mod target; // target triples and architecture names

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::check::budget;
use crate::command::{Failure, output, root, run as run_command, target as target_folder};
use crate::file_system::{create, create_empty, entries, size, write};
use crate::metadata;
use crate::steps::Steps;
use release::Release;
use target::Target;

/// A kind of package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Product {
    Archive,
    Rootfs,
    Deb,
}

/// Options of the command: the packages to build, and optionally an existing binary.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    products: Vec<Product>,
    /// A binary to package. If `None`, one is built.
    binary: Option<PathBuf>,
}

impl Options {
    /// Parses the arguments after `dist`.
    ///
    /// # Errors
    /// An argument is neither a product nor an option.
    pub(crate) fn parse(arguments: &[&str]) -> Result<Self, Failure> {
        let mut options = Self {
            products: Vec::new(),
            binary: None,
        };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match *argument {
                "archive" => options.products.push(Product::Archive),
                "rootfs" => options.products.push(Product::Rootfs),
                "deb" => options.products.push(Product::Deb),
                "--binary" => {
                    options.binary = Some(arguments.next().ok_or("--binary needs a file")?.into())
                }
                other => {
                    return Err(format!(
                        "dist: {other:?} is none of archive, rootfs, deb, --binary FILE"
                    ));
                }
            }
        }
        if options.products.is_empty() {
            options.products = vec![Product::Archive, Product::Rootfs, Product::Deb];
        }
        Ok(options)
    }
}

/// Builds and tests the packages.
///
/// # Errors
/// A step fails; the message has the names of all failed steps.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if !cfg!(target_os = "linux") {
        return Err("dist builds packages for Linux and must run on Linux".to_owned());
    }
    let steps = Steps::begin()?;
    let mut release = None;
    steps.step("program", || {
        release = Some(prepare(options.binary.as_deref())?);
        Ok(())
    });
    if let Some(release) = &release {
        steps.step("program: runs with glibc 2.28", || {
            symbols::check_dynamic(&release.binary)
        });
        steps.step("program: size", || {
            budget::check_size(&release.binary, budget::DIST_BYTES)
        });
        steps.step("program: no paths of this machine", || {
            binary::check_paths(&release.binary)
        });
        for product in &options.products {
            match product {
                Product::Archive => archive::steps(&steps, release, options.binary.is_none()),
                Product::Rootfs => rootfs::steps(&steps, release),
                Product::Deb => deb::steps(&steps, release),
            }
        }
        steps.step("checksums", || checksums(release));
    }
    steps.finish()
}

fn prepare(binary: Option<&Path>) -> Result<Release, Failure> {
    let target = Target::of_this_machine()?;
    let binary = match binary {
        Some(file) => {
            fs::canonicalize(file).map_err(|error| format!("{}: {error}", file.display()))?
        }
        None => binary::build(target)?,
    };
    println!("    {} ({} bytes)", binary.display(), size(&binary)?);
    let work = target_folder().join("xtask/dist");
    // `target/dist` is already cargo's output folder for the profile of that name.
    let folder = target_folder().join("packages");
    create(&folder)?;
    let pages = pages::generate(&binary, target, &create_empty(&work.join("pages"))?)?;
    let version = metadata::version("adjutant-cli")?;
    Ok(Release {
        version,
        epoch: epoch()?,
        target,
        binary,
        pages,
        folder,
        work,
    })
}

/// Returns the time of the last commit in seconds since 1970, or `SOURCE_DATE_EPOCH` if that is set
/// (see reproducible-builds.org).
fn epoch() -> Result<u64, Failure> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => output(
            Command::new("git")
                .args(["log", "-1", "--format=%ct"])
                .current_dir(root()),
        )?,
    };
    text.trim()
        .parse()
        .map_err(|error| format!("the time of the commit: {text:?}: {error}"))
}

/// Writes `SHA256SUMS` for all files in the output folder, and verifies it.
fn checksums(release: &Release) -> Result<(), Failure> {
    const NAME: &str = "SHA256SUMS";
    let mut names: Vec<String> = entries(&release.folder)?
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .filter(|name| name != NAME)
        .collect();
    names.sort();
    // Relative names, so that users can verify the files in any folder.
    let program = system::program("sha256sum", "coreutils")?;
    let text = output(
        Command::new(&program)
            .args(&names)
            .current_dir(&release.folder),
    )?;
    write(&release.folder.join(NAME), &text)?;
    for name in &names {
        println!("    {:>12} {name}", size(&release.folder.join(name))?);
    }
    run_command(
        Command::new(&program)
            .args(["--check", "--quiet", NAME])
            .current_dir(&release.folder),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_products_are_the_default() {
        let all = vec![Product::Archive, Product::Rootfs, Product::Deb];
        assert_eq!(
            Options::parse(&[]),
            Ok(Options {
                products: all,
                binary: None
            })
        );
    }

    #[test]
    fn a_product_and_an_existing_binary_can_be_selected() {
        let options = Options {
            products: vec![Product::Deb],
            binary: Some("a/b".into()),
        };
        assert_eq!(Options::parse(&["deb", "--binary", "a/b"]), Ok(options));
        assert_eq!(
            Options::parse(&["--binary"]),
            Err("--binary needs a file".to_owned())
        );
        assert!(Options::parse(&["rpm"]).is_err());
    }
}
