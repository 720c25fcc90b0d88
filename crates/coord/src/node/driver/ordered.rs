//! Generators of the global-order sources with slots that this node owns.

use std::collections::BTreeMap;
use std::sync::Arc;

use snowmint_core::{UnixMillis, Window};

use super::super::Core;
use crate::error::{Error, chain};
use crate::lease::{Lease, Mark};
use crate::random;
use crate::sources::{Make, Minter, SlotWindow, SnowflakeBack, SourceInner};
use crate::spec::{Plan, SnowflakePlan};

/// Milliseconds by which a clock may be behind: it catches up before another member could take
/// over.
const BEHIND_MS: u64 = 1_000;

/// Slots that this node owns.
#[derive(Debug, Default)]
pub(super) struct OrderedSources {
    slots: BTreeMap<u16, Held>,
}

/// One slot. Sources with names of the same hash share it.
#[derive(Debug)]
struct Held {
    /// Begin of the generators that are made from now on: only the existing ones may have minted at
    /// or above it.
    floor: UnixMillis,
    mark: UnixMillis,
    /// Configuration of each source's generator.
    makes: BTreeMap<String, Make>,
}

impl OrderedSources {
    /// Records that this node owns the slot.
    pub(super) fn hold(&mut self, slot: u16, lease: &Lease) {
        let (floor, mark) = (lease.floor.unix_millis(), lease.floor.unix_millis());
        self.slots.insert(slot, Held { floor, mark, makes: BTreeMap::new() });
    }

    /// Opens the slot's window up to `mark`.
    pub(super) fn open(&mut self, core: &Core, slot: u16, mark: Mark) {
        let Some(held) = self.slots.get_mut(&slot) else { return };
        held.mark = mark.unix_millis();
        if held.mark <= held.floor {
            return;
        }
        for source in core.known_sources() {
            let defined = source.defined.load_full();
            if let (Some((back, ordered)), Plan::Snowflake(plan)) =
                (source.in_order(), &defined.plan)
                && ordered.slot() == slot
                && let Err(error) = held.serve(core, &source, back, plan)
            {
                tracing::error!(source = %source.name, error = %chain(&error), "no generator");
            }
        }
    }

    /// Closes the slot's generators: this node no longer owns it.
    pub(super) fn shut(&mut self, core: &Core, slot: u16) {
        if self.slots.remove(&slot).is_none() {
            return;
        }
        for source in core.known_sources() {
            if let Some((back, ordered)) = source.in_order()
                && ordered.slot() == slot
            {
                close(back);
            }
        }
    }

    /// Closes the generators of all slots.
    pub(super) fn shut_all(&mut self, core: &Core) {
        let slots: Vec<u16> = self.slots.keys().copied().collect();
        for slot in slots {
            self.shut(core, slot);
        }
    }

    /// Returns whether the clock is too far behind the last IDs: minting could only continue after
    /// more than [`BEHIND_MS`].
    pub(super) fn are_behind(&self, core: &Core, wall: UnixMillis) -> bool {
        self.slots.iter().any(|(slot, held)| {
            core.known_sources().iter().any(|source| {
                let Some((back, ordered)) = source.in_order() else { return false };
                let Some(minter) = back.minter().filter(|_| ordered.slot() == *slot) else {
                    return false;
                };
                let (taken_until, _) = minter.reach();
                let lead_max_ms = held.makes.get(&source.name).map_or(0, Make::lead_max_ms);
                taken_until.since(wall) > lead_max_ms.saturating_add(BEHIND_MS)
            })
        })
    }

    /// Follows a changed definition: the source's next generator begins above everything that this
    /// one may have minted.
    pub(super) fn altered(&mut self, source: &SourceInner, plan: &SnowflakePlan) {
        let Some((back, ordered)) = source.in_order() else { return };
        let Some(held) = self.slots.get_mut(&ordered.slot()) else { return };
        if held.makes.get(&source.name).is_some_and(|make| *make != Make::of(plan)) {
            held.makes.remove(&source.name);
            held.floor = held.mark;
            close(back);
        }
    }
}

impl Held {
    /// Creates a source's generator, or extends its present one.
    fn serve(
        &mut self,
        core: &Core,
        source: &SourceInner,
        back: &SnowflakeBack,
        plan: &SnowflakePlan,
    ) -> Result<(), Error> {
        if let Some(minter) = back.minter() {
            minter.extend_to(0, self.mark);
            return Ok(());
        }
        let make = Make::of(plan);
        let window = Window::new(self.floor, self.mark);
        // One process mints at a time, so all have the same worker number.
        let slots = [SlotWindow { worker: 0, clock_value: 0, window }];
        let around = &core.around;
        let (clock, observer) = (Arc::clone(&around.clock), Arc::clone(&around.observer));
        let minter =
            Minter::new(&make, &slots, clock, observer, random::number()?).map_err(|error| {
                Error::internal(format!(
                    "internal error: generator cannot be made: {error}; please report it"
                ))
            })?;
        self.makes.insert(source.name.clone(), make);
        back.serve(Arc::new(minter));
        Ok(())
    }
}

fn close(back: &SnowflakeBack) {
    if let Some(minter) = back.minter() {
        back.stop();
        minter.close();
    }
}
