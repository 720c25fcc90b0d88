//! Reflection, by which tools such as grpcurl list services and read their descriptions.
//!
//! The library's own service ends the stream at a name that does not exist. The protocol, and every
//! other server, sends an `error_response` and takes the next question. Version 1 and its draft
//! differ in their names alone, so one service serves both (`GrpcState::call`).

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Bytes;
use futures_util::StreamExt as _;
use prost::{DecodeError, Message};
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto};
use snowmint_wire::grpc::FILE_DESCRIPTOR_SET;
use tonic::codegen::BoxStream;
use tonic::{Code as GrpcCode, Request, Response, Status, Streaming};
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::server_reflection_server::ServerReflection;
use tonic_reflection::pb::v1::{
    self, ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse,
    ServerReflectionRequest, ServerReflectionResponse, ServiceResponse,
};
use tonic_reflection::pb::v1alpha;

use crate::error::{Error, shown};

/// Package of the store's service.
const STORE_PACKAGE: &str = "snowmint.store.v1";
/// Everything that is described.
const SETS: [&[u8]; 4] = [
    FILE_DESCRIPTOR_SET,
    tonic_health::pb::FILE_DESCRIPTOR_SET,
    v1::FILE_DESCRIPTOR_SET,
    v1alpha::FILE_DESCRIPTOR_SET,
];

/// A `FileDescriptorSet` with its files as they were written: parsing would drop custom options.
#[derive(Clone, PartialEq, Message)]
struct RawFiles {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    files: Vec<Bytes>,
}

/// The service.
#[derive(Clone, Debug)]
pub(super) struct Reflection(Arc<Descriptions>);

/// Descriptions by name.
#[derive(Debug, Default)]
struct Descriptions {
    services: Vec<String>,
    files: HashMap<String, Bytes>,
    symbols: HashMap<String, Symbol>,
}

/// A named part of a file.
#[derive(Clone, Debug)]
struct Symbol {
    file: Bytes,
    is_message: bool,
}

impl Reflection {
    /// Reads all descriptions; those of the store only if the server offers it.
    ///
    /// # Errors
    /// When they cannot be read, which a test would have found.
    pub(super) fn new(offers_store: bool) -> Result<Self, DecodeError> {
        let mut descriptions = Descriptions::default();
        for set in SETS {
            for file in RawFiles::decode(set)?.files {
                descriptions.add(file, offers_store)?;
            }
        }
        Ok(Self(Arc::new(descriptions)))
    }
}

impl Descriptions {
    fn add(&mut self, file: Bytes, offers_store: bool) -> Result<(), DecodeError> {
        let parsed = FileDescriptorProto::decode(file.clone())?;
        if parsed.package() == STORE_PACKAGE && !offers_store {
            return Ok(());
        }
        let mut symbols = Symbols { file: &file, found: &mut self.symbols };
        let package = parsed.package();
        for message in &parsed.message_type {
            symbols.add_message(package, message);
        }
        for of_values in &parsed.enum_type {
            symbols.add_enum(package, of_values);
        }
        for service in &parsed.service {
            let name = symbols.add(package, service.name());
            for method in &service.method {
                symbols.add(&name, method.name());
            }
            self.services.push(name);
        }
        self.files.insert(parsed.name().to_owned(), file);
        Ok(())
    }

    /// Returns the response to a question.
    fn response(&self, question: &MessageRequest) -> MessageResponse {
        let found = match question {
            MessageRequest::ListServices(_) => {
                let name = |name: &String| ServiceResponse { name: name.clone() };
                let service = self.services.iter().map(name).collect();
                return MessageResponse::ListServicesResponse(ListServiceResponse { service });
            }
            MessageRequest::FileByFilename(name) => self.files.get(name).map(described),
            MessageRequest::FileContainingSymbol(name) => {
                self.symbols.get(name).map(|symbol| described(&symbol.file))
            }
            MessageRequest::AllExtensionNumbersOfType(name) => {
                let message = self.symbols.get(name).filter(|symbol| symbol.is_message);
                // No message has extensions.
                message.map(|_| {
                    MessageResponse::AllExtensionNumbersResponse(ExtensionNumberResponse {
                        base_type_name: name.clone(),
                        extension_number: Vec::new(),
                    })
                })
            }
            MessageRequest::FileContainingExtension(_) => None,
        };
        found.unwrap_or_else(|| {
            MessageResponse::ErrorResponse(ErrorResponse {
                error_code: GrpcCode::NotFound.into(),
                error_message: not_found(question),
            })
        })
    }
}

/// Names of a file's parts, as they are found.
struct Symbols<'a> {
    file: &'a Bytes,
    found: &'a mut HashMap<String, Symbol>,
}

impl Symbols<'_> {
    /// Adds a name in a scope; returns it in full.
    fn add(&mut self, scope: &str, name: &str) -> String {
        self.insert(scope, name, false)
    }

    fn insert(&mut self, scope: &str, name: &str, is_message: bool) -> String {
        let name = if scope.is_empty() { name.to_owned() } else { format!("{scope}.{name}") };
        self.found.insert(name.clone(), Symbol { file: self.file.clone(), is_message });
        name
    }

    fn add_message(&mut self, scope: &str, message: &DescriptorProto) {
        let name = self.insert(scope, message.name(), true);
        for nested in &message.nested_type {
            self.add_message(&name, nested);
        }
        for of_values in &message.enum_type {
            self.add_enum(&name, of_values);
        }
        for field in &message.field {
            self.add(&name, field.name());
        }
        for one_of in &message.oneof_decl {
            self.add(&name, one_of.name());
        }
    }

    /// Adds an enum. Its values are in the scope that has it, as in C++.
    fn add_enum(&mut self, scope: &str, of_values: &EnumDescriptorProto) {
        self.add(scope, of_values.name());
        for value in &of_values.value {
            self.add(scope, value.name());
        }
    }
}

fn described(file: &Bytes) -> MessageResponse {
    let file_descriptor_proto = vec![file.to_vec()];
    MessageResponse::FileDescriptorResponse(FileDescriptorResponse { file_descriptor_proto })
}

/// Returns the message about a name that does not exist.
fn not_found(question: &MessageRequest) -> String {
    match question {
        MessageRequest::FileByFilename(name) => {
            format!("file {} does not exist; correct its name", shown(name))
        }
        MessageRequest::FileContainingExtension(extension) => {
            let (number, of) = (extension.extension_number, shown(&extension.containing_type));
            format!("extension {number} of {of} does not exist; no message has extensions")
        }
        MessageRequest::AllExtensionNumbersOfType(name) => {
            format!("message {} does not exist; correct its name", shown(name))
        }
        MessageRequest::FileContainingSymbol(name) => {
            format!("symbol {} does not exist; correct its name", shown(name))
        }
        MessageRequest::ListServices(_) => String::new(),
    }
}

#[tonic::async_trait]
impl ServerReflection for Reflection {
    type ServerReflectionInfoStream = BoxStream<ServerReflectionResponse>;

    async fn server_reflection_info(
        &self,
        request: Request<Streaming<ServerReflectionRequest>>,
    ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
        let Self(descriptions) = self.clone();
        let responses = request.into_inner().map(move |request| {
            let request = request.map_err(|_| unreadable())?;
            let question = request.message_request.as_ref().ok_or_else(unreadable)?;
            Ok(ServerReflectionResponse {
                valid_host: request.host.clone(),
                message_response: Some(descriptions.response(question)),
                original_request: Some(request),
            })
        });
        Ok(Response::new(Box::pin(responses)))
    }
}

/// Returns the error of a message that is no question.
fn unreadable() -> Status {
    let message = "request of reflection has no known question; send one of grpc.reflection.v1";
    Error::bad_request(message).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(response: MessageResponse) -> Option<String> {
        let MessageResponse::FileDescriptorResponse(files) = response else { return None };
        let file = FileDescriptorProto::decode(&files.file_descriptor_proto[0][..]).unwrap();
        Some(file.name().to_owned())
    }

    #[test]
    fn every_kind_of_symbol_is_found_in_its_file() {
        let Reflection(descriptions) = Reflection::new(true).unwrap();
        for (symbol, file) in [
            ("snowmint.v1.Mint", "snowmint/v1/mint.proto"),
            ("snowmint.v1.Mint.MintStream", "snowmint/v1/mint.proto"),
            ("snowmint.v1.MintRequest", "snowmint/v1/mint.proto"),
            ("snowmint.v1.MintRequest.source", "snowmint/v1/mint.proto"),
            ("grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc/health/v1/health.proto"),
            ("grpc.health.v1.HealthCheckResponse.NOT_SERVING", "grpc/health/v1/health.proto"),
        ] {
            let question = MessageRequest::FileContainingSymbol(symbol.into());
            let found =
                named(descriptions.response(&question)).unwrap_or_else(|| panic!("{symbol}"));
            let last = |path: &str| path.rsplit('/').next().unwrap().to_owned();
            assert_eq!(last(&found), last(file), "{symbol}");
            // Tools ask for the files that a file imports, by their names.
            let again = descriptions.response(&MessageRequest::FileByFilename(found.clone()));
            assert_eq!(named(again), Some(found));
        }
    }

    #[test]
    fn store_is_described_only_where_it_is_offered() {
        for offered in [true, false] {
            let Reflection(descriptions) = Reflection::new(offered).unwrap();
            let MessageResponse::ListServicesResponse(ListServiceResponse { service }) =
                descriptions.response(&MessageRequest::ListServices(String::new()))
            else {
                panic!("no list")
            };
            let has = |name: &str| service.iter().any(|service| service.name == name);
            assert!(has("snowmint.v1.Mint") && has("grpc.health.v1.Health"), "{service:?}");
            assert_eq!(has("snowmint.store.v1.Store"), offered, "{service:?}");
            let symbol = "snowmint.store.v1.Store".to_owned();
            let found = descriptions.response(&MessageRequest::FileContainingSymbol(symbol));
            assert_eq!(named(found).is_some(), offered);
        }
    }

    #[test]
    fn imports_of_all_files_are_described() {
        let Reflection(descriptions) = Reflection::new(true).unwrap();
        for (name, file) in &descriptions.files {
            let parsed = FileDescriptorProto::decode(file.clone()).unwrap();
            for import in &parsed.dependency {
                assert!(descriptions.files.contains_key(import), "{import} of {name}");
            }
        }
    }
}
