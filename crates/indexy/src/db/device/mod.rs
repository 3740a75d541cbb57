//! Presets for kinds of storage devices.
//!
//! Source: *Larger-than-Memory Data Management on Modern Storage Hardware* (Ma et al.), Table 1:
//! the policies that were best on each of five devices. A profile is a set of options that one
//! could set alone, so what is set explicitly wins over it, and nothing of it is stored.
//!
//! Here: the table. `measure` chooses the row for a device that is not named.

#![forbid(unsafe_code)]

pub(super) mod measure;

use crate::framework::policies::Admission;
use serde::{Deserialize, Serialize};

/// Of a hundred values read from disk, how many go into memory: Table 1, all devices.
const TOP_PERCENT: u8 = 5;

/// How single keys are read from the device; [`Options::access`](crate::Options::access) says what
/// it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Access {
    /// Pages are read into memory of the database, and checked each time.
    #[default]
    Block,
    /// The file is mapped. Leaves and large values are looked at where they lie, and checked when
    /// they are first looked at.
    Byte,
}

/// The kind of device that a database lies on; [`Options::device`](crate::Options::device) says
/// what it is for.
///
/// | profile | new trees get | reads load | access | direct reads |
/// |---|---|---|---|---|
/// | `Hdd`, `Smr` | a paged tree of 16 KiB pages: a large block costs what a small one does | the top 5 % | by block | by memory |
/// | `Ssd`, `Xpoint` | a paged tree of 4 KiB pages: the device's own block | the top 5 % | by block | by memory |
/// | `Nvram` | a paged tree of 4 KiB pages | the top 5 % | by byte | yes |
///
/// ```
/// use indexy::{Admission, DeviceProfile};
/// assert_eq!(DeviceProfile::Hdd.page_bytes(), 16_384);
/// assert_eq!(DeviceProfile::Ssd.admission(), Admission::Top { percent: 5 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum DeviceProfile {
    /// A hard disk.
    Hdd,
    /// A hard disk of shingled tracks.
    Smr,
    /// Flash.
    Ssd,
    /// 3D XPoint, or other memory behind NVMe of some 10 µs.
    Xpoint,
    /// Memory that keeps what it has, or a file system in memory: read by the byte.
    Nvram,
    /// One of the others but `Smr`, by a measurement of up to some 200 ms at each open.
    /// [`Db::device`](crate::Db::device) says which. A device without room for 1 MiB cannot be
    /// measured, and counts as flash. Pages are read by block all the same: what looks like memory
    /// may be the system's page cache.
    Auto,
}

impl DeviceProfile {
    /// Bytes of a page of paged trees. [`DeviceProfile::Auto`] gives those of flash.
    ///
    /// ```
    /// use indexy::{DeviceProfile, IndexYKind, TreeOptions};
    /// let page_bytes = DeviceProfile::Smr.page_bytes();
    /// let options = TreeOptions::new().index_y(IndexYKind::BPlus { page_bytes });
    /// ```
    #[must_use]
    pub fn page_bytes(self) -> u32 {
        match self {
            Self::Hdd | Self::Smr => 16_384,
            Self::Ssd | Self::Xpoint | Self::Nvram | Self::Auto => 4096,
        }
    }

    /// Which values read from disk go into memory, of trees that do not say.
    ///
    /// ```
    /// use indexy::{Admission, DeviceProfile};
    /// assert_eq!(DeviceProfile::Nvram.admission(), Admission::Top { percent: 5 });
    /// ```
    #[must_use]
    pub fn admission(self) -> Admission {
        Admission::Top {
            percent: TOP_PERCENT,
        }
    }

    /// How paged trees are read where this profile was named.
    ///
    /// ```
    /// use indexy::{Access, DeviceProfile};
    /// assert_eq!(DeviceProfile::Nvram.access(), Access::Byte);
    /// assert_eq!(DeviceProfile::Auto.access(), Access::Block);
    /// ```
    #[must_use]
    pub fn access(self) -> Access {
        match self {
            Self::Nvram => Access::Byte,
            _ => Access::Block,
        }
    }

    /// Whether tables are read past the page cache; `None`: as without a profile.
    ///
    /// ```
    /// use indexy::DeviceProfile;
    /// assert_eq!(DeviceProfile::Nvram.direct_reads(), Some(true));
    /// assert_eq!(DeviceProfile::Hdd.direct_reads(), None);
    /// ```
    #[must_use]
    pub fn direct_reads(self) -> Option<bool> {
        // A copy in the page cache costs as much as the device (section 5.3).
        (self == Self::Nvram).then_some(true)
    }
}
