//! Exporter of spans, and its log lines when a collector does not accept them.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::global::BoxedTracer;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter as Otlp, WithTonicConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, SpanData, SpanExporter,
};
use snowmint_client::Credentials;
use snowmint_server::Traces;

use crate::config::Config;
use crate::terminal::exit::{Failure, Outcome};

/// Largest number of spans that wait to be sent.
const QUEUE_MAX: usize = 4_096;
/// Largest number of spans in a batch.
const BATCH_MAX: usize = 512;
/// Longest wait of a span before it is sent.
const DELAY: Duration = Duration::from_secs(1);
/// Longest wait for a collector's response.
const RESPONSE_WAIT_MAX: Duration = Duration::from_secs(5);
/// Time limit for the last spans at the end.
const STOP_MAX: Duration = Duration::from_secs(2);

/// Exporter of spans, if there is a collector.
pub(crate) struct Exporting(Option<SdkTracerProvider>);

impl Exporting {
    /// Starts exporting, within the runtime. The collector need not be reachable.
    pub(crate) fn start(config: &Config) -> Outcome<Self> {
        let traces = &config.traces;
        let Some((tls, address)) = traces.collector()? else { return Ok(Self(None)) };
        let refused = |reason: String| Failure::usage(format!("traces.endpoint: {reason}"));
        let credentials = match traces.ca.as_str() {
            "" => Credentials::new(),
            ca => Credentials::new().ca_file(ca),
        };
        let endpoint = credentials.endpoint(&address, tls).map_err(refused)?;
        let channel =
            endpoint.timeout(RESPONSE_WAIT_MAX).connect_timeout(RESPONSE_WAIT_MAX).connect_lazy();
        let exporter = Otlp::builder().with_tonic().with_channel(channel).build();
        let exporter = exporter.map_err(|error| refused(error.to_string()))?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE_MAX)
            .with_max_export_batch_size(BATCH_MAX)
            .with_scheduled_delay(DELAY)
            .build();
        let telling = Telling { exporter, endpoint: address, lost: Mutex::new(0) };
        let processor = BatchSpanProcessor::builder(telling).with_batch_config(batches).build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            .with_sampler(Sampler::ParentBased(Box::new(sampler(traces.one_in))))
            .with_resource(resource(config))
            .build();
        Ok(Self(Some(provider)))
    }

    /// Returns the destination of spans.
    pub(crate) fn traces(&self) -> Option<Traces> {
        let tracer = self.0.as_ref()?.tracer("snowmint");
        Some(Traces::new(BoxedTracer::new(Box::new(tracer)), TraceContextPropagator::new()))
    }

    /// Sends the remaining spans.
    pub(crate) async fn stop(self) {
        let Some(provider) = self.0 else { return };
        // It blocks on its thread. Its error is dropped: lost spans were logged before.
        let stop = move || provider.shutdown_with_timeout(STOP_MAX);
        let _ = tokio::task::spawn_blocking(stop).await;
    }
}

/// Returns a sampler that takes one in `one_in` of the requests without a caller's span.
#[allow(clippy::cast_precision_loss, reason = "a share need not be exact")]
fn sampler(one_in: u64) -> Sampler {
    if one_in <= 1 { Sampler::AlwaysOn } else { Sampler::TraceIdRatioBased(1.0 / one_in as f64) }
}

fn resource(config: &Config) -> Resource {
    let owner = match config.server.owner.as_str() {
        "" => rustix::system::uname().nodename().to_string_lossy().into_owned(),
        owner => owner.to_owned(),
    };
    Resource::builder()
        .with_service_name("snowmint")
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", owner),
            KeyValue::new("service.namespace", config.store.namespace.clone()),
        ])
        .build()
}

/// Exporter that logs once when spans get lost, and once when they arrive again.
#[derive(Debug)]
struct Telling {
    exporter: Otlp,
    endpoint: String,
    /// Number of spans lost since the collector accepted the last ones.
    lost: Mutex<usize>,
}

impl SpanExporter for Telling {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let sent = self.exporter.export(batch).await;
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let endpoint = &self.endpoint;
        match &sent {
            Err(error) => {
                if *lost == 0 {
                    tracing::warn!(endpoint, %error, "the collector accepts no spans; spans are lost");
                }
                *lost = lost.saturating_add(spans);
            }
            Ok(()) if *lost > 0 => {
                tracing::info!(endpoint, lost = *lost, "the collector accepts spans again");
                *lost = 0;
            }
            Ok(()) => {}
        }
        drop(lost);
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
