//! `snowmint worker reclaim`: recovery of worker numbers with marks far ahead of the clock.

use clap::Args;
use serde_json::{Value, json};
use snowmint_coord::error::chain;
use snowmint_coord::recovery::{Configured, Recovery, Reports};
use snowmint_coord::{
    Mark, MemberInfo, NodeSettings, Presence, Reclaim as ReclaimRequest, Reclaimed, SlotInfo, Store,
};
use snowmint_core::UnixMillis;
use snowmint_wire::error::Code;

use crate::audit;
use crate::config::{Config, ConfigArgs};
use crate::open::store::code_of;
use crate::open::{node, store};
use crate::terminal::exit::{Failure, Outcome, complain};
use crate::terminal::output::{Output, print};
use crate::terminal::when::{self, Zone};

/// Take back worker numbers with marks far ahead of the clock, and fence their holders.
///
/// Needed when a malicious program, or a process with a clock years ahead, used numbers up: no
/// server mints with them until the clock reaches their marks. Without --no-ids-ahead it only shows
/// the holders and the new marks. These lie ahead of the clock by as much as servers of this
/// configuration (worker.window, worker.lead_max, clock.skew_max, the sources' lead_max) can have
/// minted, as with worker fast-forward. Use the servers' configuration, and check that this clock
/// is right. No other mark ever falls, and the store cannot check that it may: IDs minted from the
/// new mark on come again. So give --no-ids-ahead only if no such ID is in use, and the former
/// holders mint no more. Numbers with marks not that far ahead stay unchanged. Excluded numbers,
/// external leases, and numbers of worker.reuse = "never" are rejected.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint worker reclaim workers-10 3 17 --config /etc/snowmint.toml
  snowmint worker reclaim workers-10 3 17 --config /etc/snowmint.toml --no-ids-ahead
  snowmint worker reclaim workers-10 3 --mark 2026-08-01T12:00:00Z --no-ids-ahead")]
pub(crate) struct Reclaim {
    #[command(flatten)]
    config_args: ConfigArgs,
    /// Pool, as in `worker list`.
    #[arg(value_name = "POOL")]
    pool: String,
    /// Worker numbers.
    #[arg(value_name = "NUMBER", required = true)]
    numbers: Vec<u64>,
    /// Carry it out: no ID of these numbers from the shown time on is in use, and no process mints
    /// with them any more.
    #[arg(long)]
    no_ids_ahead: bool,
    /// Time up to which IDs are in use; marks fall no lower.
    #[arg(long, value_name = "TIME")]
    mark: Option<String>,
    /// Include numbers of live processes: they are fenced at their next extend, and may mint until
    /// then.
    #[arg(long)]
    from_live: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Reclaim {
    pub(crate) fn run(mut self) -> Outcome {
        self.numbers.sort_unstable();
        self.numbers.dedup();
        let config = self.config_args.load(Vec::new())?;
        store::check_file(&config)?;
        let (plan, reclaimed) = store::runtime()?.block_on(async {
            let store = store::configured(&config).await?;
            let plan = self.look(&config, store.as_ref()).await?;
            let reclaimed = match self.no_ids_ahead {
                true => Some(self.carry_out(&config, store.as_ref(), &plan).await?),
                false => None,
            };
            store.close().await?;
            Ok::<_, Failure>((plan, reclaimed))
        })?;
        let done = reclaimed.as_deref();
        print(self.json, [plan.in_json(done)], |out| plan.show(done, out))?;
        if reclaimed.is_some() { Ok(()) } else { plan.looked(self.from_live) }
    }

    /// Reclaims the planned numbers, and leaves a line in the audit trail for each lowered one: also
    /// where a later number is rejected, since the store lowers many of them in several steps.
    async fn carry_out(
        &self,
        config: &Config,
        store: &dyn Store,
        plan: &ReclaimPlan,
    ) -> Outcome<Vec<Reclaimed>> {
        let reclaimed = store.reclaim(&plan.request, when::now()).await;
        let lowered = match &reclaimed {
            Ok(all) => all.clone(),
            Err(_) => match store.workers(when::now()).await {
                Ok(slots) => plan.lowered(&slots),
                Err(error) => {
                    complain(format_args!(
                        "some numbers may have been reclaimed without a line in audit.log; see \
                         `snowmint worker list`: {}",
                        chain(&error)
                    ));
                    Vec::new()
                }
            },
        };
        for done in &lowered {
            leave_trail(config, plan, done);
        }
        Ok(reclaimed?)
    }

    /// Reads the state and changes nothing.
    async fn look(&self, config: &Config, store: &dyn Store) -> Outcome<ReclaimPlan> {
        let settings = NodeSettings { builtin: config.sources.builtin, ..node::pacing(config) };
        let (sources, namespace) = (&config.specs(), store.namespace());
        let configured = Configured { sources, settings: &settings, namespace };
        let reports = Reports::of_stopped(store).await?;
        let recovery =
            Recovery::look(Some(store), reports, Vec::new(), &[], configured, when::now()).await?;
        if let Some(doubt) = recovery.doubt() {
            let error = doubt.clone().into_error();
            let message = format!("{error}; recover the store first");
            return Err(Failure::refused(code_of(&error), message));
        }
        if let Some(error) = recovery.unlisted() {
            return Err(Failure::unavailable(format!(
                "store's sources cannot be read, so the servers' lead over the clock is unknown: \
                 {}",
                chain(error)
            )));
        }
        let mut slots = store.workers(when::now()).await?;
        slots.retain(|slot| slot.pool == self.pool && self.numbers.contains(&slot.slot));
        let missing = |number: &u64| !slots.iter().any(|slot| slot.slot == *number);
        let mark = when::utc(self.mark.as_deref())?;
        let request = ReclaimRequest {
            pool: self.pool.clone(),
            slots: slots.iter().map(|slot| (slot.slot, slot.term)).collect(),
            reach_ms: recovery.reach_ms(),
            marks_at_least: mark.map_or(Mark::ZERO, Mark::from),
            from_live: self.from_live,
        };
        if let Some(number) = self.numbers.iter().find(|number| missing(number)) {
            return Err(Failure::no(
                Code::NotFound,
                format!(
                    "number {number} of pool {:?} was never claimed; see `snowmint worker list`",
                    self.pool
                ),
            ));
        }
        let members = store.members(when::now()).await?;
        let to = request.to(store.ground().await?, recovery.now());
        Ok(ReclaimPlan { request, slots, members, to, now: recovery.now() })
    }
}

/// Plan of the reclaim.
struct ReclaimPlan {
    request: ReclaimRequest,
    /// Slots of the given numbers.
    slots: Vec<SlotInfo>,
    members: Vec<MemberInfo>,
    /// New mark of the numbers.
    to: Mark,
    now: UnixMillis,
}

/// Outcome for a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Excluded,
    Near,
    Live,
    Reclaimed,
}

impl Fate {
    const fn name(self) -> &'static str {
        match self {
            Self::Excluded => "excluded",
            Self::Near => "near",
            Self::Live => "live",
            Self::Reclaimed => "reclaimed",
        }
    }
}

impl ReclaimPlan {
    fn fate(&self, slot: &SlotInfo) -> Fate {
        match slot {
            slot if slot.kept_away => Fate::Excluded,
            slot if slot.mark <= self.to => Fate::Near,
            slot if slot.live && !self.request.from_live => Fate::Live,
            _ => Fate::Reclaimed,
        }
    }

    /// Returns the planned numbers with lower marks than in the plan, as far as a reclaim lowered
    /// them. A release lowers a mark, too, and that of a process that keeps the rules below `to`.
    fn lowered(&self, slots: &[SlotInfo]) -> Vec<Reclaimed> {
        let reclaimed = |before: &SlotInfo| {
            let is_same = |slot: &&SlotInfo| (&slot.pool, slot.slot) == (&before.pool, before.slot);
            let after = slots.iter().find(is_same)?;
            (self.to <= after.mark && after.mark < before.mark).then_some(Reclaimed {
                slot: before.slot,
                from: before.mark,
                to: after.mark,
                term: after.term,
            })
        };
        self.slots.iter().filter_map(reclaimed).collect()
    }

    /// Returns the end of the holder's presence.
    fn lease_ends(&self, slot: &SlotInfo) -> Option<UnixMillis> {
        let is_holder = |info: &&MemberInfo| Some(info.member.incarnation) == slot.holder;
        let holder = self.members.iter().find(is_holder)?;
        Some(Presence::expires_at(holder.presence.ttl_ms, holder.renewed_at))
    }

    fn in_json(&self, reclaimed: Option<&[Reclaimed]>) -> Value {
        let zone = Zone::default();
        let shown = |time: UnixMillis| zone.show(time);
        let done = |slot: u64| {
            reclaimed.into_iter().flatten().find(|done| done.slot == slot).map(|done| done.to)
        };
        let numbers = self.slots.iter().map(|slot| {
            json!({
                "number": slot.slot,
                "owner": slot.owner,
                "host": slot.host,
                "process": slot.process,
                "live": slot.live,
                "lease_ends": self.lease_ends(slot).map(shown),
                "term": slot.term.get(),
                "mark": shown(slot.mark.unix_millis()),
                "ahead_ms": slot.mark.unix_millis().since(self.now),
                "fate": self.fate(slot).name(),
                "reclaimed_to": done(slot.slot).map(|to| shown(to.unix_millis())),
            })
        });
        json!({
            "pool": self.request.pool,
            "to": shown(self.to.unix_millis()),
            "numbers": numbers.collect::<Vec<_>>(),
            "done": reclaimed.is_some(),
        })
    }

    fn show(&self, reclaimed: Option<&[Reclaimed]>, out: &mut Output) -> Outcome {
        let zone = Zone::default();
        for slot in &self.slots {
            let (pool, number, mark) = (&slot.pool, slot.slot, slot.mark.unix_millis());
            let done = reclaimed.into_iter().flatten().find(|done| done.slot == number);
            let result = match (self.fate(slot), done) {
                (_, Some(done)) => {
                    format!("reclaimed, mark {}, {}", zone.show(done.to.unix_millis()), done.term)
                }
                (Fate::Near, None) => "not far ahead: nothing to reclaim".to_owned(),
                (Fate::Excluded, None) => "excluded: its mark is ahead on purpose".to_owned(),
                (Fate::Live, None) => "held by a live process: see --from-live".to_owned(),
                (Fate::Reclaimed, None) => {
                    format!("would be reclaimed, mark {}", zone.show(self.to.unix_millis()))
                }
            };
            let (mark, ahead_ms) = (zone.show(mark), mark.since(self.now));
            let holder = self.holder(slot);
            out.line(format_args!(
                "{pool} {number}: mark {mark}, {ahead_ms} ms ahead of the clock, {holder}: {result}"
            ))?;
        }
        Ok(())
    }

    fn holder(&self, slot: &SlotInfo) -> String {
        let owner = if slot.owner.is_empty() { "an unnamed owner" } else { &slot.owner };
        if slot.holder.is_none() {
            return format!("last of {owner}");
        }
        let host = slot.host.as_deref().unwrap_or("an unknown host");
        let ends = match self.lease_ends(slot) {
            Some(ends) if slot.live => format!("until {}", Zone::default().show(ends)),
            Some(ends) => format!("lease ended {}", Zone::default().show(ends)),
            None => "lease ended".to_owned(),
        };
        format!("held by {owner} on {host}, {ends}")
    }

    /// Ends a run without changes: returns an error if a condition is not met.
    fn looked(&self, from_live: bool) -> Outcome {
        let all = |fate| self.slots.iter().filter(move |slot| self.fate(slot) == fate).count();
        if all(Fate::Excluded) > 0 {
            return Err(Failure::no(
                Code::Conflict,
                "nothing was changed; excluded numbers cannot be reclaimed",
            ));
        }
        if all(Fate::Live) > 0 {
            return Err(Failure::no(
                Code::Conflict,
                "nothing was changed; stop the processes that hold these numbers or remove their \
                 tokens, or add --from-live",
            ));
        }
        if all(Fate::Reclaimed) == 0 {
            complain("nothing was changed: no mark is far ahead");
            return Ok(());
        }
        let to = Zone::default().show(self.to.unix_millis());
        let live =
            if from_live { "Live holders mint until their next extend is rejected. " } else { "" };
        complain(format_args!(
            "nothing was changed. The holders of these numbers may have minted IDs of times up to their marks; IDs from \
             {to} on would be minted again. {live}If no such ID is in use, the holders mint no more, \
             and all servers have this configuration, give --no-ids-ahead"
        ));
        Ok(())
    }
}

/// Appends a line to the audit trail.
fn leave_trail(config: &Config, plan: &ReclaimPlan, done: &Reclaimed) {
    let Reclaimed { slot, from, to, term } = done;
    let holder = plan.slots.iter().find(|known| known.slot == *slot);
    let holder = holder.map_or_else(String::new, |slot| format!(" ({})", plan.holder(slot)));
    let shown = |mark: &Mark| Zone::default().show(mark.unix_millis());
    let what = format!("worker reclaim {} {slot}", plan.request.pool);
    let before = format!("mark {}{holder}", shown(from));
    audit::leave(&config.server.data_dir, &what, before, format!("mark {}, {term}", shown(to)));
}

#[cfg(test)]
mod tests {
    use snowmint_coord::Term;

    use super::*;

    fn slot(number: u64, mark: u64) -> SlotInfo {
        SlotInfo {
            pool: "workers-10".into(),
            slot: number,
            term: Term::new(1),
            mark: Mark::new(mark),
            owner: String::new(),
            holder: None,
            host: None,
            process: None,
            joined_at: None,
            held_since: UnixMillis::new(0),
            renewed_at: None,
            live: false,
            kept_away: false,
        }
    }

    #[test]
    fn released_numbers_do_not_count_as_reclaimed() {
        let request = ReclaimRequest {
            pool: "workers-10".into(),
            slots: Vec::new(),
            reach_ms: 0,
            marks_at_least: Mark::ZERO,
            from_live: false,
        };
        let slots = [0, 1, 2].map(|number| slot(number, 900)).to_vec();
        let (to, now) = (Mark::new(500), UnixMillis::new(400));
        let plan = ReclaimPlan { request, slots, members: Vec::new(), to, now };
        let lowered = plan.lowered(&[slot(0, 510), slot(1, 300), slot(2, 900), slot(3, 510)]);
        let seen: Vec<_> = lowered.iter().map(|done| (done.slot, done.from, done.to)).collect();
        assert_eq!(seen, [(0, Mark::new(900), Mark::new(510))]);
    }
}
