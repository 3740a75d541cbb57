//! On which device a contender of ours keeps cold data, and by which policies.
//!
//! Source: *Larger-than-Memory Data Management on Modern Storage Hardware* (Ma and others), whose
//! figures run on five devices. Devices are modelled: the bytes lie in the directory of the job,
//! which should be in memory.

use indexy::{Admission, DeviceModel, DeviceProfile, ModelledDevice};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A device of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// A hard disk.
    Hdd,
    /// A shingled one.
    Smr,
    /// Flash.
    Ssd,
    /// 3D XPoint behind PCIe.
    Xpoint,
    /// Memory that keeps what it has.
    Nvram,
    /// Memory that does not: what the others are compared with.
    Dram,
}

impl Device {
    /// All of them, the slowest first.
    pub const ALL: [Self; 6] = [
        Self::Hdd,
        Self::Smr,
        Self::Ssd,
        Self::Xpoint,
        Self::Nvram,
        Self::Dram,
    ];

    /// As scenarios spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hdd => "hdd",
            Self::Smr => "smr",
            Self::Ssd => "ssd",
            Self::Xpoint => "xpoint",
            Self::Nvram => "nvram",
            Self::Dram => "dram",
        }
    }

    /// As figures spell it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Hdd => "HDD",
            Self::Smr => "SMR",
            Self::Ssd => "SSD",
            Self::Xpoint => "3DX",
            Self::Nvram => "NVRAM",
            Self::Dram => "DRAM",
        }
    }

    /// The device of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|device| device.name() == name)
    }

    /// It has a head that must move: a read takes milliseconds.
    pub fn turns(self) -> bool {
        matches!(self, Self::Hdd | Self::Smr)
    }

    /// What it costs.
    pub fn model(self) -> DeviceModel {
        match self {
            Self::Hdd => DeviceModel::HDD,
            Self::Smr => DeviceModel::SMR,
            Self::Ssd => DeviceModel::SSD,
            Self::Xpoint => DeviceModel::XPOINT,
            Self::Nvram => DeviceModel::NVRAM,
            Self::Dram => DeviceModel::DRAM,
        }
    }

    /// The preset for it. Memory has none of its own, and takes that of the nearest device.
    pub fn profile(self) -> DeviceProfile {
        match self {
            Self::Hdd => DeviceProfile::Hdd,
            Self::Smr => DeviceProfile::Smr,
            Self::Ssd => DeviceProfile::Ssd,
            Self::Xpoint => DeviceProfile::Xpoint,
            Self::Nvram | Self::Dram => DeviceProfile::Nvram,
        }
    }
}

/// Where cold data is, and what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cold {
    /// The device under the directory.
    pub device: Device,
    /// Its preset decides about the disk index, its pages and what reads bring into memory.
    pub profile: bool,
    /// What reads bring into memory; none: as the preset, or else the engine, has it.
    pub admission: Option<Admission>,
    /// Pages are read as blocks, also where the preset would look at bytes.
    pub by_block: bool,
    /// Reads that a thread puts aside while they wait for the device, at most; 0: it waits with
    /// them.
    pub aside: usize,
}

impl Cold {
    /// On `device`, as the engine is without options.
    pub fn on(device: Device) -> Self {
        Self {
            device,
            profile: false,
            admission: None,
            by_block: false,
            aside: 0,
        }
    }
}

/// What `device` has done so far, by the names of counters.
pub(super) fn device_counters(device: &ModelledDevice) -> BTreeMap<String, f64> {
    let figures = device.figures();
    let counters = [
        ("device_reads", figures.reads as f64),
        ("device_writes", figures.writes as f64),
        ("device_syncs", figures.syncs as f64),
        ("device_read_bytes", figures.read_bytes as f64),
        ("device_written_bytes", figures.written_bytes as f64),
        ("device_busy_seconds", figures.busy.as_secs_f64()),
    ];
    counters
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_found_by_the_names_that_they_are_stored_by() {
        for device in Device::ALL {
            assert_eq!(Device::named(device.name()), Some(device));
            let stored = serde_json::to_value(device).unwrap();
            assert_eq!(stored, device.name());
        }
        assert_eq!(Device::named("tape"), None);
    }
}
