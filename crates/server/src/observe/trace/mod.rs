//! Traces: a span for each request, below the caller's if the request names one, and for each call
//! of the store. The program that starts the server decides their destination and sampling.

mod store;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::global::BoxedTracer;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::{SpanBuilder, SpanKind, TraceContextExt as _, Tracer as _};
use opentelemetry::{Context, KeyValue};

use crate::observe::meter::Protocol;

/// Exporter of spans, and their form in headers. Clones share it.
#[derive(Clone)]
pub struct Traces(Arc<TracesInner>);

struct TracesInner {
    tracer: BoxedTracer,
    form: Box<dyn TextMapPropagator + Send + Sync>,
}

/// Span of a request; all work for the request runs in its context.
pub(crate) type RequestSpan = Context;

impl Traces {
    /// Creates spans by this tracer, and reads the callers' own in this form of headers.
    pub fn new(tracer: BoxedTracer, form: impl TextMapPropagator + Send + Sync + 'static) -> Self {
        Self(Arc::new(TracesInner { tracer, form: Box::new(form) }))
    }

    /// Begins the span of a request, below the caller's if its headers name one.
    pub(crate) fn begin(
        &self,
        protocol: Protocol,
        name: String,
        headers: Option<&HeaderMap>,
    ) -> RequestSpan {
        let empty = Context::new();
        let parent = match headers {
            Some(headers) => self.0.form.extract_with_context(&empty, &RequestHeaders(headers)),
            None => empty,
        };
        let protocol = KeyValue::new("snowmint.protocol", protocol.name());
        self.span(name.into(), SpanKind::Server, vec![protocol], &parent)
    }

    /// Begins a span below the current one.
    fn part(&self, name: &'static str, attributes: Vec<KeyValue>) -> RequestSpan {
        self.span(name.into(), SpanKind::Client, attributes, &Context::current())
    }

    fn span(
        &self,
        name: Cow<'static, str>,
        kind: SpanKind,
        attributes: Vec<KeyValue>,
        parent: &Context,
    ) -> RequestSpan {
        let builder = SpanBuilder::from_name(name).with_kind(kind).with_attributes(attributes);
        parent.with_span(self.0.tracer.build_with_context(builder, parent))
    }

    /// Writes the current span into headers for another server.
    pub(crate) fn send(&self, headers: &mut HeaderMap) {
        self.0.form.inject_context(&Context::current(), &mut ForwardHeaders(headers));
    }
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Traces")
    }
}

/// Headers of a caller.
struct RequestHeaders<'a>(&'a HeaderMap);

impl Extractor for RequestHeaders<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

/// Headers for another server.
struct ForwardHeaders<'a>(&'a mut HeaderMap);

impl Injector for ForwardHeaders<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(key), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            self.0.insert(key, value);
        }
    }
}
