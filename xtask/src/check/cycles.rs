//! Import cycles between the modules of a crate. The compiler allows them; in this repository
//! modules form layers.
//!
//! The unit is a file. A file depends on another one if it imports or names something that the
//! other defines, through any number of re-exports, by a path that begins with `crate`, `self`,
//! `super` or a known module. The same holds between a parent module and its child; `mod` and `pub
//! use` alone are no dependency.

mod names; // name resolution
mod source; // definitions, imports and uses of a file
pub(super) mod token; // source as tokens

use std::collections::{BTreeMap, BTreeSet};

use super::files::File;
use names::{Names, Uses};

/// Returns the import cycles inside each crate: the files of a cycle, and what ties them together.
pub(crate) fn inside_crates(files: &[File]) -> Vec<String> {
    let mut found = Vec::new();
    let mut crates: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let Some((name, _)) = file.path.split_once("/src/") else {
            continue;
        };
        // Benchmarks (a workspace of their own) and crates inside fixtures are not checked.
        if name == "xtask"
            || name
                .strip_prefix("crates/")
                .is_some_and(|name| !name.contains('/'))
        {
            crates
                .entry(name)
                .or_default()
                .insert(&file.path, &file.text);
        }
    }
    for (name, files) in &crates {
        let mut cycles = Vec::new();
        // A package may have several crate roots: the library, `main.rs`, and each file in `bin/`.
        for root in files.keys().filter(|path| is_root(name, path)) {
            match Names::load(root, files) {
                Ok(names) => cycles.extend(find_cycles(&names.uses())),
                Err(failure) => found.push(failure),
            }
        }
        let count: usize = cycles.iter().map(|cycle| cycle.files.len()).sum();
        if count > 0 {
            found.push(format!(
                "{name}: {count} files import each other in a cycle:"
            ));
            found.extend(cycles.into_iter().flat_map(|cycle| cycle.imports));
        }
    }
    found
}

fn is_root(name: &str, path: &str) -> bool {
    let inside = path
        .strip_prefix(name)
        .and_then(|path| path.strip_prefix("/src/"))
        .unwrap_or_default();
    matches!(inside, "lib.rs" | "main.rs")
        || inside
            .strip_prefix("bin/")
            .is_some_and(|file| !file.contains('/'))
}

/// A set of files that all depend on each other, directly or not (a strongly connected component).
struct Cycle<'a> {
    files: BTreeSet<&'a str>,
    /// One line per dependency inside the set: the importing file, the other file, and the names.
    imports: Vec<String>,
}

/// Returns the strongly connected components of the dependency graph that have more than one file.
fn find_cycles<'a>(uses: &Uses<'a>) -> Vec<Cycle<'a>> {
    let mut dependencies: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in uses.keys() {
        dependencies.entry(from).or_default().insert(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = dependencies
        .keys()
        .map(|file| (*file, reach(file, &dependencies)))
        .collect();
    let mut cycles: Vec<Cycle<'_>> = Vec::new();
    for (file, all) in &reached {
        // A file that does not reach itself is in no cycle.
        if !all.contains(file) || cycles.iter().any(|cycle| cycle.files.contains(file)) {
            continue;
        }
        let back = |other: &&&str| {
            reached
                .get(**other)
                .is_some_and(|reached| reached.contains(file))
        };
        let files: BTreeSet<&str> = all.iter().filter(back).copied().collect();
        let inside = uses
            .iter()
            .filter(|((from, to), _)| files.contains(from) && files.contains(to));
        let imports = inside.map(|((from, to), names)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("    {from} -> {to}: {}", names.join(", "))
        });
        cycles.push(Cycle {
            imports: imports.collect(),
            files,
        });
    }
    cycles
}

/// Returns every file that a file depends on, directly or not.
fn reach<'a>(file: &str, dependencies: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = dependencies
        .get(file)
        .into_iter()
        .flatten()
        .copied()
        .collect();
    while let Some(file) = next.pop() {
        if reached.insert(file) {
            next.extend(dependencies.get(file).into_iter().flatten().copied());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the files of a crate `crates/a`, given by their path in `src`.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| File {
            path: format!("crates/a/src/{path}"),
            text: (*text).to_owned(),
        };
        inside_crates(&files.iter().map(file).collect::<Vec<_>>())
    }

    const LIB: (&str, &str) = ("lib.rs", "mod below; mod above;");

    #[test]
    fn imports_in_one_direction_pass() {
        let above = (
            "above.rs",
            "use crate::below::B; fn f() { crate::below::g(); }",
        );
        assert!(found(&[LIB, above, ("below.rs", "pub struct B; pub fn g() {}")]).is_empty());
    }

    #[test]
    fn a_cycle_of_two_is_reported_with_the_imported_names() {
        let files = [
            LIB,
            ("above.rs", "use crate::below::{B, g}; pub const A: u8 = 0;"),
            (
                "below.rs",
                "pub struct B(u8); pub fn g() -> u8 { super::above::A }",
            ),
        ];
        assert_eq!(
            found(&files),
            [
                "crates/a: 2 files import each other in a cycle:",
                "    crates/a/src/above.rs -> crates/a/src/below.rs: B, g",
                "    crates/a/src/below.rs -> crates/a/src/above.rs: A",
            ]
        );
    }

    #[test]
    fn a_reexported_name_belongs_to_the_file_that_defines_it() {
        // `a/mod.rs` re-exports `C` for `b` and `B` for the whole crate, which makes no cycle.
        let files = [
            ("lib.rs", "mod a; pub use a::{B, C as Other};"),
            (
                "a/mod.rs",
                "mod b; mod c; pub use b::B; pub use self::c::*;",
            ),
            ("a/b.rs", "use super::C; pub struct B(C);"),
            ("a/c.rs", "pub struct C;"),
        ];
        assert!(found(&files).is_empty());
        // But if `c` imports `B` through the re-export, `b` and `c` form a cycle.
        let back = ("a/c.rs", "pub struct C; fn f(b: crate::B) {}");
        assert_eq!(
            found(&[files[0], files[1], files[2], back])[1..],
            [
                "    crates/a/src/a/b.rs -> crates/a/src/a/c.rs: C",
                "    crates/a/src/a/c.rs -> crates/a/src/a/b.rs: B",
            ]
        );
    }

    #[test]
    fn a_parent_and_a_child_that_use_each_other_are_a_cycle() {
        let child = ("a/b.rs", "use super::LIMIT; pub fn f() -> u8 { LIMIT }");
        let only_reexports = ("a/mod.rs", "mod b; pub use b::f; pub const LIMIT: u8 = 0;");
        assert!(found(&[("lib.rs", "mod a;"), only_reexports, child]).is_empty());
        for uses in ["b::f()", "f()"] {
            let text =
                format!("mod b; pub use b::f; pub const LIMIT: u8 = 0; fn g() {{ {uses}; }}");
            let found = found(&[("lib.rs", "mod a;"), ("a/mod.rs", &text), child]);
            assert_eq!(
                found[1..],
                [
                    "    crates/a/src/a/b.rs -> crates/a/src/a/mod.rs: LIMIT",
                    "    crates/a/src/a/mod.rs -> crates/a/src/a/b.rs: f",
                ]
            );
        }
    }

    #[test]
    fn an_imported_module_counts_only_where_its_names_are_used() {
        let below = ("below.rs", "use crate::above; pub fn g() { above::f() }");
        let above = |uses: &'static str| ("above.rs", uses);
        assert!(found(&[LIB, above("use crate::below; pub fn f() {}"), below]).is_empty());
        let found = found(&[
            LIB,
            above("use crate::below as other; pub fn f() { other::g() }"),
            below,
        ]);
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn a_glob_import_counts_only_for_the_names_used() {
        let below = ("below.rs", "pub fn g() { crate::above::f() } pub struct B;");
        let all = |uses: &'static str| ("above.rs", uses);
        assert!(found(&[LIB, all("use crate::below::*; pub fn f() {}"), below]).is_empty());
        let found = found(&[LIB, all("use crate::below::*; pub fn f() { B; }"), below]);
        assert_eq!(
            found.get(1).map(String::as_str),
            Some("    crates/a/src/above.rs -> crates/a/src/below.rs: B")
        );
    }

    #[test]
    fn a_name_defined_by_a_macro_belongs_to_the_module() {
        let files = [
            LIB,
            ("above.rs", "use crate::below::Id;"),
            ("below.rs", "id!(Id); fn f() { crate::above::g!() }"),
        ];
        assert_eq!(found(&files).len(), 3);
    }

    #[test]
    fn other_crates_and_test_code_do_not_count() {
        let files = [
            LIB,
            ("above.rs", "use crate::below::B; pub use other::*; #[cfg(test)] mod tests;"),
            (
                "below.rs",
                "use crate::above::Foreign; use other::above::X; #[cfg(test)] mod tests { use crate::above::f; }
                 /// [`crate::above::f`] in a comment is no use of it.
                 pub struct B { above: &'static str } const S: &str = \"crate::above::f\";",
            ),
            ("above/tests.rs", "use super::*;"),
        ];
        assert!(found(&files).is_empty(), "{:?}", found(&files));
    }

    #[test]
    fn a_file_that_only_imports_from_a_cycle_is_not_in_it() {
        let files = [
            (
                "main.rs",
                "mod a; mod b; mod c; mod d; fn main() { d::f() }",
            ),
            ("a.rs", "pub fn f() { crate::b::f() }"),
            ("b.rs", "pub fn f() { crate::c::f() }"),
            ("c.rs", "pub fn f() { crate::a::f() }"),
            ("d.rs", "pub fn f() { crate::a::f() }"),
        ];
        assert_eq!(
            found(&files)[0],
            "crates/a: 3 files import each other in a cycle:"
        );
        assert_eq!(found(&files).len(), 4);
    }

    #[test]
    fn a_module_without_a_file_is_reported() {
        assert_eq!(
            found(&[("lib.rs", "mod a;")]),
            ["crates/a/src/lib.rs: the module a has no file"]
        );
    }
}
