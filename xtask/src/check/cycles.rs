//! Import cycles between the modules of a crate, which the compiler allows: data below, behaviour
//! above.
//!
//! The unit is a file. A file uses another one if it imports or names, by a path that begins with
//! `crate`, `self`, `super` or a known module, something that the other defines, through any number
//! of re-exports. A parent uses its child, and a child its parent, if it takes a name from it; `mod`
//! and `pub use` alone do not count.

mod names; // where a name comes from
mod source; // what a file says of names
pub(super) mod token; // source as tokens

use std::collections::{BTreeMap, BTreeSet};

use super::files::File;
use names::{Names, Uses};

/// Crates that still have circles, and how many of their files are in one. This list only gets
/// shorter.
const KNOWN: &[(&str, usize)] = &[];

/// Returns the circles among the files of each crate, if they are not those that are known.
pub(crate) fn inside_crates(files: &[File]) -> Vec<String> {
    broken(files, KNOWN)
}

fn broken(files: &[File], known: &[(&str, usize)]) -> Vec<String> {
    let mut found = Vec::new();
    let mut crates: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let Some((name, _)) = file.path.split_once("/src/") else {
            continue;
        };
        // A workspace of its own, and the crates of fixtures, are none of this house.
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
        let mut circles = Vec::new();
        for root in files.keys().filter(|path| is_root(name, path)) {
            match Names::read(root, files) {
                Ok(names) => circles.extend(circles_of(&names.uses())),
                Err(failure) => found.push(failure),
            }
        }
        let count: usize = circles.iter().map(|circle| circle.files.len()).sum();
        let allowed = known
            .iter()
            .find(|(known, _)| known == name)
            .map_or(0, |(_, count)| *count);
        if count > allowed {
            found.push(format!(
                "{name}: {count} files use each other in a circle, and {allowed} may:"
            ));
            found.extend(circles.into_iter().flat_map(|circle| circle.ties));
        } else if count < allowed {
            found.push(format!("{name}: {count} files use each other in a circle: lower its number in xtask/src/check/cycles.rs"));
        }
    }
    let unknown = known
        .iter()
        .filter(|(known, _)| !crates.contains_key(known));
    found.extend(unknown.map(|(known, _)| {
        format!("{known}: in the list of xtask/src/check/cycles.rs, and no crate")
    }));
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

/// Files that use each other in a circle.
struct Circle<'a> {
    files: BTreeSet<&'a str>,
    /// Returns which file takes which names of which other, a line each.
    ties: Vec<String>,
}

/// Returns the circles, the largest sets of files each of which uses, directly or not, every other.
fn circles_of<'a>(uses: &Uses<'a>) -> Vec<Circle<'a>> {
    let mut below: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in uses.keys() {
        below.entry(from).or_default().insert(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = below
        .keys()
        .map(|file| (*file, reach(file, &below)))
        .collect();
    let mut circles: Vec<Circle<'_>> = Vec::new();
    for (file, all) in &reached {
        if !all.contains(file) || circles.iter().any(|circle| circle.files.contains(file)) {
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
        let ties = inside.map(|((from, to), names)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("    {from} -> {to}: {}", names.join(", "))
        });
        circles.push(Circle {
            ties: ties.collect(),
            files,
        });
    }
    circles
}

/// Returns every file that one uses, directly or not.
fn reach<'a>(file: &str, below: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = below.get(file).into_iter().flatten().copied().collect();
    while let Some(file) = next.pop() {
        if reached.insert(file) {
            next.extend(below.get(file).into_iter().flatten().copied());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files of the crate `crates/a`, by their path in `src`.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| File {
            path: format!("crates/a/src/{path}"),
            text: (*text).to_owned(),
        };
        broken(&files.iter().map(file).collect::<Vec<_>>(), &[])
    }

    const LIB: (&str, &str) = ("lib.rs", "mod below; mod above;");

    #[test]
    fn one_way_is_fine() {
        let above = (
            "above.rs",
            "use crate::below::B; fn f() { crate::below::g(); }",
        );
        assert!(found(&[LIB, above, ("below.rs", "pub struct B; pub fn g() {}")]).is_empty());
    }

    #[test]
    fn two_that_use_each_other_are_named_with_what_ties_them() {
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
                "crates/a: 2 files use each other in a circle, and 0 may:",
                "    crates/a/src/above.rs -> crates/a/src/below.rs: B, g",
                "    crates/a/src/below.rs -> crates/a/src/above.rs: A",
            ]
        );
    }

    #[test]
    fn a_name_is_its_definers_whoever_hands_it_on() {
        // `a/mod.rs` hands on what `b` needs of `c`, and what everybody needs of `b`: no circle.
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
        // But where `c` takes `b` by that way, the two are one.
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
    fn a_parent_that_uses_its_child_must_not_be_used_by_it() {
        let child = ("a/b.rs", "use super::LIMIT; pub fn f() -> u8 { LIMIT }");
        let only_told = ("a/mod.rs", "mod b; pub use b::f; pub const LIMIT: u8 = 0;");
        assert!(found(&[("lib.rs", "mod a;"), only_told, child]).is_empty());
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
    fn an_imported_module_ties_by_what_is_used_of_it() {
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
    fn every_name_of_a_module_may_be_imported() {
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
    fn what_a_macro_defines_is_its_modules() {
        let files = [
            LIB,
            ("above.rs", "use crate::below::Id;"),
            ("below.rs", "id!(Id); fn f() { crate::above::g!() }"),
        ];
        assert_eq!(found(&files).len(), 3);
    }

    #[test]
    fn other_crates_and_tests_tie_nothing() {
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
    fn three_in_a_row_are_one_circle_and_who_only_uses_them_is_not_in_it() {
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
            "crates/a: 3 files use each other in a circle, and 0 may:"
        );
        assert_eq!(found(&files).len(), 4);
    }

    #[test]
    fn the_list_of_what_is_known_only_gets_shorter() {
        let file = |path: &str, text: &str| File {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let files = [
            file("crates/a/src/lib.rs", "mod b; mod c;"),
            file("crates/a/src/b.rs", "pub fn f() { crate::c::f() }"),
            file("crates/a/src/c.rs", "pub fn f() { super::b::f() }"),
        ];
        assert!(broken(&files, &[("crates/a", 2)]).is_empty());
        assert_eq!(broken(&files, &[("crates/a", 1)]).len(), 3);
        assert_eq!(
            broken(&files, &[("crates/a", 3), ("crates/gone", 2)]),
            [
                "crates/a: 2 files use each other in a circle: lower its number in xtask/src/check/cycles.rs",
                "crates/gone: in the list of xtask/src/check/cycles.rs, and no crate",
            ]
        );
    }

    #[test]
    fn a_module_without_a_file_is_told() {
        assert_eq!(
            found(&[("lib.rs", "mod a;")]),
            ["crates/a/src/lib.rs: no file of the module a is found"]
        );
    }
}
