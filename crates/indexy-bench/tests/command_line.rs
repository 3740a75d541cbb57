//! The program from outside: what it prints, leaves and refuses.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

fn program(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_indexy-bench"));
    command.current_dir(dir).args(arguments);
    command
}

fn run(arguments: &[&str]) -> (Output, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let output = program(dir.path(), arguments).output().unwrap();
    (output, dir)
}

fn results(dir: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(dir.join("indexy-bench-results/results.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[track_caller]
fn refused(arguments: &[&str], says: &[&str]) {
    let (output, dir) = run(arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    for part in says {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    assert!(!dir.path().join("indexy-bench-results").exists());
}

/// The smallest records, for a contender that takes keys and values of eight bytes.
const SMALL: [&str; 6] = [
    "-p",
    "fieldcount=1",
    "-p",
    "fieldlength=8",
    "-p",
    "keyformat=u64",
];

#[test]
fn a_small_table_is_measured_written_and_cleaned_up() {
    let (output, dir) = run(&[
        "core",
        "--scale",
        "0.001",
        "--only",
        "memory",
        "--repeat",
        "2",
        "--contenders",
        "btreemap,null",
        "--no-cgroup",
    ]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let document = results(dir.path());
    let runs = document["results"].as_array().unwrap();
    let finished = runs.iter().filter(|r| r["outcome"] == "finished").count();
    let skipped = runs.iter().filter(|r| r["outcome"] == "skipped").count();
    assert_eq!((finished, skipped), (6, 2), "BTreeMap takes no two threads");
    let out = dir.path().join("indexy-bench-results");
    assert!(out.join("results.csv").exists() && out.join("report.html").exists());
    assert!(!dir.path().join("indexy-bench-data").exists());
    let json = out.join("results.json");
    let compared = program(dir.path(), &["compare"])
        .arg(&json)
        .arg(&json)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&compared.stdout).contains("within noise"));
}

#[test]
fn a_closed_standard_error_loses_no_result() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = [
        "core",
        "--scale",
        "0.001",
        "--only",
        "memory",
        "--repeat",
        "1",
        "--contenders",
        "btreemap,null",
        "--no-cgroup",
    ];
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = program(dir.path(), &arguments)
        .stdout(Stdio::null())
        .stderr(writer)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(results(dir.path())["results"].as_array().unwrap().len(), 4);
    // A mistake has its own exit code, heard or not.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = program(dir.path(), &["core", "--only", "speed"])
        .stderr(writer)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(2));
}

#[test]
fn a_property_file_goes_before_the_built_in_workload_of_its_name() {
    let dir = tempfile::tempdir().unwrap();
    // Latin-1, as Java writes it.
    let text = b"# \xfc\nrecordcount=7\noperationcount=7\n";
    std::fs::write(dir.path().join("workloada"), text).unwrap();
    let output = program(dir.path(), &["ycsb", "-P", "workloada", "--no-cgroup"])
        .args(["--contenders", "btreemap", "--threads", "1"])
        .args(SMALL)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    let load = &results(dir.path())["results"][0]["phases"][1];
    assert_eq!(
        (load["name"].as_str(), load["asked"].as_u64()),
        (Some("load"), Some(7))
    );
    // What is there and cannot be read is no reason to run something else.
    let other = tempfile::tempdir().unwrap();
    let directory = other.path().join("workloada");
    std::fs::create_dir(&directory).unwrap();
    refused(
        &["ycsb", "-P", directory.to_str().unwrap()],
        &["workloada", "directory"],
    );
}

#[test]
fn several_workloads_share_the_records_of_the_first() {
    let other = tempfile::tempdir().unwrap();
    let wide = other.path().join("wide");
    std::fs::write(&wide, "recordcount=1000\nfieldcount=3\n").unwrap();
    refused(
        &["ycsb", "-P", "workloada", "-P", wide.to_str().unwrap()],
        &["fieldcount=3", "workload wide", "10"],
    );
    let dir = tempfile::tempdir().unwrap();
    let output = program(dir.path(), &["ycsb", "-P", "workloadc", "-P", "workloadc"])
        .args(["--contenders", "btreemap", "--threads", "1", "--no-cgroup"])
        .args(SMALL)
        .output()
        .unwrap();
    assert!(output.status.success());
    let document = results(dir.path());
    let phases = document["results"][0]["phases"].as_array().unwrap();
    let names: Vec<_> = phases.iter().filter_map(|p| p["name"].as_str()).collect();
    assert_eq!(
        names,
        ["open", "load", "settle", "workloadc", "workloadc#2"]
    );
}

#[test]
fn tpcc_is_run_checked_and_told_by_kind() {
    tpcc("indexy,null", &["no named tables"]);
}

#[test]
fn tpcc_is_run_by_other_pairs() {
    tpcc("bplus-alone", &[]);
}

/// The first of the contenders runs; the words are told besides those of every run.
fn tpcc(contenders: &str, words: &[&str]) {
    let (output, dir) = run(&[
        "tpcc",
        "--warehouses",
        "1",
        "--items",
        "500",
        "--customers",
        "30",
        "--seconds",
        "1.2",
        "--budget",
        "16MiB",
        "--contenders",
        contenders,
        "--others",
        "art-lsm",
        "--resident",
        "--no-cgroup",
    ]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let every = ["new_order", "stock_level", "rolled back"];
    for word in every.iter().chain(words) {
        assert!(told.contains(word), "{word:?} is not in: {told}");
    }
    let document = results(dir.path());
    let run = &document["results"][0];
    assert_eq!(run["outcome"], "finished");
    let phases = run["phases"].as_array().unwrap();
    let names: Vec<_> = phases.iter().filter_map(|p| p["name"].as_str()).collect();
    assert_eq!(names, ["open", "load", "settle", "run", "check"]);
    assert!(phases[3]["done"].as_u64().unwrap() > 0);
    let out = dir.path().join("indexy-bench-results");
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("transactions by kind") && report.contains("svg"));
    let csv = std::fs::read_to_string(out.join("results.csv")).unwrap();
    assert!(csv.contains(",stock_level,"));
}

/// Side by side: most of their time they wait until compaction rests.
#[test]
fn tatp_voter_and_counters_are_run_checked_and_told_by_kind_and_skew() {
    std::thread::scope(|s| {
        s.spawn(|| {
            by_skew(
                &["counters", "--rows", "1000", "--reads", "10"],
                &["counters_update", "counters_read"],
            );
        });
        s.spawn(|| {
            by_skew(
                &["tatp", "--subscribers", "500"],
                &["get_new_destination", "delete_call_forwarding"],
            );
        });
        by_skew(
            &["voter", "--phones", "100"],
            &["vote", "standings", "no named tables"],
        );
    });
}

/// Two exponents are two runs of the first contender; the words are told.
fn by_skew(workload: &[&str], words: &[&str]) {
    let options = [
        "--zipf",
        "0.5,1.5",
        "--seconds",
        "0.3",
        "--budget",
        "16MiB",
        "--contenders",
        "indexy,null",
        "--no-cgroup",
    ];
    let (output, dir) = run(&[workload, &options].concat());
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let name = workload[0];
    assert!(
        output.status.success(),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for word in ["succeeded", "check"].iter().chain(words) {
        assert!(told.contains(word), "{word:?} is not in: {told}");
    }
    let document = results(dir.path());
    assert_eq!(document["kind"], name);
    let runs = document["results"].as_array().unwrap();
    let finished = runs.iter().filter(|r| r["outcome"] == "finished");
    let mut exponents = Vec::new();
    for run in finished {
        let zipf = run["parameters"]["zipf"].as_f64().unwrap();
        assert_eq!(run["scenario"], format!("{name}-zipf-{zipf}"));
        let phases = run["phases"].as_array().unwrap();
        let names: Vec<_> = phases.iter().filter_map(|p| p["name"].as_str()).collect();
        assert_eq!(names, ["open", "load", "settle", "run", "check"]);
        assert!(phases[3]["done"].as_u64().unwrap() > 0);
        assert!(phases[4]["done"].as_u64().unwrap() > 0);
        exponents.push(zipf);
    }
    assert_eq!(exponents, [0.5, 1.5]);
    let out = dir.path().join("indexy-bench-results");
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("transactions by skew") && report.contains("svg"));
    let csv = std::fs::read_to_string(out.join("results.csv")).unwrap();
    assert!(csv.contains(&format!(",{},", words[0])));
}

#[test]
fn names_that_nobody_knows_are_refused_with_the_valid_ones() {
    refused(
        &["core", "--contenders", "mongo"],
        &["mongo", "btreemap", "indexy-bench-peers"],
    );
    refused(
        &["core", "--only", "speed"],
        &["speed", "memory, durability, larger, replay"],
    );
    refused(
        &["figures", "--only", "fig99"],
        &["fig99", "fig3-random", "fig8", "fig11"],
    );
    refused(
        &["tpcc", "--others", "art-redb"],
        &["art-redb", "-lsm, -bplus"],
    );
    refused(&["tpcc", "--mix", "half"], &["half", "standard, paper"]);
    refused(&["tpcc", "--resident"], &["--others"]);
    refused(&["tatp", "--zipf", "0.5,3"], &["'3'", "0 to 2"]);
    refused(&["voter", "--contestants", "13"], &["13", "1..=12"]);
    refused(&["counters", "--at-once", "65"], &["65", "1..=64"]);
    refused(
        &["voter", "--contenders", "null", "--no-cgroup"],
        &["several tables have: indexy, "],
    );
    refused(
        &["tpcc", "--contenders", "null", "--no-cgroup"],
        &["several tables have: indexy, ", "bplus-alone"],
    );
    refused(
        &["ycsb", "-P", "workloadz"],
        &["workloadz", "workloada, workloadb"],
    );
    refused(
        &["ycsb", "-P", "workloada", "-p", "recordcnt=3"],
        &["recordcnt", "recordcount"],
    );
    refused(
        &[
            "ycsb",
            "-P",
            "workloada",
            "-p",
            "requestdistribution=normal",
        ],
        &["uniform, zipfian, latest"],
    );
}

#[test]
fn a_disk_that_is_too_small_is_refused_before_the_run() {
    let records = "recordcount=1000000000000";
    refused(
        &[
            "ycsb",
            "-P",
            "workloada",
            "-p",
            records,
            "--contenders",
            "indexy",
            "--no-cgroup",
        ],
        &["MiB free", "may need"],
    );
    refused(
        &[
            "tpcc",
            "--warehouses",
            "10000",
            "--contenders",
            "indexy",
            "--no-cgroup",
        ],
        &["MiB free", "scenario tpcc may need"],
    );
    refused(
        &[
            "figures",
            "--preset",
            "paper",
            "--contenders",
            "indexy",
            "--no-cgroup",
        ],
        &["MiB free", "may need"],
    );
}

#[test]
fn an_interrupt_keeps_what_was_measured_and_marks_it() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = [
        "ycsb",
        "-P",
        "workloadc",
        "-p",
        "recordcount=20000",
        "-p",
        "operationcount=1000000000",
        "-p",
        "fieldcount=1",
        "-p",
        "fieldlength=8",
        "-p",
        "keyformat=u64",
        "-p",
        "target=5000",
        "--contenders",
        "btreemap",
        "--threads",
        "1",
        "--no-cgroup",
    ];
    let child = program(dir.path(), &arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The children say nothing before they are in the middle of it, so it is given a moment.
    thread::sleep(Duration::from_millis(1500));
    let interrupted = Instant::now();
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(interrupted.elapsed() < Duration::from_secs(20));
    let document = results(dir.path());
    assert_eq!(document["interrupted"], true);
    let phases = document["results"][0]["phases"].as_array().unwrap();
    let last = phases.last().unwrap();
    assert_eq!(
        (last["name"].as_str(), last["partial"].as_bool()),
        (Some("workloadc"), Some(true))
    );
    assert!(last["done"].as_u64().unwrap() > 0);
}

/// The process that `parent` runs a job in, once it is there.
fn child_of(parent: u32) -> rustix::process::Pid {
    let parent = parent.to_string();
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        for entry in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
            let read = |name: &str| std::fs::read_to_string(entry.path().join(name));
            let (Ok(stat), Ok(command)) = (read("stat"), read("cmdline")) else {
                continue;
            };
            // After the name in parentheses: the state, then the parent.
            let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            let is_ours = after_name.split_ascii_whitespace().nth(1) == Some(parent.as_str());
            if is_ours && command.contains("run-job-from-stdin") {
                let number = entry.file_name().to_str().unwrap().parse().unwrap();
                return rustix::process::Pid::from_raw(number).unwrap();
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("no child");
}

#[test]
fn a_contender_that_a_signal_kills_fails_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let child = program(dir.path(), &["ycsb", "-P", "workloadc", "--no-cgroup"])
        .args(["--contenders", "btreemap", "--threads", "1"])
        .args(["-p", "operationcount=1000000000", "-p", "target=5000"])
        .args(SMALL)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let victim = child_of(child.id());
    rustix::process::kill_process(victim, rustix::process::Signal::KILL).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    let run = &results(dir.path())["results"][0];
    assert_eq!(run["outcome"], "died", "{told}");
    assert_eq!(run["why"], "killed by signal 9", "{told}");
}

#[test]
fn a_contender_that_dies_of_the_memory_limit_is_reported_as_such() {
    if indexy_bench::harness::MemoryGroup::create(1 << 30, None).is_err() {
        eprintln!("no memory cgroup can be made here: nothing is tested");
        return;
    }
    // A map of three million keys takes more than 100 MiB, whatever its budget says.
    let (output, dir) = run(&[
        "ycsb",
        "-P",
        "workloada",
        "-p",
        "recordcount=3000000",
        "-p",
        "fieldcount=1",
        "-p",
        "fieldlength=8",
        "-p",
        "keyformat=u64",
        "--budget",
        "8MiB",
        "--slack",
        "8MiB",
        "--contenders",
        "btreemap",
        "--threads",
        "1",
    ]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        results(dir.path())["results"][0]["outcome"],
        "out_of_memory",
        "{told}"
    );
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(
        told.contains("out of memory under the limit of 16 MiB"),
        "{told}"
    );
}

/// The load may take what it likes; what is measured may not.
#[test]
fn a_free_load_is_limited_afterwards() {
    if indexy_bench::harness::MemoryGroup::create(1 << 30, None).is_err() {
        eprintln!("no memory cgroup can be made here: nothing is tested");
        return;
    }
    let (output, dir) = run(&[
        "ycsb",
        "-P",
        "workloadc",
        "-p",
        "recordcount=3000000",
        "-p",
        "operationcount=1000",
        "-p",
        "fieldcount=1",
        "-p",
        "fieldlength=8",
        "-p",
        "keyformat=u64",
        "--budget",
        "8MiB",
        "--slack",
        "40MiB",
        "--free-load",
        "--contenders",
        "indexy,btreemap",
        "--threads",
        "1",
    ]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let results = results(dir.path());
    let of = |name: &str| {
        let runs = results["results"].as_array().unwrap();
        let run = runs.iter().find(|run| run["contender"] == name);
        run.unwrap().clone()
    };
    assert_eq!(of("indexy")["outcome"], "finished", "{told}");
    assert_eq!(of("indexy")["memory_limit"], 48 << 20, "{told}");
    // A map that is larger than the limit cannot be made smaller by it.
    assert_eq!(of("btreemap")["outcome"], "failed", "{told}");
    assert!(
        told.contains("cannot limit memory after the load"),
        "{told}"
    );
}
