use super::*;
use crate::model::member::{Member, Presence};

fn at(ms: u64) -> ElapsedMillis {
    ElapsedMillis::new(ms)
}

fn info(member: u128, renewals: u64, ttl_ms: u64) -> MemberInfo {
    MemberInfo {
        member: Member {
            incarnation: Incarnation::new(member),
            owner: String::new(),
            host: String::new(),
            process: 1,
            address: String::new(),
        },
        presence: Presence { sample: UnixMillis::ZERO, renewals, ttl_ms },
        joined_at: UnixMillis::ZERO,
        renewed_at: UnixMillis::ZERO,
        live: false,
        status: crate::model::member::MemberStatus::default(),
    }
}

#[test]
fn stall_is_lease_and_margin_on_the_watchers_clock() {
    let mut watch = RenewalWatch::default();
    watch.record(&[info(1, 5, 8_000)], at(1_000));
    assert!(watch.stalled(at(9_999)).is_empty(), "the lease and its margin are 9 s");
    let stalled = [StalledMember { member: Incarnation::new(1), renewals: 5 }];
    assert_eq!(watch.stalled(at(10_000)), stalled);
    // A second observation of the same count does not restart the time, and a renewal does.
    watch.record(&[info(1, 5, 8_000)], at(9_000));
    assert_eq!(watch.stalled(at(10_000)), stalled);
    watch.record(&[info(1, 6, 8_000)], at(10_000));
    assert!(watch.stalled(at(18_999)).is_empty());
    assert!(!watch.stalled(at(19_000)).is_empty());
}

#[test]
fn longest_announced_lease_counts() {
    let mut watch = RenewalWatch::default();
    watch.record(&[info(1, 5, 80_000)], at(0));
    watch.record(&[info(1, 6, 100)], at(0));
    assert!(watch.stalled(at(89_999)).is_empty());
    assert!(!watch.stalled(at(90_000)).is_empty());
}

#[test]
fn a_member_that_is_gone_from_the_list_is_forgotten() {
    let mut watch = RenewalWatch::default();
    watch.record(&[info(1, 5, 1_000), info(2, 0, 1_000)], at(0));
    watch.record(&[info(2, 0, 1_000)], at(100));
    let stalled: Vec<_> = watch.stalled(at(60_000)).iter().map(|stalled| stalled.member).collect();
    assert_eq!(stalled, [Incarnation::new(2)]);
}

#[test]
fn short_leases_have_a_margin_too() {
    assert_eq!(stall_ms(100), 600);
    assert_eq!(stall_ms(10_000), 11_250);
    assert_eq!(stall_ms(u64::MAX), u64::MAX);
}
