//! Which turns run, under which setup, and what users allowed for the rest of a session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Shared;
use crate::contract::{HarnessError, Setup};

/// Setup and running turns stand behind one lock, so that "no turn runs" and "the setup is swapped" are one moment
/// (C2).
pub(super) struct Sessions {
    state: Mutex<State>,
}

struct State {
    setup: Arc<Setup>,
    running: HashMap<String, Signals>,
    /// Per Beeuni session, what its user answered with `always`.
    grants: HashMap<String, Vec<Grant>>,
}

#[derive(Clone)]
struct Signals {
    cancel: CancellationToken,
    /// Its end is being told: nothing but its place is still to be freed.
    ending: bool,
    finished: CancellationToken,
}

/// What a user allowed with `always`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub agent: String,
    pub key: String,
    /// The rule, the folder or the call that it holds for.
    pub scope: String,
}

/// A turn's place among the running ones; it is free again when this drops, also when the turn panics.
pub(super) struct Running {
    shared: Arc<Shared>,
    session: String,
    finished: CancellationToken,
    _counted: TaskTrackerToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.sessions.lock().running.remove(&self.session);
        self.finished.cancel();
    }
}

impl Sessions {
    pub fn new(setup: Arc<Setup>) -> Self {
        Self { state: Mutex::new(State { setup, running: HashMap::new(), grants: HashMap::new() }) }
    }

    /// Takes the session's place and gives the setup of its turn.
    pub fn begin(
        &self,
        shared: &Arc<Shared>,
        session: &str,
        cancel: CancellationToken,
    ) -> Result<(Arc<Setup>, Running), HarnessError> {
        let mut state = self.lock();
        if shared.down.is_cancelled() {
            return Err(HarnessError::Down);
        }
        if state.running.contains_key(session) {
            return Err(HarnessError::Busy(session.to_owned()));
        }
        let finished = CancellationToken::new();
        state
            .running
            .insert(session.to_owned(), Signals { cancel, ending: false, finished: finished.clone() });
        let running = Running {
            shared: Arc::clone(shared),
            session: session.to_owned(),
            finished,
            _counted: shared.tasks.token(),
        };
        Ok((Arc::clone(&state.setup), running))
    }

    /// The turn is about to tell its end. Whoever hears that may prompt at once, and is not refused as busy.
    pub fn ending(&self, session: &str) {
        if let Some(signals) = self.lock().running.get_mut(session) {
            signals.ending = true;
        }
    }

    /// Waits for the place of a turn that has told its end.
    pub async fn freed(&self, session: &str) {
        let ending = self.lock().running.get(session).filter(|signals| signals.ending).cloned();
        if let Some(signals) = ending {
            signals.finished.cancelled().await;
        }
    }

    /// Cancels the session's turn and waits for its end.
    pub async fn stop(&self, session: &str) {
        let signals = self.lock().running.get(session).cloned();
        if let Some(Signals { cancel, finished, .. }) = signals {
            cancel.cancel();
            finished.cancelled().await;
        }
    }

    /// Cancels every turn; behind the same lock as [`Sessions::begin`], so that none slips in afterwards.
    pub fn shut_down(&self, down: &CancellationToken) {
        let _state = self.lock();
        down.cancel();
    }

    /// Swaps the setup when nothing runs.
    pub fn reload(&self, setup: Arc<Setup>, down: &CancellationToken) -> Result<(), HarnessError> {
        let mut state = self.lock();
        if down.is_cancelled() {
            return Err(HarnessError::Down);
        }
        if let Some(session) = state.running.keys().next() {
            return Err(HarnessError::Busy(session.clone()));
        }
        state.setup = setup;
        Ok(())
    }

    pub fn granted(&self, root: &str, grant: &Grant) -> bool {
        self.lock().grants.get(root).is_some_and(|grants| grants.contains(grant))
    }

    pub fn grant(&self, root: &str, grant: Grant) {
        let mut state = self.lock();
        let grants = state.grants.entry(root.to_owned()).or_default();
        if !grants.contains(&grant) {
            grants.push(grant);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
