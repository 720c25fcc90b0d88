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
                "Where the lock, the journal and the default store are. One process at a time.",
            ),
            ("http", "Where HTTP is spoken: an address and a port. Port 0 picks a free one."),
            ("resp", "Where RESP, the protocol of Redis, is spoken."),
            (
                "owner",
                "What this process is called in listings, and by which it wishes for the worker number it had before. Empty: the name of the host.",
            ),
            (
                "insecure",
                "Whether http and resp may be addresses that other machines reach, without tokens and TLS.",
            ),
            (
                "announce",
                "The host name or IP by which other servers, and clients that they send here, reach this one: servers on one store share counters. Empty: the address that it listens on, or the name of the host where that is all addresses.",
            ),
        ],
    ),
    (
        "store",
        "Where marks and definitions live.",
        &[
            (
                "url",
                "sqlite:PATH, postgres://USER:PASSWORD@HOST/DATABASE, mysql://… (postgresql:// and mariadb:// are the same), redis://…, rediss://…, redis-cluster://…, rediss-cluster://…, etcd://…, etcds://…, zookeeper://…, memory: (which forgets everything and needs --ephemeral), or that of servers: snowmint://HOST:PORT,HOST:PORT, with TLS snowmints://. Empty: sqlite:DIR/snowmint.db in server.data_dir.",
            ),
            ("namespace", "What separates two users of one store."),
            (
                "tries",
                "How often a step is tried that other writers overtake, in redis, etcd and zookeeper; then the call is refused (exit code 4). From 1 to 10000.",
            ),
            (
                "offered",
                "Whether programs may mint in their own process through this server (snowmint://HOST:PORT): over gRPC they ask its store for worker numbers, windows and segments. Where tokens are asked for, theirs need the right join.",
            ),
            (
                "token",
                "Where the token is that is shown to servers whose store this is: file:PATH or env:NAME, never the token itself. Empty: SNOWMINT_TOKEN, or the file that SNOWMINT_TOKEN_FILE names.",
            ),
            (
                "ca",
                "The file (PEM) of who signs the certificates of those servers (snowmints://). Empty: that of SNOWMINT_CA_FILE, else whom the system trusts.",
            ),
            (
                "cert",
                "The file (PEM) of the certificate, with its key, that is shown to servers that ask for one. Empty: that of SNOWMINT_CERT_FILE, else none.",
            ),
        ],
    ),
    (
        "stores",
        "Stores beside that one, for sources that several serve (stores = \"A,B\"), each with a residue of the numbers or, where they mint, a worker number of its own, so that one may be away: A = \"postgres://USER:PASSWORD@HOST/DATABASE\", \"file:PATH\" or \"env:NAME\". In the same namespace.",
        &[],
    ),
    (
        "worker",
        "Which worker numbers are taken, and how they are held.",
        &[
            (
                "number",
                "The worker number to take in the store, and no other: 7, or \"ordinal\" (the number that the host's name ends in, as in a StatefulSet's pod snowmint-0), or \"any\" (one that is free). A number that another process holds is refused (exit code 3).",
            ),
            (
                "reuse",
                "\"recycle\": a number that was given up is taken again. \"never\": each start takes a number that nobody had before, until there are none (10 worker bits: 1024 starts). The same for all servers of a namespace, for ever.",
            ),
            (
                "window",
                "How far ahead of the clock a worker number is reserved in the store: for so long minting goes on while the store is away. From 1s to 1d; at least three ticks of the layout.",
            ),
            (
                "rest_after",
                "Once nothing was minted for so long, the journal is written each few seconds only instead of five times a second, and the next ID waits for one write of it (milliseconds). From 1s to 1d.",
            ),
            (
                "start_without_store",
                "Whether serve may start while the store does not answer, and mint snowflakes in the rest of the window that the journal says the process before it was granted (up to worker.window). Never after a clean stop. Numbers and counters wait for the store.",
            ),
            (
                "after_crash",
                "When a crash left the number of this owner reserved beyond what the clock says now, and no journal knows better: other-slot (take another number, at once), wait (take it, and wait for the clock), lead (take it, with IDs ahead of the clock by up to lead_max), refuse (do not start: exit code 3).",
            ),
            (
                "lead_max",
                "How far IDs may be ahead of the clock with after_crash = \"lead\"; a number reserved further ahead is left for another. From 1s to 1d.",
            ),
        ],
    ),
    (
        "clock",
        "Which clocks are believed.",
        &[
            (
                "skew_max",
                "The largest distance of this machine's clock from the store's that is no reason to refuse. Where the store has no clock (sqlite, etcd, zookeeper, memory): from the middle one of the live members' clocks, by counters.lease more, once two others are live; else from clock.ntp. From 100ms to 1d.",
            ),
            (
                "jump_max",
                "The largest jump ahead of this machine's clock, against the time that has passed, that is believed while nobody confirms it. From 1s to 30d.",
            ),
            (
                "ntp",
                "A time server, HOST or HOST:PORT, against which this machine's clock is held at the start and while running, where the store has no clock and there are not two other members. It is asked once a minute at most; one that does not answer holds nobody up. Empty: none.",
            ),
        ],
    ),
    (
        "limits",
        "What one request may ask for.",
        &[
            ("batch_max", "The most IDs of one request."),
            ("stream_max", "The most IDs of one MintStream."),
            ("segment_max", "The longest range of POST /v1/segments/{source}."),
            ("incrby_max", "The most numbers of one INCRBY."),
            (
                "bound_max",
                "The highest bound that PUT /v1/counters/{source}/{key}, and so import redis, raises a counter to: other keys go on above it, too, and nothing lowers it again. At most 2^62.",
            ),
            ("wait_max", "How long a request may wait for the next tick or for the store."),
            (
                "unsent_max",
                "How many IDs may be minted and not yet sent, over all connections. Each token, or address without one, has a share: it may hold the square of the part that is free afterwards, which is 0.38 of them while nobody else holds any.",
            ),
            (
                "passed_on_max",
                "How many requests may wait for an answer of each of the other servers, to which requests for their keys are passed on. Each token, or address without one, has a share, as of unsent_max.",
            ),
            (
                "stop_max",
                "How long a stop waits for requests in progress, and then at most for the store and the disk to take back what this server holds.",
            ),
            (
                "workers_max",
                "The most worker numbers that the programs of one token hold at once (store.offered). Not for tokens with the right admin over all sources.",
            ),
            (
                "sources_max",
                "The most sources that calls define, those that were deleted included: their names stay. A token without the right admin over all sources gets a quarter, of the sources that it has this right over.",
            ),
            (
                "prefill_ids_max",
                "The most IDs in the queues of all prefilled sources together (prefill.boost), of 16 bytes each; a quarter for the sources of a token without the right admin over all sources. A queue that finds no room is not made, and its source mints without it.",
            ),
        ],
    ),
    (
        "http",
        "HTTP connections.",
        &[
            (
                "hosts",
                "The names by which this server is asked (HOST or HOST:PORT), besides IP addresses, localhost and the name in server.announce. Without tokens, requests for any other host are refused (421), so that no web page reaches the server by a name of its own. Pages of these hosts count as the server's own, as behind a proxy that sends another Host. In an environment variable, with commas.",
            ),
            (
                "connections_max",
                "The most connections at once. For one more, a connection at rest is closed: first of those that have shown no token, of the client that has most, the one that has rested longest. If none may, one in use, of the client that has most. If no client has more than the new one's would, the new one is told so and closed.",
            ),
            ("body_bytes_max", "The longest body of a request, or message of a call, in bytes."),
            ("head_bytes_max", "The longest head of a request, in bytes; at least 8192."),
            ("head_time_max", "How long a new connection may take for its first request's head."),
            (
                "auth_time_max",
                "How long a connection may last that has shown no token, where tokens are asked for. Requests in progress are finished.",
            ),
            (
                "request_time_max",
                "How long a request may take from its head until its body is there, and a call until its answer begins; over HTTP/1 a connection ends after it. A request whose body is late is answered with 408.",
            ),
            ("idle_max", "How long a connection may rest between requests."),
        ],
    ),
    (
        "resp",
        "RESP connections.",
        &[
            (
                "connections_max",
                "The most connections at once. For one more, a connection at rest is closed: first of those that have shown no token, of the client that has most, the one that has rested longest. If none may, one in use, of the client that has most. If no client has more than the new one's would, the new one is told so and closed.",
            ),
            (
                "auth_time_max",
                "How long a connection may last without AUTH (or a certificate that stands for a token), where tokens are asked for.",
            ),
            ("frame_time_max", "How long a request may take from its first byte to its last."),
            ("write_time_max", "How long a client may take to read the answers to what it sent."),
            ("idle_max", "How long a connection may rest between requests."),
            (
                "default_counter_source",
                "The counter source whose keys stand alone in INCR, INCRBY and GET, so that an application of Redis moves by changing an address: define it with counter.keys = \"alone\". Empty: keys are named source:key.",
            ),
        ],
    ),
    (
        "compat.leaf",
        "The HTTP interface of Meituan Leaf, on the same port: docs/moving.md says how to move.",
        &[
            ("enabled", "Whether it is there."),
            (
                "snowflake",
                "The source of every key of /api/snowflake/get/{key} that is not in the table of keys, since Leaf takes any key there. Empty: a key is the name of its source.",
            ),
            ("layout", "The layout by which /decodeSnowflakeId reads."),
            (
                "zone",
                "The time zone in which it shows times: UTC, or a name such as Asia/Shanghai.",
            ),
        ],
    ),
    (
        "compat.leaf.keys",
        "The sources of Leaf's keys: \"KEY\" = \"SOURCE\". A key that is not here is the name of its source.",
        &[],
    ),
    (
        "compat.tinyid",
        "The HTTP interface of Didi Tinyid, with the prefix /tinyid and without.",
        &[
            ("enabled", "Whether it is there."),
            (
                "segment_length",
                "How many numbers a client gets to spend by itself, of a source whose step.rule is adaptive; others say it by step.size. At most limits.segment_max.",
            ),
        ],
    ),
    (
        "compat.tinyid.keys",
        "The sources of Tinyid's business types: \"BIZ_TYPE\" = \"SOURCE\". One that is not here is the name of its source.",
        &[],
    ),
    (
        "compat.tinyid.tokens",
        "What each token may ask for: \"TOKEN\" = \"BIZ_TYPE, BIZ_TYPE\", or \"*\" for all; instead of a token its hash, sha256:HEX, of `snowmint token hash`. None here: those of tokens.file count.",
        &[],
    ),
    (
        "compat.cosid",
        "The HTTP interface of CosId's proxy.",
        &[
            ("enabled", "Whether it is there."),
            (
                "define",
                "Whether a client that asks for the segments of a source that there is not may define it.",
            ),
            (
                "machines_max",
                "How many machine IDs the clients of one namespace of CosId, and of all that one token may lend in, may have in the store, those that are free again too.",
            ),
        ],
    ),
    (
        "compat.cosid.keys",
        "The sources of CosId's names: \"NAMESPACE.NAME\" = \"SOURCE\" for segments, \"NAME\" = \"SOURCE\" for single IDs. What is not here is the name of its source.",
        &[],
    ),
    (
        "tokens",
        "Who may ask, and for what: docs/security.md.",
        &[
            (
                "file",
                "The file of tokens, which is followed while the server runs. Empty: whoever reaches the server may ask for anything, within the limits.",
            ),
            ("open_metrics", "Whether /metrics is for everybody, where all else asks for a token."),
        ],
    ),
    (
        "tls",
        "TLS, on both ports. The files are followed while the server runs.",
        &[
            (
                "cert",
                "The file of this server's certificate, and of those between it and the root, in PEM. Empty: no TLS.",
            ),
            ("key", "The file of its private key, in PEM."),
            (
                "client_ca",
                "The file of the certificates that sign those of clients, which every client must have then, and which may stand for tokens. Empty: clients need none.",
            ),
        ],
    ),
    (
        "peers",
        "The other servers of the namespace.",
        &[
            (
                "token",
                "Where the token is that the servers of a namespace show each other, the same for all: file:PATH, of which the first line is shown and each is accepted, or env:NAME. Needed where tokens are asked for and several servers share counters or a source of global order.",
            ),
            (
                "ca",
                "The file of the certificates that sign those of the other servers, in PEM. Empty: those that the system trusts.",
            ),
        ],
    ),
    (
        "counters",
        "Counters, which servers on one store share.",
        &[
            (
                "lease",
                "How long this server answers for its keys after the store heard of it last, and so how long after a crash others take them over (an eighth later, at least half a second). It says so to the store three times in it, and stops answering when it could not for two thirds of it. From 1s to 5m.",
            ),
            (
                "memory_max_bytes",
                "How many bytes the keys of all counter sources may take in memory together, about. Beyond, keys of the largest source are forgotten: numbers jump.",
            ),
        ],
    ),
    (
        "log",
        "Logs go to standard error.",
        &[
            (
                "filter",
                "off, error, warn, info, debug or trace; also for parts: info,snowmint_coord=debug.",
            ),
            (
                "access",
                "Whether each request gets a line: protocol, what was asked for, source, count, outcome and how long it took. With filter = \"info\" or more.",
            ),
        ],
    ),
    (
        "traces",
        "Spans of requests and of calls of the store, for a collector (OTLP over gRPC).",
        &[
            (
                "endpoint",
                "Where the collector is: http://HOST:PORT or https://HOST:PORT (port 4317 if none is said). Empty: there are no spans.",
            ),
            (
                "one_in",
                "One request in so many has a span, where the caller has not decided that by a traceparent of its own.",
            ),
            (
                "ca",
                "The file (PEM) of who signs the collector's certificate. Empty: whom the system trusts.",
            ),
        ],
    ),
    (
        "disguise.keys",
        "The keys of sources with a disguise, by number: 1 = \"file:PATH\" or 1 = \"env:NAME\". Add a new number to rotate; keep old ones as long as their IDs are decoded.",
        &[],
    ),
    (
        "origins",
        "Tables of other systems that sources draw their numbers from (origin = \"NAME:KEY\") while both serve: NAME = \"leaf+mysql://USER:PASSWORD@HOST/DATABASE\" (or tinyid, cosid), \"file:PATH\" or \"env:NAME\".",
        &[],
    ),
    (
        "sources",
        "Sources. Those below are defined in the store at the start, if they are not there yet.",
        &[(
            "builtin",
            "Whether the sources default (snowflake), numbers (segment) and counters (counter) exist without being defined.",
        )],
    ),
];
