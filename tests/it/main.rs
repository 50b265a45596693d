//! The integration tests: one binary, one module for each question.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod allocation;
mod cli;
mod compare;
mod contract;
mod crash;
mod determinism;
mod envelope;
mod environment;
mod explain;
mod jcs;
mod layout;
mod paths;
mod protocols;
mod readme;
mod redelivery;
mod reference;
mod shape;
mod store;
mod streams;
mod tool;
mod vectors;
