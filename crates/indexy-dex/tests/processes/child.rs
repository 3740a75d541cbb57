//! The processes of these tests: memory servers and compute servers, each this test binary again.

use indexy_dex::{
    Address, Error, Options, Result, Tree, offload,
    offload::Offloading,
    remote::{
        Counts, Part, Region, RemoteMemory, Secret, Serving,
        shm::{Shm, ShmServer},
        tcp::{Tcp, TcpServer},
    },
};
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::{
    env,
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write},
    net::SocketAddr,
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU8, Ordering::SeqCst},
    },
    thread::{self, sleep},
    time::{Duration, Instant},
};

pub const LEASE: Duration = Duration::from_millis(400);
/// Of a verb.
pub const PATIENCE: Duration = Duration::from_millis(1_500);
/// Nothing takes longer: lease, patience, and the wait for a lock.
pub const BOUND: Duration = Duration::from_secs(10);

pub fn secret() -> Secret {
    Secret::new(*b"sixteen letters.").unwrap()
}

/// What a child is told by its environment.
const ROLE: &str = "DEX_TEST_ROLE";

/// A process that dies with its value.
pub struct Process {
    child: Child,
    pub word: String,
}

impl Process {
    /// Starts a role, and waits for the word that it says when it is ready.
    fn start(role: &str) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut words = lines.map_while(|line| line.ok());
        let word = words.find_map(|line| line.strip_prefix("ready ").map(String::from));
        Self {
            child,
            word: word.unwrap_or_default(),
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Wire {
    Shm,
    Tcp,
}

/// A memory server.
pub fn start_pool(wire: Wire, folder: &Path) -> Process {
    let path = folder.join("pool");
    let process = match wire {
        Wire::Shm => Process::start(&format!("pool shm {}", path.display())),
        Wire::Tcp => Process::start("pool tcp -"),
    };
    assert!(!process.word.is_empty(), "the pool did not start");
    process
}

/// Compute server `owner`, and a line to it.
pub struct Compute {
    pub process: Process,
    path: PathBuf,
}

impl Compute {
    pub fn start(wire: Wire, owner: u16, pool: &Process, folder: &Path) -> Self {
        let path = folder.join(format!("owner-{owner}"));
        let _ = std::fs::remove_file(&path);
        let shown = path.display();
        let wire = if wire == Wire::Shm { "shm" } else { "tcp" };
        let role = format!("compute {wire} {} {owner} {shown}", pool.word);
        let process = Process::start(&role);
        assert!(!process.word.is_empty(), "owner {owner} did not start");
        Self { process, path }
    }

    pub fn line(&self) -> Line {
        let stream = UnixStream::connect(&self.path).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        let answers = BufReader::new(stream.try_clone().unwrap());
        Line { stream, answers }
    }

    pub fn ask(&self, command: &str) -> String {
        self.line().ask(command)
    }

    /// Asks until the answer is no lease that runs.
    pub fn ask_until_lapsed(&self, command: &str) -> String {
        let started = Instant::now();
        loop {
            let answer = self.ask(command);
            if !answer.starts_with("Alive") {
                return answer;
            }
            assert!(started.elapsed() < BOUND, "{command}: {answer}");
            sleep(Duration::from_millis(20));
        }
    }
}

/// A client of a compute server.
pub struct Line {
    stream: UnixStream,
    answers: BufReader<UnixStream>,
}

impl Line {
    pub fn send(&mut self, command: &str) {
        let _ = writeln!(self.stream, "{command}");
    }

    /// Empty: the process ended.
    pub fn receive(&mut self) -> String {
        let mut answer = String::new();
        match self.answers.read_line(&mut answer) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(error) => panic!("no answer in {BOUND:?}: {error}"),
        }
        answer.trim().to_string()
    }

    /// No answer within `limit`.
    pub fn is_silent_for(&mut self, limit: Duration) -> bool {
        self.stream.set_read_timeout(Some(limit)).unwrap();
        let mut answer = String::new();
        let silent = self.answers.read_line(&mut answer).is_err();
        self.stream.set_read_timeout(Some(BOUND)).unwrap();
        silent
    }

    pub fn ask(&mut self, command: &str) -> String {
        self.send(command);
        self.receive()
    }
}

/// An endpoint that stops or kills its own process at a verb.
struct Armed<M> {
    memory: M,
    left: Arc<AtomicI64>,
    signal: Arc<AtomicU8>,
}

impl<M> Armed<M> {
    fn verb(&self) {
        if self.left.fetch_sub(1, SeqCst) == 0 {
            let signal = match self.signal.load(SeqCst) {
                0 => Signal::KILL,
                _ => Signal::STOP,
            };
            kill_process(getpid(), signal).unwrap();
            // Another thread may be the one that takes the signal for all.
            sleep(Duration::from_millis(100));
        }
    }
}

impl<M: RemoteMemory> RemoteMemory for Armed<M> {
    fn servers(&self) -> usize {
        self.memory.servers()
    }

    fn read(&self, at: Address, into: &mut [u64]) -> Result<()> {
        self.verb();
        self.memory.read(at, into)
    }

    fn read_many(&self, parts: &mut [Part<'_>]) -> Result<()> {
        self.verb();
        self.memory.read_many(parts)
    }

    fn write(&self, at: Address, words: &[u64]) -> Result<()> {
        self.verb();
        self.memory.write(at, words)
    }

    fn cas(&self, at: Address, expected: u64, new: u64) -> Result<u64> {
        self.verb();
        self.memory.cas(at, expected, new)
    }

    fn call(&self, server: u16, request: &[u64]) -> Result<Vec<u64>> {
        self.verb();
        self.memory.call(server, request)
    }

    fn counts(&self) -> Counts {
        self.memory.counts()
    }

    fn session(&self) -> u64 {
        self.memory.session()
    }

    fn check_session(&self) -> Result<()> {
        self.memory.check_session()
    }

    fn abandon(&self) {
        self.memory.abandon();
    }

    fn session_of(&self, owner: u16) -> Result<u64> {
        self.memory.session_of(owner)
    }

    fn fence(&self, session: u64) -> Result<()> {
        self.memory.fence(session)
    }

    fn now_ns(&self) -> u64 {
        self.memory.now_ns()
    }
}

/// The child's part; nothing if this is no child.
pub fn play() {
    let Ok(role) = env::var(ROLE) else {
        return;
    };
    let words: Vec<&str> = role.split(' ').collect();
    let serving = Serving::new(2).lease(LEASE);
    let region = || Arc::new(Region::create(64 << 20).unwrap());
    match words[..] {
        ["pool", "shm", path] => {
            let path = Path::new(path);
            let _server = ShmServer::start(path, region(), offload::serve, secret(), serving);
            say_ready(&path.display().to_string());
        }
        ["pool", ..] => {
            let any = ([127, 0, 0, 1], 0).into();
            let server = TcpServer::start(any, region(), offload::serve, secret(), serving);
            let server = server.unwrap();
            say_ready(&server.address().to_string());
        }
        ["compute", "shm", pool, owner, path] => {
            let owner: u16 = owner.parse().unwrap();
            let pool = [PathBuf::from(pool)];
            compute(owner, path, || {
                Shm::connect_as(owner, &pool, &secret(), PATIENCE)
            });
        }
        ["compute", _, pool, owner, path] => {
            let owner: u16 = owner.parse().unwrap();
            let pool: [SocketAddr; 1] = [pool.parse().unwrap()];
            compute(owner, path, || {
                Tcp::connect_as(owner, &pool, &secret(), PATIENCE)
            });
        }
        _ => panic!("{role}"),
    }
}

/// Says that it is ready, and waits for the end of the parent.
fn say_ready(word: &str) {
    println!("\nready {word}");
    let _ = std::io::stdin().read(&mut [0]);
}

fn compute<M: RemoteMemory + 'static>(owner: u16, path: &str, connect: impl Fn() -> Result<M>) {
    // A server of this number that was killed holds its lease for a while.
    let started = Instant::now();
    let memory = loop {
        match connect() {
            Err(Error::Alive { .. }) if started.elapsed() < BOUND => {
                sleep(Duration::from_millis(20));
            }
            done => break done.unwrap(),
        }
    };
    let left = Arc::new(AtomicI64::new(i64::MAX));
    let signal = Arc::new(AtomicU8::new(0));
    let memory = Armed {
        memory,
        left: left.clone(),
        signal: signal.clone(),
    };
    let options = Options::new(owner, 64)
        .leaf_admission(0.5)
        .offloading(Offloading::Measured);
    let tree = Arc::new(Tree::open(memory, options).unwrap());
    let listener = UnixListener::bind(path).unwrap();
    let shared = (tree, left, signal);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (tree, left, signal) = shared.clone();
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let commands = BufReader::new(stream.try_clone().unwrap()).lines();
                for command in commands.map_while(|line| line.ok()) {
                    let answer = obey(&tree, &left, &signal, &command);
                    if writeln!(stream, "{answer}").is_err() {
                        return;
                    }
                }
            });
        }
    });
    say_ready("yes");
}

fn obey<M: RemoteMemory>(
    tree: &Tree<M>,
    left: &AtomicI64,
    signal: &AtomicU8,
    command: &str,
) -> String {
    let mut words = command.split(' ');
    let name = words.next().unwrap();
    let numbers: Vec<u64> = words.map(|word| word.parse().unwrap()).collect();
    let shown = |value: Option<u64>| value.map_or("none".to_string(), |value| value.to_string());
    let done = match (name, &numbers[..]) {
        ("get", &[key]) => tree.get(key).map(shown),
        ("put", &[key, value]) => tree.put(key, value).map(shown),
        ("remove", &[key]) => tree.remove(key).map(shown),
        ("flush", _) => tree.flush().map(|()| "done".into()),
        ("leaf", &[key]) => tree.leaf_start(key).map(|start| start.to_string()),
        ("release", &[low, high, to]) => {
            let released = tree.release(low, high, to as u16);
            released.map(|epoch| epoch.to_string())
        }
        ("adopt", _) => tree.adopt_table().map(|table| table.epoch().to_string()),
        ("take", &[gone]) => tree.take_over(gone as u16).map(|_| "done".into()),
        ("scan", &[low, high]) => {
            let mut found = Vec::new();
            let next = tree.scan(low, high, usize::MAX, &mut found);
            next.map(|_| {
                found.iter().fold(String::new(), |mut all, (key, value)| {
                    let _ = write!(all, "{key}={value} ");
                    all
                })
            })
        }
        // A signal at the verb after so many; 0 kills, 1 stops.
        ("arm", &[verbs, which]) => {
            signal.store(which as u8, SeqCst);
            left.store(verbs as i64, SeqCst);
            Ok("done".into())
        }
        ("left", _) => Ok(left.load(SeqCst).to_string()),
        _ => panic!("{command}"),
    };
    done.unwrap_or_else(|error| format!("{error:?}").replace('\n', " "))
}
