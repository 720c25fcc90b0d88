//! Numbers of a million keys, through the library and the memory store.

use snowmint::SourceSpec;
use snowmint::blocking::Counter;

use crate::measure::{Case, Worker};

const KEYS: usize = 1_000_000;
/// Walks over all keys, and far from one to the next.
const STRIDE: usize = 618_033;
/// A number and its key in one, for the check: as many keys as fit below.
const KEY_BITS: u32 = 20;

fn counter(mint: &snowmint::blocking::Mint) -> Counter {
    let spec: SourceSpec = serde_json::from_str(r#"{"kind":"counter","counter":{"step":1000000}}"#)
        .expect("keys of a source");
    mint.define("messages", &spec).expect("a source");
    mint.counter("messages").expect("a source")
}

struct Counts {
    counter: &'static Counter,
    keys: &'static [String],
    at: usize,
}

impl Counts {
    #[inline]
    fn next(&mut self) -> u64 {
        self.at = (self.at + STRIDE) % KEYS;
        let number = self.counter.next(&self.keys[self.at]).expect("a number");
        number << KEY_BITS | self.at as u64
    }
}

impl Worker for Counts {
    #[inline(never)]
    fn run(&mut self, n: u64) -> u64 {
        (0..n).fold(0, |sum: u64, _| sum.wrapping_add(self.next()))
    }

    fn collect(&mut self, out: &mut [u64]) {
        out.iter_mut().for_each(|slot| *slot = self.next());
    }
}

pub fn all() -> Vec<Case> {
    let mint = snowmint::open_blocking("memory:").expect("a store in memory");
    let mint: &'static _ = Box::leak(Box::new(mint));
    let counter: &'static Counter = Box::leak(Box::new(counter(mint)));
    let case = |name, keys: Vec<String>| {
        let keys: &'static [String] = keys.leak();
        Case {
            name,
            threads: &[1, 2],
            sleeps: false,
            workers: Box::new(move |threads| {
                let counts = |thread| Counts { counter, keys, at: thread * KEYS / 2 };
                (0..threads).map(|thread| Box::new(counts(thread)) as Box<dyn Worker>).collect()
            }),
            fresh: None,
            unique: true,
        }
    };
    vec![
        case("counter, 1 M keys, numbers", (0..KEYS).map(|key| key.to_string()).collect()),
        case("counter, 1 M keys, texts", (0..KEYS).map(|key| format!("user-{key:08}")).collect()),
    ]
}
