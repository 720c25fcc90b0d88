//! Messages and stubs of the gRPC interface: `snowmint.v1`, and [`store`] for programs that mint beside
//! themselves.
//!
//! What is said stands in `proto/`. The code is generated from it and kept in
//! `generated/`, so that nobody needs a compiler of protocol buffers to build; a test compares.

pub use generated::*;

/// The name of the service.
pub const SERVICE: &str = mint_server::SERVICE_NAME;

/// All that is said, as a `FileDescriptorSet`, for server reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("../generated/snowmint.bin");

#[allow(clippy::all, clippy::needless_pass_by_value, clippy::use_self, reason = "generated")]
#[allow(missing_docs, unused_qualifications, reason = "generated")]
mod generated {
    include!("../generated/snowmint.v1.rs");
}

/// `snowmint.store.v1`: a server's store, for programs that mint beside themselves.
pub mod store {
    pub use generated::*;

    /// The header in which a call names the door that was described.
    pub const DOOR: &str = "snowmint-door";

    #[allow(clippy::all, clippy::needless_pass_by_value, clippy::use_self, reason = "generated")]
    #[allow(missing_docs, unused_qualifications, reason = "generated")]
    mod generated {
        include!("../generated/snowmint.store.v1.rs");
    }
}
