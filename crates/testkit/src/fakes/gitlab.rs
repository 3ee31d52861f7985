//! GitLab's package registry.

use axum::http::header;
use serde_json::json;

use super::answer::{Answer, Question, page};

/// As many as fit on a page here, so that few are enough for several pages.
const PER_PAGE: usize = 2;

struct PackageFile {
    project: String,
    package: String,
    version: String,
    file: String,
    content: String,
}

#[derive(Default)]
pub(super) struct GitLabState {
    files: Vec<PackageFile>,
    pub token: Option<String>,
}

impl GitLabState {
    pub(super) fn add(&mut self, project: &str, package: &str, version: &str, file: &str, content: &str) {
        let [project, package, version, file, content] =
            [project, package, version, file, content].map(str::to_owned);
        self.files.push(PackageFile { project, package, version, file, content });
    }

    pub(super) fn answer(&self, question: &Question) -> Option<Answer> {
        let segments = question.segments();
        let segments: Vec<_> = segments.iter().map(String::as_str).collect();
        let ["api", "v4", "projects", project, "packages", rest @ ..] = segments.as_slice() else {
            return None;
        };
        if let Some(token) = &self.token
            && question.header(header::AUTHORIZATION) != Some(&format!("Bearer {token}"))
        {
            return Some(Answer::new(401, r#"{"message":"401 Unauthorized"}"#));
        }
        match rest {
            [] => Some(self.packages(question, project)),
            [id, "package_files"] => Some(self.package_files(question, project, id.parse().ok()?)),
            ["generic", package, version, file] => {
                let found = self.files.iter().find(|other| {
                    [&other.project, &other.package, &other.version, &other.file]
                        == [*project, *package, *version, *file]
                })?;
                Some(Answer::file(found.content.as_bytes()))
            }
            _ => None,
        }
    }

    /// Every package once, by its first file; like the real one it finds similar names, too.
    fn packages(&self, question: &Question, project: &str) -> Answer {
        let wanted = question.parameter("package_name").unwrap_or_default();
        let mut listed: Vec<serde_json::Value> = Vec::new();
        for (n, file) in self.files.iter().enumerate() {
            let is_new =
                !listed.iter().any(|one| one["name"] == file.package && one["version"] == file.version);
            if file.project == project && file.package.contains(&wanted) && is_new {
                listed.push(json!({"id": n, "name": file.package, "version": file.version}));
            }
        }
        page(question, &listed, PER_PAGE)
    }

    fn package_files(&self, question: &Question, project: &str, id: usize) -> Answer {
        let Some(first) = self.files.get(id) else { return Answer::missing() };
        let same = |file: &&PackageFile| {
            file.project == project && file.package == first.package && file.version == first.version
        };
        let listed: Vec<_> =
            self.files.iter().filter(same).map(|file| json!({"file_name": file.file})).collect();
        page(question, &listed, PER_PAGE)
    }
}
