//! Worker numbers of another system, which nobody shall have here.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;
use snowmint_coord::avoid::LABEL_BYTES_MAX;
use snowmint_coord::pool::CLAIM_COUNT_MAX;
use snowmint_coord::spec::{Plan, SourceSpec, Span};
use snowmint_coord::{Avoid, Mark, Pool, Reuse, SlotInfo, Store, pool_of};
use snowmint_core::UnixMillis;
use snowmint_stores::foreign::Worker;

use crate::exit::{Failure, Outcome};
use crate::output::Output;
use crate::when::{self, Zone};

/// How worker numbers are kept away.
#[derive(Debug, Args)]
pub(super) struct Keeping {
    /// The layout of the other system's IDs, whose worker numbers these are.
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<String>,
    /// Every process of the other system has ended, and none will start again: their numbers can be
    /// taken once the clock has passed all of their IDs. Needs --margin.
    #[arg(long, requires = "margin")]
    stopped: bool,
    /// How far IDs of the other system can lie ahead of this clock: how wrong their clocks may have been,
    /// and how far ahead of them they minted.
    #[arg(long, value_name = "TIME", requires = "stopped")]
    margin: Option<Span>,
    /// Not this worker number; may be given several times.
    #[arg(long, value_name = "NUMBER")]
    except_worker: Vec<u64>,
}

/// What is to become of one worker number.
#[derive(Debug, Serialize)]
pub(super) struct Item {
    /// None when what stands there is no number.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<u64>,
    pool: String,
    /// Who has it there.
    holder: String,
    #[serde(flatten)]
    action: Action,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
enum Action {
    /// Nobody shall have it, or not before a time.
    Avoid {
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<String>,
    },
    /// It is so already.
    Keep,
    /// Nothing is done.
    Refuse { reason: String },
}

/// What is to become of all of them.
#[derive(Debug)]
pub(super) struct Workers {
    pool: Pool,
    until: Mark,
    items: Vec<Item>,
}

impl Keeping {
    /// What is to become of the workers that were found, given the slots that there are.
    pub(super) fn plan(
        &self,
        found: Vec<Worker>,
        layout: &str,
        reuse: Reuse,
        slots: &[SlotInfo],
        now: UnixMillis,
    ) -> Outcome<Workers> {
        let pool = self.pool(layout, reuse)?;
        let until = match self.margin {
            Some(margin) => Mark::from(now.saturating_add(margin.ms())),
            None => Mark::MAX,
        };
        let mut by_number: BTreeMap<u64, String> = BTreeMap::new();
        let mut items = Vec::new();
        for Worker { number, holder } in found {
            match number {
                Ok(number) => {
                    let holders = by_number.entry(number).or_default();
                    let parted = if holders.is_empty() { "" } else { ", " };
                    holders.push_str(&format!("{parted}{holder}"));
                }
                Err(reason) => {
                    let action = Action::Refuse { reason };
                    items.push(Item { worker: None, pool: pool.name.clone(), holder, action });
                }
            }
        }
        by_number.retain(|number, _| !self.except_worker.contains(number));
        if reuse == Reuse::Never {
            // Numbers only rise there: what lies above the highest is new.
            let highest = by_number.pop_last();
            by_number = highest.into_iter().collect();
        }
        if u64::try_from(by_number.len()).unwrap_or(u64::MAX) > CLAIM_COUNT_MAX.into() {
            return Err(Failure::refused(format!(
                "nothing was changed: {} worker numbers are too many to remember each; with \
                 worker.reuse = \"never\" the numbers here begin above all of theirs",
                by_number.len()
            )));
        }
        let mut workers = Workers { pool, until, items };
        for (number, mut holder) in by_number {
            holder.truncate(holder.floor_char_boundary(LABEL_BYTES_MAX / 2));
            let action = workers.action(number, slots);
            let pool = workers.pool.name.clone();
            workers.items.push(Item { worker: Some(number), pool, holder, action });
        }
        Ok(workers)
    }

    fn pool(&self, layout: &str, reuse: Reuse) -> Outcome<Pool> {
        let layout = self.layout.as_deref().unwrap_or(layout);
        let spec = SourceSpec { layout: Some(layout.to_owned()), ..SourceSpec::default() };
        match spec.check() {
            Ok(Plan::Snowflake(plan)) => Ok(pool_of(&plan, reuse)),
            Ok(_) => Err(Failure::usage(format!("{layout} is no layout with workers"))),
            Err(error) => Err(Failure::usage(format!("--layout {layout}: {error}"))),
        }
    }
}

impl Workers {
    fn slots(&self, number: u64) -> impl Iterator<Item = u64> + use<> {
        let group = u64::from(self.pool.group.max(1));
        number.saturating_mul(group)..number.saturating_add(1).saturating_mul(group)
    }

    fn action(&self, number: u64, slots: &[SlotInfo]) -> Action {
        let groups = self.pool.groups();
        if number >= groups {
            let last = groups.saturating_sub(1);
            let reason = format!(
                "the layout has workers 0 to {last}: name theirs by --layout, or leave this one out by \
                 --except-worker {number}"
            );
            return Action::Refuse { reason };
        }
        let own = self.slots(number);
        let of = |slot: &u64| {
            slots.iter().find(|info| info.pool == self.pool.name && info.slot == *slot)
        };
        let known: Vec<_> = own.map(|slot| of(&slot)).collect();
        if let Some(live) = known.iter().flatten().find(|info| info.live) {
            let reason = format!(
                "{} on {} has it now, so IDs may be there twice already: stop that server first",
                live.owner,
                live.host.as_deref().unwrap_or("another host")
            );
            return Action::Refuse { reason };
        }
        let is_done = |info: &Option<&SlotInfo>| info.is_some_and(|info| info.mark >= self.until);
        if known.iter().all(is_done) {
            return Action::Keep;
        }
        let until = self.until;
        let until = (until < Mark::MAX).then(|| Zone::default().show(until.unix_millis()));
        Action::Avoid { until }
    }

    pub(super) fn show(&self, json: bool, out: &mut Output) -> Outcome {
        if json {
            return self.items.iter().try_for_each(|item| out.json(item));
        }
        out.line(format_args!("{:>7}  {:<16}  PLAN", "WORKER", "POOL"))?;
        for Item { worker, pool, holder, action } in &self.items {
            let worker = worker.map_or_else(|| "?".into(), |worker| worker.to_string());
            let plan = match action {
                Action::Avoid { until: None } => format!("avoid for ever ({holder})"),
                Action::Avoid { until: Some(time) } => format!("avoid until {time} ({holder})"),
                Action::Keep => "nothing to do: is avoided".to_owned(),
                Action::Refuse { reason } => format!("REFUSED: {reason} ({holder})"),
            };
            out.line(format_args!("{worker:>7}  {pool:<16}  {plan}"))?;
        }
        Ok(())
    }

    /// How many of how many are refused.
    pub(super) fn refused(&self) -> usize {
        let refused = |item: &&Item| matches!(item.action, Action::Refuse { .. });
        self.items.iter().filter(refused).count()
    }

    pub(super) fn is_done(&self) -> bool {
        self.items.iter().all(|item| item.action == Action::Keep)
    }

    pub(super) async fn carry_out(&self, origin: &str, store: &dyn Store) -> Outcome {
        let mut by_holder: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for item in &self.items {
            if let (Some(number), Action::Avoid { .. }) = (item.worker, &item.action) {
                by_holder.entry(&item.holder).or_default().extend(self.slots(number));
            }
        }
        for (holder, slots) in by_holder {
            let (pool, label) = (self.pool.clone(), format!("{origin}: {holder}"));
            let avoid = Avoid { pool, slots, until: self.until, label };
            store.avoid(&avoid, when::now()).await?;
        }
        Ok(())
    }
}
