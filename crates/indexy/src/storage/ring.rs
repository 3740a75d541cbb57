//! Many reads of one file at once, overlapped by the kernel (io_uring), from one thread.
//!
//! Rings are kept for the next caller: one takes about 10 KiB of the kernel's memory and a file descriptor. Where
//! there is no io_uring (old kernels, containers that forbid it), and for what it does not complete, reads are made one by one.
//!
//! `unsafe` is here because the kernel writes into buffers after the call that names them. What keeps it sound: [`overlap`]
//! returns only when every read that it submitted has completed, whatever fails in between.
//! Threads: any; the lock of the idle rings is not held across I/O.

#![allow(unsafe_code)]

use super::ReadAt;
use io_uring::{IoUring, opcode, types};
use parking_lot::Mutex;
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
/// Between two attempts when the kernel is short of something.
const PAUSE: Duration = Duration::from_micros(200);

static IDLE: Mutex<Vec<IoUring>> = Mutex::new(Vec::new());
/// The kernel refused to make a ring: it is not asked again.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// What became of a read: as `pread` would say, or nothing.
type Completed = Option<i32>;

/// Starts all `reads` of `file` and waits for them; `one` makes, or completes, a read that the ring did not.
pub(super) fn read_all(
    file: &File,
    reads: &mut [ReadAt<'_>],
    one: impl Fn(&mut ReadAt<'_>) -> crate::error::Result<()>,
) -> crate::error::Result<()> {
    for wave in reads.chunks_mut(DEPTH) {
        let completed = match taken() {
            Some(mut ring) if wave.len() > 1 => {
                let (completed, usable) = overlap(&mut ring, file, wave);
                if usable {
                    give_back(ring);
                }
                completed
            }
            _ => vec![None; wave.len()],
        };
        for (read, result) in wave.iter_mut().zip(completed) {
            match result.map(usize::try_from) {
                Some(Ok(got)) if got == read.to.len() => read.got = got,
                // In part, at the end of the file, interrupted, failed: the plain call says which.
                _ => one(read)?,
            }
        }
    }
    Ok(())
}

/// An idle ring, or a new one.
fn taken() -> Option<IoUring> {
    if let Some(ring) = IDLE.lock().pop() {
        return Some(ring);
    }
    if REFUSED.load(Relaxed) {
        return None;
    }
    match IoUring::new(DEPTH as u32) {
        Ok(ring) => Some(ring),
        Err(e) => {
            // Out of descriptors or memory passes; anything else does not.
            let passes = matches!(e.raw_os_error(), Some(EMFILE | ENFILE | ENOMEM));
            REFUSED.store(!passes, Relaxed);
            None
        }
    }
}

const ENOMEM: i32 = 12;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;

fn give_back(ring: IoUring) {
    let mut idle = IDLE.lock();
    if idle.len() < IDLE_RINGS {
        idle.push(ring);
    }
}

/// Submits up to [`DEPTH`] reads and waits for all that were. Also returns whether the ring is empty again.
fn overlap(ring: &mut IoUring, file: &File, reads: &mut [ReadAt<'_>]) -> (Vec<Completed>, bool) {
    let mut completed = vec![None; reads.len()];
    let mut pending = 0;
    for (number, read) in reads.iter_mut().enumerate() {
        let len = u32::try_from(read.to.len()).unwrap_or(u32::MAX);
        let entry = opcode::Read::new(types::Fd(file.as_raw_fd()), read.to.as_mut_ptr(), len)
            .offset(read.offset)
            .build()
            .user_data(number as u64);
        // SAFETY: `file` and the buffer, `len` bytes of which are written at most, are borrowed by this function,
        // which does not return while the read is in flight: see the loop below.
        if unsafe { ring.submission().push(&entry) }.is_err() {
            break;
        }
        pending += 1;
    }
    while pending > 0 {
        let waited = ring.submit_and_wait(pending);
        for entry in ring.completion() {
            pending -= 1;
            if let Some(slot) = completed.get_mut(entry.user_data() as usize) {
                *slot = Some(entry.result());
            }
        }
        match waited {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => {
                // What the kernel has not taken it will not write to; the ring goes, with what is queued in it.
                if pending == ring.submission().len() {
                    return (completed, false);
                }
                thread::sleep(PAUSE);
            }
            _ => {}
        }
    }
    (completed, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::{os::unix::fs::FileExt, path::Path};

    const BLOCK: usize = 512;

    fn plain<'f>(file: &'f File) -> impl Fn(&mut ReadAt<'_>) -> crate::error::Result<()> + 'f {
        |read| {
            read.got = file
                .read_at(read.to, read.offset)
                .map_err(|e| Error::io("read", Path::new("file"), e))?;
            Ok(())
        }
    }

    fn blocks(count: usize) -> (File, Vec<Vec<u8>>) {
        let file = tempfile::tempfile().unwrap();
        for n in 0..count {
            file.write_all_at(&[n as u8; BLOCK], (n * BLOCK) as u64)
                .unwrap();
        }
        (file, vec![vec![0xee; BLOCK]; count])
    }

    fn reads<'b>(buffers: &'b mut [Vec<u8>], at: impl Fn(usize) -> usize) -> Vec<ReadAt<'b>> {
        let read = |(n, to): (usize, &'b mut Vec<u8>)| ReadAt {
            offset: (at(n) * BLOCK) as u64,
            to,
            got: 0,
        };
        buffers.iter_mut().enumerate().map(read).collect()
    }

    /// More than a ring holds, in an order of their own, from several threads.
    #[test]
    fn every_buffer_gets_its_own_bytes() {
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let count = 3 * DEPTH + 7;
                    let (file, mut buffers) = blocks(count);
                    let at = |n| (n * 31) % count;
                    let mut all = reads(&mut buffers, at);
                    read_all(&file, &mut all, plain(&file)).unwrap();
                    assert!(all.iter().all(|r| r.got == BLOCK));
                    for (n, buffer) in buffers.iter().enumerate() {
                        assert_eq!(buffer, &[at(n) as u8; BLOCK]);
                    }
                });
            }
        });
        assert!(IDLE.lock().len() <= IDLE_RINGS);
    }

    #[test]
    fn the_end_of_the_file_is_a_short_read() {
        let (file, mut buffers) = blocks(5);
        file.set_len((3 * BLOCK + 100) as u64).unwrap();
        let mut all = reads(&mut buffers, |n| n);
        read_all(&file, &mut all, plain(&file)).unwrap();
        let got: Vec<usize> = all.iter().map(|r| r.got).collect();
        assert_eq!(got, [BLOCK, BLOCK, BLOCK, 100, 0]);
    }

    #[test]
    fn a_failed_read_is_an_error() {
        let (_, mut buffers) = blocks(3);
        let directory = File::open("/").unwrap();
        let mut all = reads(&mut buffers, |n| n);
        assert!(read_all(&directory, &mut all, plain(&directory)).is_err());
    }
}
