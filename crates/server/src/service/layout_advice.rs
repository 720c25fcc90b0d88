//! Sentences on a layout for those who choose one, and an ID that shows it.

use std::collections::BTreeMap;

use snowmint_core::layout::{Lifetime, Preset, ReadableLayout};
use snowmint_core::text::Format;
use snowmint_core::{Parts, UnixMillis};

use super::shards;

/// Most bits of a number that JavaScript holds exactly.
const JAVASCRIPT_BITS: u8 = 53;

/// Returns the reason why a layout only decodes, if it does.
#[must_use]
pub fn cannot_mint(layout: &ReadableLayout) -> Option<String> {
    let ended = |preset: &Preset| format!("{} only decodes; its years have ended", preset.name());
    let preset = layout.preset().filter(|preset| !preset.can_mint());
    layout.mintable().err().map(|error| error.to_string()).or_else(|| preset.map(ended))
}

/// Returns what to know before a source gets this layout.
pub(crate) fn warnings(layout: &ReadableLayout, now: UnixMillis) -> Vec<String> {
    let only_decodes = cannot_mint(layout).map(|why| format!("mints no IDs: {why}"));
    let lifetime = match layout.lifetime_at(now) {
        Lifetime::Long { .. } => None,
        lifetime => Some(lifetime.to_string()),
    };
    let bits = layout.total_bits();
    let rounded = (bits > JAVASCRIPT_BITS).then(|| {
        format!("JavaScript rounds numbers of {bits} bits (it holds {JAVASCRIPT_BITS}): send IDs as strings")
    });
    let spread = layout.mintable().ok().map(|layout| shards::of_layout(&layout));
    [only_decodes, lifetime, rounded, spread].into_iter().flatten().collect()
}

/// Returns the first ID of worker 1, or of the only worker, at this time, in each text form.
pub(crate) fn sample(layout: &ReadableLayout, now: UnixMillis) -> BTreeMap<String, String> {
    let Ok((tick, _)) = layout.ticks_at(now) else { return BTreeMap::new() };
    let worker = layout.worker_max().min(1);
    let Ok(id) = layout.pack(Parts { tick, worker, ..Parts::default() }) else {
        return BTreeMap::new();
    };
    let mints = layout.mintable().ok();
    let in_form = |format: Format| {
        let text = format.encode(id, mints.as_ref()).ok()?;
        Some((format.name().to_owned(), text.as_str().to_owned()))
    };
    Format::ALL.into_iter().filter_map(in_form).collect()
}

#[cfg(test)]
mod tests {
    use snowmint_core::Layout;
    use snowmint_core::text::Radix;

    use super::*;

    const NOW: UnixMillis = UnixMillis::new(1_795_000_000_000);

    #[test]
    fn layouts_are_warned_of_with_their_limits() {
        let of = |text: &str| warnings(&text.parse().unwrap(), NOW).join("; ");
        let twitter = of("twitter");
        assert!(twitter.contains("numbers of 63 bits"), "{twitter}");
        assert!(!twitter.contains("ends at") && !twitter.contains("mints no"), "{twitter}");
        assert!(!of("js53").contains("JavaScript"), "{}", of("js53"));
        assert!(of("seata").contains("mints no IDs: "), "{}", of("seata"));
        assert!(of("baidu-2016").contains("its years have ended"), "{}", of("baidu-2016"));
        let brief = of("time=33,worker=10,sequence=12,epoch=2026-11-01T00:00:00Z");
        assert!(brief.contains("within a year"), "{brief}");
    }

    #[test]
    fn sample_is_one_id_in_each_form() {
        let layout = Layout::TWITTER.readable();
        let sample = sample(&layout, NOW);
        assert_eq!(sample.len(), Format::ALL.len());
        let id = Format::Number(Radix::Decimal).decode(&sample["decimal"], None).unwrap();
        assert_eq!(layout.start_of(layout.unpack(id).unwrap().tick), NOW);
        assert_eq!(layout.unpack(id).unwrap().worker, 1);
        for format in Format::ALL {
            let read = format.decode(&sample[format.name()], Some(&Layout::TWITTER));
            assert_eq!(read.ok(), Some(id), "{format}");
        }
        assert!(super::sample(&layout, layout.end()).is_empty());
    }
}
