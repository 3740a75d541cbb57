//! Messages on standard error. A run goes on when nobody reads them any more.

/// Prints a line to standard error, if somebody reads it.
macro_rules! tell {
    ($($part:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($part)*);
    }};
}

pub(crate) use tell;
