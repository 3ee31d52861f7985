//! The `Cluster` kind of `cluster.x-k8s.io`.
