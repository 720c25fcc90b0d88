//! A client of `snowmint.store.v1.Store` without checks of its own.

use snowmint_store_rpc::StoreRequest;
use snowmint_wire::grpc::store::{DESCRIBE, DescribeRequest, DescribeResponse, INSTANCE};
use tonic::Status;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

use crate::access::named;
use crate::common::{Server, describe_request, soon};

/// A program with a token, or without one if it is empty.
#[derive(Clone)]
pub(crate) struct StoreClient {
    grpc: Grpc<Channel>,
    token: String,
    /// The instance that each call names; empty before the server has described its store.
    pub(crate) instance: String,
}

impl Server {
    /// Returns a program to which the server has described its store.
    pub(crate) async fn program(&self, token: &str) -> StoreClient {
        let mut client = self.stranger(token).await;
        soon(client.describe(describe_request())).await.unwrap();
        client
    }

    /// Returns a program that knows no store of the server.
    pub(crate) async fn stranger(&self, token: &str) -> StoreClient {
        let grpc = Grpc::new(self.channel().await).max_decoding_message_size(usize::MAX);
        StoreClient { grpc, token: token.to_owned(), instance: String::new() }
    }
}

impl StoreClient {
    /// Requests a description, and names its instance from then on.
    pub(crate) async fn describe(
        &mut self,
        request: DescribeRequest,
    ) -> Result<DescribeResponse, Status> {
        let described: DescribeResponse = self.send(DESCRIBE, request).await?;
        self.instance.clone_from(&described.instance);
        Ok(described)
    }

    /// Calls the verb of a message.
    pub(crate) async fn call<Q: StoreRequest>(
        &mut self,
        message: Q,
    ) -> Result<Q::Response, Status> {
        self.send(Q::PATH, message).await
    }

    async fn send<Q, A>(&mut self, path: &'static str, message: Q) -> Result<A, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut request = named(message, &self.token);
        if !self.instance.is_empty() {
            request.metadata_mut().insert(INSTANCE, self.instance.parse().unwrap());
        }
        self.grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
        let codec: ProstCodec<Q, A> = ProstCodec::default();
        let path = PathAndQuery::from_static(path);
        Ok(self.grpc.unary(request, path, codec).await?.into_inner())
    }
}
