//! How many requests an API server has answered, by its own count.

use std::collections::BTreeMap;

use kube::Client;

/// Requests for objects of groups that fit, by verb and resource.
pub async fn count(client: &Client, fits: impl Fn(&str) -> bool) -> BTreeMap<String, u64> {
    let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
    let text = client.request_text(request).await.unwrap();
    let mut counts = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("apiserver_request_total{")) {
        let label = |name: &str| {
            let start = line.find(&format!("{name}=\""))? + name.len() + 2;
            line[start..].split('"').next()
        };
        if fits(label("group").unwrap_or_default()) {
            let [verb, resource, subresource] =
                ["verb", "resource", "subresource"].map(|name| label(name).unwrap_or_default());
            let slash = if subresource.is_empty() { "" } else { "/" };
            let count: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
            *counts.entry(format!("{verb} {resource}{slash}{subresource}")).or_default() += count;
        }
    }
    counts
}

/// Whether a key of [`count`] stands for a write.
pub fn is_write(name: &str) -> bool {
    let verb = name.split(' ').next().unwrap_or_default();
    ["POST", "PUT", "PATCH", "APPLY", "DELETE"].contains(&verb)
}

/// Whether a group is one of Cluster API's.
pub fn is_ours(group: &str) -> bool {
    group.ends_with("cluster.x-k8s.io")
}
