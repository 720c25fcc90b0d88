//! Layouts that other systems use, by name.
//!
//! If a scheme publishes an epoch, the preset has it, to the millisecond, so that IDs of that
//! scheme decode to the right time. If it publishes none, the preset counts from
//! [`EPOCH_DEFAULT`](super::EPOCH_DEFAULT). Epochs published as a local midnight in China lie at
//! 16:00 UTC of the day before.
//!
//! A preset of IDs that cannot be minted here is a [`ReadableLayout`]. `vectors/layouts.json` has an
//! ID of each preset that another project published, with its time.

use super::{Field, Layout, LayoutError, ReadableLayout};
use crate::time::UnixMillis;

/// Unwraps a constant layout: a wrong preset does not compile.
const fn must(layout: Result<Layout, LayoutError>) -> Layout {
    match layout {
        Ok(layout) => layout,
        Err(_) => panic!("this preset is not a legal layout"),
    }
}

/// Unwraps a constant layout that is only read.
const fn must_read(layout: Result<ReadableLayout, LayoutError>) -> ReadableLayout {
    match layout {
        Ok(layout) => layout,
        Err(_) => panic!("this preset is not a readable layout"),
    }
}

const fn with_epoch_ms(layout: Layout, epoch_ms: u64) -> Layout {
    must(layout.with_epoch(UnixMillis::new(epoch_ms)))
}

impl Layout {
    /// Snowflake as Twitter published it: 41 bits of milliseconds, 10 of worker, 12 of sequence.
    ///
    /// Epoch: 1288834974657, 2010-11-04T01:42:54.657Z. Ends in 2080.
    /// Source: `IdWorker.scala` of `twitter-archive/snowflake`.
    pub const TWITTER: Self = with_epoch_ms(must(Self::new(41, 10, 12)), 1_288_834_974_657);

    /// The layout of [`Layout::TWITTER`], with the worker shown as 5 bits of data centre and 5 of
    /// machine.
    ///
    /// Source: `IdWorker.scala` of `twitter-archive/snowflake`.
    pub const TWITTER_DC: Self = must(Self::TWITTER.with_worker_split(5));

    /// Baidu's uid-generator with its default widths: 28 bits of seconds, 22 of worker, 13 of
    /// sequence.
    ///
    /// Epoch: 2026-01-01T00:00:00Z, not Baidu's own, with which the layout ended on 2024-11-20
    /// ([`Layout::BAIDU_2016`]). 28 bits of seconds last 8.5 years, so this one ends in July 2034.
    /// Source: `DefaultUidGenerator` of `baidu/uid-generator`.
    pub const BAIDU: Self = must(must(Self::new(28, 22, 13)).with_unit_ms(1_000));

    /// Baidu's uid-generator as shipped. It cannot mint: its last second was 2024-11-20T13:24:15Z.
    /// [`ReadableLayout::BAIDU_2016`] reads the IDs that it made, later ones too.
    ///
    /// Epoch: 1463673600 s, midnight of 2016-05-20 at +08:00.
    /// Source: `DefaultUidGenerator` of `baidu/uid-generator`.
    pub const BAIDU_2016: Self = with_epoch_ms(Self::BAIDU, 1_463_673_600_000);

    /// The layout of the article on distributed IDs that Redis numbers (003): 41 bits of
    /// milliseconds, 12 of node, 10 of sequence.
    ///
    /// Epoch: 1577808000000, midnight of 2020-01-01 at +08:00, the article's own. Ends in 2089.
    pub const REDIS: Self = with_epoch_ms(must(Self::new(41, 12, 10)), 1_577_808_000_000);

    /// The layout of the article on the clock sequence (000): 41 bits of milliseconds, 3 of clock
    /// sequence, 7 of worker, 12 of sequence. It is Twitter's, except that 3 of the worker's bits
    /// count how often the clock stepped back.
    ///
    /// Epoch: 2026-01-01T00:00:00Z, as the article gives no number. Ends in 2095.
    pub const CLOCK_SEQUENCE: Self = must(Self::from_fields(&[
        (Field::Time, 41),
        (Field::Clock, 3),
        (Field::Worker, 7),
        (Field::Sequence, 12),
    ]));

    /// A layout for readers that hold numbers as JavaScript does, exactly up to 2^53 - 1: 33 bits
    /// of seconds, 4 of worker, 15 of sequence. These are 52 bits; the article (003) counts a sign
    /// bit as the 53rd.
    ///
    /// Epoch: 1970-01-01T00:00:00Z, as the article shifts plain Unix seconds. Ends in 2242.
    pub const JS53: Self = with_epoch_ms(must(must(Self::new(33, 4, 15)).with_unit_ms(1_000)), 0);

    /// Sonyflake, version 1: 39 bits of 10 ms, then 8 of sequence *above* 16 of machine.
    ///
    /// Epoch: 2014-09-01T00:00:00Z. Ends in 2188. Version 2 counts from 2025:
    /// `sonyflake,epoch=2025-01-01T00:00:00Z`.
    /// Source: `sonyflake.go` of `sony/sonyflake`.
    pub const SONYFLAKE: Self = with_epoch_ms(
        must(
            must(Self::from_fields(&[
                (Field::Time, 39),
                (Field::Sequence, 8),
                (Field::Worker, 16),
            ]))
            .with_unit_ms(10),
        ),
        1_409_529_600_000,
    );

    /// Discord: 42 bits of milliseconds, 5 of worker, 5 of process, 12 of sequence: 64 in all.
    ///
    /// Epoch: 1420070400000, the first second of 2015 in UTC. Ends in 2084, when the top bit would
    /// be set. Source: "Snowflakes" in Discord's API reference.
    pub const DISCORD: Self =
        with_epoch_ms(must(must(Self::new(42, 10, 12)).with_worker_split(5)), 1_420_070_400_000);

    /// Instagram: 41 bits of milliseconds, 13 of shard, 10 of sequence: 64 in all.
    ///
    /// Epoch: 1314220021721, 2011-08-24T21:07:01.721Z. Ends in 2046, when the top bit would be set.
    /// Source: "Sharding & IDs at Instagram", 2012.
    pub const INSTAGRAM: Self = with_epoch_ms(must(Self::new(41, 13, 10)), 1_314_220_021_721);

    /// CosId's `MillisecondSnowflakeId`: 41 bits of milliseconds, 10 of machine, 12 of sequence.
    ///
    /// Epoch: 1577203200000, midnight of 2019-12-25 at +08:00. Ends in 2089.
    /// Source: `CosId.java` of `Ahoo-Wang/CosId`.
    pub const COSID: Self = with_epoch_ms(Self::TWITTER, 1_577_203_200_000);

    /// Leaf's snowflake mode: Twitter's widths and Twitter's epoch.
    ///
    /// Epoch: 1288834974657, 2010-11-04T01:42:54.657Z. Ends in 2080.
    /// Source: `SnowflakeIDGenImpl.java` of `Meituan-Dianping/Leaf`.
    pub const LEAF: Self = Self::TWITTER;

    /// Yitter's IdGenerator with its default widths: milliseconds, 6 bits of worker, 6 of sequence.
    /// It leaves all other bits to the time, here 51.
    ///
    /// Epoch: 1582136402000, 2020-02-19T18:20:02Z. The JavaScript and C# editions count from other
    /// times: write `yitter,epoch=1577836800000` or `yitter,epoch=1582165202020` for them.
    /// Source: `IdGeneratorOptions` of `yitter/IdGenerator`.
    pub const YITTER: Self = with_epoch_ms(must(Self::new(51, 6, 6)), 1_582_136_402_000);

    /// Twitter's widths, counted from 1970: LinkedIn, and Python's `snowflake-id`.
    ///
    /// Epoch: 0. Ends in 2039. Sources: `Snowflake` of `vd2org/snowflake`; LinkedIn publishes none.
    pub const UNIX: Self = with_epoch_ms(Self::TWITTER, 0);

    /// Mastodon, of whose posts the name is: 48 bits of milliseconds, 16 of sequence: 64 in all, and no worker.
    ///
    /// Epoch: 0. Ends in the year 6429. Source: `lib/mastodon/snowflake.rb` of `mastodon/mastodon`.
    pub const TOOT: Self = with_epoch_ms(must(Self::new(48, 0, 16)), 0);

    /// Hazelcast's Flake: 41 bits of milliseconds, then 6 of sequence *above* 16 of node.
    ///
    /// Epoch: 1514764800000, the first second of 2018 in UTC. Ends in 2087.
    /// Source: `FlakeIdGeneratorConfig` of `hazelcast/hazelcast`.
    pub const HAZELCAST: Self = with_epoch_ms(
        must(Self::from_fields(&[(Field::Time, 41), (Field::Sequence, 6), (Field::Worker, 16)])),
        1_514_764_800_000,
    );

    /// TSID with its default widths: 42 bits of milliseconds, 10 of node, 12 of counter: 64 in all.
    ///
    /// Epoch: 1577836800000, the first second of 2020 in UTC. Ends in 2089, when the top bit would
    /// be set. Source: `Tsid.java` of `f4b6a3/tsid-creator`.
    pub const TSID: Self = with_epoch_ms(must(Self::new(42, 10, 12)), 1_577_836_800_000);

    /// The timestamp oracle of TiDB's placement driver: 46 bits of milliseconds, 18 of sequence: 64
    /// in all, and no worker.
    ///
    /// Epoch: 0. Ends in 3084. Source: `pkg/utils/tsoutil` of `tikv/pd`.
    pub const PD_TSO: Self = with_epoch_ms(must(Self::new(46, 0, 18)), 0);

    /// ShardingSphere's snowflake: Twitter's widths.
    ///
    /// Epoch: 1477929600000, midnight of 2016-11-01 at +08:00. Ends in 2086.
    /// Source: `SnowflakeKeyGenerateAlgorithm` of `apache/shardingsphere`.
    pub const SHARDINGSPHERE: Self = with_epoch_ms(Self::TWITTER, 1_477_929_600_000);

    /// TikTok, as IDs of ByteDance: 32 bits of seconds, and 32 others, which are not published.
    ///
    /// Epoch: 0. Ends in 2038, when the top bit would be set. Source: `parse_tiktok.py` of
    /// `RyanDFIR/unfurl`.
    pub const TIKTOK: Self = with_epoch_ms(must(must(Self::new(32, 0, 32)).with_unit_ms(1_000)), 0);

    /// pgEdge's snowflakes: 41 bits of milliseconds, then 12 of sequence *above* 10 of
    /// node.
    ///
    /// Epoch: 1672531200000, the first second of 2023 in UTC. Ends in 2092.
    /// Source: the README of `pgEdge/snowflake`.
    pub const PGEDGE: Self = with_epoch_ms(
        must(Self::from_fields(&[(Field::Time, 41), (Field::Sequence, 12), (Field::Worker, 10)])),
        1_672_531_200_000,
    );

    /// Returns the first preset with exactly these bits, unit and epoch.
    #[must_use]
    pub fn preset(&self) -> Option<&'static Preset> {
        self.readable().preset()
    }
}

impl ReadableLayout {
    /// Baidu's uid-generator as shipped, with one more bit of seconds. Its last second of 28 bits was
    /// 2024-11-20T13:24:15Z; `CachedUidGenerator` counts on, into the top bit, so that its IDs are
    /// negative in Java from there on.
    ///
    /// Epoch: 1463673600 s, midnight of 2016-05-20 at +08:00.
    /// Source: `CachedUidGenerator` of `baidu/uid-generator`.
    pub const BAIDU_2016: Self = read_since(
        1_463_673_600_000,
        must_read(
            must_read(Self::from_fields(&[
                (Field::Time, 29),
                (Field::Worker, 22),
                (Field::Sequence, 13),
            ]))
            .with_unit_ns(1_000_000_000),
        ),
    );

    /// Seata: 10 bits of node *above* 41 of milliseconds, then 12 of sequence.
    ///
    /// Epoch: 1588435200000, midnight of 2020-05-03 at +08:00. Ends in 2090.
    /// Source: `IdWorker.java` of `apache/incubator-seata`.
    pub const SEATA: Self = read_since(
        1_588_435_200_000,
        must_read(Self::from_fields(&[
            (Field::Worker, 10),
            (Field::Time, 41),
            (Field::Sequence, 12),
        ])),
    );

    /// `unique_rowid()` of CockroachDB: 48 bits of 10 microseconds, 15 of node, and no sequence: a
    /// node waits for the next tick.
    ///
    /// Epoch: 1420070400000, the first second of 2015 in UTC. Ends in 2104.
    /// Source: `pkg/sql/sem/builtins` of `cockroachdb/cockroach`.
    pub const COCKROACHDB: Self = read_since(
        1_420_070_400_000,
        must_read(
            must_read(Self::from_fields(&[(Field::Time, 48), (Field::Worker, 15)]))
                .with_unit_ns(10_000),
        ),
    );

    /// Nextcloud: 31 bits of seconds and 10 of the milliseconds within, 9 of server and 1 that is
    /// set by its command line, 12 of sequence.
    ///
    /// Epoch: 1759276800000, the first second of October 2025 in UTC. Ends in 2093.
    /// Source: `lib/private/Snowflake` of `nextcloud/server`.
    pub const NEXTCLOUD: Self = read_since(
        1_759_276_800_000,
        must_read(
            must_read(
                must_read(Self::from_fields(&[
                    (Field::Time, 41),
                    (Field::Worker, 10),
                    (Field::Sequence, 12),
                ]))
                .with_time_split(10),
            )
            .with_worker_split(1),
        ),
    );

    /// Returns the first preset with exactly these bits, unit and epoch.
    #[must_use]
    pub fn preset(&self) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.layout == *self)
    }
}

const fn read_since(epoch_ms: u64, layout: ReadableLayout) -> ReadableLayout {
    must_read(layout.with_epoch(UnixMillis::new(epoch_ms)))
}

/// A layout with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    name: &'static str,
    about: &'static str,
    layout: ReadableLayout,
    can_mint: bool,
    birth: UnixMillis,
    other_epochs_ms: &'static [u64],
    any_worker: bool,
}

impl Preset {
    const fn new(name: &'static str, layout: Layout, about: &'static str) -> Self {
        Self { can_mint: true, ..Self::only_read(name, layout.readable(), about) }
    }

    const fn only_read(name: &'static str, layout: ReadableLayout, about: &'static str) -> Self {
        let birth = layout.epoch();
        let (can_mint, any_worker) = (false, false);
        Self { name, about, layout, can_mint, birth, other_epochs_ms: &[], any_worker }
    }

    /// Sets a time before which no such ID was made, where the epoch is much earlier.
    const fn since(self, birth_ms: u64) -> Self {
        Self { birth: UnixMillis::new(birth_ms), ..self }
    }

    /// Sets epochs of other editions.
    const fn also_since(self, other_epochs_ms: &'static [u64]) -> Self {
        Self { other_epochs_ms, ..self }
    }

    /// Marks worker numbers that come from an address, a hash or chance, so that high ones are usual.
    const fn any_worker(self) -> Self {
        Self { any_worker: true, ..self }
    }

    /// Returns the preset of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// Returns the preset's name in configuration and commands.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the layout's origin in one line.
    #[must_use]
    pub const fn about(&self) -> &'static str {
        self.about
    }

    /// Returns the preset's bits, unit and epoch.
    #[must_use]
    pub const fn layout(&self) -> ReadableLayout {
        self.layout
    }

    /// Returns whether IDs may be minted with the preset. The others only decode: the years of
    /// `baidu-2016` have ended, and [`ReadableLayout::mintable`] has the reason of the rest.
    #[must_use]
    pub const fn can_mint(&self) -> bool {
        self.can_mint
    }

    /// Returns a time before which no system made such IDs.
    #[must_use]
    pub const fn birth(&self) -> UnixMillis {
        self.birth
    }

    /// Returns the same layout with the epochs of the system's other editions, and of copies that
    /// are in wide use.
    pub fn other_epochs(&self) -> impl Iterator<Item = ReadableLayout> + use<'_> {
        self.other_epochs_ms
            .iter()
            .filter_map(|&epoch_ms| self.layout.with_epoch(UnixMillis::new(epoch_ms)).ok())
    }

    /// Returns whether high worker numbers are usual: they come from an address, a hash or chance.
    #[must_use]
    pub const fn has_any_worker(&self) -> bool {
        self.any_worker
    }
}

/// The first day on which a snowflake of any system was published: 2010-06-01.
const SNOWFLAKE_BIRTH_MS: u64 = 1_275_350_400_000;
/// The start of 2008, when the network that Mastodon joined began: its servers give IDs of their
/// own to posts of others, by the time of the post.
const FEDIVERSE_BIRTH_MS: u64 = 1_199_145_600_000;
/// The start of March 2012, the month in which ByteDance was founded.
const BYTEDANCE_BIRTH_MS: u64 = 1_330_560_000_000;
/// The start of September 2015, the month in which TiDB was published.
const TIDB_BIRTH_MS: u64 = 1_441_065_600_000;

/// Epochs of copies of Twitter's snowflake: the Java class `SnowflakeIdWorker`,
/// `beyondfengyu/SnowFlake` and `zheng-ji/goSnowFlake`.
const TWITTER_EPOCHS_MS: [u64; 3] = [1_420_041_600_000, 1_480_166_465_631, 1_474_802_888_000];

/// Every preset, in the order in which documents list them.
pub static PRESETS: [Preset; 26] = [
    Preset::new("twitter", Layout::TWITTER, "Twitter's snowflake, worker as one number")
        .also_since(&TWITTER_EPOCHS_MS)
        .any_worker(),
    Preset::new("twitter-dc", Layout::TWITTER_DC, "Twitter's snowflake, data centre and worker")
        .any_worker(),
    Preset::new("baidu", Layout::BAIDU, "Baidu's uid-generator, counted from 2026"),
    Preset::only_read(
        "baidu-2016",
        ReadableLayout::BAIDU_2016,
        "Baidu's uid-generator as shipped; spent in 2024",
    ),
    Preset::new("redis", Layout::REDIS, "IDs numbered by Redis, 12 bits of node"),
    Preset::new("clock-sequence", Layout::CLOCK_SEQUENCE, "snowflake with 3 bits for clock steps"),
    Preset::new("js53", Layout::JS53, "exact in JavaScript: below 2^53").since(SNOWFLAKE_BIRTH_MS),
    Preset::new("sonyflake", Layout::SONYFLAKE, "Sonyflake, version 1")
        .also_since(&[1_735_689_600_000])
        .any_worker(),
    Preset::new("discord", Layout::DISCORD, "Discord, 64 bits"),
    Preset::new("instagram", Layout::INSTAGRAM, "Instagram, 64 bits").any_worker(),
    Preset::new("cosid", Layout::COSID, "CosId's millisecond snowflake"),
    Preset::new("leaf", Layout::LEAF, "Leaf's snowflake mode"),
    Preset::new("yitter", Layout::YITTER, "Yitter's IdGenerator, default widths")
        .also_since(&[1_577_836_800_000, 1_582_165_202_020]),
    Preset::new("unix", Layout::UNIX, "Twitter's widths from 1970: LinkedIn, snowflake-id")
        .since(SNOWFLAKE_BIRTH_MS),
    Preset::new("mastodon", Layout::TOOT, "Mastodon, 64 bits, no worker").since(FEDIVERSE_BIRTH_MS),
    Preset::new("hazelcast", Layout::HAZELCAST, "Hazelcast's Flake"),
    Preset::new("tsid", Layout::TSID, "TSID with default widths, 64 bits").any_worker(),
    Preset::new("pd-tso", Layout::PD_TSO, "TiDB's timestamp oracle, 64 bits, no worker")
        .since(TIDB_BIRTH_MS),
    Preset::new("shardingsphere", Layout::SHARDINGSPHERE, "ShardingSphere's snowflake"),
    Preset::only_read("seata", ReadableLayout::SEATA, "Seata: the node above the time")
        .any_worker(),
    Preset::new("mybatis-plus", Layout::TWITTER_DC, "MyBatis-Plus, data centre and worker")
        .any_worker(),
    Preset::new("hutool", Layout::TWITTER_DC, "Hutool's Snowflake, data centre and worker")
        .any_worker(),
    Preset::new("tiktok", Layout::TIKTOK, "TikTok: seconds, and 32 bits that are not published")
        .since(BYTEDANCE_BIRTH_MS),
    Preset::only_read(
        "cockroachdb",
        ReadableLayout::COCKROACHDB,
        "unique_rowid() of CockroachDB, no sequence",
    ),
    Preset::new("pgedge", Layout::PGEDGE, "pgEdge's snowflakes"),
    Preset::only_read(
        "nextcloud",
        ReadableLayout::NEXTCLOUD,
        "Nextcloud: server, and whether its command line made the ID",
    )
    .any_worker(),
];
