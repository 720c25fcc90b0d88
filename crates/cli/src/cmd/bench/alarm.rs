//! Wake-ups when a request is due. The runtime's own waits end on whole milliseconds, which would
//! be most of the measured latency.

use snowmint_coord::{BootTimer, Timer as _};

#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;

#[cfg(target_os = "linux")]
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
#[cfg(target_os = "linux")]
use tokio::io::unix::AsyncFd;

/// Wakes one task at given times.
pub(super) struct Alarm {
    /// Timer on the clock of [`BootTimer`]; `None` where the system has no such timer.
    #[cfg(target_os = "linux")]
    timer: Option<AsyncFd<OwnedFd>>,
}

impl Alarm {
    #[cfg(target_os = "linux")]
    #[allow(
        deprecated,
        reason = "unsound for what changes its descriptor meanwhile: an OwnedFd does not"
    )]
    pub(super) fn new() -> Self {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags).ok();
        Self { timer: timer.and_then(|timer| AsyncFd::new(timer).ok()) }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn new() -> Self {
        Self {}
    }

    /// Waits until this elapsed time, or up to a millisecond longer without a precise timer.
    pub(super) async fn until_ns(&self, at_ns: u64) {
        #[cfg(target_os = "linux")]
        if let Some(timer) = &self.timer
            && fires(timer, at_ns).await.is_some()
        {
            return;
        }
        let left_ns = at_ns.saturating_sub(BootTimer.elapsed_ns());
        BootTimer.sleep_ms(left_ns.div_ceil(1_000_000)).await;
    }
}

/// Waits until the timer has fired; `None` if it does not work.
#[cfg(target_os = "linux")]
async fn fires(timer: &AsyncFd<OwnedFd>, at_ns: u64) -> Option<()> {
    let at = Timespec {
        tv_sec: i64::try_from(at_ns / 1_000_000_000).ok()?,
        // The value is below 10^9. Zero would disarm the timer.
        tv_nsec: i64::try_from(at_ns % 1_000_000_000).ok()?.max(1),
    };
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
    timerfd_settime(timer.get_ref(), TimerfdTimerFlags::ABSTIME, &once).ok()?;
    loop {
        let mut ready = timer.readable().await.ok()?;
        let mut times = [0; 8];
        match ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut times)?)) {
            Ok(read) => return read.ok().map(|_| ()),
            // The timer has not fired yet.
            Err(_) => continue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn alarm_wakes_at_its_time_and_never_before() {
        let alarm = Alarm::new();
        for wait_ns in [0, 1, 200_000, 3_500_000] {
            let due_ns = BootTimer.elapsed_ns() + wait_ns;
            alarm.until_ns(due_ns).await;
            assert!(BootTimer.elapsed_ns() >= due_ns, "{wait_ns}");
        }
        alarm.until_ns(0).await;
    }
}
