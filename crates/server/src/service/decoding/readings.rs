//! Numbers of 64 bits, read with every known layout and epoch.

use snowmint_core::layout::{PRESETS, ParseLayoutError, Preset, ReadableLayout};
use snowmint_core::{Layout, Rfc3339, UnixMillis};

use super::reading::{Candidate, LayoutReading};

/// Name of the reading with the layout that the source of this name has at first.
const OF_SOURCE: &str = "default";

/// Parses a layout that a reader names.
///
/// # Errors
/// When it is invalid. For the name of a reading that no layout has, the message says what has it.
pub fn layout_to_read(text: &str) -> Result<ReadableLayout, String> {
    text.parse().map_err(|error: ParseLayoutError| match text {
        OF_SOURCE => format!(
            "`{text}` is a source, not a layout; name it as the source (--source {text}, or \
             source={text} over HTTP); `snowmint source show {text}` has its layout"
        ),
        _ => error.to_string(),
    })
}

/// Reads the ID with every known layout, the most plausible reading first.
#[must_use]
pub fn readings(id: u64, now: UnixMillis) -> Vec<LayoutReading> {
    let mut readings: Vec<LayoutReading> =
        candidates().map(|candidate| LayoutReading::of(candidate, id, now)).collect();
    readings.sort_by_key(LayoutReading::rank);
    readings
}

/// Returns the layout of the source `default`, the named ones, and then these with their other
/// epochs: of readings with the same rank the earlier is listed first.
fn candidates() -> impl Iterator<Item = Candidate> {
    let default = Layout::new(41, 10, 12).ok().map(|layout| layout.readable());
    let own = default.map(|layout| Candidate {
        name: OF_SOURCE.into(),
        layout,
        birth: layout.epoch(),
        any_worker: false,
    });
    let others = PRESETS.iter().flat_map(|preset| {
        let other = move |layout: ReadableLayout| Candidate {
            name: format!("{},epoch={}", preset.name(), epoch_text(&layout)),
            layout,
            birth: layout.epoch(),
            any_worker: preset.has_any_worker(),
        };
        preset.other_epochs().map(other)
    });
    own.into_iter().chain(PRESETS.iter().map(of_preset)).chain(others)
}

/// Returns the epoch, without a fraction of zero.
fn epoch_text(layout: &ReadableLayout) -> String {
    match layout.epoch().get() % 1_000 {
        0 => format!("{:.0}", Rfc3339(layout.epoch())),
        _ => Rfc3339(layout.epoch()).to_string(),
    }
}

fn of_preset(preset: &Preset) -> Candidate {
    Candidate {
        name: preset.name().into(),
        layout: preset.layout(),
        birth: preset.birth(),
        any_worker: preset.has_any_worker(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> UnixMillis {
        time.parse::<Rfc3339>().unwrap().0
    }

    fn readings(id: u64) -> Vec<LayoutReading> {
        super::readings(id, at("2026-11-20T00:00:00Z"))
    }

    fn plausible(id: u64) -> Vec<String> {
        let plausible = readings(id).into_iter().filter(|reading| reading.plausible);
        plausible.map(|reading| reading.name).collect()
    }

    fn reading(id: u64, layout: &str) -> LayoutReading {
        readings(id).into_iter().find(|reading| reading.name == layout).unwrap()
    }

    #[test]
    fn the_layout_an_id_was_minted_with_is_among_the_plausible_ones() {
        let minted = at("2026-10-01T12:00:00Z");
        for candidate in candidates().filter(|candidate| candidate.name != "baidu-2016") {
            let layout = candidate.layout;
            let (tick, _) = layout.ticks_at(minted).unwrap();
            let mut parts = layout.unpack(0).unwrap();
            parts.tick = tick;
            parts.worker = layout.worker_max().min(3);
            parts.sequence = layout.sequence_max().min(5);
            let names = plausible(layout.pack(parts).unwrap());
            assert!(names.contains(&candidate.name), "{}: {names:?}", candidate.name);
        }
    }

    #[test]
    fn published_ids_are_plausible_by_their_own_layout() {
        for (id, layout, time) in [
            (7_102_577_116_159_582_209, "unix", "2023-08-30T09:05:43.994Z"),
            (101_767_036_616_676_231, "mastodon", "2019-03-17T16:55:45.249Z"),
            (568_469_873_039_769_601, "cockroachdb", "2020-06-30T21:47:17.622Z"),
            (5_674_781_293_195_218_178, "seata", "2022-03-28T02:51:01.228Z"),
            (4_688_076_898_113_587, "nextcloud", "2025-10-13T15:12:07.984Z"),
            (11_391_601_991_802_167_296, "baidu-2016", "2026-11-20T22:14:13.000Z"),
            // Of beyondfengyu/SnowFlake and zheng-ji/goSnowFlake, which copy Twitter's.
            (
                329_755_153_370_267_648,
                "twitter,epoch=2016-11-26T13:21:05.631Z",
                "2019-05-25T12:10:20.748Z",
            ),
            (
                257_530_689_124_044_800,
                "twitter,epoch=2016-09-25T11:28:08Z",
                "2018-09-06T03:03:08.976Z",
            ),
        ] {
            let reading = reading(id, layout);
            assert!(reading.plausible, "{reading:?}");
            let start = reading.layout.start_of(reading.parts.unwrap().tick);
            assert_eq!(Rfc3339(start).to_string(), time, "{layout}");
            assert!(reading.name.parse::<ReadableLayout>().is_ok(), "{layout}");
        }
    }

    /// A doubtful reading may have a nearer time than one that nothing speaks against.
    #[test]
    fn no_doubtful_reading_comes_before_one_without_doubt() {
        // The ID of a tweet.
        let readings = readings(1_541_815_603_606_036_480);
        let place = |name: &str| readings.iter().position(|reading| reading.name == name).unwrap();
        let (twitter, discord) = (place("twitter"), place("discord"));
        assert!(readings[twitter].why.is_none() && readings[discord].why.is_some());
        assert!(readings[discord].plausible && readings[discord].cost < readings[twitter].cost);
        assert!(twitter < discord, "{twitter} {discord}");
        let plausible = readings.iter().filter(|reading| reading.plausible);
        assert!(plausible.is_sorted_by_key(|reading| reading.why.is_some()));
    }

    #[test]
    fn the_nearest_time_and_the_smallest_worker_come_first() {
        assert_eq!(plausible(7_102_577_116_159_582_209)[0], "unix");
        let layout = Layout::new(41, 10, 12).unwrap();
        let minted = at("2026-11-19T12:00:00Z");
        assert_eq!(plausible(layout.compose(minted, 0, 7).unwrap())[0], "default");
        // The costs rise, and the implausible readings stand at the end.
        for id in [7_102_577_116_159_582_209, 1_541_815_603_606_036_480, 175_928_847_299_117_063] {
            let readings = readings(id);
            assert!(readings.is_sorted_by_key(LayoutReading::rank));
            assert!(readings.iter().all(|reading| reading.plausible || reading.why.is_some()));
        }
    }

    /// An ID of Discord, of June 2026. Twitter's layout with another epoch reads it as well.
    #[test]
    fn named_layout_comes_before_another_epoch_of_one() {
        let names = plausible(1_510_795_011_686_539_267);
        let place = |name: &str| names.iter().position(|found| found == name);
        let (named, other) = (place("discord"), place("twitter,epoch=2014-12-31T16:00:00Z"));
        assert!(named.is_some() && other.is_some() && named < other, "{names:?}");
    }

    /// A wrong clock may have made such an ID, and the further ahead, the less likely.
    #[test]
    fn the_nearest_of_the_times_ahead_comes_first() {
        let id = Layout::TWITTER.compose(at("2040-01-01T00:00:00Z"), 3, 0).unwrap();
        let readings = readings(id);
        let place = |name: &str| readings.iter().position(|reading| reading.name == name).unwrap();
        let (near, far) = (place("twitter"), place("default"));
        assert!([near, far].iter().all(|place| !readings[*place].plausible), "{readings:?}");
        assert!(near < far, "{readings:?}");
    }

    #[test]
    fn age_speaks_against_a_reading_and_a_random_worker_does_not() {
        let why = |id, layout: &str| reading(id, layout).why.unwrap_or_default();
        let old = why(270_677_837_214_646_272, "twitter");
        assert!(old.ends_with(" ago"), "{old}");
        assert_eq!(why(101_767_036_616_676_231, "tsid"), "");
        assert_eq!(why(101_767_036_616_676_231, "pgedge"), "worker 903 is high");
    }

    /// It is unknown since when systems on the default epoch mint.
    #[test]
    fn only_the_first_day_of_the_default_epoch_is_implausible() {
        let first = reading(181_193_932_800_000, "default");
        assert_eq!(first.why.as_deref(), Some("hardly after the epoch"));
        assert!(reading(724_775_731_200_000, "default").plausible);
    }

    /// A reader copies a name from the readings.
    #[test]
    fn each_name_of_a_reading_is_a_layout_or_leads_to_the_source() {
        for reading in readings(1 << 62) {
            match layout_to_read(&reading.name) {
                Ok(layout) => assert_eq!(layout, reading.layout, "{}", reading.name),
                Err(error) => assert!(
                    reading.name == OF_SOURCE && error.contains("--source default"),
                    "{}: {error}",
                    reading.name
                ),
            }
        }
        assert!(layout_to_read("twiter").unwrap_err().contains("`twitter`"));
    }

    #[test]
    fn misreadings_are_marked_with_their_reason() {
        // Discord's documented example.
        let discord = 175_928_847_299_117_063;
        let names = plausible(discord);
        assert!(names.contains(&"discord".to_owned()), "{names:?}");
        assert!(!names.contains(&"yitter".to_owned()), "{names:?}");
        let why = |id, layout: &str| reading(id, layout).why.unwrap_or_default();
        assert_eq!(why(discord, "tiktok"), "before the first such ID");
        assert!(why(discord, "mastodon").starts_with("in "), "{}", why(discord, "mastodon"));
        assert_eq!(why(11_391_601_991_802_167_296, "twitter"), "more than 63 bits");
        assert_eq!(why(1_098_230_906_194_546_688, "leaf"), "worker 333 is high");
        assert!(reading(1_098_230_906_194_546_688, "leaf").plausible);
        // The milliseconds of Nextcloud end at 999.
        assert_eq!(why(1_023 << 22, "nextcloud"), "its time counts past its second");
        // A row number is not a snowflake.
        assert_eq!(plausible(12_345), [] as [&str; 0]);
    }
}
