//! Bodies that report what becomes of them.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http_body::{Body, Frame, SizeHint};

/// What is known of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// A part of it went through.
    Moved,
    /// All of it did, or the other side wants no more.
    Done,
}

/// A body that reports its progress.
pub(super) struct Noted<B, F: Fn(Progress)> {
    body: B,
    report: F,
}

impl<B, F: Fn(Progress)> Noted<B, F> {
    pub(super) fn new(body: B, report: F) -> Self {
        Self { body, report }
    }
}

impl<B: Body + Unpin, F: Fn(Progress) + Unpin> Body for Noted<B, F> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_ready() {
            let is_last = self.body.is_end_stream() || matches!(frame, Poll::Ready(None));
            (self.report)(if is_last { Progress::Done } else { Progress::Moved });
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B, F: Fn(Progress)> Drop for Noted<B, F> {
    fn drop(&mut self) {
        (self.report)(Progress::Done);
    }
}
