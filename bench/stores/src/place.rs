//! The stores, each on its own server.

use snowmint_testkit::servers::{Etcd, Mysql, Postgres, Redis, Server, Zookeeper};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, SqliteConnection};

/// A store that can be started.
pub struct Place {
    pub name: &'static str,
    pub start: fn() -> Running,
    /// Upper limit for the time to the first ID, in milliseconds.
    pub first_ms_max: f64,
}

/// A running store, removed when dropped.
pub struct Running {
    pub url: String,
    /// URL of the same store for the bare client.
    pub bare: String,
    kept: Kept,
}

enum Kept {
    Server(Server),
    /// Folder that is removed when dropped.
    Folder {
        _folder: Folder,
    },
}

/// A store that is frozen until this is thawed.
pub enum Frozen<'a> {
    /// All its processes are stopped.
    Server(&'a Server),
    /// Another connection is writing, and does not end its transaction.
    File(Box<SqliteConnection>),
}

impl Running {
    /// Freezes the store: its callers wait.
    pub async fn freeze(&self) -> Frozen<'_> {
        match &self.kept {
            Kept::Server(server) => {
                server.freeze(true);
                Frozen::Server(server)
            }
            Kept::Folder { .. } => {
                let options = SqliteConnectOptions::new().filename(&self.url["sqlite:".len()..]);
                let mut connection = options.connect().await.expect("the file");
                connection.execute("BEGIN IMMEDIATE").await.expect("the lock of all writers");
                Frozen::File(Box::new(connection))
            }
        }
    }
}

impl Frozen<'_> {
    pub async fn thaw(self) {
        match self {
            Self::Server(server) => server.freeze(false),
            Self::File(mut connection) => {
                (&mut *connection).execute("ROLLBACK").await.expect("the lock is given back");
                (*connection).close().await.expect("a connection closes");
            }
        }
    }
}

impl Place {
    pub fn all() -> Vec<Self> {
        let server = |name, start: fn() -> Running| Self { name, start, first_ms_max: 250.0 };
        vec![
            Self { name: "sqlite", start: sqlite, first_ms_max: 50.0 },
            server("postgres", || on(Postgres::start(&[]).into(), |url| url.to_owned())),
            server("mysql", || on(Mysql::start(&[]).into(), |url| url.to_owned())),
            server("redis", || on(Redis::start(&[]).into(), |url| url.to_owned())),
            server("etcd", || on(Etcd::start().into(), |url| url.replace("etcd://", "http://"))),
            server("zookeeper", || {
                on(Zookeeper::start().into(), |url| url.replace("zookeeper://", ""))
            }),
        ]
    }
}

fn on(server: Server, bare: fn(&str) -> String) -> Running {
    let url = server.url();
    Running { bare: bare(&url), url, kept: Kept::Server(server) }
}

/// A folder that is removed with its owner.
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
    Running { url, bare, kept: Kept::Folder { _folder: Folder(folder) } }
}
