//! A client on a bad day: requests refused, answers lost, news late. The same seed gives the same day.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use kube::{
    Client, Config,
    client::{Body, ClientBuilder},
};
use tokio::time::{Sleep, sleep};
use tower::{BoxError, Layer, Service};

/// How bad the day is: chances in a hundred.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// The same seed gives the same sequence of faults.
    pub seed: u64,
    /// A write never reaches the server.
    pub lost_requests: u64,
    /// A write is carried out, but its answer is lost.
    pub lost_answers: u64,
    /// A write is answered with a conflict that is none.
    pub conflicts: u64,
    /// News on a watch comes late by up to this much.
    pub latest_news: Duration,
}

/// Makes a client that suffers from faults.
pub fn client(mut config: Config, faults: Faults) -> Client {
    config.default_retry = false;
    let state = Arc::new(Mutex::new(faults.seed));
    ClientBuilder::try_from(config).unwrap().with_layer(&FaultLayer { faults, state }).build()
}

#[derive(Clone)]
struct FaultLayer {
    faults: Faults,
    state: Arc<Mutex<u64>>,
}

impl FaultLayer {
    /// A number below `bound`, by xorshift.
    fn roll(&self, bound: u64) -> u64 {
        let mut state = self.state.lock().unwrap();
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state % bound.max(1)
    }
}

impl<S> Layer<S> for FaultLayer {
    type Service = Faulty<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Faulty { layer: self.clone(), inner }
    }
}

struct Faulty<S> {
    layer: FaultLayer,
    inner: S,
}

impl<S, B> Service<Request<Body>> for Faulty<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
{
    type Response = Response<Answer<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let faults = self.layer.faults;
        let is_write = request.method() != Method::GET;
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        let fate = if is_write { self.layer.roll(100) } else { 100 };
        let lost_request = faults.lost_requests;
        let conflict = lost_request + faults.conflicts;
        let lost_answer = conflict + faults.lost_answers;
        if fate < lost_request {
            return async { Err("the request was lost".into()) }.boxed();
        }
        if fate < conflict {
            let answer = Answer::Made(Some(Bytes::from_static(CONFLICT)));
            let answer = Response::builder().status(StatusCode::CONFLICT).body(answer);
            return async move { answer.map_err(Into::into) }.boxed();
        }
        let late = if is_watch {
            self.layer.roll(u64::try_from(faults.latest_news.as_millis()).unwrap())
        } else {
            0
        };
        let response = self.inner.call(request);
        async move {
            let response = response.await.map_err(Into::into)?;
            if fate < lost_answer {
                return Err("the answer was lost".into());
            }
            let delay = Duration::from_millis(late);
            Ok(response.map(|body| Answer::Late { body, delay, waiting: None }))
        }
        .boxed()
    }
}

const CONFLICT: &[u8] = br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Conflict","code":409,"message":"injected"}"#;

/// What comes back.
enum Answer<B> {
    /// The server's own answer, every frame of it late.
    Late { body: B, delay: Duration, waiting: Option<Pin<Box<Sleep>>> },
    /// An answer that no server gave.
    Made(Option<Bytes>),
}

impl<B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for Answer<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut *self {
            Self::Made(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Late { body, delay, waiting } => {
                if !delay.is_zero() {
                    let sleep = waiting.get_or_insert_with(|| Box::pin(sleep(*delay)));
                    if sleep.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
                let frame = Pin::new(body).poll_frame(cx);
                if frame.is_ready() {
                    *waiting = None;
                }
                frame
            }
        }
    }
}
