//! `capstan lint`.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use capstan_conformance::lint::{self, File, Folder, Given};

use super::conformance::{finish, is_standard_input, read_text};
use crate::{
    cli::{Lint, LintArgs, LintFiles},
    error::CommandError,
    printer::Printer,
};

const METADATA: &str = "metadata.yaml";

pub(crate) fn run(args: &LintArgs, printer: Printer) -> Result<(), CommandError> {
    let (files, report) = match &args.what {
        Lint::Components(files) => (files, lint::check_components(&gather(files, is_components)?)),
        Lint::Template(files) => (files, lint::check_templates(&gather(files, is_template)?)),
    };
    let report = if files.strict { report.strict() } else { report };
    finish(&report, files.output, printer)
}

fn is_components(name: &str) -> bool {
    name.ends_with("-components.yaml")
}

fn is_template(name: &str) -> bool {
    let stem = name.strip_suffix(".yaml").unwrap_or_default();
    ["cluster-template", "clusterclass-"].iter().any(|it| stem.starts_with(it))
}

/// The files that were given and those of folders that were, each with what is around it.
fn gather(args: &LintFiles, is_wanted: fn(&str) -> bool) -> Result<Vec<Given>, CommandError> {
    let mut given = Vec::new();
    for path in &args.files {
        for path in expand(path, is_wanted)? {
            let (name, text) = read_text(&path)?;
            let folder = if is_standard_input(&path) { None } else { Some(folder_of(&path)?) };
            given.push(Given { file: File { name, text }, folder });
        }
    }
    Ok(given)
}

/// The file itself, or the files of a folder that are of a kind.
fn expand(path: &Path, is_wanted: fn(&str) -> bool) -> Result<Vec<PathBuf>, CommandError> {
    if is_standard_input(path) || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let names = list(path)?;
    let found: Vec<_> = names.iter().filter(|it| is_wanted(it)).map(|it| path.join(it)).collect();
    if found.is_empty() {
        let what = format!("{} has no file of the kind that is checked", path.display());
        return Err(CommandError::plain(what).hint(
            "subfolders are not looked into: name the folder of one release, with files such as \
             infrastructure-components.yaml and cluster-template.yaml, or the files themselves",
        ));
    }
    Ok(found)
}

fn folder_of(file: &Path) -> Result<Folder, CommandError> {
    let parent = file.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let whole = fs::canonicalize(parent).map_err(|error| CommandError::new(cannot_read(parent), error))?;
    let names = whole.ancestors().filter_map(|it| Some(it.file_name()?.to_string_lossy().into_owned()));
    let files = list(parent)?;
    let metadata = if files.contains(METADATA) {
        let path = file.with_file_name(METADATA);
        let (name, text) = read_text(&path)?;
        Some(File { name, text })
    } else {
        None
    };
    Ok(Folder { path: names.collect(), files, metadata })
}

/// The names of a folder's files.
fn list(folder: &Path) -> Result<BTreeSet<String>, CommandError> {
    let wrap = |error: io::Error| CommandError::new(cannot_read(folder), error);
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(wrap)? {
        let entry = entry.map_err(wrap)?;
        if entry.path().is_file() {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::ReportFormat;

    /// A local repository with one release, which goes with the test.
    struct Repository(PathBuf);

    impl Repository {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("capstan-lint-{name}-{}", std::process::id()));
            let release = root.join("infrastructure-foo/v0.1.0");
            fs::create_dir_all(release.join("cluster-template-is-a-folder.yaml")).unwrap();
            for file in
                ["infrastructure-components.yaml", METADATA, "cluster-template.yaml", "clusterclass-a.yaml"]
            {
                fs::write(release.join(file), "a: 1\n").unwrap();
            }
            Self(root)
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.join("infrastructure-foo").join(path)
        }
    }

    impl Drop for Repository {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn names(given: &[Given]) -> Vec<&str> {
        given.iter().filter_map(|it| it.file.name.rsplit('/').next()).collect()
    }

    fn files(path: PathBuf) -> LintFiles {
        LintFiles { files: vec![path], strict: false, output: ReportFormat::Table }
    }

    #[test]
    fn a_file_comes_with_its_folder() {
        let repository = Repository::new("file");
        let file = repository.at("v0.1.0/infrastructure-components.yaml");
        let given = gather(&files(file), is_components).unwrap();
        let folder = given[0].folder.as_ref().unwrap();
        assert_eq!(folder.path[..2], ["v0.1.0", "infrastructure-foo"]);
        assert_eq!(folder.files.len(), 4);
        let metadata = folder.metadata.as_ref().unwrap();
        assert_eq!(metadata.text, "a: 1\n");
        assert!(metadata.name.ends_with("infrastructure-foo/v0.1.0/metadata.yaml"), "{}", metadata.name);
    }

    #[test]
    fn of_a_folder_the_files_of_a_kind_are_checked() {
        let repository = Repository::new("folder");
        let release = || files(repository.at("v0.1.0"));
        assert_eq!(names(&gather(&release(), is_components).unwrap()), ["infrastructure-components.yaml"]);
        assert_eq!(
            names(&gather(&release(), is_template).unwrap()),
            ["cluster-template.yaml", "clusterclass-a.yaml"]
        );
        let error = gather(&files(repository.at("")), is_components).unwrap_err();
        assert!(error.message.contains("has no file of the kind that is checked"), "{}", error.message);
        assert!(error.hint.unwrap().contains("subfolders are not looked into"));
        let error = gather(&files(repository.at("missing.yaml")), is_components).unwrap_err();
        assert!(error.message.starts_with("cannot read "), "{}", error.message);
    }

    #[test]
    fn the_command_fails_where_a_rule_must_be_kept_and_strictly_where_it_should() {
        let repository = Repository::new("exit");
        let file = repository.at("v0.1.0/cluster-template.yaml");
        let passes = |strict| {
            let what =
                Lint::Template(LintFiles { files: vec![file.clone()], strict, output: ReportFormat::Json });
            run(&LintArgs { what }, Printer::new()).is_ok()
        };
        assert!(!passes(false), "the document is no object of Kubernetes");
        let cluster = "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: fixed}\n";
        fs::write(&file, cluster).unwrap();
        assert!(passes(false) && !passes(true), "the name should be a variable");
        fs::write(&file, cluster.replace("fixed", "\"${CLUSTER_NAME}\"")).unwrap();
        assert!(passes(true));
    }
}
