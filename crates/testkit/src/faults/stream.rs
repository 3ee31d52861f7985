//! What can happen to the events of a watch on their way.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use http::StatusCode;
use http_body::{Body as _, Frame};
use kube::client::Body;
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};
use tower::BoxError;

use super::numbered::{Fault, LATE, RequestId, Transport, status};

/// A watch that is silent for so long has a quiet moment.
const QUIET: Duration = Duration::from_millis(50);
/// Events that can be on their way at once.
const ON_THE_WAY: usize = 10_000;

/// What comes back from the server, or seems to.
pub(super) enum Answer {
    Whole(Body),
    Streamed(BoxStream<'static, Result<Bytes, BoxError>>),
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut *self {
            Self::Whole(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Self::Streamed(chunks) => {
                chunks.poll_next_unpin(cx).map(|next| next.map(|chunk| chunk.map(Frame::data)))
            }
        }
    }
}

/// The events of a watch, each with its line end, under a fault.
pub(super) fn disturb(
    transport: Transport,
    watch: RequestId,
    body: Body,
    fault: Option<Fault>,
) -> BoxStream<'static, Result<Bytes, BoxError>> {
    let events = lines(body);
    match fault {
        Some(Fault::EventsLate) => events
            .map(move |event| {
                transport.count_event(&watch);
                transport.fire(Fault::EventsLate);
                let due = Instant::now() + LATE;
                async move {
                    sleep_until(due).await;
                    event
                }
            })
            .buffered(ON_THE_WAY)
            .boxed(),
        Some(Fault::EventsDoubled) => events
            .flat_map(move |event| {
                transport.count_event(&watch);
                let Ok(event) = event else { return stream::iter(vec![event]) };
                transport.fire(Fault::EventsDoubled);
                stream::iter(vec![Ok(event.clone()), Ok(event)])
            })
            .boxed(),
        Some(fault @ (Fault::GoneInPlaceOf(place) | Fault::CutInPlaceOf(place))) => {
            stream::unfold(Some(events), move |events| {
                let (transport, watch) = (transport.clone(), watch.clone());
                async move {
                    let mut events = events?;
                    let next = if place == 0 {
                        timeout(QUIET, events.next()).await.ok()
                    } else {
                        Some(events.next().await)
                    };
                    let strikes = match &next {
                        None => true,
                        Some(Some(Ok(_))) => transport.count_event(&watch) == place,
                        Some(_) => false,
                    };
                    if !strikes {
                        return next.flatten().map(|event| (event, Some(events)));
                    }
                    transport.fire(fault);
                    let event = next.flatten().and_then(Result::ok).unwrap_or_default();
                    Some((Ok(last_words(fault, &event)), None))
                }
            })
            .boxed()
        }
        _ => events
            .inspect(move |_| {
                transport.count_event(&watch);
            })
            .boxed(),
    }
}

/// What is read last of a watch that breaks in place of an event.
fn last_words(fault: Fault, event: &Bytes) -> Bytes {
    match fault {
        Fault::GoneInPlaceOf(_) => {
            let error = json!({"type": "ERROR", "object": status(StatusCode::GONE, "Expired", None)});
            format!("{error}\n").into()
        }
        _ => event.slice(..event.len() / 2),
    }
}

/// A body line by line.
fn lines(body: Body) -> BoxStream<'static, Result<Bytes, BoxError>> {
    let chunks = stream::unfold(body, |mut body| async move {
        loop {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await?;
            match frame.map(Frame::into_data) {
                Ok(Ok(data)) => return Some((Ok(data), body)),
                // Trailers are no events.
                Ok(Err(_)) => {}
                Err(error) => return Some((Err(BoxError::from(error)), body)),
            }
        }
    });
    let state = (Box::pin(chunks), BytesMut::new());
    stream::unfold(state, |(mut chunks, mut waiting)| async move {
        loop {
            if let Some(end) = waiting.iter().position(|byte| *byte == b'\n') {
                let line = waiting.split_to(end + 1).freeze();
                return Some((Ok(line), (chunks, waiting)));
            }
            match chunks.next().await {
                Some(Ok(data)) => waiting.extend_from_slice(&data),
                Some(Err(error)) => return Some((Err(error), (chunks, waiting))),
                None if waiting.is_empty() => return None,
                None => return Some((Ok(waiting.split().freeze()), (chunks, waiting))),
            }
        }
    })
    .boxed()
}
