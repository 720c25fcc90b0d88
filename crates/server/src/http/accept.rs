//! Preferences of a caller: the media type of a response, and its encoding (RFC 9110, 12.5).

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, ACCEPT_ENCODING};
use mediatype::{MediaType, MediaTypeList, Name, ReadParams as _, names};

const VERSION: Name<'static> = Name::new_unchecked("version");

/// A media type that a response can have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    media_type: Name<'static>,
    subtype: Name<'static>,
    /// Version of the format, if it has several.
    version: Option<&'static str>,
}

impl Offer {
    pub(super) const fn new(media_type: Name<'static>, subtype: Name<'static>) -> Self {
        Self { media_type, subtype, version: None }
    }

    pub(super) const fn version(self, version: &'static str) -> Self {
        Self { version: Some(version), ..self }
    }

    /// Returns how narrow a range is that contains the offer: 1 for any type, 2 for any of its
    /// kind, 3 for itself, 4 for its version. Other parameters, such as `charset`, do not count.
    fn narrowness(&self, range: &MediaType<'_>) -> Option<u8> {
        let has_type = range.ty == self.media_type;
        if range.suffix.is_some() {
            None
        } else if range.subty == names::_STAR {
            let any = (range.ty == names::_STAR).then_some(1);
            if has_type { Some(2) } else { any }
        } else if !has_type || range.subty != self.subtype {
            None
        } else {
            match (self.version, range.get_param(VERSION)) {
                (Some(own), Some(version)) => (version.unquoted_str() == own).then_some(4),
                _ => Some(3),
            }
        }
    }
}

/// Returns the offer that the caller prefers; `None` if it names none. Of the ranges that contain
/// an offer, the narrowest has its weight. Of several offers with one weight, the one with the
/// narrower range counts, then the first.
pub(super) fn preferred<T: Copy, const N: usize>(
    headers: &HeaderMap,
    offers: &[(Offer, T); N],
) -> Option<T> {
    let mut found = [(0_u8, 0.0_f32); N];
    let texts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    // A range with a mistake does not make the others invalid.
    for range in texts.flat_map(MediaTypeList::new).flatten() {
        let weight = range.get_param(names::Q).map_or(1.0, |text| weight(text.as_str()));
        for (found, (offer, _)) in found.iter_mut().zip(offers) {
            match offer.narrowness(&range) {
                Some(narrowness) if (narrowness, weight) >= *found => *found = (narrowness, weight),
                _ => {}
            }
        }
    }
    let accepted = found.into_iter().zip(offers).filter(|((_, weight), _)| *weight > 0.0);
    let better = |one: &(u8, f32), other: &(u8, f32)| {
        one.1.total_cmp(&other.1).then(one.0.cmp(&other.0)).is_gt()
    };
    accepted
        .reduce(|best, next| if better(&next.0, &best.0) { next } else { best })
        .map(|(_, (_, value))| *value)
}

/// Returns the encodings that the caller names, each with its weight.
pub(super) fn encodings(headers: &HeaderMap) -> impl Iterator<Item = (&str, f32)> {
    let texts = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    // An encoding is one word, and has no parameter but its weight.
    texts.flat_map(|text| text.split(',')).map(|item| {
        let (encoding, parameter) = item.split_once(';').unwrap_or((item, ""));
        let weights =
            parameter.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
        (encoding.trim(), weights.map_or(1.0, |(_, text)| weight(text.trim())))
    })
}

/// Parses a weight; an invalid one counts as 0.
fn weight(text: &str) -> f32 {
    text.parse().ok().filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const OFFERS: [(Offer, &str); 2] = [
        (Offer::new(names::TEXT, names::PLAIN).version("2"), "text"),
        (Offer::new(names::APPLICATION, names::JSON), "json"),
    ];

    fn preferred_of(lines: &[&'static str]) -> Option<&'static str> {
        let lines = lines.iter().map(|line| (ACCEPT, HeaderValue::from_static(line)));
        let mut headers = HeaderMap::new();
        for (name, line) in lines {
            headers.append(name, line);
        }
        preferred(&headers, &OFFERS)
    }

    #[test]
    fn narrowest_range_has_the_weight() {
        for (accept, offer) in [
            ("*/*", Some("text")),
            ("application/*", Some("json")),
            ("application/*, text/*;q=0.9", Some("json")),
            ("text/*, application/json;q=0.2, application/*", Some("text")),
            ("text/plain;q=0.3, text/plain;version=2, application/json;q=0.5", Some("text")),
            ("text/plain, text/plain;version=2;q=0.3, application/json;q=0.5", Some("json")),
            // Of the same weight: the narrower range, then the first offer.
            ("*/*, application/json", Some("json")),
            ("text/plain, application/json;version=7", Some("text")),
            ("application/json, text/plain", Some("text")),
            // A range that is there twice has its highest weight.
            ("text/plain;q=0.8, text/plain;q=0.1, application/json;q=0.5", Some("text")),
        ] {
            assert_eq!(preferred_of(&[accept]), offer, "{accept}");
        }
    }

    #[test]
    fn other_types_and_other_versions_are_not_offered() {
        for accept in [
            "",
            " , ,",
            "image/png",
            "*/plain",
            "text/plain+xml",
            "text/plain;version=1",
            "text/plain;version=\"2.0\"",
            "text/plain;q=0",
            "text/plain;q=0.0, application/json;q=0.000",
            "text/plain;q=x",
            "text/plain;q=NaN",
            "text/plain;q=inf",
            "text/plain;q=-1",
            "text/plain;q=2",
            "text",
            "text/plain; q",
        ] {
            assert_eq!(preferred_of(&[accept]), None, "{accept}");
        }
    }

    #[test]
    fn quotes_lines_and_case_are_read() {
        for lines in [
            &["TEXT/Plain; Version=2; charset=utf-8"][..],
            &["text/plain;version=\"2\""],
            &["text/html;note=\"a, b;q=1\", text/plain;Q=0.4, application/json;q=\"0.2\""],
            &["text/html", "application/json;q=0.3", "text/plain;q=0.4"],
            &["/, text/plain, ;;;"],
        ] {
            assert_eq!(preferred_of(lines), Some("text"), "{lines:?}");
        }
    }

    #[test]
    fn encodings_have_weights() {
        let text = "gzip, br ; Q=0.5,identity;q=2,, *;q=0";
        let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(text))]);
        let found: Vec<_> = encodings(&headers).collect();
        assert_eq!(found, [("gzip", 1.0), ("br", 0.5), ("identity", 0.0), ("", 1.0), ("*", 0.0)]);
    }
}
