//! `Debug` of types with fields that have no text, such as connections and functions.

/// Implements `Debug` for a type by its name and some of its fields. Types with secrets implement
/// it by hand, where a reader sees what is left out.
#[doc(hidden)]
#[macro_export]
macro_rules! opaque_debug {
    ($type:ident $(<$life:lifetime>)? $(: $($field:ident),+)?) => {
        impl std::fmt::Debug for $type $(<$life>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $($(.field(stringify!($field), &self.$field))+)?
                    .finish_non_exhaustive()
            }
        }
    };
}
