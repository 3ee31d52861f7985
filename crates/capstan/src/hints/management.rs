//! What can be done about errors of a management cluster.

use capstan_management::{ServerError, apply::ApplyError};

use super::Hint;

impl Hint for ServerError {
    fn hint(&self) -> Option<String> {
        if self.is_web_page() {
            return Some(
                "a login page, a proxy or another server is at that address: correct the server in the kubeconfig, or \
                 choose another one by --kubeconfig or --kubeconfig-context"
                    .to_owned(),
            );
        }
        match self.status() {
            Some(status) if status.code == 401 => Some(
                "the server does not accept the credentials of the kubeconfig: log in again, or name another one by \
                 --kubeconfig or --kubeconfig-context"
                    .to_owned(),
            ),
            Some(status) if status.is_forbidden() => Some(
                "the user of the kubeconfig may not do that: use one that is bound to ClusterRole cluster-admin"
                    .to_owned(),
            ),
            Some(_) => None,
            None => Some(format!(
                "check whether {} can be reached: kubectl get --raw /readyz; --kubeconfig and --kubeconfig-context \
                 choose another server",
                self.url
            )),
        }
    }
}

impl Hint for ApplyError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Server(error) => error.hint(),
            Self::UnknownKind { object } => Some(format!(
                "install the CRD of {} first: it is neither on the server nor among the objects",
                object.kind
            )),
            Self::NotEstablished { object, .. } => {
                Some(format!("look at its conditions: kubectl get crd {} -o yaml", object.name))
            }
        }
    }
}
