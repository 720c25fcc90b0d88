//! Handlers of `snowmint.v1.Mint`.

use snowmint_wire::grpc::decode_request::{By, Id};
use snowmint_wire::grpc::mint_server;
use snowmint_wire::grpc::{
    AlterSourceRequest, BoundRequest, BoundResponse, DecodeRequest, DecodeResponse,
    DefineSourceRequest, DeleteSourceRequest, DeleteSourceResponse, GetLayoutRequest,
    GetSourceRequest, Layout, ListLayoutsRequest, ListLayoutsResponse, ListSourcesRequest,
    ListSourcesResponse, ListWorkersRequest, ListWorkersResponse, MintRequest, MintResponse,
    MintStreamRequest, MintStreamResponse, RecoverRequest, RecoverResponse, ReserveRequest,
    ReserveResponse, RestripeSourceRequest, Source,
};
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status};

use super::caller::of_caller;
use super::parts::{at_least_one, parted};
use super::response_body::BodyPermit;
use super::{admin, stream};
use crate::error::Error;
use crate::net::read_deadline_body::BodyKind;
use crate::observe::log_line::Issued;
use crate::service::{DecodedParts, Route, Service};

type GrpcResult<T> = Result<Response<T>, Status>;

#[derive(Clone, Debug)]
pub(super) struct MintService {
    service: Service,
}

impl MintService {
    pub(super) const fn new(service: Service) -> Self {
        Self { service }
    }

    /// Returns the service, acting for the caller.
    fn for_caller<T>(&self, request: &Request<T>) -> Service {
        of_caller(&self.service, request)
    }
}

/// Returns a response that counts toward the limit of unsent IDs until it is sent.
fn with_permit<T>(message: T, permit: BodyPermit) -> Response<T> {
    let mut response = Response::new(message);
    response.extensions_mut().insert(permit);
    response
}

#[tonic::async_trait]
impl mint_server::Mint for MintService {
    async fn mint(&self, request: Request<MintRequest>) -> GrpcResult<MintResponse> {
        let service = self.for_caller(&request);
        let MintRequest { source, count, key } = request.into_inner();
        let count = at_least_one("count", count.unwrap_or(1))?;
        let (_, minted) = service.mint(&source, count, key.as_deref(), Route::Owner).await?;
        let (values, unsent_permit) = minted.into_parts();
        let (ids, texts) = parted(values);
        let mut response = with_permit(
            MintResponse { ids, texts },
            BodyPermit::new(unsent_permit, BodyKind::Whole),
        );
        response.extensions_mut().insert(Issued { source, count });
        Ok(response)
    }

    type MintStreamStream = BoxStream<MintStreamResponse>;

    async fn mint_stream(
        &self,
        request: Request<MintStreamRequest>,
    ) -> GrpcResult<Self::MintStreamStream> {
        let service = self.for_caller(&request);
        let request = request.into_inner();
        let issued = Issued { source: request.source.clone(), count: request.total };
        let messages = stream::of(service.clone(), request)?;
        let unsent_permit = service.hold_stream()?;
        let mut response = with_permit(messages, BodyPermit::new(unsent_permit, BodyKind::Stream));
        response.extensions_mut().insert(issued);
        Ok(response)
    }

    async fn reserve(&self, request: Request<ReserveRequest>) -> GrpcResult<ReserveResponse> {
        let service = self.for_caller(&request);
        let ReserveRequest { source, length } = request.into_inner();
        let length = at_least_one("length", length)?;
        let range = service.reserve_segment(&source, length).await?;
        let response =
            ReserveResponse { first: range.first, last: range.last, increment: range.increment };
        Ok(Response::new(response))
    }

    async fn bound(&self, request: Request<BoundRequest>) -> GrpcResult<BoundResponse> {
        let service = self.for_caller(&request);
        let BoundRequest { source, key } = request.into_inner();
        let bound = service.bound_of(&source, &key, Route::Owner).await?;
        Ok(Response::new(BoundResponse { bound }))
    }

    async fn decode(&self, request: Request<DecodeRequest>) -> GrpcResult<DecodeResponse> {
        let service = self.for_caller(&request);
        let DecodeRequest { id, by } = request.into_inner();
        let no_id = "request has no ID; send it as text or as a number";
        let id = id.ok_or_else(|| Error::bad_request(no_id))?;
        let no_by = "request has neither source nor layout; send one of them";
        let by = by.ok_or_else(|| Error::bad_request(no_by))?;
        let text = match &id {
            Id::Text(text) => text.clone(),
            Id::Number(number) => number.to_string(),
        };
        let decoded = match (id, by) {
            (Id::Text(id), By::Source(source)) => {
                service.decode_by_source(&id, &source, None).await?
            }
            (Id::Number(id), By::Source(source)) => service.decode_number(id, &source).await?,
            (_, By::Layout(layout)) => {
                let parts = service.decode_by_layout(&text, &layout, None)?;
                return Ok(Response::new(admin::decoded(text, &parts)));
            }
        };
        Ok(Response::new(admin::decoded(text, &DecodedParts::of(&decoded))))
    }

    async fn list_sources(
        &self,
        request: Request<ListSourcesRequest>,
    ) -> GrpcResult<ListSourcesResponse> {
        let service = self.for_caller(&request);
        let list = admin::list_sources(&service).await?;
        let unsent_permit = service.hold_rows(list.sources.len())?;
        Ok(with_permit(list, BodyPermit::new(unsent_permit, BodyKind::Whole)))
    }

    async fn get_source(&self, request: Request<GetSourceRequest>) -> GrpcResult<Source> {
        let service = self.for_caller(&request);
        let definition = service.definition(&request.into_inner().name).await?;
        Ok(Response::new(admin::source(&definition)))
    }

    async fn define_source(&self, request: Request<DefineSourceRequest>) -> GrpcResult<Source> {
        let service = self.for_caller(&request);
        Ok(Response::new(admin::define(&service, request.into_inner()).await?))
    }

    async fn alter_source(&self, request: Request<AlterSourceRequest>) -> GrpcResult<Source> {
        let service = self.for_caller(&request);
        Ok(Response::new(admin::alter(&service, request.into_inner()).await?))
    }

    async fn restripe_source(&self, request: Request<RestripeSourceRequest>) -> GrpcResult<Source> {
        let service = self.for_caller(&request);
        Ok(Response::new(admin::restripe(&service, request.into_inner()).await?))
    }

    async fn delete_source(
        &self,
        request: Request<DeleteSourceRequest>,
    ) -> GrpcResult<DeleteSourceResponse> {
        let service = self.for_caller(&request);
        service.delete(&request.into_inner().name).await?;
        Ok(Response::new(DeleteSourceResponse {}))
    }

    async fn list_workers(
        &self,
        request: Request<ListWorkersRequest>,
    ) -> GrpcResult<ListWorkersResponse> {
        let service = self.for_caller(&request);
        let list = admin::list_workers(&service).await?;
        let unsent_permit = service.hold_rows(list.workers.len())?;
        Ok(with_permit(list, BodyPermit::new(unsent_permit, BodyKind::Whole)))
    }

    async fn recover(&self, request: Request<RecoverRequest>) -> GrpcResult<RecoverResponse> {
        let service = self.for_caller(&request);
        Ok(Response::new(admin::recover(&service, request.into_inner()).await?))
    }

    async fn list_layouts(
        &self,
        _: Request<ListLayoutsRequest>,
    ) -> GrpcResult<ListLayoutsResponse> {
        Ok(Response::new(admin::list_layouts()))
    }

    async fn get_layout(&self, request: Request<GetLayoutRequest>) -> GrpcResult<Layout> {
        Ok(Response::new(admin::get_layout(&request.into_inner().layout)?))
    }
}
