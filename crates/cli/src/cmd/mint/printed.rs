//! IDs on their way to standard output: one a line, or all in one JSON object, as HTTP has them.

use std::fmt;

use crate::exit::Outcome;
use crate::output::{Output, json};

/// What `mint` prints. [`Printed::end`] before the command ends.
#[derive(Debug)]
pub(super) struct Printed {
    out: Output,
    /// What stands before the next ID of a JSON object; none for lines.
    before: Option<&'static str>,
}

/// What stands before the first ID, and before each other one.
const FIRST: &str = "{\"ids\":[";
const NEXT: &str = ",";

impl Printed {
    pub(super) fn new(out: Output, json: bool) -> Self {
        Self { out, before: json.then_some(FIRST) }
    }

    /// One ID.
    pub(super) fn id(&mut self, id: impl fmt::Display) -> Outcome {
        let Some(before) = self.before.replace(NEXT) else {
            self.before = None;
            return self.out.line(id);
        };
        // A serial may have any sign in it.
        let quoted = json(&id.to_string())?;
        self.out.text(before)?;
        self.out.text(&quoted)
    }

    /// Closes the object, if there is one, and hands everything over. Without any ID nothing is printed:
    /// what went wrong is said elsewhere.
    pub(super) fn end(&mut self) -> Outcome {
        if self.before == Some(NEXT) {
            self.out.line("]}")?;
        }
        self.out.flush()
    }
}
