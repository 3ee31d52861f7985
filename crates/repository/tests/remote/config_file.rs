//! Configurations on a server.

use capstan_repository::{Config, ConfigError, Environment};
use capstan_testkit::fakes::Fault;

use crate::world::World;

const SECRET: &str = "s3cret";

async fn load(address: &str, world: &World, offline: bool) -> Result<Config, ConfigError> {
    let http = world.http_with(|options| options.offline = offline);
    Config::load(Some(address), &Environment::default(), &http).await
}

#[tokio::test]
async fn a_redirect_to_plain_http_is_followed_only_from_there() {
    let world = World::new().await;
    world.server.file("/moved.yaml", "V: moved");
    let plain = format!("http://{}", world.server.plain_host());
    world.server.inject("/c.yaml", usize::MAX, Fault::Redirect(format!("{plain}/moved.yaml")));
    let error = load("https://files.example.com/c.yaml", &world, false).await.unwrap_err();
    assert!(error.to_string().contains("only https is followed"), "{error}");
    assert_eq!(world.server.count("/moved.yaml"), 0);
    let config = load(&format!("{plain}/c.yaml"), &world, false).await.unwrap();
    assert_eq!(config.variable("V").as_deref(), Some("moved"));
}

#[tokio::test]
async fn the_secrets_of_an_address_stay_out_of_messages() {
    let world = World::new().await;
    world.server.file("/c.yaml", "V: 1");
    world.server.file("/page.yaml", "<html>");
    world.server.file("/bad.yaml", "a: 1\na: 2");
    let address = |path: &str| format!("https://user:{SECRET}@files.example.com{path}?sig={SECRET}#{SECRET}");
    let config = load(&address("/c.yaml"), &world, false).await.unwrap();
    assert_eq!(config.origin(), Some("https://files.example.com/c.yaml"));
    for (path, offline) in
        [("/none.yaml", false), ("/page.yaml", false), ("/bad.yaml", false), ("/c.yaml", true)]
    {
        let error = load(&address(path), &world, offline).await.unwrap_err();
        let told = format!("{error} {error:?}");
        assert!(told.contains(&format!("https://files.example.com{path}")), "{told}");
        assert!(!told.contains(SECRET), "{told}");
    }
    let error = load(&format!("https://user:{SECRET}@[h/c?{SECRET}"), &world, false).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains(SECRET), "{error}");
}

#[tokio::test]
async fn without_the_network_nobody_is_sent_to_the_cache() {
    let world = World::new().await;
    let error = load("https://files.example.com/c.yaml", &world, true).await.unwrap_err();
    assert!(!error.to_string().contains("cache"), "{error}");
    assert!(matches!(error, ConfigError::Offline { .. }), "{error:?}");
}
