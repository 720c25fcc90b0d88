//! Texts for all keys. A test compares this table with the existing keys.

/// Section with its text, and its keys with theirs.
type Section = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// All sections, in the order of the printed file.
pub(super) const SECTIONS: &[Section] = &[
    (
        "server",
        "This process.",
        &[
            (
                "data_dir",
                "Directory of the lock, the journal and the default store; one process at a time uses it.",
            ),
            ("http", "Listen address of HTTP and gRPC, HOST:PORT; port 0 picks a free port."),
            (
                "resp",
                "Listen address of RESP, the protocol of Redis, HOST:PORT; port 0 picks a free port.",
            ),
            (
                "owner",
                "Name of this process in listings. A process that starts under the same name claims the worker number that it had before, if that number is free. Empty: the host name.",
            ),
            (
                "insecure",
                "Whether http and resp may be addresses that other machines can reach, without tokens and TLS.",
            ),
            (
                "announce",
                "Host name or IP by which peers, and clients that they redirect, reach this server: servers on one store share counters. Empty: the listen address, or the host name if the server listens on all addresses.",
            ),
        ],
    ),
    (
        "store",
        "Primary store: marks and definitions.",
        &[
            (
                "url",
                "URL of the store: sqlite:PATH, postgres://USER:PASSWORD@HOST/DATABASE, mysql://… (postgresql:// and mariadb:// are the same), redis://…, rediss://…, redis-cluster://…, rediss-cluster://…, etcd://…, etcds://…, zookeeper://…, or memory: (loses everything when the process ends, and needs --ephemeral). With servers as the store: snowmint://HOST:PORT,HOST:PORT, with TLS snowmints://. Empty: sqlite:DIR/snowmint.db in server.data_dir.",
            ),
            ("namespace", "Namespace; isolates deployments that share a store."),
            (
                "attempts_max",
                "Attempts at a step when other writers win, in redis, etcd and zookeeper; then the call fails (exit code 4). From 1 to 10000.",
            ),
            (
                "offered",
                "Whether programs may mint in their own process through this server (snowmint://HOST:PORT). They call its store over gRPC for worker numbers, windows and segments. If tokens are required, their tokens need the right join.",
            ),
            (
                "token",
                "Location of the token for servers that are used as the store: file:PATH or env:NAME, never the token itself. Empty: SNOWMINT_TOKEN, or the file that SNOWMINT_TOKEN_FILE names.",
            ),
            (
                "ca",
                "File (PEM) of the authorities that sign the certificates of those servers (snowmints://). Empty: the file that SNOWMINT_CA_FILE names, otherwise the authorities that the system trusts.",
            ),
            (
                "cert",
                "File (PEM) of the certificate, with its key, for servers that ask for one. Empty: the file that SNOWMINT_CERT_FILE names, otherwise none.",
            ),
        ],
    ),
    (
        "stores",
        "Secondary stores, in the same namespace, for sources with several stores (stores = \"A,B\"). Each store has its own stripe of the numbers or, if the stores mint, its own worker number, so one store may be unreachable. A = \"postgres://USER:PASSWORD@HOST/DATABASE\", \"file:PATH\" or \"env:NAME\".",
        &[],
    ),
    (
        "worker",
        "Worker numbers: which ones this server claims, and how it holds them.",
        &[
            (
                "number",
                "Worker number to claim in the store, and no other: a number such as 7, \"ordinal\", or \"any\" (a free one). \"ordinal\": the number that the host name ends in, as in a StatefulSet's pod snowmint-0. The server does not start if another process holds the number (exit code 3).",
            ),
            (
                "reuse",
                "\"recycle\": a released number is claimed again. \"never\": each start claims a number that was never used, until there are none (10 worker bits: 1024 starts). The same for all servers of a namespace, for ever.",
            ),
            (
                "window",
                "Time ahead of the clock for which a worker number is reserved in the store: minting continues this long without the store. From 1s to 1d; at least three ticks of the layout.",
            ),
            (
                "idle_after",
                "Time without minting, after which the server writes the journal only with each extend of the window, not five times a second. It extends the window each half of worker.window (15s by default). The next ID waits for one write of the journal (milliseconds). From 1s to 1d.",
            ),
            (
                "start_without_store",
                "Whether serve may start, and mint snowflakes, while the store does not respond. It mints in the rest of the window that the previous process had, by its journal (up to worker.window). It never does so after a clean stop. Numbers and counters wait for the store.",
            ),
            (
                "after_crash",
                "Action when a crash left this owner's number reserved beyond the clock, and no journal knows better. other-worker: claim another number at once. wait: claim it, and wait for the clock. lead: claim it, with IDs that lead the clock by up to lead_max. refuse: do not start (exit code 3).",
            ),
            (
                "lead_max",
                "Longest lead of IDs over the clock with after_crash = \"lead\"; if the number is reserved further ahead, the server claims another. From 1s to 1d.",
            ),
        ],
    ),
    (
        "clock",
        "Checks of this machine's clock.",
        &[
            (
                "skew_max",
                "Largest difference from the store's clock that the server accepts. Where the store has no clock (sqlite, etcd, zookeeper, memory), the median of the live members' clocks counts, once two others are live. Then the time between two checks is allowed in addition: 10s at most, or counters.lease if that is longer. With fewer members, clock.ntp counts. From 100ms to 1d.",
            ),
            (
                "jump_max",
                "Longest jump ahead of this machine's clock, against the time that has passed, that the server accepts without confirmation. From 1s to 30d.",
            ),
            (
                "ntp",
                "Time server, HOST or HOST:PORT, for stores without a clock, while there are not two other members. The server compares this machine's clock with it at the start and while running, at most once a minute. Nothing waits for a time server that does not respond. Empty: none.",
            ),
        ],
    ),
    (
        "limits",
        "Limits of one request, and of all together.",
        &[
            ("batch_max", "Most IDs of one request."),
            ("stream_max", "Most IDs of one MintStream."),
            ("segment_max", "Most numbers in one range of POST /v1/segments/{source}."),
            ("incrby_max", "Most numbers of one INCRBY."),
            (
                "bound_max",
                "Highest bound to which PUT /v1/counters/{source}/{key}, and so import redis, raises a counter. Other keys then continue above it, too, and nothing lowers it again. At most 2^62.",
            ),
            ("wait_max", "Longest wait of a request for the next tick or for the store."),
            (
                "unsent_max",
                "IDs that may be minted and not yet sent, over all connections. Each token, or address without one, has a share: at most the square of the part that is free afterwards. A client that is alone may hold 0.38 of the limit.",
            ),
            (
                "passed_on_max",
                "Forwarded requests that may wait for each peer that owns their keys. Each token, or address without one, has a share, as of unsent_max.",
            ),
            (
                "stop_max",
                "Longest wait of a stop for requests in progress. Then the stop waits at most this long again for the store and the disk to take back what this server holds.",
            ),
            (
                "workers_max",
                "Worker numbers that the programs of one token may hold at once (store.offered). Not for tokens with the right admin over all sources.",
            ),
            (
                "sources_max",
                "Sources that calls may define, including deleted ones, since their names stay. A token without the right admin over all sources gets a quarter, counted over the sources that it has this right over.",
            ),
            (
                "prefill_ids_max",
                "IDs in the queues of all prefilled sources together (prefill.boost), of 16 bytes each. The sources of a token without the right admin over all sources get a quarter. If there is no room for a queue, its source mints without it.",
            ),
        ],
    ),
    (
        "http",
        "HTTP connections.",
        &[
            (
                "hosts",
                "Host names that the server accepts (HOST or HOST:PORT), besides IP addresses, localhost and the name in server.announce. Without tokens, the server rejects requests for any other host (421), so that no web page reaches it under a host name of its own. Pages of these hosts count as the server's own, as behind a proxy that sends another Host. In an environment variable, with commas.",
            ),
            (
                "connections_max",
                "Most connections at once. For one more, the server closes an idle connection: first one without a token, of the client with most connections, with the longest idle time. If none may be closed, it closes one in use, of the client with most connections. If no client has more than the new one's would have, the server rejects the new connection with an error.",
            ),
            ("body_bytes_max", "Longest body of a request, or message of a call, in bytes."),
            ("head_bytes_max", "Longest head of a request, in bytes; at least 8192."),
            ("head_time_max", "Time limit of a new connection for the head of its first request."),
            (
                "auth_time_max",
                "Longest life of a connection that has shown no token, if tokens are required. Requests in progress are finished.",
            ),
            (
                "request_time_max",
                "Time limit of a request from its head until its body is complete, and of a call until its response begins. A request whose body is late gets 408. Over HTTP/1 the connection ends after it.",
            ),
            ("idle_max", "Longest idle time of a connection between requests."),
        ],
    ),
    (
        "resp",
        "RESP connections.",
        &[
            (
                "connections_max",
                "Most connections at once. For one more, the server closes an idle connection: first one without a token, of the client with most connections, with the longest idle time. If none may be closed, it closes one in use, of the client with most connections. If no client has more than the new one's would have, the server rejects the new connection with an error.",
            ),
            (
                "auth_time_max",
                "Longest life of a connection without AUTH (or a certificate that stands for a token), if tokens are required.",
            ),
            ("frame_time_max", "Time limit of a request from its first byte to its last."),
            ("write_time_max", "Time limit of a client for reading the replies to what it sent."),
            ("idle_max", "Longest idle time of a connection between requests."),
            (
                "default_counter_source",
                "Counter source of the keys in INCR, INCRBY and GET, so that an application of Redis moves by a change of address. Define it with counter.keys = \"alone\". Empty: keys are named source:key.",
            ),
        ],
    ),
    (
        "compat.leaf",
        "HTTP interface of Meituan Leaf, on the same port; docs/moving.md describes the move.",
        &[
            ("enabled", "Whether this interface is open."),
            (
                "snowflake",
                "Source of every key of /api/snowflake/get/{key} that is not in the table of keys, since Leaf accepts any key there. Empty: a key is the name of its source.",
            ),
            ("layout", "Layout by which /decodeSnowflakeId reads."),
            (
                "zone",
                "Time zone of the times in its response: UTC, or a name such as Asia/Shanghai.",
            ),
        ],
    ),
    (
        "compat.leaf.keys",
        "Sources of Leaf's keys: \"KEY\" = \"SOURCE\". A key that is not in this table is the name of its source.",
        &[],
    ),
    (
        "compat.tinyid",
        "HTTP interface of Didi Tinyid, with the prefix /tinyid and without.",
        &[
            ("enabled", "Whether this interface is open."),
            (
                "segment_length",
                "Numbers that a client gets at once to issue by itself, from a source whose step.rule is adaptive; with other rules, step.size counts. At most limits.segment_max.",
            ),
        ],
    ),
    (
        "compat.tinyid.keys",
        "Sources of Tinyid's business types: \"BIZ_TYPE\" = \"SOURCE\". A type that is not in this table is the name of its source.",
        &[],
    ),
    (
        "compat.tinyid.tokens",
        "Business types that each token may request: \"TOKEN\" = \"BIZ_TYPE, BIZ_TYPE\", or \"*\" for all. The hash of a token (sha256:HEX, of `snowmint token hash`) may stand for it. If the table is empty, the tokens of tokens.file count.",
        &[],
    ),
    (
        "compat.cosid",
        "HTTP interface of CosId's proxy.",
        &[
            ("enabled", "Whether this interface is open."),
            (
                "define",
                "Whether a client that requests segments of a source that does not exist may define it.",
            ),
            (
                "machines_max",
                "Machine IDs, including free ones, that the clients of one CosId namespace may have in the store. The same limit holds for all namespaces in which one token may reserve, together.",
            ),
        ],
    ),
    (
        "compat.cosid.keys",
        "Sources of CosId's names: \"NAMESPACE.NAME\" = \"SOURCE\" for segments, \"NAME\" = \"SOURCE\" for single IDs. A name that is not in this table is the name of its source.",
        &[],
    ),
    (
        "tokens",
        "Callers and their rights: docs/security.md.",
        &[
            (
                "file",
                "File of tokens; the server follows its changes. Empty: every caller that reaches the server may request anything, within the limits.",
            ),
            (
                "open_metrics",
                "Whether /metrics is open to all callers even if tokens are required.",
            ),
        ],
    ),
    (
        "tls",
        "TLS, on both ports. The server follows changes of the files.",
        &[
            (
                "cert",
                "File (PEM) of this server's certificate, and of those between it and the root. Empty: no TLS.",
            ),
            ("key", "File (PEM) of its private key."),
            (
                "client_ca",
                "File (PEM) of the authorities that sign client certificates. Every client must then have a certificate, which may stand for a token. Empty: clients need none.",
            ),
        ],
    ),
    (
        "peers",
        "Other servers of the namespace.",
        &[
            (
                "token",
                "Location of the token that the servers of a namespace send each other, the same for all: file:PATH or env:NAME. Of a file, the server sends the first line and accepts every line. Needed if tokens are required and several servers share counters or a source of global order.",
            ),
            (
                "ca",
                "File (PEM) of the authorities that sign the certificates of peers. Empty: those that the system trusts.",
            ),
        ],
    ),
    (
        "counters",
        "Counters, which servers on one store share.",
        &[
            (
                "lease",
                "Time for which this server owns its counters and sources of global order after its last renewal in the store. It renews three times in this time, and stops serving them when the store does not respond for two thirds of it. After a crash, peers take over once this time and an eighth of it (at least 0.5s) have passed. From 1s to 5m.",
            ),
            (
                "memory_max_bytes",
                "Approximate limit of the memory, in bytes, that the keys of all counter sources take together. Beyond it, the server forgets keys of the largest source, and their numbers jump.",
            ),
        ],
    ),
    (
        "log",
        "Logs go to standard error.",
        &[
            (
                "filter",
                "Log level: off, error, warn, info, debug or trace; also for parts: info,snowmint_coord=debug.",
            ),
            (
                "access",
                "Whether each request gets a log line: protocol, request, source, count, outcome and duration. Needs filter = \"info\" or more.",
            ),
        ],
    ),
    (
        "traces",
        "Spans of requests and of store calls, for a collector (OTLP over gRPC).",
        &[
            (
                "endpoint",
                "Address of the collector: http://HOST:PORT or https://HOST:PORT (default port 4317). Empty: no spans.",
            ),
            (
                "one_in",
                "One request in this many has a span, unless a traceparent of the caller decides.",
            ),
            (
                "ca",
                "File (PEM) of the authority that signs the collector's certificate. Empty: those that the system trusts.",
            ),
        ],
    ),
    (
        "disguise.keys",
        "Keys of sources with a disguise, by number: 1 = \"file:PATH\" or 1 = \"env:NAME\". Add a new number to rotate; keep an old one as long as its IDs are decoded.",
        &[],
    ),
    (
        "upstreams",
        "Upstreams: tables of other systems from which sources allocate their numbers (upstream = \"NAME:KEY\") while both serve. NAME = \"leaf+mysql://USER:PASSWORD@HOST/DATABASE\" (or tinyid, cosid), \"file:PATH\" or \"env:NAME\".",
        &[],
    ),
    (
        "sources",
        "Sources. At its start, the server defines those below in the store, if they do not exist yet.",
        &[(
            "builtin",
            "Whether the sources default (snowflake), numbers (segment) and counters (counter) exist without a definition.",
        )],
    ),
];
