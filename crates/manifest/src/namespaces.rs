//! Moving objects into another namespace, with everything in them that says where they or their friends are.
//!
//! The rules are upstream's, with these differences:
//! - A namespace is written only on kinds that live in one. Upstream knows few of those that do not, and writes one on
//!   ClusterIssuers, APIServices and cluster-scoped custom kinds, which the API server then takes off again.
//! - The annotations that say where a CA comes from follow on every kind, and so does the Service of an APIService.
//! - In a Certificate, `commonName` and `uris` follow as `dnsNames` do.
//! - `Namespace` means the kind of Kubernetes, not that of any group.

use serde_json::Value;

use crate::objects::{Object, ObjectError, Problem};
use crate::scope::Scopes;
use crate::typed::{Mismatch, describe};

/// Annotations whose value is `namespace/name`.
const CA_SOURCES: [&str; 2] = ["cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret"];

/// Where objects go.
pub(crate) struct Destination<'a> {
    pub(crate) target: &'a str,
    /// A namespace whose objects, and references to it, stay.
    pub(crate) kept: Option<&'a str>,
    pub(crate) scopes: &'a Scopes,
}

impl Destination<'_> {
    fn keeps(&self, namespace: &str) -> bool {
        self.kept == Some(namespace)
    }

    /// Moves an object.
    pub(crate) fn take_in(&self, object: &mut Object) -> Result<(), ObjectError> {
        let original = object.namespace_name().to_owned();
        if object.is_namespace() {
            if !self.keeps(object.name()) {
                object.set_metadata("name", self.target)?;
            }
        } else if self.scopes.is_namespaced(object) && !self.keeps(&original) {
            object.set_metadata("namespace", self.target)?;
        }
        self.redirect_ca_sources(object)?;
        match object.kind() {
            "ClusterRoleBinding" | "RoleBinding" => {
                object.normalise()?;
                self.redirect_subjects(object);
            }
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
                object.normalise()?;
                self.redirect_webhooks(object);
            }
            "CustomResourceDefinition" => {
                object.normalise()?;
                self.redirect_conversion(object);
            }
            "Certificate" if !self.keeps(&original) => self.rename_hosts(object, &original)?,
            "APIService" if object.group() == "apiregistration.k8s.io" => {
                self.redirect_service(object.at("spec"));
            }
            _ => {}
        }
        Ok(())
    }

    fn redirect_ca_sources(&self, object: &mut Object) -> Result<(), ObjectError> {
        for annotation in CA_SOURCES {
            let Some(value) = object.annotation(annotation) else { continue };
            let parts = value.as_str().and_then(|it| it.split_once('/'));
            match parts
                .filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty() && !name.contains('/'))
            {
                Some((namespace, _)) if self.keeps(namespace) => {}
                Some((_, name)) => *value = Value::from(format!("{}/{name}", self.target)),
                None => {
                    let found = describe(value);
                    return Err(object.error(Problem::CaSource { annotation, found }));
                }
            }
        }
        Ok(())
    }

    /// Changes a field that holds a namespace.
    fn redirect(&self, field: &mut Value) {
        if !field.as_str().is_some_and(|namespace| self.keeps(namespace)) {
            *field = Value::from(self.target);
        }
    }

    fn redirect_subjects(&self, object: &mut Object) {
        let subjects = object.at("subjects").and_then(Value::as_array_mut);
        let namespaces = subjects.into_iter().flatten().filter_map(|subject| subject.get_mut("namespace"));
        namespaces.for_each(|namespace| self.redirect(namespace));
    }

    fn redirect_webhooks(&self, object: &mut Object) {
        let webhooks = object.at("webhooks").and_then(Value::as_array_mut);
        webhooks
            .into_iter()
            .flatten()
            .for_each(|webhook| self.redirect_service(webhook.get_mut("clientConfig")));
    }

    fn redirect_conversion(&self, object: &mut Object) {
        let Some(conversion) = object.at("spec").and_then(|spec| spec.get_mut("conversion")) else { return };
        self.redirect_service(
            conversion.get_mut("webhook").and_then(|webhook| webhook.get_mut("clientConfig")),
        );
        self.redirect_service(conversion.get_mut("webhookClientConfig"));
    }

    /// Changes the namespace of a `service` that is named somewhere.
    fn redirect_service(&self, holder: Option<&mut Value>) {
        let service = holder.and_then(|it| it.get_mut("service")).and_then(Value::as_object_mut);
        if let Some(service) = service {
            self.redirect(service.entry("namespace").or_insert(Value::Null));
        }
    }

    /// Changes the namespace in the host names of a Certificate, which are `service.namespace.svc`.
    fn rename_hosts(&self, object: &mut Object, original: &str) -> Result<(), ObjectError> {
        if original.is_empty() {
            return Ok(());
        }
        let (old, new) = (format!(".{original}."), format!(".{}.", self.target));
        let rename = |host: &mut String| {
            if host.contains(&old) {
                *host = host.replacen(&old, &new, 1);
            }
        };
        if let Some(Value::String(name)) = object.at("spec").and_then(|spec| spec.get_mut("commonName")) {
            rename(name);
        }
        for field in ["dnsNames", "uris"] {
            let outcome = match object.at("spec").and_then(|spec| spec.get_mut(field)) {
                None | Some(Value::Null) => Ok(()),
                Some(Value::Array(hosts)) => {
                    hosts.iter_mut().enumerate().try_for_each(|(at, host)| match host {
                        Value::String(host) => {
                            rename(host);
                            Ok(())
                        }
                        other => Err(Mismatch::at(&format!("spec.{field}[{at}]"), "a string", other)),
                    })
                }
                Some(other) => Err(Mismatch::at(&format!("spec.{field}"), "a list", other)),
            };
            outcome.map_err(|mismatch| object.error(mismatch.into()))?;
        }
        Ok(())
    }
}
