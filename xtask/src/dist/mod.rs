//! `cargo xtask dist`: what a person installs without building. Each product is made, then tried as
//! a stranger would use it.

mod archive; // adjutant-{version}-{target}.tar.gz
mod binary; // the program, linked for old systems
mod deb; // Debian's package
mod debian; // file systems of Debian: to try in, and to take libraries from
mod files; // files and folders
mod image; // the container's image
mod licences; // texts of the third-party crates inside
mod pages; // completions and the manual
mod release; // what all products of a run share
mod rootfs; // the container image's root file system
mod symbols; // what the program needs of the system it runs on
mod system; // the system's own programs
mod tar; // archives with the same bytes every time
mod target; // names of one machine in the words of Rust, Debian and the loader
mod trial; // trying what was made

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::check::budget;
use crate::command::{Failure, output, root, run as run_command, target as target_folder};
use crate::metadata;
use crate::steps::Steps;
use files::{empty, entries, size, write};
use release::Release;
use target::Target;

/// One kind of file that is handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Product {
    Archive,
    Rootfs,
    Deb,
}

/// The products to make, and the program to make them of.
#[derive(Debug, PartialEq)]
pub(crate) struct Wanted {
    products: Vec<Product>,
    /// A program that was built before. Without one, it is built.
    binary: Option<PathBuf>,
}

impl Wanted {
    /// Reads the words after `dist`.
    ///
    /// # Errors
    /// If one of them is neither a product nor an option.
    pub(crate) fn read(words: &[&str]) -> Result<Self, Failure> {
        let mut wanted = Self {
            products: Vec::new(),
            binary: None,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "archive" => wanted.products.push(Product::Archive),
                "rootfs" => wanted.products.push(Product::Rootfs),
                "deb" => wanted.products.push(Product::Deb),
                "--binary" => {
                    wanted.binary = Some(words.next().ok_or("--binary needs a file")?.into())
                }
                other => {
                    return Err(format!(
                        "dist: {other:?} is none of archive, rootfs, deb, --binary FILE"
                    ));
                }
            }
        }
        if wanted.products.is_empty() {
            wanted.products = vec![Product::Archive, Product::Rootfs, Product::Deb];
        }
        Ok(wanted)
    }
}

/// Makes and tries the products.
///
/// # Errors
/// If one cannot be made or does not work, with the names of the steps that failed.
pub(crate) fn run(wanted: &Wanted) -> Result<(), Failure> {
    if !cfg!(target_os = "linux") {
        return Err("dist makes products for Linux, and is run there".to_owned());
    }
    let steps = Steps::begin()?;
    let mut release = None;
    steps.step("program", || {
        release = Some(prepare(wanted.binary.as_deref())?);
        Ok(())
    });
    if let Some(release) = &release {
        steps.step("program: runs with glibc 2.28", || {
            symbols::check_dynamic(&release.binary)
        });
        steps.step("program: size", || {
            budget::size(&release.binary, budget::DIST_BYTES)
        });
        steps.step("program: no folder of this machine", || {
            binary::names_no_folder_of_ours(&release.binary)
        });
        for product in &wanted.products {
            match product {
                Product::Archive => archive::steps(&steps, release, wanted.binary.is_none()),
                Product::Rootfs => rootfs::steps(&steps, release),
                Product::Deb => deb::steps(&steps, release),
            }
        }
        steps.step("checksums", || sums(release));
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
    // Not `target/dist`: cargo's own folder for the profile of that name.
    let folder = target_folder().join("packages");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let pages = pages::make(&binary, target, &empty(&work.join("pages"))?)?;
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

/// The time of the commit, unless `SOURCE_DATE_EPOCH` says another.
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

/// Writes `SHA256SUMS` of everything in the folder, and reads it back.
fn sums(release: &Release) -> Result<(), Failure> {
    const NAME: &str = "SHA256SUMS";
    let mut names: Vec<String> = entries(&release.folder)?
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .filter(|name| name != NAME)
        .collect();
    names.sort();
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
    fn without_words_everything_is_made() {
        let all = vec![Product::Archive, Product::Rootfs, Product::Deb];
        assert_eq!(
            Wanted::read(&[]),
            Ok(Wanted {
                products: all,
                binary: None
            })
        );
    }

    #[test]
    fn one_product_of_a_program_that_was_built_before() {
        let wanted = Wanted {
            products: vec![Product::Deb],
            binary: Some("a/b".into()),
        };
        assert_eq!(Wanted::read(&["deb", "--binary", "a/b"]), Ok(wanted));
        assert_eq!(
            Wanted::read(&["--binary"]),
            Err("--binary needs a file".to_owned())
        );
        assert!(Wanted::read(&["rpm"]).is_err());
    }
}
