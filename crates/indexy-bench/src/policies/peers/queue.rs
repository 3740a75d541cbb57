//! Queues of keys that share one array of links: a key is in one queue at most.

const NONE: u32 = u32::MAX;

/// The links of all keys below a number.
#[derive(Debug)]
pub(super) struct Links {
    /// Towards the head, and towards the tail.
    newer: Vec<u32>,
    older: Vec<u32>,
}

impl Links {
    pub(super) fn new(keys: u32) -> Self {
        let none = || vec![NONE; keys as usize];
        Self {
            newer: none(),
            older: none(),
        }
    }

    /// The key that went into the queue of `key` right after it.
    pub(super) fn newer(&self, key: u32) -> Option<u32> {
        some(self.newer[key as usize])
    }
}

fn some(key: u32) -> Option<u32> {
    (key != NONE).then_some(key)
}

/// Keys from the newest, at the head, to the oldest, at the tail.
#[derive(Debug)]
pub(super) struct Queue {
    head: u32,
    tail: u32,
    len: usize,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self {
            head: NONE,
            tail: NONE,
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn oldest(&self) -> Option<u32> {
        some(self.tail)
    }

    /// Puts `key`, which is in no queue, at the head.
    pub(super) fn push(&mut self, links: &mut Links, key: u32) {
        links.newer[key as usize] = NONE;
        links.older[key as usize] = self.head;
        match some(self.head) {
            Some(head) => links.newer[head as usize] = key,
            None => self.tail = key,
        }
        self.head = key;
        self.len += 1;
    }

    /// Takes out `key`, which is in this queue.
    pub(super) fn remove(&mut self, links: &mut Links, key: u32) {
        let (newer, older) = (links.newer[key as usize], links.older[key as usize]);
        match some(newer) {
            Some(newer) => links.older[newer as usize] = older,
            None => self.head = older,
        }
        match some(older) {
            Some(older) => links.newer[older as usize] = newer,
            None => self.tail = newer,
        }
        self.len -= 1;
    }

    /// Takes out the oldest.
    pub(super) fn pop(&mut self, links: &mut Links) -> Option<u32> {
        let key = self.oldest()?;
        self.remove(links, key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_leave_in_the_order_in_which_they_came() {
        let mut links = Links::new(10);
        let (mut queue, mut other) = (Queue::new(), Queue::new());
        [3, 1, 4, 5]
            .into_iter()
            .for_each(|key| queue.push(&mut links, key));
        other.push(&mut links, 9);
        queue.remove(&mut links, 4);
        assert_eq!(
            (queue.len(), links.newer(1), links.newer(5)),
            (3, Some(5), None)
        );
        queue.remove(&mut links, 5);
        queue.push(&mut links, 4);
        let all: Vec<u32> = std::iter::from_fn(|| queue.pop(&mut links)).collect();
        assert_eq!(all, [3, 1, 4]);
        assert_eq!(
            (queue.len(), queue.oldest(), other.oldest()),
            (0, None, Some(9))
        );
        queue.push(&mut links, 3);
        assert_eq!(queue.pop(&mut links), Some(3));
    }
}
