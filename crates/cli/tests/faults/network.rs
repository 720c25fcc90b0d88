//! Faults of the network between processes and servers.

use snowmint_testkit::proxy::{Proxy, Way};

use super::ground::{Ground, On, STEADY_TTL_MS, WINDOW_MS, below, on_each, rounds, sleep_ms};

fn proxy(ground: &Ground) -> &Proxy {
    ground.proxy.as_ref().unwrap()
}

#[test]
fn connections_are_cut_and_held() {
    let fault = "connections cut, delayed, and held in one direction or both";
    on_each(fault, On::Servers, 2, disturbed);
}

fn disturbed(ground: &mut Ground) -> u64 {
    let mut machines = [ground.machine_behind_proxy(0), ground.machine_behind_proxy(1)];
    let holders: Vec<_> = machines.iter_mut().map(|machine| ground.start(machine)).collect();
    let all_mint = || holders.iter().for_each(super::holder::Holder::mints);
    all_mint();
    let rounds = rounds(1);
    for _ in 0..rounds {
        for _ in 0..5 {
            proxy(ground).cut();
            sleep_ms(below(300));
        }
        all_mint();
        proxy(ground).delay(30);
        all_mint();
        proxy(ground).heal();
        for ways in [&[Way::ToServer][..], &[Way::ToClient], &[Way::ToServer, Way::ToClient]] {
            // Delays shorter and longer than a window: the held data arrive in the end.
            for ms in [WINDOW_MS / 4, WINDOW_MS * 3 / 2] {
                ways.iter().for_each(|way| proxy(ground).hold(*way));
                sleep_ms(ms);
                proxy(ground).heal();
                all_mint();
                ground.check();
            }
        }
        proxy(ground).refuse();
        sleep_ms(WINDOW_MS * 3 / 2);
        proxy(ground).heal();
        all_mint();
        ground.check();
    }
    rounds
}

#[test]
fn cut_off_holder_loses_its_number_and_late_requests_fail() {
    let fault =
        "holder cut off from its store, its number claimed by another, its requests delivered late";
    on_each(fault, On::Servers, 1, cut_off);
}

fn cut_off(ground: &mut Ground) -> u64 {
    let mut machines =
        [ground.machine(0), ground.machine_behind_proxy(1), ground.machine(2), ground.machine(3)];
    machines[0].holder_settings.presence_ttl_ms = STEADY_TTL_MS;
    let steady = ground.start(&mut machines[0]);
    steady.mints();
    let victim = ground.start(&mut machines[1]);
    let rounds = rounds(1);
    for round in 0..rounds {
        victim.mints();
        victim.forgive();
        let number = victim.seen(|seen| seen.worker);
        proxy(ground).hold(Way::ToServer);
        proxy(ground).hold(Way::ToClient);
        let index = usize::try_from(2 + round % 2).unwrap();
        let claimer = ground.start(&mut machines[index]);
        claimer.mints();
        assert_eq!(claimer.seen(|seen| seen.worker), number, "{}", ground.name);
        victim.until("it is refused", |seen| {
            let saw = |code| seen.refused.contains(&format!("orders {code}"));
            saw("window_spent") || saw("unavailable")
        });
        proxy(ground).heal();
        victim.until("there is no number", |seen| seen.refused.contains("orders pool_full"));
        claimer.mints();
        steady.mints();
        ground.check();
        claimer.kill();
        victim.mints();
    }
    drop((steady, victim));
    rounds
}
