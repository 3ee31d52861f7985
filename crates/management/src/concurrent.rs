//! Many requests at the same time, but not all of them.

use std::vec;

use futures::{
    StreamExt,
    stream::{self, BufferUnordered, Buffered},
};

/// How many requests to send at the same time. Each may need a connection of its own.
pub const REQUESTS_AT_ONCE: usize = 16;

// Both collect what they are given, so that the futures of their callers do not hold iterators with closures: the
// compiler cannot see that such a future may move to another thread.

/// The answers of requests in any order, [`REQUESTS_AT_ONCE`] at a time.
pub fn at_once<F: Future>(
    requests: impl IntoIterator<Item = F>,
) -> BufferUnordered<stream::Iter<vec::IntoIter<F>>> {
    stream::iter(requests.into_iter().collect::<Vec<_>>()).buffer_unordered(REQUESTS_AT_ONCE)
}

/// The same in the order of the requests.
pub fn at_once_in_order<F: Future>(
    requests: impl IntoIterator<Item = F>,
) -> Buffered<stream::Iter<vec::IntoIter<F>>> {
    stream::iter(requests.into_iter().collect::<Vec<_>>()).buffered(REQUESTS_AT_ONCE)
}
