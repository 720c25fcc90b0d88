//! Worker numbers that a program used up, and that an operator takes back.

use std::path::Path;
use std::sync::Arc;

use snowmint_coord::{
    ClaimRequest, ErrorKind, Exclude, Extend, Incarnation, Lease, Mark, Member, Pool, Preference,
    Presence, Reuse, Store,
};
use snowmint_core::{Clock as _, SystemClock, UnixMillis};
use snowmint_stores::Settings;

use crate::common::{json, run, until};
use crate::server::{Server, serve};

const YEAR_MS: u64 = 365 * 86_400_000;

/// Configuration of servers that mint little ahead of the clock, which keeps waits short, and of a
/// source with four workers.
const CONFIG: &str = "[sources]\nbuiltin = false\n[sources.ids]\nlayout = \"time=41,worker=2,sequence=20\"\n\
     lead_max = \"100ms\"\n[worker]\nwindow = \"1s\"\n[clock]\nskew_max = \"100ms\"\n";

fn now() -> UnixMillis {
    SystemClock.unix_ms()
}

fn pool() -> Pool {
    Pool { name: "workers-2".into(), slots: 4, group: 1, reuse: Reuse::Recycle }
}

fn claim(member: &Member, preference: Preference) -> ClaimRequest {
    ClaimRequest {
        pool: pool(),
        member: member.incarnation,
        owner: member.owner.clone(),
        count: 1,
        preference,
        supersedes: None,
        mark_at_most: Mark::MAX,
        request: 1,
    }
}

/// A program that uses the store directly, and ignores the rules.
struct Program {
    store: Arc<dyn Store>,
    leases: Vec<Lease>,
}

impl Program {
    async fn open(directory: &Path) -> Arc<dyn Store> {
        let url = format!("sqlite:{}", directory.join("snowmint.db").display());
        let settings = Settings { attempts_max: 16, create_if_missing: true };
        snowmint_stores::open_with(&url, "default", settings).await.unwrap()
    }

    /// Joins for this time.
    async fn join(store: &dyn Store, incarnation: u128, ttl_ms: u64) -> Member {
        let member = Member {
            incarnation: Incarnation::new(incarnation),
            owner: "mallory".into(),
            host: "elsewhere".into(),
            process: 7,
            address: String::new(),
        };
        let presence = Presence { sample: now(), renewals: 0, ttl_ms };
        store.join(&member, presence, now()).await.unwrap();
        member
    }

    /// Joins for this time, claims `count` numbers of `workers-10` at once, and moves their marks
    /// years ahead.
    async fn spoil_pool(directory: &Path, incarnation: u128, ttl_ms: u64, count: usize) {
        let store = Self::open(directory).await;
        let member = Self::join(store.as_ref(), incarnation, ttl_ms).await;
        let request = ClaimRequest {
            pool: Pool { name: "workers-10".into(), slots: 1024, ..pool() },
            count: count.try_into().unwrap(),
            ..claim(&member, Preference::Any)
        };
        let leases = store.claim(&request, now()).await.unwrap();
        assert_eq!(leases.len(), count);
        let program = Self { store, leases };
        for lease in &program.leases {
            program.extend(lease, lease.mark, 100 * YEAR_MS).await.unwrap();
        }
    }

    /// Joins for this time, claims these numbers, and moves their marks years ahead.
    async fn spoil(directory: &Path, incarnation: u128, ttl_ms: u64, numbers: &[u64]) -> Self {
        let store = Self::open(directory).await;
        let member = Self::join(store.as_ref(), incarnation, ttl_ms).await;
        let mut leases = Vec::new();
        for number in numbers {
            let mut request = claim(&member, Preference::Exactly(*number));
            request.request = number + 1;
            leases.append(&mut store.claim(&request, now()).await.unwrap());
        }
        let program = Self { store, leases };
        for lease in &program.leases {
            program.extend(lease, lease.mark, 100 * YEAR_MS).await.unwrap();
        }
        program
    }

    async fn extend(&self, lease: &Lease, from: Mark, more_ms: u64) -> Result<(), ErrorKind> {
        let item = Extend {
            pool: lease.pool.clone(),
            slot: lease.slot,
            term: lease.term,
            holder: lease.holder,
            from,
            to: Mark::new(from.get().max(now().get()) + more_ms),
            request: 1,
            ahead_max_ms: None,
        };
        let extended =
            self.store.extend(std::slice::from_ref(&item), now()).await.unwrap().remove(0);
        extended.map(drop).map_err(|error| error.kind().clone())
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn plan_names_numbers_that_are_excluded_until_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let (dir, file) = (directory.path().to_str().unwrap(), directory.path().join("config.toml"));
    std::fs::write(&file, CONFIG).unwrap();
    runtime().block_on(async {
        let store = Program::open(directory.path()).await;
        let until = Mark::new(now().get() + YEAR_MS);
        let exclude = Exclude { pool: pool(), slots: vec![1], until, label: "leaf".into() };
        store.exclude(&exclude, now()).await.unwrap();
    });
    let file = file.to_str().unwrap();
    let plan = run(&["worker", "reclaim", "workers-2", "1", "--config", file, "--data-dir", dir]);
    assert_eq!(plan.code, 1, "{plan:?}");
    assert!(plan.out.contains("excluded: its mark is ahead on purpose"), "{plan:?}");
    assert!(plan.err.contains("excluded numbers cannot be reclaimed"), "{plan:?}");
}

#[test]
fn numbers_lowered_before_a_rejected_one_are_in_the_audit_log() {
    /// Number of slots that one step of a store cannot write: the limit is 500.
    const GONE: usize = 501;
    let directory = tempfile::tempdir().unwrap();
    let (dir, file) = (directory.path().to_str().unwrap(), directory.path().join("config.toml"));
    std::fs::write(&file, CONFIG.replace("worker=2,sequence=20", "worker=10,sequence=12")).unwrap();
    runtime().block_on(async {
        Program::spoil_pool(directory.path(), 1, 1, GONE).await;
        Program::spoil_pool(directory.path(), 2, 86_400_000, 1).await;
    });
    let numbers: Vec<String> = (0..=GONE).map(|number| number.to_string()).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let given = ["--config", file.to_str().unwrap(), "--data-dir", dir, "--no-ids-ahead"];
    let rejected = run(&[&["worker", "reclaim", "workers-10"], &numbers[..], &given[..]].concat());
    assert_ne!(rejected.code, 0, "{rejected:?}");
    assert!(rejected.err.contains("501 of pool \"workers-10\""), "{rejected:?}");
    let trail = std::fs::read_to_string(directory.path().join("audit.log")).unwrap();
    let lines = trail.lines().filter(|line| line.contains("audit: worker reclaim workers-10 "));
    let lowered = runtime().block_on(async {
        let store = Program::open(directory.path()).await;
        let far = Mark::new(now().get() + YEAR_MS);
        let slots = store.workers(now()).await.unwrap();
        slots.iter().filter(|slot| slot.mark < far).count()
    });
    assert!(lowered > 0 && lowered < GONE + 1, "{lowered}");
    assert_eq!(lines.count(), lowered, "{trail}");
}

#[test]
fn exhausted_numbers_are_reclaimed_and_mint_again() {
    let directory = tempfile::tempdir().unwrap();
    let (dir, file) = (directory.path().to_str().unwrap(), directory.path().join("config.toml"));
    let file = file.to_str().unwrap();
    std::fs::write(file, CONFIG).unwrap();
    let (gone, live) = runtime().block_on(async {
        let gone = Program::spoil(directory.path(), 1, 1, &[0, 1]).await;
        let live = Program::spoil(directory.path(), 2, 86_400_000, &[2]).await;
        let (label, slots) = ("leaf".into(), vec![3]);
        let exclude = Exclude { pool: pool(), slots, until: Mark::MAX, label };
        gone.store.exclude(&exclude, now()).await.unwrap();
        (gone, live)
    });
    let server = Server::start(serve(directory.path(), &["--config", file]));
    let full = server.mint(&["ids"]);
    assert_eq!(full.code, 4, "{}", full.err);

    let arguments = ["worker", "reclaim", "workers-2"];
    let reclaim = |more: &[&str]| {
        run(&[&arguments[..], &["--config", file, "--data-dir", dir], more].concat())
    };
    // The plan comes first.
    let plan = reclaim(&["0", "1"]);
    assert_eq!(plan.code, 0, "{plan:?}");
    for part in ["held by mallory on elsewhere, lease ended", "would be reclaimed, mark 20"] {
        assert_eq!(plan.out.matches(part).count(), 2, "{part}: {}", plan.out);
    }
    for part in ["nothing was changed", "--no-ids-ahead", "would be minted again"] {
        assert!(plan.err.contains(part), "{part}: {}", plan.err);
    }
    for (number, more, code, part) in [
        ("2", &[][..], 1, "--from-live"),
        ("2", &["--no-ids-ahead"], 2, "is held"),
        ("3", &[], 1, "excluded numbers"),
        ("3", &["--no-ids-ahead"], 2, "is excluded"),
        ("7", &["--no-ids-ahead"], 1, "number 7 of pool"),
    ] {
        let refused = reclaim(&[&["0", number], more].concat());
        assert_eq!(refused.code, code, "{refused:?}");
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    assert!(!directory.path().join("audit.log").exists(), "nothing was done");

    let begun = now();
    let done = json(reclaim(&["0", "1", "--no-ids-ahead", "--json"]).ok().trim());
    assert_eq!(done["done"], true, "{done}");
    let to = done["numbers"][0]["reclaimed_to"].as_str().unwrap();
    let to: jiff::Timestamp = to.parse().unwrap();
    let ahead_ms = to.as_millisecond() - i64::try_from(begun.get()).unwrap();
    assert!((10_000..60_000).contains(&ahead_ms), "{ahead_ms}");
    let trail = std::fs::read_to_string(directory.path().join("audit.log")).unwrap();
    assert_eq!(trail.lines().count(), 2, "{trail}");
    for part in [
        " audit: worker reclaim workers-2 0 who=uid ",
        "(held by mallory on elsewhere",
        "after=mark 20",
    ] {
        assert!(trail.contains(part), "{part} is not in {trail}");
    }
    let again = reclaim(&["0", "1", "--no-ids-ahead"]).ok();
    assert_eq!(again.matches("nothing to reclaim").count(), 2, "{again}");

    // The former holder is fenced.
    runtime().block_on(async {
        for lease in &gone.leases {
            let refused = gone.extend(lease, Mark::from(begun), YEAR_MS).await.unwrap_err();
            assert_eq!(refused.code(), "fenced");
        }
    });
    // The server continues by itself, above everything that nodes can have minted.
    let mut minted = server.mint(&["ids"]);
    until("the server mints by a number that was taken back", || {
        minted = server.mint(&["ids"]);
        minted.code == 0
    });
    let layout = "time=41,worker=2,sequence=20";
    let decoded = run(&["decode", "--json", "--layout", layout, minted.ok().trim()]).ok();
    let time: jiff::Timestamp = json(&decoded)["time"].as_str().unwrap().parse().unwrap();
    assert!(time >= to && time.duration_since(to).as_secs() < 60, "{time} after {to}");

    // This holder does not stop.
    let forced = reclaim(&["2", "--from-live", "--no-ids-ahead"]).ok();
    assert!(forced.contains("reclaimed, mark 20"), "{forced}");
    runtime().block_on(async {
        let lease = &live.leases[0];
        assert_eq!(live.extend(lease, lease.mark, YEAR_MS).await.unwrap_err().code(), "fenced");
    });
}

#[test]
fn unreclaimable_number_is_rejected_with_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path().to_str().unwrap();
    let missing = run(&["worker", "reclaim", "workers-10", "3", "--data-dir", dir]);
    assert_eq!((missing.code, missing.out.as_str()), (2, ""), "{}", missing.err);
    assert!(!directory.path().join("snowmint.db").exists());
    for wrong in [&["workers-10"][..], &["workers-10", "x"], &["workers-10", "-1"], &[]] {
        let refused = run(&[&["worker", "reclaim", "--data-dir", dir], wrong].concat());
        assert_eq!(refused.code, 2, "{wrong:?}: {}", refused.err);
    }
    // Marks cannot be lowered through servers.
    let server = Server::start(serve(directory.path(), &[]));
    let url = format!("snowmint://{}", server.http);
    let refused = run(&["worker", "reclaim", "workers-10", "3", "--store", &url]);
    assert_ne!(refused.code, 0, "{refused:?}");
    let none = run(&["worker", "reclaim", "workers-10", "3", "--data-dir", dir]);
    assert_eq!(none.code, 1, "{}", none.err);
    assert!(none.err.contains("number 3 of pool"), "{}", none.err);
}
