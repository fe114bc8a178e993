//! What tools may write must not hold what the host runs.

use std::path::{Path, PathBuf};

/// The first of `writable` that holds `folder`, links followed. The folder itself need not exist yet.
pub(crate) fn holder<'a>(folder: &Path, writable: impl IntoIterator<Item = &'a PathBuf>) -> Option<PathBuf> {
    let folder = real(folder);
    writable.into_iter().find(|writable| folder.starts_with(real(writable))).cloned()
}

/// The path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_is_held_by_what_lies_above_it() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        std::fs::create_dir_all(at("checkout/tmp")).unwrap();
        symlink(at("checkout/tmp"), at("link")).unwrap();
        let check = |folder: &str, writable: &str, held: bool| {
            assert_eq!(holder(&at(folder), [&at(writable)]).is_some(), held, "{folder} in {writable}");
        };
        check("state", "checkout", false);
        check("checkout-state", "checkout", false);
        check("checkout", "checkout/tmp", false);
        check("checkout", "checkout", true);
        check("checkout/new/state", "checkout", true);
        check("link/new/state", "checkout", true);
        check("checkout/tmp/state", "link", true);
    }
}
