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
    /// The name of the service.
    pub const SERVICE: &str = store_server::SERVICE_NAME;
    /// The form of this service that is spoken here. It is raised when one of both sides would misread what
    /// the other says; fields, verbs, states and reasons that are only new do not raise it.
    pub const VERSION: u32 = 1;
    /// The oldest form of others that is understood here.
    pub const VERSION_MIN: u32 = 1;

    /// Whether somebody else's form is understood here. Who says none speaks the first.
    #[must_use]
    pub const fn is_understood(theirs: u32) -> bool {
        let theirs = if theirs == 0 { 1 } else { theirs };
        theirs >= VERSION_MIN
    }

    #[allow(clippy::all, clippy::needless_pass_by_value, clippy::use_self, reason = "generated")]
    #[allow(missing_docs, unused_qualifications, reason = "generated")]
    mod generated {
        include!("../generated/snowmint.store.v1.rs");
    }
}
