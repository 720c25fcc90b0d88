//! `snowmint import redis`: counters of INCR continue here, above every number that they reached.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use serde::Serialize;
use snowmint_coord::spec::Kind;
use snowmint_coord::{BOUND_MAX, Node, Source};
use snowmint_stores::legacy::{CounterState, Counters};
use snowmint_wire::error::Code;
use snowmint_wire::http::CounterBody;
use tokio::runtime::Runtime;

use super::apply::{self, ImportPlan, Step, refused_keys, stopped};
use super::common::Common;
use crate::client::{ApiClient, CallError, Method, segment};
use crate::cmd::values;
use crate::open::node::{self, JournalUse};
use crate::open::store;
use crate::terminal::exit::{Failure, Outcome, complain};
use crate::terminal::output::Output;
use crate::terminal::plural::counted;

/// Longest time for one counter in the store.
const RAISE_MS: u64 = 10_000;

/// Move the counters of an application that counts by INCR.
///
/// A script moves each counter and leaves the text `moved:snowmint:NUMBER` in its place: INCR on it
/// fails from then on. Keys that are first counted during the import are listed at its end (exit
/// code 1). So first remove the application's permission to count, and then change its address.
/// With --margin nothing changes in Redis, and the application must move before it has counted that
/// much further. The same command again finishes an interrupted import.
///
/// If servers of the store run, give one by --server: they hold the counters.
#[derive(Debug, Args)]
pub(super) struct Redis {
    #[command(flatten)]
    common: Common,
    /// Pattern of the keys, as in SCAN: `seq:*`.
    #[arg(long = "match", value_name = "PATTERN")]
    pattern: String,
    /// Leave this key out; may be given several times.
    #[arg(long, value_name = "KEY")]
    except: Vec<String>,
    /// Counter source that gets them as keys.
    #[arg(long, value_name = "SOURCE", add = values::sources(), default_value = snowmint_coord::node::BUILTIN_COUNTERS)]
    source: String,
    /// Prefix to remove from their names.
    #[arg(long, value_name = "PREFIX", default_value = "")]
    strip: String,
    /// Leave Redis unchanged, and begin this far above its numbers.
    #[arg(long, value_name = "NUMBER")]
    margin: Option<u64>,
    /// Running server: http://host:port, or several as snowmint://host:port,host:port.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

/// Plan for one counter.
#[derive(Debug, Serialize)]
struct CounterItem {
    #[serde(skip)]
    name: Vec<u8>,
    key: String,
    counter: String,
    #[serde(flatten, serialize_with = "apply::step")]
    action: Step<CounterAction>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
enum CounterAction {
    /// Moves a counter that counts in Redis.
    Move { value: u64 },
    /// Finishes a moved counter: makes sure that it counts here.
    Finish { value: u64 },
    /// Leaves the counter in Redis, and counts here above a number that it has not reached.
    Raise { value: u64, above: u64 },
}

/// Plan for all counters.
struct CounterItems<'a> {
    /// Counter source that gets them.
    source: &'a str,
    items: Vec<CounterItem>,
}

/// Counter source that gets the counters.
struct CounterTarget<'a> {
    runtime: &'a Runtime,
    source: &'a str,
    holder: CounterHolder,
}

/// Holder of the counters.
enum CounterHolder {
    Server(Box<ApiClient>),
    Own(Box<(Node, Source)>),
}

impl Redis {
    pub(super) fn run(self) -> Outcome {
        let runtime = store::runtime()?;
        let [url] = self.common.from.as_slice() else {
            return Err(Failure::usage("several --from given; counters come from one server"));
        };
        let counters = runtime.block_on(Counters::open(url))?;
        let plan = runtime.block_on(self.plan(&counters))?;
        if plan.items.is_empty() {
            return Err(Failure::no(
                Code::NotFound,
                format!("no key matches {:?}; correct --match", self.pattern),
            ));
        }
        let way = "leave them out by --except KEY, or by another --match";
        apply::finish(&[&plan], way, &self.common, || {
            self.carry_out(&runtime, &counters, &plan.items)
        })
    }

    fn carry_out(&self, runtime: &Runtime, counters: &Counters, items: &[CounterItem]) -> Outcome {
        let target = self.target(runtime)?;
        let both = self.overlaps(&target, items)?;
        for (done, item) in items.iter().enumerate() {
            let moved = target.take(counters, item);
            moved.map_err(|failure| stopped(failure, done, items.len(), &item.key))?;
        }
        let came = runtime.block_on(self.came(counters, items))?;
        if let CounterHolder::Own(own) = target.holder {
            runtime.block_on(own.0.close())?;
        }
        problems(&both, &came)
    }

    /// Returns numbers that both systems may have issued, for keys that count in Redis and were
    /// already counted here. The application moved before its keys, or it arrived after other keys
    /// had been moved.
    fn overlaps(&self, target: &CounterTarget<'_>, items: &[CounterItem]) -> Outcome<Vec<String>> {
        let mut both = Vec::new();
        for item in items {
            let Ok(CounterAction::Move { value }) = item.action else { continue };
            let Some(counted) = target.counted(&item.counter)? else {
                self.say_unknown(&item.key);
                return Ok(both);
            };
            let last = counted.min(value);
            if last > 0 {
                both.push(format!("1 to {last} of {:?}", item.key));
            }
        }
        Ok(both)
    }

    fn say_unknown(&self, key: &str) {
        complain(format_args!(
            "keys such as {key:?} may also have been counted here while they counted in Redis. Servers show how far a \
             key came only to tokens with the mint right on source {}, which this token lacks",
            self.source
        ));
    }

    /// Returns the keys that still count in Redis after the import: they are new, and their numbers
    /// would come again here.
    async fn came(&self, counters: &Counters, items: &[CounterItem]) -> Outcome<Vec<String>> {
        let stay = self.margin.is_some();
        let known: BTreeSet<&[u8]> =
            items.iter().filter(|_| stay).map(|item| item.name.as_slice()).collect();
        let mut came = Vec::new();
        for name in counters.keys(&self.pattern).await? {
            let key = String::from_utf8_lossy(&name).into_owned();
            if known.contains(name.as_slice()) || self.except.contains(&key) {
                continue;
            }
            if matches!(counters.read_state(&name).await?, CounterState::Counts(_)) {
                came.push(key);
            }
        }
        Ok(came)
    }

    async fn plan(&self, counters: &Counters) -> Outcome<CounterItems<'_>> {
        let mut items = Vec::new();
        let mut used: BTreeMap<String, String> = BTreeMap::new();
        for name in counters.keys(&self.pattern).await? {
            let key = String::from_utf8_lossy(&name).into_owned();
            if self.except.contains(&key) {
                continue;
            }
            let counter = key.strip_prefix(&self.strip).unwrap_or(&key).to_owned();
            let mut action = self.action(&name, &counter, counters.read_state(&name).await?);
            if let Some(other) = used.insert(counter.clone(), key.clone()) {
                action =
                    Err(format!("key {other:?} becomes the same counter: leave one of them out"));
            }
            items.push(CounterItem { name, key, counter, action });
        }
        Ok(CounterItems { source: &self.source, items })
    }

    fn action(&self, name: &[u8], counter: &str, at: CounterState) -> Step<CounterAction> {
        if std::str::from_utf8(name).is_err() || counter.is_empty() || counter.len() > 255 {
            return Err("key is not a text of 1 to 255 bytes".into());
        }
        match (at, self.margin) {
            (CounterState::Senseless(reason), _) => Err(reason),
            (CounterState::Moved(value), _) => Ok(CounterAction::Finish { value }),
            (CounterState::Counts(value), None) => Ok(CounterAction::Move { value }),
            (CounterState::Counts(value), Some(margin)) => match value.saturating_add(margin) {
                above if above <= BOUND_MAX => Ok(CounterAction::Raise { value, above }),
                above => {
                    Err(format!("{value} and the margin are {above}, maximum {BOUND_MAX} (2^62)"))
                }
            },
        }
    }

    fn target<'a>(&'a self, runtime: &'a Runtime) -> Outcome<CounterTarget<'a>> {
        let holder = match &self.server {
            Some(url) => CounterHolder::Server(Box::new(ApiClient::new(url)?)),
            None => runtime.block_on(self.own())?,
        };
        Ok(CounterTarget { runtime, source: &self.source, holder })
    }

    async fn own(&self) -> Outcome<CounterHolder> {
        let config = self.common.config_args.load(Vec::new())?;
        let node = node::open(&config, JournalUse::Without).await?;
        let source = node.source(&self.source).await?;
        if source.kind() != Kind::Counter {
            return Err(Failure::usage(format!(
                "source {:?} has kind {}; name a source of kind counter by --source",
                self.source,
                source.kind()
            )));
        }
        Ok(CounterHolder::Own(Box::new((node, source))))
    }
}

impl ImportPlan for CounterItems<'_> {
    fn show(&self, json: bool, out: &mut Output) -> Outcome {
        let items = &self.items;
        if json {
            return items.iter().try_for_each(|item| out.json(item));
        }
        let width = items.iter().map(|item| item.key.chars().count()).max().unwrap_or(0).max(3);
        out.line(format_args!("{:<width$}  PLAN", "KEY"))?;
        for CounterItem { key, counter, action, .. } in items {
            let to = format!("{}:{counter}", self.source);
            let plan = match action {
                Ok(CounterAction::Move { value }) => {
                    format!("move at {value}, or its number at that time, to {to}")
                }
                Ok(CounterAction::Finish { value }) => {
                    format!("already moved: raise {to} above {value} if it is not")
                }
                Ok(CounterAction::Raise { value, above }) => {
                    format!("leave at {value}, and raise {to} above {above}")
                }
                Err(reason) => format!("REFUSED: {reason}"),
            };
            out.line(format_args!("{key:<width$}  {plan}"))?;
        }
        Ok(())
    }

    fn refused(&self) -> Option<String> {
        refused_keys(self.items.iter().map(|item| &item.action))
    }
}

impl CounterTarget<'_> {
    /// Takes over a counter as planned.
    fn take(&self, counters: &Counters, item: &CounterItem) -> Outcome {
        let raise = |highest| self.raise(&item.counter, highest);
        match item.action {
            Err(_) => Ok(()),
            Ok(CounterAction::Finish { value }) => raise(value),
            Ok(CounterAction::Raise { above, .. }) => raise(above),
            Ok(CounterAction::Move { value }) => {
                // If this fails, the counter must stay in Redis.
                raise(value)?;
                match self.runtime.block_on(counters.move_counter(&item.name))? {
                    CounterState::Moved(value) => raise(value),
                    CounterState::Counts(_) | CounterState::Senseless(_) => Err(Failure::refused(
                        Code::Conflict,
                        "key is not a counter any more, since it was overwritten; check its \
                         writers",
                    )),
                }
            }
        }
    }

    /// Returns the bound of a counter, or of another key of its section; `None` when the caller may
    /// move counters but not read bounds.
    fn counted(&self, counter: &str) -> Outcome<Option<u64>> {
        match &self.holder {
            CounterHolder::Server(client) => {
                let CounterBody { bound } = match client.get(&self.path(counter)) {
                    Err(CallError::Forbidden(_)) => return Ok(None),
                    result => result?,
                };
                bound.parse().map(Some).map_err(|_| {
                    Failure::internal(format_args!("server sent bound {bound:?}, not a number"))
                })
            }
            CounterHolder::Own(own) => {
                let bound = own.1.bound_of(counter.as_bytes(), RAISE_MS);
                Ok(Some(self.runtime.block_on(bound)?))
            }
        }
    }

    fn path(&self, counter: &str) -> String {
        format!("/v1/counters/{}/{}", segment(self.source), segment(counter))
    }

    /// Makes every later number of a counter greater than `highest`.
    fn raise(&self, counter: &str, highest: u64) -> Outcome {
        match &self.holder {
            CounterHolder::Server(client) => {
                let body = CounterBody { bound: highest.to_string() };
                let _: CounterBody = client.call(&Method::PUT, &self.path(counter), Some(&body))?;
                Ok(())
            }
            CounterHolder::Own(own) => {
                let raised = own.1.raise(counter.as_bytes(), highest, RAISE_MS);
                self.runtime.block_on(raised).map_err(|error| {
                    let failure = Failure::from(error);
                    failure.after("no --server given, so this command raises the counter itself")
                })
            }
        }
    }
}

/// Reports what was unknown when the plan was made.
fn problems(both: &[String], came: &[String]) -> Outcome {
    let mut problems = Vec::new();
    if !both.is_empty() {
        problems.push(format!(
            "counters may have been used here and in Redis at once: {}; compare the stored \
             numbers, since these may occur twice",
            both.join(", ")
        ));
    }
    if let Some(one) = came.first() {
        problems.push(format!(
            "{} appeared in Redis during the import, such as {one:?}; repeat this command \
             once no client counts there",
            counted(came.len(), "key")
        ));
    }
    if problems.is_empty() { Ok(()) } else { Err(Failure::no(Code::Conflict, problems.join("; "))) }
}
