//! Health and metrics, as Kubernetes and Prometheus ask for them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::get,
};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use tokio::{sync::Semaphore, time::Instant};

use crate::{
    metrics::Metrics,
    readiness::Readiness,
    verdicts::{Asked, Verdicts},
};

/// Tokens that the API server is asked about at the same time. Further ones wait.
const REVIEWS: usize = 4;

/// `/healthz` and `/readyz`.
pub(crate) fn health_router(readiness: Readiness) -> Router {
    Router::new().route("/healthz", get(|| async { "ok" })).route("/readyz", get(ready)).with_state(readiness)
}

async fn ready(State(readiness): State<Readiness>) -> Response {
    let awaited = readiness.awaited();
    if awaited.is_empty() {
        let mut text = "ok".to_owned();
        for name in readiness.mentioned() {
            text = format!("{text}\nnot loaded yet: {name}");
        }
        for watch in readiness.outages().list() {
            text = format!("{text}\nbroken watch: {watch}");
        }
        text.into_response()
    } else {
        let text = format!("waiting for\n{}\n", awaited.join("\n"));
        (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
    }
}

/// `/metrics` for every client that can connect.
pub(crate) fn metrics_router(metrics: Metrics) -> Router {
    Router::new().route("/metrics", get(expose)).with_state(metrics)
}

/// `/metrics` for clients that the API server allows to get that URL.
pub(crate) fn guarded_metrics_router(metrics: Metrics, client: Client) -> Router {
    let guard = Guard { client, verdicts: Mutex::default(), reviews: Semaphore::new(REVIEWS) };
    metrics_router(metrics).layer(from_fn_with_state(Arc::new(guard), authorize))
}

/// Asks the API server who may get what, and remembers its answers for some seconds.
struct Guard {
    client: Client,
    verdicts: Mutex<Verdicts>,
    reviews: Semaphore,
}

impl Guard {
    async fn allows(&self, token: String, path: &str) -> Result<bool, kube::Error> {
        let asked = Asked::new(&token, path);
        let known = || self.verdicts().get(&asked, Instant::now());
        if let Some(verdict) = known() {
            return Ok(verdict);
        }
        // It is never closed.
        let _place = self.reviews.acquire().await;
        // An earlier caller may have asked the same.
        if let Some(verdict) = known() {
            return Ok(verdict);
        }
        let verdict = is_allowed(self.client.clone(), token, path).await?;
        self.verdicts().keep(asked, verdict, Instant::now());
        Ok(verdict)
    }

    fn verdicts(&self) -> MutexGuard<'_, Verdicts> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn expose(State(metrics): State<Metrics>) -> Response {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, content_type)], metrics.expose()).into_response()
}

async fn authorize(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let Some(token) = bearer_token(request.headers()) else {
        return (StatusCode::UNAUTHORIZED, "a bearer token is needed\n").into_response();
    };
    match guard.allows(token, request.uri().path()).await {
        Ok(true) => next.run(request).await,
        Ok(false) => {
            (StatusCode::FORBIDDEN, "this token's user may not get this non-resource URL\n").into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("cannot ask the API server: {error}\n"))
            .into_response(),
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    value.strip_prefix("Bearer ").map(|token| token.trim().to_owned()).filter(|token| !token.is_empty())
}

async fn is_allowed(client: Client, token: String, path: &str) -> Result<bool, kube::Error> {
    let review = TokenReview {
        spec: TokenReviewSpec { token: Some(token), ..TokenReviewSpec::default() },
        ..TokenReview::default()
    };
    let reviewed = Api::<TokenReview>::all(client.clone()).create(&PostParams::default(), &review).await?;
    let status = reviewed.status.unwrap_or_default();
    let Some(user) = status.user.filter(|_| status.authenticated == Some(true)) else {
        return Ok(false);
    };
    let access = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some(path.to_owned()),
                verb: Some("get".to_owned()),
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let answer = Api::<SubjectAccessReview>::all(client).create(&PostParams::default(), &access).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::body::to_bytes;
    use http_body_util::BodyExt;
    use serde_json::json;
    use tower::ServiceExt;

    use super::*;
    use crate::outages::Outages;

    /// An API server that knows one token and counts the reviews of tokens.
    fn api_server(reviews: &Arc<AtomicUsize>) -> Client {
        let reviews = Arc::clone(reviews);
        let answer = move |request: http::Request<kube::client::Body>| {
            let reviews = Arc::clone(&reviews);
            async move {
                let is_token_review = request.uri().path().contains("tokenreviews");
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let body = String::from_utf8_lossy(&body);
                let answer = if is_token_review {
                    reviews.fetch_add(1, Ordering::SeqCst);
                    json!({"spec": {}, "status": {"authenticated": body.contains("good"), "user": {"username": "u"}}})
                } else {
                    json!({"spec": {}, "status": {"allowed": body.contains("/metrics\"")}})
                };
                let answer = kube::client::Body::from(answer.to_string().into_bytes());
                Ok::<_, tower::BoxError>(Response::new(answer))
            }
        };
        Client::new(tower::service_fn(answer), "default")
    }

    #[tokio::test(start_paused = true)]
    async fn the_api_server_is_not_asked_again_for_some_seconds() {
        let reviews = Arc::new(AtomicUsize::new(0));
        let router = guarded_metrics_router(Metrics::default(), api_server(&reviews));
        let get = async |path: &str, token: &str| {
            let request = http::Request::get(path).header("authorization", format!("Bearer {token}"));
            let request = request.body(axum::body::Body::empty()).unwrap();
            router.clone().oneshot(request).await.unwrap().status()
        };
        let many = futures::future::join_all((0..50).map(|_| get("/metrics", "good"))).await;
        assert!(many.iter().all(|status| *status == StatusCode::OK));
        let asked = reviews.load(Ordering::SeqCst);
        assert!(asked <= REVIEWS, "asked {asked} times");
        for _ in 0..10 {
            assert_eq!(get("/metrics", "good").await, StatusCode::OK);
            assert_eq!(get("/metrics", "bad").await, StatusCode::FORBIDDEN);
            assert_eq!(get("/other", "good").await, StatusCode::FORBIDDEN);
        }
        assert_eq!(reviews.load(Ordering::SeqCst), asked + 2);
        tokio::time::advance(std::time::Duration::from_secs(11)).await;
        assert_eq!(get("/metrics", "good").await, StatusCode::OK);
        assert_eq!(reviews.load(Ordering::SeqCst), asked + 3);
    }

    #[tokio::test]
    async fn readiness_names_broken_watches() {
        let outages = Outages::default();
        let readiness = Readiness::new(outages.clone());
        let watch = outages.record();
        watch.failed("foos.g", "forbidden", true);
        let answer = ready(State(readiness)).await;
        assert_eq!(answer.status(), StatusCode::OK, "webhooks are served without watches");
        let text = to_bytes(answer.into_body(), 1000).await.unwrap();
        assert_eq!(text, "ok\nbroken watch: foos.g, for 0s: forbidden");
    }
}
