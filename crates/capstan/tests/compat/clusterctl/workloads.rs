//! Deployments and DaemonSets of our own making: what a round trip through their types does, and which images they have.

use super::{
    Unit,
    repository::{CONFIG, NAMESPACE, as_upstream, generate, with_release},
    harness::Case,
};

pub(crate) fn cases() -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    for (name, spec) in POD_SPECS {
        units.push(generate("workloads", name, "", &deployment(spec)).into());
    }
    for (name, container) in CONTAINERS {
        let spec = format!("containers: [{{name: c, image: 'x.io/a:1', {container}}}]");
        units.push(generate("workloads", name, "", &deployment(&spec)).into());
    }
    for (name, object) in OBJECTS {
        units.push(generate("workloads", name, "", &format!("{NAMESPACE}---\n{object}")).into());
    }
    for (name, spec) in REFUSED {
        units.push(generate("workloads", name, "", &deployment(spec)).refused().into());
    }
    units.extend(images());
    units
}

fn deployment(pod_spec: &str) -> String {
    format!(
        "{NAMESPACE}---\n{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: d, namespace: mine-system}}, spec: \
         {{selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {{{pod_spec}}}}}}}}}\n"
    )
}

const POD_SPECS: &[(&str, &str)] = &[
    ("no-containers", ""),
    ("empty-containers", "containers: []"),
    ("bare-container", "containers: [{name: c, image: 'x.io/a:1'}]"),
    ("service-account", "serviceAccountName: a, containers: [], terminationGracePeriodSeconds: 10, priorityClassName: p"),
    ("false-values", "hostNetwork: false, hostPID: false, shareProcessNamespace: false, enableServiceLinks: false, containers: []"),
    ("tolerations", "tolerations: [{effect: NoSchedule, key: node-role.kubernetes.io/master}, {operator: Exists}, {tolerationSeconds: 0, key: a}], containers: []"),
    ("affinity", "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 10, preference: {matchExpressions: [{key: a, operator: In, values: ['']}]}}], requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: b, operator: Exists}]}]}}, podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: z, labelSelector: {matchLabels: {a: b}}}}]}}, containers: []"),
    ("node-selector", "nodeSelector: {a: b}, dnsPolicy: ClusterFirst, restartPolicy: Always, schedulerName: x, containers: []"),
    ("security", "securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 0, seccompProfile: {type: RuntimeDefault}, supplementalGroups: [1], sysctls: [{name: a, value: b}]}, containers: []"),
    ("volume-secret", "volumes: [{name: a, secret: {secretName: b, defaultMode: 420, optional: false, items: [{key: a, path: b, mode: 0400}]}}], containers: []"),
    ("volume-config-map", "volumes: [{name: a, configMap: {name: b}}, {name: c, configMap: {name: d, items: [{key: a, path: b}]}}], containers: []"),
    ("volume-empty-dir", "volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {medium: Memory, sizeLimit: 1024Mi}}], containers: []"),
    ("volume-host-path", "volumes: [{name: a, hostPath: {path: /a, type: DirectoryOrCreate}}, {name: b, hostPath: {path: /b, type: ''}}], containers: []"),
    ("volume-projected", "volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: token, expirationSeconds: 86400, audience: sts}}, {downwardAPI: {items: [{path: x, fieldRef: {fieldPath: metadata.name}}]}}]}}], containers: []"),
    ("volume-claim", "volumes: [{name: a, persistentVolumeClaim: {claimName: b, readOnly: false}}, {name: c, csi: {driver: d, volumeAttributes: {a: b}}}], containers: []"),
    ("init-containers", "initContainers: [{name: i, image: 'x.io/i:1', restartPolicy: Always}], containers: [{name: c, image: 'x.io/c:1'}]"),
    ("topology", "topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {a: b}}}], containers: []"),
    ("host-aliases", "hostAliases: [{ip: 1.1.1.1, hostnames: [a]}], dnsConfig: {nameservers: [8.8.8.8], options: [{name: ndots, value: '2'}]}, containers: []"),
    ("pull-secrets", "imagePullSecrets: [{name: a}, {}], containers: []"),
    ("nulls", "nodeSelector: null, tolerations: null, securityContext: null, containers: null"),
    ("empties", "nodeSelector: {}, tolerations: [], securityContext: {}, volumes: [], imagePullSecrets: [], containers: []"),
    ("overhead", "overhead: {cpu: 0.5, memory: 64Mi}, readinessGates: [{conditionType: a}], containers: []"),
    ("ephemeral", "volumes: [{name: a, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Ki}}}}}}], containers: []"),
];

const CONTAINERS: &[(&str, &str)] = &[
    ("resources", "resources: {limits: {cpu: 100m, memory: 30Mi}, requests: {cpu: 0.1, memory: 20Mi}}"),
    ("quantities", "resources: {limits: {a: 1024Mi, b: 1e3, c: 0.5, d: '1.5', e: 1000m, f: 1.5Gi, g: 0, h: '0', i: 12345678, j: 100M}}"),
    ("quantities-odd", "resources: {limits: {a: 0.0001, b: 1E, c: 1Ei, d: 1e-3, e: 1n, f: 1500u, g: -1, h: '+5', i: 1023Ki, j: 2048Ki, k: .5, l: 5., m: 100000k}}"),
    ("quantities-large", "resources: {limits: {a: 9223372036854775807, b: 1000000000000, c: 123456789Gi, d: 0.1Ki, e: 1.0001Mi, f: 1e9}}"),
    ("resources-empty", "resources: {}"),
    ("resources-null", "resources: null"),
    ("claims", "resources: {claims: [{name: a}]}"),
    ("ports", "ports: [{containerPort: 9443, name: webhook, protocol: TCP}, {containerPort: 80, hostPort: 0}, {containerPort: 53, protocol: UDP, hostIP: 1.1.1.1}]"),
    ("probe-by-name", "livenessProbe: {httpGet: {path: /healthz, port: healthz}}, readinessProbe: {httpGet: {path: /readyz, port: 9440, scheme: HTTP, httpHeaders: [{name: a, value: b}]}}"),
    ("probe-by-text-number", "livenessProbe: {httpGet: {port: '9440'}, initialDelaySeconds: 0, periodSeconds: 10}, startupProbe: {tcpSocket: {port: 1}}"),
    ("probe-without-port", "livenessProbe: {httpGet: {path: /}}, readinessProbe: {exec: {command: [a, b]}, failureThreshold: 3}"),
    ("probe-grpc", "livenessProbe: {grpc: {port: 1}}, readinessProbe: {grpc: {port: 1, service: a}}"),
    ("lifecycle", "lifecycle: {preStop: {httpGet: {port: 8080}, exec: {command: [a]}}, postStart: {sleep: {seconds: 1}}}"),
    ("env", "env: [{name: A, value: b}, {name: B}, {name: C, value: ''}, {name: D, value: '1'}]"),
    ("env-null", "env: [{name: A, value: null}]"),
    ("env-from", "env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}, {name: B, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.uid}}}, {name: C, valueFrom: {secretKeyRef: {name: a, key: b}}}, {name: D, valueFrom: {configMapKeyRef: {key: b, optional: true}}}]"),
    ("env-resource", "env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}, {name: B, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m, containerName: c}}}], envFrom: [{secretRef: {name: a}}, {prefix: x, configMapRef: {name: b, optional: false}}]"),
    ("arguments", "args: ['--leader-elect', '--v=${V:=2}', '--feature-gates=A=${A:=true},B=${B:=false}', ''], command: [/manager]"),
    ("mounts", "volumeMounts: [{name: a, mountPath: /a, readOnly: true}, {name: b, mountPath: /b, readOnly: false, subPath: c}], volumeDevices: [{name: a, devicePath: /d}]"),
    ("security-context", "securityContext: {allowPrivilegeEscalation: false, privileged: false, capabilities: {drop: [ALL]}, runAsUser: 0, runAsGroup: 65532, readOnlyRootFilesystem: true}"),
    ("policies", "imagePullPolicy: Always, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: FallbackToLogsOnError, tty: false, stdin: true, workingDir: ''"),
    ("unknown-field", "unknownField: 1"),
    ("empty-lists", "args: [], command: [], env: [], ports: [], volumeMounts: []"),
];

const OBJECTS: &[(&str, &str)] = &[
    ("deployment-bare", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}\n"),
    ("deployment-empty-spec", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {}}\n"),
    ("deployment-strategy", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 0, paused: false, minReadySeconds: 0, revisionHistoryLimit: 0, progressDeadlineSeconds: 5, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 25%}}, selector: {matchLabels: {a: b}}}}\n"),
    ("deployment-strategy-texts", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {strategy: {rollingUpdate: {maxSurge: '1', maxUnavailable: 0}}, selector: {}}}\n"),
    ("deployment-status", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {}, status: {replicas: 1, observedGeneration: 0, conditions: [{type: A, status: 'True'}]}}\n"),
    ("deployment-metadata", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, labels: {b: c}, annotations: {d: e}, finalizers: [f], generation: 0, creationTimestamp: null, ownerReferences: [{apiVersion: v1, kind: A, name: b, uid: c}]}, spec: {}}\n"),
    ("deployment-created", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, creationTimestamp: '2021-01-01T00:00:00Z', uid: u, resourceVersion: '1'}, spec: {}}\n"),
    ("deployment-template-metadata", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {metadata: {creationTimestamp: null, annotations: {a: b}, name: x}, spec: {containers: []}}}}\n"),
    ("deployment-selector-expressions", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchExpressions: [{key: a, operator: Exists}, {key: b, operator: In, values: []}]}}}\n"),
    ("deployment-unknown-fields", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, more: 1}, more: {a: b}, spec: {more: 1, template: {more: 1, spec: {more: 1, containers: []}}}}\n"),
    ("deployment-null-spec", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: null}\n"),
    ("daemon-set-bare", "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}}\n"),
    ("daemon-set", "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 10%}}, template: {spec: {containers: [{name: a, image: 'x.io/a:1'}]}}}}\n"),
    ("daemon-set-status", "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}, spec: {}, status: {currentNumberScheduled: 1, numberReady: 0}}\n"),
];

const REFUSED: &[(&str, &str)] = &[
    ("containers-no-list", "containers: x"),
    ("name-no-text", "containers: [{name: 1, image: 'x.io/a:1'}]"),
    ("port-no-number", "containers: [{name: a, image: 'x.io/a:1', ports: [{containerPort: x}]}]"),
    ("port-fraction", "containers: [{name: a, image: 'x.io/a:1', ports: [{containerPort: 1.5}]}]"),
    ("env-number", "containers: [{name: a, image: 'x.io/a:1', env: [{name: A, value: 1}]}]"),
    ("argument-number", "containers: [{name: a, image: 'x.io/a:1', args: [1]}]"),
    ("argument-boolean", "containers: [{name: a, image: 'x.io/a:1', args: [true]}]"),
    ("quantity-bad", "containers: [{name: a, image: 'x.io/a:1', resources: {limits: {cpu: much}}}]"),
    ("boolean-as-text", "hostNetwork: 'true', containers: []"),
    ("number-as-text", "terminationGracePeriodSeconds: '10', containers: []"),
    ("selector-number", "nodeSelector: {a: 1}, containers: []"),
    ("image-number", "containers: [{name: a, image: 1}]"),
    ("port-null-entry", "containers: [x]"),
];

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn images() -> Vec<Unit> {
    let one = |name: &str, image: &str| {
        let spec = format!("containers: [{{name: c, image: '{}'}}]", image.replace("DIGEST", DIGEST));
        generate("images", name, "", &deployment(&spec))
    };
    let mut units: Vec<Unit> = Vec::new();
    units.extend(IMAGES.iter().map(|image| one(&format!("kept {image}"), image).into()));
    units.extend(BAD_IMAGES.iter().map(|image| one(&format!("refused {image}"), image).refused().into()));
    for (name, images) in OVERRIDES {
        let components = format!(
            "{}---\n{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: s}}, spec: {{template: {{spec: {{initContainers: \
             [{{name: i, image: 'x.io/team/agent:v1'}}], containers: [{{name: a, image: 'y.io:5000/proxy'}}]}}}}}}}}\n",
            deployment(&format!(
                "containers: [{{name: m, image: 'x.io/team/manager:v1'}}, {{name: d, image: 'x.io/pinned@{DIGEST}'}}, \
                 {{name: b, image: 'x.io/both:v1@{DIGEST}'}}]"
            ))
        );
        let case = as_upstream(Case::new("images", name, "generate provider -i mine"));
        let case = with_release(case, "v1.1.0", &components);
        units.push(case.config(format!("{CONFIG}images:\n{images}")).into());
    }
    for (name, images) in BAD_OVERRIDES {
        let case = as_upstream(Case::new("images", name, "generate provider -i mine"));
        let case = with_release(case, "v1.1.0", &deployment("containers: [{name: a, image: 'x.io/a:1'}]"));
        units.push(case.config(format!("{CONFIG}images:{images}\n")).refused().into());
    }
    units.push(
        generate("images", "env-empty", "", &deployment("containers: [{name: a, image: 'x.io/a:1'}]")).env("IMAGES", "").refused().into(),
    );
    units.push(
        generate("images", "env-text", "", &deployment("containers: [{name: a, image: 'x.io/a:1'}]")).env("IMAGES", "x").refused().into(),
    );
    units.push(
        generate("images", "raw-variable", "--raw", &deployment("containers: [{name: a, image: '${IMG}'}]")).refused().into(),
    );
    units.push(
        generate("images", "by-variable", "", &deployment("containers: [{name: a, image: '${IMG:=x.io/a:1}'}]")).into(),
    );
    units
}

const IMAGES: &[&str] = &[
    "x.io/a", "x.io/a:1", "x.io/a/b/c:v1.2.3", "x.io:5000/a:1", "localhost/a:1", "localhost:5000/a", "x.io/a@DIGEST",
    "x.io/a:1@DIGEST", "docker.io/library/nginx:1", "docker.io/o/nginx", "10.0.0.1:80/a/b:c", "x.io/a__b/c.d-e:T_1.2-x",
    "registry.k8s.io/cluster-api/cluster-api-controller:v1.14.2", "X.io/a:1", "[::1]:80/a:1",
];

const BAD_IMAGES: &[&str] = &[
    "nginx", "nginx:1", "docker.io/nginx", "library/nginx", "x.io/A:1", "x.io/a:", "x.io/a@sha256:12", "x.io/a:1:2", "x.io//a",
    "x.io/", "", " x.io/a", "x.io/a b", "https://x.io/a", "x.io/a:-1", "x.io/-a", "x.io/a@DIGESTff",
];

const OVERRIDES: &[(&str, &str)] = &[
    ("all-repository", "  all: {repository: mirror.io/all}\n"),
    ("all-repository-slash", "  all: {repository: mirror.io/all/}\n"),
    ("all-repository-slashes", "  all: {repository: 'mirror.io/all//'}\n"),
    ("all-tag", "  all: {tag: v9}\n"),
    ("all-name", "  all: {name: other}\n"),
    ("provider", "  infrastructure-mine: {repository: mirror.io/mine}\n"),
    ("image", "  infrastructure-mine/manager: {repository: mirror.io/m, tag: v2}\n"),
    ("image-name", "  infrastructure-mine/agent: {name: spy}\n"),
    ("levels", "  all: {repository: mirror.io/all, tag: a}\n  infrastructure-mine: {tag: b}\n  infrastructure-mine/manager: {tag: c}\n"),
    ("levels-by-field", "  all: {repository: mirror.io/all}\n  infrastructure-mine: {tag: b}\n  infrastructure-mine/manager: {name: n}\n"),
    ("levels-reset", "  all: {repository: mirror.io/all}\n  infrastructure-mine: {repository: ''}\n"),
    ("other-provider", "  infrastructure-other: {repository: mirror.io/x}\n  cert-manager: {tag: z}\n"),
    ("upper-case-key", "  ALL: {Repository: mirror.io/all}\n"),
    ("digest-with-tag", "  infrastructure-mine/pinned: {tag: v9}\n"),
    ("digest-with-repository", "  infrastructure-mine/pinned: {repository: mirror.io/p}\n"),
    ("none", "  {}\n"),
    ("null-entry", "  all:\n"),
    ("unknown-field", "  all: {repository: mirror.io/all, more: 1}\n"),
    ("repository-not-valid", "  all: {repository: 'Not Valid'}\n"),
    ("tag-not-valid", "  all: {tag: '-'}\n"),
    ("tag-number", "  all: {tag: 1.10}\n"),
];

const BAD_OVERRIDES: &[(&str, &str)] = &[
    ("text", " x"),
    ("list", " [x]"),
    ("entry-text", "\n  all: x"),
];
