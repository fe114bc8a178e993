//! Where a path that a model gave really leads.

use std::path::{Component, Path, PathBuf};

use crate::contract::Setup;

/// The folders in which file tools work without asking.
pub(super) struct Places {
    checkout: PathBuf,
    free: Vec<PathBuf>,
}

/// A path after every symbolic link was followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    /// Absolute and without links; the file itself may be missing.
    pub path: PathBuf,
    /// What rules and answers call it: relative to the checkout (`.` for itself), else absolute.
    pub shown: String,
    /// It lies outside the checkout, the temporary folder and the spill folder.
    pub outside: bool,
}

impl Places {
    pub fn new(setup: &Setup) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let checkout = real(&setup.directory);
        Self { free: vec![checkout.clone(), real(&setup.temp), real(&setup.spill)], checkout }
    }

    /// Relative paths start at the checkout. A link counts as the place that it leads to.
    pub fn resolve(&self, text: &str) -> Result<Resolved, String> {
        if text.is_empty() {
            return Err("the path is empty".to_owned());
        }
        if text.contains('\0') {
            return Err("the path holds a zero byte".to_owned());
        }
        let mut path = self.checkout.clone();
        for part in Path::new(text).components() {
            match part {
                Component::RootDir => path = PathBuf::from("/"),
                Component::ParentDir => {
                    path.pop();
                }
                Component::Normal(name) => {
                    path.push(name);
                    match path.canonicalize() {
                        Ok(real) => path = real,
                        Err(_) if path.is_symlink() => {
                            return Err(format!("{text} is a link that leads nowhere"));
                        }
                        Err(_) => {}
                    }
                }
                Component::CurDir | Component::Prefix(_) => {}
            }
        }
        let outside = !self.free.iter().any(|free| path.starts_with(free));
        Ok(Resolved { shown: self.shown(&path), path, outside })
    }

    /// A path as rules and answers call it.
    pub fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.checkout) {
            Ok(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
            Ok(relative) => relative.to_string_lossy().into_owned(),
            Err(_) => path.to_string_lossy().into_owned(),
        }
    }

    pub fn checkout(&self) -> &Path {
        &self.checkout
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_where_its_links_lead() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        for folder in ["checkout/src", "temp", "spill", "other"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::os::unix::fs::symlink(root.join("other"), root.join("checkout/out")).unwrap();
        std::os::unix::fs::symlink(root.join("checkout/src"), root.join("checkout/in")).unwrap();
        std::os::unix::fs::symlink("/nowhere/at/all", root.join("checkout/dead")).unwrap();
        let places = Places {
            checkout: root.join("checkout"),
            free: ["checkout", "temp", "spill"].map(|name| root.join(name)).to_vec(),
        };
        let check = |text: &str, shown: &str, outside: bool| {
            let resolved = places.resolve(text).unwrap();
            let shown = shown.replace("ROOT", root.to_str().unwrap());
            assert_eq!((resolved.shown.as_str(), resolved.outside), (shown.as_str(), outside), "{text}");
        };
        check("a.txt", "a.txt", false);
        check("./src/../a.txt", "a.txt", false);
        check(".", ".", false);
        check("in/new/deep.txt", "src/new/deep.txt", false);
        check("out/x", "ROOT/other/x", true);
        check("in/../../other", "ROOT/other", true);
        check("../temp/x", "ROOT/temp/x", false);
        check("../checkout2", "ROOT/checkout2", true);
        check("/etc/passwd", "/etc/passwd", true);
        check("../../../../../../../../etc", "/etc", true);
        for bad in ["", "dead", "a\0b"] {
            assert!(places.resolve(bad).is_err(), "{bad:?}");
        }
    }
}
