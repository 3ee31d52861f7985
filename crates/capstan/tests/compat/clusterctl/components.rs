//! Components of our own making: what becomes of namespaces, subjects, webhooks, kinds, certificates and labels.

use super::{
    Unit,
    repository::{NAMESPACE, generate},
};

pub(crate) fn cases() -> Vec<Unit> {
    let mut units = Vec::new();
    for (name, objects) in OBJECTS {
        let components = format!("{NAMESPACE}---\n{objects}");
        units.push(generate("components", name, "", &components).into());
        units.push(generate("components", &format!("{name}-elsewhere"), "-n elsewhere", &components).into());
    }
    units.extend(REFUSED_OBJECTS.iter().map(|(name, objects)| {
        generate("components", name, "", &format!("{NAMESPACE}---\n{objects}")).refused().into()
    }));
    units.extend(WHOLE.iter().map(|(name, arguments, text)| generate("components", name, arguments, text).into()));
    units.extend(REFUSED_WHOLE.iter().map(|(name, arguments, text)| {
        generate("components", name, arguments, text).refused().into()
    }));
    units.extend(DESCRIBED.iter().map(|(name, arguments, text)| generate("describe", name, arguments, text).into()));
    units
}

/// Objects beside a Namespace, in it and moved elsewhere.
const OBJECTS: &[(&str, &str)] = &[
    ("config-map", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: mine-system}, data: {x: mine-system}}\n"),
    ("no-namespace", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"),
    ("other-namespace", "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: kube-system}}\n"),
    ("no-metadata", "{apiVersion: v1, kind: ConfigMap}\n"),
    ("null-metadata", "{apiVersion: v1, kind: ConfigMap, metadata: null}\n"),
    ("labels-kept", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {x: kept, cluster.x-k8s.io/provider: other}}}\n"),
    ("labels-not-strings", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {b: kept, c: true, d: 1}}}\n"),
    ("labels-null", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: null}}\n"),
    ("labels-empty", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {}}}\n"),
    ("annotations", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {cert-manager.io/inject-ca-from: mine-system/x}}}\n"),
    ("issuer", "{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: a, namespace: mine-system}, spec: {selfSigned: {}}}\n"),
    ("cluster-issuer", "{apiVersion: cert-manager.io/v1, kind: ClusterIssuer, metadata: {name: a}, spec: {selfSigned: {}}}\n"),
    ("api-service", "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a}, spec: {service: {namespace: mine-system, name: a}}}\n"),
    ("admission-policy", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: a}}\n"),
    ("cluster-scoped", "\
{apiVersion: v1, kind: Node, metadata: {name: a}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}}
---
{apiVersion: policy/v1beta1, kind: PodSecurityPolicy, metadata: {name: a}}
---
{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: a}}
---
{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: a}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: a}}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: a}}
---
{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: a}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: a}}
"),
    ("cluster-scoped-by-name-only", "{apiVersion: my.io/v1, kind: Node, metadata: {name: a, namespace: mine-system}}\n"),
    ("service-account", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: mine-system}}\n"),
    ("role", "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a, namespace: mine-system}, rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]}\n"),
    ("cluster-role", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]}\n"),
    ("cluster-role-aggregated", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {x: 'true'}}]}, rules: []}\n"),
    ("cluster-role-binding", "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: a}
subjects:
- {kind: ServiceAccount, name: default, namespace: mine-system}
- {kind: ServiceAccount, name: other, namespace: kube-system}
- {kind: User, name: jane, apiGroup: rbac.authorization.k8s.io}
- {kind: Group, name: system:masters}
- {kind: ServiceAccount, name: empty, namespace: ''}
"),
    ("role-binding", "\
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: a, namespace: mine-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}
subjects: [{kind: ServiceAccount, name: default, namespace: mine-system}]
"),
    ("role-binding-without-subjects", "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, roleRef: {apiGroup: x, kind: Role, name: a}}\n"),
    ("role-binding-empty-subjects", "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, roleRef: {apiGroup: x, kind: Role, name: a}, subjects: []}\n"),
    ("role-binding-without-role", "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}}\n"),
    ("role-binding-labels", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a, labels: {x: kept}, annotations: {z: w}}, roleRef: {apiGroup: x, kind: ClusterRole, name: a}}\n"),
    ("certificate", "\
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: a, namespace: mine-system}
spec:
  dnsNames:
  - webhook.mine-system.svc
  - webhook.mine-system.svc.cluster.local
  - webhook.mine-system.mine-system.svc
  - mine-system.svc
  - webhook.mine-system
  - webhook.other.svc
  - .mine-system.
  issuerRef: {kind: Issuer, name: a}
  secretName: a
"),
    ("certificate-in-other-namespace", "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, namespace: other}, spec: {dnsNames: [x.mine-system.svc, x.other.svc]}}\n"),
    ("certificate-without-namespace", "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a}, spec: {dnsNames: [x.mine-system.svc, x..svc]}}\n"),
    ("certificate-without-names", "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, namespace: mine-system}, spec: {secretName: b}}\n"),
    ("certificate-empty-names", "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, namespace: mine-system}, spec: {dnsNames: []}}\n"),
    ("certificate-of-other-group", "{apiVersion: my.io/v1, kind: Certificate, metadata: {name: a, namespace: mine-system}, spec: {dnsNames: [x.mine-system.svc]}}\n"),
    ("validating-webhook", "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: a
  annotations: {cert-manager.io/inject-ca-from: mine-system/serving, other: mine-system/x}
webhooks:
- name: a.b.c
  admissionReviewVersions: [v1, v1beta1]
  sideEffects: None
  failurePolicy: Fail
  matchPolicy: Equivalent
  timeoutSeconds: 10
  clientConfig: {service: {name: webhook, namespace: mine-system, path: /validate, port: 443}}
  rules: [{apiGroups: [x], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [things], scope: '*'}]
  namespaceSelector: {matchLabels: {a: b}}
  objectSelector: {matchExpressions: [{key: a, operator: In, values: [b]}]}
- name: d.e.f
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: 'https://example.com'}
- name: g.h.i
  admissionReviewVersions: [v1]
  sideEffects: NoneOnDryRun
  clientConfig: {caBundle: Cg==, service: {name: x, namespace: kube-system}}
  matchConditions: [{name: x, expression: 'true'}]
"),
    ("mutating-webhook", "\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: a}
webhooks:
- name: a.b.c
  admissionReviewVersions: [v1]
  sideEffects: None
  reinvocationPolicy: IfNeeded
  clientConfig: {service: {name: webhook, namespace: mine-system}}
"),
    ("webhook-bare", "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: x, clientConfig: {}}]}\n"),
    ("webhook-none", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}}\n"),
    ("webhook-v1beta1", "\
apiVersion: admissionregistration.k8s.io/v1beta1
kind: ValidatingWebhookConfiguration
metadata: {name: a, annotations: {cert-manager.io/inject-ca-from: mine-system/serving}}
webhooks: [{name: x, clientConfig: {service: {name: a, namespace: mine-system}}, rules: [{operations: ['*'], apiGroups: [''], apiVersions: ['*'], resources: [pods]}]}]
"),
    ("mutating-webhook-v1beta1", "{apiVersion: admissionregistration.k8s.io/v1beta1, kind: MutatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: x, clientConfig: {service: {name: a, namespace: b}}}]}\n"),
    ("crd", "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.x.io
  annotations: {cert-manager.io/inject-ca-from: mine-system/serving, controller-gen.kubebuilder.io/version: v0.1.0}
spec:
  group: x.io
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing, categories: [cluster-api], shortNames: [th]}
  scope: Namespaced
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1, v1beta1]
      clientConfig: {caBundle: Cg==, service: {name: webhook, namespace: mine-system, path: /convert}}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    additionalPrinterColumns:
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp, priority: 0}
    - {name: X, type: integer, jsonPath: .spec.x, priority: 1, description: some, format: int32}
    selectableFields: [{jsonPath: .spec.x}]
    schema:
      openAPIV3Schema:
        type: object
        description: text
        required: [spec]
        properties:
          spec:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            x-kubernetes-map-type: atomic
            properties:
              x: {type: integer, format: int32, minimum: 0, maximum: 10, default: 3}
              yy: {type: string, enum: [a, b], pattern: '^a$', minLength: 0, maxLength: 64, default: a, nullable: true}
              z: {type: array, items: {type: string}, minItems: 1, x-kubernetes-list-type: set}
              w: {type: object, additionalProperties: {type: string}}
              v: {anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true}
              u: {type: object, additionalProperties: true}
              t: {type: array, items: {type: object, properties: {k: {type: string}}}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k]}
              s: {type: boolean, default: false}
              r: {type: object, default: {}, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: false}
              q: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: never, reason: FieldValueInvalid, fieldPath: .q}]}
              p: {not: {required: [a]}, oneOf: [{required: [b]}], allOf: [{}]}
              o: {type: number, multipleOf: 0.5, exclusiveMinimum: true, minimum: 1.5}
              nn: {type: string, example: 1, externalDocs: {url: 'http://x'}}
              m: {type: array, items: {type: integer}, default: [1, 2], uniqueItems: false, maxItems: 0}
  - {name: v1alpha1, served: false, storage: false, deprecated: true, deprecationWarning: old, schema: {openAPIV3Schema: {type: object}}}
"),
    ("crd-without-conversion", "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.x.io}
spec: {group: x.io, names: {kind: Thing, plural: things}, scope: Cluster, versions: [{name: v1, served: true, storage: true}]}
"),
    ("crd-conversion-none", "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.x.io}
spec: {group: x.io, names: {kind: Thing, plural: things}, scope: Cluster, versions: [], conversion: {strategy: None}}
"),
    ("crd-conversion-by-url", "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.x.io}
spec: {group: x.io, names: {kind: Thing, plural: things}, scope: Cluster, versions: [], conversion: {strategy: Webhook, webhook: {clientConfig: {url: 'https://x'}, conversionReviewVersions: [v1]}}}
"),
    ("crd-with-status", "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.x.io, creationTimestamp: null}
spec: {group: x.io, names: {kind: Thing, plural: things}, scope: Cluster, versions: []}
status: {acceptedNames: {kind: '', plural: ''}, conditions: [], storedVersions: []}
"),
    ("crd-emptyish", "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.x.io, labels: {}, annotations: {}}
spec:
  group: x.io
  names: {kind: Thing, plural: things, singular: '', shortNames: []}
  preserveUnknownFields: false
  scope: Namespaced
  versions:
  - name: v1
    served: false
    storage: false
    additionalPrinterColumns: []
    schema: {openAPIV3Schema: {required: [], properties: {a: {default: null, description: '', enum: []}, b: {}, c: {default: '', nullable: false}}}}
"),
    ("crd-v1beta1", "\
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: things.x.io, annotations: {cert-manager.io/inject-ca-from: mine-system/serving}}
spec:
  group: x.io
  version: v1
  names: {kind: Thing, plural: things}
  scope: Namespaced
  validation: {openAPIV3Schema: {type: object, properties: {a: {type: string}}}}
  conversion: {strategy: Webhook, webhookClientConfig: {service: {name: a, namespace: mine-system}}, conversionReviewVersions: [v1beta1]}
"),
    ("crd-v1beta1-bare", "{apiVersion: apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {group: x.io, names: {kind: Thing, plural: things}, scope: Cluster}}\n"),
    ("order", "\
{apiVersion: v1, kind: ConfigMap, metadata: {name: first}}
---
{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: one, namespace: mine-system}}
---
{apiVersion: v1, kind: Secret, metadata: {name: second}}
---
{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: two, namespace: mine-system}, spec: {dnsNames: [a]}}
---
{apiVersion: acme.cert-manager.io/v1, kind: Order, metadata: {name: other-group}}
---
{apiVersion: cert-manager.io/v1alpha2, kind: Issuer, metadata: {name: three, namespace: mine-system}}
---
{apiVersion: v1, kind: Service, metadata: {name: third}}
"),
    ("pod-template-untouched", "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {metadata: {namespace: mine-system}, spec: {containers: [{name: a, image: nginx}]}}}}\n"),
    ("stateful-set", "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {more: 1, template: {spec: {containers: [{name: a, image: nginx}]}}}}\n"),
    ("custom-object", "{apiVersion: x.io/v1, kind: Thing, metadata: {name: a, namespace: mine-system}, spec: {ref: {namespace: mine-system}}}\n"),
    ("list-kind", "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}\n"),
    ("no-kind", "{apiVersion: v1, metadata: {name: a}}\n"),
    ("no-api-version", "{kind: ConfigMap, metadata: {name: a}}\n"),
    ("variables", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '${X:=default}', y: '$${Y}', z: '${Z:=\"\"}${W:=w}'}}\n"),
];

const REFUSED_OBJECTS: &[(&str, &str)] = &[
    ("second-namespace", "{apiVersion: v1, kind: Namespace, metadata: {name: b}}\n"),
    ("inject-without-slash", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a, annotations: {cert-manager.io/inject-ca-from: serving}}, spec: {}}\n"),
    ("inject-of-three-parts", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a, annotations: {cert-manager.io/inject-ca-from: a/b/c}}}\n"),
    ("crd-of-other-version", "{apiVersion: apiextensions.k8s.io/v2, kind: CustomResourceDefinition, metadata: {name: a}, spec: {}}\n"),
    ("webhook-of-other-version", "{apiVersion: admissionregistration.k8s.io/v2, kind: ValidatingWebhookConfiguration, metadata: {name: a}}\n"),
    ("crd-of-wrong-type", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {group: 1, names: x}}\n"),
    ("binding-of-other-version", "{apiVersion: rbac.authorization.k8s.io/v1beta1, kind: ClusterRoleBinding, metadata: {name: a}}\n"),
    ("binding-of-other-group", "{apiVersion: x.io/v1, kind: RoleBinding, metadata: {name: a}}\n"),
    ("binding-of-wrong-type", "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, subjects: x}\n"),
    ("deployment-of-other-version", "{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: a}, spec: {}}\n"),
    ("deployment-of-other-group", "{apiVersion: x.io/v1, kind: Deployment, metadata: {name: a}, spec: {}}\n"),
    ("certificate-with-bad-names", "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, namespace: mine-system}, spec: {dnsNames: x}}\n"),
    ("missing-variable", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '${MISSING}'}}\n"),
    ("bad-variable", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '${A-b}'}}\n"),
    ("crd-labels-not-strings", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a, labels: {b: true}}, spec: {}}\n"),
    ("not-an-object", "- x\n"),
    ("not-yaml", "a: [\n"),
];

/// Files as they are: name, arguments, text.
const WHOLE: &[(&str, &str, &str)] = &[
    ("no-namespace-but-flag", "-n other", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"),
    ("empty-but-flag", "-n other", ""),
    ("namespace-only", "", NAMESPACE),
    ("namespace-with-labels", "-n other", "{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {control-plane: x}, annotations: {x: z}}, spec: {}}\n"),
    ("namespace-of-other-group", "", "{apiVersion: x.io/v1, kind: Namespace, metadata: {name: a}}\n"),
    ("namespace-last", "", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n"),
    ("namespace-flag-not-checked", "-n Not_A.Name", NAMESPACE),
    ("raw", "--raw", "{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {x: '${X}', y: '$${Y}', z: '${Z:=1}'}}\n"),
    ("raw-elsewhere", "--raw -n other", "{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {x: '${X}'}}\n"),
    ("raw-flag-false", "--raw=false", "{apiVersion: v1, kind: Namespace, metadata: {name: a}, x: '${X:=1}'}\n"),
    ("pinned", "-n x -i mine:v1.1.0", NAMESPACE),
    ("written", "--write-to -", NAMESPACE),
    ("namespace-by-variable", "", "{apiVersion: v1, kind: Namespace, metadata: {name: '${NS:=by-default}'}}\n"),
];

const REFUSED_WHOLE: &[(&str, &str, &str)] = &[
    ("no-namespace", "", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"),
    ("empty", "", ""),
    ("raw-bad-variable", "--raw", "{apiVersion: v1, kind: Namespace, metadata: {name: a}, x: '${A-b}'}\n"),
    ("raw-variable-outside-quotes", "--raw", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\nx: ${X}: ${Y}\n"),
    ("web-page", "", "<html></html>\n"),
];

const DESCRIBED: &[(&str, &str, &str)] = &[
    ("bare", "--describe", NAMESPACE),
    ("elsewhere", "--describe -n elsewhere", NAMESPACE),
    ("pinned", "--describe -i mine:v1.1.0", NAMESPACE),
    ("variables", "--describe", "{apiVersion: v1, kind: Namespace, metadata: {name: a}, x: '${B} ${A:=1} ${C:=${D}} $${E}'}\n"),
    ("images", "--describe", "\
{apiVersion: v1, kind: Namespace, metadata: {name: a}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: b}, spec: {template: {spec: {containers: [{name: a, image: 'x.io/a:1'}, {name: b, image: 'x.io/b@sha256:0123456789012345678901234567890123456789012345678901234567890123'}], initContainers: [{name: c, image: 'x.io/c'}]}}}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: b}, spec: {template: {spec: {containers: [{name: a, image: 'x.io/a:1'}]}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: b}, spec: {template: {spec: {containers: [{name: a, image: 'x.io/no:1'}]}}}}
"),
    ("raw-too", "--describe --raw", "{apiVersion: v1, kind: Namespace, metadata: {name: a}, x: '${B}'}\n"),
];
