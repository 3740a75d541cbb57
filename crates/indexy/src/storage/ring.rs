//! Many reads of one file at once, overlapped by the kernel (io_uring), from one thread.
//!
//! Rings are kept for the next caller. One takes about 10 KiB of the kernel's memory and a file
//! descriptor. Without io_uring (old kernels, containers that forbid it), and for what it does not
//! complete, the caller reads one by one.
//!
//! `unsafe`: the kernel writes into buffers after the call that names them. [`complete`] returns,
//! or unwinds, only after every read that it submitted has completed, whatever fails in between.
//! Threads: any. The lock of the idle rings is not held across I/O.

#![allow(unsafe_code)]

use super::ReadAt;
use io_uring::{IoUring, opcode, types};
use parking_lot::Mutex;
use rustix::io::Errno;
use std::{
    fs::File,
    io,
    os::fd::AsRawFd,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Duration,
};

/// Reads in flight at once: what a device works on in parallel.
const DEPTH: usize = 64;
/// Rings kept while nobody uses them.
const IDLE_RINGS: usize = 16;
/// Why the kernel makes no ring that it would make later.
const PASSING: [Errno; 5] = [
    Errno::MFILE,
    Errno::NFILE,
    Errno::NOMEM,
    Errno::AGAIN,
    Errno::INTR,
];
/// Between two attempts when the kernel is short of something.
const PAUSE: Duration = Duration::from_micros(200);

/// Rings that nobody uses, and the process that made them.
static IDLE: Mutex<Idle> = Mutex::new(Idle {
    process: 0,
    rings: Vec::new(),
});
/// The kernel refused to make a ring: it is not asked again.
static REFUSED: AtomicBool = AtomicBool::new(false);

struct Idle {
    process: u32,
    rings: Vec<IoUring>,
}

impl Idle {
    /// The rings of this process. After a fork the child has those of its parent, whose memory both
    /// would write to.
    fn own(&mut self) -> &mut Vec<IoUring> {
        let process = std::process::id();
        if self.process != process {
            self.rings.clear();
            self.process = process;
        }
        &mut self.rings
    }
}

/// Starts all `reads`, each of the file that `file_of` has for its number, and calls `done` with
/// the number and the bytes of each as it completes, while others are still under way; waits for
/// all.
///
/// That is for reads completed in full, whose `got` is set. The others keep what they had there:
/// they reached the end of the file, were interrupted or failed, or there is no ring; the plain
/// call says which.
pub(crate) fn overlap<'f>(
    reads: &mut [ReadAt<'_>],
    file_of: impl Fn(usize) -> &'f File,
    mut done: impl FnMut(usize, &[u8]),
) {
    for (number, wave) in reads.chunks_mut(DEPTH).enumerate() {
        let first = number * DEPTH;
        if wave.len() > 1
            && let Some(mut ring) = taken()
            && complete(
                &mut ring,
                wave,
                |n| file_of(first + n),
                |n, bytes| done(first + n, bytes),
            )
        {
            give_back(ring);
        }
    }
}

/// An idle ring, or a new one.
fn taken() -> Option<IoUring> {
    if let Some(ring) = IDLE.lock().own().pop() {
        return Some(ring);
    }
    if REFUSED.load(Relaxed) {
        return None;
    }
    match IoUring::new(DEPTH as u32) {
        Ok(ring) => Some(ring),
        Err(e) => {
            // Out of descriptors or memory passes; anything else does not.
            let passes = PASSING
                .iter()
                .any(|p| e.raw_os_error() == Some(p.raw_os_error()));
            REFUSED.store(!passes, Relaxed);
            None
        }
    }
}

fn give_back(ring: IoUring) {
    let mut idle = IDLE.lock();
    let rings = idle.own();
    if rings.len() < IDLE_RINGS {
        rings.push(ring);
    }
}

/// Submits up to [`DEPTH`] reads and waits for all that were. Returns whether the ring is empty
/// again.
fn complete<'f>(
    ring: &mut IoUring,
    reads: &mut [ReadAt<'_>],
    file_of: impl Fn(usize) -> &'f File,
    mut done: impl FnMut(usize, &[u8]),
) -> bool {
    let mut flight = Flight {
        ring,
        pending: 0,
        lost: false,
    };
    for (number, read) in reads.iter_mut().enumerate() {
        let len = u32::try_from(read.to.len()).unwrap_or(u32::MAX);
        let file = types::Fd(file_of(number).as_raw_fd());
        let entry = opcode::Read::new(file, read.to.as_mut_ptr(), len)
            .offset(read.offset)
            .build()
            .user_data(number as u64);
        // SAFETY: the file and the buffer, `len` bytes of which are written at most, are borrowed
        // for longer than this function runs, and it neither returns nor unwinds while the read is
        // in flight: `flight` waits when it is dropped. The buffer is not touched before its
        // completion was seen.
        if unsafe { flight.ring.submission().push(&entry) }.is_err() {
            break;
        }
        flight.pending += 1;
    }
    while let Some((number, result)) = flight.next() {
        if let Some(read) = reads.get_mut(number)
            && usize::try_from(result) == Ok(read.to.len())
        {
            read.got = read.to.len();
            done(number, read.to);
        }
    }
    !flight.lost
}

/// Reads that the kernel may be writing to the buffers of. Dropping it waits for them.
struct Flight<'r> {
    ring: &'r mut IoUring,
    pending: usize,
    /// Some entries were never taken by the kernel: they are still in the ring.
    lost: bool,
}

impl Flight<'_> {
    /// Number and result of a read that completed; waits for one. `None`: nothing is in flight.
    fn next(&mut self) -> Option<(usize, i32)> {
        while self.pending > 0 {
            if let Some(entry) = self.ring.completion().next() {
                self.pending -= 1;
                return Some((entry.user_data() as usize, entry.result()));
            }
            match self.ring.submit_and_wait(1) {
                Err(e) if e.kind() != io::ErrorKind::Interrupted => {
                    // What the kernel has not taken it will not write to; the ring goes, with what
                    // is queued in it.
                    if self.pending == self.ring.submission().len() {
                        (self.pending, self.lost) = (0, true);
                    } else {
                        thread::sleep(PAUSE);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const BLOCK: usize = 512;

    /// What the callers do.
    fn read_all<'f>(
        reads: &mut [ReadAt<'_>],
        file_of: impl Fn(usize) -> &'f File,
    ) -> io::Result<()> {
        let mut completed = vec![];
        overlap(reads, &file_of, |n, bytes| {
            completed.push((n, bytes.to_vec()))
        });
        for (n, bytes) in completed {
            assert_eq!((reads[n].got, &bytes[..]), (bytes.len(), &*reads[n].to));
        }
        for (n, read) in reads.iter_mut().enumerate() {
            if read.got < read.to.len() {
                read.got = file_of(n).read_at(read.to, read.offset)?;
            }
        }
        Ok(())
    }

    fn file(blocks: usize, first: u8) -> File {
        let file = tempfile::tempfile().unwrap();
        for n in 0..blocks {
            let block = [first.wrapping_add(n as u8); BLOCK];
            file.write_all_at(&block, (n * BLOCK) as u64).unwrap();
        }
        file
    }

    fn reads<'b>(buffers: &'b mut [Vec<u8>], at: impl Fn(usize) -> usize) -> Vec<ReadAt<'b>> {
        let read = |(n, to): (usize, &'b mut Vec<u8>)| ReadAt {
            offset: (at(n) * BLOCK) as u64,
            to,
            got: 0,
        };
        buffers.iter_mut().enumerate().map(read).collect()
    }

    /// More than a ring holds, in an order of their own, of two files, from several threads.
    #[test]
    fn every_buffer_gets_its_own_bytes() {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let count = 3 * DEPTH + 7;
                    let files = [file(count, 0), file(count, 100)];
                    let mut buffers = vec![vec![0xee; BLOCK]; count];
                    let at = |n| (n * 31) % count;
                    let mut all = reads(&mut buffers, at);
                    read_all(&mut all, |n| &files[n % 2]).unwrap();
                    assert!(all.iter().all(|r| r.got == BLOCK));
                    for (n, buffer) in buffers.iter().enumerate() {
                        let first = 100 * (n % 2) as u8;
                        assert_eq!(buffer, &[first.wrapping_add(at(n) as u8); BLOCK]);
                    }
                });
            }
        });
        assert!(IDLE.lock().own().len() <= IDLE_RINGS);
    }

    /// The caller's panic passes only when nothing is in flight; the ring is not used again.
    #[test]
    fn a_panic_waits_for_the_other_reads() {
        let file = file(DEPTH, 0);
        let mut buffers = vec![vec![0xee; BLOCK]; DEPTH];
        let mut all = reads(&mut buffers, |n| n);
        let panics =
            std::panic::AssertUnwindSafe(|| overlap(&mut all, |_| &file, |_, _| panic!("once")));
        if std::panic::catch_unwind(panics).is_err() {
            // Every buffer was written.
            for (n, buffer) in buffers.iter().enumerate() {
                assert_eq!(buffer, &[n as u8; BLOCK]);
            }
        } else {
            assert!(
                REFUSED.load(Relaxed),
                "there are rings, so something completed"
            );
        }
    }

    #[test]
    fn the_end_of_the_file_is_a_short_read() {
        let file = file(5, 0);
        file.set_len((3 * BLOCK + 100) as u64).unwrap();
        let mut buffers = vec![vec![0xee; BLOCK]; 5];
        let mut all = reads(&mut buffers, |n| n);
        read_all(&mut all, |_| &file).unwrap();
        let got: Vec<usize> = all.iter().map(|r| r.got).collect();
        assert_eq!(got, [BLOCK, BLOCK, BLOCK, 100, 0]);
    }

    #[test]
    fn a_failed_read_is_an_error() {
        let mut buffers = vec![vec![0xee; BLOCK]; 3];
        let directory = File::open("/").unwrap();
        let mut all = reads(&mut buffers, |n| n);
        overlap(
            &mut all,
            |_| &directory,
            |n, _| panic!("read {n} of a directory"),
        );
        assert!(all.iter().all(|read| read.got == 0));
        assert!(read_all(&mut all, |_| &directory).is_err());
    }
}
