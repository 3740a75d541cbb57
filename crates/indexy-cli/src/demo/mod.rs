//! demo
use crate::args::Demo;
use std::process::ExitCode;
pub fn run(_: &Demo) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
pub mod crash {
    use super::*;
    pub fn victim(_: &crate::args::DemoVictim) -> anyhow::Result<ExitCode> {
        Ok(ExitCode::SUCCESS)
    }
}
