//! The system's data on this process, under the names of Prometheus's own libraries.

/// Data on this process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) memory_bytes: u64,
    pub(super) cpu_seconds: f64,
    pub(super) files: u64,
    /// In seconds since 1970.
    pub(super) started: f64,
}

/// Returns the data, if `/proc` exists.
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

/// Returns `None`: other systems have no source of the data.
#[cfg(not(target_os = "linux"))]
pub(super) fn look() -> Option<Process> {
    None
}
