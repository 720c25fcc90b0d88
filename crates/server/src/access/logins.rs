//! Failed logins: each leaves a line in the audit trail, and a guesser of secrets is slowed.
//!
//! Wrong secrets are counted by their source address. Of IPv6 the first 64 bits count, which
//! normally belong to one host. Beyond [`BURST`] at once and [`PER_SECOND`] after that, secrets
//! from the address are not checked. Tokens that were valid from there before are: a valid token in
//! use keeps working, even if a guesser shares its proxy. No request waits, so none pile up; a valid
//! token costs one comparison more than without this.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use snowmint_coord::Timer;
use snowmint_wire::error::Code;

use crate::error::Error;
use crate::trail::{About, AuditLine, Audited, Trail};

/// Most wrong secrets of one address that are checked in a row.
const BURST: u64 = 200;
/// Most wrong secrets of one address that are checked in a second.
const PER_SECOND: u64 = 100;
/// Time, in milliseconds, that one wrong secret takes from its address.
const EACH_MS: u64 = 1_000 / PER_SECOND;
/// Most milliseconds that an address may be ahead.
const AHEAD_MS_MAX: u64 = BURST * EACH_MS;
/// Most addresses that are remembered. An attacker with more addresses is not slowed.
const ADDRESSES_MAX: usize = 8_192;
/// Addresses that are remembered for each token.
const PLACES: usize = 16;

/// An address, as the count of wrong secrets sees it. Two distinct origins never share a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin(u64);

impl Origin {
    /// Prefix of the 32 bits of an IPv4 address: no host has an IPv6 address with this beginning.
    const V4: u64 = 0xff00_0001_0000_0000;
    /// Substitute for zero, with which IPv6's loopback begins.
    const LOOPBACK: u64 = 0xff00_0002_0000_0000;

    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => Self::V4 | u64::from(address.to_bits()),
            IpAddr::V6(address) => match u64::try_from(address.to_bits() >> 64).unwrap_or(0) {
                0 => Self::LOOPBACK,
                network => network,
            },
        })
    }
}

/// Addresses from which a secret was valid: the last address of each hash.
#[derive(Debug, Default)]
pub(crate) struct KnownAddresses([AtomicU64; PLACES]);

impl KnownAddresses {
    fn slot(&self, origin: Origin) -> Option<&AtomicU64> {
        let hash = origin.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.0.get(usize::try_from(hash).unwrap_or(0) % PLACES)
    }

    // Relaxed: it orders nothing, and one more check of a login does no harm.
    fn has(&self, origin: Origin) -> bool {
        self.slot(origin).is_some_and(|slot| slot.load(Ordering::Relaxed) == origin.0)
    }

    fn note(&self, origin: Origin) {
        if let Some(slot) = self.slot(origin)
            && slot.load(Ordering::Relaxed) != origin.0
        {
            slot.store(origin.0, Ordering::Relaxed);
        }
    }
}

/// Logins of one server.
#[derive(Debug)]
pub(crate) struct Logins {
    trail: Trail,
    timer: Arc<dyn Timer>,
    /// End of the spent time of each address, in elapsed time.
    spent: Mutex<HashMap<Origin, u64>>,
    /// Time until which some address has no time left; 0 while none is busy.
    busy_until_ms: AtomicU64,
}

impl Logins {
    pub(crate) fn new(timer: Arc<dyn Timer>) -> Self {
        let trail = Trail::new(Arc::clone(&timer));
        Self { trail, timer, spent: Mutex::default(), busy_until_ms: AtomicU64::new(0) }
    }

    pub(crate) const fn trail(&self) -> &Trail {
        &self.trail
    }

    /// Records a valid secret, with the addresses from which it was valid before.
    ///
    /// # Errors
    /// Milliseconds until the secret may be checked.
    pub(crate) fn right(&self, places: &KnownAddresses, from: IpAddr) -> Result<(), u64> {
        let origin = Origin::of(from);
        if self.busy_until_ms.load(Ordering::Relaxed) != 0
            && !places.has(origin)
            && let Some(wait_ms) = self.wait_ms(origin, self.timer.elapsed().get())
        {
            return Err(wait_ms);
        }
        places.note(origin);
        Ok(())
    }

    /// Records a wrong secret.
    ///
    /// # Errors
    /// Milliseconds as of [`Logins::right`]: the secret was not checked.
    pub(crate) fn wrong(&self, from: IpAddr) -> Result<(), u64> {
        let (origin, now_ms) = (Origin::of(from), self.timer.elapsed().get());
        if let Some(wait_ms) = self.wait_ms(origin, now_ms) {
            return Err(wait_ms);
        }
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if spent.len() >= ADDRESSES_MAX && !spent.contains_key(&origin) {
            spent.retain(|_, spent_ms| *spent_ms > now_ms);
            if spent.len() >= ADDRESSES_MAX {
                return Ok(());
            }
        }
        let spent_ms = spent.entry(origin).or_insert(now_ms);
        *spent_ms = (*spent_ms).max(now_ms).saturating_add(EACH_MS);
        if *spent_ms > now_ms.saturating_add(AHEAD_MS_MAX - EACH_MS) {
            self.busy_until_ms.fetch_max(*spent_ms, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the milliseconds until a secret from the address is checked; `None` if it is checked
    /// now.
    fn wait_ms(&self, origin: Origin, now_ms: u64) -> Option<u64> {
        let busy_until_ms = self.busy_until_ms.load(Ordering::Relaxed);
        if busy_until_ms == 0 {
            return None;
        }
        if busy_until_ms <= now_ms {
            // An address that raised it meanwhile gets one more check.
            let order = Ordering::Relaxed;
            let _ = self.busy_until_ms.compare_exchange(busy_until_ms, 0, order, order);
            return None;
        }
        let spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let ahead_ms = spent.get(&origin)?.saturating_sub(now_ms);
        // One more secret has to fit.
        let wait_ms = ahead_ms.saturating_add(EACH_MS).saturating_sub(AHEAD_MS_MAX);
        (wait_ms > 0).then_some(wait_ms)
    }

    /// Writes an audit line about a failed login.
    pub(crate) fn failed(&self, who: &dyn Audited, why: &str) {
        self.trail.leave(About::Login, who, || AuditLine {
            what: "login failed".to_owned(),
            why: Some(why.to_owned()),
            ..AuditLine::default()
        });
    }
}

/// Returns the error for a caller whose secrets are not checked.
pub(crate) fn too_many(wait_ms: u64) -> Error {
    let message = format!(
        "too many wrong tokens from this address, limit {BURST} at once and {PER_SECOND} a second; \
         retry in {wait_ms} ms"
    );
    Error::new(Code::RateLimited, message).retry_in_ms(wait_ms)
}

#[cfg(test)]
mod tests {
    use snowmint_coord::ManualTimer;

    use super::*;

    fn logins() -> (ManualTimer, Logins) {
        let timer = ManualTimer::new(1_000);
        (timer.clone(), Logins::new(Arc::new(timer)))
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn wrong_secrets_per_address_have_burst_and_rate() {
        let (timer, logins) = logins();
        let (one, other) = (address("10.0.0.1"), address("10.0.0.2"));
        for guess in 0..BURST {
            assert_eq!(logins.wrong(one), Ok(()), "{guess}");
        }
        assert_eq!(logins.wrong(one), Err(EACH_MS));
        assert_eq!(logins.wrong(other), Ok(()), "another address by itself");
        // Unchecked secrets cost no time.
        for _ in 0..1_000 {
            assert!(logins.wrong(one).is_err());
        }
        timer.advance_ms(1_000);
        let looked_at = (0..1_000).filter(|_| logins.wrong(one).is_ok()).count();
        assert_eq!(u64::try_from(looked_at).unwrap(), PER_SECOND);
        timer.advance_ms(AHEAD_MS_MAX);
        assert_eq!(logins.wrong(one), Ok(()));
        assert_eq!(logins.busy_until_ms.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_right_secret_that_is_in_use_is_never_kept_waiting() {
        let (timer, logins) = logins();
        let (one, other) = (address("10.0.0.1"), address("10.0.0.2"));
        let (used, fresh) = (KnownAddresses::default(), KnownAddresses::default());
        assert_eq!(logins.right(&used, one), Ok(()));
        while logins.wrong(one).is_ok() {}
        assert_eq!(logins.right(&used, one), Ok(()));
        assert_eq!(logins.right(&fresh, other), Ok(()), "from elsewhere");
        // A correct guess is possible. It is checked as soon as any secret is.
        assert_eq!(logins.right(&fresh, one), Err(EACH_MS));
        timer.advance_ms(EACH_MS);
        assert_eq!(logins.right(&fresh, one), Ok(()));
        while logins.wrong(one).is_ok() {}
        assert_eq!(logins.right(&fresh, one), Ok(()));
    }

    #[test]
    fn hosts_are_distinguished_and_their_addresses_are_not() {
        let same = |one: &str, other: &str| Origin::of(address(one)) == Origin::of(address(other));
        assert!(same("2001:db8::1", "2001:db8::ffff:1"));
        assert!(same("10.0.0.1", "::ffff:10.0.0.1"));
        for (one, other) in [
            ("2001:db8::1", "2001:db8:0:1::1"),
            ("10.0.0.1", "10.0.0.2"),
            ("::1", "0.0.0.0"),
            ("::1", "127.0.0.1"),
        ] {
            assert!(!same(one, other), "{one} {other}");
        }
        assert!(!KnownAddresses::default().has(Origin::of(address("::1"))));
        assert!(!KnownAddresses::default().has(Origin::of(address("0.0.0.0"))));
    }

    #[test]
    fn many_addresses_need_bounded_memory() {
        let (timer, logins) = logins();
        let many = u32::try_from(ADDRESSES_MAX).unwrap() + 100;
        for n in 0..many {
            assert_eq!(logins.wrong(IpAddr::from(n.to_be_bytes())), Ok(()));
        }
        assert_eq!(logins.spent.lock().unwrap().len(), ADDRESSES_MAX);
        timer.advance_ms(EACH_MS);
        assert_eq!(logins.wrong(address("192.0.2.1")), Ok(()));
        assert_eq!(logins.spent.lock().unwrap().len(), 1, "those that are over make way");
    }
}
