//! The signals that ask this program to end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// Ctrl-C: stop what runs; a second one ends the program.
    Stop,
    /// SIGTERM, or the terminal is gone: end in order, now.
    End,
}

/// Listens from its making on, so that no signal between two waits is lost.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Interrupts {
    /// Takes the place of the signals' own effect, which is to end the program at once. Inside a tokio runtime.
    pub(crate) fn listen() -> io::Result<Interrupts> {
        Ok(Interrupts {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Interrupt {
        tokio::select! {
            _ = self.terminate.recv() => Interrupt::End,
            _ = self.hangup.recv() => Interrupt::End,
            _ = self.interrupt.recv() => Interrupt::Stop,
        }
    }
}
