//! Verification of JSON Web Token signatures with `ring`. Cannot sign.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind, new_error};
use jsonwebtoken::signature;
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::hmac;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};

/// Accepted algorithms. A token that names another one is refused.
pub(super) const ALGORITHMS: [Algorithm; 4] = [
    Algorithm::HS256,
    Algorithm::RS256,
    Algorithm::ES256,
    Algorithm::EdDSA,
];

static RING: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    // Needed only for converting keys to JWKs.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Installs this provider for `jsonwebtoken`. If the program has installed another one before, that
/// one stays; it verifies the same signatures.
pub(super) fn install() {
    let _ = RING.install_default();
}

fn signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Err(new_error(ErrorKind::Provider(
        "tokens are checked here, not made".to_owned(),
    )))
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    if !ALGORITHMS.contains(algorithm) {
        return Err(new_error(ErrorKind::UnsupportedAlgorithm));
    }
    // Otherwise a public key could be used as the secret of an HMAC (RFC 8725, 2.1).
    if key.family() != algorithm.family() {
        return Err(new_error(ErrorKind::InvalidAlgorithm));
    }
    Ok(Box::new(Verifier {
        algorithm: *algorithm,
        key: key.clone(),
    }))
}

struct Verifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for Verifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl signature::Verifier<Vec<u8>> for Verifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let valid = match (self.algorithm, self.key.kind()) {
            (Algorithm::HS256, DecodingKeyKind::SecretOrDer(secret)) => hmac::verify(
                &hmac::Key::new(hmac::HMAC_SHA256, secret),
                message,
                signature,
            ),
            // Keys of fewer than 2,048 bits are refused.
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(
                    &RSA_PKCS1_2048_8192_SHA256,
                    message,
                    signature,
                )
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
            _ => Err(ring::error::Unspecified),
        };
        // `ring`'s error has no details.
        valid.map_err(|_| signature::Error::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    /// RFC 7515, A.1.1: an HMAC-SHA256 key and the signature of the example.
    const SECRET: &str =
        "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
    const HS256: &str = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    /// A.2.1.
    const N: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    const RS256: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    /// A.3.1.
    const X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
    const Y: &str = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";
    const ES256: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    /// RFC 8037, A.2 and A.4.
    const ED: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    const EDDSA: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

    fn bytes(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    fn valid(algorithm: Algorithm, key: &DecodingKey, token: &str) -> bool {
        let (message, signature) = token.rsplit_once('.').unwrap();
        verifier(&algorithm, key).is_ok_and(|checks| {
            signature::Verifier::verify(&*checks, message.as_bytes(), &bytes(signature)).is_ok()
        })
    }

    #[test]
    fn the_signatures_of_the_standards_are_valid_and_changed_ones_are_not() {
        let keys = [
            (
                Algorithm::HS256,
                DecodingKey::from_secret(&bytes(SECRET)),
                HS256,
            ),
            (
                Algorithm::RS256,
                DecodingKey::from_rsa_components(N, "AQAB").unwrap(),
                RS256,
            ),
            (
                Algorithm::ES256,
                DecodingKey::from_ec_components(X, Y).unwrap(),
                ES256,
            ),
            (
                Algorithm::EdDSA,
                DecodingKey::from_ed_components(ED).unwrap(),
                EDDSA,
            ),
        ];
        for (algorithm, key, token) in &keys {
            assert!(valid(*algorithm, key, token), "{algorithm:?}");
            let changed = token.replacen("eyJ", "eyK", 1);
            assert!(!valid(*algorithm, key, &changed), "{algorithm:?}");
            for (other, _, _) in keys.iter().filter(|(other, _, _)| other != algorithm) {
                assert!(
                    verifier(other, key).is_err(),
                    "a key of {algorithm:?} was taken for {other:?}"
                );
            }
        }
    }

    #[test]
    fn a_public_key_cannot_be_used_as_an_hmac_secret() {
        let key = DecodingKey::from_ec_components(X, Y).unwrap();
        let message = HS256.rsplit_once('.').unwrap().0;
        let secret = hmac::Key::new(hmac::HMAC_SHA256, key.try_get_as_bytes().unwrap());
        let forged = hmac::sign(&secret, message.as_bytes());
        let forged = format!("{message}.{}", URL_SAFE_NO_PAD.encode(forged.as_ref()));
        assert!(!valid(Algorithm::HS256, &key, &forged));
        assert!(verifier(&Algorithm::HS384, &DecodingKey::from_secret(b"secret")).is_err());
    }
}
