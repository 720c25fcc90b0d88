//! IDs of a worker number that the caller gives, with its mark in a locked file.

use snowmint::Snowflake;

use super::Mint;
use super::printed::{CHUNK, Printed};
use crate::terminal::exit::{Failure, Outcome, complain};

impl Mint {
    pub(super) fn mint_named(&self, worker: u64, done: &mut u64, out: &mut Printed) -> Outcome {
        let mut builder = Snowflake::builder().worker(worker);
        if let Some(layout) = self.layout {
            builder = builder.layout(layout);
        }
        if let Some(dir) = self.config_args.data_dir() {
            builder = builder.data_dir(dir);
        }
        if self.no_state {
            complain(
                "without state: a second process with this worker repeats IDs, and so does a start \
                 after a clock rollback",
            );
            builder = builder.without_state();
        }
        let ids = builder.build()?;
        let chunk = usize::try_from(self.count.min(CHUNK)).unwrap_or(1);
        let mut numbers = vec![0; chunk];
        let format = self.format.unwrap_or_default();
        while *done < self.count {
            let wanted = usize::try_from((self.count - *done).min(CHUNK)).unwrap_or(1);
            let numbers = numbers.get_mut(..wanted).unwrap_or_default();
            let filled = ids.fill(numbers);
            let made = filled.as_ref().map_or_else(|short| short.made, |()| wanted);
            for number in numbers.iter().take(made) {
                let text = format
                    .encode(*number, Some(ids.layout()))
                    .map_err(|error| Failure::usage(error.to_string()))?;
                out.id(text)?;
            }
            *done += made as u64;
            if let Err(short) = filled {
                return Err(short.error.into());
            }
        }
        Ok(ids.close()?)
    }
}
