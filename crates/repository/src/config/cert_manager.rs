//! Where cert-manager comes from.

use std::{fmt, time::Duration};

use super::value::Value;
use super::{ConfigError, fields::Fields, variables::Variables};
use crate::remote::shown_address;

pub(super) const KEY: &str = "cert-manager";
const DEFAULT_VERSION: &str = "v1.21.1";
const DEFAULT_URL: &str = "https://github.com/cert-manager/cert-manager/releases/v1.21.1/cert-manager.yaml";
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);

/// Which cert-manager to install.
#[derive(Clone, PartialEq, Eq)]
pub struct CertManager {
    /// Where its releases are.
    pub url: String,
    /// The version to install.
    pub version: String,
    /// How long to wait until it works.
    pub timeout: Duration,
    /// It is installed externally: it is only awaited.
    pub externally_provisioned: bool,
}

// The address may hold a password or a signature.
impl fmt::Debug for CertManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertManager")
            .field("url", &shown_address(&self.url))
            .field("version", &self.version)
            .field("timeout", &self.timeout)
            .field("externally_provisioned", &self.externally_provisioned)
            .finish()
    }
}

impl CertManager {
    /// What its folder in repositories is called, and its component among the image overrides.
    pub const LABEL: &'static str = KEY;
}

pub(super) fn read(variables: &Variables) -> Result<(CertManager, Vec<String>), ConfigError> {
    let mut warnings: Vec<_> = super::check_environment(variables, KEY)?.into_iter().collect();
    let mut fields = Fields::of(variables.in_file(KEY).unwrap_or(&Value::Null), KEY)?;
    let url = match fields.text("url")? {
        Some(url) => super::expand_address(&url, "cert-manager.url", variables)?,
        None => DEFAULT_URL.to_owned(),
    };
    let version = fields.text("version")?.unwrap_or_else(|| DEFAULT_VERSION.to_owned());
    let timeout = match fields.text("timeout")? {
        None => DEFAULT_TIMEOUT,
        Some(text) => parse_duration(&text).unwrap_or_else(|| {
            warnings.push(format!(
                "cert-manager.timeout: {text:?} is not a duration such as 10m or 1h30m; 10m is used"
            ));
            DEFAULT_TIMEOUT
        }),
    };
    let externally_provisioned = match fields.text("externallyProvisioned")? {
        None => false,
        Some(text) => parse_bool(&text).ok_or_else(|| ConfigError::Setting {
            setting: "cert-manager.externallyProvisioned".to_owned(),
            expected: "true or false".to_owned(),
            found: format!("{text:?}"),
        })?,
    };
    warnings.extend(fields.unknown());
    Ok((CertManager { url, version, timeout, externally_provisioned }, warnings))
}

/// Go's `strconv.ParseBool`.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Go's `time.ParseDuration`; a wait cannot be negative.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|it: char| !it.is_ascii_digit() && it != '.')?;
        let (number, others) = rest.split_at_checked(end)?;
        let unit_end = others.find(|it: char| it.is_ascii_digit() || it == '.').unwrap_or(others.len());
        let (unit, others) = others.split_at_checked(unit_end)?;
        let factor = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * factor;
        rest = others;
    }
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for (text, millis) in [
            ("10m", Some(600_000)),
            ("10m0s", Some(600_000)),
            ("1h30m", Some(5_400_000)),
            ("1.5s", Some(1_500)),
            (".5s", Some(500)),
            ("+2s", Some(2_000)),
            ("250ms", Some(250)),
            ("0", Some(0)),
            ("", None),
            ("10", None),
            ("m", None),
            ("10 m", None),
            ("10d", None),
            ("-1s", None),
            ("1.2.3s", None),
            ("1h2", None),
        ] {
            assert_eq!(parse_duration(text), millis.map(Duration::from_millis), "{text:?}");
        }
    }
}
