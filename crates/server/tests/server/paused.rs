//! Tests of a gRPC stream whose reader pauses, in time that only the test moves.

use std::sync::Arc;

use snowmint_coord::spec::Span;
use snowmint_coord::{
    ManualTimer, MemoryStore, Node, NodeSettings, Platform, Source, SourceSpec, Timer as _,
};
use snowmint_core::clock::Reading;
use snowmint_core::{Clock, Pause, UnixMillis};

use super::common::{in_time, server_for, settings, soon, step, timer};
use super::grpc_streams::stream;

/// Wall time at which the timer began: 2026-06-01T00:00:00Z.
const START_MS: u64 = 1_780_272_000_000;
/// Longest wait of a request. A message takes a fifth of it.
const WAIT_MAX_MS: u64 = 1_000;
/// A tick has 256 IDs, so each message of 1,000 waits for several ticks, and the stream always has
/// a message in progress.
const DEFINITION: &str =
    r#"{"layout":"time=41,worker=10,sequence=8,unit=1ms,epoch=2026-01-01T00:00:00Z"}"#;
/// Forty messages, of which the client's window has room for eight.
const TOTAL: u64 = 40_000;

/// A clock that moves with a timer.
struct TimerClock(ManualTimer);

impl Clock for TimerClock {
    fn unix_ms(&self) -> UnixMillis {
        self.read().wall()
    }

    fn read(&self) -> Reading {
        let elapsed_us = self.0.elapsed_us();
        Reading { wall_us: START_MS * 1_000 + elapsed_us, elapsed_us }
    }
}

impl Pause for TimerClock {
    /// Returns early: only the test moves the time.
    fn pause_until(&self, _: UnixMillis, _: u64) {}
}

/// Waits until the source has minted nothing for twice the longest wait of a request.
async fn rests(source: &Source, timer: &ManualTimer) {
    let resting = async {
        let (mut taken_until, mut since) = (source.stats().taken_until, timer.elapsed());
        while timer.elapsed().since(since) < 2 * WAIT_MAX_MS {
            step(timer).await;
            let now = source.stats().taken_until;
            if now != taken_until {
                (taken_until, since) = (now, timer.elapsed());
            }
        }
    };
    soon(resting).await;
}

/// The client's window becomes full while the server mints a message. The time of that message must
/// not run out before the client reads again.
#[tokio::test]
async fn stream_continues_after_a_pause_longer_than_wait_max() {
    let time = timer();
    let platform = Platform {
        timer: Arc::new(time.clone()),
        clock: Arc::new(TimerClock(time.clone())),
        ..Platform::system()
    };
    let store = Arc::new(MemoryStore::new("test").unwrap());
    let node = Node::open(store, NodeSettings::default(), platform).await.unwrap();
    let definition = SourceSpec::from_json(DEFINITION).unwrap();
    in_time(&time, node.define("slow", &definition)).await.unwrap();
    let source = in_time(&time, node.source("slow")).await.unwrap();
    let mut settings = settings();
    settings.limits.wait_max = Span::from_ms(WAIT_MAX_MS);
    let server = server_for(node, settings, (None, time)).await;

    let mut client = server.grpc().await;
    let mut messages = in_time(&server.timer, stream(&mut client, "slow", TOTAL)).await;
    let first = in_time(&server.timer, messages.message()).await.unwrap();
    let mut ids = first.unwrap().ids;
    rests(&source, &server.timer).await;
    while let Some(message) = in_time(&server.timer, messages.message()).await.unwrap() {
        ids.extend(message.ids);
    }
    assert_eq!(u64::try_from(ids.len()), Ok(TOTAL));
    assert!(ids.is_sorted_by(|one, next| one < next), "some ID came twice, or out of order");
}
