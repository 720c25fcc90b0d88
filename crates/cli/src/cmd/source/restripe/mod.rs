//! `snowmint source restripe`: how N installations that share nothing become M.
//!
//! One installation is one step of its store. With several, no number may come from an old stripe of one
//! and a new stripe of another, so there is a number that parts them: first every store is told that its
//! old stripe ends there (`until`), above everything that it has handed out; only when all have answered
//! does each get its new stripe, which begins there. A command that is cut off leaves stores that mint
//! below that number or above it, never a wrong one, and is taken up by giving it again.
//!
//! The stores of one source with several are installations like any other, which this command opens
//! itself; one that does not have the source yet gets it above that number.

mod place;

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use snowmint_coord::spec::{Period, Plan, SegmentPlan, SourceSpec};
use snowmint_stores::shown;
use snowmint_wire::http::{RestripeRequest, SourceBody};

use super::show;
use crate::client::DEFAULT_SERVER;
use crate::config::{Config, Given, warn_of_secret};
use crate::exit::{Failure, Outcome};
use crate::output::Output;
use place::Place;

/// How often a number is chosen that stores overtake while they are told of it.
const TRIES: u32 = 8;
/// How much further away the next one is.
const FURTHER: u64 = 8;

/// Give installations that share nothing other stripes of a segment source: installation J of M has the
/// numbers J, J + M, J + 2M, ... While they serve, above every number that was handed out.
///
/// Name every installation that has the source, also those whose stripe stays: else the same number
/// could come twice. When not all can be reached, nothing is changed. A command that was cut off is
/// finished by giving it again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint source restripe orders --increment 2 --offset 1
  snowmint source restripe orders --increment 1 --offset 1 --first 1000000
  snowmint source restripe orders --increment 3 --stripe 1=10.0.0.1:7700 --stripe 2=10.0.0.2:7700 \\
      --stripe 3=10.0.0.3:7700
  snowmint source restripe orders --increment 3 --config snowmint.toml --stripe 1=a --stripe 2=b --stripe 3=c")]
pub(crate) struct Restripe {
    /// The source.
    #[arg(value_name = "NAME")]
    name: String,
    /// How many stripes there are: the distance from a number to the next.
    #[arg(long, value_name = "M")]
    increment: u64,
    /// Where the new stripes begin: above all numbers that were handed out. Without it, as soon as can be.
    #[arg(long, value_name = "NUMBER")]
    first: Option<u64>,
    /// The stripe of the only installation, 1 to M.
    #[arg(long, value_name = "J", required_unless_present = "stripe", conflicts_with = "stripe")]
    offset: Option<u64>,
    /// A running server of the only installation.
    #[arg(long, value_name = "URL", default_value = DEFAULT_SERVER, conflicts_with = "stripe")]
    server: String,
    /// A stripe, and who gets it: a running server of an installation, or a store of a source that has
    /// several (its URL, or its name in `stores`). Once for each.
    #[arg(long, value_name = "J=URL", value_parser = stripe)]
    stripe: Vec<(u64, String)>,
    /// Who has a stripe and gets none any more: it ends where the new stripes begin. Once for each.
    #[arg(long, value_name = "URL", requires = "stripe")]
    leaves: Vec<String>,
    /// The configuration file whose `stores` are named.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The namespace of stores.
    #[arg(long, value_name = "NS")]
    namespace: Option<String>,
    /// JSON.
    #[arg(long)]
    json: bool,
}

fn stripe(text: &str) -> Result<(u64, String), String> {
    let (offset, url) = text.split_once('=').ok_or("write J=URL, such as 1=10.0.0.1:7700")?;
    let offset = offset
        .parse()
        .map_err(|_| "the number of a stripe stands before the =: write J=URL".to_owned())?;
    Ok((offset, url.to_owned()))
}

/// One installation, and what was said of it last.
struct Installation {
    /// The stripe that it gets, if any.
    offset: Option<u64>,
    url: String,
    place: Place,
    /// None while it does not have the source.
    body: Option<SourceBody>,
}

impl Restripe {
    pub(crate) fn run(self) -> Outcome {
        let mut all = self.look()?;
        if !all.iter().all(|one| self.is_done(one)) {
            // A lone store needs no number that parts old from new: its own mark does. Nor do several whose
            // stripes stay what they are, and only begin further up.
            let alone = all.len() == 1 && all.iter().all(|one| one.until().is_none());
            let stay = self.first.is_some() && all.iter().all(|one| one.keeps(self.increment));
            let parting = if alone || stay { self.first } else { Some(self.part(&mut all)?) };
            self.change(&mut all, parting)?;
        }
        let mut out = Output::new();
        for body in all.iter().filter_map(|one| one.body.as_ref()) {
            show(body, self.json, &mut out)?;
        }
        out.flush()
    }

    /// Whether nothing is left to be done about one.
    fn is_done(&self, one: &Installation) -> bool {
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

    /// Asks every installation what it has.
    fn look(&self) -> Outcome<Vec<Installation>> {
        let lone = self.offset.map(|offset| (offset, self.server.clone()));
        let stripes: Vec<_> = lone.into_iter().chain(self.stripe.iter().cloned()).collect();
        for (index, (offset, url)) in stripes.iter().enumerate() {
            if !(1..=self.increment).contains(offset) {
                return Err(Failure::usage(format!(
                    "stripe {offset} of {}: take 1 to {}",
                    self.increment, self.increment
                )));
            }
            let before = stripes.iter().take(index);
            if before.clone().any(|(other, _)| other == offset) {
                return Err(Failure::usage(format!("stripe {offset} is given twice")));
            }
            if before.clone().any(|(_, other)| other == url) {
                return Err(Failure::usage(format!(
                    "{} is given twice: it has one stripe",
                    shown(url)
                )));
            }
        }
        let config = self.configuration()?;
        let look = |(offset, url): (Option<u64>, String)| {
            let option = if offset.is_some() { "--stripe" } else { "--leaves" };
            let instead =
                "name it under [stores], which takes env:NAME and file:PATH, and say that name";
            warn_of_secret(&url, option, instead);
            let place = Place::open(&url, &config).map_err(unchanged)?;
            let body = place.look(&self.name).map_err(unchanged)?;
            let url = shown(&url);
            if body.as_ref().is_some_and(|body| body.next.is_none()) {
                let why = format!(
                    "source {} of {url} has no stripe: it is no segment source of one store",
                    self.name
                );
                return Err(Failure::usage(why));
            }
            Ok(Installation { offset, url, place, body })
        };
        let stay = stripes.into_iter().map(|(offset, url)| (Some(offset), url));
        let leave = self.leaves.iter().map(|url| (None, url.clone()));
        let all: Vec<_> = stay.chain(leave).map(look).collect::<Outcome<_>>()?;
        if let Some(lost) = all.iter().find(|one| one.body.is_none() && one.offset.is_none()) {
            let why = format!("source {} is not defined in {}", self.name, lost.url);
            return Err(unchanged(Failure::usage(why)));
        }
        if all.iter().all(|one| one.body.is_none()) {
            let why = format!("source {} is defined in none of them: define it first", self.name);
            return Err(unchanged(Failure::usage(why)));
        }
        Ok(all)
    }

    /// The number below which no new stripe and above which no old one mints, told to all.
    fn part(&self, all: &mut [Installation]) -> Outcome<u64> {
        if all.iter().any(|one| one.has(self.increment)) {
            return self.go_on(all);
        }
        if let Some(first) = self.first {
            if self.agree(all, first)? {
                return Ok(first);
            }
            let why = format!(
                "first = {first} is not possible: numbers below {} of source {} were handed out; take more",
                highest(all),
                self.name
            );
            return Err(self.undo(all, Failure::usage(why)));
        }
        let mut room = all.iter().map(Installation::stride).fold(1, u64::max);
        for _ in 0..TRIES {
            let highest = highest(all);
            let parting = highest.saturating_add(self.within_period(all, highest, room)?);
            if self.agree(all, parting)? {
                return Ok(parting);
            }
            room = room.saturating_mul(FURTHER);
        }
        let why = format!(
            "source {} goes too fast: {TRIES} times a number was passed while it was being agreed upon",
            self.name
        );
        Err(self.undo(all, Failure::unavailable(why)))
    }

    /// Tells all that their old stripes end there. Answers whether none had passed it.
    fn agree(&self, all: &mut [Installation], parting: u64) -> Outcome<bool> {
        let Err(failure) = self.cap(all, parting) else { return Ok(!was_passed(all, parting)) };
        // Whoever has passed it is not told to end there.
        self.look_again(all);
        if was_passed(all, parting) { Ok(false) } else { Err(self.undo(all, failure)) }
    }

    /// As much of the room as the period has for which serials are made now: what parts old from new in a
    /// later one would be an end to the numbers of this one.
    fn within_period(&self, all: &[Installation], highest: u64, room: u64) -> Outcome<u64> {
        let keys = all.iter().find_map(|one| one.body.as_ref()).map(|body| body.keys.clone());
        let json = Value::Object(keys.unwrap_or_default()).to_string();
        let plan = SourceSpec::from_json(&json).and_then(|spec| spec.check());
        let Ok(Plan::Segment(SegmentPlan { serial: Some(serial), .. })) = plan else {
            return Ok(room);
        };
        room_in(serial.of(highest), highest, room).ok_or_else(|| {
            unchanged(Failure::unavailable(format!(
                "the serials of source {} are used up in this period: give the command again in the next",
                self.name
            )))
        })
    }

    /// What a command before this one agreed upon: some have their new stripe already.
    fn go_on(&self, all: &[Installation]) -> Outcome<u64> {
        let (done, left): (Vec<_>, Vec<_>) =
            all.iter().filter(|one| one.body.is_some()).partition(|one| one.has(self.increment));
        if left.is_empty() {
            // All that are left are new. Their stripes may have been those of others, which are lost or have left: so
            // not where the stripes of the others began, but above all that these have handed out since.
            let highest = highest(all);
            return Ok(self.first.map_or(highest, |first| Ord::max(first, highest)));
        }
        let mut partings = left.iter().map(|one| one.until());
        let parting = partings.next().flatten();
        let agreed = parting.filter(|parting| {
            partings.all(|other| other == Some(*parting))
                && done.iter().all(|one| one.first() >= *parting)
        });
        if let (Some(first), Some(agreed)) = (self.first, agreed)
            && first != agreed
        {
            return Err(Failure::refused(format!(
                "a command before this one has agreed on {agreed} as the number where the new stripes begin, not \
                 {first}: finish it without --first"
            )));
        }
        agreed.ok_or_else(|| {
            let urls = |some: &[&Installation]| {
                some.iter().map(|one| one.url.as_str()).collect::<Vec<_>>().join(", ")
            };
            Failure::refused(format!(
                "{} already have stripes of {}, and {} were not told where theirs begin: numbers could \
                 come twice. Name all with another number of stripes first",
                urls(&done),
                self.increment,
                urls(&left)
            ))
        })
    }

    fn cap(&self, all: &mut [Installation], parting: u64) -> Outcome {
        for one in all.iter_mut().filter(|one| one.body.is_some()) {
            one.body = Some(one.place.end(&self.name, Some(parting))?);
        }
        Ok(())
    }

    /// What all have now, as far as they answer.
    fn look_again(&self, all: &mut [Installation]) {
        for one in all.iter_mut().filter(|one| one.body.is_some()) {
            if let Ok(Some(body)) = one.place.look(&self.name) {
                one.body = Some(body);
            }
        }
    }

    /// Lifts what was told, as far as servers answer.
    fn undo(&self, all: &mut [Installation], why: Failure) -> Failure {
        let mut left = Vec::new();
        for one in all.iter_mut().filter(|one| one.body.is_some()) {
            match one.place.end(&self.name, None) {
                Ok(body) => one.body = Some(body),
                Err(_) => left.push(one.url.as_str()),
            }
        }
        if left.is_empty() {
            return unchanged(why);
        }
        let still = format!(
            "no stripe was changed, but {} may still have been told to end: give this command again \
             when all can be reached",
            left.join(", ")
        );
        why.after(&still)
    }

    fn change(&self, all: &mut [Installation], parting: Option<u64>) -> Outcome {
        let count = all.len();
        let keys = all.iter().find_map(|one| one.body.as_ref()).map(|body| body.keys.clone());
        for (index, one) in all.iter_mut().enumerate() {
            let Some(offset) = one.offset.filter(|_| !self.is_done(one)) else { continue };
            let increment = self.increment;
            let changed = match &one.body {
                Some(body) => {
                    let version = Some(body.version);
                    let request = RestripeRequest { offset, increment, first: parting, version };
                    one.place.restripe(&self.name, request)
                }
                None => {
                    let mut keys = keys.clone().unwrap_or_default();
                    for key in ["until", "first_at"] {
                        keys.remove(key);
                    }
                    keys.insert("offset".into(), offset.into());
                    keys.insert("increment".into(), increment.into());
                    keys.insert("first".into(), parting.unwrap_or(offset).into());
                    one.place.define(&self.name, keys)
                }
            };
            let changed = changed.map_err(|failure| {
                failure.after(&format!(
                    "{index} of {count} installations were changed; mend what follows, and give this command \
                     again to change the others"
                ))
            })?;
            one.body = Some(changed);
        }
        Ok(())
    }
}

/// Everything below was handed out by one of them.
fn highest(all: &[Installation]) -> u64 {
    all.iter().map(Installation::next).fold(0, u64::max)
}

/// Whether one of them has handed out a number that lies above.
fn was_passed(all: &[Installation], parting: u64) -> bool {
    all.iter().any(|one| one.next() > parting)
}

/// As much of the room above `highest` as a period has, and half of what it has at most; none if that is none.
fn room_in(period: Period, highest: u64, room: u64) -> Option<u64> {
    let half = period.end.saturating_sub(highest) / 2;
    (half > 0).then(|| room.min(half))
}

fn unchanged(why: impl Into<Failure>) -> Failure {
    why.into().after("nothing was changed")
}

impl Installation {
    fn number(&self, key: &str) -> Option<u64> {
        self.body.as_ref()?.keys.get(key).and_then(Value::as_u64)
    }

    fn until(&self) -> Option<u64> {
        self.number("until")
    }

    /// Whether the stripe that it gets, of so many, is the one that it has.
    fn keeps(&self, increment: u64) -> bool {
        self.offset.is_some()
            && (self.number("offset"), self.number("increment")) == (self.offset, Some(increment))
    }

    /// Whether it has its stripe of so many, without an end.
    fn has(&self, increment: u64) -> bool {
        self.keeps(increment) && self.until().is_none()
    }

    /// The lowest number of its stripe.
    fn first(&self) -> u64 {
        self.number("first").or(self.offset).unwrap_or(0)
    }

    /// Everything below was handed out.
    fn next(&self) -> u64 {
        let Some(body) = &self.body else { return 0 };
        let next = body.next.as_deref().and_then(|next| next.parse().ok());
        // One that has no number left is as far as can be.
        next.unwrap_or(u64::MAX)
    }

    /// How far one step of the smallest kind moves it.
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
    fn what_parts_old_from_new_lies_in_the_period_that_is_used() {
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
