//! Reads one file of Rust for names: those it defines, those it imports, those it uses. What is for
//! tests only is left out.

use std::collections::{BTreeMap, BTreeSet};

use super::token::{Token, tokens};

/// A path as it is written, such as `crate`, `port`, `StoreError`.
pub(super) type Path = Vec<String>;

/// One name that a `use` makes known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) path: Path,
    /// Its name here; `None` for `*` and `as _`.
    pub(super) name: Option<String>,
    /// All names of the path are meant.
    pub(super) all: bool,
    /// It hands the name on: it has a visibility.
    pub(super) handed_on: bool,
}

/// A module: a file, or a part of one in braces.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Module {
    pub(super) defined: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    /// Modules that are files of their own.
    pub(super) files: Vec<String>,
    /// Modules in braces.
    pub(super) inner: BTreeMap<String, Module>,
    /// Paths that are used, beside those of imports.
    pub(super) paths: BTreeSet<Path>,
    /// Names of types and constants that are used alone, and of functions that are called, beside
    /// those of imports.
    pub(super) names: BTreeSet<String>,
}

/// Reads a file.
pub(super) fn read(source: &str) -> Module {
    let tokens = tokens(source);
    let mut reader = Reader {
        tokens: &tokens,
        at: 0,
    };
    let mut module = Module::default();
    while reader.at < tokens.len() {
        reader.module(&mut module);
        // A closing brace too many: what follows is read all the same.
        reader.at += 1;
    }
    module
}

const ITEMS: [&str; 14] = [
    "fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod", "use", "impl",
    "extern", "unsafe", "async",
];

struct Reader<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
}

impl<'a> Reader<'a> {
    fn token(&self, ahead: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + ahead).copied()
    }

    fn is(&self, ahead: usize, sign: char) -> bool {
        self.token(ahead) == Some(Token::Sign(sign))
    }

    fn word(&self, ahead: usize) -> Option<&'a str> {
        if let Some(Token::Word(word)) = self.token(ahead) {
            Some(word)
        } else {
            None
        }
    }

    /// Reads until the brace that closes the module, which is left, or to the end.
    fn module(&mut self, module: &mut Module) {
        let mut depth = 0_usize;
        let mut visible = false;
        while let Some(token) = self.token(0) {
            let was_visible = std::mem::take(&mut visible);
            match token {
                Token::Sign('}') if depth == 0 => return,
                Token::Sign('{' | '(' | '[') => depth += 1,
                Token::Sign('}' | ')' | ']') => depth = depth.saturating_sub(1),
                Token::Sign('#') if self.is(1, '[') => {
                    if self.is_for_tests() {
                        self.skip_item();
                        continue;
                    }
                }
                Token::Word("pub") => {
                    visible = true;
                    self.at += 1;
                    if self.is(0, '(')
                        && matches!(self.word(1), Some("crate" | "super" | "self" | "in"))
                    {
                        self.skip_group();
                    }
                    continue;
                }
                // `use<'a>` says what a type captures.
                Token::Word("use") if !self.is(1, '<') => {
                    self.at += 1;
                    self.import(&Path::new(), was_visible, &mut module.imports);
                    continue;
                }
                Token::Word("mod") => {
                    if let Some(name) = self.word(1) {
                        if self.is(2, '{') {
                            self.at += 3;
                            self.module(module.inner.entry(name.to_owned()).or_default());
                        } else if self.is(2, ';') {
                            module.files.push(name.to_owned());
                            self.at += 2;
                        }
                    }
                }
                Token::Word(word) => {
                    if depth == 0
                        && let Some(name) = self.defines(word)
                    {
                        module.defined.insert(name.to_owned());
                    }
                    self.path(module);
                    continue;
                }
                Token::Path | Token::Sign(_) | Token::Literal => {}
            }
            self.at += 1;
        }
    }

    /// Returns the name that an item beginning with this keyword defines.
    fn defines(&self, keyword: &str) -> Option<&'a str> {
        match keyword {
            "fn" | "struct" | "enum" | "trait" | "type" | "union" => self.word(1),
            // `const fn` is a function.
            "const" => self.word(1).filter(|name| !ITEMS.contains(name)),
            "static" if self.word(1) == Some("mut") => self.word(2),
            "static" => self.word(1),
            "macro_rules" if self.is(1, '!') => self.word(2),
            _ => None,
        }
    }

    /// Reads a path, or a name alone.
    fn path(&mut self, module: &mut Module) {
        let follows = self.at.checked_sub(1).map(|before| self.tokens[before]);
        let mut path = Path::new();
        while let Some(word) = self.word(0) {
            path.push(word.to_owned());
            self.at += 1;
            if self.token(0) != Some(Token::Path) {
                break;
            }
            self.at += 1;
        }
        match follows {
            // A field, a method, or what is associated with a type.
            Some(Token::Sign('.') | Token::Path) => {}
            _ if path.len() > 1 => drop(module.paths.insert(path)),
            // Its own name, or a field's.
            Some(Token::Word(
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "mod",
            )) => {}
            _ if self.is(0, ':') => {}
            // A variable may be called like a function: only a call is surely none.
            _ if path.iter().any(|name| name.starts_with(char::is_uppercase))
                || self.is(0, '(')
                || self.is(0, '!') =>
            {
                module.names.extend(path);
            }
            _ => {}
        }
    }

    /// Reads what follows `use`, to behind its `;`, or one branch of it.
    fn import(&mut self, before: &Path, handed_on: bool, imports: &mut Vec<Import>) {
        let mut path = before.clone();
        // Whatever begins with `::` is another crate's.
        let foreign = before.is_empty() && self.token(0) == Some(Token::Path);
        loop {
            match self.token(0) {
                Some(Token::Word("as")) => {
                    let name = self.word(1).filter(|name| *name != "_").map(str::to_owned);
                    self.at += 2;
                    if !foreign {
                        imports.push(Import {
                            path: meant(path),
                            name,
                            all: false,
                            handed_on,
                        });
                    }
                    break;
                }
                Some(Token::Word(word)) => {
                    path.push(word.to_owned());
                    self.at += 1;
                }
                Some(Token::Path) => self.at += 1,
                Some(Token::Sign('*')) => {
                    self.at += 1;
                    if !foreign {
                        imports.push(Import {
                            path,
                            name: None,
                            all: true,
                            handed_on,
                        });
                    }
                    break;
                }
                Some(Token::Sign('{')) => {
                    self.at += 1;
                    while !self.is(0, '}') && self.token(0).is_some() {
                        let (mut found, begun) = (Vec::new(), self.at);
                        self.import(&path, handed_on, &mut found);
                        if self.at == begun && !self.is(0, ',') {
                            // Nothing that a `use` can hold.
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
                        let path = meant(path);
                        let name = path.last().cloned();
                        imports.push(Import {
                            path,
                            name,
                            all: false,
                            handed_on,
                        });
                    } else if self.token(0).is_some()
                        && !self.is(0, ',')
                        && !self.is(0, '}')
                        && !self.is(0, ';')
                    {
                        // Nothing that a `use` can hold, such as a macro's variable.
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

    /// Says whether the attribute here lets an item be there for tests only.
    fn is_for_tests(&self) -> bool {
        let Some(Token::Word("cfg")) = self.token(2) else {
            return false;
        };
        let alone = self.is(3, '(') && self.word(4) == Some("test") && self.is(5, ')');
        let with_more = self.is(3, '(') && self.word(4) == Some("all") && self.is(5, '(');
        let mut conditions = (6..)
            .map_while(|ahead| self.token(ahead))
            .take_while(|token| *token != Token::Sign(']'));
        // `not(test)` and `any(test, …)` inside it are no such condition.
        alone || with_more && conditions.next() == Some(Token::Word("test"))
    }

    /// Skips the attributes here and what they are of: an item, a field, a variant, an arm or a
    /// statement.
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
        // Their braces are not their end.
        let to_semicolon = match first {
            Some("use" | "static" | "let") => true,
            Some("const") => self.word(1) != Some("fn"),
            _ => false,
        };
        while let Some(token) = self.token(0) {
            match token {
                Token::Sign('{' | '(' | '[') => {
                    self.skip_group();
                    if token == Token::Sign('{') && !to_semicolon {
                        return;
                    }
                }
                Token::Sign('}' | ')' | ']') => return,
                Token::Sign(';') => {
                    self.at += 1;
                    return;
                }
                Token::Sign(',') if !is_item => {
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    /// Skips a pair of brackets and what is in it.
    fn skip_group(&mut self) {
        let mut depth = 0_usize;
        while let Some(token) = self.token(0) {
            self.at += 1;
            match token {
                Token::Sign('{' | '(' | '[') => depth += 1,
                Token::Sign('}' | ')' | ']') => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }
}

/// Returns the path without the `self` at its end, which means the module before it.
fn meant(mut path: Path) -> Path {
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
            let name = if import.all {
                "*".to_owned()
            } else {
                import.name.unwrap_or("_".to_owned())
            };
            let on = if import.handed_on { "pub " } else { "" };
            format!("{on}{} = {name}", import.path.join("::"))
        };
        read(source).imports.into_iter().map(shown).collect()
    }

    fn paths(source: &str) -> Vec<String> {
        read(source)
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
    fn what_is_for_tests_is_left_out() {
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
        assert!(read(source).files.is_empty() && read(source).inner.is_empty());
    }

    #[test]
    fn names_are_defined_by_items_of_the_module_itself() {
        let module = read(
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
        assert_eq!(module.files, ["h"]);
        assert!(module.inner["i"].defined.contains("J"));
    }

    #[test]
    fn fields_variables_and_methods_are_no_names_that_are_used() {
        let module = read(
            "struct S { x: u8 } fn f(a: A) { a.x; a.g(); B::c(); let v = D; S { v, x: h(v) }; k!() }",
        );
        assert_eq!(
            module.names.iter().map(String::as_str).collect::<Vec<_>>(),
            ["A", "D", "S", "h", "k"]
        );
    }
}
