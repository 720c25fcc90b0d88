//! `snowmint worker accept-lead`: recovery of a pool that is full because marks lie ahead of the
//! clock.

use clap::Args;
use serde_json::{Value, json};
use snowmint_coord::external::is_external;
use snowmint_coord::pool::SlotDefaults;
use snowmint_coord::{ErrorKind, Mark, SlotInfo, Store};
use snowmint_core::UnixMillis;

use crate::audit;
use crate::config::ConfigArgs;
use crate::open::store;
use crate::terminal::exit::{Failure, Outcome, complain};
use crate::terminal::output::{Output, print};
use crate::terminal::plural::counted;
use crate::terminal::when::{self, Zone};

/// Assign worker numbers with marks ahead of the clock, so that their IDs lead the clock.
///
/// Needed when a pool is full (pool_full) because a clock that was far ahead, or a fast-forward,
/// left marks that the clock has not reached. First check that the clocks are right now. No mark
/// moves and no ID comes twice: IDs of such a worker show a future time, and run at half speed
/// until the clock has caught up. Numbers without marks ahead are assigned first. Running servers
/// notice the change within seconds. Without --until it only shows the marks ahead.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint worker accept-lead --config /etc/snowmint.toml
  snowmint worker accept-lead --until 2026-08-01T12:00:00Z
  snowmint worker accept-lead --until now   # accept nothing ahead any more")]
pub(crate) struct AcceptLead {
    #[command(flatten)]
    config_args: ConfigArgs,
    /// Accept marks up to this time; replaces the time accepted before.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl AcceptLead {
    pub(crate) fn run(self) -> Outcome {
        let config = self.config_args.load(Vec::new())?;
        store::check_file(&config)?;
        let until = when::utc(self.until.as_deref())?;
        let (slots, floor) = store::runtime()?.block_on(async {
            let store = store::configured(&config).await?;
            let slots = store.workers(when::now()).await?;
            let floor = floor(store.as_ref()).await?;
            if let Some(until) = until {
                store.accept_lead(Mark::from(until)).await?;
            }
            store.close().await?;
            Ok::<_, Failure>((slots, floor))
        })?;
        let now = when::now();
        let floor = floor.filter(|floor| *floor > now);
        let ahead: Vec<_> = slots.iter().filter(|slot| lies_ahead(slot, now)).collect();
        if let Some(until) = until {
            let before = format!("{} ahead", counted(ahead.len(), "mark"));
            let after = Zone::default().show(until);
            audit::leave(&config.server.data_dir, "worker accept-lead", before, after);
        }
        print(self.json, [in_json(&ahead, floor, until, now)], |out| {
            show(&ahead, floor, until, now, out)
        })?;
        if until.is_none() {
            complain("nothing was changed; say --until TIME to accept marks up to a time");
        }
        Ok(())
    }
}

/// Returns the mark of all unused numbers, where a fast-forward has moved it; `None` if the store
/// does not report it.
async fn floor(store: &dyn Store) -> Outcome<Option<UnixMillis>> {
    match store.ground().await {
        Ok(SlotDefaults { mark, .. }) => Ok(Some(mark.unix_millis())),
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn in_json(
    ahead: &[&SlotInfo],
    floor: Option<UnixMillis>,
    until: Option<UnixMillis>,
    now: UnixMillis,
) -> Value {
    let slots = ahead.iter().map(|slot| {
        let mark = slot.mark.unix_millis();
        json!({
            "pool": slot.pool,
            "slot": slot.slot,
            "mark": Zone::default().show(mark),
            "ahead_ms": mark.since(now),
            "accepted": until.is_some_and(|until| mark <= until),
        })
    });
    let never_used = floor.map(|mark| {
        json!({
            "mark": Zone::default().show(mark),
            "ahead_ms": mark.since(now),
            "accepted": until.is_some_and(|until| mark <= until),
        })
    });
    json!({
        "until": until.map(|until| Zone::default().show(until)),
        "ahead": slots.collect::<Vec<_>>(),
        "never_used": never_used,
    })
}

fn show(
    ahead: &[&SlotInfo],
    floor: Option<UnixMillis>,
    until: Option<UnixMillis>,
    now: UnixMillis,
    out: &mut Output,
) -> Outcome {
    let described = |mark: UnixMillis, claimable: &'static str, unclaimable: &'static str| {
        let suffix = match until {
            None => "",
            Some(until) if mark <= until => claimable,
            Some(_) => unclaimable,
        };
        let ahead_ms = mark.since(now);
        format!("mark {}, {ahead_ms} ms ahead of the clock{suffix}", Zone::default().show(mark))
    };
    for slot in ahead {
        let described = described(slot.mark.unix_millis(), ", can be taken now", ", stays untaken");
        out.line(format_args!("{} {}: {described}", slot.pool, slot.slot))?;
    }
    if let Some(floor) = floor {
        let described = described(floor, ", can be taken now", ", stay untaken");
        out.line(format_args!("all numbers without a holder so far, of each pool: {described}"))?;
    }
    if let Some(until) = until {
        out.line(format_args!("accepted: marks up to {}", Zone::default().show(until)))?;
    }
    Ok(())
}

/// Returns whether a slot is free and its mark lies ahead.
fn lies_ahead(slot: &SlotInfo, now: UnixMillis) -> bool {
    let is_free = !slot.live && !slot.is_excluded() && !is_external(&slot.pool);
    is_free && slot.mark.unix_millis() > now
}
