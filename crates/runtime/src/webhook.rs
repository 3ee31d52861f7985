//! Conversion webhooks: objects in one API version in, the same objects in another out.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, State},
    routing::post,
};
use capstan_api::contract::GroupKind;
use kube::core::{
    Status,
    conversion::{ConversionRequest, ConversionResponse, ConversionReview},
};
use serde_json::Value;
use tracing::{debug, warn};

/// The largest review that is read: a page of 500 large objects fits.
const BODY_LIMIT: usize = 64 << 20;

/// Converts the objects of one kind to the given `apiVersion`.
pub type Converter = Arc<dyn Fn(Value, &str) -> Result<Value, String> + Send + Sync>;

/// The converters of a process, by kind.
#[derive(Clone, Default)]
pub struct Converters {
    by_kind: HashMap<GroupKind, Converter>,
}

impl std::fmt::Debug for Converters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.by_kind.keys()).finish()
    }
}

impl Converters {
    /// Adds a kind.
    pub fn add(&mut self, kind: GroupKind, converter: Converter) {
        self.by_kind.insert(kind, converter);
    }

    /// Whether there is no converter at all.
    pub fn is_empty(&self) -> bool {
        self.by_kind.is_empty()
    }

    /// The kinds that are converted.
    pub fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        self.by_kind.keys()
    }

    /// Serves `/convert`.
    pub fn router(self) -> Router {
        Router::new()
            .route("/convert", post(convert))
            .layer(DefaultBodyLimit::max(BODY_LIMIT))
            .with_state(Arc::new(self))
    }

    fn convert(&self, object: Value, desired: &str) -> Result<Value, String> {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, _version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let kind = GroupKind::new(group, kind);
        let converter =
            self.by_kind.get(&kind).ok_or_else(|| format!("{kind} is not converted by this webhook"))?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        converter(object, desired).map_err(|error| {
            format!("cannot convert {kind} {name:?} from {api_version} to {desired}: {error}")
        })
    }
}

async fn convert(
    State(converters): State<Arc<Converters>>,
    Json(review): Json<ConversionReview>,
) -> Json<ConversionReview> {
    let request = match ConversionRequest::from_review(review) {
        Ok(request) => request,
        Err(error) => {
            let status = Status::failure(&error.to_string(), "BadRequest").boxed();
            return Json(ConversionResponse::invalid(*status).into_review());
        }
    };
    let desired = request.desired_api_version.clone();
    debug!(objects = request.objects.len(), to = %desired, "converting");
    let converted: Result<Vec<_>, _> =
        request.objects.iter().map(|object| converters.convert(object.clone(), &desired)).collect();
    let response = ConversionResponse::for_request(request);
    Json(
        match converted {
            Ok(objects) => response.success(objects),
            Err(message) => {
                warn!(%message, "conversion failed");
                response.failure(*Status::failure(&message, "Invalid").boxed())
            }
        }
        .into_review(),
    )
}
