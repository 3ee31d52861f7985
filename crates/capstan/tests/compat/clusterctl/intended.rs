//! Where we differ from upstream on purpose, and why.

use super::{
    harness::Outcome,
    verdict::Difference::{self, Bytes, NotAsIntended, Objects, Order, OursRefuses, OursSucceeds},
};

/// What ours does instead.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Instead {
    /// It succeeds where upstream refuses, and prints this among other things.
    Succeeds(&'static str),
    /// It refuses where upstream succeeds, and says this among other things.
    Refuses(&'static str),
    /// It prints something else, with this among it.
    Prints(&'static str),
}
use Instead::{Prints, Refuses, Succeeds};

/// A reason, and the cases that it is the reason of.
struct Intended {
    reason: &'static str,
    cases: &'static [(&'static str, Instead)],
}

/// What ours does instead in a case, if it differs there on purpose, and why.
pub(crate) fn of(case: &str) -> Option<(Instead, &'static str)> {
    INTENDED.iter().find_map(|intended| {
        let (_, instead) = intended.cases.iter().find(|(name, _)| *name == case)?;
        Some((*instead, intended.reason))
    })
}

/// Takes a difference away that is intended; makes one where it should be and is not.
pub(crate) fn weigh(case: &str, difference: Option<Difference>, ours: &Outcome) -> Option<Difference> {
    let Some((instead, reason)) = of(case) else { return difference };
    let as_intended = match (instead, &difference) {
        (Succeeds(text), Some(OursSucceeds { .. }))
        | (Prints(text), Some(Objects(_) | Order(_) | Bytes(_))) => ours.output.contains(text),
        (Refuses(text), Some(OursRefuses { .. })) => ours.words.contains(text),
        _ => false,
    };
    if as_intended {
        return None;
    }
    let found = difference.map_or_else(|| "they agree".to_owned(), |difference| difference.to_string());
    Some(NotAsIntended { instead: format!("{instead:?} because {reason}"), found })
}

/// The names of all cases that are here.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    INTENDED.iter().flat_map(|intended| intended.cases).map(|(name, _)| *name)
}

const INTENDED: &[Intended] = &[
    Intended {
        reason: "an address is listed without what may be a password or a signature",
        cases: &[
            ("repositories/query", Prints("https://example.com/a/ ")),
            ("repositories/query-yaml", Prints("URL: https://example.com/a/\n")),
        ],
    },
    Intended {
        reason: "JSON is YAML: its \\/ and its pairs of surrogates are read",
        cases: &[
            ("yaml/escaped-slash", Succeeds("a: x/y\n")),
            ("yaml/surrogates", Succeeds("a: \"\\U0001F600\"\n")),
        ],
    },
    Intended {
        reason: "upstream writes U+0085 as a blank, and U+2028 and U+2029 as they are, where they end a line",
        cases: &[
            ("yaml/next-line", Prints("a: \"x\\Ny\"\n")),
            ("yaml/line-separators", Prints("a: \"x\\Ly\\Pz\"\n")),
        ],
    },
    Intended {
        reason: "a configuration without extension is YAML, as it comes from pipes, and the case of an extension says nothing",
        cases: &[
            ("config-files/flag-without-extension", Succeeds("a: x\n")),
            ("config-files/flag-upper-case-extension", Succeeds("a: x\n")),
        ],
    },
    Intended {
        reason: "every list can be had as JSON",
        cases: &[("repositories/output-json", Succeeds("\"Name\": \"cluster-api\""))],
    },
    Intended {
        reason: "all components are labelled, or delete would not find them: upstream leaves out those without metadata",
        cases: &[
            (
                "components/null-metadata",
                Prints("\nmetadata:\n  labels:\n    cluster.x-k8s.io/provider: infrastructure-mine"),
            ),
            (
                "components/null-metadata-elsewhere",
                Prints("\nmetadata:\n  labels:\n    cluster.x-k8s.io/provider: infrastructure-mine"),
            ),
        ],
    },
    Intended {
        reason: "all namespaced components are in the target namespace: upstream leaves out those without metadata",
        cases: &[(
            "fields/rbac.authorization.k8s.io.v1.RoleBinding metadata null",
            Prints("  namespace: mine-system\nroleRef:"),
        )],
    },
    Intended {
        reason: "upstream loses the digits of quantities that do not fit into 64 bits",
        cases: &[("workloads/quantities-absurd", Prints("a: 12962000E\n"))],
    },
    Intended {
        reason: "a label that is not a string makes upstream drop all labels of the object, silently",
        cases: &[
            ("components/labels-not-strings", Refuses("label c")),
            ("components/labels-not-strings-elsewhere", Refuses("label c")),
        ],
    },
    Intended {
        reason: "cert-manager takes the annotation on every kind that has a CA, such as APIService",
        cases: &[("components/annotations-elsewhere", Prints("cert-manager.io/inject-ca-from: elsewhere/x"))],
    },
    Intended {
        reason: "a cluster-scoped object has no namespace; upstream knows only some kinds, by kind alone",
        cases: &[
            ("components/cluster-issuer", Prints("  name: a\nspec:")),
            ("components/cluster-issuer-elsewhere", Prints("  name: a\nspec:")),
            ("components/api-service", Prints("  name: v1.a\nspec:")),
            ("components/api-service-elsewhere", Prints("    namespace: elsewhere\n")),
            ("components/admission-policy", Prints("  name: a\n")),
            ("components/admission-policy-elsewhere", Prints("  name: a\n")),
            ("components/cluster-scoped-by-name-only-elsewhere", Prints("  namespace: elsewhere\n")),
        ],
    },
    Intended {
        reason: "upstream takes two dots for the name of a namespace where a Certificate has none",
        cases: &[
            ("components/certificate-without-namespace", Prints("  - x..svc\n")),
            ("components/certificate-without-namespace-elsewhere", Prints("  - x..svc\n")),
        ],
    },
    Intended {
        reason: "what has no kind cannot be applied",
        cases: &[
            ("components/no-kind", Refuses("document 2: it has no kind")),
            ("components/no-kind-elsewhere", Refuses("document 2: it has no kind")),
            ("templates/no-kind", Refuses("document 1: it has no kind")),
        ],
    },
    Intended {
        reason: "only core's Namespace is one",
        cases: &[("components/namespace-of-other-group", Refuses("--target-namespace"))],
    },
    Intended {
        reason: "dynamic objects keep what we do not know (design: habits)",
        cases: &[
            ("workloads/unknown-field", Prints("        unknownField: 1\n")),
            ("workloads/deployment-unknown-fields", Prints("\nmore:\n  a: b\n")),
        ],
    },
    Intended {
        reason: "a mirror needs the images of all workloads: upstream looks at Deployments and DaemonSets only",
        cases: &[("describe/images", Prints("x.io/no:1"))],
    },
    Intended {
        reason: "the images of some providers alone can be asked for",
        cases: &[("list-images/core-turned-down", Succeeds("/kubeadm-bootstrap-controller:"))],
    },
    Intended {
        reason: "latest is resolved only when needed, stable before pre-release (design), and a broken release or a folder \
                 without v never stands in the way of another",
        cases: &[
            ("versions/without-v", Succeeds("name: 1.1.0\n")),
            ("versions/without-v-beside-older", Succeeds("name: 1.1.0\n")),
            ("versions/six-candidates-beside-one-stable", Prints("name: v1.0.0\n")),
            ("versions/pinned-latest", Succeeds("name: v1.1.0\n")),
            ("versions/pinned-beside-newest-without-metadata", Succeeds("name: v1.0.0\n")),
            ("versions/newest-without-metadata", Succeeds("name: v1.0.0\n")),
            ("versions/future-series", Succeeds("name: v1.1.0\n")),
            ("versions/future-series-pinned", Succeeds("name: v1.1.0\n")),
        ],
    },
    Intended {
        reason: "metadata.yaml is YAML also where it begins with a brace",
        cases: &[("metadata/lax-json", Succeeds("name: v1.1.0\n"))],
    },
    Intended {
        reason: "~ is the home folder, also where no shell has seen it",
        cases: &[("templates/from-home-not-expanded", Succeeds("name: one\n"))],
    },
    Intended {
        reason: "a ClusterClass that two Clusters share is printed once: the second would be refused as a duplicate",
        cases: &[("templates/class-by-two-clusters", Prints("name: second\n"))],
    },
    Intended {
        reason: "no API server takes a Cluster with such a name",
        cases: &[("templates/name-long", Refuses("at most 63 characters"))],
    },
    Intended {
        reason: "an empty name names no ClusterClass",
        cases: &[("templates/class-empty-name", Succeeds("name: one\n"))],
    },
    Intended {
        reason: "variables can be listed without a management cluster",
        cases: &[("templates/list-usual-no-namespace", Succeeds("current Namespace in the KubeConfig file"))],
    },
    Intended {
        reason: "an argument that would be ignored is a mistake",
        cases: &[
            ("surface/generate yaml extra", Refuses("unexpected argument 'extra'")),
            ("surface/generate yaml -- extra", Refuses("unexpected argument 'extra'")),
        ],
    },
    Intended {
        reason: "a List is what is in it: its items are moved and labelled as all objects are",
        cases: &[
            ("components/list-kind", Prints("kind: ConfigMap\nmetadata:\n  labels:")),
            ("components/list-kind-elsewhere", Prints("kind: ConfigMap\nmetadata:\n  labels:")),
        ],
    },
    Intended {
        reason: "a variable of the environment that hides nothing in the file is most likely somebody else's",
        cases: &[
            ("repositories/env-providers", Succeeds("CoreProvider")),
            ("images/env-empty", Succeeds("name: mine-system")),
            ("images/env-text", Succeeds("name: mine-system")),
        ],
    },
    Intended {
        reason: "no API server takes such a namespace",
        cases: &[("components/namespace-flag-not-checked", Refuses("cannot be the name of a namespace"))],
    },
    Intended {
        reason: "a list goes to the file that is asked for, too",
        cases: &[("templates/list-written", Prints("written:\n\nOptional Variables:"))],
    },
];
