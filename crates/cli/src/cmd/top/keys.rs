//! Keys of the live view.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::state::Action;

/// Returns a key's meaning.
pub(super) fn action(key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Action::Quit);
    }
    match key.code {
        KeyCode::Char('q') => Some(Action::Quit),
        KeyCode::Char('j') | KeyCode::Down => Some(Action::Down),
        KeyCode::Char('k') | KeyCode::Up => Some(Action::Up),
        KeyCode::Tab => Some(Action::NextTable),
        KeyCode::BackTab => Some(Action::PreviousTable),
        KeyCode::Char('s') => Some(Action::Sort),
        KeyCode::Char('p') => Some(Action::Pause),
        KeyCode::Char('?') => Some(Action::Help),
        _ => None,
    }
}
