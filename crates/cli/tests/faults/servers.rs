//! Faults of the servers that keep the marks.

use super::ground::{Ground, Machine, On, below, on_each, rounds, sleep_ms};
use super::holder::Holder;

/// Length of windows that are extended when half is left: a machine that stands still for some
/// seconds exhausts none.
const LONG_WINDOW_MS: u64 = 30_000;

fn start(ground: &Ground, window_ms: u64) -> Vec<Holder> {
    let mut machines: Vec<Machine> = (0..3).map(|index| ground.machine(index)).collect();
    machines.iter_mut().for_each(|machine| machine.holder_settings.window_ms = window_ms);
    machines.iter_mut().map(|machine| ground.start(machine)).collect()
}

#[test]
fn frozen_server_costs_nothing_until_windows_are_spent() {
    let fault = "server held still for less than its holders' windows, then for longer";
    on_each(fault, On::Servers, 4, held_still);
}

fn held_still(ground: &mut Ground) -> u64 {
    let holders = start(ground, LONG_WINDOW_MS);
    let rounds = rounds(1);
    for _ in 0..rounds {
        holders.iter().for_each(Holder::mints);
        holders.iter().for_each(Holder::forgive);
        ground.server().freeze(true);
        sleep_ms(LONG_WINDOW_MS / 6);
        for holder in &holders {
            // Snowflake IDs need no call; prefetched numbers may run out.
            let before = holder.seen(|seen| seen.orders);
            holder.until("it continues", |seen| seen.orders > before);
            let refused = holder.seen(|seen| seen.refused.clone());
            assert!(
                !refused.iter().any(|entry| entry.starts_with("orders")),
                "{}: {refused:?}",
                ground.name
            );
        }
        ground.server().freeze(false);
        holders.iter().for_each(Holder::mints);

        ground.server().freeze(true);
        for holder in &holders {
            holder.forgive();
            holder.until("its window is spent", |seen| {
                let saw = |code| seen.refused.contains(&format!("orders {code}"));
                saw("window_spent") || saw("unavailable")
            });
        }
        let spent: Vec<_> = holders.iter().map(|holder| holder.seen(|seen| seen.orders)).collect();
        sleep_ms(500);
        for (holder, spent) in holders.iter().zip(spent) {
            assert_eq!(holder.seen(|seen| seen.orders), spent, "{}: minted on", ground.name);
        }
        ground.server().freeze(false);
        // The same processes mint again.
        holders.iter().for_each(Holder::mints);
        ground.check();
    }
    rounds
}

#[test]
fn servers_are_killed_under_load() {
    let fault = "server killed (`kill -9`) under load, and restarted on its data";
    on_each(fault, On::Servers, 4, killed);
}

fn killed(ground: &mut Ground) -> u64 {
    let holders = start(ground, super::ground::WINDOW_MS);
    let rounds = rounds(3);
    for _ in 0..rounds {
        holders.iter().for_each(Holder::mints);
        sleep_ms(below(500));
        ground.server().kill();
        sleep_ms(below(1_500));
        ground.server().start();
        holders.iter().for_each(Holder::mints);
        ground.check();
    }
    rounds
}
