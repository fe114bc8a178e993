//! Reads the script out of a request and finds the turn that comes next.

use std::time::Duration;

use super::NO_SCRIPT;
use super::received::{Received, calls_tools, results_of, text_of};

/// What the server says in one turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Turn {
    pub(super) fault: Option<Fault>,
    pub(super) think: String,
    pub(super) say: Option<String>,
    pub(super) slow: Duration,
    pub(super) batch: bool,
    pub(super) calls: Vec<Call>,
    pub(super) usage: Option<[u64; 3]>,
    pub(super) stop: Option<String>,
}

/// One scripted call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: String,
    /// Also when no tools are on offer.
    forced: bool,
}

/// What goes wrong in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Fail { status: u16, times: Option<u32>, retry_after: Option<u64> },
    Full { times: Option<u32> },
    Drop { after: usize, times: Option<u32> },
    Hang { after: Option<usize> },
    Garbage { sse: bool },
}

impl Fault {
    pub(super) fn times(self) -> Option<u32> {
        match self {
            Self::Fail { times, .. } | Self::Full { times } | Self::Drop { times, .. } => times,
            Self::Hang { .. } | Self::Garbage { .. } => None,
        }
    }
}

/// The turn to play.
#[derive(Debug)]
pub(super) struct Plan {
    /// The message that holds the script.
    pub(super) script: String,
    /// Counts from 0.
    pub(super) number: usize,
    pub(super) turn: Turn,
}

/// Finds the last script of the conversation and how far it was played.
pub(super) fn plan(request: &Received) -> Plan {
    let messages = request.messages();
    let found = messages.iter().enumerate().rev().find_map(|(n, message)| {
        let text = text_of(&message["content"]);
        (message["role"] == "user").then(|| parse(&text)).flatten().map(|turns| (n, text, turns))
    });
    let Some((position, script, turns)) = found else {
        let turn = Turn { say: Some(NO_SCRIPT.to_owned()), ..Turn::default() };
        return Plan { script: String::new(), number: 0, turn };
    };
    let after = &messages[position + 1..];
    let number = after.iter().filter(|message| calls_tools(message)).count().min(turns.len() - 1);
    let mut turn = turns[number].clone();
    if request.tools().is_empty() {
        turn.calls.retain(|call| call.forced);
    }
    if turn.calls.is_empty() && turn.say.is_none() {
        let result = after.iter().flat_map(results_of).next_back().unwrap_or_default();
        turn.say = Some(format!("DONE {result}").trim_end().to_owned());
    }
    Plan { script, number, turn }
}

/// The turns of a script, the final answer last; `None` for a text that holds no directive.
fn parse(text: &str) -> Option<Vec<Turn>> {
    // A command line may have wrapped the whole prompt in quotes.
    let trimmed = text.trim();
    let text = trimmed.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let mut turns: Vec<Turn> = Vec::new();
    let mut turn = Turn::default();
    let mut found = false;
    for line in text.lines().map(str::trim) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let mut numbers = rest.split_whitespace().map(|n| n.parse::<u64>().ok());
        let mut number = || numbers.next().flatten();
        match word {
            "CALL" | "CALL!" => {
                turn.calls.push(call(rest, word == "CALL!"));
                turns.push(std::mem::take(&mut turn));
            }
            "+" if !turns.is_empty() => {
                let calls = &mut turns.last_mut()?.calls;
                let forced = calls.last().is_some_and(|call| call.forced);
                calls.push(call(rest, forced));
                continue;
            }
            "SAY" => {
                let said = turn.say.take().map(|said| said + "\n").unwrap_or_default();
                turn.say = Some(said + rest);
            }
            "THINK" => rest.clone_into(&mut turn.think),
            "SLOW" => {
                turn.slow = Duration::try_from_secs_f64(rest.parse().unwrap_or(1.0)).unwrap_or_default()
            }
            "FAIL" => {
                let status = number().and_then(|n| u16::try_from(n).ok()).unwrap_or(500);
                turn.fault = Some(Fault::Fail { status, times: times(number()), retry_after: number() });
            }
            "FULL" => turn.fault = Some(Fault::Full { times: times(number()) }),
            "DROP" => {
                let after = number().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
                turn.fault = Some(Fault::Drop { after, times: times(number()) });
            }
            "HANG" => {
                turn.fault = Some(Fault::Hang { after: number().and_then(|n| usize::try_from(n).ok()) })
            }
            "GARBAGE" => turn.fault = Some(Fault::Garbage { sse: rest == "sse" }),
            "BATCH" => turn.batch = true,
            "STOP" => turn.stop = Some(rest.to_owned()),
            "USAGE" => {
                let mut count = |default| number().unwrap_or(default);
                turn.usage = Some([count(10), count(5), count(0)]);
            }
            _ => continue,
        }
        found = true;
    }
    turns.push(turn);
    found.then_some(turns)
}

fn times(number: Option<u64>) -> Option<u32> {
    number.and_then(|n| u32::try_from(n).ok())
}

fn call(rest: &str, forced: bool) -> Call {
    let (name, arguments) = rest.split_once(' ').unwrap_or((rest, ""));
    let arguments = match arguments.trim() {
        "" => "{}",
        "EMPTY" => "",
        other => other,
    };
    Call { name: name.to_owned(), arguments: arguments.to_owned(), forced }
}
