//! The figures beside each other.

use std::fmt::Write;

use crate::core::Measured;

/// A figure of one measurement, in words.
type Figure = fn(&Measured) -> String;

/// One column for each measurement, one row for each figure.
pub(crate) fn table(measured: &[Measured]) -> String {
    let rows: [(&str, Figure); 10] = [
        ("", |it| it.name.clone()),
        ("Clusters", |it| it.clusters.to_string()),
        ("all Provisioned in", |it| format!("{:.1} s", it.all.as_secs_f64())),
        ("three raw writes each", |it| format!("{:.1} s", it.floor.as_secs_f64())),
        ("times that floor", |it| format!("{:.2}", it.all.as_secs_f64() / it.floor.as_secs_f64())),
        ("the same writes, raw", |it| format!("{:.1} s", it.same_writes.as_secs_f64())),
        ("times those", |it| format!("{:.2}", it.all.as_secs_f64() / it.same_writes.as_secs_f64())),
        ("writes per Cluster", |it| format!("{:.2}", it.writes_each)),
        ("CPU of the manager", |it| format!("{:.2} s", it.usage.cpu.as_secs_f64())),
        ("peak memory", |it| format!("{:.1} MiB", it.usage.peak_mib)),
    ];
    let mut text = String::new();
    for (name, figure) in rows {
        let _ = write!(text, "{name:<22}");
        for it in measured {
            let _ = write!(text, "{:>20}", figure(it));
        }
        text.push('\n');
    }
    for it in measured {
        if let Some((median, longest)) = it.follows {
            let _ = writeln!(
                text,
                "{} with {} Clusters follows a change in {:.1} ms (median), {:.1} ms (longest)",
                it.name,
                it.clusters,
                median.as_secs_f64() * 1e3,
                longest.as_secs_f64() * 1e3
            );
        }
    }
    text.push_str(&ratios(measured));
    text
}

/// How much more the others needed for as many Clusters.
fn ratios(measured: &[Measured]) -> String {
    let mut text = String::new();
    for ours in measured.iter().filter(|it| it.follows.is_some()) {
        for other in measured.iter().filter(|it| it.follows.is_none() && it.clusters == ours.clusters) {
            let _ = writeln!(
                text,
                "{} needed {:.1} times the time, {:.1} times the CPU, {:.1} times the memory and {:.1} times the writes",
                other.name,
                other.all.as_secs_f64() / ours.all.as_secs_f64(),
                other.usage.cpu.as_secs_f64() / ours.usage.cpu.as_secs_f64(),
                other.usage.peak_mib / ours.usage.peak_mib,
                other.writes_each / ours.writes_each,
            );
        }
    }
    text
}
