//! Health and metrics, as Kubernetes and Prometheus ask for them.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

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
use tracing::{info, warn};

use crate::{
    metrics::Metrics,
    readiness::Readiness,
    refusals::Limit,
    serve::Peer,
    verdicts::{Asked, OF_PEER, Questions, Verdicts},
};

/// Tokens that the API server is asked about at the same time. Further ones wait.
const REVIEWS: usize = 4;
/// How often it is logged that the API server cannot be asked about them.
const LOG_PERIOD: Duration = Duration::from_mins(1);

/// `/healthz` and `/readyz`.
pub(crate) fn health_router(readiness: Readiness) -> Router {
    let health = Health { readiness, logged: Arc::default() };
    Router::new().route("/healthz", get(|| async { "ok" })).route("/readyz", get(ready)).with_state(health)
}

#[derive(Clone)]
struct Health {
    readiness: Readiness,
    /// What was awaited when that was last logged.
    logged: Arc<Mutex<Vec<String>>>,
}

async fn ready(State(health): State<Health>) -> Response {
    let readiness = &health.readiness;
    let awaited = readiness.awaited();
    let mut logged = health.logged.lock().unwrap_or_else(PoisonError::into_inner);
    if *logged != awaited {
        info!(?awaited, "readiness changed");
        logged.clone_from(&awaited);
    }
    drop(logged);
    if awaited.is_empty() {
        let mut text = "ok".to_owned();
        for name in readiness.mentioned() {
            text = format!("{text}\nnot loaded yet: {}", without_reason(&name));
        }
        for watch in readiness.outages().list() {
            text = format!("{text}\nbroken watch: {}", without_reason(&watch));
        }
        text.into_response()
    } else {
        let awaited: Vec<_> = awaited.iter().map(|it| without_reason(it)).collect();
        let text = format!("waiting for\n{}\n", awaited.join("\n"));
        (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
    }
}

/// A line without the reason in it. Reasons quote the API server, and everyone who can connect may ask here; they are
/// in the log.
fn without_reason(line: &str) -> &str {
    line.split_once(": ").map_or(line, |(name, _)| name)
}

/// `/metrics` for every client that can connect.
pub(crate) fn metrics_router(metrics: Metrics) -> Router {
    Router::new().route("/metrics", get(expose)).with_state(metrics)
}

/// `/metrics` for clients that the API server allows to get that URL.
pub(crate) fn guarded_metrics_router(metrics: Metrics, client: Client) -> Router {
    let guard = Guard {
        client,
        verdicts: Mutex::default(),
        questions: Mutex::default(),
        reviews: Semaphore::new(REVIEWS),
        failure_logged: Mutex::default(),
    };
    metrics_router(metrics).layer(from_fn_with_state(Arc::new(guard), authorize))
}

/// Asks the API server who may get what, and remembers its answers for some seconds.
struct Guard {
    client: Client,
    verdicts: Mutex<Verdicts>,
    questions: Mutex<Questions>,
    reviews: Semaphore,
    failure_logged: Mutex<Option<Instant>>,
}

/// Why there is no verdict.
enum NoVerdict {
    /// Too many new tokens.
    Limit(Limit),
    /// The API server cannot be asked.
    Failure,
}

impl Guard {
    async fn allows(&self, peer: IpAddr, token: String, path: &str) -> Result<bool, NoVerdict> {
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
        let now = Instant::now();
        if !self.verdicts().is_known(&asked, now) && !lock(&self.questions).ask(peer, now) {
            return Err(NoVerdict::Limit(Limit::TokenReviews(OF_PEER.per_minute())));
        }
        match is_allowed(self.client.clone(), token, path).await {
            Ok(verdict) => {
                self.verdicts().keep(asked, verdict, Instant::now());
                Ok(verdict)
            }
            Err(error) => {
                self.log_failure(&error);
                Err(NoVerdict::Failure)
            }
        }
    }

    fn log_failure(&self, error: &kube::Error) {
        let (mut logged, now) = (lock(&self.failure_logged), Instant::now());
        if logged.is_none_or(|at| now >= at + LOG_PERIOD) {
            *logged = Some(now);
            warn!(%error, "cannot ask the API server who may read metrics");
        }
    }

    fn verdicts(&self) -> MutexGuard<'_, Verdicts> {
        lock(&self.verdicts)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn expose(State(metrics): State<Metrics>) -> Response {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, content_type)], metrics.expose()).into_response()
}

async fn authorize(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let Some(token) = bearer_token(request.headers()) else {
        return (StatusCode::UNAUTHORIZED, "a bearer token is needed\n").into_response();
    };
    let peer = request.extensions().get::<Peer>().map_or(Ipv6Addr::UNSPECIFIED.into(), |peer| peer.0);
    match guard.allows(peer, token, request.uri().path()).await {
        Ok(true) => next.run(request).await,
        Ok(false) => {
            (StatusCode::FORBIDDEN, "this token's user may not get this non-resource URL\n").into_response()
        }
        Err(NoVerdict::Limit(limit)) => limit.into_response(),
        Err(NoVerdict::Failure) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "cannot ask the API server\n").into_response()
        }
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
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(get("/metrics", "good").await, StatusCode::OK);
        assert_eq!(reviews.load(Ordering::SeqCst), asked + 3);
    }

    #[tokio::test]
    async fn readiness_names_broken_watches() {
        let outages = Outages::default();
        let readiness = Readiness::new(outages.clone());
        let watch = outages.record();
        watch.failed("foos.g", "forbidden", true);
        let answer = ready(State(Health { readiness, logged: Arc::default() })).await;
        assert_eq!(answer.status(), StatusCode::OK, "webhooks are served without watches");
        let text = to_bytes(answer.into_body(), 1000).await.unwrap();
        assert_eq!(text, "ok\nbroken watch: foos.g, for 0s");
    }

    #[tokio::test]
    async fn strangers_are_not_shown_reasons() {
        let readiness = Readiness::default();
        let gate = readiness.gate("webhooks");
        gate.hold("secrets is forbidden: User u cannot get it");
        readiness.expect("foos.g");
        let answer = ready(State(Health { readiness, logged: Arc::default() })).await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        let text = to_bytes(answer.into_body(), 1000).await.unwrap();
        assert_eq!(text, "waiting for\nthe first list of foos.g\nwebhooks\n");

        let broken = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Err::<Response<kube::client::Body>, tower::BoxError>("10.9.8.7 is unreachable".into())
        });
        let router = guarded_metrics_router(Metrics::default(), Client::new(broken, "default"));
        let (status, text) = ask(&router, "10.0.0.1", "t").await;
        assert_eq!(
            (status, text.as_str()),
            (StatusCode::INTERNAL_SERVER_ERROR, "cannot ask the API server\n")
        );
    }

    async fn ask(router: &Router, peer: &str, token: &str) -> (StatusCode, String) {
        let request = http::Request::get("/metrics")
            .header("authorization", format!("Bearer {token}"))
            .extension(Peer(peer.parse().unwrap()))
            .body(axum::body::Body::empty())
            .unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        let text = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(text.to_vec()).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn made_up_tokens_do_not_become_load_on_the_api_server() {
        let reviews = Arc::new(AtomicUsize::new(0));
        let router = guarded_metrics_router(Metrics::default(), api_server(&reviews));
        assert_eq!(ask(&router, "10.0.0.1", "good").await.0, StatusCode::OK);
        let start = Instant::now();
        let mut refused = None;
        for number in 0..1000 {
            let (status, text) = ask(&router, "10.0.0.2", &format!("made-up-{number}")).await;
            if status == StatusCode::TOO_MANY_REQUESTS {
                refused = Some(text);
            }
            tokio::time::advance(Duration::from_millis(20)).await;
        }
        let asked = reviews.load(Ordering::SeqCst);
        assert!(start.elapsed() >= Duration::from_secs(20) && asked < 40, "asked {asked} times");
        assert!(refused.is_some_and(|text| text.contains("60 new tokens a minute")));
        // Neither a peer with a token that is known nor one with a new token of its own has to wait.
        assert_eq!(ask(&router, "10.0.0.2", "good").await.0, StatusCode::OK);
        assert_eq!(ask(&router, "10.0.0.3", "good, and new").await.0, StatusCode::OK);
    }
}
