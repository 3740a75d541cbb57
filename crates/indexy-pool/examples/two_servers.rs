//! A pool and two compute servers on one machine, each a process:
//!
//! ```text
//! cargo run --release -p indexy-pool --example two_servers
//! ```
//!
//! The pool's memory is shared over a Unix socket. Both compute servers load their half, read it,
//! and hand a quarter over. Then the first one is killed, and the second one takes its ranges.

use anyhow::{Context, Result, bail};
use clap::Parser as _;
use indexy_dex::{
    BulkLoad, Error, Options, Tree,
    partition::Table,
    remote::{Secret, shm::Shm},
};
use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

const SECRET: &str = "not a secret: an example";
const PATIENCE: Duration = Duration::from_secs(5);
const KEYS: u64 = 1_000_000;
const QUARTER: u64 = KEYS / 4;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let done = match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => direct(),
        ["pool", socket] => {
            let arguments = ["indexy-pool", "serve", socket, "--memory", "256MiB"];
            return indexy_pool::run(&indexy_pool::Cli::parse_from(arguments));
        }
        ["compute", socket, owner] => compute(Path::new(socket), owner),
        _ => Err(anyhow::anyhow!("this example has no arguments")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A child that answers a line with a line, and dies with this value.
struct Process {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Process {
    fn start(arguments: &[&str]) -> Result<Self> {
        let mut child = Command::new(env::current_exe()?)
            .args(arguments)
            .env(indexy_pool::SECRET_VARIABLE, SECRET)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().context("no output")?;
        let mut this = Self {
            child,
            answers: BufReader::new(out),
        };
        print!("{arguments:?}: {}", this.answer()?);
        Ok(this)
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("a process ended");
        }
        Ok(line)
    }

    fn ask(&mut self, command: &str) -> Result<String> {
        let input = self.child.stdin.as_mut().context("no input")?;
        writeln!(input, "{command}")?;
        self.answer()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn secret() -> Result<Secret> {
    Ok(Secret::new(SECRET)?)
}

/// The process that starts the others.
fn direct() -> Result<()> {
    let folder = env::temp_dir().join(format!("indexy-pool-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let done = play(&folder);
    std::fs::remove_dir_all(&folder)?;
    done
}

fn play(folder: &Path) -> Result<()> {
    let path = folder.join("socket");
    let socket = path.to_str().context("a strange path")?;
    let _pool = Process::start(&["pool", socket])?;
    let memory = Shm::connect(std::slice::from_ref(&path), &secret()?, PATIENCE)?;
    let table = Table::new(vec![(0, 0), (KEYS / 2, 1)])?;
    let load = BulkLoad::default().table(table);
    let table = load.load(&memory, (0..KEYS).map(|key| (key, key)))?;
    let half = table.segments().nth(1).context("one owner")?.0;

    let mut one = Process::start(&["compute", socket, "0"])?;
    let mut two = Process::start(&["compute", socket, "1"])?;
    print!("0: {}", one.ask(&format!("work 0 {}", half - 1))?);
    print!("1: {}", two.ask(&format!("work {half} {}", KEYS - 1))?);
    print!(
        "0 gives its upper half to 1: {}",
        one.ask(&format!("give {QUARTER} {}", half - 1))?
    );
    print!("1 adopts the table: {}", two.ask("adopt")?);
    print!(
        "1: {}",
        two.ask(&format!("work {} {}", QUARTER + 100, KEYS - 1))?
    );
    print!("0: {}", one.ask("flush")?);
    one.child.kill()?;
    println!("0 is killed");
    print!("1 takes over: {}", two.ask("take")?);
    print!("1: {}", two.ask(&format!("work 0 {}", KEYS - 1))?);
    Ok(())
}

/// A compute server: does what its input says.
fn compute(socket: &Path, owner: &str) -> Result<()> {
    let owner: u16 = owner.parse()?;
    let pool = [PathBuf::from(socket)];
    let memory = Shm::connect_as(owner, &pool, &secret()?, PATIENCE)?;
    // A cache of 4 MiB, for 24 MiB of nodes.
    let tree = Tree::open(memory, Options::new(owner, 4096))?;
    println!("ready");
    for command in std::io::stdin().lines() {
        println!("{}", obey(&tree, &command?)?);
    }
    Ok(())
}

fn obey(tree: &Tree<Shm>, command: &str) -> Result<String> {
    let words: Vec<&str> = command.split(' ').collect();
    let started = Instant::now();
    let before = tree.counts();
    match words[..] {
        ["work", low, high] => {
            let (low, high): (u64, u64) = (low.parse()?, high.parse()?);
            let operations = 200_000;
            for i in 0..operations {
                // Four of five operations on a fiftieth of the keys.
                let spread = i * 0x9E37_79B9 % (high - low + 1);
                let key = low + if i % 5 == 0 { spread } else { spread / 50 };
                if i % 4 == 0 {
                    tree.put(key, key)?;
                } else if tree.get(key)? != Some(key) {
                    bail!("key {key} is wrong");
                }
            }
            let spent = tree.counts() - before;
            let us = started.elapsed().as_secs_f64() * 1e6 / operations as f64;
            let each = spent.verbs() as f64 / operations as f64;
            Ok(format!(
                "{operations} operations, {us:.2} us and {each:.3} verbs each"
            ))
        }
        ["give", low, high] => {
            let low = tree.leaf_start(low.parse()?)?;
            let epoch = tree.release(low, high.parse()?, 1)?;
            let verbs = (tree.counts() - before).verbs();
            let ms = started.elapsed().as_millis();
            Ok(format!("epoch {epoch}, {verbs} verbs, {ms} ms"))
        }
        ["adopt"] => Ok(format!("epoch {}", tree.adopt_table()?.epoch())),
        ["flush"] => {
            tree.flush()?;
            Ok(format!("{} pages written", (tree.counts() - before).writes))
        }
        ["take"] => loop {
            match tree.take_over(0) {
                Err(Error::Alive { for_ms, .. }) => {
                    sleep(Duration::from_millis(for_ms.clamp(1, 100)));
                }
                done => {
                    let epoch = done?.epoch();
                    let ms = started.elapsed().as_millis();
                    return Ok(format!(
                        "epoch {epoch}, after {ms} ms, most of them the lease"
                    ));
                }
            }
        },
        _ => bail!("{command}"),
    }
}
