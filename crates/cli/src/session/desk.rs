//! The desk at which a person follows a session: shows what happens, asks what is asked, hears Ctrl-C.

use std::collections::HashMap;
use std::io::{self, BufRead as _, BufReader};

use beeuni_daemon::{Daemon, Reader};
use beeuni_protocol::event::{Event, EventBody, FinishReason, Reply};
use tokio::sync::mpsc;

use crate::session::asking;
use crate::session::interrupts::{Interrupt, Interrupts};
use crate::session::view::View;
use crate::ui::Input;
use crate::{Context, Failure};

/// How a turn ended for the one who waits for it.
pub(crate) enum Ended {
    /// By itself, or by the first Ctrl-C.
    Turn(FinishReason),
    /// By a second Ctrl-C or a SIGTERM: the program is to end.
    Program,
}

/// Ctrl-C came first.
pub(crate) struct Interrupted;

/// One session on this terminal.
pub(crate) struct Desk {
    session: String,
    json: bool,
    events: Reader,
    view: View,
    /// Log lines to show.
    lines: mpsc::Receiver<String>,
    /// What a person types; read from the first time on that something is awaited, so that a run in the background is not
    /// halted for reading from its terminal.
    answers: Option<mpsc::Receiver<String>>,
    interrupts: Interrupts,
    /// The arguments of calls that run, to be shown whole when a permission is asked.
    arguments: HashMap<String, String>,
}

impl Desk {
    /// Follows the session, and reads standard input where a person types. Shows first how an earlier program's turn was
    /// interrupted.
    pub(crate) async fn open(
        daemon: &Daemon,
        lines: mpsc::Receiver<String>,
        interrupts: Interrupts,
        json: bool,
        context: &mut Context,
    ) -> Result<Desk, Failure> {
        let mut desk = Desk {
            session: daemon.session().to_owned(),
            json,
            events: daemon.events(daemon.opened_at()).map_err(Failure::failed)?,
            view: View::new(daemon.session()),
            lines,
            answers: None,
            interrupts,
            arguments: HashMap::new(),
        };
        for _ in daemon.opened_at()..daemon.last_event() {
            if let Some(event) = desk.events.next().await.map_err(Failure::failed)? {
                desk.show(&event, context);
            }
        }
        Ok(desk)
    }

    fn show(&mut self, event: &Event, context: &mut Context) {
        match &event.body {
            EventBody::ToolStarted { call_id, arguments, .. } => {
                self.arguments.insert(call_id.clone(), arguments.clone());
            }
            EventBody::ToolFinished { call_id, .. } => drop(self.arguments.remove(call_id)),
            _ => {}
        }
        if self.json {
            context.ui.json_line(event);
        } else {
            self.view.show(&mut context.ui, event);
        }
    }

    /// The next prompt that is typed; `None` after Ctrl-D.
    pub(crate) async fn prompt(&mut self, context: &mut Context) -> Result<Option<String>, Interrupted> {
        loop {
            while let Ok(line) = self.lines.try_recv() {
                context.ui.talk(line);
            }
            context.ui.talk_raw("\n> ");
            match self.line(context).await? {
                Some(line) if line.trim().is_empty() => {}
                line => return Ok(line),
            }
        }
    }

    /// Shows a turn until it ends.
    pub(crate) async fn turn(&mut self, daemon: &Daemon, context: &mut Context) -> Result<Ended, Failure> {
        let (mut stopping, mut ending) = (false, false);
        loop {
            let event = tokio::select! {
                biased;
                interrupt = self.interrupts.next() => {
                    // The terminal shows `^C` where the cursor stood.
                    context.ui.talk("");
                    ending |= stopping || interrupt == Interrupt::End;
                    stopping = true;
                    daemon.stop().await;
                    continue;
                }
                Some(line) = self.lines.recv() => {
                    self.view.end_line(&mut context.ui);
                    context.ui.talk(line);
                    continue;
                }
                event = self.events.next() => event.map_err(Failure::failed)?,
            };
            let Some(event) = event else { return Ok(Ended::Turn(FinishReason::Interrupted)) };
            self.show(&event, context);
            if let EventBody::TurnFinished { reason, .. } = &event.body
                && event.session == self.session
            {
                return Ok(if ending { Ended::Program } else { Ended::Turn(*reason) });
            }
            if context.ui.unheard() && !stopping {
                // Nobody reads the answer any more.
                stopping = true;
                daemon.stop().await;
                continue;
            }
            if stopping {
                // What a stopped turn still asks is answered by the stop.
                continue;
            }
            match self.ask(&event, context).await {
                Ok(None) => {}
                // The turn may have ended meanwhile; then nothing is open any more.
                Ok(Some((id, reply))) => drop(daemon.reply(&id, reply).await),
                Err(Interrupted) => {
                    context.ui.talk("");
                    stopping = true;
                    daemon.stop().await;
                }
            }
        }
    }

    /// Asks what an event asks, if it does and somebody is there; where nobody is, the harness has answered already.
    async fn ask(
        &mut self,
        event: &Event,
        context: &mut Context,
    ) -> Result<Option<(String, Reply)>, Interrupted> {
        if !context.stdin.terminal {
            return Ok(None);
        }
        match &event.body {
            EventBody::PermissionAsked { id, call_id, tool, patterns } => {
                self.view.end_line(&mut context.ui);
                let arguments = self.arguments.get(call_id).map_or("", String::as_str);
                context.ui.talk_raw(&visible(&asking::permission(tool, patterns, arguments)));
                let line = self.line(context).await?;
                Ok(Some((id.clone(), asking::permission_reply(line.as_deref()))))
            }
            EventBody::QuestionAsked { id, questions, .. } => {
                self.view.end_line(&mut context.ui);
                let mut answers = Vec::new();
                for question in questions {
                    context.ui.talk_raw(&visible(&asking::question(question)));
                    let line = self.line(context).await?.unwrap_or_default();
                    answers.push(asking::question_reply(question, &line));
                }
                Ok(Some((id.clone(), Reply::Answers { answers })))
            }
            _ => Ok(None),
        }
    }

    /// The next line that is typed; `None` after Ctrl-D.
    async fn line(&mut self, context: &mut Context) -> Result<Option<String>, Interrupted> {
        let answers = self.answers.get_or_insert_with(|| answers(context));
        tokio::select! {
            line = answers.recv() => Ok(line),
            _ = self.interrupts.next() => Err(Interrupted),
        }
    }
}

/// A model's words as a question shows them: no control character can move the cursor over what is asked.
fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// Lines that a person types. Reading blocks, so a thread of its own does it, one line ahead of who asks. The thread is left
/// behind at the end: nothing can interrupt its read.
fn answers(context: &mut Context) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    if context.stdin.terminal {
        let nothing = Input { reader: Box::new(io::empty()), terminal: true };
        let input = std::mem::replace(&mut context.stdin, nothing);
        std::thread::spawn(move || {
            for line in BufReader::new(input.reader).lines() {
                let Ok(line) = line else { return };
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
    }
    lines
}
