//! One run: the stage is set, the scenarios are played, the stage is swept.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt,
    api::{DynamicObject, ObjectMeta},
    core::GroupVersionKind,
    discovery::{self, Scope},
};
use serde_json::Value;

use super::{
    Error, Options, Target,
    cleanup::{Broom, Props},
    judge,
    kinds::Kinds,
    rules,
    scenarios::{self, Lifecycle, Profile, Scenario},
    stage::{Stage, failing, params},
};
use crate::{
    report::{Finding, Report},
    rule::Rule,
};

type Progress<'a> = &'a (dyn Fn(&str) + Sync);

/// Puts a running provider to the test.
pub(crate) async fn run(
    client: Client,
    target: Target,
    options: Options,
    progress: Progress<'_>,
) -> Result<Report, Error> {
    if let Some(id) = options.only.iter().find(|id| rules::ALL.iter().all(|rule| rule.id != **id)) {
        return Err(Error::UnknownRule { id: id.clone() });
    }
    let kinds = Kinds::find(&client, &target).await?;
    let (namespace, own_namespace) = prepare_namespace(&client, options.namespace.as_deref()).await?;
    let props = Arc::new(Props::new(
        client.clone(),
        namespace.clone(),
        own_namespace,
        kinds.infra.kind.clone(),
        Api::namespaced_with(client.clone(), &namespace, &kinds.infra),
        Api::namespaced_with(client.clone(), &namespace, &kinds.clusters),
    ));
    let broom = Broom::new(Arc::clone(&props));
    let stop = options.stop.clone();
    let (timeout, quiet_time) = (options.timeout, options.quiet_time);
    let about = format!("{} in namespace {namespace}", kinds.infra.kind);
    let mut notes = kinds.notes.clone();
    notes.push(format!("the provider had {timeout:?} for every step; the quiet time was {quiet_time:?}"));

    let play = async {
        let stage = Stage::set(client, namespace, kinds, options, Arc::clone(&props)).await?;
        create_others(&stage, &props).await?;
        let findings = Box::pin(play(&stage, &props, progress)).await?;
        Ok((findings, stage.notes()))
    };
    let played = tokio::select! {
        played = play => played,
        () = stop.cancelled() => Err(Error::Stopped),
    };
    match played {
        Ok((findings, remarks)) => {
            notes.extend(remarks);
            notes.extend(broom.sweep(timeout).await);
            Ok(Report { about, notes, findings })
        }
        Err(error) => {
            // The first error is reported.
            broom.sweep_quickly().await;
            Err(error)
        }
    }
}

/// The namespace to play in, and whether it was created for this run.
async fn prepare_namespace(client: &Client, name: Option<&str>) -> Result<(String, bool), Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let mut metadata = ObjectMeta::default();
    if let Some(name) = name {
        let found = namespaces.get_opt(name).await.map_err(failing(format!("read namespace {name}")))?;
        if found.is_some() {
            return Ok((name.to_owned(), false));
        }
        metadata.name = Some(name.to_owned());
    } else {
        metadata.generate_name = Some("capstan-conformance-".to_owned());
    }
    let namespace = Namespace { metadata, ..Namespace::default() };
    let created = namespaces.create(&params(), &namespace).await;
    let created = created.map_err(failing("create a namespace".to_owned()))?;
    Ok((created.name_any(), true))
}

/// Creates what the manifest has beside the InfraCluster; existing objects are not changed.
async fn create_others(stage: &Stage, props: &Props) -> Result<(), Error> {
    for document in &stage.kinds.others {
        let field = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind, name) = (field("/apiVersion"), field("/kind"), field("/metadata/name"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let doing = || format!("create {kind} {name} of the manifest");
        let kind_of_group = GroupVersionKind::gvk(group, version, kind);
        let found = discovery::pinned_kind(&stage.client, &kind_of_group).await;
        let (resource, capabilities) = found.map_err(failing(doing()))?;
        let mut document = document.clone();
        let api: Api<DynamicObject> = if capabilities.scope == Scope::Namespaced {
            document["metadata"]["namespace"] = Value::from(stage.namespace.as_str());
            Api::namespaced_with(stage.client.clone(), &stage.namespace, &resource)
        } else {
            Api::all_with(stage.client.clone(), &resource)
        };
        let object: DynamicObject = serde_json::from_value(document)
            .map_err(|error| failing(doing())(kube::Error::SerdeError(error)))?;
        match api.create(&params(), &object).await {
            Ok(_) => props.add_other(api, name.to_owned()),
            Err(kube::Error::Api(status)) if status.code == 409 => {
                stage.note(format!("{kind} {name} existed already and was not changed"));
            }
            Err(error) => return Err(failing(doing())(error)),
        }
    }
    Ok(())
}

async fn play(stage: &Stage, props: &Props, progress: Progress<'_>) -> Result<Vec<Finding>, Error> {
    let kind = &stage.kinds.infra.kind;
    let wanted =
        |rule: &Rule| stage.options.only.is_empty() || stage.options.only.iter().any(|id| id == rule.id);
    progress(&format!("giving a first {kind} to a Cluster"));
    props.add(Lifecycle::NAME);
    let (lifecycle, profile) = Box::pin(Lifecycle::begin(stage)).await?;
    progress(&format!("the provider {}", profile.describe()));

    let chosen =
        Scenario::ALL.into_iter().filter(|scenario| scenario.rules().iter().any(|rule| wanted(rule)));
    let (together, alone): (Vec<_>, Vec<_>) = chosen.partition(|scenario| *scenario != Scenario::Restart);
    let rest = async {
        let findings = Box::pin(lifecycle.end(stage, &profile)).await?;
        clear(stage, props, Lifecycle::NAME).await;
        Ok::<_, Error>(findings)
    };
    let others = async {
        let mut playing = Vec::new();
        for scenario in together {
            playing.push(Box::pin(act(scenario, stage, props, &profile, progress)));
        }
        let limit = stage.options.concurrency.max(1);
        stream::iter(playing).buffered(limit).try_collect::<Vec<_>>().await
    };
    let (mut findings, others) = futures::try_join!(rest, others)?;
    findings.extend(others.into_iter().flatten());
    for scenario in alone {
        findings.extend(Box::pin(act(scenario, stage, props, &profile, progress)).await?);
    }
    findings.extend(over_all(stage, &profile));
    findings.retain(|finding| wanted(finding.rule));
    Ok(findings)
}

async fn act(
    scenario: Scenario,
    stage: &Stage,
    props: &Props,
    profile: &Profile,
    progress: Progress<'_>,
) -> Result<Vec<Finding>, Error> {
    let name = scenario.name();
    if let Some(outcome) = scenario.obstacle(stage, profile) {
        let outcomes = scenario.rules().iter().map(|rule| (*rule, outcome.clone())).collect();
        return Ok(scenarios::findings(stage, name, outcomes));
    }
    for name in scenario.objects() {
        props.add(name);
    }
    let outcomes = Box::pin(scenario.play(stage, profile)).await?;
    for name in scenario.objects() {
        clear(stage, props, name).await;
    }
    progress(&format!("{name} is over"));
    Ok(scenarios::findings(stage, name, outcomes))
}

async fn clear(stage: &Stage, props: &Props, name: &str) {
    for note in props.clear(name, stage.options.timeout).await {
        stage.note(note);
    }
}

/// What holds for every state of every InfraCluster.
fn over_all(stage: &Stage, profile: &Profile) -> Vec<Finding> {
    let histories = stage.recorder.all();
    let contract = stage.contract();
    let ownership = match &profile.refused {
        None => judge::ownership_kept(&histories),
        Some(why) => judge::failed(
            format!("core's owner reference and label were refused: {why}"),
            "let the webhook accept changes of metadata.ownerReferences and metadata.labels",
        ),
    };
    let outcomes = [
        (rules::CONDITIONS, judge::conditions_readable(&histories)),
        (rules::FAILURES, judge::failures_are_text(&histories)),
        (rules::FAILURE_DOMAINS, judge::failure_domains(&histories, contract)),
        (rules::OWNERSHIP, ownership),
    ];
    let subject = format!("{} (all)", stage.kinds.infra.kind);
    let finding = |(rule, outcome)| Finding::new(rule, subject.clone(), outcome);
    outcomes.into_iter().map(finding).collect()
}
