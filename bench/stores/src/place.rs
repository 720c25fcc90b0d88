//! The stores, each on a server of its own.

use snowmint_testkit::servers::{Etcd, Mysql, Postgres, Redis, Zookeeper};

/// A store that can be started.
pub struct Place {
    pub name: &'static str,
    pub start: fn() -> Running,
}

/// A store that runs; gone when dropped.
pub struct Running {
    pub url: String,
    /// The same place, for the bare client.
    pub bare: String,
    _server: Box<dyn std::any::Any>,
}

impl Place {
    pub fn all() -> Vec<Self> {
        vec![
            Self { name: "sqlite", start: sqlite },
            Self { name: "postgres", start: postgres },
            Self { name: "mysql", start: mysql },
            Self { name: "redis", start: redis },
            Self { name: "etcd", start: etcd },
            Self { name: "zookeeper", start: zookeeper },
        ]
    }
}

/// A folder that goes with its owner.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn sqlite() -> Running {
    let folder = std::env::temp_dir().join(format!("snowmint-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the file");
    let file = |name: &str| folder.join(name).display().to_string();
    let (url, bare) = (format!("sqlite:{}", file("ids.db")), file("bare.db"));
    Running { url, bare, _server: Box::new(Folder(folder)) }
}

fn postgres() -> Running {
    let server = Postgres::start(&[]);
    let url = server.url();
    Running { bare: url.clone(), url, _server: Box::new(server) }
}

fn mysql() -> Running {
    let server = Mysql::start(&[]);
    let url = server.url();
    Running { bare: url.clone(), url, _server: Box::new(server) }
}

fn redis() -> Running {
    let server = Redis::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let url = server.url();
    Running { bare: url.clone(), url, _server: Box::new(server) }
}

fn etcd() -> Running {
    let server = Etcd::start();
    let url = server.url();
    Running { bare: url.replace("etcd://", "http://"), url, _server: Box::new(server) }
}

fn zookeeper() -> Running {
    let server = Zookeeper::start();
    let url = server.url();
    Running { bare: url.replace("zookeeper://", ""), url, _server: Box::new(server) }
}
