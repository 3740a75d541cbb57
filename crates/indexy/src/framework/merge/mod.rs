//! Merges: writes of keys whose values need not be known.
//!
//! A merge of a key that X knows is an ordinary write: its record in the log has the whole value.
//! A merge of a key that only Y may know leaves an *operand* in X, and a record with that
//! (`writes.rs`). Operands of one key wait together. Who reads the key reads Y, too (`reads.rs`).
//! Before a run takes the key, the operand is *resolved*: its entry becomes a value (`resolve.rs`).
//!
//! # Each merge counts once
//!
//! A merge is not idempotent. So what Y has of a key must not hold an operand that replay would
//! merge into it again.
//!
//! 1. A run takes no operand. To resolve one logs a record with the whole value, or one that says
//!    that it made no difference, under the latch under which the entry changes. By I5 that record
//!    is durable before Y shows the value, and by its place in the log it counts for more than the
//!    operand's. It does not lie behind the record of a write that it came before: a write of one
//!    key is logged under the same latch, and a batch keeps resolutions out from its record until
//!    it is applied (`journal.rs`).
//! 2. Replay resolves nothing: it leaves operands as operands, unless the log itself had a value of
//!    the key before, or its removal. It begins with everything mounted, also over a Y that is
//!    empty: that may be another one when it starts again. So where replay starts again at the same
//!    place, it comes to the same.
//! 3. After a replay that had operands the log is cut at its end or beyond, or not at all
//!    (`journal.rs`): else a value that replay merged from a record of the log could be in Y, that
//!    record gone, and the operand's record still there.
//!
//! Be S the start of replay. If the log from S on has a record with a value of the key, or one of
//! its removal, replay starts with that for the key, and merges what comes after it. If it has
//! operands alone, none of them was ever resolved (1, 3), and Y has the value from before them.
//!
//! What waits for replay waited before: memory that was enough is enough (I7), but where an older
//! version combined what waits one by one now.
//!
//! # What readers see
//!
//! The operand of a key, what Y has of it, and the stamp of its range are one value as long as the
//! stamp stands: nothing is removed from the range, so the entry was an operand all the while, and
//! no run took the key, so Y had one value of it all the while. Whatever else changes what Y has
//! (the removal of a range, a value past X, a sorted load) first does away with the operands.
//!
//! Keeps: I1, I3, I4, I5, I6, I7, I8, I10. Not here: what an operator
//! makes of bytes (`operators/`).

#![forbid(unsafe_code)]

mod reads;
mod resolve;
pub(crate) mod writes;
