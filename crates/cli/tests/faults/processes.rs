//! Faults of processes that hold worker numbers.

use super::ground::{Ground, On, STEADY_TTL_MS, TTL_MS, below, is_long, on_each, rounds, sleep_ms};
use super::holder::Holder;

#[test]
fn holders_are_killed_at_random_points() {
    on_each("holder killed (`kill -9`) under load, and restarted", On::All, 5, killed);
}

fn killed(ground: &mut Ground) -> u64 {
    let mut machines: Vec<_> = (0..3).map(|index| ground.machine(index)).collect();
    let mut holders: Vec<_> =
        machines.iter_mut().map(|machine| Some(ground.start(machine))).collect();
    let rounds = rounds(if is_long() { 100 } else { 20 });
    for round in 0..rounds {
        let index = usize::try_from(round % 3).unwrap();
        let holder = holders[index].take().unwrap();
        // In two of three cases it mints when it dies; otherwise it may still be opening its store.
        if below(3) > 0 {
            holder.mints();
        }
        sleep_ms(below(300));
        holder.kill();
        ground.check();
        holders[index] = Some(ground.start(&mut machines[index]));
    }
    for holder in holders.into_iter().flatten() {
        holder.mints();
        assert!(holder.close(), "{}: what it held was not given back", ground.name);
    }
    rounds
}

#[test]
fn holders_are_frozen_until_another_has_their_number() {
    let fault = "holder frozen (`SIGSTOP`) past its expiry, its number claimed by another, thawed";
    on_each(fault, On::All, 1, frozen);
}

/// Freezes a holder, unless it has the lock of the SQLite file: no other process could write until
/// it continues or is killed.
fn freeze(ground: &Ground, victim: &Holder) {
    victim.freeze(true);
    while ground.server.is_none() && !ground.can_write() {
        victim.freeze(false);
        sleep_ms(below(50));
        victim.freeze(true);
    }
}

/// There are two numbers: one process keeps the first, and the second changes its holder.
fn frozen(ground: &mut Ground) -> u64 {
    let mut machines: Vec<_> = (0..4).map(|index| ground.machine(index)).collect();
    for machine in &mut machines[1..] {
        // Without a pause, and with batches of several milliseconds, the process is nearly always
        // in a call.
        (machine.holder_settings.batch, machine.holder_settings.rest_ms) = (100, 0);
    }
    // On any busy machine, this process keeps its number.
    machines[0].holder_settings.presence_ttl_ms = STEADY_TTL_MS;
    let steady = ground.start(&mut machines[0]);
    steady.mints();
    let rounds = rounds(2);
    let mut victim = ground.start(&mut machines[1]);
    for round in 0..rounds {
        victim.mints();
        let number = victim.seen(|seen| seen.worker);
        freeze(ground, &victim);
        let index = usize::try_from(2 + round % 2).unwrap();
        let claimer = ground.start(&mut machines[index]);
        claimer.mints();
        assert_eq!(claimer.seen(|seen| seen.worker), number, "{}", ground.name);
        victim.forgive();
        victim.freeze(false);
        // It notices the loss, and there is no number for it.
        victim.until("it is refused", |seen| seen.refused.contains("orders pool_full"));
        ground.check();
        claimer.mints();
        steady.mints();
        claimer.kill();
        // The number of a dead process becomes free without any restart.
        victim.mints();
        assert_eq!(victim.seen(|seen| seen.worker), number, "{}", ground.name);
        if round + 1 < rounds {
            victim.kill();
            sleep_ms(TTL_MS);
            victim = ground.start(&mut machines[1]);
        }
    }
    drop((steady, victim));
    rounds
}
