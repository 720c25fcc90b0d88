//! The system's data on this process, under the names of Prometheus's own libraries.

/// Data on this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) memory_bytes: u64,
    /// The most that it was.
    pub(crate) memory_peak_bytes: u64,
    /// Processor time in the process.
    pub(crate) user_seconds: f64,
    /// Processor time in the system, for the process.
    pub(crate) system_seconds: f64,
    pub(super) files: u64,
    /// In seconds since 1970.
    pub(super) started: f64,
}

/// Returns the data, if `/proc` exists.
#[cfg(target_os = "linux")]
pub(crate) fn look() -> Option<Process> {
    let process = procfs::process::Process::myself().ok()?;
    let stat = process.stat().ok()?;
    let tick = procfs::ticks_per_second() as f64;
    let memory_bytes = stat.rss.saturating_mul(procfs::page_size());
    let peak_kib = process.status().ok()?.vmhwm.unwrap_or_default();
    Some(Process {
        memory_bytes,
        memory_peak_bytes: peak_kib.saturating_mul(1_024).max(memory_bytes),
        user_seconds: stat.utime as f64 / tick,
        system_seconds: stat.stime as f64 / tick,
        files: process.fd_count().ok()?.try_into().ok()?,
        started: procfs::boot_time_secs().ok()? as f64 + stat.starttime as f64 / tick,
    })
}

/// Returns `None`: other systems have no source of the data.
#[cfg(not(target_os = "linux"))]
pub(crate) fn look() -> Option<Process> {
    None
}
