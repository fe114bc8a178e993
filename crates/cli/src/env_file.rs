//! `--env-file`: a file of `NAME=value` lines whose values are secrets.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The most bytes of such a file.
const MAX_FILE: usize = 1 << 20;

/// Why a file of secrets cannot be used. No variant holds a value.
#[derive(Debug, Error)]
pub enum EnvFileError {
    /// It cannot be read.
    #[error("cannot read the env file {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is far too large.
    #[error("the env file {0} is larger than 1 MiB; give a file of NAME=value lines")]
    TooLarge(PathBuf),
    /// A line is not of the form.
    #[error("{path}:{line}: {fault}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Counts from 1.
        line: usize,
        /// What is wrong and what to write instead.
        fault: String,
    },
}

/// Reads the file. Blank lines and lines that start with `#` are passed over, `export ` before a name is allowed. A value
/// is the rest of its line without surrounding blanks; `'…'` is taken literally, `"…"` knows `\n`, `\r`, `\t`, `\"`, `\\`
/// and may span lines. Nothing is expanded. A name given twice: the later line counts.
pub fn read(path: &Path) -> Result<BTreeMap<String, String>, EnvFileError> {
    let bytes = fs::read(path).map_err(|source| EnvFileError::Read { path: path.to_owned(), source })?;
    if bytes.len() > MAX_FILE {
        return Err(EnvFileError::TooLarge(path.to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|bad| EnvFileError::Read {
        path: path.to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidData, bad.utf8_error()),
    })?;
    parse(&text).map_err(|(line, fault)| EnvFileError::Line { path: path.to_owned(), line, fault })
}

fn parse(text: &str) -> Result<BTreeMap<String, String>, (usize, String)> {
    let mut vars = BTreeMap::new();
    let mut rest = text.trim_start_matches('\u{feff}');
    let mut number = 0;
    while !rest.is_empty() {
        number += 1;
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = after;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        let Some((name, value)) = line.split_once('=') else {
            return Err((number, "there is no `=`; write NAME=value".to_owned()));
        };
        let name = name.trim_end();
        check_name(name).map_err(|fault| (number, fault))?;
        let value = value.trim_start();
        let value = if let Some(inner) = value.strip_prefix('\'') {
            literal(inner).map_err(|fault| (number, fault))?
        } else if let Some(inner) = value.strip_prefix('"') {
            let (value, lines) = quoted(inner, &mut rest).map_err(|fault| (number, fault))?;
            number += lines;
            value
        } else {
            value.to_owned()
        };
        if value.contains('\0') {
            return Err((number, format!("the value of {name} holds a NUL byte, which no variable can")));
        }
        vars.insert(name.to_owned(), value);
    }
    Ok(vars)
}

fn check_name(name: &str) -> Result<(), String> {
    let mut chars = name.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_uppercase() || c == '_');
    let rest = chars.all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if !first || !rest || name.len() > 64 {
        return Err(format!("`{name}` is no name: use capital letters, digits and `_`, 64 at most"));
    }
    if name.starts_with("BEEUNI_") {
        return Err(format!("`{name}`: names that start with BEEUNI_ are Beeuni's own"));
    }
    Ok(())
}

fn literal(inner: &str) -> Result<String, String> {
    let (value, after) = inner.split_once('\'').ok_or("the closing `'` is missing on this line")?;
    nothing_follows(after)?;
    Ok(value.to_owned())
}

/// Reads up to the closing quote, taking further lines from `rest`; also says how many it took.
fn quoted(inner: &str, rest: &mut &str) -> Result<(String, usize), String> {
    let mut value = String::new();
    let mut lines = 0;
    let mut line = inner.to_owned();
    loop {
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => {
                    nothing_follows(chars.as_str())?;
                    return Ok((value, lines));
                }
                '\\' => match chars.next() {
                    Some('n') => value.push('\n'),
                    Some('r') => value.push('\r'),
                    Some('t') => value.push('\t'),
                    Some(c @ ('"' | '\\' | '$')) => value.push(c),
                    Some(c) => value.extend(['\\', c]),
                    None => value.push('\\'),
                },
                c => value.push(c),
            }
        }
        if rest.is_empty() {
            return Err("the closing `\"` is missing".to_owned());
        }
        value.push('\n');
        let (next, after) = rest.split_once('\n').unwrap_or((rest, ""));
        line = next.trim_end_matches('\r').to_owned();
        *rest = after;
        lines += 1;
    }
}

fn nothing_follows(after: &str) -> Result<(), String> {
    let after = after.trim();
    if after.is_empty() || after.starts_with('#') {
        return Ok(());
    }
    Err("something follows the closing quote; put the whole value into the quotes".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_arrive_as_they_were_meant() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let expected: BTreeMap<_, _> =
                expected.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            assert_eq!(parse(text), Ok(expected), "{text:?}");
        };
        check("", &[]);
        check("\u{feff}A=1\r\nB=2", &[("A", "1"), ("B", "2")]);
        check("# note\n\n  export A = b c  \n", &[("A", "b c")]);
        check("A=x=y#z", &[("A", "x=y#z")]);
        check("A='a\"$b\\n' # note", &[("A", "a\"$b\\n")]);
        check(r#"A="a\n\"b\" \\ \q""#, &[("A", "a\n\"b\" \\ \\q")]);
        check("A=\"-----BEGIN\nabc\n-----END\"\nB=2", &[("A", "-----BEGIN\nabc\n-----END"), ("B", "2")]);
        check("A=\nA=2", &[("A", "2")]);
        check("A=", &[("A", "")]);
    }

    #[test]
    fn faults_name_their_line_and_no_value() {
        let check = |text: &str, line: usize, fault: &str| {
            let (at, words) = parse(text).unwrap_err();
            assert_eq!((at, words.as_str()), (line, fault), "{text:?}");
        };
        check("A=1\nhunter2", 2, "there is no `=`; write NAME=value");
        check("a=1", 1, "`a` is no name: use capital letters, digits and `_`, 64 at most");
        check("=1", 1, "`` is no name: use capital letters, digits and `_`, 64 at most");
        check("BEEUNI_TOKEN=1", 1, "`BEEUNI_TOKEN`: names that start with BEEUNI_ are Beeuni's own");
        check("A='x", 1, "the closing `'` is missing on this line");
        check("A=\"x\ny", 1, "the closing `\"` is missing");
        check("A='x' y", 1, "something follows the closing quote; put the whole value into the quotes");
        check("A=\0", 1, "the value of A holds a NUL byte, which no variable can");
    }
}
