//! What two results differ in beside their speed, and what in them is not whole: whoever compares
//! rates should know.

use super::{
    document::Document,
    table::{how_far, remark},
};
use crate::measure::{Outcome, RunResult};

/// A setting of a run, as text.
type Setting = fn(&RunResult) -> String;

/// What runs must have in common if their rates are to be compared.
const SETTINGS: [(&str, Setting); 4] = [
    ("budget", |run| mebibytes(run.budget)),
    ("durability", |run| run.durability.clone()),
    ("seed", |run| run.seed.to_string()),
    ("memory cgroup", cgroup),
];

fn cgroup(run: &RunResult) -> String {
    run.memory_limit.map_or_else(
        || "none".to_owned(),
        |limit| {
            let slack = limit.saturating_sub(run.budget);
            format!("with {} above the budget", mebibytes(slack))
        },
    )
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.2} MiB", bytes as f64 / 1048576.0)
}

/// Lines to print below a comparison; none if both were measured alike and to the end.
pub fn condition_notes(before: &Document, after: &Document) -> Vec<String> {
    let mut notes = Notes::default();
    let mut seen = Vec::new();
    for run in &before.results {
        let who = format!("{} {}", run.scenario, run.contender);
        let (a, b) = (same(before, run), same(after, run));
        if a.is_empty() || b.is_empty() || seen.contains(&who) {
            continue;
        }
        for (setting, of) in SETTINGS {
            let of = |runs: &[&RunResult]| distinct(runs.iter().map(|r| of(r)));
            notes.differ(setting, &of(&a), &of(&b), &who);
        }
        for phase in run.phases.iter().map(|p| p.name.as_str()) {
            let of = |runs: &[&RunResult]| {
                let found = runs.iter().filter_map(|r| r.phase(phase));
                distinct(found.map(|p| p.threads.to_string()))
            };
            if b.iter().any(|r| r.phase(phase).is_some()) {
                notes.differ("threads", &of(&a), &of(&b), &format!("{who} {phase}"));
            }
        }
        seen.push(who);
    }
    for (when, one, other) in [("before", before, after), ("after", after, before)] {
        for run in &one.results {
            not_whole(&mut notes, when, run, other);
        }
    }
    notes.lines()
}

/// Says how `run` ended, if not as planned, and which of its phases were cut short.
fn not_whole(notes: &mut Notes, when: &str, run: &RunResult, other: &Document) {
    let who = match run.repeat {
        0 => format!("{} {}", run.scenario, run.contender),
        repeat => format!("{} {} #{}", run.scenario, run.contender, repeat + 1),
    };
    // What was left out on both sides is not compared.
    let compared = !is_left_out(run) || !same(other, run).is_empty();
    if run.outcome != Outcome::Finished && compared {
        notes.add(format!("{when}: {}", remark(&run.outcome)), who.clone());
    }
    for phase in run.phases.iter().filter(|p| p.partial) {
        let far = if phase.asked > 0 {
            format!(": {}", how_far(phase))
        } else {
            String::new()
        };
        let phase = format!("{who} {}{far}", phase.name);
        notes.add(format!("cut short {when}"), phase);
    }
}

/// The runs of `document` that repeat `run`, or are it, and were not left out.
fn same<'a>(document: &'a Document, run: &RunResult) -> Vec<&'a RunResult> {
    let alike = |r: &&RunResult| r.scenario == run.scenario && r.contender == run.contender;
    let runs = document.results.iter().filter(alike);
    runs.filter(|r| !is_left_out(r)).collect()
}

fn is_left_out(run: &RunResult) -> bool {
    matches!(run.outcome, Outcome::Skipped(_))
}

/// The different ones of `values`, as text.
fn distinct(values: impl Iterator<Item = String>) -> String {
    let mut values: Vec<String> = values.collect();
    values.sort();
    values.dedup();
    values.join(" and ")
}

/// What there is to say, with all that it is true of.
#[derive(Debug, Default)]
struct Notes {
    notes: Vec<(String, Vec<String>)>,
}

impl Notes {
    fn add(&mut self, what: String, who: String) {
        match self.notes.iter_mut().find(|(said, _)| *said == what) {
            Some((_, all)) => all.push(who),
            None => self.notes.push((what, vec![who])),
        }
    }

    fn differ(&mut self, what: &str, before: &str, after: &str, who: &str) {
        if before != after {
            let what = format!("{what} {before} before, {after} after");
            self.add(what, who.to_owned());
        }
    }

    fn lines(self) -> Vec<String> {
        let line =
            |(what, who): (String, Vec<String>)| format!("note: {what} ({})", who.join(", "));
        self.notes.into_iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::PhaseResult;

    fn run(contender: &str) -> RunResult {
        let phase = PhaseResult {
            name: "get".into(),
            threads: 2,
            done: 100,
            seconds: 1.0,
            ..PhaseResult::default()
        };
        RunResult {
            scenario: "s".into(),
            contender: contender.into(),
            repeat: 0,
            budget: 128 << 20,
            memory_limit: Some(160 << 20),
            durability: "none".into(),
            page_cache: String::new(),
            seed: 1,
            outcome: Outcome::Finished,
            phases: vec![phase],
            parameters: Default::default(),
        }
    }

    fn document(results: Vec<RunResult>) -> Document {
        let mut document = Document::begin("core", std::path::Path::new("/"));
        document.results = results;
        document
    }

    #[test]
    fn alike_and_whole_results_need_no_notes() {
        let (before, after) = (document(vec![run("a")]), document(vec![run("a"), run("b")]));
        assert_eq!(condition_notes(&before, &after), Vec::<String>::new());
    }

    #[test]
    fn each_condition_that_differs_is_noted_with_whom_it_concerns() {
        fn change(change: fn(&mut RunResult)) -> Vec<String> {
            let before = document(vec![run("a"), run("b")]);
            let mut after = before.clone();
            after.results.iter_mut().for_each(change);
            condition_notes(&before, &after)
        }
        let budget = change(|r| {
            r.budget = 64 << 20;
            r.memory_limit = Some(96 << 20);
        });
        assert_eq!(
            budget,
            ["note: budget 128.00 MiB before, 64.00 MiB after (s a, s b)"]
        );
        assert_eq!(
            change(|r| r.durability = "sync".into()),
            ["note: durability none before, sync after (s a, s b)"]
        );
        assert_eq!(
            change(|r| r.seed = 2),
            ["note: seed 1 before, 2 after (s a, s b)"]
        );
        assert_eq!(
            change(|r| r.memory_limit = None),
            ["note: memory cgroup with 32.00 MiB above the budget before, none after (s a, s b)"]
        );
        assert_eq!(
            change(|r| r.phases[0].threads = 4),
            ["note: threads 2 before, 4 after (s a get, s b get)"]
        );
    }

    #[test]
    fn what_is_not_whole_is_noted_and_what_both_left_out_is_not() {
        let (mut a, mut b, mut c) = (run("a"), run("b"), run("c"));
        a.repeat = 1;
        a.phases[0].partial = true;
        a.phases[0].asked = 400;
        b.outcome = Outcome::OutOfMemory("out of memory".into());
        b.phases[0].partial = true;
        c.outcome = Outcome::Skipped("no scans".into());
        c.phases.clear();
        let before = document(vec![a, b, c.clone()]);
        let expected = [
            "note: cut short before (s a #2 get: 25 % of 400, s b get)",
            "note: before: DIED: out of memory (s b)",
        ];
        let with_c = |c| document(vec![run("a"), run("b"), c]);
        assert_eq!(condition_notes(&before, &with_c(c)), expected);
        let notes = condition_notes(&before, &with_c(run("c")));
        assert_eq!(notes[..2], expected);
        assert_eq!(notes[2], "note: before: left out: no scans (s c)");
    }
}
