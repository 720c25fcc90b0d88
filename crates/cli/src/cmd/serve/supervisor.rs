//! The service manager that started the process, if it listens (systemd with `Type=notify`). It
//! gets notices of readiness or what prevents it, of reload and stop, and of liveness.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sd_notify::NotifyState;
use snowmint_coord::{BootTimer, Node, Timer as _};
use snowmint_core::{ElapsedMillis, Rfc3339};

/// Interval of readiness checks before the server is ready, and after. Each check wakes an idle
/// server.
const POLL_MS: u64 = 250;
const POLL_READY_MS: u64 = 1_000;
/// Number of liveness notices in each interval of the watchdog.
const WATCHDOG_SHARE: u64 = 3;
/// Longest status text.
const STATUS_CHARS_MAX: usize = 300;

/// The service manager. Clones notify the same one; without one they do nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Supervisor {
    /// Whether it got the notice of readiness; reloading and busy servers were ready before.
    notified_ready: Arc<AtomicBool>,
}

impl Supervisor {
    fn is_there() -> bool {
        std::env::var_os("NOTIFY_SOCKET").is_some()
    }

    /// Sends notices of readiness and for the watchdog, for as long as it runs.
    pub(super) async fn attend(self, node: Node) {
        if !Self::is_there() {
            return;
        }
        let watchdog_ms = sd_notify::watchdog_enabled().map(|interval| {
            u64::try_from(interval.as_millis()).unwrap_or(u64::MAX) / WATCHDOG_SHARE
        });
        let mut notified = None;
        let mut alive = BootTimer.elapsed();
        loop {
            let readiness = node.readiness();
            let status = match (readiness.reasons.is_empty(), readiness.without_store_until) {
                (true, None) => "ready".to_owned(),
                (true, Some(until)) => format!("ready, without the store until {}", Rfc3339(until)),
                (false, _) => format!("not ready: {}", readiness.summary()),
            };
            if notified.as_ref() != Some(&status) {
                let ready = readiness.ready && !self.notified_ready.swap(true, Ordering::Relaxed);
                let shown: String = status.chars().take(STATUS_CHARS_MAX).collect();
                let states = [NotifyState::Status(&shown), NotifyState::Ready];
                send(if ready { &states } else { &states[..1] });
                notified = Some(status);
            }
            let mut alive_in_ms = alive_in_ms(watchdog_ms, alive);
            if alive_in_ms == Some(0) {
                send(&[NotifyState::Watchdog]);
                alive = BootTimer.elapsed();
                alive_in_ms = watchdog_ms;
            }
            BootTimer.sleep_ms(next_poll_ms(readiness.ready, alive_in_ms)).await;
        }
    }

    /// Sends the notice that a reload begins.
    pub(super) fn reloading(&self) {
        if !self.notified_ready.load(Ordering::Relaxed) {
            return;
        }
        // Newer versions of systemd require the time when the reload began.
        if let Ok(now) = NotifyState::monotonic_usec_now() {
            send(&[NotifyState::Reloading, now]);
        }
    }

    /// Sends the notice that the reload is done.
    pub(super) fn reloaded(&self) {
        if self.notified_ready.load(Ordering::Relaxed) {
            send(&[NotifyState::Ready]);
        }
    }

    /// Sends the notice that the server stops.
    pub(super) fn stopping(&self) {
        send(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
    }
}

/// Returns the milliseconds until the watchdog's next notice is due, if there is a watchdog.
fn alive_in_ms(watchdog_ms: Option<u64>, alive: ElapsedMillis) -> Option<u64> {
    watchdog_ms.map(|share_ms| share_ms.saturating_sub(BootTimer.elapsed().since(alive)))
}

/// Returns the milliseconds until the next check.
fn next_poll_ms(ready: bool, alive_in_ms: Option<u64>) -> u64 {
    let poll_ms = if ready { POLL_READY_MS } else { POLL_MS };
    alive_in_ms.map_or(poll_ms, |alive_in_ms| alive_in_ms.clamp(1, poll_ms))
}

fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "failed to notify the service manager");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_server_wakes_each_second_and_for_the_watchdog() {
        assert_eq!(next_poll_ms(false, None), 250, "readiness is awaited");
        assert_eq!(next_poll_ms(true, None), 1_000);
        for (ready, alive_in_ms, expected) in
            [(true, 10_000, 1_000), (true, 400, 400), (true, 0, 1), (false, 400, 250)]
        {
            assert_eq!(next_poll_ms(ready, Some(alive_in_ms)), expected, "{ready}, {alive_in_ms}");
        }
    }
}
