//! The public API, each name once and in the forms that programs use, and what its types promise to
//! be.

use crate::{
    places::fast_dir,
    support::{MIB, assert_sound},
};
use indexy::{
    Batch, Db, Durability, Error, IndexXKind, IndexYKind, Key, Options, Range, Result, Stats, Tree,
    TreeOptions, Value,
};
use std::{
    fmt::Debug,
    ops::{Bound, Deref},
};

fn handle<T: Clone + Send + Sync + 'static>() {}
fn bytes<T: Deref<Target = [u8]> + AsRef<[u8]> + Clone + Send + Sync + Eq + Debug + 'static>() {}
fn range<T: DoubleEndedIterator<Item = Result<(Key, Value)>> + Send + 'static>() {}
fn error<T: std::error::Error + Send + Sync + 'static>() {}
fn serialized<T: serde::Serialize>() {}

#[test]
fn types_are_what_programs_need() {
    handle::<Db>();
    handle::<Tree>();
    handle::<Options>();
    handle::<TreeOptions>();
    bytes::<Key>();
    bytes::<Value>();
    range::<Range>();
    error::<Error>();
    serialized::<Stats>();
}

#[test]
fn every_call_in_its_usual_form() -> Result<()> {
    let dir = fast_dir();
    let options = Options::new(16 * MIB)
        .index_x(IndexXKind::Art)
        .index_y(IndexYKind::Lsm)
        .durability(Durability::Buffered { interval_ms: 100 })
        .create_if_missing(true);
    let db: Db = Db::open(dir.path().join("db"), options.clone())?;
    let t: Tree = db.tree("orders")?;
    let c = db.tree_with(
        "customers",
        TreeOptions::new().index_x(IndexXKind::BPlus).resident(true),
    )?;
    reads_and_writes(&t)?;
    ranges(&t)?;

    let mut b: Batch = db.batch();
    b.insert(&t, "both", vec![1]);
    b.insert(&c, String::from("both"), [2]);
    b.remove(&t, b"absent");
    b.commit()?;
    assert_eq!(
        (&*t.get("both")?.unwrap(), &*c.get("both")?.unwrap()),
        (&[1][..], &[2][..])
    );

    db.sync()?;
    db.flush()?;
    assert_eq!(db.tree_names(), ["orders", "customers"]);
    db.set_memory_budget(8 * MIB)?;
    assert_eq!(db.stats().memory_budget_bytes, 8 * MIB as u64);
    let copy = dir.path().join("copy");
    db.checkpoint(&copy)?;
    assert_sound(&db);
    db.drop_tree("orders")?;
    assert!(t.get("both").is_err());
    db.close()?;

    let copy = Db::open(copy, options.read_only(true))?;
    assert_eq!(*copy.tree("orders")?.get("both")?.unwrap(), [1]);
    Ok(())
}

fn reads_and_writes(t: &Tree) -> Result<()> {
    t.insert(b"k1", b"one")?;
    t.insert("k2", "two")?;
    t.insert(vec![b'k', b'3'], String::from("three"))?;
    t.insert([b'k', b'4'], [4u8; 3])?;
    let value: Option<Value> = t.get("k1")?;
    assert_eq!(value.as_deref(), Some(&b"one"[..]));
    assert_eq!(t.get_with("k3", |bytes: &[u8]| bytes.len())?, Some(5));
    let keys: [&[u8]; 3] = [b"k2", b"none", b"k1"];
    let many: Vec<Option<Value>> = t.multi_get(keys)?;
    assert_eq!(
        many,
        [Some(Value::from("two")), None, Some(Value::from("one"))]
    );
    assert_eq!(t.multi_get(keys.to_vec())?, many);
    assert!(t.contains_key("k4")? && !t.contains_key("k5")?);
    assert_eq!(t.take("k4")?.unwrap(), [4u8; 3]);
    t.remove("k4")?;

    const ABSENT: Option<&[u8]> = None;
    assert!(t.compare_and_swap("swap", ABSENT, Some(b"a"))?);
    assert!(t.compare_and_swap("swap", Some(b"a"), Some(&vec![b'b']))?);
    assert!(t.compare_and_swap("swap", t.get("swap")?, Some("c"))?);
    assert!(!t.compare_and_swap("swap", None::<&[u8]>, None::<&[u8]>)?);
    assert!(t.compare_and_swap("swap", Some("c"), ABSENT)?);
    let count = |old: Option<&[u8]>| -> Option<Vec<u8>> { Some(vec![old.map_or(1, |o| o[0] + 1)]) };
    assert_eq!(t.update("count", count)?, Some(Value::from(vec![1])));
    assert_eq!(t.update("count", count)?, Some(Value::from(vec![2])));
    assert_eq!(t.update("count", |_| None)?, None);
    Ok(())
}

fn ranges(t: &Tree) -> Result<()> {
    let keys = |range: Range| -> Result<Vec<Key>> { range.map(|e| e.map(|(k, _)| k)).collect() };
    let all = ["k1", "k2", "k3"].map(Key::from);
    assert_eq!(keys(t.iter())?, all);
    assert_eq!(keys(t.prefix("k"))?, all);
    assert_eq!(keys(t.range("k1".."k3"))?, all[..2]);
    assert_eq!(keys(t.range("k1"..="k3"))?, all);
    assert_eq!(keys(t.range("k2"..))?, all[1..]);
    assert_eq!(keys(t.range(.."k2"))?, all[..1]);
    assert_eq!(keys(t.range::<&[u8]>(..))?, all);
    let between = (Bound::Excluded("k1"), Bound::Excluded("k3"));
    assert_eq!(keys(t.range::<&str>(between))?, all[1..2]);
    let mut both = t.iter();
    assert_eq!(both.next_back().unwrap()?.0, all[2]);
    assert_eq!(both.next().unwrap()?.0, all[0]);
    assert_eq!(both.next_back().unwrap()?.0, all[1]);
    assert!(both.next().is_none() && both.next_back().is_none());
    assert_eq!(t.first()?.unwrap().0, all[0]);
    assert_eq!(t.last()?.unwrap().1, *b"three");
    assert_eq!((t.len()?, t.is_empty()?), (3, false));
    assert!(t.approximate_len() > 0);
    t.remove_range("k3"..)?;
    assert_eq!(keys(t.iter())?, all[..2]);
    Ok(())
}

/// Longer than a buffer of the log, which has 16 KiB here: who asks the log for room twice waits
/// for himself.
#[test]
fn long_keys_can_be_updated() {
    let dir = fast_dir();
    let path = dir.path().to_path_buf();
    let (done, finished) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let db = Db::open(path, Options::new(2 * MIB)).unwrap();
        let tree = db.tree("t").unwrap();
        for len in [16_000, 16_353, 40_000, 65_534] {
            let key = vec![7; len];
            let new = tree.update(&key, |old| old.is_none().then(|| vec![1]));
            assert_eq!(new.unwrap().unwrap(), [1]);
            assert_eq!(tree.get(&key).unwrap().unwrap(), [1]);
            assert_eq!(tree.update(&key, |_| None).unwrap(), None);
            assert_eq!(tree.get(&key).unwrap(), None);
        }
        db.close().unwrap();
        done.send(()).unwrap();
    });
    let limit = std::time::Duration::from_secs(60);
    finished
        .recv_timeout(limit)
        .expect("an update waits for ever");
}
