//! A table of people with an index by city. A transaction reads the old row and changes both, so
//! that neither a crash nor another writer separates them.
//!
//!     cargo run -p indexy --example secondary_index

use indexy::{Db, Options, Result, Tree};

/// People by number, and their numbers by city.
struct People {
    db: Db,
    /// `number` -> `city NUL name`
    table: Tree,
    /// `city NUL number` -> nothing
    by_city: Tree,
}

impl People {
    fn open(path: &std::path::Path) -> Result<Self> {
        let db = Db::open(path, Options::new(16 << 20))?;
        let table = db.tree("people")?;
        let by_city = db.tree("people by city")?;
        Ok(Self { db, table, by_city })
    }

    /// Adds or replaces a person. From any number of threads: whoever was overtaken reads the row
    /// again.
    fn put(&self, number: u64, name: &str, city: &str) -> Result<()> {
        let row = [city.as_bytes(), name.as_bytes()].join(&0);
        self.db.transact(|tx| {
            if let Some(old) = tx.get(&self.table, number.to_be_bytes())? {
                let (old_city, _) = split(&old);
                tx.remove(&self.by_city, index_key(old_city, number))?;
            }
            tx.insert(&self.table, number.to_be_bytes(), &row)?;
            tx.insert(&self.by_city, index_key(city.as_bytes(), number), b"")
        })
    }

    /// Names of all who live in `city`, by number, at one moment.
    fn living_in(&self, city: &str) -> Result<Vec<String>> {
        let now = self.db.snapshot()?;
        let prefix = index_key_prefix(city.as_bytes());
        // The keys are read together: what lies on disk is read at the same time.
        let entries: Vec<_> = now.prefix(&self.by_city, &prefix).collect::<Result<_>>()?;
        let numbers = entries.iter().map(|(key, _)| &key[prefix.len()..]);
        let rows = now.multi_get(&self.table, numbers)?;
        let names = rows.iter().flatten().map(|row| split(row).1);
        Ok(names
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect())
    }
}

/// The NUL ends the city, so that `York` is no prefix of `Yorktown`.
fn index_key_prefix(city: &[u8]) -> Vec<u8> {
    [city, &[0]].concat()
}

fn index_key(city: &[u8], number: u64) -> Vec<u8> {
    [&index_key_prefix(city)[..], &number.to_be_bytes()].concat()
}

/// City and name of a row.
fn split(row: &[u8]) -> (&[u8], &[u8]) {
    let end = row.iter().position(|&byte| byte == 0).unwrap_or(row.len());
    (&row[..end], row.get(end + 1..).unwrap_or_default())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let people = People::open(dir.path())?;
    people.put(1, "Ada", "London")?;
    people.put(2, "Grace", "New York")?;
    people.put(3, "Alan", "London")?;
    people.put(1, "Ada", "Paris")?;

    for city in ["London", "Paris", "New York", "New"] {
        println!("{city}: {:?}", people.living_in(city)?);
    }
    assert_eq!(people.living_in("London")?, ["Alan"]);
    assert_eq!(people.living_in("Paris")?, ["Ada"]);
    // Everybody moves back and forth, all at once.
    std::thread::scope(|s| {
        let moves = |city| (1..=3).try_for_each(|number| people.put(number, "Somebody", city));
        let movers = ["London", "Paris", "Rome"].map(|city| s.spawn(move || moves(city)));
        movers
            .into_iter()
            .try_for_each(|mover| mover.join().expect("no mover panics"))
    })?;
    assert_eq!(people.by_city.len()?, people.table.len()?);
    people.db.close()?;
    Ok(())
}
