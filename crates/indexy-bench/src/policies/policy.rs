//! Policies by name: `release+parts` for ours, a word for others.

use super::{
    Cache, Memory, PoliciesError, Settings, Trace,
    ours::{Ours, PARTS, RELEASES},
    peers::{Belady, Clock, Lru, QuickCache, S3Fifo, Sieve, TinyLfu},
};

/// Caches of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The entry used longest ago goes.
    Lru,
    /// A hand over the entries.
    Clock,
    /// SIEVE.
    Sieve,
    /// S3-FIFO.
    S3Fifo,
    /// W-TinyLFU.
    TinyLfu,
    /// The crate `quick_cache`.
    QuickCache,
    /// What is used farthest in the future goes.
    Belady,
}

const PEERS: [(&str, Peer, &str); 7] = [
    ("lru", Peer::Lru, "the entry used longest ago goes"),
    (
        "clock",
        Peer::Clock,
        "a hand over the entries, one bit each",
    ),
    ("sieve", Peer::Sieve, "SIEVE (NSDI 2024)"),
    ("s3-fifo", Peer::S3Fifo, "S3-FIFO (SOSP 2023)"),
    (
        "w-tinylfu",
        Peer::TinyLfu,
        "W-TinyLFU (2017), a window of 1 %",
    ),
    (
        "quick-cache",
        Peer::QuickCache,
        "the crate quick_cache, on one thread",
    ),
    (
        "belady",
        Peer::Belady,
        "the best possible: what is needed last goes (MIN)",
    ),
];

/// What is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// One of ours.
    Ours(Ours),
    /// One of others.
    Peer(Peer),
}

impl Policy {
    /// The policy of that name.
    pub fn parse(name: &str) -> Result<Self, PoliciesError> {
        let unknown = |why: String| PoliciesError::UnknownPolicy {
            name: name.to_owned(),
            why,
        };
        if let Some((_, peer, _)) = PEERS.iter().find(|(known, ..)| *known == name) {
            return Ok(Self::Peer(*peer));
        }
        let mut parts = name.split('+');
        let first = parts.next().unwrap_or_default();
        let release = RELEASES.iter().find(|(known, ..)| *known == first);
        let release = release.ok_or_else(|| {
            let known = RELEASES.map(|r| r.0).into_iter().chain(PEERS.map(|p| p.0));
            let known: Vec<&str> = known.collect();
            unknown(format!("{first:?} is none of {}", known.join(", ")))
        })?;
        let mut ours = Ours {
            release: release.1,
            ..Ours::default()
        };
        for part in parts {
            ours.add(part).ok_or_else(|| {
                unknown(format!(
                    "{part:?} is none of {}",
                    PARTS.map(|p| p.0).join(", ")
                ))
            })?;
        }
        Ok(Self::Ours(ours))
    }

    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Self::Ours(ours) => ours.name(),
            Self::Peer(peer) => PEERS
                .iter()
                .find(|(_, known, _)| known == peer)
                .map_or_else(String::new, |(name, ..)| (*name).to_owned()),
        }
    }

    /// A cache of it that holds what `settings` says. `trace`: for what knows the future.
    pub(super) fn cache(&self, settings: Settings, trace: &Trace) -> Box<dyn Cache> {
        let keys = trace.keys;
        let entries = |extra: f64| {
            let each = settings.entry_bytes as f64 + extra;
            ((settings.bytes as f64 / each) as usize).max(1)
        };
        match self {
            Self::Ours(ours) => Box::new(Memory::new(keys, *ours, settings)),
            Self::Peer(Peer::Lru) => Box::new(Lru::new(keys, entries(0.0))),
            Self::Peer(Peer::Clock) => Box::new(Clock::new(keys, entries(0.0))),
            Self::Peer(Peer::Sieve) => Box::new(Sieve::new(keys, entries(0.0))),
            Self::Peer(Peer::S3Fifo) => Box::new(S3Fifo::new(keys, entries(S3Fifo::EXTRA_BYTES))),
            Self::Peer(Peer::TinyLfu) => {
                Box::new(TinyLfu::new(keys, entries(TinyLfu::EXTRA_BYTES)))
            }
            Self::Peer(Peer::QuickCache) => Box::new(QuickCache::new(entries(0.0))),
            Self::Peer(Peer::Belady) => Box::new(Belady::new(trace, entries(0.0))),
        }
    }
}

/// Beside the default release.
const MORE: [&str; 9] = [
    "density+top50",
    "density+top20",
    "density+top5",
    "coldest+top5",
    "density+on-update",
    "density+never",
    "density+oldest",
    "density+unclean",
    "region-random+plain+top5",
];

fn default_names() -> Vec<String> {
    let plain = RELEASES.map(|r| format!("{}+plain", r.0));
    let own = RELEASES.map(|r| r.0.to_owned()).into_iter().chain(plain);
    let more = MORE.iter().map(|name| (*name).to_owned());
    own.chain(more)
        .chain(PEERS.map(|p| p.0.to_owned()))
        .collect()
}

/// What is replayed when nothing is named: each release with and without second chance, other
/// admissions and pre-cleaning with the default release, and all caches of others.
pub fn default_policies() -> Vec<Policy> {
    let names = default_names();
    names
        .iter()
        .filter_map(|name| Policy::parse(name).ok())
        .collect()
}

/// Names and meanings: of releases, of what may follow them, of others.
pub fn described() -> impl Iterator<Item = (String, &'static str)> {
    let releases = RELEASES.map(|(name, _, about)| (name.to_owned(), about));
    let parts = PARTS.map(|(name, about)| (format!("  +{name}"), about));
    let peers = PEERS.map(|(name, _, about)| (name.to_owned(), about));
    releases.into_iter().chain(parts).chain(peers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use indexy::{Admission, Release};

    #[test]
    fn names_say_what_they_mean_and_nothing_else_does() {
        let policies = default_policies();
        assert_eq!(policies.len(), default_names().len());
        for (policy, name) in policies.iter().zip(default_names()) {
            assert_eq!(policy.name(), name);
        }
        let Policy::Ours(ours) = Policy::parse("coldest+unclean+top7+plain").unwrap() else {
            panic!("a peer")
        };
        assert_eq!(ours.release, Release::Coldest);
        assert_eq!(ours.admission, Admission::Top { percent: 7 });
        assert_eq!(ours.name(), "coldest+plain+top7+unclean");
        for bad in [
            "",
            "lru+plain",
            "density+",
            "density+top0",
            "density+top101",
            "hot",
        ] {
            let error = Policy::parse(bad).unwrap_err().to_string();
            assert!(error.contains("is none of"), "{bad}: {error}");
        }
    }
}
