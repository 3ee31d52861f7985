//! Health and metrics, as Kubernetes and Prometheus ask for them.

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

use crate::{metrics::Metrics, readiness::Readiness};

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
    metrics_router(metrics).layer(from_fn_with_state(client, authorize))
}

async fn expose(State(metrics): State<Metrics>) -> Response {
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, content_type)], metrics.expose()).into_response()
}

async fn authorize(State(client): State<Client>, request: Request, next: Next) -> Response {
    let Some(token) = bearer_token(request.headers()) else {
        return (StatusCode::UNAUTHORIZED, "a bearer token is needed\n").into_response();
    };
    match is_allowed(client, token, request.uri().path()).await {
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
    use axum::body::to_bytes;

    use super::*;
    use crate::outages::Outages;

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
