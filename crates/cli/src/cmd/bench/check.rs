//! Check that all IDs of a run differ. IDs are kept up to a given number, and compared in bounded
//! memory by the sorter of `snowmint verify`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::shared::SharedState;
use crate::terminal::exit::{Failure, Outcome};
use crate::unique::{NumberKey, SortKey, Sorter, TextKey, WideKey};

/// Number of IDs handed over at once.
const CHUNK_IDS: usize = 16_384;
/// Number of chunks that may wait. A slow comparison slows the load down and does not fill the
/// memory.
const CHUNKS_WAITING: usize = 16;
/// Number of duplicates that are named.
const NAMED_MAX: usize = 10;

/// Form in which IDs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdForm {
    Number,
    /// UUIDs and ULIDs.
    Wide,
    Text,
}

impl IdForm {
    /// Returns the form that fits all of these IDs.
    pub(super) fn of(ids: &Chunk) -> Self {
        match ids {
            Chunk::Numbers(_) => Self::Number,
            Chunk::Texts(texts) if texts.iter().all(|id| NumberKey::read(id, None).is_ok()) => {
                Self::Number
            }
            Chunk::Texts(texts) if texts.iter().all(|id| WideKey::read(id, None).is_ok()) => {
                Self::Wide
            }
            Chunk::Texts(_) => Self::Text,
        }
    }
}

/// A group of IDs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chunk {
    Numbers(Vec<u64>),
    Texts(Vec<String>),
}

impl Chunk {
    pub(super) const fn len(&self) -> usize {
        match self {
            Self::Numbers(ids) => ids.len(),
            Self::Texts(ids) => ids.len(),
        }
    }

    const fn of(form: IdForm) -> Self {
        match form {
            IdForm::Number => Self::Numbers(Vec::new()),
            IdForm::Wide | IdForm::Text => Self::Texts(Vec::new()),
        }
    }
}

/// Collects the IDs that one thread keeps.
pub(super) struct Keeper {
    form: IdForm,
    chunk: Chunk,
    /// Number of IDs that this thread may still keep.
    room: u64,
    shared: Arc<SharedState>,
    to: Option<SyncSender<Chunk>>,
}

impl Keeper {
    pub(super) const fn new(
        form: IdForm,
        shared: Arc<SharedState>,
        to: Option<SyncSender<Chunk>>,
    ) -> Self {
        Self { form, chunk: Chunk::of(form), room: 0, shared, to }
    }

    pub(super) fn number(&mut self, id: u64) {
        if self.has_room() {
            match &mut self.chunk {
                Chunk::Numbers(ids) => ids.push(id),
                Chunk::Texts(ids) => ids.push(id.to_string()),
            }
        }
    }

    pub(super) fn text(&mut self, id: &str) {
        if self.has_room() {
            let number = match self.form {
                IdForm::Number => id.parse().ok(),
                IdForm::Wide | IdForm::Text => None,
            };
            match (&mut self.chunk, number) {
                (Chunk::Numbers(ids), Some(number)) => ids.push(number),
                (Chunk::Texts(ids), _) => ids.push(id.to_owned()),
                // The first IDs were numbers: this one is handed over alone, and the comparison
                // rejects it.
                (Chunk::Numbers(_), None) => self.send(Chunk::Texts(vec![id.to_owned()])),
            }
        }
    }

    fn has_room(&mut self) -> bool {
        if self.room == 0 {
            self.hand_over();
            self.room = self.shared.keep(CHUNK_IDS as u64);
        }
        let has_room = self.room > 0;
        self.room = self.room.saturating_sub(1);
        has_room
    }

    pub(super) fn hand_over(&mut self) {
        let chunk = std::mem::replace(&mut self.chunk, Chunk::of(self.form));
        if chunk.len() > 0 {
            self.send(chunk);
        }
    }

    fn send(&self, chunk: Chunk) {
        if let Some(to) = &self.to {
            // This fails after the comparison failed, which the end of the run reports.
            let _ = to.send(chunk);
        }
    }

    pub(super) fn into_chunk(self) -> Chunk {
        self.chunk
    }
}

/// Result of the comparison.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Number of compared IDs.
    pub(super) compared: u64,
    /// Number of compared IDs that repeat an earlier one.
    pub(super) repeated: u64,
    /// Smallest repeated IDs, with their number of occurrences.
    pub(super) duplicates: Vec<(String, u64)>,
}

/// Compares kept IDs.
pub(super) struct Checker {
    to: SyncSender<Chunk>,
    thread: JoinHandle<Outcome<Verdict>>,
}

impl Checker {
    pub(super) fn start(form: IdForm, memory_bytes: usize, temp_dir: PathBuf) -> Self {
        let (to, chunks) = sync_channel(CHUNKS_WAITING);
        let thread = thread::spawn(move || match form {
            IdForm::Number => compare(&chunks, Sorter::new(memory_bytes, temp_dir), |number| {
                Ok(NumberKey::of(number))
            }),
            IdForm::Wide => compare::<WideKey>(&chunks, Sorter::new(memory_bytes, temp_dir), text),
            IdForm::Text => compare::<TextKey>(&chunks, Sorter::new(memory_bytes, temp_dir), text),
        });
        Self { to, thread }
    }

    pub(super) fn sender(&self) -> SyncSender<Chunk> {
        self.to.clone()
    }

    /// Compares everything handed over. Every keeper must have been dropped.
    pub(super) fn verdict(self) -> Outcome<Verdict> {
        drop(self.to);
        match self.thread.join() {
            Ok(verdict) => verdict,
            Err(_) => Err(Failure::internal("comparison of IDs failed")),
        }
    }
}

fn text<K: SortKey>(number: u64) -> Result<K, String> {
    K::read(&number.to_string(), None)
}

fn compare<K: SortKey>(
    chunks: &Receiver<Chunk>,
    mut sorter: Sorter<K>,
    of_number: impl Fn(u64) -> Result<K, String>,
) -> Outcome<Verdict> {
    let mut verdict = Verdict::default();
    let mut push = |key: Result<K, String>| -> Outcome {
        verdict.compared += 1;
        sorter.push(key.map_err(|error| {
            Failure::unavailable(format!("ID cannot be compared with the first ones: {error}"))
        })?)
    };
    for chunk in chunks {
        match chunk {
            Chunk::Numbers(ids) => ids.into_iter().try_for_each(|id| push(of_number(id)))?,
            Chunk::Texts(ids) => ids.iter().try_for_each(|id| push(K::read(id, None)))?,
        }
    }
    let Verdict { repeated, duplicates, .. } = &mut verdict;
    sorter.each_repeated(|key, times| {
        *repeated += times - 1;
        if duplicates.len() < NAMED_MAX {
            duplicates.push((key.show(None, false), times));
        }
    })?;
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the verdict on these numbers, kept by two threads' keepers in turn.
    fn verdict_of(ids: &[u64], keep_max: u64) -> Verdict {
        let checker = Checker::start(IdForm::Number, 1 << 20, std::env::temp_dir());
        let shared = Arc::new(SharedState::new(None, None, keep_max));
        let keeper = || Keeper::new(IdForm::Number, Arc::clone(&shared), Some(checker.sender()));
        let mut keepers = [keeper(), keeper()];
        for (index, id) in ids.iter().enumerate() {
            let [even, odd] = &mut keepers;
            if index % 2 == 0 { even.number(*id) } else { odd.text(&id.to_string()) }
        }
        keepers.iter_mut().for_each(Keeper::hand_over);
        drop(keepers);
        checker.verdict().unwrap()
    }

    #[test]
    fn duplicates_are_found_across_threads() {
        let ids: Vec<u64> = (0..100_001).collect();
        let all = verdict_of(&ids, u64::MAX);
        assert_eq!((all.compared, all.repeated), (100_001, 0));
        let twice = verdict_of(&[&ids[..], &[0, 7]].concat(), u64::MAX);
        let named = [("0".to_owned(), 2), ("7".to_owned(), 2)];
        assert_eq!((twice.repeated, &twice.duplicates[..]), (2, &named[..]));
    }

    #[test]
    fn checker_compares_at_most_the_allowed_ids() {
        let ids: Vec<u64> = (0..100_000).collect();
        for keep_max in [0, 1, 20_000] {
            assert_eq!(verdict_of(&ids, keep_max).compared, keep_max);
        }
    }

    #[test]
    fn first_ids_decide_the_kind() {
        let form =
            |ids: &[&str]| IdForm::of(&Chunk::Texts(ids.iter().map(|&id| id.into()).collect()));
        assert_eq!(form(&["1", "2"]), IdForm::Number);
        // Some IDs in base 36 have no letters.
        assert_eq!(form(&["1", "2b"]), IdForm::Text);
        assert_eq!(form(&["01ARZ3NDEKTSV4RRFFQ69G5FAV"]), IdForm::Wide);
        assert_eq!(form(&["INV-2026-000001"]), IdForm::Text);
    }

    #[test]
    fn checker_rejects_an_id_of_another_form() {
        let checker = Checker::start(IdForm::Number, 1 << 20, std::env::temp_dir());
        let shared = Arc::new(SharedState::new(None, None, 9));
        let mut keeper = Keeper::new(IdForm::Number, shared, Some(checker.sender()));
        keeper.text("not a number");
        drop(keeper);
        let Err(Failure::Explained { message, .. }) = checker.verdict() else {
            panic!("must say why")
        };
        assert!(message.contains("cannot be compared"), "{message}");
    }
}
