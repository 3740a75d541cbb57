//! Reads that a thread put aside while the disk is asked for them: the client's side of *abort and
//! restart*.
//!
//! Source: *Larger-than-Memory Data Management on Modern Storage Hardware* (Ma and others), section
//! 4.1. The engine's side is [`Session::get_or_begin`](crate::contender::Session::get_or_begin). A
//! read has a token from when it is asked for until its value was looked at.

/// A read, and what it may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    /// The record.
    pub number: u64,
    /// The least version.
    pub floor: u32,
    /// The record was deleted before.
    pub gone: bool,
}

/// The reads of one thread.
#[derive(Debug)]
pub(super) struct Aside {
    asked: Vec<Option<Asked>>,
    under_way: usize,
}

impl Aside {
    /// For at most `most` reads, 1 or more.
    pub(super) fn new(most: usize) -> Self {
        Self {
            asked: vec![None; most.max(1)],
            under_way: 0,
        }
    }

    /// No further read may begin.
    pub(super) fn is_full(&self) -> bool {
        self.under_way == self.asked.len()
    }

    /// A token for `asked`; none if it is full.
    pub(super) fn begin(&mut self, asked: Asked) -> Option<usize> {
        let free = self.asked.iter().position(Option::is_none)?;
        self.asked[free] = Some(asked);
        self.under_way += 1;
        Some(free)
    }

    /// The read of `token` is over; none if there is none.
    pub(super) fn end(&mut self, token: usize) -> Option<Asked> {
        let asked = self.asked.get_mut(token)?.take()?;
        self.under_way -= 1;
        Some(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_given_once_until_their_read_ends() {
        let mut aside = Aside::new(2);
        let of = |number| Asked {
            number,
            floor: 0,
            gone: false,
        };
        let (a, b) = (aside.begin(of(7)).unwrap(), aside.begin(of(8)).unwrap());
        assert!(a != b && aside.is_full());
        assert_eq!(aside.begin(of(9)), None);
        assert_eq!(aside.end(a), Some(of(7)));
        assert_eq!(aside.end(a), None);
        assert_eq!(aside.end(99), None);
        assert!(!aside.is_full());
        assert_eq!(aside.begin(of(9)), Some(a));
        assert_eq!(aside.end(b), Some(of(8)));
    }
}
