//! `snowmint explain`: the meaning of an error's code, its causes, and what to do.

use anstyle::Style;
use clap::Args;
use serde::Serialize;
use snowmint_wire::error::{Code, RespPrefix};

use crate::cmd::values;
use crate::terminal::exit::{Failure, Outcome};
use crate::terminal::near::near;
use crate::terminal::output::{Output, print};
use crate::terminal::table::{Column, Table};

/// Longest line.
const LINE_MAX: usize = 80;
/// Spaces before each line of a paragraph.
const INDENT: usize = 2;
/// Narrowest paragraph.
const FILLED_MIN: usize = 20;

/// Print the meaning of an error's code, its causes and the remedy.
///
/// Each error ends with its code: `[pool_full]`. Without a code, lists all codes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  snowmint explain
  snowmint explain store_rolled_back
  snowmint explain pool_full --json | jq -r .remedy")]
pub(crate) struct Explain {
    /// Code; upper case, as in gRPC, is read too.
    #[arg(value_name = "CODE", add = values::codes())]
    code: Option<String>,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// Row of the table of errors, with its texts.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    pub(crate) code: &'static str,
    pub(crate) meaning: String,
    pub(crate) causes: String,
    pub(crate) remedy: String,
    /// Whether a retry may help.
    pub(crate) retry: bool,
    pub(crate) http: u16,
    pub(crate) grpc: &'static str,
    pub(crate) resp: &'static str,
    pub(crate) exit: u8,
}

impl Explanation {
    pub(crate) fn of(code: Code) -> Self {
        let row = code.row();
        let paragraphs = code.documentation().split(|line| line.is_empty());
        let mut paragraphs = paragraphs.map(|lines| lines.concat().trim().to_owned());
        let mut next = |label: &str| {
            let text = paragraphs.next().unwrap_or_default();
            text.strip_prefix(label).map_or_else(|| text.clone(), str::to_owned)
        };
        Self {
            code: row.name,
            meaning: next(""),
            causes: next("Causes: "),
            remedy: next("Remedy: "),
            retry: row.resp == RespPrefix::TryAgain,
            http: row.http,
            grpc: grpc_name(row.grpc),
            resp: row.resp.as_str(),
            exit: row.exit,
        }
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Code::ALL.iter().copied().map(Self::of)
    }
}

impl Explain {
    pub(crate) fn run(self) -> Outcome {
        let Some(text) = &self.code else {
            let all: Vec<_> = Explanation::all().collect();
            return print(self.json, &all, |out| out.table(&list(&all)));
        };
        let explanation = Explanation::of(code(text)?);
        print(self.json, [&explanation], |out| write(&explanation, out))
    }
}

/// Reads a code as an error shows it: in brackets, or in upper case.
fn code(text: &str) -> Outcome<Code> {
    let word = text.trim_matches(['[', ']']).to_ascii_lowercase().replace('-', "_");
    if let Some(code) = Code::from_name(&word) {
        return Ok(code);
    }
    let names = || Code::ALL.iter().map(|code| code.as_str());
    let mut alike = near(&word, names());
    // A part of a name is farther from it than a typing error.
    let is_alike = |name: &&str| word.len() > 2 && name.contains(&word) && !alike.contains(name);
    let with_part: Vec<_> = names().filter(is_alike).collect();
    alike.extend(with_part);
    let hint = match alike.as_slice() {
        [] => String::new(),
        alike => format!("did you mean {}? ", alike.join(" or ")),
    };
    Err(Failure::no(
        Code::NotFound,
        format!("unknown code {text:?}; {hint}`snowmint explain` lists all codes"),
    ))
}

fn list(all: &[Explanation]) -> Table {
    let mut table = Table::new([
        Column::Whole("CODE"),
        Column::Number("EXIT"),
        Column::Number("HTTP"),
        Column::Text("MEANING"),
    ]);
    for one in all {
        let (exit, http) = (one.exit.to_string(), one.http.to_string());
        table.row([one.code.to_owned(), exit, http, one.meaning.clone()]);
    }
    table
}

fn write(one: &Explanation, out: &mut Output) -> Outcome {
    out.styled(Style::new().bold(), one.code, "")?;
    let retry = if one.retry { " A retry may help." } else { "" };
    let paragraphs = [
        format!("{}{retry}", one.meaning),
        format!("Causes: {}", one.causes),
        format!("Remedy: {}", one.remedy),
        format!(
            "HTTP {}, gRPC {}, RESP -{}, exit code {}.",
            one.http, one.grpc, one.resp, one.exit
        ),
    ];
    let width = out.width().map_or(LINE_MAX, |width| width.min(LINE_MAX));
    for paragraph in paragraphs {
        for line in filled(&paragraph, width.saturating_sub(INDENT)) {
            out.line(format_args!("{:INDENT$}{line}", ""))?;
        }
    }
    Ok(())
}

/// Returns a paragraph in lines of this width.
fn filled(paragraph: &str, width: usize) -> Vec<String> {
    let width = width.max(FILLED_MIN);
    let mut lines = vec![String::new()];
    for word in paragraph.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
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
        // A test compares all codes with this list.
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error without a cause and a remedy leaves its reader alone.
    #[test]
    fn every_code_has_a_meaning_causes_and_a_remedy() {
        for one in Explanation::all() {
            let Explanation { code, meaning, causes, remedy, grpc, .. } = &one;
            assert!(meaning.ends_with('.') && meaning.len() > 20, "{code}: {meaning}");
            assert!(causes.ends_with('.') && causes.len() > 22, "{code}: {causes}");
            assert!(remedy.ends_with('.') && remedy.len() > 22, "{code}: {remedy}");
            assert!(!grpc.is_empty(), "{code} has a status without a name");
        }
        for code in Code::ALL {
            let documentation = code.documentation().join("\n");
            assert_eq!(documentation.split("\n\n Causes: ").count(), 2, "{code}");
            assert_eq!(documentation.split("\n\n Remedy: ").count(), 2, "{code}");
        }
    }

    #[test]
    fn lines_fit_the_width_with_their_indent() {
        for one in Explanation::all() {
            for width in [30, 60, 78] {
                let lines = filled(&one.causes, width);
                assert!(lines.iter().all(|line| line.len() <= width), "{lines:?}");
                assert_eq!(lines.join(" "), one.causes);
            }
        }
        assert_eq!(filled("one two", 0), ["one two"]);
    }

    #[test]
    fn codes_are_read_as_errors_show_them() {
        for text in ["pool_full", "[pool_full]", "POOL_FULL", "pool-full"] {
            assert_eq!(code(text).ok(), Some(Code::PoolFull), "{text}");
        }
    }

    #[test]
    fn unknown_code_suggests_near_ones() {
        for (text, parts) in [
            ("pol_full", &["did you mean pool_full? `"][..]),
            ("read_only", &["did you mean store_read_only? `"]),
            ("nonsense", &["unknown code \"nonsense\"; `snowmint explain` lists"]),
        ] {
            let Err(Failure::Explained { message, .. }) = code(text) else { panic!("{text}") };
            for part in parts {
                assert!(message.contains(part), "{part}: {message}");
            }
        }
    }
}
