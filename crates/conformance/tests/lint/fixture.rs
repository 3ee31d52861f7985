//! A release that keeps all rules.

use std::collections::BTreeSet;

use capstan_conformance::lint::{File, Folder, Given};

pub(crate) const COMPONENTS: &str = r"# The licence, and ${FOO_URL:=https://foo.example}.
apiVersion: v1
kind: Namespace
metadata:
  labels:
    cluster.x-k8s.io/provider: infrastructure-foo
  name: foo-system
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    cert-manager.io/inject-ca-from: foo-system/foo-serving-cert
  labels:
    cluster.x-k8s.io/provider: infrastructure-foo
    cluster.x-k8s.io/v1beta2: v1
  name: fooclusters.infrastructure.cluster.x-k8s.io
spec:
  conversion:
    strategy: Webhook
    webhook:
      clientConfig:
        service:
          name: foo-webhook-service
          namespace: foo-system
      conversionReviewVersions: [v1]
  group: infrastructure.cluster.x-k8s.io
  names: {kind: FooCluster, listKind: FooClusterList, plural: fooclusters, categories: [cluster-api]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              controlPlaneEndpoint: {type: object, properties: {host: {type: string}, port: {type: integer}}}
              secretRef: {type: object, properties: {name: {type: string}}}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  labels:
    cluster.x-k8s.io/provider: infrastructure-foo
  name: foo-manager
  namespace: foo-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  labels:
    cluster.x-k8s.io/provider: infrastructure-foo
  name: foo-manager-role
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  labels:
    cluster.x-k8s.io/provider: infrastructure-foo
  name: foo-manager-rolebinding
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: foo-manager-role
subjects:
- kind: ServiceAccount
  name: foo-manager
  namespace: foo-system
---
apiVersion: v1
kind: Secret
metadata:
  labels:
    cluster.x-k8s.io/provider: infrastructure-foo
  name: foo-credentials
  namespace: foo-system
data:
  credentials: ${FOO_B64ENCODED_CREDENTIALS}
---
apiVersion: v1
kind: Service
metadata:
  labels:
    cluster.x-k8s.io/provider: infrastructure-foo
  name: foo-webhook-service
  namespace: foo-system
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    cluster.x-k8s.io/provider: infrastructure-foo
  name: foo-controller-manager
  namespace: foo-system
spec:
  replicas: ${CAPFOO_REPLICAS:=1}
  template:
    spec:
      containers:
      - name: manager
        args:
        - --feature-gates=MachinePool=${EXP_MACHINE_POOL:=true}
        - --v=${FOO_LOG_LEVEL:=0}
        env:
        - name: OPTIONAL
          valueFrom:
            configMapKeyRef: {name: foo-settings, key: x, optional: true}
        image: ${FOO_IMAGE:=ghcr.io/foo/manager:v0.3.1}
      - name: proxy
        image: registry.example:5000/proxy@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
      serviceAccountName: foo-manager
      volumes:
      - name: cert
        secret:
          secretName: foo-webhook-cert
      - name: credentials
        secret:
          secretName: foo-credentials
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  labels:
    cluster.x-k8s.io/provider: infrastructure-foo
  name: foo-serving-cert
  namespace: foo-system
spec:
  issuerRef:
    kind: Issuer
    name: foo-issuer
  secretName: foo-webhook-cert
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata:
  labels:
    cluster.x-k8s.io/provider: infrastructure-foo
  name: foo-issuer
  namespace: foo-system
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  annotations:
    cert-manager.io/inject-ca-from: foo-system/foo-serving-cert
  labels:
    cluster.x-k8s.io/provider: infrastructure-foo
  name: foo-validating
webhooks:
- name: validation.foo.example
  clientConfig:
    service:
      name: foo-webhook-service
      namespace: foo-system
";

pub(crate) const METADATA: &str = "\
apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- major: 0
  minor: 3
  contract: v1beta2
- major: 0
  minor: 2
  contract: v1beta1
";

pub(crate) const TEMPLATE: &str = r#"# A cluster named ${CLUSTER_NAME}.
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata:
  name: "${CLUSTER_NAME}"
  namespace: ${NAMESPACE}
spec:
  clusterNetwork:
    pods:
      cidrBlocks: ${FOO_POD_CIDR:=["192.168.0.0/16"]}
  controlPlaneRef:
    apiGroup: controlplane.cluster.x-k8s.io
    kind: FooControlPlane
    name: ${CLUSTER_NAME}-control-plane
  infrastructureRef:
    apiGroup: infrastructure.cluster.x-k8s.io
    kind: FooCluster
    name: ${CLUSTER_NAME}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1
kind: FooCluster
metadata:
  name: ${CLUSTER_NAME}
  namespace: ${NAMESPACE}
spec:
  region: ${FOO_REGION}
  identityRef:
    kind: Secret
    name: ${CLUSTER_NAME}-identity
---
apiVersion: v1
kind: Secret
metadata:
  name: ${CLUSTER_NAME}-identity
  namespace: ${NAMESPACE}
---
apiVersion: controlplane.cluster.x-k8s.io/v1
kind: FooControlPlane
metadata:
  name: ${CLUSTER_NAME}-control-plane
spec:
  replicas: ${CONTROL_PLANE_MACHINE_COUNT:=3}
  version: "${KUBERNETES_VERSION}"
  kubeconfig:
    secretRef:
      name: ${CLUSTER_NAME}-kubeconfig
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata:
  name: ${CLUSTER_NAME}-md-0
  namespace: ${NAMESPACE}
spec:
  clusterName: ${CLUSTER_NAME}
  replicas: ${WORKER_MACHINE_COUNT}
  template:
    spec:
      version: ${KUBERNETES_VERSION}
      bootstrap:
        configRef:
          apiGroup: bootstrap.cluster.x-k8s.io
          kind: FooConfigTemplate
          name: ${CLUSTER_NAME}-md-0
---
apiVersion: bootstrap.cluster.x-k8s.io/v1
kind: FooConfigTemplate
metadata:
  name: ${CLUSTER_NAME}-md-0
  namespace: ${NAMESPACE}
spec:
  template:
    spec:
      files:
      - path: /etc/extra
        content: |
          ${FOO_EXTRA_LINES}
---
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
metadata:
  name: ${CLUSTER_NAME}-addons
  namespace: ${NAMESPACE}
spec:
  resources:
  - kind: ConfigMap
    name: ${CLUSTER_NAME}-addons
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: ${CLUSTER_NAME}-addons
  namespace: ${NAMESPACE}
data:
  addons.yaml: |
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata:
      name: for-the-workload-cluster
"#;

pub(crate) const TOPOLOGY: &str = r"apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata:
  name: ${CLUSTER_NAME}
spec:
  topology:
    class: small
    version: ${KUBERNETES_VERSION}
    controlPlane:
      replicas: ${CONTROL_PLANE_MACHINE_COUNT}
    workers:
      machineDeployments:
      - class: default
        name: md-0
        replicas: ${WORKER_MACHINE_COUNT}
      - class: default
        name: md-1
        replicas: 1
";

pub(crate) const CLASS: &str = r"apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata:
  name: small
spec:
  infrastructure:
    ref:
      apiVersion: infrastructure.cluster.x-k8s.io/v1
      kind: FooClusterTemplate
      name: small
---
apiVersion: infrastructure.cluster.x-k8s.io/v1
kind: FooClusterTemplate
metadata:
  name: small
";

/// A file of the release `infrastructure-foo/v0.3.1`.
pub(crate) fn given(name: &str, text: &str) -> Given {
    let files = [
        "infrastructure-components.yaml",
        "metadata.yaml",
        "cluster-template.yaml",
        "cluster-template-topology.yaml",
        "clusterclass-small.yaml",
    ];
    let at = |name: &str| format!("infrastructure-foo/v0.3.1/{name}");
    Given {
        file: File { name: at(name), text: text.to_owned() },
        folder: Some(Folder {
            path: ["v0.3.1", "infrastructure-foo", "repository"].map(str::to_owned).into(),
            files: files.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>(),
            metadata: Some(File { name: at("metadata.yaml"), text: METADATA.to_owned() }),
        }),
    }
}

pub(crate) fn components() -> Given {
    given("infrastructure-components.yaml", COMPONENTS)
}

pub(crate) fn template() -> Given {
    given("cluster-template.yaml", TEMPLATE)
}

pub(crate) fn topology() -> Given {
    given("cluster-template-topology.yaml", TOPOLOGY)
}

pub(crate) fn class() -> Given {
    given("clusterclass-small.yaml", CLASS)
}
