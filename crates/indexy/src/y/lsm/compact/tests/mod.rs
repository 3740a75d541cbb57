mod merges;
mod policies;
mod simulation;
