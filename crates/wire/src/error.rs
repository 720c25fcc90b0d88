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
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $http:literal, $resp:ident, $exit:literal, $grpc:literal;)*) => {
        /// The code of an error that a caller gets.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every code, in the table's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

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
    /// The request itself is invalid.
    BadRequest =            "bad_request",             400, Err,      2,   3;
    /// The request needs something that this version does not have.
    Unsupported =           "unsupported",             400, Err,      2,  12;
    /// No token, or a wrong one.
    Unauthenticated =       "unauthenticated",         401, NoAuth,   2,  16;
    /// The token lacks the permission.
    Forbidden =             "forbidden",               403, NoPerm,   1,   7;
    /// No source has this name.
    UnknownSource =         "unknown_source",          404, Err,      1,   5;
    /// The requested path, layout or other item, which is not a source, does not exist.
    NotFound =              "not_found",               404, Err,      1,   5;
    /// The path exists, but not with this method.
    MethodNotAllowed =      "method_not_allowed",      405, Err,      2,  12;
    /// The request took too long to arrive.
    TooSlow =               "too_slow",                408, Err,      4,   4;
    /// The catalog contradicts the request.
    Conflict =              "conflict",                409, Err,      2,   9;
    /// The source exists, but is disabled.
    Disabled =              "disabled",                409, Err,      1,   9;
    /// The request asks for more at once than the limit.
    LimitExceeded =         "limit_exceeded",          413, Err,      2,   8;
    /// The body has a media type or an encoding that the server cannot read.
    UnsupportedMediaType =  "unsupported_media_type",  415, Err,      2,   3;
    /// The request names a host that this server does not serve.
    Misdirected =           "misdirected",             421, Err,      2,   7;
    /// The caller is over the agreed rate.
    RateLimited =           "rate_limited",            429, TryAgain, 4,   8;
    /// The program has a fault; the log has the details.
    Internal =              "internal",                500, Err,      4,  13;
    /// Something needed, such as the store, is not reachable now.
    Unavailable =           "unavailable",             503, TryAgain, 4,  14;
    /// The server holds the maximum of unsent responses.
    Overloaded =            "overloaded",              503, TryAgain, 4,  14;
    /// The server is stopping.
    Closed =                "closed",                  503, TryAgain, 4,  14;
    /// Every worker number is in use.
    PoolFull =              "pool_full",               503, TryAgain, 4,  14;
    /// Another member took over the slot; this one is claiming again.
    Fenced =                "fenced",                  503, TryAgain, 4,  14;
    /// Another server is the section owner of this key.
    NotOwner =              "not_owner",               503, TryAgain, 4,  14;
    /// Another call moved the mark first.
    MarkMoved =             "mark_moved",              503, TryAgain, 4,  14;
    /// Every ID of this tick has been minted.
    TickFull =              "tick_full",               503, TryAgain, 4,  14;
    /// The time granted by the store has been used up.
    WindowSpent =           "window_spent",            503, TryAgain, 4,  14;
    /// The clock is behind by more than the source tolerates.
    ClockBehind =           "clock_behind",            503, TryAgain, 4,  14;
    /// The clock is ahead of the store's by more than the limit.
    ClockAhead =            "clock_ahead",             503, TryAgain, 3,  14;
    /// The source's numbers have run out.
    Exhausted =             "exhausted",               503, Err,      1,   8;
    /// The layout's years have run out.
    EpochSpent =            "epoch_spent",             503, Err,      1,   8;
    /// The store shows an older state than seen before.
    StoreRolledBack =       "store_rolled_back",       503, Err,      3,  14;
    /// The store is not the one used before.
    StoreMismatch =         "store_mismatch",          503, Err,      3,  14;
    /// The local journal does not belong to this machine, directory or store.
    JournalRefused =        "journal_refused",         503, Err,      3,  14;
    /// Another process uses the data directory.
    Locked =                "locked",                  503, Err,      3,  14;
    /// Stored data does not have its expected form.
    Corrupt =               "corrupt",                 503, Err,      3,  14;
    /// The store's disk is full.
    StorageFull =           "storage_full",            503, TryAgain, 4,  14;
    /// This process cannot write the store.
    StoreReadOnly =         "store_read_only",         503, Err,      4,  14;
    /// The user with which the server connects lacks a permission in the store.
    StorePermissionDenied = "store_permission_denied", 503, Err,      2,  14;
    /// The store is configured so that it may lose acknowledged writes.
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
