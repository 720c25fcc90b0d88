//! Worker numbers of another system, which are excluded here.

use std::collections::BTreeMap;

use clap::Args;
use serde::{Serialize, Serializer};
use snowmint_coord::exclude::LABEL_BYTES_MAX;
use snowmint_coord::external::{external_pool, is_external};
use snowmint_coord::label::Visible;
use snowmint_coord::pool::CLAIM_COUNT_MAX;
use snowmint_coord::spec::{Plan, SnowflakePlan, SourceSpec, Span};
use snowmint_coord::{Exclude, Mark, Pool, Reuse, SlotInfo, pool_of};
use snowmint_core::layout::OutOfRange;
use snowmint_core::{Layout, UnixMillis};
use snowmint_stores::legacy::LegacyWorker;
use snowmint_wire::error::Code;

use super::apply::{self, ImportPlan, Step};
use super::common::ImportContext;
use crate::audit;
use crate::config::Config;
use crate::open::store;
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
struct WorkerItem {
    /// Worker number; `None` if the stored text is not a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<u64>,
    #[serde(serialize_with = "name_of")]
    pool: Pool,
    /// Holder in the other system.
    holder: String,
    #[serde(flatten, serialize_with = "apply::step")]
    action: Step<WorkerAction>,
}

fn name_of<S: Serializer>(pool: &Pool, serializer: S) -> Result<S::Ok, S::Error> {
    pool.name.serialize(serializer)
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
}

/// Plan for all worker numbers.
pub(super) struct Workers {
    origin: &'static str,
    until: Mark,
    /// Items of one pool after those of another.
    items: Vec<WorkerItem>,
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
        ctx: &ImportContext,
    ) -> Outcome<Workers> {
        let plan = self.named(system.layout)?;
        let until = match self.margin {
            Some(margin) => {
                let theirs = self.layout.as_ref().map_or(system.shipped, |_| plan.layout);
                let until = ctx.now.saturating_add(margin.ms());
                check_passed(theirs, &ctx.layouts(), until)?;
                Mark::from(until)
            }
            None => Mark::MAX,
        };
        let pool = pool_of(&plan.layout, ctx.config.worker.reuse());
        let (mut all, mut by_space) =
            (HoldersByNumber::new(), BTreeMap::<String, HoldersByNumber>::new());
        let mut workers = Workers { origin: system.name, until, items: Vec::new() };
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
                    let (pool, action) = (pool.clone(), Err(reason));
                    workers.items.push(WorkerItem { worker: None, pool, holder, action });
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
        for (pool, by_number) in [(pool, all)].into_iter().chain(external) {
            check_count(&by_number)?;
            for (number, holder) in by_number {
                let mut holder = Visible(&holder).to_string();
                holder.truncate(holder.floor_char_boundary(LABEL_BYTES_MAX / 2));
                let action = workers.step(&pool, number, ctx);
                let (worker, pool) = (Some(number), pool.clone());
                workers.items.push(WorkerItem { worker, pool, holder, action });
            }
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
        return Err(Failure::refused(
            Code::Conflict,
            format!(
                "nothing was changed: {} is outside the other system's layout, from {from} to {end}, and \
             a later epoch repeats its IDs; {WAY}",
                Zone::default().show(until)
            ),
        ));
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
        Some((source, layout)) => Err(Failure::refused(
            Code::Conflict,
            format!(
                "nothing was changed: source {source:?} has epoch {}, theirs has {from}, so it repeats \
             their IDs; {WAY}, or set sources.builtin = false",
                Zone::default().show(layout.epoch())
            ),
        )),
    }
}

fn check_count(by_number: &HoldersByNumber) -> Outcome {
    let count = u64::try_from(by_number.len()).unwrap_or(u64::MAX);
    if count <= CLAIM_COUNT_MAX.into() {
        return Ok(());
    }
    Err(Failure::refused(
        Code::Conflict,
        format!(
            "nothing was changed: {count} worker numbers exceed {CLAIM_COUNT_MAX}; with worker.reuse = \
         \"never\" the numbers here begin above all of theirs"
        ),
    ))
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

/// Returns the slots of a worker number.
fn slots(pool: &Pool, number: u64) -> impl Iterator<Item = u64> + use<> {
    let group = u64::from(pool.group.max(1));
    number.saturating_mul(group)..number.saturating_add(1).saturating_mul(group)
}

impl Workers {
    fn step(&self, pool: &Pool, number: u64, ctx: &ImportContext) -> Step<WorkerAction> {
        let groups = pool.groups();
        if number >= groups {
            let last = groups.saturating_sub(1);
            return Err(format!(
                "the layout has workers 0 to {last}: name theirs by --layout, or leave this one out by \
                 --except-worker {number}"
            ));
        }
        let of = |slot| ctx.slots.iter().find(|info| info.pool == pool.name && info.slot == slot);
        let known: Vec<_> = slots(pool, number).map(of).collect();
        if let Some(reason) = known.iter().flatten().find_map(|info| self.in_use(info, ctx.now)) {
            return Err(reason);
        }
        let is_done = |info: &Option<&SlotInfo>| info.is_some_and(|info| info.mark >= self.until);
        if known.iter().all(is_done) {
            return Ok(WorkerAction::Keep);
        }
        let until = self.until;
        let until = (until < Mark::MAX).then(|| Zone::default().show(until.unix_millis()));
        Ok(WorkerAction::Exclude { until })
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

    pub(super) async fn carry_out(&self, config: &Config) -> Outcome {
        if self.items.iter().all(|item| item.action == Ok(WorkerAction::Keep)) {
            return Ok(());
        }
        let store = store::configured(config).await?;
        let until = match self.until {
            Mark::MAX => "for ever".to_owned(),
            until => format!("until {}", Zone::default().show(until.unix_millis())),
        };
        for items in self.items.chunk_by(|one, next| one.pool == next.pool) {
            let mut by_holder: BTreeMap<&str, Exclude> = BTreeMap::new();
            for WorkerItem { worker, pool, holder, action } in items {
                let (Some(number), Ok(WorkerAction::Exclude { .. })) = (worker, action) else {
                    continue;
                };
                let new = || Exclude {
                    pool: pool.clone(),
                    slots: Vec::new(),
                    until: self.until,
                    label: self.label(holder),
                };
                by_holder.entry(holder).or_insert_with(new).slots.extend(slots(pool, *number));
            }
            for exclude in by_holder.into_values() {
                let Exclude { pool, slots, label, .. } = &exclude;
                let what = format!("slots {} of pool {} excluded", ranges(slots), pool.name);
                store.exclude(&exclude, when::now()).await?;
                let data_dir = &config.server.data_dir;
                audit::leave(data_dir, &what, "claimable", format!("{until} ({label})"));
            }
        }
        Ok(store.close().await?)
    }
}

impl ImportPlan for Workers {
    fn show(&self, json: bool, out: &mut Output) -> Outcome {
        let items = &self.items;
        if json {
            return items.iter().try_for_each(|item| out.json(item));
        }
        let pools = items.iter().map(|item| item.pool.name.len()).max().unwrap_or(0).max(16);
        out.line(format_args!("{:>7}  {:<pools$}  PLAN", "WORKER", "POOL"))?;
        for WorkerItem { worker, pool, holder, action } in items {
            let worker = worker.map_or_else(|| "?".into(), |worker| worker.to_string());
            let plan = match action {
                Ok(WorkerAction::Exclude { until: None }) => format!("exclude for ever ({holder})"),
                Ok(WorkerAction::Exclude { until: Some(time) }) => {
                    format!("exclude until {time} ({holder})")
                }
                Ok(WorkerAction::Keep) => "nothing to do: already excluded".to_owned(),
                Err(reason) => format!("REFUSED: {reason} ({holder})"),
            };
            out.line(format_args!("{worker:>7}  {:<pools$}  {plan}", pool.name))?;
        }
        Ok(())
    }

    fn refused(&self) -> Option<String> {
        let refused = self.items.iter().filter(|item| item.action.is_err()).count();
        (refused > 0).then(|| format!("{refused} worker numbers"))
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
