//! UUIDs of any version, including versions that are only recognised.

use snowmint_server::decoding::{Age, Dce, UuidFacts, unix_ms};
use snowmint_wire::http::DecodedBody;
use uuid::{Uuid, Variant};

use super::line::DecodedLine;
use super::view::DecodeView;
use crate::terminal::exit::Outcome;
use crate::terminal::output::Output;

pub(super) fn line(text: &str, uuid: Uuid, view: &DecodeView<'_>) -> DecodedLine {
    let standard = uuid.get_variant() == Variant::RFC4122;
    let version = if standard { uuid.get_version_num() } else { 0 };
    let unix_ms = unix_ms(uuid, version);
    DecodedLine {
        body: DecodedBody {
            id: text.into(),
            time: unix_ms.and_then(|ms| view.zone.show_signed(ms)),
            uuid_version: standard.then(|| u8::try_from(version).ok()).flatten(),
            ..DecodedBody::default()
        },
        age_ms: unix_ms.map(|ms| Age::of_signed(ms, view.now).ms()),
        uuid: Some(UuidFacts::of(uuid, version)),
        ..DecodedLine::default()
    }
}

/// Writes the content for people.
pub(super) fn write_facts(facts: &UuidFacts, out: &mut Output) -> Outcome {
    out.field("kind", Some("UUID"))?;
    out.field("version", Some(facts.version))?;
    out.field("variant", Some(facts.variant))?;
    if let Some(node) = &facts.node {
        let shows = match facts.mac_shows {
            Some(true) => "A REAL MAC ADDRESS SHOWS",
            _ => "random, no MAC address shows",
        };
        out.field("node", Some(format_args!("{node} ({shows})")))?;
    }
    out.field("clock", facts.clock_sequence)?;
    if let Some(Dce { domain, number }) = facts.dce {
        let of = match domain {
            0 => "user",
            1 => "group",
            2 => "organisation",
            _ => "site's own kind",
        };
        out.field("number", Some(format_args!("{number} (domain {domain}: {of})")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use snowmint_core::UnixMillis;

    use super::*;
    use crate::terminal::when::Zone;

    fn decoded(text: &str) -> DecodedLine {
        let zone = Zone::default();
        let view = DecodeView { zone: &zone, now: UnixMillis::new(1_645_557_743_000) };
        line(text, Uuid::try_parse(text).unwrap(), &view)
    }

    #[test]
    fn uuid_examples_decode_as_the_standard_states() {
        // RFC 9562, appendices A.1, A.5 and A.6; all have the time 2022-02-22T14:22:22-05:00.
        for (text, version) in [
            ("C232AB00-9414-11EC-B3C8-9F6BDECED846", 1),
            ("1EC9414C-232A-6B00-B3C8-9F6BDECED846", 6),
            ("017F22E2-79B0-7CC3-98C4-DC0C0C07398F", 7),
        ] {
            let line = decoded(text);
            assert_eq!(line.body.uuid_version, Some(version));
            assert_eq!(line.body.time.as_deref(), Some("2022-02-22T19:22:22.000Z"), "{text}");
        }
        // Appendices A.2 to A.4 and A.8; they contain no time.
        for (text, version) in [
            ("5df41881-3aed-3515-88a7-2f4a814cf09e", 3),
            ("919108f7-52d1-4320-9bac-f847db4148a8", 4),
            ("2ed6657d-e927-568b-95e1-2665a8aea6a2", 5),
            ("2489E9AD-2EE2-8E00-8EC9-32D5F69181C0", 8),
        ] {
            let line = decoded(text);
            assert_eq!(line.body.uuid_version, Some(version));
            assert_eq!(line.body.time, None);
            assert_eq!(line.uuid.unwrap().node, None);
        }
    }

    #[test]
    fn mac_address_differs_from_a_random_node() {
        let random = decoded("C232AB00-9414-11EC-B3C8-9F6BDECED846").uuid.unwrap();
        assert_eq!(random.node.as_deref(), Some("9f:6b:de:ce:d8:46"));
        assert_eq!(random.mac_shows, Some(false));
        let real = decoded("6ba7b810-9dad-11d1-80b4-00c04fd430c8").uuid.unwrap();
        assert_eq!(real.node.as_deref(), Some("00:c0:4f:d4:30:c8"));
        assert_eq!(real.mac_shows, Some(true));
        assert_eq!(real.clock_sequence, Some(0x00b4));
    }

    #[test]
    fn version_2_is_recognised() {
        let line = decoded("000003e8-9dad-21d1-b400-00c04fd430c8");
        assert_eq!(line.body.uuid_version, Some(2));
        let facts = line.uuid.unwrap();
        assert_eq!(facts.dce, Some(Dce { domain: 0, number: 1_000 }));
        assert!(line.body.time.unwrap().starts_with("1998-02-04T22:"));
    }

    #[test]
    fn odd_ones_are_named() {
        for (text, version, variant) in [
            (
                "00000000-0000-0000-0000-000000000000",
                "nil: no UUID at all",
                "NCS (before the standard)",
            ),
            ("ffffffff-ffff-ffff-ffff-ffffffffffff", "max: the last one of all", "reserved"),
            ("00000000-0000-1000-c000-000000000000", "unknown", "Microsoft"),
            ("00000000-0000-f000-8000-000000000000", "unknown", "RFC 9562"),
        ] {
            let facts = decoded(text).uuid.unwrap();
            assert_eq!((facts.version, facts.variant), (version, variant), "{text}");
        }
        // This time is long before 1970.
        assert_eq!(
            decoded("00000000-0000-1000-8000-000000000000").body.time.as_deref(),
            Some("1582-10-15T00:00:00.000Z")
        );
    }
}
