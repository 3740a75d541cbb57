//! `ma4`, Figures 3 and 4: which of the values that reads find on the device go into memory.

use super::{
    ASIDE, Case, Device, LEAST_RELEASES, Sizes, add_ycsb, at, by_device, contender, rate_ratio,
    rates_text, run_of, skews, ticks, tuned, unsteadiness,
    verdict::{Verdict, alike, at_least},
};
use crate::{
    contender::{About, Cold},
    format,
    measure::{PhaseResult, RunResult},
    suite::Plan,
};
use indexy::Admission;
use indexy_report::chart::{Plot, Series};

const FIGURE: &str = "ma4";
const TOP5: &str = "top5";
const ALWAYS: &str = "always";
const ASIDE_ALWAYS: &str = "aside-always";
const ASIDE_TOP5: &str = "aside-top5";
/// Policies that wait for the device, with the pages of its preset.
const POLICIES: [(&str, &str, Admission); 4] = [
    ("update", "on update", Admission::OnUpdate),
    (TOP5, "top 5 %", Admission::Top { percent: 5 }),
    ("top20", "top 20 %", Admission::Top { percent: 20 }),
    (ALWAYS, "always", Admission::Always),
];
/// Those of them on disks that turn, whose phases are long.
const ENDS: [&str; 2] = [TOP5, ALWAYS];
/// Disks that turn do better by abort and restart: with them, too.
const ASIDES: [(&str, &str, Admission); 2] = [
    (
        ASIDE_TOP5,
        "put aside, top 5 %",
        Admission::Top { percent: 5 },
    ),
    (ASIDE_ALWAYS, "put aside, always", Admission::Always),
];
/// What the paper has the eviction interval grow by.
const INTERVAL_GAIN: f64 = 6.0;

fn solid(device: Device) -> bool {
    !device.turns() && device != Device::Dram
}

pub(in crate::suite::figures) fn jobs(sizes: &Sizes, all: &[&About], plan: &mut Plan) {
    let Some(about) = contender(all) else { return };
    for &device in &sizes.cold.devices {
        let asides = ASIDES.iter().filter(|_| device.turns()).map(|p| (p, ASIDE));
        let waiting = POLICIES
            .iter()
            .filter(|p| !device.turns() || ENDS.contains(&p.0));
        for ((policy, _, admission), aside) in waiting.map(|p| (p, 0)).chain(asides) {
            let case = Case {
                figure: FIGURE,
                policy,
                cold: Cold {
                    aside,
                    ..tuned(device, Some(*admission))
                },
                page_bytes: 0,
                budget: sizes.cold.budget,
            };
            add_ycsb(sizes, &case, about, sizes.cold.skews_on(device), plan);
        }
    }
}

fn titles() -> Vec<(&'static str, &'static str)> {
    let all = POLICIES.iter().chain(&ASIDES);
    all.map(|(policy, title, _)| (*policy, *title)).collect()
}

pub(in crate::suite::figures) fn plots(results: &[RunResult]) -> Vec<Plot> {
    let mut plots = by_device(results, FIGURE, &titles(), "operations/s", |_, phase| {
        Some(phase.rate())
    });
    let what = "operations between two releases";
    let mut intervals = by_device(results, FIGURE, &titles(), what, |run, phase| {
        Interval::of(run, phase)?.known()
    });
    for plot in plots.iter_mut().chain(&mut intervals) {
        plot.log_y = true;
    }
    plots.append(&mut intervals);
    plots.extend(over_time(results));
    plots
}

/// Throughput over time at the exponent of the paper, where the top is merged (Figure 4).
fn over_time(results: &[RunResult]) -> Option<Plot> {
    // A disk that turns does a few operations a tick.
    let series = Device::ALL.into_iter().filter_map(|device| {
        let phase = at(run_of(results, FIGURE, device, TOP5), 1.0)?;
        solid(device).then(|| Series {
            name: device.title().to_owned(),
            points: ticks(phase),
            dashed: false,
        })
    });
    let series: Vec<Series> = series.collect();
    (!series.is_empty()).then(|| Plot {
        title: "Over time, top 5 %, exponent 1".to_owned(),
        x_label: "seconds".to_owned(),
        y_label: "operations/s".to_owned(),
        series,
        log_y: true,
        ..Plot::default()
    })
}

/// Operations between two releases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Interval {
    /// So many, on average of enough releases.
    Of(f64),
    /// So many or more: there were too few releases to say.
    AtLeast(f64),
}

impl Interval {
    pub(super) fn new(operations: f64, releases: f64) -> Self {
        match releases >= LEAST_RELEASES {
            true => Self::Of(operations / releases),
            // The next one was about to begin.
            false => Self::AtLeast(operations / (releases + 1.0)),
        }
    }

    fn of(run: &RunResult, phase: &PhaseResult) -> Option<Self> {
        let releases = run.grown(phase, "releases")?;
        Some(Self::new(phase.done as f64, releases))
    }

    fn known(self) -> Option<f64> {
        match self {
            Self::Of(operations) => Some(operations),
            Self::AtLeast(_) => None,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Of(operations) => format::count(operations),
            Self::AtLeast(operations) => format!("at least {}", format::count(operations)),
        }
    }
}

/// Whether the interval of `one` is `least` times that of `other`. Where `one` is known to be a
/// least figure only, that may be enough.
pub(super) fn longer(one: Interval, other: Interval, least: f64) -> (Option<f64>, Verdict) {
    let Interval::Of(other) = other else {
        return (None, Verdict::TooShort);
    };
    match one {
        Interval::Of(one) => (Some(one / other), at_least(Some(one / other), least)),
        Interval::AtLeast(one) => match at_least(Some(one / other), least) {
            Verdict::AsClaimed => (Some(one / other), Verdict::AsClaimed),
            _ => (Some(one / other), Verdict::TooShort),
        },
    }
}

pub(in crate::suite::figures) fn findings(results: &[RunResult]) -> Vec<String> {
    let mut found = Vec::new();
    for device in Device::ALL {
        let of = |policy| run_of(results, FIGURE, device, policy);
        for x in skews(results) {
            found.extend(throughput(device, x, of(TOP5), of(ALWAYS)));
            found.extend(interval(device, x, of(TOP5), of(ALWAYS)));
            if device.turns() {
                found.extend(aside(device, x, of(ASIDE_TOP5), of(ASIDE_ALWAYS), of(TOP5)));
            }
        }
    }
    found.extend(drops(results));
    found
}

fn throughput(
    device: Device,
    x: f64,
    top: Option<&RunResult>,
    always: Option<&RunResult>,
) -> Option<String> {
    let text = rates_text(top, always, x)?;
    let head = format!("{} at {x}: top 5 % do {text} of always", device.title());
    if !solid(device) {
        return Some(head);
    }
    let verdict = at_least(rate_ratio(top, always, x), 1.0);
    Some(format!("{head}; paper: more: {verdict}"))
}

fn interval(
    device: Device,
    x: f64,
    top: Option<&RunResult>,
    always: Option<&RunResult>,
) -> Option<String> {
    let of = |run: Option<&RunResult>| Interval::of(run?, at(run, x)?);
    let (one, other) = (of(top)?, of(always)?);
    let (ratio, verdict) = longer(one, other, INTERVAL_GAIN);
    let ratio = ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.1} x"));
    let head = format!(
        "{} at {x}: {} operations between releases with the top 5 %, {} with always: {ratio}",
        device.title(),
        one.text(),
        other.text()
    );
    Some(match solid(device) {
        true => format!("{head}; paper: 6 x at 1.0: {verdict}"),
        false => head,
    })
}

fn aside(
    device: Device,
    x: f64,
    aside_top: Option<&RunResult>,
    aside_always: Option<&RunResult>,
    top: Option<&RunResult>,
) -> Vec<String> {
    let worse = at_least(rate_ratio(aside_always, aside_top, x), 1.0);
    let same = alike(rate_ratio(top, aside_always, x));
    let name = device.title();
    let one = rates_text(aside_always, aside_top, x);
    let other = rates_text(top, aside_always, x);
    let one = one.map(|text| {
        format!("{name} at {x}, put aside: always does {text} of the top 5 %; paper: more: {worse}")
    });
    let other = other.map(|text| {
        format!(
            "{name} at {x}: waiting with the top 5 % does {text} of putting aside with always; \
             paper: about the same: {same}"
        )
    });
    one.into_iter().chain(other).collect()
}

/// How much throughput falls now and then: least with NVRAM, says the paper.
fn drops(results: &[RunResult]) -> Option<String> {
    let of = |device| {
        let phase = at(run_of(results, FIGURE, device, TOP5), 1.0)?;
        Some((device, unsteadiness(phase)?))
    };
    let all: Vec<(Device, f64)> = Device::ALL.into_iter().filter_map(of).collect();
    let least = all.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let verdict = match least.0 {
        _ if all.len() < 2 => return None,
        Device::Nvram => Verdict::AsClaimed,
        _ => Verdict::NotShown,
    };
    let texts = all
        .iter()
        .map(|(device, part)| format!("{} {part:.2}", device.title()));
    let texts: Vec<String> = texts.collect();
    Some(format!(
        "5th to 95th of a hundred ticks of {} ms, as a part of the median, at 1.0: {}; paper: \
         least with NVRAM: {verdict}",
        super::TICK_MS,
        texts.join(", ")
    ))
}
