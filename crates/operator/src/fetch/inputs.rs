//! What a provider's Secret says, and the environment after it.

use std::{collections::BTreeMap, fmt};

use capstan_repository::{
    Environment, environment_name, read_image_overrides,
    remote::{Access, Credentials},
};
use k8s_openapi::api::core::v1::Secret;

use super::FetchError;

/// The key with image overrides, in the format of clusterctl's configuration file.
const IMAGES: &str = "images";

/// The names that a GitHub token has as a key of a Secret.
const GITHUB_TOKENS: [&str; 2] = ["github-token", "GITHUB_TOKEN"];
/// The names that a GitLab token has as a key of a Secret.
const GITLAB_TOKENS: [&str; 3] = ["gitlab-access-token", "GITLAB_ACCESS_TOKEN", GITLAB_TOKEN];
/// What CI systems call it.
const GITLAB_TOKEN: &str = "GITLAB_TOKEN";

/// A provider's Secret as text, before the environment of the process.
pub(super) struct Inputs<'a> {
    /// Namespace and name of the Secret.
    secret: String,
    data: BTreeMap<&'a str, &'a str>,
    environment: &'a Environment,
}

// Values must never reach a log.
impl fmt::Debug for Inputs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inputs").field("secret", &self.secret).finish_non_exhaustive()
    }
}

impl<'a> Inputs<'a> {
    /// Reads a Secret, whose values must all be text.
    pub(super) fn read(secret: Option<&'a Secret>, environment: &'a Environment) -> Result<Self, FetchError> {
        let mut inputs =
            Self { secret: secret.map(full_name).unwrap_or_default(), data: BTreeMap::new(), environment };
        for (key, value) in secret.and_then(|it| it.data.as_ref()).into_iter().flatten() {
            let text = str::from_utf8(&value.0)
                .map_err(|_| inputs.wrong(key, "is not UTF-8 text: put a text there, or remove the key"))?;
            inputs.data.insert(key, text);
        }
        Ok(inputs)
    }

    /// The value of a variable of the components: the Secret's, else the environment's, where names are in capitals.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        let capitals = environment_name(name);
        let secret = || self.data.get(name).or_else(|| self.data.get(capitals.as_str())).copied();
        secret().or_else(|| self.environment.get(&capitals)).map(str::to_owned)
    }

    /// The image overrides, as they are written.
    pub(super) fn images(&self) -> Result<&'a str, FetchError> {
        let text = self.data.get(IMAGES).copied().unwrap_or_default();
        match read_image_overrides(text) {
            Ok(_) => Ok(text),
            Err(problem) => {
                let example = "all: {repository: registry.example.com/mirror}";
                Err(self.wrong(IMAGES, &format!("has no image overrides like `{example}`: {problem}")))
            }
        }
    }

    /// The tokens and passwords of the Secret, and for what it has none those of the process.
    ///
    /// A Secret says which further hosts may see its own ones, and not who may see those of the process.
    pub(super) fn access(&self, process: &Access) -> Access {
        let process = process.clone();
        let (github_token, github_hosts) =
            self.token(&GITHUB_TOKENS, "GITHUB_HOSTS", (process.github_token, process.github_hosts));
        let (gitlab_token, gitlab_hosts) =
            self.token(&GITLAB_TOKENS, "GITLAB_HOSTS", (process.gitlab_token, process.gitlab_hosts));
        let credentials = self.filled("OCI_USERNAME").zip(self.filled("OCI_PASSWORD"));
        let (oci_credentials, oci_host) = match credentials {
            None => (process.oci_credentials, process.oci_host),
            Some((username, password)) => {
                let host = self.filled("OCI_HOST").map(str::to_owned).or(process.oci_host);
                let (username, password) = (username.to_owned(), password.to_owned());
                (Some(Credentials { username, password }), host)
            }
        };
        Access { github_token, github_hosts, gitlab_token, gitlab_hosts, oci_credentials, oci_host }
    }

    fn token(
        &self,
        names: &[&str],
        hosts: &str,
        process: (Option<String>, Vec<String>),
    ) -> (Option<String>, Vec<String>) {
        let Some(token) = names.iter().find_map(|it| self.filled(it)) else { return process };
        let hosts = self.filled(hosts).map(|it| it.split(',').map(|it| it.trim().to_owned()).collect());
        (Some(token.to_owned()), hosts.unwrap_or(process.1))
    }

    /// A value of the Secret that says something.
    fn filled(&self, key: &str) -> Option<&'a str> {
        self.data.get(key).map(|it| it.trim()).filter(|it| !it.is_empty())
    }

    fn wrong(&self, key: &str, problem: &str) -> FetchError {
        let (secret, key) = (self.secret.clone(), key.to_owned());
        FetchError::Secret { secret, key, problem: problem.to_owned() }
    }
}

/// The tokens of an environment.
pub(super) fn tokens(environment: &Environment) -> (Option<String>, Option<String>) {
    let first = |names: &[&str]| {
        let values = names.iter().filter_map(|it| environment.get(it));
        values.into_iter().find(|it| !it.trim().is_empty()).map(str::to_owned)
    };
    (first(&["GITHUB_TOKEN"]), first(&["GITLAB_ACCESS_TOKEN", GITLAB_TOKEN]))
}

fn full_name(secret: &Secret) -> String {
    let part = |it: &Option<String>| it.clone().unwrap_or_default();
    format!("{}/{}", part(&secret.metadata.namespace), part(&secret.metadata.name))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    fn secret(data: &[(&str, &[u8])]) -> Secret {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.to_vec())));
        let mut secret = Secret { data: Some(data.collect()), ..Secret::default() };
        secret.metadata.namespace = Some("capa-system".to_owned());
        secret.metadata.name = Some("aws-variables".to_owned());
        secret
    }

    fn environment(variables: &[(&str, &str)]) -> Environment {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Environment { variables: variables.collect(), ..Environment::default() }
    }

    #[test]
    fn the_secret_comes_before_the_environment() {
        let secret =
            secret(&[("BOTH", b"secret"), ("lower", b"secret"), ("CAPITALS", b"secret"), ("EMPTY", b"")]);
        let environment = environment(&[
            ("BOTH", "environment"),
            ("EMPTY", "environment"),
            ("ONLY", "environment"),
            ("only2", "environment"),
        ]);
        let inputs = Inputs::read(Some(&secret), &environment).unwrap();
        for (name, expected) in [
            ("BOTH", Some("secret")),
            ("lower", Some("secret")),
            ("LOWER", None),
            ("capitals", Some("secret")),
            ("EMPTY", Some("")),
            ("ONLY", Some("environment")),
            ("only", Some("environment")),
            ("only2", None),
            ("NOWHERE", None),
        ] {
            assert_eq!(inputs.variable(name).as_deref(), expected, "{name}");
        }
        let nothing = Inputs::read(None, &environment).unwrap();
        assert_eq!(nothing.variable("BOTH").as_deref(), Some("environment"));
    }

    #[test]
    fn a_value_that_is_no_text_is_told_by_its_key() {
        let secret = secret(&[("A", b"text"), ("B", b"hidden\xff")]);
        let error = Inputs::read(Some(&secret), &Environment::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the key B of Secret capa-system/aws-variables is not UTF-8 text: put a text there, or remove the key"
        );
        assert!(!format!("{error:?}").contains("hidden"));
    }

    #[test]
    fn image_overrides_are_checked_and_not_shown() {
        let environment = Environment::default();
        let text = "all: {repository: r.io/hidden}";
        let right = secret(&[("images", text.as_bytes())]);
        let inputs = Inputs::read(Some(&right), &environment).unwrap();
        assert_eq!(inputs.images().unwrap(), text);
        assert!(!format!("{inputs:?}").contains("hidden"));
        let wrong = secret(&[("images", b"hidden: hidden")]);
        let error = Inputs::read(Some(&wrong), &environment).unwrap().images().unwrap_err();
        let expected = "the key images of Secret capa-system/aws-variables has no image overrides like \
            `all: {repository: registry.example.com/mirror}`: in entry 1, it must be a map, but is text";
        assert_eq!(error.to_string(), expected);
        assert_eq!(Inputs::read(None, &environment).unwrap().images().unwrap(), "");
    }

    /// Tokens with their hosts, then the registry's user and host.
    fn described(access: &Access) -> String {
        let token = |token: &Option<String>, hosts: &[String]| {
            format!("{}@{}", token.as_deref().unwrap_or_default(), hosts.join("+"))
        };
        let user = access.oci_credentials.as_ref().map(|it| it.username.as_str());
        format!(
            "{} {} {}@{}",
            token(&access.github_token, &access.github_hosts),
            token(&access.gitlab_token, &access.gitlab_hosts),
            user.unwrap_or_default(),
            access.oci_host.as_deref().unwrap_or_default()
        )
    }

    #[test]
    fn a_secret_opens_further_hosts_for_its_own_tokens_alone() {
        let text = |it: &str| Some(it.to_owned());
        let process = Access {
            github_token: text("P"),
            github_hosts: vec!["p".to_owned()],
            gitlab_token: text("P"),
            gitlab_hosts: vec!["p".to_owned()],
            oci_credentials: Some(Credentials { username: "P".to_owned(), password: "P".to_owned() }),
            oci_host: text("p"),
        };
        for (data, with_process, alone) in [
            (&[][..], "P@p P@p P@p", "@ @ @"),
            (&[("GITHUB_TOKEN", "S")][..], "S@p P@p P@p", "S@ @ @"),
            (&[("github-token", "S"), ("GITHUB_TOKEN", "T")], "S@p P@p P@p", "S@ @ @"),
            (&[("github-token", " "), ("GITHUB_TOKEN", "T\n")], "T@p P@p P@p", "T@ @ @"),
            (&[("GITHUB_TOKEN", "S"), ("GITHUB_HOSTS", "a, b")], "S@a+b P@p P@p", "S@a+b @ @"),
            (&[("GITLAB_TOKEN", "S"), ("GITLAB_HOSTS", "a")], "P@p S@a P@p", "@ S@a @"),
            (&[("GITLAB_ACCESS_TOKEN", "S"), ("GITLAB_TOKEN", "T")], "P@p S@p P@p", "@ S@ @"),
            (&[("gitlab-access-token", "S")], "P@p S@p P@p", "@ S@ @"),
            (&[("OCI_USERNAME", "S"), ("OCI_PASSWORD", "S")], "P@p P@p S@p", "@ @ S@"),
            (&[("OCI_USERNAME", "S"), ("OCI_PASSWORD", "S"), ("OCI_HOST", "a")], "P@p P@p S@a", "@ @ S@a"),
            // The tokens of the process go nowhere because a Secret says so.
            (&[("GITHUB_HOSTS", "a"), ("GITLAB_HOSTS", "a"), ("OCI_HOST", "a")], "P@p P@p P@p", "@ @ @"),
            (&[("OCI_USERNAME", "S"), ("OCI_HOST", "a")], "P@p P@p P@p", "@ @ @"),
        ] {
            let data: Vec<_> = data.iter().map(|(key, value)| (*key, value.as_bytes())).collect();
            let (secret, environment) = (secret(&data), Environment::default());
            let inputs = Inputs::read(Some(&secret), &environment).unwrap();
            assert_eq!(described(&inputs.access(&process)), with_process, "{secret:?}");
            assert_eq!(described(&inputs.access(&Access::default())), alone, "{secret:?}");
        }
    }

    #[test]
    fn the_process_has_tokens_in_its_environment() {
        let of = |variables| {
            let (hub, lab) = tokens(&environment(variables));
            format!("{} {}", hub.unwrap_or_default(), lab.unwrap_or_default())
        };
        assert_eq!(of(&[("GITHUB_TOKEN", "a"), ("GITLAB_TOKEN", "b")]), "a b");
        assert_eq!(of(&[("GITHUB_TOKEN", " "), ("GITLAB_TOKEN", "b"), ("GITLAB_ACCESS_TOKEN", "c")]), " c");
        assert_eq!(of(&[("github-token", "a")]), " ");
    }
}
