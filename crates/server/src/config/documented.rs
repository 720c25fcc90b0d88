//! Settings whose text, default and bounds stand once: at the field.
//!
//! The derive of `schemars` brings texts and defaults, but needs as many impls for types of values,
//! and knows no bounds of durations.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;

use snowmint_coord::spec::Span;

/// One key of a section: its text, and the values that it takes.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct SettingRow {
    /// Name of the key in its section.
    pub key: &'static str,
    /// Lines of its documentation. The first paragraph is also for the configuration file.
    pub lines: &'static [&'static str],
    /// Function that returns what `{}` in the documentation stands for, such as a list.
    pub listing: Option<fn() -> String>,
    /// Values that it takes.
    pub takes: SettingValues,
    /// Least value; of a duration in milliseconds.
    pub least: Option<u64>,
    /// Most, likewise.
    pub most: Option<u64>,
}

/// Values that a key takes.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub enum SettingValues {
    /// A section, with its keys in the order of the configuration file.
    Section(Vec<SettingRow>),
    /// `true` or `false`.
    Flag,
    /// Whole number up to the maximum of its type.
    Number(u64),
    /// Whole number up to a maximum, or one of these words.
    NumberOr(u64, &'static [&'static str]),
    /// Text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Duration with its unit.
    Duration,
    /// List of texts.
    Texts,
    /// Texts under names of the operator's own.
    Named,
}

/// A section, or a single value.
#[doc(hidden)]
pub trait Documented {
    /// Returns the values that a key of this type takes.
    fn takes() -> SettingValues;
}

macro_rules! documented {
    ($($type:ty: $takes:expr,)*) => {$(
        impl Documented for $type {
            fn takes() -> SettingValues {
                $takes
            }
        }
    )*};
}

documented! {
    bool: SettingValues::Flag,
    u32: SettingValues::Number(u32::MAX.into()),
    u64: SettingValues::Number(u64::MAX),
    usize: SettingValues::Number(u64::MAX),
    PathBuf: SettingValues::Text,
    Span: SettingValues::Duration,
    String: SettingValues::Text,
    Vec<String>: SettingValues::Texts,
}

impl<K, V> Documented for BTreeMap<K, V> {
    fn takes() -> SettingValues {
        SettingValues::Named
    }
}

impl SettingRow {
    /// Returns the row with bounds.
    #[must_use]
    pub fn within(self, bounds: impl RangeBounds<u64>) -> Self {
        let least = match bounds.start_bound() {
            Bound::Included(least) => Some(*least),
            Bound::Excluded(below) => below.checked_add(1),
            Bound::Unbounded => None,
        };
        let most = match bounds.end_bound() {
            Bound::Included(most) => Some(*most),
            Bound::Excluded(above) => above.checked_sub(1),
            Bound::Unbounded => None,
        };
        Self { least, most, ..self }
    }

    /// Returns the row with a listing.
    #[must_use]
    pub fn listing(self, listing: fn() -> String) -> Self {
        Self { listing: Some(listing), ..self }
    }

    /// Returns the documentation of its first paragraph.
    #[must_use]
    pub fn first_paragraph(&self) -> String {
        self.each_paragraph().next().unwrap_or_default()
    }

    /// Returns the whole documentation, a text for each paragraph.
    #[must_use]
    pub fn paragraphs(&self) -> Vec<String> {
        self.each_paragraph().collect()
    }

    fn each_paragraph(&self) -> impl Iterator<Item = String> {
        let parts = self.lines.split(|line| line.is_empty()).filter(|lines| !lines.is_empty());
        parts.map(|lines| {
            let text = lines.concat();
            match self.listing {
                Some(listing) => text.trim().replace("{}", &listing()),
                None => text.trim().to_owned(),
            }
        })
    }

    /// Returns the bounds in words, if it has any: `1s to 1d`.
    #[must_use]
    pub fn bounds(&self) -> Option<String> {
        match (self.least, self.most) {
            (None, None) => None,
            (Some(least), None) => Some(format!("at least {}", self.shown(least))),
            (None, Some(most)) => Some(format!("at most {}", self.shown(most))),
            (Some(least), Some(most)) => {
                Some(format!("{} to {}", self.shown(least), self.shown(most)))
            }
        }
    }

    /// Checks a value; a duration is in milliseconds.
    ///
    /// # Errors
    /// The exceeded bound, that of its type included.
    pub fn check(&self, value: i128) -> Result<(), String> {
        let type_max = match self.takes {
            SettingValues::Number(max) => max,
            _ => u64::MAX,
        };
        let (least, most) = (self.least.unwrap_or(0), self.most.unwrap_or(type_max));
        let (is_low, is_high) = (value < i128::from(least), value > i128::from(most));
        if !is_low && !is_high {
            return Ok(());
        }
        Err(match (self.least, self.most) {
            (Some(_), Some(_)) => format!("allowed are {}", self.bounds().unwrap_or_default()),
            _ if is_low => format!("the minimum is {}; raise it", self.shown(least)),
            _ => format!("the maximum is {}; lower it", self.shown(most)),
        })
    }

    fn shown(&self, bound: u64) -> String {
        match self.takes {
            SettingValues::Duration => Span::from_ms(bound).to_string(),
            _ if bound > u32::MAX.into() && bound.is_power_of_two() => {
                format!("{bound} (2^{})", bound.ilog2())
            }
            _ => bound.to_string(),
        }
    }
}

/// Defines sections. Each field has its documentation, then perhaps its bounds, then perhaps the
/// function that lists what `{}` in the documentation stands for. Then perhaps how serde reads it,
/// and perhaps its default; without one, it is that of its type. What reads a configuration checks
/// the bounds; the types do not:
///
/// ```
/// snowmint_server::settings! {
///     /// Limits of one request.
///     pub struct RequestLimits {
///         /// Most IDs of one request.
///         #[within(1..)]
///         pub batch_max: u32 = 100_000,
///         /// Whether a request may wait.
///         pub waits: bool,
///     }
/// }
/// assert_eq!(RequestLimits::default(), RequestLimits { batch_max: 100_000, waits: false });
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! settings {
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
    ($(
        $(#[doc = $about:literal])*
        $visible:vis struct $section:ident {$(
            $(#[doc = $line:literal])*
            $(#[within($bounds:expr)])?
            $(#[listing($listing:path)])?
            $(#[serde $reading:tt])*
            $field_visible:vis $key:ident: $type:ty $(= $default:expr)?,
        )*}
    )*) => {$(
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        $visible struct $section {$(
            $(#[doc = $line])*
            $(#[doc = concat!("\n\nDefault: `", stringify!($default), "`.")])?
            $(#[doc = concat!("\n\nBounds: `", stringify!($bounds), "`.")])?
            $(#[doc = concat!("\n\n`{}`: what `", stringify!($listing), "` returns.")])?
            $(#[serde $reading])*
            $field_visible $key: $type,
        )*}

        impl Default for $section {
            fn default() -> Self {
                Self { $($key: $crate::settings!(@default $($default)?),)* }
            }
        }

        impl $crate::Documented for $section {
            fn takes() -> $crate::SettingValues {
                $crate::SettingValues::Section(vec![$($crate::SettingRow {
                    key: stringify!($key),
                    lines: &[$($line),*],
                    listing: None,
                    takes: <$type as $crate::Documented>::takes(),
                    least: None,
                    most: None,
                }$(.within($bounds))?$(.listing($listing))?),*])
            }
        }
    )*};
}
