//! What pages become.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use beeuni_fetch::{FetchError, Format};

use crate::{answer, fetch, page_of, said};

const ARTICLE: &str = r#"<!doctype html><html><head><title>Bees &amp; honey</title><style>p{color:red}</style></head><body>
<nav><a href="/">Home</a><a href="/shop">Shop</a></nav>
<article><h1>Bees</h1>
<p>Bees are flying insects closely related to wasps and ants, known for their role in pollination and, in the case of the
best-known species, the western honey bee, for producing honey. See <a href="more.html">more</a>.</p>
<ul><li>one</li><li>two</li></ul>
<pre><code>let bee = 1;</code></pre>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<script>alert('no')</script></article>
<footer>Copyright</footer></body></html>"#;

#[tokio::test]
async fn an_article() {
    let site = page_of("text/html; charset=utf-8", ARTICLE).await;
    let page = fetch(&format!("{}/wiki/bees", site.url), Format::Markdown).await.unwrap();
    assert_eq!(
        (page.title.as_str(), page.status, page.content_type.as_str()),
        ("Bees & honey", 200, "text/html")
    );
    insta::assert_snapshot!(page.content.replace(&site.url, "<site>"), @r"
    Bees are flying insects closely related to wasps and ants, known for their role in pollination and, in the case of the best-known species, the western honey bee, for producing honey. See [more](<site>/wiki/more.html).

    *   one
    *   two

    ```
    let bee = 1;
    ```

    | a | b |
    | - | - |
    | 1 | 2 |
    ");
    let page = fetch(&site.url, Format::Text).await.unwrap();
    insta::assert_snapshot!(page.content, @r"
    Bees are flying insects closely related to wasps and ants, known for their role in pollination and, in the case of the best-known species, the western honey bee, for producing honey. See more.

    one
    two


    let bee = 1;

    a b
    1 2
    ");
    assert_eq!(fetch(&site.url, Format::Html).await.unwrap().content, ARTICLE);
}

#[tokio::test]
async fn html_that_is_hardly_a_page() {
    let table = [
        ("", ""),
        ("<p>Hi", "Hi"),
        ("just text", "just text"),
        ("<script>x</script>", ""),
        ("<html><body><form><input name=q></form></body></html>", ""),
        ("<body><h1>404</h1>", "404"),
        ("<a href=javascript:alert(1)>x</a> y", "x"),
    ];
    for (html, expected) in table {
        let site = page_of("text/html", html).await;
        let page = fetch(&site.url, Format::Markdown).await.unwrap();
        assert!(page.content.contains(expected), "{html}: {:?}", page.content);
        assert!(
            !page.content.contains("javascript:") && !page.content.contains('<'),
            "{html}: {:?}",
            page.content
        );
    }
}

#[tokio::test]
async fn text_that_is_not_html_is_passed_on() {
    for content_type in [
        "text/plain",
        "application/json",
        "application/ld+json; charset=utf-8",
        "text/csv",
        "image/svg+xml",
        "",
    ] {
        let body = "{\"a\": \"<b>ä</b>\"}\n";
        let site = page_of(content_type, body).await;
        for format in [Format::Markdown, Format::Text, Format::Html] {
            assert_eq!(fetch(&site.url, format).await.unwrap().content, body, "{content_type}");
        }
    }
}

#[tokio::test]
async fn binary_is_refused_in_words() {
    let table: [(&str, &[u8], &str); 6] = [
        ("image/png", b"\x89PNG", "image/png"),
        ("application/pdf", b"%PDF", "application/pdf"),
        ("APPLICATION/ZIP; x=y", b"PK", "application/zip"),
        ("text/html", b"<p>\0", "binary data sent as text/html"),
        ("application/octet-stream", b"\xff\x01", "binary data sent as application/octet-stream"),
        ("", b"\x7fELF\0", "binary data"),
    ];
    for (content_type, body, expected) in table {
        let site = page_of(content_type, body).await;
        let error = fetch(&site.url, Format::Markdown).await.unwrap_err();
        assert!(matches!(error, FetchError::Binary { .. }));
        assert_eq!(
            said(&error, &site),
            format!("<site>/ is not text but {expected}; it cannot be read as a page")
        );
    }
}

#[tokio::test]
async fn encodings() {
    let table: [(&str, &[u8], &str); 10] = [
        ("text/plain; charset=iso-8859-1", b"caf\xe9", "café"),
        ("text/plain; charset=\"UTF-8\"", "café".as_bytes(), "café"),
        ("text/plain", b"caf\xe9", "café"),
        ("text/plain", "café".as_bytes(), "café"),
        ("text/plain; charset=nonsense", "café".as_bytes(), "café"),
        ("text/plain; charset=shift_jis", b"\x83n\x83`", "ハチ"),
        ("text/plain", b"\xff\xfeh\0i\0", "hi"),
        ("text/plain", b"\xef\xbb\xbfhi", "hi"),
        ("text/html", b"<meta charset=windows-1251><p>\xef\xf7\xe5\xeb\xe0", "пчела"),
        (
            "text/html",
            b"<meta http-equiv=Content-Type content='text/html; charset=koi8-r'><p>\xd0\xde\xc5\xcc\xc1",
            "пчела",
        ),
    ];
    for (content_type, body, expected) in table {
        let site = page_of(content_type, body).await;
        assert_eq!(fetch(&site.url, Format::Text).await.unwrap().content, expected, "{content_type}");
    }
}

#[tokio::test]
async fn an_error_page_is_a_page() {
    let site =
        answer((StatusCode::NOT_FOUND, [(CONTENT_TYPE, "text/html")], "<title>No</title><p>Not here")).await;
    let page = fetch(&site.url, Format::Text).await.unwrap();
    assert_eq!((page.status, page.title.as_str(), page.content.as_str()), (404, "No", "Not here"));
}
