//! Finds the file of a crate that a name comes from, whoever hands it on.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{self, Import, Module, Path};

/// Uses between the files of a crate: who uses which names of whom.
pub(super) type Uses<'a> = BTreeMap<(&'a str, &'a str), BTreeSet<String>>;

/// A module and the file it is in.
struct Place<'a> {
    file: &'a str,
    module: Module,
    children: BTreeSet<String>,
}

/// The modules of a crate, by their path from its root.
pub(super) struct Names<'a> {
    places: BTreeMap<Path, Place<'a>>,
}

/// The place that a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Meant<'a> {
    Module(Path),
    Item { file: &'a str, name: String },
}

impl<'a> Names<'a> {
    /// Reads a crate from its root on: `files` are all there are, by path.
    ///
    /// # Errors
    /// A module that has no file.
    pub(super) fn read(root: &'a str, files: &BTreeMap<&'a str, &'a str>) -> Result<Self, String> {
        let mut names = Self {
            places: BTreeMap::new(),
        };
        let text = files
            .get(root)
            .ok_or_else(|| format!("{root}: there is no such file"))?;
        let folder = root
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder)
            .to_owned();
        names.place(Path::new(), root, &folder, source::read(text), files)?;
        Ok(names)
    }

    /// Takes in a module, whose modules are in `folder`.
    fn place(
        &mut self,
        path: Path,
        file: &'a str,
        folder: &str,
        mut module: Module,
        files: &BTreeMap<&'a str, &'a str>,
    ) -> Result<(), String> {
        let mut children = BTreeSet::new();
        for (name, inner) in std::mem::take(&mut module.inner) {
            let path = [path.as_slice(), std::slice::from_ref(&name)].concat();
            self.place(path, file, &format!("{folder}/{name}"), inner, files)?;
            children.insert(name);
        }
        for name in std::mem::take(&mut module.files) {
            let inside = format!("{folder}/{name}");
            let places = [format!("{inside}.rs"), format!("{inside}/mod.rs")];
            let found = places
                .iter()
                .find_map(|place| files.get_key_value(place.as_str()));
            let (file, text) =
                found.ok_or_else(|| format!("{file}: no file of the module {name} is found"))?;
            let path = [path.as_slice(), std::slice::from_ref(&name)].concat();
            self.place(path, file, &inside, source::read(text), files)?;
            children.insert(name);
        }
        self.places.insert(
            path,
            Place {
                file,
                module,
                children,
            },
        );
        Ok(())
    }

    /// Returns who uses what of whom. Declaring a module, and handing a name on that is not used
    /// there, are no uses.
    pub(super) fn uses(&self) -> Uses<'a> {
        let mut uses = Uses::new();
        for (at, place) in &self.places {
            let mut takes = |meant: Option<Meant<'a>>| {
                if let Some(Meant::Item { file, name }) = meant
                    && file != place.file
                {
                    uses.entry((place.file, file)).or_default().insert(name);
                }
            };
            for import in &place.module.imports {
                if import.all {
                    // Of all names that it makes known, those count that stand in the file.
                    let Some(Meant::Module(from)) = self.resolve(at, &import.path) else {
                        continue;
                    };
                    let used = place
                        .module
                        .names
                        .iter()
                        .chain(place.module.paths.iter().filter_map(|path| path.first()));
                    used.for_each(|name| takes(self.item(&from, name, &mut BTreeSet::new())));
                } else if !import.handed_on
                    || import
                        .name
                        .as_ref()
                        .is_some_and(|name| place.module.uses(name))
                {
                    takes(self.resolve(at, &import.path));
                }
            }
            place
                .module
                .paths
                .iter()
                .for_each(|path| takes(self.resolve(at, path)));
        }
        uses
    }

    /// Returns what a path written in the module `at` leads to. `None`: something of another crate,
    /// or nothing known here.
    fn resolve(&self, at: &[String], path: &[String]) -> Option<Meant<'a>> {
        self.lookup(at, path, &mut BTreeSet::new())
    }

    /// The same. `seen` holds the names that are being looked up, because imports may lead in a
    /// circle. The first name is not looked for in modules that are imported with all their names:
    /// [`Names::uses`] does that.
    fn lookup(
        &self,
        at: &[String],
        path: &[String],
        seen: &mut BTreeSet<(Path, String)>,
    ) -> Option<Meant<'a>> {
        let (first, rest) = path.split_first()?;
        let begun = match first.as_str() {
            "crate" => Path::new(),
            "self" => at.to_vec(),
            "super" => at.split_last()?.1.to_vec(),
            name => match (self.module(at, name, seen), rest.is_empty()) {
                (Some(module), false) => module,
                _ => return self.named(at, name, seen),
            },
        };
        let mut module = begun;
        for (index, name) in rest.iter().enumerate() {
            if name == "super" {
                module.pop()?;
                continue;
            }
            let last = index + 1 == rest.len();
            match (self.module(&module, name, seen), last) {
                (Some(inner), false) => module = inner,
                // What follows belongs to the item, such as a variant.
                (inner, _) => {
                    let item = self.item(&module, name, seen);
                    return item
                        .or_else(|| inner.map(Meant::Module))
                        .or_else(|| self.unseen(&module, name));
                }
            }
        }
        Some(Meant::Module(module))
    }

    /// Returns the module that a name is in a module.
    fn module(
        &self,
        at: &[String],
        name: &str,
        seen: &mut BTreeSet<(Path, String)>,
    ) -> Option<Path> {
        let place = self.places.get(at)?;
        if place.children.contains(name) {
            return Some([at, &[name.to_owned()]].concat());
        }
        let import = place.module.import(name)?;
        if !seen.insert((at.to_vec(), format!("mod {name}"))) {
            return None;
        }
        let found = self.lookup(at, &import.path, seen);
        seen.remove(&(at.to_vec(), format!("mod {name}")));
        if let Meant::Module(module) = found? {
            Some(module)
        } else {
            None
        }
    }

    /// Returns the item or module that a name is in a module, if that is known.
    fn item(
        &self,
        at: &[String],
        name: &str,
        seen: &mut BTreeSet<(Path, String)>,
    ) -> Option<Meant<'a>> {
        let place = self.places.get(at)?;
        if place.module.defined.contains(name) || place.module.import(name).is_some() {
            return self.named(at, name, seen);
        }
        if !seen.insert((at.to_vec(), name.to_owned())) {
            return None;
        }
        let found = place
            .module
            .imports
            .iter()
            .filter(|import| import.all)
            .find_map(|import| {
                let Meant::Module(from) = self.lookup(at, &import.path, seen)? else {
                    return None;
                };
                self.item(&from, name, seen)
            });
        seen.remove(&(at.to_vec(), name.to_owned()));
        found
    }

    /// The same, if it is defined there or imported by its name.
    fn named(
        &self,
        at: &[String],
        name: &str,
        seen: &mut BTreeSet<(Path, String)>,
    ) -> Option<Meant<'a>> {
        let place = self.places.get(at)?;
        if place.module.defined.contains(name) {
            return Some(Meant::Item {
                file: place.file,
                name: name.to_owned(),
            });
        }
        let import = place.module.import(name)?;
        if !seen.insert((at.to_vec(), name.to_owned())) {
            return None;
        }
        let found = self.lookup(at, &import.path, seen);
        seen.remove(&(at.to_vec(), name.to_owned()));
        found
    }

    /// Returns an item that nothing defines in so many words, as it is with those that a macro
    /// makes: it is the module's, unless that hands on the names of another crate.
    fn unseen(&self, at: &[String], name: &str) -> Option<Meant<'a>> {
        let place = self.places.get(at)?;
        let from_elsewhere = place.module.import(name).is_some()
            || place
                .module
                .imports
                .iter()
                .any(|import| import.all && self.resolve(at, &import.path).is_none());
        (!from_elsewhere).then(|| Meant::Item {
            file: place.file,
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
