//! What an answer other than success means.

use jiff::Timestamp;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::get::{Get, Reply, looks_like_web_page};
use super::shown::{authority, shown};
use crate::FetchError;
use crate::error::Withheld;

/// The error for an answer that is not a success.
pub(crate) fn explain(get: &Get, reply: &Reply, now: Timestamp) -> FetchError {
    let url = get.shown();
    let status = reply.status.as_u16();
    let is_refused = matches!(reply.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if is_rate_limit(reply.status, &reply.headers) {
        let host = reply.url.host_str().unwrap_or_default().to_owned();
        // A request with a token already has the larger quota, and another server would not see the token.
        let helps = get.authorization.is_none() && reply.direct;
        let variable = get.variable.filter(|_| helps).map(str::to_owned);
        let reset = read_reset(&reply.headers, now);
        let withheld = find_withheld(get).filter(|_| helps);
        return FetchError::RateLimited { host, reset, variable, withheld };
    }
    if is_refused && !reply.direct {
        return FetchError::RefusedElsewhere { url, target: shown(&reply.url), status };
    }
    match reply.status {
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            FetchError::NotFound { what: describe_missing(get), available: Vec::new() }
        }
        _ if is_refused => FetchError::Unauthorized {
            url,
            status,
            detail: read_detail(get, &reply.body),
            variable: get.variable.map(str::to_owned),
            withheld: find_withheld(get),
        },
        _ => FetchError::Status { url, status, detail: read_detail(get, &reply.body) },
    }
}

/// Servers hide private things from strangers by calling them missing.
fn describe_missing(get: &Get) -> String {
    match (find_withheld(get), get.variable) {
        (Some(withheld), _) => format!("{} (if it is private, {withheld})", get.what),
        (None, Some(variable)) if get.authorization.is_none() => {
            format!("{} (if it is private, set {variable})", get.what)
        }
        _ => get.what.clone(),
    }
}

fn find_withheld(get: &Get) -> Option<Box<Withheld>> {
    let hosts_variable = get.withheld.filter(|_| get.authorization.is_none())?;
    Some(Box::new(Withheld { host: authority(&get.url), variable: hosts_variable.to_owned() }))
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

/// A sentence from the body of a refusal: the usual fields of JSON, or a short plain text. One that quotes what we have
/// shown the server is not repeated.
fn read_detail(get: &Get, body: &[u8]) -> String {
    let from_json = serde_json::from_slice::<serde_json::Value>(body).ok().and_then(|value| {
        ["/message", "/error_description", "/error", "/errors/0/message"]
            .iter()
            .find_map(|path| value.pointer(path)?.as_str().map(str::to_owned))
    });
    let text = from_json.unwrap_or_else(|| plain_detail(body));
    if get.secrets().iter().any(|secret| text.contains(secret)) {
        return String::new();
    }
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

    use super::super::Credentials;
    use super::super::get::{basic, bearer};
    use super::*;

    fn reply(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Reply {
        Reply {
            url: Url::parse("https://h/f").unwrap(),
            direct: true,
            status: StatusCode::from_u16(status).unwrap(),
            headers: headers.iter().map(|(k, v)| (k.parse().unwrap(), v.parse().unwrap())).collect(),
            body: body.into(),
        }
    }

    fn get() -> Get {
        Get::new(Url::parse("https://h/f").unwrap(), "the file f").variable("GITHUB_TOKEN")
    }

    fn explained(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> FetchError {
        explain(&get(), &reply(status, headers, body), Timestamp::from_second(1000).unwrap())
    }

    fn withheld_in(error: &FetchError) -> String {
        match error {
            FetchError::RateLimited { withheld: Some(withheld), .. }
            | FetchError::Unauthorized { withheld: Some(withheld), .. } => withheld.to_string(),
            _ => String::new(),
        }
    }

    #[test]
    fn a_token_that_the_host_may_not_see_is_told_instead_of_asked_for() {
        for (status, headers) in [(401, &[][..]), (403, &[]), (404, &[]), (429, &[])] {
            let reply = reply(status, headers, "");
            let get = get().withheld(Some("GITHUB_HOSTS"));
            let error = explain(&get, &reply, Timestamp::UNIX_EPOCH);
            let words = format!("{error} {}", withheld_in(&error));
            assert!(words.contains("GITHUB_HOSTS must name h"), "{status}: {words}");
            assert!(!words.contains("GITHUB_TOKEN"), "{status}: {words}");
            // One that was sent is not withheld.
            let error =
                explain(&get.authorization(Some("x".parse().unwrap())), &reply, Timestamp::UNIX_EPOCH);
            assert!(!format!("{error} {}", withheld_in(&error)).contains("GITHUB_HOSTS"), "{status}");
        }
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
            let FetchError::RateLimited { host, reset: found, variable, withheld: None } =
                explained(status, &headers, "")
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
    fn another_server_is_named_and_asks_for_no_token() {
        let get = get().withheld(Some("GITHUB_HOSTS"));
        let elsewhere = |status: u16| {
            let url = Url::parse("https://user:secret@other:8443/f?secret").unwrap();
            let reply =
                Reply { url, direct: false, ..reply(status, &[], r#"{"message":"give me your token"}"#) };
            explain(&get, &reply, Timestamp::UNIX_EPOCH)
        };
        for status in [401, 403] {
            let expected = format!(
                "https://h/f was redirected to https://other:8443/f, which refused access (HTTP {status})"
            );
            assert_eq!(elsewhere(status).to_string(), expected);
        }
        let error = elsewhere(429);
        assert!(
            matches!(&error, FetchError::RateLimited { host, variable: None, withheld: None, .. } if host == "other"),
            "{error:?}"
        );
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
    fn a_server_that_quotes_credentials_is_not_repeated() {
        let user = Credentials { username: "me".to_owned(), password: "p:w".to_owned() };
        let with_password = Url::parse("https://me:p%3Aw@h/f").unwrap();
        for (get, quoted) in [
            (get().authorization(bearer("t0ken")), "t0ken"),
            (get().authorization(basic(&user)), "p:w"),
            (get().authorization(basic(&user)), "bWU6cDp3"),
            (Get { url: with_password, ..get() }, "p:w"),
        ] {
            let words = |detail: &str| {
                explain(&get, &reply(400, &[], &format!("bad: {detail}")), Timestamp::UNIX_EPOCH).to_string()
            };
            assert_eq!(words(quoted), "https://h/f answered with HTTP 400");
            assert_eq!(words("luck"), "https://h/f answered with HTTP 400: bad: luck");
        }
    }

    #[test]
    fn missing_and_gone_are_not_found() {
        assert!(explained(404, &[], "").is_not_found());
        assert!(explained(410, &[], "").is_not_found());
        assert!(!explained(401, &[], "").is_not_found());
    }
}
