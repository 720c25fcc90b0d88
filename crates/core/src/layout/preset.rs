//! Layouts that other systems use, by name.
//!
//! If a scheme publishes an epoch, the preset has it, to the millisecond, so that IDs of that
//! scheme decode to the right time. If it publishes none, the preset counts from
//! [`EPOCH_DEFAULT`](super::EPOCH_DEFAULT). Epochs published as a local midnight in China lie at
//! 16:00 UTC of the day before.

use super::{Field, Layout, LayoutError};
use crate::time::UnixMillis;

/// Unwraps a constant layout: a wrong preset does not compile.
const fn must(layout: Result<Layout, LayoutError>) -> Layout {
    match layout {
        Ok(layout) => layout,
        Err(_) => panic!("this preset is not a legal layout"),
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

    /// Baidu's uid-generator as shipped, to decode the IDs it made. It cannot mint: its last second
    /// was 2024-11-20T13:24:15Z, and the original's IDs are negative from there on.
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

    /// Returns the first preset with exactly these bits, unit and epoch.
    #[must_use]
    pub fn preset(&self) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.layout == *self)
    }
}

/// A layout with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    name: &'static str,
    about: &'static str,
    layout: Layout,
    can_mint: bool,
}

impl Preset {
    const fn new(name: &'static str, layout: Layout, about: &'static str) -> Self {
        Self { name, about, layout, can_mint: true }
    }

    const fn decode_only(self) -> Self {
        Self { can_mint: false, ..self }
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
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// Returns whether IDs may be minted with the preset. `baidu-2016` only decodes IDs minted
    /// before its time ran out.
    #[must_use]
    pub const fn can_mint(&self) -> bool {
        self.can_mint
    }
}

/// Every preset, in the order in which documents list them.
pub static PRESETS: [Preset; 13] = [
    Preset::new("twitter", Layout::TWITTER, "Twitter's snowflake, worker as one number"),
    Preset::new("twitter-dc", Layout::TWITTER_DC, "Twitter's snowflake, data centre and worker"),
    Preset::new("baidu", Layout::BAIDU, "Baidu's uid-generator, counted from 2026"),
    Preset::new(
        "baidu-2016",
        Layout::BAIDU_2016,
        "Baidu's uid-generator as shipped; spent in 2024",
    )
    .decode_only(),
    Preset::new("redis", Layout::REDIS, "IDs numbered by Redis, 12 bits of node"),
    Preset::new("clock-sequence", Layout::CLOCK_SEQUENCE, "snowflake with 3 bits for clock steps"),
    Preset::new("js53", Layout::JS53, "exact in JavaScript: below 2^53"),
    Preset::new("sonyflake", Layout::SONYFLAKE, "Sonyflake, version 1"),
    Preset::new("discord", Layout::DISCORD, "Discord, 64 bits"),
    Preset::new("instagram", Layout::INSTAGRAM, "Instagram, 64 bits"),
    Preset::new("cosid", Layout::COSID, "CosId's millisecond snowflake"),
    Preset::new("leaf", Layout::LEAF, "Leaf's snowflake mode"),
    Preset::new("yitter", Layout::YITTER, "Yitter's IdGenerator, default widths"),
];
