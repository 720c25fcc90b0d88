//! The audit trail: who changed what, or tried to, a line each, with the target `audit`.
//!
//! Callers cause these lines, as many as they send requests. So each caller has so many of a kind in a period, and so have
//! all together; what is beyond is counted, and the count is told when the period is over. How much is remembered is
//! bounded as well, however many callers there are.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use snowmint_coord::Timer;
use snowmint_coord::label::Visible;
use tokio::runtime::Handle;
use tracing::field::display;

use crate::access::Caller;

/// What is left out is told when so much time has passed since the first line.
const PERIOD_MS: u64 = 10_000;
/// The most lines of all callers in a period.
const LINES_MAX: u64 = 5_000;
/// The most callers that are told apart in a period; the others share.
const CALLERS_MAX: usize = 1_024;
/// The most callers of whom is told one by one what was left out.
const LEFT_OUT_TOLD_MAX: usize = 32;
/// The longest text of a line, in characters: a definition may have more.
const TEXT_CHARS_MAX: usize = 4_000;

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum About {
    /// Something was changed for all.
    Change,
    /// A change was refused.
    Refused,
    /// A program joined or left, took a number or gave one up.
    Program,
    /// A program moved its marks.
    Extend,
    /// A login failed.
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

    /// How many lines of it one caller has in a period.
    const fn lines_max(self) -> u64 {
        match self {
            Self::Change => 1_000,
            Self::Program => 100,
            Self::Refused | Self::Extend | Self::Login => 20,
        }
    }
}

/// A line, but for who.
#[derive(Debug, Default)]
pub(crate) struct Line {
    pub(crate) what: String,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
    /// Why it was refused.
    pub(crate) why: Option<String>,
}

/// Where lines go. Clones are the same.
#[derive(Clone)]
pub(crate) struct Trail(Arc<Shared>);

struct Shared {
    timer: Arc<dyn Timer>,
    period: Mutex<Period>,
    /// Whether a task waits for the end of the period.
    is_awaited: AtomicBool,
}

/// What was told since a period began.
#[derive(Debug, Default)]
struct Period {
    /// In elapsed time; none before the first line.
    ends_at_ms: Option<u64>,
    lines: u64,
    callers: HashMap<(About, String), Told>,
    /// Those for whom there was no place.
    others: HashMap<About, Told>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Told {
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
        Self(Arc::new(Shared {
            timer,
            period: Mutex::default(),
            is_awaited: AtomicBool::new(false),
        }))
    }

    /// Leaves a line, which is made if it is to be told.
    pub(crate) fn leave(&self, about: About, who: &Caller, line: impl FnOnce() -> Line) {
        let now_ms = self.0.timer.elapsed().get();
        let (is_told, over) = {
            let mut period = self.0.period();
            let over = period.over(now_ms);
            (period.count(about, who.without_port(), now_ms), over)
        };
        tell_left_out(over);
        if is_told {
            tell(who, line());
        } else {
            self.await_end();
        }
    }

    /// Sees to it that what was left out is told at the end of the period, whether or not more happens.
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
                let (over, is_owed) = shared.look(timer.elapsed().get());
                tell_left_out(over);
                if !is_owed {
                    return;
                }
            }
        });
    }
}

impl Shared {
    fn period(&self) -> MutexGuard<'_, Period> {
        self.period.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was left out, if the period is over, and whether more is to be told at the end of another.
    fn look(&self, now_ms: u64) -> (Vec<(About, String, u64)>, bool) {
        let mut period = self.period();
        let over = period.over(now_ms);
        let is_owed = period.is_owed();
        // While nothing more can be left out: whoever leaves it out then sees that nobody waits.
        self.is_awaited.store(is_owed, Ordering::Release);
        (over, is_owed)
    }
}

/// What is left to tell at the end.
impl Drop for Shared {
    fn drop(&mut self) {
        let over = self.period().over(u64::MAX);
        tell_left_out(over);
    }
}

impl Period {
    /// What was left out, if the period is over: a new one begins with the next line.
    fn over(&mut self, now_ms: u64) -> Vec<(About, String, u64)> {
        if self.ends_at_ms.is_none_or(|ends_at_ms| now_ms < ends_at_ms) {
            return Vec::new();
        }
        let Self { callers, others, .. } = std::mem::take(self);
        let others = others.into_iter().map(|(about, told)| (about, OTHERS.to_owned(), told));
        let callers = callers.into_iter().map(|((about, who), told)| (about, who, told));
        let all = others.chain(callers).map(|(about, who, told)| (about, who, told.left_out));
        let mut left_out: Vec<_> = all.filter(|(_, _, count)| *count > 0).collect();
        left_out.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
        for (about, _, count) in left_out.split_off(left_out.len().min(LEFT_OUT_TOLD_MAX)) {
            match left_out.iter_mut().find(|(of, who, _)| *of == about && who == OTHERS) {
                Some((_, _, all)) => *all = all.saturating_add(count),
                None => left_out.push((about, OTHERS.to_owned(), count)),
            }
        }
        left_out
    }

    /// Whether anything was left out.
    fn is_owed(&self) -> bool {
        self.callers.values().chain(self.others.values()).any(|told| told.left_out > 0)
    }

    /// Counts a line, and says whether it is told.
    fn count(&mut self, about: About, who: String, now_ms: u64) -> bool {
        self.ends_at_ms.get_or_insert(now_ms.saturating_add(PERIOD_MS));
        let key = (about, who);
        let told = if self.callers.len() < CALLERS_MAX || self.callers.contains_key(&key) {
            self.callers.entry(key).or_default()
        } else {
            self.others.entry(about).or_default()
        };
        let is_told = told.lines < about.lines_max() && self.lines < LINES_MAX;
        if is_told {
            told.lines += 1;
            self.lines += 1;
        } else {
            told.left_out += 1;
        }
        is_told
    }
}

/// Whoever has no place in the table.
const OTHERS: &str = "others";

fn tell_left_out(left_out: Vec<(About, String, u64)>) {
    for (about, who, count) in left_out {
        let (who, about) = (Visible(&who), about.name());
        let seconds = PERIOD_MS / 1_000;
        tracing::info!(target: "audit", %who, about, count, "lines left out in {seconds} s");
    }
}

fn tell(who: &Caller, line: Line) {
    let Line { what, before, after, why } = line;
    let [before, after, why] =
        [before, after, why].map(|text| text.map(|text| display(Seen(text))));
    let (who, what) = (Seen(who.to_string()), Seen(what));
    tracing::info!(target: "audit", %who, before, after, why, "{what}");
}

/// A text that others may have chosen.
struct Seen(String);

impl Display for Seen {
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
    use snowmint_coord::ManualTimer;

    use super::*;

    fn count(period: &mut Period, about: About, who: &str, now_ms: u64) -> bool {
        period.count(about, who.to_owned(), now_ms)
    }

    #[test]
    fn each_caller_has_so_many_lines_of_a_kind_and_the_rest_is_counted() {
        let mut period = Period::default();
        let max = About::Login.lines_max();
        for line in 0..max + 7 {
            assert_eq!(count(&mut period, About::Login, "a", 5), line < max);
        }
        assert!(count(&mut period, About::Login, "b", 6), "another caller by itself");
        assert!(count(&mut period, About::Refused, "a", 7), "another kind by itself");
        assert!(period.over(5 + PERIOD_MS - 1).is_empty());
        assert_eq!(period.over(5 + PERIOD_MS), [(About::Login, "a".to_owned(), 7)]);
        assert!(period.over(u64::MAX).is_empty(), "told once");
        assert!(count(&mut period, About::Login, "a", 20_000), "a new period");
    }

    #[test]
    fn many_callers_take_bounded_memory_and_lines() {
        let mut period = Period::default();
        let many = 20 * u64::try_from(CALLERS_MAX).unwrap();
        let told =
            (0..many).filter(|n| count(&mut period, About::Login, &n.to_string(), 0)).count();
        let mut told = u64::try_from(told).unwrap();
        assert_eq!(period.callers.len(), CALLERS_MAX);
        assert_eq!(told, u64::try_from(CALLERS_MAX).unwrap() + About::Login.lines_max());
        // More of those with a place have something left out than are told one by one.
        let each = About::Login.lines_max() + 10;
        let several = 2 * u64::try_from(LEFT_OUT_TOLD_MAX).unwrap();
        for n in (0..several).map(|n| n.to_string()) {
            told +=
                (0..each).map(|_| u64::from(count(&mut period, About::Login, &n, 0))).sum::<u64>();
        }
        for n in 0..100 {
            for _ in 0..1_000 {
                count(&mut period, About::Change, &n.to_string(), 0);
            }
        }
        let lines = period.lines;
        assert_eq!(
            lines,
            told + About::Change.lines_max(),
            "those without a place share one count"
        );
        let left_out = period.over(u64::MAX);
        assert!(left_out.len() <= LEFT_OUT_TOLD_MAX + 5, "{}", left_out.len());
        let all: u64 = left_out.iter().map(|(_, _, count)| count).sum();
        assert_eq!(all, many + several * each + 100_000 - lines, "nothing is forgotten");
    }

    /// Each keeps within its own lines, and together they would have more than all may have.
    #[test]
    fn all_callers_together_have_so_many_lines() {
        let mut period = Period::default();
        let max = About::Change.lines_max();
        let told: Vec<u64> = ["a", "b", "c", "d", "e", "f"]
            .iter()
            .map(|who| {
                let told = (0..max).map(|_| count(&mut period, About::Change, who, 0));
                told.map(u64::from).sum::<u64>()
            })
            .collect();
        assert!(period.callers.len() < CALLERS_MAX, "each has a place of its own");
        assert_eq!(told, [max, max, max, max, max, 0]);
        assert_eq!((told.iter().sum::<u64>(), period.lines), (LINES_MAX, LINES_MAX));
        assert!(!count(&mut period, About::Login, "g", 1), "nor has any other kind");
        let left_out = [(About::Change, "f".to_owned(), max), (About::Login, "g".to_owned(), 1)];
        assert_eq!(period.over(PERIOD_MS), left_out);
    }

    /// The wait for the end of a period may begin late in it, and end in the middle of the next.
    #[tokio::test]
    async fn what_is_left_out_is_told_though_nothing_more_happens() {
        let timer = ManualTimer::new(0);
        let trail = Trail::new(Arc::new(timer.clone()));
        let caller = Caller::anyone();
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
                trail.leave(About::Login, &caller, Line::default);
            }
        };
        let is_owed = || trail.0.period().is_owed();
        for _ in 0..2 {
            trail.leave(About::Login, &caller, Line::default);
            assert!(!is_owed() && !trail.0.is_awaited.load(Ordering::Acquire));
            pass(PERIOD_MS - 1_000).await;
            fill();
            pass(1_002).await;
            fill();
            pass(PERIOD_MS - 1_000).await;
            assert!(is_owed(), "the second period has not ended");
            pass(PERIOD_MS).await;
            assert!(!is_owed(), "nobody told what was left out");
        }
    }

    #[test]
    fn what_others_chose_is_seen_in_one_line_and_cut() {
        assert_eq!(Seen("a\u{1b}[2J\nb".into()).to_string(), "a\\u{1b}[2J\\nb");
        let long = Seen("é".repeat(TEXT_CHARS_MAX + 10)).to_string();
        assert_eq!(long.chars().count(), TEXT_CHARS_MAX + 1);
    }
}
