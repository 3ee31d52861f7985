//! A server for a single request.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::mpsc::{self, Receiver},
    thread,
};

/// Answers one request, whatever it is.
pub(crate) struct Server {
    /// Its address without a path.
    pub(crate) address: String,
    /// The request as it came.
    pub(crate) request: Receiver<String>,
}

impl Server {
    pub(crate) fn start(status: &str, body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close");
        let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let (sender, request) = mpsc::channel();
        thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            let mut buffer = [0; 4096];
            let length = connection.read(&mut buffer).unwrap();
            connection.write_all(answer.as_bytes()).unwrap();
            // Not every test looks at it.
            let _ = sender.send(String::from_utf8_lossy(&buffer[..length]).into_owned());
        });
        Self { address, request }
    }
}
