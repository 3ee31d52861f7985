//! Where the configuration file is looked for.

use capstan_repository::{Config, ConfigError, Environment};

use crate::{
    folder::{Folder, client, http},
    server::Server,
};

async fn load(folder: &Folder, path: Option<&str>) -> Result<Config, ConfigError> {
    let mut environment = folder.environment();
    environment.variables.insert("XDG_CONFIG_HOME".to_owned(), folder.text("xdg"));
    Config::load(path, &environment, &http()).await
}

#[tokio::test]
async fn the_first_file_of_the_usual_places_counts() {
    let folder = Folder::new("usual-places");
    let config = load(&folder, None).await.unwrap();
    assert_eq!((config.origin(), config.variable("V")), (None, None));

    // Each one comes before those that were written earlier.
    for (name, content) in [
        ("home/.cluster-api/clusterctl.env", "V=1"),
        ("home/.cluster-api/clusterctl.yml", "V: 2"),
        ("home/.cluster-api/clusterctl.yaml", "V: 3"),
        ("xdg/cluster-api/clusterctl.dotenv", "V=4"),
        ("xdg/cluster-api/clusterctl.yml", "V: 5"),
        ("xdg/cluster-api/clusterctl.yaml", "V: 6"),
        ("xdg/cluster-api/clusterctl.toml", "V = 7"),
        ("xdg/cluster-api/clusterctl.json", "{\"V\": 8}"),
    ] {
        folder.write(name, content);
        let config = load(&folder, None).await.unwrap();
        assert_eq!(config.origin(), Some(folder.text(name).as_str()));
        let value = content.trim_end_matches('}').chars().last().map(|it| it.to_string());
        assert_eq!(config.variable("V"), value, "{name}");
    }
}

#[tokio::test]
async fn a_file_that_is_asked_for_must_be_there_and_readable() {
    let folder = Folder::new("asked-for");
    for (name, content, expected) in [
        ("c.yaml", "V: 1", Ok("1")),
        ("c.YAML", "V: 1", Ok("1")),
        ("c.env", "V=1", Ok("1")),
        ("without-extension", "V: 1", Ok("1")),
        ("empty.yaml", "", Err("")),
        ("c.txt", "V: 1", Err("txt is not a format that is understood; use yaml, json, toml or env")),
        ("c.properties", "V=1", Err("properties is not a format")),
        ("c.ini", "V=1", Err("ini is not a format")),
        ("c.hcl", "V=1", Err("hcl is not a format")),
    ] {
        folder.write(name, content);
        let loaded = load(&folder, Some(&folder.text(name))).await;
        match (loaded, expected) {
            (Ok(config), Ok(value)) => assert_eq!(config.variable("V").as_deref(), Some(value), "{name}"),
            (Ok(config), Err("")) => assert_eq!(config.variable("V"), None),
            (Err(error), Err(part)) => {
                let message = error.to_string();
                assert!(message.contains(part) && message.contains(name), "{message}");
            }
            (loaded, _) => panic!("{name}: {loaded:?}"),
        }
    }
    for (name, content, part) in [
        ("none.yaml", None, "does not exist"),
        ("folder.yaml", None, "cannot be read"),
        ("bytes.yaml", Some(&[0xff_u8, 0xfe][..]), "cannot be read: invalid utf-8"),
    ] {
        std::fs::create_dir_all(folder.path("folder.yaml")).unwrap();
        content.map(|it| folder.write(name, it));
        let message = load(&folder, Some(&folder.text(name))).await.unwrap_err().to_string();
        assert!(message.contains(part) && message.contains(name), "{message}");
    }
}

#[tokio::test]
async fn a_file_of_another_format_in_the_usual_places_is_not_passed_over() {
    let folder = Folder::new("other-format");
    folder.write("xdg/cluster-api/clusterctl.ini", "V=1").write("home/.cluster-api/clusterctl.yaml", "V: 2");
    let message = load(&folder, None).await.unwrap_err().to_string();
    assert!(message.contains("clusterctl.ini") && message.contains("ini is not a format"), "{message}");
}

#[tokio::test]
async fn a_file_may_be_on_a_server() {
    let http = client(false);
    for (status, path, body, expected) in [
        ("200 OK", "/c.yaml", "V: 1.10", Ok("1.1")),
        ("200 OK", "/c.toml?token=x", "V = '1.10'", Ok("1.10")),
        ("200 OK", "/config", "{\"V\": \"json is yaml\"}", Ok("json is yaml")),
        ("200 OK", "/c.yaml", "<!doctype html><html>Log in</html>", Err("it is a web page")),
        ("200 OK", "/c.yaml", "a: 1\na: 2", Err("is malformed: line 2")),
        ("404 Not Found", "/c.yaml", "", Err("cannot be downloaded: ")),
    ] {
        let address = format!("{}{path}", Server::start(status, body).address);
        match (Config::load(Some(&address), &Environment::default(), &http).await, expected) {
            (Ok(config), Ok(value)) => {
                assert_eq!(config.variable("V").as_deref(), Some(value));
                assert_eq!(config.origin(), address.split('?').next());
            }
            (Err(error), Err(part)) => {
                let message = error.to_string();
                assert!(message.contains(part) && message.contains(&address), "{message}");
            }
            (outcome, _) => panic!("{path} {body}: {outcome:?}"),
        }
    }
}
