//! Every command of Redis gets a reply with a meaning, or a reason.

use super::common::server;

/// Names in `COMMAND LIST` of Redis 7.0.15. A sub-command stands after its container.
const NAMES: &str = "\
    acl acl|cat acl|deluser acl|dryrun acl|genpass acl|getuser acl|help acl|list acl|load \
    acl|log acl|save acl|setuser acl|users acl|whoami append asking auth bgrewriteaof bgsave \
    bitcount bitfield bitfield_ro bitop bitpos blmove blmpop blpop brpop brpoplpush bzmpop \
    bzpopmax bzpopmin client client|caching client|getname client|getredir client|help client|id \
    client|info client|kill client|list client|no-evict client|pause client|reply client|setname \
    client|tracking client|trackinginfo client|unblock client|unpause cluster cluster|addslots \
    cluster|addslotsrange cluster|bumpepoch cluster|count-failure-reports \
    cluster|countkeysinslot cluster|delslots cluster|delslotsrange cluster|failover \
    cluster|flushslots cluster|forget cluster|getkeysinslot cluster|help cluster|info \
    cluster|keyslot cluster|links cluster|meet cluster|myid cluster|nodes cluster|replicas \
    cluster|replicate cluster|reset cluster|saveconfig cluster|set-config-epoch cluster|setslot \
    cluster|shards cluster|slaves cluster|slots command command|count command|docs \
    command|getkeys command|getkeysandflags command|help command|info command|list config \
    config|get config|help config|resetstat config|rewrite config|set copy dbsize debug decr \
    decrby del discard dump echo eval eval_ro evalsha evalsha_ro exec exists expire expireat \
    expiretime failover fcall fcall_ro flushall flushdb function function|delete function|dump \
    function|flush function|help function|kill function|list function|load function|restore \
    function|stats geoadd geodist geohash geopos georadius georadius_ro georadiusbymember \
    georadiusbymember_ro geosearch geosearchstore get getbit getdel getex getrange getset hdel \
    hello hexists hget hgetall hincrby hincrbyfloat hkeys hlen hmget hmset hrandfield hscan hset \
    hsetnx hstrlen hvals incr incrby incrbyfloat info keys lastsave latency latency|doctor \
    latency|graph latency|help latency|histogram latency|history latency|latest latency|reset \
    lcs lindex linsert llen lmove lmpop lolwut lpop lpos lpush lpushx lrange lrem lset ltrim \
    memory memory|doctor memory|help memory|malloc-stats memory|purge memory|stats memory|usage \
    mget migrate module module|help module|list module|load module|loadex module|unload monitor \
    move mset msetnx multi object object|encoding object|freq object|help object|idletime \
    object|refcount persist pexpire pexpireat pexpiretime pfadd pfcount pfdebug pfmerge \
    pfselftest ping psetex psubscribe psync pttl publish pubsub pubsub|channels pubsub|help \
    pubsub|numpat pubsub|numsub pubsub|shardchannels pubsub|shardnumsub punsubscribe quit \
    randomkey readonly readwrite rename renamenx replconf replicaof reset restore restore-asking \
    role rpop rpoplpush rpush rpushx sadd save scan scard script script|debug script|exists \
    script|flush script|help script|kill script|load sdiff sdiffstore select set setbit setex \
    setnx setrange shutdown sinter sintercard sinterstore sismember slaveof slowlog slowlog|get \
    slowlog|help slowlog|len slowlog|reset smembers smismember smove sort sort_ro spop spublish \
    srandmember srem sscan ssubscribe strlen subscribe substr sunion sunionstore sunsubscribe \
    swapdb sync time touch ttl type unlink unsubscribe unwatch wait watch xack xadd xautoclaim \
    xclaim xdel xgroup xgroup|create xgroup|createconsumer xgroup|delconsumer xgroup|destroy \
    xgroup|help xgroup|setid xinfo xinfo|consumers xinfo|groups xinfo|help xinfo|stream xlen \
    xpending xrange xread xreadgroup xrevrange xsetid xtrim zadd zcard zcount zdiff zdiffstore \
    zincrby zinter zintercard zinterstore zlexcount zmpop zmscore zpopmax zpopmin zrandmember \
    zrange zrangebylex zrangebyscore zrangestore zrank zrem zremrangebylex zremrangebyrank \
    zremrangebyscore zrevrange zrevrangebylex zrevrangebyscore zrevrank zscan zscore zunion \
    zunionstore";

/// Commands of later versions, up to 8.0.
const LATER_NAMES: &str = "client|no-touch client|setinfo cluster|myshardid hexpire hexpireat \
    hexpiretime hgetdel hgetex hpersist hpexpire hpexpireat hpexpiretime hpttl hsetex httl waitaof";

#[tokio::test]
async fn every_command_of_redis_has_a_reply_or_a_reason() {
    let server = server().await;
    let names: Vec<&str> = NAMES.split(' ').chain(LATER_NAMES.split(' ')).collect();
    assert_eq!(names.len(), 366 + 16);
    for name in names {
        let words: Vec<&str> = name.split('|').collect();
        for args in [&[][..], &["key"], &["key", "1"], &["key", "1", "2"]] {
            // Some commands end the connection.
            let mut client = server.resp().await;
            let words = [&words[..], args].concat();
            let reply = client.ask(&words).await.to_ascii_lowercase();
            assert!(!reply.contains("unknown command"), "{words:?}: {reply}");
            // Behind a container, an argument is the name of a sub-command.
            assert!(!name.contains('|') || !reply.contains("unknown sub"), "{words:?}: {reply}");
        }
    }
}

/// A word that Redis does not have stays unknown, and so do words near those that it has.
#[tokio::test]
async fn words_that_redis_does_not_have_stay_unknown() {
    let server = server().await;
    let mut client = server.resp().await;
    for name in ["expires", "expir", "client|kill", "set ", "flush", "incrs", "cluster|", "\u{e9}"]
    {
        let reply = client.ask(&[name, "a"]).await;
        assert!(reply.starts_with("-ERR unknown command '"), "{name}: {reply}");
    }
    for [container, sub] in [["CLIENT", "NOPE"], ["CLUSTER", "MYSHARD"], ["CONFIG", "NOPE"]] {
        let reply = client.ask(&[container, sub]).await;
        let expected = format!("-ERR unknown subcommand '{sub}'. Try {container} HELP.");
        assert_eq!(reply, expected);
    }
}

#[tokio::test]
async fn each_command_that_cannot_run_is_counted() {
    let server = server().await;
    let mut client = server.resp().await;
    let words: &[&[&str]] = &[
        &["NOPE"],
        &["INCR"],
        &["DECR", "counters:a"],
        &["SET", "counters:a", "5"],
        &["WATCH", "counters:a"],
        &["CLIENT", "NOPE"],
        &["CLIENT", "KILL"],
        &["CLUSTER", "SLOTS", "x"],
        &["CLUSTER", "MEET"],
        &["COMMAND", "NOPE"],
        &["CONFIG", "SET", "save", "x"],
        &["CONFIG", "GET"],
    ];
    for words in words {
        let reply = client.ask(words).await;
        assert!(reply.starts_with("-ERR "), "{words:?}: {reply}");
    }
    let page = server.get("/metrics").await.body;
    let name = "snowmint_request_errors_total{protocol=\"resp\",code=\"bad_request\"}";
    let counted = format!("{name} {}", words.len());
    assert!(page.lines().any(|line| line == counted), "{counted}: {page}");
}

/// The reason says what the command would do, and what does what was meant.
#[tokio::test]
async fn reason_names_what_to_do_instead() {
    let server = server().await;
    let mut client = server.resp().await;
    for (words, part) in [
        (&["SET", "counters:a", "5"][..], "/v1/counters/"),
        (&["set", "counters:a", "0", "XX"], "SET key 0 NX"),
        (&["SET", "counters:a", "0", "NX", "EX", "60"], "put the date into the key"),
        (&["EXPIRE", "counters:a", "60"], "put the date into the key"),
        (&["PEXPIREAT", "counters:a", "60"], "serial.date"),
        (&["DEL", "counters:a"], "serial.date"),
        (&["FLUSHALL"], "its numbers come twice"),
        (&["DECR", "counters:a"], "INCR"),
        (&["DECRBY", "counters:a", "2"], "INCR"),
        (&["INCRBYFLOAT", "counters:a", "1.5"], "INCRBY with a whole number"),
        (&["GETSET", "counters:a", "0"], "INCR"),
        (&["RENAME", "counters:a", "counters:b"], "two keys return the same numbers"),
        (&["EVAL", "return 1", "0"], "MULTI and EXEC"),
        (&["SCRIPT", "LOAD", "return 1"], "atomic by themselves"),
        (&["HGETALL", "counters"], "HGET source key"),
        (&["LPUSH", "a", "1"], "keep such values in Redis"),
        (&["SUBSCRIBE", "a"], "keep them in Redis"),
        (&["KEYS", "*"], "snowmint source list"),
        (&["SCAN", "0"], "GET source:key"),
        (&["BGSAVE"], "safe in the store"),
        (&["MONITOR"], "/metrics"),
        (&["ACL", "WHOAMI"], "tokens.file"),
        (&["TIME"], "DECODE"),
        (&["WATCH", "counters:a"], "send them without WATCH"),
        (&["CLIENT", "KILL", "x"], "resp.idle_max"),
        (&["CLUSTER", "ADDSLOTS", "1"], "start or stop a server"),
        (&["CONFIG", "RESETSTAT"], "/metrics"),
    ] {
        let reply = client.ask(words).await;
        let name = words[0].to_ascii_uppercase();
        assert!(reply.starts_with(&format!("-ERR {name}")), "{words:?}: {reply}");
        assert!(reply.contains(part), "{words:?}: {reply}");
    }
    // None of them took or changed a number.
    assert_eq!(client.ask(&["INCR", "counters:a"]).await, ":1");
}

/// A rejected command aborts a transaction, as any error while queueing does.
#[tokio::test]
async fn rejected_command_of_redis_aborts_a_transaction() {
    let server = server().await;
    let mut client = server.resp().await;
    for words in
        [["MULTI", "+OK"], ["INCR numbers", "+QUEUED"], ["EXPIRE numbers 1", "-ERR EXPIRE"]]
    {
        client.send(format!("{}\r\n", words[0])).await;
        let line = client.line().await;
        assert!(line.starts_with(words[1]), "{line}");
    }
    assert!(client.ask(&["EXEC"]).await.starts_with("-EXECABORT "));
    assert_eq!(client.ask(&["INCR", "numbers"]).await, ":1");
}
