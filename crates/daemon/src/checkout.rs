//! A project's files as a folder on this machine.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use beeuni_manifest::{FileKind, Files};

/// The name of the root manifest.
pub const MANIFEST: &str = "beeuni.yaml";

/// The most bytes that are read of one project file.
const MAX_FILE: u64 = 4 << 20;

/// The most entries that a search through folders looks at, so that a mistaken `imports: [.]` in a huge tree ends.
const MAX_ENTRIES: usize = 20_000;

/// The folder of the nearest `beeuni.yaml` from `start` upwards, not above the Git root.
pub fn find_root(start: &Path) -> Option<PathBuf> {
    for folder in start.ancestors() {
        if folder.join(MANIFEST).symlink_metadata().is_ok() {
            return Some(folder.to_owned());
        }
        if folder.join(".git").symlink_metadata().is_ok() {
            return None;
        }
    }
    None
}

/// The files below one folder.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// The files below `root`, which must exist.
    pub fn open(root: &Path) -> io::Result<Folder> {
        Ok(Folder { root: root.canonicalize()? })
    }

    /// The root, absolute and with links followed.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn names(&self, path: &str, is_wanted: fn(&Path) -> bool) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.root.join(path)) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .flatten()
            .take(MAX_ENTRIES)
            .filter(|entry| is_wanted(&entry.path()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    fn below(&self, path: &str, visit: &mut dyn FnMut(&str, &fs::FileType)) -> io::Result<()> {
        let mut open = vec![path.trim_end_matches('/').to_owned()];
        let mut seen = 0;
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(self.root.join(&folder))? {
                let entry = entry?;
                seen += 1;
                if seen > MAX_ENTRIES {
                    return Err(io::Error::other(format!("more than {MAX_ENTRIES} files lie below it")));
                }
                let Ok(name) = entry.file_name().into_string() else { continue };
                if name.starts_with('.') || name == "node_modules" {
                    continue;
                }
                let kind = entry.file_type()?;
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                visit(&path, &kind);
                if kind.is_dir() {
                    open.push(path);
                }
            }
        }
        Ok(())
    }
}

impl Files for Folder {
    fn kind(&self, path: &str) -> FileKind {
        let full = self.root.join(path);
        let Ok(real) = full.canonicalize() else {
            // A link to nothing, a missing file and a folder that may not be entered look alike to a reader.
            return FileKind::Missing;
        };
        if !real.starts_with(&self.root) {
            return FileKind::Outside;
        }
        match fs::metadata(&real) {
            Ok(meta) if meta.is_file() => FileKind::File,
            Ok(meta) if meta.is_dir() => FileKind::Folder,
            Ok(_) => FileKind::Special,
            Err(_) => FileKind::Missing,
        }
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        if self.kind(path) != FileKind::File {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it is no file of the project"));
        }
        let mut bytes = Vec::new();
        fs::File::open(self.root.join(path))?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(io::Error::other(format!("it is larger than {} MiB", MAX_FILE >> 20)));
        }
        Ok(bytes)
    }

    fn yaml_files(&self, path: &str) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        self.below(path, &mut |file, kind| {
            if !kind.is_dir() && (file.ends_with(".yaml") || file.ends_with(".yml")) {
                found.push(file.to_owned());
            }
        })?;
        found.sort();
        Ok(found)
    }

    fn folders(&self, path: &str) -> Vec<String> {
        self.names(path, Path::is_dir)
    }

    fn file_names(&self, path: &str) -> Vec<String> {
        self.names(path, Path::is_file)
    }

    fn identity(&self, path: &str) -> String {
        let real = self.root.join(path).canonicalize().ok();
        let inside =
            real.as_deref().and_then(|real| real.strip_prefix(&self.root).ok()).and_then(Path::to_str);
        inside.unwrap_or(path).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_files() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("project");
        fs::create_dir_all(root.join("tools/deep")).unwrap();
        fs::write(root.join("tools/a.ts"), "a").unwrap();
        fs::write(root.join("tools/deep/b.yaml"), "").unwrap();
        fs::create_dir_all(root.join("tools/node_modules")).unwrap();
        fs::write(root.join("tools/node_modules/c.yaml"), "").unwrap();
        fs::write(outer.path().join("secret.ts"), "s").unwrap();
        let link = std::os::unix::fs::symlink::<&Path, PathBuf>;
        link(Path::new("../../secret.ts"), root.join("tools/out.ts")).unwrap();
        link(Path::new("a.ts"), root.join("tools/in.ts")).unwrap();
        link(Path::new("nothing"), root.join("tools/dangling.ts")).unwrap();
        link(Path::new("/dev/zero"), root.join("tools/zero.ts")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(root.join("tools/s.ts")).unwrap();

        let files = Folder::open(&root).unwrap();
        for (path, expected) in [
            ("tools/a.ts", FileKind::File),
            ("tools/in.ts", FileKind::File),
            ("tools", FileKind::Folder),
            ("tools/out.ts", FileKind::Outside),
            ("tools/zero.ts", FileKind::Outside),
            ("tools/dangling.ts", FileKind::Missing),
            ("tools/none.ts", FileKind::Missing),
            ("tools/a.ts/b", FileKind::Missing),
            ("tools/s.ts", FileKind::Special),
        ] {
            assert_eq!(files.kind(path), expected, "{path}");
        }
        assert_eq!(files.yaml_files("tools").unwrap(), ["tools/deep/b.yaml"]);
        assert_eq!(files.folders("tools"), ["deep", "node_modules"]);
        assert_eq!(files.file_names("tools"), ["a.ts", "in.ts", "out.ts"]);
        assert_eq!(files.identity("tools/in.ts"), "tools/a.ts");
        assert_eq!(files.identity("tools/none.ts"), "tools/none.ts");
        assert_eq!(files.read("tools/a.ts").unwrap(), b"a");
        assert!(files.read("tools/out.ts").is_err());
    }

    #[test]
    fn the_root_is_the_nearest_manifest_not_above_git() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().canonicalize().unwrap();
        fs::write(root.join(MANIFEST), "").unwrap();
        fs::create_dir_all(root.join("plain/sub")).unwrap();
        fs::create_dir_all(root.join("repo/.git")).unwrap();
        fs::create_dir_all(root.join("repo/sub")).unwrap();
        assert_eq!(find_root(&root.join("plain/sub")), Some(root.clone()));
        assert_eq!(find_root(&root.join("repo/sub")), None);
        fs::write(root.join("repo").join(MANIFEST), "").unwrap();
        assert_eq!(find_root(&root.join("repo/sub")), Some(root.join("repo")));
    }
}
