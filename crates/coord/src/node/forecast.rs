//! Forecast of supplies that run out: the years of layouts, and the numbers of pools.

use std::collections::BTreeMap;
use std::fmt;

use snowmint_core::layout::Lifetime;
use snowmint_core::{Rfc3339, UnixMillis};

use crate::error::{Error, Result};
use crate::ids::Mark;
use crate::model::catalog::{Definition, SourceState};
use crate::model::pool::{Pool, Reuse, pool_of};
use crate::model::slot::SlotInfo;
use crate::spec::{MinterPlan, Plan, SnowflakePlan, SourceSpec};

/// Share of a pool's numbers in use, in percent, above which a warning is due.
const POOL_USED_WARN_PERCENT: u64 = 80;

/// Forecast of how long a supply lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Forecast {
    /// The layout of a source.
    Layout {
        /// The source.
        source: String,
        /// Remaining years of the layout.
        life: Lifetime,
        /// Whether the source accepts that they end (`short_life`).
        accepted: bool,
    },
    /// The worker numbers of a pool.
    Pool(PoolUse),
}

/// Use of a pool's worker numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolUse {
    /// The pool.
    pub pool: String,
    /// Total number of worker numbers.
    pub numbers: u64,
    /// Numbers that live members hold.
    pub held: u64,
    /// Free numbers that no member can claim now, because their marks lie ahead.
    pub ahead: u64,
    /// Excluded numbers ([`exclude`](crate::model::exclude)).
    pub excluded: u64,
    /// Numbers used up, in a pool without reuse.
    pub used_up: Option<u64>,
}

impl PoolUse {
    fn of(pool: &Pool, slots: &[&SlotInfo], now: UnixMillis) -> Self {
        let group_size = u64::from(pool.group.max(1));
        // Key: the number. Value: whether a member holds it, and the lowest of its marks.
        let mut groups: BTreeMap<u64, (bool, UnixMillis)> = BTreeMap::new();
        for slot in slots {
            let mark = slot.mark.unix_millis();
            let group = groups.entry(slot.slot / group_size).or_insert((false, mark));
            *group = (group.0 || slot.live, group.1.min(mark));
        }
        let count = |counted: &dyn Fn(&(bool, UnixMillis)) -> bool| {
            u64::try_from(groups.values().filter(|group| counted(group)).count())
                .unwrap_or(u64::MAX)
        };
        let never = Mark::MAX.unix_millis();
        let used_up = || groups.keys().next_back().map_or(0, |last| last.saturating_add(1));
        Self {
            pool: pool.name.clone(),
            numbers: pool.groups(),
            held: count(&|(live, _)| *live),
            ahead: count(&|(live, mark)| !live && *mark > now && *mark != never),
            excluded: count(&|(_, mark)| *mark == never),
            used_up: (pool.reuse == Reuse::Never).then(used_up),
        }
    }

    /// Returns how many numbers are left: neither in use nor used up.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.numbers.saturating_sub(self.in_use())
    }

    fn in_use(&self) -> u64 {
        self.used_up
            .unwrap_or_else(|| self.held.saturating_add(self.ahead).saturating_add(self.excluded))
    }

    fn is_short(&self) -> bool {
        // A layout without worker bits has a single number on purpose.
        let limit = u128::from(self.numbers) * u128::from(POOL_USED_WARN_PERCENT);
        self.numbers > 1 && u128::from(self.in_use()) * 100 >= limit
    }
}

impl Forecast {
    /// Returns how long the layout of a source lasts.
    #[must_use]
    pub fn of_layout(source: &str, plan: &SnowflakePlan, now: UnixMillis) -> Self {
        let (source, life) = (source.to_owned(), plan.layout.lifetime_at(now));
        Self::Layout { source, life, accepted: plan.short_life }
    }

    /// Returns whether an operator should act.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        match self {
            Self::Layout { life, .. } => !matches!(life, Lifetime::Long { .. }),
            Self::Pool(used) => used.is_short(),
        }
    }

    /// Returns whether it is too late for planning: minting is impossible, or ends within a year.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        match self {
            Self::Layout { life: Lifetime::EndsWithinYear { .. }, accepted, .. } => !accepted,
            Self::Layout { life, .. } => !life.is_enough(),
            Self::Pool(used) => used.in_use() >= used.numbers && used.numbers > 1,
        }
    }
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout { source, life, .. } => write!(f, "the layout of {source} {life}"),
            Self::Pool(used) => {
                let PoolUse { pool, numbers, held, ahead, excluded, used_up } = used;
                match used_up {
                    Some(used_up) => {
                        write!(
                            f,
                            "of {numbers} numbers of pool {pool}, {used_up} {} used up for good",
                            if *used_up == 1 { "is" } else { "are" }
                        )?;
                    }
                    None => write!(
                        f,
                        "of {numbers} worker numbers of pool {pool}, live members hold {held}; marks \
                         ahead of the clock: {ahead}"
                    )?,
                }
                if *excluded > 0 && used_up.is_none() {
                    write!(f, "; excluded for ever: {excluded}")?;
                }
                if used.is_short() {
                    f.write_str(": plan a layout with more worker bits, or run fewer processes")?;
                }
                Ok(())
            }
        }
    }
}

/// Returns how long the sources of a catalog last: the layout of each enabled source, and each pool
/// that they use with the rule `reuse`. `slots` are all slots ever claimed; `now` is the wall time.
#[must_use]
pub fn forecast(
    definitions: &[Definition],
    slots: &[SlotInfo],
    reuse: Reuse,
    now: UnixMillis,
) -> Vec<Forecast> {
    let mut forecasts = Vec::new();
    let mut pools: BTreeMap<String, Pool> = BTreeMap::new();
    for definition in definitions {
        let Some(plan) = enabled_plan(definition) else { continue };
        forecasts.push(Forecast::of_layout(&definition.name, &plan, now));
        if plan.minter_plan == MinterPlan::Process {
            let pool = pool_of(&plan.layout, reuse);
            pools.insert(pool.name.clone(), pool);
        }
    }
    for pool in pools.values() {
        let of_pool: Vec<_> = slots.iter().filter(|slot| slot.pool == pool.name).collect();
        if !of_pool.is_empty() {
            forecasts.push(Forecast::Pool(PoolUse::of(pool, &of_pool, now)));
        }
    }
    forecasts
}

fn enabled_plan(definition: &Definition) -> Option<SnowflakePlan> {
    if definition.state != SourceState::Enabled {
        return None;
    }
    // Definitions that this version cannot read are reported where the source is used.
    SourceSpec::from_stored(&definition.spec).ok()?.snowflake()
}

/// Rejects a layout that ends within a year, unless the source accepts it.
///
/// # Errors
/// `Invalid`, with the remedy.
pub(crate) fn check_life(name: &str, plan: &Plan, now: UnixMillis) -> Result<()> {
    let Plan::Snowflake(plan) = plan else { return Ok(()) };
    match plan.layout.lifetime_at(now) {
        Lifetime::Spent { end } if !plan.short_life => Err(Error::invalid(format!(
            "layout of source {name:?} ended at {}; choose a newer epoch or more time bits, or set \
             short_life = true",
            Rfc3339(end)
        ))),
        Lifetime::EndsWithinYear { end, .. } if !plan.short_life => Err(Error::invalid(format!(
            "layout of source {name:?} ends at {}, within a year; choose a newer epoch or more \
             time bits, or set short_life = true",
            Rfc3339(end)
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use snowmint_core::layout::{LIFETIME_WARN_MS, YEAR_MS};

    use super::*;
    use crate::ids::{Mark, Term};
    use crate::model::segment::SegmentRow;

    fn definition(spec: &str) -> Definition {
        Definition {
            name: "orders".into(),
            spec: spec.into(),
            identity: "{}".into(),
            version: 1,
            state: SourceState::Enabled,
            segment: SegmentRow::NEW,
        }
    }

    fn slot(pool: &str, slot: u64, mark: u64, live: bool) -> SlotInfo {
        SlotInfo {
            pool: pool.into(),
            slot,
            term: Term::new(1),
            mark: Mark::new(mark),
            owner: String::new(),
            holder: None,
            host: None,
            process: None,
            joined_at: None,
            held_since: UnixMillis::ZERO,
            renewed_at: None,
            live,
            kept_away: false,
        }
    }

    #[test]
    fn layouts_are_warned_about_years_ahead() {
        let all = [definition("{}")];
        let plan = enabled_plan(&all[0]).unwrap();
        let end = plan.layout.end();
        for (left_ms, warning, wrong) in [
            (LIFETIME_WARN_MS, false, false),
            (LIFETIME_WARN_MS - 1, true, false),
            (YEAR_MS, true, false),
            (YEAR_MS - 1, true, true),
            (0, true, true),
        ] {
            let now = end.saturating_sub(left_ms);
            let [one] = &forecast(&all, &[], Reuse::Recycle, now)[..] else { panic!("one layout") };
            assert_eq!((one.is_warning(), one.is_wrong()), (warning, wrong), "{one}");
            assert_eq!(check_life("orders", &Plan::Snowflake(plan.clone()), now).is_err(), wrong);
        }
        let insisted = Plan::Snowflake(SnowflakePlan { short_life: true, ..plan });
        check_life("orders", &insisted, end).unwrap();
        let disabled = Definition { state: SourceState::Disabled, ..definition("{}") };
        assert_eq!(forecast(&[disabled], &[], Reuse::Recycle, end), []);
    }

    #[test]
    fn numbers_are_seen_to_run_out_before_they_do() {
        const NOW: UnixMillis = UnixMillis::new(1_800_000_000_000);
        let all = [definition(r#"{"layout":"time=41,worker=2,sequence=12"}"#)];
        let held =
            |count| -> Vec<_> { (0..count).map(|n| slot("workers-2", n, 0, true)).collect() };
        let of = |slots: &[SlotInfo]| match forecast(&all, slots, Reuse::Recycle, NOW).pop() {
            Some(pool @ Forecast::Pool(_)) => (pool.is_warning(), pool.is_wrong()),
            other => panic!("{other:?}"),
        };
        assert_eq!(of(&held(3)), (false, false));
        assert_eq!(of(&held(4)), (true, true));
        let mut slots = held(3);
        slots.push(slot("workers-2", 3, NOW.get(), false));
        assert_eq!(of(&slots), (false, false), "free");
        slots.push(slot("workers-2", 3, NOW.get() + 1, false));
        slots.remove(3);
        assert_eq!(of(&slots), (true, true), "cannot be taken now");

        let all = [definition(r#"{"layout":"time=41,worker=10,sequence=12"}"#)];
        for (last, warning) in [(818, false), (819, true)] {
            let slots = [slot("workers-10", last, 0, false)];
            let pool = forecast(&all, &slots, Reuse::Never, NOW).pop().unwrap();
            assert_eq!((pool.is_warning(), pool.is_wrong()), (warning, false), "{pool}");
        }
    }
}
