//! From the text of a kubeconfig to a client's configuration.
//!
//! The Secret must hold all that is needed. What would run a program, or read a file of this process's machine, is
//! refused: whoever may write a Secret in one namespace must not act as the manager. Nothing of the text itself gets
//! into an error's words, since these end up in conditions that more people may read than the Secret.

use kube::{
    Config,
    config::{AuthInfo, Cluster, KubeConfigOptions, Kubeconfig, KubeconfigError},
};

/// Reads a kubeconfig that stands for itself.
pub(crate) async fn read(text: &[u8]) -> Result<Config, String> {
    let text =
        std::str::from_utf8(text).map_err(|_| "is not a kubeconfig: it is not UTF-8 text".to_owned())?;
    let kubeconfig =
        Kubeconfig::from_yaml(text).map_err(|error| format!("is not a kubeconfig: {}", place(&error)))?;
    let (cluster, user) = current(&kubeconfig)?;
    refuse_unfit(cluster, user)?;
    let options = KubeConfigOptions::default();
    let mut config =
        Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| match error {
            KubeconfigError::ParseClusterUrl(error) => format!("cluster.server is not a URL: {error}"),
            KubeconfigError::ParseCertificates(_) | KubeconfigError::LoadCertificateAuthority(_) => {
                "cluster.certificate-authority-data is not a certificate in PEM, in base64".to_owned()
            }
            _ => "cannot be used: its current context's cluster and user are not complete".to_owned(),
        })?;
    // The environment's proxy is for this process's own way out, and a kubeconfig cannot name one yet.
    config.proxy_url = None;
    match (config.cluster_url.scheme_str(), config.cluster_url.authority()) {
        (Some("https" | "http"), Some(_)) => Ok(config),
        _ => Err("cluster.server must be a URL like https://example.com:6443".to_owned()),
    }
}

/// Where the text stops to make sense. The parser's own words quote the text.
fn place(error: &KubeconfigError) -> String {
    let location = match error {
        KubeconfigError::Parse(error) => error.location(),
        _ => None,
    };
    match location {
        Some(at) => format!("line {}, column {} does not fit", at.line(), at.column()),
        None => "it is neither YAML nor JSON of that kind".to_owned(),
    }
}

fn current(kubeconfig: &Kubeconfig) -> Result<(&Cluster, Option<&AuthInfo>), String> {
    let name = kubeconfig.current_context.as_deref().filter(|name| !name.is_empty());
    let name = name.ok_or("current-context is not set")?;
    let context = kubeconfig.contexts.iter().find(|it| it.name == name).and_then(|it| it.context.as_ref());
    let context = context.ok_or("current-context names none of its contexts")?;
    let cluster = kubeconfig.clusters.iter().find(|it| it.name == context.cluster);
    let cluster = cluster.and_then(|it| it.cluster.as_ref());
    let cluster = cluster.ok_or("the current context names none of its clusters")?;
    let Some(user) = context.user.as_deref().filter(|user| !user.is_empty()) else {
        return Ok((cluster, None));
    };
    let found = kubeconfig.auth_infos.iter().find(|it| it.name == user).and_then(|it| it.auth_info.as_ref());
    Ok((cluster, Some(found.ok_or("the current context names none of its users")?)))
}

fn refuse_unfit(cluster: &Cluster, user: Option<&AuthInfo>) -> Result<(), String> {
    let is_set = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
    if is_set(&cluster.certificate_authority) {
        return Err(refused_file("cluster.certificate-authority", "certificate-authority-data"));
    }
    if is_set(&cluster.proxy_url) {
        return Err(
            "cluster.proxy-url is not supported: the API server must be reachable directly".to_owned()
        );
    }
    let Some(user) = user else { return Ok(()) };
    if user.exec.is_some() {
        return Err("user.exec is refused, since it would run a program in the manager: use a token or a client certificate".to_owned());
    }
    if user.auth_provider.is_some() {
        return Err("user.auth-provider is refused: use a token or a client certificate".to_owned());
    }
    for (field, path, instead) in [
        ("user.client-certificate", &user.client_certificate, "client-certificate-data"),
        ("user.client-key", &user.client_key, "client-key-data"),
        ("user.tokenFile", &user.token_file, "token"),
    ] {
        if is_set(path) {
            return Err(refused_file(field, instead));
        }
    }
    Ok(())
}

fn refused_file(field: &str, instead: &str) -> String {
    format!("{field} is refused, since it names a file of the manager: use {instead}")
}

/// The API server's address without what may be secret in it.
pub(crate) fn address(config: &Config) -> String {
    let url = &config.cluster_url;
    let port = url.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    let path = url.path().trim_end_matches('/');
    format!("{}://{}{port}{path}", url.scheme_str().unwrap_or("https"), url.host().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const PEM: &str = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";

    fn base64(text: &str) -> Value {
        json!(k8s_openapi::ByteString(text.as_bytes().to_vec()))
    }

    fn kubeconfig(cluster: &Value, user: &Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "other", "cluster": {"certificate-authority": "/etc/unused"}}, {"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
        })
    }

    #[tokio::test]
    async fn only_what_stands_for_itself_is_used() {
        let server = json!({"server": "https://h:6443"});
        let with = |key: &str, value: Value| {
            let mut cluster = server.clone();
            cluster[key] = value;
            cluster
        };
        let token = json!({"token": "t"});
        let text = |cluster: &Value, user: &Value| kubeconfig(cluster, user).to_string().into_bytes();
        let mut no_users = kubeconfig(&server, &token);
        no_users["users"] = json!([]);
        let mut no_clusters = kubeconfig(&server, &token);
        no_clusters["clusters"] = json!([]);
        for (input, expected) in [
            (text(&server, &token), Ok("https://h:6443")),
            (text(&json!({"server": "https://u:secret@h:1/p/"}), &token), Ok("https://h:1/p")),
            (text(&json!({"server": "https://[::1]:6443"}), &json!({})), Ok("https://[::1]:6443")),
            (text(&with("certificate-authority-data", base64(PEM)), &token), Ok("https://h:6443")),
            (b"\xff\xfe\x00binary".to_vec(), Err("not UTF-8")),
            (b"just some words".to_vec(), Err("is not a kubeconfig")),
            (b"a: [1".to_vec(), Err("is not a kubeconfig")),
            (b"- a list".to_vec(), Err("is not a kubeconfig")),
            (b"{}".to_vec(), Err("current-context is not set")),
            (b"current-context: x".to_vec(), Err("names none of its contexts")),
            (no_clusters.to_string().into_bytes(), Err("names none of its clusters")),
            (no_users.to_string().into_bytes(), Err("names none of its users")),
            (text(&json!({}), &token), Err("not complete")),
            (text(&json!({"server": "not a url"}), &token), Err("cluster.server is not a URL")),
            (text(&json!({"server": "h"}), &token), Err("must be a URL like")),
            (text(&json!({"server": "ftp://h"}), &token), Err("must be a URL like")),
            (
                text(&with("certificate-authority", json!("/ca")), &token),
                Err("cluster.certificate-authority is refused"),
            ),
            (
                text(&with("certificate-authority-data", json!("!!")), &token),
                Err("certificate-authority-data"),
            ),
            (
                text(&with("proxy-url", json!("http://u:secret@proxy")), &token),
                Err("cluster.proxy-url is not supported"),
            ),
            (text(&server, &json!({"exec": {"command": "sh"}})), Err("user.exec is refused")),
            (
                text(&server, &json!({"auth-provider": {"name": "oidc", "config": {}}})),
                Err("user.auth-provider is refused"),
            ),
            (text(&server, &json!({"tokenFile": "/t"})), Err("user.tokenFile is refused")),
            (text(&server, &json!({"client-certificate": "/t"})), Err("user.client-certificate is refused")),
            (text(&server, &json!({"client-key": "/t"})), Err("user.client-key is refused")),
        ] {
            let read = read(&input).await.map(|config| address(&config));
            let shown = String::from_utf8_lossy(&input);
            match (read, expected) {
                (Ok(address), Ok(expected)) => assert_eq!(address, expected, "{shown}"),
                (Err(words), Err(expected)) => assert!(words.contains(expected), "{shown}: {words}"),
                (read, expected) => panic!("{shown}: {read:?} instead of {expected:?}"),
            }
        }
    }

    #[tokio::test]
    async fn secrets_do_not_get_into_words() {
        let broken = "users:\n- name: u\n  user:\n    token: hunter2\n  - hunter2: [\n";
        let words = read(broken.as_bytes()).await.unwrap_err();
        assert!(words.contains("line ") && !words.contains("hunter2"), "{words}");
    }
}
