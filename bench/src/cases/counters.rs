//! Numbers of a million keys, through the library and the memory store.

use std::hint::black_box;
use std::sync::Mutex;

use rustix::time::{ClockId, clock_gettime};
use snowmint::SourceSpec;
use snowmint::blocking::Counter;

use crate::measure::{Case, Fills, Worker};

const KEYS: u64 = 1_000_000;
/// Step that visits all keys, each far from the one before.
const STRIDE: u64 = 618_033;
/// Bits of the key in a check value, which combines a number and its key; all keys fit.
const KEY_BITS: u32 = 20;
/// Digits of a key, always as many, so that each digit has a fixed place.
const DIGITS: usize = 7;

fn counter(mint: &snowmint::blocking::Mint) -> Counter {
    let spec: SourceSpec = serde_json::from_str(r#"{"kind":"counter","counter":{"step":1000000}}"#)
        .expect("keys of a source");
    mint.define("messages", &spec).expect("a source");
    mint.counter("messages").expect("a source")
}

struct Counts {
    counter: &'static Counter,
    /// Text before the digits of each key.
    before: &'static str,
    at: u64,
}

impl Counts {
    const fn length(&self) -> usize {
        self.before.len() + DIGITS
    }

    /// Moves to the next key and returns it.
    #[inline]
    fn key(&mut self) -> [u8; 16] {
        self.at = (self.at + STRIDE) % KEYS;
        // The key is built here, so that it is in cache like a request's: with a list of keys,
        // reading the list would be measured.
        let mut key = [0_u8; 16];
        let length = self.length();
        key[..self.before.len()].copy_from_slice(self.before.as_bytes());
        let mut rest = self.at + KEYS;
        for digit in key[self.before.len()..length].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        key
    }

    #[inline]
    fn next(&mut self) -> u64 {
        let key = self.key();
        let number = self.counter.next(&key[..self.length()]).expect("a number");
        number << KEY_BITS | self.at
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

/// A number for each of several keys per call.
struct CountsEach {
    one: Counts,
    keys: Vec<([u8; 16], u64)>,
}

/// Keys per call, as for one message to 64 readers.
const KEYS_AT_ONCE: usize = 64;

impl CountsEach {
    /// Mints as many numbers as fit, each combined with its key.
    fn fill(&mut self, out: &mut [u64]) {
        for out in out.chunks_mut(KEYS_AT_ONCE) {
            self.keys.clear();
            for _ in 0..out.len() {
                let key = self.one.key();
                self.keys.push((key, self.one.at));
            }
            let length = self.one.length();
            let keys: Vec<_> = self.keys.iter().map(|(key, _)| &key[..length]).collect();
            let numbers = self.one.counter.next_each(&keys).expect("a number for each");
            for ((out, number), (_, at)) in out.iter_mut().zip(numbers).zip(&self.keys) {
                *out = number << KEY_BITS | at;
            }
        }
    }
}

/// Minimum work of a counter with a lock, a lease and its numbers in memory: the lock of a part,
/// one cache line at a random place, then a clock reading. The reading waits for the line, as it
/// must.
struct Reaches {
    parts: &'static [Mutex<Vec<u64>>],
    state: u64,
}

impl Reaches {
    #[inline]
    fn next(&mut self) -> u64 {
        // Knuth's MMIX generator; its high bits are as good as any hash.
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut part =
            self.parts[(self.state >> 40) as usize % self.parts.len()].lock().expect("no panic");
        let at = ((u128::from(self.state) * part.len() as u128) >> 64) as usize;
        part[at] += 1;
        let value = part[at];
        drop(part);
        black_box(clock_gettime(ClockId::Boottime));
        value
    }
}

impl Worker for Reaches {
    #[inline(never)]
    fn run(&mut self, n: u64) -> u64 {
        (0..n).fold(0, |sum: u64, _| sum.wrapping_add(self.next()))
    }

    fn collect(&mut self, out: &mut [u64]) {
        out.iter_mut().for_each(|slot| *slot = self.next());
    }
}

fn floor(name: &'static str, bytes: usize) -> Case {
    const PARTS: usize = 256;
    let parts: Vec<_> = (0..PARTS).map(|_| Mutex::new(vec![1; bytes / 8 / PARTS])).collect();
    let parts: &'static [Mutex<Vec<u64>>] = Vec::leak(parts);
    Case {
        name,
        threads: &[1, 2],
        sleeps: false,
        workers: Box::new(move |threads| {
            let each = |thread| Reaches { parts, state: thread as u64 };
            (0..threads).map(|thread| Box::new(each(thread)) as Box<dyn Worker>).collect()
        }),
        fresh: None,
        unique: false,
    }
}

pub fn all() -> Vec<Case> {
    let mint = snowmint::open_blocking("memory:").expect("a store in memory");
    let mint: &'static _ = Box::leak(Box::new(mint));
    let counter: &'static Counter = Box::leak(Box::new(counter(mint)));
    let case = |name, before| Case {
        name,
        threads: &[1, 2],
        sleeps: false,
        workers: Box::new(move |threads| {
            let each = |thread| Counts { counter, before, at: thread as u64 * KEYS / 2 };
            (0..threads).map(|thread| Box::new(each(thread)) as Box<dyn Worker>).collect()
        }),
        fresh: None,
        unique: true,
    };
    let each_case = |name, before| Case {
        name,
        threads: &[1, 2],
        sleeps: false,
        workers: Box::new(move |threads| {
            let each = |thread| {
                let one = Counts { counter, before, at: thread as u64 * KEYS / 2 };
                let mut each = CountsEach { one, keys: Vec::with_capacity(KEYS_AT_ONCE) };
                let buffer = vec![0; KEYS_AT_ONCE];
                Box::new(Fills { buffer, fill: move |out: &mut [u64]| each.fill(out) })
                    as Box<dyn Worker>
            };
            (0..threads).map(each).collect()
        }),
        fresh: None,
        unique: true,
    };
    vec![
        floor("counter floor: lock, a line among 1 MB, clock", 1 << 20),
        floor("counter floor: lock, a line among 8 MB, clock", 8 << 20),
        floor("counter floor: lock, a line among 12 MB, clock", 12 << 20),
        floor("counter floor: lock, a line among 24 MB, clock", 24 << 20),
        case("counter, 1 M keys, numbers", ""),
        case("counter, 1 M keys, texts", "user-"),
        each_case("counter, 1 M keys, numbers, 64 keys a call", ""),
        each_case("counter, 1 M keys, texts, 64 keys a call", "user-"),
    ]
}
