//! The leadership fence: a client whose writes are refused while this process does not lead. Code that is handed such a
//! client keeps to "only the leader writes" without knowing of elections.

use http::{Method, Request, Uri};
use kube::{Client, client::Body};
use tower::{BoxError, service_fn};

use crate::leadership::Leadership;

/// Groups whose objects are questions: creating one reads something and stores nothing.
const QUESTIONS: [&str; 2] = ["/apis/authentication.k8s.io/", "/apis/authorization.k8s.io/"];

/// A write was not sent, because this process does not lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request was not sent: this process lost leadership, and only the leader writes")]
pub struct NotLeading;

impl NotLeading {
    /// Whether a request failed for this reason.
    pub fn is_cause_of(error: &kube::Error) -> bool {
        matches!(error, kube::Error::Service(cause) if cause.is::<Self>())
    }
}

/// Marks a request that only the leader may send. A client checks it again after it held the request back for its rate.
#[derive(Clone, Debug)]
pub(crate) struct LeaderOnly(Leadership);

impl LeaderOnly {
    /// Whether a request may be sent now.
    pub(crate) fn admits(&self) -> bool {
        self.0.is_held()
    }
}

/// A client that refuses writes with [`NotLeading`] while this process does not lead. Reads, dry runs and access reviews
/// pass.
pub fn fenced(client: &Client, leadership: &Leadership) -> Client {
    let namespace = client.default_namespace().to_owned();
    let (client, leadership) = (client.clone(), leadership.clone());
    let service = service_fn(move |mut request: Request<Body>| {
        let (client, fence) = (client.clone(), LeaderOnly(leadership.clone()));
        async move {
            if is_write(request.method(), request.uri()) {
                if !fence.admits() {
                    return Err(BoxError::from(NotLeading));
                }
                request.extensions_mut().insert(fence);
            }
            client.send(request).await.map_err(BoxError::from)
        }
    });
    Client::new(service, namespace)
}

/// Whether a request changes what the server stores.
fn is_write(method: &Method, uri: &Uri) -> bool {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return false;
    }
    let is_dry_run = uri.query().is_some_and(|query| query.split('&').any(|it| it == "dryRun=All"));
    let is_question =
        *method == Method::POST && QUESTIONS.iter().any(|prefix| uri.path().starts_with(prefix));
    !is_dry_run && !is_question
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::Response;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{
        Api,
        api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
    };
    use serde_json::json;
    use tokio::sync::watch;

    use super::*;

    #[test]
    fn reads_dry_runs_and_questions_are_no_writes() {
        for (method, target, expected) in [
            (Method::GET, "/api/v1/namespaces/n/configmaps", false),
            (Method::HEAD, "/api", false),
            (Method::POST, "/api/v1/namespaces/n/configmaps?&fieldManager=a", true),
            (Method::PUT, "/api/v1/namespaces/n/configmaps/a", true),
            (Method::PATCH, "/api/v1/namespaces/n/configmaps/a?", true),
            (Method::PATCH, "/api/v1/namespaces/n/configmaps/a?&dryRun=All&force=true", false),
            (Method::PATCH, "/api/v1/namespaces/n/configmaps/a?fieldManager=dryRun=All", true),
            (Method::DELETE, "/api/v1/namespaces/n/configmaps/a", true),
            (Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", false),
            (Method::POST, "/apis/authentication.k8s.io/v1/tokenreviews", false),
            (Method::DELETE, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", true),
            (Method::POST, "/apis/authorization.k8s.io.example.com/v1/things", true),
            (Method::POST, "/api/v1/namespaces/n/serviceaccounts/a/token", true),
        ] {
            assert_eq!(is_write(&method, &target.parse().unwrap()), expected, "{method} {target}");
        }
    }

    /// A server that records its requests.
    fn server() -> (Client, Arc<Mutex<Vec<Method>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let service = service_fn(move |request: Request<Body>| {
            log.lock().unwrap().push(request.method().clone());
            async { Ok::<_, BoxError>(Response::new(Body::from(b"{\"metadata\":{}}".to_vec()))) }
        });
        (Client::new(service, "n"), seen)
    }

    #[tokio::test]
    async fn only_the_leader_writes() {
        let (client, seen) = server();
        let (lead, leads) = watch::channel(false);
        let api: Api<ConfigMap> = Api::default_namespaced(fenced(&client, &Leadership::following(leads)));
        let metadata = ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() };
        let object = ConfigMap { metadata, ..ConfigMap::default() };
        let patch = Patch::Merge(json!({}));
        for held in [false, true, false] {
            lead.send_replace(held);
            seen.lock().unwrap().clear();
            let errors = [
                api.create(&PostParams::default(), &object).await.err(),
                api.replace("a", &PostParams::default(), &object).await.err(),
                api.patch("a", &PatchParams::default(), &patch).await.err(),
                api.delete("a", &DeleteParams::default()).await.err(),
            ];
            assert!(api.get("a").await.is_ok(), "reads pass");
            for error in errors {
                assert_eq!(error.as_ref().is_some_and(NotLeading::is_cause_of), !held, "{error:?}");
            }
            assert_eq!(seen.lock().unwrap().len(), if held { 5 } else { 1 });
        }
    }
}
