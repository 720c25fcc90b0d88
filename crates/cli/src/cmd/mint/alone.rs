//! Names of IDs that need no store.

use snowmint_coord::spec::{Kind, SourceSpec};

use crate::terminal::exit::{Failure, Outcome};

/// Returns the definition of `uuid:v7`, `ulid` and the like; `None` for any other name.
pub(super) fn alone(source: &str, namespace: Option<&str>) -> Outcome<Option<SourceSpec>> {
    if source == "ulid" {
        return Ok(Some(SourceSpec::of(Kind::Ulid)));
    }
    let Some(version) = source.strip_prefix("uuid:") else { return Ok(None) };
    let refused = |error: &dyn std::fmt::Display| Failure::usage(format!("{source}: {error}"));
    let mut spec = SourceSpec::of(Kind::Uuid);
    let digits = version.strip_prefix('v').unwrap_or(version);
    spec.set("uuid.version", digits).map_err(|error| refused(&error))?;
    if let Some(namespace) = namespace {
        spec.set("uuid.namespace", namespace).map_err(|error| refused(&error))?;
    }
    spec.check().map_err(|error| refused(&error))?;
    Ok(Some(spec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sources_that_need_no_store() {
        assert_eq!(alone("orders", None).unwrap(), None);
        assert_eq!(alone("ulid", None).unwrap().unwrap().kind(), Kind::Ulid);
        for name in ["uuid:v1", "uuid:v4", "uuid:v6", "uuid:v7", "uuid:v8", "uuid:7"] {
            assert_eq!(alone(name, None).unwrap().unwrap().kind(), Kind::Uuid, "{name}");
        }
        assert!(alone("uuid:v5", Some("dns")).is_ok());
        for (name, namespace) in [
            ("uuid:v2", None),
            ("uuid:v9", None),
            ("uuid:", None),
            ("uuid:v5", None),
            ("uuid:v5", Some("x")),
        ] {
            assert!(alone(name, namespace).is_err(), "{name}");
        }
    }
}
