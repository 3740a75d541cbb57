//! Books, readers and loans: three tables, a transaction over all of them, and queries by index.
//!
//!     cargo run -p indexy-table --example library

use indexy::{Db, Options};
use indexy_table::{Error, Query, Record, Result, Row, Table, Tables, Timestamp};

#[derive(Row, Debug)]
#[row(
    table = "books",
    index(name = "by_author", on(author, title), include(copies))
)]
struct Book {
    #[row(primary_key)]
    isbn: String,
    author: String,
    title: String,
    copies: i64,
}

#[derive(Row, Debug)]
#[row(table = "loans", index(name = "by_due", on(due)))]
struct Loan {
    #[row(primary_key)]
    reader: u64,
    #[row(primary_key, index)]
    isbn: String,
    due: Timestamp,
}

struct Library {
    tables: Tables,
    books: Table,
    loans: Table,
}

impl Library {
    fn open(db: &Db) -> Result<Self> {
        let tables = Tables::open(db)?;
        Ok(Self {
            books: tables.create_table(Book::schema())?,
            loans: tables.create_table(Loan::schema())?,
            tables,
        })
    }

    /// Lends a book; false if no copy is left. Whatever happens, copies and loans agree.
    fn lend(&self, loan: &Loan) -> Result<bool> {
        self.tables.transact(|tx| {
            let mut books = self.books.within(tx)?;
            let Some(book) = books.get(&loan.isbn[..])? else {
                return Ok(false);
            };
            let book: Book = book.to()?;
            if book.copies == 0 {
                return Ok(false);
            }
            books.update(&loan.isbn[..], [("copies", book.copies - 1)])?;
            self.loans.within(tx)?.insert(loan)?;
            Ok(true)
        })
    }

    /// Titles and copies of an author, by title. The index answers alone.
    fn by_author(&self, author: &str) -> Result<Vec<Record>> {
        let query = Query::index("by_author")
            .prefix(author)
            .columns(["title", "copies"]);
        self.books.scan(&query)?.collect()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let db = Db::open(dir.path(), Options::new(16 << 20))?;
    let library = Library::open(&db)?;
    for (isbn, author, title, copies) in [
        ("1", "Lem", "Solaris", 1),
        ("2", "Lem", "Fiasco", 2),
        ("3", "Le Guin", "The Dispossessed", 1),
    ] {
        library.books.insert((isbn, author, title, copies))?;
    }
    let loan = |reader, isbn: &str, due| Loan {
        reader,
        isbn: isbn.into(),
        due: Timestamp(due),
    };
    // Two readers want the only copy at once.
    let lent = std::thread::scope(|s| {
        let readers = [1u64, 2].map(|reader| {
            s.spawn({
                let library = &library;
                move || library.lend(&loan(reader, "1", 100))
            })
        });
        readers.map(|reader| reader.join().expect("no reader panics"))
    });
    let lent: Result<Vec<bool>, Error> = lent.into_iter().collect();
    assert_eq!(lent?.iter().filter(|lent| **lent).count(), 1);
    assert!(library.lend(&loan(1, "2", 50))?);

    for row in library.by_author("Lem")? {
        println!("{:?}", row.values());
    }
    assert_eq!(
        library.by_author("Lem")?[1].get("copies"),
        Some(&0i64.into())
    );
    let due_first = library.loans.scan(&Query::index("by_due"))?.next();
    println!(
        "due first: {:?}",
        due_first.transpose()?.map(Record::into_values)
    );
    assert!(library.books.verify()?.is_ok() && library.loans.verify()?.is_ok());
    db.close()?;
    Ok(())
}
