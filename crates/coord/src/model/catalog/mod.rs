//! The catalog: one definition of each source, shared by a whole namespace.
//!
//! A store keeps a definition as text and compares text. The caller makes that text canonical and
//! provides the part that is the identity. The store parses only the stripe of the numbers, because
//! a change must check the stripe and the mark in one step.

pub(crate) mod differences;
pub(crate) mod stored_key;

use crate::error::{Error, Result};
use crate::ids::Mark;
use crate::model::lease::check_mark;
pub use crate::model::name::{NAME_BYTES_MAX, check_name};
use crate::model::segment::SegmentRow;
use crate::model::stripe::Stripe;
use differences::{Differences, has_key};

/// Maximum length of a source's specification or identity, in bytes. A definition with 64 stores
/// and the longest names needs about half of it. Limits on the number of names assume that no
/// definition exceeds this size.
pub const SPEC_BYTES_MAX: usize = 8 * 1024;

/// Keys that a [`Restripe`] changes.
const STRIPE: [&str; 4] = ["first", "first_at", "increment", "offset"];
/// Key that a [`Restripe`] removes when a source no longer allocates from an upstream.
const UPSTREAM: &str = "upstream";

/// A definition to write to the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDefinition {
    /// Name of the source: `[A-Za-z0-9_.-]{1,63}`.
    pub name: String,
    /// All keys, as canonical JSON ([`SourceSpec::to_stored`](crate::SourceSpec::to_stored)).
    pub spec: String,
    /// Keys that can never change (kind, layout, epoch, unit, order, stripe, disguise key,
    /// unique), as canonical JSON.
    pub identity: String,
    /// Whether the source is enabled, if the caller sets it. Only `alter` enables an existing
    /// source; another define does not.
    pub enabled: Option<bool>,
}

impl NewDefinition {
    /// Returns the requested state, or `otherwise` if none is requested.
    fn state_or(&self, otherwise: SourceState) -> SourceState {
        match self.enabled {
            Some(true) => SourceState::Enabled,
            Some(false) => SourceState::Disabled,
            None => otherwise,
        }
    }
}

/// A new identity for a source: the only way to change an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restripe {
    /// New definition of the source.
    pub new: NewDefinition,
    /// Version of the definition that the change is based on.
    pub if_version: u64,
    /// First number under the new definition. All numbers below it follow the old one.
    pub mark: Mark,
}

/// Stored definition of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Name of the source.
    pub name: String,
    /// All keys, as canonical JSON ([`SourceSpec::to_stored`](crate::SourceSpec::to_stored)).
    pub spec: String,
    /// The keys that can never change, as canonical JSON.
    pub identity: String,
    /// Catalog version at which this definition last changed.
    pub version: u64,
    /// Whether the source may be used.
    pub state: SourceState,
    /// Numbers of the source; untouched unless it is a segment source. A deleted source keeps them,
    /// so that no number is issued twice when the source is defined again.
    pub segment: SegmentRow,
}

impl Definition {
    /// Returns the definition after an operator moved its numbers past `mark`. Where the store has
    /// no definition, only the name and the mark remain, as for a deleted source. A later define
    /// continues above the mark, with any identity, because none is known.
    #[must_use]
    pub fn fast_forwarded(stored: Option<Self>, name: &str, mark: Mark) -> Self {
        let lost = || Self {
            name: name.to_owned(),
            spec: String::new(),
            identity: String::new(),
            version: 0,
            state: SourceState::Deleted,
            segment: SegmentRow::NEW,
        };
        let stored = stored.unwrap_or_else(lost);
        Self { segment: stored.segment.fast_forwarded(mark), ..stored }
    }

    /// Returns whether only the name and the mark are known.
    pub(crate) const fn is_lost(&self) -> bool {
        self.identity.is_empty()
    }
}

/// State of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// The source may be used.
    Enabled,
    /// The source is switched off.
    Disabled,
    /// The source was deleted; its name and mark are kept.
    Deleted,
}

/// The whole catalog of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    /// Version, raised by every change of a definition.
    pub version: u64,
    /// All definitions by name, deleted ones included.
    pub definitions: Vec<Definition>,
}

/// Effect of a `define`, `alter` or `set_state` on the stored definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogStep {
    /// Nothing changes; the result is the stored definition.
    Same,
    /// Write spec, identity and state, keep the numbers, raise the version.
    Write {
        /// The new specification.
        spec: String,
        /// The identity, equal to the stored one if it exists.
        identity: String,
        /// The new state.
        state: SourceState,
    },
}

/// Decides a `define`.
///
/// # Errors
/// `Invalid` for a bad name, an over-long text, or an end (`until`) below numbers that were issued
/// before the source was deleted. `Conflict` when the store has another definition of the name, or
/// had one with another identity.
pub fn decide_define(stored: Option<&Definition>, new: &NewDefinition) -> Result<CatalogStep> {
    check_new(new)?;
    if let Some(stored) = stored {
        check_identity(stored, &new.identity)?;
        if stored.state != SourceState::Deleted {
            if stored.spec == new.spec {
                let off = new.enabled == Some(false);
                let state = if off { SourceState::Disabled } else { stored.state };
                return Ok(state_change(stored, state));
            }
            let Differences { stored, wanted, .. } = Differences::between(&stored.spec, &new.spec);
            return Err(Error::conflict(format!(
                "source {:?} is already defined with {stored}, requested {wanted}; alter it to \
                 change it",
                new.name
            )));
        }
        check_end(stored, new)?;
    }
    Ok(CatalogStep::Write {
        spec: new.spec.clone(),
        identity: new.identity.clone(),
        state: new.state_or(SourceState::Enabled),
    })
}

/// Decides an `alter`.
///
/// # Errors
/// As [`decide_define`]; `NotFound` when the source does not exist; `Conflict` also when
/// `if_version` is not the stored version.
pub fn decide_alter(
    stored: Option<&Definition>,
    new: &NewDefinition,
    if_version: Option<u64>,
) -> Result<CatalogStep> {
    check_new(new)?;
    let stored = existing(stored, &new.name)?;
    check_identity(stored, &new.identity)?;
    check_version(&stored.name, stored.version, if_version)?;
    let state = new.state_or(stored.state);
    if stored.spec == new.spec {
        return Ok(state_change(stored, state));
    }
    check_end(stored, new)?;
    Ok(CatalogStep::Write { spec: new.spec.clone(), identity: new.identity.clone(), state })
}

/// Returns the step that puts the stored definition into this state.
fn state_change(stored: &Definition, state: SourceState) -> CatalogStep {
    let Definition { spec, identity, .. } = stored;
    if stored.state == state {
        return CatalogStep::Same;
    }
    CatalogStep::Write { spec: spec.clone(), identity: identity.clone(), state }
}

/// Decides a restripe; returns the definition after it, without a new version. Reservations by the
/// old version fail from then on. So the old identity issued everything below the mark and nothing
/// above it.
///
/// # Errors
/// `Invalid` for a bad name, an over-long text, a mark that cannot be stored, or a stripe that
/// begins or ends at or below numbers of the old one. `NotFound`. `Conflict` when the source has
/// changed since, or when more than its stripe would change. `MarkMoved` when numbers from the mark
/// on have been issued.
pub fn decide_restripe(stored: Option<&Definition>, restripe: &Restripe) -> Result<Definition> {
    let Restripe { new, if_version, mark } = restripe;
    check_new(new)?;
    check_mark(*mark)?;
    let stored = existing(stored, &new.name)?;
    check_version(&stored.name, stored.version, Some(*if_version))?;
    check_only_stripe(stored, &new.identity)?;
    let found = stored.segment.mark;
    if *mark < found {
        let message = format!(
            "next number of source {:?} is {found}, above {mark}; read it and restripe again",
            new.name
        );
        return Err(Error::mark_moved(*mark, found, message));
    }
    check_above(stored, restripe)?;
    Ok(Definition {
        spec: new.spec.clone(),
        identity: new.identity.clone(),
        segment: stored.segment.fast_forwarded(*mark),
        ..stored.clone()
    })
}

/// Decides a change of state. Only `define` restores a deleted source.
///
/// # Errors
/// `NotFound` for a source that was never defined, or that is deleted, unless it is deleted again.
pub fn decide_state(
    stored: Option<&Definition>,
    name: &str,
    state: SourceState,
) -> Result<CatalogStep> {
    match stored {
        // The source is already in this state, deleted included.
        Some(stored) if stored.state == state => Ok(CatalogStep::Same),
        stored => Ok(state_change(existing(stored, name)?, state)),
    }
}

/// Returns the definition if a caller with `definition_version` may use it for minting.
///
/// # Errors
/// `NotFound`, `Disabled`, or `Conflict` when the definition has changed since the caller read it.
pub fn usable<'a>(
    stored: Option<&'a Definition>,
    name: &str,
    definition_version: u64,
) -> Result<&'a Definition> {
    let stored = existing(stored, name)?;
    if stored.state == SourceState::Disabled {
        return Err(Error::disabled(format!(
            "source {name:?} is disabled; enable it (snowmint source enable NAME)"
        )));
    }
    if stored.version != definition_version {
        return Err(Error::conflict(format!(
            "source {name:?} is at version {}, request has version {definition_version}; read the \
             catalog again",
            stored.version
        )));
    }
    Ok(stored)
}

/// Returns the definition, unless it was never made or is deleted.
///
/// # Errors
/// `NotFound` in both cases.
pub fn existing<'a>(stored: Option<&'a Definition>, name: &str) -> Result<&'a Definition> {
    match stored {
        None => Err(Error::not_found(format!("source {name:?} does not exist; define it"))),
        Some(stored) if stored.state == SourceState::Deleted => {
            Err(Error::not_found(format!("source {name:?} was deleted; define it again")))
        }
        Some(stored) => Ok(stored),
    }
}

pub(crate) fn check_new(new: &NewDefinition) -> Result<()> {
    check_name("source", &new.name)?;
    for (what, text) in [("specification", &new.spec), ("identity", &new.identity)] {
        let bytes = text.len();
        if bytes > SPEC_BYTES_MAX {
            return Err(Error::invalid(format!(
                "{what} of source {:?} has {bytes} bytes, maximum {SPEC_BYTES_MAX}; shorten it",
                new.name
            )));
        }
    }
    Ok(())
}

/// Checks that the end (`until`) of a source lies above all numbers issued here: another deployment
/// that relies on it may begin there.
fn check_end(stored: &Definition, new: &NewDefinition) -> Result<()> {
    let Some(stripe) = Stripe::of_text(&new.spec) else { return Ok(()) };
    let mark = stored.segment.mark.get();
    let has_issued = stripe.was_another() || stripe.last(mark).is_some();
    let free = stripe.free_from(mark);
    match stripe.until() {
        Some(until) if has_issued && until < free => Err(end_too_low(&new.name, until, free)),
        _ => Ok(()),
    }
}

fn end_too_low(name: &str, until: u64, free: u64) -> Error {
    Error::invalid(format!(
        "until = {until} is below {free}, the end of issued numbers of source {name:?}; use {free} \
         or more"
    ))
}

/// Checks that the new stripe has no number that the old one may have issued below the mark, and
/// does not end below such a number.
fn check_above(stored: &Definition, restripe: &Restripe) -> Result<()> {
    let Restripe { new, mark, .. } = restripe;
    let stripes = (Stripe::of_text(&stored.spec), Stripe::of_text(&new.spec));
    let (Some(old), Some(next)) = stripes else { return Ok(()) };
    let free = old.free_from(mark.get());
    if let Some(until) = next.until().filter(|until| *until < free) {
        return Err(end_too_low(&new.name, until, free));
    }
    match next.next(mark.get()) {
        Some(begins) if begins < free => Err(Error::invalid(format!(
            "new stripe of source {:?} begins at {begins}, below {free}, the end of issued \
             numbers; begin at {free} or above",
            new.name
        ))),
        _ => Ok(()),
    }
}

/// Checks that a source still has the version that a change was based on, if the caller names one.
///
/// # Errors
/// `Conflict` when the version differs.
pub fn check_version(name: &str, version: u64, wanted: Option<u64>) -> Result<()> {
    match wanted {
        Some(wanted) if wanted != version => Err(Error::conflict(format!(
            "source {name:?} is at version {version}, request has version {wanted}; read it again"
        ))),
        _ => Ok(()),
    }
}

fn check_identity(stored: &Definition, identity: &str) -> Result<()> {
    if stored.identity == identity || stored.is_lost() {
        return Ok(());
    }
    let name = &stored.name;
    let Differences { keys, stored, wanted } = Differences::between(&stored.identity, identity);
    Err(Error::conflict(match keys.join(", ").as_str() {
        "" => format!("source {name:?} is {stored}, cannot become {wanted}; use a new name"),
        all if keys.iter().all(|key| STRIPE.contains(&key.as_str())) => format!(
            "source {name:?} has {stored}, requested {wanted}: {all} can change only by a \
             restripe; restripe it or use a new name"
        ),
        all => format!(
            "source {name:?} has {stored}, requested {wanted}: {all} cannot change; use a new name"
        ),
    }))
}

/// Checks that a restripe changes only the stripe, or removes the upstream. All else stays, as
/// after an alter: other programs rely on it.
fn check_only_stripe(stored: &Definition, identity: &str) -> Result<()> {
    if stored.identity == identity {
        return Ok(());
    }
    let Differences { keys, stored: old, wanted } =
        Differences::between(&stored.identity, identity);
    let ends = |key: &str| key == UPSTREAM && !has_key(identity, key);
    let (free, fixed): (Vec<_>, Vec<_>) =
        keys.into_iter().partition(|key| STRIPE.contains(&key.as_str()) || ends(key.as_str()));
    let name = &stored.name;
    Err(Error::conflict(match fixed.join(", ").as_str() {
        "" if !free.is_empty() => return Ok(()),
        "" => format!("source {name:?} is {old}, cannot become {wanted}; use a new name"),
        all => format!(
            "source {name:?} has {old}, requested {wanted}: a restripe does not change {all}; use \
             a new name"
        ),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::SourceSpec;

    fn of(json: &str) -> NewDefinition {
        NewDefinition::of("orders", &SourceSpec::from_json(json).unwrap()).unwrap()
    }

    /// Restripes a source with all numbers below 100 issued.
    fn restriped(from: &str, to: &str) -> Result<Definition> {
        let NewDefinition { name, spec, identity, .. } = of(from);
        let mark = Mark::new(100);
        let segment = SegmentRow::NEW.fast_forwarded(mark);
        let state = SourceState::Enabled;
        let stored = Definition { name, spec, identity, version: 1, state, segment };
        decide_restripe(Some(&stored), &Restripe { new: of(to), if_version: 1, mark })
    }

    #[test]
    fn restripe_changes_only_the_stripe() {
        let hidden = r#"{"kind":"segment","disguise":{"mode":"full","key":1}}"#;
        for (from, to, fixed) in [
            (r#"{"kind":"segment"}"#, "{}", "kind"),
            (r#"{"kind":"segment"}"#, r#"{"unique":"namespace","on_rollback":"fail"}"#, "kind"),
            (r#"{"kind":"segment"}"#, r#"{"kind":"segment","stores":"a,b"}"#, "stores"),
            (r#"{"kind":"segment"}"#, r#"{"kind":"segment","upstream":"leaf:orders"}"#, "upstream"),
            (
                r#"{"kind":"segment","upstream":"leaf:orders"}"#,
                r#"{"kind":"segment","upstream":"leaf:bills"}"#,
                "upstream",
            ),
            (
                hidden,
                r#"{"kind":"segment","first":200,"first_at":100,"disguise":{"mode":"full","key":2}}"#,
                "disguise.key",
            ),
            ("{}", r#"{"layout":"js53"}"#, "layout"),
        ] {
            let error = restriped(from, to).unwrap_err();
            assert_eq!(error.kind().code(), "conflict", "{error}");
            let expected = format!("a restripe does not change {fixed};");
            assert!(error.message().contains(&expected), "{from} {to}: {error}");
        }
        for (from, to) in [
            (r#"{"kind":"segment"}"#, r#"{"kind":"segment","first":100,"first_at":100}"#),
            (
                r#"{"kind":"segment"}"#,
                r#"{"kind":"segment","offset":2,"increment":3,"first":100,"first_at":100}"#,
            ),
            // A cut-over from an upstream.
            (
                r#"{"kind":"segment","upstream":"leaf:orders"}"#,
                r#"{"kind":"segment","first":100,"first_at":100}"#,
            ),
        ] {
            let identity = restriped(from, to).unwrap().identity;
            assert_eq!(identity, of(to).identity, "{from} {to}");
        }
    }

    #[test]
    fn restripe_rejects_an_end_below_issued_numbers() {
        let ends = |until: u64| {
            let to = format!(r#"{{"kind":"segment","increment":1000,"offset":1,"until":{until}}}"#);
            restriped(r#"{"kind":"segment"}"#, &to).map(drop)
        };
        for until in [1, 50, 99] {
            let error = ends(until).unwrap_err();
            assert_eq!(error.kind().code(), "invalid", "{error}");
            assert!(error.message().contains("use 100 or more"), "{error}");
        }
        ends(100).unwrap();
    }
}
