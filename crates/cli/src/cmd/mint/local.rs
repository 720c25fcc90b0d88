//! IDs from a node in this process: with a store, or without one for UUIDs and ULIDs.

use snowmint_coord::spec::SourceSpec;
use snowmint_coord::{END_MS, IdBatch, MemoryStore, Node, NodeSettings, Platform, Source};

use super::Mint;
use super::printed::{CHUNK, Printed};
use crate::config::Config;
use crate::open::node::{self, JournalUse};
use crate::open::store;
use crate::terminal::exit::{Failure, Outcome};

/// Longest time for one chunk: a slow layout mints few IDs per second.
const WITHIN_MS: u64 = 60_000;

/// Name of a source that exists for one command.
const ONCE: &str = "once";

impl Mint {
    /// Mints from a source of the configured store.
    pub(super) fn mint_from_store(
        &self,
        config: &Config,
        done: &mut u64,
        out: &mut Printed,
    ) -> Outcome {
        // A configured store may be anywhere; the default data directory belongs to its own store.
        let is_default = config.server.data_dir == Config::default().server.data_dir;
        let journal = if config.store.url.is_empty() || !is_default {
            JournalUse::IfFree
        } else {
            JournalUse::Without
        };
        store::runtime()?.block_on(async {
            let node = node::open(config, journal).await?;
            let minted = match node.source(&self.source).await {
                Ok(source) => self.take(&source, self.key.as_deref(), done, out).await,
                Err(error) => Err(error.into()),
            };
            let closed = close(&node).await;
            minted.and(closed)
        })
    }

    /// Mints UUIDs or ULIDs, which need no store.
    pub(super) fn mint_alone(
        &self,
        spec: &SourceSpec,
        done: &mut u64,
        out: &mut Printed,
    ) -> Outcome {
        if self.format.is_some() {
            return Err(Failure::usage("--format needs IDs that are numbers; leave it out"));
        }
        store::runtime()?.block_on(async {
            let memory = std::sync::Arc::new(MemoryStore::new("default")?);
            let node = Node::open(memory, NodeSettings::default(), Platform::system()).await?;
            node.define(ONCE, spec).await?;
            let source = node.source(ONCE).await?;
            self.take(&source, self.name.as_deref(), done, out).await?;
            close(&node).await
        })
    }

    async fn take(
        &self,
        source: &Source,
        key: Option<&str>,
        done: &mut u64,
        out: &mut Printed,
    ) -> Outcome {
        while *done < self.count {
            let wanted = u32::try_from((self.count - *done).min(CHUNK)).unwrap_or(1);
            let values = source.mint(wanted, key, WITHIN_MS).await?;
            *done += values.len() as u64;
            match values {
                IdBatch::Numbers(numbers) => {
                    for number in numbers {
                        out.id(source.encode(number, self.format)?)?;
                    }
                }
                IdBatch::Texts(_) if self.format.is_some() => {
                    return Err(Failure::usage(
                        "--format needs IDs that are numbers; leave it out",
                    ));
                }
                IdBatch::Texts(texts) => texts.into_iter().try_for_each(|text| out.id(text))?,
            }
        }
        Ok(())
    }
}

async fn close(node: &Node) -> Outcome {
    Ok(node.end(END_MS).await?)
}
