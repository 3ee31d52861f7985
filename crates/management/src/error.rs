//! Failed requests to an API server.

use std::fmt;

use kube::core::Status;

/// A failed request to a management cluster.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} in {url}: {}", reason(source))]
pub struct ServerError {
    /// The operation, e.g. `list CustomResourceDefinitions`.
    pub doing: String,
    /// The URL of the API server.
    pub url: String,
    /// The failure.
    #[source]
    pub source: Box<kube::Error>,
}

impl ServerError {
    /// What to do about it, where something can be.
    pub fn hint(&self) -> Option<String> {
        match self.status() {
            Some(status) if status.code == 401 => Some(
                "the server does not accept the credentials of the kubeconfig: log in again, or name another one by \
                 --kubeconfig or --kubeconfig-context"
                    .to_owned(),
            ),
            Some(status) if status.is_forbidden() => Some(
                "the user of the kubeconfig may not do that: use one that is bound to ClusterRole cluster-admin"
                    .to_owned(),
            ),
            Some(_) => None,
            None => Some(format!(
                "look whether {} can be reached: kubectl get --raw /readyz; --kubeconfig and --kubeconfig-context \
                 choose another server",
                self.url
            )),
        }
    }

    /// Whether the object does not exist, or its kind is not served.
    pub fn is_not_found(&self) -> bool {
        is_not_found(&self.source)
    }

    /// The server's response, if there was one.
    pub fn status(&self) -> Option<&Status> {
        match &*self.source {
            kube::Error::Api(status) => Some(status),
            _ => None,
        }
    }
}

/// Whether an object does not exist, or its kind is not served.
pub fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Whether the object changed since it was read, or exists already.
pub fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Whether the object was deleted, and another one has its name. Servers word it in two ways.
pub fn is_about_uid(error: &kube::Error) -> bool {
    let is_told = |it: &str| it.contains("UID in the precondition") || it.contains("UID in precondition");
    matches!(error, kube::Error::Api(status) if status.code == 409 && is_told(&status.message))
}

/// Whether the server is too busy. A missing conversion webhook gives the same code, but does not pass.
pub fn is_busy(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 429) && !is_about_conversion(error)
}

/// Whether the conversion webhook of a kind does not work.
pub fn is_about_conversion(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.message.contains("conversion webhook"))
}

/// Whether an object does not fit its schema: apply answers that with code 500.
pub fn is_about_schema(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.message.starts_with("failed to create typed patch object"))
}

/// Whether the same request may succeed later.
pub fn is_transient(error: &kube::Error) -> bool {
    match error {
        error if is_about_schema(error) => false,
        kube::Error::Api(status) => matches!(status.code, 408 | 409 | 429 | 500..=599),
        kube::Error::HyperError(_) | kube::Error::Service(_) => true,
        _ => false,
    }
}

/// The server's message without what the client adds, or the chain of causes.
fn reason(error: &kube::Error) -> impl fmt::Display {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => {
            let mut text = error.to_string();
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                let cause_text = cause.to_string();
                if !text.contains(&cause_text) {
                    text = format!("{text}: {cause_text}");
                }
                source = cause.source();
            }
            text
        }
    }
}
