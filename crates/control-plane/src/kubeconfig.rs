//! The file a Kubernetes client reads.

use crate::base64;
use crate::certificates::Identity;

/// A kubeconfig that needs no other file. Every name in it is `capstan`, unless it is the user's.
pub(crate) fn text(server: &str, authority_pem: &str, user: &str, identity: &Identity) -> String {
    let authority = base64::encode(authority_pem.as_bytes());
    let certificate = base64::encode(identity.certificate_pem.as_bytes());
    let key = base64::encode(identity.key_pem.as_bytes());
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
