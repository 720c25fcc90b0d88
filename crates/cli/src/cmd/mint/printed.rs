//! Output of IDs: one a line, or all in one JSON object, as in HTTP.

use std::fmt;

use crate::terminal::exit::Outcome;
use crate::terminal::output::{Output, json};

/// Number of IDs requested at once: the first IDs are printed while others are minted, and no
/// server's limit for one request is reached.
pub(super) const CHUNK: u64 = 10_000;

/// Output of `mint`. The command calls [`Printed::end`] before it ends.
pub(super) struct Printed {
    out: Output,
    /// Text before the next ID of a JSON object; `None` for lines.
    before: Option<&'static str>,
}

/// Text before the first ID, and before each later one.
const FIRST: &str = "{\"ids\":[";
const NEXT: &str = ",";

impl Printed {
    pub(super) fn new(out: Output, json: bool) -> Self {
        Self { out, before: json.then_some(FIRST) }
    }

    /// Writes one ID.
    pub(super) fn id(&mut self, id: impl fmt::Display) -> Outcome {
        let Some(before) = self.before.replace(NEXT) else {
            self.before = None;
            return self.out.line(id);
        };
        // A serial may contain any character.
        let quoted = json(&id.to_string())?;
        self.out.text(before)?;
        self.out.text(&quoted)
    }

    /// Closes the object, if there is one, and flushes. Without any ID it prints nothing: the error
    /// is reported elsewhere.
    pub(super) fn end(&mut self) -> Outcome {
        if self.before == Some(NEXT) {
            self.out.line("]}")?;
        }
        self.out.flush()
    }
}
