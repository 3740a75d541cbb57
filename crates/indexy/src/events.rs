//! The events of the cargo feature `tracing`: what an operator wants to know about the background.
//!
//! One function per event; without the feature each is empty and costs nothing. Every event has the
//! target `indexy` and its figures as fields, with their units in the names. Nothing on the path of
//! a read that hits, or of a write that does not wait, calls this module.
//!
//! Levels: `ERROR` for the end of writing, `WARN` for what an operator should look at, `INFO` for
//! the life of a database, `DEBUG` for the work of its threads.
//! Threads: any; a subscriber must not call back into the database.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "tracing"),
    expect(unused_variables, reason = "the feature is off")
)]

use std::{fmt::Display, path::Path, time::Duration};

/// Target of all events.
#[cfg(feature = "tracing")]
const TARGET: &str = "indexy";

/// Declares a function per event. Fields are given as `name: type => recorded value`.
macro_rules! events {
    ($($(#[$doc:meta])* $level:ident $message:literal
        $name:ident($($field:ident: $type:ty => $value:expr),* $(,)?);)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub(crate) fn $name($($field: $type),*) {
                #[cfg(feature = "tracing")]
                tracing::event!(
                    target: TARGET,
                    tracing::Level::$level,
                    $($field = $value,)*
                    $message
                );
            }
        )*
    };
}

events! {
    /// A database was opened; `replayed_records` of its log were applied.
    INFO "opened" opened(
        path: &Path => display(path.display()),
        trees: usize => trees,
        replayed_records: u64 => replayed_records,
        took: Duration => took.as_secs_f64(),
    );
    /// After a crash: the log ends at `offset`. What follows, allocated or half written, is cut.
    INFO "the log ends here" log_cut(
        path: &Path => display(path.display()),
        offset: u64 => offset,
    );
    /// A database was closed, or its last handle dropped.
    INFO "closed" closed(path: &Path => display(path.display()));
    /// Writing ended: this is the first cause.
    ERROR "poisoned" poisoned(cause: &dyn Display => display(cause));
    /// The directory was renamed or replaced under an open database.
    ERROR "the directory is another's" directory_lost(path: &Path => display(path.display()));
    /// `close` left the directory locked: a read takes too long.
    WARN "closed, but a read in progress keeps the directory locked" still_read(
        path: &Path => display(path.display()),
    );
    /// A writer waited for memory and went on, or gave up (`failed`).
    WARN "a writer waited for memory" stalled(
        bytes: usize => bytes,
        waited: Duration => waited.as_secs_f64(),
        failed: bool => failed,
    );
    /// The disk index refused a run or a step of maintenance, which is tried again.
    WARN "the disk index refused, to be tried again" refused(cause: &dyn Display => display(cause));
    /// A merge met damage. It leaves the damaged part of its table alone, and so do later ones.
    WARN "damage met and left alone" damage_left_alone(cause: &dyn Display => display(cause));
    /// A sorted run was written to the disk index of `tree`.
    DEBUG "run written" run_written(
        tree: u32 => tree,
        keys: u64 => keys,
        bytes: u64 => bytes,
        took: Duration => took.as_secs_f64(),
    );
    /// One step of maintenance of the disk index of `tree` did something.
    DEBUG "compacted" compacted(tree: u32 => tree, took: Duration => took.as_secs_f64());
    /// Memory was released: `freed` of the `wanted` bytes.
    DEBUG "released" released(freed: u64 => freed, wanted: u64 => wanted);
    /// The log was cut below `start`; so many bytes of files went.
    DEBUG "log truncated" log_truncated(start: u64 => start, freed: u64 => freed);
    /// The keys of a hot set were brought into memory, or some of them, where that was `stopped`.
    INFO "warmed" warmed(
        keys: u64 => keys,
        took: Duration => took.as_secs_f64(),
        stopped: bool => stopped,
    );
    /// The hot set is damaged, of another version or of another database: memory begins empty.
    WARN "the hot set is ignored" hot_set_ignored(
        path: &Path => display(path.display()),
        cause: &dyn Display => display(cause),
    );
    /// Keys of the hot set could not be read from the disk index of `tree`.
    WARN "keys of the hot set were not read" not_warmed(
        tree: u32 => tree,
        cause: &dyn Display => display(cause),
    );
    /// The hot set was saved.
    INFO "the hot set is saved" hot_set_saved(
        keys: u64 => keys,
        took: Duration => took.as_secs_f64(),
    );
    /// It was not; the file is as it was.
    WARN "the hot set is not saved" hot_set_not_saved(cause: &dyn Display => display(cause));
    /// A tree was made or dropped.
    INFO "tree created" tree_created(tree: u32 => tree, name: &str => name);
    /// See [`tree_created`].
    INFO "tree dropped" tree_dropped(tree: u32 => tree, name: &str => name);
}

#[cfg(all(test, feature = "tracing"))]
mod tests {
    use super::*;
    use crate::{Db, HotSet, Options};
    use std::sync::{Arc, Mutex, OnceLock};
    use tracing::{
        Event, Metadata, Subscriber,
        field::{Field, Visit},
        span,
    };

    /// Keeps what it is told, as text.
    #[derive(Debug, Clone, Default)]
    struct Heard(Arc<Mutex<Vec<String>>>);

    struct Text(String);

    impl Visit for Text {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            self.0.push_str(&format!(" {field}={value:?}"));
        }
    }

    impl Subscriber for Heard {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target() == TARGET
        }
        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }
        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
        fn event(&self, event: &Event<'_>) {
            let mut text = Text(event.metadata().level().to_string());
            event.record(&mut text);
            self.0.lock().unwrap().push(text.0);
        }
        fn enter(&self, _: &span::Id) {}
        fn exit(&self, _: &span::Id) {}
    }

    impl Heard {
        /// The subscriber of the process: what a thread without one of its own meets first may be
        /// switched off for all. Other tests are heard too, hence names and paths that only one
        /// has.
        fn of_the_process() -> &'static Self {
            static HEARD: OnceLock<Heard> = OnceLock::new();
            HEARD.get_or_init(|| {
                let heard = Self::default();
                tracing::subscriber::set_global_default(heard.clone()).unwrap();
                heard
            })
        }

        /// Events that say `what` about `whose`.
        fn count(&self, what: &str, whose: &str) -> usize {
            let heard = self.0.lock().unwrap();
            let both = |e: &&String| e.contains(what) && e.contains(whose);
            heard.iter().filter(both).count()
        }
    }

    /// What an operator sees of the life of a database.
    #[test]
    fn opening_trees_and_closing_are_events() {
        let heard = Heard::of_the_process();
        let dir = tempfile::tempdir().unwrap();
        let name = "a tree of this test alone";
        let db = Db::open(dir.path(), Options::new(4 << 20)).unwrap();
        db.tree(name).unwrap().insert(b"k", b"v").unwrap();
        db.drop_tree(name).unwrap();
        db.close().unwrap();
        drop(db);
        let path = dir.path().display().to_string();
        assert_eq!(heard.count("opened", &path), 1, "{heard:?}");
        assert_eq!(heard.count("replayed_records=0", &path), 1, "{heard:?}");
        assert_eq!(heard.count("tree created", name), 1, "{heard:?}");
        assert_eq!(heard.count("tree dropped", name), 1, "{heard:?}");
        assert_eq!(heard.count("closed", &path), 1, "{heard:?}");
    }

    #[test]
    fn a_damaged_hot_set_is_an_event_and_a_whole_one_is_none() {
        let heard = Heard::of_the_process();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("HOT");
        let every = Duration::MAX;
        let live = || {
            let options = Options::new(4 << 20).hot_set(HotSet::Keep { every });
            let db = Db::open(dir.path(), options).unwrap();
            db.tree("t").unwrap().insert(b"k", b"v").unwrap();
            while db.stats().warming {
                std::thread::sleep(Duration::from_millis(1));
            }
            db.close().unwrap();
        };
        let warned = || {
            let what = "WARN message=the hot set is ignored";
            heard.count(what, &file.display().to_string())
        };
        live();
        live();
        assert_eq!(warned(), 0, "{heard:?}");
        let good = std::fs::read(&file).unwrap();
        for (n, at) in [0, good.len() / 2, good.len() - 1].into_iter().enumerate() {
            let mut damaged = good.clone();
            damaged[at] ^= 0x41;
            std::fs::write(&file, damaged).unwrap();
            live();
            assert_eq!(warned(), n + 1, "byte {at}: {heard:?}");
        }
    }
}
