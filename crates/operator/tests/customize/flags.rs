//! Flags and probes of the controller manager.

use super::*;

/// The flags that a spec adds to or changes in a container that has none.
fn flags(manager: &str) -> String {
    flags_over("[]", manager, "{}")
}

/// The args after `spec.manager` and the args of the spec's container came over those of the release.
fn flags_over(release: &str, manager: &str, container_args: &str) -> String {
    let mut objects = objects(AWS);
    let release = yaml::read_one(release).unwrap();
    objects[2]["spec"]["template"]["spec"]["containers"][0]["args"] = release;
    let text = format!(
        "{{manager: {manager}, deployment: {{containers: [{{name: manager, args: {container_args}}}]}}}}"
    );
    customize(&mut objects, &spec(&text)).unwrap();
    args(&objects, "manager").replace('\n', " ")
}

#[test]
fn every_field_of_the_manager_has_its_flag() {
    for (manager, expected) in [
        ("{syncPeriod: 660}", "--sync-period=660s"),
        ("{syncPeriod: 10m30s}", "--sync-period=630s"),
        ("{syncPeriod: 0}", "--sync-period=0s"),
        ("{metricsAddress: ':8181'}", "--metrics-bind-addr=:8181"),
        ("{metrics: {bindAddress: '0'}}", "--metrics-bind-addr=0"),
        ("{metricsAddress: ':1', metrics: {bindAddress: ':2'}}", "--metrics-bind-addr=:2"),
        ("{metricsAddress: ':1', metrics: {bindAddress: ''}}", "--metrics-bind-addr=:1"),
        ("{health: {healthProbeBindAddress: ':9441'}}", "--health-addr=:9441"),
        (
            "{webhook: {port: 9444, host: 127.0.0.1, certDir: /certs}}",
            "--webhook-cert-dir=/certs --webhook-host=127.0.0.1 --webhook-port=9444",
        ),
        ("{profilerAddress: ':6060'}", "--profiler-address=:6060"),
        ("{maxConcurrentReconciles: 7}", "--max-concurrent-reconciles=7"),
        ("{verbosity: 0}", "--v=0"),
        ("{verbosity: 1}", "--v=1"),
        ("{debug: true}", "--profiler-address=localhost:6060 --v=5"),
        ("{debug: true, syncPeriod: 5s}", "--profiler-address=localhost:6060 --sync-period=5s --v=5"),
        ("{featureGates: {B: true, A: false}}", "--feature-gates=A=false,B=true"),
        ("{gracefulShutDown: 5s, cacheNamespace: x}", ""),
    ] {
        assert_eq!(flags(manager), expected, "{manager}");
    }
}

#[test]
fn leader_election_has_its_flags_unless_it_is_off() {
    let rest = "leaseDuration: 1m, renewDeadline: 40, retryPeriod: 5s, resourceLock: leases, resourceName: lock, resourceNamespace: s";
    let expected = "--leader-elect-lease-duration=60s --leader-elect-renew-deadline=40s --leader-elect-retry-period=5s \
                    --leader-election-id=s/lock";
    for (election, expected) in [
        ("leaderElect: false", "--leader-elect=false".to_owned()),
        ("leaderElect: true", "--leader-elect=true".to_owned()),
        (&format!("leaderElect: false, {rest}"), "--leader-elect=false".to_owned()),
        (&format!("leaderElect: true, {rest}"), format!("--leader-elect=true {expected}")),
        (rest, expected.to_owned()),
        ("resourceName: lock", "--leader-election-id=lock".to_owned()),
        ("resourceNamespace: s", String::new()),
    ] {
        assert_eq!(flags(&format!("{{leaderElection: {{{election}}}}}")), expected, "{election}");
    }
    let off = "{leaderElection: {leaderElect: false}}";
    for release in ["[--leader-elect, --x]", "[--leader-elect=true, --x]", "[--leader-elect, 'true', --x]"] {
        assert_eq!(flags_over(release, off, "{}"), "--leader-elect=false --x", "{release}");
    }
}

#[test]
fn args_are_flags_with_or_without_dashes() {
    for (release, args, expected) in [
        ("[]", "{awscluster-concurrency: 12}", "--awscluster-concurrency=12"),
        ("[]", "{--awscluster-concurrency: '12'}", "--awscluster-concurrency=12"),
        ("[]", "{-v: 3}", "--v=3"),
        ("[]", "{v: 3}", "--v=3"),
        ("[-v=1]", "{v: 3}", "-v=3"),
        ("[-v, '1', --x]", "{--v: 3}", "-v=3 --x"),
        ("[--v=1]", "{-v: 3}", "--v=3"),
        ("[]", "{b: true, a: text, d: '', c: -1}", "--a=text --b=true --c=-1 --d="),
        ("[--leader-elect, --b=1]", "{leader-elect: false, a: 1}", "--leader-elect=false --b=1 --a=1"),
        ("[--namespace=here]", "{namespace: there, x: 1}", "--namespace=here --x=1"),
        ("[--feature-gates=B=true]", "{feature-gates: 'A=false'}", "--feature-gates=A=false,B=true"),
    ] {
        assert_eq!(flags_over(release, "{}", args), expected, "{release} {args}");
    }
}

#[test]
fn the_manager_wins_over_args() {
    for (release, manager, args, expected) in [
        ("[]", "{syncPeriod: 5s}", "{sync-period: 1s}", "--sync-period=5s"),
        ("[]", "{syncPeriod: 5s}", "{--sync-period: 1s, x: 1}", "--sync-period=5s --x=1"),
        ("[--sync-period, 9m]", "{syncPeriod: 5s}", "{-sync-period: 1s}", "--sync-period=5s"),
        ("[]", "{syncPeriod: 5s}", "{sync_period: 1s}", "--sync-period=5s"),
        ("[-v=0]", "{verbosity: 4}", "{v: 9}", "-v=4"),
        ("[]", "{debug: true}", "{-v: 9, --profiler-address: x}", "--profiler-address=localhost:6060 --v=5"),
        ("[]", "{leaderElection: {leaderElect: false}}", "{leader-elect: true}", "--leader-elect=false"),
        (
            "['--feature-gates=A=true,M=1']",
            "{featureGates: {A: false}}",
            "{feature-gates: 'A=true,B=true'}",
            "--feature-gates=A=false,B=true,M=1",
        ),
        // Feature gates that the release gives in other forms.
        ("[--feature-gates, A=true]", "{featureGates: {B: true}}", "{}", "--feature-gates=A=true,B=true"),
        (
            "[--feature-gates=A=true, --x, --feature-gates=C=true]",
            "{featureGates: {B: true}}",
            "{}",
            "--feature-gates=A=true,B=true,C=true --x",
        ),
        // A flag for one kind stays beside the one for all kinds.
        (
            "[]",
            "{maxConcurrentReconciles: 5}",
            "{awscluster-concurrency: 12}",
            "--awscluster-concurrency=12 --max-concurrent-reconciles=5",
        ),
        (
            "[--awscluster-concurrency=3]",
            "{maxConcurrentReconciles: 5}",
            "{}",
            "--awscluster-concurrency=3 --max-concurrent-reconciles=5",
        ),
        (
            "[]",
            "{maxConcurrentReconciles: 5}",
            "{max-concurrent-reconciles: 9}",
            "--max-concurrent-reconciles=5",
        ),
    ] {
        assert_eq!(flags_over(release, manager, args), expected, "{release} {manager} {args}");
    }
}

#[test]
fn endpoint_names_rewrite_probes_that_exist() {
    for (health, readiness, liveness) in [
        ("{readinessEndpointName: ready}", "/ready", "/healthz"),
        ("{livenessEndpointName: /live}", "/readyz", "/live"),
        ("{readinessEndpointName: r, livenessEndpointName: l}", "/r", "/l"),
    ] {
        let text = format!("{{manager: {{health: {health}}}}}");
        let changed = customized(CORE, &text);
        let manager = container(&changed, "manager");
        assert_eq!(
            manager["readinessProbe"],
            json!({"httpGet": {"path": readiness, "port": "healthz"}}),
            "{health}"
        );
        assert_eq!(
            manager["livenessProbe"],
            json!({"httpGet": {"path": liveness, "port": "healthz"}}),
            "{health}"
        );
        assert_eq!(args(&changed, "manager"), args(&objects(CORE), "manager"), "{health}");

        let mut others = objects(CORE);
        let manager = &mut others[0]["spec"]["template"]["spec"]["containers"][0];
        manager.as_object_mut().unwrap().remove("readinessProbe");
        manager["livenessProbe"] = json!({"tcpSocket": {"port": 1}});
        let before = others.clone();
        customize(&mut others, &spec(&text)).unwrap();
        assert_eq!(others, before, "{health}");
    }
}
