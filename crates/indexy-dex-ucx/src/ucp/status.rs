//! What UCX answers.

use indexy_ucx_sys as sys;
use std::io;

/// An error of UCX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status(pub(super) sys::ucs_status_t);

pub(crate) type Result<T> = std::result::Result<T, Status>;

impl Status {
    /// It took too long.
    pub(crate) const LATE: Self = Self(sys::UCS_ERR_TIMED_OUT);
    /// What came is not what was asked for.
    pub(crate) const ODD: Self = Self(sys::UCS_ERR_INVALID_PARAM);

    pub(super) fn check(status: sys::ucs_status_t) -> Result<()> {
        match status {
            sys::UCS_OK => Ok(()),
            error => Err(Self(error)),
        }
    }
}

impl From<Status> for io::Error {
    fn from(status: Status) -> Self {
        let kind = match status {
            Status::LATE => io::ErrorKind::TimedOut,
            _ => io::ErrorKind::ConnectionAborted,
        };
        Self::new(kind, format!("UCX: {}", sys::text(status.0)))
    }
}
