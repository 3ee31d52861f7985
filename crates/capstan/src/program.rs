//! What this program was called.

use std::{env, path::Path, sync::OnceLock};

/// The name that it is installed under.
pub(crate) const CAPSTAN: &str = "capstan";
/// The name of upstream's program: a link of that name to this one is used by scripts that expect it.
pub(crate) const CLUSTERCTL: &str = "clusterctl";

/// `clusterctl` if the program was called so, else `capstan`.
pub(crate) fn name() -> &'static str {
    static CALLED: OnceLock<&'static str> = OnceLock::new();
    CALLED.get_or_init(|| {
        let called = env::args_os().next();
        let stem = called.as_deref().and_then(|it| Path::new(it).file_stem());
        if stem.is_some_and(|it| it == CLUSTERCTL) { CLUSTERCTL } else { CAPSTAN }
    })
}
