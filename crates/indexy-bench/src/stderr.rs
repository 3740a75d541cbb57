//! What is said on standard error. Whoever was reading may have gone: that is no reason to lose the
//! rest of a run.

/// Prints a line to standard error, if somebody reads it.
macro_rules! tell {
    ($($part:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($part)*);
    }};
}

pub(crate) use tell;
