//! `limits:`.

use crate::manifest::{Limits, ToolLimits};
use crate::yaml::Value;

use super::reader::{At, Reader, shown};

const KEYS: [&str; 8] = ["memory", "processes", "files", "call_time", "idle", "network", "paths", "tools"];

/// Units of memory; the decimal ones are a thousand to the step.
const MEMORY: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

const TIME: [(&str, u64); 3] = [("s", 1), ("m", 60), ("h", 3600)];

pub(super) fn read(reader: &mut Reader<'_>, at: &At<'_>) -> Limits {
    let mut limits = Limits::default();
    for entry in reader.map(at) {
        if entry.key == "tools" {
            for tool in reader.map(&entry) {
                let mut own = ToolLimits::default();
                for part in reader.map(&tool) {
                    limit(reader, &part, &mut own, &KEYS[..7]);
                }
                limits.tools.insert(tool.key.to_owned(), own);
            }
        } else {
            limit(reader, &entry, &mut limits.all, &KEYS);
        }
    }
    limits
}

fn limit(reader: &mut Reader<'_>, at: &At<'_>, limits: &mut ToolLimits, known: &[&str]) {
    match at.key {
        "memory" => {
            limits.memory = quantity(at.value(), &MEMORY, false);
            if limits.memory.is_none() {
                reader.error(
                    at,
                    format!("must be a size with its unit, as `512MiB` or `2GiB`, not {}", shown(at.value())),
                );
            }
        }
        "processes" => limits.processes = reader.count(at, 1),
        "files" => limits.files = reader.count(at, 1),
        "call_time" => limits.call_time = time(reader, at),
        "idle" => limits.idle = time(reader, at),
        "network" => limits.network = reader.boolean(at),
        "paths" => {
            for entry in reader.map(at) {
                match entry.key {
                    "read" => limits.read = absolute(reader, &entry),
                    "write" => limits.write = absolute(reader, &entry),
                    _ => reader.unknown(&entry, &["read", "write"]),
                }
            }
        }
        _ => reader.unknown(at, known),
    }
}

fn time(reader: &mut Reader<'_>, at: &At<'_>) -> Option<u64> {
    let seconds = quantity(at.value(), &TIME, true);
    if seconds.is_none() {
        reader
            .error(at, format!("must be seconds, as `30`, or `30s`, `5m`, `1h`, not {}", shown(at.value())));
    }
    seconds
}

/// A positive whole number with a unit, or, where that is allowed, without one.
fn quantity(value: &Value, units: &[(&str, u64)], bare: bool) -> Option<u64> {
    let number = match value {
        Value::Int(number) if bare => u64::try_from(*number).ok()?,
        Value::Text(text) => {
            let (digits, factor) =
                units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))?;
            let digits = digits.trim_end();
            if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            digits.parse::<u64>().ok()?.checked_mul(factor)?
        }
        _ => return None,
    };
    (number > 0).then_some(number)
}

fn absolute(reader: &mut Reader<'_>, at: &At<'_>) -> Vec<String> {
    let mut kept = Vec::new();
    for (item, path) in reader.texts(at) {
        let clean = path.starts_with('/') && !path.split('/').any(|part| part == ".." || part == ".");
        if clean && !path.contains(char::is_control) {
            kept.push(path.to_owned());
        } else {
            reader.error(&item, format!("\"{path}\" must be an absolute path without `.` and `..`"));
        }
    }
    kept
}
