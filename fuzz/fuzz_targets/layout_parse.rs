//! Any text: either a layout that writes and reads itself and packs its highest ID, or an error
//! that can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use snowmint_core::{Layout, Rfc3339};

fuzz_target!(|text: &str| {
    match text.parse::<Layout>() {
        Ok(layout) => {
            assert_eq!(layout.to_string().parse(), Ok(layout));
            let parts = layout.unpack(layout.id_max()).expect("the layout's own highest ID");
            assert_eq!(layout.pack(parts), Ok(layout.id_max()));
            assert!(layout.total_bits() <= 64 && layout.last_tick_at() < layout.end());
        }
        Err(error) => {
            // A shown error must not steer a terminal.
            assert!(!error.to_string().chars().any(char::is_control));
        }
    }
    if let Ok(time) = text.parse::<Rfc3339>() {
        assert_eq!(time.to_string().parse(), Ok(time));
    }
});
