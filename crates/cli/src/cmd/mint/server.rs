//! IDs from a running server.

use snowmint_wire::http::{Count, IdsBody, MintRequest};

use super::Mint;
use super::printed::{CHUNK, Printed};
use crate::client::{ApiClient, CallError, Method, segment};
use crate::terminal::exit::Failure;
use crate::terminal::plural::counted;

impl Mint {
    /// Requests IDs until the count is reached, and prints them as they come.
    pub(super) fn ask_server(
        &self,
        client: &ApiClient,
        done: &mut u64,
        out: &mut Printed,
    ) -> Result<(), CallError> {
        let path = format!("/v1/ids/{}", segment(&self.source));
        while *done < self.count {
            let wanted = (self.count - *done).min(CHUNK);
            let request = MintRequest {
                count: Count::new(wanted),
                key: self.key.clone(),
                format: self.format.map(|format| format.to_string()),
            };
            let IdsBody { ids } = client.call(&Method::POST, &path, Some(&request))?;
            if ids.len() as u64 != wanted {
                return Err(CallError::Failed(Failure::internal(format_args!(
                    "server sent {}, expected {wanted}",
                    counted(ids.len(), "ID")
                ))));
            }
            for id in &ids {
                out.id(id).map_err(CallError::Failed)?;
            }
            *done += wanted;
        }
        Ok(())
    }
}
