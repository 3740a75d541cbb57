//! A sequence of accesses, four bytes each.

/// What is done to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is read. Counted.
    Read,
    /// It is read to be written. The read is counted.
    Update,
    /// It is written without a look at it. Not counted: no policy reads the disk for it.
    Write,
    /// It is read by a pass over everything, whose hits say nothing. Not counted.
    Pass,
}

/// Numbers are below this: the rest of the word says what is done.
pub const MOST_KEYS: u64 = 1 << KEY_BITS;
const KEY_BITS: u32 = 30;

/// A sequence of accesses.
#[derive(Debug, Clone)]
pub struct Trace {
    /// Its name.
    pub name: String,
    /// All numbers are below.
    pub keys: u32,
    packed: Vec<u32>,
}

impl Trace {
    /// An empty one over `keys` numbers, at most 2^30.
    pub fn new(name: &str, keys: u32) -> Self {
        assert!(u64::from(keys) <= MOST_KEYS, "{keys} keys");
        Self {
            name: name.to_owned(),
            keys,
            packed: Vec::new(),
        }
    }

    /// Adds an access to `key`, which is below `keys`.
    pub fn push(&mut self, key: u32, access: Access) {
        debug_assert!(key < self.keys);
        self.packed.push(key | (access as u32) << KEY_BITS);
    }

    /// How many accesses there are.
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// The access at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> (u32, Access) {
        unpacked(self.packed[index])
    }

    /// All of them.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, Access)> + ExactSizeIterator + '_ {
        self.packed.iter().map(|word| unpacked(*word))
    }
}

#[inline]
fn unpacked(word: u32) -> (u32, Access) {
    let access = match word >> KEY_BITS {
        0 => Access::Read,
        1 => Access::Update,
        2 => Access::Write,
        _ => Access::Pass,
    };
    (word & (MOST_KEYS - 1) as u32, access)
}

/// How large the traces are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// Keys, about.
    pub keys: u32,
    /// Accesses, about.
    pub accesses: u32,
    /// Decides all draws.
    pub seed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_holds_key_and_access() {
        let mut trace = Trace::new("x", MOST_KEYS as u32);
        let last = (MOST_KEYS - 1) as u32;
        let all = [Access::Read, Access::Update, Access::Write, Access::Pass];
        all.into_iter().for_each(|access| trace.push(last, access));
        let seen: Vec<_> = trace.iter().collect();
        assert_eq!(seen, all.map(|access| (last, access)));
    }
}
