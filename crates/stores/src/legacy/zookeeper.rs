//! Worker numbers that other systems keep in ZooKeeper.
//!
//! | system | below the path | the number |
//! |---|---|---|
//! | Leaf | `forever/IP:PORT-0000000007` | the digits at the end, which ZooKeeper counted |
//! | article 002 | `servers/IP:PORT_7` | the digits at the end |
//! | article 002 | `instances/7` | the name, while the process exists |

use snowmint_coord::{BoxFuture, Error, Result};
use zookeeper_client::{Client, Error as ZooError};

use super::workers::{LegacyWorker, deleted};
use crate::cluster_url::ClusterUrl;
use crate::failure::{Class, Label};
use crate::zookeeper::{FORM, PORT, SessionLink, within};

/// Default path of both systems' trees.
const USUAL: &str = "/snowflake";
/// Count of worker numbers that Leaf has: 10 bits.
const LEAF_NUMBERS: u64 = 1 << 10;

/// Returns the worker numbers in the tree at a URL: of the application that its path names, or of
/// all applications below it. The default path is `/snowflake`.
///
/// # Errors
/// `Invalid` for a wrong URL; `NotFound` when there is no such tree; `Unavailable`.
pub fn zookeeper_workers(url: &str) -> BoxFuture<'_, Result<Vec<LegacyWorker>>> {
    Box::pin(async move {
        let label = Label::of("ZooKeeper", url);
        if !url.starts_with("zookeeper://") {
            let message = format!("URL does not name ZooKeeper; write {FORM}");
            return Err(label.locate(Error::invalid(message)));
        }
        let cluster_url =
            ClusterUrl::parse(url, PORT, &label, FORM).map_err(|error| label.locate(error))?;
        let path = if cluster_url.path.is_empty() { USUAL } else { &cluster_url.path };
        let link = SessionLink::new(&cluster_url);
        let found = read(&link, path).await;
        link.close().await;
        found.map_err(|error| {
            let mapped = match error {
                ZooError::NoNode => Error::not_found(format!(
                    "path {path:?} does not exist in legacy {label}; correct the URL"
                )),
                ZooError::NoAuth | ZooError::AuthFailed => Error::invalid(format!(
                    "user of legacy {label} may not read {path:?}; grant it, or name another user \
                     in the URL"
                )),
                _ => Class::Unavailable.of_legacy(&label),
            };
            label.locate(mapped).with_source(error)
        })
    })
}

async fn read(link: &SessionLink, path: &str) -> Result<Vec<LegacyWorker>, ZooError> {
    let client = link.client().await?;
    let children = list(&client, path).await?;
    if is_application(&children) {
        return application(&client, path, &children).await;
    }
    let mut workers = Vec::new();
    for child in children {
        let path = format!("{path}/{child}");
        let children = list(&client, &path).await?;
        workers.extend(application(&client, &path, &children).await?);
    }
    Ok(workers)
}

fn is_application(children: &[String]) -> bool {
    children.iter().any(|child| matches!(child.as_str(), "forever" | "servers" | "instances"))
}

async fn application(
    client: &Client,
    path: &str,
    children: &[String],
) -> Result<Vec<LegacyWorker>, ZooError> {
    let mut workers = Vec::new();
    for child in children {
        let (names, made) = match child.as_str() {
            "forever" | "servers" | "instances" => {
                list_counted(client, &format!("{path}/{child}")).await?
            }
            _ => continue,
        };
        workers.extend(folder(child, &names, made));
    }
    Ok(workers)
}

/// Returns the workers of a folder in which `made` nodes were created. Leaf counts up, so the
/// holder of a number is unknown once its node is deleted.
fn folder(folder: &str, names: &[String], made: u64) -> Vec<LegacyWorker> {
    let mut workers: Vec<LegacyWorker> = names.iter().map(|name| worker(folder, name)).collect();
    if folder == "forever" && (made > 0 || !names.is_empty()) {
        // Two of Leaf's first processes that race both mint with 0, whatever their nodes say.
        let holder = "Leaf's first processes".into();
        workers.push(LegacyWorker { number: Ok(0), holder, space: None });
        let holder = "a deleted node";
        workers.extend(deleted(&workers, made, LEAF_NUMBERS, holder));
    }
    workers
}

async fn list(client: &Client, path: &str) -> Result<Vec<String>, ZooError> {
    list_counted(client, path).await.map(|(names, _)| names)
}

/// Returns the nodes below a path, and the count of nodes ever made there: the number that the next
/// node would get.
async fn list_counted(client: &Client, path: &str) -> Result<(Vec<String>, u64), ZooError> {
    let (mut names, stat) = within(client.get_children(path)).await?;
    names.sort_unstable();
    Ok((names, made(stat.cversion, stat.num_children)))
}

/// Returns the count of nodes ever made below a node. ZooKeeper reports the sum of that count and
/// of all deletions.
fn made(changes: i32, there: i32) -> u64 {
    let both = i64::from(changes).saturating_add(i64::from(there));
    u64::try_from(both).unwrap_or(0).div_ceil(2)
}

fn worker(folder: &str, name: &str) -> LegacyWorker {
    let (holder, digits) = match folder {
        "forever" => name.rsplit_once('-').unwrap_or((name, "")),
        "servers" => name.rsplit_once('_').unwrap_or((name, "")),
        _ => ("a running process", name),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_number);
    let shown: String = name.chars().take(80).collect();
    LegacyWorker {
        number: number.ok_or_else(|| format!("{folder}/{shown} does not end with a number")),
        holder: holder.chars().take(80).collect(),
        space: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleting the node of a removed machine does not undo the IDs that it minted.
    #[test]
    fn leafs_numbers_are_all_that_were_counted() {
        let numbers = |name: &str, nodes: &[&str], made: u64| -> Vec<u64> {
            let nodes: Vec<_> = nodes.iter().map(|node| (*node).to_owned()).collect();
            let mut found: Vec<_> =
                folder(name, &nodes, made).into_iter().filter_map(|one| one.number.ok()).collect();
            found.sort_unstable();
            found
        };
        let nodes = ["10.0.0.1:80-0000000002", "10.0.0.2:80-0000000005", "absent"];
        for made in [0, 3, 6] {
            assert_eq!(numbers("forever", &nodes, made), [0, 1, 2, 3, 4, 5], "{made}");
        }
        assert_eq!(numbers("forever", &nodes, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(numbers("forever", &["10.0.0.1:80-2147483647"], 1).len(), 1 << 10 | 1);
        assert_eq!(numbers("forever", &[], u64::MAX).len(), 1 << 10);
        assert_eq!(numbers("forever", &[], 2), [0, 1]);
        assert_eq!(numbers("forever", &[], 0), [0; 0]);
        assert_eq!(numbers("servers", &["10.0.0.1:80_2", "10.0.0.2:80_5"], 9), [2, 5]);
    }

    #[test]
    fn created_nodes_are_half_of_changes_and_children() {
        for (changes, there, nodes) in [(0, 0, 0), (6, 6, 6), (7, 5, 6), (12, 0, 6), (-3, 1, 0)] {
            assert_eq!(made(changes, there), nodes, "{changes} {there}");
        }
        assert_eq!(made(i32::MAX, i32::MAX), u64::from(i32::MAX.unsigned_abs()));
    }

    #[test]
    fn names_of_nodes_end_with_their_numbers() {
        for (folder, name, number, holder) in [
            ("forever", "10.0.0.1:8080-0000000007", 7, "10.0.0.1:8080"),
            ("forever", "fe80::1-2:80-0000000000", 0, "fe80::1-2:80"),
            ("servers", "10.20.30.40:8888_12", 12, "10.20.30.40:8888"),
            ("instances", "1023", 1023, "a running process"),
        ] {
            let found = worker(folder, name);
            let holder = holder.into();
            assert_eq!(found, LegacyWorker { number: Ok(number), holder, space: None });
        }
        for (folder, name) in [
            ("forever", "10.0.0.1"),
            ("forever", "a--1x"),
            ("servers", "10.0.0.1:80-5"),
            ("instances", "+1"),
            ("instances", "99999999999999999999999"),
        ] {
            assert!(worker(folder, name).number.is_err(), "{folder}/{name}");
        }
    }
}
