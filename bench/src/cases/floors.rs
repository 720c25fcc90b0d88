//! Limits of the machine: nothing that does the same work can be faster.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::measure::{Case, Fills, Worker};

fn floor(
    name: &'static str,
    threads: &'static [usize],
    workers: impl Fn(usize) -> Vec<Box<dyn Worker>> + 'static,
) -> Case {
    Case { name, threads, sleeps: false, workers: Box::new(workers), fresh: None, unique: false }
}

pub fn all() -> Vec<Case> {
    #[repr(align(128))]
    struct Alone(AtomicU64);
    let word: &'static Alone = Box::leak(Box::new(Alone(AtomicU64::new(0))));
    let looked: &'static Alone = Box::leak(Box::new(Alone(AtomicU64::new(0))));
    vec![
        floor("floor: fetch_add", &[1, 2, 4], move |threads| {
            (0..threads)
                .map(|_| {
                    Box::new(move || word.0.fetch_add(1, Ordering::Relaxed)) as Box<dyn Worker>
                })
                .collect()
        }),
        // Minimum work of any generator that reads a time maintained by another thread. Where loads
        // wait for locked instructions (Intel), no such generator comes nearer to a bare
        // `fetch_add` than this.
        floor("floor: one load, then fetch_add", &[1, 2], move |threads| {
            (0..threads)
                .map(|_| {
                    let look = move || {
                        let at = looked.0.load(Ordering::Relaxed);
                        word.0.fetch_add(1, Ordering::Relaxed) ^ at
                    };
                    Box::new(look) as Box<dyn Worker>
                })
                .collect()
        }),
        floor("floor: one clock read", &[1, 2], |threads| {
            (0..threads)
                .map(|_| {
                    let read = move || {
                        black_box(SystemTime::now());
                        0_u64
                    };
                    Box::new(read) as Box<dyn Worker>
                })
                .collect()
        }),
        floor("floor: writing 4096 in a loop", &[1], |_| {
            let mut id = 0_u64;
            vec![Box::new(Fills {
                buffer: vec![0; 4096],
                fill: move |out: &mut [u64]| {
                    let stride = black_box(1);
                    for slot in out {
                        *slot = id;
                        id = id.wrapping_add(stride);
                    }
                },
            })]
        }),
    ]
}
