//! The `snowmint` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    snowmint_cli::main()
}
