//! Rights, and the sources that they apply to.

use std::fmt;
use std::str::FromStr;

use crate::error::shown;

/// Permission of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Right {
    /// Mint IDs, count, and read the bound of a counter.
    Mint,
    /// Take ranges of numbers, for the client to issue.
    Reserve,
    /// Mint in the client's own process: be a member of the store, and take worker numbers. All
    /// sources share one set of them, so the right is the same over any source.
    Join,
    /// Decode IDs.
    Decode,
    /// Define, alter and delete sources; with another right, exceed the limits of one request. Over
    /// all sources: see workers and clients, too. Over a key, a store or an upstream: name it in
    /// definitions.
    Admin,
    /// Read the metrics (`/metrics`), over all sources.
    Metrics,
}

impl Right {
    /// All rights.
    pub const ALL: [Self; 6] =
        [Self::Mint, Self::Reserve, Self::Join, Self::Decode, Self::Admin, Self::Metrics];

    /// Returns the text form.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mint => "mint",
            Self::Reserve => "reserve",
            Self::Join => "join",
            Self::Decode => "decode",
            Self::Admin => "admin",
            Self::Metrics => "metrics",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Object outside the source that a definition can name: this needs a right over the object, too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Named {
    /// A disguise key, by its number.
    Key(u32),
    /// A secondary store.
    Store(String),
    /// An upstream: another system issues its numbers, too.
    Upstream(String),
}

impl Named {
    const fn over(&self) -> Over {
        match self {
            Self::Key(_) => Over::Keys,
            Self::Store(_) => Over::Stores,
            Self::Upstream(_) => Over::Upstreams,
        }
    }

    /// Returns the key in a definition that names it.
    pub(super) const fn key(&self) -> &'static str {
        match self {
            Self::Key(_) => "disguise.key",
            Self::Store(_) => "stores",
            Self::Upstream(_) => "upstream",
        }
    }
}

impl fmt::Display for Named {
    /// Writes its form in grants.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.over().prefix())?;
        match self {
            Self::Key(number) => write!(f, "{number}"),
            Self::Store(name) | Self::Upstream(name) => f.write_str(name),
        }
    }
}

/// Kind of object that the names of a grant refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Sources,
    Keys,
    Stores,
    Upstreams,
}

impl Over {
    /// Returns the prefix of the names; source names have no colon.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Sources => "",
            Self::Keys => "key:",
            Self::Stores => "store:",
            Self::Upstreams => "upstream:",
        }
    }

    /// Splits a pattern of a grant into its kind of object and the rest.
    fn of(text: &str) -> (Self, String) {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (format!("{namespace}/"), name),
            None => (String::new(), text),
        };
        let named = [Self::Keys, Self::Stores, Self::Upstreams]
            .into_iter()
            .find_map(|over| Some((over, name.strip_prefix(over.prefix())?)));
        let (over, name) = named.unwrap_or((Self::Sources, name));
        (over, namespace + name)
    }
}

/// Rights over the sources of a pattern: `mint,reserve orders-*`; or over objects that definitions
/// name: `admin key:1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    rights: Vec<Right>,
    over: Over,
    pattern: Pattern,
}

impl Grant {
    pub(super) fn has(&self, right: Right, source: &str) -> bool {
        self.rights.contains(&right) && self.has_source(source)
    }

    fn has_source(&self, source: &str) -> bool {
        self.over == Over::Sources && self.pattern.has_source(source)
    }

    /// Returns whether definitions may name it: by the right over all sources, or over this object.
    pub(super) fn has_named(&self, named: &Named) -> bool {
        let fits = || match named {
            Named::Key(number) => self.pattern.has_source(&number.to_string()),
            Named::Store(name) | Named::Upstream(name) => self.pattern.has_source(name),
        };
        let is_over = self.over == named.over() && self.rights.contains(&Right::Admin);
        self.has_over_all(Right::Admin) || (is_over && fits())
    }

    /// Returns whether it grants a right over a source, other than to its metrics, which show
    /// little.
    pub(super) fn concerns(&self, source: &str) -> bool {
        self.rights.iter().any(|right| *right != Right::Metrics) && self.has_source(source)
    }

    pub(super) fn has_over_all(&self, right: Right) -> bool {
        self.over == Over::Sources && self.rights.contains(&right) && self.pattern.source == "*"
    }

    /// Returns whether it applies to sources, and not to objects that definitions name.
    pub(super) fn is_over_sources(&self) -> bool {
        self.over == Over::Sources
    }

    /// Returns whether it has the right over any source.
    pub(super) fn has_somewhere(&self, right: Right) -> bool {
        self.is_over_sources() && self.rights.contains(&right)
    }

    pub(super) fn is_for(&self, namespace: &str) -> bool {
        self.pattern.has_namespace(namespace)
    }
}

impl FromStr for Grant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let (Some(rights), Some(pattern), None) = (words.next(), words.next(), words.next()) else {
            return Err(format!(
                "invalid grant {}; write RIGHT,RIGHT PATTERN, such as \"mint,decode orders-*\"",
                shown(text)
            ));
        };
        let right = |name: &str| {
            let found = Right::ALL.into_iter().find(|right| right.name() == name);
            found.ok_or_else(|| {
                let names = Right::ALL.map(Right::name).join(", ");
                format!("unknown right {}; expected one of {names}", shown(name))
            })
        };
        let rights = rights.split(',').map(right).collect::<Result<Vec<_>, _>>()?;
        let (over, pattern) = Over::of(pattern);
        if over != Over::Sources && rights != [Right::Admin] {
            return Err(format!(
                "invalid grant {}; over keys, stores and upstreams only the right admin exists, \
                 such as \"admin key:1\"",
                shown(text)
            ));
        }
        Ok(Self { rights, over, pattern: pattern.parse()? })
    }
}

/// Names of sources, and of namespaces: `orders-*`, `prod/orders-*`. A star matches any characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    namespace: String,
    source: String,
}

impl Pattern {
    pub(super) fn has_source(&self, name: &str) -> bool {
        fits(self.source.as_bytes(), name.as_bytes())
    }

    pub(super) fn has_namespace(&self, name: &str) -> bool {
        fits(self.namespace.as_bytes(), name.as_bytes())
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (namespace, source) = text.split_once('/').unwrap_or(("*", text));
        for part in [namespace, source] {
            let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-*".contains(&byte);
            if part.is_empty() || !part.bytes().all(is_known) {
                return Err(format!(
                    "invalid pattern {}; write SOURCE or NAMESPACE/SOURCE, in which * stands for \
                     any characters",
                    shown(text)
                ));
            }
        }
        Ok(Self { namespace: namespace.to_owned(), source: source.to_owned() })
    }
}

/// Returns whether a name fits a pattern: `*` matches any bytes, `?` one.
///
/// Backtracks to the last star only, so the work is bounded by the product of the lengths.
pub(crate) fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at_pattern, mut at_name) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = name.get(at_name) {
        match pattern.get(at_pattern) {
            Some(b'*') => {
                star = Some((at_pattern + 1, at_name));
                at_pattern += 1;
            }
            Some(wanted) if *wanted == b'?' || wanted == byte => {
                at_pattern += 1;
                at_name += 1;
            }
            _ => {
                let Some((after_star, from)) = star else { return false };
                star = Some((after_star, from + 1));
                at_pattern = after_star;
                at_name = from + 1;
            }
        }
    }
    pattern.get(at_pattern..).unwrap_or_default().iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name) in [
            ("orders", "orders"),
            ("*", "orders"),
            ("*", ""),
            ("o*s", "orders"),
            ("o*s", "os"),
            ("*der*", "orders"),
            ("**", "orders"),
            ("orders-*", "orders-"),
            ("*a*a*", "aa"),
            ("or??rs", "orders"),
        ] {
            assert!(fits(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("orders", "Orders"),
            ("orders", "orders2"),
            ("orders-*", "orders"),
            ("o*o", "o"),
            ("*a*a*", "a"),
            ("ab*ba", "aba"),
            ("or?rs", "orders"),
            ("?", ""),
            ("", "orders"),
        ] {
            assert!(!fits(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
    }

    /// Defines a star and a question mark, letter by letter.
    fn fits_slowly(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            ([b'*', rest @ ..], []) => fits_slowly(rest, &[]),
            ([b'*', rest @ ..], [_, more @ ..]) => {
                fits_slowly(rest, name) || fits_slowly(pattern, more)
            }
            ([b'?', rest @ ..], [_, more @ ..]) => fits_slowly(rest, more),
            ([one, rest @ ..], [other, more @ ..]) => one == other && fits_slowly(rest, more),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn pattern_matches_like_the_slow_reference(pattern in "[ab*?]{0,8}", name in "[ab]{0,10}") {
            let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
            prop_assert_eq!(fits(pattern, name), fits_slowly(pattern, name));
        }
    }

    #[test]
    fn a_grant_has_its_rights_over_its_sources_and_no_others() {
        let grant: Grant = "mint,decode  prod/orders-*".parse().unwrap();
        assert!(grant.has(Right::Mint, "orders-1") && grant.has(Right::Decode, "orders-"));
        assert!(!grant.has(Right::Reserve, "orders-1") && !grant.has(Right::Admin, "orders-1"));
        assert!(!grant.has(Right::Mint, "invoices"));
        assert!(grant.is_for("prod") && !grant.is_for("test"));
        assert!(grant.has_somewhere(Right::Mint) && !grant.has_over_all(Right::Mint));
        let all: Grant = "admin *".parse().unwrap();
        assert!(all.is_for("any") && all.has_over_all(Right::Admin));
    }

    #[test]
    fn naming_needs_a_grant_over_the_object_or_all_sources() {
        let (key, store) = (Named::Key(1), Named::Store("eu-1".into()));
        let upstream = Named::Upstream("leaf".into());
        for (text, over) in [
            ("admin *", [true; 3]),
            ("mint,admin prod/*", [true; 3]),
            ("admin key:1", [true, false, false]),
            ("admin prod/key:*", [true, false, false]),
            ("admin store:eu-*", [false, true, false]),
            ("admin upstream:leaf", [false, false, true]),
            ("admin key:2", [false; 3]),
            ("admin key:11", [false; 3]),
            // Patterns of sources, regardless of the texts that they would fit.
            ("admin *1", [false; 3]),
            ("admin *e*", [false; 3]),
            ("admin k*", [false; 3]),
            ("admin **", [false; 3]),
            ("admin leaf", [false; 3]),
            ("mint,reserve,join,decode,metrics *", [false; 3]),
        ] {
            let grant: Grant = text.parse().unwrap();
            assert_eq!(
                [&key, &store, &upstream].map(|named| grant.has_named(named)),
                over,
                "{text}"
            );
        }
        let grant: Grant = "admin prod/key:*".parse().unwrap();
        assert!(grant.is_for("prod") && !grant.is_for("test"));
        assert!(!grant.has(Right::Admin, "1") && !grant.has(Right::Admin, "key"));
        assert!(!grant.concerns("1") && !grant.has_somewhere(Right::Admin));
        assert!(!grant.has_over_all(Right::Admin));
        assert_eq!(
            [key, store, upstream].map(|named| named.to_string()),
            ["key:1", "store:eu-1", "upstream:leaf"]
        );
    }

    #[test]
    fn invalid_grant_is_rejected() {
        for text in [
            "",
            "mint",
            "mint ",
            "mint, a",
            "steal *",
            "mint a b",
            "mint /a",
            "mint a/",
            "mint a/b/c",
            "mint a;b",
            "mint key:1",
            "mint,admin key:1",
            "admin key:",
            "admin keys:1",
            "admin key:1/a",
            "admin key:a:b",
        ] {
            assert!(text.parse::<Grant>().is_err(), "{text}");
        }
    }
}
