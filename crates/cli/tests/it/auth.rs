//! Authentication of `adjutant serve`: by token, cookie, signed token and proxy; and the answers to
//! everyone else.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Value, json};

use crate::harness::Home;
use crate::service::{Reply, Serving, send};

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const SCRIPT: &[&str] = &[
    r#"{"match": "success", "text": "Added."}"#,
    r#"{"match": "add ", "calls": [{"name": "add_task", "args": {"description": "{{rest}}"}}]}"#,
    r#"{"match": "list", "calls": [{"name": "list_tasks", "args": {}}]}"#,
    r#"{"text": "Hello.", "repeat": true}"#,
];

/// A service with these settings, and a model of few words.
fn serve(home: &Home, settings: &[(&str, &str)]) -> Serving {
    let model = home.script(SCRIPT);
    let mut command = home.serve_command(&model);
    command.envs(
        settings
            .iter()
            .map(|(name, value)| (format!("ADJUTANT_SERVE_{name}"), *value)),
    );
    Serving::start(&mut command)
}

fn me(service: &Serving, headers: &[(&str, &str)]) -> Reply {
    send(&service.address, "GET", "/v1/me", headers, "").unwrap()
}

fn user(service: &Serving, token: &str) -> Result<String, u16> {
    let reply = me(service, &[("Authorization", &format!("Bearer {token}"))]);
    if reply.status == 200 {
        Ok(reply.json()["user"].as_str().unwrap().to_owned())
    } else {
        Err(reply.status)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a token expires at a time of the real world"
)]
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn token(header: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let message = format!(
        "{}.{}",
        encode(header.to_string()),
        encode(claims.to_string())
    );
    format!("{message}.{}", encode(sign(message.as_bytes())))
}

fn with_secret(secret: &str) -> impl Fn(&[u8]) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    move |message| hmac::sign(&key, message).as_ref().to_vec()
}

#[test]
fn without_a_token_of_ours_no_request_has_a_user() {
    let home = Home::new();
    let service = serve(&home, &[]);
    let own = format!("Bearer {}", service.token());
    let known = me(&service, &[("Authorization", &own)]);
    let status = known.json();
    assert_eq!(
        (&status["user"], &status["auth"], &status["demo"]),
        (&json!("local"), &json!("token"), &json!(true))
    );
    let delete = status["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "delete_task")
        .unwrap();
    assert_eq!(
        (&delete["destructive"], &delete["read_only"]),
        (&json!(true), &json!(false))
    );
    for header in [
        None,
        Some("Bearer adj_wrong"),
        Some("Bearer "),
        Some("Basic YTpi"),
        Some(service.token()),
    ] {
        let headers: Vec<(&str, &str)> = header
            .map(|value| ("Authorization", value))
            .into_iter()
            .collect();
        let refused = me(&service, &headers);
        assert_eq!(refused.status, 401, "{header:?}");
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        refused.is_problem("unauthorized", "/v1/me");
    }
}

#[test]
fn a_browser_gets_a_cookie_that_only_the_page_can_use() {
    let home = Home::new();
    let service = serve(&home, &[]);
    let link = service.announced["web"].as_str().unwrap();
    let path = link
        .strip_prefix(&format!("http://{}", service.address))
        .unwrap();
    assert!(path.starts_with("/?token=adj_"), "{link}");
    let entered = send(
        &service.address,
        "GET",
        path,
        &[("Accept", "text/html"), ("Sec-Fetch-Site", "none")],
        "",
    );
    let entered = entered.unwrap();
    assert_eq!(
        (entered.status, entered.header("location")),
        (303, Some("/"))
    );
    let set = entered.header("set-cookie").unwrap().to_owned();
    for word in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="] {
        assert!(set.contains(word), "{set}");
    }
    assert!(!set.contains("Secure"), "{set}");
    let cookie = set.split(';').next().unwrap();
    assert_eq!(me(&service, &[("Cookie", cookie)]).status, 200);
    let own = format!("http://{}", service.address);
    let post = |more: &[(&str, &str)]| {
        let headers = [
            &[("Cookie", cookie), ("Content-Type", "application/json")],
            more,
        ]
        .concat();
        send(
            &service.address,
            "POST",
            "/v1/chat",
            &headers,
            r#"{"message": "hi"}"#,
        )
        .unwrap()
        .status
    };
    assert_eq!(post(&[("Origin", &own)]), 200);
    assert_eq!(post(&[("Sec-Fetch-Site", "same-origin")]), 200);
    for foreign in [
        &[][..],
        &[("Origin", "https://evil.example")],
        &[("Origin", "null")],
        &[("Sec-Fetch-Site", "same-site")],
        &[("Origin", "http://127.0.0.1:1")],
        &[("Origin", &own), ("Sec-Fetch-Site", "cross-site")],
    ] {
        assert_eq!(post(foreign), 403, "{foreign:?}");
    }
    let left = send(
        &service.address,
        "DELETE",
        "/v1/session",
        &[("Cookie", cookie), ("Origin", &own)],
        "",
    )
    .unwrap();
    assert_eq!(left.status, 204);
    assert!(left.header("set-cookie").unwrap().contains("Max-Age=0"));
}

#[test]
fn a_token_is_exchanged_and_others_sign_no_user_in() {
    let home = Home::new();
    let service = serve(&home, &[]);
    let exchange = |token: &str, more: &[(&str, &str)]| {
        let headers = [&[("Content-Type", "application/json")], more].concat();
        send(
            &service.address,
            "POST",
            "/v1/session",
            &headers,
            &json!({ "token": token }).to_string(),
        )
        .unwrap()
    };
    let secure = exchange(service.token(), &[("X-Forwarded-Proto", "https")]);
    assert_eq!(secure.status, 204);
    assert!(secure.header("set-cookie").unwrap().contains("Secure"));
    assert!(secure.text.is_empty());
    exchange("adj_wrong", &[]).is_problem("unauthorized", "/v1/session");
    assert_eq!(
        exchange(service.token(), &[("Origin", "https://evil.example")]).status,
        403
    );
    let link = |token: &str, more: &[(&str, &str)]| {
        send(
            &service.address,
            "GET",
            &format!("/?token={token}"),
            more,
            "",
        )
        .unwrap()
    };
    assert_eq!(link("adj_wrong", &[]).status, 401);
    assert_eq!(
        link(service.token(), &[("Sec-Fetch-Site", "cross-site")]).status,
        403
    );
    // A person who comes with an old link is shown the page, which says what to do.
    let old = link("adj_old", &[("Accept", "text/html,*/*")]);
    assert_eq!(old.status, 303);
    assert!(old.header("set-cookie").unwrap().contains("Max-Age=0"));
}

#[test]
fn a_signed_token_names_its_user_and_nothing_else_does() {
    let home = Home::new();
    let service = serve(
        &home,
        &[
            ("AUTH", "jwt"),
            ("JWT_SECRET", SECRET),
            ("JWT_AUDIENCE", "adjutant"),
        ],
    );
    assert_eq!(
        (&service.announced["token"], &service.announced["auth"]),
        (&Value::Null, &json!("jwt"))
    );
    let claims = |sub: &str| json!({"sub": sub, "aud": "adjutant", "exp": now() + 600});
    let hs256 = json!({"alg": "HS256", "typ": "JWT"});
    let ana = token(&hs256, &claims("ana"), with_secret(SECRET));
    let eve = token(&hs256, &claims("eve"), with_secret(SECRET));
    assert_eq!(
        (user(&service, &ana), user(&service, &eve)),
        (Ok("ana".to_owned()), Ok("eve".to_owned()))
    );
    let expired = json!({"sub": "ana", "aud": "adjutant", "exp": now() - 600});
    let elsewhere = json!({"sub": "ana", "aud": "mail", "exp": now() + 600});
    let unsigned = format!(
        "{}.{}.",
        encode(r#"{"alg":"none"}"#),
        encode(claims("ana").to_string())
    );
    let (head, _) = ana.rsplit_once('.').unwrap();
    let (_, signature) = eve.rsplit_once('.').unwrap();
    for bad in [
        token(&hs256, &expired, with_secret(SECRET)),
        token(&hs256, &elsewhere, with_secret(SECRET)),
        token(
            &hs256,
            &claims("ana"),
            with_secret("another secret that is long enough ..."),
        ),
        token(
            &json!({"alg": "HS384"}),
            &claims("ana"),
            with_secret(SECRET),
        ),
        unsigned,
        format!("{head}.{signature}"),
        "no token".to_owned(),
    ] {
        assert_eq!(user(&service, &bad), Err(401), "{bad}");
    }
    // Whoever works on the machine is nobody's to name.
    assert_eq!(
        user(
            &service,
            &token(&hs256, &claims("local"), with_secret(SECRET))
        ),
        Err(401)
    );
    assert_eq!(
        user(
            &service,
            &token(&hs256, &claims(" local"), with_secret(SECRET))
        ),
        Ok(" local".to_owned())
    );
    // The browser's way works too; the cookie is the token, and ends with it.
    let body = json!({ "token": ana }).to_string();
    let headers = [("Content-Type", "application/json")];
    let exchanged = send(&service.address, "POST", "/v1/session", &headers, &body).unwrap();
    let cookie = exchanged
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    assert_eq!(me(&service, &[("Cookie", &cookie)]).json()["user"], "ana");
    // Two users, two lists.
    assert_eq!(
        service
            .chat(&ana, &json!({"message": "add buy milk"}))
            .status,
        200
    );
    let seen = service.chat(&eve, &json!({"message": "list"}));
    assert!(!seen.body.to_string().contains("milk"), "{seen:?}");
    assert!(home.tasks().is_empty());
}

/// An issuer on this machine: how often it was asked, and where.
fn issuer(keys: Value) -> (Arc<AtomicUsize>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else {
                return;
            };
            let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            count.fetch_add(1, Ordering::SeqCst);
            let body = keys.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}",
                body.len()
            );
            let _ = write!(connection, "{head}\r\n\r\n{body}");
        }
    });
    (asked, url)
}

#[test]
fn the_issuers_keys_are_fetched_and_not_for_every_bad_token() {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let ec = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random)
        .unwrap();
    let ed = Ed25519KeyPair::from_pkcs8(Ed25519KeyPair::generate_pkcs8(&random).unwrap().as_ref())
        .unwrap();
    let point = ec.public_key().as_ref();
    let keys = json!({"keys": [
        {"kty": "EC", "crv": "P-256", "kid": "ec", "use": "sig", "x": encode(&point[1..33]), "y": encode(&point[33..])},
        {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": encode(ed.public_key())},
    ]});
    let (asked, url) = issuer(keys);
    let home = Home::new();
    let settings = [
        ("AUTH", "jwt"),
        ("JWT_JWKS_URL", &url),
        ("JWT_ISSUER", "https://id.example"),
        ("JWT_AUDIENCE", "adjutant"),
    ];
    let service = serve(&home, &settings);
    let claims =
        json!({"sub": "ana", "iss": "https://id.example", "aud": ["adjutant"], "exp": now() + 600});
    let by_ec = |message: &[u8]| ec.sign(&random, message).unwrap().as_ref().to_vec();
    let by_ed = |message: &[u8]| ed.sign(message).as_ref().to_vec();
    assert_eq!(
        user(
            &service,
            &token(&json!({"alg": "ES256", "kid": "ec"}), &claims, by_ec)
        ),
        Ok("ana".to_owned())
    );
    assert_eq!(
        user(
            &service,
            &token(&json!({"alg": "EdDSA", "kid": "ed"}), &claims, by_ed)
        ),
        Ok("ana".to_owned())
    );
    // One key of that kind: which is meant is clear.
    assert_eq!(
        user(&service, &token(&json!({"alg": "ES256"}), &claims, by_ec)),
        Ok("ana".to_owned())
    );
    // Whoever knows a public key does not know a secret.
    let public = hmac::Key::new(hmac::HMAC_SHA256, point);
    let forged = |message: &[u8]| hmac::sign(&public, message).as_ref().to_vec();
    for bad in [
        token(&json!({"alg": "HS256", "kid": "ec"}), &claims, forged),
        token(&json!({"alg": "ES256", "kid": "ed"}), &claims, by_ec),
        token(&json!({"alg": "EdDSA", "kid": "ed"}), &claims, by_ec),
        token(
            &json!({"alg": "ES256", "kid": "ec"}),
            &json!({"sub": "ana", "aud": "adjutant", "exp": now() + 600}),
            by_ec,
        ),
    ] {
        assert_eq!(user(&service, &bad), Err(401), "{bad}");
    }
    for number in 0..5 {
        let unknown = token(
            &json!({"alg": "ES256", "kid": format!("k{number}")}),
            &claims,
            by_ec,
        );
        assert_eq!(user(&service, &unknown), Err(401));
    }
    assert_eq!(
        asked.load(Ordering::SeqCst),
        1,
        "each bad token made us ask the issuer"
    );
}

#[test]
fn an_issuer_that_is_away_is_no_reason_to_believe_anybody() {
    let home = Home::new();
    let settings = [
        ("AUTH", "jwt"),
        ("JWT_JWKS_URL", "http://127.0.0.1:1/keys"),
        ("JWT_ISSUER", "https://id.example"),
        ("JWT_AUDIENCE", "adjutant"),
    ];
    let service = serve(&home, &settings);
    let claims =
        json!({"sub": "ana", "iss": "https://id.example", "aud": "adjutant", "exp": now() + 600});
    let header = json!({"alg": "ES256", "kid": "a"});
    let bearer = format!("Bearer {}", token(&header, &claims, |_| vec![0; 64]));
    let refused = me(&service, &[("Authorization", &bearer)]);
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("30"))
    );
    refused.is_problem("unavailable", "/v1/me");
    let ready = send(&service.address, "GET", "/readyz", &[], "").unwrap();
    assert_eq!(ready.status, 503);
    assert!(ready.text.contains("keys"), "{}", ready.text);
}

#[test]
fn only_the_proxy_says_who_asks() {
    let home = Home::new();
    let header = ("PROXY_HEADER", "X-Forwarded-User");
    let service = serve(
        &home,
        &[
            ("AUTH", "proxy"),
            header,
            ("PROXY_PEERS", "127.0.0.0/8,::1"),
        ],
    );
    assert_eq!(
        me(&service, &[("X-Forwarded-User", "ana")]).json()["user"],
        "ana"
    );
    assert_eq!(me(&service, &[]).status, 401);
    assert_eq!(
        me(
            &service,
            &[("X-Forwarded-User", "ana"), ("X-Forwarded-User", "eve")]
        )
        .status,
        401
    );
    // The proxy lets the browser in by itself: pages of others must not use that.
    let headers = [
        ("X-Forwarded-User", "ana"),
        ("Content-Type", "application/json"),
        ("Sec-Fetch-Site", "cross-site"),
    ];
    assert_eq!(
        send(
            &service.address,
            "POST",
            "/v1/chat",
            &headers,
            r#"{"message":"x"}"#
        )
        .unwrap()
        .status,
        403
    );
    let service = serve(
        &home,
        &[("AUTH", "proxy"), header, ("PROXY_PEERS", "192.0.2.1")],
    );
    me(&service, &[("X-Forwarded-User", "ana")]).is_problem("forbidden", "/v1/me");
}

#[test]
fn half_a_configuration_is_none() {
    let home = Home::new();
    for (settings, words) in [
        ("auth = \"jwt\"", "serve.jwt_jwks_url"),
        ("auth = \"jwt\"\njwt_secret = \"short\"", "32 bytes"),
        (
            "auth = \"jwt\"\njwt_secret = \"0123456789abcdef0123456789abcdef\"\njwt_jwks_file = \"keys.json\"",
            "one way",
        ),
        (
            "auth = \"jwt\"\njwt_jwks_url = \"https://id.example/keys\"",
            "serve.jwt_issuer",
        ),
        (
            "auth = \"jwt\"\njwt_jwks_url = \"http://id.example/keys\"\njwt_issuer = \"i\"\njwt_audience = [\"a\"]",
            "https://",
        ),
        (
            "auth = \"jwt\"\njwt_jwks_file = \"nowhere.json\"\njwt_issuer = \"i\"\njwt_audience = [\"a\"]",
            "nowhere.json",
        ),
        ("auth = \"proxy\"", "serve.proxy_header"),
        (
            "auth = \"proxy\"\nproxy_header = \"x-user\"",
            "serve.proxy_peers",
        ),
        (
            "auth = \"proxy\"\nproxy_header = \"x user\"\nproxy_peers = [\"::1\"]",
            "x user",
        ),
        (
            "auth = \"proxy\"\nproxy_header = \"x-user\"\nproxy_peers = [\"proxy\"]",
            "\"proxy\"",
        ),
        ("auth = \"password\"", "serve.auth"),
        ("requests_per_minute = 0", "serve.requests_per_minute"),
        ("metrics_bind = \"here\"", "serve.metrics_bind"),
    ] {
        home.config(&format!("[serve]\n{settings}\n"));
        let refused = home
            .run(&["serve", "-m", "demo", "--bind", "127.0.0.1:0"])
            .ends_with(3)
            .says(words);
        assert!(!refused.stderr.contains("0123456789abcdef"), "{refused:?}");
    }
    home.config("[serve]\njwt_secret = \"0123456789abcdef0123456789abcdef\"\n");
    let shown = home.run(&["config", "show"]).succeeds();
    assert!(
        shown.stdout.contains("not shown") && !shown.stdout.contains("0123456789abcdef"),
        "{shown:?}"
    );
}

#[test]
fn names_that_were_rebound_to_this_machine_are_refused() {
    let home = Home::new();
    let service = serve(&home, &[("HOSTS", "tasks.example")]);
    let bearer = format!("Bearer {}", service.token());
    let status = |host: &str, origin: &[(&str, &str)]| {
        let headers = [
            &[("Authorization", bearer.as_str()), ("Host", host)],
            origin,
        ]
        .concat();
        send(&service.address, "DELETE", "/v1/session", &headers, "")
            .unwrap()
            .status
    };
    assert_eq!(status("evil.example", &[]), 403);
    assert_eq!(status("tasks.example", &[]), 204);
    // Behind a proxy, the name people use is not the one the proxy asks by.
    assert_eq!(
        status(&service.address, &[("Origin", "https://tasks.example")]),
        204
    );
    assert_eq!(
        status(&service.address, &[("Origin", "https://evil.example")]),
        403
    );
}
