//! Requests that one server at a time may handle: a key's, or those of a global order. During a
//! handover neither server may have the right for a moment, and each sends callers to the other.

use futures_util::future::BoxFuture;
use snowmint_coord::Timer;
use snowmint_wire::error::Code;

use super::{Error, Service};

/// Result of a call to any server. Boxed, so that it is known to be `Send` whatever it borrows.
pub(crate) type ByOwner<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// Result of a call to the owner.
pub(crate) type FromOwner<'a, T> = BoxFuture<'a, Result<T, Unanswered>>;

/// Milliseconds until the owner is looked up again.
const LOOK_AGAIN_MS: u64 = 20;

impl Service {
    /// Calls the owner that an error names, and looks it up again, since it may have died or handed
    /// over. During a handover the next owner may know the present one: that server is called
    /// immediately. The call ends within twice `limits.wait_max`: the owner may wait as long as
    /// this server may.
    ///
    /// # Errors
    /// The given error, if it names no server with HTTP; else the last one received.
    pub(crate) async fn ask_owner<'a, T>(
        &self,
        refusal: Error,
        here: &(dyn Fn() -> ByOwner<'a, T> + Sync),
        there: &(dyn Fn(String) -> FromOwner<'a, T> + Sync),
    ) -> Result<T, Error> {
        let within_ms = self.live.limit(|limits| limits.wait_max.ms()).saturating_mul(2);
        let asking = Asking { timer: self.peers().timer(), within_ms, here, there };
        match asking.after(refusal).await {
            Err(Refused::Owner(error)) => Err(error),
            Err(Refused::Time(address)) => {
                let message = format!("owner sent no response in {within_ms} ms; retry");
                Err(self.peers().not_reached(message).with_detail(format!("server {address}")))
            }
            Ok(answer) => Ok(answer),
        }
    }
}

/// Search for the server that handles a request.
struct Asking<'t, 'a, T> {
    timer: &'t dyn Timer,
    within_ms: u64,
    /// Calls this server once more, which may be the owner by now.
    here: &'t (dyn Fn() -> ByOwner<'a, T> + Sync),
    /// Calls the server at this address.
    there: &'t (dyn Fn(String) -> FromOwner<'a, T> + Sync),
}

/// Reason why no server succeeded.
#[derive(Debug)]
enum Refused {
    /// Last error received.
    Owner(Error),
    /// The server at this address has not responded in time.
    Time(String),
}

impl<T> Asking<'_, '_, T> {
    async fn after(&self, mut refusal: Error) -> Result<T, Refused> {
        let begun = self.timer.elapsed();
        let passed_ms = || self.timer.elapsed().since(begun);
        let left_ms = || self.within_ms.saturating_sub(passed_ms());
        let mut was_sent_on = false;
        // The owner's reason, which is more useful than a timeout of the repeated call.
        let mut said = None;
        loop {
            let Some(address) = http_of(&refusal) else { return Err(Refused::Owner(refusal)) };
            let answer = tokio::select! {
                biased;
                answer = (self.there)(address.clone()) => answer,
                () = self.timer.sleep_ms(left_ms()) => {
                    return Err(said.map_or(Refused::Time(address), Refused::Owner));
                }
            };
            let error = match answer {
                Ok(answer) => return Ok(answer),
                Err(Unanswered { error, lasts: true }) => return Err(Refused::Owner(error)),
                Err(Unanswered { error, lasts: false }) => error,
            };
            // Prevents an endless loop between two servers.
            was_sent_on = !was_sent_on && http_of(&error).is_some_and(|next| next != address);
            if was_sent_on {
                refusal = error;
                continue;
            }
            self.timer.sleep_ms(LOOK_AGAIN_MS).await;
            let answer = tokio::select! {
                biased;
                answer = (self.here)() => answer,
                () = self.timer.sleep_ms(left_ms()) => return Err(Refused::Owner(error)),
            };
            said = Some(error).filter(|error| error.code() != Code::NotOwner).or(said);
            refusal = match answer {
                Err(refusal) if refusal.code() == Code::NotOwner => refusal,
                answer => return answer.map_err(Refused::Owner),
            };
            if passed_ms() >= self.within_ms {
                return Err(Refused::Owner(refusal));
            }
        }
    }
}

/// Returns the HTTP address of the owner that an error names.
fn http_of(refusal: &Error) -> Option<String> {
    refusal.owner().and_then(|owner| owner.reach.http.clone())
}

/// Reason why the owner did not do a request.
#[derive(Debug)]
pub(crate) struct Unanswered {
    pub(crate) error: Error,
    /// Whether a quick retry is useless.
    pub(crate) lasts: bool,
}

impl From<Error> for Unanswered {
    fn from(error: Error) -> Self {
        // Error of the owner, or of the previous owner.
        let may_pass = matches!(error.code(), Code::NotOwner | Code::Unavailable | Code::Closed);
        Self { error, lasts: !may_pass }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use snowmint_coord::{BootTimer, ManualTimer};
    use snowmint_wire::http::{ErrorInfo, OwnerInfo};

    use super::*;

    /// Returns the error of a server that names another one as the owner.
    fn not_owner(owner: &str) -> Error {
        let address = format!("http={owner}");
        Error::said(ErrorInfo {
            code: Code::NotOwner.as_str().to_owned(),
            message: format!("ask {owner}"),
            retry_after_ms: None,
            owner: Some(OwnerInfo { section: 7, address }),
        })
    }

    /// Sends a request to `first`, where each server names the owner or handles the request.
    /// Returns the result, and the called servers, in order. This server keeps naming `first`.
    async fn asked(
        first: &str,
        says: &(dyn Fn(&str) -> Option<&'static str> + Sync),
    ) -> (Result<String, Refused>, Vec<String>) {
        let seen = Mutex::new(Vec::new());
        let saw = |who: &str| seen.lock().unwrap_or_else(PoisonError::into_inner).push(who.into());
        let answer = {
            let here = || -> ByOwner<'_, String> {
                Box::pin(async {
                    saw("here");
                    Err(not_owner(first))
                })
            };
            let there = |address: String| -> FromOwner<'_, String> {
                let saw = &saw;
                Box::pin(async move {
                    let name = address.trim_start_matches("http://");
                    saw(name);
                    says(name)
                        .map_or_else(|| Ok(name.to_owned()), |owner| Err(not_owner(owner).into()))
                })
            };
            let asking = Asking { timer: &BootTimer, within_ms: 200, here: &here, there: &there };
            asking.after(not_owner(first)).await
        };
        (answer, seen.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    #[tokio::test]
    async fn present_owner_is_called_at_once_when_named() {
        let (answer, who) = asked("next:1", &|name| (name == "next:1").then_some("last:1")).await;
        assert_eq!(
            (answer.unwrap(), who),
            ("last:1".to_owned(), vec!["next:1".into(), "last:1".into()])
        );
    }

    /// The owner returns its reason, and has not responded a second time when time runs out.
    #[tokio::test]
    async fn an_owner_that_cannot_yet_is_repeated_with_its_reason() {
        let asked = Mutex::new(0);
        let here = || -> ByOwner<'_, ()> { Box::pin(async { Err(not_owner("one:1")) }) };
        let there = |_| -> FromOwner<'_, ()> {
            let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
            *asked += 1;
            let is_first = *asked == 1;
            Box::pin(async move {
                if !is_first {
                    std::future::pending::<()>().await;
                }
                Err(Error::new(Code::Unavailable, "its mark lies ahead until noon").into())
            })
        };
        let timer = ManualTimer::new(0);
        let asking = Asking { timer: &timer, within_ms: 200, here: &here, there: &there };
        let passing = async {
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
                timer.advance_ms(10);
            }
        };
        let refused = tokio::select! {
            biased;
            answer = asking.after(not_owner("one:1")) => answer.unwrap_err(),
            () = passing => panic!("it asks for ever"),
        };
        let took_ms = timer.elapsed().get();
        assert!((200..=220).contains(&took_ms), "{took_ms}");
        let said = |error: &Error| error.to_string().contains("until noon");
        assert!(matches!(&refused, Refused::Owner(error) if said(error)), "{refused:?}");
    }

    #[tokio::test]
    async fn peers_that_name_each_other_are_called_until_the_deadline() {
        let other = |name: &str| Some(if name == "one:1" { "two:1" } else { "one:1" });
        let (answer, who) = asked("one:1", &other).await;
        assert!(matches!(answer, Err(Refused::Owner(error)) if error.code() == Code::NotOwner));
        assert_eq!(who[..4], ["one:1", "two:1", "here", "one:1"]);
        // Each called once per 20 ms, with time for both: not as fast as they respond.
        assert!((3..=3 * 12).contains(&who.len()), "{who:?}");
    }
}
