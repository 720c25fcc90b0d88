//! Readiness of the server, and what each caller learns of it.

use snowmint_coord::{Readiness, Reason, SourceInfo};
use snowmint_wire::error::Code;

use super::state::Service;

/// Most sources of the catalog that one response names because they cannot mint here.
const NOT_MINTING_MAX: usize = 100;

impl Service {
    /// Returns whether IDs of the server's own sources can be minted, with margin; and if not, why.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let mut readiness = self.node.readiness();
        if *self.closing.borrow() {
            readiness.ready = false;
            readiness.reasons.push(Reason::new(Code::Closed.as_str(), "server is stopping"));
        }
        readiness
    }

    /// Returns the reasons as sentences. They name sources and stores, so a caller without any
    /// right gets none. Only callers that may read details get addresses.
    pub(crate) fn reasons_for_caller(&self, readiness: &Readiness) -> Vec<String> {
        if !self.caller.has_some_right() {
            return Vec::new();
        }
        self.sentences(&readiness.reasons)
    }

    /// Returns sentences on sources that were defined at run time and cannot mint here. They do not
    /// decide readiness. A caller learns of the sources over which it has a right.
    pub(crate) fn not_minting_for_caller(&self) -> Vec<String> {
        if !self.caller.has_some_right() {
            return Vec::new();
        }
        let is_shown = |source: &str| self.caller.may_see(source).is_ok();
        let not_minting = self.node.not_minting_sources(is_shown, NOT_MINTING_MAX);
        self.sentences(&not_minting)
    }

    fn sentences(&self, reasons: &[Reason]) -> Vec<String> {
        let in_full = self.caller.sees_details();
        let sentence = |reason: &Reason| match in_full {
            true => reason.to_string(),
            false => reason.message.clone(),
        };
        reasons.iter().map(sentence).collect()
    }

    /// Returns a definition for the caller: with the addresses of its failed stores, if the caller
    /// may read details.
    pub(super) fn source_for_caller(&self, mut source: SourceInfo) -> SourceInfo {
        let in_full = self.caller.sees_details();
        for status in &mut source.store_status {
            if let Some(detail) = status.error_detail.take().filter(|_| in_full)
                && let Some(error) = &mut status.error
            {
                error.push_str(&format!(" ({detail})"));
            }
        }
        source
    }
}
