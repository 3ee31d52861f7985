//! Probes of an API server, and words for what went wrong.

use std::{error::Error, io, time::Duration};

use capstan_runtime::proxy::ProxyFailed;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use rustls::CertificateError;

/// More than this is no answer of an API server to `GET /`.
const LARGEST_ANSWER: usize = 1 << 20;

/// The API server did not answer as it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What went wrong.
    pub(crate) words: String,
    /// It does not accept the credentials any more.
    pub(crate) unauthorized: bool,
}

impl Failure {
    fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), unauthorized: false }
    }
}

/// Asks the API server at an address for its root, within a limit.
pub(crate) async fn probe(client: &Client, address: &str, limit: Duration) -> Result<(), Failure> {
    let at_address = |failure: Failure| Failure {
        words: format!("the API server at {address} {}", failure.words),
        ..failure
    };
    match tokio::time::timeout(limit, ask(client)).await {
        Ok(result) => result.map_err(at_address),
        Err(_) => Err(at_address(Failure::new(format!("did not answer within {limit:?}")))),
    }
}

async fn ask(client: &Client) -> Result<(), Failure> {
    let request = Request::get("/").body(Body::empty()).map_err(|error| Failure::new(error.to_string()))?;
    let response = client.send(request).await.map_err(|error| Failure::new(explain(&error)))?;
    judge(response.status())?;
    // The answer is read to its end so that the connection can be used again.
    let mut body = response.into_body();
    let mut size = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::new(explain(&error)))?;
        size += frame.data_ref().map_or(0, bytes::Bytes::len);
        if size > LARGEST_ANSWER {
            return Err(Failure::new("answers GET / with more than 1 MiB, as no API server does"));
        }
    }
    Ok(())
}

fn judge(status: StatusCode) -> Result<(), Failure> {
    if status.is_success() {
        return Ok(());
    }
    let unauthorized = status == StatusCode::UNAUTHORIZED;
    let hint = match status {
        StatusCode::UNAUTHORIZED => ": the kubeconfig's credentials are not accepted",
        StatusCode::FORBIDDEN => ": the kubeconfig's user may not get /",
        _ => "",
    };
    Err(Failure { words: format!("answered {status}{hint}"), unauthorized })
}

/// Why no answer came. Only words that are the same from try to try are used.
fn explain(error: &(dyn Error + 'static)) -> String {
    let mut innermost = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(words) = known(error) {
            return words;
        }
        innermost = error.to_string();
        // An io::Error's source is the source of what it wraps: the wrapped error itself would be passed over.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    format!("cannot be reached: {innermost}")
}

fn known(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(ProxyFailed { proxy, setting, reason, .. }) = error.downcast_ref::<ProxyFailed>() {
        return Some(format!("cannot be reached through proxy {proxy} ({setting}): {reason}"));
    }
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return Some(explain_tls(error));
    }
    let error = error.downcast_ref::<io::Error>().filter(|error| error.get_ref().is_none())?;
    Some(match error.kind() {
        io::ErrorKind::ConnectionRefused => "refused the connection".to_owned(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => {
            "closed the connection without an answer".to_owned()
        }
        kind => format!("cannot be reached: {kind}"),
    })
}

fn explain_tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(error) => match error {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "shows a certificate that is not signed by the kubeconfig's certificate-authority-data"
                    .to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "shows a certificate for other names than the one in its address".to_owned()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "shows a certificate that has expired".to_owned()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "shows a certificate that is not valid yet".to_owned()
            }
            other => format!("shows a certificate that is not valid: {other:?}"),
        },
        rustls::Error::AlertReceived(alert) => format!("refused the TLS connection: {alert:?}"),
        rustls::Error::InvalidMessage(_) => "does not speak TLS".to_owned(),
        other => format!("does not agree on TLS: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_by_its_status() {
        for (code, expected) in [
            (200, None),
            (401, Some(("answered 401 Unauthorized: the kubeconfig's credentials are not accepted", true))),
            (403, Some(("answered 403 Forbidden: the kubeconfig's user may not get /", false))),
            (301, Some(("answered 301 Moved Permanently", false))),
            (500, Some(("answered 500 Internal Server Error", false))),
        ] {
            let judged = judge(StatusCode::from_u16(code).unwrap()).err();
            let judged = judged.as_ref().map(|failure| (failure.words.as_str(), failure.unauthorized));
            assert_eq!(judged, expected, "{code}");
        }
    }

    #[test]
    fn the_cause_is_found_behind_wrappers() {
        let wrap = |error: Box<dyn Error + Send + Sync>| io::Error::other(io::Error::other(error));
        let tls = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let words = explain(&wrap(Box::new(tls)));
        assert!(words.contains("not signed by the kubeconfig's certificate-authority-data"), "{words}");
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(explain(&wrap(Box::new(refused))), "refused the connection");
        assert_eq!(explain(&wrap("no such name".into())), "cannot be reached: no such name");
    }
}
