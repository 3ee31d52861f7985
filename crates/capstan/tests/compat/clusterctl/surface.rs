//! The command line itself: what is refused before anything is done.

use super::{Batch, harness::Case};

pub(crate) fn cases() -> Vec<Batch> {
    let taken =
        TAKEN.iter().map(|arguments| Case::new("surface", *arguments, arguments).input("a: ${A:=1}\n"));
    let refused = REFUSED.iter().map(|arguments| Case::new("surface", *arguments, arguments).refused());
    taken.chain(refused).map(Batch::from).collect()
}

const TAKEN: &[&str] = &[
    "generate yaml",
    "generate yaml extra",
    "generate yaml --from=-",
    "generate yaml --from -",
    "generate yaml --list-variables",
    "generate yaml --list-variables=true",
    "generate yaml --list-variables=t",
    "generate yaml --list-variables=1",
    "generate yaml --list-variables=TRUE",
    "generate yaml --list-variables=false",
    "generate yaml --list-variables=F",
    "generate yaml --list-variables=0",
    "generate yaml -v 3",
    "generate yaml -v=3",
    "generate yaml -v3",
    "generate yaml --v 3",
    "generate yaml --v=3",
    "generate yaml -v 0x5",
    "generate yaml -v -1",
    "generate yaml -- extra",
    "generate yaml --list-variables --list-variables=false",
    "generate yaml --from x --from -",
    "-v 3 generate yaml",
    "--config= generate yaml",
    "config repositories",
    "config repositories -oyaml",
    "config repositories -o=yaml",
    "config repositories --output yaml",
];

const REFUSED: &[&str] = &[
    "nonsense",
    "--nonsense",
    "generate yaml --nonsense",
    "generate yaml -x",
    "generate yaml --from",
    "generate yaml --list-variables=maybe",
    "generate yaml --list-variables=",
    "generate yaml -v",
    "generate yaml -v x",
    "generate yaml -v 1.5",
    "generate yaml --list",
    "generate yaml --List-Variables",
    "generate yaml -from x",
    "generate cluster",
    "generate cluster a b",
    "generate cluster a --nonsense",
    "generate cluster a --worker-machine-count",
    "generate provider",
    "generate provider --core cluster-api --bootstrap kubeadm",
    "generate provider --nonsense",
    "generate provider --core",
    "generate provider --describe=maybe --core cluster-api",
    "generate provider extra",
    "config repositories extra",
    "config repositories -o",
    "config repositories -o xml",
    "config repositories --nonsense",
    "init extra",
    "init --nonsense",
    "init list-images extra",
    "init list-images --nonsense",
    "init --wait-provider-timeout x",
    "init --validate=maybe",
    "version -o xml",
    "version extra",
    "completion",
    "completion tcsh",
    "completion bash zsh",
];
