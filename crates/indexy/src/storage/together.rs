//! Reads of several files at once. Threads: any.

#![forbid(unsafe_code)]

use super::{ReadAt, StorageFile, overlap};
use crate::error::Result;
use std::{fs::File, sync::Arc};

/// Reads all of `reads`, each from the file that has its place in `files`, in any order; at once
/// where the system can.
pub(crate) fn read_together(reads: &mut [ReadAt<'_>], files: &[&dyn StorageFile]) -> Result<()> {
    #[cfg(any(test, feature = "testing"))]
    let _waiting = super::modelled::Waiting::for_reads(reads, files);
    // Held until all is read.
    let opened: Vec<Option<Arc<dyn StorageFile>>> = files
        .iter()
        .map(|file| file.now_open())
        .collect::<Result<_>>()?;
    let files: Vec<&dyn StorageFile> = files
        .iter()
        .zip(&opened)
        .map(|(file, opened)| opened.as_deref().unwrap_or(*file))
        .collect();
    let system: Option<Vec<&File>> = files.iter().map(|file| file.system_file()).collect();
    if let Some(system) = system.filter(|system| system.len() == reads.len()) {
        overlap(reads, |n| system[n], |_, _| {});
    }
    for (read, file) in reads.iter_mut().zip(files) {
        if read.got < read.to.len() {
            read.got = file.read_at(read.to, read.offset)?;
        }
    }
    Ok(())
}
