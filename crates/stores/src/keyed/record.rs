//! Values of keys, as JSON that a person can read.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use snowmint_coord::member::MemberRow;
use snowmint_coord::pool::SlotDefaults;
use snowmint_coord::segment::SegmentRow;
use snowmint_coord::verbs::NamespaceRow;
use snowmint_coord::{
    Definition, Error, Incarnation, Mark, Member, Pool, Presence, Reuse, SlotRow, SourceState, Term,
};
use snowmint_core::UnixMillis;

use super::batch::Head;

/// A value that cannot be read or written, with the reason.
pub(super) struct Unreadable(pub(super) String);

/// A row in its stored form.
pub(super) trait RowRecord: Sized {
    /// The stored form.
    type Form: Serialize + DeserializeOwned;
    fn to_form(&self) -> Self::Form;
    fn from_form(form: Self::Form) -> Option<Self>;

    fn write(&self) -> Result<String, Unreadable> {
        serde_json::to_string(&self.to_form())
            .map_err(|error| Unreadable(format!("row cannot be written as JSON: {error}")))
    }

    fn read(key: &str, text: &str) -> Result<Self, Unreadable> {
        let form = serde_json::from_str(text)
            .map_err(|error| Unreadable(format!("value of key {key:?} is unreadable: {error}")))?;
        Self::from_form(form).ok_or_else(|| {
            Unreadable(format!("value of key {key:?} has an invalid incarnation or status"))
        })
    }
}

/// Implements [`RowRecord`] for a row that is its own stored form.
macro_rules! plain {
    ($record:ty) => {
        impl RowRecord for $record {
            type Form = Self;
            fn to_form(&self) -> Self {
                self.clone()
            }
            fn from_form(form: Self) -> Option<Self> {
                Some(form)
            }
        }
    };
}

/// Form in which rows are written now. Raise it when a program that knows only the previous form
/// would misread the rows, or lose data by writing them.
pub(super) const FORM: u64 = 3;
/// First form with a count of this namespace's writes only.
const FORM_OF_OWN_WRITES: u64 = 3;

/// Identity of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoreRecord {
    pub(super) id: String,
    /// Newest form of any row here. Every step checks it: a program that does not know the form
    /// stops.
    #[serde(default = "first_form")]
    pub(super) form: u64,
    /// Number added to the server's own write count.
    pub(super) writes_more: u64,
    /// Server last accepted as the one with the newest marks.
    pub(super) server: Option<String>,
}
plain!(StoreRecord);

/// Returns the form of stores made before the form was stored.
const fn first_form() -> u64 {
    1
}

impl StoreRecord {
    /// Returns the record of a store with rows in the newest form.
    pub(super) const fn new(id: String, server: Option<String>) -> Self {
        Self { id, form: FORM, writes_more: 0, server }
    }

    /// Continues the count of an earlier form, which included writes of others to the server.
    pub(super) fn count_own_writes(&mut self, head: &Head) {
        if self.form < FORM_OF_OWN_WRITES {
            let of_others = head.at.saturating_sub(head.writes);
            self.writes_more = self.writes_more.saturating_add(of_others);
            self.form = FORM;
        }
    }

    /// Rejects rows in an unknown form.
    pub(super) fn check_form(&self, label: &str) -> Result<(), Error> {
        if self.form <= FORM {
            return Ok(());
        }
        let found = self.form;
        Err(Error::unsupported(format!(
            "{label} has rows of form {found}, maximum {FORM}; update this program"
        )))
    }
}

/// A text of the namespace as a whole, stored unchanged.
pub(super) struct Note(pub(super) String);

impl RowRecord for Note {
    type Form = String;

    fn to_form(&self) -> String {
        self.0.clone()
    }

    fn from_form(form: String) -> Option<Self> {
        Some(Self(form))
    }

    fn write(&self) -> Result<String, Unreadable> {
        Ok(self.0.clone())
    }

    fn read(_key: &str, text: &str) -> Result<Self, Unreadable> {
        Ok(Self(text.to_owned()))
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct NamespaceForm {
    catalog_version: u64,
    mark: u64,
    term: u64,
    #[serde(default)]
    lead_until: u64,
}

impl RowRecord for NamespaceRow {
    type Form = NamespaceForm;

    fn to_form(&self) -> NamespaceForm {
        NamespaceForm {
            catalog_version: self.catalog_version,
            mark: self.ground.mark.get(),
            term: self.ground.term.get(),
            lead_until: self.ground.accepted_lead.get(),
        }
    }

    fn from_form(form: NamespaceForm) -> Option<Self> {
        let ground = SlotDefaults {
            mark: Mark::new(form.mark),
            term: Term::new(form.term),
            accepted_lead: Mark::new(form.lead_until),
        };
        Some(Self { catalog_version: form.catalog_version, ground })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct MemberForm {
    incarnation: String,
    owner: String,
    host: String,
    process: u32,
    address: String,
    sample_ms: u64,
    renewals: u64,
    ttl_ms: u64,
    joined_at_ms: u64,
    renewed_at_ms: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    status: String,
}

impl RowRecord for MemberRow {
    type Form = MemberForm;

    fn to_form(&self) -> MemberForm {
        MemberForm {
            incarnation: self.member.incarnation.to_string(),
            owner: self.member.owner.clone(),
            host: self.member.host.clone(),
            process: self.member.process,
            address: self.member.address.clone(),
            sample_ms: self.presence.sample.get(),
            renewals: self.presence.renewals,
            ttl_ms: self.presence.ttl_ms,
            joined_at_ms: self.joined_at.get(),
            renewed_at_ms: self.renewed_at.get(),
            status: self.status.to_string(),
        }
    }

    fn from_form(form: MemberForm) -> Option<Self> {
        Some(Self {
            member: Member {
                incarnation: incarnation(&form.incarnation)?,
                owner: form.owner,
                host: form.host,
                process: form.process,
                address: form.address,
            },
            presence: Presence {
                sample: UnixMillis::new(form.sample_ms),
                renewals: form.renewals,
                ttl_ms: form.ttl_ms,
            },
            joined_at: UnixMillis::new(form.joined_at_ms),
            renewed_at: UnixMillis::new(form.renewed_at_ms),
            status: form.status.parse().ok()?,
        })
    }
}

fn incarnation(text: &str) -> Option<Incarnation> {
    text.parse().ok()
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReuseForm {
    Recycle,
    Never,
    Ordered,
}

#[derive(Serialize, Deserialize)]
pub(super) struct PoolForm {
    name: String,
    slots: u64,
    group: u32,
    reuse: ReuseForm,
    next: u64,
}

impl RowRecord for (Pool, u64) {
    type Form = PoolForm;

    fn to_form(&self) -> PoolForm {
        let (pool, next) = self;
        PoolForm {
            name: pool.name.clone(),
            slots: pool.slots,
            group: pool.group,
            reuse: match pool.reuse {
                Reuse::Recycle => ReuseForm::Recycle,
                Reuse::Never => ReuseForm::Never,
                Reuse::Ordered => ReuseForm::Ordered,
            },
            next: *next,
        }
    }

    fn from_form(form: PoolForm) -> Option<Self> {
        let reuse = match form.reuse {
            ReuseForm::Recycle => Reuse::Recycle,
            ReuseForm::Never => Reuse::Never,
            ReuseForm::Ordered => Reuse::Ordered,
        };
        let PoolForm { name, slots, group, next, .. } = form;
        Some((Pool { name, slots, group, reuse }, next))
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct SlotForm {
    slot: u64,
    term: u64,
    floor: u64,
    mark: u64,
    holder: Option<String>,
    owner: String,
    claim_request: u64,
    extend_request: u64,
    held_since_ms: u64,
    given_up_at_ms: u64,
}

impl RowRecord for SlotRow {
    type Form = SlotForm;

    fn to_form(&self) -> SlotForm {
        SlotForm {
            slot: self.slot,
            term: self.term.get(),
            floor: self.floor.get(),
            mark: self.mark.get(),
            holder: self.holder.map(|holder| holder.to_string()),
            owner: self.owner.clone(),
            claim_request: self.claim_request,
            extend_request: self.extend_request,
            held_since_ms: self.held_since.get(),
            given_up_at_ms: self.given_up_at.get(),
        }
    }

    fn from_form(form: SlotForm) -> Option<Self> {
        let holder = match form.holder {
            Some(text) => Some(incarnation(&text)?),
            None => None,
        };
        Some(Self {
            slot: form.slot,
            term: Term::new(form.term),
            floor: Mark::new(form.floor),
            mark: Mark::new(form.mark),
            holder,
            owner: form.owner,
            claim_request: form.claim_request,
            extend_request: form.extend_request,
            held_since: UnixMillis::new(form.held_since_ms),
            given_up_at: UnixMillis::new(form.given_up_at_ms),
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StateForm {
    Enabled,
    Disabled,
    Deleted,
}

#[derive(Serialize, Deserialize)]
pub(super) struct DefinitionForm {
    name: String,
    spec: String,
    identity: String,
    version: u64,
    state: StateForm,
    mark: u64,
    floor: u64,
    segment_version: u64,
}

/// Returns the text before the mark in the value of an enabled source's key, for servers that move
/// the mark without reading the rest. Texts within the value cannot match it, since their quotes
/// are escaped.
pub(super) fn before_mark(version: u64) -> String {
    format!(r#""version":{version},"state":"enabled","mark":"#)
}

impl RowRecord for Definition {
    type Form = DefinitionForm;

    fn to_form(&self) -> DefinitionForm {
        DefinitionForm {
            name: self.name.clone(),
            spec: self.spec.clone(),
            identity: self.identity.clone(),
            version: self.version,
            state: match self.state {
                SourceState::Enabled => StateForm::Enabled,
                SourceState::Disabled => StateForm::Disabled,
                SourceState::Deleted => StateForm::Deleted,
            },
            mark: self.segment.mark.get(),
            floor: self.segment.floor.get(),
            segment_version: self.segment.version,
        }
    }

    fn from_form(form: DefinitionForm) -> Option<Self> {
        let state = match form.state {
            StateForm::Enabled => SourceState::Enabled,
            StateForm::Disabled => SourceState::Disabled,
            StateForm::Deleted => SourceState::Deleted,
        };
        let segment = SegmentRow {
            mark: Mark::new(form.mark),
            floor: Mark::new(form.floor),
            version: form.segment_version,
        };
        let DefinitionForm { name, spec, identity, version, .. } = form;
        Some(Self { name, spec, identity, version, state, segment })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_and_version_stand_at_the_end_of_a_definition() {
        let segment = SegmentRow { mark: Mark::new(7), floor: Mark::new(5), version: 3 };
        let text = format!("{}9", before_mark(12));
        let definition = Definition {
            name: "orders".into(),
            spec: text.clone(),
            identity: text,
            version: 12,
            state: SourceState::Enabled,
            segment,
        };
        let Ok(value) = definition.write() else { panic!("it cannot be written") };
        let end = format!("{}7,\"floor\":5,\"segment_version\":3}}", before_mark(12));
        assert!(value.ends_with(&end), "{value}");
        assert_eq!(value.matches(&before_mark(12)).count(), 1, "{value}");
    }
}
