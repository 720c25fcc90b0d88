//! Faults of data: restored backups, copied directories. `end_to_end/data.rs` covers the SQLite
//! file.

use snowmint_coord::{FastForward, Mark};

use super::ground::{Ground, On, copy, on_each, rounds};
use super::holder::NUMBERS;

#[test]
fn restored_backup_is_rejected_by_members_that_saw_more() {
    let fault = "backup of the server's data restored under running processes";
    on_each(fault, On::Servers, 4, restored);
}

fn restored(ground: &mut Ground) -> u64 {
    let mut machines = [ground.machine(0), ground.machine(1)];
    let rounds = rounds(1);
    let mut holders = machines.each_mut().map(|machine| ground.start(machine));
    for _ in 0..rounds {
        holders.iter().for_each(super::holder::Holder::mints);
        ground.server().stop();
        ground.server().back_up();
        ground.server().start();
        // More than one window and one segment is granted after the backup.
        let (slots, numbers) = ground.checker.lock().unwrap().marks_max();
        holders.iter().for_each(super::holder::Holder::mints);
        holders[0].until("more was granted", |_| {
            let (slots_now, numbers_now) = ground.checker.lock().unwrap().marks_max();
            slots_now > slots && numbers_now > numbers + 1_000
        });
        let writes = ground.ask(async |store| Ok(store.identity().await?.writes));
        ground.server().stop();
        ground.server().restore();
        ground.server().start();
        for holder in &holders {
            holder.forgive();
            holder.until("it refuses the store", |seen| {
                seen.refused.contains("orders store_rolled_back")
            });
        }
        let minted: Vec<_> = holders.iter().map(|holder| holder.seen(|seen| seen.orders)).collect();
        // A process without memory of its own has its journal.
        let [journalled, other] = holders;
        journalled.kill();
        let again = ground.start(&mut machines[0]);
        again.until("it does not start", |seen| seen.refused.contains("start store_rolled_back"));
        assert_eq!(other.seen(|seen| seen.orders), minted[1], "{}: minted on", ground.name);
        again.kill();
        ground.check();

        // An operator moves the store forward, above everything promised.
        let (slots, numbers) = ground.checker.lock().unwrap().marks_max();
        ground.ask(async |store| {
            let forward = FastForward {
                marks_at_least: Mark::new(slots),
                segments: vec![(NUMBERS.into(), Mark::new(numbers))],
                writes_at_least: writes + 1_000_000,
                ..FastForward::default()
            };
            store.fast_forward(&forward).await
        });
        holders = [ground.start(&mut machines[0]), other];
        holders.iter().for_each(super::holder::Holder::mints);
        ground.check();
    }
    rounds
}

#[test]
fn a_copied_data_directory_is_refused() {
    on_each("data directory copied, started elsewhere and in place", On::All, 4, cloned);
}

fn cloned(ground: &mut Ground) -> u64 {
    let (mut here, mut copy_machine) = (ground.machine(0), ground.machine(2));
    let (home, copied, early) = (
        here.holder_settings.data_dir.clone().unwrap(),
        copy_machine.holder_settings.data_dir.clone().unwrap(),
        ground.path("early"),
    );
    let holder = ground.start(&mut here);
    holder.mints();
    copy(&home, &copied);
    copy(&home, &early);
    holder.mints();
    let refused = "start journal_refused";
    let clone = ground.start(&mut copy_machine);
    clone.until("the clone does not start", |seen| seen.refused.contains(refused));
    clone.kill();
    holder.until("it has minted", |seen| seen.orders > 1_000 && seen.numbers > 500);
    holder.kill();
    copy(&early, &home);
    let clone = ground.start(&mut here);
    clone.until("the old state does not start", |seen| seen.refused.contains(refused));
    clone.kill();
    1
}
