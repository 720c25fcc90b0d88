//! Options of every import.

use clap::Args;

use crate::config::{ConfigArgs, warn_of_secret};
use crate::system::secret;

/// Options of every import.
#[derive(Debug, Args)]
pub(super) struct Common {
    #[command(flatten)]
    pub(super) config_args: ConfigArgs,
    /// Database of the other system: a URL, or the place of one (file:PATH or env:NAME) for a URL
    /// with a password, since other users can read command lines.
    #[arg(long, value_name = "URL", required = true, value_parser = url)]
    pub(super) from: Vec<String>,
    /// Show the plan only.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    pub(super) json: bool,
}

/// Returns the URL, or reads it from its file or variable.
fn url(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        Some(("file" | "env", _)) => Ok(secret::at("--from", &text.into())?.trim().to_owned()),
        _ => {
            warn_of_secret(text, "--from", "keep the URL at env:NAME or file:PATH, and say that");
            Ok(text.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_can_be_read_from_a_file() {
        let plain = "mysql://db/leaf";
        assert_eq!(url(plain).unwrap(), plain);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "mysql://user:password@db/leaf\n").unwrap();
        let kept = url(&format!("file:{}", file.path().display()));
        assert_eq!(kept.unwrap(), "mysql://user:password@db/leaf");
        let missing = url("env:SNOWMINT_NO_SUCH_VARIABLE").unwrap_err();
        assert!(missing.contains("is not set"), "{missing}");
    }
}
