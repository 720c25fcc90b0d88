//! The system's limit of open files: every connection takes one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a server opens besides connections: listeners, store, journal, runtime, standard streams, and
/// a connection that is only accepted to be told that it is one too many. A dozen or two, rounded up.
const OTHER_FILES: u64 = 64;

/// Raises the soft limit of open files to the hard one, and answers what may be open then: none for
/// no limit.
///
/// Shells and service managers set the soft limit low for the sake of programs that use `select`;
/// this one does not. It is a change to the whole process, which is why it is made here, in the
/// binary, and in no library.
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
            tracing::warn!(limit = ?current, hard_limit = ?maximum, %error, "the limit of open files cannot be raised");
            current
        }
    }
}

/// What to tell the operator when `limit` open files are too few for as many connections as the
/// configuration allows; none when they are enough.
pub(crate) fn shortage(limit: Option<u64>, http_max: usize, resp_max: usize) -> Option<String> {
    let limit = limit?;
    let count = |max| u64::try_from(max).unwrap_or(u64::MAX);
    let connections = count(http_max).saturating_add(count(resp_max));
    let needed = connections.saturating_add(OTHER_FILES);
    (limit < needed).then(|| {
        format!(
            "at most {limit} files may be open, which is enough for about {} connections, while \
             http.connections_max and resp.connections_max allow {connections}: raise the hard limit \
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
        let said = shortage(Some(256), 10_000, 10_000).unwrap();
        for part in ["256", "192", "20000", "20064", "http.connections_max", "LimitNOFILE"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
