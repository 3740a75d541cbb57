//! Nodes of a load: filled from sorted lists.

use super::{
    key::Bytes,
    packed::Parts,
    slots::{SLOT, room},
    stored::Stored,
};
use crate::{
    address::Address,
    node::layout::{CAPACITY, Image},
};

/// The list is as much as a node filled to `fill` has, by the prefix that its keys have now.
pub(super) fn is_loaded<const N: usize, V>(
    list: &[(Bytes<N>, V)],
    bytes: impl Fn(&V) -> usize,
    fill: usize,
) -> bool {
    let (Some(first), Some(last)) = (list.first(), list.last()) else {
        return false;
    };
    let prefix = first.0.common(&last.0);
    let each = |(key, value): &(Bytes<N>, V)| SLOT + key.as_slice().len() - prefix + bytes(value);
    let used: usize = list.iter().map(each).sum();
    used * CAPACITY >= room(N) * fill
}

pub(super) fn leaf<const N: usize>(
    at: Address,
    low: Bytes<N>,
    high: Bytes<N>,
    entries: &[(Bytes<N>, Stored)],
) -> Option<Image> {
    let mut parts = Parts::new(0, low, high);
    (parts.keys, parts.values) = entries.iter().copied().unzip();
    (parts.used() <= room(N)).then(|| parts.image(at))
}

pub(super) fn inner<const N: usize>(
    at: Address,
    level: u8,
    children: &[(Bytes<N>, u64)],
    high: Bytes<N>,
) -> Option<Image> {
    let mut parts = Parts::new(level, children.first()?.0, high);
    parts.keys = children[1..].iter().map(|child| child.0).collect();
    parts.children = children.iter().map(|child| child.1).collect();
    (parts.used() <= room(N)).then(|| parts.image(at))
}
