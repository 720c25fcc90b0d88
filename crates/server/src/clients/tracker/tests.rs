//! Tests of the connections that end to make room, and of those that never do.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt as _;
use snowmint_coord::ManualTimer;

use super::{ConnectionGuard, ConnectionTracker, EndReason, LEAVING_MAX, ListenerBounds};
use crate::access::{AnonymousReason, Caller};

/// A tracker, and its clock.
struct Ground {
    tracker: Arc<ConnectionTracker>,
    timer: ManualTimer,
}

impl Ground {
    fn new(max: usize) -> Self {
        let timer = ManualTimer::new(1_000);
        let bounds =
            ListenerBounds { max, key: "http.connections_max", token_within_ms: Some(60_000) };
        Self { tracker: ConnectionTracker::new(bounds, Arc::new(timer.clone())), timer }
    }

    fn pass_ms(&self, ms: u64) {
        self.timer.advance_ms(ms);
        self.tracker.look_at_time();
    }

    /// Admits a connection from this host, if there is a place for it, a moment after the previous
    /// one.
    fn admit(&self, host: u8) -> Option<Arc<ConnectionGuard>> {
        self.pass_ms(1);
        let address = IpAddr::V4(Ipv4Addr::new(10, 0, 0, host));
        self.tracker.admit(SocketAddr::new(address, 1_000)).map(Arc::new)
    }

    fn admit_all<const N: usize>(&self, hosts: [u8; N]) -> [Arc<ConnectionGuard>; N] {
        hosts.map(|host| self.admit(host).unwrap())
    }
}

fn end_reason(guard: &ConnectionGuard) -> Option<EndReason> {
    guard.end_requested().now_or_never()
}

/// Returns which of these were asked to end to make room.
fn gave_way<const N: usize>(guards: &[Arc<ConnectionGuard>; N]) -> Vec<usize> {
    (0..N).filter(|&at| end_reason(&guards[at]) == Some(EndReason::Room)).collect()
}

fn shows_token(guard: &ConnectionGuard) {
    Caller::configuration().is_on(guard.connection());
}

#[test]
fn address_with_most_connections_loses_the_longest_at_rest() {
    let ground = Ground::new(5);
    let guards = ground.admit_all([9, 1, 1, 1, 8]);
    // It is the oldest of its address, with newer activity.
    ground.pass_ms(1);
    guards[1].allow_ms(60_000);
    let _one = ground.admit(2).unwrap();
    assert_eq!(gave_way(&guards), [2]);
    // All have about equally many: the longest idle one ends.
    let _other = ground.admit(3).unwrap();
    assert_eq!(gave_way(&guards), [2, 3]);
    let _third = ground.admit(4).unwrap();
    assert_eq!(gave_way(&guards), [0, 2, 3]);
    assert_eq!(ground.tracker.counts().gave_way, 3);
    assert_eq!(ground.tracker.counts().refused, 0);
}

#[test]
fn connections_with_a_token_stay_while_any_without_rests() {
    let ground = Ground::new(4);
    let guards = ground.admit_all([1, 1, 1, 2]);
    guards.iter().take(3).for_each(|guard| shows_token(guard));
    let probe = ground.admit(3).unwrap();
    assert_eq!(gave_way(&guards), [3]);
    // The probe is idle as well, and another one follows it.
    let _other = ground.admit(3).unwrap();
    assert_eq!((end_reason(&probe), gave_way(&guards)), (Some(EndReason::Room), vec![3]));
    // A connection whose token was removed counts like one without.
    Caller::anonymous(AnonymousReason::NoSuchToken).is_on(guards[2].connection());
    let guards = [guards, ground.admit_all([5, 6, 7, 8])].concat();
    assert_eq!(end_reason(&guards[2]), Some(EndReason::Room));
}

#[test]
fn request_of_a_client_within_its_share_is_never_cut() {
    let ground = Ground::new(3);
    let guards = ground.admit_all([1, 5, 2]);
    let works = Arc::clone(&guards[0]).works(true);
    guards[1].connection().set_busy(true);
    let read_deadline = Arc::clone(&guards[2]).add_read_deadline(1_000_000);
    ground.pass_ms(100_000);
    assert!(ground.admit(3).is_none());
    assert_eq!(ground.tracker.counts().refused, 1);
    drop(works);
    assert!(ground.admit(3).is_some());
    assert_eq!(gave_way(&guards), [0]);
    drop(read_deadline);
    guards[1].connection().set_busy(false);
    assert!(ground.admit(3).is_some() && ground.admit(4).is_some());
}

/// Continues until each client has as many as the new one.
#[test]
fn client_with_most_loses_one_in_use_where_none_rests() {
    let ground = Ground::new(5);
    let guards = ground.admit_all([1, 1, 1, 2, 2]);
    let mut works: Vec<_> = guards.iter().map(|it| Arc::clone(it).works(true)).collect();
    let mut come = |host| {
        let guard = ground.admit(host)?;
        works.push(guard.works(true));
        Some(())
    };
    assert_eq!((come(3), gave_way(&guards)), (Some(()), vec![0]));
    assert_eq!((come(3), gave_way(&guards)), (None, vec![0]), "it would have as many");
    assert_eq!((come(4), gave_way(&guards)), (Some(()), vec![0, 1]));
    assert_eq!((come(5), gave_way(&guards)), (Some(()), vec![0, 1, 3]));
    assert_eq!((come(6), gave_way(&guards)), (None, vec![0, 1, 3]), "each has one");
}

/// The number of its addresses does not matter.
#[test]
fn token_with_all_places_in_use_loses_one() {
    let ground = Ground::new(3);
    let guards = ground.admit_all([1, 2, 3]);
    guards.iter().for_each(|guard| shows_token(guard));
    let _works: Vec<_> = guards.iter().map(|it| Arc::clone(it).works(true)).collect();
    assert!(ground.admit(4).is_some());
    assert_eq!(gave_way(&guards), [0]);
}

/// The client with more connections in use.
#[test]
fn connection_in_use_ends_after_those_at_rest_that_may() {
    let ground = Ground::new(4);
    let guards = ground.admit_all([1, 1, 1, 2]);
    let _works: Vec<_> = guards.iter().take(3).map(|guard| Arc::clone(guard).works(true)).collect();
    let _third = ground.admit(3).unwrap();
    assert_eq!(gave_way(&guards), [3]);
    let fourth = ground.admit(4).unwrap();
    let _fourth = Arc::clone(&fourth).works(true);
    let fifth = ground.admit(5).unwrap();
    let _fifth = Arc::clone(&fifth).works(true);
    assert_eq!(gave_way(&guards), [0, 3]);
}

/// The memory of clients that came and went does not grow with their number.
#[test]
fn clients_that_come_and_go_are_forgotten() {
    let ground = Ground::new(32);
    let mut guards: Vec<_> = (0..33).map(|_| ground.admit(1).unwrap()).collect();
    // A scan has found more than was needed, and there are places again.
    guards.truncate(20);
    for host in 0..10_000_u32 {
        let address = IpAddr::V4(Ipv4Addr::from_bits(0x0b00_0000 + host));
        let _gone = ground.tracker.admit(SocketAddr::new(address, 1_000));
    }
    let clients = super::lock(&ground.tracker.connections).room.clients();
    assert!(clients < 500, "{clients}");
}

/// The body may never come.
#[test]
fn body_that_is_awaited_protects_for_a_moment() {
    let ground = Ground::new(1);
    let guard = ground.admit(1).unwrap();
    guard.allow_ms(60_000);
    let _half = Arc::clone(&guard).works(false);
    assert!(ground.admit(2).is_none());
    ground.pass_ms(5_000);
    // Pings do the same.
    guard.allow_ms(60_000);
    assert!(ground.admit(2).is_some());
    assert_eq!(end_reason(&guard), Some(EndReason::Room));
}

/// A client with all places busy gets no more by opening more.
#[test]
fn address_over_its_share_is_refused_first() {
    let ground = Ground::new(4);
    let guards = ground.admit_all([1, 1, 1, 2]);
    let _busy: Vec<_> = guards.iter().take(3).map(|guard| Arc::clone(guard).works(true)).collect();
    assert!(ground.admit(1).is_none());
    assert_eq!(gave_way(&guards), [0_usize; 0]);
    assert!(ground.admit(3).is_some());
    assert_eq!(gave_way(&guards), [3]);
}

/// A client may have all places to itself: it gets new ones for old ones.
#[test]
fn lone_address_replaces_its_own_connections() {
    let ground = Ground::new(100);
    let mut guards: Vec<_> = (0..100).map(|_| ground.admit(1).unwrap()).collect();
    for ended in 0..200 {
        guards.push(ground.admit(1).expect("an own one ends for it"));
        assert_eq!(end_reason(&guards[ended]), Some(EndReason::Room), "{ended}");
        assert_eq!(end_reason(&guards[ended + 1]), None, "{ended}");
    }
}

#[test]
fn connections_that_have_ended_make_no_room() {
    let ground = Ground::new(32);
    let mut guards: Vec<_> = (0..32).map(|_| ground.admit(1).unwrap()).collect();
    // A scan finds two, of which one ends by itself.
    guards.push(ground.admit(2).unwrap());
    assert_eq!(end_reason(&guards[0]), Some(EndReason::Room));
    drop(guards.remove(1));
    guards.push(ground.admit(2).unwrap());
    guards.push(ground.admit(2).unwrap());
    assert_eq!(guards.iter().filter(|guard| end_reason(guard).is_some()).count(), 2);
    assert_eq!(ground.tracker.counts().connected, 34, "32, and two that leave");
    guards.retain(|guard| end_reason(guard).is_none());
    assert_eq!(ground.tracker.counts().connected, 32);
}

/// A client that does not leave has its connection cut; too many at once are cut immediately.
#[tokio::test]
async fn connections_that_do_not_leave_are_ended() {
    let ground = Ground::new(64);
    let mut tasks = Vec::new();
    for _ in 0..64 {
        let guard = ground.admit(1).unwrap();
        let connection = Arc::clone(guard.connection());
        let task = tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop(guard);
        });
        connection.set_task(task.abort_handle());
        tasks.push(task);
    }
    let newcomers: Vec<_> = (0..20).map(|_| ground.admit(2).unwrap()).collect();
    while tasks.iter().filter(|task| task.is_finished()).count() < 20 - LEAVING_MAX {
        tokio::task::yield_now().await;
    }
    // The rest get a moment for a last message.
    assert_eq!(ground.tracker.counts().connected, 64 + LEAVING_MAX);
    ground.pass_ms(500);
    let late = ground
        .tracker
        .entries()
        .into_iter()
        .filter(|connection| connection.is_late(ground.tracker.now_ms()));
    assert_eq!(late.count(), LEAVING_MAX);
    assert_eq!(newcomers.len(), 20);
}

#[test]
fn token_is_to_be_shown_in_time() {
    let ground = Ground::new(4);
    let guards = ground.admit_all([1, 2]);
    shows_token(&guards[1]);
    // A request that needs no token shows none.
    Caller::anonymous(AnonymousReason::NothingShown).is_on(guards[1].connection());
    let lacks = |at: usize| guards[at].connection().lacks_token(ground.tracker.now_ms(), 60_000);
    assert!(!lacks(0) && !lacks(1));
    ground.pass_ms(60_001);
    assert!(lacks(0) && !lacks(1));
    guards[0].connection().request_end(EndReason::NoToken, ground.tracker.now_ms());
    assert_eq!(end_reason(&guards[0]), Some(EndReason::NoToken));
    assert!(!lacks(0), "it is asked once");
}

/// A connection that makes room is counted until it has left.
#[test]
fn rejected_connection_gets_one_end_request() {
    let ground = Ground::new(2);
    let [first, second] = ground.admit_all([1, 2]);
    let third = ground.admit(3).unwrap();
    assert_eq!(end_reason(&first), Some(EndReason::Room));
    for guard in [&first, &second, &third] {
        (0..100).for_each(|_| guard.refused());
    }
    assert_eq!(end_reason(&first), Some(EndReason::Room), "for its first reason");
    assert_eq!(end_reason(&second), Some(EndReason::Refused));
    let leaving = || super::lock(&ground.tracker.connections).leaving;
    assert_eq!(leaving(), 1);
    drop(first);
    assert_eq!(leaving(), 0);
    // A caller with a token may fail any number of times.
    let known = ground.admit(4).unwrap();
    shows_token(&known);
    (0..100).for_each(|_| known.refused());
    assert_eq!(end_reason(&known), None);
}

/// A stop waits for requests without a response, and for clients that read.
#[test]
fn stop_ends_connections_whose_clients_do_not_read() {
    let ground = Ground::new(4);
    let guards = ground.admit_all([1, 2, 3, 4]);
    let works = Arc::clone(&guards[1]).works(true);
    let _half = Arc::clone(&guards[2]).works(false);
    let unread = || -> Vec<usize> {
        let stopping_ms = ground.tracker.stopping_ms.load(Ordering::Relaxed);
        let now_ms = ground.tracker.now_ms();
        let is_unread = |at: &usize| guards[*at].connection().is_unread(now_ms, stopping_ms);
        (0..guards.len()).filter(is_unread).collect()
    };
    ground.pass_ms(100_000);
    assert_eq!(unread(), [0_usize; 0], "the server does not stop");
    ground.tracker.stops();
    ground.pass_ms(1_999);
    assert_eq!(unread(), [0_usize; 0]);
    guards[3].moved();
    ground.pass_ms(1);
    assert_eq!(unread(), [0]);
    // The response begins.
    drop(works);
    ground.pass_ms(1_999);
    assert_eq!(unread(), [0, 3]);
    ground.pass_ms(1);
    assert_eq!(unread(), [0, 1, 3]);
}
