//! The workloads that come with the program.

const BUILTIN: &[(&str, &str)] = &[
    ("workloada", include_str!("../../workloads/workloada")),
    ("workloadb", include_str!("../../workloads/workloadb")),
    ("workloadc", include_str!("../../workloads/workloadc")),
    ("workloadd", include_str!("../../workloads/workloadd")),
    ("workloade", include_str!("../../workloads/workloade")),
    ("workloadf", include_str!("../../workloads/workloadf")),
    ("workloadt", include_str!("../../workloads/workloadt")),
    ("workloadx", include_str!("../../workloads/workloadx")),
];

/// Names of the workloads that need no file.
pub fn builtin_names() -> Vec<&'static str> {
    BUILTIN.iter().map(|(name, _)| *name).collect()
}

/// The property file of a built-in workload; `a` and `workloada` are the same.
pub fn builtin_text(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let is = |full: &str| full == name || full.strip_prefix("workload") == Some(&name);
    BUILTIN
        .iter()
        .find(|(full, _)| is(full))
        .map(|(_, text)| *text)
}
