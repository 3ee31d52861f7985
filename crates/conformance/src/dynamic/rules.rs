//! The rules that only a running provider can show to be kept.

use crate::rule::{Contracts, Level, Rule};

macro_rules! page {
    ($anchor:literal) => {
        concat!("https://cluster-api.sigs.k8s.io/developer/providers/contracts/infra-cluster#", $anchor)
    };
}

macro_rules! rules {
    ($($name:ident $id:literal $level:ident: $statement:literal, $check:literal, $otherwise:literal, $anchor:literal;)*) => {
        $(
            #[doc = $statement]
            pub const $name: &Rule = &Rule {
                id: $id,
                level: Level::$level,
                contracts: Contracts::All,
                statement: $statement,
                check: $check,
                otherwise: $otherwise,
                link: page!($anchor),
            };
        )*
        /// All of them, in the order in which they are reported.
        pub const ALL: &[&Rule] = &[$($name),*];
    };
}

rules! {
    NO_OWNER "G11" Must:
        "The provider leaves an InfraCluster alone as long as no Cluster owns it.",
        "An InfraCluster without owner reference is created and watched for the quiet time.",
        "Infrastructure is made that no Cluster asked for, and that nobody pauses or deletes.",
        "normal-resource";
    ANY_OWNER "G12" Must:
        "The provider finds its Cluster by any owner reference of that kind, whether it is the controller's or not.",
        "One InfraCluster gets an owner reference without `controller`, another one with `controller: true`.",
        "The InfraCluster is never provisioned: core does not make the Cluster the controller of it.",
        "normal-resource";
    PAUSED "G13" Should:
        "While the Cluster has spec.paused or the InfraCluster the paused annotation, nothing is done, and afterwards work goes on.",
        "Paused InfraClusters are watched for the quiet time, before provisioning and during deletion, then let go on.",
        "What a user or `move` holds still changes under their hands.",
        "infracluster-pausing";
    FINALIZER "G14" Should:
        "A finalizer is there before infrastructure is, and goes when the infrastructure is gone, whatever state the owner is in.",
        "The finalizer is looked for when provisioned is reported; InfraClusters are deleted early, twice, and without owner.",
        "Infrastructure is left behind, or an object stays for ever.",
        "deleted-resource";
    CONDITIONS "G15" May:
        "Every condition has a type, a status of True, False or Unknown, and a time that can be read if there is one.",
        "The conditions in every state of every InfraCluster of the run are read as core reads them.",
        "The Cluster's InfrastructureReady is Unknown with the reason InvalidConditionReported.",
        "infracluster-conditions";
    FAILURES "G20" May:
        "status.failureReason and status.failureMessage are strings.",
        "Every state of every InfraCluster of the run is looked at.",
        "The failure does not reach the Cluster, or core cannot read the object.",
        "infracluster-terminal-failures";
    ENDPOINT "IC2" Must:
        "A provider that makes the endpoint sets both host and port no later than it reports provisioned, and keeps them.",
        "The endpoint is read in the state that first reports provisioned and in all states after it.",
        "The Cluster never gets a usable endpoint, or keeps one that is no longer right.",
        "infracluster-control-plane-endpoint";
    WAITS "IC3" Must:
        "A provider that does not make the endpoint waits until the Cluster has one.",
        "The Cluster has no endpoint until the provider has been silent for a while, then it gets one.",
        "Provisioned is reported for a Cluster that cannot be reached.",
        "infracluster-control-plane-endpoint";
    PROVISIONED "IC4" Must:
        "The provider reports that provisioning is complete, as a boolean in the field of the contract that core picks.",
        "An InfraCluster is given to a Cluster, and the field is waited for.",
        "The Cluster stays in phase Provisioning for ever.",
        "infracluster-initialization-completed";
    STEADY "IC5" Must:
        "Once provisioned is reported it stays reported; how the infrastructure fares is told by conditions.",
        "A provisioned InfraCluster is watched while nothing else changes.",
        "Core does not take it back: what the field says and what the Cluster says differ.",
        "infracluster-initialization-completed";
    FAILURE_DOMAINS "IC6" May:
        "Failure domains have the shape of the contract that core picks.",
        "status.failureDomains is read in every state of every InfraCluster of the run.",
        "Core reports an error and takes none of them.",
        "infracluster-failure-domains";
    READY "IC7" Should:
        "The condition Ready is there from the first status to the end.",
        "Every state with a status is looked at, from the first one through provisioning to deletion.",
        "The Cluster's InfrastructureReady is guessed from the provisioned field alone.",
        "infracluster-conditions";
    EXTERNAL "IC8" Should:
        "An InfraCluster that somebody else manages is never written, its status included.",
        "One with the annotation and one with the label are given to Clusters and watched for the quiet time.",
        "The provider and the outside system overwrite each other.",
        "externally-managed-infrastructure";
    OWNERSHIP "IC9" Must:
        "Core's owner reference and the label with the Cluster's name are accepted and stay.",
        "Both are looked for in every state after they were written.",
        "Core writes them again and again; `move` and deletion do not find the object.",
        "normal-resource";
    DELETION "IC10" Must:
        "A provisioned InfraCluster goes away once it is deleted.",
        "The InfraCluster is deleted as core deletes it, and its end is waited for.",
        "The Cluster can never be deleted.",
        "deleted-resource";
    STATUS_WIPED "IC12" Must:
        "Provisioned is reported again with the same endpoint when the status is lost.",
        "The status is emptied, as it is after a restore or a move, and the field is waited for.",
        "A moved or restored Cluster is never provisioned again, or gets another endpoint.",
        "infracluster-initialization-completed";
    RESTART "IC13" Must:
        "A restart of the provider changes nothing about what is provisioned.",
        "The provider is restarted; once it works again, an InfraCluster from before is looked at and deleted.",
        "An upgrade of the provider breaks the clusters that run.",
        "infracluster-initialization-completed";
    IDLE "IC14" Should:
        "The provider writes nothing while nothing changes.",
        "A provisioned InfraCluster gets one quiet time to settle and is watched for another one.",
        "Every write wakes everybody who watches; a thousand clusters never come to rest.",
        "typical-infracluster-reconciliation-workflow";
    PAUSED_SHOWN "IC15" Should:
        "The condition Paused is True while reconciliation is paused, and no longer True afterwards.",
        "The condition is looked for on paused InfraClusters and after they were let go on.",
        "Users and tools cannot tell a paused object from a stuck one.",
        "infracluster-pausing";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_told_in_full_under_a_name_of_its_own() {
        let mut ids = std::collections::BTreeSet::new();
        for rule in ALL {
            assert!(ids.insert(rule.id), "{} twice", rule.id);
            for text in [rule.statement, rule.check, rule.otherwise] {
                assert!(text.ends_with('.'), "{}: {text}", rule.id);
            }
        }
    }
}
