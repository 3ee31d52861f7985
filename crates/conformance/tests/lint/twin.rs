//! One thing broken.

use capstan_conformance::{Finding, Outcome, Report, lint::Given};

/// A file that breaks a rule: words of what is seen, the text at the place, and words of the repair.
pub(crate) struct Twin {
    pub(crate) rule: &'static str,
    pub(crate) seen: &'static str,
    /// What the line has from the column on; nothing where the file as a whole is meant.
    pub(crate) at: &'static str,
    pub(crate) repair: &'static str,
    pub(crate) given: Given,
    /// Rules that cannot be kept where this one is broken.
    pub(crate) also: &'static [&'static str],
}

impl Twin {
    /// Breaks something.
    pub(crate) fn new(
        given: Given,
        rule: &'static str,
        at: &'static str,
        seen: &'static str,
        repair: &'static str,
        spoil: impl FnOnce(&mut Given),
    ) -> Self {
        let mut spoiled = given.clone();
        spoil(&mut spoiled);
        assert_ne!(spoiled, given, "{rule}: nothing is spoiled");
        Self { rule, seen, at, repair, given: spoiled, also: &[] }
    }

    pub(crate) fn also(mut self, rules: &'static [&'static str]) -> Self {
        self.also = rules;
        self
    }

    /// The rule is broken as it says, at the place, and no other is.
    pub(crate) fn check(&self, report: &Report) {
        let broken: Vec<_> = report.findings.iter().filter(|it| it.is_broken()).collect();
        let found = broken.iter().find(|it| it.rule.id == self.rule && self.is_seen(it));
        assert!(found.is_some(), "{} {:?} at {:?}: {broken:#?}", self.rule, self.seen, self.at);
        let others: Vec<_> =
            broken.iter().filter(|it| it.rule.id != self.rule && !self.also.contains(&it.rule.id)).collect();
        assert!(others.is_empty(), "{}: {others:#?}", self.rule);
        for rule in self.also {
            assert!(broken.iter().any(|it| it.rule.id == *rule), "{}: {rule} is not broken", self.rule);
        }
    }

    fn is_seen(&self, finding: &Finding) -> bool {
        let Outcome::Failed { seen, repair } = &finding.outcome else { return false };
        let is_at = match &finding.place {
            None => self.at.is_empty(),
            Some(place) => {
                let metadata = self.given.folder.as_ref().and_then(|it| it.metadata.as_ref());
                let file = [Some(&self.given.file), metadata].into_iter().flatten().find(|it| it.name == place.file);
                let line = file.unwrap().text.lines().nth(place.line - 1).unwrap();
                let rest: String = line.chars().skip(place.column - 1).collect();
                !self.at.is_empty() && rest.starts_with(self.at)
            }
        };
        is_at && seen.contains(self.seen) && repair.contains(self.repair)
    }
}

/// Replaces a text that is there exactly once.
pub(crate) fn replace(given: &mut Given, old: &str, new: &str) {
    assert_eq!(given.file.text.matches(old).count(), 1, "{old:?}");
    given.file.text = given.file.text.replace(old, new);
}

/// Adds a document.
pub(crate) fn add(given: &mut Given, document: &str) {
    given.file.text.push_str("---\n");
    given.file.text.push_str(document);
}

/// Takes out the document that has a text.
pub(crate) fn drop_document(given: &mut Given, with: &str) {
    let documents: Vec<_> = given.file.text.split("---\n").collect();
    let kept: Vec<_> = documents.iter().copied().filter(|it| !it.contains(with)).collect();
    assert_eq!(kept.len() + 1, documents.len(), "{with:?}");
    given.file.text = kept.join("---\n");
}
