//! Public form of a number: its disguise and its text.

use snowmint_core::disguise::{Disguise, DisguiseError};
use snowmint_core::text::{Format, Text};
use snowmint_core::{Layout, Parts, Tick};

use super::keys::{KeyOf, Keyrings};
use crate::error::{Error, Result};
use crate::spec::{DisguisePlan, DisguiseSpec, Hides, Plan, Unique};

/// The disguise and the text form of one source.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdCodec {
    disguise: Option<Box<Disguise>>,
    layout: Option<Layout>,
    format: Format,
}

impl IdCodec {
    /// Creates the codec of a numeric source in a namespace.
    ///
    /// # Errors
    /// `Invalid` when the server lacks the keys, or the keys do not fit the source.
    pub(crate) fn new(
        (namespace, name): (&str, &str),
        plan: &Plan,
        keys: &Keyrings,
    ) -> Result<Self> {
        let (layout, disguise, format, unique) = match plan {
            Plan::Snowflake(plan) => (Some(plan.layout), plan.disguise, plan.text, plan.unique),
            Plan::Segment(plan) => (None, plan.disguise, plan.text, Unique::Source),
            _ => return Ok(Self::default()),
        };
        let of = KeyOf { namespace, source: name, unique };
        let disguise = disguise.map(|plan| make(of, plan, layout, keys)).transpose()?;
        Ok(Self { disguise: disguise.map(Box::new), layout, format })
    }

    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.disguise.is_none()
    }

    /// Returns the ID in its public form.
    #[inline]
    pub(crate) fn show(&self, name: &str, id: u64) -> Result<u64> {
        match &self.disguise {
            None => Ok(id),
            Some(disguise) => disguise.apply(id).map_err(|error| refused(name, &error)),
        }
    }

    /// Returns the ID behind a public form.
    pub(crate) fn reveal(&self, name: &str, shown: u64) -> Result<u64> {
        match &self.disguise {
            None => Ok(shown),
            Some(disguise) => disguise.undo(shown).map_err(|error| refused(name, &error)),
        }
    }

    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    /// Returns the text of a shown ID, in `format` or else the source's own.
    pub(crate) fn encode(&self, shown: u64, format: Option<Format>) -> Result<Text> {
        format
            .unwrap_or(self.format)
            .encode(shown, self.layout.as_ref())
            .map_err(|error| Error::invalid(error.to_string()))
    }

    /// Returns the shown ID of a text of the source `name`, read in `format`, or else in the source's
    /// own or in decimal.
    pub(crate) fn decode(&self, name: &str, text: &str, format: Option<Format>) -> Result<u64> {
        let layout = self.layout.as_ref();
        let wanted = format.unwrap_or(self.format);
        let (read, whose) = match format {
            Some(_) => (wanted.decode(text, layout), String::new()),
            None => {
                let decimal = |error| Format::default().decode(text, layout).map_err(|_| error);
                let whose = format!(", the form of source {name:?}");
                (wanted.decode(text, layout).or_else(decimal), whose)
            }
        };
        read.map_err(|error| {
            let text = quoted(text);
            Error::invalid(format!("invalid ID {text} in {wanted}{whose}: {error}"))
        })
    }
}

/// Returns a caller's text in quotes, cut after 80 characters.
pub(super) fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(80).collect();
    format!("{shown:?}")
}

fn make(
    of: KeyOf<'_>,
    plan: DisguisePlan,
    layout: Option<Layout>,
    keys: &Keyrings,
) -> Result<Disguise> {
    let ring = of.ring(plan, keys)?;
    let made = match (plan.hides, layout) {
        (Hides::All { .. }, Some(layout)) => Disguise::full(ring, layout),
        (Hides::All { bits }, None) => {
            let bits = bits.unwrap_or(63);
            Disguise::full_numbers(ring, bits, bits)
        }
        (Hides::BelowTime, Some(layout)) => Disguise::ordered(ring, layout),
        (Hides::BelowTime, None) => {
            return Err(Error::invalid(format!(
                "ordered disguise of source {:?} needs a layout; \
                 use kind snowflake or disguise.mode = full",
                of.source
            )));
        }
    };
    made.map_err(|error| refused(of.source, &error))
}

fn refused(name: &str, error: &DisguiseError) -> Error {
    Error::invalid(format!("disguise of source {name:?}: {error}"))
}

/// Returns what a source's keys make of one fixed ID: equal for equal keys, different for nearly
/// all others. The catalog keeps it: servers with different keys under one number would make the
/// same ID twice.
///
/// # Errors
/// Those of [`IdCodec::new`]; `Internal` when the layout cannot hold that ID.
pub(crate) fn check_value(
    (namespace, name): (&str, &str),
    plan: &Plan,
    keys: &Keyrings,
) -> Result<Option<String>> {
    let id_codec = IdCodec::new((namespace, name), plan, keys)?;
    if id_codec.is_plain() {
        return Ok(None);
    }
    let sample = match id_codec.layout {
        Some(layout) => {
            let parts = Parts { tick: Tick::ZERO, sequence: 1, ..Parts::default() };
            layout.pack(parts).map_err(|error| {
                Error::internal(format!(
                    "internal error: layout cannot hold the sample ID: {error}; please report it"
                ))
            })?
        }
        None => 1,
    };
    Ok(Some(format!("{:016x}", id_codec.show(name, sample)?)))
}

/// Compares the catalog's check value of a source's keys with this server's.
///
/// # Errors
/// `Conflict` when they differ.
pub(crate) fn compare_check(
    (namespace, name): (&str, &str),
    stored: Option<&DisguiseSpec>,
    plan: &Plan,
    keys: &Keyrings,
) -> Result<()> {
    let Some(stored) = stored.and_then(|disguise| disguise.check.as_deref()) else {
        return Ok(());
    };
    let own = check_value((namespace, name), plan, keys)?.unwrap_or_default();
    if own == stored {
        return Ok(());
    }
    Err(Error::conflict(format!(
        "key of source {name:?} has check value {own}, the catalog has {stored}; give this server \
         the original key in disguise.keys (a derived key also depends on namespace and name)"
    )))
}

#[cfg(test)]
mod tests {
    use snowmint_core::text::Radix;

    use super::*;
    use crate::spec::SourceSpec;

    #[test]
    fn unreadable_text_is_named_with_the_form_in_which_it_was_read() {
        let spec: SourceSpec = serde_json::from_str(r#"{"kind":"segment","text":"hex"}"#).unwrap();
        let plan = spec.check().unwrap();
        let codec = IdCodec::new(("ids", "bills"), &plan, &Keyrings::default()).unwrap();
        let base62 = Some(Format::Number(Radix::Base62));
        assert_eq!(codec.decode("bills", "z", base62).unwrap(), 61);
        for (text, format, first) in [
            ("zz", None, "invalid ID \"zz\" in hex, the form of source \"bills\": 'z' at byte 0"),
            ("-", base62, "invalid ID \"-\" in base62: '-' at byte 0"),
        ] {
            let error = codec.decode("bills", text, format).unwrap_err().to_string();
            assert!(error.starts_with(first), "{error}");
        }
    }
}
