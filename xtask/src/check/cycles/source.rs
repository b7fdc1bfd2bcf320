//! Parses one Rust file for the names that it defines, imports and uses. Code for tests only
//! (`#[cfg(test)]`) is left out.

use std::collections::{BTreeMap, BTreeSet};

use super::token::{Token, tokens};

/// The segments of a path, such as `crate`, `port`, `StoreError`.
pub(super) type Path = Vec<String>;

/// One leaf of a `use` tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) path: Path,
    /// The name in this module; `None` for `*` and `as _`.
    pub(super) name: Option<String>,
    /// True for a glob import (`path::*`).
    pub(super) glob: bool,
    /// True for a re-export: the `use` has a visibility.
    pub(super) reexported: bool,
}

/// A module: a file, or an inline module in braces.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Module {
    pub(super) defined: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    /// Child modules with their own file (`mod x;`).
    pub(super) file_modules: Vec<String>,
    /// Inline child modules (`mod x { ... }`).
    pub(super) inline: BTreeMap<String, Module>,
    /// Paths of two or more segments outside `use`.
    pub(super) paths: BTreeSet<Path>,
    /// Single names outside `use` that may refer to an item: types, constants, macros, and
    /// functions that are called.
    pub(super) names: BTreeSet<String>,
}

/// Parses the text of a file.
pub(super) fn parse(source: &str) -> Module {
    let tokens = tokens(source);
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
    };
    let mut module = Module::default();
    while parser.at < tokens.len() {
        parser.module(&mut module);
        // After an unmatched closing brace, parsing goes on with the rest of the file.
        parser.at += 1;
    }
    module
}

const ITEMS: [&str; 14] = [
    "fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod", "use", "impl",
    "extern", "unsafe", "async",
];

struct Parser<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
}

impl<'a> Parser<'a> {
    fn token(&self, ahead: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + ahead).copied()
    }

    fn is(&self, ahead: usize, sign: char) -> bool {
        self.token(ahead) == Some(Token::Punct(sign))
    }

    fn word(&self, ahead: usize) -> Option<&'a str> {
        if let Some(Token::Ident(word)) = self.token(ahead) {
            Some(word)
        } else {
            None
        }
    }

    /// Parses up to the closing brace of the module (not consumed), or to the end of the file.
    fn module(&mut self, module: &mut Module) {
        let mut depth = 0_usize;
        let mut visible = false;
        while let Some(token) = self.token(0) {
            let was_visible = std::mem::take(&mut visible);
            match token {
                Token::Punct('}') if depth == 0 => return,
                Token::Punct('{' | '(' | '[') => depth += 1,
                Token::Punct('}' | ')' | ']') => depth = depth.saturating_sub(1),
                Token::Punct('#') if self.is(1, '[') => {
                    if self.is_test_only() {
                        self.skip_item();
                        continue;
                    }
                }
                Token::Ident("pub") => {
                    visible = true;
                    self.at += 1;
                    if self.is(0, '(')
                        && matches!(self.word(1), Some("crate" | "super" | "self" | "in"))
                    {
                        self.skip_group();
                    }
                    continue;
                }
                // `use<'a>` in a return type lists captured lifetimes and is no import.
                Token::Ident("use") if !self.is(1, '<') => {
                    self.at += 1;
                    self.import(&Path::new(), was_visible, &mut module.imports);
                    continue;
                }
                Token::Ident("mod") => {
                    if let Some(name) = self.word(1) {
                        if self.is(2, '{') {
                            self.at += 3;
                            self.module(module.inline.entry(name.to_owned()).or_default());
                        } else if self.is(2, ';') {
                            module.file_modules.push(name.to_owned());
                            self.at += 2;
                        }
                    }
                }
                Token::Ident(word) => {
                    if depth == 0
                        && let Some(name) = self.defined_name(word)
                    {
                        module.defined.insert(name.to_owned());
                    }
                    self.path(module);
                    continue;
                }
                Token::PathSeparator | Token::Punct(_) | Token::Literal => {}
            }
            self.at += 1;
        }
    }

    /// Returns the name of the item that begins with this keyword.
    fn defined_name(&self, keyword: &str) -> Option<&'a str> {
        match keyword {
            "fn" | "struct" | "enum" | "trait" | "type" | "union" => self.word(1),
            // `const fn` begins a function, whose name follows `fn`.
            "const" => self.word(1).filter(|name| !ITEMS.contains(name)),
            "static" if self.word(1) == Some("mut") => self.word(2),
            "static" => self.word(1),
            "macro_rules" if self.is(1, '!') => self.word(2),
            _ => None,
        }
    }

    /// Parses a path or a single name, and records it if it may refer to an item.
    fn path(&mut self, module: &mut Module) {
        let previous = self.at.checked_sub(1).map(|before| self.tokens[before]);
        let mut path = Path::new();
        while let Some(word) = self.word(0) {
            path.push(word.to_owned());
            self.at += 1;
            if self.token(0) != Some(Token::PathSeparator) {
                break;
            }
            self.at += 1;
        }
        match previous {
            // A field, a method, or an associated item: resolving it would need type inference.
            Some(Token::Punct('.') | Token::PathSeparator) => {}
            _ if path.len() > 1 => drop(module.paths.insert(path)),
            // The name of the definition itself, or of a field.
            Some(Token::Ident(
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "mod",
            )) => {}
            _ if self.is(0, ':') => {}
            // A lower-case name may be a variable; followed by `(` or `!` it is surely not.
            _ if path.iter().any(|name| name.starts_with(char::is_uppercase))
                || self.is(0, '(')
                || self.is(0, '!') =>
            {
                module.names.extend(path);
            }
            _ => {}
        }
    }

    /// Parses a `use` declaration up to and including its `;`, or one branch of its tree.
    fn import(&mut self, before: &Path, reexported: bool, imports: &mut Vec<Import>) {
        let mut path = before.clone();
        // A path that begins with `::` is of another crate.
        let foreign = before.is_empty() && self.token(0) == Some(Token::PathSeparator);
        loop {
            match self.token(0) {
                Some(Token::Ident("as")) => {
                    let name = self.word(1).filter(|name| *name != "_").map(str::to_owned);
                    self.at += 2;
                    if !foreign {
                        imports.push(Import {
                            path: without_self(path),
                            name,
                            glob: false,
                            reexported,
                        });
                    }
                    break;
                }
                Some(Token::Ident(word)) => {
                    path.push(word.to_owned());
                    self.at += 1;
                }
                Some(Token::PathSeparator) => self.at += 1,
                Some(Token::Punct('*')) => {
                    self.at += 1;
                    if !foreign {
                        imports.push(Import {
                            path,
                            name: None,
                            glob: true,
                            reexported,
                        });
                    }
                    break;
                }
                Some(Token::Punct('{')) => {
                    self.at += 1;
                    while !self.is(0, '}') && self.token(0).is_some() {
                        let (mut found, start) = (Vec::new(), self.at);
                        self.import(&path, reexported, &mut found);
                        if self.at == start && !self.is(0, ',') {
                            // A token that no `use` can contain; skip it, so that the loop ends.
                            self.at += 1;
                        }
                        if !foreign {
                            imports.append(&mut found);
                        }
                        if self.is(0, ',') {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    break;
                }
                _ => {
                    if !foreign && !path.is_empty() {
                        let path = without_self(path);
                        let name = path.last().cloned();
                        imports.push(Import {
                            path,
                            name,
                            glob: false,
                            reexported,
                        });
                    } else if self.token(0).is_some()
                        && !self.is(0, ',')
                        && !self.is(0, '}')
                        && !self.is(0, ';')
                    {
                        // A token that no `use` can contain, such as a macro variable (`$name`).
                        self.at += 1;
                        continue;
                    }
                    break;
                }
            }
        }
        if before.is_empty() && self.is(0, ';') {
            self.at += 1;
        }
    }

    /// Returns true if the attribute at the current position compiles the item for tests only.
    fn is_test_only(&self) -> bool {
        let Some(Token::Ident("cfg")) = self.token(2) else {
            return false;
        };
        let alone = self.is(3, '(') && self.word(4) == Some("test") && self.is(5, ')');
        let with_more = self.is(3, '(') && self.word(4) == Some("all") && self.is(5, '(');
        let mut conditions = (6..)
            .map_while(|ahead| self.token(ahead))
            .take_while(|token| *token != Token::Punct(']'));
        // `not(test)` and `any(test, ...)` inside `all(...)` do not restrict the item to tests.
        alone || with_more && conditions.next() == Some(Token::Ident("test"))
    }

    /// Skips the attributes at the current position and the item, field, variant, match arm or
    /// statement that they apply to.
    fn skip_item(&mut self) {
        while self.is(0, '#') {
            self.at += 1;
            self.skip_group();
        }
        if self.word(0) == Some("pub") {
            self.at += 1;
            if self.is(0, '(') {
                self.skip_group();
            }
        }
        let first = self.word(0);
        let is_item = first.is_some_and(|word| ITEMS.contains(&word) || word == "macro_rules");
        // These may contain braces before their `;`, so a closing brace does not end them.
        let to_semicolon = match first {
            Some("use" | "static" | "let") => true,
            Some("const") => self.word(1) != Some("fn"),
            _ => false,
        };
        while let Some(token) = self.token(0) {
            match token {
                Token::Punct('{' | '(' | '[') => {
                    self.skip_group();
                    if token == Token::Punct('{') && !to_semicolon {
                        return;
                    }
                }
                Token::Punct('}' | ')' | ']') => return,
                Token::Punct(';') => {
                    self.at += 1;
                    return;
                }
                Token::Punct(',') if !is_item => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    /// Skips a pair of brackets and its content.
    fn skip_group(&mut self) {
        let mut depth = 0_usize;
        while let Some(token) = self.token(0) {
            self.at += 1;
            match token {
                Token::Punct('{' | '(' | '[') => depth += 1,
                Token::Punct('}' | ')' | ']') => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }
}

/// Returns the path without a trailing `self`, which refers to the module before it.
fn without_self(mut path: Path) -> Path {
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(source: &str) -> Vec<String> {
        let shown = |import: Import| {
            let name = if import.glob {
                "*".to_owned()
            } else {
                import.name.unwrap_or("_".to_owned())
            };
            let on = if import.reexported { "pub " } else { "" };
            format!("{on}{} = {name}", import.path.join("::"))
        };
        parse(source).imports.into_iter().map(shown).collect()
    }

    fn paths(source: &str) -> Vec<String> {
        parse(source)
            .paths
            .into_iter()
            .map(|path| path.join("::"))
            .collect()
    }

    #[test]
    fn an_import_is_a_tree() {
        assert_eq!(
            imports("use crate::a::{self, b, c::{D as E, f as _}, g::*};"),
            [
                "crate::a = a",
                "crate::a::b = b",
                "crate::a::c::D = E",
                "crate::a::c::f = _",
                "crate::a::g = *",
            ]
        );
        assert_eq!(
            imports("pub use a::B; pub(crate) use self::c::D; pub(in crate::x) use super::e;"),
            ["pub a::B = B", "pub self::c::D = D", "pub super::e = e",]
        );
        assert!(imports("use ::other::{a, b};").is_empty());
        assert!(imports("fn f<'a>() -> impl A + use<'a> { b; c }").is_empty());
        assert_eq!(imports("use a::{b; } use c;")[0], "a::b = b");
    }

    #[test]
    fn paths_are_found_wherever_they_stand() {
        let source = "fn f<T: crate::a::B>(x: &super::c::D) { let y = x.e::<self::g::H>(); z!(crate::i::j(k::l)); }";
        assert_eq!(
            paths(source),
            [
                "crate::a::B",
                "crate::i::j",
                "k::l",
                "self::g::H",
                "super::c::D"
            ]
        );
    }

    #[test]
    fn test_code_is_left_out() {
        let source = "
            #[cfg(test)] use crate::a::{B, C};
            #[cfg(test)] mod tests;
            #[cfg(test)] mod more { use crate::d::E; }
            #[cfg(test)] pub(crate) fn f<A, B>(g: crate::h::I) -> [u8; 3] { crate::j::k() }
            #[cfg(all(test, unix))] #[derive(Debug)] struct L { m: crate::n::O }
            #[cfg(test)] const P: [u8; 1] = { [crate::q::R] };
            enum S { #[cfg(test)] T(crate::u::V), W(crate::x::Y) }
            #[cfg(any(test, unix))] use crate::z::A;
            #[cfg(not(test))] use crate::z::B;
        ";
        assert_eq!(imports(source), ["crate::z::A = A", "crate::z::B = B"]);
        assert_eq!(paths(source), ["crate::x::Y"]);
        assert!(parse(source).file_modules.is_empty() && parse(source).inline.is_empty());
    }

    #[test]
    fn names_are_defined_by_items_of_the_module_itself() {
        let module = parse(
            "pub const fn a() { fn inner() {} } static mut B: u8 = 0; const C: u8 = 1; struct D { type_: u8 }
             impl D { fn method() {} } macro_rules! e { () => {} } trait F { fn g(); } mod h; mod i { enum J {} }",
        );
        assert_eq!(
            module
                .defined
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>(),
            ["B", "C", "D", "F", "a", "e"]
        );
        assert_eq!(module.file_modules, ["h"]);
        assert!(module.inline["i"].defined.contains("J"));
    }

    #[test]
    fn fields_variables_and_methods_are_not_names() {
        let module = parse(
            "struct S { x: u8 } fn f(a: A) { a.x; a.g(); B::c(); let v = D; S { v, x: h(v) }; k!() }",
        );
        assert_eq!(
            module.names.iter().map(String::as_str).collect::<Vec<_>>(),
            ["A", "D", "S", "h", "k"]
        );
    }
}
