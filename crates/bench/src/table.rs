//! Samples and how they are shown.

use std::time::Duration;

/// What one contender took for one workload.
pub struct Measured {
    /// Who.
    pub name: &'static str,
    /// The median of the rounds' medians.
    pub p50: Duration,
    /// The median of the rounds' 99th percentiles.
    pub p99: Duration,
    /// Calls per second, over all kept rounds.
    pub rate: f64,
}

/// One round of one contender: how long each call took, and the whole.
pub struct Round {
    /// One entry per call.
    pub calls: Vec<Duration>,
    /// From the first call's start to the last one's end.
    pub whole: Duration,
}

/// Condenses the kept rounds of one contender.
pub fn condense(name: &'static str, rounds: &[Round]) -> Measured {
    let at = |share: f64| median(rounds.iter().map(|round| percentile(&round.calls, share)).collect());
    let calls: usize = rounds.iter().map(|round| round.calls.len()).sum();
    let seconds: f64 = rounds.iter().map(|round| round.whole.as_secs_f64()).sum();
    Measured { name, p50: at(0.5), p99: at(0.99), rate: calls as f64 / seconds }
}

/// The value below which `share` of the samples lie.
pub fn percentile(samples: &[Duration], share: f64) -> Duration {
    let mut sorted = samples.to_vec();
    sorted.sort();
    let at = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

/// The middle one.
pub fn median(samples: Vec<Duration>) -> Duration {
    percentile(&samples, 0.5)
}

/// Prints a heading.
pub fn heading(text: &str) {
    println!("\n{text}");
}

/// Prints one workload: the first contender is ours, the others show how many times longer they take.
pub fn compare(workload: &str, measured: &[Measured]) {
    let Some(ours) = measured.first() else { return };
    println!("  {workload}");
    for one in measured {
        let ratio = one.p50.as_secs_f64() / ours.p50.as_secs_f64();
        println!(
            "    {:<34} p50 {:>10}  p99 {:>10}  {:>9.0} calls/s  {ratio:>6.2}×",
            one.name,
            show(one.p50),
            show(one.p99),
            one.rate,
        );
    }
}

/// Prints a single figure, with the target it is held against.
pub fn figure(what: &str, value: &str, target: &str) {
    println!("  {what:<58} {value:>12}   (to reach: {target})");
}

/// A duration in the unit that suits it.
pub fn show(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    if micros < 1_000.0 { format!("{micros:.1} µs") } else { format!("{:.2} ms", micros / 1_000.0) }
}
