//! Reviews as the API server sends them: how they are received, and how much of them is in memory at once.
//!
//! Small reviews share a pool of bytes that counts what has arrived, not what is announced. Large ones take turns. A
//! review stays text: what must be read of it is measured first, and read by the webhook that answers it.

mod measure;
mod pool;
mod turns;

use std::{
    io::{self, Write},
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::{StreamExt, stream};
use http_body::Body as _;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::{
    sync::{Notify, Semaphore, oneshot},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use self::{
    measure::{Measure, measure},
    pool::{Growth, Id, Pool},
    turns::{Asked, Turns},
};
use crate::{
    refusals::{Limit, Refusals},
    serve::Peer,
};

/// Reviews beyond this length take turns.
const SMALL: usize = 512 << 10;
/// Small ones of which more than this would be read at the same time do as well.
const SMALL_TREE: usize = 4 << 20;
/// Reviews that would take no more than this to read are answered at once, on the thread that received them: within some
/// milliseconds.
const QUICK_TREE: usize = 512 << 10;
/// Other small ones that are answered at the same time.
const AT_ONCE: usize = 2;
/// What all small ones may hold at once.
const POOL: usize = 48 << 20;
/// Reviews that may wait for their turn.
const WAITING: usize = 64;
/// How long nothing may arrive of a small body, which keeps no other one waiting.
const STALL: Duration = Duration::from_secs(5);
/// How long nothing may arrive of a body whose turn it is.
const TURN_STALL: Duration = Duration::from_secs(2);
/// The least of such a body, and of any answer, that has to move in a second, once it has had two. The API server sends what
/// it has in memory: 64 MiB within six seconds.
const RATE: usize = 16 << 20;
/// Nesting that is read. The schemas of Kubernetes end long before.
const DEPTH: usize = 100;
/// What the objects of a review may take that are read at the same time.
const OBJECT_MEMORY: usize = 64 << 20;
/// An answer is sent in pieces of this length, or as long as a single string in it.
const PIECE: usize = 64 << 10;
/// The uid of a review has 36 characters, other short fields not many more.
const SHORT: usize = 1024;

/// Where reviews are received; it bounds what they hold together.
#[derive(Clone)]
pub(crate) struct Desk {
    shared: Arc<Shared>,
    refusals: Refusals,
}

struct Shared {
    pool: Mutex<Pool<CancellationToken>>,
    /// A body has left the pool.
    left: Notify,
    turns: Mutex<Turns<oneshot::Sender<Turn>>>,
    /// Permits to answer small reviews that are not quick.
    workers: Arc<Semaphore>,
}

/// Why a review is not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A limit.
    Limit(Limit),
    /// It is not what it should be.
    Malformed(String),
}

impl From<Limit> for Fault {
    fn from(limit: Limit) -> Self {
        Self::Limit(limit)
    }
}

/// A long answer. It never moves while it grows, and what is sent of it is given back.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    list: Vec<Vec<u8>>,
    length: usize,
}

impl Pieces {
    pub(crate) fn push(&mut self, text: &str) {
        // Writing into memory cannot fail.
        let _ = self.write_all(text.as_bytes());
    }

    pub(crate) fn push_json(&mut self, value: &Value) {
        // Nor can writing a value.
        let _ = serde_json::to_writer(self, value);
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.list.extend(other.list);
        self.length += other.length;
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.list.last_mut() {
            Some(last) if last.len() + bytes.len() <= PIECE => last.extend_from_slice(bytes),
            _ => self.list.push(bytes.to_vec()),
        }
        self.length += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How reviews of a webhook are answered.
pub(crate) trait Webhook: Send + Sync + 'static {
    /// The longest review that is read.
    const LIMIT: usize;

    /// Whether the objects of a review that are read at the same time take at most so much.
    fn takes_at_most(review: &[u8], memory: usize) -> bool {
        takes_at_most(review, memory)
    }

    /// The answer to a review, or what is wrong with something that is none.
    fn answer(&self, review: &[u8]) -> Result<Answer, Fault>;
}

/// The answer of a webhook.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) pieces: Pieces,
    /// What was wrong with the review although it is answered.
    pub(crate) fault: Option<Fault>,
}

impl Desk {
    pub(crate) fn new(refusals: Refusals) -> Self {
        let shared = Shared {
            pool: Mutex::new(Pool::new(POOL)),
            left: Notify::new(),
            turns: Mutex::new(Turns::new(WAITING)),
            workers: Arc::new(Semaphore::new(AT_ONCE)),
        };
        Self { shared: Arc::new(shared), refusals }
    }

    /// Receives a review and has it answered.
    pub(crate) async fn answer<W: Webhook>(
        &self,
        peer: Option<Peer>,
        headers: &HeaderMap,
        body: Body,
        webhook: Arc<W>,
    ) -> Response {
        // Without a connection there is no peer: in tests.
        let peer = peer.map_or(IpAddr::from([0; 4]), |Peer(peer)| peer);
        let result = async {
            let review = self.receive(peer, headers, body, W::LIMIT).await?;
            self.work(peer, review, webhook).await
        };
        match result.await {
            Ok((answer, hold)) => {
                if let Some(fault) = &answer.fault {
                    self.report(peer, fault);
                }
                self.send(peer, answer.pieces, hold)
            }
            Err(fault) => {
                self.report(peer, &fault);
                match fault {
                    Fault::Limit(limit) => limit.into_response(),
                    Fault::Malformed(words) => {
                        (StatusCode::BAD_REQUEST, format!("{words}\n")).into_response()
                    }
                }
            }
        }
    }

    fn report(&self, peer: IpAddr, fault: &Fault) {
        match fault {
            Fault::Limit(limit) => self.refusals.report(peer, *limit),
            Fault::Malformed(words) => self.refusals.malformed(peer, words),
        }
    }

    async fn receive(
        &self,
        peer: IpAddr,
        headers: &HeaderMap,
        body: Body,
        limit: usize,
    ) -> Result<Review, Fault> {
        let declared =
            headers.get(header::CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
        let declared = declared.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        match declared {
            Some(length) if length > limit => Err(Limit::BodyLength(limit).into()),
            Some(length) if length > SMALL => self.receive_large(peer, body, length).await,
            _ => self.receive_small(peer, body).await,
        }
    }

    async fn receive_small(&self, peer: IpAddr, mut body: Body) -> Result<Review, Fault> {
        let gone = CancellationToken::new();
        let id = lock(&self.shared.pool).enter(peer, Instant::now(), gone.clone());
        let share = Share { id, shared: Arc::clone(&self.shared) };
        let mut text = Vec::new();
        let receive = async {
            while let Some(part) = next(&mut body, STALL).await? {
                if text.len() + part.len() > SMALL {
                    return Err(Limit::UndeclaredLength(SMALL).into());
                }
                share.grow(part.len()).await;
                text.extend_from_slice(&part);
            }
            Ok::<_, Fault>(())
        };
        tokio::select! {
            received = receive => received?,
            () = gone.cancelled() => return Err(Limit::BodyMemory(POOL).into()),
        }
        lock(&self.shared.pool).complete(id);
        Ok(Review { text, hold: Hold::Share(share) })
    }

    async fn receive_large(&self, peer: IpAddr, mut body: Body, length: usize) -> Result<Review, Fault> {
        let turn = self.turn(peer).await?;
        // What is not yet filled takes no memory: the allocator asks for pages of its own.
        let mut text = Vec::with_capacity(length);
        let time = time_for(length);
        let receive = async {
            while let Some(part) = next(&mut body, TURN_STALL).await? {
                if text.len() + part.len() > length {
                    return Err(Fault::Malformed("the body is longer than its Content-Length".to_owned()));
                }
                text.extend_from_slice(&part);
            }
            Ok::<_, Fault>(())
        };
        timeout(time, receive).await.map_err(|_| Limit::BodyTime(time))??;
        Ok(Review { text, hold: Hold::Turn { _turn: turn } })
    }

    async fn turn(&self, peer: IpAddr) -> Result<Turn, Fault> {
        let (sender, receiver) = oneshot::channel();
        let asked = {
            let mut turns = lock(&self.shared.turns);
            turns.forget(oneshot::Sender::is_closed);
            turns.ask(peer, sender)
        };
        match asked {
            Asked::Now(_) => return Ok(Turn { shared: Arc::clone(&self.shared) }),
            // A review that had to leave is refused when this is dropped.
            Asked::Waits(left) => drop(left),
            Asked::Full(_) => return Err(Limit::Waiting(WAITING).into()),
        }
        receiver.await.map_err(|_| Limit::Waiting(WAITING).into())
    }

    async fn work<W: Webhook>(
        &self,
        peer: IpAddr,
        review: Review,
        webhook: Arc<W>,
    ) -> Result<(Answer, Hold), Fault> {
        let Review { text, hold } = review;
        let (hold, permit) = match hold {
            Hold::Share(share) if takes_at_most(&text, QUICK_TREE) => {
                return Ok((look(&text, &*webhook)?, Hold::Share(share)));
            }
            Hold::Share(share) if W::takes_at_most(&text, SMALL_TREE) => {
                (Hold::Share(share), Arc::clone(&self.shared.workers).acquire_owned().await.ok())
            }
            Hold::Share(share) => (Hold::Both { _share: share, _turn: self.turn(peer).await? }, None),
            turn => (turn, None),
        };
        // It may take a second: not on a thread that serves others. Turn and permit are kept to the end even if the caller
        // leaves.
        let work = move || {
            let _permit = permit;
            Ok((look(&text, &*webhook)?, hold))
        };
        let worked = tokio::task::spawn_blocking(work).await;
        worked.unwrap_or_else(|_| Err(Fault::Malformed("this review cannot be read".to_owned())))
    }

    /// Sends the pieces of an answer. What the review holds is free again when the last one is taken.
    fn send(&self, peer: IpAddr, pieces: Pieces, hold: Hold) -> Response {
        let (length, refusals) = (pieces.len(), self.refusals.clone());
        let time = time_for(length);
        let end = Instant::now() + time;
        let pieces = stream::iter(pieces.list).map(move |piece| {
            let _held = &hold;
            if Instant::now() <= end {
                return Ok(Bytes::from(piece));
            }
            let limit = Limit::AnswerTime(time);
            refusals.report(peer, limit);
            Err(io::Error::other(limit.to_string()))
        });
        let headers = [
            (header::CONTENT_TYPE, "application/json".to_owned()),
            (header::CONTENT_LENGTH, length.to_string()),
        ];
        (headers, Body::from_stream(pieces)).into_response()
    }
}

/// How long a body or an answer may take.
#[expect(clippy::cast_precision_loss, reason = "both are lengths of bodies")]
fn time_for(length: usize) -> Duration {
    Duration::from_secs(2) + Duration::from_secs(1).mul_f64(length as f64 / RATE as f64)
}

/// Answers a review that is not too deep.
fn look(text: &[u8], webhook: &impl Webhook) -> Result<Answer, Fault> {
    if measure(text, Measure { depth: DEPTH, tree: usize::MAX }).depth > DEPTH {
        return Err(Limit::Depth(DEPTH).into());
    }
    webhook.answer(text)
}

/// Whether these texts can be read together.
pub(crate) fn check_memory(texts: &[&str]) -> Result<(), Limit> {
    let mut left = OBJECT_MEMORY;
    for text in texts {
        let tree = measure(text.as_bytes(), Measure { depth: usize::MAX, tree: left }).tree;
        left = left.checked_sub(tree).ok_or(Limit::ObjectMemory(OBJECT_MEMORY))?;
    }
    Ok(())
}

/// Whether a text takes at most so much once it is read.
pub(crate) fn takes_at_most(text: &[u8], tree: usize) -> bool {
    measure(text, Measure { depth: usize::MAX, tree }).tree <= tree
}

/// A review as text, but for its outline.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline<'a, R> {
    #[serde(borrow)]
    api_version: Option<&'a RawValue>,
    #[serde(borrow)]
    kind: Option<&'a RawValue>,
    request: Option<R>,
}

/// The request of a review of this kind and version.
pub(crate) fn request<'a, R: Deserialize<'a>>(
    review: &'a [u8],
    api_version: &str,
    kind: &str,
) -> Result<R, Fault> {
    let outline: Outline<'a, R> = serde_json::from_slice(review)
        .map_err(|error| Fault::Malformed(format!("this is not a review in JSON: {error}")))?;
    if (short(outline.api_version).as_str(), short(outline.kind).as_str()) != (api_version, kind) {
        return Err(Fault::Malformed(format!(
            "this is not a review of kind {kind} in {api_version}, which is all that is known here"
        )));
    }
    outline.request.ok_or_else(|| Fault::Malformed("the review has no request".to_owned()))
}

/// A short text that is a field of a review; empty if it is something else.
pub(crate) fn short(field: Option<&RawValue>) -> String {
    let field = field.filter(|field| field.get().len() <= SHORT);
    field.and_then(|field| serde_json::from_str(field.get()).ok()).unwrap_or_default()
}

/// The next bytes of a body.
async fn next(body: &mut Body, stall: Duration) -> Result<Option<Bytes>, Fault> {
    loop {
        let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
        match timeout(stall, frame).await {
            Err(_) => return Err(Limit::BodyStall(stall).into()),
            Ok(None) => return Ok(None),
            Ok(Some(Err(error))) => return Err(Fault::Malformed(format!("the body broke off: {error}"))),
            Ok(Some(Ok(frame))) => {
                // Trailers mean nothing here.
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// A review that has arrived.
struct Review {
    text: Vec<u8>,
    hold: Hold,
}

/// What a review holds until it is answered.
enum Hold {
    Share(Share),
    Turn { _turn: Turn },
    Both { _share: Share, _turn: Turn },
}

/// A small body's part of the pool; free again when dropped.
struct Share {
    id: Id,
    shared: Arc<Shared>,
}

impl Share {
    /// Takes more, once there is room.
    async fn grow(&self, bytes: usize) {
        loop {
            let left = self.shared.left.notified();
            let mut left = std::pin::pin!(left);
            // From here on, no body leaves unnoticed.
            left.as_mut().enable();
            let growth = lock(&self.shared.pool).grow(self.id, bytes, Instant::now());
            let (fits, gone) = match growth {
                Growth::Fits(gone) => (true, gone),
                Growth::Full(gone) => (false, gone),
            };
            gone.iter().for_each(CancellationToken::cancel);
            if fits {
                return;
            }
            left.await;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        lock(&self.shared.pool).leave(self.id);
        self.shared.left.notify_waiters();
    }
}

/// The turn; the next one's when dropped.
struct Turn {
    shared: Arc<Shared>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = lock(&self.shared.turns).release();
        if let Some(next) = next {
            // A caller that waits no more drops it, and it goes on to the next.
            let _ = next.send(Self { shared: Arc::clone(&self.shared) });
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::metrics::Metrics;

    fn desk() -> (Desk, Metrics) {
        let metrics = Metrics::default();
        (Desk::new(Refusals::new("webhooks", metrics.clone())), metrics)
    }

    /// A webhook that answers as a test says.
    struct Played<F>(F);

    impl<F: Fn(&[u8]) -> Result<Answer, Fault> + Send + Sync + 'static> Webhook for Played<F> {
        const LIMIT: usize = 64 << 20;

        fn answer(&self, review: &[u8]) -> Result<Answer, Fault> {
            self.0(review)
        }
    }

    /// A body whose parts come when the test sends them.
    fn body() -> (futures::channel::mpsc::UnboundedSender<Bytes>, Body) {
        let (sender, receiver) = futures::channel::mpsc::unbounded();
        (sender, Body::from_stream(receiver.map(Ok::<_, std::convert::Infallible>)))
    }

    async fn ask(desk: &Desk, peer: u8, length: Option<&str>, body: Body) -> (u16, String) {
        let mut headers = HeaderMap::new();
        if let Some(length) = length {
            headers.insert(header::CONTENT_LENGTH, length.parse().unwrap());
        }
        let peer = Some(Peer(IpAddr::from([10, 0, 0, peer])));
        let echo = |text: &[u8]| {
            let mut pieces = Pieces::default();
            pieces.push(&text.len().to_string());
            Ok(Answer { pieces, fault: None })
        };
        let response = desk.answer(peer, &headers, body, Arc::new(Played(echo))).await;
        let code = response.status().as_u16();
        let text = axum::body::to_bytes(response.into_body(), 1000).await.unwrap();
        (code, String::from_utf8(text.to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_length_beyond_the_limit_is_refused_at_once() {
        let (desk, metrics) = desk();
        for length in ["67108865", "999999999999", "18446744073709551615"] {
            let began = Instant::now();
            let (_open, body) = body();
            let refused = ask(&desk, 1, Some(length), body).await;
            assert_eq!(refused, (413, "the body is larger than the limit of 64 MiB\n".to_owned()));
            assert_eq!(began.elapsed(), Duration::ZERO);
        }
        let counted = "capstan_requests_refused_total{server=\"webhooks\",limit=\"body_length\"} 3";
        assert!(metrics.expose().contains(counted), "{}", metrics.expose());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_makes_no_progress_is_ended() {
        let (desk, _) = desk();
        for (length, seconds) in [(None, 5), (Some("9"), 5), (Some("1000000"), 2)] {
            let (sender, body) = body();
            sender.unbounded_send(Bytes::from("half")).unwrap();
            let began = Instant::now();
            let (code, words) = ask(&desk, 1, length, body).await;
            assert_eq!(code, 408, "{words}");
            assert_eq!(words, format!("no part of the body arrived for {seconds}s\n"));
            assert_eq!(began.elapsed().as_secs(), seconds);
        }
        // Nor may a large one trickle.
        let slow = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Some((Ok::<_, std::convert::Infallible>(Bytes::from("x")), ()))
        });
        let (code, words) = ask(&desk, 1, Some("8388608"), Body::from_stream(slow)).await;
        assert_eq!((code, words.as_str()), (408, "the body was not complete within 2.5s\n"));
        let (_, words) = ask(&desk, 1, None, Body::from(vec![b' '; SMALL + 1])).await;
        assert_eq!(words, "a body without Content-Length is larger than the limit of 512 KiB\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_review_waits_for_no_stalled_one() {
        let (desk, _) = desk();
        let mut open = Vec::new();
        let mut stalled = Vec::new();
        // As much of small bodies as the pool holds, and large ones that never come.
        for (length, bytes, count) in [(None, SMALL, POOL / SMALL), (Some("60000000"), 0, 20)] {
            for number in 0..count {
                let (sender, body) = body();
                sender.unbounded_send(Bytes::from(vec![b' '; bytes])).unwrap();
                open.push(sender);
                let (desk, peer) = (desk.clone(), if number % 2 == 0 { 1 } else { 2 });
                stalled.push(tokio::spawn(async move { ask(&desk, peer, length, body).await }));
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        let began = Instant::now();
        for length in [Some("2"), None] {
            assert_eq!(ask(&desk, 3, length, Body::from("{}")).await, (200, "2".to_owned()));
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        tokio::time::sleep(Duration::from_millis(10)).await;
        let gone = stalled.iter_mut().filter_map(FutureExt::now_or_never);
        let gone: Vec<_> = gone.map(Result::unwrap).collect();
        let words = "requests that are being received fill their limit of 48 MiB: try again\n";
        assert_eq!(gone, [(503, words.to_owned())], "one made room for both");
    }

    #[tokio::test]
    async fn what_means_nothing_is_counted_as_well() {
        let (desk, metrics) = desk();
        for refuse in [true, false] {
            let fault = || Fault::Malformed("odd".to_owned());
            let answer = move |_: &[u8]| {
                let answered = Answer { pieces: Pieces::default(), fault: Some(fault()) };
                if refuse { Err(fault()) } else { Ok(answered) }
            };
            let response =
                desk.answer(None, &HeaderMap::new(), Body::from("{}"), Arc::new(Played(answer))).await;
            assert_eq!(response.status().as_u16(), if refuse { 400 } else { 200 });
        }
        assert!(metrics.expose().contains("limit=\"malformed\"} 2"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_cannot_be_taken_bit_by_bit() {
        let (desk, metrics) = desk();
        let long = |_: &[u8]| {
            let mut pieces = Pieces::default();
            (0..1000).for_each(|_| pieces.push(&"x".repeat(PIECE)));
            Ok(Answer { pieces, fault: None })
        };
        let response = desk.answer(None, &HeaderMap::new(), Body::from("{}"), Arc::new(Played(long))).await;
        let mut pieces = response.into_body().into_data_stream();
        let began = Instant::now();
        while let Some(Ok(_)) = pieces.next().await {
            tokio::time::sleep(Duration::from_secs(4)).await;
        }
        assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());
        assert!(metrics.expose().contains("limit=\"answer_time\"} 1"));
    }

    #[tokio::test(start_paused = true)]
    async fn large_reviews_of_peers_take_turns() {
        let (desk, _) = desk();
        let mut open = Vec::new();
        for _ in 0..10 {
            let (sender, body) = body();
            open.push(sender);
            let desk = desk.clone();
            tokio::spawn(async move { ask(&desk, 1, Some("60000000"), body).await });
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        let began = Instant::now();
        let length = SMALL + 1;
        let answer = ask(&desk, 2, Some(&length.to_string()), Body::from(vec![b' '; length])).await;
        assert_eq!(answer, (200, length.to_string()));
        assert!(
            began.elapsed() <= TURN_STALL,
            "it comes after one of the other peer's: {:?}",
            began.elapsed()
        );
        // Small ones that are large once they are read need a turn as well.
        let dense = "0,".repeat(SMALL / 4);
        assert!(!takes_at_most(dense.as_bytes(), SMALL_TREE));
        let began = Instant::now();
        assert_eq!(ask(&desk, 2, None, Body::from(dense.clone())).await, (200, dense.len().to_string()));
        assert!(!began.elapsed().is_zero() && began.elapsed() <= TURN_STALL);
    }
}
