//! `snowmint import tinyid --tokens`: the tokens of Tinyid's clients, in the form of the
//! configuration.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use snowmint_server::TokenHash;
use snowmint_stores::legacy::{LegacyDatabase, TokenGrant};
use snowmint_wire::error::Code;
use toml::Value;

use super::common::{Common, present};
use crate::open::store;
use crate::terminal::exit::{Failure, Outcome, complain};
use crate::terminal::output;

/// Prints the business types of each token in `tiny_id_token`, under the token's hash, since the
/// file is copied, printed and shown to people.
pub(super) fn print(common: &Common) -> Outcome {
    let table = table(store::runtime()?.block_on(read(common))?)?;
    let lines = table.iter().map(|(hash, types)| json!({ "hash": hash, "types": types }));
    output::print(common.json, lines, |out| {
        out.line("[compat.tinyid.tokens]")?;
        table.iter().try_for_each(|(hash, types)| {
            let types = types.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            out.line(format_args!("{} = {}", Value::from(hash.as_str()), Value::from(types)))
        })
    })
}

async fn read(common: &Common) -> Outcome<Vec<TokenGrant>> {
    let mut all = Vec::new();
    for url in &common.from {
        let database = LegacyDatabase::open(url)?;
        let Some(found) = present(database.tokens().await)? else {
            let label = database.label();
            return Err(Failure::no(
                Code::NotFound,
                format!("{label} has no table tiny_id_token; correct --from"),
            ));
        };
        all.extend(found);
    }
    Ok(all)
}

/// Returns the business types of each hash.
fn table(grants: Vec<TokenGrant>) -> Outcome<BTreeMap<String, BTreeSet<String>>> {
    let (mut table, mut guessed) = (BTreeMap::<_, BTreeSet<_>>::new(), BTreeSet::new());
    for TokenGrant { token, key } in grants {
        if token.is_empty() {
            complain(format_args!("an empty token with the business type {key:?} is left out"));
            continue;
        }
        if key.trim() != key || key.is_empty() || key == "*" || key.contains(',') {
            return Err(Failure::refused(
                Code::Unsupported,
                format!(
                    "business type {key:?} of table tiny_id_token has a comma, blanks at its ends, or \
                 is \"*\"; rename it"
                ),
            ));
        }
        let hash = TokenHash::of(token.as_bytes()).to_string();
        if TokenHash::of_new(&token).is_err() {
            guessed.insert(hash.clone());
        }
        table.entry(hash).or_default().insert(key);
    }
    if table.is_empty() {
        return Err(Failure::no(Code::NotFound, "other system has no token to import"));
    }
    if !guessed.is_empty() {
        complain(format_args!(
            "{} of {} tokens can be guessed from their hashes, since they are short or repeat few characters: \
             give their clients new ones (snowmint token new)",
            guessed.len(),
            table.len()
        ));
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(token: &str, key: &str) -> TokenGrant {
        TokenGrant { token: token.into(), key: key.into() }
    }

    #[test]
    fn a_token_has_all_its_business_types_under_its_hash() {
        let all = [("one", "b"), ("two", "b"), ("one", "a"), ("one", "a"), ("", "c")];
        let table = table(all.map(|(token, key)| grant(token, key)).into()).unwrap();
        let types: Vec<_> = table.into_iter().collect();
        let of = |token: &str, types: &[&str]| {
            let types = types.iter().map(|name| (*name).to_owned()).collect();
            (TokenHash::of(token.as_bytes()).to_string(), types)
        };
        let mut wanted = [of("one", &["a", "b"]), of("two", &["b"])];
        wanted.sort();
        assert_eq!(types, wanted);
        for key in ["a,b", "*", " a", ""] {
            assert!(super::table(vec![grant("one", key)]).is_err(), "{key:?}");
        }
        assert!(super::table(Vec::new()).is_err());
    }
}
