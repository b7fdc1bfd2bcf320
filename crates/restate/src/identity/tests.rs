use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::*;

const NOW: i64 = 1_721_662_650;
const PATH: &str = "/invoke/Conversation/advance";

/// A pair made from a number; the same number makes the same one.
fn pair(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

fn public(pair: &Ed25519KeyPair) -> PublicKey {
    PublicKey(pair.public_key().as_ref().try_into().unwrap())
}

fn token(pair: &Ed25519KeyPair, header: &Value, claims: &Value) -> String {
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(header), part(claims));
    let signature = BASE64_URL_SAFE_NO_PAD.encode(pair.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

fn header() -> Value {
    json!({ "typ": "JWT", "alg": "EdDSA", "kid": public(&pair(1)).to_string() })
}

fn claims() -> Value {
    json!({ "aud": PATH, "iat": NOW, "nbf": NOW - 60, "exp": NOW + 60 })
}

fn with(mut object: Value, name: &str, value: Value) -> Value {
    object[name] = value;
    object
}

fn headers(scheme: &str, token: &str) -> HeaderMap {
    HeaderMap::from_iter([
        (SCHEME, scheme.parse().unwrap()),
        (TOKEN, token.parse().unwrap()),
    ])
}

fn checked(token: &str) -> Result<(), Refused> {
    check_at(
        &[public(&pair(9)), public(&pair(1))],
        PATH,
        &headers("v1", token),
        NOW,
    )
}

#[test]
fn what_one_of_the_keys_signed_is_taken() {
    assert_eq!(checked(&token(&pair(1), &header(), &claims())), Ok(()));
    assert_eq!(checked(&token(&pair(9), &header(), &claims())), Ok(()));
}

#[test]
fn what_is_signed_otherwise_is_not() {
    let (key, claims) = (pair(1), claims());
    let good = token(&key, &header(), &claims);
    let (signed, _) = good.rsplit_once('.').unwrap();
    for (token, why) in [
        (token(&pair(2), &header(), &claims), Refused::OtherKey),
        (
            token(
                &key,
                &header(),
                &with(claims.clone(), "aud", json!("/discover")),
            ),
            Refused::OtherPath,
        ),
        (
            token(&key, &header(), &with(claims.clone(), "exp", json!(NOW))),
            Refused::OtherTime,
        ),
        (
            token(
                &key,
                &header(),
                &with(claims.clone(), "nbf", json!(NOW + 1)),
            ),
            Refused::OtherTime,
        ),
        (
            token(
                &key,
                &header(),
                &with(claims.clone(), "exp", json!("never")),
            ),
            Refused::Unreadable,
        ),
        (
            token(&key, &header(), &json!({ "aud": PATH })),
            Refused::Unreadable,
        ),
        (
            token(&key, &with(header(), "alg", json!("none")), &claims),
            Refused::Unreadable,
        ),
        (
            token(&key, &with(header(), "alg", json!("HS256")), &claims),
            Refused::Unreadable,
        ),
        (format!("{signed}."), Refused::OtherKey),
        (format!("{good}x"), Refused::Unreadable),
        (good.replacen('.', "", 1), Refused::Unreadable),
        (String::new(), Refused::Unreadable),
        ("..".to_owned(), Refused::Unreadable),
        ("garbage".to_owned(), Refused::Unreadable),
    ] {
        assert_eq!(checked(&token), Err(why), "{token}");
    }
    // No signature at all, in the words of the standard.
    let none = BASE64_URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    let said = BASE64_URL_SAFE_NO_PAD.encode(claims.to_string());
    assert_eq!(
        checked(&format!("{none}.{said}.")),
        Err(Refused::Unreadable)
    );
}

#[test]
fn what_is_not_signed_is_not_taken() {
    let keys = [public(&pair(1))];
    let good = token(&pair(1), &header(), &claims());
    for headers in [
        HeaderMap::new(),
        headers("unsigned", &good),
        headers("v2", &good),
        HeaderMap::from_iter([(SCHEME, "v1".parse().unwrap())]),
        HeaderMap::from_iter([(TOKEN, good.parse().unwrap())]),
    ] {
        assert_eq!(
            check_at(&keys, PATH, &headers, NOW),
            Err(Refused::Unsigned),
            "{headers:?}"
        );
        // Without keys nobody asks, and whether somebody is there may be asked by all.
        assert_eq!(
            (
                check(&[], PATH, &headers),
                check(&keys, "/x/health", &headers)
            ),
            (Ok(()), Ok(()))
        );
        assert_eq!(check(&keys, "/discover", &headers), Err(Refused::Unsigned));
    }
}

/// A token and its key that Restate's own tests have. Source: restate-sdk-shared-core, request
/// identity (checked 2026-11-26).
#[test]
fn a_token_of_restates_is_read() {
    let token = "eyJ0eXAiOiJKV1QiLCJhbGciOiJFZERTQSIsImtpZCI6InB1YmxpY2tleXYxX0FmUXdtd2ZnRVpocldwdnY4TjUyU0hwUnRacUdHYUZyNEFaTjZxdFlXU2lZIn0.eyJhdWQiOiIvaW52b2tlL2ZvbyIsImV4cCI6MTcyMTY2MjcwOSwiaWF0IjoxNzIxNjYyNjQ5LCJuYmYiOjE3MjE2NjI1ODl9.UBReG_9cdFQ5VcaJxAV0rM8U_zaNw9kMXJZt691SiI0SWw7Ucmz5Zz3wtmVUc1jrkNsnTDhNEvOFGEZoKXTMCQ";
    let key: PublicKey = "publickeyv1_AfQwmwfgEZhrWpvv8N52SHpRtZqGGaFr4AZN6qtYWSiY"
        .parse()
        .unwrap();
    let headers = headers("v1", token);
    assert_eq!(check_at(&[key], "/invoke/foo", &headers, NOW), Ok(()));
    assert_eq!(
        check_at(&[key], "/invoke/foo", &headers, NOW + 60),
        Err(Refused::OtherTime)
    );
    let other = "publickeyv1_ChjENKeMvCtRnqG2mrBK1HmPKufgFUc98K8B3ononQvp"
        .parse()
        .unwrap();
    assert_eq!(
        check_at(&[other], "/invoke/foo", &headers, NOW),
        Err(Refused::OtherKey)
    );
}

#[test]
fn a_key_is_read_as_it_is_shown() {
    let text = "publickeyv1_ChjENKeMvCtRnqG2mrBK1HmPKufgFUc98K8B3ononQvp";
    let key: PublicKey = text.parse().unwrap();
    assert_eq!(
        (key.to_string(), format!("{key:?}")),
        (text.to_owned(), text.to_owned())
    );
    for wrong in [
        "",
        "publickeyv1_",
        "publickeyv1_Chj",
        &text[12..],
        &format!("{text}1"),
        "publickeyv1_0OIl",
    ] {
        assert_eq!(wrong.parse::<PublicKey>(), Err(InvalidKey), "{wrong}");
    }
}

#[test]
fn what_is_signed_begins_behind_the_workers_own_path() {
    for (path, signed) in [
        ("/invoke/a/b", "/invoke/a/b"),
        ("/foo/bar/invoke/a/b", "/invoke/a/b"),
        ("/foo/discover", "/discover"),
        ("/invoke/a", "/invoke/a"),
        ("/foo/invoke/a", "/foo/invoke/a"),
        ("discover", "discover"),
        ("", ""),
        ("////", "////"),
    ] {
        assert_eq!(signed_path(path), signed);
    }
}
