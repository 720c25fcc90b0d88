//! Trait of a verb as a step runs it: its result, its kind of access, and its work on the rows.

use async_trait::async_trait;

use super::rows::{Access, Backend, FirstRow, Rows, VerbResult};
use crate::error::{Verb, VerbKind};

/// Largest number of slots that one step writes if the rest can follow in another step. Other
/// callers of a store wait until a step ends.
const STEP_SLOTS_MAX: usize = 500;

/// Returns how many slots a step writes of a request for more, if it may write `writes_max`.
pub(super) fn step_slots(writes_max: usize) -> usize {
    writes_max.min(STEP_SLOTS_MAX)
}

/// Splits the slots into parts that one step can write, with room for the records of members.
/// Returns at least one part, so that invalid requests are rejected.
pub(super) fn in_steps<B: Backend, T>(slots: &[T]) -> impl Iterator<Item = &[T]> {
    let chunks = slots.chunks(step_slots(<B::Rows as Rows>::WRITES_MAX / 2).max(1));
    chunks.chain(slots.is_empty().then_some(slots))
}

/// A verb with its arguments.
#[async_trait]
pub trait RunVerb: Sync {
    /// Result of the verb.
    type Output: Send;
    /// The verb, for errors.
    const VERB: Verb;
    /// Kind of access to the store.
    const ACCESS: Access = match Self::VERB.kind() {
        VerbKind::Read => Access::Read,
        VerbKind::Grant | VerbKind::Write | VerbKind::Operate => Access::Write,
    };
    /// Whether the verb also runs on a store in doubt, whatever this handle has seen of it.
    const IN_DOUBT: bool = false;
    /// Whether the verb's first step that changes anything leaves a start itself.
    const LEAVES_START: bool = false;
    /// Whether reserves yield to this verb when it has lost to other writers.
    const HAS_PRIORITY: bool = true;

    /// Returns the row that the verb reads first, if it is known before the step begins.
    fn first_row(&self) -> Option<FirstRow<'_>> {
        None
    }

    /// Reads, decides and writes.
    async fn run<R: Rows>(&self, rows: &mut R) -> VerbResult<R, Self::Output>;
}

/// Defines verbs that are one step, each by a function over rows.
///
/// `Verb: fn name(arguments) -> T;` makes `BackendStore::name`, which runs the function `name` of
/// the same file, from `rows` and the arguments, in a step of this verb. Flags in parentheses, such
/// as `Verb(IN_DOUBT)`, are constants of [`RunVerb`] that are true for it. The file imports
/// `BackendStore`.
macro_rules! steps {
    ($($verb:ident$(($flag:ident))?: fn $name:ident($($arg:ident: $type:ty),*) -> $output:ty;)*) => {
        impl<B: $crate::store::verbs::rows::Backend> BackendStore<B> {
            $(
                #[allow(clippy::needless_lifetimes, reason = "references in arguments need it")]
                pub(super) async fn $name<'a>(
                    &'a self,
                    $($arg: $type),*
                ) -> $crate::error::Result<$output> {
                    struct Step<'a> {
                        $($arg: $type,)*
                        lives: std::marker::PhantomData<&'a ()>,
                    }

                    #[async_trait::async_trait]
                    impl $crate::store::verbs::run_verb::RunVerb for Step<'_> {
                        type Output = $output;
                        const VERB: $crate::error::Verb = $crate::error::Verb::$verb;
                        $(const $flag: bool = true;)?

                        async fn run<R: $crate::store::verbs::rows::Rows>(
                            &self,
                            rows: &mut R,
                        ) -> $crate::store::verbs::rows::VerbResult<R, $output> {
                            self::$name(rows $(, self.$arg)*).await
                        }
                    }

                    self.output_of(Step { $($arg,)* lives: std::marker::PhantomData }).await
                }
            )*
        }
    };
}
pub(super) use steps;
