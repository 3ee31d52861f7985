//! The rules that a running provider shows to be kept, under names that say what they ask for.

use crate::{
    rule::Rule,
    rules::{
        G11, G12, G13, G14, G15, G20, IC2, IC3, IC4, IC5, IC6, IC7, IC8, IC9, IC10, IC12, IC13, IC14, IC15,
    },
};

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $rule:ident;)*) => {
        $($(#[$doc])* pub const $name: &Rule = &$rule;)*

        /// All of them, in the order in which they are reported.
        pub const ALL: &[&Rule] = &[$($name),*];
    };
}

rules! {
    /// Nothing happens without an owner.
    NO_OWNER = G11;
    /// Any owner reference of the right kind counts.
    ANY_OWNER = G12;
    /// Pauses are kept.
    PAUSED = G13;
    /// The finalizer comes before infrastructure and goes after it.
    FINALIZER = G14;
    /// Conditions can be read.
    CONDITIONS = G15;
    /// Failures are text.
    FAILURES = G20;
    /// The endpoint is whole when it counts.
    ENDPOINT = IC2;
    /// An endpoint from elsewhere is awaited.
    WAITS = IC3;
    /// Completion is reported.
    PROVISIONED = IC4;
    /// Completion is not taken back.
    STEADY = IC5;
    /// Failure domains have the contract's shape.
    FAILURE_DOMAINS = IC6;
    /// Ready is there all the time.
    READY = IC7;
    /// What others manage is left alone.
    EXTERNAL = IC8;
    /// Core's marks stay.
    OWNERSHIP = IC9;
    /// Deletion ends.
    DELETION = IC10;
    /// A lost status comes back.
    STATUS_WIPED = IC12;
    /// A restart changes nothing.
    RESTART = IC13;
    /// At rest nothing is written.
    IDLE = IC14;
    /// A pause is shown.
    PAUSED_SHOWN = IC15;
}
