//! A store call as one value, so that a wrapper of a store is one function.

use std::borrow::Borrow as _;

use snowmint_core::UnixMillis;

use crate::error::{Error, Verb};
use crate::ids::{Incarnation, Mark};
use crate::model::catalog::SourceState;
use crate::model::member::Presence;

/// Defines the trait of a store, and all that depends on a verb, from one row for each verb.
///
/// `Verb(Kind): fn name(arguments) -> T;` with its documentation becomes:
///
/// - `Verb::Verb`, with this kind and the function's name as its label;
/// - `StoreCall::Verb { arguments }` and `StoreReply::Verb(T)`;
/// - `Store::name(&self, arguments)`, which makes this call: its future ends with a `Result<T>`;
/// - a row of `dispatch!`, which carries the call out by `self.name(arguments)`.
///
/// References in the arguments live for `'a`. The functions in the braces of the trait become its
/// own, unchanged.
macro_rules! store_calls {
    (
        $(#[$of_trait:meta])*
        trait $store:ident { $($own:tt)* }
        $(
            $(#[$doc:meta])*
            $verb:ident($kind:ident): fn $name:ident($($arg:ident: $type:ty),*) -> $reply:ty;
        )*
    ) => {
        #[allow(non_upper_case_globals, reason = "StoreCall and StoreReply have the same names")]
        impl Verb {
            $(
                #[doc = concat!("The verb of [`Store::", stringify!($name), "`](crate::Store).")]
                pub const $verb: Self = Self::of(&VerbRow {
                    name: stringify!($verb),
                    label: stringify!($name),
                    span_name: concat!("store ", stringify!($name)),
                    kind: VerbKind::$kind,
                });
            )*

            /// All verbs, each once.
            pub const ALL: &'static [Self] = &[$(Self::$verb),*];
        }

        /// A call of a store: a verb with the arguments of its function in [`Store`].
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs, reason = "the functions of Store document the arguments")]
        pub enum StoreCall<'a> {
            $($verb { $($arg: $type),* },)*
        }

        /// The reply to a call: the result of the function of the same verb in [`Store`].
        #[derive(Clone, Debug)]
        #[allow(missing_docs, reason = "the functions of Store document the results")]
        pub enum StoreReply {
            $($verb($reply),)*
        }

        impl StoreCall<'_> {
            /// Returns the verb.
            #[must_use]
            pub const fn verb(&self) -> Verb {
                match self {
                    $(Self::$verb { .. } => Verb::$verb,)*
                }
            }

            /// Returns the future of this call with arguments of its own, so that it may begin
            /// after its caller is gone, unchanged.
            pub fn detached(
                self,
                store: Arc<dyn $store>,
            ) -> BoxFuture<'static, Result<StoreReply>> {
                match self {
                    $(Self::$verb { $($arg),* } => {
                        $(let $arg = Argument::own($arg);)*
                        Box::pin(async move {
                            let call = StoreCall::$verb { $($arg: Argument::borrowed(&$arg)),* };
                            store.call(call).await
                        })
                    })*
                }
            }
        }

        impl StoreReply {
            /// Returns the verb of the call.
            #[must_use]
            pub const fn verb(&self) -> Verb {
                match self {
                    $(Self::$verb(_) => Verb::$verb,)*
                }
            }
        }

        $(#[$of_trait])*
        pub trait $store: Send + Sync + fmt::Debug + 'static {
            $($own)*

            $(
                $(#[$doc])*
                #[allow(clippy::needless_lifetimes, reason = "references in arguments need it")]
                fn $name<'a>(&'a self, $($arg: $type),*) -> BoxFuture<'a, Result<$reply>> {
                    Box::pin(async move {
                        match self.call(StoreCall::$verb { $($arg),* }).await? {
                            StoreReply::$verb(reply) => Ok(reply),
                            other => Err($crate::store::call::mismatch(Verb::$verb, other.verb())),
                        }
                    })
                }
            )*
        }

        /// Defines `dispatch`, which carries out a call by the function with its verb's name.
        macro_rules! dispatch {
            () => {
                /// Carries out a call, by the function of its verb.
                fn dispatch<'a>(
                    &'a self,
                    call: StoreCall<'a>,
                ) -> BoxFuture<'a, Result<StoreReply>> {
                    match call {
                        $(StoreCall::$verb { $($arg),* } => Box::pin(async move {
                            self.$name($($arg),*).await.map(StoreReply::$verb)
                        }),)*
                    }
                }
            };
        }
        pub(crate) use dispatch;
    };
}
pub(super) use store_calls;

/// An argument of a call: a value, or a reference to one.
pub(super) trait Argument<'a> {
    type Own: Send + Sync + 'static;

    fn own(self) -> Self::Own;
    fn borrowed(own: &'a Self::Own) -> Self;
}

impl<'a, T: ToOwned<Owned: Send + Sync + 'static> + ?Sized> Argument<'a> for &'a T {
    type Own = T::Owned;

    fn own(self) -> T::Owned {
        self.to_owned()
    }

    fn borrowed(own: &'a T::Owned) -> Self {
        own.borrow()
    }
}

impl<'a, T: Clone + Send + Sync + 'static> Argument<'a> for Option<&'a T> {
    type Own = Option<T>;

    fn own(self) -> Option<T> {
        self.cloned()
    }

    fn borrowed(own: &'a Option<T>) -> Self {
        own.as_ref()
    }
}

macro_rules! given {
    ($($given:ty)*) => {$(
        impl Argument<'_> for $given {
            type Own = Self;

            fn own(self) -> Self {
                self
            }

            fn borrowed(own: &Self) -> Self {
                *own
            }
        }
    )*};
}

given! { Incarnation Mark Option<u64> Presence SourceState UnixMillis }

/// Returns the error for a reply to another verb.
pub(super) fn mismatch(called: Verb, replied: Verb) -> Error {
    let message =
        format!("internal error: store replied to {called} with {replied}; please report it");
    Error::internal(message).with_verb(called)
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;

    use crate::error::{Result, Verb};
    use crate::store::memory::MemoryStore;
    use crate::store::{Store, StoreCall, StoreReply};

    /// A store that takes every call for a read of its clock.
    #[derive(Debug)]
    struct Mistaken {
        store: MemoryStore,
    }

    impl Store for Mistaken {
        crate::as_inner!(store);

        fn call<'a>(&'a self, _: StoreCall<'a>) -> BoxFuture<'a, Result<StoreReply>> {
            self.store.call(StoreCall::Now {})
        }
    }

    #[tokio::test]
    async fn reply_to_another_verb_is_an_error_of_the_verb() {
        let mistaken = Mistaken { store: MemoryStore::new("test").unwrap() };
        assert_eq!(mistaken.now().await.unwrap(), None);
        let error = mistaken.list().await.unwrap_err();
        let message = "internal error: store replied to list with now; please report it";
        assert_eq!(error.message(), message);
        assert_eq!(error.verb(), Some(Verb::List));
    }
}
