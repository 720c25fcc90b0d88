//! Objects outside the source that a definition names: a disguise key, stores, an upstream. The
//! right to define a source does not include their use, nor access to what they hide.

use std::collections::BTreeMap;

use snowmint_coord::spec::{DisguisePlan, Plan, SegmentPlan, SnowflakePlan, SourceSpec, Unique};
use snowmint_wire::error::Code;

use super::state::Service;
use crate::access::Named;
use crate::error::Error;

impl Service {
    /// Checks whether the caller may replace the definition `before` by this one: each object that
    /// it newly names needs a right, and so does a long reach. Other checks reject an invalid
    /// source.
    ///
    /// # Errors
    /// Without the right, with the missing grant; those of
    /// [`check_reach`](snowmint_coord::Node::check_reach).
    pub(super) fn may_name(
        &self,
        before: Option<&SourceSpec>,
        after: &SourceSpec,
    ) -> Result<(), Error> {
        self.may_reach(before, after)?;
        let before = before.map(named).unwrap_or_default();
        let mut added = named(after).into_keys().filter(|name| !before.contains_key(name));
        added.try_for_each(|name| self.caller.may_name(&name))
    }

    /// Checks the same for texts of a program. The use of an object may have changed, too, and an
    /// upstream may have been dropped.
    ///
    /// # Errors
    /// Those of [`Service::may_name`]; when the text cannot be read.
    pub(crate) fn may_name_in_text(&self, before: Option<&str>, after: &str) -> Result<(), Error> {
        let read =
            |text: &str| SourceSpec::from_stored(text).ok().filter(|spec| spec.check().is_ok());
        let Some(after) = read(after) else {
            let message = "definition cannot be read, so the rights it needs are unknown; update \
                           the server, or use a token with \"admin *\"";
            return Err(Error::new(Code::Forbidden, message));
        };
        let before = before.and_then(read);
        self.may_reach(before.as_ref(), &after)?;
        let before = before.as_ref().map(named).unwrap_or_default();
        let after = named(&after);
        let added = after.iter().filter(|(name, how)| before.get(*name) != Some(*how));
        // A caller that ends an upstream also decides how far the other system has come.
        let is_upstream = |name: &Named| matches!(name, Named::Upstream(_));
        let ended = before.keys().filter(|name| is_upstream(name) && !after.contains_key(*name));
        let mut all = added.map(|(name, _)| name).chain(ended);
        all.try_for_each(|name| self.caller.may_name(name))
    }

    /// Checks how far a definition lets marks lead the clock. All servers of the store may have to
    /// wait that long, so beyond a limit only an operator decides it.
    fn may_reach(&self, before: Option<&SourceSpec>, after: &SourceSpec) -> Result<(), Error> {
        if self.may_operate().is_ok() {
            return Ok(());
        }
        self.node.check_reach(before, after).map_err(Error::from)
    }
}

/// Returns the named objects of a definition, and their use; nothing, if it is invalid.
fn named(spec: &SourceSpec) -> BTreeMap<Named, String> {
    let Ok(plan) = spec.check() else { return BTreeMap::new() };
    let stores = plan.stores().into_iter().map(|store| (Named::Store(store.into()), String::new()));
    let mut all: BTreeMap<_, _> = stores.collect();
    let (disguise, unique, upstream) = match plan {
        Plan::Snowflake(SnowflakePlan { disguise, unique, .. }) => (disguise, unique, None),
        Plan::Segment(SegmentPlan { disguise, upstream, .. }) => {
            (disguise, Unique::Source, upstream)
        }
        _ => (None, Unique::Source, None),
    };
    // The use: the set of IDs that the source's key can read.
    let key =
        |DisguisePlan { key, version, .. }| (Named::Key(key), format!("{version:?} {unique:?}"));
    all.extend(disguise.map(key));
    all.extend(upstream.map(|upstream| (Named::Upstream(upstream.name), upstream.key)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definition_names_foreign_keys_stores_and_upstreams() {
        for (json, names) in [
            ("{}", ""),
            (r#"{"disguise":{"mode":"none"}}"#, ""),
            // The default counts as named, too.
            (r#"{"disguise":{"mode":"full"}}"#, "key:1"),
            (r#"{"disguise":{"mode":"ordered","key":7}}"#, "key:7"),
            (r#"{"kind":"segment","disguise":{"mode":"full","key":2,"version":1}}"#, "key:2"),
            (r#"{"kind":"segment","stores":"b,a"}"#, "store:a store:b"),
            (r#"{"mint":"store","stores":"a=1,b=2"}"#, "store:a store:b"),
            (
                r#"{"kind":"segment","stores":"a,b","disguise":{"mode":"full"}}"#,
                "key:1 store:a store:b",
            ),
            (r#"{"kind":"segment","upstream":"leaf:orders"}"#, "upstream:leaf"),
            (r#"{"kind":"segment","offset":2,"increment":3}"#, ""),
            (r#"{"kind":"counter"}"#, ""),
        ] {
            let spec = SourceSpec::from_json(json).unwrap();
            spec.check().unwrap_or_else(|error| panic!("{json}: {error}"));
            let found: Vec<_> = named(&spec).keys().map(Named::to_string).collect();
            assert_eq!(found.join(" "), names, "{json}");
        }
    }

    /// A program could otherwise define that its source is read with another source's key.
    #[test]
    fn uses_of_a_key_are_distinguished() {
        let all = [
            r#"{"disguise":{"mode":"full"}}"#,
            r#"{"disguise":{"mode":"full","version":2}}"#,
            r#"{"unique":"namespace","disguise":{"mode":"full","version":2}}"#,
            r#"{"disguise":{"mode":"full","version":2,"key":3}}"#,
            r#"{"kind":"segment","upstream":"leaf:a"}"#,
            r#"{"kind":"segment","upstream":"leaf:b"}"#,
        ];
        let all = all.map(|json| named(&SourceSpec::from_json(json).unwrap()));
        for (index, one) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other != one), "{one:?}");
        }
    }
}
