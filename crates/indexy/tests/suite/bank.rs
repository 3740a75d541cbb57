//! Transfers between accounts by transactions, in a process that is killed (SIGKILL) again and
//! again. Whatever it leaves, no money comes or goes, and the index of accounts by balance, which
//! is kept in the same transactions, is equal to the accounts. `INDEXY_KILL_ROUNDS` (default 3) a
//! pair.

use crate::{
    pairs,
    places::fast_dir,
    support::{MIB, Random, assert_sound, child, child_argument, open, setting},
};
use indexy::{Db, Durability, Error, Options, Snapshot, Tree, Value};
use std::{path::Path, time::Duration};

const ACCOUNTS: u64 = 200;
const FIRST_BALANCE: u64 = 1000;
const THREADS: u64 = 3;

pub struct Bank {
    pub db: Db,
    pub accounts: Tree,
    /// Balance and account, both big-endian.
    pub by_balance: Tree,
    /// What fills memory beside them, where nothing else does.
    pub history: Option<Tree>,
}

/// The number that a value begins with.
pub fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value[..8].try_into().unwrap())
}

fn entry(balance: u64, account: u64) -> Vec<u8> {
    [balance.to_be_bytes(), account.to_be_bytes()].concat()
}

fn open_bank(dir: &Path, pair: pairs::Pair) -> Bank {
    let options = Options::new(2 * MIB)
        .durability(Durability::Buffered { interval_ms: 5 })
        .log_limit_bytes(4 << 20);
    let db = open(dir, &pairs::options(pair, options));
    Bank {
        accounts: db.tree("accounts").unwrap(),
        by_balance: db.tree_with("by balance", pairs::second(pair)).unwrap(),
        history: Some(db.tree("history").unwrap()),
        db,
    }
}

impl Bank {
    /// All accounts, in one transaction, unless they are there.
    pub fn fill(&self) {
        let fill = |tx: &mut indexy::Transaction| {
            if tx.iter(&self.accounts).next().is_some() {
                return Ok(());
            }
            for account in 0..ACCOUNTS {
                let key = account.to_be_bytes();
                tx.insert(&self.accounts, key, FIRST_BALANCE.to_be_bytes())?;
                tx.insert(&self.by_balance, entry(FIRST_BALANCE, account), "")?;
            }
            Ok(())
        };
        self.db.transact(fill).unwrap();
    }

    pub fn transfer(&self, random: &mut Random) {
        let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
        let (amount, number_of) = (random.below(100), random.next());
        let transfer = |tx: &mut indexy::Transaction| {
            let balance = |value: Option<Value>| number(&value.unwrap());
            let old = balance(tx.get(&self.accounts, from.to_be_bytes())?);
            let amount = amount.min(old);
            for (account, plus, minus) in [(from, 0, amount), (to, amount, 0)] {
                let old = balance(tx.get(&self.accounts, account.to_be_bytes())?);
                let new = old + plus - minus;
                tx.remove(&self.by_balance, entry(old, account))?;
                tx.insert(&self.by_balance, entry(new, account), "")?;
                tx.insert(&self.accounts, account.to_be_bytes(), new.to_be_bytes())?;
            }
            if let Some(history) = &self.history {
                tx.insert(history, number_of.to_be_bytes(), [7; 300])?;
            }
            Ok(())
        };
        self.db.transact(transfer).unwrap();
    }

    /// What holds at every moment; false before the accounts are there. An error if the snapshot
    /// was given up.
    pub fn check(&self, snapshot: &Snapshot) -> indexy::Result<bool> {
        let entries = |tree: &Tree| snapshot.iter(tree).collect::<indexy::Result<Vec<_>>>();
        let mut expected: Vec<Vec<u8>> = Vec::new();
        let mut sum = 0;
        for (account, balance) in entries(&self.accounts)? {
            sum += number(&balance);
            expected.push(entry(number(&balance), number(&account)));
        }
        expected.sort_unstable();
        let index: Vec<Vec<u8>> = entries(&self.by_balance)?
            .into_iter()
            .map(|(key, _)| key.to_vec())
            .collect();
        assert!(index == expected, "the index is not that of the accounts");
        assert!(
            expected.is_empty() || sum == ACCOUNTS * FIRST_BALANCE,
            "{sum}"
        );
        Ok(!expected.is_empty())
    }
}

#[test]
fn transferring_child() {
    let Some(argument) = child_argument() else {
        return;
    };
    let (pair, dir) = argument.split_once(' ').unwrap();
    let bank = open_bank(Path::new(dir), pairs::named(pair));
    bank.fill();
    std::thread::scope(|s| {
        for thread in 0..THREADS {
            let bank = &bank;
            s.spawn(move || {
                let mut random = Random(thread + u64::from(std::process::id()));
                loop {
                    bank.transfer(&mut random);
                }
            });
        }
        // Also while others transfer, and across releases.
        loop {
            match bank.check(&bank.db.snapshot().unwrap()) {
                Ok(full) => assert!(full),
                Err(error) => assert!(matches!(error, Error::SnapshotTooOld), "{error}"),
            }
        }
    });
}

#[test]
fn i14_money_and_index_survive_kills() {
    let rounds = setting("INDEXY_KILL_ROUNDS", 3);
    let mut random = Random(setting("INDEXY_KILL_SEED", 1));
    for pair in pairs::chosen(0, 1) {
        let dir = fast_dir();
        let argument = format!("{} {}", pairs::name(pair), dir.path().display());
        let mut full = 0;
        for _ in 0..rounds {
            let mut child = child("bank::transferring_child", &argument)
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(150 + random.below(500)));
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "{}: the child failed", pairs::name(pair));
            child.kill().unwrap();
            child.wait().unwrap();
            let bank = open_bank(dir.path(), pair);
            full += u64::from(bank.check(&bank.db.snapshot().unwrap()).unwrap());
            if random.one_in(3) {
                assert_sound(&bank.db);
            }
            drop(bank);
        }
        assert!(
            full > 0,
            "{}: nothing was ever transferred",
            pairs::name(pair)
        );
    }
}
