//! The sentence on all servers: how many are ready, and which need a look, as the console has it.

use super::figures::span;
use super::servers::{Server, servers};
use super::state::State;
use crate::terminal::plural::{self, counted};

/// Servers that the sentence names.
const NAMED_MAX: usize = 3;

/// Returns the sentence, and whether all is well. `None` while the servers are not known, and for an
/// only server of which the line has all to say.
pub(super) fn overall(state: &State) -> Option<(String, bool)> {
    if state.members.error().is_some() {
        return None;
    }
    state.members.value()?;
    let (members, _) = servers(state);
    let all = || members.iter().filter(|server| server.is_server());
    // A server that ended without leaving stays in the sentence until its row goes.
    let is_present = |server: &&Server<'_>| server.member.live || server.member.own;
    let (present, gone): (Vec<_>, Vec<_>) = all().partition(is_present);
    let ready = present.iter().filter(|server| server.is_ready()).count();
    let unready = present.iter().filter(|server| !server.is_ready());
    let unready = unready.map(|server| {
        let verb = match server.standing().0 {
            "not ready" => "is not ready",
            "no response" => "does not respond",
            _ => "has no report",
        };
        format!("{} {verb}", server.label(&members))
    });
    let gone = gone.iter().map(|server| {
        let label = server.label(&members);
        match server.silent_ms(state) {
            Some(ms) => format!("{label} has been gone for {}", span(ms)),
            None => format!("{label} is gone"),
        }
    });
    let clocks = present.iter().filter_map(|server| {
        let ahead_ms = server.doubted_clock_ms().filter(|_| server.member.report.is_some())?;
        let side = if ahead_ms > 0 { "ahead" } else { "behind" };
        let distance = span(ahead_ms.unsigned_abs());
        Some(format!("the clock of {} is {distance} {side}", server.label(&members)))
    });
    let faults: Vec<String> = unready.chain(gone).chain(clocks).collect();
    let is_well = faults.is_empty();
    let count = match (all().count(), ready) {
        // The line begins with the state of an only server.
        (0 | 1, _) => None,
        (all, ready) if ready == all => Some(format!("all {ready} servers are ready")),
        (_, ready) => {
            let be = plural::after(ready as u64, "is", "are");
            Some(format!("{ready} of {} {be} ready", counted(present.len(), "server")))
        }
    };
    let skipped = usize::from(count.is_none() && present.len() == 1 && ready == 0);
    let named = if faults.len() > NAMED_MAX + 1 { NAMED_MAX } else { faults.len() };
    let more = faults.len() - named;
    let more = (more > 0).then(|| format!("{more} more need a look"));
    let parts: Vec<String> =
        count.into_iter().chain(faults.into_iter().take(named).skip(skipped)).chain(more).collect();
    (!parts.is_empty()).then(|| (parts.join("; "), is_well))
}
