//! CustomResourceDefinitions made from Rust types, in the form that an API server wants.

use k8s_openapi::{
    ByteString,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps,
        JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, ServiceReference, WebhookClientConfig,
        WebhookConversion,
    },
};

/// The names of most objects.
pub(crate) const DNS_SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// The names of namespaces and containers.
pub(crate) const DNS_LABEL: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// Who converts the objects of a kind between its versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion<'a> {
    /// A webhook behind a Service. The installer of the CRD adds the CA bundle.
    Service {
        /// The Service's namespace.
        namespace: &'a str,
        /// The Service's name.
        name: &'a str,
    },
    /// A webhook at a URL, such as a manager on a developer's machine.
    Url {
        /// The webhook's address.
        url: &'a str,
        /// The authority that its certificate is from.
        ca_bundle_pem: &'a [u8],
    },
    /// No conversion: only the stored version is served.
    Nobody,
}

/// One CRD with an older version beside the stored one.
pub fn merge(
    older: CustomResourceDefinition,
    stored: CustomResourceDefinition,
    conversion: Conversion<'_>,
) -> CustomResourceDefinition {
    let mut crd = stored;
    let older = older.spec.versions.into_iter();
    crd.spec.versions = older
        .map(|version| CustomResourceDefinitionVersion { storage: false, ..version })
        .chain(crd.spec.versions)
        .collect();
    for version in &mut crd.spec.versions {
        version.served = version.storage || conversion != Conversion::Nobody;
    }
    crd.spec.conversion = Some(strategy(conversion));
    single(crd)
}

/// A CRD as kube's derive makes it, in the form that an API server wants.
#[must_use]
pub fn single(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    crd.spec.names.list_kind = Some(format!("{}List", crd.spec.names.kind));
    for version in &mut crd.spec.versions {
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            describe_root(schema, &crd.spec.names.kind);
            adapt(schema);
        }
    }
    crd
}

/// Limits the length of an object's name, in the schema of the whole object.
pub(crate) fn limit_name(root: &mut JSONSchemaProps, longest: i64, description: &str) {
    let name = JSONSchemaProps {
        description: Some(description.to_owned()),
        type_: Some("string".into()),
        max_length: Some(longest),
        ..JSONSchemaProps::default()
    };
    if let Some(metadata) = root.properties.get_or_insert_default().get_mut("metadata") {
        metadata.properties = Some([("name".to_owned(), name)].into());
    }
}

fn strategy(conversion: Conversion<'_>) -> CustomResourceConversion {
    let client_config = match conversion {
        Conversion::Nobody => {
            return CustomResourceConversion { strategy: "None".into(), webhook: None };
        }
        Conversion::Service { namespace, name } => WebhookClientConfig {
            service: Some(ServiceReference {
                namespace: namespace.into(),
                name: name.into(),
                path: Some("/convert".into()),
                port: None,
            }),
            ..WebhookClientConfig::default()
        },
        Conversion::Url { url, ca_bundle_pem } => WebhookClientConfig {
            url: Some(url.into()),
            ca_bundle: Some(ByteString(ca_bundle_pem.into())),
            ..WebhookClientConfig::default()
        },
    };
    CustomResourceConversion {
        strategy: "Webhook".into(),
        webhook: Some(WebhookConversion {
            client_config: Some(client_config),
            conversion_review_versions: vec!["v1".into()],
        }),
    }
}

/// Adds the properties that the derive leaves out.
fn describe_root(root: &mut JSONSchemaProps, kind: &str) {
    let string = |description: String| JSONSchemaProps {
        description: Some(description),
        type_: Some("string".into()),
        ..JSONSchemaProps::default()
    };
    let metadata = JSONSchemaProps { type_: Some("object".into()), ..JSONSchemaProps::default() };
    root.properties.get_or_insert_default().extend([
        (
            "apiVersion".to_owned(),
            string("apiVersion is the group and version that this object is written in.".to_owned()),
        ),
        ("kind".to_owned(), string(format!("kind of this object: {kind}."))),
        ("metadata".to_owned(), metadata),
    ]);
}

/// Takes out what schemars says about Rust and not about the wire, and says int-or-string as Kubernetes does.
fn adapt(schema: &mut JSONSchemaProps) {
    // `Option` and `#[serde(default)]` mean that a field may be absent, not that null is a value for it or that
    // the API server should fill it in.
    schema.nullable = None;
    schema.default = None;
    schema.title = None;
    if schema.x_kubernetes_int_or_string == Some(true) {
        schema.any_of = Some(
            ["integer", "string"]
                .map(|type_| JSONSchemaProps { type_: Some(type_.into()), ..JSONSchemaProps::default() })
                .into(),
        );
    }
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        adapt(property);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        adapt(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        adapt(values);
    }
}
