//! The wait for the stop of the server.

use tokio::sync::watch;

/// Waits until the server stops. A dropped handle is a stop as well.
pub(crate) async fn stopping(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|&closing| closing).await;
}
