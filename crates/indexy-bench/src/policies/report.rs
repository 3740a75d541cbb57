//! What a replay found, as tables, plots and files.

use super::{Counts, Outcome, PoliciesError, SWEEP_PERIODS, Swept};
use crate::report::{Page, Section, Table, page_text};
use indexy_report::{
    chart::{Plot, Series},
    machine::commit,
};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The version of the JSON.
const FORMAT: u32 = 1;

/// Policies that plots show, where they were replayed: the others lie close to one of these.
const PLOTTED: [&str; 9] = [
    "belady",
    "w-tinylfu",
    "s3-fifo",
    "sieve",
    "lru",
    "density",
    "density+plain",
    "density+top5",
    "region-lru",
];

/// Everything that a replay found. No time is in it: the same arguments make the same file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// Version of this shape.
    pub format: u32,
    /// The commit that the program was built from.
    pub commit: String,
    /// Seed of the traces.
    pub seed: u64,
    /// Keys of the traces, about.
    pub keys: u32,
    /// Accesses of the traces, about.
    pub accesses: u32,
    /// Bytes of entries.
    pub bytes: u64,
    /// Bytes of one.
    pub entry_bytes: u64,
    /// Each trace through each policy.
    pub outcomes: Vec<Outcome>,
    /// Sizes of regions and sampling rates, where they were asked for.
    pub sweep: Vec<Swept>,
}

impl Replay {
    /// What `plan` found.
    pub fn new(plan: &super::Plan, outcomes: Vec<Outcome>, sweep: Vec<Swept>) -> Self {
        Self {
            format: FORMAT,
            commit: commit().to_owned(),
            seed: plan.size.seed,
            keys: plan.size.keys,
            accesses: plan.size.accesses,
            bytes: plan.bytes,
            entry_bytes: plan.entry_bytes,
            outcomes,
            sweep,
        }
    }

    /// Hit ratios, a row for each policy; and the sweep, if there is one.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.hit_table()];
        if !self.sweep.is_empty() {
            tables.push(self.sweep_table());
        }
        tables
    }

    fn hit_table(&self) -> Table {
        let traces = distinct(self.outcomes.iter().map(|o| o.trace.as_str()));
        let policies = distinct(self.outcomes.iter().map(|o| o.policy.as_str()));
        let mut heads = vec!["policy"];
        heads.extend(&traces);
        let mut table = Table::new("Hits of 100 reads", &heads);
        for policy in policies {
            let mut row = vec![policy.to_owned()];
            row.extend(
                traces
                    .iter()
                    .map(|trace| percent(self.counts(trace, policy))),
            );
            table.rows.push(row);
        }
        table.notes.push(format!(
            "{} entries of {} bytes. Counted: reads of the second half of each trace. Ours is a \
             model of the memory index under the engine's policies.",
            self.bytes / self.entry_bytes.max(1),
            self.entry_bytes,
        ));
        table
    }

    fn sweep_table(&self) -> Table {
        let heads = [
            "trace",
            "regions",
            "sampled 1 in",
            "density",
            "coldest",
            "tree's gain",
            "density+plain",
            "coldest+plain",
            "tree's gain",
        ];
        let title = "Algorithm 1's tree against the coldest region first, hits of 100 reads";
        let mut table = Table::new(title, &heads);
        for s in &self.sweep {
            table.rows.push(vec![
                s.trace.clone(),
                s.divisor.to_string(),
                s.sampled_one_in.to_string(),
                percent(Some(s.density)),
                percent(Some(s.coldest)),
                format!("{:+.2}", s.density.percent() - s.coldest.percent()),
                percent(Some(s.density_plain)),
                percent(Some(s.coldest_plain)),
                format!(
                    "{:+.2}",
                    s.density_plain.percent() - s.coldest_plain.percent()
                ),
            ]);
        }
        table
    }

    fn counts(&self, trace: &str, policy: &str) -> Option<Counts> {
        let mut all = self.outcomes.iter();
        let found = all.find(|o| o.trace == trace && o.policy == policy);
        found.map(|outcome| outcome.counts)
    }

    /// The plots, each with the name of its file.
    pub fn plots(&self) -> Vec<(String, Plot)> {
        let traces = distinct(self.outcomes.iter().map(|o| o.trace.as_str()));
        let skew = |trace: &&str| trace.strip_prefix("zipf-")?.parse::<f64>().ok();
        let skews: Vec<(f64, &str)> = traces.iter().filter_map(|t| Some((skew(t)?, *t))).collect();
        let mut plots = Vec::new();
        if skews.len() > 1 {
            plots.push(("hits-by-skew".to_owned(), self.lines(&skews)));
        }
        let others: Vec<&str> = traces
            .iter()
            .copied()
            .filter(|trace| skews.len() < 2 || skew(trace).is_none())
            .collect();
        if !others.is_empty() {
            plots.push(("hits-by-trace".to_owned(), self.bars(&others)));
        }
        for trace in distinct(self.sweep.iter().map(|s| s.trace.as_str())) {
            plots.push((format!("tree-{trace}"), self.gains(trace)));
        }
        plots
    }

    fn shown(&self) -> Vec<&'static str> {
        let replayed = |policy: &&str| self.outcomes.iter().any(|o| o.policy == *policy);
        PLOTTED.into_iter().filter(replayed).collect()
    }

    fn lines(&self, skews: &[(f64, &str)]) -> Plot {
        let series = self.shown().into_iter().map(|policy| Series {
            name: policy.to_owned(),
            points: skews
                .iter()
                .filter_map(|(x, trace)| Some((*x, self.counts(trace, policy)?.percent())))
                .collect(),
            dashed: policy == "belady",
        });
        Plot {
            title: "Hits by zipf exponent, popular keys spread".to_owned(),
            x_label: "zipf exponent".to_owned(),
            y_label: "hits of 100 reads".to_owned(),
            series: series.collect(),
            y_max: Some(100.0),
            ..Plot::default()
        }
    }

    fn bars(&self, traces: &[&str]) -> Plot {
        let series = self.shown().into_iter().map(|policy| Series {
            name: policy.to_owned(),
            points: (0..)
                .zip(traces)
                .filter_map(|(x, trace)| {
                    Some((f64::from(x), self.counts(trace, policy)?.percent()))
                })
                .collect(),
            dashed: false,
        });
        Plot {
            title: "Hits by trace".to_owned(),
            y_label: "hits of 100 reads".to_owned(),
            series: series.collect(),
            groups: traces.iter().map(|trace| (*trace).to_owned()).collect(),
            y_max: Some(100.0),
            ..Plot::default()
        }
    }

    /// What the tree gains over the coldest region first.
    fn gains(&self, trace: &str) -> Plot {
        let of = |period: u32| {
            let swept = self.sweep.iter();
            swept.filter(move |s| s.trace == trace && s.sampled_one_in == period)
        };
        let series = SWEEP_PERIODS.map(|period| Series {
            name: format!("1 in {period} counted"),
            points: of(period)
                .map(|s| (s.divisor as f64, s.density.percent() - s.coldest.percent()))
                .collect(),
            dashed: false,
        });
        Plot {
            title: format!("{trace}: Algorithm 1's tree less the coldest region first"),
            x_label: "regions of the budget".to_owned(),
            y_label: "points of hit ratio".to_owned(),
            series: series.into(),
            log_x: true,
            y_text: |value| format!("{value:.2}"),
            ..Plot::default()
        }
    }

    /// Writes `policies.json`, `policies.csv`, `sweep.csv` (if there is one), the plots as SVG and
    /// `policies.html` into `directory`; returns the path of the last one.
    pub fn write(&self, directory: &Path) -> Result<PathBuf, PoliciesError> {
        let io = |path: &Path, source| PoliciesError::Io {
            path: path.display().to_string(),
            source,
        };
        fs::create_dir_all(directory).map_err(|e| io(directory, e))?;
        let mut files = vec![("policies.json".to_owned(), self.json())];
        let names = ["policies.csv", "sweep.csv"];
        for (name, table) in names.into_iter().zip(self.tables()) {
            files.push((name.to_owned(), csv_text(&table)));
        }
        let plots = self.plots().into_iter();
        files.extend(plots.map(|(name, plot)| (format!("{name}.svg"), plot.to_svg())));
        files.push(("policies.html".to_owned(), self.html()));
        for (name, text) in files {
            let path = directory.join(name);
            fs::write(&path, text).map_err(|e| io(&path, e))?;
        }
        Ok(directory.join("policies.html"))
    }

    fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and texts") + "\n"
    }

    fn html(&self) -> String {
        let number = |n: u64| n.to_string();
        let header = [
            ("commit", self.commit.clone()),
            ("seed", number(self.seed)),
            ("keys", number(self.keys.into())),
            ("accesses", number(self.accesses.into())),
            ("bytes", number(self.bytes)),
            ("bytes of an entry", number(self.entry_bytes)),
        ];
        let section = Section {
            title: "Hits".to_owned(),
            charts: self.plots().iter().map(|(_, plot)| plot.to_svg()).collect(),
            tables: self.tables(),
            ..Section::default()
        };
        page_text(&Page {
            kind: "policies",
            header: header.into(),
            sections: vec![section],
            ..Page::default()
        })
    }
}

fn percent(counts: Option<Counts>) -> String {
    counts.map_or_else(
        || "-".to_owned(),
        |counts| format!("{:.2}", counts.percent()),
    )
}

/// In the order of their first occurrence.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn csv_text(table: &Table) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let rows = std::iter::once(&table.heads).chain(&table.rows);
    rows.for_each(|row| writer.write_record(row).expect("memory takes everything"));
    let bytes = writer.into_inner().expect("memory takes everything");
    String::from_utf8(bytes).expect("made of texts")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::{Plan, Policy, Size, run, sweep};

    #[test]
    fn a_replay_has_tables_plots_and_files_that_are_the_same_each_time() {
        let names = ["density", "lru", "belady"];
        let plan = Plan {
            traces: ["zipf-0.7", "zipf-1.2", "tatp"].map(str::to_owned).into(),
            own: None,
            policies: names.map(|name| Policy::parse(name).unwrap()).into(),
            size: Size {
                keys: 20_000,
                accesses: 20_000,
                seed: 7,
            },
            bytes: 2500 * 24,
            entry_bytes: 24,
        };
        let replay = || {
            let outcomes = run(&plan, |_| ()).unwrap();
            Replay::new(&plan, outcomes, sweep(&plan, |_| ()).unwrap())
        };
        let replay = [replay(), replay()];
        let dir = tempfile::tempdir().unwrap();
        let texts = [0, 1].map(|i| {
            let path = dir.path().join(i.to_string());
            replay[i].write(&path).unwrap();
            let mut names: Vec<_> = fs::read_dir(&path).unwrap().map(|e| e.unwrap()).collect();
            names.sort_by_key(std::fs::DirEntry::file_name);
            let read = |e: &fs::DirEntry| (e.file_name(), fs::read_to_string(e.path()).unwrap());
            names.iter().map(read).collect::<Vec<_>>()
        });
        assert_eq!(texts[0], texts[1]);
        let names: Vec<String> = texts[0]
            .iter()
            .map(|(n, _)| n.to_string_lossy().into_owned())
            .collect();
        let expected = [
            "hits-by-skew.svg",
            "hits-by-trace.svg",
            "policies.csv",
            "policies.html",
            "policies.json",
            "sweep.csv",
            "tree-tatp.svg",
            "tree-zipf-0.7.svg",
            "tree-zipf-1.2.svg",
        ];
        assert_eq!(names, expected);
        let table = &replay[0].tables()[0];
        assert_eq!(table.heads, ["policy", "zipf-0.7", "zipf-1.2", "tatp"]);
        assert_eq!(table.rows.len(), 3);
        let json = &texts[0][4].1;
        assert_eq!(serde_json::from_str::<Replay>(json).unwrap(), replay[0]);
    }
}
