//! Every store keeps the contract, on real servers that these tests start. The tests mostly wait
//! for disks, so they are one program, which runs several at once. Without the feature
//! `real-servers` they cover only SQLite, which needs no server.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
#![cfg_attr(
    not(all(feature = "real-servers", feature = "all")),
    allow(
        dead_code,
        unused_imports,
        reason = "what stores have in common, some of them use in part"
    )
)]

#[cfg(all(feature = "real-servers", feature = "redis"))]
mod by_clock;
#[cfg(all(feature = "real-servers", any(feature = "mysql", feature = "postgres")))]
mod connections;
#[cfg(all(feature = "real-servers", feature = "etcd"))]
mod etcd;
#[cfg(all(feature = "real-servers", feature = "legacy"))]
mod legacy;
#[cfg(all(feature = "real-servers", feature = "mysql"))]
mod mysql;
#[cfg(any(feature = "real-servers", feature = "sqlite"))]
mod opening;
#[cfg(all(feature = "real-servers", feature = "postgres"))]
mod pgbouncer;
#[cfg(all(feature = "real-servers", feature = "postgres"))]
mod postgres;
#[cfg(all(feature = "real-servers", feature = "redis"))]
mod redis;
#[cfg(all(feature = "real-servers", feature = "redis"))]
mod redis_failover;
#[cfg(all(feature = "real-servers", feature = "redis", feature = "mysql", feature = "postgres"))]
mod settings;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "real-servers")]
mod swapped;
#[cfg(all(feature = "real-servers", feature = "zookeeper"))]
mod zookeeper;

#[cfg(not(feature = "real-servers"))]
#[test]
#[ignore = "the contract on databases: --features real-servers"]
fn stores_on_real_servers_are_left_out() {}
