//! Which databases this thread is inside an `update` of.
//!
//! The closure of [`Tree::update`](crate::Tree::update) runs with the stripe of its key locked. A
//! write of the same thread to the same database could wait for that stripe, or for one that waits
//! for it; so could a call that `close` or `drop_tree` holds up, which wait for every stripe. They
//! are refused with [`Error::Reentrant`] before they wait. Reads take no stripe and go on.
//!
//! Only `update` writes here, so that a write costs one load of a thread-local and a read nothing.
//! Not seen: a closure that waits for another thread that writes.

#![forbid(unsafe_code)]

use crate::error::{Error, Result};
use std::{
    cell::{Cell, RefCell},
    marker::PhantomData,
};

thread_local! {
    /// Length of `INSIDE`.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// Addresses of the databases, outermost first: the closure may update another one.
    static INSIDE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// While it lives, its thread is inside an `update` of a database.
pub(crate) struct Updating {
    /// It belongs to its thread.
    _not_send: PhantomData<*const ()>,
}

impl Updating {
    /// `database`: an address that no other open database has.
    pub(crate) fn enter<T>(database: &T) -> Self {
        INSIDE.with_borrow_mut(|inside| inside.push(address(database)));
        DEPTH.set(DEPTH.get() + 1);
        Self {
            _not_send: PhantomData,
        }
    }
}

impl Drop for Updating {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        INSIDE.with_borrow_mut(|inside| inside.pop());
    }
}

/// `Reentrant` inside an `update` of `database`. Cost: one load.
#[inline]
pub(crate) fn check<T>(database: &T) -> Result<()> {
    match DEPTH.get() {
        0 => Ok(()),
        _ => check_all(address(database)),
    }
}

#[cold]
fn check_all(database: usize) -> Result<()> {
    match INSIDE.with_borrow(|inside| inside.contains(&database)) {
        true => Err(Error::Reentrant),
        false => Ok(()),
    }
}

fn address<T>(database: &T) -> usize {
    std::ptr::from_ref(database).addr()
}
