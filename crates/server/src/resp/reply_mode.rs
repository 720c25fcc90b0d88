//! Replies that a client wants (`CLIENT REPLY`).

/// Commands that get a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReplyMode {
    /// All commands.
    #[default]
    On,
    /// None.
    Off,
    /// All but the present command, and this number of commands after it.
    Skip(u8),
}

impl ReplyMode {
    /// Skips the reply of the present command and of the next one. Without any replies, nothing
    /// changes, as in Redis.
    pub(super) fn skip_next(&mut self) {
        if *self != Self::Off {
            *self = Self::Skip(1);
        }
    }

    /// Returns whether the client gets no reply to the command that now ends.
    #[inline]
    pub(super) fn drops_reply(&mut self) -> bool {
        match *self {
            Self::On => return false,
            Self::Off => {}
            Self::Skip(0) => *self = Self::On,
            Self::Skip(more) => *self = Self::Skip(more.saturating_sub(1)),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns which commands get a reply: `s` is `CLIENT REPLY SKIP`, `f` is `OFF`, `n` is `ON`.
    fn replied(commands: &str) -> String {
        let mut mode = ReplyMode::default();
        let commands = commands.chars().filter(|command| {
            match command {
                's' => mode.skip_next(),
                'f' => mode = ReplyMode::Off,
                'n' => mode = ReplyMode::On,
                _ => {}
            }
            !mode.drops_reply()
        });
        commands.collect()
    }

    /// The expectations are what Redis 7 does.
    #[test]
    fn replies_follow_the_mode() {
        for (commands, expected) in [
            ("abc", "abc"),
            ("sab", "b"),
            ("ssab", "b"),
            ("sna", "na"),
            ("faasbnc", "nc"),
            ("sfan", "n"),
        ] {
            assert_eq!(replied(commands), expected, "{commands}");
        }
    }
}
