//! Failed requests to an API server.

use std::io;

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
    /// Whether the user lacks the permission.
    pub fn is_forbidden(&self) -> bool {
        self.status().is_some_and(|it| it.code == 403) && !self.is_web_page()
    }

    /// Whether something else than an API server answered.
    pub fn is_web_page(&self) -> bool {
        is_web_page(&self.source)
    }

    /// Why the request failed, without what was being done.
    pub fn reason(&self) -> String {
        reason(&self.source)
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

/// Whether the same request may succeed later. One that timed out has waited long enough: the server is silent.
pub fn is_transient(error: &kube::Error) -> bool {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |it| it.source());
    let mut failures = causes.filter_map(|it| it.downcast_ref::<io::Error>());
    match error {
        error if is_about_schema(error) => false,
        _ if failures.any(|it| it.kind() == io::ErrorKind::TimedOut) => false,
        kube::Error::Api(status) => matches!(status.code, 408 | 409 | 429 | 500..=599),
        kube::Error::HyperError(_) | kube::Error::Service(_) => true,
        _ => false,
    }
}

/// Whether something else than an API server answered: with HTML, or with what is not even the beginning of JSON.
fn is_web_page(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.message.starts_with('<'),
        kube::Error::SerdeError(error) => {
            (error.is_syntax() || error.is_eof()) && error.line() == 1 && error.column() <= 1
        }
        _ => false,
    }
}

/// Why a request failed. What a server says is meant for people; what the client adds to it is not.
pub fn reason(error: &kube::Error) -> String {
    match error {
        error if is_web_page(error) => {
            "the server answered with a web page, not with the Kubernetes API".to_owned()
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_stays_silent_is_not_asked_again() {
        let io = |kind| kube::Error::Service(io::Error::new(kind, "why").into());
        let api = |code| kube::Error::Api(Status::failure("why", "").with_code(code).boxed());
        for (error, expected) in [
            (io(io::ErrorKind::TimedOut), false),
            (io(io::ErrorKind::ConnectionRefused), true),
            (io(io::ErrorKind::ConnectionReset), true),
            (kube::Error::Service("why".into()), true),
            (api(503), true),
            (api(403), false),
        ] {
            assert_eq!(is_transient(&error), expected, "{error:?}");
        }
    }

    #[test]
    fn a_web_page_is_not_quoted() {
        let page = "the server answered with a web page, not with the Kubernetes API";
        let api =
            |code, message: &str| kube::Error::Api(Status::failure(message, "").with_code(code).boxed());
        let not_json = |text: &str| {
            kube::Error::SerdeError(serde_json::from_str::<serde_json::Value>(text).unwrap_err())
        };
        for (error, expected) in [
            (not_json("<!DOCTYPE html>"), page),
            (not_json(""), page),
            (not_json("{\"kind\": 1,"), "EOF while parsing"),
            (api(403, "<html><body>Sign in</body></html>"), page),
            (api(502, "<html>"), page),
            (api(404, "404 page not found"), "404 page not found"),
            (api(403, "clusters is forbidden"), "clusters is forbidden"),
        ] {
            let error = ServerError {
                doing: "read".to_owned(),
                url: "https://x".to_owned(),
                source: Box::new(error),
            };
            assert!(error.reason().contains(expected), "{error}");
            assert_eq!(error.is_web_page(), expected == page, "{error}");
        }
    }
}
