//! Prepared answers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use beeuni_testkit::wire::Canned;

fn ask(server: &Canned) -> TcpStream {
    let mut socket = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
    socket.write_all(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}").unwrap();
    socket
}

#[test]
fn answers_come_in_order_and_the_last_again() {
    let server =
        Canned::start(vec![Canned::status(500, "x: y\r\n", "no"), Canned::events(&[b"data: ", b"a\n\n"])]);
    for expected in ["\r\n\r\nno", "data: a\n\n", "data: a\n\n"] {
        let mut answer = String::new();
        ask(&server).read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with(expected), "{answer}");
    }
    assert_eq!(server.served(), 3);
}

/// A client that neither reads nor leaves must not keep a test from its end.
#[test]
fn it_ends_while_it_writes() {
    let server = Canned::start(vec![Canned::events(&[&vec![b'x'; 64 << 20]])]);
    let mut socket = ask(&server);
    socket.read_exact(&mut [0; 100]).unwrap();
    drop(server);
}
