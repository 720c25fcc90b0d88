//! Commands of Redis without a meaning here: each is rejected with the reason, and with what to do
//! instead.

use snowmint_wire::error::Code;
use snowmint_wire::resp::Command;

use crate::resp::session::Session;

/// Reason for commands that set a value.
pub(super) const CHANGES_VALUE: &str = "sets a value, and the numbers of a counter only rise; count with INCR or INCRBY, \
     prepare a counter with SET key 0 NX, raise it with PUT /v1/counters/SOURCE/KEY (HTTP), keep \
     other values in Redis";

/// Reason for commands that end a key's life.
pub(super) const EXPIRES: &str = "makes a key begin again, and its numbers come twice. For numbers that begin again each \
     day, put the date into the key (INCR source:orders-2026-11-29), or use a source of serials \
     (serial.date); keep locks, sessions and caches in Redis";

/// Reason for `SET` with `NX` and an expiry.
pub(super) const LOCKS: &str = "with NX and an expiry takes a lock, or makes a key begin again. Keep locks in Redis; for \
     numbers that begin again each day, put the date into the key (INCR \
     source:orders-2026-11-29)";

const LOWERS: &str = "lowers a counter, and its numbers come twice; count with INCR or INCRBY";

const FRACTION: &str =
    "counts in fractions, and IDs are whole numbers; use INCRBY with a whole number";

const COPIES: &str = "copies or renames a key, and two keys return the same numbers; count with INCR under the \
     new name (snowmint import redis moves counters from Redis)";

const READS_PART: &str = "reads a part of a value; read a counter with GET source:key";

const SCRIPTS: &str = "runs a script, and the server runs none; INCR, INCRBY and MINT are atomic by themselves, \
     MULTI and EXEC send several together. A key with the date in its name needs no EXPIRE; keep locks \
     and queues in Redis";

const HASHES: &str = "needs a hash, and a source of counters has only HINCRBY source key n, which counts, and HGET source key";

const OTHER_VALUES: &str = "needs a value of another kind, and this server has only sources and counters; keep such \
     values in Redis";

const CHANNELS: &str = "needs channels, and the server sends no messages; keep them in Redis";

const LISTS_KEYS: &str = "searches keys, and a server does not list them; read a counter with GET source:key, list \
     sources with snowmint source list";

const PERSISTENCE: &str = "saves or copies a data set, and each number is safe in the store before it is returned; \
     see snowmint doctor";

const ADMINISTRATION: &str = "administers a Redis server; configure this one by its file (snowmint config), \
     and measure it at /metrics (HTTP)";

const TOKENS: &str =
    "manages users, and callers have tokens with rights; manage them in the file of tokens.file";

const SHARING: &str = "changes which server has a section, and the servers share sections by themselves; start or \
     stop a server";

const CONNECTIONS: &str = "acts on other connections, and the server ends connections only by its limits \
     (resp.idle_max, resp.connections_max)";

const CLOCK: &str = "reads the server's clock; the time of an ID is in DECODE id source";

/// Rejected commands, by reason. A sub-command stands after its container, which has a row in the
/// table of commands.
static REJECTED: &[(&str, &[&str])] = &[
    (
        CHANGES_VALUE,
        &["append", "bitfield", "bitop", "getset", "mset", "msetnx", "setbit", "setrange"],
    ),
    (
        EXPIRES,
        &[
            "del",
            "expire",
            "expireat",
            "flushall",
            "flushdb",
            "getdel",
            "getex",
            "pexpire",
            "pexpireat",
            "psetex",
            "setex",
            "unlink",
        ],
    ),
    (LOWERS, &["decr", "decrby"]),
    (FRACTION, &["incrbyfloat"]),
    (COPIES, &["copy", "move", "rename", "renamenx", "restore", "restore-asking", "swapdb"]),
    (
        READS_PART,
        &["bitcount", "bitfield_ro", "bitpos", "getbit", "getrange", "lcs", "strlen", "substr"],
    ),
    (
        SCRIPTS,
        &["eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro", "function", "script"],
    ),
    (
        HASHES,
        &[
            "hdel",
            "hexists",
            "hexpire",
            "hexpireat",
            "hexpiretime",
            "hgetall",
            "hgetdel",
            "hgetex",
            "hincrbyfloat",
            "hkeys",
            "hlen",
            "hmget",
            "hmset",
            "hpersist",
            "hpexpire",
            "hpexpireat",
            "hpexpiretime",
            "hpttl",
            "hrandfield",
            "hscan",
            "hset",
            "hsetex",
            "hsetnx",
            "hstrlen",
            "httl",
            "hvals",
        ],
    ),
    (
        OTHER_VALUES,
        &[
            "blmove",
            "blmpop",
            "blpop",
            "brpop",
            "brpoplpush",
            "bzmpop",
            "bzpopmax",
            "bzpopmin",
            "geoadd",
            "geodist",
            "geohash",
            "geopos",
            "georadius",
            "georadius_ro",
            "georadiusbymember",
            "georadiusbymember_ro",
            "geosearch",
            "geosearchstore",
            "lindex",
            "linsert",
            "llen",
            "lmove",
            "lmpop",
            "lpop",
            "lpos",
            "lpush",
            "lpushx",
            "lrange",
            "lrem",
            "lset",
            "ltrim",
            "pfadd",
            "pfcount",
            "pfdebug",
            "pfmerge",
            "pfselftest",
            "rpop",
            "rpoplpush",
            "rpush",
            "rpushx",
            "sadd",
            "scard",
            "sdiff",
            "sdiffstore",
            "sinter",
            "sintercard",
            "sinterstore",
            "sismember",
            "smembers",
            "smismember",
            "smove",
            "spop",
            "srandmember",
            "srem",
            "sscan",
            "sunion",
            "sunionstore",
            "xack",
            "xadd",
            "xautoclaim",
            "xclaim",
            "xdel",
            "xgroup",
            "xinfo",
            "xlen",
            "xpending",
            "xrange",
            "xread",
            "xreadgroup",
            "xrevrange",
            "xsetid",
            "xtrim",
            "zadd",
            "zcard",
            "zcount",
            "zdiff",
            "zdiffstore",
            "zincrby",
            "zinter",
            "zintercard",
            "zinterstore",
            "zlexcount",
            "zmpop",
            "zmscore",
            "zpopmax",
            "zpopmin",
            "zrandmember",
            "zrange",
            "zrangebylex",
            "zrangebyscore",
            "zrangestore",
            "zrank",
            "zrem",
            "zremrangebylex",
            "zremrangebyrank",
            "zremrangebyscore",
            "zrevrange",
            "zrevrangebylex",
            "zrevrangebyscore",
            "zrevrank",
            "zscan",
            "zscore",
            "zunion",
            "zunionstore",
        ],
    ),
    (
        CHANNELS,
        &[
            "psubscribe",
            "publish",
            "pubsub",
            "punsubscribe",
            "spublish",
            "ssubscribe",
            "subscribe",
            "sunsubscribe",
            "unsubscribe",
        ],
    ),
    (LISTS_KEYS, &["keys", "object", "randomkey", "scan", "sort", "sort_ro"]),
    (
        PERSISTENCE,
        &[
            "bgrewriteaof",
            "bgsave",
            "dump",
            "failover",
            "lastsave",
            "migrate",
            "psync",
            "replconf",
            "replicaof",
            "save",
            "slaveof",
            "sync",
            "wait",
            "waitaof",
        ],
    ),
    (
        ADMINISTRATION,
        &[
            "config|resetstat",
            "debug",
            "latency",
            "lolwut",
            "memory",
            "module",
            "monitor",
            "shutdown",
            "slowlog",
        ],
    ),
    (TOKENS, &["acl"]),
    (
        SHARING,
        &[
            "cluster|addslots",
            "cluster|addslotsrange",
            "cluster|bumpepoch",
            "cluster|delslots",
            "cluster|delslotsrange",
            "cluster|failover",
            "cluster|flushslots",
            "cluster|forget",
            "cluster|meet",
            "cluster|replicate",
            "cluster|reset",
            "cluster|saveconfig",
            "cluster|set-config-epoch",
            "cluster|setslot",
        ],
    ),
    (CONNECTIONS, &["client|kill", "client|pause", "client|unpause"]),
    (CLOCK, &["time"]),
];

/// A rejected command: its name, and the reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rejected {
    pub(super) name: &'static str,
    reason: &'static str,
}

impl Rejected {
    /// Finds a command by its name, in either case.
    pub(super) fn find(name: &[u8]) -> Option<Self> {
        // The name of a sub-command is two words of a request.
        (!name.contains(&b'|')).then(|| Self::row(name)).flatten()
    }

    fn row(name: &[u8]) -> Option<Self> {
        let is = |known: &&&str| known.as_bytes().eq_ignore_ascii_case(name);
        REJECTED
            .iter()
            .find_map(|(reason, names)| Some(Self { name: names.iter().find(is)?, reason }))
    }

    /// Finds a sub-command of a container that has a row in the table of commands.
    pub(super) fn find_sub(container: &str, command: &Command<'_>) -> Option<Self> {
        let sub = command.arg(1).unwrap_or_default();
        Self::row(&[container.as_bytes(), b"|", sub].concat())
    }

    /// Writes the error, and counts it.
    pub(super) fn write(self, session: &Session, output: &mut Vec<u8>) {
        write(self.name, self.reason, session, output);
    }
}

/// Writes the error of a command that is rejected for this reason, and counts it.
pub(super) fn write(name: &str, reason: &str, session: &Session, output: &mut Vec<u8>) {
    session.refused(Code::BadRequest, None);
    let name = name.replace('|', " ").to_ascii_uppercase();
    session.reply(output).error("ERR", &format!("{name} {reason}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_one_reason() {
        let mut names: Vec<_> = REJECTED.iter().flat_map(|(_, names)| names.iter()).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|name| name.bytes().all(|byte| !byte.is_ascii_uppercase())));
        assert_eq!(Rejected::find(b"ExPire").unwrap().reason, EXPIRES);
        assert!(Rejected::find(b"expires").is_none());
    }
}
