//! The command lines of the three programs.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::certificates::Files;
use crate::ports::Ports;

const SERVICE_IPS: &str = "10.0.0.0/24";
/// What the Service `kubernetes` gets of these.
pub(crate) const FIRST_SERVICE_IP: &str = "10.0.0.1";

/// The name, not the address: tokens stay good when a later start has to take another port.
const TOKEN_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Controllers with something to do in a cluster without nodes. Those that look after nodes would evict or
/// delete the Pods of nodes that only a test says are there.
const CONTROLLERS: [&str; 14] = [
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "replicaset-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
    "validatingadmissionpolicy-status-controller",
];

pub(crate) fn etcd(data: &Path, files: &Files, ports: Ports, unsafe_no_fsync: bool) -> Vec<OsString> {
    let clients = format!("https://127.0.0.1:{}", ports.etcd);
    let peers = format!("https://127.0.0.1:{}", ports.etcd_peer);
    let mut flags = vec![
        flag("--name", "capstan"),
        flag("--data-dir", data),
        flag("--listen-client-urls", &clients),
        flag("--advertise-client-urls", &clients),
        flag("--listen-peer-urls", &peers),
        flag("--initial-advertise-peer-urls", &peers),
        flag("--initial-cluster", format!("capstan={peers}")),
        flag("--cert-file", &files.etcd_server),
        flag("--key-file", &files.etcd_server),
        flag("--trusted-ca-file", &files.etcd_ca),
        flag("--client-cert-auth", "true"),
        flag("--peer-cert-file", &files.etcd_server),
        flag("--peer-key-file", &files.etcd_server),
        flag("--peer-trusted-ca-file", &files.etcd_ca),
        flag("--peer-client-cert-auth", "true"),
    ];
    if unsafe_no_fsync {
        flags.push(flag("--unsafe-no-fsync", "true"));
    }
    flags
}

pub(crate) fn api_server(
    files: &Files,
    ports: Ports,
    with_controller_manager: bool,
    extra: &[String],
) -> Vec<OsString> {
    let mut flags = vec![
        flag("--bind-address", "127.0.0.1"),
        // Without it, a machine that has no route out has no address to advertise.
        flag("--advertise-address", "127.0.0.1"),
        flag("--secure-port", ports.api_server.to_string()),
        flag("--tls-cert-file", &files.api_server),
        flag("--tls-private-key-file", &files.api_server),
        flag("--client-ca-file", &files.cluster_ca),
        flag("--etcd-servers", format!("https://127.0.0.1:{}", ports.etcd)),
        flag("--etcd-cafile", &files.etcd_ca),
        flag("--etcd-certfile", &files.etcd_client),
        flag("--etcd-keyfile", &files.etcd_client),
        // These metrics are not read, and counting keeps an idle machine busy.
        flag("--etcd-count-metric-poll-period", "0"),
        flag("--etcd-db-metric-poll-interval", "0"),
        flag("--service-account-issuer", TOKEN_ISSUER),
        flag("--service-account-signing-key-file", &files.service_account_key),
        flag("--service-account-key-file", &files.service_account_public),
        flag("--service-cluster-ip-range", SERVICE_IPS),
        // An endpoint may not be a loopback address: there is none to publish for the Service `kubernetes`.
        flag("--endpoint-reconciler-type", "none"),
        flag("--authorization-mode", "RBAC"),
        flag("--allow-privileged", "true"),
        flag("--profiling", "false"),
        flag("--shutdown-delay-duration", "0s"),
        // Ends watches when it is asked to end; otherwise it waits a minute for those who watch.
        flag("--shutdown-watch-termination-grace-period", "3s"),
    ];
    if !with_controller_manager {
        // It refuses Pods in namespaces without a service account, which only the controller manager makes.
        flags.push(flag("--disable-admission-plugins", "ServiceAccount"));
    }
    // The last of a repeated flag counts: the caller's.
    flags.extend(extra.iter().map(OsString::from));
    flags
}

pub(crate) fn controller_manager(files: &Files, kubeconfig: &Path) -> Vec<OsString> {
    vec![
        flag("--kubeconfig", kubeconfig),
        flag("--controllers", CONTROLLERS.join(",")),
        flag("--root-ca-file", &files.cluster_ca),
        flag("--service-account-private-key-file", &files.service_account_key),
        flag("--use-service-account-credentials", "false"),
        // There is no other to elect a leader among, and none to ask for its health.
        flag("--leader-elect", "false"),
        flag("--secure-port", "0"),
        flag("--profiling", "false"),
        // The default would make a test that deletes some hundred objects wait for the garbage collector.
        flag("--kube-api-qps", "200"),
        flag("--kube-api-burst", "400"),
    ]
}

fn flag(name: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut flag = OsString::from(name);
    flag.push("=");
    flag.push(value);
    flag
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: Ports = Ports { etcd: 1001, etcd_peer: 1002, api_server: 1003 };

    fn has(flags: &[OsString], wanted: &str) -> bool {
        flags.iter().any(|flag| flag == wanted)
    }

    #[test]
    fn etcd_listens_on_loopback_to_known_clients_only() {
        let files = Files::within(Path::new("/state dir/pki"));
        let flags = etcd(Path::new("/state dir/etcd"), &files, PORTS, false);
        for wanted in [
            "--data-dir=/state dir/etcd",
            "--listen-client-urls=https://127.0.0.1:1001",
            "--listen-peer-urls=https://127.0.0.1:1002",
            "--initial-cluster=capstan=https://127.0.0.1:1002",
            "--trusted-ca-file=/state dir/pki/etcd-ca.crt",
            "--client-cert-auth=true",
            "--peer-client-cert-auth=true",
        ] {
            assert!(has(&flags, wanted), "{wanted} not in {flags:?}");
        }
        assert!(!has(&flags, "--unsafe-no-fsync=true"));
        assert!(has(&etcd(Path::new("/x"), &files, PORTS, true), "--unsafe-no-fsync=true"));
    }

    #[test]
    fn the_callers_flags_come_last() {
        let files = Files::within(Path::new("/pki"));
        let flags = api_server(&files, PORTS, true, &["--profiling=true".to_owned()]);
        assert_eq!(flags.last().unwrap(), "--profiling=true");
        assert!(has(&flags, "--secure-port=1003") && has(&flags, "--etcd-servers=https://127.0.0.1:1001"));
    }

    #[test]
    fn pods_need_no_service_account_where_nobody_makes_any() {
        let files = Files::within(Path::new("/pki"));
        let plugin = "--disable-admission-plugins=ServiceAccount";
        assert!(!has(&api_server(&files, PORTS, true, &[]), plugin));
        assert!(has(&api_server(&files, PORTS, false, &[]), plugin));
    }

    #[test]
    fn the_controller_manager_looks_after_no_nodes() {
        let flags = controller_manager(&Files::within(Path::new("/pki")), Path::new("/kubeconfig"));
        let controllers =
            flags.iter().find_map(|flag| flag.to_str()?.strip_prefix("--controllers=")).unwrap();
        assert!(controllers.contains("garbage-collector-controller") && !controllers.contains("node"));
        assert!(!controllers.contains("pod-garbage"));
    }
}
