//! The binary `indexy-sql`: SQL over the tables of a database.
fn main() {}
