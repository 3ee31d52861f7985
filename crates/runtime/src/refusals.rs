//! Callers that are turned away: in which words, how they are counted, and that they cannot fill the log.

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use tokio::time::Instant;
use tracing::warn;

use crate::metrics::Metrics;

/// How often refusals of one peer are logged.
const LOG_PERIOD: Duration = Duration::from_mins(1);
/// Refusals of further peers are not logged before one of these has been quiet for a while.
const PEERS: usize = 1024;

/// A limit that a caller hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Connections of one peer.
    PeerConnections(usize),
    /// Connections of all.
    Connections(usize),
    /// Time until the first request.
    FirstRequest(Duration),
    /// Time until a request is answered.
    RequestTime(Duration),
    /// Time without a byte of a body.
    BodyStall(Duration),
    /// Time for a body.
    BodyTime(Duration),
    /// Time in which no part of the answer was taken.
    AnswerStall(Duration),
    /// Time for an answer.
    AnswerTime(Duration),
    /// Length of a request's head.
    HeadLength(usize),
    /// Length of a body.
    BodyLength(usize),
    /// Length of a body that does not declare it.
    UndeclaredLength(usize),
    /// Memory for all bodies.
    BodyMemory(usize),
    /// Reviews that wait for their turn.
    Waiting(usize),
    /// Nesting of objects and arrays.
    Depth(usize),
    /// Memory for the objects of a review.
    ObjectMemory(usize),
    /// Objects in a review.
    Objects(usize),
    /// Length of the converted objects.
    AnswerLength(usize),
    /// Tokens that the API server is asked about, in a minute and for one peer.
    TokenReviews(u64),
}

impl Limit {
    /// Its name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PeerConnections(_) => "peer_connections",
            Self::Connections(_) => "connections",
            Self::FirstRequest(_) => "first_request",
            Self::RequestTime(_) => "request_time",
            Self::BodyStall(_) => "body_stall",
            Self::BodyTime(_) => "body_time",
            Self::AnswerStall(_) => "answer_stall",
            Self::AnswerTime(_) => "answer_time",
            Self::HeadLength(_) => "head_length",
            Self::BodyLength(_) => "body_length",
            Self::UndeclaredLength(_) => "undeclared_length",
            Self::BodyMemory(_) => "body_memory",
            Self::Waiting(_) => "waiting",
            Self::Depth(_) => "depth",
            Self::ObjectMemory(_) => "object_memory",
            Self::Objects(_) => "objects",
            Self::AnswerLength(_) => "answer_length",
            Self::TokenReviews(_) => "token_reviews",
        }
    }

    /// The HTTP status that says so.
    pub(crate) fn code(self) -> StatusCode {
        match self {
            Self::RequestTime(_) | Self::BodyStall(_) | Self::BodyTime(_) => StatusCode::REQUEST_TIMEOUT,
            Self::UndeclaredLength(_) => StatusCode::LENGTH_REQUIRED,
            Self::BodyMemory(_) | Self::Waiting(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Depth(_) => StatusCode::BAD_REQUEST,
            Self::HeadLength(_) => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::TokenReviews(_) => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::PAYLOAD_TOO_LARGE,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::PeerConnections(most) => write!(f, "one peer may have {most} connections"),
            Self::Connections(most) => write!(f, "{most} connections are served at once"),
            Self::FirstRequest(limit) => write!(f, "no request arrived within {limit:?}"),
            Self::RequestTime(limit) => write!(f, "the request was not complete within {limit:?}"),
            Self::BodyStall(limit) => write!(f, "no part of the body arrived for {limit:?}"),
            Self::BodyTime(limit) => write!(f, "the body was not complete within {limit:?}"),
            Self::AnswerStall(limit) => write!(f, "no part of the answer was taken for {limit:?}"),
            Self::AnswerTime(limit) => write!(f, "the answer was not taken within {limit:?}"),
            Self::HeadLength(most) => {
                write!(f, "the request's head is larger than the limit of {}", Size(most))
            }
            Self::BodyLength(most) => write!(f, "the body is larger than the limit of {}", Size(most)),
            Self::UndeclaredLength(most) => {
                write!(f, "a body without Content-Length is larger than the limit of {}", Size(most))
            }
            Self::BodyMemory(most) => {
                write!(f, "requests that are being received fill their limit of {}: try again", Size(most))
            }
            Self::Waiting(most) => write!(f, "{most} large reviews are waiting already: try again"),
            Self::Depth(most) => write!(f, "the review is nested deeper than the limit of {most} levels"),
            Self::ObjectMemory(most) => {
                write!(f, "reading the review's objects would take more than the limit of {}", Size(most))
            }
            Self::Objects(most) => write!(f, "the review has more objects than the limit of {most}"),
            Self::AnswerLength(most) => {
                write!(f, "the converted objects are larger than the limit of {}", Size(most))
            }
            Self::TokenReviews(most) => {
                write!(
                    f,
                    "{most} new tokens a minute are checked for one peer, and fewer on a busy server: try again"
                )
            }
        }
    }
}

impl IntoResponse for Limit {
    /// The rest of a body is not read, so nothing else can come on the connection.
    fn into_response(self) -> Response {
        (self.code(), [(header::CONNECTION, "close")], format!("{self}\n")).into_response()
    }
}

struct Size(usize);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes >= 1 << 20 => write!(f, "{} MiB", bytes >> 20),
            bytes => write!(f, "{} KiB", bytes >> 10),
        }
    }
}

/// Counts and logs the refusals of one server.
#[derive(Clone, Debug)]
pub(crate) struct Refusals {
    server: &'static str,
    metrics: Metrics,
    logged: Arc<Mutex<HashMap<IpAddr, Instant>>>,
}

impl Refusals {
    pub(crate) fn new(server: &'static str, metrics: Metrics) -> Self {
        Self { server, metrics, logged: Arc::default() }
    }

    /// A peer hit a limit.
    pub(crate) fn report(&self, peer: IpAddr, limit: Limit) {
        self.count(peer, limit.name(), &limit);
    }

    /// A peer sent something that means nothing.
    pub(crate) fn malformed(&self, peer: IpAddr, words: &str) {
        self.count(peer, "malformed", &words);
    }

    /// A peer began a TLS handshake that failed.
    pub(crate) fn handshake(&self, peer: IpAddr, error: &dyn fmt::Display) {
        self.count(peer, "handshake", &format_args!("the TLS handshake failed: {error}"));
    }

    /// A peer was answered. Some answers are refusals that have no limit of their own.
    pub(crate) fn answered(&self, peer: IpAddr, status: StatusCode) {
        let name = match status {
            StatusCode::UNAUTHORIZED => "unauthenticated",
            StatusCode::FORBIDDEN => "forbidden",
            StatusCode::NOT_FOUND => "path",
            StatusCode::METHOD_NOT_ALLOWED => "method",
            StatusCode::TOO_MANY_REQUESTS => "token_reviews",
            _ => return,
        };
        self.count(peer, name, &format_args!("its request was answered with {status}"));
    }

    fn count(&self, peer: IpAddr, limit: &'static str, reason: &dyn fmt::Display) {
        self.metrics.refused(self.server, limit);
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if is_due(&mut logged, peer, Instant::now()) {
            warn!(server = self.server, %peer, %reason, "turned a caller away; its next refusals are only counted for {LOG_PERIOD:?}");
        }
    }
}

/// Whether a refusal is logged now.
fn is_due(logged: &mut HashMap<IpAddr, Instant>, peer: IpAddr, now: Instant) -> bool {
    if logged.get(&peer).is_some_and(|at| now < *at + LOG_PERIOD) {
        return false;
    }
    if logged.len() >= PEERS {
        logged.retain(|_, at| now < *at + LOG_PERIOD);
    }
    if logged.len() >= PEERS {
        return false;
    }
    logged.insert(peer, now);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_logged_once_a_minute() {
        let (mut logged, start) = (HashMap::new(), Instant::now());
        let peer = |number: u32| IpAddr::from(number.to_be_bytes());
        let at = |seconds| start + Duration::from_secs(seconds);
        for (number, seconds, due) in
            [(1, 0, true), (1, 59, false), (2, 59, true), (1, 60, true), (2, 60, false)]
        {
            assert_eq!(is_due(&mut logged, peer(number), at(seconds)), due, "{number} at {seconds}");
        }
        // However many peers there are, what is kept of them stays small.
        let due = (10..5000).filter(|number| is_due(&mut logged, peer(*number), at(61))).count();
        assert_eq!((due, logged.len()), (PEERS - 2, PEERS));
        assert!(is_due(&mut logged, peer(9000), at(122)));
    }

    #[test]
    fn a_refusal_names_the_limit() {
        for (limit, code, words) in [
            (Limit::HeadLength(64 << 10), 431, "the request's head is larger than the limit of 64 KiB"),
            (
                Limit::TokenReviews(60),
                429,
                "60 new tokens a minute are checked for one peer, and fewer on a busy server: try again",
            ),
            (Limit::BodyLength(64 << 20), 413, "the body is larger than the limit of 64 MiB"),
            (
                Limit::UndeclaredLength(512 << 10),
                411,
                "a body without Content-Length is larger than the limit of 512 KiB",
            ),
            (Limit::BodyStall(Duration::from_secs(5)), 408, "no part of the body arrived for 5s"),
            (Limit::Waiting(64), 503, "64 large reviews are waiting already: try again"),
            (Limit::Depth(100), 400, "the review is nested deeper than the limit of 100 levels"),
        ] {
            assert_eq!((limit.code().as_u16(), limit.to_string().as_str()), (code, words));
        }
    }
}
