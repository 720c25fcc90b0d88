//! Requests that one server at a time may handle: a key's, or those of a global order. During a
//! handover neither server may have the right for a moment, and each sends callers to the other.

use futures_util::future::BoxFuture;
use snowmint_coord::{Timer, within};
use snowmint_wire::error::Code;

use super::route::Route;
use super::state::Service;
use crate::error::{Error, OwnerFailure};

/// Call to this server. Boxed, so that it is known to be `Send` whatever it borrows.
pub(super) type LocalCall<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// Call to the owner.
pub(super) type OwnerCall<'a, T> = BoxFuture<'a, Result<T, OwnerFailure>>;

/// Milliseconds until the owner is looked up again.
const RECHECK_MS: u64 = 20;

impl Service {
    /// Returns whether this server calls the owner that an error names, and does not return the
    /// error. During a handover it calls it on every route but `Here`: the next owner would send the
    /// client to the present one, and that back to the next, faster than the section moves.
    pub(super) fn leads_to_owner(&self, route: Route, rejection: &Error) -> bool {
        rejection.code() == Code::NotOwner
            && match route {
                Route::Here => false,
                Route::Ordered => self.is_assigned_here(rejection),
                Route::Owner => true,
            }
    }

    /// Returns whether this server is to own the section of an error that names another owner.
    pub(super) fn is_assigned_here(&self, rejection: &Error) -> bool {
        let section = rejection.owner().map(|owner| owner.section);
        section.is_some_and(|section| self.node.section_assignment().is_assigned_here(section))
    }

    /// Calls the owner that an error names, and looks it up again, since it may have died or handed
    /// over. During a handover the next owner may know the present one: that server is called
    /// immediately. The call ends within twice `limits.wait_max`: the owner may wait as long as
    /// this server may.
    ///
    /// # Errors
    /// The given error, if it names no server with HTTP; else the last one received.
    pub(super) async fn ask_owner<'a, T>(
        &self,
        rejection: Error,
        here: &(dyn Fn() -> LocalCall<'a, T> + Sync),
        there: &(dyn Fn(String) -> OwnerCall<'a, T> + Sync),
    ) -> Result<T, Error> {
        let within_ms = self.live.limit(|limits| limits.wait_max.ms()).saturating_mul(2);
        let search = OwnerSearch { timer: self.peers().timer(), within_ms, here, there };
        match search.run(rejection).await {
            Err(SearchError::Owner(error)) => Err(error),
            Err(SearchError::Time(address)) => {
                let message = format!("owner sent no response in {within_ms} ms; retry");
                Err(self.peers().not_reached(message).with_detail(format!("server {address}")))
            }
            Ok(result) => Ok(result),
        }
    }
}

/// Search for the server that handles a request.
struct OwnerSearch<'t, 'a, T> {
    timer: &'t dyn Timer,
    within_ms: u64,
    /// Calls this server once more, which may be the owner by now.
    here: &'t (dyn Fn() -> LocalCall<'a, T> + Sync),
    /// Calls the server at this address.
    there: &'t (dyn Fn(String) -> OwnerCall<'a, T> + Sync),
}

/// Reason why no server succeeded.
#[derive(Debug)]
enum SearchError {
    /// Last error received.
    Owner(Error),
    /// The server at this address has not responded in time.
    Time(String),
}

impl<T> OwnerSearch<'_, '_, T> {
    async fn run(&self, mut rejection: Error) -> Result<T, SearchError> {
        let begun = self.timer.elapsed();
        let passed_ms = || self.timer.elapsed().since(begun);
        let left_ms = || self.within_ms.saturating_sub(passed_ms());
        let mut was_sent_on = false;
        // The owner's reason, which is more useful than a timeout of the repeated call.
        let mut reported = None;
        loop {
            let Some(address) = http_of(&rejection) else {
                return Err(SearchError::Owner(rejection));
            };
            let calling = (self.there)(address.clone());
            let Some(result) = within(self.timer, left_ms(), calling).await else {
                return Err(reported.map_or(SearchError::Time(address), SearchError::Owner));
            };
            let error = match result {
                Ok(result) => return Ok(result),
                Err(OwnerFailure { error, lasts: true }) => return Err(SearchError::Owner(error)),
                Err(OwnerFailure { error, lasts: false }) => error,
            };
            // Prevents an endless loop between two servers.
            was_sent_on = !was_sent_on && http_of(&error).is_some_and(|next| next != address);
            if was_sent_on {
                rejection = error;
                continue;
            }
            self.timer.sleep_ms(RECHECK_MS).await;
            let Some(result) = within(self.timer, left_ms(), (self.here)()).await else {
                return Err(SearchError::Owner(error));
            };
            reported = Some(error).filter(|error| error.code() != Code::NotOwner).or(reported);
            rejection = match result {
                Err(rejection) if rejection.code() == Code::NotOwner => rejection,
                result => return result.map_err(SearchError::Owner),
            };
            if passed_ms() >= self.within_ms {
                return Err(SearchError::Owner(reported.unwrap_or(rejection)));
            }
        }
    }
}

/// Returns the HTTP address of the owner that an error names.
fn http_of(rejection: &Error) -> Option<String> {
    rejection.owner().and_then(|owner| owner.advertised_addrs.http.clone())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use snowmint_coord::spec::Span;
    use snowmint_coord::{
        BootTimer, Error as CoordError, ManualTimer, MemoryStore, Node, NodeSettings, Platform,
    };
    use tokio::sync::{mpsc, watch};

    use super::*;
    use crate::cluster::peers::Peers;
    use crate::config::Limits;
    use crate::observe::live::Live;

    /// Returns the error of a server that names another one as the owner.
    fn not_owner(owner: &str) -> Error {
        CoordError::not_owner(7, format!("http={owner}")).into()
    }

    /// Sends a request to `first`, where each server names the owner or handles the request.
    /// Returns the result, and the called servers, in order. This server keeps naming `first`.
    async fn search_from(
        first: &str,
        says: &(dyn Fn(&str) -> Option<&'static str> + Sync),
    ) -> (Result<String, SearchError>, Vec<String>) {
        let seen = Mutex::new(Vec::new());
        let saw = |who: &str| seen.lock().unwrap_or_else(PoisonError::into_inner).push(who.into());
        let result = {
            let here = || -> LocalCall<'_, String> {
                Box::pin(async {
                    saw("here");
                    Err(not_owner(first))
                })
            };
            let there = |address: String| -> OwnerCall<'_, String> {
                let saw = &saw;
                Box::pin(async move {
                    let name = address.trim_start_matches("http://");
                    saw(name);
                    says(name)
                        .map_or_else(|| Ok(name.to_owned()), |owner| Err(not_owner(owner).into()))
                })
            };
            let search =
                OwnerSearch { timer: &BootTimer, within_ms: 200, here: &here, there: &there };
            search.run(not_owner(first)).await
        };
        (result, seen.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    #[tokio::test]
    async fn present_owner_is_called_at_once_when_named() {
        let (result, who) =
            search_from("next:1", &|name| (name == "next:1").then_some("last:1")).await;
        assert_eq!(
            (result.unwrap(), who),
            ("last:1".to_owned(), vec!["next:1".into(), "last:1".into()])
        );
    }

    /// The owner returns its reason, and has not responded a second time when time runs out.
    #[tokio::test]
    async fn silent_owner_is_reported_with_its_earlier_reason() {
        let calls = Mutex::new(0);
        let here = || -> LocalCall<'_, ()> { Box::pin(async { Err(not_owner("one:1")) }) };
        let there = |_| -> OwnerCall<'_, ()> {
            let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
            *calls += 1;
            let is_first = *calls == 1;
            Box::pin(async move {
                if !is_first {
                    std::future::pending::<()>().await;
                }
                Err(Error::new(Code::Unavailable, "its mark lies ahead until noon").into())
            })
        };
        let timer = ManualTimer::new(0);
        let search = OwnerSearch { timer: &timer, within_ms: 200, here: &here, there: &there };
        let passing = async {
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
                timer.advance_ms(10);
            }
        };
        let refused = tokio::select! {
            biased;
            result = search.run(not_owner("one:1")) => result.unwrap_err(),
            () = passing => panic!("it asks for ever"),
        };
        let took_ms = timer.elapsed().get();
        assert!((200..=220).contains(&took_ms), "{took_ms}");
        let reported = |error: &Error| error.to_string().contains("until noon");
        assert!(matches!(&refused, SearchError::Owner(error) if reported(error)), "{refused:?}");
    }

    /// Returns a service with this `limits.wait_max`, whose waits end by this timer.
    async fn service(timer: &ManualTimer, wait_max_ms: u64) -> Service {
        let limits = Limits { wait_max: Span::from_ms(wait_max_ms), ..Limits::default() };
        let live = Live::new(limits, false, None);
        let store = Arc::new(MemoryStore::new("test").unwrap());
        let node = Node::open(store, NodeSettings::default(), Platform::system()).await.unwrap();
        let (timer, silent) = (Arc::new(timer.clone()), mpsc::channel(1).0);
        let peers = Peers::new(timer, live.clone(), None, None, None, 3_000, silent);
        Service::new(node, live, watch::channel(false).1, peers, None)
    }

    /// Owner and this server may both hang, or name each other for ever.
    #[tokio::test]
    async fn forwarded_call_ends_within_twice_the_longest_wait() {
        const WAIT_MAX_MS: u64 = 1_000;
        for (owner_hangs, hangs) in [(true, false), (false, true), (false, false)] {
            let timer = ManualTimer::new(0);
            let service = service(&timer, WAIT_MAX_MS).await;
            let refused_after = |hangs: bool| async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                not_owner("one:1")
            };
            let here = || -> LocalCall<'_, ()> {
                Box::pin(async move { Err(refused_after(hangs).await) })
            };
            let there = |_| -> OwnerCall<'_, ()> {
                Box::pin(async move { Err(refused_after(owner_hangs).await.into()) })
            };
            let passing = async {
                for _ in 0..1_000 {
                    tokio::task::yield_now().await;
                    timer.advance_ms(10);
                }
            };
            let asking = service.ask_owner(not_owner("one:1"), &here, &there);
            let refused = tokio::select! {
                biased;
                result = asking => result.unwrap_err(),
                () = passing => panic!("it asks for ever: {owner_hangs}, {hangs}"),
            };
            let took_ms = timer.elapsed().get();
            let longest_ms = 2 * WAIT_MAX_MS;
            assert!((longest_ms..=longest_ms + 30).contains(&took_ms), "{took_ms}: {refused}");
        }
    }

    /// This server names an owner that has died, until the time is over.
    #[tokio::test]
    async fn owner_that_is_gone_is_not_named_as_the_server_to_call() {
        let here = || -> LocalCall<'_, ()> { Box::pin(async { Err(not_owner("dead:1")) }) };
        let there = |_| -> OwnerCall<'_, ()> {
            Box::pin(async {
                Err(Error::new(Code::Unavailable, "owner not reached; retry").into())
            })
        };
        let search = OwnerSearch { timer: &BootTimer, within_ms: 100, here: &here, there: &there };
        let refused = search.run(not_owner("dead:1")).await.unwrap_err();
        let is_its = |error: &Error| error.to_string() == "owner not reached; retry";
        assert!(matches!(&refused, SearchError::Owner(error) if is_its(error)), "{refused:?}");
    }

    #[tokio::test]
    async fn peers_that_name_each_other_are_called_until_the_deadline() {
        let other = |name: &str| Some(if name == "one:1" { "two:1" } else { "one:1" });
        let (result, who) = search_from("one:1", &other).await;
        assert!(matches!(result, Err(SearchError::Owner(error)) if error.code() == Code::NotOwner));
        assert_eq!(who[..4], ["one:1", "two:1", "here", "one:1"]);
        // Each called once per 20 ms, with time for both: not as fast as they respond.
        assert!((3..=3 * 12).contains(&who.len()), "{who:?}");
    }
}
