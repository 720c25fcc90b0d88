//! The page of the errors, made from the table of their codes.

use std::fmt::Write as _;

use snowmint_wire::error::{Code, RespPrefix};

use super::markdown::{filled, linked};

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
- *Commands:* the message on standard error, and the exit code.

The message is a sentence with the values, the limit and a remedy. The compatibility APIs respond as the systems do that
they stand in for.

| code | HTTP | gRPC | RESP | exit code |
|---|---|---|---|---|
";

/// Returns the page.
pub(super) fn page() -> String {
    let mut page = HEAD.to_owned();
    for code in Code::ALL {
        let (row, grpc) = (code.row(), grpc_name(code.row().grpc));
        let (name, http, resp, exit) = (row.name, row.http, row.resp.as_str(), row.exit);
        let _ = writeln!(page, "| [`{name}`](#{name}) | {http} | `{grpc}` | `-{resp}` | {exit} |");
    }
    for code in Code::ALL {
        let [meaning, causes, remedy] = parts(*code);
        let retry = match code.row().resp {
            RespPrefix::TryAgain => "A retry may help. ",
            _ => "",
        };
        let _ = write!(page, "\n## {code}\n\n");
        page.push_str(&filled(&linked(&format!("{meaning} {retry}{causes}\n\n{remedy}"))));
    }
    page
}

/// Returns meaning, causes and remedy of a code.
fn parts(code: Code) -> [String; 3] {
    let paragraphs = code.documentation().split(|line| line.is_empty());
    let paragraphs: Vec<String> =
        paragraphs.map(|lines| lines.concat().trim().to_owned()).collect();
    paragraphs.try_into().unwrap_or_else(|parts| panic!("{code}: {parts:?}"))
}

/// Returns the name of a status code of gRPC.
const fn grpc_name(status: u32) -> &'static str {
    match status {
        3 => "INVALID_ARGUMENT",
        4 => "DEADLINE_EXCEEDED",
        5 => "NOT_FOUND",
        7 => "PERMISSION_DENIED",
        8 => "RESOURCE_EXHAUSTED",
        9 => "FAILED_PRECONDITION",
        12 => "UNIMPLEMENTED",
        13 => "INTERNAL",
        14 => "UNAVAILABLE",
        16 => "UNAUTHENTICATED",
        _ => panic!("a status without a name here"),
    }
}

/// An error without a cause and a remedy leaves its reader alone.
#[test]
fn every_code_has_a_meaning_causes_and_a_remedy() {
    for code in Code::ALL {
        let [meaning, causes, remedy] = parts(*code);
        assert!(meaning.ends_with('.') && meaning.len() > 20, "{code}: {meaning}");
        assert!(causes.starts_with("Causes: ") && causes.len() > 30, "{code}: {causes}");
        assert!(remedy.starts_with("Remedy: ") && remedy.len() > 30, "{code}: {remedy}");
    }
}
