//! Reading what is left of a damaged page file.
//!
//! A whole superblock names the root of the newest durable version. What is under it is certain: a
//! page of an older version has another birth or another place. Without a superblock nothing tells
//! pages in use from those that were freed, so nothing is read.
//! Threads: one. Nothing is written.

use super::{
    file::{PageFile, superblock::Superblock},
    tree::PAGES,
};
use crate::{
    error::{Error, Result},
    storage::Storage,
    y::{
        salvaged::{Salvaged, Visit},
        tolerant::{Hole, Tolerant},
    },
};
use std::path::Path;

/// Reads the tree in `dir`. `owner`: see [`PagedY::open`](super::PagedY); `None`: not known. The
/// file of another one is lost. Errors: those of `visit`, and what is no damage.
pub(crate) fn salvage(
    storage: &dyn Storage,
    dir: &Path,
    owner: Option<u64>,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let opened = open(storage, dir).and_then(|(file, superblock)| {
        superblock.check_owner(owner.unwrap_or(superblock.owner), file.storage.path())?;
        Ok((file, superblock))
    });
    let (file, superblock) = match opened {
        Ok(opened) => opened,
        Err(error) if error.is_no_damage() => return Err(error),
        Err(error) => {
            return visit(Salvaged::Lost(Hole {
                from: Vec::new(),
                to: None,
                error,
            }));
        }
    };
    let (root, height) = (superblock.root, superblock.height);
    Tolerant::new(&file, root, height, &[], None).try_for_each(|found| match found.read() {
        Ok((key, Some(value))) => visit(Salvaged::Entry {
            key,
            value,
            doubtful: false,
        }),
        Ok((_, None)) => Ok(()),
        Err(hole) if hole.error.is_no_damage() => Err(hole.error),
        Err(hole) => visit(Salvaged::Lost(hole)),
    })
}

/// Bytes of a page of the tree in `dir`, as its superblock says.
pub(crate) fn page_bytes(storage: &dyn Storage, dir: &Path) -> Result<u32> {
    open(storage, dir).map(|(_, superblock)| superblock.page_bytes)
}

fn open(storage: &dyn Storage, dir: &Path) -> Result<(PageFile, Superblock)> {
    let file = storage.open(&dir.join(PAGES), false)?;
    let (superblock, _) = Superblock::load(&*file)?;
    let page_bytes = superblock.page_bytes;
    if !super::PAGE_SIZES.contains(&page_bytes) {
        return Err(Error::corrupt(file.path(), 12, "superblock: the page size"));
    }
    let (tree, generation) = (superblock.tree, superblock.generation);
    Ok((
        PageFile::new(file, page_bytes as usize, tree, generation),
        superblock,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        storage::sim::{Fault, Sim},
        y::{large_values, paged::PagedY, pool::PageCache},
    };
    use std::sync::Arc;

    #[test]
    fn large_values_are_read_one_at_a_time() {
        let dir = Path::new("/tree");
        let open = |sim: &Sim| {
            let storage: Arc<dyn Storage> = Arc::new(sim.clone());
            PagedY::open(&storage, dir, 4096, &PageCache::new(0), 1, false)
        };
        large_values::are_read_one_at_a_time(open, |sim, visit| salvage(sim, dir, Some(1), visit));
    }

    #[test]
    fn want_of_descriptors_is_no_loss() {
        let (sim, dir) = (Sim::default(), Path::new("/tree"));
        let mut lost = 0;
        let mut visit = |_| {
            lost += 1;
            Ok(())
        };
        sim.fail_at(0, Fault::NoDescriptors, true);
        let stopped = salvage(&sim, dir, None, &mut visit).unwrap_err();
        assert!(stopped.is_transient());
        sim.heal();
        salvage(&sim, dir, None, &mut visit).unwrap();
        assert_eq!(lost, 1);
    }
}
