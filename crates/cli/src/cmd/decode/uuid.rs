//! UUIDs of any version, including versions that are only recognised.

use snowmint_wire::http::DecodedBody;
use uuid::{Uuid, Variant};

use super::line::DecodedLine;
use super::uuid_facts::UuidFacts;
use super::view::DecodeView;
use crate::terminal::when::Age;

/// Time from 1582-10-15T00:00:00Z, the origin of versions 1, 2 and 6, to 1970, in steps of 100 ns.
const GREGORIAN_STEPS_TO_1970: i128 = 0x01b2_1dd2_1381_4000;
/// Number of 100 ns steps in a millisecond.
const STEPS_PER_MS: i128 = 10_000;

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

/// Returns the time when the UUID was made, as far as it contains it.
fn unix_ms(uuid: Uuid, version: usize) -> Option<i64> {
    let bytes = uuid.as_bytes();
    let (high, _) = uuid.as_u64_pair();
    let time_high = u64::from(u16::from_be_bytes([bytes[6] & 0x0f, bytes[7]]));
    let steps = match version {
        1 => time_high << 48 | (high >> 16 & 0xffff) << 32 | high >> 32,
        // The low 32 bits of the time hold a local number: the time is known to 7 minutes only.
        2 => time_high << 48 | (high >> 16 & 0xffff) << 32,
        6 => (high >> 16) << 12 | time_high,
        7 => return i64::try_from(high >> 16).ok(),
        _ => return None,
    };
    i64::try_from((i128::from(steps) - GREGORIAN_STEPS_TO_1970).div_euclid(STEPS_PER_MS)).ok()
}

#[cfg(test)]
mod tests {
    use snowmint_core::UnixMillis;

    use super::super::uuid_facts::Dce;
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
