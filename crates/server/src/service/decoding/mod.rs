//! IDs whose source and layout are unknown: their forms, and readings with the known layouts.

mod age;
mod foreign_id;
mod id;
mod reading;
mod readings;
mod unknown;
mod uuid_facts;

pub use age::Age;
pub use foreign_id::ForeignId;
pub use id::{Id, read, read_ulid};
pub(crate) use id::{read_number, read_number_by_sight};
pub use reading::{LayoutReading, misplaced};
pub use readings::{layout_to_read, readings};
pub use unknown::{FormReading, plausible_by_form};
pub(crate) use unknown::{UnknownId, read_unknown};
pub use uuid_facts::{Dce, UuidFacts, unix_ms};
