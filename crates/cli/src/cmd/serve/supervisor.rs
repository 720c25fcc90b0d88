//! The service manager that started the process, if it listens (systemd with `Type=notify`): it is told
//! when the server is ready, what keeps it from being so, that it reloads or stops, and that it is alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sd_notify::NotifyState;
use snowmint_coord::{BootTimer, Node, Timer as _};
use snowmint_core::Rfc3339;

/// How often readiness is looked at.
const LOOK_MS: u64 = 250;
/// How many times in each interval of the watchdog it is told that the process is alive.
const WATCHDOG_SHARE: u64 = 3;
/// The longest text for people.
const STATUS_CHARS_MAX: usize = 300;

/// The service manager. Clones speak to the same one; to nobody, where there is none.
#[derive(Clone, Debug, Default)]
pub(super) struct Supervisor {
    /// Whether it was told that the server is ready: what reloads or becomes busy was ready before.
    told_ready: Arc<AtomicBool>,
}

impl Supervisor {
    fn is_there() -> bool {
        std::env::var_os("NOTIFY_SOCKET").is_some()
    }

    /// Looks after readiness and the watchdog, for as long as it runs.
    pub(super) async fn attend(self, node: Node) {
        if !Self::is_there() {
            return;
        }
        let watchdog_ms = sd_notify::watchdog_enabled().map(|interval| {
            u64::try_from(interval.as_millis()).unwrap_or(u64::MAX) / WATCHDOG_SHARE
        });
        let look_ms = watchdog_ms.map_or(LOOK_MS, |share_ms| share_ms.clamp(1, LOOK_MS));
        let mut told = None;
        let mut alive = BootTimer.elapsed();
        loop {
            let readiness = node.readiness();
            let status = match (readiness.reasons.is_empty(), readiness.without_store_until) {
                (true, None) => "ready".to_owned(),
                (true, Some(until)) => format!("ready, without the store until {}", Rfc3339(until)),
                (false, _) => format!("not ready: {}", readiness.why()),
            };
            if told.as_ref() != Some(&status) {
                let ready = readiness.ready && !self.told_ready.swap(true, Ordering::Relaxed);
                let shown: String = status.chars().take(STATUS_CHARS_MAX).collect();
                let states = [NotifyState::Status(&shown), NotifyState::Ready];
                tell(if ready { &states } else { &states[..1] });
                told = Some(status);
            }
            if let Some(share_ms) = watchdog_ms
                && BootTimer.elapsed().since(alive) >= share_ms
            {
                tell(&[NotifyState::Watchdog]);
                alive = BootTimer.elapsed();
            }
            BootTimer.sleep_ms(look_ms).await;
        }
    }

    /// The configuration is read anew.
    pub(super) fn reloading(&self) {
        if !self.told_ready.load(Ordering::Relaxed) {
            return;
        }
        // Newer versions of systemd want to know when it began.
        if let Ok(now) = NotifyState::monotonic_usec_now() {
            tell(&[NotifyState::Reloading, now]);
        }
    }

    /// That is done.
    pub(super) fn reloaded(&self) {
        if self.told_ready.load(Ordering::Relaxed) {
            tell(&[NotifyState::Ready]);
        }
    }

    /// The server stops.
    pub(super) fn stopping(&self) {
        tell(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}
