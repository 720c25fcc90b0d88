//! The statement that an extend comes down to, through the same client library: one durable write
//! of one row, found by its key.

use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use zookeeper_client::{Acls, CreateMode};

use crate::place::Running;

/// One durable write.
#[async_trait]
pub trait Bare {
    async fn write(&mut self, mark: i64);
}

/// Connects the client for a store.
pub async fn connect(running: &Running) -> Box<dyn Bare> {
    let scheme = running.url.split(':').next().unwrap_or_default();
    match scheme {
        "sqlite" => sqlite(&running.bare).await,
        "postgres" => Box::new(Postgres(postgres(&running.bare).await)),
        "mysql" => Box::new(Mysql(mysql(&running.bare).await)),
        "redis" => {
            let client = redis::Client::open(running.bare.as_str()).expect("a URL");
            let connection = client.get_multiplexed_async_connection().await;
            Box::new(Redis(connection.expect("a response of the server")))
        }
        "etcd" => {
            let channel = Channel::from_shared(running.bare.clone()).expect("a URL");
            Box::new(Etcd(channel.connect().await.expect("a response of the server")))
        }
        "zookeeper" => {
            let client = zookeeper_client::Client::connect(&running.bare).await;
            let client = client.expect("a response of the server");
            let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
            client.create("/bare", b"0", &options).await.expect("a node");
            Box::new(Zookeeper(client))
        }
        other => panic!("no bare statement for {other}"),
    }
}

const TABLE: &str = "CREATE TABLE bare (k BIGINT PRIMARY KEY, mark BIGINT NOT NULL)";
const ROW: &str = "INSERT INTO bare (k, mark) VALUES (1, 0)";

struct Sqlite(sqlx::SqliteConnection);

async fn sqlite(path: &str) -> Box<dyn Bare> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    let mut connection = options.connect().await.expect("a file");
    for statement in [TABLE, ROW] {
        connection.execute(statement).await.expect("a table with a row");
    }
    Box::new(Sqlite(connection))
}

async fn postgres(url: &str) -> sqlx::PgConnection {
    let mut connection = sqlx::PgConnection::connect(url).await.expect("a response of the server");
    for statement in [TABLE, ROW] {
        connection.execute(statement).await.expect("a table with a row");
    }
    connection
}

async fn mysql(url: &str) -> sqlx::MySqlConnection {
    let mut connection =
        sqlx::MySqlConnection::connect(url).await.expect("a response of the server");
    for statement in [TABLE, ROW] {
        connection.execute(statement).await.expect("a table with a row");
    }
    connection
}

#[async_trait]
impl Bare for Sqlite {
    async fn write(&mut self, mark: i64) {
        let query = sqlx::query("UPDATE bare SET mark = ? WHERE k = 1").bind(mark);
        query.execute(&mut self.0).await.expect("a write");
    }
}

struct Postgres(sqlx::PgConnection);

#[async_trait]
impl Bare for Postgres {
    async fn write(&mut self, mark: i64) {
        let query = sqlx::query("UPDATE bare SET mark = $1 WHERE k = 1").bind(mark);
        query.execute(&mut self.0).await.expect("a write");
    }
}

struct Mysql(sqlx::MySqlConnection);

#[async_trait]
impl Bare for Mysql {
    async fn write(&mut self, mark: i64) {
        let query = sqlx::query("UPDATE bare SET mark = ? WHERE k = 1").bind(mark);
        query.execute(&mut self.0).await.expect("a write");
    }
}

struct Redis(redis::aio::MultiplexedConnection);

#[async_trait]
impl Bare for Redis {
    async fn write(&mut self, mark: i64) {
        let mut set = redis::cmd("SET");
        set.arg("bare").arg(mark);
        let () = set.query_async(&mut self.0).await.expect("a write");
    }
}

struct Etcd(Channel);

#[derive(Clone, PartialEq, Eq, prost::Message)]
struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
struct PutResponse {}

#[async_trait]
impl Bare for Etcd {
    async fn write(&mut self, mark: i64) {
        let put = PutRequest { key: b"bare".to_vec(), value: mark.to_string().into_bytes() };
        let mut grpc = Grpc::new(self.0.clone());
        grpc.ready().await.expect("a response of the server");
        let codec: tonic_prost::ProstCodec<PutRequest, PutResponse> = Default::default();
        let path = PathAndQuery::from_static("/etcdserverpb.KV/Put");
        grpc.unary(tonic::Request::new(put), path, codec).await.expect("a write");
    }
}

struct Zookeeper(zookeeper_client::Client);

#[async_trait]
impl Bare for Zookeeper {
    async fn write(&mut self, mark: i64) {
        self.0.set_data("/bare", mark.to_string().as_bytes(), None).await.expect("a write");
    }
}
