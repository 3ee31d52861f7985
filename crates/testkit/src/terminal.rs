//! A terminal that a command believes in, and what a person sees on it.

use std::{
    fs::File,
    io::Read,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Instant,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use rustix::{
    fs::{Mode, OFlags, open},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::wait::LIMIT;

/// A command on a terminal of its own.
pub struct Terminal {
    child: Child,
    output: mpsc::Receiver<String>,
    screen: avt::Terminal,
    received: String,
    seen: Vec<Vec<String>>,
}

impl Terminal {
    /// Starts a command on a terminal of that size.
    pub fn start(mut command: Command, columns: u16, rows: u16) -> Self {
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        // Processes that other tests start at the same time must not hold it open.
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = open(ptsname(&master, Vec::new()).unwrap(), flags, Mode::empty()).unwrap();
        tcsetwinsize(&slave, size).unwrap();
        let end = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm-256color");
        let child = command.spawn().unwrap();
        let (sender, output) = mpsc::channel();
        thread::spawn(move || forward(File::from(master), &sender));
        let screen = avt::Terminal::new(columns.into(), rows.into()).unwrap();
        Self { child, output, screen, received: String::new(), seen: Vec::new() }
    }

    /// The lines that can be seen, but for empty ones at the end.
    pub fn lines(&self) -> Vec<String> {
        let lines = self.screen.screen().visible_lines().map(|it| it.text().trim_end().to_owned());
        let mut lines: Vec<String> = lines.collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    /// All that could be seen so far: the lines as they were whenever the cursor went back to the beginning of its line.
    pub fn seen(&self) -> &[Vec<String>] {
        &self.seen
    }

    /// All that the command has sent so far, with the codes that a terminal acts on.
    pub fn received(&self) -> &str {
        &self.received
    }

    /// Waits until what can be seen satisfies a condition.
    pub fn until(&mut self, what: &str, fits: impl Fn(&[String]) -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !fits(&self.lines()) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(news) = self.output.recv_timeout(left) else {
                panic!("{what} was not seen:\n{}", self.lines().join("\n"));
            };
            self.show(&news);
        }
    }

    /// Sends the signal that Ctrl-C sends.
    pub fn interrupt(&self) {
        let id = self.child.id().try_into().unwrap();
        kill(Pid::from_raw(id), Signal::SIGINT).unwrap();
    }

    /// Waits for the command's end.
    pub fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + LIMIT;
        loop {
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(news) => self.show(&news),
                Err(RecvTimeoutError::Disconnected) => return self.child.wait().unwrap(),
                Err(RecvTimeoutError::Timeout) => panic!("it does not end:\n{}", self.lines().join("\n")),
            }
        }
    }

    fn show(&mut self, news: &str) {
        self.received.push_str(news);
        for piece in news.split_inclusive('\r') {
            if let Some(before) = piece.strip_suffix('\r') {
                self.screen.feed(before);
                self.seen.push(self.lines());
                self.screen.feed('\r');
            } else {
                self.screen.feed(piece);
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // One that has ended already cannot be killed, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes on whole characters until the other end is closed, which reads as an error.
fn forward(mut from: File, to: &mpsc::Sender<String>) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..count]);
        let whole = str::from_utf8(&bytes).map_or_else(|error| error.valid_up_to(), str::len);
        let rest = bytes.split_off(whole);
        let text = String::from_utf8(std::mem::replace(&mut bytes, rest)).unwrap();
        if to.send(text).is_err() {
            return;
        }
    }
}
