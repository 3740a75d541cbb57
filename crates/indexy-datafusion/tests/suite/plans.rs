//! Which index a query reads, and between which bounds.

use crate::support::Fixture;
use indexy_table::{Column, Index, Schema, Type};

fn people() -> Fixture {
    let it = Fixture::new();
    let schema = Schema::new("people")
        .column("id", Type::U64)
        .column("name", Type::Text)
        .column("city", Column::new(Type::Text).nullable())
        .column("age", Column::new(Type::I32).nullable())
        .column("since", Type::Timestamp)
        .primary_key(["id"])
        .index("by_city", Index::on(["city", "age"]))
        .index("by_name", Index::on(["name"]).unique())
        .index("by_since", Index::on(["since"]).include(["age"]));
    let people = it.tables.create_table(schema).unwrap();
    for id in 0..1000u64 {
        let city = (id % 10 != 0).then(|| format!("city {}", id % 10));
        let age = (id % 7 != 0).then_some((id % 70) as i32);
        let since = indexy_table::Timestamp(id as i64 * 86_400_000_000);
        people
            .insert((id, format!("name {id}"), city, age, since))
            .unwrap();
    }
    it
}

#[test]
fn show() {
    let it = people();
    for sql in [
        "select * from people where id = 5",
        "select * from people where id > 5 and id <= 9",
        "select * from people where id > -3",
        "select * from people where id in (5, 7, 1, 9, 22)",
        "select * from people where id in (5, 7)",
        "select * from people where id > 5 limit 3",
        "select name from people where city = 'city 3' and age > 30",
        "select id, age from people where city = 'city 3' and age > 30",
        "select id, age from people where city = 'city 3' and age < 30 order by age desc limit 3",
        "select name from people where name like 'name 1%'",
        "select * from people where name = 'name 1'",
        "select * from people where since between timestamp '1970-02-01' and timestamp '1970-02-05'",
        "select age from people where since = '1970-02-01T00:00:00Z'",
        "select * from people order by id desc limit 3",
        "select * from people order by id limit 3",
        "select count(*) from people",
        "select city, age from people order by city, age",
        "select a.id from people a join people b on a.id = b.age where b.city = 'city 1'",
        "select * from people where age = 5.5",
        "select * from people where city is null and age is null",
    ] {
        println!("{sql}\n{}", it.plan(sql));
    }
}
