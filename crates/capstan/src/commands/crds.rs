//! `capstan crds`.

use capstan_api::{cluster, crd::Conversion, operator};
use capstan_manifest::yaml;
use capstan_provider_local::api as local;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use crate::{
    cli::{CrdsArgs, KindsOf},
    error::CommandError,
    printer::Printer,
};

pub(crate) fn run(args: &CrdsArgs, printer: Printer) -> Result<(), CommandError> {
    let documents: Vec<Value> = collect(args.which, args.webhooks).iter().map(|crd| json!(crd)).collect();
    printer.data(&yaml::to_multi_document(&documents))
}

fn collect(which: KindsOf, webhooks: bool) -> Vec<CustomResourceDefinition> {
    let mut crds = Vec::new();
    if which.includes(KindsOf::Core) {
        let conversion = if webhooks { cluster::WEBHOOK_SERVICE } else { Conversion::Nobody };
        crds.push(cluster::crd(conversion));
    }
    if which.includes(KindsOf::Local) {
        let conversion = if webhooks { local::WEBHOOK_SERVICE } else { Conversion::Nobody };
        crds.extend(local::crds(conversion));
    }
    if which.includes(KindsOf::Operator) {
        crds.extend(operator::crds());
    }
    crds
}
