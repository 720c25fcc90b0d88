//! Requests that one server at a time answers: a key's, or those of a global order. While the right changes hands,
//! neither server may have it for a moment, and each sends callers to the other.

use futures_util::future::BoxFuture;
use snowmint_wire::error::Code;

use super::{Error, Service};

/// What somebody was asked for. Boxed, so that it is known to be `Send` whatever it borrows.
pub(crate) type ByOwner<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// What the owner was asked for.
pub(crate) type FromOwner<'a, T> = BoxFuture<'a, Result<T, Unanswered>>;

/// How soon the owner is looked up again.
const LOOK_AGAIN_MS: u64 = 20;

impl Service {
    /// After a refusal that names the owner: asks it, at its address, and looks it up again, since it may have died, or
    /// have handed over. While the right changes hands the next owner may know who has it still: that one is asked at
    /// once. Answered or refused within twice `limits.wait_max`: an owner that is asked may wait as long as we may.
    ///
    /// # Errors
    /// The refusal, if it names nobody who speaks HTTP; else what was said last.
    pub(crate) async fn ask_owner<'a, T>(
        &self,
        mut refusal: Error,
        here: &(dyn Fn() -> ByOwner<'a, T> + Sync),
        there: &(dyn Fn(String) -> FromOwner<'a, T> + Sync),
    ) -> Result<T, Error> {
        let timer = self.peers().timer();
        let wait_ms = self.live.limit(|limits| limits.wait_max.ms());
        let (begun, within_ms) = (timer.elapsed(), wait_ms.saturating_mul(2));
        let mut was_sent_on = false;
        loop {
            let Some(address) = http_of(&refusal) else { return Err(refusal) };
            let asked = address.clone();
            let left_ms = within_ms.saturating_sub(timer.elapsed().since(begun));
            let answer = tokio::select! {
                biased;
                answer = there(address) => answer,
                () = timer.sleep_ms(left_ms) => {
                    let what = format!("{refusal}; it did not answer within {within_ms} ms");
                    return Err(self.peers().not_reached(what));
                }
            };
            let error = match answer {
                Ok(answer) => return Ok(answer),
                Err(Unanswered { error, lasts: true }) => return Err(error),
                Err(Unanswered { error, lasts: false }) => error,
            };
            // Not for ever from one to the other.
            was_sent_on = !was_sent_on && http_of(&error).is_some_and(|next| next != asked);
            if was_sent_on {
                refusal = error;
                continue;
            }
            timer.sleep_ms(LOOK_AGAIN_MS).await;
            let left_ms = within_ms.saturating_sub(timer.elapsed().since(begun));
            let answer = tokio::select! {
                biased;
                answer = here() => answer,
                () = timer.sleep_ms(left_ms) => return Err(error),
            };
            refusal = match answer {
                Err(refusal) if refusal.code() == Code::Elsewhere => refusal,
                answer => return answer,
            };
            if timer.elapsed().since(begun) >= within_ms {
                return Err(refusal);
            }
        }
    }
}

/// Where the owner that a refusal names speaks HTTP.
fn http_of(refusal: &Error) -> Option<String> {
    refusal.elsewhere().and_then(|owner| owner.reach.http.clone())
}

/// Why the owner did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Unanswered {
    pub(crate) error: Error,
    /// To ask again soon is in vain.
    pub(crate) lasts: bool,
}

impl From<Error> for Unanswered {
    fn from(error: Error) -> Self {
        // Of the owner, or of whoever was.
        let may_pass = matches!(error.code(), Code::Elsewhere | Code::Unavailable | Code::Closed);
        Self { error, lasts: !may_pass }
    }
}
