//! What an answer other than success means.

use jiff::Timestamp;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::get::{Get, Reply, looks_like_web_page};
use crate::FetchError;

/// The error for an answer that is not a success.
pub(crate) fn explain(get: &Get, reply: &Reply, now: Timestamp) -> FetchError {
    let url = get.shown();
    let status = reply.status.as_u16();
    if is_rate_limit(reply.status, &reply.headers) {
        let host = get.url.host_str().unwrap_or_default().to_owned();
        // Whoever sent a token already has the larger quota.
        let variable = get.variable.filter(|_| get.authorization.is_none()).map(str::to_owned);
        return FetchError::RateLimited { host, reset: read_reset(&reply.headers, now), variable };
    }
    match reply.status {
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            FetchError::NotFound { what: describe_missing(get), available: Vec::new() }
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => FetchError::Unauthorized {
            url,
            status,
            detail: read_detail(&reply.body),
            variable: get.variable.map(str::to_owned),
        },
        _ => FetchError::Status { url, status, detail: read_detail(&reply.body) },
    }
}

/// Servers hide private things from strangers by calling them missing.
fn describe_missing(get: &Get) -> String {
    match get.variable {
        Some(variable) if get.authorization.is_none() => {
            format!("{} (if it is private, set {variable})", get.what)
        }
        _ => get.what.clone(),
    }
}

fn is_rate_limit(status: StatusCode, headers: &HeaderMap) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::FORBIDDEN
            && (number(headers, "x-ratelimit-remaining") == Some(0) || headers.contains_key(RETRY_AFTER))
}

fn read_reset(headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    let after = number(headers, RETRY_AFTER.as_str())
        .and_then(|seconds| now.as_second().checked_add(seconds))
        .and_then(|second| Timestamp::from_second(second).ok());
    after.or_else(|| Timestamp::from_second(number(headers, "x-ratelimit-reset")?).ok())
}

fn number(headers: &HeaderMap, name: &str) -> Option<i64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

/// A sentence from the body of a refusal: the usual fields of JSON, or a short plain text.
fn read_detail(body: &[u8]) -> String {
    let from_json = serde_json::from_slice::<serde_json::Value>(body).ok().and_then(|value| {
        ["/message", "/error_description", "/error", "/errors/0/message"]
            .iter()
            .find_map(|path| value.pointer(path)?.as_str().map(str::to_owned))
    });
    let text = from_json.unwrap_or_else(|| plain_detail(body));
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect::<String>().trim().to_owned()
}

fn plain_detail(body: &[u8]) -> String {
    match std::str::from_utf8(body) {
        Ok(text) if text.len() <= 200 && !looks_like_web_page(body) => text.to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::*;

    fn explained(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> FetchError {
        let reply = Reply {
            status: StatusCode::from_u16(status).unwrap(),
            headers: headers.iter().map(|(k, v)| (k.parse().unwrap(), v.parse().unwrap())).collect(),
            body: body.into(),
        };
        let get = Get::new(Url::parse("https://h/f").unwrap(), "the file f").variable("GITHUB_TOKEN");
        explain(&get, &reply, Timestamp::from_second(1000).unwrap())
    }

    #[test]
    fn limits_are_told_from_other_refusals() {
        let remaining = ("x-ratelimit-remaining", "0");
        for (status, headers, reset) in [
            (403, vec![remaining, ("x-ratelimit-reset", "5000")], Some(5000)),
            (429, vec![remaining, ("x-ratelimit-reset", "5000")], Some(5000)),
            (403, vec![("retry-after", "60")], Some(1060)),
            (429, vec![], None),
            (429, vec![("retry-after", "9223372036854775807")], None),
        ] {
            let FetchError::RateLimited { host, reset: found, variable } = explained(status, &headers, "")
            else {
                panic!("{status} {headers:?} is a rate limit");
            };
            assert_eq!((host.as_str(), variable.as_deref()), ("h", Some("GITHUB_TOKEN")));
            assert_eq!(found.map(Timestamp::as_second), reset);
        }
        let plain = explained(403, &[("x-ratelimit-remaining", "59")], r#"{"message":"no"}"#);
        assert_eq!(plain.to_string(), "access to https://h/f was refused (HTTP 403): no");
    }

    #[test]
    fn details_are_short_and_printable() {
        for (body, detail) in [
            (r#"{"message":"a\u001b[31mb"}"#, ": a [31mb"),
            (r#"{"errors":[{"code":"X","message":"deep"}]}"#, ": deep"),
            ("plain\n", ": plain"),
            ("<html>long</html>", ""),
            ("", ""),
        ] {
            assert_eq!(
                explained(400, &[], body).to_string(),
                format!("https://h/f answered with HTTP 400{detail}")
            );
        }
    }

    #[test]
    fn missing_and_gone_are_not_found() {
        assert!(explained(404, &[], "").is_not_found());
        assert!(explained(410, &[], "").is_not_found());
        assert!(!explained(401, &[], "").is_not_found());
    }
}
