//! What can go wrong with an answer.

use axum::body::Body;
use axum::http::{Response, header};
use futures::stream;

use super::answer::{Answer, Question};

/// A way to spoil an answer.
#[derive(Debug, Clone)]
pub enum Fault {
    /// The hourly quota is used up until this second.
    RateLimit {
        /// Seconds since 1970.
        reset: i64,
    },
    /// Too many requests at once: wait this many seconds.
    TooManyRequests {
        /// Seconds.
        retry_after: u32,
    },
    /// This status and no more.
    Status(u16),
    /// Half of the content, then the connection breaks.
    Truncate,
    /// The content, with its first byte changed.
    Corrupt,
    /// Go elsewhere; an empty address means the very same one again.
    Redirect(String),
    /// A login page with "200 OK".
    LoginPage,
    /// Nothing, ever.
    Silence,
    /// Half of the content, then nothing, ever.
    Stall,
    /// The content without telling how much it is, followed by this many zeros.
    Padding(usize),
    /// An announced length that is not credible.
    AnnounceLength(u64),
    /// A next page on this other server.
    NextPage(String),
}

impl Fault {
    /// Spoils an answer; nothing for the one that never comes.
    pub(super) fn spoil(self, question: &Question, answer: Answer) -> Option<Response<Body>> {
        let spoilt = match self {
            Self::Silence => return None,
            Self::RateLimit { reset } => Answer::new(403, r#"{"message":"API rate limit exceeded"}"#)
                .with("x-ratelimit-remaining", "0")
                .with("x-ratelimit-reset", &reset.to_string()),
            Self::TooManyRequests { retry_after } => {
                Answer::new(429, "slow down").with("retry-after", &retry_after.to_string())
            }
            Self::Status(status) => Answer::new(status, "spoilt"),
            Self::Redirect(location) if location.is_empty() => {
                Answer::redirect(&format!("{}{}", question.origin(), question.path))
            }
            Self::Redirect(location) => Answer::redirect(&location),
            Self::LoginPage => Answer::new(200, "\n<!DOCTYPE html><html><body>Please log in</body></html>")
                .with("content-type", "text/html"),
            Self::Corrupt => corrupt(answer),
            Self::NextPage(target) => answer.with("link", &format!("<{target}>; rel=\"next\"")),
            Self::Truncate => return Some(break_off(answer, false)),
            Self::Stall => return Some(break_off(answer, true)),
            Self::Padding(zeros) => return Some(pad(answer, zeros)),
            Self::AnnounceLength(length) => {
                let answer = answer.with("content-length", &length.to_string());
                return Some(break_off(answer, false));
            }
        };
        Some(spoilt.into_response())
    }
}

fn corrupt(mut answer: Answer) -> Answer {
    let first = answer.body.first_mut().expect("only what has content can be spoilt");
    *first ^= 1;
    answer
}

type Chunk = Result<Vec<u8>, std::io::Error>;

fn break_off(answer: Answer, stall: bool) -> Response<Body> {
    use futures::StreamExt;
    let length = answer.body.len();
    let half: Chunk = Ok(answer.body[..length / 2].to_vec());
    let body = if stall {
        Body::from_stream(stream::iter([half]).chain(stream::pending::<Chunk>()))
    } else {
        // What was written so far goes out only while the server waits for more.
        let broken = stream::once(async {
            tokio::task::yield_now().await;
            Err(std::io::Error::other("broken on purpose"))
        });
        Body::from_stream(stream::iter([half]).chain(broken))
    };
    let mut response = answer.into_response();
    response.headers_mut().entry(header::CONTENT_LENGTH).or_insert(length.into());
    *response.body_mut() = body;
    response
}

fn pad(answer: Answer, zeros: usize) -> Response<Body> {
    let chunks: [Chunk; 2] = [Ok(answer.body.clone()), Ok(vec![0; zeros])];
    let mut response = answer.into_response();
    *response.body_mut() = Body::from_stream(stream::iter(chunks));
    response
}
