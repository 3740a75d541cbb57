//! What a call asks for, and its answer.
//!
//! | request | answer |
//! |---|---|
//! | edit (1 get, 2 put, 3 remove), offset of the subtree's root, key, value | status, had a value (0, 1), the value, changed (0, 1), offset of the leaf |
//!
//! Status: 0 done; 1 refused, the tree's shape would change; 2 the subtree is damaged; 3 the
//! request is not understood.

use crate::node::Edit;

const GET: u64 = 1;
const PUT: u64 = 2;
const REMOVE: u64 = 3;

const DONE: u64 = 0;
const REFUSED: u64 = 1;
const DAMAGED: u64 = 2;
const NOT_UNDERSTOOD: u64 = 3;

/// An operation below a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) edit: Edit,
    pub(crate) root_offset: u64,
    pub(crate) key: u64,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Done {
        old: Option<u64>,
        changed: bool,
        leaf_offset: u64,
    },
    /// A split or a merge is needed: nothing was done.
    Refused,
    Damaged,
    NotUnderstood,
}

impl Request {
    pub(crate) fn words(self) -> [u64; 4] {
        let (edit, value) = match self.edit {
            Edit::Get => (GET, 0),
            Edit::Put(value) => (PUT, value),
            Edit::Remove => (REMOVE, 0),
        };
        [edit, self.root_offset, self.key, value]
    }

    pub(crate) fn from_words(words: &[u64]) -> Option<Self> {
        let &[edit, root_offset, key, value] = words else {
            return None;
        };
        let edit = match edit {
            GET => Edit::Get,
            PUT => Edit::Put(value),
            REMOVE => Edit::Remove,
            _ => return None,
        };
        Some(Self {
            edit,
            root_offset,
            key,
        })
    }
}

impl Answer {
    pub(crate) fn words(self) -> Vec<u64> {
        match self {
            Self::Done {
                old,
                changed,
                leaf_offset,
            } => vec![
                DONE,
                u64::from(old.is_some()),
                old.unwrap_or(0),
                u64::from(changed),
                leaf_offset,
            ],
            Self::Refused => vec![REFUSED],
            Self::Damaged => vec![DAMAGED],
            Self::NotUnderstood => vec![NOT_UNDERSTOOD],
        }
    }

    pub(crate) fn from_words(words: &[u64]) -> Self {
        match *words {
            [DONE, had @ 0..=1, old, changed @ 0..=1, leaf_offset] => Self::Done {
                old: (had == 1).then_some(old),
                changed: changed == 1,
                leaf_offset,
            },
            [REFUSED] => Self::Refused,
            [DAMAGED] => Self::Damaged,
            _ => Self::NotUnderstood,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_come_as_they_were_sent() {
        for edit in [Edit::Get, Edit::Put(9), Edit::Remove] {
            let request = Request {
                edit,
                root_offset: 4096,
                key: 7,
            };
            assert_eq!(Request::from_words(&request.words()), Some(request));
        }
        assert_eq!(Request::from_words(&[4, 0, 0, 0]), None);
        assert_eq!(Request::from_words(&[1, 0, 0]), None);
        let done = Answer::Done {
            old: Some(3),
            changed: true,
            leaf_offset: 8192,
        };
        for answer in [
            done,
            Answer::Refused,
            Answer::Damaged,
            Answer::NotUnderstood,
        ] {
            assert_eq!(Answer::from_words(&answer.words()), answer);
        }
        assert_eq!(Answer::from_words(&[]), Answer::NotUnderstood);
    }
}
