//! Use of what a namespace has room for: names, which stay for ever, and IDs in queues.

use super::source_info::read_spec;
use super::state::Node;
use crate::error::{Result, Verb};
use crate::model::catalog::{Definition, SourceState};
use crate::spec::SourceSpec;
use crate::store::Store;

/// Room that one definition takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinedRoom {
    /// Name, which a deleted source keeps.
    pub name: String,
    /// Number of IDs that its queue holds; 0 without a queue.
    pub queue_ids: u64,
}

impl DefinedRoom {
    /// Returns the room that a definition of these keys would take. Keys that make no source take
    /// no queue.
    #[must_use]
    pub fn of(name: &str, spec: &SourceSpec) -> Self {
        let queue = spec.snowflake().and_then(|plan| plan.prefill);
        let ids = |capacity| u64::try_from(capacity).unwrap_or(u64::MAX);
        Self { name: name.into(), queue_ids: queue.map_or(0, |queue| ids(queue.capacity)) }
    }

    fn stored(definition: &Definition) -> Self {
        let name = definition.name.as_str();
        match (definition.state, read_spec(definition)) {
            (SourceState::Enabled | SourceState::Disabled, Ok(spec)) => Self::of(name, &spec),
            // A source that is deleted, or for a newer version, has no queue.
            _ => Self { name: name.into(), queue_ids: 0 },
        }
    }
}

impl Node {
    /// Returns the room that all definitions of a store take, including deleted ones: of the
    /// primary store, or a secondary one.
    ///
    /// # Errors
    /// Any error of the store.
    pub async fn defined_room(&self, store: &dyn Store) -> Result<Vec<DefinedRoom>> {
        let catalog = self.core().ctx.timed_call(Verb::List, store.list()).await?;
        Ok(catalog.definitions.iter().map(DefinedRoom::stored).collect())
    }

    /// Limits how many IDs the queues of all prefilled sources may hold, for queues that are made
    /// from now on.
    pub fn limit_prefill(&self, ids_max: u64) {
        self.core().ctx.queue_room.set_max(ids_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::segment::SegmentRow;

    #[test]
    fn a_definition_takes_a_name_and_the_places_of_its_queue() {
        let prefilled = r#"{"prefill":{"enabled":true,"boost":2}}"#;
        for (spec, state, ids) in [
            (prefilled, SourceState::Enabled, 16_384),
            (prefilled, SourceState::Disabled, 16_384),
            (prefilled, SourceState::Deleted, 0),
            ("{}", SourceState::Enabled, 0),
            (r#"{"kind":"segment"}"#, SourceState::Enabled, 0),
            (r#"{"of":"later"}"#, SourceState::Enabled, 0),
        ] {
            let definition = Definition {
                name: "it".into(),
                spec: spec.into(),
                identity: String::new(),
                version: 1,
                state,
                segment: SegmentRow::NEW,
            };
            let room = DefinedRoom { name: "it".into(), queue_ids: ids };
            assert_eq!(DefinedRoom::stored(&definition), room, "{spec}");
        }
    }
}
