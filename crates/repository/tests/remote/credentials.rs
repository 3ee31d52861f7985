//! Credentials are for one origin, and for the token service that it names itself. Two servers: `home` is configured
//! and may see them, `away` is where `home` leads to.

use capstan_repository::config::Format;
use capstan_repository::remote::{Credentials, DockerConfig, Http, HttpOptions, Oci, Remote};
use capstan_repository::{CertManager, Config, Environment, FetchError, Provider};
use capstan_testkit::fakes::{FakeArtifact, FakeServer, Fault, RegistryAuth};

use crate::world::World;

/// Every password and token.
const CANARY: &str = "c4n4ry";
const NAME: &str = "registry.example.com";
const VERSION: &str = "v1.0.0";
const FILE: &str = "f.yaml";
/// Where `away` refuses strangers and names its own token service.
const TRAP: &str = "/v2/providers/capi/manifests/v1.0.0";

struct Servers {
    home: World,
    away: FakeServer,
}

/// A kind of repository: its address on a host, and which requests to it are redirected.
struct Kind {
    address: fn(&str) -> String,
    redirected: &'static str,
}

const OCI: Kind = Kind { address: |host| format!("oci://{host}/providers/capi"), redirected: "/manifests/" };
const KINDS: [Kind; 4] = [
    OCI,
    Kind { address: |host| format!("https://{host}/o/r/releases/latest/{FILE}"), redirected: "/repos/" },
    Kind {
        address: |host| format!("https://{host}/api/v4/projects/p/packages/generic/capi/{VERSION}/{FILE}"),
        redirected: "/api/v4/",
    },
    Kind {
        address: |host| format!("https://me:{CANARY}@{host}/capi/{VERSION}/{FILE}?signature={CANARY}"),
        redirected: "/capi/",
    },
];

impl Servers {
    async fn new() -> Self {
        let (home, away) = (World::new().await, FakeServer::start().await);
        home.server.artifact("providers/capi", VERSION, FakeArtifact::files(&[(FILE, "content")]));
        away.registry_auth(RegistryAuth::TokenFrom(away.url("/token")));
        Self { home, away }
    }

    /// What `home` is called: like `away` but for the port, or by a name of its own.
    fn hosts(&self) -> [String; 2] {
        [self.home.server.host(), NAME.to_owned()]
    }

    /// Options with credentials of every kind for a host, those for registries from docker.
    fn options(&self, host: &str) -> HttpOptions {
        let mut options = self.home.options();
        let text = format!(r#"{{"auths":{{"{host}":{{"username":"me","password":"{CANARY}"}}}}}}"#);
        options.extra_roots.push(self.away.ca_pem().to_owned());
        options.github_token = Some(CANARY.to_owned());
        options.github_hosts = vec![host.to_owned()];
        options.gitlab_token = Some(CANARY.to_owned());
        options.gitlab_hosts = vec![host.to_owned()];
        options.docker_config = Some(DockerConfig { text, run_helpers: false });
        options
    }

    fn http(&self, host: &str) -> Http {
        Http::new(self.options(host))
    }

    /// The same, with the credentials for the registry from the environment.
    fn http_with_password(&self, host: &str) -> Http {
        let (username, password) = ("me".to_owned(), CANARY.to_owned());
        Http::new(HttpOptions {
            oci_credentials: Some(Credentials { username, password }),
            oci_host: Some(host.to_owned()),
            docker_config: None,
            ..self.options(host)
        })
    }

    /// Whether `home` was shown credentials.
    fn home_saw_credentials(&self) -> bool {
        self.home.server.requests().iter().any(|request| request.authorization().is_some())
    }

    /// `away` was asked, but shown nothing, and nothing that was said gives credentials away.
    fn assert_nothing_leaked(&self, error: &FetchError) {
        let requests = self.away.requests();
        assert!(!requests.is_empty(), "{error:?}");
        for request in requests {
            assert_eq!(request.authorization(), None, "{request:?}");
            assert!(!format!("{request:?}").contains(CANARY), "{request:?}");
        }
        self.assert_nothing_said(error);
    }

    fn assert_nothing_said(&self, error: &FetchError) {
        assert!(!format!("{error} {error:?}").contains(CANARY), "{error:?}");
        assert!(!self.home.reported(&[CANARY]));
    }
}

/// Asks for what needs credentials: on GitHub that is the list of files, for the files themselves are public.
async fn ask(http: &Http, address: &str) -> Result<(), FetchError> {
    match Remote::parse(address).unwrap() {
        Remote::GitHub(source) => source.files(http, VERSION).await.map(drop),
        source => source.file(http, VERSION, FILE).await.map(drop),
    }
}

#[tokio::test]
async fn a_redirect_to_a_server_that_asks_for_credentials_gets_none() {
    for kind in KINDS {
        for at in [0, 1] {
            let servers = Servers::new().await;
            let host = &servers.hosts()[at];
            let target = servers.away.url(TRAP);
            servers.home.server.inject(kind.redirected, usize::MAX, Fault::Redirect(target.clone()));
            let address = (kind.address)(host);
            for http in [servers.http(host), servers.http_with_password(host)] {
                let error = ask(&http, &address).await.unwrap_err();
                servers.assert_nothing_leaked(&error);
                let FetchError::RefusedElsewhere { target: named, status: 401, .. } = &error else {
                    panic!("{address}: {error:?}")
                };
                assert_eq!(*named, target);
            }
            // A registry asks for credentials first; all others are shown them at once.
            assert_eq!(servers.home_saw_credentials(), !address.starts_with("oci:"), "{address}");
        }
    }
}

#[tokio::test]
async fn a_redirect_without_encryption_is_not_followed() {
    for kind in KINDS {
        let servers = Servers::new().await;
        let target = format!("http://{}{TRAP}", servers.away.plain_host());
        servers.home.server.inject(kind.redirected, usize::MAX, Fault::Redirect(target));
        let error = ask(&servers.http(NAME), &(kind.address)(NAME)).await.unwrap_err();
        assert!(matches!(error, FetchError::Redirect { .. }), "{error:?}");
        assert!(servers.away.requests().is_empty());
        servers.assert_nothing_said(&error);
    }
}

#[tokio::test]
async fn a_next_page_elsewhere_is_not_asked_for() {
    for (kind, part) in KINDS.iter().zip(["/tags/", "/repos/", "/api/v4/"]) {
        let servers = Servers::new().await;
        servers.home.server.github("o/r", |repository| {
            repository.release(VERSION, &[]);
        });
        servers.home.server.inject(part, 1, Fault::NextPage(servers.away.url("/next")));
        let source = Remote::parse(&(kind.address)(NAME)).unwrap();
        let error = source.versions(&servers.http(NAME)).await.unwrap_err();
        assert!(error.to_string().contains("its next page is on another server"), "{error}");
        assert!(servers.away.requests().is_empty());
        servers.assert_nothing_said(&error);
    }
}

#[tokio::test]
async fn a_registry_that_was_left_on_the_way_back_names_no_token_service() {
    let servers = Servers::new().await;
    let back = format!("https://{NAME}{TRAP}");
    servers.home.server.registry_auth(RegistryAuth::TokenFrom(servers.away.url("/token")));
    servers.home.server.inject(TRAP, 1, Fault::Redirect(servers.away.url("/detour")));
    servers.away.inject("/detour", usize::MAX, Fault::Redirect(back.clone()));
    let error = ask(&servers.http(NAME), &(OCI.address)(NAME)).await.unwrap_err();
    assert!(matches!(&error, FetchError::RefusedElsewhere { target, .. } if *target == back), "{error:?}");
    servers.assert_nothing_leaked(&error);
    assert_eq!(servers.away.count("/token"), 0);
}

#[tokio::test]
async fn a_registry_that_knows_us_leads_elsewhere_without_what_it_knows() {
    let servers = Servers::new().await;
    let user = RegistryAuth::Token("me".to_owned(), CANARY.to_owned());
    servers.home.server.registry_auth(user);
    servers.home.server.inject("/blobs/", usize::MAX, Fault::Redirect(servers.away.url(TRAP)));
    let error = ask(&servers.http(NAME), &(OCI.address)(NAME)).await.unwrap_err();
    assert!(servers.home_saw_credentials());
    servers.assert_nothing_leaked(&error);
    assert_eq!(servers.away.count("/token"), 0);
}

#[tokio::test]
async fn a_token_service_of_the_site_is_shown_the_password_and_the_registry_the_token() {
    // The same host with another port; another host of the same domain.
    for (host, realm) in [(None, None), (Some(NAME), Some("gitlab.example.com"))] {
        let servers = Servers::new().await;
        let host = host.map_or_else(|| servers.home.server.host(), str::to_owned);
        let away = servers.away.host();
        let (_, port) = away.split_once(':').unwrap();
        let realm = realm.map_or_else(|| away.clone(), |name| format!("{name}:{port}"));
        servers.home.server.registry_auth(RegistryAuth::TokenFrom(format!("https://{realm}/token")));
        servers.away.registry_auth(RegistryAuth::Token("me".to_owned(), CANARY.to_owned()));
        for http in [servers.http(&host), servers.http_with_password(&host)] {
            ask(&http, &(OCI.address)(&host)).await.unwrap();
        }
        let shown =
            |authorization: Option<&str>, scheme| authorization.is_none_or(|it| it.starts_with(scheme));
        assert!(servers.home_saw_credentials());
        assert!(servers.home.server.requests().iter().all(|it| shown(it.authorization(), "Bearer token-")));
        let asked = servers.away.requests();
        assert!(asked.len() == 2 && asked.iter().all(|it| it.path.starts_with("/token?")), "{asked:?}");
    }
}

#[tokio::test]
async fn a_token_service_on_another_site_is_shown_the_password_once_it_is_named() {
    let servers = Servers::new().await;
    let (away, realm) = (servers.away.host(), servers.away.url("/token"));
    servers.home.server.registry_auth(RegistryAuth::TokenFrom(realm.clone()));
    servers.away.registry_auth(RegistryAuth::Token("me".to_owned(), CANARY.to_owned()));
    for http in [servers.http(NAME), servers.http_with_password(NAME)] {
        let error = ask(&http, &(OCI.address)(NAME)).await.unwrap_err();
        let expected = format!(
            "the address {realm} cannot be used: {NAME} wants the password sent to another site; \
             OCI_TOKEN_HOSTS must name {away} before it is sent your credentials"
        );
        assert_eq!(error.to_string(), expected);
        assert!(servers.away.requests().is_empty());
        servers.assert_nothing_said(&error);
    }
    let named = HttpOptions { oci_token_hosts: vec![away], ..servers.options(NAME) };
    ask(&Http::new(named), &(OCI.address)(NAME)).await.unwrap();
    assert_eq!(servers.away.count("/token"), 1);
    // Without a password there is nothing to lose.
    servers.home.server.registry_auth(RegistryAuth::TokenFrom(servers.away.url("/token")));
    servers.away.registry_auth(RegistryAuth::AnonymousToken);
    let http = Http::new(HttpOptions { docker_config: None, ..servers.options(NAME) });
    ask(&http, &(OCI.address)(NAME)).await.unwrap();
}

#[tokio::test]
async fn a_registry_without_encryption_elsewhere_gets_only_what_was_stored_for_that() {
    let servers = Servers::new().await;
    let plain = servers.home.server.plain_host();
    let (_, port) = plain.split_once(':').unwrap();
    let host = format!("{NAME}:{port}");
    let registry = Oci::parse(&format!("http://{host}/providers/capi")).unwrap();
    servers.home.server.registry_auth(RegistryAuth::Basic("me".to_owned(), CANARY.to_owned()));
    let options = |stored_for: &str| HttpOptions {
        resolve: vec![(NAME.to_owned(), plain.parse().unwrap())],
        ..servers.options(stored_for)
    };
    let with_password = |stored_for: &str| HttpOptions {
        docker_config: None,
        oci_credentials: Some(Credentials { username: "me".to_owned(), password: CANARY.to_owned() }),
        oci_host: Some(stored_for.to_owned()),
        ..options(stored_for)
    };
    for stored_for in [host.clone(), format!("https://{host}")] {
        for options in [options(&stored_for), with_password(&stored_for)] {
            let is_given = options.oci_credentials.is_some();
            let error = registry.file(&Http::new(options), VERSION, FILE).await.unwrap_err();
            let FetchError::Unauthorized { status: 401, withheld, .. } = &error else { panic!("{error:?}") };
            let said = withheld.as_ref().map(ToString::to_string);
            let expected = format!("OCI_HOST must name http://{host} before it is sent your credentials");
            assert_eq!(said, is_given.then_some(expected));
            servers.assert_nothing_said(&error);
        }
    }
    assert!(!servers.home_saw_credentials());
    assert!(servers.home.reported(&["are not sent without TLS: they must be stored for http://registry."]));
    let stored_for = format!("http://{host}");
    for options in [options(&stored_for), with_password(&stored_for)] {
        registry.file(&Http::new(options), VERSION, FILE).await.unwrap();
    }
}

#[tokio::test]
async fn a_token_service_is_not_shown_the_password_of_another_registry() {
    let servers = Servers::new().await;
    servers.home.server.registry_auth(RegistryAuth::TokenFrom(servers.away.url("/token")));
    servers.away.registry_auth(RegistryAuth::Token("me".to_owned(), CANARY.to_owned()));
    let away = servers.away.host();
    for http in [servers.http(&away), servers.http_with_password(&away)] {
        let error = ask(&http, &(OCI.address)(NAME)).await.unwrap_err();
        assert!(matches!(error, FetchError::Unauthorized { status: 401, .. }), "{error:?}");
        servers.assert_nothing_leaked(&error);
    }
}

#[tokio::test]
async fn a_token_service_leads_nowhere_else() {
    let servers = Servers::new().await;
    let user = RegistryAuth::Token("me".to_owned(), CANARY.to_owned());
    servers.home.server.registry_auth(user);
    servers.home.server.inject("/token", usize::MAX, Fault::Redirect(servers.away.url("/token")));
    let error = ask(&servers.http(NAME), &(OCI.address)(NAME)).await.unwrap_err();
    assert!(servers.home_saw_credentials());
    servers.assert_nothing_leaked(&error);
}

#[tokio::test]
async fn a_registry_without_encryption_gets_its_password_itself_or_nobody_does() {
    let servers = Servers::new().await;
    let host = servers.home.server.plain_host();
    let address = (OCI.address)(&host);
    servers.home.server.registry_auth(RegistryAuth::Token("me".to_owned(), CANARY.to_owned()));
    ask(&servers.http(&host), &address).await.unwrap();

    for realm in [servers.away.url("/token"), format!("http://{}/token", servers.away.plain_host())] {
        servers.home.server.registry_auth(RegistryAuth::TokenFrom(realm.clone()));
        let error = ask(&servers.http(&host), &address).await.unwrap_err();
        let expected = format!(
            "the address {realm} cannot be used: a registry without encryption wants the password sent there"
        );
        assert_eq!(error.to_string(), expected);
        assert!(servers.away.requests().is_empty());
        servers.assert_nothing_said(&error);
        // Without a password there is nothing to lose.
        let http = Http::new(HttpOptions { docker_config: None, ..servers.options(&host) });
        ask(&http, &address).await.unwrap();
        servers.away.forget_requests();
    }
}

#[tokio::test]
async fn refusals_do_not_quote_credentials() {
    for kind in KINDS {
        let servers = Servers::new().await;
        servers.home.server.registry_auth(RegistryAuth::Basic("me".to_owned(), "another".to_owned()));
        servers.home.server.inject(kind.redirected, usize::MAX, Fault::Status(401));
        let error = ask(&servers.http(NAME), &(kind.address)(NAME)).await.unwrap_err();
        assert!(matches!(error, FetchError::Unauthorized { .. }), "{error:?}");
        servers.assert_nothing_said(&error);
    }
}

#[test]
fn what_holds_credentials_does_not_show_them() {
    let variables = [("GITHUB_TOKEN".to_owned(), CANARY.to_owned())].into();
    let environment = Environment { variables, ..Environment::default() };
    let text = format!(
        "password: {CANARY}\ncert-manager: {{url: 'https://me:{CANARY}@h/v1.0.0/f?{CANARY}'}}\n\
         providers: [{{name: acme, type: InfrastructureProvider, url: 'https://me:{CANARY}@h/v1.0.0/f?{CANARY}'}}]\n"
    );
    let config = Config::parse(&text, Format::Yaml, "config", &environment).unwrap();
    let acme: Provider = config.providers().unwrap().into_iter().find(|it| it.name == "acme").unwrap();
    let cert_manager: CertManager = config.cert_manager().unwrap();
    assert!(acme.url.contains(CANARY) && cert_manager.url.contains(CANARY));
    let credentials = || Credentials { username: "me".to_owned(), password: CANARY.to_owned() };
    let docker = || DockerConfig { text: CANARY.to_owned(), run_helpers: false };
    let options = HttpOptions {
        oci_credentials: Some(credentials()),
        docker_config: Some(docker()),
        go_proxy: Some(format!("https://me:{CANARY}@proxy")),
        ..HttpOptions::default().with_tokens(&config)
    };
    assert_eq!(options.github_token.as_deref(), Some(CANARY));
    let mut shown = vec![
        format!("{:?} {:?} {options:?}", credentials(), docker()),
        format!("{:?} {environment:?} {config:?} {acme:?} {cert_manager:?}", Http::new(options)),
    ];
    for kind in KINDS {
        let address = (kind.address)(&format!("me:{CANARY}@h"));
        // Some kinds refuse a password in their address.
        shown.push(match Remote::parse(&address) {
            Ok(source) => format!("{source:?}"),
            Err(error) => format!("{error} {error:?}"),
        });
    }
    assert!(shown.iter().all(|it| !it.contains(CANARY)), "{shown:#?}");
}
