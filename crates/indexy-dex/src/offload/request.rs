//! What a call asks for, and its answer.
//!
//! | request | answer |
//! |---|---|
//! | edit (1 get, 2 put, 3 remove; 8 bits) and layout of nodes (8), offset of the subtree's root, key, value | status, had a value (0, 1), the value, changed (0, 1), offset of the leaf |
//!
//! Status: 0 done; 1 refused, the tree's shape would change; 2 the subtree is damaged; 3 the
//! request is not understood. A key of bytes is its length and its words; a value beside it is its
//! mark and its words, or nothing.

use crate::node::{Edit, TreeKey};

/// Where the kind of keys stands in the first word.
const LAYOUT_SHIFT: u32 = 8;
const KIND_MASK: u64 = (1 << LAYOUT_SHIFT) - 1;
const GET: u64 = 1;
const PUT: u64 = 2;
const REMOVE: u64 = 3;

const DONE: u64 = 0;
const REFUSED: u64 = 1;
const DAMAGED: u64 = 2;
const NOT_UNDERSTOOD: u64 = 3;

/// An operation below a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request<K: TreeKey = u64> {
    pub(crate) edit: Edit<K::Value>,
    pub(crate) root_offset: u64,
    pub(crate) key: K,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer<V = u64> {
    Done {
        old: Option<V>,
        changed: bool,
        leaf_offset: u64,
    },
    /// A split or a merge is needed: nothing was done.
    Refused,
    Damaged,
    NotUnderstood,
}

/// The kind of keys that a request is about.
pub(super) fn layout(words: &[u64]) -> Option<u8> {
    u8::try_from(words.first()? >> LAYOUT_SHIFT).ok()
}

impl<K: TreeKey> Request<K> {
    pub(crate) fn words(self) -> Vec<u64> {
        let (edit, value) = match self.edit {
            Edit::Get => (GET, None),
            Edit::Put(value) => (PUT, Some(value)),
            Edit::Remove => (REMOVE, None),
        };
        let head = edit | u64::from(K::LAYOUT) << LAYOUT_SHIFT;
        let mut words = vec![head, self.root_offset];
        self.key.push_words(&mut words);
        K::push_value(value, &mut words);
        words
    }

    pub(crate) fn from_words(words: &[u64]) -> Option<Self> {
        let (&[head, root_offset], mut rest) = words.split_first_chunk::<2>()?;
        if layout(words) != Some(K::LAYOUT) {
            return None;
        }
        let key = K::take_words(&mut rest)?;
        let mut nothing = Vec::new();
        K::push_value(None, &mut nothing);
        let without = |edit| (rest == nothing).then_some(edit);
        let edit = match head & KIND_MASK {
            GET => without(Edit::Get)?,
            PUT => Edit::Put(K::value_from(rest)?),
            REMOVE => without(Edit::Remove)?,
            _ => return None,
        };
        Some(Self {
            edit,
            root_offset,
            key,
        })
    }
}

impl<V> Answer<V> {
    pub(crate) fn words<K: TreeKey<Value = V>>(self) -> Vec<u64> {
        match self {
            Self::Done {
                old,
                changed,
                leaf_offset,
            } => {
                let mut words = vec![DONE, u64::from(old.is_some())];
                K::push_value(old, &mut words);
                words.extend([u64::from(changed), leaf_offset]);
                words
            }
            Self::Refused => vec![REFUSED],
            Self::Damaged => vec![DAMAGED],
            Self::NotUnderstood => vec![NOT_UNDERSTOOD],
        }
    }

    pub(crate) fn from_words<K: TreeKey<Value = V>>(words: &[u64]) -> Self {
        match *words {
            [
                DONE,
                had @ 0..=1,
                ref old @ ..,
                changed @ 0..=1,
                leaf_offset,
            ] => {
                let value = if had == 1 { K::value_from(old) } else { None };
                if had == 1 && value.is_none() {
                    return Self::NotUnderstood;
                }
                Self::Done {
                    old: value,
                    changed: changed == 1,
                    leaf_offset,
                }
            }
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
        assert_eq!(Request::<u64>::from_words(&[4, 0, 0, 0]), None);
        assert_eq!(Request::<u64>::from_words(&[1, 0, 0]), None);
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
            assert_eq!(Answer::from_words::<u64>(&answer.words::<u64>()), answer);
        }
        assert_eq!(Answer::from_words::<u64>(&[]), Answer::NotUnderstood);
    }
}
