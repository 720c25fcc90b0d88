//! `snowmint source`: lists, shows and changes sources.

mod restripe;
mod shown;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Subcommand};
use serde_json::{Value, json};
use snowmint_coord::spec::{SourceSpec, Takes, keys};
use snowmint_wire::http::{AlterRequest, SourceBody, SourceRequest, SourcesBody, UnreadableBody};

use crate::client::{ApiClient, DEFAULT_SERVER, Method};
use crate::cmd::values;
use crate::terminal::exit::{Outcome, complain};
use crate::terminal::output::Output;
use crate::terminal::table::{Column, Table};
use shown::{path, show};

/// List, show, define, alter, disable, enable and delete sources.
///
/// Calls the server of --server, or the one on 127.0.0.1:7700.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint source list
  snowmint source show orders
  snowmint source define orders --layout twitter,epoch=2026-01-01T00:00:00Z --on-rollback wait
  snowmint source define invoices --kind segment --first 1000
  snowmint source alter orders --lead-max 10s
  snowmint source alter orders --lead-max 10s --if-version 7
  snowmint source disable orders
  snowmint source enable orders
  snowmint source delete orders
  snowmint source restripe orders --increment 3 --stripe 1=10.0.0.1:7700 --stripe 2=10.0.0.2:7700 \\
      --stripe 3=10.0.0.3:7700")]
pub(crate) struct Source {
    #[command(subcommand)]
    action: SourceCommand,
}

#[derive(Debug, Subcommand)]
enum SourceCommand {
    /// List all sources of the namespace.
    List(SourceTarget),
    /// Show one source with all its keys.
    Show(Named),
    /// Define a new source. Defining it again with the same keys succeeds.
    Define(NamedKeys),
    /// Change keys of a source. Keys that determine its IDs (kind, layout, epoch, ...) cannot
    /// change.
    Alter(Alteration),
    /// Stop minting from the source until `enable NAME`.
    Disable(Named),
    /// Mint from a disabled source again.
    Enable(Named),
    /// Delete a source. Its name keeps kind, layout and numbers: the same source, defined again,
    /// continues above them.
    Delete(Named),
    Restripe(restripe::Restripe),
}

#[derive(Debug, Args)]
struct SourceTarget {
    /// Running server: http://host:port, or several as snowmint://host:port,host:port.
    #[arg(long, value_name = "URL", default_value = DEFAULT_SERVER)]
    server: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Named {
    /// Name of the source.
    #[arg(value_name = "NAME", add = values::sources())]
    name: String,
    #[command(flatten)]
    target: SourceTarget,
}

#[derive(Debug, Args)]
struct NamedKeys {
    #[command(flatten)]
    named: Named,
    #[command(flatten)]
    keys: SourceKeys,
}

#[derive(Debug, Args)]
struct Alteration {
    /// Change the source only if it still has this version, which `show` prints.
    #[arg(long, value_name = "NUMBER")]
    if_version: Option<u64>,
    #[command(flatten)]
    to: NamedKeys,
}

/// Keys of a source as options, made from the table that also checks the configuration file and the
/// HTTP interface.
#[derive(Debug)]
struct SourceKeys(SourceSpec);

impl Args for SourceKeys {
    fn augment_args(command: Command) -> Command {
        let spelled = |takes| match takes {
            Takes::Number => "NUMBER",
            Takes::Flag => "true|false",
            _ => "TEXT",
        };
        command.next_help_heading("Keys").args(keys::all().map(|key| {
            let default = if key.default.is_empty() {
                String::new()
            } else {
                format!(" [default: {}]", key.default)
            };
            let option = Arg::new(key.name)
                // `lead-max`, as options are spelt. Every option also has the other spelling.
                .long(key.name.replace('_', "-"))
                .value_name(spelled(key.takes))
                // The check of the key rejects a wrong number, not the syntax of options.
                .allow_negative_numbers(true)
                .help(format!("{} (for {}){default}", key.doc(), key.kinds));
            match (key.name, key.takes) {
                ("layout", _) => option.add(values::layouts()),
                ("text", _) => option.add(values::formats()),
                (_, Takes::Word(words)) => option.add(values::words(words())),
                (_, Takes::Flag) => option.add(values::words(&["true", "false"])),
                _ => option,
            }
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SourceKeys {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut spec = SourceSpec::default();
        for key in keys::all() {
            if let Ok(Some(text)) = matches.try_get_one::<String>(key.name) {
                spec.set(key.name, text)
                    .map_err(|error| clap::Error::raw(ErrorKind::InvalidValue, error))?;
            }
        }
        Ok(Self(spec))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Source {
    pub(crate) fn run(self) -> Outcome {
        let mut out = Output::new();
        match self.action {
            SourceCommand::List(target) => {
                let listed: SourcesBody = target.client()?.get("/v1/sources")?;
                list(&listed.sources, &target, &mut out)?;
                for UnreadableBody { name, why } in listed.unreadable {
                    complain(format!("source {name} is not listed: {why}"));
                }
            }
            SourceCommand::Show(named) => {
                let body = named.target.client()?.get(&path(&named.name))?;
                show(&body, named.target.json, &mut out)?;
            }
            SourceCommand::Define(NamedKeys { named, keys: SourceKeys(spec) }) => {
                let request = SourceRequest { name: named.name.clone(), keys: spec.to_json() };
                let body =
                    named.target.client()?.call(&Method::POST, "/v1/sources", Some(&request))?;
                show(&body, named.target.json, &mut out)?;
            }
            SourceCommand::Alter(Alteration {
                if_version,
                to: NamedKeys { named, keys: SourceKeys(spec) },
            }) => {
                alter(&named, &spec, if_version, &mut out)?;
            }
            SourceCommand::Restripe(restripe) => restripe.run()?,
            SourceCommand::Disable(named) => enable(&named, false, &mut out)?,
            SourceCommand::Enable(named) => enable(&named, true, &mut out)?,
            SourceCommand::Delete(named) => delete(&named, &mut out)?,
        }
        out.flush()
    }
}

impl SourceTarget {
    fn client(&self) -> Outcome<ApiClient> {
        ApiClient::new(&self.server)
    }
}

fn alter(named: &Named, to: &SourceSpec, version: Option<u64>, out: &mut Output) -> Outcome {
    let request = AlterRequest { version, changes: to.to_json() };
    let body = named.target.client()?.call(&Method::PATCH, &path(&named.name), Some(&request))?;
    show(&body, named.target.json, out)
}

fn enable(named: &Named, enabled: bool, out: &mut Output) -> Outcome {
    let spec = SourceSpec { enabled: Some(enabled), ..SourceSpec::default() };
    alter(named, &spec, None, out)
}

fn delete(named: &Named, out: &mut Output) -> Outcome {
    named.target.client()?.delete(&path(&named.name))?;
    if named.target.json {
        return out.json(&json!({ "name": named.name, "deleted": true }));
    }
    out.line(format_args!("deleted {}; the name keeps kind, layout and numbers", named.name))
}

fn list(sources: &[SourceBody], target: &SourceTarget, out: &mut Output) -> Outcome {
    if target.json {
        return sources.iter().try_for_each(|source| out.json(source));
    }
    let titles = ["NAME", "KIND", "LAYOUT OR VERSION"];
    let mut table = Table::new(titles.map(Column::Text));
    for SourceBody { name, keys, .. } in sources {
        let text = |key: &str| keys.get(key).and_then(Value::as_str).unwrap_or_default();
        let version = keys.get("uuid").and_then(|uuid| uuid.get("version"));
        let shape = version.map_or_else(|| text("layout").to_owned(), Value::to_string);
        let off = if keys.get("enabled") == Some(&Value::Bool(false)) { " (disabled)" } else { "" };
        table.row([name.clone(), text("kind").to_owned(), format!("{shape}{off}")]);
    }
    out.table(&table)
}
