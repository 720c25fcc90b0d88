//! One table of every error that a caller can get, with its form in each protocol.

/// The first word of an error in RESP, on which Redis clients act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RespPrefix {
    /// `-ERR`: the same request gives the same error again.
    Err,
    /// `-NOAUTH`: no token, or a wrong one.
    NoAuth,
    /// `-NOPERM`: the token lacks the permission.
    NoPerm,
    /// `-TRYAGAIN`: a retry may help.
    TryAgain,
}

impl RespPrefix {
    /// Returns the word itself, without the leading dash.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Err => "ERR",
            Self::NoAuth => "NOAUTH",
            Self::NoPerm => "NOPERM",
            Self::TryAgain => "TRYAGAIN",
        }
    }
}

/// A row of the table: the form of one [`Code`] in every protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeRow {
    /// The code in JSON: stable, lower case.
    pub name: &'static str,
    /// HTTP status.
    pub http: u16,
    /// RESP prefix.
    pub resp: RespPrefix,
    /// Exit code of the command line: 1 negative result, 2 wrong usage or configuration, 3 rejected
    /// for safety, 4 not available.
    pub exit: u8,
    /// gRPC status code, as numbered in the gRPC core documentation ("Status codes and their use").
    pub grpc: u32,
}

macro_rules! codes {
    ($($(#[doc = $line:literal])* $variant:ident = $name:literal, $http:literal, $resp:ident, $exit:literal, $grpc:literal;)*) => {
        /// The code of an error that a caller gets.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[doc = $line])* $variant,)*
        }

        impl Code {
            /// Every code, in the table's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the lines of this code's documentation: meaning, causes and remedy, with an
            /// empty line between them.
            #[doc(hidden)]
            #[must_use]
            pub const fn documentation(self) -> &'static [&'static str] {
                match self {
                    $(Self::$variant => &[$($line),*],)*
                }
            }

            /// Returns this code's row of the table.
            #[must_use]
            pub const fn row(self) -> CodeRow {
                match self {
                    $(Self::$variant => CodeRow {
                        name: $name,
                        http: $http,
                        resp: RespPrefix::$resp,
                        exit: $exit,
                        grpc: $grpc,
                    },)*
                }
            }
        }
    };
}

codes! {
    //                      name                       HTTP RESP    exit gRPC
    /// The request itself is invalid, or the command line, or the configuration.
    ///
    /// Causes: an unknown key or parameter, a value that cannot be read, or values that do not fit
    /// together.
    ///
    /// Remedy: correct what the message names; the same request gives the same error again.
    BadRequest =            "bad_request",             400, Err,      2,   3;
    /// The request needs something that this version, or this server, does not have.
    ///
    /// Causes: a call, a definition or a store of another version, or a store or upstream that the
    /// configuration of this server does not name.
    ///
    /// Remedy: update this program, or change what the message names, such as `stores` or
    /// `upstreams`.
    Unsupported =           "unsupported",             400, Err,      2,  12;
    /// No token, or a wrong one.
    ///
    /// Causes: tokens are required (tokens.file), and the request has none, an unknown one, or one
    /// that has ended.
    ///
    /// Remedy: send a token: `Authorization: Bearer TOKEN`, `AUTH TOKEN` over RESP,
    /// `SNOWMINT_TOKEN` for commands. `snowmint doctor` names tokens that have ended.
    Unauthenticated =       "unauthenticated",         401, NoAuth,   2,  16;
    /// The token, or the web page that sends the request, lacks the permission.
    ///
    /// Causes: no grant of the token has this right over this source or object, or the request
    /// comes from a web page of another site.
    ///
    /// Remedy: add the grant to the token in tokens.file, which the server follows
    /// (docs/reference/access.md#rights), or the host of the page to http.hosts.
    Forbidden =             "forbidden",               403, NoPerm,   1,   7;
    /// No source has this name.
    ///
    /// Causes: a misspelt name, another namespace, or a missing definition.
    ///
    /// Remedy: `snowmint source list` shows all names; `snowmint source define NAME` defines a
    /// source.
    UnknownSource =         "unknown_source",          404, Err,      1,   5;
    /// The requested path, layout or other item, which is not a source, does not exist.
    ///
    /// Causes: a misspelt path or name, or a path of a newer version.
    ///
    /// Remedy: `/openapi.json` describes all paths, and `snowmint layout` lists the layouts.
    NotFound =              "not_found",               404, Err,      1,   5;
    /// The path exists, but not with this method.
    ///
    /// Causes: for example `HEAD` of a path that takes IDs.
    ///
    /// Remedy: use a method that the header `Allow` names.
    MethodNotAllowed =      "method_not_allowed",      405, Err,      2,  12;
    /// The request took too long to arrive.
    ///
    /// Causes: its body, or the message of the call, was not complete within http.request_time_max.
    ///
    /// Remedy: send the request again: its IDs may be skipped, and never come twice. On slow
    /// networks, raise the limit.
    TooSlow =               "too_slow",                408, Err,      4,   4;
    /// The catalog contradicts the request.
    ///
    /// Causes: a definition that differs from the stored one in a fixed key, or a source that has
    /// changed since the version that the request names. At a start, also a server that disagrees
    /// with others of its namespace; in a command, numbers that are still in use.
    ///
    /// Remedy: `snowmint source show NAME` shows the stored keys; change the request, or `snowmint
    /// source alter` the source.
    Conflict =              "conflict",                409, Err,      2,   9;
    /// The source exists, but is disabled.
    ///
    /// Causes: `snowmint source disable NAME`, or `enabled = false` in its definition.
    ///
    /// Remedy: `snowmint source enable NAME`, or use another source.
    Disabled =              "disabled",                409, Err,      1,   9;
    /// The request asks for more at once than the limit.
    ///
    /// Causes: a count, a body, a definition or a number of calls above the limit that the message
    /// names.
    ///
    /// Remedy: ask for less at once, or raise the limit (limits.batch_max and others).
    LimitExceeded =         "limit_exceeded",          413, Err,      2,   8;
    /// The body has a media type or an encoding that the server cannot read.
    ///
    /// Causes: a `Content-Type` of forms or plain text, which web pages can send anywhere, or a
    /// `Content-Encoding`.
    ///
    /// Remedy: send JSON with `Content-Type: application/json`, not compressed.
    UnsupportedMediaType =  "unsupported_media_type",  415, Err,      2,   3;
    /// The request names a host that this server does not serve.
    ///
    /// Causes: the server requires no tokens, and was called by a name that http.hosts lacks.
    ///
    /// Remedy: add the name to http.hosts, or call the server by an address
    /// (docs/reference/access.md#browsers).
    Misdirected =           "misdirected",             421, Err,      2,   7;
    /// The caller is over the agreed rate.
    ///
    /// Causes: the rates of the token, or too many wrong tokens from the caller's address.
    ///
    /// Remedy: retry after the time that the error gives, or raise the rate in tokens.file.
    RateLimited =           "rate_limited",            429, TryAgain, 4,   8;
    /// The program has a fault; the log has the details.
    ///
    /// Causes: a bug in Snowmint, or in the driver of a store. No ID comes twice.
    ///
    /// Remedy: report it with the lines of the log.
    Internal =              "internal",                500, Err,      4,  13;
    /// Something needed, such as the store, is not reachable now.
    ///
    /// Causes: the store, a secondary store, an upstream, a peer or the server of a command does not
    /// respond, or a file or an address that a command needs cannot be used.
    ///
    /// Remedy: retry after the time that the error gives. Bring back what the log names; servers
    /// continue by themselves.
    Unavailable =           "unavailable",             503, TryAgain, 4,  14;
    /// The server, or the caller's share of it, is at a limit.
    ///
    /// Causes: too many connections, unsent responses, or requests that wait for another server.
    /// The message names the limit.
    ///
    /// Remedy: read the responses, or ask for fewer at once; raise the limit, or add servers
    /// (docs/reference/access.md#shares).
    Overloaded =            "overloaded",              503, TryAgain, 4,  14;
    /// The server is stopping.
    ///
    /// Causes: a signal to stop, or a handle that was closed in an embedding program.
    ///
    /// Remedy: retry at another server.
    Closed =                "closed",                  503, TryAgain, 4,  14;
    /// Every worker number is in use.
    ///
    /// Causes: more processes than worker numbers, or numbers whose marks lie ahead of the clock.
    /// The message names holders.
    ///
    /// Remedy: stop processes that you do not need. `snowmint worker list` shows the holders,
    /// `snowmint worker reclaim` lowers marks. Layouts with more worker bits have more numbers.
    PoolFull =              "pool_full",               503, TryAgain, 4,  14;
    /// Another member took over the slot; this one is claiming again.
    ///
    /// Causes: this process, or its way to the store, stood still for longer than its lease.
    ///
    /// Remedy: retry: the server continues by itself under a new lease.
    Fenced =                "fenced",                  503, TryAgain, 4,  14;
    /// Another server is the section owner of this key.
    ///
    /// Causes: servers joined or left, and the key's section is moving. Over RESP, the error is
    /// `-MOVED` with the owner's address.
    ///
    /// Remedy: follow `-MOVED`, as cluster clients do, or retry
    /// (docs/explanation/counters.md#which-server-issues-the-numbers).
    NotOwner =              "not_owner",               503, TryAgain, 4,  14;
    /// Another call moved the mark first.
    ///
    /// Causes: two calls at once for the same numbers, or a call that was sent again.
    ///
    /// Remedy: retry with the present mark; servers do this by themselves.
    MarkMoved =             "mark_moved",              503, TryAgain, 4,  14;
    /// Every ID of this tick has been minted.
    ///
    /// Causes: callers want more IDs in a tick than the layout's sequence has, for longer than
    /// limits.wait_max.
    ///
    /// Remedy: retry after the time that the error gives. Add servers, or use a layout with more
    /// sequence bits (`snowmint layout --rate`).
    TickFull =              "tick_full",               503, TryAgain, 4,  14;
    /// The time granted by the store has been used up.
    ///
    /// Causes: the store has not responded for about half of worker.window or longer, or the
    /// journal cannot be written.
    ///
    /// Remedy: bring the store or the disk back; servers continue by themselves. If the store fails
    /// over slowly, set a longer worker.window.
    WindowSpent =           "window_spent",            503, TryAgain, 4,  14;
    /// The clock is behind by more than the source tolerates.
    ///
    /// Causes: the clock was set back further than the source's on_rollback policy permits.
    ///
    /// Remedy: set the clock right; `snowmint doctor` names the clocks that disagree
    /// (docs/explanation/clocks.md).
    ClockBehind =           "clock_behind",            503, TryAgain, 4,  14;
    /// The clock is ahead of the store's by more than the limit.
    ///
    /// Causes: this machine's clock differs by more than clock.skew_max, or jumped by more than
    /// clock.jump_max.
    ///
    /// Remedy: set the clock right; `snowmint doctor` names the clocks that disagree
    /// (docs/explanation/clocks.md).
    ClockAhead =            "clock_ahead",             503, TryAgain, 3,  14;
    /// The source's numbers have run out, or another finite supply.
    ///
    /// Causes: every number of the source, of a serial's period or of a pool without reuse was
    /// handed out or lost; or the journal has no room for another source.
    ///
    /// Remedy: define a source with more numbers, such as a larger serial.width; serials with a
    /// date continue with the next period. Delete unused sources.
    Exhausted =             "exhausted",               503, Err,      1,   8;
    /// The layout's years have run out.
    ///
    /// Causes: the time since the layout's epoch no longer fits into its time bits.
    ///
    /// Remedy: define a new source with a later epoch or more time bits, and disable this one.
    EpochSpent =            "epoch_spent",             503, Err,      1,   8;
    /// The store shows an older state than seen before.
    ///
    /// Causes: a restored backup or snapshot, or a failover that lost writes.
    ///
    /// Remedy: `snowmint worker recover` (docs/explanation/guarantees.md#recovery). Do not
    /// delete journals.
    StoreRolledBack =       "store_rolled_back",       503, Err,      3,  14;
    /// The store is not the one used before.
    ///
    /// Causes: another URL, an emptied database, or a failover to another database server.
    ///
    /// Remedy: set the right URL, or recover the store
    /// (docs/explanation/guarantees.md#another-server-of-the-store).
    StoreMismatch =         "store_mismatch",          503, Err,      3,  14;
    /// The local journal does not belong to this machine, directory or store.
    ///
    /// Causes: a data directory that was copied, moved or restored from a backup.
    ///
    /// Remedy: use the right directory. Numbers that a restored journal lacks would repeat: name them
    /// (docs/how-to/recover-a-store.md#a-rejected-journal).
    JournalRefused =        "journal_refused",         503, Err,      3,  14;
    /// Another process uses the data directory.
    ///
    /// Causes: a server or a command that runs in the same server.data_dir.
    ///
    /// Remedy: stop that process, or use another directory.
    Locked =                "locked",                  503, Err,      3,  14;
    /// Stored data does not have its expected form.
    ///
    /// Causes: a damaged row, a write by another program, or a definition of a newer version.
    ///
    /// Remedy: upgrade this server if a newer one wrote the row that the log names. Otherwise
    /// restore the store, and recover it (docs/explanation/guarantees.md#recovery).
    Corrupt =               "corrupt",                 503, Err,      3,  14;
    /// The store's disk is full.
    ///
    /// Causes: a full disk, or a quota of the database. Everything acknowledged before is safe.
    ///
    /// Remedy: free space; servers continue by themselves.
    StorageFull =           "storage_full",            503, TryAgain, 4,  14;
    /// This process cannot write the store.
    ///
    /// Causes: a read-only file or file system, or a database server that only reads, such as a
    /// replica.
    ///
    /// Remedy: permit writes, or name the primary in store.url.
    StoreReadOnly =         "store_read_only",         503, Err,      4,  14;
    /// The user with which the server connects lacks a permission in the store.
    ///
    /// Causes: a grant that is missing in the database.
    ///
    /// Remedy: grant the permission that the log names (docs/reference/stores.md).
    StorePermissionDenied = "store_permission_denied", 503, Err,      2,  14;
    /// The store is configured so that it may lose acknowledged writes.
    ///
    /// Causes: for example a Redis without an append-only file that it syncs always, or a replica.
    ///
    /// Remedy: change the setting that the message names (docs/reference/stores.md).
    UnsafeStore =           "unsafe_store",            503, Err,      2,  14;
}

impl Code {
    /// Returns the code's name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().name
    }

    /// Returns the code with this name, as a client reads it from a response.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.row().name == name)
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_readable_back() {
        let names: HashSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
        for &code in Code::ALL {
            assert_eq!(Code::from_name(code.as_str()), Some(code));
            assert!(code.as_str().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{code}");
        }
        assert_eq!(Code::from_name("nonsense"), None);
    }

    #[test]
    fn code_rows_match_the_interface() {
        // Required by INTERFACE: these statuses, these prefixes, exit 1 to 4. 405, 408, 415, 421
        // and 500 are HTTP's own.
        let statuses = [400, 401, 403, 404, 405, 408, 409, 413, 415, 421, 429, 500, 503];
        for &code in Code::ALL {
            let row = code.row();
            assert!(statuses.contains(&row.http), "{code}: {}", row.http);
            assert!((1..=4).contains(&row.exit), "{code}: {}", row.exit);
            assert!((1..=16).contains(&row.grpc), "{code}: {}", row.grpc);
            // A retry helps only if the error means "not now".
            if row.resp == RespPrefix::TryAgain {
                assert!(matches!(row.http, 429 | 503), "{code}");
            }
        }
        assert_eq!(Code::UnknownSource.row().http, 404);
        assert_eq!(Code::LimitExceeded.row().http, 413);
        assert_eq!(Code::Conflict.row().http, 409);
        assert_eq!(Code::RateLimited.row().http, 429);
        assert_eq!(Code::StoreRolledBack.row().exit, 3);
    }
}
