//! Where values are, and reads by that: no search in inner pages, no search in the leaf.
//!
//! Source: the radix cache of paper 002, which keeps page and slot of each tuple. Here a page never
//! changes, so that its slots do not, either; what changes is whether the tree still has it
//! (`turns.rs`). A locator also has the frame that the page was in, which a read checks, and of a
//! large value its extent, which goes with the entry in the leaf: so that one is one read of the
//! device, wherever the leaf is.

use crate::{
    error::Result,
    y::{
        contract::{GotAt, Located, Locator, Reach},
        page::{self, PAGE_LIMIT, PageNo, node::Far},
        paged::{tree::PagedY, turns::Turns},
        pool::{located::Spot, search::Found},
    },
};

const NUMBER_BITS: u32 = PAGE_LIMIT.trailing_zeros();
/// A hint is a frame's number and one, in the bits that a page's number leaves; others are not
/// kept.
const HINT_LIMIT: u32 = 1 << (u64::BITS - NUMBER_BITS);

/// Of a locator that is good for all keys of its leaf. A leaf has fewer entries.
const ANY_SLOT: u16 = u16::MAX;

/// What a locator says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) page: PageNo,
    /// The frame that it was in, as a hint (0: none).
    pub(crate) hint: u32,
    pub(crate) turn: u32,
    pub(crate) slot: u16,
    /// Where the value is, if that is not in the leaf.
    pub(crate) far: Option<Far>,
}

impl Place {
    fn locator(self) -> Option<Locator> {
        let hint = if self.hint < HINT_LIMIT { self.hint } else { 0 };
        let mut bytes = [0; Locator::MAX_BYTES];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            page::put(&mut bytes, at, part);
            at += part.len();
        };
        put(&(u64::from(hint) << NUMBER_BITS | self.page).to_le_bytes());
        put(&self.turn.to_le_bytes());
        put(&self.slot.to_le_bytes());
        if let Some(far) = self.far {
            put(&far.first.to_le_bytes());
            put(&far.bytes.to_le_bytes());
        }
        Locator::new(bytes.get(..at)?)
    }

    fn of(locator: &Locator) -> Option<Self> {
        let (word, rest) = locator.bytes().split_first_chunk()?;
        let (turn, rest) = rest.split_first_chunk()?;
        let (slot, rest) = rest.split_first_chunk()?;
        let word = u64::from_le_bytes(*word);
        let far = match rest.split_first_chunk() {
            None => None,
            Some((first, bytes)) => Some(Far {
                first: u64::from_le_bytes(*first),
                bytes: u32::from_le_bytes(bytes.try_into().ok()?),
            }),
        };
        Some(Self {
            page: word & (PAGE_LIMIT - 1),
            hint: (word >> NUMBER_BITS) as u32,
            turn: u32::from_le_bytes(*turn),
            slot: u16::from_le_bytes(*slot),
            far,
        })
    }
}

impl PagedY {
    /// See [`IndexY::locate`](crate::y::IndexY::locate). Cost: as a get.
    pub(crate) fn locate_now(&self, key: &[u8], reach: Reach) -> Result<Located> {
        let turns = self.turns();
        // Rule 2 of `turns.rs`.
        let begin = turns.begin();
        let version = self.version.load();
        let Some((spot, found)) = self.pages.locate(&version.root, key)? else {
            return Ok(Located::default());
        };
        let turn = begin.and_then(|begin| turns.at(begin, self.pages.tag(spot.page)));
        let far = match &found {
            Found::Far(far) if reach == Reach::Key => Some(*far),
            _ => None,
        };
        let value = self.pages.value_of(found)?;
        let Spot {
            page,
            hint,
            slot,
            first,
        } = spot;
        let locator = turn.and_then(|turn| {
            let slot = match reach {
                Reach::Key => u16::try_from(slot).ok()?,
                Reach::Place => ANY_SLOT,
            };
            let place = Place {
                page,
                hint,
                turn,
                slot,
                far,
            };
            place.locator()
        });
        let at = locator.zip(first).filter(|_| value.is_some());
        Ok(Located { value, at })
    }

    /// See [`IndexY::get_at`](crate::y::IndexY::get_at). Cost: of a value in its leaf a frame, or a
    /// read of the device; of a large one a read of the device. A locator of a place reads no leaf:
    /// it may be the wrong one.
    pub(crate) fn get_at_place(&self, key: &[u8], locator: &Locator) -> Result<GotAt> {
        let (Some(place), Some(turns)) = (Place::of(locator), self.turns.get()) else {
            return Ok(GotAt::Stale);
        };
        // Rule 3 of `turns.rs`.
        let _held = self.version.load();
        if turns.of(self.pages.tag(place.page)) != place.turn {
            return Ok(GotAt::Stale);
        }
        if let Some(far) = place.far {
            let value = self.pages.value_of(Found::Far(far))?;
            return Ok(value.map_or(GotAt::NotThere, GotAt::Found));
        }
        let slot = (place.slot != ANY_SLOT).then_some(place.slot.into());
        let seen = self.pages.look_at(place.page, place.hint, key, slot)?;
        let Some((found, hint)) = seen else {
            return Ok(GotAt::NotThere);
        };
        let Some(value) = self.pages.value_of(found)? else {
            return Ok(GotAt::NotThere);
        };
        let has_moved = hint != place.hint && hint != 0;
        let moved = has_moved.then(|| Place { hint, ..place }.locator());
        Ok(match moved.flatten() {
            Some(locator) => GotAt::Moved(value, locator),
            None => GotAt::Found(value),
        })
    }

    fn turns(&self) -> &Turns {
        if let Some(turns) = self.turns.get() {
            return turns;
        }
        // Nothing is shown meanwhile that these turns do not count.
        let _space = self.space.lock();
        self.turns
            .get_or_init(|| Turns::new(self.pages.pool.turns()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locator_says_what_it_was_made_of() {
        let near = Place {
            page: PAGE_LIMIT - 1,
            hint: HINT_LIMIT - 1,
            turn: u32::MAX,
            slot: u16::MAX,
            far: None,
        };
        let far = Place {
            far: Some(Far {
                first: PAGE_LIMIT - 2,
                bytes: u32::MAX,
            }),
            hint: 0,
            ..near
        };
        for place in [near, far] {
            let locator = place.locator().unwrap();
            assert_eq!(Place::of(&locator), Some(place));
            let cut = Locator::new(&locator.bytes()[..locator.bytes().len() - 1]).unwrap();
            assert_ne!(Place::of(&cut), Some(place));
        }
        let unknown = Place {
            hint: HINT_LIMIT,
            ..near
        };
        let kept = Place::of(&unknown.locator().unwrap()).unwrap();
        assert_eq!(kept, Place { hint: 0, ..near });
        assert_eq!(Place::of(&Locator::new(&[]).unwrap()), None);
        assert_eq!(Locator::new(&[0; Locator::MAX_BYTES + 1]), None);
    }
}
