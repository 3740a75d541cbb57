//! The whole workload on small databases, and databases broken on purpose.

use super::{
    schema::{AREAS, Vote},
    *,
};
use crate::{
    application::{
        Client as _,
        testing::{Lossy, SEED, check, dump, load, map, open, put, remove, row, run},
    },
    contender::{BTreeTables, IndexyTables, IndexyTransactions, Tables},
    workload::rng,
};

/// Numbers enough that some reach the limit and many do not.
const CONFIG: Config = Config {
    contestants: 6,
    votes_a_phone: 2,
    phones_an_area: 50,
    zipf: None,
};

fn runs_consistently<T: Tables>(voter: &Voter, tables: &T, each: u32) {
    let rows = load(voter, tables);
    assert_eq!(rows, voter.config.entries());
    assert_eq!(check(voter, tables).unwrap(), u64::from(AREAS));
    let counted = run(voter, tables, each).unwrap();
    let all = f64::from(2 * each);
    let standings = counted["standings_succeeded"];
    let calls = counted["vote_succeeded"] + counted["invalid_contestants"] + counted["over_limit"];
    assert_eq!(calls + standings, all);
    let invalid = counted["invalid_contestants"] / all;
    assert!((0.005..0.02).contains(&invalid), "{invalid}");
    assert!(standings > 0.0 && counted["over_limit"] > 0.0);
    let (votes, numbers) = counts(voter, tables);
    assert_eq!(votes as f64, counted["vote_succeeded"]);
    let counts = dump(voter, tables).iter().filter(|e| e.0 == 4).count();
    let seen = check(voter, tables).unwrap();
    assert_eq!(seen, (votes + numbers + counts) as u64 + u64::from(AREAS));
}

/// Votes, and telephone numbers that have some.
fn counts<T: Tables>(voter: &Voter, tables: &T) -> (usize, usize) {
    let entries = dump(voter, tables);
    let of = |table: Table| entries.iter().filter(|e| e.0 == table as usize).count();
    (of(Table::Votes), of(Table::VotesByPhone))
}

#[test]
fn a_map_stays_consistent_by_any_skew() {
    for zipf in [None, Some(0.5), Some(1.5)] {
        let voter = Voter::new(Config { zipf, ..CONFIG });
        runs_consistently(&voter, &map(&voter), 15_000);
    }
}

#[test]
fn pairs_of_ours_stay_consistent_and_transactions_without_locks() {
    std::thread::scope(|scope| {
        for variant in ["art-lsm", "none-bplus"] {
            scope.spawn(move || {
                let dir = tempfile::tempdir().unwrap();
                let voter = Voter::new(CONFIG);
                let tables: IndexyTables = open(&voter, dir.path(), variant);
                runs_consistently(&voter, &tables, 6000);
                tables.close().unwrap();
            });
        }
        scope.spawn(|| {
            let dir = tempfile::tempdir().unwrap();
            let voter = Voter::new(CONFIG);
            let tables: IndexyTransactions = open(&voter, dir.path(), "art-lsm");
            runs_consistently(&voter, &tables, 6000);
            tables.close().unwrap();
        });
    });
}

#[test]
fn a_number_that_voted_often_enough_is_refused_and_skew_reaches_the_limit_sooner() {
    let refused = |zipf| {
        let voter = Voter::new(Config { zipf, ..CONFIG });
        let tables = map(&voter);
        load(&voter, &tables);
        run(&voter, &tables, 3000).unwrap()["over_limit"]
    };
    let (even, skewed) = (refused(None), refused(Some(1.2)));
    assert!(skewed > 5.0 * even && even < 300.0, "{even} {skewed}");
}

#[test]
fn half_of_the_calls_of_an_area_are_for_its_favourite() {
    let mut favourites = [0; 7];
    for area in schema::FIRST_AREA..schema::FIRST_AREA + AREAS {
        favourites[usize::from(CONFIG.favourite(area))] += 1;
    }
    // 30 of 100, and a sixth of the rest; nobody has none.
    assert!((100..160).contains(&favourites[1]), "{favourites:?}");
    assert!(favourites[0] == 0 && favourites[1..].iter().all(|n| *n > 15));
    let voter = Voter::new(CONFIG);
    let tables = map(&voter);
    load(&voter, &tables);
    run(&voter, &tables, 8000).unwrap();
    let (mut own, mut all) = (0, 0);
    for (_, key, value) in dump(&voter, &tables)
        .iter()
        .filter(|e| e.0 == Table::Votes as usize)
    {
        let (phone, _) = schema::read_vote(key).unwrap();
        let vote = Vote::read(value).unwrap();
        all += 1;
        own += u32::from(vote.contestant == CONFIG.favourite(schema::area(phone)));
    }
    // Half, and a sixth of the other half.
    let share = f64::from(own) / f64::from(all);
    assert!((0.56..0.61).contains(&share), "{share}");
}

/// What a check says of a database that `harm` harmed; `harm` gets the key of a vote.
fn complaint(harm: impl FnOnce(&BTreeTables, u64)) -> String {
    let voter = Voter::new(CONFIG);
    let tables = map(&voter);
    load(&voter, &tables);
    run(&voter, &tables, 500).unwrap();
    check(&voter, &tables).unwrap();
    let entries = dump(&voter, &tables);
    let vote = entries
        .iter()
        .find(|e| e.0 == Table::Votes as usize)
        .unwrap();
    harm(&tables, schema::read_vote(&vote.1).unwrap().0);
    check(&voter, &tables).unwrap_err().to_string()
}

#[test]
fn each_condition_fails_when_it_is_broken() {
    let said = complaint(|tables, phone| remove(tables, Table::Votes, &schema::vote(phone, 1)));
    assert!(
        said.contains("telephone numbers have") || said.contains("is missing"),
        "{said}"
    );

    let said = complaint(|tables, phone| {
        put(tables, Table::VotesByPhone, &phone.to_be_bytes(), &[9]);
    });
    assert!(said.contains("by their counts"), "{said}");

    // A vote that is counted everywhere, and one too many.
    let said = complaint(|tables, phone| {
        let first = row(tables, Table::Votes, &schema::vote(phone, 1)).unwrap();
        for n in 2..=3 {
            put(tables, Table::Votes, &schema::vote(phone, n), &first);
        }
        put(tables, Table::VotesByPhone, &phone.to_be_bytes(), &[3]);
    });
    assert!(said.contains("has 3 votes, and may have 2"), "{said}");

    let said = complaint(|tables, phone| {
        let key = schema::vote(phone, 1);
        let bytes = row(tables, Table::Votes, &key).unwrap();
        let mut vote = Vote::read(&bytes).unwrap();
        vote.contestant = vote.contestant % 6 + 1;
        put(tables, Table::Votes, &key, vote.write(&mut vec![]));
    });
    assert!(said.contains("votes in state"), "{said}");

    let said = complaint(|tables, phone| {
        let area = schema::area(phone);
        put(tables, Table::AreaCodes, &area.to_be_bytes(), &[50]);
    });
    assert!(
        said.contains("area_codes: a row that was never written"),
        "{said}"
    );

    let said = complaint(|tables, phone| {
        put(tables, Table::Votes, &schema::vote(phone, 1), &[0; 10]);
    });
    assert!(
        said.contains("votes: a row that was never written"),
        "{said}"
    );
}

#[test]
fn votes_that_are_lost_as_a_whole_are_noticed() {
    let voter = Voter::new(CONFIG);
    let tables = map(&voter);
    load(&voter, &tables);
    run(&voter, &tables, 500).unwrap();
    // Consistent in itself, and not what was accepted.
    let fresh = map(&voter);
    load(&voter, &fresh);
    let said = check(&voter, &fresh).unwrap_err().to_string();
    assert!(said.contains("were accepted"), "{said}");
}

#[test]
fn an_engine_that_loses_a_write_is_found_out() {
    for table in [Table::Votes, Table::VotesByPhone, Table::VotesByContestant] {
        let voter = Voter::new(CONFIG);
        let tables = map(&voter);
        load(&voter, &tables);
        let lossy = Lossy::over(tables, table, 40..60);
        let verdict = run(&voter, &lossy, 3000).and_then(|_| check(&voter, &lossy));
        verdict.unwrap_err();
    }
}

#[test]
fn standings_that_fall_are_noticed() {
    let voter = Voter::new(CONFIG);
    let tables = map(&voter);
    load(&voter, &tables);
    let mut client = transactions::Transactions::new(&tables, &voter);
    let mut draws = rng(SEED, 1, 0);
    for _ in 0..5000 {
        client.next(&mut draws).unwrap();
    }
    for (table, key, _) in dump(&voter, &tables) {
        if table == Table::VotesByContestant as usize {
            remove(&tables, Table::VotesByContestant, &key);
        }
    }
    let fell = (0..20_000).find_map(|_| client.next(&mut draws).err());
    let said = fell.unwrap().to_string();
    assert!(said.contains("had") && said.contains("before"), "{said}");
}
