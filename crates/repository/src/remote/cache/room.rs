//! What a full cache gives up, so that there is room for more.

use std::collections::HashMap;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};

/// For this long after its last use a file stays, however full the cache is: the command that used it may still run, and
/// commands do not know of each other.
const IN_USE: SignedDuration = SignedDuration::from_hours(1);

/// A full cache gets this part of its limit back: not every file that comes should have to make room.
const SPARE: u64 = 10;

/// A file of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub path: PathBuf,
    pub size: u64,
    /// When it was last written or read.
    pub used: Timestamp,
}

impl Stored {
    fn is_in_use(&self, now: Timestamp) -> bool {
        now.duration_since(self.used).abs() < IN_USE
    }
}

/// An entry of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Indexed {
    pub file: Stored,
    /// The content that it names, if it can be read.
    pub blob: Option<PathBuf>,
}

/// All that takes up space.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    pub entries: Vec<Indexed>,
    /// Content, and what unfinished writes have left.
    pub others: Vec<Stored>,
}

impl Inventory {
    pub(super) fn size(&self) -> u64 {
        let entries = self.entries.iter().map(|entry| entry.file.size);
        entries.chain(self.others.iter().map(|file| file.size)).fold(0, u64::saturating_add)
    }

    /// The files to remove, in this order, so that `incoming` bytes fit: first what no entry names, then the entries
    /// that were used least recently, with their content. Nothing goes if `incoming` does not fit in any case.
    pub(super) fn make_room(mut self, incoming: u64, limit: u64, now: Timestamp) -> Option<Vec<Stored>> {
        self.entries.sort_by(|a, b| (a.file.used, &a.file.path).cmp(&(b.file.used, &b.file.path)));
        let mut size = self.size().saturating_add(incoming);
        let mut contents: HashMap<PathBuf, Content> = HashMap::new();
        for file in self.others {
            contents.insert(file.path.clone(), Content { file, names: 0 });
        }
        for blob in self.entries.iter().filter_map(|entry| entry.blob.as_ref()) {
            if let Some(content) = contents.get_mut(blob) {
                content.names += 1;
            }
        }
        let orphans = contents.values().filter(|it| it.names == 0 && !it.file.is_in_use(now));
        let mut removed: Vec<Stored> = orphans.map(|it| it.file.clone()).collect();
        let orphans: u64 = removed.iter().map(|file| file.size).sum();
        size = size.saturating_sub(orphans);

        let enough = limit - limit / SPARE;
        for entry in self.entries.into_iter().filter(|entry| !entry.file.is_in_use(now)) {
            if size <= enough {
                break;
            }
            size = size.saturating_sub(entry.file.size);
            removed.push(entry.file);
            let Some(content) = entry.blob.and_then(|blob| contents.get_mut(&blob)) else { continue };
            content.names -= 1;
            if content.names == 0 && !content.file.is_in_use(now) {
                size = size.saturating_sub(content.file.size);
                removed.push(content.file.clone());
            }
        }
        (size <= limit).then_some(removed)
    }
}

/// A file, and how many entries name it.
struct Content {
    file: Stored,
    names: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000;
    const HOUR: i64 = 3600;

    fn file(path: &str, size: u64, age: i64) -> Stored {
        Stored { path: path.into(), size, used: Timestamp::from_second(NOW - age).unwrap() }
    }

    fn entry(path: &str, age: i64, blob: &str) -> Indexed {
        let blob = (!blob.is_empty()).then(|| blob.into());
        Indexed { file: file(path, 1, age), blob }
    }

    /// Three entries of 100 bytes each, the last two with one content; one file that no entry names.
    fn inventory(ages: [i64; 4]) -> Inventory {
        let [old, new, newer, orphan] = ages;
        Inventory {
            entries: vec![entry("newer", newer, "B"), entry("old", old, "A"), entry("new", new, "B")],
            others: vec![file("A", 99, old), file("B", 98, new), file("O", 100, orphan)],
        }
    }

    #[test]
    fn what_was_used_least_recently_goes_first() {
        let long_ago = [9 * HOUR, 8 * HOUR, 7 * HOUR, 6 * HOUR];
        for (ages, incoming, limit, expected) in [
            (long_ago, 0, 300, Some("O")),
            (long_ago, 160, 400, Some("O")),
            // A tenth of the limit is to be free again.
            (long_ago, 161, 400, Some("O old A")),
            (long_ago, 260, 400, Some("O old A")),
            (long_ago, 261, 400, Some("O old A new")),
            (long_ago, 300, 400, Some("O old A new newer B")),
            (long_ago, 400, 400, Some("O old A new newer B")),
            (long_ago, 401, 400, None),
            // Reading makes an entry new.
            ([HOUR, 8 * HOUR, 7 * HOUR, 6 * HOUR], 200, 400, Some("O new newer B")),
            // What is in use stays, and so does its content.
            ([0, 8 * HOUR, 7 * HOUR, 6 * HOUR], 200, 400, Some("O new newer B")),
            ([HOUR - 1, 8 * HOUR, 7 * HOUR, 6 * HOUR], 300, 400, Some("O new newer B")),
            ([HOUR - 1, 8 * HOUR, 7 * HOUR, 6 * HOUR], 301, 400, None),
            ([9 * HOUR, 8 * HOUR, 0, 6 * HOUR], 200, 400, Some("O old A")),
            ([9 * HOUR, 8 * HOUR, 0, 6 * HOUR], 302, 400, None),
            ([0, 0, 0, 0], 101, 400, None),
            // Content that another command has just written is about to be named.
            ([9 * HOUR, 8 * HOUR, 7 * HOUR, 0], 100, 400, Some("old A")),
            // A clock that was set back by a little keeps everything, and by more nothing.
            ([1 - HOUR, 1 - HOUR, 1 - HOUR, 1 - HOUR], 101, 400, None),
            ([-9 * HOUR, -9 * HOUR, -9 * HOUR, -9 * HOUR], 400, 400, Some("O new newer B old A")),
            (long_ago, u64::MAX, u64::MAX, Some("O old A new newer B")),
            (long_ago, 0, 0, Some("O old A new newer B")),
            (long_ago, 1, 0, None),
        ] {
            let now = Timestamp::from_second(NOW).unwrap();
            let removed = inventory(ages).make_room(incoming, limit, now);
            let names: Option<Vec<_>> = removed
                .map(|files| files.iter().map(|file| file.path.to_str().unwrap().to_owned()).collect());
            let case = format!("{ages:?} {incoming} {limit}");
            assert_eq!(names.map(|it| it.join(" ")).as_deref(), expected, "{case}");
        }
    }

    #[test]
    fn an_entry_that_cannot_be_read_goes_like_any_other() {
        let inventory = Inventory {
            entries: vec![entry("gone", 2 * HOUR, "missing"), entry("torn", 3 * HOUR, "")],
            others: Vec::new(),
        };
        assert_eq!(inventory.size(), 2);
        let removed = inventory.make_room(8, 8, Timestamp::from_second(NOW).unwrap()).unwrap();
        assert_eq!(removed, [file("torn", 1, 3 * HOUR), file("gone", 1, 2 * HOUR)]);
    }
}
