//! Generators of the global-order sources with slots that this node owns.

use std::collections::BTreeMap;
use std::sync::Arc;

use snowmint_core::{UnixMillis, Window};

use super::super::state::NodeState;
use crate::error::{Error, chain};
use crate::ids::Mark;
use crate::model::lease::Lease;
use crate::platform::random;
use crate::sources::{GeneratorConfig, GeneratorSet, SlotWindow, SnowflakeBacking, SourceInner};
use crate::spec::{Plan, SnowflakePlan};

/// Milliseconds by which a clock may be behind: it catches up before another member could take
/// over.
const BEHIND_MS: u64 = 1_000;

/// Slots that this node owns.
#[derive(Debug, Default)]
pub(super) struct GlobalOrderSources {
    slots: BTreeMap<u16, OrderSlot>,
}

/// One slot. Sources with names of the same hash share it.
#[derive(Debug)]
struct OrderSlot {
    /// Begin of the generators that are made from now on: only the existing ones may have minted at
    /// or above it.
    floor: UnixMillis,
    mark: UnixMillis,
    /// Configuration of each source's generator.
    configs: BTreeMap<String, GeneratorConfig>,
}

impl GlobalOrderSources {
    /// Records that this node owns the slot.
    pub(super) fn hold(&mut self, slot: u16, lease: &Lease) {
        let (floor, mark) = (lease.floor.unix_millis(), lease.floor.unix_millis());
        self.slots.insert(slot, OrderSlot { floor, mark, configs: BTreeMap::new() });
    }

    /// Opens the slot's window up to `mark`.
    pub(super) fn open(&mut self, core: &NodeState, slot: u16, mark: Mark) {
        let Some(held) = self.slots.get_mut(&slot) else { return };
        held.mark = mark.unix_millis();
        if held.mark <= held.floor {
            return;
        }
        for source in core.known_sources() {
            let defined = source.defined.load_full();
            if let (Some((backing, global_order)), Plan::Snowflake(plan)) =
                (source.as_global_order(), &defined.plan)
                && global_order.slot() == slot
                && let Err(error) = held.serve(core, &source, backing, plan)
            {
                tracing::error!(source = %source.name, error = %chain(&error), "failed to start a generator");
            }
        }
    }

    /// Closes the slot's generators: this node no longer owns it.
    pub(super) fn shut(&mut self, core: &NodeState, slot: u16) {
        if self.slots.remove(&slot).is_none() {
            return;
        }
        for source in core.known_sources() {
            if let Some((backing, global_order)) = source.as_global_order()
                && global_order.slot() == slot
            {
                close(backing);
            }
        }
    }

    /// Closes the generators of all slots.
    pub(super) fn shut_all(&mut self, core: &NodeState) {
        let slots: Vec<u16> = self.slots.keys().copied().collect();
        for slot in slots {
            self.shut(core, slot);
        }
    }

    /// Returns whether the clock is too far behind the last IDs: minting could only continue after
    /// more than [`BEHIND_MS`].
    pub(super) fn are_behind(&self, core: &NodeState, wall: UnixMillis) -> bool {
        self.slots.iter().any(|(slot, held)| {
            core.known_sources().iter().any(|source| {
                let Some((backing, global_order)) = source.as_global_order() else { return false };
                let Some(generators) =
                    backing.generators().filter(|_| global_order.slot() == *slot)
                else {
                    return false;
                };
                let (taken_until, _) = generators.reach();
                let lead_max_ms =
                    held.configs.get(&source.name).map_or(0, GeneratorConfig::lead_max_ms);
                taken_until.since(wall) > lead_max_ms.saturating_add(BEHIND_MS)
            })
        })
    }

    /// Follows a changed definition: the source's next generator begins above everything that this
    /// one may have minted.
    pub(super) fn altered(&mut self, source: &SourceInner, plan: &SnowflakePlan) {
        let Some((backing, global_order)) = source.as_global_order() else { return };
        let Some(held) = self.slots.get_mut(&global_order.slot()) else { return };
        if held.configs.get(&source.name).is_some_and(|config| *config != GeneratorConfig::of(plan))
        {
            held.configs.remove(&source.name);
            held.floor = held.mark;
            close(backing);
        }
    }
}

impl OrderSlot {
    /// Creates a source's generator, or extends its present one.
    fn serve(
        &mut self,
        core: &NodeState,
        source: &SourceInner,
        backing: &SnowflakeBacking,
        plan: &SnowflakePlan,
    ) -> Result<(), Error> {
        if let Some(generators) = backing.generators() {
            generators.extend_to(0, self.mark);
            return Ok(());
        }
        let config = GeneratorConfig::of(plan);
        let window = Window::new(self.floor, self.mark);
        // One process mints at a time, so all have the same worker number.
        let slots = [SlotWindow { worker: 0, clock_value: 0, window }];
        let ctx = &core.ctx;
        let (clock, observer) = (Arc::clone(&ctx.clock), Arc::clone(&ctx.observer));
        let generators = GeneratorSet::new(&config, &slots, clock, observer, random::number()?)?;
        self.configs.insert(source.name.clone(), config);
        backing.serve(Arc::new(generators));
        Ok(())
    }
}

fn close(backing: &SnowflakeBacking) {
    if let Some(generators) = backing.generators() {
        backing.stop();
        generators.close();
    }
}
