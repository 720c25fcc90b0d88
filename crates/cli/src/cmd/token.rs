//! `snowmint token`: tokens for the file of tokens.

use std::io::Read as _;

use clap::{Args, Subcommand};
use serde_json::json;
use snowmint_coord::random;
use snowmint_server::{TokenHash, certificate_names};
use snowmint_wire::error::Code;

use crate::system::secret::TOKEN_PREFIX;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::output::print;

/// Longest token that is read.
const TOKEN_BYTES_MAX: u64 = 4_096;
/// Longest file of certificates that is read.
const CERTIFICATE_BYTES_MAX: u64 = 1 << 20;

/// Make tokens, and the hashes by which servers know them.
///
/// A server's file of tokens (tokens.file) has the hash. The client keeps the token itself: this
/// command reads it from SNOWMINT_TOKEN or from the file in SNOWMINT_TOKEN_FILE. A certificate can
/// replace a token, by one of its names.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint token new
  snowmint token new --json
  snowmint token hash < token.txt
  snowmint token names < client.pem
  SNOWMINT_TOKEN_FILE=token.txt snowmint mint orders --server https://ids.example:7700")]
pub(crate) struct Token {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a random token of 256 bits. It is shown only once.
    New {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the hash of a token on standard input; on the command line other users could see it.
    Hash {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the names of a client's certificate (PEM) on standard input, in the form of
    /// `certificates` in the file of tokens. If several names stand for tokens, the first counts.
    Names {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

impl Token {
    pub(crate) fn run(self) -> Outcome {
        match self.command {
            TokenCommand::New { json } => {
                let token = new()?;
                let hash = TokenHash::of(token.as_bytes());
                print(json, [json!({ "token": token, "hash": hash.to_string() })], |out| {
                    out.line(format_args!("token  {token}"))?;
                    out.line(format_args!("hash   {hash}"))
                })
            }
            TokenCommand::Hash { json } => {
                let hash = hash_of_input()?;
                print(json, [json!({ "hash": hash.to_string() })], |out| out.line(hash))
            }
            TokenCommand::Names { json } => {
                let names = names_of_input()?;
                print(json, [json!({ "names": names })], |out| {
                    names.iter().try_for_each(|name| out.line(name))
                })
            }
        }
    }
}

fn new() -> Outcome<String> {
    let mut token = TOKEN_PREFIX.to_owned();
    for _ in 0..4 {
        let part = random::number()?;
        token.push_str(&format!("{part:016x}"));
    }
    Ok(token)
}

fn hash_of_input() -> Outcome<TokenHash> {
    let mut text = String::new();
    let read = std::io::stdin().take(TOKEN_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| Failure::usage(format!("standard input cannot be read: {error}")))?;
    TokenHash::of_new(text.trim()).map_err(Failure::usage)
}

fn names_of_input() -> Outcome<Vec<String>> {
    let mut pem = Vec::new();
    let read = std::io::stdin().take(CERTIFICATE_BYTES_MAX).read_to_end(&mut pem);
    read.map_err(|error| Failure::usage(format!("standard input cannot be read: {error}")))?;
    let names = certificate_names("standard input", &pem).map_err(Failure::usage)?;
    if names.is_empty() {
        return Err(Failure::no(
            Code::NotFound,
            "certificate has no common name, host, address or URI, so no token can name it; use \
             another",
        ));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    #[test]
    fn new_token_is_usable() {
        let (one, other) = (super::new().unwrap(), super::new().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 68);
        assert!(snowmint_server::TokenHash::of_new(&one).is_ok());
    }
}
