//! The memory server's part: walks a subtree in its own region.

use super::request::{self, Answer, Request};
use crate::{
    address::Address,
    lock_word,
    node::{self, Bytes, Change, Edit, NODE_WORDS, TreeKey, VERSION, View, Words},
    remote::Region,
};

/// Runs one request; the pool's handler.
pub fn serve(region: &Region, request: &[u64]) -> Vec<u64> {
    match request::layout(request) {
        Some(<u64 as TreeKey>::LAYOUT) => answer::<u64>(region, request),
        Some(<Bytes<16> as TreeKey>::LAYOUT) => answer::<Bytes<16>>(region, request),
        Some(<Bytes<32> as TreeKey>::LAYOUT) => answer::<Bytes<32>>(region, request),
        Some(<Bytes<64> as TreeKey>::LAYOUT) => answer::<Bytes<64>>(region, request),
        Some(<Bytes<128> as TreeKey>::LAYOUT) => answer::<Bytes<128>>(region, request),
        _ => Answer::NotUnderstood.words::<u64>(),
    }
}

fn answer<K: TreeKey>(region: &Region, request: &[u64]) -> Vec<u64> {
    let answer = match Request::<K>::from_words(request) {
        Some(request) => perform(region, request).unwrap_or(Answer::Damaged),
        None => Answer::NotUnderstood,
    };
    answer.words::<K>()
}

/// `None`: something that is no tree.
fn perform<K: TreeKey>(region: &Region, request: Request<K>) -> Option<Answer<K::Value>> {
    let mut offset = request.root_offset;
    let mut level = None;
    for _ in 0..=node::MAX_LEVEL {
        let words = region.words(offset, NODE_WORDS)?;
        let mut at = View(words.try_into().ok()?);
        let expected = level.unwrap_or_else(|| node::level(&at));
        let here = node::address(&at)?;
        let is_right = node::level(&at) == expected
            && node::layout(&at) == K::LAYOUT
            && here.offset() == offset;
        if !is_right || !K::covers(&at, request.key) {
            return None;
        }
        if expected == 0 {
            return Some(edit(&mut at, offset, request));
        }
        let child = Address::from_word(K::route(&at, request.key).word)?;
        if child.server() != here.server() {
            return Some(Answer::Refused);
        }
        offset = child.offset();
        level = Some(expected - 1);
    }
    None
}

fn edit<K: TreeKey>(
    leaf: &mut View<'_>,
    leaf_offset: u64,
    request: Request<K>,
) -> Answer<K::Value> {
    let removes = matches!(request.edit, Edit::Remove) && K::find(leaf, request.key).is_some();
    if removes && K::count(leaf) == 1 {
        // The compute server merges what is left.
        return Answer::Refused;
    }
    match K::apply(leaf, request.key, request.edit) {
        Change::Full => Answer::Refused,
        Change::Done { old, changed } => {
            if changed {
                let version = lock_word::next(leaf.get(VERSION));
                leaf.set(VERSION, version);
            }
            Answer::Done {
                old,
                changed,
                leaf_offset,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{NODE_BYTES, new_inner, new_leaf};

    const TOP: u64 = 4096;
    const LEAF: u64 = TOP + NODE_BYTES;

    /// An inner node over two leaves; the left one has the key 5.
    fn region() -> Region {
        let region = Region::create(1 << 16).unwrap();
        let at = |offset| Address::new(0, offset);
        let children = [(0, at(LEAF).word()), (100, at(LEAF + NODE_BYTES).word())];
        let top = new_inner(at(TOP), 1, &children, 200);
        let mut left = new_leaf(at(LEAF), 0, 99);
        node::apply(&mut left, 5, Edit::Put(50));
        let right = new_leaf(at(LEAF + NODE_BYTES), 100, 200);
        for (offset, node) in [(TOP, top), (LEAF, left), (LEAF + NODE_BYTES, right)] {
            region.write(offset, &node.0).unwrap();
        }
        region
    }

    fn ask(region: &Region, edit: Edit, key: u64) -> Answer {
        let request = Request {
            edit,
            root_offset: TOP,
            key,
        };
        Answer::from_words::<u64>(&serve(region, &request.words()))
    }

    fn done(old: Option<u64>, changed: bool, leaf_offset: u64) -> Answer {
        Answer::Done {
            old,
            changed,
            leaf_offset,
        }
    }

    #[test]
    fn operations_are_done_in_the_region() {
        let region = region();
        assert_eq!(ask(&region, Edit::Get, 5), done(Some(50), false, LEAF));
        assert_eq!(ask(&region, Edit::Put(1), 6), done(None, true, LEAF));
        let right = LEAF + NODE_BYTES;
        assert_eq!(ask(&region, Edit::Put(2), 150), done(None, true, right));
        assert_eq!(ask(&region, Edit::Remove, 5), done(Some(50), true, LEAF));
        assert_eq!(ask(&region, Edit::Get, 5), done(None, false, LEAF));
        assert_eq!(ask(&region, Edit::Get, 150), done(Some(2), false, right));
    }

    #[test]
    fn what_changes_the_shape_is_refused() {
        let region = region();
        assert_eq!(ask(&region, Edit::Remove, 5), Answer::Refused);
        for key in 10..10 + node::CAPACITY as u64 - 1 {
            assert!(matches!(
                ask(&region, Edit::Put(0), key),
                Answer::Done { .. }
            ));
        }
        assert_eq!(ask(&region, Edit::Put(0), 99), Answer::Refused);
        assert_eq!(ask(&region, Edit::Put(0), 5), done(Some(50), true, LEAF));
    }

    #[test]
    fn what_is_no_tree_is_said_to_be_none() {
        let region = region();
        assert_eq!(ask(&region, Edit::Get, 201), Answer::Damaged);
        let request = [1, 1 << 40, 5, 0];
        assert_eq!(
            Answer::from_words::<u64>(&serve(&region, &request)),
            Answer::Damaged
        );
        assert_eq!(
            Answer::from_words::<u64>(&serve(&region, &[1, 64, 5, 0])),
            Answer::Damaged
        );
        // A node that is its own child.
        let at = Address::new(0, TOP);
        let circle = new_inner(at, 1, &[(0, at.word())], 200);
        region.write(TOP, &circle.0).unwrap();
        assert_eq!(ask(&region, Edit::Get, 5), Answer::Damaged);
        // A child of another server is for the compute server to follow.
        let far = new_inner(at, 1, &[(0, Address::new(1, LEAF).word())], 200);
        region.write(TOP, &far.0).unwrap();
        assert_eq!(ask(&region, Edit::Get, 5), Answer::Refused);
        assert_eq!(
            Answer::from_words::<u64>(&serve(&region, &[])),
            Answer::NotUnderstood
        );
    }
}
