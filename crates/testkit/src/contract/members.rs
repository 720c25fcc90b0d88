use super::case::{Case, TTL_LONG_MS, cases, code, pool};
use snowmint_coord::{
    Incarnation, Mark, Member, MemberStatus, Preference, Presence, Serves, random,
};

cases![
    a_member_is_known_once_it_joined,
    joining_again_renews_and_keeps_when_it_joined,
    a_renewal_is_seen_by_others,
    a_presence_expires_and_comes_back,
    renewing_an_unknown_member_is_refused,
    leave_frees_and_fences_held_slots,
    leaving_twice_is_no_error,
    a_presence_without_life_is_refused,
    over_long_labels_are_refused,
    labels_with_control_characters_are_refused,
    announced_status_is_visible_to_peers,
    many_members_renew_at_once,
    listings_show_holders,
];

async fn a_member_is_known_once_it_joined(case: Case) {
    assert_eq!(case.store.members(case.now().await).await.unwrap(), []);
    let before = case.now().await;
    let member = case.member("orders").await;
    let known = case.another().await.store.members(case.now().await).await.unwrap();
    assert_eq!(known.len(), 1);
    assert_eq!(known[0].member, member);
    assert_eq!((known[0].presence.renewals, known[0].presence.ttl_ms), (0, TTL_LONG_MS));
    assert!(known[0].live && known[0].joined_at >= before);
    assert_eq!(known[0].joined_at, known[0].renewed_at);
}

async fn joining_again_renews_and_keeps_when_it_joined(case: Case) {
    let member = case.member("orders").await;
    let first = case.store.members(case.now().await).await.unwrap();
    case.pass_ms(50).await;
    let moved = Member { host: "host-2".into(), ..member };
    let presence = case.presence(7, TTL_LONG_MS).await;
    case.store.join(&moved, presence, case.now().await).await.unwrap();
    let again = case.store.members(case.now().await).await.unwrap();
    assert_eq!(again.len(), 1);
    assert_eq!((&again[0].member, again[0].presence), (&moved, presence));
    assert_eq!(again[0].joined_at, first[0].joined_at);
    assert!(again[0].renewed_at > first[0].renewed_at);
}

async fn a_renewal_is_seen_by_others(case: Case) {
    let member = case.member("orders").await;
    let other = case.another().await;
    for renewals in 1..4 {
        let presence = case.presence(renewals, TTL_LONG_MS + renewals).await;
        case.store.renew(member.incarnation, presence, case.now().await).await.unwrap();
        let seen = other.store.members(other.now().await).await.unwrap();
        assert_eq!(seen[0].presence, presence);
    }
}

async fn a_presence_expires_and_comes_back(case: Case) {
    let member = case.member("orders").await;
    assert!(case.store.members(case.now().await).await.unwrap()[0].live);
    case.expire(&member).await;
    assert!(!case.store.members(case.now().await).await.unwrap()[0].live);
    case.renew(&member, TTL_LONG_MS).await;
    assert!(case.store.members(case.now().await).await.unwrap()[0].live);
}

async fn renewing_an_unknown_member_is_refused(case: Case) {
    let presence = case.presence(1, TTL_LONG_MS).await;
    let stranger = random::incarnation().unwrap();
    assert_eq!(code(case.store.renew(stranger, presence, case.now().await).await), "not_found");
    let member = case.member("orders").await;
    case.store.leave(member.incarnation, case.now().await).await.unwrap();
    let gone = case.store.renew(member.incarnation, presence, case.now().await).await;
    assert_eq!(code(gone), "not_found");
}

async fn leave_frees_and_fences_held_slots(case: Case) {
    let leaver = case.member("orders").await;
    let stayer = case.member("bills").await;
    let pool = pool(2);
    let lost = case.claim(&leaver, &pool).await;
    let kept = case.claim(&stayer, &pool).await;
    case.extend(&lost, lost.mark, Mark::new(500)).await.unwrap();
    case.store.leave(leaver.incarnation, case.now().await).await.unwrap();
    let fenced = case.extend(&lost, Mark::new(500), Mark::new(600)).await;
    assert_eq!(code(fenced), "fenced");
    let next = case.claim(&stayer, &pool).await;
    assert_eq!((next.slot, next.floor), (lost.slot, Mark::new(500)));
    assert!(next.term > lost.term);
    case.extend(&kept, kept.mark, Mark::new(5)).await.unwrap();
    let known = case.store.members(case.now().await).await.unwrap();
    assert_eq!(known.len(), 1);
}

async fn leaving_twice_is_no_error(case: Case) {
    let member = case.member("orders").await;
    for _ in 0..2 {
        case.store.leave(member.incarnation, case.now().await).await.unwrap();
    }
    case.store.leave(Incarnation::new(1), case.now().await).await.unwrap();
}

async fn a_presence_without_life_is_refused(case: Case) {
    let member = case.member("orders").await;
    let lifeless = Presence { ttl_ms: 0, ..case.presence(1, 1).await };
    let now = case.now().await;
    assert_eq!(code(case.store.join(&member, lifeless, now).await), "invalid");
    assert_eq!(code(case.store.renew(member.incarnation, lifeless, now).await), "invalid");
    assert_eq!(case.store.members(now).await.unwrap()[0].presence.ttl_ms, TTL_LONG_MS);
}

async fn over_long_labels_are_refused(case: Case) {
    let member = case.member("orders").await;
    let presence = case.presence(1, TTL_LONG_MS).await;
    let now = case.now().await;
    for (length, accepted) in [(255, true), (256, false)] {
        let owner = Member { owner: "x".repeat(length), ..member.clone() };
        let host = Member { host: "x".repeat(length), ..member.clone() };
        for labelled in [owner, host] {
            assert_eq!(case.store.join(&labelled, presence, now).await.is_ok(), accepted);
        }
    }
}

/// Users see the labels of other members on their terminals.
async fn labels_with_control_characters_are_refused(case: Case) {
    let member = case.member("orders").await;
    let (presence, now) = (case.presence(1, TTL_LONG_MS).await, case.now().await);
    for control in ["\0", "\n", "\u{1b}]0;x\u{7}", "\u{7f}", "\u{9b}31m", "\u{202e}"] {
        let label = format!("a{control}b");
        let owner = Member { owner: label.clone(), ..member.clone() };
        let host = Member { host: label.clone(), ..member.clone() };
        let address = Member { address: label.clone(), ..member.clone() };
        for labelled in [&owner, &host, &address] {
            assert_eq!(
                code(case.store.join(labelled, presence, now).await),
                "invalid",
                "{labelled:?}"
            );
        }
        // The slot keeps the label, too.
        let claimed = case.try_claim(&owner, &pool(8), Preference::Any).await;
        assert_eq!(code(claimed), "invalid", "{owner:?}");
    }
    assert_eq!(case.store.members(now).await.unwrap()[0].member, member);
}

async fn announced_status_is_visible_to_peers(case: Case) {
    let member = case.member("orders").await;
    let status = |revision, serves, count: u128| {
        let unreachable = (0..count).map(|number| Incarnation::new(u128::MAX - number)).collect();
        MemberStatus { revision, serves, unreachable }
    };
    if case.store.owner_client().is_some() {
        // A member that comes through servers owns no section.
        let announced = case.store.announce(member.incarnation, &status(1, Serves::All, 0)).await;
        assert_eq!(code(announced), "unsupported");
        return;
    }
    let other = case.another().await;
    let seen = async || {
        let listed = other.store.members(other.now().await).await.unwrap();
        listed.into_iter().find(|info| info.member == member).unwrap().status
    };
    assert_eq!(seen().await, MemberStatus::default());
    let longest = status(7, Serves::Counters, 6);
    for sent in [status(1, Serves::Nothing, 1), longest.clone()] {
        case.store.announce(member.incarnation, &sent).await.unwrap();
        assert_eq!(seen().await, sent);
    }
    // The announcement comes late, or twice.
    for late in [status(6, Serves::All, 0), status(7, Serves::All, 0)] {
        case.store.announce(member.incarnation, &late).await.unwrap();
        assert_eq!(seen().await, longest);
    }
    // The status stays while the member renews, and when it joins again.
    case.renew(&member, TTL_LONG_MS).await;
    let presence = case.presence(100, TTL_LONG_MS).await;
    case.store.join(&member, presence, case.now().await).await.unwrap();
    assert_eq!(seen().await, longest);
    let too_many = status(9, Serves::All, 7);
    assert_eq!(code(case.store.announce(member.incarnation, &too_many).await), "invalid");
    let stranger = random::incarnation().unwrap();
    assert_eq!(code(case.store.announce(stranger, &longest).await), "not_found");
    assert_eq!(seen().await, longest);
}

async fn many_members_renew_at_once(case: Case) {
    let members = case
        .contend(|case, number| async move {
            let member = case.member(&format!("owner-{number}")).await;
            for renewals in 1..=5 {
                let presence = case.presence(renewals, TTL_LONG_MS).await;
                case.store.renew(member.incarnation, presence, case.now().await).await.unwrap();
            }
            member
        })
        .await;
    let known = case.store.members(case.now().await).await.unwrap();
    assert_eq!(known.len(), members.len());
    assert!(known.iter().all(|info| info.live && info.presence.renewals == 5));
    assert!(known.is_sorted_by_key(|info| info.member.incarnation));
}

async fn listings_show_holders(case: Case) {
    let one = case.member("orders").await;
    let two = case.member("bills").await;
    let lease = case.claim(&one, &pool(4)).await;
    case.extend(&lease, lease.mark, Mark::new(12)).await.unwrap();
    let given = case.claim(&two, &pool(4)).await;
    case.release(&given, given.mark).await.unwrap();
    let seen = case.another().await.store.workers(case.now().await).await.unwrap();
    assert_eq!(seen.len(), 2);
    assert_eq!((seen[0].pool.as_str(), seen[0].slot, seen[0].mark), ("workers", 0, Mark::new(12)));
    assert_eq!((seen[0].owner.as_str(), seen[0].holder), ("orders", Some(one.incarnation)));
    assert_eq!((seen[0].host.as_deref(), seen[0].process), (Some("host-1"), Some(4711)));
    assert!(seen[0].live && seen[0].renewed_at.is_some());
    assert_eq!((seen[1].holder, seen[1].live, seen[1].host.as_ref()), (None, false, None));
    case.expire(&one).await;
    let expired = case.store.workers(case.now().await).await.unwrap();
    assert!(!expired[0].live && expired[0].holder.is_some());
}
