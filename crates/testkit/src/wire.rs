//! A server that answers with prepared bytes, for what no decent server would send.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Answers its connections with prepared bytes, the first with the first answer and so on, the last answer again for
/// every later one. Each piece of an answer is written by itself; then the connection is closed.
#[derive(Debug)]
pub struct Canned {
    address: SocketAddr,
    served: Arc<AtomicUsize>,
    stopped: Arc<AtomicBool>,
    /// The connection that is being answered.
    current: Arc<Mutex<Option<TcpStream>>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Canned {
    /// Starts it on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// When the machine gives no port.
    #[allow(clippy::expect_used, reason = "a test cannot go on without its server")]
    #[must_use]
    pub fn start(answers: Vec<Vec<Vec<u8>>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("no free port on 127.0.0.1");
        let address = listener.local_addr().expect("the address of a bound listener");
        let served = Arc::new(AtomicUsize::new(0));
        let stopped = Arc::new(AtomicBool::new(false));
        let current = Arc::new(Mutex::new(None));
        let (count, stop, open) = (Arc::clone(&served), Arc::clone(&stopped), Arc::clone(&current));
        let thread = thread::spawn(move || {
            for socket in listener.incoming().filter_map(Result::ok) {
                *open.lock().unwrap_or_else(PoisonError::into_inner) = socket.try_clone().ok();
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let n = count.fetch_add(1, Ordering::SeqCst);
                if let Some(answer) = answers.get(n).or(answers.last()) {
                    // A client that leaves early is the test's business, not the server's.
                    let _ = serve(socket, answer);
                }
                // The clone would keep the connection open.
                *open.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
        });
        Self { address, served, stopped, current, thread: Some(thread) }
    }

    /// One answer: an event stream of these pieces.
    #[must_use]
    pub fn events(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let head =
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec();
        [head].into_iter().chain(pieces.iter().map(|piece| piece.to_vec())).collect()
    }

    /// One answer: a status with extra header lines (each ending in `\r\n`) and a body.
    #[must_use]
    pub fn status(status: u16, headers: &str, body: &str) -> Vec<Vec<u8>> {
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n");
        vec![head.into_bytes(), body.as_bytes().to_vec()]
    }

    /// `http://127.0.0.1:<port>`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many connections it answered.
    #[must_use]
    pub fn served(&self) -> usize {
        self.served.load(Ordering::SeqCst)
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // A client whose runtime waits for us here neither reads on nor closes: that would be a wait for ever.
        if let Some(socket) = self.current.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = socket.shutdown(Shutdown::Both);
        }
        // Wakes the thread when it waits for a connection.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads one request to its end, then writes the answer.
fn serve(mut socket: TcpStream, answer: &[Vec<u8>]) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut request = Vec::new();
    let mut buffer = [0; 65536];
    while !is_whole(&request) {
        let n = socket.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        request.extend_from_slice(&buffer[..n]);
    }
    for piece in answer {
        socket.write_all(piece)?;
        socket.flush()?;
    }
    Ok(())
}

fn is_whole(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    request.len() >= end + 4 + length
}
