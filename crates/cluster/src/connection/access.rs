//! From the text of a kubeconfig to a client's configuration.
//!
//! The Secret must hold all that is needed. What would run a program, or read a file of this process's machine, is
//! refused: the author of a Secret in one namespace must not act as the manager. The configuration is put together
//! from the parts that were judged and from nothing else: no loader looks them up again by rules of its own, and
//! nothing of this process's environment gets in. Nothing of the text itself gets into an error's words, since these
//! end up in conditions that more people may read than the Secret.

use std::net::Ipv6Addr;

use capstan_runtime::{
    client::{ClientOptions, connect_workload},
    proxy::Proxy,
};
use http::HeaderValue;
use k8s_openapi::ByteString;
use kube::{
    Client, Config,
    config::{AuthInfo, Cluster, Kubeconfig, KubeconfigError},
};
use rustls::{
    RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    sign::CertifiedKey,
};
use secrecy::ExposeSecret;
use serde_json::json;

/// A longer URL is not used: with a request's path behind it, it must still be one.
const LONGEST_URL: usize = 2048;
/// Each group and each extra value of an impersonated user is a header of every request.
const MOST_IMPERSONATED: usize = 256;

/// A client made of a kubeconfig, and the API server's address without what may be secret in it.
pub(crate) fn client(text: &[u8], options: &ClientOptions) -> Result<(Client, String), String> {
    let config = read(text)?;
    // All that is known to be wrong with a kubeconfig was found by now. The error's own words may quote the text.
    let client = connect_workload(&config, options).map_err(|_| "no client can be made of it")?;
    Ok((client, address(&config)))
}

/// Reads a kubeconfig that stands for itself.
pub(crate) fn read(text: &[u8]) -> Result<Config, String> {
    let text =
        std::str::from_utf8(text).map_err(|_| "is not a kubeconfig: it is not UTF-8 text".to_owned())?;
    let kubeconfig =
        Kubeconfig::from_yaml(text).map_err(|error| format!("is not a kubeconfig: {}", place(&error)))?;
    let current = current(&kubeconfig)?;
    let mut config = Config::new(server(current.cluster)?);
    config.root_cert = authorities(current.cluster)?;
    config.accept_invalid_certs = current.cluster.insecure_skip_tls_verify.unwrap_or_default();
    config.disable_compression = current.cluster.disable_compression.unwrap_or_default();
    config.proxy_url = proxy(current.cluster)?;
    config.tls_server_name = server_name(current.cluster)?;
    if let Some(namespace) = current.namespace {
        namespace.clone_into(&mut config.default_namespace);
    }
    config.auth_info = current.user.map(credentials).transpose()?.unwrap_or_default();
    Ok(config)
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

/// What the current context names.
struct Current<'a> {
    cluster: &'a Cluster,
    user: Option<&'a AuthInfo>,
    namespace: Option<&'a str>,
}

fn current(kubeconfig: &Kubeconfig) -> Result<Current<'_>, String> {
    let name = kubeconfig.current_context.as_deref().filter(|name| !name.is_empty());
    let name = name.ok_or("current-context is not set")?;
    let context = only(&kubeconfig.contexts, |it| it.name == name, "contexts")?;
    let context = context.and_then(|it| it.context.as_ref());
    let context = context.ok_or("current-context names none of its contexts")?;
    let cluster = only(&kubeconfig.clusters, |it| it.name == context.cluster, "clusters")?;
    let cluster = cluster.and_then(|it| it.cluster.as_ref());
    let cluster = cluster.ok_or("the current context names none of its clusters")?;
    // A user may have an empty name. Only where there is none of that name, the context means no user.
    let name = context.user.as_deref().unwrap_or_default();
    let user = only(&kubeconfig.auth_infos, |it| it.name == name, "users")?;
    let user = user.and_then(|it| it.auth_info.as_ref());
    if user.is_none() && !name.is_empty() {
        return Err("the current context names none of its users".to_owned());
    }
    Ok(Current { cluster, user, namespace: context.namespace.as_deref().filter(|it| !it.is_empty()) })
}

/// The one of that name. Readers differ in whether the first or the last of several counts.
fn only<'a, T>(list: &'a [T], is_it: impl Fn(&T) -> bool, what: &str) -> Result<Option<&'a T>, String> {
    let mut found = list.iter().filter(|it| is_it(it));
    match (found.next(), found.next()) {
        (_, Some(_)) => {
            Err(format!("two of its {what} have the name that is to be used: give each a name of its own"))
        }
        (first, None) => Ok(first),
    }
}

fn is_set(text: Option<&str>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}

fn server(cluster: &Cluster) -> Result<http::Uri, String> {
    let server = cluster.server.as_deref().filter(|server| !server.is_empty());
    let server = short(server.ok_or("cluster.server is not set")?, "cluster.server")?;
    let server: http::Uri =
        server.parse().map_err(|error| format!("cluster.server is not a URL: {error}"))?;
    let unusable = || "cluster.server must be a URL like https://example.com:6443".to_owned();
    let (Some("https" | "http"), Some(authority)) = (server.scheme_str(), server.authority()) else {
        return Err(unusable());
    };
    // The library takes an authority without a host, any text in brackets for an address, and any text behind it.
    let host = authority.host();
    let is_host = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()),
        None => !host.is_empty(),
    };
    let after_host = authority.as_str().rsplit('@').next().and_then(|it| it.strip_prefix(host));
    let after_host = after_host.filter(|it| is_host && (it.is_empty() || it.starts_with(':')));
    let port = after_host.ok_or_else(unusable)?.trim_start_matches(':');
    // It also takes any text for a port, and connects to the usual one instead.
    if !port.is_empty() && !port.parse::<u16>().is_ok_and(|port| port > 0) {
        return Err("cluster.server is not usable: its port must be between 1 and 65535".to_owned());
    }
    Ok(server)
}

fn short<'a>(url: &'a str, field: &str) -> Result<&'a str, String> {
    if url.len() > LONGEST_URL {
        return Err(format!("{field} is longer than {LONGEST_URL} bytes"));
    }
    Ok(url)
}

/// The name that the server's certificate must be for, where it is not the one in its address.
fn server_name(cluster: &Cluster) -> Result<Option<String>, String> {
    let Some(name) = cluster.tls_server_name.as_ref().filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    match ServerName::try_from(name.as_str()) {
        Ok(_) => Ok(Some(name.clone())),
        Err(_) => Err("cluster.tls-server-name is neither a DNS name nor an IP address".to_owned()),
    }
}

/// The proxy to the API server. Only the kubeconfig names one: this process's environment has no say.
fn proxy(cluster: &Cluster) -> Result<Option<http::Uri>, String> {
    let Some(url) = cluster.proxy_url.as_deref().filter(|url| !url.is_empty()) else {
        return Ok(None);
    };
    let invalid = |reason: &str| format!("cluster.proxy-url is not usable: {reason}");
    let url = short(url, "cluster.proxy-url")?;
    Proxy::parse(url, "cluster.proxy-url").map_err(|error| invalid(&error.reason))?;
    url.parse().map(Some).map_err(|_| invalid("it is not a URL"))
}

/// The certificates that the server's one must be signed by; nothing for those that the machine trusts.
fn authorities(cluster: &Cluster) -> Result<Option<Vec<Vec<u8>>>, String> {
    if is_set(cluster.certificate_authority.as_deref()) {
        return Err(refused_file("cluster.certificate-authority", "certificate-authority-data"));
    }
    let Some(data) = cluster.certificate_authority_data.as_deref().filter(|data| !data.is_empty()) else {
        return Ok(None);
    };
    let invalid = || "cluster.certificate-authority-data is not a certificate in PEM, in base64".to_owned();
    let certificates = certificates(data).ok_or_else(invalid)?;
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        roots.add(certificate.clone()).map_err(|_| invalid())?;
    }
    Ok(Some(certificates.into_iter().map(|certificate| certificate.to_vec()).collect()))
}

/// The certificates in PEM, in base64. There is one at least.
fn certificates(data: &str) -> Option<Vec<CertificateDer<'static>>> {
    let pem = decode(data)?;
    let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>().ok()?;
    Some(certificates).filter(|certificates| !certificates.is_empty())
}

fn decode(base64: &str) -> Option<Vec<u8>> {
    serde_json::from_value::<ByteString>(json!(base64)).ok().map(|bytes| bytes.0)
}

/// What a user is known by: what the text itself holds, and no field besides.
fn credentials(user: &AuthInfo) -> Result<AuthInfo, String> {
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
        if is_set(path.as_deref()) {
            return Err(refused_file(field, instead));
        }
    }
    check_identity(user)?;
    check_headers(user)?;
    let user = user.clone();
    Ok(AuthInfo {
        username: user.username,
        password: user.password,
        token: user.token,
        client_certificate_data: user.client_certificate_data,
        client_key_data: user.client_key_data,
        impersonate: user.impersonate,
        impersonate_uid: user.impersonate_uid,
        impersonate_groups: user.impersonate_groups,
        impersonate_user_extra: user.impersonate_user_extra,
        ..AuthInfo::default()
    })
}

/// A client certificate and its key belong together.
fn check_identity(user: &AuthInfo) -> Result<(), String> {
    let (certificate, key) = ("user.client-certificate-data", "user.client-key-data");
    let data = user.client_key_data.as_ref().map(ExposeSecret::expose_secret);
    let (chain, der) = match (user.client_certificate_data.as_deref(), data) {
        (None, None) => return Ok(()),
        (Some(_), None) => return Err(format!("{certificate} is set, but {key} is not")),
        (None, Some(_)) => return Err(format!("{key} is set, but {certificate} is not")),
        (Some(chain), Some(data)) => (certificates(chain), decode(data)),
    };
    let chain = chain.ok_or_else(|| format!("{certificate} is not a certificate in PEM, in base64"))?;
    let der = der.and_then(|pem| PrivateKeyDer::from_pem_slice(&pem).ok());
    let der = der.ok_or_else(|| format!("{key} is not a private key in PEM, in base64"))?;
    CertifiedKey::from_der(chain, der, &ring::default_provider())
        .map(drop)
        .map_err(|_| format!("{key} is not usable: it must be the key of the certificate in {certificate}"))
}

/// What becomes part of each request must be fit for that: the client's library would panic, or say less.
fn check_headers(user: &AuthInfo) -> Result<(), String> {
    let check = |field: &str, text: &str| {
        let is_fit = HeaderValue::from_str(text).is_ok();
        is_fit.then_some(()).ok_or_else(|| format!("{field} holds a line break or another control character"))
    };
    if let Some(token) = &user.token {
        check("user.token", token.expose_secret())?;
    }
    for (field, text) in [("user.as", &user.impersonate), ("user.as-uid", &user.impersonate_uid)] {
        check(field, text.as_deref().unwrap_or_default())?;
    }
    let groups = user.impersonate_groups.as_deref().unwrap_or_default();
    let extra = || user.impersonate_user_extra.iter().flatten();
    if groups.len() + extra().map(|(_, values)| values.len()).sum::<usize>() > MOST_IMPERSONATED {
        return Err(format!(
            "user.as-groups and user.as-user-extra have more than {MOST_IMPERSONATED} values"
        ));
    }
    for group in groups {
        check("user.as-groups", group)?;
    }
    // Keys are escaped.
    for value in extra().flat_map(|(_, values)| values) {
        check("user.as-user-extra", value)?;
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

    const PEM: &str = include_str!("../kubeconfig/testdata/p256.crt");
    const KEY: &str = include_str!("../kubeconfig/testdata/p256-sec1.key");
    const OTHER_KEY: &str = include_str!("../kubeconfig/testdata/p384-sec1.key");

    fn base64(text: &str) -> Value {
        json!(ByteString(text.as_bytes().to_vec()))
    }

    fn kubeconfig(cluster: &Value, user: &Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "other", "cluster": {"certificate-authority": "/etc/unused"}}, {"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
        })
    }

    #[test]
    fn only_what_stands_for_itself_is_used() {
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
            (text(&json!({}), &token), Err("cluster.server is not set")),
            (text(&json!({"server": ""}), &token), Err("cluster.server is not set")),
            (text(&json!({"server": "not a url"}), &token), Err("cluster.server is not a URL")),
            (text(&json!({"server": "h"}), &token), Err("must be a URL like")),
            (text(&json!({"server": "ftp://h"}), &token), Err("must be a URL like")),
            (text(&json!({"server": "https://:6443"}), &token), Err("must be a URL like")),
            (text(&json!({"server": "https://u@:6443"}), &token), Err("must be a URL like")),
            (text(&json!({"server": "https://u:p@"}), &token), Err("cluster.server")),
            (text(&json!({"server": "https://[::1]junk:6443"}), &token), Err("must be a URL like")),
            (text(&json!({"server": "https://[::1]junk"}), &token), Err("must be a URL like")),
            (text(&json!({"server": "https://[]:6443"}), &token), Err("cluster.server")),
            (text(&json!({"server": "https://[h]:6443"}), &token), Err("must be a URL like")),
            (text(&json!({"server": "https://[::1]:6443x"}), &token), Err("cluster.server")),
            (text(&json!({"server": "https://u@[fd00::1]"}), &token), Ok("https://[fd00::1]")),
            (
                text(&with("certificate-authority", json!("/ca")), &token),
                Err("cluster.certificate-authority is refused"),
            ),
            (
                text(&with("certificate-authority-data", json!("!!")), &token),
                Err("certificate-authority-data"),
            ),
            (
                text(&with("certificate-authority-data", base64("no certificate")), &token),
                Err("certificate-authority-data"),
            ),
            (text(&with("certificate-authority-data", json!("")), &token), Ok("https://h:6443")),
            (text(&with("proxy-url", json!("http://u:secret@proxy")), &token), Ok("https://h:6443")),
            (text(&with("proxy-url", json!("socks5://proxy:1080")), &token), Ok("https://h:6443")),
            (text(&with("proxy-url", json!("")), &token), Ok("https://h:6443")),
            (
                text(&with("proxy-url", json!("ftp://u:secret@proxy")), &token),
                Err("cluster.proxy-url is not usable: its scheme must be http, https or socks5"),
            ),
            (
                text(&with("proxy-url", json!("proxy")), &token),
                Err("cluster.proxy-url is not usable: it must be"),
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
            let read = read(&input).map(|config| address(&config));
            let shown = String::from_utf8_lossy(&input);
            match (read, expected) {
                (Ok(address), Ok(expected)) => assert_eq!(address, expected, "{shown}"),
                (Err(words), Err(expected)) => assert!(words.contains(expected), "{shown}: {words}"),
                (read, expected) => panic!("{shown}: {read:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn no_name_leads_around_the_refusals() {
        let (server, token) = (json!({"server": "https://h:6443"}), json!({"token": "t"}));
        let exec = json!({"exec": {"command": "sh"}});
        let with = |change: &dyn Fn(&mut Value)| {
            let mut kubeconfig = kubeconfig(&server, &token);
            change(&mut kubeconfig);
            kubeconfig.to_string()
        };
        let nameless = |user: &Value| {
            with(&|it| {
                it["contexts"][0]["context"]["user"] = json!("");
                it["users"] = json!([{"name": "", "user": user}]);
            })
        };
        let users = |list: Value| with(&|it| it["users"] = list.clone());
        let (good, bad) = (json!({"name": "u", "user": token}), json!({"name": "u", "user": exec}));
        let no_user = |it: &mut Value| {
            it["contexts"][0]["context"].as_object_mut().unwrap().remove("user");
        };
        for (name, text, expected) in [
            ("nameless, token", nameless(&token), Ok(true)),
            ("nameless, exec", nameless(&exec), Err("user.exec is refused")),
            ("nameless, file", nameless(&json!({"tokenFile": "/t"})), Err("user.tokenFile is refused")),
            (
                "nameless, certificate",
                nameless(&json!({"client-certificate": "/t"})),
                Err("user.client-certificate is refused"),
            ),
            (
                "no user at all, a nameless one is there",
                with(&|it| {
                    no_user(it);
                    it["users"] = json!([{"name": "", "user": exec}]);
                }),
                Err("user.exec is refused"),
            ),
            ("no user at all", with(&no_user), Ok(false)),
            (
                "empty name, no such user",
                with(&|it| it["contexts"][0]["context"]["user"] = json!("")),
                Ok(false),
            ),
            ("user without content", users(json!([{"name": "u"}])), Err("names none of its users")),
            ("the first runs a program", users(json!([bad, good])), Err("two of its users")),
            ("the last runs a program", users(json!([good, bad])), Err("two of its users")),
            ("another runs a program", users(json!([{"name": "v", "user": exec}, good])), Ok(true)),
            (
                "two contexts",
                with(&|it| {
                    let context = it["contexts"][0].clone();
                    it["contexts"].as_array_mut().unwrap().push(context);
                }),
                Err("two of its contexts"),
            ),
            ("two clusters", with(&|it| it["clusters"][0]["name"] = json!("c")), Err("two of its clusters")),
            ("empty current-context", with(&|it| it["current-context"] = json!("")), Err("is not set")),
            (
                "empty current-context, nameless context",
                with(&|it| {
                    it["current-context"] = json!("");
                    it["contexts"][0]["name"] = json!("");
                }),
                Err("is not set"),
            ),
            (
                "fields that are not read",
                with(&|it| {
                    it["preferences"] = json!({"colors": true, "exec": {"command": "sh"}});
                    it["extensions"] = json!([{"name": "exec", "extension": {"command": "sh"}}]);
                    it["exec"] = json!({"command": "sh"});
                    it["users"][0]["exec"] = json!({"command": "sh"});
                    it["users"][0]["user"]["token-file"] = json!("/t");
                    it["clusters"][1]["cluster"]["ca-file"] = json!("/t");
                }),
                Ok(true),
            ),
            (
                "a second document",
                format!("{}\n---\n{}", users(json!([])), with(&|it| it["users"] = json!([bad]))),
                Err("user.exec is refused"),
            ),
        ] {
            match (read(text.as_bytes()), expected) {
                (Ok(config), Ok(has_token)) => {
                    let user = config.auth_info;
                    assert_eq!(user.token.is_some(), has_token, "{name}");
                    assert!(
                        user.exec.is_none() && user.token_file.is_none() && user.other.is_empty(),
                        "{name}"
                    );
                    assert!(config.root_cert_file.is_none() && config.proxy_url.is_none(), "{name}");
                }
                (Err(words), Err(expected)) => assert!(words.contains(expected), "{name}: {words}"),
                (read, expected) => panic!("{name}: {read:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn all_that_a_client_needs_is_taken_over() {
        let cluster = json!({
            "server": "https://h:6443", "insecure-skip-tls-verify": true, "tls-server-name": "n",
            "disable-compression": true,
        });
        let user = json!({
            "username": "u", "password": "p", "client-certificate-data": base64(PEM), "client-key-data": base64(KEY),
            "as": "a", "as-uid": "1", "as-groups": ["g"], "as-user-extra": {"x": ["y"]},
        });
        let mut kubeconfig = kubeconfig(&cluster, &user);
        kubeconfig["contexts"][0]["context"]["namespace"] = json!("ns");
        let config = read(kubeconfig.to_string().as_bytes()).unwrap();
        assert_eq!(serde_json::to_value(&config.auth_info).unwrap(), user);
        assert!(config.accept_invalid_certs && config.disable_compression);
        assert_eq!(config.tls_server_name.as_deref(), Some("n"));
        assert_eq!((config.default_namespace.as_str(), config.root_cert), ("ns", None));
    }

    #[test]
    fn what_no_request_can_carry_is_refused() {
        let long = "x".repeat(3000);
        let server = |key: &str, value: &Value| {
            let mut cluster = json!({"server": "https://h:6443"});
            cluster[key] = value.clone();
            kubeconfig(&cluster, &json!({}))
        };
        let user = |user: Value| kubeconfig(&json!({"server": "https://h:6443"}), &user);
        let control = |field: &str| Err(format!("{field} holds a line break or another control character"));
        for (kubeconfig, expected) in [
            (user(json!({"token": "a\r\nb: c"})), control("user.token")),
            (user(json!({"token": "a\n"})), control("user.token")),
            (user(json!({"token": "a\u{0}"})), control("user.token")),
            (user(json!({"token": "a b\tc"})), Ok(())),
            (user(json!({"token": "tök€n"})), Ok(())),
            // These two are sent in base64.
            (user(json!({"username": "a\r\nb", "password": "c\nd"})), Ok(())),
            (user(json!({"as": "a\nb"})), control("user.as")),
            (user(json!({"as": "a", "as-uid": "1\n"})), control("user.as-uid")),
            (user(json!({"as": "a", "as-groups": ["g", "h\r"]})), control("user.as-groups")),
            (user(json!({"as": "a", "as-user-extra": {"k\r\n": ["v"]}})), Ok(())),
            (user(json!({"as": "a", "as-user-extra": {"k": ["v\n"]}})), control("user.as-user-extra")),
            (
                user(json!({"as": "a", "as-groups": vec!["g"; 200], "as-user-extra": {"k": vec!["v"; 57]}})),
                Err("user.as-groups and user.as-user-extra have more than 256 values".to_owned()),
            ),
            (
                server("server", &json!("https://h:65536")),
                Err("its port must be between 1 and 65535".to_owned()),
            ),
            (server("server", &json!("https://h:0")), Err("its port must be between 1 and 65535".to_owned())),
            (server("server", &json!("https://u:p@h:65535")), Ok(())),
            (server("server", &json!("https://h:")), Ok(())),
            (server("server", &json!("https://[::1]")), Ok(())),
            (server("server", &json!("https://h\n")), Err("cluster.server is not a URL".to_owned())),
            (
                server("server", &json!(format!("https://h/{long}"))),
                Err("cluster.server is longer than 2048 bytes".to_owned()),
            ),
            (
                server("proxy-url", &json!(format!("http://u:{long}@p"))),
                Err("cluster.proxy-url is longer than 2048 bytes".to_owned()),
            ),
            (server("proxy-url", &json!("http://p\r\n")), Err("cluster.proxy-url is not usable".to_owned())),
            (
                server("tls-server-name", &json!("a name\r\n")),
                Err("cluster.tls-server-name is neither".to_owned()),
            ),
            (server("tls-server-name", &json!("127.0.0.1")), Ok(())),
            (server("tls-server-name", &json!("")), Ok(())),
            (
                user(json!({"client-certificate-data": base64(PEM)})),
                Err("user.client-certificate-data is set, but user.client-key-data is not".to_owned()),
            ),
            (
                user(json!({"client-key-data": base64(KEY)})),
                Err("user.client-key-data is set, but user.client-certificate-data is not".to_owned()),
            ),
            (
                user(json!({"client-certificate-data": base64(KEY), "client-key-data": base64(KEY)})),
                Err("user.client-certificate-data is not a certificate in PEM".to_owned()),
            ),
            (
                user(json!({"client-certificate-data": base64(PEM), "client-key-data": base64(PEM)})),
                Err("user.client-key-data is not a private key in PEM".to_owned()),
            ),
            (
                user(json!({"client-certificate-data": base64(PEM), "client-key-data": base64(OTHER_KEY)})),
                Err("it must be the key of the certificate".to_owned()),
            ),
            (user(json!({"client-certificate-data": base64(PEM), "client-key-data": base64(KEY)})), Ok(())),
        ] {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let _inside = runtime.enter();
            let made = client(kubeconfig.to_string().as_bytes(), &ClientOptions::default());
            match (made.map(drop), &expected) {
                (Ok(()), Ok(())) => {}
                (Err(words), Err(expected)) => assert!(words.contains(expected), "{kubeconfig}: {words}"),
                (made, expected) => panic!("{kubeconfig}: {made:?} instead of {expected:?}"),
            }
        }
    }

    const CANARY: &str = "canary-4711-bird";

    /// Whether words hold the canary as it is, in base64, or as libraries print bytes.
    fn holds_canary(words: &str) -> bool {
        let encoded = (0..3).map(|skip| {
            let Value::String(text) = base64(&CANARY[skip..]) else { panic!("no text") };
            // The last letters depend on what follows.
            text[..16].to_owned()
        });
        let numbers = CANARY.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ");
        encoded.chain([CANARY.to_owned(), numbers]).any(|form| words.contains(&form))
    }

    fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
        let inner: Vec<(String, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(name, it)| (name.clone(), it)).collect(),
            Value::Array(items) => items.iter().enumerate().map(|(n, it)| (n.to_string(), it)).collect(),
            _ => Vec::new(),
        };
        found.push(at.to_owned());
        for (name, value) in inner {
            leaves(value, &format!("{at}/{name}"), found);
        }
    }

    #[tokio::test]
    async fn whatever_is_wrong_with_a_kubeconfig_none_of_it_gets_into_words() {
        let cluster = json!({
            "server": "https://h:6443", "certificate-authority-data": base64(PEM), "tls-server-name": "n",
            "proxy-url": "http://u:p@proxy", "insecure-skip-tls-verify": false, "disable-compression": true,
        });
        let user = json!({
            "token": "t", "username": "u", "password": "p",
            "client-certificate-data": base64(PEM), "client-key-data": base64(KEY),
            "as": "a", "as-uid": "1", "as-groups": ["g"], "as-user-extra": {"x": ["y"]},
        });
        let whole = kubeconfig(&cluster, &user);
        let options = ClientOptions::default();
        client(whole.to_string().as_bytes(), &options).unwrap();
        let pem = |text: String| base64(&text);
        let wrong = [
            json!(CANARY),
            json!(format!("{CANARY}\r\nX-Header: {CANARY}")),
            json!({CANARY: CANARY}),
            json!([CANARY, {CANARY: [CANARY]}]),
            json!(4711),
            json!(format!("https://{CANARY}:{CANARY}@h:6443")),
            json!(format!("http://h:{CANARY}")),
            json!(format!("{CANARY}://h")),
            pem(CANARY.to_owned()),
            pem(format!("-----BEGIN {CANARY}")),
            pem(format!("-----BEGIN {CANARY}-----\n{CANARY}\n-----END {CANARY}-----\n")),
            pem(format!("-----BEGIN CERTIFICATE-----\n{CANARY}\n")),
            pem(format!("-----BEGIN CERTIFICATE-----\n{CANARY}\n-----END CERTIFICATE-----\n")),
            pem(format!("-----BEGIN CERTIFICATE-----\nMAA=\n-----END {CANARY}-----\n")),
            pem(format!("-----BEGIN PRIVATE KEY-----\n{CANARY}!\n-----END PRIVATE KEY-----\n")),
            pem(format!("{PEM}-----BEGIN {CANARY}")),
        ];
        let mut places = Vec::new();
        leaves(&whole, "", &mut places);
        let mut refused = 0;
        for place in &places {
            for wrong in &wrong {
                let mut kubeconfig = whole.clone();
                *kubeconfig.pointer_mut(place).unwrap() = wrong.clone();
                match client(kubeconfig.to_string().as_bytes(), &options) {
                    Err(words) => {
                        refused += 1;
                        assert!(!holds_canary(&words), "{place} {wrong}: {words}");
                    }
                    Ok((_, address)) => assert!(!holds_canary(&address), "{place} {wrong}: {address}"),
                }
            }
        }
        assert!(refused > places.len() * 5, "{refused} of {} places", places.len());
        let text = whole.to_string().replace("\"t\"", &json!(CANARY).to_string());
        for end in (0..text.len()).step_by(7) {
            let words = client(&text.as_bytes()[..end], &options).err().unwrap();
            assert!(!holds_canary(&words), "{words}");
        }
    }

    #[test]
    fn secrets_do_not_get_into_words() {
        let broken = "users:\n- name: u\n  user:\n    token: hunter2\n  - hunter2: [\n";
        let words = read(broken.as_bytes()).unwrap_err();
        assert!(words.contains("line ") && !words.contains("hunter2"), "{words}");
        for proxy in ["ftp://u:hunter2@p", "http://u:hunter2@", "http://u:hunt@hunter2@p"] {
            let cluster = json!({"server": "https://h:6443", "proxy-url": proxy});
            let words = read(kubeconfig(&cluster, &json!({})).to_string().as_bytes()).unwrap_err();
            assert!(words.contains("cluster.proxy-url") && !words.contains("hunter2"), "{words}");
        }
    }
}
