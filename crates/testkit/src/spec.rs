//! Runs acceptance cases that are folders: `specs/<area>/<case>/` with `transcript.txt` and, if needed, `project/`.
//!
//! The first line names the rows of the contract that the case covers: `# covers: S1 E1`. Then come commands, each run
//! by `/bin/sh` in a copy of `project/`, followed by what they print:
//!
//! ```text
//! # covers: R2
//! $ beeuni tools call show
//! ! [..]Tool show not found
//! [exit 1]
//! ```
//!
//! Standard output stands as it is, a line of standard error begins with `! `, an exit code other than 0 stands as
//! `[exit N]` at the end. `[..]` stands for any text within a line; a line `...` (`! ...`) for any lines. Blank lines at
//! the end of an output do not count. A command that ends in `\` goes on in the next line.

use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::project::Project;

/// The most seconds that one command may take.
const COMMAND_SECONDS: &str = "120";

/// Why a case fails.
#[derive(Debug, Error)]
pub enum SpecError {
    /// The transcript cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The transcript.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The transcript is not written as it should be.
    #[error("{path}:{line}: {message}")]
    Format {
        /// The transcript.
        path: PathBuf,
        /// Counts from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A command did not print what it should.
    #[error("{path}:{line}: $ {command}\n{diff}")]
    Mismatch {
        /// The transcript.
        path: PathBuf,
        /// Where the command stands; counts from 1.
        line: usize,
        /// The command.
        command: String,
        /// Expected lines with `-`, real ones with `+`.
        diff: String,
    },
}

/// A command of a transcript and what it should print.
#[derive(Debug)]
struct Step {
    line: usize,
    command: String,
    expected: Vec<String>,
}

/// Every case below `root` (`<area>/<case>/transcript.txt`), in order.
#[must_use]
pub fn cases(root: &Path) -> Vec<PathBuf> {
    let folders = |path: &Path| -> Vec<PathBuf> {
        path.read_dir()
            .map(|entries| entries.filter_map(Result::ok).map(|entry| entry.path()).collect())
            .unwrap_or_default()
    };
    let mut found: Vec<PathBuf> = folders(root).iter().flat_map(|area| folders(area)).collect();
    found.retain(|case| case.join("transcript.txt").is_file());
    found.sort();
    found
}

/// The ids that a case says it covers.
///
/// # Errors
/// When the transcript cannot be read or does not begin with `# covers:` and at least one id.
pub fn covers(case: &Path) -> Result<Vec<String>, SpecError> {
    let (path, text) = transcript(case)?;
    let first = text.lines().next().unwrap_or_default();
    let ids = first.strip_prefix("# covers:").unwrap_or_default();
    let ids: Vec<String> = ids.split_whitespace().map(str::to_owned).collect();
    if ids.is_empty() {
        let message = "the first line must be `# covers: <ids of the contract>`".to_owned();
        return Err(SpecError::Format { path, line: 1, message });
    }
    Ok(ids)
}

/// Runs a case with the programs in `programs` found first. With `update` a transcript that does not match is
/// rewritten: only the commands that differ, the project's own path as `[..]`.
///
/// # Errors
/// The first command that differs, with a diff; or a transcript that is not written as it should be.
pub fn run(case: &Path, programs: &Path, update: bool) -> Result<(), SpecError> {
    covers(case)?;
    let (path, text) = transcript(case)?;
    let (head, steps) = parse(&path, &text)?;
    let project = Project::new();
    if case.join("project").is_dir() {
        project.copy(&case.join("project"));
    }
    let mut updated = head;
    for Step { line, command, expected } in steps {
        let real = play(&project, programs, &command);
        let same = matches(&of(&expected, false), &of(&real, false))
            && matches(&of(&expected, true), &of(&real, true))
            && exit(&expected) == exit(&real);
        if !same && !update {
            return Err(SpecError::Mismatch { path, line, command, diff: diff(&expected, &real) });
        }
        updated.push(format!("$ {command}"));
        if same {
            updated.extend(expected);
        } else {
            let folder = project.path().to_string_lossy().into_owned();
            updated.extend(real.into_iter().map(|line| line.replace(&folder, "[..]")));
        }
        updated.push(String::new());
    }
    let updated = updated.join("\n");
    if update && updated != text {
        fs::write(&path, updated).map_err(|source| SpecError::File { path, source })?;
    }
    Ok(())
}

fn transcript(case: &Path) -> Result<(PathBuf, String), SpecError> {
    let path = case.join("transcript.txt");
    match fs::read_to_string(&path) {
        Ok(text) => Ok((path, text)),
        Err(source) => Err(SpecError::File { path, source }),
    }
}

/// The lines above the first command, and the commands.
fn parse(path: &Path, text: &str) -> Result<(Vec<String>, Vec<Step>), SpecError> {
    let mut head = Vec::new();
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((n, line)) = lines.next() {
        if let Some(command) = line.strip_prefix("$ ") {
            let mut command = command.to_owned();
            while command.ends_with('\\') {
                let Some((_, more)) = lines.next() else { break };
                command = command + "\n" + more;
            }
            steps.push(Step { line: n + 1, command, expected: Vec::new() });
        } else if let Some(step) = steps.last_mut() {
            step.expected.push(line.to_owned());
        } else if line.is_empty() || line.starts_with('#') {
            head.push(line.to_owned());
        } else {
            let message = format!("{line:?} stands before the first `$ ` command");
            return Err(SpecError::Format { path: path.to_owned(), line: n + 1, message });
        }
    }
    if steps.is_empty() {
        let message = "there is no `$ ` command".to_owned();
        return Err(SpecError::Format { path: path.to_owned(), line: 1, message });
    }
    for step in &mut steps {
        drop_blank_end(&mut step.expected);
    }
    Ok((head, steps))
}

/// Runs one command and writes down what it printed as a transcript would.
fn play(project: &Project, programs: &Path, command: &str) -> Vec<String> {
    let system = project.environment().remove("PATH").unwrap_or_default();
    // `timeout` puts the command into a group of its own and ends the whole group.
    let output = project
        .command("timeout")
        .args(["--kill-after=5", COMMAND_SECONDS, "/bin/sh", "-c", command])
        .env("PATH", format!("{}:{system}", programs.display()))
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return vec![format!("! timeout /bin/sh: {error}")],
    };
    let lines = |bytes: &[u8], mark: &str| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut lines: Vec<String> = text.lines().map(|line| format!("{mark}{line}")).collect();
        drop_blank_end(&mut lines);
        lines
    };
    let mut printed = lines(&output.stdout, "");
    printed.extend(lines(&output.stderr, "! "));
    match output.status.code() {
        Some(0) => {}
        Some(code) => printed.push(format!("[exit {code}]")),
        None => printed.push("[exit by a signal]".to_owned()),
    }
    printed
}

fn drop_blank_end(lines: &mut Vec<String>) {
    while lines.last().is_some_and(|line| line.trim().is_empty() || line.trim_end() == "!") {
        lines.pop();
    }
}

/// The lines of standard output, or of standard error.
fn of(lines: &[String], errors: bool) -> Vec<&str> {
    let is_error = |line: &&str| *line == "!" || line.starts_with("! ");
    let is_exit = |line: &&str| line.starts_with("[exit ") && line.ends_with(']');
    let lines = lines.iter().map(String::as_str).filter(|line| is_error(line) == errors && !is_exit(line));
    lines.map(|line| if errors { line[1..].strip_prefix(' ').unwrap_or("") } else { line }).collect()
}

fn exit(lines: &[String]) -> Option<&str> {
    lines.last().map(String::as_str).filter(|line| line.starts_with("[exit "))
}

/// True when the real lines are as expected; `...` stands for any number of lines.
fn matches(expected: &[&str], real: &[&str]) -> bool {
    match expected.split_first() {
        None => real.is_empty(),
        Some((&"...", rest)) => (0..=real.len()).any(|n| matches(rest, &real[n..])),
        Some((first, rest)) => {
            real.split_first().is_some_and(|(line, more)| fits(first, line) && matches(rest, more))
        }
    }
}

/// True when a real line is as expected; `[..]` stands for any text.
fn fits(expected: &str, real: &str) -> bool {
    match expected.split_once("[..]") {
        None => expected == real,
        Some((head, tail)) => real.strip_prefix(head).is_some_and(|rest| {
            rest.char_indices().map(|(n, _)| n).chain([rest.len()]).any(|n| fits(tail, &rest[n..]))
        }),
    }
}

/// Expected lines with `-`, real ones with `+`; what agrees at both ends stands unmarked.
fn diff(expected: &[String], real: &[String]) -> String {
    let same = |(a, b): &(&String, &String)| fits(a, b);
    let head = expected.iter().zip(real).take_while(same).count();
    let (expected_rest, real_rest) = (&expected[head..], &real[head..]);
    let tail = expected_rest.iter().rev().zip(real_rest.iter().rev()).take_while(same).count();
    let marked =
        |mark: &str, lines: &[String]| lines.iter().map(|line| format!("{mark} {line}")).collect::<Vec<_>>();
    [
        marked(" ", &expected[..head]),
        marked("-", &expected_rest[..expected_rest.len() - tail]),
        marked("+", &real_rest[..real_rest.len() - tail]),
        marked(" ", &expected_rest[expected_rest.len() - tail..]),
    ]
    .concat()
    .join("\n")
}
