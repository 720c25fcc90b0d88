//! Parts of a URL.

/// Default port of ZooKeeper.
pub(crate) const PORT: u16 = 2181;
/// Form of a URL.
pub(crate) const FORM: &str = "zookeeper://USER:PASSWORD@HOST:PORT,HOST:PORT/PATH";
