//! Messages and stubs of the gRPC interface, `snowmint.v1`.
//!
//! What is said stands in `proto/snowmint/v1/mint.proto`. The code is generated from it and kept in
//! `generated/`, so that nobody needs a compiler of protocol buffers to build; a test compares.

pub use generated::*;

/// The name of the service.
pub const SERVICE: &str = mint_server::SERVICE_NAME;

/// `mint.proto` as a `FileDescriptorSet`, for server reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("../generated/snowmint.v1.bin");

#[allow(clippy::all, clippy::needless_pass_by_value, clippy::use_self, reason = "generated")]
#[allow(missing_docs, unused_qualifications, reason = "generated")]
mod generated {
    include!("../generated/snowmint.v1.rs");
}
