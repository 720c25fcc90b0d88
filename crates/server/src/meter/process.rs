//! What the system says of this process, under the names that Prometheus's own libraries give it.

/// What the system says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) memory_bytes: u64,
    pub(super) cpu_seconds: f64,
    pub(super) files: u64,
    /// In seconds since 1970.
    pub(super) started: f64,
}

/// What can be known here: nothing where there is no `/proc`.
#[cfg(target_os = "linux")]
pub(super) fn look() -> Option<Process> {
    let process = procfs::process::Process::myself().ok()?;
    let stat = process.stat().ok()?;
    let tick = procfs::ticks_per_second() as f64;
    Some(Process {
        memory_bytes: stat.rss.saturating_mul(procfs::page_size()),
        cpu_seconds: stat.utime.saturating_add(stat.stime) as f64 / tick,
        files: process.fd_count().ok()?.try_into().ok()?,
        started: procfs::boot_time_secs().ok()? as f64 + stat.starttime as f64 / tick,
    })
}

/// Nothing is known here.
#[cfg(not(target_os = "linux"))]
pub(super) fn look() -> Option<Process> {
    None
}
