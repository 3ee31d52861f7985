//! Plain servers.

use capstan_repository::remote::{Http, HttpsRelease, Remote};

use crate::world::{World, files_in};

#[tokio::test]
async fn versions_lie_beside_each_other() {
    let world = World::new().await;
    world.server.file("/capi/v1.0.0/metadata.yaml", "one");
    world.server.file("/capi/v2.0.0/metadata.yaml", "two");
    let source = Remote::parse("https://files.example.com/capi/v1.0.0/components.yaml").unwrap();
    let http = world.http();
    assert_eq!(source.file(&http, "v1.0.0", "metadata.yaml").await.unwrap(), b"one");
    assert_eq!(source.file(&http, "v2.0.0", "metadata.yaml").await.unwrap(), b"two");
    assert_eq!(source.versions(&http).await.unwrap(), ["v1.0.0"]);
    assert_eq!(source.files(&http, "v1.0.0").await.unwrap(), None);
}

#[tokio::test]
async fn latest_is_what_the_server_says_each_time() {
    let world = World::new().await;
    world.server.file("/capi/latest/f.yaml", "one");
    let source = HttpsRelease::parse("https://files.example.com/capi/latest/f.yaml").unwrap();
    for (content, cached) in [("one", false), ("one", true), ("two", false)] {
        world.server.file("/capi/latest/f.yaml", content);
        let fetched = source.fetch(&world.cached_http(), "latest", "f.yaml").await.unwrap();
        assert_eq!((fetched.bytes.as_slice(), fetched.cached), (content.as_bytes(), cached));
    }
    let requests = world.server.requests();
    let asked: Vec<_> = requests.iter().filter(|request| request.path == "/capi/latest/f.yaml").collect();
    assert_eq!(asked.len(), 3);
    assert!(!asked[0].headers.contains_key("if-none-match"));
    assert!(asked[1].headers.contains_key("if-none-match"));
}

#[tokio::test]
async fn a_query_goes_with_every_file_and_stays_out_of_messages() {
    let world = World::new().await;
    let source =
        HttpsRelease::parse("https://files.example.com/capi/v1.0.0/f.yaml?signature=s3cret").unwrap();
    let error = source.file(&world.http(), "v1.0.0", "f.yaml").await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    assert_eq!(world.server.count("/capi/v1.0.0/f.yaml?signature=s3cret"), 1);
}

#[tokio::test]
async fn the_query_tells_providers_apart_in_the_cache_too() {
    let world = World::new().await;
    let fetch = async |query: &str, http: Http| {
        let address = format!("https://files.example.com/capi/v1.0.0/f.yaml{query}");
        Remote::parse(&address).unwrap().file(&http, "v1.0.0", "f.yaml").await.unwrap()
    };
    let providers = [("", "plain"), ("?provider=one", "one"), ("?provider=two", "two")];
    for (query, content) in providers {
        world.server.file("/capi/v1.0.0/f.yaml", content);
        assert_eq!(fetch(query, world.cached_http()).await, content.as_bytes(), "{query}");
    }
    for (query, content) in providers {
        assert_eq!(fetch(query, world.offline_http()).await, content.as_bytes(), "{query}");
    }
    for entry in files_in(&world.cache.join("index")) {
        let text = std::fs::read_to_string(entry).unwrap();
        assert!(!text.contains("provider="), "{text}");
    }
}
