//! The audit trail: a line with the target `audit` for each change, and for each attempt, with its
//! caller.
//!
//! Callers cause these lines, at the rate of their requests. So the lines of a kind are bounded in
//! each period, for each caller and for all together. The trail counts lines beyond the bounds and
//! logs the count at the end of the period. Its memory is bounded as well, for any number of
//! callers.
//!
//! A flood of one kind cannot hide lines of another: each kind of line has its own bounds, and
//! callers with a token have theirs apart from callers without one. A token is one caller, from
//! however many addresses. Tokens share no bound on changes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use snowmint_coord::label::Visible;
use snowmint_coord::{Timer, lock};
use tokio::runtime::Handle;
use tracing::field::display;

/// Length of a period, which begins with its first line; then the omitted lines are counted in the
/// log.
const PERIOD_MS: u64 = 10_000;
/// Most callers of a kind that are counted separately in a period; the rest share one count.
const CALLERS_MAX: usize = 1_024;
/// Most callers of a kind whose omitted lines are reported separately.
const LEFT_OUT_LOGGED_MAX: usize = 32;
/// Longest text of a line, in characters: a definition may have more.
const TEXT_CHARS_MAX: usize = 4_000;

/// Subject of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum About {
    /// A change for all callers.
    Change,
    /// A rejected change.
    Refused,
    /// A program joined or left, took a number or released one.
    Program,
    /// A program moved its marks.
    Extend,
    /// A failed login.
    Login,
}

impl About {
    const fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Refused => "refused change",
            Self::Program => "program",
            Self::Extend => "extend",
            Self::Login => "failed login",
        }
    }

    /// Returns the most lines of one caller in a period.
    const fn lines_max(self) -> u64 {
        match self {
            Self::Change => 1_000,
            Self::Program => 100,
            Self::Refused | Self::Extend | Self::Login => 20,
        }
    }

    /// Returns the most lines of all callers of a kind in a period.
    const fn all_max(self) -> u64 {
        match self {
            Self::Change | Self::Program | Self::Extend => 5_000,
            Self::Refused | Self::Login => 1_000,
        }
    }
}

/// Lines that have bounds of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LineKind {
    about: About,
    has_token: bool,
}

impl LineKind {
    /// Returns whether its callers share bounds. Tokens share none on changes: the configuration
    /// bounds their number, and no token may hide the changes of another.
    fn is_shared(self) -> bool {
        !(self.has_token && self.about == About::Change)
    }

    /// Returns the name under which the lines of a caller are counted. A token has the same number
    /// of lines from many addresses as from one: otherwise one token could use up the lines that
    /// all tokens share.
    fn counted(self, who: &dyn Audited) -> String {
        match who.name().filter(|_| self.has_token) {
            Some(name) => format!("token {name}"),
            None => who.at_network(),
        }
    }
}

/// A party with lines in the trail; its text names it.
pub(crate) trait Audited: Display {
    /// Returns whether it has shown a valid token.
    fn has_a_token(&self) -> bool;
    /// Returns the name of its token.
    fn name(&self) -> Option<&str>;
    /// Returns its name with its network, the same for neighbouring addresses.
    fn at_network(&self) -> String;
}

/// A line, without its caller.
#[derive(Debug, Default)]
pub(crate) struct AuditLine {
    pub(crate) what: String,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
    /// Error of a rejected change.
    pub(crate) why: Option<String>,
}

/// Writer of the lines. Clones share it.
#[derive(Clone)]
pub(crate) struct Trail(Arc<TrailInner>);

struct TrailInner {
    timer: Arc<dyn Timer>,
    period: Mutex<Period>,
    /// Whether a task waits for the end of the period.
    is_awaited: AtomicBool,
}

/// Lines counted since a period began.
#[derive(Debug, Default)]
struct Period {
    /// In elapsed time; `None` before the first line.
    ends_at_ms: Option<u64>,
    kinds: BTreeMap<LineKind, LineCounts>,
}

/// Lines counted of one kind.
#[derive(Debug, Default)]
struct LineCounts {
    all: u64,
    callers: HashMap<String, CallerLines>,
    /// Callers beyond [`CALLERS_MAX`].
    others: CallerLines,
}

#[derive(Clone, Copy, Debug, Default)]
struct CallerLines {
    lines: u64,
    left_out: u64,
}

impl fmt::Debug for Trail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trail")
    }
}

impl Trail {
    pub(crate) fn new(timer: Arc<dyn Timer>) -> Self {
        Self(Arc::new(TrailInner {
            timer,
            period: Mutex::default(),
            is_awaited: AtomicBool::new(false),
        }))
    }

    /// Writes a line, which `line` makes only where the bounds permit it.
    pub(crate) fn leave(&self, about: About, who: &dyn Audited, line: impl FnOnce() -> AuditLine) {
        let now_ms = self.0.timer.elapsed().get();
        let kind = LineKind { about, has_token: who.has_a_token() };
        let counted = kind.counted(who);
        let (is_logged, over) = {
            let mut period = lock(&self.0.period);
            let over = period.over(now_ms);
            (period.count(kind, counted, now_ms), over)
        };
        log_left_out(over);
        if is_logged {
            log(who, line());
        } else {
            self.await_end();
        }
    }

    /// Ensures that omitted lines are reported at the end of the period, even if nothing more
    /// happens.
    fn await_end(&self) {
        let Ok(runtime) = Handle::try_current() else { return };
        if self.0.is_awaited.swap(true, Ordering::AcqRel) {
            return;
        }
        let (timer, shared) = (Arc::clone(&self.0.timer), Arc::downgrade(&self.0));
        runtime.spawn(async move {
            loop {
                timer.sleep_ms(PERIOD_MS).await;
                let Some(shared) = shared.upgrade() else { return };
                let (over, has_left_out) = shared.poll(timer.elapsed().get());
                log_left_out(over);
                if !has_left_out {
                    return;
                }
            }
        });
    }
}

impl TrailInner {
    /// Returns the omitted lines, if the period is over, and whether a later period has more to
    /// report.
    fn poll(&self, now_ms: u64) -> (Vec<(About, String, u64)>, bool) {
        let mut period = lock(&self.period);
        let over = period.over(now_ms);
        let has_left_out = period.has_left_out();
        // Stored while nothing more can be omitted: the next omission then sees that no task waits.
        self.is_awaited.store(has_left_out, Ordering::Release);
        (over, has_left_out)
    }
}

/// Reports the rest at the end.
impl Drop for TrailInner {
    fn drop(&mut self) {
        let over = lock(&self.period).over(u64::MAX);
        log_left_out(over);
    }
}

impl Period {
    /// Returns the omitted lines, if the period is over; the next line begins a new one.
    fn over(&mut self, now_ms: u64) -> Vec<(About, String, u64)> {
        if self.ends_at_ms.is_none_or(|ends_at_ms| now_ms < ends_at_ms) {
            return Vec::new();
        }
        let kinds = std::mem::take(self).kinds.into_iter();
        let left_out = kinds.flat_map(|(kind, lines)| {
            let left_out = lines.left_out().into_iter();
            left_out.map(move |(who, count)| (kind.about, who, count))
        });
        left_out.collect()
    }

    /// Returns whether anything was omitted.
    fn has_left_out(&self) -> bool {
        self.kinds.values().any(LineCounts::has_left_out)
    }

    /// Counts a line, and returns whether it is written.
    fn count(&mut self, kind: LineKind, who: String, now_ms: u64) -> bool {
        self.ends_at_ms.get_or_insert(now_ms.saturating_add(PERIOD_MS));
        self.kinds.entry(kind).or_default().count(kind, who)
    }
}

impl LineCounts {
    fn count(&mut self, kind: LineKind, who: String) -> bool {
        let has_place = !kind.is_shared()
            || self.callers.len() < CALLERS_MAX
            || self.callers.contains_key(&who);
        let caller_lines =
            if has_place { self.callers.entry(who).or_default() } else { &mut self.others };
        let has_room = !kind.is_shared() || self.all < kind.about.all_max();
        let is_logged = has_room && caller_lines.lines < kind.about.lines_max();
        if is_logged {
            caller_lines.lines += 1;
            self.all += 1;
        } else {
            caller_lines.left_out += 1;
        }
        is_logged
    }

    fn has_left_out(&self) -> bool {
        self.callers.values().chain([&self.others]).any(|caller_lines| caller_lines.left_out > 0)
    }

    /// Returns the omitted lines by caller: those with most separately, the rest together.
    fn left_out(self) -> Vec<(String, u64)> {
        let callers =
            self.callers.into_iter().map(|(who, caller_lines)| (who, caller_lines.left_out));
        let mut left_out: Vec<_> = callers.filter(|(_, count)| *count > 0).collect();
        left_out.sort_by_key(|(_, count)| Reverse(*count));
        let rest = left_out.split_off(left_out.len().min(LEFT_OUT_LOGGED_MAX));
        let others =
            rest.iter().fold(self.others.left_out, |all, (_, count)| all.saturating_add(*count));
        if others > 0 {
            left_out.push((OTHERS.to_owned(), others));
        }
        left_out
    }
}

/// Name for callers without an entry of their own.
const OTHERS: &str = "others";

fn log_left_out(left_out: Vec<(About, String, u64)>) {
    for (about, who, count) in left_out {
        let (who, about) = (Visible(&who), about.name());
        let seconds = PERIOD_MS / 1_000;
        tracing::info!(target: "audit", %who, about, count, "lines left out in {seconds} s");
    }
}

fn log(who: &dyn Audited, line: AuditLine) {
    let AuditLine { what, before, after, why } = line;
    let [before, after, why] =
        [before, after, why].map(|text| text.map(|text| display(VisibleText(text))));
    let (who, what) = (VisibleText(who.to_string()), VisibleText(what));
    tracing::info!(target: "audit", %who, before, after, why, "{what}");
}

/// A text that callers may have chosen.
struct VisibleText(String);

impl Display for VisibleText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(TEXT_CHARS_MAX) {
            None => Visible(&self.0).fmt(f),
            Some((end, _)) => {
                write!(f, "{}…", Visible(self.0.get(..end).unwrap_or_default()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr, SocketAddr};

    use snowmint_coord::ManualTimer;

    use super::*;
    use crate::access::{Access, AnonymousReason, Caller, TokenHash, TokenSettings, Tokens};
    use crate::clients::tracker::TrackedConnection;

    const fn without_token(about: About) -> LineKind {
        LineKind { about, has_token: false }
    }

    const TOKENS_CHANGE: LineKind = LineKind { about: About::Change, has_token: true };

    fn count(period: &mut Period, about: About, who: &str, now_ms: u64) -> bool {
        period.count(without_token(about), who.to_owned(), now_ms)
    }

    /// Returns a connection from an address.
    fn from(address: IpAddr) -> Arc<TrackedConnection> {
        Arc::new(TrackedConnection::new(1, SocketAddr::new(address, 51_334), 0))
    }

    fn anonymous(address: IpAddr) -> Caller {
        Caller::anonymous(AnonymousReason::NoSuchToken).over(&from(address))
    }

    /// Returns whether a line is written.
    fn is_logged(trail: &Trail, about: About, who: &Caller) -> bool {
        let mut is_logged = false;
        trail.leave(about, who, || {
            is_logged = true;
            AuditLine::default()
        });
        is_logged
    }

    #[test]
    fn lines_per_caller_and_kind_are_bounded_and_counted() {
        let mut period = Period::default();
        let max = About::Login.lines_max();
        for line in 0..max + 7 {
            assert_eq!(count(&mut period, About::Login, "a", 5), line < max);
        }
        assert!(count(&mut period, About::Login, "b", 6), "another caller by itself");
        assert!(count(&mut period, About::Refused, "a", 7), "another kind by itself");
        assert!(period.over(5 + PERIOD_MS - 1).is_empty());
        assert_eq!(period.over(5 + PERIOD_MS), [(About::Login, "a".to_owned(), 7)]);
        assert!(period.over(u64::MAX).is_empty(), "recorded once");
        assert!(count(&mut period, About::Login, "a", 20_000), "a new period");
    }

    #[test]
    fn many_callers_need_bounded_memory_and_lines() {
        let mut period = Period::default();
        let many = 20 * u64::try_from(CALLERS_MAX).unwrap();
        let kinds = [About::Change, About::Login].map(without_token);
        for kind in kinds {
            // Callers after the first have no entry and share one count; most of the first have
            // omitted lines, too.
            for line in 0..3 * many {
                period.count(kind, (line % many).to_string(), 0);
            }
            for _ in 0..100 * LEFT_OUT_LOGGED_MAX {
                (0..2 * LEFT_OUT_LOGGED_MAX).for_each(|who| {
                    period.count(kind, who.to_string(), 0);
                });
            }
            assert_eq!(period.kinds[&kind].callers.len(), CALLERS_MAX);
        }
        let logged = kinds.map(|kind| period.kinds[&kind].all);
        for (lines, kind) in logged.iter().zip(kinds) {
            assert!(*lines <= kind.about.all_max(), "{lines} lines of {kind:?}");
        }
        let left_out = period.over(u64::MAX);
        assert_eq!(left_out.len(), 2 * (LEFT_OUT_LOGGED_MAX + 1), "and the others of each");
        let sent = 2
            * (3 * many + u64::try_from(200 * LEFT_OUT_LOGGED_MAX * LEFT_OUT_LOGGED_MAX).unwrap());
        let all: u64 = left_out.iter().map(|(_, _, count)| count).sum();
        assert_eq!(all, sent - logged.iter().sum::<u64>(), "nothing is forgotten");
    }

    /// Each keeps within its own lines, and together they exceed the bound of all.
    #[test]
    fn lines_of_a_kind_are_bounded_for_all_callers() {
        let mut period = Period::default();
        let max = About::Change.lines_max();
        let logged: Vec<u64> = ["a", "b", "c", "d", "e", "f"]
            .iter()
            .map(|who| {
                let logged = (0..max).map(|_| count(&mut period, About::Change, who, 0));
                logged.map(u64::from).sum::<u64>()
            })
            .collect();
        assert_eq!(logged, [max, max, max, max, max, 0]);
        assert_eq!(logged.iter().sum::<u64>(), About::Change.all_max());
        assert!(count(&mut period, About::Login, "g", 1), "another kind has lines of its own");
        assert_eq!(period.over(PERIOD_MS), [(About::Change, "f".to_owned(), max)]);
    }

    /// An attack: guesses and rejected changes from everywhere, then a change and a rejection that
    /// count.
    #[test]
    fn flood_of_guesses_hides_no_change_or_token_error() {
        let timer: Arc<dyn Timer> = Arc::new(ManualTimer::new(0));
        let trail = Trail::new(Arc::clone(&timer));
        let here = IpAddr::from([10, 0, 0, 1]);
        let ops = admins(&["ops"], timer).caller(b"ops", &from(here));
        let floods = [About::Login, About::Refused, About::Change, About::Program, About::Extend];
        for host in 0..6_000_u32 {
            let anonymous = anonymous(IpAddr::from(host.to_be_bytes()));
            for about in floods {
                is_logged(&trail, about, &anonymous);
            }
        }
        for about in floods {
            assert!(!is_logged(&trail, about, &anonymous(here)), "the flood of {about:?} was none");
            assert!(is_logged(&trail, about, &ops), "{about:?} of a token is hidden");
        }
    }

    /// More tokens than separately counted callers, and more changes than the bound of all callers
    /// elsewhere; and one token from more addresses.
    #[test]
    fn changes_by_a_token_are_logged_despite_other_tokens() {
        let mut period = Period::default();
        for token in 0..2 * CALLERS_MAX {
            for _ in 0..5 {
                period.count(TOKENS_CHANGE, format!("token t{token}"), 0);
            }
        }
        for _ in 0..About::Change.lines_max() {
            assert!(period.count(TOKENS_CHANGE, "token ops".to_owned(), 0));
        }
        assert!(!period.count(TOKENS_CHANGE, "token ops".to_owned(), 0), "by itself it is bounded");

        let timer: Arc<dyn Timer> = Arc::new(ManualTimer::new(0));
        let trail = Trail::new(Arc::clone(&timer));
        let access = admins(&["team"], timer);
        let logged = (0..2_000_u32).filter(|host| {
            let team = access.caller(b"team", &from(IpAddr::from(host.to_be_bytes())));
            is_logged(&trail, About::Change, &team)
        });
        assert_eq!(u64::try_from(logged.count()).unwrap(), About::Change.lines_max());
    }

    /// A flood of one token, from more addresses than are counted separately.
    #[test]
    fn a_token_from_many_addresses_hides_nothing_of_another() {
        let timer: Arc<dyn Timer> = Arc::new(ManualTimer::new(0));
        let trail = Trail::new(Arc::clone(&timer));
        let access = admins(&["team", "ops"], timer);
        let ops = access.caller(b"ops", &from(IpAddr::from([10, 0, 0, 1])));
        for about in [About::Refused, About::Login, About::Program, About::Extend] {
            let logged = (0..2_000_u32).filter(|host| {
                let team = access.caller(b"team", &from(IpAddr::from(host.to_be_bytes())));
                is_logged(&trail, about, &team)
            });
            assert_eq!(u64::try_from(logged.count()).unwrap(), about.lines_max(), "{about:?}");
            assert!(is_logged(&trail, about, &ops), "{about:?} of another token is hidden");
        }
    }

    /// The owner of one machine in a network has all of its addresses.
    #[test]
    fn a_network_of_ipv6_is_one_caller() {
        let trail = Trail::new(Arc::new(ManualTimer::new(0)));
        let login = |address: Ipv6Addr| is_logged(&trail, About::Login, &anonymous(address.into()));
        let network = |number, host| Ipv6Addr::new(0x2001, 0xdb8, 0, number, 0, 0, 0, host);
        let logged = (0..1_000).filter(|host| login(network(1, *host))).count();
        assert_eq!(u64::try_from(logged).unwrap(), About::Login.lines_max());
        assert!(login(network(2, 0)), "another network by itself");
        let over = lock(&trail.0.period).over(u64::MAX);
        let who = "nobody at network 2001:db8:0:1::/64".to_owned();
        assert_eq!(over, [(About::Login, who, 1_000 - About::Login.lines_max())]);
    }

    /// Returns tokens that may change everything; the secret of each is its name.
    fn admins(names: &[&str], timer: Arc<dyn Timer>) -> Access {
        let token = |name: &&str| TokenSettings {
            hashes: vec![TokenHash::of(name.as_bytes()).to_string()],
            grants: vec!["admin *".to_owned()],
            ..TokenSettings::default()
        };
        let tokens = names.iter().map(|name| ((*name).to_owned(), token(name))).collect();
        Access::new("prod", &Tokens { tokens, ..Tokens::default() }, timer).unwrap()
    }

    /// The wait for the end of a period may begin late in it, and end in the middle of the next.
    #[tokio::test]
    async fn omitted_lines_are_reported_without_further_events() {
        let timer = ManualTimer::new(0);
        let trail = Trail::new(Arc::new(timer.clone()));
        let caller = Caller::unrestricted();
        let settle = async || {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        };
        let pass = async |ms| {
            settle().await;
            timer.advance_ms(ms);
            settle().await;
        };
        let fill = || {
            for _ in 0..=About::Login.lines_max() {
                trail.leave(About::Login, &caller, AuditLine::default);
            }
        };
        let has_left_out = || lock(&trail.0.period).has_left_out();
        for _ in 0..2 {
            trail.leave(About::Login, &caller, AuditLine::default);
            assert!(!has_left_out() && !trail.0.is_awaited.load(Ordering::Acquire));
            pass(PERIOD_MS - 1_000).await;
            fill();
            pass(1_002).await;
            fill();
            pass(PERIOD_MS - 1_000).await;
            assert!(has_left_out(), "the second period has not ended");
            pass(PERIOD_MS).await;
            assert!(!has_left_out(), "no line reports what was left out");
        }
    }

    #[test]
    fn caller_text_is_escaped_and_cut() {
        assert_eq!(VisibleText("a\u{1b}[2J\nb".into()).to_string(), "a\\u{1b}[2J\\nb");
        let long = VisibleText("é".repeat(TEXT_CHARS_MAX + 10)).to_string();
        assert_eq!(long.chars().count(), TEXT_CHARS_MAX + 1);
    }
}
