//! HTTP bodies.
