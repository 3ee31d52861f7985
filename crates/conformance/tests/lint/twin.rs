//! One thing broken.

use capstan_conformance::{Finding, Outcome, Report, lint::Given};

/// A file that breaks a rule: words of what is seen, the text at the place, and words of the repair.
pub(crate) struct Twin {
    pub(crate) rule: &'static str,
    pub(crate) seen: &'static str,
    /// What the line has from the column on; nothing for the beginning of the file, which stands for all of it.
    pub(crate) at: &'static str,
    pub(crate) repair: &'static str,
    pub(crate) given: Given,
    /// Rules that cannot be kept where this one is broken.
    pub(crate) also: &'static [&'static str],
}

impl Twin {
    /// Breaks something.
    pub(crate) fn new(
        given: &Given,
        rule: &'static str,
        at: &'static str,
        seen: &'static str,
        repair: &'static str,
        spoil: impl FnOnce(&mut Given),
    ) -> Self {
        let mut spoiled = given.clone();
        spoil(&mut spoiled);
        assert_ne!(&spoiled, given, "{rule}: nothing is spoiled");
        Self { rule, seen, at, repair, given: spoiled, also: &[] }
    }

    pub(crate) fn also(mut self, rules: &'static [&'static str]) -> Self {
        self.also = rules;
        self
    }

    /// What is wrong if not the rule is broken as it says, at the place, and no other is.
    pub(crate) fn flaw(&self, report: &Report) -> Option<String> {
        let broken: Vec<_> = report.findings.iter().filter(|it| it.is_broken()).collect();
        let is_meant = |it: &Finding| it.rule.id == self.rule && self.is_seen(it);
        let is_expected = |it: &Finding| it.rule.id == self.rule || self.also.contains(&it.rule.id);
        let are_all = self.also.iter().all(|rule| broken.iter().any(|it| it.rule.id == *rule));
        let is_right =
            are_all && broken.iter().any(|it| is_meant(it)) && broken.iter().all(|it| is_expected(it));
        let told = |it: &&Finding| format!("\n  {} {:?} {:?}", it.rule.id, it.place, it.outcome);
        (!is_right).then(|| {
            let found: String = broken.iter().map(told).collect();
            format!("{} {:?} at {:?}, also {:?}:{found}", self.rule, self.seen, self.at, self.also)
        })
    }

    fn is_seen(&self, finding: &Finding) -> bool {
        let Outcome::Failed { seen, repair } = &finding.outcome else { return false };
        let place = finding.place.as_ref().unwrap();
        let metadata = self.given.folder.as_ref().and_then(|it| it.metadata.as_ref());
        let mut files = [Some(&self.given.file), metadata].into_iter().flatten();
        let file = files.find(|it| it.name == place.file).unwrap();
        let line = file.text.lines().nth(place.line - 1).unwrap();
        let rest: String = line.chars().skip(place.column - 1).collect();
        let is_at =
            if self.at.is_empty() { (place.line, place.column) == (1, 1) } else { rest.starts_with(self.at) };
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
