//! Tables through the public API.

mod builds;
mod catalogue;
mod changes;
mod derive;
mod failing_y;
mod faults;
mod kill;
mod model;
mod moments;
mod queries;
mod rows;
mod support;
mod threads;
