//! Messages and stubs of the gRPC interface: `snowmint.v1`, and [`store`] for embedded clients.
//!
//! The interface is defined in `proto/`. The code generated from it is kept in `generated/`, so
//! that a build needs no compiler of protocol buffers; a test compares the two.

pub use generated::*;

/// The name of the service.
pub const SERVICE: &str = mint_server::SERVICE_NAME;

/// The whole interface as a `FileDescriptorSet`, for server reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("../generated/snowmint.bin");

#[allow(clippy::all, clippy::needless_pass_by_value, clippy::use_self, reason = "generated")]
#[allow(missing_docs, unused_qualifications, reason = "generated")]
mod generated {
    include!("../generated/snowmint.v1.rs");
}

/// `snowmint.store.v1`: a server's store, for embedded clients.
pub mod store {
    pub use generated::*;

    /// The header in which a call names the server instance that `Describe` returned.
    pub const INSTANCE: &str = "snowmint-instance";
    /// The name of the service.
    pub const SERVICE: &str = store_server::SERVICE_NAME;
    /// The path of the method by which a program learns the instance that its other calls name.
    pub const DESCRIBE: &str = "/snowmint.store.v1.Store/Describe";
    /// The version of this service that this program speaks. It rises when one side would misread
    /// the other. Fields, verbs, states and reasons that are only new do not raise it. Version 2
    /// renamed codes of errors: an older client takes `store_rolled_back` for an unsupported call.
    /// Methods (`Acquire`, `Relinquish`, `Exclude`) and the header of the instance have other names
    /// than in version 1.
    pub const VERSION: u32 = 2;
    /// The oldest version of the other side that this program understands.
    pub const VERSION_MIN: u32 = 2;

    /// Returns whether this program understands the other side's version. A side that names none
    /// speaks version 1.
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
