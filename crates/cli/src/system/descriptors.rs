//! The system's limit of open files: every connection uses one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Number of files besides served connections: listeners, store, journal, runtime, standard
/// streams, and a connection that is accepted only to be rejected over the limit. A dozen or two,
/// rounded up.
const OTHER_FILES: u64 = 64;

/// Raises the soft limit of open files to the hard one, and returns the new limit; `None`: no
/// limit.
///
/// Shells and service managers set the soft limit low for programs that use `select`; this one does
/// not. The change affects the whole process, so the binary makes it, and no library does.
pub(crate) fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => {
            tracing::debug!(from = ?current, to = ?maximum, "limit of open files raised");
            maximum
        }
        Err(error) => {
            tracing::warn!(limit = ?current, hard_limit = ?maximum, %error, "failed to raise the limit of open files");
            current
        }
    }
}

/// Returns a message if `limit` open files are too few for the connections that the configuration
/// allows; `None` if they suffice.
pub(crate) fn shortage(limit: Option<u64>, http_max: usize, resp_max: usize) -> Option<String> {
    let limit = limit?;
    let count = |max| u64::try_from(max).unwrap_or(u64::MAX);
    let connections = count(http_max).saturating_add(count(resp_max));
    let needed = connections.saturating_add(OTHER_FILES);
    (limit < needed).then(|| {
        format!(
            "at most {limit} files may be open, enough for about {} connections, while \
             http.connections_max and resp.connections_max allow {connections}. Raise the hard limit \
             to {needed} (LimitNOFILE= of systemd, --ulimit nofile= of Docker, ulimit -H -n), or \
             lower those two",
            limit.saturating_sub(OTHER_FILES)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_low_when_connections_and_the_rest_do_not_fit() {
        let needed = 30 + OTHER_FILES;
        for (limit, low) in [
            (Some(0), true),
            (Some(needed - 1), true),
            (Some(needed), false),
            (Some(needed + 1), false),
            (None, false),
        ] {
            assert_eq!(shortage(limit, 10, 20).is_some(), low, "{limit:?}");
        }
        assert!(shortage(Some(u64::MAX - 1), usize::MAX, usize::MAX).is_some());
        let message = shortage(Some(256), 10_000, 10_000).unwrap();
        for part in ["256", "192", "20000", "20064", "http.connections_max", "LimitNOFILE"] {
            assert!(message.contains(part), "{part}: {message}");
        }
    }
}
