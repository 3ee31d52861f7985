//! What is in the Secret, and what is to be done about it at a given moment.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::authority::{Authority, LEAF_LIFETIME, after, before};
use crate::tls::CertificateError;

const CERTIFICATE: &str = "ca.crt";
const KEY: &str = "ca.key";
const NEXT_CERTIFICATE: &str = "next.crt";
const NEXT_KEY: &str = "next.key";
const PREVIOUS_CERTIFICATE: &str = "previous.crt";
const PREVIOUS_UNTIL: &str = "previous-until";

/// An authority's successor is created this long before the authority expires.
const ROTATE_BEFORE: SignedDuration = SignedDuration::from_hours(90 * 24);
/// How long a promotion may take to reach every replica.
const PROPAGATION_LIMIT: SignedDuration = SignedDuration::from_hours(1);

/// An authority whose validity starts later than this from now is not usable: the clock that made it was wrong.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_hours(1);

/// The contents of the Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Signs, and is trusted.
    pub active: Authority,
    /// Is trusted, and will sign.
    pub next: Option<Authority>,
    /// Has signed, and is trusted for some time.
    pub previous: Option<Previous>,
}

/// An authority that signs no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Previous {
    /// The certificate in PEM form.
    pub certificate: String,
    /// When nothing that it signed is valid any more.
    pub until: Timestamp,
}

/// The next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing before this moment.
    Wait(Timestamp),
    /// Make a successor that is trusted but does not sign yet.
    Introduce,
    /// Let the successor sign.
    Promote,
    /// Trust the predecessor no more.
    Retire,
    /// Create a new authority: no client can trust the stored ones.
    Replace,
}

/// How far the Secret's bundle has propagated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// Some targets still lack it.
    Growing,
    /// All targets have it that we are allowed to write.
    Possible,
    /// All targets have it.
    Everywhere,
}

/// The step that is due.
pub fn decide(stored: &Stored, now: Timestamp, spread: Spread) -> Step {
    let lasts =
        |authority: &Authority| authority.not_after > now && authority.not_before <= after(now, CLOCK_SKEW);
    if !lasts(&stored.active) {
        // Every webhook call fails already: replacing it breaks nothing.
        return if stored.next.as_ref().is_some_and(lasts) { Step::Promote } else { Step::Replace };
    }
    if let Some(next) = &stored.next {
        let last_call = before(stored.active.not_after, LEAF_LIFETIME);
        return match () {
            () if !lasts(next) => Step::Introduce,
            () if spread == Spread::Everywhere => Step::Promote,
            () if spread == Spread::Growing => Step::Wait(stored.active.not_after),
            // The targets that lack the bundle fail either way: now, or when the old authority expires. So wait.
            () if last_call <= now => Step::Promote,
            () => Step::Wait(last_call),
        };
    }
    if let Some(previous) = &stored.previous {
        return if previous.until <= now {
            Step::Retire
        } else {
            Step::Wait(previous.until.min(stored.active.not_after))
        };
    }
    let rotate_at = before(stored.active.not_after, ROTATE_BEFORE);
    if rotate_at <= now { Step::Introduce } else { Step::Wait(rotate_at) }
}

/// The state after a step.
pub fn apply(step: Step, stored: Stored, now: Timestamp) -> Result<Stored, CertificateError> {
    Ok(match step {
        Step::Wait(_) => stored,
        Step::Introduce => Stored { next: Some(Authority::make(now)?), ..stored },
        Step::Promote => match stored.next {
            None => Stored { next: None, ..stored },
            Some(next) => {
                let until = after(now, LEAF_LIFETIME + PROPAGATION_LIMIT);
                let previous = Some(Previous { certificate: stored.active.certificate, until });
                Stored { active: next, next: None, previous }
            }
        },
        Step::Retire => Stored { previous: None, ..stored },
        Step::Replace => Stored::begin(now)?,
    })
}

impl Stored {
    /// A first authority.
    pub fn begin(now: Timestamp) -> Result<Self, CertificateError> {
        Ok(Self { active: Authority::make(now)?, next: None, previous: None })
    }

    /// Reads a Secret's data; says what is wrong if it holds no authority that can be used.
    ///
    /// A successor or predecessor that cannot be read is as good as none.
    pub fn read(data: &BTreeMap<String, ByteString>) -> Result<Self, String> {
        let bytes = |name: &str| data.get(name).map(|bytes| bytes.0.as_slice());
        let missing = |name: &str| format!("it has no {name}");
        let certificate = bytes(CERTIFICATE).ok_or_else(|| missing(CERTIFICATE))?;
        let active = Authority::read(certificate, bytes(KEY).ok_or_else(|| missing(KEY))?)
            .map_err(|why| format!("{CERTIFICATE} and {KEY}: {why}"))?;
        let next = bytes(NEXT_CERTIFICATE)
            .zip(bytes(NEXT_KEY))
            .and_then(|(certificate, key)| Authority::read(certificate, key).ok());
        let text = |name: &str| bytes(name).and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
        let previous = text(PREVIOUS_CERTIFICATE).filter(|it| is_certificate(it)).and_then(|certificate| {
            let until = text(PREVIOUS_UNTIL)?.trim().parse().ok()?;
            Some(Previous { certificate, until })
        });
        Ok(Self { active, next, previous })
    }

    /// The Secret's `data`; null removes a key.
    pub fn data(&self) -> Value {
        let encode = |text: &str| json!(ByteString(text.as_bytes().to_vec()));
        let next = self.next.as_ref();
        let previous = self.previous.as_ref();
        json!({
            CERTIFICATE: encode(&self.active.certificate),
            KEY: encode(&self.active.key),
            NEXT_CERTIFICATE: next.map(|it| encode(&it.certificate)),
            NEXT_KEY: next.map(|it| encode(&it.key)),
            PREVIOUS_CERTIFICATE: previous.map(|it| encode(&it.certificate)),
            PREVIOUS_UNTIL: previous.map(|it| encode(&it.until.to_string())),
        })
    }

    /// The certificates that are to be trusted, in PEM form.
    pub fn bundle(&self) -> String {
        let next = self.next.as_ref().map(|it| &it.certificate);
        let previous = self.previous.as_ref().map(|it| &it.certificate);
        let mut bundle = String::new();
        for certificate in [Some(&self.active.certificate), next, previous].into_iter().flatten() {
            bundle.push_str(certificate.trim());
            bundle.push('\n');
        }
        bundle
    }
}

/// Whether the API server would take a text as part of a bundle.
fn is_certificate(pem: &str) -> bool {
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    let whole: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    whole.is_ok_and(|found| {
        !found.is_empty() && found.iter().all(|it| super::validity::validity(it).is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::{
        Spread::{Everywhere, Growing, Possible},
        *,
    };

    fn start() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn days(number: i64) -> Timestamp {
        start() + SignedDuration::from_hours(24 * number)
    }

    fn read(stored: &Stored) -> Stored {
        let mut data = stored.data();
        data.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        Stored::read(&serde_json::from_value(data).unwrap()).unwrap()
    }

    #[test]
    fn the_life_of_an_authority() {
        let first = Stored::begin(start()).unwrap();
        let old = first.active.clone();
        assert_eq!(decide(&first, start(), Everywhere), Step::Wait(days(275)));
        assert_eq!(decide(&first, days(275), Everywhere), Step::Introduce);

        let both = read(&apply(Step::Introduce, first, days(275)).unwrap());
        let new = both.next.clone().unwrap();
        assert_eq!(both.active, old, "the new one does not sign yet");
        assert_eq!(both.bundle(), format!("{}{}", old.certificate, new.certificate));
        assert_eq!(decide(&both, days(275), Growing), Step::Wait(days(365)), "a target lacks it");
        assert_eq!(decide(&both, days(275), Everywhere), Step::Promote);
        // Targets that we may not write fail only when the old authority is about to expire.
        assert_eq!(decide(&both, days(275), Possible), Step::Wait(days(358)));
        assert_eq!(decide(&both, days(358), Possible), Step::Promote);
        assert_eq!(decide(&both, days(358), Growing), Step::Wait(days(365)), "seconds matter more than days");

        let promoted = read(&apply(Step::Promote, both, days(276)).unwrap());
        assert_eq!((&promoted.active, &promoted.next), (&new, &None));
        assert_eq!(promoted.bundle(), format!("{}{}", new.certificate, old.certificate));
        let until = days(283) + SignedDuration::from_hours(1);
        assert_eq!(
            decide(&promoted, days(276), Everywhere),
            Step::Wait(until),
            "what the old one signed lives a week"
        );
        assert_eq!(decide(&promoted, until, Growing), Step::Retire);

        let retired = read(&apply(Step::Retire, promoted, until).unwrap());
        assert_eq!(retired.bundle(), new.certificate);
        assert_eq!(decide(&retired, until, Everywhere), Step::Wait(days(275 + 275)));
    }

    #[test]
    fn an_untrusted_authority_is_replaced_at_once() {
        let first = Stored::begin(start()).unwrap();
        assert_eq!(decide(&first, days(365), Everywhere), Step::Replace);
        let replaced = apply(Step::Replace, first.clone(), days(366)).unwrap();
        assert_eq!(decide(&replaced, days(366), Growing), Step::Wait(days(366 + 275)));
        let both = apply(Step::Introduce, first.clone(), days(300)).unwrap();
        assert_eq!(decide(&both, days(365), Growing), Step::Promote, "the successor is at hand");
        assert_eq!(decide(&both, days(700), Growing), Step::Replace);
        // A certificate that is not valid yet is not trusted either.
        let hour = SignedDuration::from_hours(1);
        assert_eq!(decide(&first, start() - hour * 2, Growing), Step::Wait(days(275)));
        assert_eq!(decide(&first, start() - hour * 3, Growing), Step::Replace);
        let stale = Stored { next: Some(first.active), ..replaced };
        assert_eq!(
            decide(&stale, days(367), Everywhere),
            Step::Introduce,
            "a successor that is past its time"
        );
    }

    #[test]
    fn no_predecessor_is_forgotten_early() {
        let first = Stored::begin(start()).unwrap();
        let until = days(280);
        let previous = Some(Previous { certificate: first.active.certificate.clone(), until });
        let stored = Stored { previous, ..first };
        assert_eq!(decide(&stored, days(276), Everywhere), Step::Wait(until), "one change after the other");
    }

    #[test]
    fn secrets_with_anything_in_them() {
        let good = apply(Step::Introduce, Stored::begin(start()).unwrap(), start()).unwrap();
        let good = Stored { previous: Some(Previous { certificate: good.bundle(), until: start() }), ..good };
        let change = |name: &str, value: &str| {
            let mut data: BTreeMap<String, ByteString> = serde_json::from_value(good.data()).unwrap();
            data.insert(name.to_owned(), ByteString(value.as_bytes().to_vec()));
            Stored::read(&data)
        };
        assert_eq!(change("other", "ignored"), Ok(good.clone()));
        assert!(Stored::read(&BTreeMap::new()).unwrap_err().contains("no ca.crt"));
        assert!(change(CERTIFICATE, "garbage").unwrap_err().contains("ca.crt"));
        assert!(change(KEY, "").unwrap_err().contains("ca.key"));
        assert_eq!(change(NEXT_KEY, "garbage").unwrap().next, None);
        assert_eq!(change(PREVIOUS_UNTIL, "soon").unwrap().previous, None);
        assert_eq!(change(PREVIOUS_CERTIFICATE, "garbage").unwrap().previous, None);
    }
}
