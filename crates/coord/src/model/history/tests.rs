//! Tests of stores that are rolled back, counted on and recovered, against a record of everything
//! seen.

use std::collections::BTreeMap;

use super::*;
use crate::ids::Mark;
use crate::model::catalog::Definition;
use crate::model::fast_forward::FastForward;
use crate::platform::random;

/// A store with its starts, maintained by the rules.
#[derive(Clone)]
struct Kept {
    identity: StoreIdentity,
    past: StoredHistory,
}

impl Kept {
    fn new() -> Self {
        Self {
            identity: StoreIdentity { id: "s".into(), writes: 0 },
            past: StoredHistory::default(),
        }
    }

    fn write(&mut self) -> StoreIdentity {
        self.identity.writes += 1;
        self.identity.clone()
    }

    fn start(&mut self) -> StoreIdentity {
        let history = History::of(&self.identity.id).started(random::number().unwrap());
        let text = self.past.starts.with(&history.start, None);
        self.identity.id = history.to_string();
        let identity = self.write();
        self.past.starts = Starts::read(&text, identity.writes).unwrap();
        identity
    }

    fn recover(&mut self, writes: u64, recoveries: u64) -> StoreIdentity {
        let identity = self.recover_other_namespace(writes, recoveries);
        self.past.recovered = History::of(&identity.id).recoveries;
        identity
    }

    /// Another namespace of the same store is recovered.
    fn recover_other_namespace(&mut self, writes: u64, recoveries: u64) -> StoreIdentity {
        let history = History::of(&self.identity.id);
        let recoveries = history.recoveries.max(recoveries) + 1;
        let history =
            History { recoveries, in_doubt: false, ..history }.started(random::number().unwrap());
        let text = self.past.starts.with(&history.start, Some(self.identity.writes + 1));
        self.identity.id = history.to_string();
        self.identity.writes = self.identity.writes.max(writes);
        let identity = self.write();
        self.past.starts = Starts::read(&text, identity.writes).unwrap();
        identity
    }

    fn recall(&self, seen: &StoreIdentity) -> Result<Recalled, &'static str> {
        recall("it", seen, &self.identity, &self.past).map_err(|error| error.kind().code())
    }
}

const ROLLED_BACK: Result<Recalled, &str> = Err("store_rolled_back");

#[test]
fn identities_are_read_as_they_are_written() {
    for text in ["s", "s!", "s.0.abc", "s.0.abc!", "s.3.abc", "s.3."] {
        assert_eq!(History::of(text).to_string(), text);
    }
    assert!(History::of("s.0.abc!").in_doubt && !History::of("s.0.abc").in_doubt);
}

#[test]
fn continued_store_has_every_seen_write() {
    let mut kept = Kept::new();
    let mut seen = vec![kept.write(), kept.start()];
    for round in 0..3 * STARTS_MAX {
        seen.push(if round % 3 == 0 { kept.start() } else { kept.write() });
    }
    for seen in &seen {
        assert_eq!(kept.recall(seen), Ok(Recalled::Same), "{seen:?}");
    }
}

/// The loss is detected however far the store counts on and whichever process starts meanwhile.
#[test]
fn lost_writes_stay_detectable() {
    let mut kept = Kept::new();
    kept.start();
    kept.write();
    let backup = kept.clone();
    let lost = [kept.write(), kept.start(), kept.write()];
    for writes in [0, 1, 5, 1000] {
        let mut back = backup.clone();
        if writes > 0 {
            back.start();
        }
        (0..writes).for_each(|_| drop(back.write()));
        for seen in &lost {
            assert_eq!(back.recall(seen), ROLLED_BACK, "{writes} {seen:?}");
        }
        assert_eq!(back.recall(&backup.identity), Ok(Recalled::Same));
    }
    // No process starts, and a handle that saw less continues to write: the lost start is still
    // missed.
    let mut back = backup;
    (0..1000).for_each(|_| drop(back.write()));
    assert_eq!(back.recall(&lost[1]), ROLLED_BACK);
    assert_eq!(back.recall(&lost[2]), ROLLED_BACK);
}

/// The lost start is unknown, as is one that was dropped: the count tells the two apart.
#[test]
fn lost_writes_are_detected_after_more_starts_than_are_kept() {
    let mut kept = Kept::new();
    (0..STARTS_MAX + 10).for_each(|_| drop(kept.start()));
    let backup = kept.clone();
    let lost = [kept.start(), kept.write()];
    let mut back = backup;
    back.start();
    (0..10).for_each(|_| drop(back.write()));
    for seen in &lost {
        assert_eq!(back.recall(seen), ROLLED_BACK, "{seen:?}");
    }
    assert_eq!(back.past.starts.with("", None).split(' ').count(), STARTS_MAX);
}

#[test]
fn a_failover_and_one_back_are_two_histories() {
    let mut first = Kept::new();
    first.start();
    let mut second = first.clone();
    let seen_there = [second.start(), second.write(), second.write()];
    let seen_here = [first.start(), first.write()];
    (0..10).for_each(|_| drop((first.write(), second.write())));
    for seen in &seen_there {
        assert_eq!(first.recall(seen), ROLLED_BACK);
    }
    for seen in &seen_here {
        assert_eq!(second.recall(seen), ROLLED_BACK);
    }
}

/// A process that saw more learns of the recovery; a process that saw nothing of the lost state
/// continues. Later losses are detected again.
#[test]
fn recovery_begins_a_new_history() {
    let mut kept = Kept::new();
    kept.start();
    let backup = kept.clone();
    let lost = [kept.write(), kept.start(), kept.write()];
    for writes in [0, 3, 50] {
        let mut back = backup.clone();
        back.recover(writes, 0);
        let after = back.clone();
        let lost_again = back.write();
        for seen in &lost {
            assert_eq!(back.recall(seen), Ok(Recalled::Recovered), "{seen:?}");
        }
        assert_eq!(back.recall(&backup.identity), Ok(Recalled::Same));
        let mut again = after.clone();
        again.start();
        (0..9).for_each(|_| drop(again.write()));
        assert_eq!(again.recall(&lost_again), ROLLED_BACK);
        assert_eq!(again.recall(&after.identity), Ok(Recalled::Same));
    }
}

/// It collected nothing of what the processes of this one know.
#[test]
fn recovery_of_another_namespace_excuses_no_loss() {
    let mut kept = Kept::new();
    let first = kept.start();
    let backup = kept.clone();
    let lost = kept.write();
    let mut back = backup;
    back.recover_other_namespace(0, 0);
    assert_eq!((back.recall(&first), back.recall(&lost)), (Ok(Recalled::Same), ROLLED_BACK));
    let joined = back.write();
    back.recover(0, 0);
    assert_eq!(back.recall(&lost), Ok(Recalled::Recovered));
    assert_eq!(back.recall(&joined), Ok(Recalled::Same));
    // A later recovery of the other namespace makes no newer recovery of this one.
    let backup = back.clone();
    let lost = back.write();
    let mut back = backup;
    back.recover_other_namespace(0, 0);
    assert_eq!(back.recall(&lost), ROLLED_BACK);
}

#[test]
fn stores_without_history_are_compared_by_count() {
    let mut kept = Kept::new();
    let old = [kept.write(), kept.write()];
    let backup = kept.clone();
    let lost = kept.write();
    for seen in &old {
        assert_eq!(kept.recall(seen), Ok(Recalled::Same));
    }
    let mut back = backup;
    back.start();
    assert_eq!(back.recall(&old[1]), Ok(Recalled::Same));
    assert_eq!(
        back.recall(&lost),
        ROLLED_BACK,
        "the first start came where another process had written"
    );
}

#[test]
fn store_with_another_id_is_rejected() {
    let (seen, found) = ("a.0.1", "b.0.1");
    let identity = |id: &str| StoreIdentity { id: id.into(), writes: 1 };
    let past = StoredHistory { starts: Starts::read("1-1", 1).unwrap(), recovered: 0 };
    let refused = recall("it", &identity(seen), &identity(found), &past).unwrap_err();
    assert_eq!(refused.kind().code(), "store_mismatch");
    assert!(
        recall("it", &StoreIdentity { id: String::new(), writes: 0 }, &identity(found), &past)
            .is_ok()
    );
}

fn journal(id: &str) -> JournalInfo {
    JournalInfo { id: id.into(), ..JournalInfo::default() }
}

#[test]
fn reports_together_know_the_larger() {
    let known = |mark, end, writes| Known {
        mark,
        ends: [("a".to_owned(), end)].into(),
        writes,
        ..Known::default()
    };
    let mut standing = Standing::default();
    for id in ["3", "2", "1"] {
        standing.record_report(&journal(id), None);
    }
    standing.record_report(&journal("1"), Some(&known(99, 99, 99)));
    assert_eq!(standing.known, Known::default(), "it may know more when that counts");
    standing.begin(&Doubt { evidence: String::new(), seen: 2, found: 1 });
    assert_eq!(standing.missing().count(), 3);
    standing.record_report(&journal("1"), Some(&known(5, 20, 1)));
    standing.record_report(&journal("3"), Some(&known(2, 30, 9)));
    standing.record_report(&journal("1"), None);
    assert_eq!(standing.known, known(5, 30, 9));
    assert_eq!(standing.missing().map(|journal| &*journal.id).collect::<Vec<_>>(), ["2"]);
    standing.end(&FastForward { forget_journals: vec!["2".into()], ..FastForward::default() });
    let left: Vec<_> = standing.missing().map(|journal| &*journal.id).collect();
    assert_eq!(left, ["1", "3"], "the one that was named is given up");
    assert_eq!(standing.doubt, None);
    assert_eq!(standing.known, Known::default());
}

/// The first doubt stays, and so do the reports since then.
#[test]
fn second_doubt_changes_nothing() {
    let doubt = |seen| Doubt { evidence: String::new(), seen, found: 1 };
    let mut standing = Standing::default();
    standing.begin(&doubt(2));
    standing.record_report(&journal("1"), Some(&Known { writes: 7, ..Known::default() }));
    let before = standing.clone();
    standing.begin(&doubt(3));
    assert_eq!(standing, before);
}

#[test]
fn journal_that_has_joined_is_not_only_heard_of() {
    let mut standing = Standing::default();
    standing.record_report(&journal("1"), None);
    standing.begin(&Doubt { evidence: String::new(), seen: 2, found: 1 });
    let others = Known { journals: vec![journal("1"), journal("3")], ..Known::default() };
    standing.record_report(&journal("2"), Some(&others));
    let heard_of = standing.journals.iter().filter(|journal| journal.is_heard_of);
    assert_eq!(heard_of.map(|journal| &*journal.id).collect::<Vec<_>>(), ["3"]);
}

/// Each of these may mean that a journal knows more than the plan does.
#[test]
fn each_change_of_a_standing_outdates_a_plan() {
    let mut planned_on = Standing { id: "s.0.1".into(), ..Standing::default() };
    planned_on.begin(&Doubt { evidence: String::new(), seen: 2, found: 1 });
    planned_on.record_report(&journal("1"), Some(&Known::default()));
    planned_on.record_report(&journal("2"), None);
    let is_same_after = |change: fn(&mut Standing)| {
        let mut now = planned_on.clone();
        change(&mut now);
        now.says_the_same(&planned_on)
    };
    let same: [fn(&mut Standing); 2] = [
        |now| now.record_report(&journal("1"), Some(&Known::default())),
        |now| now.id = "s.0.2".into(),
    ];
    assert!(same.into_iter().all(is_same_after));
    let others: [fn(&mut Standing); 6] = [
        |now| now.doubt = None,
        |now| now.doubt.as_mut().unwrap().seen = 3,
        |now| now.record_report(&journal("1"), Some(&Known { mark: 5, ..Known::default() })),
        |now| now.record_report(&journal("2"), Some(&Known::default())),
        |now| now.record_report(&journal("3"), None),
        |now| now.id = "other.0.1".into(),
    ];
    for (number, change) in others.into_iter().enumerate() {
        assert!(!is_same_after(change), "{number}");
    }
}

#[test]
fn the_journals_that_joined_last_are_remembered() {
    let mut standing = Standing::default();
    for number in 0..JOURNALS_MAX + 10 {
        let (id, seen_at_ms) = (format!("{number:05}"), u64::try_from(number).unwrap());
        let names = (String::new(), String::new());
        let journal = JournalInfo {
            id,
            owner: names.0,
            host: names.1,
            seen_at_ms,
            has_reported: false,
            is_heard_of: false,
            reports: 0,
            far_mark: 0,
        };
        standing.record_report(&journal, None);
    }
    assert_eq!(standing.journals.len(), JOURNALS_MAX);
    assert_eq!(standing.journals[0].id, "00010");
    // A missing journal stays listed, however many join while the store is in doubt.
    standing.begin(&Doubt { evidence: String::new(), seen: 2, found: 1 });
    let late =
        JournalInfo { id: "late".into(), seen_at_ms: u64::MAX, ..standing.journals[0].clone() };
    standing.record_report(&late, Some(&Known::default()));
    assert_eq!(standing.missing().count(), JOURNALS_MAX);
}

#[test]
fn sources_below_known_ends_are_named_up_to_a_limit() {
    let ends = |count: u64| (0..count).map(|number| (format!("s-{number:02}"), 7)).collect();
    let evidence_of = |count| {
        let error = check_ends("this process", &ends(count), &[]).unwrap_err();
        match error.kind() {
            ErrorKind::StoreRolledBack { evidence, seen: 7, found: 0 } => evidence.clone(),
            _ => panic!("{error}"),
        }
    };
    check_ends("this process", &ends(0), &[]).unwrap();
    assert_eq!(evidence_of(1), r#"next number of source "s-00" seen by this process"#);
    let two = r#"next number of source "s-00" seen by this process (and "s-01" (seen 7, found 0))"#;
    assert_eq!(evidence_of(2), two);
    let many = evidence_of(30);
    assert!(many.ends_with(r#""s-16" (seen 7, found 0), 13 more)"#), "{many}");
}

/// An operator runs the command once, and copies its values.
#[test]
fn store_recovered_below_a_journal_names_the_whole_command() {
    let definition = |name, next| Definition::fast_forwarded(None, name, Mark::new(next));
    let stored = [definition("a", 5), definition("b", 50)];
    let ends = [("a", 5), ("b", 51), ("c", 7)];
    let ends = ends.map(|(name, end)| (name.to_owned(), end)).into();
    let known = Known { mark: 1_795_952_102_485, ends, ..Known::default() };
    let by = |far_ahead| RecalledBy {
        who: "the journal",
        secondary: None,
        is_program: false,
        far_ahead,
        has_journal: true,
    };
    let check = |known: &Known, mark, far_ahead| {
        check_recovered(&by(far_ahead), known, &stored, Mark::new(mark))
    };
    let error = check(&known, 1_795_952_102_484, false).unwrap_err();
    assert_eq!(
        error.message(),
        "store rolled back: next number of source \"b\" was 51, is 50, next number of source \"c\" \
         was 7, is 0, worker mark was 2026-11-29T11:35:02.485Z, is 2026-11-29T11:35:02.484Z, as \
         seen by the journal, without which the store was recovered; IDs in between may have come \
         twice; to stop that and continue, define as they were the sources that are lost (c), and \
         run snowmint worker recover --segment b=51 --segment c=7 --mark 2026-11-29T11:35:02.485Z"
    );
    assert_eq!(Err(error.kind().code()), ROLLED_BACK);
    let marks = Known { ends: BTreeMap::new(), ..known.clone() };
    let error = check(&marks, 0, true).unwrap_err();
    assert!(error.message().contains("was 2026-11-29T11:35:02.485Z, is not set,"), "{error}");
    // Followed without a thought, it would end minting for years.
    let far = "run snowmint worker recover --mark 2026-11-29T11:35:02.485Z --far-ahead, after which no \
               server mints by worker numbers before 2026-11-29T11:35:02.485Z. If no ID of \
               this process later than the present is in use";
    assert!(error.message().contains(far), "{error}");
    assert!(error.message().ends_with("`journal` out of its data directory"), "{error}");
    let by = RecalledBy { has_journal: false, ..by(true) };
    let error = check_recovered(&by, &marks, &stored, Mark::ZERO).unwrap_err();
    assert!(error.message().ends_with("restart this process instead"), "{error}");
    let error = check(&known, 5, true).unwrap_err();
    assert!(error.message().contains("is in use (as after `worker reclaim`)"), "{error}");
    assert!(error.message().contains("run the command without --mark, stop"), "{error}");
    let numbers = Known { mark: 0, ..known };
    let error = check(&numbers, 0, true).unwrap_err();
    assert!(error.message().ends_with(" --segment c=7"), "{error}");
    let many = (0..20).map(|number| (format!("s-{number:02}"), 7)).collect();
    let error = check(&Known { ends: many, ..Known::default() }, 0, false).unwrap_err();
    assert!(error.message().contains("4 more sources, named once these are raised"), "{error}");
    assert!(error.message().ends_with(" --segment s-15=7"), "{error}");
    check(&Known::default(), 0, false).unwrap();
}

/// The lost definition made higher IDs of lower numbers than the stored one does.
#[test]
fn ids_of_a_lost_stripe_are_compared_by_the_stored_one() {
    let stored = [Definition::fast_forwarded(None, "a", Mark::new(600))];
    let of = |name: &str, value| [(name.to_owned(), value)].into();
    let known = Known { ends: of("a", 301), ids: of("a", 4_806), ..Known::default() };
    let by = RecalledBy {
        who: "the journal",
        secondary: None,
        is_program: false,
        far_ahead: false,
        has_journal: true,
    };
    let check = |known: &Known| check_recovered(&by, known, &stored, Mark::ZERO);
    let error = check(&known).unwrap_err();
    assert!(error.message().ends_with("worker recover --segment a=4806"), "{error}");
    check(&Known { ids: of("a", 600), ..known }).unwrap();
}

/// Only a running server recovers it.
#[test]
fn command_for_a_secondary_store_names_that_store() {
    let by = |secondary, is_program| RecalledBy {
        who: "the journal",
        secondary,
        is_program,
        far_ahead: false,
        has_journal: true,
    };
    let known = Known { ends: [("a".to_owned(), 7)].into(), ..Known::default() };
    let named = |by| check_recovered(&by, &known, &[], Mark::ZERO).unwrap_err().to_string();
    let command = "run snowmint worker recover --secondary east --server URL --segment a=7";
    assert!(named(by(Some("east"), false)).ends_with(command));
    let command = "run at the store's servers snowmint worker recover --segment a=7";
    assert!(named(by(None, true)).ends_with(command));
}

#[test]
fn others_in_doubt_are_named_up_to_a_limit() {
    let named = |count: usize| {
        let names = (1..=count).map(|number| format!("shop-{number}")).collect();
        OthersInDoubt::of(names).to_string()
    };
    assert!(OthersInDoubt::of(Vec::new()).is_empty());
    assert_eq!(named(2), "shop-1, shop-2");
    assert!(named(16).ends_with(", shop-16"), "{}", named(16));
    assert!(named(17).ends_with(", shop-16 and more"), "{}", named(17));
}

#[test]
fn doubt_keeps_its_stored_keys() {
    let doubt = Doubt { evidence: "a journal".into(), seen: 2, found: 1 };
    let stored = serde_json::to_string(&doubt).unwrap();
    assert_eq!(stored, r#"{"witness":"a journal","seen":2,"found":1}"#);
}
