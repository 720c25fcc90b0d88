//! Checks of a configuration before anything starts.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::config::{Config, Defined};
use crate::open::{node, store};
use crate::terminal::exit::{Failure, Outcome};

/// Levels of the log, from nothing to everything.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Returns the log's filter, and checks everything that can be checked before a start. SIGHUP runs
/// the same checks, so a mistake is an error in both.
pub(super) fn checked(config: &Config) -> Outcome<EnvFilter> {
    let filter = filter(config)?;
    store::check_url(config)?;
    store::check_shown(config)?;
    node::keyrings(&config.disguise.keys)?;
    store::ConfiguredConnector::all(config)?;
    check_places(config)?;
    Ok(filter)
}

pub(super) fn filter(config: &Config) -> Outcome<EnvFilter> {
    let filter = &config.log.filter;
    let refused = |reason: String| Failure::usage(format!("log.filter = {filter:?}: {reason}"));
    check_words(filter).map_err(refused)?;
    // The audit trail stays on unless the filter names it itself.
    EnvFilter::try_new(format!("audit=info,{filter}")).map_err(|error| refused(error.to_string()))
}

/// Rejects words that are not levels. They would count as names of log targets, and a misspelt
/// level would silence everything else, even errors.
fn check_words(filter: &str) -> Result<(), String> {
    // Brackets hold names of spans and fields, which may be any.
    if filter.contains(['[', '{']) {
        return Ok(());
    }
    let known = LEVELS.join(", ");
    if filter.trim().is_empty() {
        return Err(format!("no level given; use {known}"));
    }
    let is_level = |word: &str| word.parse::<LevelFilter>().is_ok();
    let words = filter.split(',').map(str::trim).filter(|word| !word.is_empty());
    let Some(word) = words.filter(|word| !word.contains('=')).find(|word| !is_level(word)) else {
        return Ok(());
    };
    let lower = word.to_ascii_lowercase();
    let near = LEVELS.iter().find(|level| lower.get(..2) == level.get(..2));
    let near = near.map(|level| format!(" (did you mean {level}?)")).unwrap_or_default();
    Err(format!(
        "unknown level {word:?}{near}; expected {known}, or {word}=trace for a part of the program"
    ))
}

/// Rejects sources of the file that could not be opened here, since the file lacks what they name.
fn check_places(config: &Config) -> Outcome {
    // Servers resolve the names to their own stores.
    if snowmint_client::is_url(config.store_url().text()) {
        return Ok(());
    }
    for (source, Defined { spec, origin }) in &config.defined {
        let refused = |key: &str, name: &str, section: &str| {
            Failure::usage(format!(
                "{origin}: sources.{source}.{key}: {name:?} is not in [{section}]; add it there \
                 with its URL"
            ))
        };
        let stores = spec.stores.iter().filter(|_| spec.is_enabled());
        // Where a store mints, its name has the worker number of its IDs after it.
        let stores =
            stores.flat_map(|stores| stores.split(',')).filter_map(|it| it.split('=').next());
        let mut stores = stores.map(str::trim).filter(|store| !store.is_empty());
        if let Some(store) = stores.find(|store| !config.stores.contains_key(*store)) {
            return Err(refused("stores", store, "stores"));
        }
        let drawn = spec.upstream.as_ref().filter(|_| spec.is_enabled());
        if let Some((system, _)) = drawn.and_then(|drawn| drawn.split_once(':'))
            && !config.upstreams.contains_key(system)
        {
            return Err(refused("upstream", system, "upstreams"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Given;

    fn refused(keys: &[(&'static str, &str)]) -> Option<String> {
        let given = keys.iter().map(|(key, value)| Given::flag(key, key, *value)).collect();
        match Config::load(None, given).and_then(|config| checked(&config)) {
            Ok(_) => None,
            Err(Failure::Explained { message, .. }) => Some(message),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn unknown_word_is_rejected_as_the_filter() {
        for (filter, parts) in [
            ("warning", &["log.filter = \"warning\"", "did you mean warn?", "trace"][..]),
            (
                "verbose",
                &["unknown level \"verbose\"", "off, error, warn, info, debug", "verbose=trace"],
            ),
            ("info,snowmint_server", &["\"snowmint_server\"", "snowmint_server=trace"]),
            ("", &["log.filter = \"\"", "off, error, warn"]),
            ("info,x=loud", &["log.filter = \"info,x=loud\""]),
        ] {
            let message = refused(&[("log.filter", filter)]).expect(filter);
            for part in parts {
                assert!(message.contains(part), "{part}: {message}");
            }
        }
        for filter in [
            "info",
            "WARN",
            "off",
            "info,audit=off",
            "snowmint_server=debug",
            "info,h2=warn",
            "[span{field}]=info",
        ] {
            assert_eq!(refused(&[("log.filter", filter)]), None, "{filter}");
        }
    }

    #[test]
    fn required_stores_of_sources_are_checked() {
        let secondary = ("sources.a.stores", "east, west");
        let segment = ("sources.a.kind", "segment");
        let message = refused(&[segment, secondary, ("stores.west", "sqlite:east.db")]).unwrap();
        for part in ["sources.a", "stores", "\"east\"", "[stores]"] {
            assert!(message.contains(part), "{message}");
        }
        let minted = [("sources.a.mint", "store"), ("sources.a.stores", "north=3,=4")];
        assert!(refused(&minted).unwrap().contains("\"north\""));
        let message = refused(&[segment, ("sources.a.upstream", "old:k")]).unwrap();
        for part in ["sources.a.upstream: ", "\"old\"", "[upstreams]"] {
            assert!(message.contains(part), "{message}");
        }
        let off = ("sources.a.enabled", "false");
        assert_eq!(
            refused(&[segment, secondary, off]),
            None,
            "a disabled source needs no upstream"
        );
        // Servers resolve the names to their own stores.
        assert_eq!(refused(&[segment, secondary, ("store.url", "snowmint://h:1")]), None);
        let both = [("stores.east", "sqlite:east.db"), ("stores.west", "sqlite:west.db")];
        assert_eq!(refused(&[&[segment, secondary][..], &both].concat()), None);
    }

    #[test]
    fn a_store_without_a_file_is_refused() {
        for url in ["sqlite:", "sqlite://"] {
            let message = refused(&[("store.url", url)]).expect(url);
            assert!(message.contains("store.url") && message.contains("sqlite:PATH"), "{message}");
        }
    }
}
