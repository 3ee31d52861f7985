//! Flags of commands that can show what they would do.

use clap::Args;

use super::generate::ListFormat;

/// Shows what would be done.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct PreviewArgs {
    /// Show what would be created, changed and deleted, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// With --dry-run: also how each object differs
    #[arg(long, requires = "dry_run")]
    pub(crate) diff: bool,

    /// With --dry-run: form of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t, requires = "dry_run")]
    pub(crate) output: ListFormat,
}
