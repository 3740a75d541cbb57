//! Tables on a real file system, past the system's cache.

use super::*;
use crate::storage::{Buffered, Direct};
use std::fs;

#[test]
fn a_table_on_a_device_is_the_same_as_a_simulated_one() {
    let storages: [Arc<dyn Storage>; 2] = [Arc::new(Direct), Arc::new(Buffered)];
    for storage in storages {
        let folder = tempfile::tempdir().unwrap();
        let model = odd(11, 600);
        let options = TableOptions::default();
        let mut writer = TableWriter::new(&storage, folder.path(), NUMBER, options).unwrap();
        for (key, value) in &model {
            writer.add(key, value.as_deref()).unwrap();
        }
        let (meta, file) = writer.finish().unwrap().unwrap();
        file.sync().unwrap();
        let name = folder.path().join("7");
        assert_eq!(fs::metadata(&name).unwrap().len(), meta.file_bytes());
        let cache = pool(POOL_BYTES);
        let table = Table::open(&*storage, folder.path(), meta.clone(), &cache).unwrap();
        // Its name may go while somebody reads it.
        fs::remove_file(&name).unwrap();
        assert_eq!(table.verify().unwrap(), model.len() as u64);
        for (key, value) in &model {
            assert_eq!(get(&table, key).unwrap().as_ref(), Some(value));
        }
        let all = part(&model, &[], None);
        assert_eq!(streamed(&table, &[], None, 128 << 10).unwrap(), all);
        let copies = tempfile::tempdir().unwrap();
        table.copy_to(&*storage, copies.path()).unwrap();
        let copy = Table::open(&*storage, copies.path(), meta, &cache).unwrap();
        assert_eq!(streamed(&copy, &[], None, 128 << 10).unwrap(), all);
    }
}
