//! Floors: bare responders, each in a process of its own as a server is. A floor is the measuring
//! program itself, started with [`ARGUMENT`] and the floor's name, and prints its port.

use std::process::Command;

use crate::Process;

/// First argument of a program that is to be a floor.
const ARGUMENT: &str = "floor";

/// Starts a floor; returns its port, too.
///
/// # Panics
/// When it does not start.
pub fn start_floor(name: &str) -> (Process, u16) {
    let this = std::env::current_exe().expect("this program has a path");
    let (process, port) = Process::start(Command::new(this).args([ARGUMENT, name]));
    (process, port.parse().expect("a port"))
}

/// Returns the name of the floor that this process is to be, if it is to be one.
pub fn floor_to_be() -> Option<String> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next()? == ARGUMENT { arguments.next() } else { None }
}
