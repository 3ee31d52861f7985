//! What a process has used, from /proc.

use std::{fs, time::Duration};

use anyhow::{Context, Result};

/// Ticks a second in /proc; fixed on every Linux that Rust runs on.
const TICKS: f64 = 100.0;

/// What a process has used so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    pub(crate) mib: f64,
    pub(crate) peak_mib: f64,
}

/// Reads what a process has used so far.
pub(crate) fn usage(pid: u32) -> Result<Usage> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("the manager is gone")?;
    let mib = |name: &str| -> Option<f64> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kib| kib / 1024.0)
    };
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold spaces.
    let fields: Vec<_> = stat.rsplit_once(')').context("odd /proc")?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|it| it.parse::<f64>().ok()).unwrap_or_default();
    Ok(Usage {
        cpu: Duration::from_secs_f64((ticks(11) + ticks(12)) / TICKS),
        mib: mib("VmRSS:").context("no VmRSS")?,
        peak_mib: mib("VmHWM:").context("no VmHWM")?,
    })
}
