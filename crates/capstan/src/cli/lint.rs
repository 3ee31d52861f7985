//! The flags of `capstan lint`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ReportFormat;

#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct LintArgs {
    #[command(subcommand)]
    pub(crate) what: Lint,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Lint {
    /// Check components files, with the metadata.yaml and the folder that they are in
    ///
    /// Files are read as they are released, before variables are replaced. Nothing is run and nothing is changed.
    #[command(after_help = COMPONENTS_EXAMPLES)]
    Components(LintFiles),

    /// Check templates of workload clusters, and files of ClusterClasses
    ///
    /// Files are read as they are released, before variables are replaced. Nothing is run and nothing is changed.
    #[command(after_help = TEMPLATE_EXAMPLES)]
    Template(LintFiles),
}

#[derive(Args, Debug)]
pub(crate) struct LintFiles {
    /// Files, or folders of releases; - for standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Fail also where a rule is broken that should be kept
    #[arg(long)]
    pub(crate) strict: bool,

    /// Form of the report
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ReportFormat::Table)]
    pub(crate) output: ReportFormat,
}

const COMPONENTS_EXAMPLES: &str = "\
Examples:
  Check a release before it is published:
    capstan lint components out/infrastructure-components.yaml

  Check what will be released:
    kubectl kustomize config/default | capstan lint components -

  Check all versions of a local repository, and let nothing pass:
    capstan lint components --strict ~/local-repository/infrastructure-foo/*/

  Write a report for a build server:
    capstan lint components out/ -o junit > lint.xml";

const TEMPLATE_EXAMPLES: &str = "\
Examples:
  Check all templates of a release:
    capstan lint template out/

  Check one of them, and let nothing pass:
    capstan lint template --strict templates/cluster-template-dev.yaml

  Write a report for programs:
    capstan lint template templates/cluster-template*.yaml -o json";
