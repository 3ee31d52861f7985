//! The file a Kubernetes client reads.

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::certificates::Identity;

/// A kubeconfig that needs no other file. Every name in it is `capstan`, unless it is the user's.
pub(crate) fn text(server: &str, authority_pem: &str, user: &str, identity: &Identity) -> String {
    let authority = STANDARD.encode(authority_pem);
    let certificate = STANDARD.encode(&identity.certificate_pem);
    let key = STANDARD.encode(&identity.key_pem);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: capstan
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: capstan
  context:
    cluster: capstan
    user: {user}
current-context: capstan
"
    )
}

#[cfg(test)]
mod tests {
    use super::text;
    use crate::certificates::Identity;

    #[test]
    fn holds_the_credentials_and_nothing_to_look_up() {
        let identity = Identity { certificate_pem: "foo".to_owned(), key_pem: "foobar".to_owned() };
        let text = text("https://127.0.0.1:6443", "fo", "admin", &identity);
        for line in [
            "    server: https://127.0.0.1:6443",
            "    certificate-authority-data: Zm8=",
            "    client-certificate-data: Zm9v",
            "    client-key-data: Zm9vYmFy",
            "    user: admin",
            "current-context: capstan",
        ] {
            assert!(text.lines().any(|found| found == line), "{line:?} not in\n{text}");
        }
    }
}
