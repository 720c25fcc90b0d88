//! Secrets, which configuration names by their place: it is copied, printed and shown to people.

/// What is at `file:PATH` or `env:NAME`. What goes wrong is said without it.
pub(crate) fn at(place: &str) -> Result<String, String> {
    match place.split_once(':') {
        Some(("file", path)) => {
            std::fs::read_to_string(path).map_err(|error| format!("it cannot be read: {error}"))
        }
        Some(("env", name)) => std::env::var(name)
            .map_err(|_| "there is no such variable, or it is not text".to_owned()),
        _ => Err("write file:PATH or env:NAME".to_owned()),
    }
}
