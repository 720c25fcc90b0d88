//! Any text in any format and layout: a text that decodes is exactly the text that would be
//! written, but for the case of digits where the format has one case only.
#![no_main]

use libfuzzer_sys::fuzz_target;
use snowmint_core::disguise::{Disguise, Key, Keyring};
use snowmint_core::layout::PRESETS;
use snowmint_core::text::{Format, Radix, decode_signed};

/// Returns the text as the format writes it, for a text that it can read.
fn canonical(format: Format, text: &str) -> String {
    match format {
        Format::Number(Radix::Hex | Radix::Base36) | Format::Padded(Radix::Hex | Radix::Base36) => {
            text.to_ascii_lowercase()
        }
        Format::Number(Radix::Base32) | Format::Padded(Radix::Base32) => {
            text.to_ascii_uppercase().replace(['I', 'L'], "1").replace('O', "0")
        }
        _ => text.into(),
    }
}

fuzz_target!(|text: &str| {
    for layout in PRESETS.iter().filter_map(|preset| preset.layout().mintable().ok()) {
        for format in Format::ALL {
            match format.decode(text, Some(&layout)) {
                Ok(id) => {
                    let written = format.encode(id, Some(&layout)).expect("it was just read");
                    assert_eq!(&*written, canonical(format, text));
                    if layout.unpack(id).is_ok() {
                        let ring = Keyring::new(Key::from_bytes(&[7; 16]).expect("16 bytes"));
                        let full = Disguise::full(ring, layout).expect("one key fits");
                        assert_eq!(full.apply(id).and_then(|hidden| full.undo(hidden)), Ok(id));
                    }
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
    if let Ok(id) = decode_signed(text) {
        assert!(text == id.to_string() || text == id.cast_signed().to_string());
    }
    if let Ok(key) = text.parse::<Key>() {
        assert_eq!(format!("{key:?}"), "Key(secret)");
    }
});
