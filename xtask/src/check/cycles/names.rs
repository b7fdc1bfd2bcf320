//! Resolves names to the files of a crate that define them, through any number of re-exports.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{self, Import, Module, Path};

/// Dependencies between files: (importing file, defining file) and the names involved.
pub(super) type Uses<'a> = BTreeMap<(&'a str, &'a str), BTreeSet<String>>;

/// A module of the crate, with the file that contains it.
struct ModuleEntry<'a> {
    file: &'a str,
    module: Module,
    children: BTreeSet<String>,
}

/// The modules of a crate, by their path from the crate root.
pub(super) struct Names<'a> {
    modules: BTreeMap<Path, ModuleEntry<'a>>,
}

/// The module or item that a path resolves to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Resolved<'a> {
    Module(Path),
    Item { file: &'a str, name: String },
}

impl<'a> Names<'a> {
    /// Parses a crate from its root file on. `files` has the text of all its files, by path.
    ///
    /// # Errors
    /// A declared module has no file.
    pub(super) fn load(root: &'a str, files: &BTreeMap<&'a str, &'a str>) -> Result<Self, String> {
        let mut names = Self {
            modules: BTreeMap::new(),
        };
        let text = files
            .get(root)
            .ok_or_else(|| format!("{root}: there is no such file"))?;
        let folder = root
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder)
            .to_owned();
        names.add_module(Path::new(), root, &folder, source::parse(text), files)?;
        Ok(names)
    }

    /// Adds a module and, recursively, its child modules, whose files are in `folder`.
    fn add_module(
        &mut self,
        path: Path,
        file: &'a str,
        folder: &str,
        mut module: Module,
        files: &BTreeMap<&'a str, &'a str>,
    ) -> Result<(), String> {
        let mut children = BTreeSet::new();
        for (name, child) in std::mem::take(&mut module.inline) {
            let path = [path.as_slice(), std::slice::from_ref(&name)].concat();
            self.add_module(path, file, &format!("{folder}/{name}"), child, files)?;
            children.insert(name);
        }
        for name in std::mem::take(&mut module.file_modules) {
            let inside = format!("{folder}/{name}");
            let candidates = [format!("{inside}.rs"), format!("{inside}/mod.rs")];
            let found = candidates
                .iter()
                .find_map(|path| files.get_key_value(path.as_str()));
            let (file, text) =
                found.ok_or_else(|| format!("{file}: the module {name} has no file"))?;
            let path = [path.as_slice(), std::slice::from_ref(&name)].concat();
            self.add_module(path, file, &inside, source::parse(text), files)?;
            children.insert(name);
        }
        self.modules.insert(
            path,
            ModuleEntry {
                file,
                module,
                children,
            },
        );
        Ok(())
    }

    /// Returns the dependencies between the files. A `mod` declaration, and a re-export that is not
    /// used in its own file, are no dependency.
    pub(super) fn uses(&self) -> Uses<'a> {
        let mut uses = Uses::new();
        for (at, entry) in &self.modules {
            let mut add = |resolved: Option<Resolved<'a>>| {
                if let Some(Resolved::Item { file, name }) = resolved
                    && file != entry.file
                {
                    uses.entry((entry.file, file)).or_default().insert(name);
                }
            };
            for import in &entry.module.imports {
                if import.glob {
                    // A glob import makes the file depend only on those names of the module that it
                    // uses.
                    let Some(Resolved::Module(from)) = self.resolve(at, &import.path) else {
                        continue;
                    };
                    let used = entry
                        .module
                        .names
                        .iter()
                        .chain(entry.module.paths.iter().filter_map(|path| path.first()));
                    used.for_each(|name| add(self.item(&from, name, &mut BTreeSet::new())));
                } else if !import.reexported
                    || import
                        .name
                        .as_ref()
                        .is_some_and(|name| entry.module.uses(name))
                {
                    add(self.resolve(at, &import.path));
                }
            }
            entry
                .module
                .paths
                .iter()
                .for_each(|path| add(self.resolve(at, path)));
        }
        uses
    }

    /// Resolves a path written in the module `at`. Returns `None` for names of other crates and for
    /// unknown names.
    fn resolve(&self, at: &[String], path: &[String]) -> Option<Resolved<'a>> {
        self.lookup(at, path, &mut BTreeSet::new())
    }

    /// Resolves a path; `visiting` has the names whose resolution is under way, because re-exports
    /// can form a cycle. The first segment is not looked up in glob imports, which [`Names::uses`]
    /// handles.
    fn lookup(
        &self,
        at: &[String],
        path: &[String],
        visiting: &mut BTreeSet<(Path, String)>,
    ) -> Option<Resolved<'a>> {
        let (first, rest) = path.split_first()?;
        let start = match first.as_str() {
            "crate" => Path::new(),
            "self" => at.to_vec(),
            "super" => at.split_last()?.1.to_vec(),
            name => match (self.module(at, name, visiting), rest.is_empty()) {
                (Some(module), false) => module,
                _ => return self.explicit_item(at, name, visiting),
            },
        };
        let mut module = start;
        for (index, name) in rest.iter().enumerate() {
            if name == "super" {
                module.pop()?;
                continue;
            }
            let last = index + 1 == rest.len();
            match (self.module(&module, name, visiting), last) {
                (Some(child), false) => module = child,
                // The rest of the path belongs to the item, such as an enum's variant or an
                // associated function.
                (child, _) => {
                    let item = self.item(&module, name, visiting);
                    return item
                        .or_else(|| child.map(Resolved::Module))
                        .or_else(|| self.undefined_item(&module, name));
                }
            }
        }
        Some(Resolved::Module(module))
    }

    /// Returns the module that a name refers to inside the module `at`.
    fn module(
        &self,
        at: &[String],
        name: &str,
        visiting: &mut BTreeSet<(Path, String)>,
    ) -> Option<Path> {
        let entry = self.modules.get(at)?;
        if entry.children.contains(name) {
            return Some([at, &[name.to_owned()]].concat());
        }
        let import = entry.module.import(name)?;
        if !visiting.insert((at.to_vec(), format!("mod {name}"))) {
            return None;
        }
        let found = self.lookup(at, &import.path, visiting);
        // Another path may reach the same name without a cycle.
        visiting.remove(&(at.to_vec(), format!("mod {name}")));
        if let Resolved::Module(module) = found? {
            Some(module)
        } else {
            None
        }
    }

    /// Returns the item or module that a name refers to inside the module `at`, including glob
    /// imports.
    fn item(
        &self,
        at: &[String],
        name: &str,
        visiting: &mut BTreeSet<(Path, String)>,
    ) -> Option<Resolved<'a>> {
        let entry = self.modules.get(at)?;
        if entry.module.defined.contains(name) || entry.module.import(name).is_some() {
            return self.explicit_item(at, name, visiting);
        }
        if !visiting.insert((at.to_vec(), name.to_owned())) {
            return None;
        }
        let found = entry
            .module
            .imports
            .iter()
            .filter(|import| import.glob)
            .find_map(|import| {
                let Resolved::Module(from) = self.lookup(at, &import.path, visiting)? else {
                    return None;
                };
                self.item(&from, name, visiting)
            });
        visiting.remove(&(at.to_vec(), name.to_owned()));
        found
    }

    /// Returns the item that a name refers to if the module `at` defines it or imports it by name.
    fn explicit_item(
        &self,
        at: &[String],
        name: &str,
        visiting: &mut BTreeSet<(Path, String)>,
    ) -> Option<Resolved<'a>> {
        let entry = self.modules.get(at)?;
        if entry.module.defined.contains(name) {
            return Some(Resolved::Item {
                file: entry.file,
                name: name.to_owned(),
            });
        }
        let import = entry.module.import(name)?;
        if !visiting.insert((at.to_vec(), name.to_owned())) {
            return None;
        }
        let found = self.lookup(at, &import.path, visiting);
        visiting.remove(&(at.to_vec(), name.to_owned()));
        found
    }

    /// Returns an item that no parsed definition explains, such as one that a macro generates. It
    /// is attributed to the module, unless the module re-exports names of other crates.
    fn undefined_item(&self, at: &[String], name: &str) -> Option<Resolved<'a>> {
        let entry = self.modules.get(at)?;
        let from_elsewhere = entry.module.import(name).is_some()
            || entry
                .module
                .imports
                .iter()
                .any(|import| import.glob && self.resolve(at, &import.path).is_none());
        (!from_elsewhere).then(|| Resolved::Item {
            file: entry.file,
            name: name.to_owned(),
        })
    }
}

impl Module {
    fn import(&self, name: &str) -> Option<&Import> {
        self.imports
            .iter()
            .find(|import| import.name.as_deref() == Some(name))
    }

    fn uses(&self, name: &str) -> bool {
        self.names.contains(name)
            || self
                .paths
                .iter()
                .any(|path| path.first().is_some_and(|first| first == name))
    }
}
