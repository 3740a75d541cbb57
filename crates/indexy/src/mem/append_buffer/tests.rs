//! Threads on one buffer. Under the model checker (`RUSTFLAGS="--cfg loom" cargo test -p indexy
//! --lib append_buffer`) every interleaving of two appenders and the one who seals; else many of
//! them.

use super::*;

/// Splits bytes into the pieces `[n; n]` that the tests append; panics on anything else.
#[track_caller]
fn pieces(bytes: &[u8]) -> Vec<u8> {
    let mut rest = bytes;
    let mut found = Vec::new();
    while let Some(&n) = rest.first() {
        assert_eq!(rest[..n as usize], vec![n; n as usize], "a torn piece");
        rest = &rest[n as usize..];
        found.push(n);
    }
    found
}

#[cfg(all(loom, test))]
mod modelled {
    use super::*;
    use loom::{sync::Arc, thread};

    impl Filled<'_> {
        /// For the rest of the crate to compile; the models read copies.
        pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
            unreachable!("not in a model")
        }

        fn to_vec(&self) -> Vec<u8> {
            // SAFETY: the phase is `TAKEN` and all copies are complete.
            unsafe { self.buffer.bytes.copy(self.buffer.headroom, self.len) }
        }
    }

    /// Appends in a thread of its own; returns the pieces that got in, with the position behind
    /// each.
    fn appender(
        buffer: &Arc<AppendBuffer>,
        shard: usize,
        pieces: &'static [&'static [u8]],
    ) -> thread::JoinHandle<Vec<(u8, u64)>> {
        let buffer = buffer.clone();
        thread::spawn(move || {
            platform::SHARD.with(|s| s.set(shard));
            let appended = pieces.iter().map(|p| (p[0], buffer.append(&[p])));
            appended
                .filter_map(|(n, end)| Some((n, end.ok()?)))
                .collect()
        })
    }

    /// The pieces in `bytes`, with the position behind each.
    fn placed(bytes: &[u8], base: u64) -> Vec<(u8, u64)> {
        let mut at = base;
        let place = |n| {
            at += u64::from(n);
            (n, at)
        };
        pieces(bytes).into_iter().map(place).collect()
    }

    /// Two appenders, of which the later overshoot, beside a sealer: what is taken is what was
    /// acknowledged.
    #[test]
    fn what_was_acknowledged_is_taken_whole() {
        loom::model(|| {
            let buffer = Arc::new(AppendBuffer::new(0, 3, 0));
            assert!(buffer.open(10));
            let a = appender(&buffer, 0, &[&[2, 2], &[1]]);
            let b = appender(&buffer, 1, &[&[1]]);
            let len = buffer.seal().unwrap();
            let filled = buffer.take().unwrap();
            let found = placed(&filled.to_vec(), 10);
            assert_eq!(found.last().map_or(10, |p| p.1), 10 + len);
            filled.release();
            let mut acknowledged = a.join().unwrap();
            acknowledged.extend(b.join().unwrap());
            acknowledged.sort_unstable_by_key(|p| p.1);
            assert_eq!(found, acknowledged);
        });
    }

    /// A buffer that is opened again beside an appender that still believes in the first opening.
    #[test]
    fn a_late_appender_lands_in_the_next_opening_or_nowhere() {
        loom::model(|| {
            let buffer = Arc::new(AppendBuffer::new(0, 2, 0));
            assert!(buffer.open(0));
            let a = appender(&buffer, 0, &[&[1], &[2, 2]]);
            buffer.seal().unwrap();
            let filled = buffer.take().unwrap();
            let mut found = placed(&filled.to_vec(), 0);
            filled.release();
            assert!(buffer.open(100));
            let acknowledged = a.join().unwrap();
            buffer.seal().unwrap();
            found.extend(placed(&buffer.take().unwrap().to_vec(), 100));
            assert_eq!(found, acknowledged);
        });
    }
}

#[cfg(not(all(loom, test)))]
mod native {
    use super::*;
    use std::thread;

    #[test]
    fn pieces_are_whole_and_positions_exact() {
        let rounds = if cfg!(miri) { 20 } else { 3000 };
        let buffer = AppendBuffer::new(4, 100, 4);
        let mut base = 0;
        for _ in 0..rounds {
            assert!(buffer.open(base));
            assert!(!buffer.open(base), "open already");
            let mut ends: Vec<(u64, u8)> = thread::scope(|s| {
                let threads: Vec<_> = (1..=3u8)
                    .map(|n| {
                        let buffer = &buffer;
                        s.spawn(move || {
                            let piece = [n; 3];
                            (0..30)
                                .filter_map(|_| {
                                    buffer.append(&[&piece[..1], &piece[1..n as usize]]).ok()
                                })
                                .map(|end| (end, n))
                                .collect::<Vec<_>>()
                        })
                    })
                    .collect();
                threads
                    .into_iter()
                    .flat_map(|t| t.join().unwrap())
                    .collect()
            });
            ends.sort_unstable();
            let end = buffer.reserved_end().unwrap();
            let len = buffer.seal().unwrap();
            assert_eq!(end, base + len);
            assert_eq!(buffer.append(&[b"x"]), Err(Full));
            let mut filled = buffer.take().unwrap();
            assert!(buffer.take().is_none(), "taken already");
            let found = pieces(&filled.bytes_mut()[4..4 + len as usize]);
            let mut at = base;
            for (found, (end, n)) in found.iter().zip(&ends) {
                at += u64::from(*n);
                assert_eq!((found, at), (n, *end));
            }
            assert_eq!(found.len(), ends.len());
            base = at;
            drop(filled);
            // Dropped, it is sealed as before.
            buffer.take().unwrap().release();
        }
    }

    /// Seals in the middle of appends: the copies under way are waited for.
    #[test]
    fn taking_waits_for_copies_under_way() {
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        let buffer = AppendBuffer::new(0, 1 << 16, 0);
        let piece = [200u8; 200];
        let stop = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    while !stop.load(Relaxed) {
                        let _ = buffer.append(&[&piece]);
                    }
                });
            }
            for round in 0..rounds {
                assert!(buffer.open(0));
                for _ in 0..round % 50 {
                    std::hint::spin_loop();
                }
                let len = buffer.seal().unwrap() as usize;
                let mut filled = buffer.take().unwrap();
                assert_eq!(pieces(&filled.bytes_mut()[..len]).len() * 200, len);
                filled.bytes_mut()[..len].fill(0);
                filled.release();
            }
            stop.store(true, Relaxed);
        });
    }

    #[test]
    fn nothing_and_too_much_are_refused() {
        let buffer = AppendBuffer::new(0, 8, 0);
        assert_eq!(buffer.append(&[b"x"]), Err(Full), "not open yet");
        assert!(buffer.seal().is_none() && buffer.take().is_none());
        assert!(buffer.open(0));
        assert_eq!(buffer.append(&[b"", b""]), Err(Full));
        assert_eq!(buffer.append(&[b"12345", b"6789"]), Err(Full));
        assert_eq!(buffer.append(&[b"1234", b"5678"]), Ok(8));
        assert_eq!(buffer.append(&[b"9"]), Err(Full));
        assert_eq!(buffer.seal(), Some(8));
    }
}
