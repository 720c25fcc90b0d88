//! The catalog: one definition of each source for everybody in a namespace.
//!
//! A store keeps a definition as text and compares text. The caller makes that text canonical
//! and says which part of it is the identity. One thing is read from it: the stripe of the numbers, because what it
//! says of them must be true in the same step in which their mark is looked at.

mod differences;
mod written;

use crate::error::ErrorKind;
use crate::lease::{Mark, check_mark};
use crate::segment::SegmentRow;
use crate::spec::Stripe;
use differences::{Differences, is_said};

/// Longest name of a source or namespace, in bytes.
pub const NAME_BYTES_MAX: usize = 63;
/// Longest specification or identity of a source, in bytes: those of 64 stores with the longest names have about half of
/// that. Names are counted where there is room for so many, so that each may take no more than this.
pub const SPEC_BYTES_MAX: usize = 8 * 1024;

/// The keys that a [`Restripe`] changes.
const STRIPE: [&str; 4] = ["first", "first_at", "increment", "offset"];
/// The key that a [`Restripe`] takes away, when a source has come to have numbers of its own.
const ORIGIN: &str = "origin";

/// What a source shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDefinition {
    /// `[A-Za-z0-9_.-]{1,63}`.
    pub name: String,
    /// All keys, as canonical JSON.
    pub spec: String,
    /// The keys that can never change (kind, layout, epoch, unit, order, residues, disguise key,
    /// unique), as canonical JSON.
    pub identity: String,
    /// Whether it shall be used, where that is said. A source that is there is switched on by `alter` only, and not
    /// by whoever defines it again.
    pub enabled: Option<bool>,
}

impl NewDefinition {
    /// The state that is asked for, or else this one.
    fn state_or(&self, otherwise: SourceState) -> SourceState {
        match self.enabled {
            Some(true) => SourceState::Enabled,
            Some(false) => SourceState::Disabled,
            None => otherwise,
        }
    }
}

/// Another identity for a source: the one way in which it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restripe {
    /// What the source shall be.
    pub new: NewDefinition,
    /// The version that this was worked out from.
    pub if_version: u64,
    /// The first number that goes by the new definition. All below go by the old one.
    pub mark: Mark,
}

/// What a source is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// All keys, as canonical JSON.
    pub spec: String,
    /// The keys that can never change, as canonical JSON.
    pub identity: String,
    /// The catalog's version when this definition last changed.
    pub version: u64,
    /// Whether it may be used.
    pub state: SourceState,
    /// Its numbers; untouched in a source that is no segment source. A deleted source keeps them,
    /// so that nothing is handed out twice when it is defined anew.
    pub segment: SegmentRow,
}

impl Definition {
    /// The definition after an operator moved its numbers past `mark`. Where the store has none, what is
    /// left of it is the name and the mark, as of a deleted source: nobody is in its way, and
    /// whoever defines it again goes on above them. No identity is known, so it may get any.
    #[must_use]
    pub fn forwarded(stored: Option<Self>, name: &str, mark: Mark) -> Self {
        let lost = || Self {
            name: name.to_owned(),
            spec: String::new(),
            identity: String::new(),
            version: 0,
            state: SourceState::Deleted,
            segment: SegmentRow::NEW,
        };
        let stored = stored.unwrap_or_else(lost);
        Self { segment: stored.segment.forwarded(mark), ..stored }
    }

    /// Whether only the name and the mark are known.
    pub(crate) const fn is_lost(&self) -> bool {
        self.identity.is_empty()
    }
}

/// Whether a source may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// Yes.
    Enabled,
    /// Not now.
    Disabled,
    /// It was deleted; the name and the mark are kept.
    Deleted,
}

/// The whole catalog of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    /// Raised by every change of a definition.
    pub version: u64,
    /// All of them by name, the deleted too.
    pub definitions: Vec<Definition>,
}

/// What a `define`, `alter` or `set_state` does to the stored definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogStep {
    /// Nothing changes: answer what is stored.
    Same,
    /// Write spec, identity and state, keep the numbers, raise the version.
    Write {
        /// The new specification.
        spec: String,
        /// The identity, equal to the stored one if there is one.
        identity: String,
        /// The new state.
        state: SourceState,
    },
}

/// Checks the name of a source or a namespace; `what` says which of them it is.
///
/// # Errors
/// `Invalid`.
pub fn check_name(what: &str, name: &str) -> Result<(), ErrorKind> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(legal) {
        return Err(ErrorKind::Invalid {
            what: format!(
                "{what} {:?} is no name: 1 to {NAME_BYTES_MAX} of A-Z a-z 0-9 _ . - are",
                name.chars().take(80).collect::<String>()
            ),
        });
    }
    Ok(())
}

/// Decides a `define`.
///
/// # Errors
/// `Invalid` for a bad name, an over-long text, or an end (`until`) below what was handed out before it was
/// deleted; `Conflict` when the store has another definition of the name, or had one of another identity.
pub fn decide_define(
    stored: Option<&Definition>,
    new: &NewDefinition,
) -> Result<CatalogStep, ErrorKind> {
    check_new(new)?;
    if let Some(stored) = stored {
        check_identity(stored, &new.identity)?;
        if stored.state != SourceState::Deleted {
            if stored.spec == new.spec {
                let off = new.enabled == Some(false);
                let state = if off { SourceState::Disabled } else { stored.state };
                return Ok(as_it_is(stored, state));
            }
            let Differences { stored, wanted, .. } = Differences::between(&stored.spec, &new.spec);
            let what = format!("source {} is defined otherwise; alter it to change it", new.name);
            return Err(ErrorKind::Conflict { what, stored, wanted });
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
/// As [`decide_define`]; `NotFound` when there is nothing to alter; `Conflict` also when
/// `if_version` is not the stored version.
pub fn decide_alter(
    stored: Option<&Definition>,
    new: &NewDefinition,
    if_version: Option<u64>,
) -> Result<CatalogStep, ErrorKind> {
    check_new(new)?;
    let stored = existing(stored, &new.name)?;
    check_identity(stored, &new.identity)?;
    check_version(&stored.name, stored.version, if_version)?;
    let state = new.state_or(stored.state);
    if stored.spec == new.spec {
        return Ok(as_it_is(stored, state));
    }
    check_end(stored, new)?;
    Ok(CatalogStep::Write { spec: new.spec.clone(), identity: new.identity.clone(), state })
}

/// The definition that is there, in this state.
fn as_it_is(stored: &Definition, state: SourceState) -> CatalogStep {
    let Definition { spec, identity, .. } = stored;
    if stored.state == state {
        return CatalogStep::Same;
    }
    CatalogStep::Write { spec: spec.clone(), identity: identity.clone(), state }
}

/// Decides a restripe: the definition after it, but for its version. Whoever reserves by the version
/// before is refused from then on, so everything below the mark, and nothing above it, was handed out by
/// the old identity.
///
/// # Errors
/// `Invalid` for a bad name, an over-long text, a mark that cannot be kept, or a stripe that begins or ends at or below
/// numbers of the one before; `NotFound`; `Conflict` when the source was changed since, or would become another in more
/// than its stripe; `MarkMoved` when numbers from that mark on have been handed out.
pub fn decide_restripe(
    stored: Option<&Definition>,
    restripe: &Restripe,
) -> Result<Definition, ErrorKind> {
    let Restripe { new, if_version, mark } = restripe;
    check_new(new)?;
    check_mark(*mark)?;
    let stored = existing(stored, &new.name)?;
    check_version(&stored.name, stored.version, Some(*if_version))?;
    check_only_stripe(stored, &new.identity)?;
    if *mark < stored.segment.mark {
        return Err(ErrorKind::MarkMoved {
            what: format!("source {}", new.name),
            expected: *mark,
            found: stored.segment.mark,
        });
    }
    check_above(stored, restripe)?;
    Ok(Definition {
        spec: new.spec.clone(),
        identity: new.identity.clone(),
        segment: stored.segment.forwarded(*mark),
        ..stored.clone()
    })
}

/// Decides a change of state. A deleted source comes back by `define` only.
///
/// # Errors
/// `NotFound` for a source that was never defined, or was deleted (unless it is deleted again).
pub fn decide_state(
    stored: Option<&Definition>,
    name: &str,
    state: SourceState,
) -> Result<CatalogStep, ErrorKind> {
    match stored {
        // Deleted again.
        Some(stored) if stored.state == state => Ok(CatalogStep::Same),
        stored => Ok(as_it_is(existing(stored, name)?, state)),
    }
}

/// The definition, if it may be used for minting by a caller that works by `definition_version`.
///
/// # Errors
/// `NotFound`, `Disabled`, or `Conflict` when the definition has changed since the caller read it.
pub fn usable<'a>(
    stored: Option<&'a Definition>,
    name: &str,
    definition_version: u64,
) -> Result<&'a Definition, ErrorKind> {
    let stored = existing(stored, name)?;
    if stored.state == SourceState::Disabled {
        return Err(ErrorKind::Disabled { name: name.into() });
    }
    if stored.version != definition_version {
        return Err(ErrorKind::Conflict {
            what: format!("source {name} was changed since; read the catalog again"),
            stored: format!("version {}", stored.version),
            wanted: format!("version {definition_version}"),
        });
    }
    Ok(stored)
}

/// The definition, unless it was never made or has been deleted.
///
/// # Errors
/// `NotFound`.
pub fn existing<'a>(
    stored: Option<&'a Definition>,
    name: &str,
) -> Result<&'a Definition, ErrorKind> {
    match stored {
        None => Err(ErrorKind::NotFound { what: format!("source {name:?}") }),
        Some(stored) if stored.state == SourceState::Deleted => {
            Err(ErrorKind::NotFound { what: format!("source {name:?} any more: it was deleted") })
        }
        Some(stored) => Ok(stored),
    }
}

fn check_new(new: &NewDefinition) -> Result<(), ErrorKind> {
    check_name("source", &new.name)?;
    for (what, text) in [("specification", &new.spec), ("identity", &new.identity)] {
        if text.len() > SPEC_BYTES_MAX {
            return Err(ErrorKind::Invalid {
                what: format!(
                    "the {what} of source {} has {} bytes, where {SPEC_BYTES_MAX} are allowed",
                    new.name,
                    text.len()
                ),
            });
        }
    }
    Ok(())
}

/// Another installation that is told where a source ends may begin there: no number from there on was handed out
/// here.
fn check_end(stored: &Definition, new: &NewDefinition) -> Result<(), ErrorKind> {
    let Some(stripe) = Stripe::of_text(&new.spec) else { return Ok(()) };
    let mark = stored.segment.mark.get();
    let any = stripe.was_another() || stripe.last(mark).is_some();
    let free = stripe.free_from(mark);
    match stripe.until() {
        Some(until) if any && until < free => Err(ended(&new.name, until, free)),
        _ => Ok(()),
    }
}

fn ended(name: &str, until: u64, free: u64) -> ErrorKind {
    ErrorKind::Invalid {
        what: format!(
            "until = {until} is not possible: numbers below {free} of source {name} were handed out; take {free} or \
             more"
        ),
    }
}

/// The new stripe has no number that the old one may have handed out below the mark, and does not say that it ends below
/// one.
fn check_above(stored: &Definition, restripe: &Restripe) -> Result<(), ErrorKind> {
    let Restripe { new, mark, .. } = restripe;
    let stripes = (Stripe::of_text(&stored.spec), Stripe::of_text(&new.spec));
    let (Some(old), Some(next)) = stripes else { return Ok(()) };
    let free = old.free_from(mark.get());
    if let Some(until) = next.until().filter(|until| *until < free) {
        return Err(ended(&new.name, until, free));
    }
    match next.next(mark.get()) {
        Some(begins) if begins < free => Err(ErrorKind::Invalid {
            what: format!(
                "the new stripe of source {} begins at {begins}, and numbers below {free} were handed out; let it \
                 begin there or above",
                new.name
            ),
        }),
        _ => Ok(()),
    }
}

/// Whether a source still has the version that a change was thought out for, if one is said.
///
/// # Errors
/// `Conflict`.
pub fn check_version(name: &str, version: u64, wanted: Option<u64>) -> Result<(), ErrorKind> {
    match wanted {
        Some(wanted) if wanted != version => Err(ErrorKind::Conflict {
            what: format!("source {name} was changed since; read it again"),
            stored: format!("version {version}"),
            wanted: format!("version {wanted}"),
        }),
        _ => Ok(()),
    }
}

fn check_identity(stored: &Definition, identity: &str) -> Result<(), ErrorKind> {
    if stored.identity == identity || stored.is_lost() {
        return Ok(());
    }
    let name = &stored.name;
    let Differences { keys, stored, wanted } = Differences::between(&stored.identity, identity);
    let what = match keys.join(", ").as_str() {
        "" => format!("source {name} cannot become another source; use a new name"),
        all if keys.iter().all(|key| STRIPE.contains(&key.as_str())) => {
            format!("source {name} changes its {all} by a restripe only; or use a new name")
        }
        all => format!("source {name} cannot change its {all}; use a new name"),
    };
    Err(ErrorKind::Conflict { what, stored, wanted })
}

/// A restripe changes which numbers a source has, and may end that it draws them from another system. What else it is,
/// it stays: others rely on that as on what an alter leaves.
fn check_only_stripe(stored: &Definition, identity: &str) -> Result<(), ErrorKind> {
    if stored.identity == identity {
        return Ok(());
    }
    let Differences { keys, stored: old, wanted } =
        Differences::between(&stored.identity, identity);
    let ends = |key: &str| key == ORIGIN && !is_said(identity, key);
    let (free, fixed): (Vec<_>, Vec<_>) =
        keys.into_iter().partition(|key| STRIPE.contains(&key.as_str()) || ends(key.as_str()));
    let name = &stored.name;
    let what = match fixed.join(", ").as_str() {
        "" if !free.is_empty() => return Ok(()),
        "" => format!("source {name} cannot become another source; use a new name"),
        all => format!("source {name} cannot change its {all} by a restripe; use a new name"),
    };
    Err(ErrorKind::Conflict { what, stored: old, wanted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::SourceSpec;

    fn of(json: &str) -> NewDefinition {
        NewDefinition::of("orders", &SourceSpec::from_json(json).unwrap()).unwrap()
    }

    /// What becomes of a source whose numbers below 100 were handed out.
    fn restriped(from: &str, to: &str) -> Result<Definition, ErrorKind> {
        let NewDefinition { name, spec, identity, .. } = of(from);
        let mark = Mark::new(100);
        let segment = SegmentRow::NEW.forwarded(mark);
        let state = SourceState::Enabled;
        let stored = Definition { name, spec, identity, version: 1, state, segment };
        decide_restripe(Some(&stored), &Restripe { new: of(to), if_version: 1, mark })
    }

    #[test]
    fn a_restripe_changes_the_stripe_and_nothing_else_that_a_source_is() {
        let hidden = r#"{"kind":"segment","disguise":{"mode":"full","key":1}}"#;
        for (from, to, fixed) in [
            (r#"{"kind":"segment"}"#, "{}", "kind"),
            (r#"{"kind":"segment"}"#, r#"{"unique":"namespace","on_rollback":"fail"}"#, "kind"),
            (r#"{"kind":"segment"}"#, r#"{"kind":"segment","stores":"a,b"}"#, "stores"),
            (r#"{"kind":"segment"}"#, r#"{"kind":"segment","origin":"leaf:orders"}"#, "origin"),
            (
                r#"{"kind":"segment","origin":"leaf:orders"}"#,
                r#"{"kind":"segment","origin":"leaf:bills"}"#,
                "origin",
            ),
            (
                hidden,
                r#"{"kind":"segment","first":200,"first_at":100,"disguise":{"mode":"full","key":2}}"#,
                "disguise.key",
            ),
            ("{}", r#"{"layout":"js53"}"#, "layout"),
        ] {
            let refused = restriped(from, to);
            let Err(ErrorKind::Conflict { what, .. }) = &refused else { panic!("{refused:?}") };
            assert!(what.contains(&format!("its {fixed} by")), "{from} {to}: {what}");
        }
        for (from, to) in [
            (r#"{"kind":"segment"}"#, r#"{"kind":"segment","first":100,"first_at":100}"#),
            (
                r#"{"kind":"segment"}"#,
                r#"{"kind":"segment","offset":2,"increment":3,"first":100,"first_at":100}"#,
            ),
            // A cut-over.
            (
                r#"{"kind":"segment","origin":"leaf:orders"}"#,
                r#"{"kind":"segment","first":100,"first_at":100}"#,
            ),
        ] {
            let identity = restriped(from, to).map(|definition| definition.identity);
            assert_eq!(identity, Ok(of(to).identity), "{from} {to}");
        }
    }

    #[test]
    fn a_restripe_says_no_end_below_what_was_handed_out() {
        let ends = |until: u64| {
            let to = format!(r#"{{"kind":"segment","increment":1000,"offset":1,"until":{until}}}"#);
            restriped(r#"{"kind":"segment"}"#, &to).map(drop)
        };
        for until in [1, 50, 99] {
            let refused = ends(until);
            let Err(ErrorKind::Invalid { what }) = &refused else { panic!("{refused:?}") };
            assert!(what.contains("take 100 or more"), "{what}");
        }
        assert_eq!(ends(100), Ok(()));
    }
}
