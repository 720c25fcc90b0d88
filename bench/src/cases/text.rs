//! Work on an ID after minting: text forms and the disguise.

use std::hint::black_box;

use snowmint_core::disguise::{Disguise, Key, Keyring};
use snowmint_core::text::{DIGITS_MAX, Radix};

use super::ours::WIDE;
use crate::measure::{Case, Worker};

fn each<W: Worker + 'static>(name: &'static str, make: impl Fn() -> W + 'static) -> Case {
    let workers = move |threads| {
        (0..threads).map(|_| Box::new(make()) as Box<dyn Worker>).collect::<Vec<_>>()
    };
    let workers = Box::new(workers);
    Case { name, threads: &[1], sleeps: false, workers, fresh: None, unique: false }
}

/// Returns IDs like a source's: each is one tick of [`WIDE`] and one more after the previous.
fn ids() -> impl FnMut() -> u64 {
    let mut id = 0x0123_4567_89ab_cdef_u64 >> 1;
    move || {
        id = id.wrapping_add(0x40_0001) & (u64::MAX >> 1);
        id
    }
}

fn ours(name: &'static str, radix: Radix) -> Case {
    each(name, move || {
        let mut next = ids();
        let mut digits = [0; DIGITS_MAX];
        move || {
            let text = radix.write(next(), &mut digits);
            u64::from(black_box(text)[3])
        }
    })
}

pub fn all() -> Vec<Case> {
    let key = Key::from_bytes(&[7; 16]).expect("16 bytes are a key");
    let disguise = Disguise::full(Keyring::new(key), WIDE).expect("one key always has room");
    vec![
        ours("base62 text", Radix::Base62),
        ours("Crockford text", Radix::Base32),
        ours("decimal text", Radix::Decimal),
        each("base62 crate", || {
            let mut next = ids();
            let mut buffer = [0; 32];
            move || {
                let length = base62::encode_bytes(next(), &mut buffer).unwrap_or(0);
                u64::from(black_box(&buffer)[length / 2])
            }
        }),
        each("fast32 crate, Crockford", || {
            let mut next = ids();
            let mut buffer = Vec::with_capacity(32);
            move || {
                buffer.clear();
                fast32::base32::CROCKFORD.encode_u64_into(next(), &mut buffer);
                u64::from(black_box(&buffer)[3])
            }
        }),
        each("full disguise, 63 bits", move || {
            let mut next = ids();
            move || disguise.apply(next()).unwrap_or(0)
        }),
        each("full disguise, one after the other", move || {
            let mut id = 1;
            move || {
                id = disguise.apply(id).unwrap_or(0);
                id
            }
        }),
    ]
}
