//! Every store keeps the contract, on real servers that these tests start. They wait for disks most of
//! the time, so they are one program, which runs several at once.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
#![cfg_attr(
    not(all(
        feature = "sqlite",
        feature = "postgres",
        feature = "mysql",
        feature = "redis",
        feature = "etcd",
        feature = "zookeeper"
    )),
    allow(
        dead_code,
        unused_imports,
        reason = "what stores have in common, some of them use in part"
    )
)]

#[cfg(feature = "redis")]
mod by_clock;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod connections;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "foreign")]
mod foreign;
#[cfg(feature = "mysql")]
mod mysql;
mod opening;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "zookeeper")]
mod zookeeper;
