//! How many requests an API server has answered, by its own count.

use std::collections::BTreeMap;

use anyhow::Result;
use kube::Client;

/// Requests to Cluster API's groups, by verb and resource.
pub(crate) async fn count(client: &Client) -> Result<BTreeMap<String, f64>> {
    let text = client.request_text(http::Request::get("/metrics").body(Vec::new())?).await?;
    let mut counts = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("apiserver_request_total{")) {
        let label = |name: &str| {
            let start = line.find(&format!("{name}=\""))? + name.len() + 2;
            line[start..].split('"').next()
        };
        if label("group").is_some_and(|group| group.ends_with("cluster.x-k8s.io")) {
            let [verb, resource, subresource] =
                ["verb", "resource", "subresource"].map(|name| label(name).unwrap_or_default());
            let slash = if subresource.is_empty() { "" } else { "/" };
            let count: f64 = line.rsplit(' ').next().unwrap_or_default().parse()?;
            *counts.entry(format!("{verb} {resource}{slash}{subresource}")).or_default() += count;
        }
    }
    Ok(counts)
}
