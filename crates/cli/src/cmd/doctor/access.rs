//! Access checks: whether unauthenticated callers are rejected, by usable files.

use snowmint_core::UnixMillis;

use super::finding::Finding;
use crate::config::Config;
use crate::security::{Security, check_public_texts, warnings};
use crate::terminal::plural::counted;
use crate::terminal::when::Zone;

const SUBJECT: &str = "access";

/// Days before expiry from which a token is reported: enough to make another and to change its
/// clients.
const SOON_DAYS: u64 = 30;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Checks tokens and certificates.
pub(super) fn inspect(config: &Config, now: UnixMillis) -> Vec<Finding> {
    let checked =
        Security::load(config).and_then(|security| check_public_texts(config).map(|()| security));
    let security = match checked {
        Ok(security) => security,
        Err(failure) => return vec![Finding::error(SUBJECT, failure.message())],
    };
    let expiring = security.access().map(|access| access.expiring()).unwrap_or_default();
    let expiring = expiring.iter().filter_map(|(name, expires)| expiry(name, *expires, now));
    let warnings = warnings(config).into_iter().map(|text| Finding::warning(SUBJECT, text));
    std::iter::once(guarded(config)).chain(warnings).chain(expiring).collect()
}

fn guarded(config: &Config) -> Finding {
    let tokens = match config.tokens.file.is_empty() {
        true => "callers need no token",
        false => "callers need a token",
    };
    let tls = match (config.tls.is_on(), config.tls.client_ca.is_empty()) {
        (false, _) => "connections are not encrypted",
        (true, true) => "connections use TLS",
        (true, false) => "connections use TLS, with a certificate at both ends",
    };
    let text = format!("{tokens}; {tls}");
    if config.server.insecure {
        Finding::warning(SUBJECT, text)
    } else {
        Finding::ok(SUBJECT, text)
    }
}

/// Reports a token that has expired or soon expires.
fn expiry(name: &str, expires: UnixMillis, now: UnixMillis) -> Option<Finding> {
    let left_ms = expires.since(now);
    if left_ms > SOON_DAYS * DAY_MS {
        return None;
    }
    let shown = Zone::default().show(expires);
    let within = match left_ms / DAY_MS {
        0 => "within a day".to_owned(),
        days => format!("in {}", counted(days, "day")),
    };
    let message = match left_ms {
        0 => {
            format!(
                "token {name} expired at {shown}; remove it from tokens.file, or set another time"
            )
        }
        _ => format!(
            "token {name} expires at {shown}, {within}; make another (snowmint token new), \
             and move its clients"
        ),
    };
    Some(Finding::warning(SUBJECT, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_named_once_it_soon_expires() {
        let now = UnixMillis::new(1_800_000_000_000);
        let after = |days: u64| UnixMillis::new(now.get() + days * DAY_MS);
        let text = |expires| expiry("orders", expires, now).map(|finding| finding.message);
        assert_eq!(text(after(31)), None);
        assert!(text(after(30)).unwrap().contains("in 30 days;"));
        assert!(text(after(1)).unwrap().contains("in 1 day;"));
        assert!(text(UnixMillis::new(now.get() + 1)).unwrap().contains("within a day;"));
        assert!(text(after(0)).unwrap().starts_with("token orders expired at 2027-"));
        assert!(text(UnixMillis::new(0)).unwrap().contains("expired at 1970-"));
    }
}
