//! Settings whose text, default and bounds stand once: at the field.
//!
//! The derives of `schemars` and `utoipa` give texts only. They bring no defaults, they order keys
//! by name, and each type of a value needs a schema, which nothing prints.

use std::collections::BTreeMap;
use std::path::PathBuf;

use snowmint_coord::spec::Span;

/// One key of a section, with its text.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct SettingText {
    /// Name of the key in its section.
    pub key: &'static str,
    /// Lines of its documentation. The first paragraph is for the configuration file, the others
    /// are for readers of the code.
    pub lines: &'static [&'static str],
    /// Keys below it: those of a section.
    pub below: &'static [Self],
}

/// A section, or a single value.
#[doc(hidden)]
pub trait Documented {
    /// Keys of a section, in the order of the configuration file; a single value has none.
    const KEYS: &'static [SettingText] = &[];
}

impl Documented for bool {}
impl Documented for u32 {}
impl Documented for u64 {}
impl Documented for usize {}
impl Documented for PathBuf {}
impl Documented for Span {}
impl Documented for String {}
impl<T> Documented for Vec<T> {}
impl<K, V> Documented for BTreeMap<K, V> {}

/// Defines sections. Each field has its documentation, then perhaps how serde reads it, and perhaps
/// its default; without one, it is that of its type:
///
/// ```
/// snowmint_server::settings! {
///     /// Limits of one request.
///     pub struct RequestLimits {
///         /// Most IDs of one request.
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
            $(#[serde $reading])*
            $field_visible $key: $type,
        )*}

        impl Default for $section {
            fn default() -> Self {
                Self { $($key: $crate::settings!(@default $($default)?),)* }
            }
        }

        impl $crate::Documented for $section {
            const KEYS: &'static [$crate::SettingText] = &[$($crate::SettingText {
                key: stringify!($key),
                lines: &[$($line),*],
                below: <$type as $crate::Documented>::KEYS,
            }),*];
        }
    )*};
}
