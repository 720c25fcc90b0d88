//! Pure values and rules: they import identities and errors alone.

pub mod catalog;
pub mod exclude;
pub mod exclusive;
pub mod external;
pub mod fast_forward;
pub mod history;
pub mod lease;
pub mod member;
pub mod name;
pub mod pool;
pub mod reclaim;
pub mod segment;
pub mod slot;
pub mod stripe;
pub mod ticks;
