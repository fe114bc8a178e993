//! Which addresses are refused, however they are written and wherever on the way they come up.

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use beeuni_fetch::{FetchError, Format, Options, is_public, private_range};

use crate::{fetch, fetch_with, redirect, said, serve};

#[test]
fn public_and_not() {
    let table: &[(&str, Option<&str>)] = &[
        ("1.1.1.1", None),
        ("8.8.8.8", None),
        ("9.255.255.255", None),
        ("11.0.0.0", None),
        ("100.63.255.255", None),
        ("100.128.0.0", None),
        ("126.255.255.255", None),
        ("128.0.0.0", None),
        ("169.253.255.255", None),
        ("172.15.255.255", None),
        ("172.32.0.0", None),
        ("192.167.255.255", None),
        ("192.169.0.0", None),
        ("223.255.255.255", None),
        ("0.0.0.0", Some("this network")),
        ("0.255.255.255", Some("this network")),
        ("10.0.0.0", Some("private")),
        ("10.255.255.255", Some("private")),
        ("100.64.0.0", Some("carrier-grade NAT")),
        ("100.100.100.200", Some("carrier-grade NAT")),
        ("100.127.255.255", Some("carrier-grade NAT")),
        ("127.0.0.1", Some("loopback")),
        ("127.255.255.255", Some("loopback")),
        ("168.63.129.16", Some("cloud metadata")),
        ("169.254.169.254", Some("cloud metadata")),
        ("169.254.0.1", Some("link-local")),
        ("172.16.0.0", Some("private")),
        ("172.31.255.255", Some("private")),
        ("192.0.0.192", Some("protocol assignments")),
        ("192.0.2.1", Some("documentation")),
        ("192.88.99.1", Some("6to4 relay")),
        ("192.168.1.1", Some("private")),
        ("198.19.255.255", Some("benchmarking")),
        ("198.51.100.1", Some("documentation")),
        ("203.0.113.1", Some("documentation")),
        ("224.0.0.1", Some("multicast")),
        ("240.0.0.1", Some("reserved")),
        ("255.255.255.255", Some("reserved")),
        ("2606:4700:4700::1111", None),
        ("2a00:1450:4001::200e", None),
        ("::", Some("unspecified")),
        ("::1", Some("loopback")),
        ("::2", Some("this network")),
        ("::ffff:127.0.0.1", Some("loopback")),
        ("::ffff:10.0.0.1", Some("private")),
        ("::ffff:169.254.169.254", Some("cloud metadata")),
        ("::ffff:1.1.1.1", None),
        ("::127.0.0.1", Some("loopback")),
        ("::ffff:0:127.0.0.1", Some("loopback")),
        ("64:ff9b::127.0.0.1", Some("loopback")),
        ("64:ff9b::10.1.2.3", Some("private")),
        ("64:ff9b::1.1.1.1", None),
        ("64:ff9b:1::1", Some("local NAT64")),
        ("2002:7f00:1::", Some("loopback")),
        ("2002:a9fe:a9fe::1", Some("cloud metadata")),
        ("2002:c0a8:101::1", Some("private")),
        ("2002:101:101::1", None),
        ("2606:4700::5efe:10.0.0.1", Some("private")),
        ("2606:4700::200:5efe:127.0.0.1", Some("loopback")),
        ("2001::1", Some("protocol assignments")),
        ("2001:db8::1", Some("documentation")),
        ("3fff::1", Some("documentation")),
        ("fc00::1", Some("private")),
        ("fd12:3456::1", Some("private")),
        ("fd00:ec2::254", Some("cloud metadata")),
        ("fe80::1", Some("link-local")),
        ("fec0::1", Some("site-local")),
        ("ff02::1", Some("multicast")),
        ("100::1", Some("discard")),
        ("4000::1", Some("reserved")),
        ("5f00::1", Some("segment routing")),
    ];
    for (address, expected) in table {
        let parsed = address.parse().unwrap();
        assert_eq!(private_range(parsed), *expected, "{address}");
        assert_eq!(is_public(parsed), expected.is_none(), "{address}");
    }
}

#[tokio::test]
async fn an_address_in_any_writing_is_refused() {
    let table = [
        ("http://127.0.0.1/", "127.0.0.1"),
        ("http://127.1/", "127.0.0.1"),
        ("http://2130706433/", "127.0.0.1"),
        ("http://0x7f.0.0.1/", "127.0.0.1"),
        ("http://0177.0.0.1/", "127.0.0.1"),
        ("http://127.0.0.1:8080/", "127.0.0.1"),
        ("http://127.0.0.1./", "127.0.0.1"),
        ("http://１２７.0.0.1/", "127.0.0.1"),
        ("http://0/", "0.0.0.0"),
        ("http://[::1]/", "::1"),
        ("http://[::ffff:127.0.0.1]/", "::ffff:127.0.0.1"),
        ("http://[::ffff:7f00:1]:80/", "::ffff:127.0.0.1"),
        ("http://169.254.169.254/latest/meta-data/", "169.254.169.254"),
        ("HTTP://localhost:1/", "127.0.0.1"),
    ];
    for (url, expected) in table {
        match fetch_with(Options::default(), url, Format::Text).await {
            Err(FetchError::Private { address, .. }) => {
                let loopback = address.is_loopback() && expected == "127.0.0.1";
                assert!(loopback || address.to_string() == expected, "{url}: {address}");
            }
            other => panic!("{url}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn what_is_no_address_to_fetch() {
    let table = [
        ("", "relative URL without a base"),
        ("example.com", "relative URL without a base"),
        ("file:///etc/passwd", "only http and https are fetched"),
        ("ftp://example.com/", "only http and https are fetched"),
        ("data:text/html,hi", "only http and https are fetched"),
        ("javascript:alert(1)", "only http and https are fetched"),
        ("http://", "empty host"),
        ("http://user:secret@example.com/", "it holds a user name or password"),
    ];
    for (url, expected) in table {
        match fetch(url, Format::Text).await {
            Err(error @ FetchError::Address { .. }) => {
                assert!(error.to_string().contains(expected), "{url}: {error}");
                assert!(!error.to_string().contains("secret"), "{error}");
            }
            other => panic!("{url}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn each_redirect_is_judged_again() {
    // 127.0.0.1 is allowed to the tests, its neighbours are not.
    let table = [
        (
            "private",
            "http://127.0.0.2/",
            "http://127.0.0.2/ is refused: 127.0.0.2 is at 127.0.0.2, which is not public (loopback)",
        ),
        (
            "metadata",
            "//169.254.169.254/latest",
            "http://169.254.169.254/latest is refused: 169.254.169.254 is at 169.254.169.254, which is not public (cloud metadata)",
        ),
        (
            "six",
            "http://[::ffff:10.0.0.1]/",
            "http://[::ffff:a00:1]/ is refused: [::ffff:a00:1] is at ::ffff:10.0.0.1, which is not public (private)",
        ),
        (
            "file",
            "file:///etc/passwd",
            "file:///etc/passwd is not an address to fetch: only http and https are fetched",
        ),
        (
            "broken",
            "http://[",
            "http://[ is not an address to fetch: <site>/broken redirects there, and invalid IPv6 address",
        ),
        ("loop", "/loop", "<site>/loop redirects more than 10 times"),
    ];
    let to = move |Path(name): Path<String>| {
        let to = table.iter().find(|(from, ..)| *from == name).map_or("/", |(_, to, _)| to);
        std::future::ready(redirect(to))
    };
    let site = serve(Router::new().route("/{name}", get(to))).await;
    for (name, _, expected) in table {
        let error = fetch(&format!("{}/{name}", site.url), Format::Text).await.unwrap_err();
        assert_eq!(said(&error, &site), expected);
    }
}

#[tokio::test]
async fn a_page_is_known_by_where_it_was_found() {
    let router = Router::new()
        .route("/a", get(|| async { redirect("b?x=1") }))
        .route("/b", get(|| async { redirect("/c") }))
        .route("/c", get(|| async { "here" }));
    let site = serve(router).await;
    let page = fetch(&format!("{}/a#part", site.url), Format::Text).await.unwrap();
    assert_eq!((page.url, page.content.as_str()), (format!("{}/c", site.url), "here"));
}
