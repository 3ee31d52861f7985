//! Keys that wait for workers, in turns by group: a group with many keys, or with slow ones, holds up only itself.
//!
//! Groups without a worker come first, in turns. A group that has workers gets one more only while it has fewer than are
//! free. So shares even out as work ends, and as long as there are fewer busy groups than workers, one worker is free for
//! the group that comes next.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

/// Keys by group, in the order in which they are to be worked on.
#[derive(Debug)]
pub(crate) struct Turns<K> {
    workers: usize,
    groups: HashMap<Arc<str>, Group<K>>,
    /// The groups with keys that wait, each once. The first has waited longest for its turn.
    order: VecDeque<Arc<str>>,
    waiting: usize,
    at_work: usize,
}

#[derive(Debug)]
struct Group<K> {
    waiting: VecDeque<K>,
    at_work: usize,
}

impl<K> Turns<K> {
    /// Keys for so many workers.
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            workers: workers.max(1),
            groups: HashMap::new(),
            order: VecDeque::new(),
            waiting: 0,
            at_work: 0,
        }
    }

    /// How many keys wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// Adds a key behind the others of its group.
    pub(crate) fn push(&mut self, group: &Arc<str>, key: K) {
        let known = self
            .groups
            .entry(Arc::clone(group))
            .or_insert_with(|| Group { waiting: VecDeque::new(), at_work: 0 });
        if known.waiting.is_empty() {
            self.order.push_back(Arc::clone(group));
        }
        known.waiting.push_back(key);
        self.waiting += 1;
    }

    /// Takes the next key that may have a worker, if there is one. [`done`](Self::done) gives the worker back.
    pub(crate) fn take(&mut self) -> Option<K> {
        let name = self.next().and_then(|place| self.order.remove(place))?;
        let group = self.groups.get_mut(&name)?;
        let key = group.waiting.pop_front()?;
        group.at_work += 1;
        if !group.waiting.is_empty() {
            self.order.push_back(name);
        }
        self.waiting -= 1;
        self.at_work += 1;
        Some(key)
    }

    /// The place of the group whose turn it is: the first without a worker, or else the first with the fewest.
    fn next(&self) -> Option<usize> {
        let free = self.workers.saturating_sub(self.at_work);
        let mut fewest = None;
        for (place, name) in self.order.iter().enumerate() {
            match self.groups.get(name).map_or(0, |group| group.at_work) {
                0 if free > 0 => return Some(place),
                count if count < free && fewest.is_none_or(|(_, least)| count < least) => {
                    fewest = Some((place, count));
                }
                _ => {}
            }
        }
        fewest.map(|(place, _)| place)
    }

    /// A key of this group needs its worker no more.
    pub(crate) fn done(&mut self, group: &str) {
        let Some(known) = self.groups.get_mut(group).filter(|it| it.at_work > 0) else {
            return;
        };
        known.at_work -= 1;
        self.at_work -= 1;
        if known.at_work == 0 && known.waiting.is_empty() {
            self.groups.remove(group);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn turns(workers: usize, keys: &[&'static str]) -> Turns<&'static str> {
        let mut turns = Turns::new(workers);
        for key in keys {
            turns.push(&group(key), *key);
        }
        turns
    }

    /// The first letter of a key is its group.
    fn group(key: &str) -> Arc<str> {
        key[..1].into()
    }

    #[test]
    fn groups_take_turns_and_leave_room() {
        for (workers, keys, begun) in [
            (1, &["a1", "a2", "b1"][..], &["a1"][..]),
            // The last worker is for a group that has none.
            (2, &["a1", "a2", "a3"], &["a1"]),
            (2, &["a1", "a2", "b1", "b2"], &["a1", "b1"]),
            (3, &["a1", "a2", "a3"], &["a1", "a2"]),
            (4, &["a1", "a2", "a3", "a4"], &["a1", "a2"]),
            (6, &["a1", "a2", "a3", "a4", "b1", "b2", "b3"], &["a1", "b1", "a2", "b2"]),
            (4, &["a1", "b1", "c1", "d1", "e1"], &["a1", "b1", "c1", "d1"]),
            (0, &["a1"], &["a1"]),
        ] {
            let mut turns = turns(workers, keys);
            let taken: Vec<_> = std::iter::from_fn(|| turns.take()).collect();
            assert_eq!(taken, begun, "{workers} workers, {keys:?}");
            assert_eq!(turns.len(), keys.len() - begun.len());
        }
    }

    #[test]
    fn a_worker_that_is_given_back_goes_to_whose_turn_it_is() {
        let mut turns = turns(2, &["a1", "a2", "a3", "b1", "b2"]);
        let mut taken = Vec::new();
        let mut at_work = VecDeque::new();
        loop {
            while let Some(key) = turns.take() {
                at_work.push_back(key);
                taken.push(key);
            }
            let Some(key) = at_work.pop_front() else { break };
            turns.done(&group(key));
        }
        assert_eq!(taken, ["a1", "b1", "a2", "b2", "a3"]);
        assert!(turns.groups.is_empty(), "nothing is kept of groups that have nothing to do");
        turns.done("a");
        assert_eq!(turns.at_work, 0, "a worker that was not taken is not given back");
    }

    #[test]
    fn whoever_comes_next_finds_a_free_worker() {
        for workers in 2..12_usize {
            for busy in 1..workers {
                let mut turns = Turns::new(workers);
                // Keys that are at work, with the moment at which they end.
                let mut at_work: Vec<(Arc<str>, usize)> = Vec::new();
                for now in 0..200 {
                    at_work.retain(|(name, end)| {
                        let stays = *end > now;
                        if !stays {
                            turns.done(name);
                        }
                        stays
                    });
                    for name in 0..busy {
                        let name: Arc<str> = format!("busy {name}").into();
                        for _ in 0..workers {
                            turns.push(&name, Arc::clone(&name));
                        }
                    }
                    while let Some(name) = turns.take() {
                        // They end at different times.
                        let takes = 5 + at_work.len() % 3;
                        at_work.push((name, now + takes));
                    }
                    // What had a worker before others came may keep it until it ends.
                    if now > 20 {
                        assert!(at_work.len() < workers, "{busy} groups have all of {workers} workers");
                    }
                }
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Event {
        Push(u8),
        Take,
        /// One of those at work ends.
        Done(usize),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            4 => (0..6_u8).prop_map(Event::Push),
            4 => Just(Event::Take),
            3 => any::<usize>().prop_map(Event::Done),
        ]
    }

    proptest! {
        #[test]
        fn every_key_has_its_turn(workers in 1..6_usize, events in prop::collection::vec(event(), 0..300)) {
            let name = |group: u8| -> Arc<str> { group.to_string().into() };
            let mut turns = Turns::new(workers);
            let mut waiting: [VecDeque<(u8, usize)>; 6] = Default::default();
            let mut at_work: Vec<u8> = Vec::new();
            // Keys of others that were taken since a group without a worker began to wait for its turn.
            let mut overtaken = [0_usize; 6];
            for (number, event) in events.into_iter().enumerate() {
                match event {
                    Event::Push(group) => {
                        turns.push(&name(group), (group, number));
                        waiting[usize::from(group)].push_back((group, number));
                    }
                    Event::Take => {
                        let Some(key) = turns.take() else {
                            let idle = |group: u8| !waiting[usize::from(group)].is_empty() && !at_work.contains(&group);
                            prop_assert!(at_work.len() == workers || !(0..6).any(idle), "a worker is free for it");
                            continue;
                        };
                        let (group, _) = key;
                        prop_assert_eq!(waiting[usize::from(group)].pop_front(), Some(key), "in order, and once");
                        at_work.push(group);
                        prop_assert!(at_work.len() <= workers);
                        overtaken[usize::from(group)] = 0;
                        for other in (0..6_u8).filter(|other| *other != group) {
                            let waits = !waiting[usize::from(other)].is_empty() && !at_work.contains(&other);
                            let count = &mut overtaken[usize::from(other)];
                            *count = if waits { *count + 1 } else { 0 };
                            prop_assert!(*count <= 5, "others had more than a turn each before {}", other);
                        }
                    }
                    Event::Done(which) if !at_work.is_empty() => {
                        let group = at_work.swap_remove(which % at_work.len());
                        turns.done(&name(group));
                    }
                    Event::Done(_) => {}
                }
                prop_assert_eq!(turns.len(), waiting.iter().map(VecDeque::len).sum::<usize>());
            }
            // Whatever is left gets its turn.
            while turns.len() > 0 {
                while let Some((group, number)) = turns.take() {
                    prop_assert_eq!(waiting[usize::from(group)].pop_front(), Some((group, number)));
                    at_work.push(group);
                }
                let group = at_work.pop();
                prop_assert!(group.is_some(), "keys wait though all workers are idle");
                turns.done(&name(group.unwrap()));
            }
            prop_assert!(waiting.iter().all(VecDeque::is_empty), "nothing is lost");
        }
    }
}
