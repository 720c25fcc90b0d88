//! Worker numbers of another system, which are excluded here.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use serde::Serialize;
use snowmint_coord::exclude::LABEL_BYTES_MAX;
use snowmint_coord::external::{external_pool, is_external};
use snowmint_coord::label::Visible;
use snowmint_coord::pool::CLAIM_COUNT_MAX;
use snowmint_coord::spec::{Plan, SnowflakePlan, SourceSpec, Span};
use snowmint_coord::{Exclude, Mark, Pool, Reuse, SlotInfo, Store, pool_of};
use snowmint_core::layout::OutOfRange;
use snowmint_core::{Layout, UnixMillis};
use snowmint_stores::legacy::LegacyWorker;

use crate::audit;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::output::Output;
use crate::terminal::when::{self, Zone};

/// Options of the exclusion of worker numbers.
#[derive(Debug, Args)]
pub(super) struct Keeping {
    /// Layout of the other system's IDs; with the epoch that it counted from (epoch=TIME), if that
    /// is not the shipped one.
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<String>,
    /// Assign the excluded worker numbers again once the clock has passed all of their IDs: every
    /// process of the other system has ended, and none will start again. Needs --margin. Rejected
    /// if sources here have a later epoch than the other system, since their IDs would repeat all
    /// of its own.
    #[arg(long, requires = "margin")]
    stopped: bool,
    /// Furthest that IDs of the other system can lie ahead of this clock: the error of their
    /// clocks, plus the time that they minted ahead of them.
    #[arg(long, value_name = "TIME", requires = "stopped")]
    margin: Option<Span>,
    /// Leave this worker number out; may be given several times.
    #[arg(long, value_name = "NUMBER")]
    except_worker: Vec<u64>,
}

/// A system that assigns worker numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct System {
    /// Name in `import`.
    name: &'static str,
    /// Layout with its worker bits.
    layout: &'static str,
    /// Layout that it is shipped with.
    shipped: Layout,
}

pub(super) const LEAF: System =
    System { name: "leaf-snowflake", layout: "leaf", shipped: Layout::LEAF };
pub(super) const BAIDU: System =
    System { name: "uid-generator", layout: "baidu", shipped: Layout::BAIDU_2016 };
pub(super) const COSID: System = System { name: "cosid", layout: "cosid", shipped: Layout::COSID };

/// Plan for one worker number.
#[derive(Debug, Serialize)]
pub(super) struct WorkerItem {
    /// Worker number; `None` if the stored text is not a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<u64>,
    pool: String,
    /// Holder in the other system.
    holder: String,
    #[serde(flatten)]
    action: WorkerAction,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
enum WorkerAction {
    /// Excludes the number, for ever or until a time.
    Exclude {
        #[serde(skip_serializing_if = "Option::is_none")]
        until: Option<String>,
    },
    /// Keeps an existing exclusion.
    Keep,
    /// Does nothing.
    Refuse { reason: String },
}

/// Plan for all worker numbers.
#[derive(Debug)]
pub(super) struct Workers {
    origin: &'static str,
    until: Mark,
    parts: Vec<PoolPart>,
}

/// Plan for the worker numbers of one pool.
#[derive(Debug)]
struct PoolPart {
    pool: Pool,
    items: Vec<WorkerItem>,
}

/// State of this deployment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Here<'a> {
    pub(super) reuse: Reuse,
    pub(super) slots: &'a [SlotInfo],
    /// Layouts of all sources with worker numbers.
    pub(super) layouts: &'a [(String, Layout)],
    pub(super) now: UnixMillis,
}

/// Numbers, with all their present and former holders.
type HoldersByNumber = BTreeMap<u64, String>;

fn add(by_number: &mut HoldersByNumber, number: u64, holder: &str) {
    let holders = by_number.entry(number).or_default();
    let parted = if holders.is_empty() { "" } else { ", " };
    holders.push_str(&format!("{parted}{holder}"));
}

impl Keeping {
    /// Plans the workers found in a system: in the pool that servers here mint from, and in the
    /// pools of external leases for processes that use the other system's interface.
    pub(super) fn plan(
        &self,
        system: System,
        found: Vec<LegacyWorker>,
        here: Here<'_>,
    ) -> Outcome<Workers> {
        let plan = self.named(system.layout)?;
        let until = match self.margin {
            Some(margin) => {
                let theirs = self.layout.as_ref().map_or(system.shipped, |_| plan.layout);
                let until = here.now.saturating_add(margin.ms());
                check_passed(theirs, here.layouts, until)?;
                Mark::from(until)
            }
            None => Mark::MAX,
        };
        let pool = pool_of(&plan.layout, here.reuse);
        let (mut all, mut by_space) =
            (HoldersByNumber::new(), BTreeMap::<String, HoldersByNumber>::new());
        let mut senseless = Vec::new();
        for LegacyWorker { number, holder, space } in found {
            match number {
                Ok(number) if self.except_worker.contains(&number) => {}
                Ok(number) => {
                    add(&mut all, number, &holder);
                    if let Some(space) = space {
                        add(by_space.entry(space).or_default(), number, &holder);
                    }
                }
                Err(reason) => {
                    let action = WorkerAction::Refuse { reason };
                    senseless.push(WorkerItem {
                        worker: None,
                        pool: pool.name.clone(),
                        holder,
                        action,
                    });
                }
            }
        }
        if pool.reuse == Reuse::Never {
            // Numbers only rise there: those above the highest are new.
            all = all.pop_last().into_iter().collect();
        }
        let external = by_space.into_iter().filter_map(|(space, mut by_number)| {
            // A scope with an invalid name here gets no requests for numbers. A number that is too
            // large is rejected once.
            let pool = external_pool(&space, pool.groups().ilog2()).ok()?;
            by_number.retain(|number, _| *number < pool.slots);
            Some((pool, by_number))
        });
        let external: Vec<_> = external.collect();
        let mut workers = Workers { origin: system.name, until, parts: Vec::new() };
        for (pool, by_number) in [(pool, all)].into_iter().chain(external) {
            check_count(&by_number)?;
            let part = workers.part(pool, by_number, here);
            workers.parts.push(part);
        }
        if let Some(first) = workers.parts.first_mut() {
            senseless.append(&mut first.items);
            first.items = senseless;
        }
        Ok(workers)
    }

    /// Returns the plan of a source with the layout of the option, or with this one.
    fn named(&self, layout: &str) -> Outcome<SnowflakePlan> {
        let layout = self.layout.as_deref().unwrap_or(layout);
        let spec = SourceSpec { layout: Some(layout.to_owned()), ..SourceSpec::default() };
        match spec.check() {
            Ok(Plan::Snowflake(plan)) => Ok(plan),
            Ok(_) => Err(Failure::usage(format!("layout {layout} has no workers; name another"))),
            Err(error) => Err(Failure::usage(format!("--layout {layout}: {error}"))),
        }
    }
}

/// Rejects a time after which IDs here may still repeat IDs of the other system. A mark keeps a
/// worker's new IDs above its old ones only if both layouts have one epoch, or ours an earlier one.
fn check_passed(theirs: Layout, here: &[(String, Layout)], until: UnixMillis) -> Outcome {
    const WAY: &str =
        "leave out --stopped, so that their numbers are never assigned, or correct --layout";
    let (from, end) = (Zone::default().show(theirs.epoch()), Zone::default().show(theirs.end()));
    let Ok(passed) = theirs.tick_at(until) else {
        return Err(Failure::refused(format!(
            "nothing was changed: {} is outside the other system's layout, from {from} to {end}, and \
             a later epoch repeats its IDs; {WAY}",
            Zone::default().show(until)
        )));
    };
    let repeats = |layout: &Layout| {
        let is_alike = layout.fields().eq(theirs.fields());
        is_alike
            && match layout.tick_at(until) {
                Ok(tick) => tick < passed,
                Err(OutOfRange::BeforeEpoch { .. }) => true,
                Err(_) => false,
            }
    };
    match here.iter().find(|(_, layout)| repeats(layout)) {
        None => Ok(()),
        Some((source, layout)) => Err(Failure::refused(format!(
            "nothing was changed: source {source:?} has epoch {}, theirs has {from}, so it repeats \
             their IDs; {WAY}, or set sources.builtin = false",
            Zone::default().show(layout.epoch())
        ))),
    }
}

fn check_count(by_number: &HoldersByNumber) -> Outcome {
    let count = u64::try_from(by_number.len()).unwrap_or(u64::MAX);
    if count <= CLAIM_COUNT_MAX.into() {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "nothing was changed: {count} worker numbers exceed {CLAIM_COUNT_MAX}; with worker.reuse = \
         \"never\" the numbers here begin above all of theirs"
    )))
}

/// Formats ordered numbers as ranges: `0-3, 7`.
fn ranges(numbers: &[u64]) -> String {
    let runs = numbers.chunk_by(|one, next| one.saturating_add(1) == *next);
    let shown = |run: &[u64]| match run {
        [one] => one.to_string(),
        run => format!("{}-{}", run.first().unwrap_or(&0), run.last().unwrap_or(&0)),
    };
    runs.map(shown).collect::<Vec<_>>().join(", ")
}

impl PoolPart {
    fn slots(&self, number: u64) -> impl Iterator<Item = u64> + use<> {
        let group = u64::from(self.pool.group.max(1));
        number.saturating_mul(group)..number.saturating_add(1).saturating_mul(group)
    }
}

impl Workers {
    fn part(&self, pool: Pool, by_number: HoldersByNumber, here: Here<'_>) -> PoolPart {
        let mut part = PoolPart { pool, items: Vec::new() };
        for (number, holder) in by_number {
            let mut holder = Visible(&holder).to_string();
            holder.truncate(holder.floor_char_boundary(LABEL_BYTES_MAX / 2));
            let action = self.action(&part, number, here);
            let pool = part.pool.name.clone();
            part.items.push(WorkerItem { worker: Some(number), pool, holder, action });
        }
        part
    }

    fn action(&self, part: &PoolPart, number: u64, here: Here<'_>) -> WorkerAction {
        let groups = part.pool.groups();
        if number >= groups {
            let last = groups.saturating_sub(1);
            let reason = format!(
                "the layout has workers 0 to {last}: name theirs by --layout, or leave this one out by \
                 --except-worker {number}"
            );
            return WorkerAction::Refuse { reason };
        }
        let of = |slot: &u64| {
            here.slots.iter().find(|info| info.pool == part.pool.name && info.slot == *slot)
        };
        let known: Vec<_> = part.slots(number).map(|slot| of(&slot)).collect();
        if let Some(reason) = known.iter().flatten().find_map(|info| self.in_use(info, here.now)) {
            return WorkerAction::Refuse { reason };
        }
        let is_done = |info: &Option<&SlotInfo>| info.is_some_and(|info| info.mark >= self.until);
        if known.iter().all(is_done) {
            return WorkerAction::Keep;
        }
        let until = self.until;
        let until = (until < Mark::MAX).then(|| Zone::default().show(until.unix_millis()));
        WorkerAction::Exclude { until }
    }

    /// Returns the reason why a number may be in use here as well as there.
    fn in_use(&self, info: &SlotInfo, now: UnixMillis) -> Option<String> {
        const TWICE: &str = "so IDs may occur twice already";
        if info.live {
            let host = info.host.as_deref().unwrap_or("another host");
            let owner = &info.owner;
            return Some(format!(
                "{owner} on {host} holds it now, {TWICE}: stop that server first"
            ));
        }
        let until = info.mark.unix_millis();
        let is_ours = info.is_excluded() || info.owner.starts_with(&self.label(""));
        (is_external(&info.pool) && until > now && !is_ours).then(|| {
            let (owner, until) = (&info.owner, Zone::default().show(until));
            format!("it is leased to {owner} until {until}, {TWICE}: stop that client first")
        })
    }

    /// Returns the label of an excluded number.
    fn label(&self, holder: &str) -> String {
        format!("{}: {holder}", self.origin)
    }

    fn items(&self) -> impl Iterator<Item = &WorkerItem> {
        self.parts.iter().flat_map(|part| &part.items)
    }

    pub(super) fn show(&self, json: bool, out: &mut Output) -> Outcome {
        if json {
            return self.items().try_for_each(|item| out.json(item));
        }
        let pools = self.parts.iter().map(|part| part.pool.name.len()).max().unwrap_or(0).max(16);
        out.line(format_args!("{:>7}  {:<pools$}  PLAN", "WORKER", "POOL"))?;
        for WorkerItem { worker, pool, holder, action } in self.items() {
            let worker = worker.map_or_else(|| "?".into(), |worker| worker.to_string());
            let plan = match action {
                WorkerAction::Exclude { until: None } => format!("exclude for ever ({holder})"),
                WorkerAction::Exclude { until: Some(time) } => {
                    format!("exclude until {time} ({holder})")
                }
                WorkerAction::Keep => "nothing to do: already excluded".to_owned(),
                WorkerAction::Refuse { reason } => format!("REFUSED: {reason} ({holder})"),
            };
            out.line(format_args!("{worker:>7}  {pool:<pools$}  {plan}"))?;
        }
        Ok(())
    }

    /// Returns the number of rejected items.
    pub(super) fn refused(&self) -> usize {
        self.items().filter(|item| matches!(item.action, WorkerAction::Refuse { .. })).count()
    }

    pub(super) fn is_done(&self) -> bool {
        self.items().all(|item| item.action == WorkerAction::Keep)
    }

    pub(super) async fn carry_out(&self, store: &dyn Store, data_dir: &Path) -> Outcome {
        for part in &self.parts {
            let mut by_holder: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
            for item in &part.items {
                if let (Some(number), WorkerAction::Exclude { .. }) = (item.worker, &item.action) {
                    by_holder.entry(&item.holder).or_default().extend(part.slots(number));
                }
            }
            for (holder, slots) in by_holder {
                let (pool, label) = (part.pool.clone(), self.label(holder));
                let what = format!("slots {} of pool {} excluded", ranges(&slots), pool.name);
                let until = match self.until {
                    Mark::MAX => "for ever".to_owned(),
                    until => format!("until {}", Zone::default().show(until.unix_millis())),
                };
                let exclude = Exclude { pool, slots, until: self.until, label };
                store.exclude(&exclude, when::now()).await?;
                audit::leave(data_dir, &what, "claimable", format!("{until} ({})", exclude.label));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_in_a_row_are_shown_by_their_ends() {
        for (numbers, shown) in [
            (&[][..], ""),
            (&[7], "7"),
            (&[0, 1, 2, 5, 7, 8], "0-2, 5, 7-8"),
            (&[u64::MAX], "18446744073709551615"),
        ] {
            assert_eq!(super::ranges(numbers), shown);
        }
    }
}
