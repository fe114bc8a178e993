//! Words for a shell, in commands that we tell the user to run.

/// A path as a shell reads it as one word, and a program not as an option.
pub(crate) fn shell_word(path: &str) -> String {
    let path = if path.starts_with('-') { format!("./{path}") } else { path.to_owned() };
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    if !path.is_empty() && path.chars().all(is_plain) {
        path
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn words() {
        for (path, expected) in [
            ("tools/a.ts", "tools/a.ts"),
            ("werkzeug/größe.ts", "werkzeug/größe.ts"),
            ("my tools/a.ts", "'my tools/a.ts'"),
            ("a;$(id)'b", "'a;$(id)'\\''b'"),
            ("-f", "./-f"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(path), expected);
        }
    }
}
