//! The page of the errors, made from the table of their codes.

use std::fmt::Write as _;

use super::markdown::{filled, linked};
use crate::cmd::explain::Explanation;

const HEAD: &str = "\
# Errors: the cause of each code, and the remedy

<!-- Made from the table of the codes: CONTRIBUTING.md says how. -->

Each error has one code, and the same code in every protocol:

- *HTTP:* the status, and the body `{\"error\":{\"code\":\"unknown_source\",\"message\":\"…\",\"retry_after_ms\":null}}`.
  Where a retry helps after some time, `Retry-After` and `retry_after_ms` say when.
- *gRPC:* the status, with the message. `google.rpc.ErrorInfo` has the code in upper case as its reason, and
  `google.rpc.RetryInfo` the time of a retry.
- *RESP:* an error that begins with the word of the table. `-TRYAGAIN` means that a retry may help.
  Redis clients also get `WRONGPASS`, `MOVED`, `EXECABORT` and others of Redis.
- *Commands:* the message on standard error, which ends with the code, `[pool_full]`, and the exit code. A command that
  stops before it may repeat IDs ends with 3. `snowmint explain CODE` prints a section of this page.

The message is a sentence with the values, the limit and a remedy. The compatibility APIs respond as the systems do that
they stand in for.

| code | HTTP | gRPC | RESP | exit code |
|---|---|---|---|---|
";

/// Returns the page.
pub(super) fn page() -> String {
    let mut page = HEAD.to_owned();
    for one in Explanation::all() {
        let Explanation { code, http, grpc, resp, exit, .. } = one;
        let _ = writeln!(page, "| [`{code}`](#{code}) | {http} | `{grpc}` | `-{resp}` | {exit} |");
    }
    for one in Explanation::all() {
        let Explanation { code, meaning, causes, remedy, .. } = &one;
        let retry = if one.retry { "A retry may help. " } else { "" };
        let _ = write!(page, "\n## {code}\n\n");
        let text = format!("{meaning} {retry}Causes: {causes}\n\nRemedy: {remedy}");
        page.push_str(&filled(&linked(&text)));
    }
    page
}
