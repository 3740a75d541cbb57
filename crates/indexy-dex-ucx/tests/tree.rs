//! The tree over UCX is a sorted map, with tiny caches, splits, merges, offloading and ranges that
//! move; and the program serves it.

use indexy_dex::{
    BulkLoad, Error, Options, Tree, offload::Offloading, partition::Table, remote::Secret,
};
use indexy_dex_ucx::Ucx;
use rand::{Rng, SeedableRng, rngs::StdRng};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(5);
const SECRET: &str = "sixteen letters.";
const KEYS: u64 = 4_000;
/// Whether a process is told to run over one kind of transports.
const CHILD: &str = "DEX_UCX_CHILD";

/// The program.
struct Pool(Child, SocketAddr);

impl Pool {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_indexy-pool-ucx"))
            .args(["127.0.0.1:0", "--memory", "64MiB"])
            .env("INDEXY_POOL_SECRET", SECRET)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.as_mut().unwrap());
        out.read_line(&mut line).unwrap();
        assert!(line.starts_with("serving 67108864 bytes at 127.0.0.1:"));
        let address = line.trim().rsplit(' ').next().unwrap();
        Self(child, address.parse().unwrap())
    }

    fn end(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        assert!(self.0.wait().unwrap().success());
        let mut last = String::new();
        let out = self.0.stdout.as_mut().unwrap();
        out.read_to_string(&mut last).unwrap();
        assert_eq!(last.trim(), "ended by SIGTERM");
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn connect(owner: u16, pools: &[Pool]) -> Ucx {
    let addresses: Vec<_> = pools.iter().map(|pool| pool.1).collect();
    let secret = Secret::new(SECRET).unwrap();
    Ucx::connect_as(owner, &addresses, &secret, PATIENCE).unwrap()
}

fn operate(tree: &Tree<Ucx>, model: &mut BTreeMap<u64, u64>, dice: &mut StdRng, grows: bool) {
    let (low, high) = tree.ownership().ranges()[0];
    let key = dice.random_range(low..=high.min(KEYS));
    match dice.random_range(0..10) {
        0 => {
            let mut found = Vec::new();
            let end = (key + 200).min(high);
            tree.scan(key, end, 1_000, &mut found).unwrap();
            let expected: Vec<_> = model.range(key..=end).map(|(k, v)| (*k, *v)).collect();
            assert_eq!(found, expected);
        }
        1..4 => assert_eq!(tree.get(key).unwrap(), model.get(&key).copied()),
        // Seven of ten change it, one of them the other way.
        choice if (choice < 9) == grows => {
            let value = dice.random();
            assert_eq!(tree.put(key, value).unwrap(), model.insert(key, value));
        }
        _ => assert_eq!(tree.remove(key).unwrap(), model.remove(&key)),
    }
}

fn is_a_map(offloading: Offloading) {
    let pools = [Pool::start(), Pool::start()];
    let mut model: BTreeMap<u64, u64> = (0..KEYS).step_by(5).map(|key| (key, !key)).collect();
    let table = Table::new(vec![(0, 0), (KEYS / 2, 1)]).unwrap();
    let owners = [connect(0, &pools), connect(1, &pools)];
    // Few entries a node: a deep tree whose nodes are split soon.
    let load = BulkLoad::default().table(table).fill(6);
    load.load(&owners[0], model.clone()).unwrap();
    let mut dice = StdRng::seed_from_u64(1);
    let mut number = 0;
    let trees = owners.map(|memory| {
        let options = Options::new(number, 8).leaf_admission(0.3);
        number += 1;
        Tree::open(memory, options.offloading(offloading)).unwrap()
    });
    for round in 0..4 {
        for tree in &trees {
            for _ in 0..400 {
                operate(tree, &mut model, &mut dice, round % 2 == 0);
            }
        }
        // The first owner's range grows.
        let (low, _) = trees[1].ownership().ranges()[0];
        let end = trees[1].leaf_start(low + 200).unwrap() - 1;
        trees[1].release(low, end, 0).unwrap();
        trees[0].adopt_table().unwrap();
        assert!(matches!(trees[1].get(low), Err(Error::NotOwner { .. })));
    }
    let mut found = Vec::new();
    for tree in &trees {
        for (low, high) in tree.ownership().ranges() {
            tree.scan(*low, *high, usize::MAX, &mut found).unwrap();
        }
    }
    let all: Vec<_> = model.into_iter().collect();
    assert_eq!(found, all);
    drop(trees);
    pools.into_iter().for_each(Pool::end);
}

#[test]
fn the_tree_is_a_map_over_shared_memory_and_over_tcp() {
    let name = "the_tree_is_a_map_over_shared_memory_and_over_tcp";
    if std::env::var_os(CHILD).is_some() {
        is_a_map(Offloading::Measured);
        is_a_map(Offloading::Always);
        return;
    }
    for tls in ["shm,self", "tcp,self"] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .envs([(CHILD, "all"), ("UCX_TLS", tls)])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success(), "{tls}: {said}");
    }
}

#[test]
fn wrong_flags_are_usage_errors() {
    let run = |arguments: &[&str]| {
        let program = env!("CARGO_BIN_EXE_indexy-pool-ucx");
        let mut command = Command::new(program);
        let command = command.args(arguments).env("INDEXY_POOL_SECRET", SECRET);
        let output = command.output().unwrap();
        assert!(output.stdout.is_empty());
        output.status.code()
    };
    for wrong in [
        &["127.0.0.1:0"][..],
        &["./a/path", "--memory", "1MiB"],
        &["127.0.0.1:0", "--memory", "1MB"],
        &["127.0.0.1:0", "--memory", "1MiB", "--threads", "2"],
    ] {
        assert_eq!(run(wrong), Some(2), "{wrong:?}");
    }
    assert_eq!(run(&["192.0.2.1:7", "--memory", "1MiB"]), Some(1));
}
