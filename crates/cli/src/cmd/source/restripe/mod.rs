//! `snowmint source restripe`: turns N deployments that share nothing into M.
//!
//! A single deployment needs one step of its store. With several, no number may come from an old
//! stripe of one and a new stripe of another, so an end number separates them. First every store
//! records that its old stripe ends there (`until`), above all numbers that it has issued. Only
//! when all have confirmed does each get its new stripe, which begins there. An interrupted command
//! leaves stores that mint below or above the end number, never a wrong number; the same
//! command again completes it.
//!
//! The stores of a multi-store source are deployments like any other, which this command opens
//! itself. A store that does not have the source yet gets it above the end number.

mod stripe_target;

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use snowmint_coord::spec::{Period, Plan, SegmentPlan, SourceSpec};
use snowmint_stores::shown;
use snowmint_wire::error::Code;
use snowmint_wire::http::{RestripeRequest, SourceBody};

use super::shown::show;
use crate::client::DEFAULT_SERVER;
use crate::cmd::values;
use crate::config::{Config, Given, warn_of_secret};
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::output::Output;
use stripe_target::StripeTarget;

/// Maximum number of proposed end numbers, each further ahead than the last: deployments may pass
/// one before they record it.
const ATTEMPTS_MAX: u32 = 8;
/// Factor by which the next end number lies further ahead.
const ROOM_FACTOR: u64 = 8;

/// Give deployments that share nothing other stripes of a segment source: deployment J of M gets
/// the numbers J, J + M, J + 2M, ..., above every issued number, while all serve.
///
/// Give every deployment that has the source, including those with an unchanged stripe: otherwise
/// the same number could come twice. If any is unreachable, nothing is changed. The same command
/// again finishes an interrupted one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint source restripe orders --increment 2 --offset 1
  snowmint source restripe orders --increment 1 --offset 1 --first 1000000
  snowmint source restripe orders --increment 3 --stripe 1=10.0.0.1:7700 --stripe 2=10.0.0.2:7700 \\
      --stripe 3=10.0.0.3:7700
  snowmint source restripe orders --increment 3 --config snowmint.toml --stripe 1=a --stripe 2=b --stripe 3=c")]
pub(crate) struct Restripe {
    /// Name of the source.
    #[arg(value_name = "NAME", add = values::sources())]
    name: String,
    /// Number of stripes: the distance from a number to the next.
    #[arg(long, value_name = "M")]
    increment: u64,
    /// Start of the new stripes, above all issued numbers; default: as low as possible.
    #[arg(long, value_name = "NUMBER")]
    first: Option<u64>,
    /// Stripe of the only deployment, 1 to M.
    #[arg(long, value_name = "J", required_unless_present = "stripe", conflicts_with = "stripe")]
    offset: Option<u64>,
    /// Running server of the only deployment.
    #[arg(long, value_name = "URL", default_value = DEFAULT_SERVER, conflicts_with = "stripe")]
    server: String,
    /// Stripe and its holder: a running server of a deployment, or a store of a multi-store source
    /// (its URL, or its name in `stores`); given once for each.
    #[arg(long, value_name = "J=URL", value_parser = stripe)]
    stripe: Vec<(u64, String)>,
    /// Holder whose stripe is removed: the stripe ends where the new ones begin; given once for
    /// each.
    #[arg(long, value_name = "URL", requires = "stripe", conflicts_with_all = ["offset", "server"])]
    remove: Vec<String>,
    /// Configuration file with the names of `stores`.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Namespace of the stores.
    #[arg(long, value_name = "NS")]
    namespace: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn stripe(text: &str) -> Result<(u64, String), String> {
    let (offset, url) =
        text.split_once('=').ok_or("no = found; write J=URL, such as 1=10.0.0.1:7700")?;
    let offset = offset
        .parse()
        .map_err(|_| "stripe number before the = is invalid; write J=URL".to_owned())?;
    Ok((offset, url.to_owned()))
}

/// One deployment, and its last known state.
struct Deployment {
    /// Stripe that it gets, if any.
    offset: Option<u64>,
    url: String,
    stripe_target: StripeTarget,
    /// Last seen source; `None` while the deployment does not have it.
    body: Option<SourceBody>,
}

impl Restripe {
    pub(crate) fn run(self) -> Outcome {
        let mut all = self.read_state()?;
        if !all.iter().all(|one| self.is_done(one)) {
            // A single store needs no end number: its own mark separates old from new. Nor do
            // several stores that keep their stripes and only begin further up.
            let alone = all.len() == 1 && all.iter().all(|one| one.until().is_none());
            let stay = self.first.is_some() && all.iter().all(|one| one.keeps(self.increment));
            let end = if alone || stay { self.first } else { Some(self.choose_end(&mut all)?) };
            self.change(&mut all, end)?;
        }
        let mut out = Output::new();
        for body in all.iter().filter_map(|one| one.body.as_ref()) {
            show(body, self.json, &mut out)?;
        }
        out.flush()
    }

    /// Returns whether a deployment needs no further change.
    fn is_done(&self, one: &Deployment) -> bool {
        match one.offset {
            Some(_) => {
                one.has(self.increment) && self.first.is_none_or(|first| one.first() >= first)
            }
            None => one.until().is_some(),
        }
    }

    fn configuration(&self) -> Outcome<Config> {
        let namespace = self.namespace.as_ref();
        let flags = namespace.map(|name| Given::flag("store.namespace", "--namespace", name));
        Config::load(self.config.as_deref(), flags.into_iter().collect())
    }

    /// Reads the current state of every deployment.
    fn read_state(&self) -> Outcome<Vec<Deployment>> {
        let lone = self.offset.map(|offset| (offset, self.server.clone()));
        let stripes: Vec<_> = lone.into_iter().chain(self.stripe.iter().cloned()).collect();
        for (index, (offset, url)) in stripes.iter().enumerate() {
            if !(1..=self.increment).contains(offset) {
                return Err(Failure::usage(format!(
                    "stripe {offset} is outside 1 to {}; use one of these",
                    self.increment
                )));
            }
            let before = stripes.iter().take(index);
            if before.clone().any(|(other, _)| other == offset) {
                return Err(Failure::usage(format!(
                    "stripe {offset} is given twice; name it once"
                )));
            }
            if before.clone().any(|(_, other)| other == url) {
                return Err(Failure::usage(format!("{} is given twice; name it once", shown(url))));
            }
        }
        let config = self.configuration()?;
        let read_state = |(offset, url): (Option<u64>, String)| {
            let option = if offset.is_some() { "--stripe" } else { "--remove" };
            let instead = "put the URL under [stores] as env:NAME or file:PATH, and give \
                           that store's name here instead";
            warn_of_secret(&url, option, instead);
            let stripe_target = StripeTarget::open(&url, &config).map_err(unchanged)?;
            let body = stripe_target.read_state(&self.name).map_err(unchanged)?;
            let url = shown(&url);
            if body.as_ref().is_some_and(|body| body.next.is_none()) {
                let reason = format!(
                    "source {:?} of {url} has no stripe; only a segment source of one store has \
                     one",
                    self.name
                );
                return Err(Failure::usage(reason));
            }
            Ok(Deployment { offset, url, stripe_target, body })
        };
        let stay = stripes.into_iter().map(|(offset, url)| (Some(offset), url));
        let removed = self.remove.iter().map(|url| (None, url.clone()));
        let all: Vec<_> = stay.chain(removed).map(read_state).collect::<Outcome<_>>()?;
        if let Some(lost) = all.iter().find(|one| one.body.is_none() && one.offset.is_none()) {
            let (name, url) = (&self.name, &lost.url);
            let reason = format!("source {name:?} is not defined in {url}; leave it out");
            return Err(unchanged(Failure::usage(reason)));
        }
        if all.iter().all(|one| one.body.is_none()) {
            let reason = format!("no deployment has source {:?}; define it first", self.name);
            return Err(unchanged(Failure::usage(reason)));
        }
        Ok(all)
    }

    /// Chooses an end number that no deployment has passed, and sets it as the end of all old
    /// stripes: they mint below it, and the new ones above.
    fn choose_end(&self, all: &mut [Deployment]) -> Outcome<u64> {
        if all.iter().any(|one| one.has(self.increment)) {
            return self.resume(all);
        }
        if let Some(first) = self.first {
            if self.set_ends(all, first)? {
                return Ok(first);
            }
            let reason = format!(
                "--first {first} is too low: numbers below {} of source {:?} were issued; raise it",
                highest(all),
                self.name
            );
            return Err(self.undo(all, Failure::usage(reason)));
        }
        let mut room = all.iter().map(Deployment::stride).fold(1, u64::max);
        for _ in 0..ATTEMPTS_MAX {
            let highest = highest(all);
            let end = highest.saturating_add(self.within_period(all, highest, room)?);
            if self.set_ends(all, end)? {
                return Ok(end);
            }
            room = room.saturating_mul(ROOM_FACTOR);
        }
        let reason = format!(
            "source {:?} issues numbers too fast: {ATTEMPTS_MAX} proposed end numbers were passed; \
             retry later",
            self.name
        );
        Err(self.undo(all, Failure::unavailable(reason)))
    }

    /// Sets this number as the end of all old stripes. Returns whether no deployment had passed it.
    fn set_ends(&self, all: &mut [Deployment], end: u64) -> Outcome<bool> {
        let Err(failure) = self.end_old_stripes(all, end) else {
            return Ok(!has_passed(all, end));
        };
        // A deployment that has passed the number rejects the end.
        self.refresh(all);
        if has_passed(all, end) { Ok(false) } else { Err(self.undo(all, failure)) }
    }

    /// Returns the part of `room` within the current period of serials. An end number in a later
    /// period would end the numbers of the current one.
    fn within_period(&self, all: &[Deployment], highest: u64, room: u64) -> Outcome<u64> {
        let keys = all.iter().find_map(|one| one.body.as_ref()).map(|body| body.keys.clone());
        let json = Value::Object(keys.unwrap_or_default()).to_string();
        let plan = SourceSpec::from_json(&json).and_then(|spec| spec.check());
        let Ok(Plan::Segment(SegmentPlan { serial: Some(serial), .. })) = plan else {
            return Ok(room);
        };
        room_in(serial.of(highest), highest, room).ok_or_else(|| {
            unchanged(Failure::unavailable(format!(
                "source {:?} has no serials left in this period; retry in the next",
                self.name
            )))
        })
    }

    /// Returns the number that an earlier command agreed on: some deployments have their new stripe
    /// already.
    fn resume(&self, all: &[Deployment]) -> Outcome<u64> {
        let (done, left): (Vec<_>, Vec<_>) =
            all.iter().filter(|one| one.body.is_some()).partition(|one| one.has(self.increment));
        if left.is_empty() {
            // All that are left are new. Their stripes may be those of deployments that are lost or
            // have left. So they begin above all numbers issued since, not where the other stripes
            // began.
            let highest = highest(all);
            return Ok(self.first.map_or(highest, |first| Ord::max(first, highest)));
        }
        let mut ends = left.iter().map(|one| one.until());
        let end = ends.next().flatten();
        let agreed = end.filter(|end| {
            ends.all(|other| other == Some(*end)) && done.iter().all(|one| one.first() >= *end)
        });
        if let (Some(first), Some(agreed)) = (self.first, agreed)
            && first != agreed
        {
            return Err(Failure::refused(
                Code::Conflict,
                format!(
                    "an earlier command began the new stripes at {agreed}, not at {first}; finish it \
                 without --first"
                ),
            ));
        }
        agreed.ok_or_else(|| {
            let urls = |some: &[&Deployment]| {
                some.iter().map(|one| one.url.as_str()).collect::<Vec<_>>().join(", ")
            };
            Failure::refused(Code::Conflict, format!(
                "{} already have stripes of {}, but {} have no end number that fits, so numbers could \
                 repeat; give all deployments another number of stripes first",
                urls(&done),
                self.increment,
                urls(&left)
            ))
        })
    }

    fn end_old_stripes(&self, all: &mut [Deployment], end: u64) -> Outcome {
        for one in all.iter_mut().filter(|one| one.body.is_some()) {
            one.body = Some(one.stripe_target.end(&self.name, Some(end))?);
        }
        Ok(())
    }

    /// Reads the current state of all deployments, as far as they respond.
    fn refresh(&self, all: &mut [Deployment]) {
        for one in all.iter_mut().filter(|one| one.body.is_some()) {
            if let Ok(Some(body)) = one.stripe_target.read_state(&self.name) {
                one.body = Some(body);
            }
        }
    }

    /// Removes the ends of the old stripes, as far as servers respond.
    fn undo(&self, all: &mut [Deployment], reason: Failure) -> Failure {
        let mut left = Vec::new();
        for one in all.iter_mut().filter(|one| one.body.is_some()) {
            match one.stripe_target.end(&self.name, None) {
                Ok(body) => one.body = Some(body),
                Err(_) => left.push(one.url.as_str()),
            }
        }
        if left.is_empty() {
            return unchanged(reason);
        }
        let still = format!(
            "no stripe was changed, but the ends of {} may be set; repeat this command once all \
             can be reached",
            left.join(", ")
        );
        reason.after(&still)
    }

    fn change(&self, all: &mut [Deployment], end: Option<u64>) -> Outcome {
        let count = all.len();
        let keys = all.iter().find_map(|one| one.body.as_ref()).map(|body| body.keys.clone());
        for (index, one) in all.iter_mut().enumerate() {
            let Some(offset) = one.offset.filter(|_| !self.is_done(one)) else { continue };
            let increment = self.increment;
            let changed = match &one.body {
                Some(body) => {
                    let version = Some(body.version);
                    let request = RestripeRequest { offset, increment, first: end, version };
                    one.stripe_target.restripe(&self.name, request)
                }
                None => {
                    let mut keys = keys.clone().unwrap_or_default();
                    for key in ["until", "first_at"] {
                        keys.remove(key);
                    }
                    keys.insert("offset".into(), offset.into());
                    keys.insert("increment".into(), increment.into());
                    keys.insert("first".into(), end.unwrap_or(offset).into());
                    one.stripe_target.define(&self.name, keys)
                }
            };
            let changed = changed.map_err(|failure| {
                failure.after(&format!(
                    "{index} of {count} deployments were changed; correct this error and repeat \
                     the command for the others"
                ))
            })?;
            one.body = Some(changed);
        }
        Ok(())
    }
}

/// Returns the number below which the deployments have issued all numbers.
fn highest(all: &[Deployment]) -> u64 {
    all.iter().map(Deployment::next).fold(0, u64::max)
}

/// Returns whether the next number of a deployment lies above the end number.
fn has_passed(all: &[Deployment], end: u64) -> bool {
    all.iter().any(|one| one.next() > end)
}

/// Returns at most `room`, and at most half of the period's numbers above `highest`; `None` if
/// there are none.
fn room_in(period: Period, highest: u64, room: u64) -> Option<u64> {
    let half = period.end.saturating_sub(highest) / 2;
    (half > 0).then(|| room.min(half))
}

fn unchanged(reason: impl Into<Failure>) -> Failure {
    reason.into().after("nothing was changed")
}

impl Deployment {
    fn number(&self, key: &str) -> Option<u64> {
        self.body.as_ref()?.keys.get(key).and_then(Value::as_u64)
    }

    fn until(&self) -> Option<u64> {
        self.number("until")
    }

    /// Returns whether it keeps its present stripe among this many.
    fn keeps(&self, increment: u64) -> bool {
        self.offset.is_some()
            && (self.number("offset"), self.number("increment")) == (self.offset, Some(increment))
    }

    /// Returns whether it has its stripe among this many, without an end.
    fn has(&self, increment: u64) -> bool {
        self.keeps(increment) && self.until().is_none()
    }

    /// Returns the lowest number of its stripe.
    fn first(&self) -> u64 {
        self.number("first").or(self.offset).unwrap_or(0)
    }

    /// Returns the number below which all numbers are issued.
    fn next(&self) -> u64 {
        let Some(body) = &self.body else { return 0 };
        let next = body.next.as_deref().and_then(|next| next.parse().ok());
        // A deployment without numbers left is at the very end.
        next.unwrap_or(u64::MAX)
    }

    /// Returns how far one step of the smallest size moves it.
    fn stride(&self) -> u64 {
        let step = self.body.as_ref().and_then(|body| body.keys.get("step"));
        let size = ["min", "size"].iter().find_map(|key| step?.get(key)?.as_u64());
        let increment = self.number("increment").unwrap_or(1);
        size.unwrap_or(1).saturating_mul(increment).saturating_mul(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restripe_end_number_lies_in_the_current_period() {
        let period = Period { first: 202_601, end: 202_700 };
        for (highest, room, parts) in [
            (202_601, 10, Some(10)),
            (202_601, 400, Some(49)),
            (202_690, 400, Some(5)),
            (202_698, 400, Some(1)),
            (202_699, 400, None),
            (202_700, 400, None),
        ] {
            assert_eq!(room_in(period, highest, room), parts, "{highest} {room}");
        }
    }
}
